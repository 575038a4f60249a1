-- What `doctor` looks at. Each takes milliseconds, also with a million memories.

-- name: server
-- Versions, the database's clock, and whether it takes writes.
SELECT current_setting('server_version'), (SELECT extversion FROM pg_extension WHERE extname = 'vector'),
       clock_timestamp(), current_setting('transaction_read_only')::bool

-- name: behind
-- For each projection how many events it has yet to read, and when the oldest of them was recorded.
SELECT p.projection, coalesce(sum(h.position - c.position), 0)::int8, min(e.recorded_at)
FROM remembrancer.generation p
LEFT JOIN remembrancer.checkpoint c ON c.projection = p.projection AND c.generation = p.generation
LEFT JOIN remembrancer.head h ON h.shard = c.shard AND h.position > c.position
LEFT JOIN remembrancer.event e ON e.shard = h.shard AND e.position = c.position + 1
WHERE p.live
GROUP BY p.projection
ORDER BY p.projection

-- name: workers
-- Workers that were alive a moment ago, slots of shards that one of them holds, and slots in all.
SELECT (SELECT count(*) FROM remembrancer.worker w
        WHERE w.heartbeat_at > clock_timestamp() - make_interval(secs => %(lease_seconds)s)),
       count(w.worker), count(*)
FROM remembrancer.lease l
LEFT JOIN remembrancer.worker w
  ON w.worker = l.worker AND w.heartbeat_at > clock_timestamp() - make_interval(secs => %(lease_seconds)s)

-- name: vectors
-- Memories of a tenant that the model which serves cannot find: it has no vector of them.
SELECT count(*)
FROM remembrancer.memory m
JOIN remembrancer.list l ON l.generation = m.generation AND l.shard = m.shard AND l.list = m.list
WHERE m.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'memory' AND g.live)
  AND l.tenant = %(tenant)s AND (m.embedding IS NULL OR m.model < %(model)s OR m.model > %(model)s)
  AND remembrancer.kept_vector_v1(m.shard, l.tenant, CASE WHEN l.scope = 'server' THEN 'server' ELSE 'user' END, l.subject,
                                  m.text, %(model)s) IS NULL
