INSERT INTO remembrancer.snapshot AS s (shard, stream, version, fold_version, state)
VALUES (%s::int2, %s::uuid, %s::int8, %s::text, %s::bytea)
ON CONFLICT (shard, stream) DO UPDATE SET version = excluded.version, fold_version = excluded.fold_version, state = excluded.state
WHERE s.fold_version <> excluded.fold_version OR s.version < excluded.version
