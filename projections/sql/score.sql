-- The one score of a memory for a message (docs/decisions/the-score.md). It is absolute: a memory's score does not
-- depend on how well others match, a list of one has one too, and lists can be compared.
--
--   own   = similarity - commonness * (embedding . mean) + offset + weight * words
--   words = s * s / (t + saturation)
--           s: what the message's words weigh that the memory has;  t: what all the message's words weigh
--           a word weighs ln(1 + (n + prior - df + 0.5) / (df + 0.5)), n and df counted over all lists searched: the
--           inverse document frequency of Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and
--           Beyond", 2009, with k1 = 0: a word counts once a memory, since these are texts of one or two sentences
--   score = own, raised by a share of what a memory leads by that was saved close to it, in the same list and not
--           further than `near` away: one of the two before it (share `before`) or of the two after it (`after`).
--           The best score of a search is never raised, so a message that matches nothing goes on matching nothing.
--
-- `similarity` is the cosine, since the vectors have length 1. The rest of the parameters: `projections/scoring.py`.

-- name: steps
-- From `measured` (list_no, id, created_at, terms, similarity, common) to `scored`; included where a score is needed.
lined AS MATERIALIZED (
  SELECT (row_number() OVER ())::int4 AS n, s.list_no, s.id, s.created_at, s.terms,
         s.similarity, s.common
  FROM measured s
),
-- Which words of the message a memory has, under whatever form.
found AS MATERIALIZED (
  SELECT DISTINCT h.n, q.word
  FROM (SELECT l.n, unnest(l.terms) AS term FROM lined l WHERE l.terms && %(terms)s::int4[]) h
  JOIN unnest(%(terms)s::int4[], %(words)s::int4[]) AS q (term, word) ON q.term = h.term
),
word AS MATERIALIZED (
  SELECT q.word, ln(1 + (total.n + %(prior)s::int4 - coalesce(f.df, 0) + 0.5) / (coalesce(f.df, 0) + 0.5))::float8 AS weight
  FROM (SELECT DISTINCT unnest(%(words)s::int4[]) AS word) q
  CROSS JOIN (SELECT count(*) AS n FROM lined) total
  LEFT JOIN (SELECT word, count(*) AS df FROM found GROUP BY word) f ON f.word = q.word
),
own AS MATERIALIZED (
  SELECT l.n, l.list_no, l.id, l.created_at, l.similarity, coalesce(m.words, 0) AS words,
         l.similarity - %(commonness)s::float8 * l.common + %(offset)s::float8
           + %(weight)s::float8 * coalesce(m.words, 0) AS own
  FROM lined l
  LEFT JOIN (
    SELECT f.n, sum(w.weight) ^ 2 / ((SELECT sum(a.weight) FROM word a) + %(saturation)s::float8) AS words
    FROM found f
    JOIN word w ON w.word = f.word
    GROUP BY f.n
  ) m ON m.n = l.n
),
-- A raised score stays below the score that raised it. So whoever raises one of the best is one of the best by its own.
leader AS MATERIALIZED (
  SELECT o.n, o.list_no, o.id, o.created_at, o.similarity, o.words, o.own
  FROM own o
  ORDER BY o.own DESC
  FETCH FIRST (%(candidates)s) ROWS WITH TIES
),
beside AS (
  SELECT o.n, o.list_no, o.id, o.created_at, o.similarity, o.words, o.own,
         CASE WHEN later THEN %(before)s::float8 ELSE %(after)s::float8 END * (l.own - o.own) AS lift,
         row_number() OVER (PARTITION BY l.n, later ORDER BY
           CASE WHEN later THEN o.created_at - l.created_at ELSE l.created_at - o.created_at END, o.id) AS place
  FROM leader l
  JOIN own o ON o.list_no = l.list_no AND o.n <> l.n
    AND o.created_at BETWEEN l.created_at - %(near)s::interval AND l.created_at + %(near)s::interval
  CROSS JOIN LATERAL (SELECT (o.created_at, o.id) > (l.created_at, l.id) AS later) side
),
scored AS (
  SELECT id, list_no, own + max(lift) AS score, similarity, words, created_at
  FROM (
    SELECT n, id, list_no, created_at, similarity, words, own, 0::float8 AS lift FROM leader
    UNION ALL
    SELECT n, id, list_no, created_at, similarity, words, own, greatest(lift, 0) FROM beside WHERE place <= 2
  ) candidate
  GROUP BY n, id, list_no, created_at, similarity, words, own
)

-- name: score
-- The best candidates among `searched` (list_no, id, embedding, terms, created_at), best first, ties by D6.
WITH measured AS (
  SELECT s.list_no, s.id, s.created_at, s.terms,
         -(s.embedding <#> %(message)s::halfvec) AS similarity, -(s.embedding <#> %(mean)s::halfvec) AS common
  FROM searched s
),
-- include: score.steps
SELECT id, list_no, score, similarity, words, created_at
FROM scored
ORDER BY score DESC, created_at, id
LIMIT %(candidates)s
