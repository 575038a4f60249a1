-- What is to be done for summaries, derived from the events.

-- name: due
-- Something was said or changed in a chat. One that failed keeps its pause, unless a person asks for it anew.
INSERT INTO remembrancer.summary_work (shard, chat, tenant, version, due_at)
VALUES (%(shard)s, %(chat)s, %(tenant)s, %(version)s, %(at)s)
ON CONFLICT (shard, chat) DO UPDATE
SET version = greatest(summary_work.version, excluded.version),
    due_at = CASE WHEN %(anew)s THEN excluded.due_at WHEN summary_work.tries > 0 THEN summary_work.due_at
                  ELSE least(summary_work.due_at, excluded.due_at) END,
    tries = CASE WHEN %(anew)s THEN 0 ELSE summary_work.tries END
