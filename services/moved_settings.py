"""What a tenant, its personas, people and servers have set, as rows of an export and back.

An import never overrules what somebody has set here: it sets what still stands at its default, and says where that
leaves something out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from psycopg import Connection

from remembrancer.domain import events as e
from remembrancer.domain.errors import Refused
from remembrancer.domain.identity import Subject, check_key, person_stream, persona_stream, server_stream
from remembrancer.domain.settings import Person, Persona, Server
from remembrancer.domain.text import ERASED
from remembrancer.projections.queries import load_queries
from remembrancer.services.clock import make_id
from remembrancer.services.configure import Configure
from remembrancer.services.deps import PERSON, PERSONA, SERVER, TENANT, Deps
from remembrancer.services.formats.rows import PersonaRow, PersonRow, PolicyRow, ServerRow
from remembrancer.services.remember import names
from remembrancer.services.store import Batch, Decision, Fold, Loaded, Request

_SQL = load_queries("remembrancer.services", "transfer")
AT_ONCE = 200

SettingsRow = PolicyRow | PersonaRow | PersonRow | ServerRow


class _AsItIs(Exception):
    """There is nothing to set."""


class MovedSettings:
    """Reads settings as rows, and brings such rows in."""

    def __init__(self, deps: Deps) -> None:
        self._deps = deps
        self._configure = Configure(deps)

    def policy(self) -> Iterator[PolicyRow]:
        """The tenant's own numbers, if it has set any."""
        own = self._deps.store.load(self._deps.tenant_stream, TENANT).state.own
        if own:
            yield PolicyRow(own=dict(own))

    def everybody(self) -> list[Subject]:
        """All personas, people and servers for whom something may be set."""

        def work(conn: Connection[Any]) -> list[Subject]:
            rows = conn.execute(_SQL["subjects"], {"tenant": self._deps.tenant})
            return [Subject(kind, subject) for kind, subject in rows]

        return self._deps.store.database.run(work)

    def rows(self, subjects: Sequence[Subject]) -> Iterator[SettingsRow]:
        """What is set for these personas, people and servers; nothing for those that are as by default."""
        for start in range(0, len(subjects), AT_ONCE):
            part = subjects[start : start + AT_ONCE]
            loaded = self._deps.store.load_many([self._home(subject) for subject in part])
            for subject, at in zip(part, loaded, strict=True):
                if (row := _row(subject.key, at.state)) is not None:
                    yield row

    def bring(self, row: SettingsRow) -> bool:
        """Set what a row says. False if it is so already.

        Raises:
            Refused: something else is set here, and stays.
            InvalidInput: the row names what cannot be.
        """
        if isinstance(row, PolicyRow):
            return self._bring_policy(row.own)
        subject, row = _checked(row)
        stream, fold = self._home(subject)

        def decide(at: Loaded[Any]) -> Decision:
            present = _row(subject.key, at.state)
            if present == row or row == _row_of_default(row):
                raise _AsItIs
            if present is not None:
                raise Refused(f"{subject} has settings here, which stay as they are")
            return Decision([Batch(stream, self._events(row, stream), at.version, (subject,))])

        request = Request(self._deps.tenant, stream.bytes[0], verb="import", owners=(subject,))
        try:
            self._deps.store.transact(
                request, lambda: self._deps.store.load(stream, fold), decide, now=self._deps.now()
            )
        except _AsItIs:
            return False
        return True

    def _bring_policy(self, own: dict[str, Any]) -> bool:
        present = self._deps.store.load(self._deps.tenant_stream, TENANT).state.own
        if own == dict(present):
            return False
        if present:
            raise Refused("this tenant has a policy of its own here, which stays as it is")
        self._configure.set_policy(own, None)
        return True

    def _home(self, subject: Subject) -> tuple[UUID, Fold[Any]]:
        match subject.kind:
            case "persona":
                return persona_stream(self._deps.tenant, subject.key), PERSONA
            case "server":
                return server_stream(self._deps.tenant, subject.key), SERVER
            case _:
                return person_stream(self._deps.tenant, subject.key), PERSON

    def _events(self, row: PersonaRow | PersonRow | ServerRow, stream: UUID) -> list[e.Event]:
        def stamp() -> dict[str, Any]:
            return {"id": make_id(stream.bytes[0]), "tenant": self._deps.tenant, "actor": "import"}

        match row:
            case PersonaRow():
                fields = row.model_dump(include={"persona", "name", "instructions", "learns", "detail"})
                defined: list[e.Event] = [e.PersonaDefined(**stamp(), **fields)]
                return [*defined, e.PersonaDeleted(**stamp())] if row.deleted else defined
            case PersonRow():
                return [e.PersonChanged(**stamp(), **row.model_dump(exclude={"kind", "user"}))]
            case ServerRow():
                return [e.ServerChanged(**stamp(), **row.model_dump(exclude={"kind", "server"}))]


def _row(key: str, s: Persona | Person | Server) -> PersonaRow | PersonRow | ServerRow | None:
    """The settings as a row; None where all of them are the default, or can no longer be read."""
    match s:
        case Persona():
            row: PersonaRow | PersonRow | ServerRow = PersonaRow(
                persona=key, name=s.name or key, instructions=s.instructions, learns=s.learns, detail=s.detail,
                deleted=s.deleted,
            )  # fmt: skip
            if s.instructions == ERASED:
                return None
        case Person():
            row = PersonRow(user=key, privacy=s.privacy, not_learning=s.not_learning, details=dict(s.details))
        case Server():
            row = ServerRow(
                server=key,
                notices=s.notices,
                blocklist=s.blocklist,
                personal_memories=s.personal_memories,
                private=s.private,
                not_learning=s.not_learning,
            )
    return None if row == _row_of_default(row) else row


def _row_of_default(row: PersonaRow | PersonRow | ServerRow) -> PersonaRow | PersonRow | ServerRow:
    match row:
        case PersonaRow():
            return PersonaRow(persona=row.persona, name=row.persona)
        case PersonRow():
            return PersonRow(user=row.user)
        case ServerRow():
            return ServerRow(server=row.server)


def _checked(row: PersonaRow | PersonRow | ServerRow) -> tuple[Subject, PersonaRow | PersonRow | ServerRow]:
    """Whose settings these are; lists of names as they are kept."""
    match row:
        case PersonaRow():
            return Subject("persona", check_key("persona", row.persona)), row
        case PersonRow():
            learning = {"not_learning": names("persona", row.not_learning)}
            return Subject("user", check_key("user", row.user)), row.model_copy(update=learning)
        case ServerRow():
            lists = {"not_learning": names("persona", row.not_learning), "blocklist": names("user", row.blocklist)}
            return Subject("server", check_key("server", row.server)), row.model_copy(update=lists)
