-- The snapshots of these streams that fit their folds. (The condition on s is always true, see load.sql.)
SELECT n.stream, n.version, n.state
FROM unnest(%s::int2[], %s::uuid[], %s::text[]) AS s (shard, stream, fold_version)
JOIN remembrancer.snapshot n USING (shard, stream, fold_version)
WHERE s.shard >= 0 AND s.shard < 256
