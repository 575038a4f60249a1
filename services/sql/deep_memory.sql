-- name: unread
-- The messages of a chat between two numbers that are there. Those that a fork inherited have numbers up to 0.
SELECT m.n, m.id, m.role, m.author, m.text, m.tokens, m.said_at, m.turn, m.attempt, m.ref, m.edited_at, m.gone
FROM remembrancer.message m
WHERE m.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'conversation' AND g.live)
  AND m.shard = %(shard)s AND m.chat = %(chat)s AND m.n BETWEEN greatest(%(first)s, 1) AND %(last)s AND m.gone IS NULL
ORDER BY m.n

-- name: present
-- Which of these messages are there.
SELECT m.id FROM remembrancer.message m
WHERE m.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'conversation' AND g.live)
  AND m.shard = %(shard)s AND m.chat = %(chat)s AND m.id = ANY(%(messages)s) AND m.gone IS NULL

-- name: passes
-- What deep memory has done in a chat.
SELECT e.shard, e.position, e.stream, e.version, e.type, e.state, e.recorded_at
FROM remembrancer.event e
WHERE e.shard = %(shard)s AND e.stream = %(chat)s AND e.type = 'DeepMemoryRead'
ORDER BY e.version
