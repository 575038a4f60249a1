-- The tails of many streams in one snapshot, and how many of these keys are gone. A row for every stream, also without events.
SELECT s.n, d.gone, e.shard, e.position, e.stream, e.version, e.type, e.state, e.recorded_at
FROM unnest(%s::int2[], %s::uuid[], %s::int8[]) WITH ORDINALITY AS s (shard, stream, version, n)
CROSS JOIN (
    SELECT count(*) AS gone
    FROM unnest(%s::int2[], %s::text[], %s::text[], %s::text[], %s::int4[]) AS r (shard, tenant, kind, subject, generation)
    LEFT JOIN remembrancer.subject_key k USING (shard, tenant, kind, subject, generation)
    WHERE k.key IS NULL
) d
LEFT JOIN LATERAL (
    SELECT * FROM remembrancer.event x
    WHERE x.shard = s.shard AND x.stream = s.stream AND x.version > s.version
    ORDER BY x.version
) e ON true
ORDER BY s.n, e.version
