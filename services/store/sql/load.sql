-- The tails of many streams as of one moment, in no order, and a row of NULLs for each of these keys that is gone.
-- (What is always true of shards, versions and generations makes the planner expect few of them: it then keeps one plan,
-- where otherwise it would plan 0.3 ms at every call.)
SELECT NULL::int8 AS n, NULL::int2 AS shard, NULL::int8 AS position, NULL::uuid AS stream, NULL::int8 AS version,
       NULL::text AS type, NULL::bytea AS state, NULL::timestamptz AS recorded_at
FROM unnest(%s::int2[], %s::text[], %s::text[], %s::text[], %s::int4[]) AS r (shard, tenant, kind, subject, generation)
LEFT JOIN remembrancer.subject_key k USING (shard, tenant, kind, subject, generation)
WHERE k.key IS NULL AND r.shard >= 0 AND r.generation >= 0
UNION ALL
SELECT s.n, e.shard, e.position, e.stream, e.version, e.type, e.state, e.recorded_at
FROM unnest(%s::int2[], %s::uuid[], %s::int8[]) WITH ORDINALITY AS s (shard, stream, version, n)
JOIN remembrancer.event e ON e.shard = s.shard AND e.stream = s.stream AND e.version > s.version
WHERE s.shard >= 0 AND s.version >= 0
