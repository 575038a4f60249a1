-- One process at a time, until the end of its transaction; the number is any constant ("remembra").
SELECT pg_advisory_xact_lock(8243118309930037857);

CREATE SCHEMA IF NOT EXISTS remembrancer;

CREATE TABLE IF NOT EXISTS remembrancer.migration (
    name       text PRIMARY KEY,
    applied_at timestamptz NOT NULL DEFAULT now()
);
