"""The statements of the event store, one a file, loaded once."""

from __future__ import annotations

from importlib.resources import files


def _statement(name: str) -> bytes:
    return (files(__package__) / f"{name}.sql").read_text(encoding="utf-8").encode()


APPEND = _statement("append")
APPEND_ONE = _statement("append_one")
APPLIED_MIGRATIONS = _statement("applied_migrations")
BEGIN_MIGRATION = _statement("begin_migration")
CURRENT_KEY = _statement("current_key")
DESTROY_KEYS = _statement("destroy_keys")
FIND_REQUEST = _statement("find_request")
HAS_MIGRATIONS = _statement("has_migrations")
HEAD_POSITION = _statement("head_position")
HEADS = _statement("heads")
INSERT_KEY = _statement("insert_key")
INSERT_TRACKING = _statement("insert_tracking")
LAST_MOMENTS = _statement("last_moments")
LOAD = _statement("load")
READ_KEYS = _statement("read_keys")
READ_SHARDS = _statement("read_shards")
READ_SNAPSHOTS = _statement("read_snapshots")
READ_STREAMS = _statement("read_streams")
RECORD_MIGRATION = _statement("record_migration")
SELECT_EVENTS = _statement("select_events")
SELECT_EVENTS_DESC = _statement("select_events_desc")
SELECT_NOTIFICATIONS = _statement("select_notifications")
TRACKING_POSITION = _statement("tracking_position")
WRITE_SNAPSHOT = _statement("write_snapshot")
