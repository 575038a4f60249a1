-- Ids that begin with the digits a person typed. The first byte of an id is its shard.

-- name: there
SELECT m.id
FROM remembrancer.memory m
JOIN remembrancer.list l ON l.generation = m.generation AND l.shard = m.shard AND l.list = m.list
WHERE m.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'memory' AND g.live)
  AND m.shard = %(shard)s AND m.id BETWEEN %(first)s AND %(last)s AND l.tenant = %(tenant)s
LIMIT 2

-- name: gone
SELECT DISTINCT a.memory
FROM remembrancer.archive a
WHERE a.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'archive' AND g.live)
  AND a.shard = %(shard)s AND a.memory BETWEEN %(first)s AND %(last)s AND a.tenant = %(tenant)s
LIMIT 2
