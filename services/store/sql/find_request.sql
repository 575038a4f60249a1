SELECT r.verb, r.fingerprint, r.answer, r.positions,
       coalesce((SELECT array_agg(e.version ORDER BY n)
                 FROM unnest(r.positions) WITH ORDINALITY AS p (packed, n)
                 JOIN remembrancer.event e
                   ON e.shard = (packed >> 48)::int2 AND e.position = packed & ((1::int8 << 48) - 1)), '{}') AS versions,
       coalesce((SELECT array_agg(e.recorded_at ORDER BY n)
                 FROM unnest(r.positions) WITH ORDINALITY AS p (packed, n)
                 JOIN remembrancer.event e
                   ON e.shard = (packed >> 48)::int2 AND e.position = packed & ((1::int8 << 48) - 1)), '{}') AS times
FROM remembrancer.request r
WHERE r.shard = %s::int2 AND r.tenant = %s::text AND r.request_id = %s::text
