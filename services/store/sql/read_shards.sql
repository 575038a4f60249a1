-- The next events of many shards, at most so many of each; in the order of the shards, then of positions.
SELECT e.shard, e.position, e.stream, e.version, e.type, e.state, e.recorded_at
FROM unnest(%s::int2[], %s::int8[]) WITH ORDINALITY AS s (shard, position, n)
CROSS JOIN LATERAL (
    SELECT * FROM remembrancer.event x
    WHERE x.shard = s.shard AND x.position > s.position
    ORDER BY x.position
    LIMIT %s::int8
) e
ORDER BY s.n, e.position
