-- append_v1 for one event under one key or none: the same four steps without arrays,
-- which cost a third of the call (`docs/decisions/shard-heads.md`).
CREATE FUNCTION remembrancer.append_one_v1(
    p_now timestamptz, p_shard int2, p_home int2, p_tenant text, p_request text, p_verb text, p_fingerprint bytea, p_answer bytea,
    p_stream uuid, p_version int8, p_type text, p_state bytea,
    k_shard int2, k_tenant text, k_kind text, k_subject text, k_generation int4
) RETURNS bytea LANGUAGE plpgsql AS $$
DECLARE
    pos int8;
    ver int8 := p_version;
    at  timestamptz;
BEGIN
    UPDATE remembrancer.head
        SET position = position + 1, recorded_at = greatest(recorded_at, p_now)
        WHERE shard = p_shard
        RETURNING p_shard::int8 << 48 | position, recorded_at INTO STRICT pos, at;

    IF p_request IS NOT NULL THEN
        INSERT INTO remembrancer.request (shard, tenant, request_id, verb, fingerprint, positions, answer, stream, recorded_at)
            VALUES (p_home, p_tenant, p_request, p_verb, p_fingerprint, ARRAY[pos], p_answer, p_stream, p_now);
    END IF;

    IF k_shard IS NOT NULL THEN
        PERFORM FROM remembrancer.subject_key s
            WHERE s.shard = k_shard AND s.tenant = k_tenant AND s.kind = k_kind AND s.subject = k_subject
              AND s.generation = k_generation AND s.key IS NOT NULL
            FOR SHARE;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'the key of a subject is gone' USING ERRCODE = 'RM410';
        END IF;
    END IF;

    IF ver = -1 THEN
        SELECT coalesce(max(e.version), 0) + 1 INTO ver
            FROM remembrancer.event e WHERE e.shard = p_shard AND e.stream = p_stream;
    ELSIF ver > 1 THEN
        PERFORM FROM remembrancer.event e WHERE e.shard = p_shard AND e.stream = p_stream AND e.version = ver - 1;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'stream % has no version % yet', p_stream, ver - 1 USING ERRCODE = 'RM409';
        END IF;
    END IF;
    INSERT INTO remembrancer.event (shard, position, stream, version, type, state, recorded_at)
        VALUES (p_shard, pos & ((1::int8 << 48) - 1), p_stream, ver, p_type, p_state, at);
    RETURN int8send(pos) || int8send(ver) || timestamptz_send(at);
END $$;
