SELECT generation, key
FROM remembrancer.subject_key
WHERE shard = %s::int2 AND tenant = %s::text AND kind = %s::text AND subject = %s::text
ORDER BY generation DESC
LIMIT 1
