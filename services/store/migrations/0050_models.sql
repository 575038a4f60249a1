-- Which embedding models a tenant has met: one serves, one may be about to take over, the rest it has left (D23).
-- Replies search with the one that serves, whatever the settings of their process say. No key of an endpoint is kept.
CREATE TABLE remembrancer.model (
    tenant      text NOT NULL,
    model       text NOT NULL,
    state       text NOT NULL CHECK (state IN ('serving', 'coming', 'left')),
    since       timestamptz NOT NULL,
    url         text,
    dimensions  int4,
    mover       uuid,
    mover_until timestamptz,
    error       text,
    error_at    timestamptz,
    PRIMARY KEY (tenant, model)
);
CREATE UNIQUE INDEX model_serving ON remembrancer.model (tenant) WHERE state = 'serving';
CREATE UNIQUE INDEX model_coming ON remembrancer.model (tenant) WHERE state = 'coming';

-- What served until now: the model that most memories of a tenant have vectors of.
INSERT INTO remembrancer.model (tenant, model, state, since, dimensions)
SELECT DISTINCT ON (tenant) tenant, model, 'serving', now(), dimensions
FROM (
  SELECT l.tenant, m.model, count(*) AS memories, max(vector_dims(m.embedding)) AS dimensions
  FROM remembrancer.memory m
  JOIN remembrancer.list l ON l.generation = m.generation AND l.shard = m.shard AND l.list = m.list
  WHERE m.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'memory' AND g.live)
    AND m.embedding IS NOT NULL
  GROUP BY l.tenant, m.model
) counted
ORDER BY tenant, memories DESC, model;

-- A row without a vector: the model refuses this text, so that a change of the model does not wait for it.
ALTER TABLE remembrancer.embedding ALTER COLUMN vector DROP NOT NULL;

-- The vector that is kept for a text: what a search takes for a row that has none of the model that serves. So all are
-- found from the moment of a switch on, and the rows may follow at leisure.
CREATE FUNCTION remembrancer.kept_vector_v1(
  p_shard int2, p_tenant text, p_kind text, p_subject text, p_text text, p_model text) RETURNS halfvec
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT e.vector FROM remembrancer.embedding e
          WHERE e.shard = p_shard AND e.tenant = p_tenant AND e.kind = p_kind AND e.subject = p_subject
            AND e.digest = sha256(convert_to(p_text, 'UTF8')) AND e.model = p_model);
END $$;

DROP INDEX remembrancer.archive_by_tenant;
CREATE INDEX archive_by_tenant ON remembrancer.archive (tenant, generation, model);

-- As before, and the texts whose rows have yet to follow a switch, which are few or soon will be: scored one by one.
CREATE FUNCTION remembrancer.search_archive_v2(p_tenant text, p_model text, p_dimensions int4, p_vector halfvec, p_limit int4)
RETURNS TABLE (shard int2, list uuid, memory uuid, version int8, persona text, scope text, subject text, text text,
               recorded_at timestamptz, until_now bool, similarity float8)
LANGUAGE plpgsql STABLE AS $$
DECLARE
  live int2 := (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'archive' AND g.live);
BEGIN
  RETURN QUERY SELECT * FROM (
    SELECT * FROM remembrancer.search_archive_v1(p_tenant, p_model, p_dimensions, p_vector, p_limit)
    UNION ALL
    SELECT k.shard, k.list, k.memory, k.version, k.persona, k.scope, k.subject, k.text, k.recorded_at, k.until_now,
           1 - (k.vector <=> p_vector)
    FROM (
      SELECT a.*, remembrancer.kept_vector_v1(a.shard, a.tenant, CASE WHEN a.scope = 'server' THEN 'server' ELSE 'user' END,
                                              a.subject, a.text, p_model) AS vector
      FROM remembrancer.archive a
      WHERE a.generation = live AND a.tenant = p_tenant
        AND (a.model < p_model OR a.model > p_model)
      OFFSET 0
    ) k
    WHERE k.vector IS NOT NULL
  ) found
  ORDER BY found.similarity DESC
  LIMIT p_limit;
END $$;
