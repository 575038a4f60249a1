-- The one append path, for any events of any shards; 0003 is the same for the most frequent call, a single event.
-- Several statements, each with a fresh READ COMMITTED snapshot that is taken after the locks are held:
--   1. the heads, in ascending order: an UPDATE is the lock and the positions in one;
--   2. the row of the request, in the shard that its id says: a second one of that id waits for the first and violates
--      request_pkey, and nothing is written;
--   3. the keys that the texts are sealed under: still there, and until the commit nobody destroys them;
--   4. the events, each with the next version of its stream.
-- Events come grouped by head: the first p_counts[1] of them belong to p_heads[1], and so on.
-- A version of -1 takes the next one of its stream; any other must be the next one: a lower one violates
-- event_shard_stream_version_key, a higher one raises RM409. An empty stream begins with 1, or 0 if asked for.
-- Returns positions (shard << 48 | position) and versions of the events, and the moment of recording of each head.
-- Raises RM409 (a stream is not there yet), RM410 (a key is gone), RM500 (a caller that does not know this function).
CREATE FUNCTION remembrancer.append_v1(
    p_now timestamptz, p_heads int2[], p_counts int4[],
    p_home int2, p_tenant text, p_request text, p_verb text, p_fingerprint bytea, p_answer bytea,
    p_streams uuid[], p_versions int8[], p_types text[], p_states bytea[],
    k_shards int2[], k_tenants text[], k_kinds text[], k_subjects text[], k_generations int4[],
    OUT positions int8[], OUT versions int8[], OUT times timestamptz[]
) LANGUAGE plpgsql AS $$
DECLARE
    p int8;
    t timestamptz;
    v int8;
    i int4 := 0;
BEGIN
    positions := '{}';
    versions := '{}';
    times := '{}';
    FOR h IN 1 .. cardinality(p_heads) LOOP
        IF h > 1 AND p_heads[h] <= p_heads[h - 1] THEN
            RAISE EXCEPTION 'heads are locked in ascending order only' USING ERRCODE = 'RM500';
        END IF;
        UPDATE remembrancer.head
            SET position = position + p_counts[h], recorded_at = greatest(recorded_at, p_now)
            WHERE shard = p_heads[h]
            RETURNING position - p_counts[h], recorded_at INTO STRICT p, t;
        times := times || t;
        FOR k IN 1 .. p_counts[h] LOOP
            positions := positions || (p_heads[h]::int8 << 48 | p + k);
        END LOOP;
    END LOOP;
    IF cardinality(positions) <> cardinality(p_streams) THEN
        RAISE EXCEPTION 'the counts do not add up to the events' USING ERRCODE = 'RM500';
    END IF;

    IF p_request IS NOT NULL THEN
        INSERT INTO remembrancer.request (shard, tenant, request_id, verb, fingerprint, positions, answer, stream, recorded_at)
            VALUES (p_home, p_tenant, p_request, p_verb, p_fingerprint, append_v1.positions, p_answer, p_streams[1], p_now);
    END IF;

    FOR k IN 1 .. cardinality(k_shards) LOOP
        PERFORM FROM remembrancer.subject_key s
            WHERE s.shard = k_shards[k] AND s.tenant = k_tenants[k] AND s.kind = k_kinds[k]
              AND s.subject = k_subjects[k] AND s.generation = k_generations[k] AND s.key IS NOT NULL
            FOR SHARE;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'the key of a subject is gone' USING ERRCODE = 'RM410';
        END IF;
    END LOOP;

    FOR h IN 1 .. cardinality(p_heads) LOOP
        FOR k IN 1 .. p_counts[h] LOOP
            i := i + 1;
            v := p_versions[i];
            IF v = -1 THEN
                SELECT coalesce(max(e.version), 0) + 1 INTO v
                    FROM remembrancer.event e WHERE e.shard = p_heads[h] AND e.stream = p_streams[i];
            ELSIF v > 1 THEN
                PERFORM FROM remembrancer.event e
                    WHERE e.shard = p_heads[h] AND e.stream = p_streams[i] AND e.version = v - 1;
                IF NOT FOUND THEN
                    RAISE EXCEPTION 'stream % has no version % yet', p_streams[i], v - 1 USING ERRCODE = 'RM409';
                END IF;
            END IF;
            INSERT INTO remembrancer.event (shard, position, stream, version, type, state, recorded_at)
                VALUES (p_heads[h], positions[i] & ((1::int8 << 48) - 1), p_streams[i], v, p_types[i], p_states[i], times[h]);
            versions := versions || v;
        END LOOP;
    END LOOP;
END $$;
