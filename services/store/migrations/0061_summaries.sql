-- Summaries of chats, as replies read them: part of the projection `conversation`, whose messages they cover.

-- One row a summary. Those that are sent are valid and part of no other valid one.
CREATE TABLE remembrancer.summary (
    generation int2 NOT NULL,
    shard      int2 NOT NULL,
    chat       uuid NOT NULL,
    id         uuid NOT NULL,
    tenant     text NOT NULL,
    tier       text NOT NULL,
    first      int8 NOT NULL,
    last       int8 NOT NULL,
    messages   int4 NOT NULL,
    text       text NOT NULL,
    tokens     int4 NOT NULL,
    authors    text[] NOT NULL,
    detail     text NOT NULL,
    made_at    timestamptz NOT NULL,
    sources    uuid[] NOT NULL,
    edited     bool NOT NULL DEFAULT false,
    rebuild    uuid,
    parent     uuid,
    stale      text,
    PRIMARY KEY (generation, shard, chat, id)
) PARTITION BY LIST (generation);
CREATE INDEX summary_standing ON remembrancer.summary (generation, shard, chat, first) WHERE stale IS NULL AND parent IS NULL;
CREATE INDEX summary_valid ON remembrancer.summary (generation, shard, chat, last) WHERE stale IS NULL;
CREATE INDEX summary_parts ON remembrancer.summary (generation, shard, chat, parent) WHERE parent IS NOT NULL;
CREATE INDEX summary_by_author ON remembrancer.summary USING gin (authors);

-- Where users gave rules and corrections: places in messages, never the words.
CREATE TABLE remembrancer.summary_rule (
    generation int2 NOT NULL,
    shard      int2 NOT NULL,
    chat       uuid NOT NULL,
    message    uuid NOT NULL,
    start      int4 NOT NULL,
    finish     int4 NOT NULL,
    n          int8 NOT NULL,
    removed    bool NOT NULL DEFAULT false,
    PRIMARY KEY (generation, shard, chat, message, start, finish)
) PARTITION BY LIST (generation);

-- A conversation's memory made anew.
CREATE TABLE remembrancer.summary_rebuild (
    generation int2 NOT NULL,
    shard      int2 NOT NULL,
    chat       uuid NOT NULL,
    rebuild    uuid NOT NULL,
    upto       int8 NOT NULL,
    detail     text NOT NULL,
    messages   int8 NOT NULL,
    state      text NOT NULL,
    reason     text,
    started_at timestamptz NOT NULL,
    ended_at   timestamptz,
    PRIMARY KEY (generation, shard, chat, rebuild)
) PARTITION BY LIST (generation);

CREATE TABLE remembrancer.summary_1 PARTITION OF remembrancer.summary FOR VALUES IN (1);
CREATE TABLE remembrancer.summary_rule_1 PARTITION OF remembrancer.summary_rule FOR VALUES IN (1);
CREATE TABLE remembrancer.summary_rebuild_1 PARTITION OF remembrancer.summary_rebuild FOR VALUES IN (1);

-- The planner's statistics are copies of texts, too (D24).
ALTER TABLE ONLY remembrancer.summary ALTER COLUMN text SET STATISTICS 0;
ALTER TABLE ONLY remembrancer.summary_1 ALTER COLUMN text SET STATISTICS 0;

-- What is to be done in the background: chats in which something was said or changed since somebody last looked. Written by
-- a follower of the events with its own checkpoints, done by whichever worker claims it; the database's clock judges claims.
INSERT INTO remembrancer.generation (projection, generation, live) VALUES ('summary_work', 1, true);
INSERT INTO remembrancer.checkpoint (projection, generation, shard)
SELECT 'summary_work', 1, s FROM generate_series(0, 255) s;

CREATE TABLE remembrancer.summary_work (
    shard         int2 NOT NULL,
    chat          uuid NOT NULL,
    tenant        text NOT NULL,
    version       int8 NOT NULL,
    due_at        timestamptz,
    tries         int4 NOT NULL DEFAULT 0,
    error         text,
    failed_at     timestamptz,
    claimed_by    uuid,
    claimed_until timestamptz,
    PRIMARY KEY (shard, chat)
);
CREATE INDEX summary_work_due ON remembrancer.summary_work (tenant, due_at);
