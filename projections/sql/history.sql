-- The history: what happened, in sentences.

-- name: insert
INSERT INTO remembrancer.history (generation, shard, position, n, tenant, persona, scope, subject, list, memory, turn, actor,
                                  event, recorded_at, sentence, before, after, data)
VALUES (%(generation)s, %(shard)s, %(position)s, %(n)s, %(tenant)s, %(persona)s, %(scope)s, %(subject)s, %(list)s,
        %(memory)s, %(turn)s, %(actor)s, %(event)s, %(recorded_at)s, %(sentence)s, %(before)s, %(after)s, %(data)s)
ON CONFLICT (generation, shard, position, n) DO NOTHING

-- name: texts
-- The last text of each memory before a position.
SELECT p.memory, h.text
FROM unnest(%(shards)s::int2[], %(memories)s::uuid[], %(positions)s::int8[]) AS p (shard, memory, position)
CROSS JOIN LATERAL (
  SELECT coalesce(x.after, x.before) AS text FROM remembrancer.history x
  WHERE x.generation = %(generation)s AND x.shard = p.shard AND x.memory = p.memory AND x.position < p.position
    AND coalesce(x.after, x.before) IS NOT NULL
  ORDER BY x.position DESC LIMIT 1
) h

-- name: wordings
-- The text of each memory before the first edit of a turn, since that turn was last undone.
SELECT p.memory, p.turn, h.before
FROM unnest(%(shards)s::int2[], %(memories)s::uuid[], %(turns)s::text[], %(positions)s::int8[]) AS p (shard, memory, turn, position)
CROSS JOIN LATERAL (
  SELECT x.before FROM remembrancer.history x
  WHERE x.generation = %(generation)s AND x.shard = p.shard AND x.memory = p.memory AND x.position < p.position
    AND x.turn = p.turn AND x.event = 'MemoryEdited'
    AND x.position > coalesce((SELECT max(u.position) FROM remembrancer.history u
                               WHERE u.generation = %(generation)s AND u.shard = p.shard AND u.memory = p.memory
                                 AND u.position < p.position AND u.turn = p.turn AND u.event = 'TurnRolledBack'), 0)
  ORDER BY x.position LIMIT 1
) h

-- name: erase
-- An erased list's lines keep their stamps and lose their texts.
UPDATE remembrancer.history
SET before = CASE WHEN before IS NOT NULL THEN '[erased]' END, after = CASE WHEN after IS NOT NULL THEN '[erased]' END
WHERE generation = %(generation)s AND shard = %(shard)s AND list = %(list)s
