"""The event store: streams in shards, one append path, requests that happen once, texts under their subjects' keys."""

from remembrancer.services.store.batch import Appended, Batch, Decision
from remembrancer.services.store.errors import KeyGone, Tampered, UnknownEvent, VersionConflict
from remembrancer.services.store.folds import Fold, Loaded
from remembrancer.services.store.keys import SubjectKeys
from remembrancer.services.store.mapper import Row
from remembrancer.services.store.migrate import migrate
from remembrancer.services.store.pool import Connection, Database
from remembrancer.services.store.recorder import ShardRecorder, StoreRecorder
from remembrancer.services.store.request import Request, fingerprint
from remembrancer.services.store.source import StoreSource
from remembrancer.services.store.store import EventStore, open_store

__all__ = [
    "Appended",
    "Batch",
    "Connection",
    "Database",
    "Decision",
    "EventStore",
    "Fold",
    "KeyGone",
    "Loaded",
    "Request",
    "Row",
    "ShardRecorder",
    "StoreRecorder",
    "StoreSource",
    "SubjectKeys",
    "Tampered",
    "UnknownEvent",
    "VersionConflict",
    "fingerprint",
    "migrate",
    "open_store",
]
