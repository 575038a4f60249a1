-- Documents of personas and servers, and their passages, as replies look through them. A document that is gone keeps its
-- row, without a name, so that its passages never come back.
INSERT INTO remembrancer.generation (projection, generation, live) VALUES ('documents', 1, true);
INSERT INTO remembrancer.checkpoint (projection, generation, shard)
SELECT 'documents', 1, s FROM generate_series(0, 255) s;

CREATE TABLE remembrancer.document (
    generation  int2 NOT NULL,
    shard       int2 NOT NULL,
    document    uuid NOT NULL,
    tenant      text NOT NULL,
    owner_kind  text NOT NULL,
    owner       text NOT NULL,
    added_by    text,
    name        text NOT NULL,
    media_type  text NOT NULL,
    bytes       int8 NOT NULL,
    characters  int8 NOT NULL,
    pages       int4,
    passages    int4 NOT NULL,
    channels    text[] NOT NULL,
    added_at    timestamptz NOT NULL,
    gone        text,
    PRIMARY KEY (generation, shard, document)
) PARTITION BY LIST (generation);
CREATE INDEX document_by_owner ON remembrancer.document (generation, tenant, owner_kind, owner) WHERE gone IS NULL;
CREATE INDEX document_by_user ON remembrancer.document (tenant, added_by) WHERE added_by IS NOT NULL;

-- The vector stands in the row, as with memories: a search scans the passages of the documents in play exactly.
CREATE TABLE remembrancer.passage (
    generation int2 NOT NULL,
    shard      int2 NOT NULL,
    document   uuid NOT NULL,
    n          int4 NOT NULL,
    tenant     text NOT NULL,
    added_by   text,
    page       int4,
    heading    text,
    text       text NOT NULL,
    terms      int4[] NOT NULL,
    model      text,
    embedding  halfvec,
    PRIMARY KEY (generation, shard, document, n)
) PARTITION BY LIST (generation);
ALTER TABLE remembrancer.passage ALTER COLUMN embedding SET STORAGE PLAIN;
CREATE INDEX passage_by_model ON remembrancer.passage (generation, model);
CREATE INDEX passage_without_vector ON remembrancer.passage (generation, shard, document) WHERE embedding IS NULL;
CREATE INDEX passage_by_user ON remembrancer.passage (tenant, added_by) WHERE added_by IS NOT NULL;

CREATE TABLE remembrancer.document_1 PARTITION OF remembrancer.document FOR VALUES IN (1);
CREATE TABLE remembrancer.passage_1 PARTITION OF remembrancer.passage FOR VALUES IN (1);

-- The planner's statistics are copies of what stands in rows (D24): now of these tables, too. Takes the place of 0030's.
CREATE OR REPLACE FUNCTION remembrancer.no_samples_v1() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  r record;
BEGIN
  FOR r IN
    SELECT c.oid::regclass AS sampled, a.attname AS name
    FROM pg_class c
    LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
    JOIN pg_class top ON top.oid = coalesce(i.inhparent, c.oid)
    JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE c.relnamespace = 'remembrancer'::regnamespace AND c.relkind IN ('r', 'p')
      AND (top.relname, a.attname) IN (
        ('memory', 'text'), ('memory', 'terms'), ('memory', 'embedding'), ('archive', 'text'), ('archive', 'embedding'),
        ('history', 'before'), ('history', 'after'), ('parked', 'error'), ('embedding', 'digest'), ('embedding', 'vector'),
        ('wording', 'terms'), ('subject_key', 'key'), ('message', 'text'), ('summary', 'text'), ('document', 'name'), ('passage', 'heading'),
        ('passage', 'text'), ('passage', 'terms'), ('passage', 'embedding'))
      AND a.attstattarget IS DISTINCT FROM 0
  LOOP
    EXECUTE format('ALTER TABLE ONLY %s ALTER COLUMN %I SET STATISTICS 0', r.sampled, r.name);
  END LOOP;
END $$;

SELECT remembrancer.no_samples_v1();
