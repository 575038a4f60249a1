-- A read model made anew beside the live one. Its tables stand alone, without an index, while shards are poured in;
-- attaching them to their parents makes the indexes in one go and locks no reader out.

-- Which version of its projection's code a generation was built by.
ALTER TABLE remembrancer.generation ADD COLUMN version int4 NOT NULL DEFAULT 1;
-- What `history` writes since migration 0030 is missing of events that it had read before.
UPDATE remembrancer.generation SET version = 2
WHERE projection = 'history' AND NOT EXISTS (SELECT FROM remembrancer.event);

-- One row a rebuild; at most one is under way. Its number is the generation of all its projections and is never given again.
CREATE TABLE remembrancer.rebuild (
    generation  int2 PRIMARY KEY,
    projections text[] NOT NULL,
    state       text NOT NULL CHECK (state IN ('building', 'catching up', 'switched', 'cancelled')),
    started_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    changed_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE UNIQUE INDEX rebuild_under_way ON remembrancer.rebuild ((true)) WHERE state IN ('building', 'catching up');

-- What is to be poured: whoever holds the row's lock does it, in one transaction. A process that is killed lets it go.
CREATE TABLE remembrancer.rebuild_shard (
    generation int2 NOT NULL,
    shard      int2 NOT NULL,
    done       bool NOT NULL,
    events     int8 NOT NULL DEFAULT 0,
    PRIMARY KEY (generation, shard)
);

-- What is to be attached, and whose table it is.
CREATE TABLE remembrancer.rebuild_table (
    generation int2 NOT NULL,
    name       text NOT NULL,
    projection text NOT NULL,
    attached   bool NOT NULL DEFAULT false,
    PRIMARY KEY (generation, name)
);

-- A table for one more generation: as its parent, with the storage settings of its youngest sister, and no samples of
-- texts (0020).
CREATE FUNCTION remembrancer.new_generation_v1(p_table text, p_generation int2) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  parent   regclass := format('remembrancer.%I', p_table)::regclass;
  child    text := p_table || '_' || p_generation;
  settings text;
  r        record;
BEGIN
  SELECT 'WITH (' || array_to_string(c.reloptions, ', ') || ')' INTO settings
    FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = parent AND c.reloptions IS NOT NULL ORDER BY c.oid DESC LIMIT 1;
  EXECUTE format('CREATE TABLE remembrancer.%I (LIKE %s INCLUDING DEFAULTS INCLUDING STORAGE,
                  CONSTRAINT %I CHECK (generation = %s)) %s', child, parent, child || '_only', p_generation, settings);
  FOR r IN SELECT attname FROM pg_attribute WHERE attrelid = parent AND attnum > 0 AND attstattarget = 0 LOOP
    EXECUTE format('ALTER TABLE remembrancer.%I ALTER COLUMN %I SET STATISTICS 0', child, r.attname);
  END LOOP;
END $$;

-- Makes it a partition of its parent, with all the parent's indexes. Locks the parent against other such changes only.
CREATE FUNCTION remembrancer.attach_generation_v1(p_table text, p_generation int2) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  child text := p_table || '_' || p_generation;
BEGIN
  EXECUTE format('ALTER TABLE remembrancer.%I ATTACH PARTITION remembrancer.%I FOR VALUES IN (%s)', p_table, child, p_generation);
  EXECUTE format('ALTER TABLE remembrancer.%I DROP CONSTRAINT %I', child, child || '_only');
END $$;

-- Begins a rebuild: its row, its generations as copies of the live ones' settings, its checkpoints, its tables. NULL if
-- one is under way. The lock keeps out an erasure that has begun and would not see it (build_anew_v1).
CREATE FUNCTION remembrancer.begin_rebuild_v1(p_projections text[], p_versions int4[], p_tables text[], p_owners text[])
RETURNS int2 LANGUAGE plpgsql AS $$
DECLARE
  n int2;
  t text;
BEGIN
  LOCK TABLE remembrancer.rebuild IN EXCLUSIVE MODE;
  PERFORM FROM remembrancer.rebuild WHERE state IN ('building', 'catching up');
  IF FOUND THEN
    RETURN NULL;
  END IF;
  SELECT 1 + greatest((SELECT max(g.generation) FROM remembrancer.generation g),
                      (SELECT max(b.generation) FROM remembrancer.rebuild b)) INTO n;
  INSERT INTO remembrancer.rebuild (generation, projections, state) VALUES (n, p_projections, 'building');
  INSERT INTO remembrancer.generation
    SELECT (jsonb_populate_record(g, jsonb_build_object('generation', n, 'live', false, 'version', p.version))).*
    FROM unnest(p_projections, p_versions) AS p (name, version)
    JOIN remembrancer.generation g ON g.projection = p.name AND g.live;
  INSERT INTO remembrancer.checkpoint (projection, generation, shard)
    SELECT p, n, h.shard FROM unnest(p_projections) p, remembrancer.head h;
  INSERT INTO remembrancer.rebuild_shard (generation, shard, done) SELECT n, h.shard, h.position = 0 FROM remembrancer.head h;
  INSERT INTO remembrancer.rebuild_table (generation, name, projection) SELECT n, x.* FROM unnest(p_tables, p_owners) x;
  FOREACH t IN ARRAY p_tables LOOP
    PERFORM remembrancer.new_generation_v1(t, n);
  END LOOP;
  RETURN n;
END $$;

-- An erasure calls it first (D24): what a rebuild has poured of this shard goes, and is poured again from events whose
-- texts have lost their keys. Waits for whoever pours it now, and holds the shard until the caller's transaction ends.
-- Once all tables are attached it does nothing: then the erasure's own statements reach them.
CREATE FUNCTION remembrancer.build_anew_v1(p_shard int2) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  n int2;
  t text;
BEGIN
  LOCK TABLE remembrancer.rebuild IN ROW SHARE MODE;
  FOR n IN SELECT b.generation FROM remembrancer.rebuild b WHERE b.state = 'building' FOR SHARE LOOP
    UPDATE remembrancer.rebuild_shard SET done = false, events = 0 WHERE generation = n AND shard = p_shard;
    FOR t IN SELECT b.name FROM remembrancer.rebuild_table b WHERE b.generation = n LOOP
      EXECUTE format('DELETE FROM remembrancer.%I WHERE shard = $1', t || '_' || n) USING p_shard;
    END LOOP;
    UPDATE remembrancer.checkpoint SET position = 0
      WHERE generation = n AND shard = p_shard
        AND projection IN (SELECT b.projection FROM remembrancer.rebuild_table b WHERE b.generation = n);
  END LOOP;
END $$;

-- First step to take away a generation that is not live: whoever still projects it is fenced from now on.
CREATE FUNCTION remembrancer.retire_generation_v1(p_projection text, p_generation int2) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF (SELECT g.live FROM remembrancer.generation g WHERE g.projection = p_projection AND g.generation = p_generation) THEN
    RAISE EXCEPTION 'generation % of % is live', p_generation, p_projection USING ERRCODE = 'RM500';
  END IF;
  DELETE FROM remembrancer.checkpoint c WHERE c.projection = p_projection AND c.generation = p_generation;
  DELETE FROM remembrancer.parked x WHERE x.projection = p_projection AND x.generation = p_generation;
END $$;

-- Then its tables, each in a transaction of its own. Waits only a moment for readers: all that come after wait behind it.
CREATE FUNCTION remembrancer.drop_table_v1(p_table text, p_generation int2) RETURNS void
LANGUAGE plpgsql SET lock_timeout = '300ms' AS $$
BEGIN
  EXECUTE format('DROP TABLE IF EXISTS remembrancer.%I', p_table || '_' || p_generation);
END $$;

-- Then its row, and what was known of its building.
CREATE FUNCTION remembrancer.forget_generation_v1(p_projection text, p_generation int2) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM remembrancer.generation g WHERE g.projection = p_projection AND g.generation = p_generation AND NOT g.live;
  DELETE FROM remembrancer.rebuild_table t WHERE t.projection = p_projection AND t.generation = p_generation;
END $$;

-- Rows of one shard in two generations: how many there are, how many are not the same, and some of these in pairs.
-- A vector is no matter: it is looked up, not folded.
CREATE FUNCTION remembrancer.compare_generations_v1(p_table text, p_shard int2, p_old int2, p_new int2, p_sample int4)
RETURNS TABLE (before int8, after int8, different int8, sample jsonb) LANGUAGE plpgsql STABLE AS $$
DECLARE
  parent  regclass := format('remembrancer.%I', p_table)::regclass;
  columns text;
  no_keys text[];
BEGIN
  SELECT string_agg(format('t.%I', a.attname), ', ' ORDER BY a.attnum),
         array_agg(a.attname::text) FILTER (WHERE a.attnum <> ALL (i.indkey::int2[]))
    INTO columns, no_keys
    FROM pg_attribute a JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary
    WHERE a.attrelid = parent AND a.attnum > 0 AND NOT a.attisdropped
      AND a.attname NOT IN ('generation', 'model', 'embedding');
  RETURN QUERY EXECUTE format($q$
    WITH old AS MATERIALIZED (
      SELECT to_jsonb(x) AS line FROM (SELECT %1$s FROM %2$s t WHERE t.generation = $1 AND t.shard = $3) x
    ), new AS MATERIALIZED (
      SELECT to_jsonb(x) AS line FROM (SELECT %1$s FROM %2$s t WHERE t.generation = $2 AND t.shard = $3) x
    ), pairs AS MATERIALIZED (
      SELECT g.line AS before, c.line AS after
      FROM (SELECT line FROM old EXCEPT SELECT line FROM new) g
      FULL JOIN (SELECT line FROM new EXCEPT SELECT line FROM old) c ON g.line - $4 = c.line - $4
    )
    SELECT (SELECT count(*) FROM old), (SELECT count(*) FROM new), (SELECT count(*) FROM pairs),
           (SELECT coalesce(jsonb_agg(to_jsonb(p)), '[]') FROM (SELECT * FROM pairs LIMIT $5) p)$q$, columns, parent)
  USING p_old, p_new, p_shard, no_keys, p_sample;
END $$;
