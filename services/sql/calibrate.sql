-- Lists to measure with, seen by one transaction only and gone with it.

-- name: make
CREATE TEMPORARY TABLE searched (
  list_no int8, id uuid, embedding halfvec, terms int4[], created_at timestamptz
) ON COMMIT DROP

-- name: fill
INSERT INTO pg_temp.searched (list_no, id, embedding, terms, created_at)
VALUES (%(list_no)s, %(id)s, %(embedding)s, %(terms)s, %(created_at)s)
