-- What the documents projection writes.

-- name: add
-- The same again changes nothing, whether the document is still there or gone.
INSERT INTO remembrancer.document (generation, shard, document, tenant, owner_kind, owner, added_by, name, media_type, bytes,
                                   characters, pages, passages, channels, added_at, gone)
VALUES (%(generation)s, %(shard)s, %(document)s, %(tenant)s, %(owner_kind)s, %(owner)s, %(added_by)s, %(name)s,
        %(media_type)s, %(bytes)s, %(characters)s, %(pages)s, %(passages)s, %(channels)s, %(added_at)s, %(gone)s)
ON CONFLICT DO NOTHING

-- name: add_passage
-- A passage, and the vector that is kept for this text, if there is one yet; nothing of a document that is gone.
INSERT INTO remembrancer.passage (generation, shard, document, n, tenant, added_by, page, heading, text, terms, model,
                                  embedding)
SELECT %(generation)s, %(shard)s, %(document)s, %(n)s, %(tenant)s, %(added_by)s, %(page)s, %(heading)s, %(text)s, %(terms)s,
       e.model, e.vector
FROM (VALUES (1)) AS one (row)
LEFT JOIN LATERAL (
  SELECT e.model, e.vector FROM remembrancer.embedding e
  WHERE e.shard = %(keeper_shard)s AND e.tenant = %(tenant)s AND e.kind = %(keeper_kind)s AND e.subject = %(keeper)s
    AND e.digest = %(digest)s AND e.vector IS NOT NULL
    AND e.model = (SELECT s.model FROM remembrancer.model s WHERE s.tenant = %(tenant)s AND s.state = 'serving')
) e ON true
WHERE NOT EXISTS (
  SELECT FROM remembrancer.document d
  WHERE d.generation = %(generation)s AND d.shard = %(shard)s AND d.document = %(document)s AND d.gone IS NOT NULL
)
ON CONFLICT DO NOTHING

-- name: remove
UPDATE remembrancer.document SET gone = coalesce(gone, 'removed'), name = ''
WHERE generation = %(generation)s AND shard = %(shard)s AND document = %(document)s

-- name: remove_passages
DELETE FROM remembrancer.passage
WHERE generation = %(generation)s AND shard = %(shard)s AND document = %(document)s
