-- What is read: folded from the events by the projectors, and folded anew whenever a rule changes.
-- Every table is partitioned by generation, so that a new one is built beside the live one and switched in one row.

CREATE TABLE remembrancer.generation (
    projection text NOT NULL,
    generation int2 NOT NULL,
    live       bool NOT NULL DEFAULT false,
    PRIMARY KEY (projection, generation)
);
CREATE UNIQUE INDEX generation_live ON remembrancer.generation (projection) WHERE live;
INSERT INTO remembrancer.generation VALUES ('memory', 1, true), ('archive', 1, true), ('history', 1, true);

CREATE TABLE remembrancer.checkpoint (
    projection text NOT NULL,
    generation int2 NOT NULL,
    shard      int2 NOT NULL,
    position   int8 NOT NULL DEFAULT 0,
    PRIMARY KEY (projection, generation, shard)
) WITH (fillfactor = 20);
INSERT INTO remembrancer.checkpoint (projection, generation, shard)
SELECT p, 1, s FROM unnest(ARRAY['memory', 'archive', 'history']) p, generate_series(0, 255) s;

-- Which worker projects which slot of shards. Only shares the work: safety is the checkpoint's compare and set.
CREATE TABLE remembrancer.worker (
    worker       uuid PRIMARY KEY,
    heartbeat_at timestamptz NOT NULL
);
CREATE TABLE remembrancer.lease (
    slot   int2 PRIMARY KEY,
    worker uuid
);
INSERT INTO remembrancer.lease (slot) SELECT generate_series(0, 15);

-- A stream whose events a projection could not take: parked until repaired, while all others go on.
CREATE TABLE remembrancer.parked (
    projection text NOT NULL,
    generation int2 NOT NULL,
    shard      int2 NOT NULL,
    stream     uuid NOT NULL,
    position   int8 NOT NULL,
    error      text NOT NULL,
    parked_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (projection, generation, shard, stream)
);

-- Vectors by tenant, subject, model and text: asked for once, kept over rebuilds, gone with the subject.
CREATE TABLE remembrancer.embedding (
    shard      int2 NOT NULL,
    tenant     text NOT NULL,
    kind       text NOT NULL,
    subject    text NOT NULL,
    digest     bytea NOT NULL,
    model      text NOT NULL,
    vector     halfvec NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (shard, tenant, kind, subject, digest, model)
);

-- One row a list: whose it is, up to which version it is folded, and the days on which it was searched.
CREATE TABLE remembrancer.list (
    generation int2 NOT NULL,
    shard      int2 NOT NULL,
    list       uuid NOT NULL,
    tenant     text NOT NULL,
    persona    text NOT NULL,
    scope      text NOT NULL,
    subject    text NOT NULL,
    version    int8 NOT NULL,
    days       date[] NOT NULL DEFAULT '{}',
    cleared    bool NOT NULL DEFAULT false,
    PRIMARY KEY (generation, shard, list)
) PARTITION BY LIST (generation);
CREATE INDEX list_by_persona ON remembrancer.list (tenant, persona);
CREATE INDEX list_by_subject ON remembrancer.list (tenant, subject);

-- A day on which part of a list was in no search: these memories, or all but these.
CREATE TABLE remembrancer.list_day (
    generation int2 NOT NULL,
    shard      int2 NOT NULL,
    list       uuid NOT NULL,
    day        date NOT NULL,
    all_but    bool NOT NULL,
    ids        uuid[] NOT NULL,
    PRIMARY KEY (generation, shard, list, day)
) PARTITION BY LIST (generation);

-- One row a memory, written when somebody changes it. The vector stands in it, and no reply rewrites it: a search
-- scans this table alone.
CREATE TABLE remembrancer.memory (
    generation int2 NOT NULL,
    shard      int2 NOT NULL,
    list       uuid NOT NULL,
    id         uuid NOT NULL,
    text       text NOT NULL,
    terms      int4[] NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    until      date,
    tags       text[] NOT NULL,
    channels   text[] NOT NULL,
    actor      text NOT NULL,
    turn       text,
    source     jsonb NOT NULL,
    pinned     bool NOT NULL,
    protected  bool NOT NULL,
    model      text,
    embedding  halfvec,
    PRIMARY KEY (generation, shard, list, id)
) PARTITION BY LIST (generation);
ALTER TABLE remembrancer.memory ALTER COLUMN embedding SET STORAGE PLAIN;
CREATE INDEX memory_by_id ON remembrancer.memory (generation, shard, id);
CREATE INDEX memory_by_model ON remembrancer.memory (generation, model);
CREATE INDEX memory_without_vector ON remembrancer.memory (generation, shard, list) WHERE embedding IS NULL;

-- The part of a memory that replies change, with what chooses a desk: that scans this table alone.
CREATE TABLE remembrancer.memory_use (
    generation      int2 NOT NULL,
    shard           int2 NOT NULL,
    list            uuid NOT NULL,
    id              uuid NOT NULL,
    since           date NOT NULL,
    carried         int4 NOT NULL,
    pinned          bool NOT NULL,
    frozen          int4 NOT NULL,
    updated_at      timestamptz NOT NULL,
    until           date,
    tags            text[] NOT NULL,
    channels        text[] NOT NULL,
    last_matched_at timestamptz,
    base_day        date NOT NULL,
    base_days       int4 NOT NULL,
    base_matched_at timestamptz,
    uses            jsonb NOT NULL,
    PRIMARY KEY (generation, shard, list, id)
) PARTITION BY LIST (generation) ;

-- Every text that ever was a memory: what `why` and an operator's search look through.
CREATE TABLE remembrancer.archive (
    generation  int2 NOT NULL,
    shard       int2 NOT NULL,
    list        uuid NOT NULL,
    memory      uuid NOT NULL,
    version     int8 NOT NULL,
    tenant      text NOT NULL,
    persona     text NOT NULL,
    scope       text NOT NULL,
    subject     text NOT NULL,
    text        text NOT NULL,
    recorded_at timestamptz NOT NULL,
    until_now   bool NOT NULL DEFAULT true,
    pinned      bool NOT NULL DEFAULT false,
    model       text,
    embedding   halfvec,
    PRIMARY KEY (generation, shard, list, memory, version)
) PARTITION BY LIST (generation);
ALTER TABLE remembrancer.archive ALTER COLUMN embedding SET STORAGE PLAIN;
CREATE INDEX archive_by_tenant ON remembrancer.archive (tenant, generation);
CREATE INDEX archive_without_vector ON remembrancer.archive (generation, shard, list) WHERE embedding IS NULL;

-- What happened, a row for each memory that an event names, in plain sentences.
CREATE TABLE remembrancer.history (
    generation  int2 NOT NULL,
    shard       int2 NOT NULL,
    position    int8 NOT NULL,
    n           int2 NOT NULL,
    tenant      text NOT NULL,
    persona     text NOT NULL,
    scope       text,
    subject     text,
    list        uuid,
    memory      uuid,
    turn        text,
    actor       text NOT NULL,
    event       text NOT NULL,
    recorded_at timestamptz NOT NULL,
    sentence    text NOT NULL,
    before      text,
    after       text,
    data        jsonb NOT NULL,
    PRIMARY KEY (generation, shard, position, n)
) PARTITION BY LIST (generation);
CREATE INDEX history_by_persona ON remembrancer.history (generation, tenant, persona, recorded_at);
CREATE INDEX history_by_memory ON remembrancer.history (generation, tenant, memory, recorded_at) WHERE memory IS NOT NULL;
CREATE INDEX history_last_text ON remembrancer.history (generation, shard, memory, position) WHERE memory IS NOT NULL;
CREATE INDEX history_by_turn ON remembrancer.history (generation, tenant, turn) WHERE turn IS NOT NULL;

CREATE TABLE remembrancer.list_1 PARTITION OF remembrancer.list FOR VALUES IN (1);
CREATE TABLE remembrancer.list_day_1 PARTITION OF remembrancer.list_day FOR VALUES IN (1);
CREATE TABLE remembrancer.memory_1 PARTITION OF remembrancer.memory FOR VALUES IN (1);
CREATE TABLE remembrancer.memory_use_1 PARTITION OF remembrancer.memory_use FOR VALUES IN (1) WITH (fillfactor = 80);
CREATE TABLE remembrancer.archive_1 PARTITION OF remembrancer.archive FOR VALUES IN (1);
CREATE TABLE remembrancer.history_1 PARTITION OF remembrancer.history FOR VALUES IN (1);

-- The archive's HNSW index, one a model, since an index has one number of dimensions.
CREATE FUNCTION remembrancer.index_archive_v1(p_model text, p_dimensions int4) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format(
    'CREATE INDEX IF NOT EXISTS %I ON remembrancer.archive USING hnsw ((embedding::halfvec(%s)) halfvec_cosine_ops)
     WITH (m = 24, ef_construction = 128) WHERE model = %L',
    'archive_hnsw_' || left(md5(p_model), 12), p_dimensions, p_model);
END $$;

-- The texts nearest to a vector, of all personas of a tenant. The model stands in the statement as a literal, since only
-- then does the planner know that the partial index holds what is asked for; and the tenant, so that it may know a small
-- one, whose rows it then reads exactly. For a large one the index is scanned on until enough rows are the tenant's.
CREATE FUNCTION remembrancer.search_archive_v1(p_tenant text, p_model text, p_dimensions int4, p_vector halfvec, p_limit int4)
RETURNS TABLE (shard int2, list uuid, memory uuid, version int8, persona text, scope text, subject text, text text,
               recorded_at timestamptz, until_now bool, similarity float8)
LANGUAGE plpgsql STABLE SET hnsw.ef_search = 400 SET hnsw.iterative_scan = strict_order AS $$
BEGIN
  RETURN QUERY EXECUTE format(
    'SELECT a.shard, a.list, a.memory, a.version, a.persona, a.scope, a.subject, a.text, a.recorded_at, a.until_now,
            1 - (a.embedding::halfvec(%1$s) <=> $1::halfvec(%1$s))
     FROM remembrancer.archive a
     WHERE a.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = ''archive'' AND g.live)
       AND a.tenant = %3$L AND a.model = %2$L
     ORDER BY a.embedding::halfvec(%1$s) <=> $1::halfvec(%1$s) LIMIT $2', p_dimensions, p_model, p_tenant)
  USING p_vector, p_limit;
END $$;
