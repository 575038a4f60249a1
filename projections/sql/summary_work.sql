-- What is to be done for summaries, derived from the events.

-- name: due
-- Something was said or changed in a chat. One that failed keeps its pause, unless a person wants it made anew.
INSERT INTO remembrancer.summary_work (shard, chat, tenant, version, due_at)
VALUES (%(shard)s, %(chat)s, %(tenant)s, %(version)s, %(at)s)
ON CONFLICT (shard, chat) DO UPDATE
SET version = greatest(summary_work.version, excluded.version),
    tries = CASE WHEN %(anew)s THEN 0 ELSE summary_work.tries END,
    error = CASE WHEN %(anew)s THEN NULL ELSE summary_work.error END,
    failed_at = CASE WHEN %(anew)s THEN NULL ELSE summary_work.failed_at END,
    due_at = CASE WHEN summary_work.tries > 0 AND NOT %(anew)s THEN summary_work.due_at
                  ELSE least(summary_work.due_at, excluded.due_at) END
