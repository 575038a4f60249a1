-- Events as they stood at a past moment. Where they are, history tells; what they say, the events alone.
-- Tombstones stand in the streams of settings, a person's every deletion and edit one, and say nothing of a prompt.

-- name: upto
-- Of each stream the events up to a version, and its later erasures: they say what can no longer be read.
SELECT e.shard, e.position, e.stream, e.version, e.type, e.state, e.recorded_at
FROM unnest(%(shards)s::int2[], %(streams)s::uuid[], %(versions)s::int8[]) AS s (shard, stream, version)
CROSS JOIN LATERAL (
  SELECT * FROM remembrancer.event x
  WHERE x.shard = s.shard AND x.stream = s.stream AND (x.version <= s.version OR x.type = 'SubjectErased')
    AND x.type NOT IN ('TombstonePlaced', 'TombstonesLifted')
  ORDER BY x.version
) e

-- name: until
-- The same up to a moment; in the shard of a position, if one is given, up to that.
SELECT e.shard, e.position, e.stream, e.version, e.type, e.state, e.recorded_at
FROM unnest(%(shards)s::int2[], %(streams)s::uuid[]) AS s (shard, stream)
CROSS JOIN LATERAL (
  SELECT * FROM remembrancer.event x
  WHERE x.shard = s.shard AND x.stream = s.stream
    AND (x.type = 'SubjectErased'
         OR CASE WHEN x.shard = %(shard)s::int2 THEN x.position <= %(position)s::int8
                 ELSE x.recorded_at <= %(moment)s::timestamptz END)
    AND x.type NOT IN ('TombstonePlaced', 'TombstonesLifted')
  ORDER BY x.version
) e

-- name: at_position
SELECT e.shard, e.position, e.stream, e.version, e.type, e.state, e.recorded_at
FROM remembrancer.event e WHERE e.shard = %(shard)s AND e.position = %(position)s

-- name: replies_of_turn
-- The replies of a turn that history knows.
SELECT e.shard, e.position, e.stream, e.version, e.type, e.state, e.recorded_at
FROM remembrancer.history h
JOIN remembrancer.event e ON e.shard = h.shard AND e.position = h.position
WHERE h.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'history' AND g.live)
  AND h.tenant = %(tenant)s AND h.turn = %(turn)s AND h.event = 'ReplySearched'

-- name: nearest_replies
-- A persona's last reply up to a moment and its first one after it, in one server (or none), or anywhere.
(SELECT e.shard, e.position, e.stream, e.version, e.type, e.state, e.recorded_at
 FROM remembrancer.history h
 JOIN remembrancer.event e ON e.shard = h.shard AND e.position = h.position
 WHERE h.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'history' AND g.live)
   AND h.tenant = %(tenant)s AND h.persona = %(persona)s AND h.event = 'ReplySearched' AND h.recorded_at <= %(moment)s
   AND (%(anywhere)s OR h.data ->> 'server' IS NOT DISTINCT FROM %(server)s::text)
 ORDER BY h.recorded_at DESC, h.shard DESC, h.position DESC LIMIT 1)
UNION ALL
(SELECT e.shard, e.position, e.stream, e.version, e.type, e.state, e.recorded_at
 FROM remembrancer.history h
 JOIN remembrancer.event e ON e.shard = h.shard AND e.position = h.position
 WHERE h.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'history' AND g.live)
   AND h.tenant = %(tenant)s AND h.persona = %(persona)s AND h.event = 'ReplySearched' AND h.recorded_at > %(moment)s
   AND (%(anywhere)s OR h.data ->> 'server' IS NOT DISTINCT FROM %(server)s::text)
 ORDER BY h.recorded_at, h.shard, h.position LIMIT 1)
