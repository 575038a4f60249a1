-- Erasing a person (D24). All but the last four run in one transaction, under the lock of the person's shard.

-- name: build_anew
-- A rebuild pours this shard again: its tables are not attached yet, so that the statements below do not reach them.
SELECT remembrancer.build_anew_v1(%(shard)s::int2)

-- name: shelves
-- Where documents are that they added.
SELECT DISTINCT d.shard FROM remembrancer.document d WHERE d.tenant = %(tenant)s AND d.added_by = %(subject)s

-- name: checkpoints
-- Nobody projects this shard meanwhile: what a batch has read before would be written after. Waits for running batches.
-- Messages of theirs are in the chats of any shard, documents of theirs on any shelf, and history tells of those.
SELECT c.position FROM remembrancer.checkpoint c
WHERE c.shard = %(shard)s OR c.projection IN ('conversation', 'documents', 'history')
ORDER BY c.projection, c.generation, c.shard FOR UPDATE

-- name: head
-- Nobody writes into this shard meanwhile.
SELECT h.position FROM remembrancer.head h WHERE h.shard = %(shard)s FOR NO KEY UPDATE

-- name: first_events
-- How each stream of the shard began: that says whose it is.
SELECT e.stream, e.type, e.state FROM remembrancer.event e WHERE e.shard = %(shard)s AND e.version = 1

-- name: lists
-- The lists of the person as the tables know them, those of a rebuild included.
SELECT DISTINCT l.list, l.persona, l.scope FROM remembrancer.list l
WHERE l.tenant = %(tenant)s AND l.subject = %(subject)s AND l.shard = %(shard)s AND l.scope IN ('personal', 'global')

-- name: since_last_time
-- Of each stream how many events came after its last erasure, and how many memories.
SELECT p.stream, count(e.version), count(e.version) FILTER (WHERE e.type = 'MemorySaved')
FROM unnest(%(streams)s::uuid[]) AS p (stream)
LEFT JOIN remembrancer.event e
  ON e.shard = %(shard)s AND e.stream = p.stream AND e.version > coalesce(
    (SELECT max(x.version) FROM remembrancer.event x
     WHERE x.shard = %(shard)s AND x.stream = p.stream AND x.type = 'SubjectErased'), 0)
GROUP BY p.stream

-- name: key
-- Has there ever been a key of the person's?
SELECT EXISTS (SELECT FROM remembrancer.subject_key k
               WHERE k.shard = %(shard)s AND k.tenant = %(tenant)s AND k.kind = 'user' AND k.subject = %(subject)s)

-- name: people
-- Who has a key, for "did you mean".
SELECT k.subject FROM remembrancer.subject_key k
WHERE k.tenant = %(tenant)s AND k.kind = 'user' AND k.key IS NOT NULL
LIMIT 20000

-- name: memories
DELETE FROM remembrancer.memory WHERE shard = %(shard)s AND list = ANY (%(streams)s)

-- name: uses
DELETE FROM remembrancer.memory_use WHERE shard = %(shard)s AND list = ANY (%(streams)s)

-- name: archive
DELETE FROM remembrancer.archive WHERE shard = %(shard)s AND list = ANY (%(streams)s)

-- name: wordings
DELETE FROM remembrancer.wording WHERE shard = %(shard)s AND list = ANY (%(streams)s)

-- name: history
UPDATE remembrancer.history
SET before = CASE WHEN before IS NOT NULL THEN '[erased]' END, after = CASE WHEN after IS NOT NULL THEN '[erased]' END
WHERE shard = %(shard)s AND list = ANY (%(streams)s) AND (before IS NOT NULL OR after IS NOT NULL)

-- name: messages
-- What they wrote, in whatever chat, and all of a chat of theirs alone.
UPDATE remembrancer.message SET text = '[erased]', gone = 'erased'
WHERE ((tenant = %(tenant)s AND author = %(subject)s AND role = 'user') OR (shard = %(shard)s AND chat = ANY (%(streams)s)))
  AND gone IS DISTINCT FROM 'erased'

-- name: summaries
-- What was summarised of their messages. The parts of a summary that hold nothing of theirs stay.
DELETE FROM remembrancer.summary
WHERE (tenant = %(tenant)s AND authors @> ARRAY[%(subject)s::text]) OR (shard = %(shard)s AND chat = ANY (%(streams)s))

-- name: uncovered
-- Messages of others that were in these summaries are in none any more.
UPDATE remembrancer.message m SET covered = false
WHERE m.covered
  AND ((m.generation, m.shard, m.chat) IN (
    SELECT x.generation, x.shard, x.chat FROM remembrancer.message x
    WHERE x.tenant = %(tenant)s AND x.author = %(subject)s AND x.role = 'user'))
  AND NOT EXISTS (
    SELECT FROM remembrancer.summary s
    WHERE s.generation = m.generation AND s.shard = m.shard AND s.chat = m.chat AND s.stale IS NULL AND s.rebuild IS NULL
      AND m.n BETWEEN s.first AND s.last)

-- name: whole_again
-- Parts of what is gone stand by themselves.
UPDATE remembrancer.summary s SET parent = NULL
WHERE s.parent IS NOT NULL
  AND ((s.generation, s.shard, s.chat) IN (
    SELECT x.generation, x.shard, x.chat FROM remembrancer.message x
    WHERE x.tenant = %(tenant)s AND x.author = %(subject)s AND x.role = 'user'))
  AND NOT EXISTS (
    SELECT FROM remembrancer.summary p
    WHERE p.generation = s.generation AND p.shard = s.shard AND p.chat = s.chat AND p.id = s.parent AND p.stale IS NULL)

-- name: rules
-- Places in messages that are gone.
DELETE FROM remembrancer.summary_rule r USING remembrancer.message m
WHERE m.generation = r.generation AND m.shard = r.shard AND m.chat = r.chat AND m.n = r.n AND m.gone = 'erased'
  AND ((m.tenant = %(tenant)s AND m.author = %(subject)s AND m.role = 'user')
    OR (m.shard = %(shard)s AND m.chat = ANY (%(streams)s)))

-- name: look
-- What they were part of is summarised anew without them.
INSERT INTO remembrancer.summary_work (shard, chat, tenant, version, due_at)
SELECT c.shard, c.chat, c.tenant, max(c.version), %(now)s
FROM remembrancer.chat c
WHERE (c.generation, c.shard, c.chat) IN (
  SELECT x.generation, x.shard, x.chat FROM remembrancer.message x
  WHERE x.tenant = %(tenant)s AND x.author = %(subject)s AND x.role = 'user')
GROUP BY c.shard, c.chat, c.tenant
ORDER BY c.shard, c.chat
ON CONFLICT (shard, chat) DO UPDATE SET due_at = excluded.due_at

-- name: chats
-- How many messages are left in the chats that they took part in.
UPDATE remembrancer.chat c SET messages = left_over.messages, uncovered = left_over.uncovered
FROM (
  SELECT m.generation, m.shard, m.chat, count(*) FILTER (WHERE m.gone IS NULL) AS messages,
         count(*) FILTER (WHERE m.gone IS NULL AND NOT m.covered) AS uncovered
  FROM remembrancer.message m
  WHERE (m.generation, m.shard, m.chat) IN (
    SELECT x.generation, x.shard, x.chat FROM remembrancer.message x
    WHERE (x.tenant = %(tenant)s AND x.author = %(subject)s AND x.role = 'user')
       OR (x.shard = %(shard)s AND x.chat = ANY (%(streams)s)))
  GROUP BY m.generation, m.shard, m.chat
) left_over
WHERE c.generation = left_over.generation AND c.shard = left_over.shard AND c.chat = left_over.chat

-- name: document_count
-- How many documents of theirs there are.
SELECT count(*) FROM remembrancer.document d
WHERE d.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'documents' AND g.live)
  AND d.tenant = %(tenant)s AND d.added_by = %(subject)s AND d.gone IS NULL

-- name: document_history
-- The names of documents that they added.
UPDATE remembrancer.history h
SET before = CASE WHEN h.before IS NOT NULL THEN '[erased]' END, after = CASE WHEN h.after IS NOT NULL THEN '[erased]' END
FROM remembrancer.document d
WHERE d.tenant = %(tenant)s AND d.added_by = %(subject)s AND h.tenant = d.tenant AND h.memory = d.document
  AND (h.before IS NOT NULL OR h.after IS NOT NULL)

-- name: documents
UPDATE remembrancer.document SET name = '', gone = 'erased' WHERE tenant = %(tenant)s AND added_by = %(subject)s

-- name: passages
DELETE FROM remembrancer.passage WHERE tenant = %(tenant)s AND added_by = %(subject)s

-- name: vectors
-- After the memories: a vector that is on its way is kept only while its memory is there.
DELETE FROM remembrancer.embedding
WHERE shard = %(shard)s AND tenant = %(tenant)s AND kind = 'user' AND subject = %(subject)s

-- name: snapshots
DELETE FROM remembrancer.snapshot WHERE shard = %(shard)s AND stream = ANY (%(streams)s)

-- name: parked
-- What a projection said when it could not take an event may quote it. The stream stays parked.
UPDATE remembrancer.parked SET error = split_part(error, ':', 1) || ': [erased]'
WHERE (shard = %(shard)s AND stream = ANY (%(streams)s)) OR projection = 'documents'

-- name: compact
-- Rewrites what held texts, vectors or keys, so that the files hold only what is there. Replies wait meanwhile.
VACUUM (FULL) remembrancer.memory, remembrancer.memory_use, remembrancer.archive, remembrancer.wording, remembrancer.history,
  remembrancer.embedding, remembrancer.snapshot, remembrancer.subject_key, remembrancer.parked, remembrancer.message,
  remembrancer.document, remembrancer.passage, remembrancer.summary, remembrancer.summary_rule

-- name: standing_alone
-- Tables of a rebuild that is under way, which are not part of those yet.
SELECT t.name || '_' || t.generation FROM remembrancer.rebuild_table t
JOIN remembrancer.rebuild b ON b.generation = t.generation AND b.state = 'building'

-- name: compact_one
VACUUM (FULL) {table}

-- name: checkpoint
CHECKPOINT
