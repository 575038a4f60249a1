SELECT position FROM remembrancer.tracking WHERE shard = %s::int2 AND name = %s::text
