-- What the runner needs to share shards, read events and move checkpoints.

-- name: next
-- The next events of a projection's generation (null is the live one), with the checkpoint that they come after and whether
-- their stream is parked. At most so many, and not too many of one shard. Slots are the leases held, shards where something is
-- known to have happened; null is all of them.
SELECT c.generation, c.position, p.stream IS NOT NULL, e.shard, e.position, e.stream, e.version, e.type, e.state, e.recorded_at
FROM remembrancer.generation g
JOIN remembrancer.checkpoint c ON c.projection = g.projection AND c.generation = g.generation
JOIN remembrancer.head h ON h.shard = c.shard AND h.position > c.position
CROSS JOIN LATERAL (
  SELECT * FROM remembrancer.event x
  WHERE x.shard = c.shard AND x.position > c.position
  ORDER BY x.position LIMIT %(of_a_shard)s::int8
) e
LEFT JOIN remembrancer.parked p
  ON p.projection = c.projection AND p.generation = c.generation AND p.shard = e.shard AND p.stream = e.stream
WHERE g.projection = %(projection)s
  AND CASE WHEN %(generation)s::int2 IS NULL THEN g.live ELSE g.generation = %(generation)s::int2 END
  AND (%(slots)s::int2[] IS NULL OR c.shard / 16 = ANY (%(slots)s::int2[]))
  AND (%(shards)s::int2[] IS NULL OR c.shard = ANY (%(shards)s::int2[]))
ORDER BY e.shard, e.position
LIMIT %(limit)s::int8

-- name: limit_transaction
-- A worker that stands still in the middle of a batch loses its transaction after a while, and its locks with it.
SELECT set_config('idle_in_transaction_session_timeout', %(milliseconds)s::text, true)

-- name: advance
-- Compare and set: moves the checkpoints only where nobody else has moved them. The caller counts the rows. Also limits
-- how long the transaction may stand still: a worker that was stopped in the middle loses it, and its locks with it.
UPDATE remembrancer.checkpoint c SET position = p.new
FROM unnest(%(shards)s::int2[], %(old)s::int8[], %(new)s::int8[]) AS p (shard, old, new)
WHERE c.projection = %(projection)s AND c.generation = %(generation)s AND c.shard = p.shard AND c.position = p.old
  AND set_config('idle_in_transaction_session_timeout', %(milliseconds)s::text, true) IS NOT NULL

-- name: park
INSERT INTO remembrancer.parked (projection, generation, shard, stream, position, error)
VALUES (%(projection)s, %(generation)s, %(shard)s, %(stream)s, %(position)s, %(error)s)
ON CONFLICT (projection, generation, shard, stream) DO NOTHING

-- name: all_parked
SELECT projection, generation, shard, stream, position, error, parked_at FROM remembrancer.parked ORDER BY parked_at

-- name: unpark
DELETE FROM remembrancer.parked
WHERE projection = %(projection)s AND generation = %(generation)s AND shard = %(shard)s AND stream = %(stream)s

-- name: heartbeat
-- A worker is alive; others that have not said so for a while are forgotten. By the database's clock alone.
WITH alive AS (
  INSERT INTO remembrancer.worker (worker, heartbeat_at) VALUES (%(worker)s, clock_timestamp())
  ON CONFLICT (worker) DO UPDATE SET heartbeat_at = excluded.heartbeat_at
)
DELETE FROM remembrancer.worker
WHERE worker <> %(worker)s AND heartbeat_at < clock_timestamp() - make_interval(secs => %(lease_seconds)s)

-- name: release
-- Give back what is over a fair share, so that a new worker gets some.
UPDATE remembrancer.lease SET worker = NULL
WHERE slot IN (
  SELECT slot FROM remembrancer.lease WHERE worker = %(worker)s ORDER BY slot
  OFFSET (SELECT ceil((SELECT count(*) FROM remembrancer.lease)::numeric / greatest(1, count(*))) FROM remembrancer.worker)
)

-- name: take
-- Take free slots, and those of workers that are gone, up to a fair share.
UPDATE remembrancer.lease SET worker = %(worker)s
WHERE slot IN (
  SELECT l.slot FROM remembrancer.lease l LEFT JOIN remembrancer.worker w ON w.worker = l.worker
  WHERE w.worker IS NULL
  ORDER BY l.slot
  LIMIT greatest(0, (SELECT ceil((SELECT count(*) FROM remembrancer.lease)::numeric / greatest(1, count(*))) FROM remembrancer.worker)
                  - (SELECT count(*) FROM remembrancer.lease WHERE worker = %(worker)s))
  FOR UPDATE OF l SKIP LOCKED
)

-- name: mine
SELECT slot FROM remembrancer.lease WHERE worker = %(worker)s ORDER BY slot

-- name: leave
-- A worker that ends well hands its slots back at once.
WITH gone AS (DELETE FROM remembrancer.worker WHERE worker = %(worker)s)
UPDATE remembrancer.lease SET worker = NULL WHERE worker = %(worker)s

-- name: lock_checkpoint
-- Holds a shard's checkpoint, so that no batch runs while a parked stream catches up.
SELECT position FROM remembrancer.checkpoint
WHERE projection = %(projection)s AND generation = %(generation)s AND shard = %(shard)s FOR UPDATE

-- name: reached
-- Which of these positions the read model has reached, in the live generation.
SELECT p.shard FROM unnest(%(shards)s::int2[], %(positions)s::int8[]) AS p (shard, position)
JOIN remembrancer.generation g ON g.projection = %(projection)s AND g.live
JOIN remembrancer.checkpoint c
  ON c.projection = g.projection AND c.generation = g.generation AND c.shard = p.shard AND c.position < p.position
