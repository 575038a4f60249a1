-- The one append path, for any events of any shards; 0003 is the same for the most frequent call, a single event.
-- Several statements, each with a fresh READ COMMITTED snapshot that is taken after the locks are held:
--   1. the heads, in ascending order: an UPDATE is the lock and the positions in one;
--   2. the row of the request, in the shard that its id says: a second one of that id waits for the first and violates
--      request_pkey, and nothing is written;
--   3. the keys that the texts are sealed under: still there, and until the commit nobody destroys them;
--   4. the events, each with the next version of its stream.
-- p_at says of each event which of the heads it belongs to, p_counts of each head how many events it gets.
-- A version of -1 takes the next one of its stream; any other must be the next one: a lower one violates
-- event_shard_stream_version_key, a higher one raises RM409. An empty stream begins with 1, or 0 if asked for.
-- Returns position (shard << 48 | position), version and moment (µs since 2000) of each event, as one bytea of int8 in
-- network order: a row of arrays, or of three columns, costs 14 µs more to send and to read.
-- Raises RM409 (a stream is not there yet), RM410 (a key is gone), RM500 (a caller that does not know this function).
CREATE FUNCTION remembrancer.append_v1(
    p_now timestamptz, p_heads int2[], p_counts int4[],
    p_home int2, p_tenant text, p_request text, p_verb text, p_fingerprint bytea, p_answer bytea,
    p_at int2[], p_streams uuid[], p_versions int8[], p_types text[], p_states bytea[],
    k_shards int2[], k_tenants text[], k_kinds text[], k_subjects text[], k_generations int4[]
) RETURNS bytea LANGUAGE plpgsql AS $$
DECLARE
    last int8[] := '{}';
    at   timestamptz[] := '{}';
    positions int8[] := '{}';
    done bytea := '';
    p    int8;
    t    timestamptz;
    v    int8;
    h    int2;
BEGIN
    FOR i IN 1 .. cardinality(p_heads) LOOP
        IF i > 1 AND p_heads[i] <= p_heads[i - 1] THEN
            RAISE EXCEPTION 'heads are locked in ascending order only' USING ERRCODE = 'RM500';
        END IF;
        UPDATE remembrancer.head
            SET position = position + p_counts[i], recorded_at = greatest(recorded_at, p_now)
            WHERE shard = p_heads[i]
            RETURNING position - p_counts[i], recorded_at INTO STRICT p, t;
        last := last || p;
        at := at || t;
    END LOOP;
    FOR i IN 1 .. cardinality(p_at) LOOP
        h := p_at[i];
        p_counts[h] := p_counts[h] - 1;
        last[h] := last[h] + 1;
        positions := positions || (p_heads[h]::int8 << 48 | last[h]);
    END LOOP;
    IF 0 <> ANY (p_counts) THEN
        RAISE EXCEPTION 'the counts do not add up to the events' USING ERRCODE = 'RM500';
    END IF;

    IF p_request IS NOT NULL THEN
        INSERT INTO remembrancer.request (shard, tenant, request_id, verb, fingerprint, positions, answer, stream, recorded_at)
            VALUES (p_home, p_tenant, p_request, p_verb, p_fingerprint, positions, p_answer, p_streams[1], p_now);
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

    FOR i IN 1 .. cardinality(p_at) LOOP
        h := p_heads[p_at[i]];
        v := p_versions[i];
        IF v = -1 THEN
            SELECT coalesce(max(e.version), 0) + 1 INTO v
                FROM remembrancer.event e WHERE e.shard = h AND e.stream = p_streams[i];
        ELSIF v > 1 THEN
            PERFORM FROM remembrancer.event e WHERE e.shard = h AND e.stream = p_streams[i] AND e.version = v - 1;
            IF NOT FOUND THEN
                RAISE EXCEPTION 'stream % has no version % yet', p_streams[i], v - 1 USING ERRCODE = 'RM409';
            END IF;
        END IF;
        INSERT INTO remembrancer.event (shard, position, stream, version, type, state, recorded_at)
            VALUES (h, positions[i] & ((1::int8 << 48) - 1), p_streams[i], v, p_types[i], p_states[i], at[p_at[i]]);
        done := done || int8send(positions[i]) || int8send(v) || timestamptz_send(at[p_at[i]]);
    END LOOP;
    RETURN done;
END $$;
