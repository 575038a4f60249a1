-- What is written: shard heads, events, requests, snapshots, keys. Every key is led by the shard.
CREATE EXTENSION IF NOT EXISTS vector;

-- One row a shard: its last position, and the moment of its last event. A writer holds the row until its commit,
-- so positions have no gaps and become visible in their order. The rows are spread over many pages with room for their
-- next versions. The fillfactor must not stay: PostgreSQL would prune a page at every update that finds it fuller.
CREATE TABLE remembrancer.head (
    shard       int2 PRIMARY KEY,
    position    int8 NOT NULL DEFAULT 0,
    recorded_at timestamptz NOT NULL DEFAULT 'epoch'
) WITH (fillfactor = 10);

INSERT INTO remembrancer.head (shard) SELECT generate_series(0, 255);

ALTER TABLE remembrancer.head RESET (fillfactor);

CREATE TABLE remembrancer.event (
    shard       int2 NOT NULL,
    position    int8 NOT NULL,
    stream      uuid NOT NULL,
    version     int8 NOT NULL,
    type        text COLLATE "C" NOT NULL,
    state       bytea NOT NULL,
    recorded_at timestamptz NOT NULL,
    PRIMARY KEY (shard, position),
    UNIQUE (shard, stream, version)
);

-- Every command, once: the answer that its request id has (D19). `positions` are packed, shard << 48 | position.
CREATE TABLE remembrancer.request (
    shard       int2 NOT NULL,
    tenant      text COLLATE "C" NOT NULL,
    request_id  text COLLATE "C" NOT NULL,
    verb        text COLLATE "C" NOT NULL,
    fingerprint bytea NOT NULL,
    positions   int8[] NOT NULL,
    answer      bytea,
    stream      uuid,
    recorded_at timestamptz NOT NULL,
    PRIMARY KEY (shard, tenant, request_id)
);

-- A folded state, so that a long stream is not read from its beginning. May be lost at any time.
CREATE TABLE remembrancer.snapshot (
    shard        int2 NOT NULL,
    stream       uuid NOT NULL,
    version      int8 NOT NULL,
    fold_version text COLLATE "C" NOT NULL,
    state        bytea NOT NULL,
    PRIMARY KEY (shard, stream)
);

-- The key of a subject's texts. Erasing a subject sets `key` to NULL; a later generation begins anew.
CREATE TABLE remembrancer.subject_key (
    shard        int2 NOT NULL,
    tenant       text COLLATE "C" NOT NULL,
    kind         text COLLATE "C" NOT NULL,
    subject      text COLLATE "C" NOT NULL,
    generation   int4 NOT NULL,
    key          bytea,
    destroyed_at timestamptz,
    PRIMARY KEY (shard, tenant, kind, subject, generation),
    CHECK ((key IS NULL) = (destroyed_at IS NOT NULL))
);

-- How far somebody has come who processes notifications of the library's kind.
CREATE TABLE remembrancer.tracking (
    shard    int2 NOT NULL,
    name     text COLLATE "C" NOT NULL,
    position int8 NOT NULL,
    PRIMARY KEY (shard, name)
);
