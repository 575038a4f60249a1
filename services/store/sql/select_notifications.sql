SELECT shard, position, stream, version, type, state, recorded_at
FROM remembrancer.event
WHERE shard = %s::int2 AND position >= %s::int8 AND position <= coalesce(%s::int8, 9223372036854775807)
  AND (%s::text[] = '{}' OR type = ANY (%s::text[]))
ORDER BY position
LIMIT %s::int8
