-- Chats and their messages.

-- name: chat_by_key
-- The chats of a tenant that go by a name.
SELECT c.chat, c.key, c.home_kind, c.home_key, c.personas, c.platform, c.server, c.channel, c.users, c.parent
FROM remembrancer.chat c
WHERE c.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'conversation' AND g.live)
  AND c.tenant = %(tenant)s AND c.key = %(key)s
ORDER BY c.chat

-- name: keys
-- Names of chats, for "did you mean".
SELECT c.key FROM remembrancer.chat c
WHERE c.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'conversation' AND g.live)
  AND c.tenant = %(tenant)s
LIMIT 5000

-- name: folded
-- How far a chat's rows are, how far its events, and how many messages are there and in no summary.
SELECT coalesce(c.version, 0), coalesce(h.version, 0), coalesce(c.messages, 0), coalesce(c.uncovered, 0)
FROM (SELECT %(shard)s::int2 AS shard, %(chat)s::uuid AS chat) p
LEFT JOIN remembrancer.chat c
  ON c.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'conversation' AND g.live)
 AND c.shard = p.shard AND c.chat = p.chat
CROSS JOIN LATERAL (
  SELECT max(e.version) AS version FROM remembrancer.event e WHERE e.shard = p.shard AND e.stream = p.chat
) h

-- name: newest
-- The newest messages before a number, newest first.
SELECT m.n, m.id, m.role, m.author, m.text, m.tokens, m.said_at, m.turn, m.attempt, m.ref, m.edited_at, m.gone, m.covered
FROM remembrancer.message m
WHERE m.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'conversation' AND g.live)
  AND m.shard = %(shard)s AND m.chat = %(chat)s AND m.gone IS NULL AND m.n < %(before)s
ORDER BY m.n DESC LIMIT %(limit)s

-- name: uncovered
-- The newest messages before a number that no summary covers, newest first.
SELECT m.n, m.id, m.role, m.author, m.text, m.tokens, m.said_at, m.turn, m.attempt, m.ref, m.edited_at, m.gone, m.covered
FROM remembrancer.message m
WHERE m.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'conversation' AND g.live)
  AND m.shard = %(shard)s AND m.chat = %(chat)s AND m.gone IS NULL AND NOT m.covered AND m.n < %(before)s
ORDER BY m.n DESC LIMIT %(limit)s

-- name: key_of
-- The name of a chat.
SELECT c.key FROM remembrancer.chat c
WHERE c.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'conversation' AND g.live)
  AND c.shard = %(shard)s AND c.chat = %(chat)s

-- name: messages_by_id
-- Messages with their chats, first where they were said: forks inherit them under their own ids.
SELECT m.chat, m.n, m.id, m.role, m.author, m.text, m.tokens, m.said_at, m.turn, m.attempt, m.ref, m.edited_at, m.gone
FROM remembrancer.message m
WHERE m.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'conversation' AND g.live)
  AND m.shard = %(shard)s AND m.id = ANY (%(messages)s) AND m.tenant = %(tenant)s

-- name: first
-- How a chat began.
SELECT e.shard, e.position, e.stream, e.version, e.type, e.state, e.recorded_at
FROM remembrancer.event e WHERE e.shard = %(shard)s AND e.stream = %(chat)s AND e.version = 1

-- name: of_turn
-- What was said in a turn of a chat.
SELECT m.n, m.id, m.role, m.author, m.text, m.tokens, m.said_at, m.turn, m.attempt, m.ref, m.edited_at, m.gone
FROM remembrancer.message m
WHERE m.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'conversation' AND g.live)
  AND m.shard = %(shard)s AND m.chat = %(chat)s AND m.turn = %(turn)s AND m.gone IS NULL
ORDER BY m.n

-- name: by_ids
-- Messages of a chat that are there.
SELECT m.n, m.id, m.role, m.author, m.text, m.tokens, m.said_at, m.turn, m.attempt, m.ref, m.edited_at, m.gone
FROM remembrancer.message m
WHERE m.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'conversation' AND g.live)
  AND m.shard = %(shard)s AND m.chat = %(chat)s AND m.id = ANY (%(messages)s) AND m.gone IS NULL

-- name: standing
-- The valid summaries that are part of no other valid one, those of a rebuild included.
SELECT s.id, s.tier, s.first, s.last, s.messages, s.text, s.tokens, s.authors, s.detail, s.made_at, s.sources, s.edited,
       s.rebuild, s.parent, s.stale
FROM remembrancer.summary s
WHERE s.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'conversation' AND g.live)
  AND s.shard = %(shard)s AND s.chat = %(chat)s AND s.stale IS NULL AND s.parent IS NULL
ORDER BY s.first

-- name: rules
-- Where users gave rules, with the messages that say them.
SELECT r.removed, r.start, r.finish, m.n, m.id, m.role, m.author, m.text, m.tokens, m.said_at, m.turn, m.attempt, m.ref,
       m.edited_at, m.gone
FROM remembrancer.summary_rule r
JOIN remembrancer.message m ON m.generation = r.generation AND m.shard = r.shard AND m.chat = r.chat AND m.n = r.n
WHERE r.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'conversation' AND g.live)
  AND r.shard = %(shard)s AND r.chat = %(chat)s AND m.gone IS NULL
