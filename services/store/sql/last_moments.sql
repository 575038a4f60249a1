SELECT shard, recorded_at FROM remembrancer.head WHERE position > 0 ORDER BY shard
