SELECT shard, position, stream, version, type, state, recorded_at
FROM remembrancer.event
WHERE shard = %s::int2 AND stream = %s::uuid
  AND version > coalesce(%s::int8, -1) AND version <= coalesce(%s::int8, 9223372036854775807)
ORDER BY version
LIMIT %s::int8
