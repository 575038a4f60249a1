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
-- `days` and `off_*` take the place of a list's days where events are ahead of its row; `skip` are memories that they touch.
WITH live AS (
  SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'memory' AND g.live
),
play AS MATERIALIZED (
  SELECT p.no, p.shard, p.list, (SELECT generation FROM live) AS generation, coalesce(p.days::date[], l.days, '{}') AS days,
         p.days IS NOT NULL AS ahead
  FROM unnest(%(shards)s::int2[], %(lists)s::uuid[], %(days)s::text[]) WITH ORDINALITY AS p (shard, list, days, no)
  LEFT JOIN remembrancer.list l
    ON l.generation = (SELECT generation FROM live) AND l.shard = p.shard AND l.list = p.list
),
off AS MATERIALIZED (
  SELECT p.no, d.day, d.all_but, d.ids
  FROM play p
  JOIN remembrancer.list_day d ON d.generation = p.generation AND d.shard = p.shard AND d.list = p.list
  WHERE NOT p.ahead
  UNION ALL
  SELECT o.no, o.day, o.all_but, o.ids::uuid[]
  FROM unnest(%(off_no)s::int8[], %(off_day)s::date[], %(off_all_but)s::bool[], %(off_ids)s::text[])
       AS o (no, day, all_but, ids)
),
blank AS MATERIALIZED (
  SELECT d.no, array_agg(d.day ORDER BY d.day) AS days FROM off d WHERE d.all_but GROUP BY d.no
),
named AS MATERIALIZED (
  SELECT d.no, x.id, coalesce(array_agg(d.day ORDER BY d.day) FILTER (WHERE NOT d.all_but), '{}') AS hidden,
         coalesce(array_agg(d.day ORDER BY d.day) FILTER (WHERE d.all_but), '{}') AS seen
  FROM off d
  CROSS JOIN LATERAL unnest(d.ids) AS x (id)
  GROUP BY d.no, x.id
),
here AS MATERIALIZED (
  SELECT p.no, p.generation, p.shard, p.list, u.id, u.updated_at, u.pinned,
         CASE WHEN u.pinned THEN u.frozen
              ELSE u.carried + cardinality(p.days) - width_bucket(u.since, p.days)
                 - coalesce(cardinality(b.days) - width_bucket(u.since, b.days), 0)
                 - coalesce(cardinality(n.hidden) - width_bucket(u.since, n.hidden), 0)
                 + coalesce(cardinality(n.seen) - width_bucket(u.since, n.seen), 0)
         END AS unused
  FROM play p
  JOIN remembrancer.memory_use u ON u.generation = p.generation AND u.shard = p.shard AND u.list = p.list
  LEFT JOIN blank b ON b.no = p.no
  LEFT JOIN named n ON n.no = p.no AND n.id = u.id
  WHERE (u.until IS NULL OR u.until >= %(today)s::date)
    AND (u.channels = '{}' OR %(channel)s::text = ANY (u.channels))
    AND (u.tags = '{}' OR u.tags && %(tags)s::text[])
    AND u.id <> ALL (%(skip)s::uuid[])
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
SELECT c.no, c.id, m.text, c.unused, c.pinned, m.protected, m.actor, m.created_at, m.updated_at, u.last_matched_at,
       m.until, m.tags, m.channels
FROM chosen c
JOIN remembrancer.memory m ON m.generation = c.generation AND m.shard = c.shard AND m.list = c.list AND m.id = c.id
JOIN remembrancer.memory_use u ON u.generation = c.generation AND u.shard = c.shard AND u.list = c.list AND u.id = c.id

-- name: touched
-- Memories that events ahead of the rows name: as the rows have them.
SELECT m.list, m.id, m.text, m.created_at, m.updated_at, m.until, m.tags, m.channels, m.actor, m.turn, m.source,
       m.pinned, u.frozen, m.protected, u.base_day, u.base_days, u.base_matched_at, u.uses
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
