-- The search of a reply.

-- name: candidates
-- Every visible, unpinned memory in play with a vector of this model, scored exactly; the best come back whole.
-- `o_*` are memories that events ahead of the rows have touched: they take the place of their rows (`skip`).
WITH live AS (
  SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'memory' AND g.live
),
play AS MATERIALIZED (
  SELECT p.no, p.shard, p.list
  FROM unnest(%(shards)s::int2[], %(lists)s::uuid[]) WITH ORDINALITY AS p (shard, list, no)
),
here AS MATERIALIZED (
  SELECT p.no AS list_no, m.id, m.embedding, m.terms, m.created_at
  FROM play p
  JOIN remembrancer.memory m ON m.generation = (SELECT generation FROM live) AND m.shard = p.shard AND m.list = p.list
  JOIN remembrancer.memory_use u ON u.generation = m.generation AND u.shard = m.shard AND u.list = m.list AND u.id = m.id
  WHERE NOT u.pinned AND m.model = %(model)s
    AND (m.until IS NULL OR m.until >= %(today)s::date)
    AND (m.channels = '{}' OR %(channel)s::text = ANY (m.channels))
    AND (m.tags = '{}' OR m.tags && %(tags)s::text[])
    AND m.id <> ALL (%(skip)s::uuid[])
  UNION ALL
  SELECT o.no, o.id, e.vector, o.terms::int4[], o.created_at
  FROM unnest(%(o_no)s::int8[], %(o_shard)s::int2[], %(o_id)s::uuid[], %(o_kind)s::text[], %(o_subject)s::text[],
              %(o_digest)s::bytea[], %(o_terms)s::text[], %(o_created_at)s::timestamptz[])
       AS o (no, shard, id, kind, subject, digest, terms, created_at)
  JOIN remembrancer.embedding e
    ON e.shard = o.shard AND e.tenant = %(tenant)s AND e.kind = o.kind AND e.subject = o.subject AND e.digest = o.digest
   AND e.model = %(model)s
),
scored AS (
  SELECT h.list_no, h.id, h.created_at, 1 - (h.embedding <=> %(vector)s) AS similarity, 0::float8 AS words,
         1 - (h.embedding <=> %(vector)s) AS score
  FROM here h
)
SELECT s.list_no, s.id, s.score, s.similarity, s.words
FROM scored s
ORDER BY s.score DESC, s.created_at, s.id
LIMIT %(best)s

-- name: views
-- The best candidates, with what their views need.
SELECT p.no, p.list, l.days, m.id, m.text, m.created_at, m.updated_at, m.until, m.tags, m.channels, m.actor, m.turn, m.source,
       u.pinned, u.frozen, u.protected, u.base_day, u.base_days, u.base_matched_at, u.uses
FROM unnest(%(nos)s::int8[], %(shards)s::int2[], %(lists)s::uuid[], %(ids)s::uuid[]) AS p (no, shard, list, id)
JOIN remembrancer.list l
  ON l.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'memory' AND g.live)
 AND l.shard = p.shard AND l.list = p.list
JOIN remembrancer.memory m ON m.generation = l.generation AND m.shard = p.shard AND m.list = p.list AND m.id = p.id
JOIN remembrancer.memory_use u ON u.generation = m.generation AND u.shard = m.shard AND u.list = m.list AND u.id = m.id
