-- Which model serves a tenant (D23).

-- name: models
-- All that the tenant has met.
SELECT m.model, m.state, m.since, m.url, m.dimensions, m.error, m.error_at
FROM remembrancer.model m WHERE m.tenant = %(tenant)s

-- name: first
-- A tenant that has met no model yet begins with this one.
INSERT INTO remembrancer.model (tenant, model, state, since, url, dimensions)
VALUES (%(tenant)s, %(model)s, 'serving', %(now)s, %(url)s, %(dimensions)s)
ON CONFLICT DO NOTHING

-- name: moved_to
-- Where the endpoint of a model is by now.
UPDATE remembrancer.model SET url = %(url)s
WHERE tenant = %(tenant)s AND model = %(model)s AND url IS DISTINCT FROM %(url)s

-- name: measured
-- How long the vectors of a model are: known from the first that is kept.
UPDATE remembrancer.model SET dimensions = %(dimensions)s
WHERE tenant = %(tenant)s AND model = %(model)s AND dimensions IS NULL

-- name: dimensions
-- The length of the vectors in the tables, where nobody has noted it.
SELECT vector_dims(m.embedding) FROM remembrancer.memory m
WHERE m.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'memory' AND g.live)
  AND m.model = %(model)s AND m.embedding IS NOT NULL
LIMIT 1
