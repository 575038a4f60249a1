-- What leaves and comes in.

-- name: subjects
-- Everybody of a tenant for whom something may be set: whoever has a key.
SELECT DISTINCT k.kind, k.subject FROM remembrancer.subject_key k
WHERE k.tenant = %(tenant)s AND k.key IS NOT NULL AND k.kind IN ('persona', 'user', 'server')
ORDER BY k.kind, k.subject

-- name: longest
-- The most characters that a memory of a tenant has.
SELECT coalesce(max(char_length(m.text)), 0)
FROM remembrancer.list l
JOIN remembrancer.memory m ON m.generation = l.generation AND m.shard = l.shard AND m.list = l.list
WHERE l.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'memory' AND g.live)
  AND l.tenant = %(tenant)s

-- name: taken
-- Which of these ids ever were a memory's, of whatever tenant.
SELECT p.memory FROM unnest(%(shards)s::int2[], %(ids)s::uuid[]) AS p (shard, memory)
WHERE EXISTS (
  SELECT FROM remembrancer.history h
  WHERE h.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'history' AND g.live)
    AND h.shard = p.shard AND h.memory = p.memory
)

-- name: kept_vectors
-- For which of these texts a vector of the model in use is kept.
SELECT e.kind, e.subject, e.digest
FROM unnest(%(shards)s::int2[], %(kinds)s::text[], %(subjects)s::text[], %(digests)s::bytea[]) AS p (shard, kind, subject, digest)
JOIN remembrancer.embedding e
  ON e.shard = p.shard AND e.tenant = %(tenant)s AND e.kind = p.kind AND e.subject = p.subject AND e.digest = p.digest
 AND e.model = %(model)s AND e.vector IS NOT NULL
