-- The life of one memory. History says where its events stand; what they say is read from the events.

-- name: life
-- The events that name a memory, but for its matches, and those that ended all memories of its list.
WITH live AS (
  SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'history' AND g.live
)
SELECT e.shard, e.position, e.stream, e.version, e.type, e.state, e.recorded_at
FROM (
  SELECT h.position FROM remembrancer.history h
  WHERE h.generation = (SELECT generation FROM live) AND h.shard = %(shard)s AND h.memory = %(memory)s
    AND h.event <> 'MemoriesMatched'
  UNION
  SELECT h.position FROM remembrancer.history h
  WHERE h.generation = (SELECT generation FROM live) AND h.list = %(list)s AND h.shard = %(shard)s
    AND h.event IN ('MemoriesCleared', 'SubjectErased')
) p
JOIN remembrancer.event e ON e.shard = %(shard)s AND e.position = p.position
ORDER BY e.version

-- name: matched
-- The latest matches of a memory.
SELECT e.shard, e.position, e.stream, e.version, e.type, e.state, e.recorded_at
FROM (
  SELECT h.position FROM remembrancer.history h
  WHERE h.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'history' AND g.live)
    AND h.shard = %(shard)s AND h.memory = %(memory)s AND h.event = 'MemoriesMatched'
  ORDER BY h.position DESC LIMIT %(limit)s
) p
JOIN remembrancer.event e ON e.shard = %(shard)s AND e.position = p.position
ORDER BY e.version

-- name: match_days
-- The days on which a message brought a memory to mind and nothing took that back, and how often on each.
SELECT (h.data ->> 'day')::date, count(*)
FROM remembrancer.history h
WHERE h.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'history' AND g.live)
  AND h.shard = %(shard)s AND h.memory = %(memory)s AND h.event = 'MemoriesMatched'
  AND NOT EXISTS (SELECT FROM unnest(%(turns)s::text[], %(positions)s::int8[]) AS u (turn, position)
                  WHERE u.turn = h.turn AND h.position < u.position)
GROUP BY 1

-- name: near_misses
SELECT count(*) FROM remembrancer.candidate c
WHERE c.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'history' AND g.live)
  AND c.memory = %(memory)s AND NOT c.matched

-- name: seen
-- The latest matches, or the near misses that came closest, as the searches recorded them.
SELECT h.recorded_at, c.day, h.persona, h.data ->> 'chat', h.turn, c.rank, c.score, c.similarity, c.words, c.threshold,
       c.matched, c.recalled
FROM (
  SELECT * FROM remembrancer.candidate x
  WHERE x.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'history' AND g.live)
    AND x.memory = %(memory)s AND x.matched = %(matched)s
  ORDER BY CASE WHEN x.matched THEN x.day END DESC, CASE WHEN x.matched THEN x.position END DESC,
           x.score - x.threshold DESC NULLS LAST, x.day DESC, x.position DESC
  LIMIT %(limit)s
) c
JOIN remembrancer.history h
  ON h.generation = c.generation AND h.shard = c.shard AND h.position = c.position AND h.n = 0
ORDER BY h.recorded_at, h.shard, h.position

-- name: searched_on
-- The first search of a list on each of these days, and its turn.
SELECT p.day, s.recorded_at, s.turn
FROM unnest(%(days)s::date[]) AS p (day)
CROSS JOIN LATERAL (
  SELECT h.recorded_at, h.turn FROM remembrancer.history h
  WHERE h.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'history' AND g.live)
    AND h.tenant = %(tenant)s AND h.persona = %(persona)s AND h.list = %(list)s AND h.event = 'ListSearched'
    AND h.recorded_at >= p.day::timestamp AT TIME ZONE 'UTC' AND h.recorded_at < (p.day + 1)::timestamp AT TIME ZONE 'UTC'
  ORDER BY h.recorded_at, h.position LIMIT 1
) s

-- name: line
-- What the memories of a list that were there before a position were: all that was done to them, and of the matches of each
-- the last one that nothing had taken back, since earlier ones change neither a counter nor who is first.
WITH live AS (
  SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'history' AND g.live
),
member AS (
  SELECT DISTINCT a.memory FROM remembrancer.archive a
  WHERE a.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'archive' AND g.live)
    AND a.shard = %(shard)s AND a.list = %(list)s
),
there AS MATERIALIZED (
  SELECT m.memory
  FROM member m
  CROSS JOIN LATERAL (
    SELECT h.event FROM remembrancer.history h
    WHERE h.generation = (SELECT generation FROM live) AND h.shard = %(shard)s AND h.memory = m.memory
      AND h.event <> 'MemoriesMatched' AND h.position < %(position)s
    ORDER BY h.position DESC LIMIT 1
  ) l
  WHERE l.event NOT IN ('MemoryEvicted', 'MemoryDeleted', 'MemoryMoved')
),
told AS (
  SELECT h.position
  FROM there t
  JOIN remembrancer.history h ON h.generation = (SELECT generation FROM live) AND h.shard = %(shard)s
   AND h.memory = t.memory AND h.event <> 'MemoriesMatched' AND h.position < %(position)s
  UNION
  SELECT l.position
  FROM there t
  CROSS JOIN LATERAL (
    SELECT h.position FROM remembrancer.history h
    WHERE h.generation = (SELECT generation FROM live) AND h.shard = %(shard)s AND h.memory = t.memory
      AND h.position < %(position)s AND h.event = 'MemoriesMatched'
      AND NOT EXISTS (
        SELECT FROM remembrancer.history u
        WHERE u.generation = (SELECT generation FROM live) AND u.shard = h.shard AND u.memory = h.memory
          AND u.event <> 'MemoriesMatched' AND u.event = 'TurnRolledBack' AND u.turn = h.turn
          AND u.position > h.position AND u.position < %(position)s)
    ORDER BY h.position DESC LIMIT 1
  ) l
  UNION
  SELECT h.position FROM remembrancer.history h
  WHERE h.generation = (SELECT generation FROM live) AND h.list = %(list)s AND h.shard = %(shard)s
    AND h.event IN ('MemoriesCleared', 'SubjectErased') AND h.position < %(position)s
)
SELECT e.shard, e.position, e.stream, e.version, e.type, e.state, e.recorded_at
FROM told t
JOIN remembrancer.event e ON e.shard = %(shard)s AND e.position = t.position
ORDER BY e.version

-- name: searched_before
-- The searches of a list on one day, before a position.
SELECT e.shard, e.position, e.stream, e.version, e.type, e.state, e.recorded_at
FROM remembrancer.history h
JOIN remembrancer.event e ON e.shard = h.shard AND e.position = h.position
WHERE h.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'history' AND g.live)
  AND h.tenant = %(tenant)s AND h.persona = %(persona)s AND h.list = %(list)s AND h.event = 'ListSearched'
  AND h.recorded_at >= %(day)s::timestamp AT TIME ZONE 'UTC' AND h.recorded_at <= %(at)s AND h.position < %(position)s
ORDER BY h.position

-- name: text_of
-- What a memory says, or said last.
SELECT a.text FROM remembrancer.archive a
WHERE a.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'archive' AND g.live)
  AND a.shard = %(shard)s AND a.memory = %(memory)s
ORDER BY a.version DESC LIMIT 1
