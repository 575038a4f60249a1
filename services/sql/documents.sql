-- Documents: what replies look through, and what people are shown.

-- name: known
-- Those of these documents that have rows, whether they are still there or gone.
SELECT d.document
FROM unnest(%(shards)s::int2[], %(documents)s::uuid[]) AS p (shard, document)
JOIN remembrancer.document d
  ON d.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'documents' AND g.live)
 AND d.shard = p.shard AND d.document = p.document

-- name: search
-- The best passages of the documents in play for a message, by the one score (`score.sql`); neighbours raise nothing.
-- `o_*` are passages of documents that have no rows yet.
WITH live AS (
  SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'documents' AND g.live
),
measured AS (
  SELECT d.no AS list_no, p.n AS id, p.terms, to_timestamp(p.n) AS created_at,
         -(p.embedding <#> %(message)s::halfvec) AS similarity, -(p.embedding <#> %(mean)s::halfvec) AS common
  FROM unnest(%(shards)s::int2[], %(documents)s::uuid[]) WITH ORDINALITY AS d (shard, document, no)
  JOIN remembrancer.passage p
    ON p.generation = (SELECT generation FROM live) AND p.shard = d.shard AND p.document = d.document
  WHERE p.model = %(model)s AND d.document <> ALL (%(skip)s::uuid[])
  UNION ALL
  SELECT o.no, o.n, o.terms::int4[], to_timestamp(o.n), -(e.vector <#> %(message)s::halfvec),
         -(e.vector <#> %(mean)s::halfvec)
  FROM unnest(%(o_no)s::int8[], %(o_n)s::int4[], %(o_shard)s::int2[], %(o_kind)s::text[], %(o_subject)s::text[],
              %(o_digest)s::bytea[], %(o_terms)s::text[]) AS o (no, n, shard, kind, subject, digest, terms)
  JOIN remembrancer.embedding e
    ON e.shard = o.shard AND e.tenant = %(tenant)s AND e.kind = o.kind AND e.subject = o.subject AND e.digest = o.digest
   AND e.model = %(model)s AND e.vector IS NOT NULL
),
-- include: score.steps
SELECT s.list_no, s.id, s.score, s.similarity, s.words
FROM scored s
WHERE s.score >= %(threshold)s::float8
ORDER BY s.score DESC, s.list_no, s.id
LIMIT %(candidates)s

-- name: texts
-- Passages by document and number.
SELECT p.document, p.n, p.page, p.heading, p.text
FROM unnest(%(shards)s::int2[], %(documents)s::uuid[], %(ns)s::int4[]) AS w (shard, document, n)
JOIN remembrancer.passage p
  ON p.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'documents' AND g.live)
 AND p.shard = w.shard AND p.document = w.document AND p.n = w.n

-- name: passages
-- A page of a document's passages, in their order.
SELECT p.n, p.page, p.heading, p.text
FROM remembrancer.passage p
WHERE p.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'documents' AND g.live)
  AND p.shard = %(shard)s AND p.document = %(document)s AND p.n > %(after)s
ORDER BY p.n LIMIT %(limit)s

-- name: searchable
-- How many passages of each document a search can find with this model.
SELECT p.document, count(*)
FROM unnest(%(shards)s::int2[], %(documents)s::uuid[]) AS w (shard, document)
JOIN remembrancer.passage p
  ON p.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'documents' AND g.live)
 AND p.shard = w.shard AND p.document = w.document AND p.model = %(model)s
GROUP BY p.document

-- name: owners
-- The shelves of a tenant that have something on them.
SELECT DISTINCT d.owner_kind, d.owner
FROM remembrancer.document d
WHERE d.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'documents' AND g.live)
  AND d.tenant = %(tenant)s AND d.gone IS NULL

-- name: owner_of
-- Whose a document is or was, and who added it.
SELECT d.owner_kind, d.owner, d.added_by
FROM remembrancer.document d
WHERE d.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'documents' AND g.live)
  AND d.shard = %(shard)s AND d.document = %(document)s AND d.tenant = %(tenant)s

-- name: kept
-- Which of these texts have a vector that is kept.
SELECT e.digest FROM remembrancer.embedding e
WHERE e.shard = %(shard)s AND e.tenant = %(tenant)s AND e.kind = %(kind)s AND e.subject = %(subject)s
  AND e.digest = ANY (%(digests)s::bytea[]) AND e.model = %(model)s AND e.vector IS NOT NULL

-- name: without_vector
-- Passages of a tenant that have no vector of this model, with whom it will be kept under.
SELECT p.shard, p.document, p.n, d.owner_kind, d.owner, d.added_by, p.text
FROM remembrancer.passage p
JOIN remembrancer.document d ON d.generation = p.generation AND d.shard = p.shard AND d.document = p.document
WHERE p.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'documents' AND g.live)
  AND d.tenant = %(tenant)s AND d.gone IS NULL AND (p.embedding IS NULL OR p.model < %(model)s OR p.model > %(model)s)
  AND sha256(convert_to(p.text, 'UTF8')) <> ALL (%(refused)s::bytea[])
LIMIT %(limit)s

-- name: keep_if_there
-- The vector of a passage that was looked up a while ago: not kept if it is gone by now, or was erased (D24).
INSERT INTO remembrancer.embedding (shard, tenant, kind, subject, digest, model, vector)
SELECT %(shard)s, %(tenant)s, %(kind)s, %(subject)s, %(digest)s, %(model)s, %(vector)s
FROM remembrancer.passage p
WHERE p.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'documents' AND g.live)
  AND p.shard = %(at_shard)s AND p.document = %(document)s AND p.n = %(n)s
FOR SHARE
ON CONFLICT DO NOTHING

-- name: adopt
-- Give a passage the vector that is kept for its text.
UPDATE remembrancer.passage p SET model = e.model, embedding = e.vector
FROM remembrancer.embedding e
WHERE p.generation = (SELECT g.generation FROM remembrancer.generation g WHERE g.projection = 'documents' AND g.live)
  AND p.shard = %(at_shard)s AND p.document = %(document)s AND p.n = %(n)s
  AND e.shard = %(shard)s AND e.tenant = %(tenant)s AND e.kind = %(kind)s AND e.subject = %(subject)s
  AND e.digest = %(digest)s AND e.model = %(model)s AND e.vector IS NOT NULL
