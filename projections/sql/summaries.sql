-- Summaries of chats: part of the projection `conversation`.

-- name: add
INSERT INTO remembrancer.summary (generation, shard, chat, id, tenant, tier, first, last, messages, text, tokens, authors,
                                  detail, made_at, sources, edited, rebuild, parent)
VALUES (%(generation)s, %(shard)s, %(chat)s, %(id)s, %(tenant)s, %(tier)s, %(first)s, %(last)s, %(messages)s, %(text)s,
        %(tokens)s, %(authors)s, %(detail)s, %(made_at)s, %(sources)s, %(edited)s, %(rebuild)s, %(parent)s)
ON CONFLICT (generation, shard, chat, id) DO NOTHING

-- name: adopt
-- The sources of a summary are parts of it.
UPDATE remembrancer.summary SET parent = %(id)s
WHERE generation = %(generation)s AND shard = %(shard)s AND chat = %(chat)s AND id = ANY (%(sources)s)

-- name: cover
-- The messages of a new summary are covered.
UPDATE remembrancer.message SET covered = true
WHERE generation = %(generation)s AND shard = %(shard)s AND chat = %(chat)s AND n BETWEEN %(first)s AND %(last)s
  AND gone IS NULL AND NOT covered

-- name: stale_by_messages
-- Valid summaries that cover one of these messages are stale.
UPDATE remembrancer.summary s SET stale = p.reason, parent = NULL
FROM (
  SELECT x.id, min(q.reason) AS reason
  FROM unnest(%(numbers)s::int8[], %(reasons)s::text[]) AS q (n, reason)
  JOIN remembrancer.summary x ON x.generation = %(generation)s AND x.shard = %(shard)s AND x.chat = %(chat)s
    AND x.stale IS NULL AND q.n BETWEEN x.first AND x.last
  GROUP BY x.id
) p
WHERE s.generation = %(generation)s AND s.shard = %(shard)s AND s.chat = %(chat)s AND s.id = p.id
RETURNING s.id, s.first, s.last, s.rebuild IS NULL

-- name: stale_by_ids
-- These summaries are stale, and whatever they are part of.
WITH RECURSIVE above AS (
  SELECT s.id, s.parent FROM remembrancer.summary s
  WHERE s.generation = %(generation)s AND s.shard = %(shard)s AND s.chat = %(chat)s AND s.id = ANY (%(ids)s)
  UNION
  SELECT p.id, p.parent FROM above a
  JOIN remembrancer.summary p
    ON p.generation = %(generation)s AND p.shard = %(shard)s AND p.chat = %(chat)s AND p.id = a.parent
)
UPDATE remembrancer.summary s SET stale = %(reason)s, parent = NULL
FROM above a
WHERE s.generation = %(generation)s AND s.shard = %(shard)s AND s.chat = %(chat)s AND s.id = a.id AND s.stale IS NULL
RETURNING s.id, s.first, s.last, s.rebuild IS NULL

-- name: replaced_by_rebuild
-- What a complete rebuild takes the place of.
SELECT s.id FROM remembrancer.summary s
WHERE s.generation = %(generation)s AND s.shard = %(shard)s AND s.chat = %(chat)s AND s.stale IS NULL AND s.rebuild IS NULL
  AND s.first <= (SELECT r.upto FROM remembrancer.summary_rebuild r
                  WHERE r.generation = %(generation)s AND r.shard = %(shard)s AND r.chat = %(chat)s
                    AND r.rebuild = %(rebuild)s)

-- name: set_free
-- Parts of what is stale stand by themselves again.
UPDATE remembrancer.summary SET parent = NULL
WHERE generation = %(generation)s AND shard = %(shard)s AND chat = %(chat)s AND parent = ANY (%(ids)s)

-- name: uncover
-- Messages that no valid summary covers any more.
UPDATE remembrancer.message m SET covered = false
WHERE m.generation = %(generation)s AND m.shard = %(shard)s AND m.chat = %(chat)s
  AND m.n BETWEEN %(first)s AND %(last)s AND m.covered
  AND NOT EXISTS (
    SELECT FROM remembrancer.summary s
    WHERE s.generation = %(generation)s AND s.shard = %(shard)s AND s.chat = %(chat)s
      AND s.stale IS NULL AND s.rebuild IS NULL AND m.n BETWEEN s.first AND s.last)

-- name: edit
UPDATE remembrancer.summary SET text = %(text)s, tokens = %(tokens)s, edited = true
WHERE generation = %(generation)s AND shard = %(shard)s AND chat = %(chat)s AND id = %(id)s

-- name: rules
-- Rules of these messages.
SELECT r.message, r.n, r.start, r.finish, r.removed FROM remembrancer.summary_rule r
WHERE r.generation = %(generation)s AND r.shard = %(shard)s AND r.chat = %(chat)s AND r.message = ANY (%(messages)s)

-- name: write_rules
INSERT INTO remembrancer.summary_rule (generation, shard, chat, message, start, finish, n, removed)
VALUES (%(generation)s, %(shard)s, %(chat)s, %(message)s, %(start)s, %(end)s, %(n)s, %(removed)s)
ON CONFLICT (generation, shard, chat, message, start, finish) DO UPDATE SET removed = excluded.removed

-- name: drop_rules
-- Their messages are worded anew, or gone.
DELETE FROM remembrancer.summary_rule
WHERE generation = %(generation)s AND shard = %(shard)s AND chat = %(chat)s AND message = ANY (%(messages)s)

-- name: rebuild_started
INSERT INTO remembrancer.summary_rebuild (generation, shard, chat, rebuild, upto, detail, messages, state, started_at)
VALUES (%(generation)s, %(shard)s, %(chat)s, %(rebuild)s, %(upto)s, %(detail)s, %(messages)s, 'running', %(at)s)
ON CONFLICT (generation, shard, chat, rebuild) DO UPDATE
SET state = 'running', reason = NULL, ended_at = NULL, started_at = excluded.started_at, upto = excluded.upto,
    detail = excluded.detail, messages = excluded.messages

-- name: rebuild_ended
UPDATE remembrancer.summary_rebuild SET state = %(state)s, reason = %(reason)s, ended_at = %(at)s
WHERE generation = %(generation)s AND shard = %(shard)s AND chat = %(chat)s AND rebuild = %(rebuild)s

-- name: serve_rebuild
UPDATE remembrancer.summary SET rebuild = NULL
WHERE generation = %(generation)s AND shard = %(shard)s AND chat = %(chat)s AND rebuild = %(rebuild)s

-- name: cover_rebuilt
UPDATE remembrancer.message m SET covered = true
WHERE m.generation = %(generation)s AND m.shard = %(shard)s AND m.chat = %(chat)s AND m.gone IS NULL AND NOT m.covered
  AND EXISTS (
    SELECT FROM remembrancer.summary s
    WHERE s.generation = %(generation)s AND s.shard = %(shard)s AND s.chat = %(chat)s
      AND s.stale IS NULL AND s.parent IS NULL AND s.rebuild IS NULL AND m.n BETWEEN s.first AND s.last)

-- name: recount
-- How many messages are there and in no summary.
UPDATE remembrancer.chat c SET uncovered = (
  SELECT count(*) FROM remembrancer.message m
  WHERE m.generation = %(generation)s AND m.shard = %(shard)s AND m.chat = %(chat)s AND m.gone IS NULL AND NOT m.covered)
WHERE c.generation = %(generation)s AND c.shard = %(shard)s AND c.chat = %(chat)s
