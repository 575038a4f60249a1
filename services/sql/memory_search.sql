-- Finding a memory by what somebody remembers of it, among all texts that ever were one.

-- name: worded
-- The texts of a tenant that have words of a query, with the word match of the one score (`projections/sql/score.sql`) and
-- the share of the query's weight that they have.
WITH live AS (
  SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'history' AND g.live
),
hit AS MATERIALIZED (
  SELECT w.shard, w.list, w.memory, w.version, w.terms FROM remembrancer.wording w
  WHERE w.generation = (SELECT generation FROM live) AND w.tenant = %(tenant)s AND w.terms && %(terms)s::int4[]
    AND (%(persona)s::text IS NULL OR w.persona IN (%(persona)s::text, '*'))
),
found AS MATERIALIZED (
  SELECT DISTINCT h.shard, h.list, h.memory, h.version, q.word
  FROM (SELECT x.shard, x.list, x.memory, x.version, unnest(x.terms) AS term FROM hit x) h
  JOIN unnest(%(terms)s::int4[], %(words)s::int4[]) AS q (term, word) ON q.term = h.term
),
word AS MATERIALIZED (
  SELECT q.word,
         ln(1 + (total.n + %(prior)s::int4 - coalesce(f.df, 0) + 0.5) / (coalesce(f.df, 0) + 0.5))::float8 AS weight
  FROM (SELECT DISTINCT unnest(%(words)s::int4[]) AS word) q
  CROSS JOIN (SELECT count(*) AS n FROM remembrancer.wording w
              WHERE w.generation = (SELECT generation FROM live) AND w.tenant = %(tenant)s) total
  LEFT JOIN (SELECT word, count(*) AS df FROM found GROUP BY word) f ON f.word = q.word
),
best AS (
  SELECT f.shard, f.list, f.memory, f.version, sum(w.weight) AS s, (SELECT sum(a.weight) FROM word a) AS t
  FROM found f
  JOIN word w ON w.word = f.word
  GROUP BY f.shard, f.list, f.memory, f.version
  ORDER BY s DESC, f.version DESC, f.memory
  LIMIT %(limit)s
)
SELECT a.memory, a.persona, a.scope, a.subject, a.text, b.s ^ 2 / (b.t + %(saturation)s::float8), b.s / b.t
FROM best b
JOIN remembrancer.archive a
  ON a.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'archive' AND g.live)
 AND a.shard = b.shard AND a.list = b.list AND a.memory = b.memory AND a.version = b.version

-- name: measured
-- How near kept vectors of texts lie to a query's and to the mean of many texts.
SELECT p.n, -(e.vector <#> %(message)s::halfvec), -(e.vector <#> %(mean)s::halfvec)
FROM unnest(%(shards)s::int2[], %(kinds)s::text[], %(subjects)s::text[], %(digests)s::bytea[])
     WITH ORDINALITY AS p (shard, kind, subject, digest, n)
JOIN remembrancer.embedding e
  ON e.shard = p.shard AND e.tenant = %(tenant)s AND e.kind = p.kind AND e.subject = p.subject AND e.digest = p.digest
 AND e.model = %(model)s AND e.vector IS NOT NULL
