SELECT shard, position FROM remembrancer.head WHERE position > 0 ORDER BY shard
