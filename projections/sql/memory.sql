-- What the memory projection reads and writes. Generation, shard and list lead every key.

-- name: lists
-- The list rows of a batch.
SELECT l.list, l.version, l.days, l.cleared, l.tenant, l.persona, l.scope, l.subject
FROM unnest(%(shards)s::int2[], %(lists)s::uuid[]) AS p (shard, list)
JOIN remembrancer.list l ON l.generation = %(generation)s AND l.shard = p.shard AND l.list = p.list

-- name: list_days
-- Who was left out, on the days that a batch needs (all days of a list where no day is named).
SELECT d.list, d.day, d.all_but, d.ids
FROM unnest(%(shards)s::int2[], %(lists)s::uuid[], %(days)s::date[]) AS p (shard, list, day)
JOIN remembrancer.list_day d
  ON d.generation = %(generation)s AND d.shard = p.shard AND d.list = p.list AND (p.day IS NULL OR d.day = p.day)

-- name: memories
-- The memories that a batch names.
SELECT m.list, m.id, m.text, m.created_at, m.updated_at, m.until, m.tags, m.channels, m.actor, m.turn, m.source,
       m.pinned, u.frozen, m.protected, u.base_day, u.base_days, u.base_matched_at, u.uses
FROM unnest(%(shards)s::int2[], %(lists)s::uuid[], %(ids)s::uuid[]) AS p (shard, list, id)
JOIN remembrancer.memory m ON m.generation = %(generation)s AND m.shard = p.shard AND m.list = p.list AND m.id = p.id
JOIN remembrancer.memory_use u ON u.generation = %(generation)s AND u.shard = p.shard AND u.list = p.list AND u.id = p.id

-- name: write_lists
-- A list's row after a batch. Only the days are rewritten that changed.
INSERT INTO remembrancer.list (generation, shard, list, tenant, persona, scope, subject, version, days, cleared)
VALUES (%(generation)s, %(shard)s, %(list)s, %(tenant)s, %(persona)s, %(scope)s, %(subject)s, %(version)s, %(days)s, %(cleared)s)
ON CONFLICT (generation, shard, list)
DO UPDATE SET version = excluded.version, days = excluded.days, cleared = excluded.cleared

-- name: write_list_days
INSERT INTO remembrancer.list_day (generation, shard, list, day, all_but, ids)
VALUES (%(generation)s, %(shard)s, %(list)s, %(day)s, %(all_but)s, %(ids)s)
ON CONFLICT (generation, shard, list, day) DO UPDATE SET all_but = excluded.all_but, ids = excluded.ids

-- name: delete_list_days
DELETE FROM remembrancer.list_day
WHERE generation = %(generation)s AND shard = %(shard)s AND list = %(list)s AND day = %(day)s

-- name: write_memories
-- A memory with a new text, and the vector that is kept for this text by the model that serves, if there is one (D23).
INSERT INTO remembrancer.memory (generation, shard, list, id, text, terms, created_at, updated_at, until, tags, channels,
                                 actor, turn, source, pinned, protected, model, embedding)
SELECT %(generation)s, %(shard)s, %(list)s, %(id)s, %(text)s, %(terms)s, %(created_at)s, %(updated_at)s, %(until)s,
       %(tags)s, %(channels)s, %(actor)s, %(turn)s, %(source)s, %(pinned)s, %(protected)s, e.model, e.vector
FROM (VALUES (1)) AS one (row)
LEFT JOIN LATERAL (
  SELECT e.model, e.vector FROM remembrancer.embedding e
  WHERE e.shard = %(shard)s AND e.tenant = %(tenant)s AND e.kind = %(kind)s AND e.subject = %(subject)s
    AND e.digest = %(digest)s AND e.vector IS NOT NULL
    AND e.model = (SELECT s.model FROM remembrancer.model s WHERE s.tenant = %(tenant)s AND s.state = 'serving')
) e ON true
ON CONFLICT (generation, shard, list, id) DO UPDATE SET
  text = excluded.text, terms = excluded.terms, created_at = excluded.created_at, updated_at = excluded.updated_at,
  until = excluded.until, tags = excluded.tags, channels = excluded.channels, actor = excluded.actor,
  turn = excluded.turn, source = excluded.source,
  pinned = excluded.pinned, protected = excluded.protected, model = excluded.model, embedding = excluded.embedding

-- name: write_uses
INSERT INTO remembrancer.memory_use (generation, shard, list, id, since, carried, pinned, frozen, updated_at,
                                     until, tags, channels, last_matched_at, base_day, base_days, base_matched_at, uses)
VALUES (%(generation)s, %(shard)s, %(list)s, %(id)s, %(since)s, %(carried)s, %(pinned)s, %(frozen)s, %(updated_at)s,
        %(until)s, %(tags)s, %(channels)s, %(last_matched_at)s, %(base_day)s, %(base_days)s, %(base_matched_at)s, %(uses)s::jsonb)
ON CONFLICT (generation, shard, list, id) DO UPDATE SET
  since = excluded.since, carried = excluded.carried, pinned = excluded.pinned, frozen = excluded.frozen,
  updated_at = excluded.updated_at, until = excluded.until, tags = excluded.tags, channels = excluded.channels,
  last_matched_at = excluded.last_matched_at, base_day = excluded.base_day,
  base_days = excluded.base_days, base_matched_at = excluded.base_matched_at, uses = excluded.uses

-- name: delete_memories
DELETE FROM remembrancer.memory
WHERE generation = %(generation)s AND shard = %(shard)s AND list = %(list)s AND id = ANY (%(ids)s)

-- name: delete_uses
DELETE FROM remembrancer.memory_use
WHERE generation = %(generation)s AND shard = %(shard)s AND list = %(list)s AND id = ANY (%(ids)s)

-- name: ids
-- All memories of a list, for an event that concerns them all.
SELECT u.id FROM remembrancer.memory_use u
WHERE u.generation = %(generation)s AND u.shard = %(shard)s AND u.list = %(list)s
