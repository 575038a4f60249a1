-- Pouring a shard into a new generation, and what has to be known of a rebuild. {table} is a table of that generation.

-- name: claim
-- The largest shard that nobody pours yet. Its lock is the claim: it ends with the transaction, whatever ends that.
SELECT s.shard FROM remembrancer.rebuild_shard s
JOIN remembrancer.rebuild b ON b.generation = s.generation AND b.state = 'building'
JOIN remembrancer.head h ON h.shard = s.shard
WHERE s.generation = %(generation)s AND NOT s.done
ORDER BY h.position DESC, s.shard LIMIT 1
FOR UPDATE OF s SKIP LOCKED

-- name: events
-- All events of a shard, in order: for a cursor on the server.
SELECT e.shard, e.position, e.stream, e.version, e.type, e.state, e.recorded_at
FROM remembrancer.event e WHERE e.shard = %(shard)s ORDER BY e.position

-- name: poured
-- The shard is done; its projections have come so far.
WITH moved AS (
  UPDATE remembrancer.checkpoint SET position = %(position)s
  WHERE projection = ANY (%(projections)s) AND generation = %(generation)s AND shard = %(shard)s
), alive AS (
  UPDATE remembrancer.rebuild SET changed_at = clock_timestamp() WHERE generation = %(generation)s AND state = 'building'
)
UPDATE remembrancer.rebuild_shard SET done = true, events = %(events)s
WHERE generation = %(generation)s AND shard = %(shard)s

-- name: left_to_the_runner
-- The shard has an event that some projection cannot take: the runner takes it from its beginning, and parks its stream.
UPDATE remembrancer.rebuild_shard SET done = true WHERE generation = %(generation)s AND shard = %(shard)s

-- name: has_vectors
SELECT FROM remembrancer.embedding WHERE shard = %(shard)s LIMIT 1

-- name: vectors
-- The vectors that are kept of these texts, as `write_memories` and the archive's `insert` choose them.
SELECT p.n, e.model, e.vector
FROM unnest(%(tenants)s::text[], %(kinds)s::text[], %(subjects)s::text[], %(digests)s::bytea[])
  WITH ORDINALITY AS p (tenant, kind, subject, digest, n)
CROSS JOIN LATERAL (
  SELECT e.model, e.vector FROM remembrancer.embedding e
  WHERE e.shard = %(shard)s AND e.tenant = p.tenant AND e.kind = p.kind AND e.subject = p.subject AND e.digest = p.digest
    AND e.vector IS NOT NULL
    AND e.model = (SELECT s.model FROM remembrancer.model s WHERE s.tenant = p.tenant AND s.state = 'serving')
) e

-- name: copy_list
COPY {table} (generation, shard, list, tenant, persona, scope, subject, version, days, cleared)
FROM STDIN (FORMAT BINARY)

-- name: copy_list_day
COPY {table} (generation, shard, list, day, all_but, ids) FROM STDIN (FORMAT BINARY)

-- name: copy_memory
COPY {table} (generation, shard, list, id, text, terms, created_at, updated_at, until, tags, channels, actor, turn, source,
              pinned, protected, model, embedding)
FROM STDIN (FORMAT BINARY)

-- name: copy_memory_use
COPY {table} (generation, shard, list, id, since, carried, pinned, frozen, updated_at, until, tags, channels,
              last_matched_at, base_day, base_days, base_matched_at, uses)
FROM STDIN (FORMAT BINARY)

-- name: copy_archive
COPY {table} (generation, shard, list, memory, version, tenant, persona, scope, subject, text, recorded_at, until_now,
              pinned, model, embedding)
FROM STDIN (FORMAT BINARY)

-- name: copy_history
COPY {table} (generation, shard, position, n, tenant, persona, scope, subject, list, memory, turn, actor, event,
              recorded_at, sentence, before, after, data)
FROM STDIN (FORMAT BINARY)

-- name: copy_candidate
COPY {table} (generation, shard, position, memory, day, rank, score, similarity, words, threshold, matched, recalled)
FROM STDIN (FORMAT BINARY)

-- name: copy_wording
COPY {table} (generation, shard, list, memory, version, tenant, persona, terms) FROM STDIN (FORMAT BINARY)

-- name: erase_history
-- As the history's own `erase`, in a table that is not attached yet; with the memories of the list.
UPDATE {table}
SET before = CASE WHEN before IS NOT NULL THEN '[erased]' END, after = CASE WHEN after IS NOT NULL THEN '[erased]' END
WHERE shard = %(shard)s AND list = %(list)s
RETURNING memory
