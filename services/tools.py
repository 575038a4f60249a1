"""What a model can do about memories in mid-reply: its tools, and what it is told of their use (R13a, D21).

The schemas are those of chat-completions. A model names a memory as it stands in its prompt, by number or by text; ids
it never sees. Whatever it asks for is done as the persona, in the turn of the reply, and a refusal is an answer, too:
it says why, and the model talks on.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from datetime import date
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from remembrancer.domain.errors import InvalidInput, NotAllowed, NotFound, RemembrancerError
from remembrancer.domain.events import Source
from remembrancer.domain.persona_memory import KEEP
from remembrancer.domain.text import folded
from remembrancer.services.answers import ChangeAnswer, NoticeView, ReplyAnswer
from remembrancer.services.answers_chat import ToolAnswer
from remembrancer.services.checks import checked_text, shown
from remembrancer.services.deps import Deps
from remembrancer.services.finder import Finder
from remembrancer.services.remember import Remember
from remembrancer.services.settings import invalid
from remembrancer.services.turns import Played, Turns

_LASTING = (
    "Only what stays true for weeks: names, facts, likes, promises with dates. Not plot, mood or what passes, nor "
    "lore of the world. One sentence or a few, that can be understood alone, with names instead of pronouns and dates "
    "instead of words like tomorrow."
)
_WHICH = "Its number in the list of what you remember, or its text as it stands there."


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")


class RememberArguments(_Arguments):
    """Save a lasting fact."""

    text: Annotated[str, Field(description=_LASTING)]
    about: Annotated[
        str | None,
        Field(
            description="Whose memory it is: one person who takes part, by name, or 'server' for a fact of this place."
        ),
    ] = None
    until: Annotated[
        date | None, Field(description="The last day (YYYY-MM-DD) on which it is true, where there is one.")
    ] = None


class UpdateArguments(_Arguments):
    """Word a memory anew because it has changed or was wrong. Never keep the old one beside the new one."""

    memory: Annotated[str, Field(description=_WHICH)]
    text: Annotated[str, Field(description=f"How it reads now. {_LASTING}")]
    until: Annotated[
        date | None, Field(description="The last day (YYYY-MM-DD) on which it is true, where there is one.")
    ] = None


class ForgetArguments(_Arguments):
    """Delete a memory that is no longer true or that its owner wants to be forgotten."""

    memory: Annotated[str, Field(description=_WHICH)]


_ARGUMENTS: dict[str, type[_Arguments]] = {
    "remember": RememberArguments,
    "update_memory": UpdateArguments,
    "forget_memory": ForgetArguments,
}


def tool_schemas() -> list[dict[str, Any]]:
    """The tools for `tools=` of a chat-completions request."""
    return [
        {
            "type": "function",
            "function": {"name": name, "description": arguments.__doc__, "parameters": _schema(arguments)},
        }
        for name, arguments in _ARGUMENTS.items()
    ]


class Tools:
    """Runs what a model calls. See the module."""

    def __init__(self, deps: Deps, remember: Remember, finder: Finder, turns: Turns) -> None:
        self._deps = deps
        self._remember = remember
        self._finder = finder
        self._turns = turns

    def run(
        self, persona: str, reply: ReplyAnswer, name: str, arguments: object, *, request_id: str | None
    ) -> ToolAnswer:
        """Do what the model asked for. See `Remembrancer.run_tool`."""
        played = self._turns.find(reply.turn)
        if played is None:
            raise self._finder.no_such_turn(reply.turn)
        try:
            return self._do(persona, reply, played, _parsed(name, arguments), request_id)
        except RemembrancerError as refused:
            notices = [NoticeView(**n) for n in refused.details.get("notices", [])]
            return ToolAnswer(ok=False, content=_refusal(refused), notices=notices)

    def _do(
        self, persona: str, reply: ReplyAnswer, played: Played, asked: _Arguments, request_id: str | None
    ) -> ToolAnswer:
        match asked:
            case RememberArguments():
                return self._save(persona, reply, played, asked, request_id)
            case UpdateArguments():
                self._not_over(asked.until, "Call forget_memory if it is no longer true.")
                changed = self._remember.edit(
                    _named(reply, asked.memory), text=asked.text, until=asked.until or KEEP, tags=KEEP, channels=KEEP,
                    actor="persona", turn=reply.turn, request_id=request_id,
                )  # fmt: skip
                return _told("updated", "Done. It now reads", changed)
            case ForgetArguments():
                gone = self._remember.delete(
                    _named(reply, asked.memory), actor="persona", turn=reply.turn, request_id=request_id
                )
                return _told("deleted", "Done. It is forgotten", gone)
        raise AssertionError("every tool has its arguments")

    def _save(
        self, persona: str, reply: ReplyAnswer, played: Played, asked: RememberArguments, request_id: str | None
    ) -> ToolAnswer:
        scope, subject = _whose(played, asked.about)
        self._not_over(asked.until, "Do not save what is over, or leave until out.")
        heard = [str(m.id) for m in reply.messages[-1:]]
        saved = self._remember.save(
            persona, scope=scope, subject=subject, text=asked.text, actor="persona", turn=reply.turn, until=asked.until,
            tags=(), channels=(), make_room=None, source=Source(chat=reply.chat, messages=tuple(heard)),
            request_id=request_id,
        )  # fmt: skip
        known = saved.status == "duplicate"
        said = "You knew that already" if known else "Saved"
        forgotten = "".join(f" To make room this was forgotten: {f.memory.text}" for f in saved.forgotten)
        return ToolAnswer(
            ok=True,
            content=f"{said}: {saved.memory.text}{forgotten}{_notes(saved.warnings)}",
            did="known" if known else "saved",
            memory=saved.memory,
            forgotten=saved.forgotten,
            notices=saved.notices,
        )

    def _not_over(self, until: date | None, hint: str) -> None:
        """Nothing, if a memory with this last day is still true today (UTC).

        Raises:
            NotAllowed: it would be expired from the start (D28), which a model does not mean.
        """
        if until is not None and until < (today := self._deps.now().date()):
            raise NotAllowed(f"{until} is over: today is {today}.", rule="D28", hint=hint)


def _schema(arguments: type[_Arguments]) -> dict[str, Any]:
    """The JSON schema of a tool's arguments, without what a model has no use for."""
    schema = arguments.model_json_schema()
    properties = {
        name: {k: v for k, v in field.items() if k != "title"} for name, field in schema["properties"].items()
    }
    return {
        "type": "object", "properties": properties, "required": schema["required"], "additionalProperties": False,
    }  # fmt: skip


def _parsed(name: object, arguments: object) -> _Arguments:
    """The arguments of a call, as JSON text or as values.

    Raises:
        InvalidInput: no such tool, no JSON, or not its arguments.
    """
    if not isinstance(name, str) or name not in _ARGUMENTS:
        raise InvalidInput(f"There is no tool {shown(name)}.", hint=f"There are {', '.join(_ARGUMENTS)}.")
    kind = _ARGUMENTS[name]
    try:
        if isinstance(arguments, str):
            return kind.model_validate_json(checked_text("arguments", arguments))
        return kind.model_validate(arguments)
    except ValidationError as error:
        raise invalid(error) from error


def _whose(played: Played, about: str | None) -> tuple[str, str]:
    """Scope and subject of what is saved: of the author answered if nothing is said (R13).

    Raises:
        NotAllowed: nobody who takes part.
    """
    if about is not None and about.strip().casefold() == "server" and played.server is not None:
        return "server", played.server
    people = {user.casefold(): user for user in played.users}
    if about is None and played.users:
        return "personal", played.users[0]
    if about is not None and (user := people.get(about.strip().casefold())) is not None:
        return "personal", user
    if about is None and played.server is not None:
        return "server", played.server
    who = [*played.users, *(["server"] if played.server is not None else [])]
    raise NotAllowed(
        f"{shown(about)} does not take part here."
        if about is not None
        else "Nobody takes part whose memory it could be.",
        rule="R13",
        hint=f"about is one of: {', '.join(who)}." if who else None,
    )


def _named(reply: ReplyAnswer, given: str) -> UUID:
    """The memory that a model names by its number on the desk, or by its text on the desk or among what was recalled.

    Raises:
        NotFound: none of this reply reads like that.
    """
    numbers = {str(n): m.id for n, m in enumerate(reply.prefix.memories, start=1)}
    if (said := given.strip().rstrip(".").removeprefix("#").lstrip("0")) in numbers:
        return numbers[said]
    known = [*reply.prefix.memories, *reply.late.recalled]
    same = [m.id for m in known if folded(m.text) == folded(given)]
    if not same:
        near = difflib.get_close_matches(given, [m.text for m in known], n=1, cutoff=0.6)
        hint = f"Did you mean: {near[0]}" if near else "Name it by its number, or by its text as it stands there."
        raise NotFound(f"You remember nothing that reads {shown(given)}.", rule="D31", hint=hint)
    return same[0]


def _told(did: Literal["updated", "deleted"], what: str, answer: ChangeAnswer) -> ToolAnswer:
    content = f"{what}: {answer.memory.text}{_notes(answer.warnings)}"
    return ToolAnswer(ok=True, content=content, did=did, memory=answer.memory)


def _notes(warnings: Sequence[str]) -> str:
    return "".join(f" Note: {warning}" for warning in warnings)


def _refusal(refused: RemembrancerError) -> str:
    return " ".join(["Not done.", refused.message, *([refused.hint] if refused.hint else [])])
