"""The library's own contract tests, as they stand, against our recorder of one shard on PostgreSQL (DESIGN 9)."""

from __future__ import annotations

import pytest
from eventsourcing.tests import persistence as contracts

from remembrancer.services.store import Database, ShardRecorder

SHARD = 7


class _OnPostgres:
    """Gives each test a recorder of one shard of an empty database."""

    @pytest.fixture(autouse=True)
    def _database(self, database_url):
        self.database = Database(database_url, max_size=12)
        yield
        self.database.close()

    def create_recorder(self):
        return ShardRecorder(self.database, SHARD)


class TestApplicationRecorder(_OnPostgres, contracts.ApplicationRecorderTestCase):
    pass


class TestTrackingRecorder(_OnPostgres, contracts.TrackingRecorderTestCase):
    pass


class TestProcessRecorder(_OnPostgres, contracts.ProcessRecorderTestCase):
    pass


class TestNonInterleavingNotificationIDs(_OnPostgres, contracts.NonInterleavingNotificationIDsBaseCase):
    pass


def test_no_contract_is_overridden_or_left_out():
    for ours in (
        TestApplicationRecorder,
        TestTrackingRecorder,
        TestProcessRecorder,
        TestNonInterleavingNotificationIDs,
    ):
        written_here = {name for base in (ours, _OnPostgres) for name in vars(base)}
        assert not {name for name in written_here if name.startswith(("test", "INITIAL", "EXPECT", "insert_num"))}
