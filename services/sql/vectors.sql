-- Vectors of texts.

-- name: keep
INSERT INTO remembrancer.embedding (shard, tenant, kind, subject, digest, model, vector)
VALUES (%(shard)s, %(tenant)s, %(kind)s, %(subject)s, %(digest)s, %(model)s, %(vector)s)
ON CONFLICT (shard, tenant, kind, subject, digest, model)
DO UPDATE SET vector = excluded.vector WHERE embedding.vector IS NULL

-- name: keep_if_there
-- The vector of a memory that was looked up a while ago: not kept if it says something else by now, or was erased (D24).
INSERT INTO remembrancer.embedding (shard, tenant, kind, subject, digest, model, vector)
SELECT %(shard)s, %(tenant)s, %(kind)s, %(subject)s, %(digest)s, %(model)s, %(vector)s
FROM remembrancer.memory m
WHERE m.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'memory' AND g.live)
  AND m.shard = %(shard)s AND m.list = %(list)s AND m.id = %(memory)s AND m.text = %(text)s
FOR SHARE
ON CONFLICT (shard, tenant, kind, subject, digest, model)
DO UPDATE SET vector = excluded.vector WHERE embedding.vector IS NULL

-- name: forget
DELETE FROM remembrancer.embedding
WHERE shard = %(shard)s AND tenant = %(tenant)s AND kind = %(kind)s AND subject = %(subject)s AND digest = %(digest)s

-- name: without_vector
-- Memories of a tenant that have no vector of this model, with the subject under which it will be kept.
SELECT m.shard, m.list, CASE WHEN l.scope = 'server' THEN 'server' ELSE 'user' END, l.subject, m.text, m.id
FROM remembrancer.memory m
JOIN remembrancer.list l ON l.generation = m.generation AND l.shard = m.shard AND l.list = m.list
WHERE m.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'memory' AND g.live)
  AND l.tenant = %(tenant)s AND (m.embedding IS NULL OR m.model < %(model)s OR m.model > %(model)s)
  AND sha256(convert_to(m.text, 'UTF8')) <> ALL (%(refused)s::bytea[])
  AND remembrancer.kept_vector_v1(m.shard, l.tenant, CASE WHEN l.scope = 'server' THEN 'server' ELSE 'user' END, l.subject,
                                  m.text, %(model)s) IS NULL
LIMIT %(limit)s

-- name: adopt_memories
-- Give memories the vectors that are kept for their texts, some at a time. A text that changes meanwhile gets none.
UPDATE remembrancer.memory m SET model = %(model)s, embedding = p.vector
FROM (
  SELECT o.generation, o.shard, o.list, o.id, o.text, e.vector
  FROM remembrancer.memory o
  JOIN remembrancer.list l ON l.generation = o.generation AND l.shard = o.shard AND l.list = o.list
  JOIN remembrancer.embedding e
    ON e.shard = o.shard AND e.tenant = l.tenant AND e.subject = l.subject
   AND e.kind = CASE WHEN l.scope = 'server' THEN 'server' ELSE 'user' END
   AND e.digest = sha256(convert_to(o.text, 'UTF8')) AND e.model = %(model)s AND e.vector IS NOT NULL
  WHERE o.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'memory' AND g.live)
    AND l.tenant = %(tenant)s AND (o.embedding IS NULL OR o.model < %(model)s OR o.model > %(model)s)
  LIMIT %(limit)s
) p
WHERE m.generation = p.generation AND m.shard = p.shard AND m.list = p.list AND m.id = p.id AND m.text = p.text

-- name: adopt_archive
-- The same for the archive of texts.
UPDATE remembrancer.archive a SET model = %(model)s, embedding = p.vector
FROM (
  SELECT o.generation, o.shard, o.list, o.memory, o.version, e.vector
  FROM remembrancer.archive o
  JOIN remembrancer.embedding e
    ON e.shard = o.shard AND e.tenant = o.tenant AND e.subject = o.subject
   AND e.kind = CASE WHEN o.scope = 'server' THEN 'server' ELSE 'user' END
   AND e.digest = sha256(convert_to(o.text, 'UTF8')) AND e.model = %(model)s AND e.vector IS NOT NULL
  WHERE o.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'archive' AND g.live)
    AND o.tenant = %(tenant)s AND (o.embedding IS NULL OR o.model < %(model)s OR o.model > %(model)s)
  LIMIT %(limit)s
) p
WHERE a.generation = p.generation AND a.shard = p.shard AND a.list = p.list AND a.memory = p.memory AND a.version = p.version

-- name: index_archive
SELECT remembrancer.index_archive_v1(%(model)s, %(dimensions)s)

-- name: near_duplicate
-- The memory of a list that says nearly the same (D12).
SELECT m.id, m.text, 1 - (v.vector <=> %(vector)s) AS similarity
FROM remembrancer.memory m
CROSS JOIN LATERAL (
  SELECT CASE WHEN m.model = %(model)s THEN m.embedding
              ELSE remembrancer.kept_vector_v1(m.shard, %(tenant)s, %(kind)s, %(subject)s, m.text, %(model)s) END AS vector
) v
WHERE m.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'memory' AND g.live)
  AND m.shard = %(shard)s AND m.list = %(list)s AND m.id <> %(but)s AND v.vector IS NOT NULL
ORDER BY v.vector <=> %(vector)s, m.created_at, m.id LIMIT 1

-- name: without_vector_in
-- Memories of a list that no search can find for want of a vector of the model that serves (D22).
SELECT m.id
FROM remembrancer.memory m
JOIN remembrancer.list l ON l.generation = m.generation AND l.shard = m.shard AND l.list = m.list
LEFT JOIN remembrancer.model s ON s.tenant = l.tenant AND s.state = 'serving'
WHERE m.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'memory' AND g.live)
  AND m.shard = %(shard)s AND m.list = %(list)s
  AND (m.embedding IS NULL OR m.model IS DISTINCT FROM s.model)
  AND remembrancer.kept_vector_v1(m.shard, l.tenant, CASE WHEN l.scope = 'server' THEN 'server' ELSE 'user' END, l.subject,
                                  m.text, s.model) IS NULL
