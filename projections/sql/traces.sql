-- What `why` finds a memory's life by: see `projections/traces.py`.

-- name: candidates
-- The candidates of a batch's searches, in one statement: there are ten of them a reply.
INSERT INTO remembrancer.candidate (generation, shard, position, memory, day, rank, score, similarity, words, threshold,
                                    matched, recalled)
SELECT c.*
FROM unnest(%(generation)s::int2[], %(shard)s::int2[], %(position)s::int8[], %(memory)s::uuid[], %(day)s::date[],
            %(rank)s::int2[], %(score)s::float8[], %(similarity)s::float8[], %(words)s::float8[], %(threshold)s::float8[],
            %(matched)s::bool[], %(recalled)s::bool[]) c
ON CONFLICT (generation, shard, position, memory) DO NOTHING

-- name: wording
INSERT INTO remembrancer.wording (generation, shard, list, memory, version, tenant, persona, terms)
VALUES (%(generation)s, %(shard)s, %(list)s, %(memory)s, %(version)s, %(tenant)s, %(persona)s, %(terms)s::int4[])
ON CONFLICT (generation, shard, list, memory, version) DO NOTHING

-- name: erase
DELETE FROM remembrancer.wording WHERE generation = %(generation)s AND shard = %(shard)s AND list = %(list)s
