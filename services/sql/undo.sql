-- What a turn did.

-- name: events_of_turn
-- The events of a turn that history knows.
SELECT e.shard, e.position, e.stream, e.version, e.type, e.state, e.recorded_at
FROM (
  SELECT DISTINCT h.shard, h.position FROM remembrancer.history h
  WHERE h.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'history' AND g.live)
    AND h.tenant = %(tenant)s AND h.turn = %(turn)s
) p
JOIN remembrancer.event e ON e.shard = p.shard AND e.position = p.position
ORDER BY e.shard, e.position

-- name: ahead
-- All events that history has not read yet.
SELECT e.shard, e.position, e.stream, e.version, e.type, e.state, e.recorded_at
FROM remembrancer.generation g
JOIN remembrancer.checkpoint c ON c.projection = g.projection AND c.generation = g.generation
JOIN remembrancer.head h ON h.shard = c.shard AND h.position > c.position
JOIN remembrancer.event e ON e.shard = c.shard AND e.position > c.position
WHERE g.projection = 'history' AND g.live
ORDER BY e.shard, e.position
