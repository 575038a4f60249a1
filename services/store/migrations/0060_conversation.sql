-- Chats and their messages, as replies read them. A message's number is its version in the chat's stream; those that a
-- fork inherits have numbers up to 0.
INSERT INTO remembrancer.generation (projection, generation, live) VALUES ('conversation', 1, true);
INSERT INTO remembrancer.checkpoint (projection, generation, shard)
SELECT 'conversation', 1, s FROM generate_series(0, 255) s;

CREATE TABLE remembrancer.chat (
    generation  int2 NOT NULL,
    shard       int2 NOT NULL,
    chat        uuid NOT NULL,
    tenant      text NOT NULL,
    key         text NOT NULL,
    home_kind   text NOT NULL,
    home_key    text NOT NULL,
    personas    text[] NOT NULL,
    platform    text NOT NULL,
    server      text,
    channel     text,
    users       text[] NOT NULL,
    parent      uuid,
    version     int8 NOT NULL,
    messages    int8 NOT NULL DEFAULT 0,
    uncovered   int8 NOT NULL DEFAULT 0,
    PRIMARY KEY (generation, shard, chat)
) PARTITION BY LIST (generation);
CREATE INDEX chat_by_key ON remembrancer.chat (generation, tenant, key);

CREATE TABLE remembrancer.message (
    generation int2 NOT NULL,
    shard      int2 NOT NULL,
    chat       uuid NOT NULL,
    n          int8 NOT NULL,
    id         uuid NOT NULL,
    tenant     text NOT NULL,
    role       text NOT NULL,
    author     text NOT NULL,
    text       text NOT NULL,
    tokens     int4 NOT NULL,
    said_at    timestamptz NOT NULL,
    turn       text,
    attempt    int4 NOT NULL,
    ref        text,
    edited_at  timestamptz,
    gone       text,
    covered    bool NOT NULL DEFAULT false,
    PRIMARY KEY (generation, shard, chat, n)
) PARTITION BY LIST (generation);
CREATE INDEX message_present ON remembrancer.message (generation, shard, chat, n DESC) WHERE gone IS NULL;
CREATE INDEX message_uncovered ON remembrancer.message (generation, shard, chat, n DESC) WHERE gone IS NULL AND NOT covered;
CREATE INDEX message_by_id ON remembrancer.message (generation, shard, id);
CREATE INDEX message_by_turn ON remembrancer.message (generation, shard, chat, turn) WHERE turn IS NOT NULL;
CREATE INDEX message_by_author ON remembrancer.message (tenant, author) WHERE role = 'user';

CREATE TABLE remembrancer.chat_1 PARTITION OF remembrancer.chat FOR VALUES IN (1);
CREATE TABLE remembrancer.message_1 PARTITION OF remembrancer.message FOR VALUES IN (1);

-- The planner's statistics are copies of texts, too (D24).
ALTER TABLE ONLY remembrancer.message ALTER COLUMN text SET STATISTICS 0;
ALTER TABLE ONLY remembrancer.message_1 ALTER COLUMN text SET STATISTICS 0;
