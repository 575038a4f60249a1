-- What `why` finds a memory's life by (U1). Both are written by the projection `history`: events that it has read before
-- this migration are not in them until it is rebuilt.

-- Each candidate of each search: a match or a near miss. It stands where its reply stands in `history`, in the chat's shard,
-- and is found by the memory. Ids and numbers only.
CREATE TABLE remembrancer.candidate (
    generation int2 NOT NULL,
    shard      int2 NOT NULL,
    position   int8 NOT NULL,
    memory     uuid NOT NULL,
    day        date NOT NULL,
    rank       int2 NOT NULL,
    score      float8 NOT NULL,
    similarity float8 NOT NULL,
    words      float8 NOT NULL,
    threshold  float8,
    matched    bool NOT NULL,
    recalled   bool NOT NULL,
    PRIMARY KEY (generation, shard, position, memory)
) PARTITION BY LIST (generation);
CREATE INDEX candidate_by_memory ON remembrancer.candidate (generation, memory);

-- The words of every text that ever was a memory, as terms (`projections/words.py`): a row for each row of `archive`.
CREATE TABLE remembrancer.wording (
    generation int2 NOT NULL,
    shard      int2 NOT NULL,
    list       uuid NOT NULL,
    memory     uuid NOT NULL,
    version    int8 NOT NULL,
    tenant     text NOT NULL,
    persona    text NOT NULL,
    terms      int4[] NOT NULL,
    PRIMARY KEY (generation, shard, list, memory, version)
) PARTITION BY LIST (generation);
CREATE INDEX wording_by_term ON remembrancer.wording USING gin (terms);
CREATE INDEX wording_by_tenant ON remembrancer.wording (generation, tenant);

CREATE TABLE remembrancer.candidate_1 PARTITION OF remembrancer.candidate FOR VALUES IN (1);
CREATE TABLE remembrancer.wording_1 PARTITION OF remembrancer.wording FOR VALUES IN (1);

-- What was done to a memory, without the many messages that brought it to mind.
CREATE INDEX history_of_memory ON remembrancer.history (generation, shard, memory, position)
  WHERE memory IS NOT NULL AND event <> 'MemoriesMatched';
-- What ended all memories of a list at once names none of them.
CREATE INDEX history_ends ON remembrancer.history (generation, list) WHERE event IN ('MemoriesCleared', 'SubjectErased');

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
        ('wording', 'terms'), ('subject_key', 'key'))
      AND a.attstattarget IS DISTINCT FROM 0
  LOOP
    EXECUTE format('ALTER TABLE ONLY %s ALTER COLUMN %I SET STATISTICS 0', r.sampled, r.name);
  END LOOP;
END $$;

SELECT remembrancer.no_samples_v1();
