-- The events of many streams, of each only those after a version; in the order of the streams, then of versions.
-- (The conditions at the end are always true, see load.sql.)
SELECT e.shard, e.position, e.stream, e.version, e.type, e.state, e.recorded_at
FROM unnest(%s::int2[], %s::uuid[], %s::int8[]) WITH ORDINALITY AS s (shard, stream, version, n)
CROSS JOIN LATERAL (
    SELECT * FROM remembrancer.event x
    WHERE x.shard = s.shard AND x.stream = s.stream AND x.version > s.version
    ORDER BY x.version
) e
WHERE s.shard >= 0 AND s.version >= 0
ORDER BY s.n, e.version
