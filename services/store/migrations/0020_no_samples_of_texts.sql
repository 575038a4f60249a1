-- The planner's statistics are copies of what stands in rows, and outlive them: neither texts nor vectors nor keys are
-- sampled (D24). No statement is planned by them. A new partition does not take this over, so whoever makes one calls it
-- again before rows come in.
CREATE FUNCTION remembrancer.no_samples_v1() RETURNS void LANGUAGE plpgsql AS $$
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
        ('subject_key', 'key'))
      AND a.attstattarget IS DISTINCT FROM 0
  LOOP
    EXECUTE format('ALTER TABLE ONLY %s ALTER COLUMN %I SET STATISTICS 0', r.sampled, r.name);
  END LOOP;
END $$;

SELECT remembrancer.no_samples_v1();
