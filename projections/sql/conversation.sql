-- Chats and their messages.

-- name: chats
-- What is folded of these chats.
SELECT c.chat, c.version, c.home_kind, c.home_key
FROM unnest(%(shards)s::int2[], %(chats)s::uuid[]) AS p (shard, chat)
JOIN remembrancer.chat c ON c.generation = %(generation)s AND c.shard = p.shard AND c.chat = p.chat

-- name: named
-- The messages that events name, by id or by turn.
SELECT m.n, m.id, m.role, m.author, m.text, m.tokens, m.said_at, m.turn, m.attempt, m.ref, m.edited_at, m.gone
FROM remembrancer.message m
WHERE m.generation = %(generation)s AND m.shard = %(shard)s AND m.chat = %(chat)s
  AND (%(all)s OR m.id = ANY (%(ids)s::uuid[]) OR m.turn = ANY (%(turns)s::text[]))

-- name: write_messages
INSERT INTO remembrancer.message (generation, shard, chat, n, id, tenant, role, author, text, tokens, said_at, turn, attempt,
                                  ref, edited_at, gone)
VALUES (%(generation)s, %(shard)s, %(chat)s, %(n)s, %(id)s, %(tenant)s, %(role)s, %(author)s, %(text)s, %(tokens)s,
        %(said_at)s, %(turn)s, %(attempt)s, %(ref)s, %(edited_at)s, %(gone)s)
ON CONFLICT (generation, shard, chat, n) DO UPDATE
SET text = excluded.text, tokens = excluded.tokens, edited_at = excluded.edited_at, gone = excluded.gone

-- name: write_chat
INSERT INTO remembrancer.chat (generation, shard, chat, tenant, key, home_kind, home_key, personas, platform, server, channel,
                               users, parent, version)
VALUES (%(generation)s, %(shard)s, %(chat)s, %(tenant)s, %(key)s, %(home_kind)s, %(home_key)s, %(personas)s, %(platform)s,
        %(server)s, %(channel)s, %(users)s, %(parent)s, %(version)s)
ON CONFLICT (generation, shard, chat) DO UPDATE
SET key = excluded.key, personas = excluded.personas, platform = excluded.platform, server = excluded.server,
    channel = excluded.channel, users = excluded.users, parent = excluded.parent

-- name: advance
-- How far a chat is folded, and how many of its messages are there and are in no summary.
UPDATE remembrancer.chat
SET version = %(version)s, messages = messages + %(messages)s, uncovered = uncovered + %(messages)s
WHERE generation = %(generation)s AND shard = %(shard)s AND chat = %(chat)s
