-- Vectors of texts.

-- name: keep
INSERT INTO remembrancer.embedding (shard, tenant, kind, subject, digest, model, vector)
VALUES (%(shard)s, %(tenant)s, %(kind)s, %(subject)s, %(digest)s, %(model)s, %(vector)s)
ON CONFLICT DO NOTHING

-- name: keep_if_there
-- The vector of a memory that was looked up a while ago: not kept if it says something else by now, or was erased (D24).
INSERT INTO remembrancer.embedding (shard, tenant, kind, subject, digest, model, vector)
SELECT %(shard)s, %(tenant)s, %(kind)s, %(subject)s, %(digest)s, %(model)s, %(vector)s
FROM remembrancer.memory m
WHERE m.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'memory' AND g.live)
  AND m.shard = %(shard)s AND m.list = %(list)s AND m.id = %(memory)s AND m.text = %(text)s
FOR SHARE
ON CONFLICT DO NOTHING

-- name: forget
DELETE FROM remembrancer.embedding
WHERE shard = %(shard)s AND tenant = %(tenant)s AND kind = %(kind)s AND subject = %(subject)s AND digest = %(digest)s
  AND model = %(model)s

-- name: without_vector
-- Memories of a tenant that have no vector of this model, with the subject under which it will be kept.
SELECT m.shard, m.list, CASE WHEN l.scope = 'server' THEN 'server' ELSE 'user' END, l.subject, m.text, m.id
FROM remembrancer.memory m
JOIN remembrancer.list l ON l.generation = m.generation AND l.shard = m.shard AND l.list = m.list
WHERE m.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'memory' AND g.live)
  AND l.tenant = %(tenant)s AND (m.embedding IS NULL OR m.model < %(model)s OR m.model > %(model)s)
  AND sha256(convert_to(m.text, 'UTF8')) <> ALL (%(refused)s::bytea[])
LIMIT %(limit)s

-- name: adopt_memories
-- Give memories the vectors that are kept for their texts.
UPDATE remembrancer.memory m SET model = e.model, embedding = e.vector
FROM remembrancer.list l, remembrancer.embedding e
WHERE m.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'memory' AND g.live)
  AND (m.embedding IS NULL OR m.model < %(model)s OR m.model > %(model)s)
  AND l.generation = m.generation AND l.shard = m.shard AND l.list = m.list AND l.tenant = %(tenant)s
  AND e.shard = m.shard AND e.tenant = l.tenant AND e.subject = l.subject
  AND e.kind = CASE WHEN l.scope = 'server' THEN 'server' ELSE 'user' END
  AND e.digest = sha256(convert_to(m.text, 'UTF8')) AND e.model = %(model)s

-- name: adopt_archive
-- The same for the archive of texts.
UPDATE remembrancer.archive a SET model = e.model, embedding = e.vector
FROM remembrancer.embedding e
WHERE a.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'archive' AND g.live)
  AND a.tenant = %(tenant)s AND a.embedding IS NULL
  AND e.shard = a.shard AND e.tenant = a.tenant AND e.subject = a.subject
  AND e.kind = CASE WHEN a.scope = 'server' THEN 'server' ELSE 'user' END
  AND e.digest = sha256(convert_to(a.text, 'UTF8')) AND e.model = %(model)s

-- name: dimensions
-- The length of the vectors that are kept of a model.
SELECT vector_dims(m.embedding) FROM remembrancer.memory m
WHERE m.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'memory' AND g.live)
  AND m.model = %(model)s
LIMIT 1

-- name: index_archive
SELECT remembrancer.index_archive_v1(%(model)s, %(dimensions)s)

-- name: near_duplicate
-- The memory of a list that says nearly the same (D12).
SELECT m.id, m.text, 1 - (m.embedding <=> %(vector)s) AS similarity
FROM remembrancer.memory m
WHERE m.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'memory' AND g.live)
  AND m.shard = %(shard)s AND m.list = %(list)s AND m.model = %(model)s AND m.id <> %(but)s
ORDER BY m.embedding <=> %(vector)s, m.created_at, m.id LIMIT 1

-- name: without_vector_in
-- Memories of a list that no search can find for want of a vector (D22).
SELECT m.id FROM remembrancer.memory m
WHERE m.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'memory' AND g.live)
  AND m.shard = %(shard)s AND m.list = %(list)s AND (m.embedding IS NULL OR m.model IS DISTINCT FROM %(model)s)
