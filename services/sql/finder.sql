-- Finding what an id or a name means.

-- name: home
-- The list of a memory that is there.
SELECT m.list, l.persona, l.scope, l.subject, l.tenant
FROM remembrancer.memory m
JOIN remembrancer.list l ON l.generation = m.generation AND l.shard = m.shard AND l.list = m.list
WHERE m.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'memory' AND g.live)
  AND m.shard = %(shard)s AND m.id = %(memory)s

-- name: archived_home
-- The list of a memory that was there once.
SELECT a.list, a.persona, a.scope, a.subject, a.tenant
FROM remembrancer.archive a
WHERE a.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'archive' AND g.live)
  AND a.shard = %(shard)s AND a.memory = %(memory)s
LIMIT 1

-- name: told_home
-- The list of a memory of which only the history is left (D24).
SELECT h.list, h.persona, h.scope, h.subject, h.tenant
FROM remembrancer.history h
WHERE h.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'history' AND g.live)
  AND h.shard = %(shard)s AND h.memory = %(memory)s AND h.scope IS NOT NULL
LIMIT 1

-- name: turn
-- The replies of a turn, the newest attempt last.
SELECT h.data, h.persona, h.turn FROM remembrancer.history h
WHERE h.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'history' AND g.live)
  AND h.tenant = %(tenant)s AND h.turn = %(turn)s AND h.event = 'ReplySearched'
ORDER BY h.recorded_at, h.position

-- name: turns_beside
-- The turns that stand beside an id when turns are sorted, for "did you mean".
WITH h AS NOT MATERIALIZED (
  SELECT x.turn FROM remembrancer.history x
  WHERE x.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'history' AND g.live)
    AND x.tenant = %(tenant)s AND x.event = 'ReplySearched' AND x.turn IS NOT NULL
)
(SELECT turn FROM h WHERE turn >= %(turn)s ORDER BY turn LIMIT 20)
UNION
(SELECT turn FROM h WHERE turn < %(turn)s ORDER BY turn DESC LIMIT 20)

-- name: events_of_turn
-- The events of a turn that history knows.
SELECT e.shard, e.position, e.stream, e.version, e.type, e.state, e.recorded_at
FROM (
  SELECT DISTINCT h.shard, h.position FROM remembrancer.history h
  WHERE h.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'history' AND g.live)
    AND h.tenant = %(tenant)s AND h.turn = %(turn)s
) p
JOIN remembrancer.event e ON e.shard = p.shard AND e.position = p.position
ORDER BY e.shard, e.position

-- name: lists_of_persona
-- The lists of a persona, and the global ones of its people, those included that the read model does not know yet.
SELECT l.list, l.persona, l.scope, l.subject FROM remembrancer.list l
WHERE l.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'memory' AND g.live)
  AND l.tenant = %(tenant)s
  AND (%(persona)s::text IS NULL OR l.persona = %(persona)s::text
       OR (l.scope = 'global' AND l.subject = ANY (%(people)s::text[]))
       OR (l.scope = 'global' AND l.subject IN (
             SELECT s.subject FROM remembrancer.list s
             WHERE s.generation = l.generation AND s.tenant = l.tenant AND s.persona = %(persona)s::text AND s.scope = 'personal')))
ORDER BY l.scope = 'global', l.scope = 'personal', l.persona, l.subject

-- name: knows_persona
-- Has a persona of a tenant ever had a list, or a line of history?
SELECT EXISTS (
  SELECT FROM remembrancer.list l
  WHERE l.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'memory' AND g.live)
    AND l.tenant = %(tenant)s AND l.persona = %(persona)s AND l.scope <> 'global'
) OR EXISTS (
  SELECT FROM remembrancer.history h
  WHERE h.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'history' AND g.live)
    AND h.tenant = %(tenant)s AND h.persona = %(persona)s AND h.persona NOT IN ('', '*')
)

-- name: personas
-- All personas of a tenant that have a list, for "did you mean".
SELECT DISTINCT l.persona FROM remembrancer.list l
WHERE l.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'memory' AND g.live)
  AND l.tenant = %(tenant)s AND l.scope <> 'global'
UNION
SELECT DISTINCT h.persona FROM remembrancer.history h
WHERE h.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'history' AND g.live)
  AND h.tenant = %(tenant)s AND h.persona NOT IN ('', '*')

-- name: search_archive
SELECT memory, persona, scope, subject, text, recorded_at, until_now, similarity
FROM remembrancer.search_archive_v2(%(tenant)s, %(model)s, %(dimensions)s, %(vector)s, %(limit)s)

-- name: history
-- A page of history. Every filter that is null is left out; the page begins after the cursor.
SELECT h.recorded_at, h.shard, h.position, h.n, h.actor, h.turn, h.event, h.sentence, h.before, h.after, h.persona, h.scope,
       h.subject, h.memory, h.data
FROM remembrancer.history h
WHERE h.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'history' AND g.live)
  AND h.tenant = %(tenant)s
  AND (%(persona)s::text IS NULL OR h.persona = %(persona)s::text)
  AND (%(scope)s::text IS NULL OR (h.scope = %(scope)s::text AND h.subject = %(subject)s::text))
  AND (%(memory)s::uuid IS NULL OR h.memory = %(memory)s::uuid)
  AND (%(turn)s::text IS NULL OR h.turn = %(turn)s::text)
  AND (%(kinds)s::text[] IS NULL OR h.event = ANY (%(kinds)s::text[]))
  AND (%(since)s::timestamptz IS NULL OR h.recorded_at >= %(since)s::timestamptz)
  AND (%(until)s::timestamptz IS NULL OR h.recorded_at < %(until)s::timestamptz)
  AND (%(after_at)s::timestamptz IS NULL
       OR (h.recorded_at, h.shard, h.position, h.n)
          > (%(after_at)s::timestamptz, %(after_shard)s::int2, %(after_position)s::int8, %(after_n)s::int2))
ORDER BY h.recorded_at, h.shard, h.position, h.n
LIMIT %(limit)s
