-- What a reply reads. Parameters that name the lists in play: shards, lists (in the fixed order of the prompt).

-- name: lists
-- Version and searched days of each list in play, how far its events have gone, and who was left out today.
SELECT p.no, coalesce(l.version, 0), coalesce(h.version, 0), coalesce(%(today)s::date = ANY (l.days), false),
       d.all_but, d.ids, CASE WHEN h.version > coalesce(l.version, 0) THEN coalesce(l.days, '{}') END
FROM unnest(%(shards)s::int2[], %(lists)s::uuid[]) WITH ORDINALITY AS p (shard, list, no)
LEFT JOIN remembrancer.list l
  ON l.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'memory' AND g.live)
 AND l.shard = p.shard AND l.list = p.list
LEFT JOIN remembrancer.list_day d
  ON d.generation = l.generation AND d.shard = p.shard AND d.list = p.list AND d.day = %(today)s::date
CROSS JOIN LATERAL (
  SELECT max(e.version) AS version FROM remembrancer.event e WHERE e.shard = p.shard AND e.stream = p.list
) h
ORDER BY p.no

-- name: desk
-- The desk of D2: every visible pinned memory, and of the visible active ones the newest, round robin over the lists.
-- `days` overrides a list's searched days where events are ahead of its row; `skip` are memories that they touch.
WITH live AS (
  SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'memory' AND g.live
),
play AS MATERIALIZED (
  SELECT p.no, p.shard, p.list, (SELECT generation FROM live) AS generation, coalesce(p.days::date[], l.days, '{}') AS days,
         coalesce((SELECT array_agg(d.day ORDER BY d.day) FROM remembrancer.list_day d
                   WHERE d.generation = l.generation AND d.shard = p.shard AND d.list = p.list AND d.all_but), '{}') AS all_but
  FROM unnest(%(shards)s::int2[], %(lists)s::uuid[], %(days)s::text[]) WITH ORDINALITY AS p (shard, list, days, no)
  LEFT JOIN remembrancer.list l
    ON l.generation = (SELECT generation FROM live) AND l.shard = p.shard AND l.list = p.list
),
named AS MATERIALIZED (
  SELECT p.no, x.id, coalesce(array_agg(d.day ORDER BY d.day) FILTER (WHERE NOT d.all_but), '{}') AS hidden,
         coalesce(array_agg(d.day ORDER BY d.day) FILTER (WHERE d.all_but), '{}') AS seen
  FROM play p
  JOIN remembrancer.list_day d ON d.generation = p.generation AND d.shard = p.shard AND d.list = p.list
  CROSS JOIN LATERAL unnest(d.ids) AS x (id)
  GROUP BY p.no, x.id
),
here AS MATERIALIZED (
  SELECT p.no, p.generation, p.shard, p.list, m.id, m.updated_at, u.pinned,
         CASE WHEN u.pinned THEN u.frozen
              ELSE u.carried + cardinality(p.days) - width_bucket(u.since, p.days)
                 - (cardinality(p.all_but) - width_bucket(u.since, p.all_but))
                 - coalesce(cardinality(n.hidden) - width_bucket(u.since, n.hidden), 0)
                 + coalesce(cardinality(n.seen) - width_bucket(u.since, n.seen), 0)
         END AS unused
  FROM play p
  JOIN remembrancer.memory_use u ON u.generation = p.generation AND u.shard = p.shard AND u.list = p.list
  JOIN remembrancer.memory m ON m.generation = p.generation AND m.shard = p.shard AND m.list = p.list AND m.id = u.id
  LEFT JOIN named n ON n.no = p.no AND n.id = u.id
  WHERE (m.until IS NULL OR m.until >= %(today)s::date)
    AND (m.channels = '{}' OR %(channel)s::text = ANY (m.channels))
    AND (m.tags = '{}' OR m.tags && %(tags)s::text[])
    AND m.id <> ALL (%(skip)s::uuid[])
),
ranked AS (
  SELECT h.*, row_number() OVER (PARTITION BY h.no, h.pinned ORDER BY h.updated_at DESC, h.id DESC) AS rn
  FROM here h
  WHERE h.pinned OR NOT %(decay)s::bool OR h.unused < %(rest_after_days)s::int4
),
chosen AS (
  SELECT * FROM ranked WHERE pinned
  UNION ALL
  (SELECT * FROM ranked WHERE NOT pinned ORDER BY rn, no LIMIT %(desk_limit)s::int4)
)
SELECT c.no, c.id, m.text, c.unused, c.pinned, u.protected, m.actor, m.created_at, m.updated_at, u.last_matched_at,
       m.until, m.tags, m.channels
FROM chosen c
JOIN remembrancer.memory m ON m.generation = c.generation AND m.shard = c.shard AND m.list = c.list AND m.id = c.id
JOIN remembrancer.memory_use u ON u.generation = c.generation AND u.shard = c.shard AND u.list = c.list AND u.id = c.id

-- name: hidden
-- Who of each list in play is in no search of this reply: hidden, expired, or without a vector of this model (T10, D22,
-- D28). Where that is almost everybody, those who are not. Pinned ones do not count: their counter is frozen (D3).
SELECT x.no, x.members, CASE WHEN 2 * cardinality(x.hidden) <= x.members THEN x.hidden END, x.seen
FROM (
  SELECT p.no, count(*) AS members,
         coalesce(array_agg(m.id ORDER BY m.id) FILTER (WHERE NOT v.here), '{}') AS hidden,
         coalesce(array_agg(m.id ORDER BY m.id) FILTER (WHERE v.here), '{}') AS seen
  FROM unnest(%(shards)s::int2[], %(lists)s::uuid[]) WITH ORDINALITY AS p (shard, list, no)
  JOIN remembrancer.memory m
    ON m.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'memory' AND g.live)
   AND m.shard = p.shard AND m.list = p.list
  JOIN remembrancer.memory_use u ON u.generation = m.generation AND u.shard = m.shard AND u.list = m.list AND u.id = m.id
  CROSS JOIN LATERAL (
    SELECT (m.until IS NULL OR m.until >= %(today)s::date)
       AND (m.channels = '{}' OR %(channel)s::text = ANY (m.channels))
       AND (m.tags = '{}' OR m.tags && %(tags)s::text[])
       AND m.embedding IS NOT NULL AND m.model = %(model)s AS here
  ) v
  WHERE NOT u.pinned AND m.id <> ALL (%(skip)s::uuid[])
  GROUP BY p.no
) x

-- name: touched
-- Memories that events ahead of the rows name: as the rows have them.
SELECT m.list, m.id, m.text, m.created_at, m.updated_at, m.until, m.tags, m.channels, m.actor, m.turn, m.source,
       u.pinned, u.frozen, u.protected, u.base_day, u.base_days, u.base_matched_at, u.uses
FROM unnest(%(shards)s::int2[], %(lists)s::uuid[], %(ids)s::uuid[]) AS p (shard, list, id)
JOIN remembrancer.memory m
  ON m.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'memory' AND g.live)
 AND m.shard = p.shard AND m.list = p.list AND (p.id IS NULL OR m.id = p.id)
JOIN remembrancer.memory_use u ON u.generation = m.generation AND u.shard = m.shard AND u.list = m.list AND u.id = m.id

-- name: touched_days
-- Who was left out, on all days of lists whose events are ahead of their rows.
SELECT d.list, d.day, d.all_but, d.ids
FROM unnest(%(shards)s::int2[], %(lists)s::uuid[]) AS p (shard, list)
JOIN remembrancer.list_day d
  ON d.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'memory' AND g.live)
 AND d.shard = p.shard AND d.list = p.list

-- name: views
-- Memories by id, with what a view needs besides their list's days.
SELECT m.list, m.id, m.text, m.created_at, m.updated_at, m.until, m.tags, m.channels, m.actor, m.turn, m.source,
       u.pinned, u.frozen, u.protected, u.base_day, u.base_days, u.base_matched_at, u.uses
FROM remembrancer.memory m
JOIN remembrancer.memory_use u ON u.generation = m.generation AND u.shard = m.shard AND u.list = m.list AND u.id = m.id
WHERE m.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'memory' AND g.live)
  AND m.shard = ANY (%(shards)s::int2[]) AND m.id = ANY (%(ids)s::uuid[])

-- name: with_vector
-- For which of these texts a vector of the model in use is kept.
SELECT e.digest
FROM unnest(%(shards)s::int2[], %(kinds)s::text[], %(subjects)s::text[], %(digests)s::bytea[]) AS p (shard, kind, subject, digest)
JOIN remembrancer.embedding e
  ON e.shard = p.shard AND e.tenant = %(tenant)s AND e.kind = p.kind AND e.subject = p.subject AND e.digest = p.digest
 AND e.model = %(model)s
