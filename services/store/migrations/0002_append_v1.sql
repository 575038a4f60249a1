-- The one append path. Several statements, each with a fresh READ COMMITTED snapshot taken after the locks are held:
--   1. take the heads, in ascending order (an UPDATE is the lock and the positions in one);
--   2. the request row: a request id that came before gets its first answer, and nothing is written;
--   3. the keys that the texts were encrypted under are still there, and stay until the commit;
--   4. the events, each with the next version of its stream.
-- Events come grouped by head: the first counts[1] of them belong to heads[1], and so on.
-- An expected version of -1 takes whatever is next; any other must be exactly the next one (0 or 1 in an empty stream).
-- Raises RM409 (version conflict), RM410 (a key is gone), RM422 (request id used again with another body).
CREATE FUNCTION remembrancer.append_v1(
    p_now timestamptz, p_heads int2[], p_counts int4[],
    p_home int2, p_tenant text, p_request text, p_verb text, p_print bytea, p_answer bytea, p_about uuid,
    p_streams uuid[], p_versions int8[], p_types text[], p_states bytea[],
    k_shards int2[], k_tenants text[], k_kinds text[], k_subjects text[], k_generations int4[],
    OUT fresh bool, OUT positions int8[], OUT versions int8[], OUT times timestamptz[], OUT answer bytea
) LANGUAGE plpgsql AS $$
DECLARE
    base  int8[] := '{}';
    at    timestamptz[] := '{}';
    pos   int8;
    ts    timestamptz;
    ver   int8;
    i     int4 := 0;
    old   remembrancer.request;
BEGIN
    positions := '{}';
    versions := '{}';
    times := '{}';
    FOR h IN 1 .. cardinality(p_heads) LOOP
        IF h > 1 AND p_heads[h] <= p_heads[h - 1] THEN
            RAISE EXCEPTION 'heads are locked in ascending order only' USING ERRCODE = 'RM500';
        END IF;
        UPDATE remembrancer.head SET position = position + p_counts[h], recorded_at = greatest(recorded_at, p_now)
            WHERE shard = p_heads[h] RETURNING head.position - p_counts[h], head.recorded_at INTO STRICT pos, ts;
        base := base || pos;
        at := at || ts;
        FOR k IN 1 .. p_counts[h] LOOP
            positions := positions || (p_heads[h]::int8 << 48 | pos + k);
            times := times || ts;
        END LOOP;
    END LOOP;
    IF cardinality(positions) <> cardinality(p_streams) THEN
        RAISE EXCEPTION 'counts do not add up to the events' USING ERRCODE = 'RM500';
    END IF;

    IF p_request IS NOT NULL THEN
        INSERT INTO remembrancer.request VALUES
            (p_home, p_tenant, p_request, p_verb, p_print, positions, p_answer, p_about, greatest(at[1], p_now))
            ON CONFLICT DO NOTHING;
        IF NOT FOUND THEN
            FOR h IN 1 .. cardinality(p_heads) LOOP
                UPDATE remembrancer.head SET position = base[h] WHERE shard = p_heads[h];
            END LOOP;
            SELECT * INTO STRICT old FROM remembrancer.request r
                WHERE r.shard = p_home AND r.tenant = p_tenant AND r.request_id = p_request;
            IF old.verb <> p_verb OR old.fingerprint <> p_print THEN
                RAISE EXCEPTION 'request_id used again with another body' USING ERRCODE = 'RM422';
            END IF;
            fresh := false;
            positions := old.positions;
            answer := old.answer;
            SELECT coalesce(array_agg(e.version ORDER BY n), '{}'), coalesce(array_agg(e.recorded_at ORDER BY n), '{}')
                INTO versions, times
                FROM unnest(old.positions) WITH ORDINALITY AS p(packed, n)
                JOIN remembrancer.event e ON e.shard = (packed >> 48)::int2 AND e.position = packed & ((1::int8 << 48) - 1);
            RETURN;
        END IF;
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
            INSERT INTO remembrancer.event
                SELECT p_heads[h], base[h] + k, p_streams[i],
                       coalesce(max(e.version) + 1, CASE p_versions[i] WHEN 0 THEN 0 ELSE 1 END),
                       p_types[i], p_states[i], at[h]
                    FROM remembrancer.event e WHERE e.shard = p_heads[h] AND e.stream = p_streams[i]
                RETURNING event.version INTO ver;
            IF ver <> p_versions[i] AND p_versions[i] <> -1 THEN
                RAISE EXCEPTION 'stream % is at version %, expected %', p_streams[i], ver - 1, p_versions[i] - 1
                    USING ERRCODE = 'RM409';
            END IF;
            versions := versions || ver;
        END LOOP;
    END LOOP;
    fresh := true;
END $$;
