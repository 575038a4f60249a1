"""What the `eventsourcing` library is given in place of its own parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Never
from uuid import UUID

from eventsourcing.persistence import InfrastructureFactory, Mapper, NotSupportedError, ProcessRecorder, StoredEvent
from eventsourcing.utils import Environment

from remembrancer.domain.events import Event
from remembrancer.services.store import mapper
from remembrancer.services.store.keys import Key
from remembrancer.services.store.pool import Database
from remembrancer.services.store.recorder import StoreRecorder


@dataclass(frozen=True, slots=True)
class Pending:
    """An event on its way into a stream, as the library wants to see one."""

    event: Event
    originator_id: UUID
    originator_version: int
    key: Key | None


class EventMapper(Mapper[UUID]):
    """Encodes events one by one. Decoding is left to the projector, which looks up the keys of a stream at once."""

    def to_stored_event(self, domain_event: Any) -> StoredEvent:
        """The stored form of a `Pending`."""
        event: Event = domain_event.event
        return StoredEvent(
            domain_event.originator_id,
            domain_event.originator_version,
            type(event).__name__,
            mapper.encode(event, domain_event.key),
        )

    def to_domain_event(self, stored_event: StoredEvent) -> Any:
        """The stored event itself."""
        return stored_event


class Factory(InfrastructureFactory[StoreRecorder]):
    """Hands out our recorder and mapper, whatever the environment says."""

    def __init__(self, env: Environment, database: Database) -> None:
        super().__init__(env)
        self._recorder = StoreRecorder(database)

    def mapper(self, *_: Any, **__: Any) -> Mapper[Any]:
        """Our mapper."""
        return EventMapper(transcoder=self.transcoder())

    def application_recorder(self) -> ProcessRecorder:
        """Our recorder, of all shards."""
        return self._recorder

    def process_recorder(self) -> ProcessRecorder:
        """Our recorder, of all shards."""
        return self._recorder

    def tracking_recorder(self, *_: Any) -> StoreRecorder:
        """Our recorder, of all shards."""
        return self._recorder

    def aggregate_recorder(self, purpose: str = "events") -> Never:
        """Not here: the library's snapshots are not used."""
        raise NotSupportedError(f"there is no recorder for {purpose}")
