-- The search of a reply.

-- name: candidates
-- Every visible, unpinned memory in play with a vector of this model, scored exactly over all lists together; the best
-- come back. A row that has yet to follow a change of the model is read by the vector that is kept for its text (D23). And for each list a row without an id: how many unpinned memories it has, and which were in no search of
-- this reply (hidden, expired, without a vector: T10, D22, D28), or, where that is almost everybody, which were.
-- That row also says which model serves: a vector of another one has been made too early, and is made again.
-- `o_*` are memories that events ahead of the rows have touched: they take the place of their rows (`skip`).
WITH live AS (
  SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'memory' AND g.live
),
here AS MATERIALIZED (
  SELECT p.no AS list_no, m.id, m.terms, m.created_at,
         CASE WHEN (m.until IS NULL OR m.until >= %(today)s::date)
                AND (m.channels = '{}' OR %(channel)s::text = ANY (m.channels))
                AND (m.tags = '{}' OR m.tags && %(tags)s::text[])
              THEN -(v.vector <#> %(message)s::halfvec) END AS similarity,
         -(v.vector <#> %(mean)s::halfvec) AS common
  FROM unnest(%(shards)s::int2[], %(lists)s::uuid[], %(kinds)s::text[], %(subjects)s::text[])
       WITH ORDINALITY AS p (shard, list, kind, subject, no)
  JOIN remembrancer.memory m ON m.generation = (SELECT generation FROM live) AND m.shard = p.shard AND m.list = p.list
  CROSS JOIN LATERAL (
    SELECT CASE WHEN m.model = %(model)s THEN m.embedding
                ELSE remembrancer.kept_vector_v1(m.shard, %(tenant)s, p.kind, p.subject, m.text, %(model)s) END AS vector
  ) v
  WHERE NOT m.pinned AND m.id <> ALL (%(skip)s::uuid[])
  UNION ALL
  SELECT o.no, o.id, o.terms::int4[], o.created_at, CASE WHEN o.visible THEN -(e.vector <#> %(message)s::halfvec) END,
         -(e.vector <#> %(mean)s::halfvec)
  FROM unnest(%(o_no)s::int8[], %(o_shard)s::int2[], %(o_id)s::uuid[], %(o_kind)s::text[], %(o_subject)s::text[],
              %(o_digest)s::bytea[], %(o_terms)s::text[], %(o_created_at)s::timestamptz[], %(o_visible)s::bool[])
       AS o (no, shard, id, kind, subject, digest, terms, created_at, visible)
  LEFT JOIN remembrancer.embedding e
    ON e.shard = o.shard AND e.tenant = %(tenant)s AND e.kind = o.kind AND e.subject = o.subject AND e.digest = o.digest
   AND e.model = %(model)s
),
measured AS (
  SELECT * FROM here WHERE similarity IS NOT NULL
),
-- include: score.steps
,
members AS (
  SELECT h.list_no, count(*) AS members,
         coalesce(array_agg(h.id ORDER BY h.id) FILTER (WHERE h.similarity IS NULL), '{}') AS hidden,
         count(*) FILTER (WHERE h.similarity IS NOT NULL) AS seen
  FROM here h GROUP BY h.list_no
)
SELECT list_no, id, score, similarity, words, NULL::int8 AS members, NULL::uuid[] AS hidden, NULL::uuid[] AS seen,
       NULL::text AS serving
FROM (SELECT * FROM scored ORDER BY score DESC, created_at, id LIMIT %(candidates)s) best
UNION ALL
SELECT m.list_no, NULL, NULL, NULL, NULL, m.members,
       CASE WHEN 2 * cardinality(m.hidden) <= m.members THEN m.hidden END,
       CASE WHEN 2 * cardinality(m.hidden) > m.members
            THEN ARRAY(SELECT h.id FROM here h WHERE h.list_no = m.list_no AND h.similarity IS NOT NULL ORDER BY h.id) END,
       (SELECT s.model FROM remembrancer.model s WHERE s.tenant = %(tenant)s AND s.state = 'serving')
FROM members m

-- name: views
-- The best candidates, with what their views need.
SELECT p.no, p.list, l.version, l.days, m.id, m.text, m.created_at, m.updated_at, m.until, m.tags, m.channels, m.actor, m.turn, m.source,
       m.pinned, u.frozen, m.protected, u.base_day, u.base_days, u.base_matched_at, u.uses
FROM unnest(%(nos)s::int8[], %(shards)s::int2[], %(lists)s::uuid[], %(ids)s::uuid[]) AS p (no, shard, list, id)
JOIN remembrancer.list l
  ON l.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'memory' AND g.live)
 AND l.shard = p.shard AND l.list = p.list
JOIN remembrancer.memory m ON m.generation = l.generation AND m.shard = p.shard AND m.list = p.list AND m.id = p.id
JOIN remembrancer.memory_use u ON u.generation = m.generation AND u.shard = m.shard AND u.list = m.list AND u.id = m.id
