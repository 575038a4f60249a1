-- A change of the embedding model (D23).

-- name: hold
-- Decisions about the models of a tenant come one after the other.
SELECT m.model FROM remembrancer.model m WHERE m.tenant = %(tenant)s AND m.state = 'serving' FOR UPDATE

-- name: state
SELECT m.state FROM remembrancer.model m WHERE m.tenant = %(tenant)s AND m.model = %(model)s

-- name: leave_coming
-- What was to take over will not.
UPDATE remembrancer.model SET state = 'left', since = %(now)s, mover = NULL, mover_until = NULL
WHERE tenant = %(tenant)s AND state = 'coming'

-- name: begin
-- A model is to take over, also one that was left before.
INSERT INTO remembrancer.model (tenant, model, state, since, url, dimensions)
VALUES (%(tenant)s, %(model)s, 'coming', %(now)s, %(url)s, %(dimensions)s)
ON CONFLICT (tenant, model) DO UPDATE
SET state = 'coming', since = excluded.since, url = excluded.url, error = NULL, error_at = NULL
WHERE model.state = 'left'

-- name: ask_refused_again
DELETE FROM remembrancer.embedding WHERE tenant = %(tenant)s AND model = %(model)s AND vector IS NULL

-- name: claim
-- One process does the work, by the database's clock; another goes on when it has not been heard of for a while.
UPDATE remembrancer.model SET mover = %(mover)s, mover_until = clock_timestamp() + make_interval(secs => %(seconds)s)
WHERE tenant = %(tenant)s AND model = %(model)s AND state = 'coming'
  AND (mover IS NULL OR mover = %(mover)s OR mover_until < clock_timestamp())

-- name: release
UPDATE remembrancer.model SET mover = NULL, mover_until = NULL WHERE tenant = %(tenant)s AND mover = %(mover)s

-- name: note
-- Why it does not get on; null once it does.
UPDATE remembrancer.model SET error = %(error)s, error_at = %(now)s
WHERE tenant = %(tenant)s AND model = %(model)s AND error IS DISTINCT FROM %(error)s

-- name: missing_memories
-- Texts of memories that have neither a vector of this model nor its refusal, with the row that says them.
SELECT m.shard, m.list, m.id, NULL::int8, CASE WHEN l.scope = 'server' THEN 'server' ELSE 'user' END, l.subject, m.text
FROM remembrancer.memory m
JOIN remembrancer.list l ON l.generation = m.generation AND l.shard = m.shard AND l.list = m.list
WHERE m.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'memory' AND g.live)
  AND l.tenant = %(tenant)s AND NOT EXISTS (
    SELECT FROM remembrancer.embedding e
    WHERE e.shard = m.shard AND e.tenant = l.tenant AND e.subject = l.subject
      AND e.kind = CASE WHEN l.scope = 'server' THEN 'server' ELSE 'user' END
      AND e.digest = sha256(convert_to(m.text, 'UTF8')) AND e.model = %(model)s)
LIMIT %(limit)s

-- name: missing_archive
-- The same of texts that were memories once, and may be again (U2, D14).
SELECT a.shard, a.list, a.memory, a.version, CASE WHEN a.scope = 'server' THEN 'server' ELSE 'user' END, a.subject, a.text
FROM remembrancer.archive a
WHERE a.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'archive' AND g.live)
  AND a.tenant = %(tenant)s AND NOT EXISTS (
    SELECT FROM remembrancer.embedding e
    WHERE e.shard = a.shard AND e.tenant = a.tenant AND e.subject = a.subject
      AND e.kind = CASE WHEN a.scope = 'server' THEN 'server' ELSE 'user' END
      AND e.digest = sha256(convert_to(a.text, 'UTF8')) AND e.model = %(model)s)
LIMIT %(limit)s

-- name: keep_of_memory
-- A vector (or, without one, a refusal) of a text that was looked up a while ago: not kept if it was changed or erased (D24).
INSERT INTO remembrancer.embedding (shard, tenant, kind, subject, digest, model, vector)
SELECT %(shard)s, %(tenant)s, %(kind)s, %(subject)s, %(digest)s, %(model)s, %(vector)s::halfvec
FROM remembrancer.memory m
WHERE m.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'memory' AND g.live)
  AND m.shard = %(shard)s AND m.list = %(list)s AND m.id = %(memory)s AND m.text = %(text)s
FOR SHARE
ON CONFLICT DO NOTHING

-- name: keep_of_archive
INSERT INTO remembrancer.embedding (shard, tenant, kind, subject, digest, model, vector)
SELECT %(shard)s, %(tenant)s, %(kind)s, %(subject)s, %(digest)s, %(model)s, %(vector)s::halfvec
FROM remembrancer.archive a
WHERE a.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'archive' AND g.live)
  AND a.shard = %(shard)s AND a.list = %(list)s AND a.memory = %(memory)s AND a.version = %(version)s
FOR SHARE
ON CONFLICT DO NOTHING

-- name: kept
-- How many of these texts have a vector of this model or its refusal.
SELECT count(*)
FROM unnest(%(shards)s::int2[], %(kinds)s::text[], %(subjects)s::text[], %(digests)s::bytea[]) AS p (shard, kind, subject, digest)
JOIN remembrancer.embedding e
  ON e.shard = p.shard AND e.tenant = %(tenant)s AND e.kind = p.kind AND e.subject = p.subject AND e.digest = p.digest
 AND e.model = %(model)s

-- name: progress
-- How many different texts there are, how many have a vector of this model or its refusal, how many it refuses, and how
-- many a second came in the last minute.
WITH text AS MATERIALIZED (
  SELECT m.shard, CASE WHEN l.scope = 'server' THEN 'server' ELSE 'user' END AS kind, l.subject,
         sha256(convert_to(m.text, 'UTF8')) AS digest
  FROM remembrancer.memory m
  JOIN remembrancer.list l ON l.generation = m.generation AND l.shard = m.shard AND l.list = m.list
  WHERE m.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'memory' AND g.live)
    AND l.tenant = %(tenant)s
  UNION
  SELECT a.shard, CASE WHEN a.scope = 'server' THEN 'server' ELSE 'user' END, a.subject, sha256(convert_to(a.text, 'UTF8'))
  FROM remembrancer.archive a
  WHERE a.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'archive' AND g.live)
    AND a.tenant = %(tenant)s
),
kept AS (
  SELECT e.digest, e.vector IS NULL AS refused,
         CASE WHEN e.created_at > clock_timestamp() - interval '1 minute' THEN e.created_at END AS lately
  FROM text t
  LEFT JOIN remembrancer.embedding e
    ON e.shard = t.shard AND e.tenant = %(tenant)s AND e.kind = t.kind AND e.subject = t.subject AND e.digest = t.digest
   AND e.model = %(model)s
)
SELECT count(*), count(digest), count(digest) FILTER (WHERE refused),
       coalesce(count(lately) / greatest(1, extract(epoch FROM clock_timestamp() - min(lately)))::float8, 0)
FROM kept

-- name: leave_serving
UPDATE remembrancer.model SET state = 'left', since = %(now)s WHERE tenant = %(tenant)s AND state = 'serving'

-- name: serve
-- The model that was coming serves, from the commit of this on, for every process.
UPDATE remembrancer.model
SET state = 'serving', since = %(now)s, mover = NULL, mover_until = NULL, error = NULL, error_at = NULL
WHERE tenant = %(tenant)s AND model = %(model)s AND state = 'coming'
