-- What a projection has not read yet.

-- name: unread
-- Its events, of these types or of all, in these shards or in all.
SELECT e.shard, e.position, e.stream, e.version, e.type, e.state, e.recorded_at
FROM remembrancer.generation g
JOIN remembrancer.checkpoint c ON c.projection = g.projection AND c.generation = g.generation
JOIN remembrancer.head h ON h.shard = c.shard AND h.position > c.position
JOIN remembrancer.event e ON e.shard = c.shard AND e.position > c.position
WHERE g.projection = %(projection)s AND g.live
  AND (%(types)s::text[] IS NULL OR e.type = ANY (%(types)s::text[]))
  AND (%(shards)s::int2[] IS NULL OR c.shard = ANY (%(shards)s::int2[]))
ORDER BY e.shard, e.position
