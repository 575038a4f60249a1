SELECT n.stream, n.version, n.state
FROM unnest(%s::int2[], %s::uuid[], %s::text[]) AS s (shard, stream, fold_version)
JOIN remembrancer.snapshot n USING (shard, stream, fold_version)
