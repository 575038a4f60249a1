"""Settings of personas, people, servers and the tenant: recorded as events, read with every reply."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar
from uuid import UUID

from pydantic import BaseModel, ValidationError

from remembrancer.domain import events as e
from remembrancer.domain.errors import InvalidInput
from remembrancer.domain.identity import Subject, check_key, person_stream, persona_stream, server_stream
from remembrancer.domain.persona_memory import Keep
from remembrancer.domain.policy import Policy
from remembrancer.domain.settings import Person, Persona, Server, Tenant
from remembrancer.domain.window import Detail, most_sent
from remembrancer.services.answers import DetailSwitched, PersonaView, PersonView, ServerView
from remembrancer.services.chat_models.model import Prices, Usage
from remembrancer.services.checks import answer_erased, checked_flag, checked_text, shown
from remembrancer.services.clock import make_id
from remembrancer.services.deps import PERSON, PERSONA, SERVER, TENANT, Deps
from remembrancer.services.remember import names
from remembrancer.services.requests import request_for
from remembrancer.services.settings import invalid
from remembrancer.services.store import Batch, Decision, Fold, Loaded

S = TypeVar("S")


class Configure:
    """Reads and changes settings. A change that changes nothing writes nothing."""

    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def persona(self, persona: str) -> PersonaView:
        """A persona's settings; the defaults if nothing was ever set."""
        s = self._deps.store.load(persona_stream(self._deps.tenant, check_key("persona", persona)), PERSONA).state
        return persona_view(persona, s)

    def person(self, user: str) -> PersonView:
        """A person's settings."""
        s = self._deps.store.load(person_stream(self._deps.tenant, check_key("user", user)), PERSON).state
        return person_view(user, s)

    def server(self, server: str) -> ServerView:
        """A server's settings."""
        s = self._deps.store.load(server_stream(self._deps.tenant, check_key("server", server)), SERVER).state
        return server_view(server, s)

    def policy(self) -> Policy:
        """The effective policy (SPEC 6)."""
        return self._deps.policy(self._deps.store.load(self._deps.tenant_stream, TENANT))[0]

    def set_persona(self, persona: str, changes: Mapping[str, Any], request_id: str | None) -> PersonaView:
        """Change a persona's settings."""
        subject = Subject("persona", check_key("persona", persona))

        def event(stamp: dict[str, Any], s: Persona, new: dict[str, Any]) -> e.Event:
            return e.PersonaDefined(
                **stamp, persona=persona,
                **{"name": s.name or persona, "instructions": s.instructions, "learns": s.learns, "detail": s.detail}
                | new,
            )  # fmt: skip

        def shown(before: Persona, after: Persona) -> PersonaView:
            switched = self._switched([(persona, before.detail, after.detail)])
            return persona_view(persona, after).model_copy(update={"switched": switched})

        stream = persona_stream(self._deps.tenant, persona)
        answer = self._set(stream, PERSONA, subject, "set_persona", changes, event, shown, request_id)
        return PersonaView.model_validate_json(answer)

    def set_person(self, user: str, changes: Mapping[str, Any], request_id: str | None) -> PersonView:
        """Change a person's settings."""
        subject = Subject("user", check_key("user", user))

        def event(stamp: dict[str, Any], s: Person, new: dict[str, Any]) -> e.Event:
            now = {
                "privacy": s.privacy, "not_learning": s.not_learning, "details": s.details,
                "deep_memory": s.deep_memory,
            }  # fmt: skip
            return e.PersonChanged(**stamp, **now | new)

        def shown(before: Person, after: Person) -> PersonView:
            levels = [
                (persona, before.details.get(persona) or default, after.details.get(persona) or default)
                for persona in sorted({*before.details, *after.details})
                if before.details.get(persona) != after.details.get(persona)
                for default in [self._deps.store.load(persona_stream(self._deps.tenant, persona), PERSONA).state.detail]
            ]
            return person_view(user, after).model_copy(update={"switched": self._switched(levels)})

        stream = person_stream(self._deps.tenant, user)
        answer = self._set(stream, PERSON, subject, "set_person", changes, event, shown, request_id)
        return PersonView.model_validate_json(answer)

    def set_server(self, server: str, changes: Mapping[str, Any], request_id: str | None) -> ServerView:
        """Change a server's settings."""
        subject = Subject("server", check_key("server", server))

        def event(stamp: dict[str, Any], s: Server, new: dict[str, Any]) -> e.Event:
            now = {
                "notices": s.notices, "blocklist": s.blocklist, "personal_memories": s.personal_memories,
                "private": s.private, "not_learning": s.not_learning,
            }  # fmt: skip
            return e.ServerChanged(**stamp, **now | new)

        stream = server_stream(self._deps.tenant, server)
        answer = self._set(
            stream, SERVER, subject, "set_server", changes, event, lambda _, s: server_view(server, s), request_id
        )
        return ServerView.model_validate_json(answer)

    def set_policy(self, fields: Mapping[str, Any], request_id: str | None) -> Policy:
        """Record the tenant's own numbers; None takes one back to the installation's.

        Raises:
            InvalidInput: an unknown field, or a number out of its bounds.
        """
        if unknown := sorted(set(fields) - set(Policy.model_fields)):
            raise InvalidInput(
                f"The policy has no {', '.join(unknown)}.", hint=f"It has {', '.join(sorted(Policy.model_fields))}."
            )
        new = checked_policy(fields)
        stream = self._deps.tenant_stream
        subject = Subject("tenant", self._deps.tenant)

        def event(stamp: dict[str, Any], s: Tenant, new: dict[str, Any]) -> e.Event:
            own = {k: v for k, v in {**s.own, **new}.items() if v is not None}
            policy = self._deps.effective(own).model_dump(mode="json")
            return e.PolicyChanged(**stamp, policy=policy, own=own)

        def shown(_: Tenant, s: Tenant) -> Policy:
            return s.policy if s.policy is not None else self._deps.effective(dict(s.own))

        answer = self._set(stream, TENANT, subject, "set_policy", new, event, shown, request_id)
        return Policy.model_validate_json(answer)

    def _switched(self, levels: Sequence[tuple[str, Detail | None, Detail | None]]) -> tuple[DetailSwitched, ...]:
        """What another level takes of each reply (R7): those by persona, as before and as after."""
        pairs = [(persona, before or "balanced", after or "balanced") for persona, before, after in levels]
        if not any(before != after for _, before, after in pairs):
            return ()
        context = self.policy().model_context
        prices = self._deps.settings.chat_prices.get(self._deps.settings.chat_model or "")
        found = []
        for persona, before, after in pairs:
            if before == after:
                continue
            extra = most_sent(after, context) - most_sent(before, context)
            cost = None if prices is None else Prices(*prices).of(Usage(extra, 0))
            found.append(
                DetailSwitched(persona=persona, before=before, after=after, extra_tokens=extra, extra_cost=cost)
            )
        return tuple(found)

    def _set(
        self,
        stream: UUID,
        fold: Fold[S],
        subject: Subject,
        verb: str,
        changes: Mapping[str, Any],
        event: Callable[[dict[str, Any], S, dict[str, Any]], e.Event],
        shown: Callable[[S, S], BaseModel],
        request_id: str | None,
    ) -> bytes:
        """The settings after the change, as JSON; those after the first one, if the request came before (D19)."""
        new = {k: _checked(k, v) for k, v in changes.items() if not isinstance(v, Keep)}
        tenant, shard = self._deps.tenant, stream.bytes[0]
        request = request_for(tenant, shard, verb, request_id, {"subject": subject, **new}, (subject,))
        stamp = {"tenant": tenant, "request_id": request_id}

        def decide(at: Loaded[S]) -> Decision:
            try:
                made = event({**stamp, "id": make_id(shard)}, at.state, new)
            except ValidationError as error:
                raise invalid(error) from error
            after = fold.evolve(at.state, e.Recorded(made, stream, at.version + 1, shard, 0, self._deps.now()))
            answer = shown(at.state, after).model_dump_json().encode()
            if after == at.state and request_id is None:
                raise _AsItIs(answer)
            batches = [] if after == at.state else [Batch(stream, [made], at.version, (subject,))]
            return Decision(batches, answer)

        try:
            done = self._deps.store.transact(
                request, lambda: self._deps.store.load(stream, fold), decide, now=self._deps.now()
            )
        except _AsItIs as unchanged:
            return unchanged.answer
        if done.answer is None:
            raise answer_erased()
        return done.answer


class _AsItIs(Exception):
    """There is nothing to write."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer


def persona_view(persona: str, s: Persona) -> PersonaView:
    """A persona's settings as an answer."""
    return PersonaView(
        persona=persona, name=s.name or persona, instructions=s.instructions, learns=s.learns, detail=s.detail
    )


def person_view(user: str, s: Person) -> PersonView:
    """A person's settings as an answer."""
    return PersonView(
        user=user, privacy=s.privacy, not_learning=s.not_learning, details=dict(s.details), deep_memory=s.deep_memory
    )


def server_view(server: str, s: Server) -> ServerView:
    """A server's settings as an answer."""
    return ServerView(
        server=server, notices=s.notices, blocklist=s.blocklist, personal_memories=s.personal_memories,
        private=s.private, not_learning=s.not_learning,
    )  # fmt: skip


def _checked(field: str, value: Any) -> Any:
    if field in ("blocklist", "not_learning"):
        return names("user" if field == "blocklist" else "persona", value)
    if field in ("learns", "personal_memories", "private", "deep_memory"):
        return checked_flag(field, value)
    if field == "details":
        return checked_details(value)
    if field == "detail" and value is None:
        return None
    if field in ("name", "instructions", "privacy", "notices", "detail"):
        return checked_text(field, value)
    return value


def checked_details(value: object) -> dict[str, str]:
    """Memory detail by persona (R3).

    Raises:
        InvalidInput: no mapping of personas to texts.
    """
    if not isinstance(value, Mapping):
        raise InvalidInput(
            f"details must be levels by persona, not {shown(value)}.", hint='As in {"mira": "detailed"}.'
        )
    return {check_key("persona", k): checked_text("detail", v) for k, v in sorted(value.items())}


def checked_policy(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields as numbers of their kind; None stays None.

    Raises:
        InvalidInput: a number out of its bounds.
    """
    try:
        policy = Policy(**{name: value for name, value in fields.items() if value is not None})
    except ValidationError as error:
        raise invalid(error) from error
    return {name: None if value is None else getattr(policy, name) for name, value in fields.items()}
