-- The archive of texts.

-- name: insert
INSERT INTO remembrancer.archive (generation, shard, list, memory, version, tenant, persona, scope, subject, text,
                                  recorded_at, pinned, model, embedding)
SELECT %(generation)s, %(shard)s, %(list)s, %(memory)s, %(version)s, %(tenant)s, %(persona)s, %(scope)s, %(subject)s,
       %(text)s, %(recorded_at)s,
       %(pinned)s OR EXISTS (SELECT FROM remembrancer.archive b
                             WHERE b.generation = %(generation)s AND b.shard = %(shard)s AND b.list = %(list)s
                               AND b.memory = %(memory)s AND b.version < %(version)s AND b.pinned),
       e.model, e.vector
FROM (VALUES (1)) AS one (row)
LEFT JOIN LATERAL (
  SELECT e.model, e.vector FROM remembrancer.embedding e
  WHERE e.shard = %(shard)s AND e.tenant = %(tenant)s AND e.kind = %(kind)s AND e.subject = %(subject)s
    AND e.digest = %(digest)s AND e.vector IS NOT NULL
    AND e.model = (SELECT s.model FROM remembrancer.model s WHERE s.tenant = %(tenant)s AND s.state = 'serving')
) e ON true
ON CONFLICT (generation, shard, list, memory, version) DO UPDATE SET until_now = true, pinned = excluded.pinned

-- name: outdate
UPDATE remembrancer.archive SET until_now = false
WHERE generation = %(generation)s AND shard = %(shard)s AND list = %(list)s AND memory = ANY (%(ids)s) AND until_now

-- name: current
-- The text that a memory has again, where it was written last.
UPDATE remembrancer.archive SET until_now = true
WHERE generation = %(generation)s AND shard = %(shard)s AND list = %(list)s AND memory = %(memory)s
  AND version = (SELECT max(b.version) FROM remembrancer.archive b
                 WHERE b.generation = %(generation)s AND b.shard = %(shard)s AND b.list = %(list)s
                   AND b.memory = %(memory)s AND b.text = %(text)s)

-- name: pin
UPDATE remembrancer.archive SET pinned = %(pinned)s
WHERE generation = %(generation)s AND shard = %(shard)s AND list = %(list)s AND memory = %(memory)s

-- name: outdate_pinned
UPDATE remembrancer.archive SET until_now = false
WHERE generation = %(generation)s AND shard = %(shard)s AND list = %(list)s AND pinned AND until_now

-- name: outdate_unpinned
UPDATE remembrancer.archive SET until_now = false
WHERE generation = %(generation)s AND shard = %(shard)s AND list = %(list)s AND NOT pinned AND until_now

-- name: erase
DELETE FROM remembrancer.archive WHERE generation = %(generation)s AND shard = %(shard)s AND list = %(list)s
