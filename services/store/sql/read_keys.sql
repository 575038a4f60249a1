-- Those of these keys that stand. (The conditions on r are always true, see load.sql.)
SELECT k.shard, k.tenant, k.kind, k.subject, k.generation, k.key
FROM unnest(%s::int2[], %s::text[], %s::text[], %s::text[], %s::int4[]) AS r (shard, tenant, kind, subject, generation)
JOIN remembrancer.subject_key k USING (shard, tenant, kind, subject, generation)
WHERE k.key IS NOT NULL AND r.shard >= 0 AND r.generation >= 0
