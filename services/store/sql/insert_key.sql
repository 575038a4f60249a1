INSERT INTO remembrancer.subject_key (shard, tenant, kind, subject, generation, key)
VALUES (%s::int2, %s::text, %s::text, %s::text, %s::int4, %s::bytea)
ON CONFLICT DO NOTHING
