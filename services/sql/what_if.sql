-- A history by moment: lists, and the chats whose replies searched them.

-- name: chats
-- The chats with a reply of a persona, or to one of these people; of everybody if there is no persona.
SELECT DISTINCT h.list FROM remembrancer.history h
WHERE h.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'history' AND g.live)
  AND h.tenant = %(tenant)s AND h.event = 'ReplySearched'
  AND (%(persona)s::text IS NULL OR h.persona = %(persona)s::text OR h.data -> 'users' ?| %(people)s::text[])

-- name: people
-- Whoever took part in a reply of a persona.
SELECT DISTINCT u.name
FROM remembrancer.history h CROSS JOIN LATERAL jsonb_array_elements_text(h.data -> 'users') AS u (name)
WHERE h.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'history' AND g.live)
  AND h.tenant = %(tenant)s AND h.persona = %(persona)s AND h.event = 'ReplySearched'

-- name: many
-- How many events these streams have after these versions.
SELECT coalesce(sum(greatest(l.version - s.version, 0)), 0)::int8
FROM unnest(%(shards)s::int2[], %(streams)s::uuid[], %(versions)s::int8[]) AS s (shard, stream, version)
CROSS JOIN LATERAL (
  SELECT e.version FROM remembrancer.event e
  WHERE e.shard = s.shard AND e.stream = s.stream ORDER BY e.version DESC LIMIT 1
) l

-- name: events
-- The events of streams after these versions, by moment; of chats those of these types alone.
SELECT e.shard, e.position, e.stream, e.version, e.type, e.state, e.recorded_at
FROM unnest(%(shards)s::int2[], %(streams)s::uuid[], %(versions)s::int8[], %(chat)s::bool[]) AS s (shard, stream, version, chat)
JOIN remembrancer.event e ON e.shard = s.shard AND e.stream = s.stream AND e.version > s.version
WHERE NOT s.chat OR e.type = ANY (%(types)s::text[])
ORDER BY e.recorded_at, e.shard, e.position
