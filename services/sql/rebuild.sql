-- The course of a rebuild: who does what, how far it is, comparing, switching, dropping.

-- name: begin
SELECT remembrancer.begin_rebuild_v1(%(projections)s, %(versions)s, %(tables)s, %(owners)s)

-- name: under_way
-- The rebuild that is under way, with the oldest version of its code and the highest.
SELECT b.generation, b.projections, b.state, b.started_at, b.changed_at, min(g.version), max(g.version)
FROM remembrancer.rebuild b
JOIN remembrancer.generation g ON g.generation = b.generation AND g.projection = ANY (b.projections)
WHERE b.state IN ('building', 'catching up')
GROUP BY b.generation

-- name: built_by
SELECT g.projection, g.version FROM remembrancer.generation g WHERE g.generation = %(generation)s

-- name: state
SELECT b.state FROM remembrancer.rebuild b WHERE b.generation = %(generation)s

-- name: progress
-- Events of the shards that are done, events in all, shards that are done, shards in all.
SELECT coalesce(sum(CASE WHEN s.done THEN greatest(s.events, 0) ELSE 0 END), 0)::int8, sum(h.position)::int8,
       count(*) FILTER (WHERE s.done), count(*)
FROM remembrancer.rebuild_shard s JOIN remembrancer.head h ON h.shard = s.shard
WHERE s.generation = %(generation)s

-- name: all_poured
SELECT NOT EXISTS (SELECT FROM remembrancer.rebuild_shard s WHERE s.generation = %(generation)s AND NOT s.done)

-- name: claim_table
-- A table to attach. By name, which begins with those that have the costliest indexes: their sizes cannot be asked for
-- without waiting for whoever attaches one.
SELECT t.name FROM remembrancer.rebuild_table t
JOIN remembrancer.rebuild b ON b.generation = t.generation AND b.state = 'building'
WHERE t.generation = %(generation)s AND NOT t.attached
ORDER BY t.name LIMIT 1
FOR UPDATE OF t SKIP LOCKED

-- name: roomy
-- An HNSW index is made several times faster where it fits.
SELECT set_config('maintenance_work_mem', '256MB', true)

-- name: attach
SELECT remembrancer.attach_generation_v1(%(name)s, %(generation)s::int2)

-- name: attached
UPDATE remembrancer.rebuild_table SET attached = true WHERE generation = %(generation)s AND name = %(name)s

-- name: tables
SELECT t.name, t.projection, t.attached FROM remembrancer.rebuild_table t WHERE t.generation = %(generation)s ORDER BY t.name

-- name: all_built
-- Everything is poured and attached: from now on events are projected into it as into any other.
UPDATE remembrancer.rebuild b SET state = 'catching up', changed_at = clock_timestamp()
WHERE b.generation = %(generation)s AND b.state = 'building'
  AND NOT EXISTS (SELECT FROM remembrancer.rebuild_shard s WHERE s.generation = b.generation AND NOT s.done)
  AND NOT EXISTS (SELECT FROM remembrancer.rebuild_table t WHERE t.generation = b.generation AND NOT t.attached)

-- name: alive
UPDATE remembrancer.rebuild SET changed_at = clock_timestamp() WHERE generation = %(generation)s

-- name: idle
-- For how many seconds nobody has finished a part of it.
SELECT extract(epoch FROM clock_timestamp() - b.changed_at)::float8 FROM remembrancer.rebuild b
WHERE b.generation = %(generation)s

-- name: behind_heads
-- How many events a generation has yet to project.
SELECT coalesce(sum(h.position - c.position), 0)::int8
FROM remembrancer.checkpoint c JOIN remembrancer.head h ON h.shard = c.shard AND h.position > c.position
WHERE c.generation = %(generation)s AND c.projection = ANY (%(projections)s)

-- name: behind_of_live
SELECT coalesce(sum(h.position - c.position), 0)::int8
FROM remembrancer.generation g
JOIN remembrancer.checkpoint c ON c.projection = g.projection AND c.generation = g.generation
JOIN remembrancer.head h ON h.shard = c.shard AND h.position > c.position
WHERE g.live AND g.projection = ANY (%(projections)s)

-- name: adopt_memory
-- Vectors that have come since a text was poured.
UPDATE remembrancer.memory m SET model = e.model, embedding = e.vector
FROM remembrancer.list l
CROSS JOIN LATERAL (SELECT CASE WHEN l.scope = 'server' THEN 'server' ELSE 'user' END AS kind) k
JOIN remembrancer.embedding e ON e.shard = l.shard AND e.tenant = l.tenant AND e.kind = k.kind AND e.subject = l.subject
WHERE m.generation = %(generation)s AND m.embedding IS NULL
  AND l.generation = m.generation AND l.shard = m.shard AND l.list = m.list
  AND e.digest = sha256(convert_to(m.text, 'UTF8')) AND e.vector IS NOT NULL
  AND e.model = (SELECT s.model FROM remembrancer.model s WHERE s.tenant = l.tenant AND s.state = 'serving')

-- name: adopt_archive
UPDATE remembrancer.archive a SET model = e.model, embedding = e.vector
FROM remembrancer.embedding e
WHERE a.generation = %(generation)s AND a.embedding IS NULL
  AND e.shard = a.shard AND e.tenant = a.tenant AND e.subject = a.subject
  AND e.kind = CASE WHEN a.scope = 'server' THEN 'server' ELSE 'user' END
  AND e.digest = sha256(convert_to(a.text, 'UTF8')) AND e.vector IS NOT NULL
  AND e.model = (SELECT s.model FROM remembrancer.model s WHERE s.tenant = a.tenant AND s.state = 'serving')

-- name: live
SELECT g.projection, g.generation FROM remembrancer.generation g WHERE g.live AND g.projection = ANY (%(projections)s)

-- name: level
-- Shards that have come equally far in the live generation of a projection and in a new one; the others, too.
SELECT o.shard, o.position = n.position
FROM remembrancer.generation g
JOIN remembrancer.checkpoint o ON o.projection = g.projection AND o.generation = g.generation
JOIN remembrancer.checkpoint n ON n.projection = g.projection AND n.generation = %(generation)s AND n.shard = o.shard
WHERE g.projection = %(projection)s AND g.live AND greatest(o.position, n.position) > 0
ORDER BY o.shard

-- name: compare
SELECT * FROM remembrancer.compare_generations_v1(%(table)s, %(shard)s::int2, %(old)s::int2, %(new)s::int2, %(sample)s)

-- name: parked
-- Streams that are parked in a new generation, and whether they are in the live one, too.
SELECT p.projection, p.stream, p.error, EXISTS (
  SELECT FROM remembrancer.parked o JOIN remembrancer.generation g ON g.projection = o.projection AND g.generation = o.generation
  WHERE g.live AND o.projection = p.projection AND o.shard = p.shard AND o.stream = p.stream)
FROM remembrancer.parked p WHERE p.generation = %(generation)s AND p.projection = ANY (%(projections)s)
ORDER BY p.parked_at

-- name: lock_live
-- Nobody projects the live generations meanwhile; replies go on, since they read rows plus tail.
SELECT c.shard FROM remembrancer.generation g
JOIN remembrancer.checkpoint c ON c.projection = g.projection AND c.generation = g.generation
WHERE g.live AND g.projection = ANY (%(projections)s)
ORDER BY c.shard, c.projection FOR UPDATE OF c

-- name: lock_new
SELECT c.shard FROM remembrancer.checkpoint c
WHERE c.generation = %(generation)s AND c.projection = ANY (%(projections)s)
ORDER BY c.shard, c.projection FOR UPDATE OF c

-- name: falls_short
-- Is the new generation anywhere behind the live one?
SELECT EXISTS (
  SELECT FROM remembrancer.generation g
  JOIN remembrancer.checkpoint o ON o.projection = g.projection AND o.generation = g.generation
  LEFT JOIN remembrancer.checkpoint n ON n.projection = g.projection AND n.generation = %(generation)s AND n.shard = o.shard
  WHERE g.live AND g.projection = ANY (%(projections)s) AND (n.position IS NULL OR n.position < o.position))

-- name: switched
UPDATE remembrancer.rebuild SET state = 'switched', changed_at = clock_timestamp()
WHERE generation = %(generation)s AND state = 'catching up'

-- name: take_down
UPDATE remembrancer.generation SET live = false WHERE live AND projection = ANY (%(projections)s)

-- name: put_up
UPDATE remembrancer.generation SET live = true WHERE generation = %(generation)s AND projection = ANY (%(projections)s)

-- name: cancel
UPDATE remembrancer.rebuild SET state = 'cancelled', changed_at = clock_timestamp()
WHERE generation = %(generation)s AND state IN ('building', 'catching up')

-- name: retired
-- Generations that nobody reads any more: not live, and not being built.
SELECT g.projection, g.generation FROM remembrancer.generation g
WHERE NOT g.live AND NOT EXISTS (
  SELECT FROM remembrancer.rebuild b
  WHERE b.generation = g.generation AND g.projection = ANY (b.projections) AND b.state IN ('building', 'catching up'))
ORDER BY g.generation, g.projection

-- name: readers_of_old
-- Is a transaction still open that began before the last switch? (Of other roles nobody is told; they are no readers of ours.)
SELECT EXISTS (
  SELECT FROM pg_stat_activity a
  WHERE a.datname = current_database() AND a.pid <> pg_backend_pid()
    AND a.xact_start < (SELECT max(b.changed_at) FROM remembrancer.rebuild b WHERE b.state = 'switched'))

-- name: tables_of
SELECT t.name FROM remembrancer.rebuild_table t WHERE t.projection = %(projection)s AND t.generation = %(generation)s

-- name: retire
SELECT remembrancer.retire_generation_v1(%(projection)s, %(generation)s::int2)

-- name: drop_table
SELECT remembrancer.drop_table_v1(%(name)s, %(generation)s::int2)

-- name: forget
SELECT remembrancer.forget_generation_v1(%(projection)s, %(generation)s::int2)

-- name: generations
SELECT g.projection, g.generation, g.live, g.version FROM remembrancer.generation g ORDER BY g.projection, g.generation
