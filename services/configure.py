"""Settings of personas, people, servers and the tenant: recorded as events, read with every reply."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from uuid import UUID

from pydantic import ValidationError

from remembrancer.domain import events as e
from remembrancer.domain.errors import InvalidInput
from remembrancer.domain.identity import (
    Subject,
    check_key,
    person_stream,
    persona_stream,
    server_stream,
    shard_of,
)
from remembrancer.domain.persona_memory import Keep
from remembrancer.domain.policy import Policy
from remembrancer.services.answers import PersonaView, PersonView, ServerView
from remembrancer.services.clock import make_id
from remembrancer.services.deps import PERSON, PERSONA, SERVER, TENANT, Deps
from remembrancer.services.remember import names
from remembrancer.services.settings import invalid
from remembrancer.services.store import Batch, Decision, Fold, Loaded, Request, fingerprint

S = TypeVar("S")


class Configure:
    """Reads and changes settings. A change that changes nothing writes nothing."""

    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def persona(self, persona: str) -> PersonaView:
        """A persona's settings; the defaults if nothing was ever set."""
        s = self._deps.store.load(persona_stream(self._deps.tenant, check_key("persona", persona)), PERSONA).state
        return PersonaView(persona=persona, name=s.name or persona, instructions=s.instructions, learns=s.learns)

    def person(self, user: str) -> PersonView:
        """A person's settings."""
        s = self._deps.store.load(person_stream(self._deps.tenant, check_key("user", user)), PERSON).state
        return PersonView(user=user, privacy=s.privacy, not_learning=s.not_learning)

    def server(self, server: str) -> ServerView:
        """A server's settings."""
        s = self._deps.store.load(server_stream(self._deps.tenant, check_key("server", server)), SERVER).state
        return ServerView(
            server=server, notices=s.notices, blocklist=s.blocklist, personal_memories=s.personal_memories,
            private=s.private, not_learning=s.not_learning,
        )  # fmt: skip

    def policy(self) -> Policy:
        """The effective policy (SPEC 6)."""
        return self._deps.policy(self._deps.store.load(self._deps.tenant_stream, TENANT))[0]

    def set_persona(self, persona: str, changes: Mapping[str, Any], request_id: str | None) -> PersonaView:
        """Change a persona's settings."""
        subject = Subject("persona", check_key("persona", persona))
        if not isinstance(changes.get("instructions", ""), str | Keep):
            raise InvalidInput("The standing instructions must be a text.")

        def event(stamp: dict[str, Any], s: Any, new: dict[str, Any]) -> e.Event:
            return e.PersonaDefined(
                **stamp, persona=persona,
                **{"name": s.name or persona, "instructions": s.instructions, "learns": s.learns} | new,
            )  # fmt: skip

        self._set(
            persona_stream(self._deps.tenant, persona), PERSONA, subject, "set_persona", changes, event, request_id
        )
        return self.persona(persona)

    def set_person(self, user: str, changes: Mapping[str, Any], request_id: str | None) -> PersonView:
        """Change a person's settings."""
        subject = Subject("user", check_key("user", user))

        def event(stamp: dict[str, Any], s: Any, new: dict[str, Any]) -> e.Event:
            return e.PersonChanged(**stamp, **{"privacy": s.privacy, "not_learning": s.not_learning} | new)

        self._set(person_stream(self._deps.tenant, user), PERSON, subject, "set_person", changes, event, request_id)
        return self.person(user)

    def set_server(self, server: str, changes: Mapping[str, Any], request_id: str | None) -> ServerView:
        """Change a server's settings."""
        subject = Subject("server", check_key("server", server))

        def event(stamp: dict[str, Any], s: Any, new: dict[str, Any]) -> e.Event:
            now = {
                "notices": s.notices, "blocklist": s.blocklist, "personal_memories": s.personal_memories,
                "private": s.private, "not_learning": s.not_learning,
            }  # fmt: skip
            return e.ServerChanged(**stamp, **now | new)

        self._set(server_stream(self._deps.tenant, server), SERVER, subject, "set_server", changes, event, request_id)
        return self.server(server)

    def set_policy(self, fields: Mapping[str, Any], request_id: str | None) -> Policy:
        """Record the tenant's own numbers; None takes one back to the installation's.

        Raises:
            InvalidInput: an unknown field, or a number out of its bounds.
        """
        if unknown := sorted(set(fields) - set(Policy.model_fields)):
            raise InvalidInput(
                f"The policy has no {', '.join(unknown)}.", hint=f"It has {', '.join(sorted(Policy.model_fields))}."
            )
        tenant = self._deps.store.load(self._deps.tenant_stream, TENANT)
        own = {k: v for k, v in {**tenant.state.own, **fields}.items() if v is not None}
        effective = self._deps.effective(own)
        if own != dict(tenant.state.own):
            self._deps.record_policy(tenant, effective, own, request_id)
        return self.policy()

    def _set(
        self,
        stream: UUID,
        fold: Fold[S],
        subject: Subject,
        verb: str,
        changes: Mapping[str, Any],
        event: Callable[[dict[str, Any], S, dict[str, Any]], e.Event],
        request_id: str | None,
    ) -> None:
        new = {k: _checked(k, v) for k, v in changes.items() if not isinstance(v, Keep)}
        if not new:
            return
        tenant = self._deps.tenant
        shard = shard_of(tenant, subject)
        request = Request(tenant, shard, request_id, verb, fingerprint({"subject": subject, **new}), (subject,))
        stamp = {"tenant": tenant, "request_id": request_id}

        def decide(at: Loaded[S]) -> Decision:
            try:
                made = event({**stamp, "id": make_id(shard)}, at.state, new)
            except ValidationError as error:
                raise invalid(error) from error
            return Decision([Batch(stream, [made], at.version, (subject,))])

        self._deps.store.transact(request, lambda: self._deps.store.load(stream, fold), decide, now=self._deps.now())


def _checked(field: str, value: Any) -> Any:
    if field in ("blocklist", "not_learning"):
        return names("user" if field == "blocklist" else "persona", value)
    if field in ("learns", "personal_memories", "private") and not isinstance(value, bool):
        raise InvalidInput(f"{field} is true or false, not {value!r}.")
    return value
