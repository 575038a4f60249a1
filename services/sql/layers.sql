-- What conversations say of something (U1).

-- name: heard
-- The newest messages of a tenant, or of a persona's chats, in which all of these pieces of words stand, or any.
SELECT c.chat, c.key, m.n, m.id, m.role, m.author, m.text, m.tokens, m.said_at, m.turn, m.attempt, m.ref, m.edited_at, m.gone
FROM remembrancer.chat c
JOIN remembrancer.message m ON m.generation = c.generation AND m.shard = c.shard AND m.chat = c.chat
WHERE c.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'conversation' AND g.live)
  AND c.tenant = %(tenant)s AND (%(persona)s::text IS NULL OR %(persona)s = ANY (c.personas)) AND m.gone IS NULL
  AND m.n > 0
  AND CASE WHEN %(all)s THEN m.text LIKE ALL (%(pieces)s::text[]) ELSE m.text LIKE ANY (%(pieces)s::text[]) END
ORDER BY m.said_at DESC, m.n DESC LIMIT %(limit)s

-- name: told
-- Messages by id, where they were said.
SELECT c.chat, c.key, m.n, m.id, m.role, m.author, m.text, m.tokens, m.said_at, m.turn, m.attempt, m.ref, m.edited_at, m.gone
FROM remembrancer.message m
JOIN remembrancer.chat c ON c.generation = m.generation AND c.shard = m.shard AND c.chat = m.chat
WHERE m.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'conversation' AND g.live)
  AND m.shard = ANY (%(shards)s) AND m.id = ANY (%(messages)s) AND c.tenant = %(tenant)s AND m.gone IS NULL AND m.n > 0

-- name: parts
-- All valid summaries that cover a message, those included that are part of another one: the smallest first.
SELECT s.id, s.tier, s.first, s.last, s.text, s.made_at, s.parent, cardinality(s.sources)
FROM remembrancer.summary s
WHERE s.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'conversation' AND g.live)
  AND s.shard = %(shard)s AND s.chat = %(chat)s AND s.stale IS NULL AND s.rebuild IS NULL
  AND s.first <= %(n)s AND s.last >= %(n)s
ORDER BY s.made_at, s.last - s.first

-- name: rule
-- Is there a rule of a user in this message?
SELECT r.start, r.finish FROM remembrancer.summary_rule r
WHERE r.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'conversation' AND g.live)
  AND r.shard = %(shard)s AND r.chat = %(chat)s AND r.message = %(message)s AND NOT r.removed
