-- What is read to summarise a chat, from rows that are as far as its events.

-- name: last_turns
-- The messages of the last two turns: none of them is summarised (D15).
WITH live AS (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'conversation' AND g.live),
last AS (
  SELECT m.turn FROM remembrancer.message m
  WHERE m.generation = (SELECT generation FROM live) AND m.shard = %(shard)s AND m.chat = %(chat)s AND m.gone IS NULL
    AND m.turn IS NOT NULL
  ORDER BY m.n DESC LIMIT 1
), second AS (
  SELECT m.turn FROM remembrancer.message m
  WHERE m.generation = (SELECT generation FROM live) AND m.shard = %(shard)s AND m.chat = %(chat)s AND m.gone IS NULL
    AND m.turn IS NOT NULL AND m.turn <> (SELECT turn FROM last)
  ORDER BY m.n DESC LIMIT 1
)
SELECT m.n FROM remembrancer.message m
WHERE m.generation = (SELECT generation FROM live) AND m.shard = %(shard)s AND m.chat = %(chat)s AND m.gone IS NULL
  AND m.turn IN (SELECT turn FROM last UNION ALL SELECT turn FROM second)

-- name: oldest_uncovered
-- The oldest messages that no valid summary covers, oldest first.
SELECT m.n, m.id, m.role, m.author, m.text, m.tokens, m.said_at, m.turn, m.attempt, m.ref, m.edited_at, m.gone
FROM remembrancer.message m
WHERE m.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'conversation' AND g.live)
  AND m.shard = %(shard)s AND m.chat = %(chat)s AND m.gone IS NULL AND NOT m.covered
ORDER BY m.n LIMIT %(limit)s

-- name: not_rebuilt
-- The oldest messages that a rebuild has yet to summarise, oldest first.
SELECT m.n, m.id, m.role, m.author, m.text, m.tokens, m.said_at, m.turn, m.attempt, m.ref, m.edited_at, m.gone
FROM remembrancer.message m
WHERE m.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'conversation' AND g.live)
  AND m.shard = %(shard)s AND m.chat = %(chat)s AND m.gone IS NULL AND m.n <= %(upto)s
  AND NOT EXISTS (
    SELECT FROM remembrancer.summary s
    WHERE s.generation = m.generation AND s.shard = m.shard AND s.chat = m.chat AND s.stale IS NULL AND s.parent IS NULL
      AND s.rebuild = %(rebuild)s AND m.n BETWEEN s.first AND s.last)
ORDER BY m.n LIMIT %(limit)s

-- name: rebuild
-- The newest rebuild of a chat.
SELECT r.rebuild, r.upto, r.detail, r.started_at, r.state, r.reason, r.ended_at, r.messages
FROM remembrancer.summary_rebuild r
WHERE r.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'conversation' AND g.live)
  AND r.shard = %(shard)s AND r.chat = %(chat)s
ORDER BY r.started_at DESC LIMIT 1

-- name: left_to_rebuild
-- How many messages a rebuild has yet to summarise.
SELECT count(*) FROM remembrancer.message m
WHERE m.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'conversation' AND g.live)
  AND m.shard = %(shard)s AND m.chat = %(chat)s AND m.gone IS NULL AND m.n <= %(upto)s AND NOT m.n = ANY (%(protected)s)
  AND NOT EXISTS (
    SELECT FROM remembrancer.summary s
    WHERE s.generation = m.generation AND s.shard = m.shard AND s.chat = m.chat AND s.stale IS NULL AND s.parent IS NULL
      AND s.rebuild = %(rebuild)s AND m.n BETWEEN s.first AND s.last)

-- name: to_rebuild
-- How much there is to summarise before a number.
SELECT count(*), coalesce(sum(m.tokens), 0)::int8, max(m.n) FROM remembrancer.message m
WHERE m.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'conversation' AND g.live)
  AND m.shard = %(shard)s AND m.chat = %(chat)s AND m.gone IS NULL AND m.n < %(bound)s AND NOT m.n = ANY (%(protected)s)

-- name: edited
-- The valid summaries that a person has worded, also where they are part of another one by now.
SELECT s.id FROM remembrancer.summary s
WHERE s.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'conversation' AND g.live)
  AND s.shard = %(shard)s AND s.chat = %(chat)s AND s.stale IS NULL AND s.rebuild IS NULL AND s.edited
ORDER BY s.first, s.id

-- name: dates
-- When the first and the last message between two numbers were written.
SELECT min(m.said_at), max(m.said_at) FROM remembrancer.message m
WHERE m.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'conversation' AND g.live)
  AND m.shard = %(shard)s AND m.chat = %(chat)s AND m.n BETWEEN %(first)s AND %(last)s AND m.gone IS NULL

-- name: last_speaker
-- Who of the users spoke last.
SELECT m.author FROM remembrancer.message m
WHERE m.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'conversation' AND g.live)
  AND m.shard = %(shard)s AND m.chat = %(chat)s AND m.gone IS NULL AND m.role = 'user'
ORDER BY m.n DESC LIMIT 1

-- name: last_persona
-- Which of the personas spoke last.
SELECT m.author FROM remembrancer.message m
WHERE m.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'conversation' AND g.live)
  AND m.shard = %(shard)s AND m.chat = %(chat)s AND m.gone IS NULL AND m.role = 'persona'
ORDER BY m.n DESC LIMIT 1

-- name: claim
-- The next chat to look at, for a while; by the database's clock. Nobody else takes it meanwhile.
UPDATE remembrancer.summary_work w
SET claimed_by = %(worker)s, claimed_until = clock_timestamp() + make_interval(secs => %(seconds)s)
FROM (
  SELECT x.shard, x.chat FROM remembrancer.summary_work x
  WHERE x.tenant = %(tenant)s AND x.due_at <= %(now)s
    AND (x.claimed_until IS NULL OR x.claimed_until < clock_timestamp())
  ORDER BY x.due_at LIMIT 1 FOR UPDATE SKIP LOCKED
) next
WHERE w.shard = next.shard AND w.chat = next.chat
RETURNING w.shard, w.chat, w.version, w.tries

-- name: hold
-- Keep a claim. No row: somebody else has it by now.
UPDATE remembrancer.summary_work SET claimed_until = clock_timestamp() + make_interval(secs => %(seconds)s)
WHERE shard = %(shard)s AND chat = %(chat)s AND claimed_by = %(worker)s
RETURNING 1

-- name: finish
-- Nothing is left to do, unless something was said meanwhile.
DELETE FROM remembrancer.summary_work
WHERE shard = %(shard)s AND chat = %(chat)s AND claimed_by = %(worker)s AND version = %(version)s

-- name: go_on
-- There is more to do, or something was said meanwhile: behind those that wait already.
UPDATE remembrancer.summary_work
SET claimed_by = NULL, claimed_until = NULL, tries = 0, error = NULL, failed_at = NULL, due_at = %(now)s
WHERE shard = %(shard)s AND chat = %(chat)s AND claimed_by = %(worker)s

-- name: rest
-- All is done but what failed lately by itself, which holds up nothing: it is tried again then, or with what is said next.
UPDATE remembrancer.summary_work
SET claimed_by = NULL, claimed_until = NULL, tries = 0, error = %(error)s, failed_at = %(now)s,
    due_at = CASE WHEN version = %(version)s THEN %(due_at)s ELSE %(now)s END
WHERE shard = %(shard)s AND chat = %(chat)s AND claimed_by = %(worker)s

-- name: fail
UPDATE remembrancer.summary_work
SET claimed_by = NULL, claimed_until = NULL, tries = CASE WHEN %(progress)s THEN 1 ELSE tries + 1 END, error = %(error)s, failed_at = %(now)s, due_at = %(due_at)s
WHERE shard = %(shard)s AND chat = %(chat)s AND claimed_by = %(worker)s
RETURNING tries

-- name: work
-- How the work on a chat stands.
SELECT greatest(w.tries, (w.error IS NOT NULL)::int), w.error, w.failed_at, w.due_at FROM remembrancer.summary_work w WHERE w.shard = %(shard)s AND w.chat = %(chat)s

-- name: failing
-- Of a tenant's chats how many wait to be looked at, how many of these failed, the newest error, and the next try.
SELECT count(*), count(*) FILTER (WHERE error IS NOT NULL),
       (array_agg(error ORDER BY failed_at DESC) FILTER (WHERE error IS NOT NULL))[1], min(due_at) FILTER (WHERE error IS NOT NULL)
FROM remembrancer.summary_work WHERE tenant = %(tenant)s
