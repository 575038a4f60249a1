SELECT position FROM remembrancer.head WHERE shard = %s::int2
