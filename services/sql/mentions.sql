-- Which memories name somebody.

-- name: lists
-- Lists of servers with a memory that has one of these words or fits one of these patterns, and lists of which the tables
-- do not know the latest: parked ones, and those with events ahead.
SELECT m.shard, m.list
FROM remembrancer.list l
JOIN remembrancer.memory m ON m.generation = l.generation AND m.shard = l.shard AND m.list = l.list
WHERE l.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'memory' AND g.live)
  AND l.tenant = %(tenant)s AND l.scope = 'server'
  AND (m.terms && %(terms)s::int4[] OR m.text ~* ANY (%(patterns)s::text[]))
UNION
SELECT p.shard, p.stream
FROM remembrancer.generation g
JOIN remembrancer.parked p ON p.projection = g.projection AND p.generation = g.generation
WHERE g.projection = 'memory' AND g.live
UNION
SELECT e.shard, e.stream
FROM remembrancer.generation g
JOIN remembrancer.checkpoint c ON c.projection = g.projection AND c.generation = g.generation
JOIN remembrancer.head h ON h.shard = c.shard AND h.position > c.position
JOIN remembrancer.event e ON e.shard = c.shard AND e.position > c.position
WHERE g.projection = 'memory' AND g.live

-- name: first_events
-- How these streams began: that says which list each is.
SELECT e.stream, e.state
FROM unnest(%(shards)s::int2[], %(streams)s::uuid[]) AS p (shard, stream)
JOIN remembrancer.event e ON e.shard = p.shard AND e.stream = p.stream AND e.version = 1
