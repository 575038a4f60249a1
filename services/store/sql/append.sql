SELECT remembrancer.append_v1(
    %s::timestamptz, %s::int2[], %s::int4[],
    %s::int2, %s::text, %s::text, %s::text, %s::bytea, %s::bytea,
    %s::int2[], %s::uuid[], %s::int8[], %s::text[], %s::bytea[],
    %s::int2[], %s::text[], %s::text[], %s::text[], %s::int4[]
)
