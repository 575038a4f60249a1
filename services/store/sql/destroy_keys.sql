UPDATE remembrancer.subject_key SET key = NULL, destroyed_at = %s::timestamptz
WHERE shard = %s::int2 AND tenant = %s::text AND kind = %s::text AND subject = %s::text AND key IS NOT NULL
