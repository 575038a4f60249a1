-- The events of many streams, of each only those after a version; in the order of the streams, then of versions.
SELECT e.shard, e.position, e.stream, e.version, e.type, e.state, e.recorded_at
FROM unnest(%s::int2[], %s::uuid[], %s::int8[]) WITH ORDINALITY AS s (shard, stream, version, n)
CROSS JOIN LATERAL (
    SELECT * FROM remembrancer.event x
    WHERE x.shard = s.shard AND x.stream = s.stream AND x.version > s.version
    ORDER BY x.version
) e
ORDER BY s.n, e.version
