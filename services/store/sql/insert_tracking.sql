INSERT INTO remembrancer.tracking AS t (shard, name, position) VALUES (%s::int2, %s::text, %s::int8)
ON CONFLICT (shard, name) DO UPDATE SET position = excluded.position WHERE t.position < excluded.position
RETURNING position
