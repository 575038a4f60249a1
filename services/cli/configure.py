"""The groups of settings: persona, person, server, policy; each with `show` and `set`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from remembrancer.domain.errors import InvalidInput
from remembrancer.services.cli.arguments import PersonaKey, RequestId, option
from remembrancer.services.cli.screen import shown
from remembrancer.services.cli.session import Session
from remembrancer.services.cli.verb import group, verb

if TYPE_CHECKING:
    from pydantic import BaseModel

    from remembrancer.services.cli.screen import Screen

Names = Annotated[list[str] | None, option(metavar="KEY")]


def _not_learning(who: str) -> Any:
    return option("--not-learning", metavar="PERSONA", help=f"A persona that does not learn {who}; repeat.")


def _show(here: Session, settings: BaseModel) -> None:
    from remembrancer.services.cli import show

    def shown(screen: Screen) -> None:
        show.settings(screen, settings, without=("switched",))
        for one in getattr(settings, "switched", ()):
            price = "" if one.extra_cost is None else f" (about {one.extra_cost:+.4f})"
            screen.line(
                f"At {one.after} in place of {one.before}, each reply of {one.persona} may read {one.extra_tokens:+d}"
                f" tokens{price}. `remembrancer summary rebuild CHAT` applies it to what was said before."
            )

    here.show(settings, shown)


def _given(**changes: Any) -> dict[str, Any]:
    """The changes that were asked for.

    Raises:
        InvalidInput: none.
    """
    given = {name: value for name, value in changes.items() if value is not None}
    if not given:
        raise InvalidInput("Set what?", hint="Name at least one setting; --help lists them.")
    return given


def _names(given: list[str] | None, nobody: bool) -> list[str] | None:
    if given and nobody:
        raise InvalidInput("Name them or nobody, not both.")
    return [] if nobody else given or None


DETAIL = "key_events|balanced|detailed"
"""The levels of R3, as they are typed."""


# -- persona ----------------------------------------------------------------------------------------------------------


def persona_show(here: Session, persona: PersonaKey) -> None:
    """Show a persona's settings."""
    with here.open() as memory:
        _show(here, memory.persona(persona))


def persona_set(
    here: Session,
    persona: PersonaKey,
    name: Annotated[str | None, option(help="How it is called.")] = None,
    instructions: Annotated[
        str | None, option(help="Standing instructions, always sent; - reads standard input.")
    ] = None,
    learns: Annotated[
        bool | None, option("--learns/--no-learns", help="Learn from chat, or neither save nor read.")
    ] = None,
    detail: Annotated[
        str | None, option(metavar=DETAIL, help="How much of a chat is kept, where its user chose nothing.")
    ] = None,
    request_id: RequestId = None,
) -> None:
    """Change a persona's settings."""
    given = _given(name=name, instructions=here.read_text(instructions, None), learns=learns, detail=detail)
    with here.open() as memory:
        _show(here, memory.set_persona(persona, **given, request_id=request_id))


def persona_delete(
    here: Session,
    persona: PersonaKey,
    yes: Annotated[bool, option("--yes", help="Do not ask.")] = False,
    request_id: RequestId = None,
) -> None:
    """Delete a persona. What it knew of people becomes theirs with every persona; `persona set` brings it back."""
    if not yes and not here.screen.can_ask:
        raise InvalidInput("There is nobody to ask.", hint="Say --yes.")
    with here.open() as memory:
        if not yes and not here.screen.ask(
            f"Delete {shown(persona)}? Its personal memories become global; its server memories wait for its return."
        ):
            raise typer.Exit(1)
        with here.screen.progress("Moving") as progress:
            answer = memory.delete_persona(persona, request_id=request_id, progress=progress)
        here.show(
            answer,
            lambda screen: screen.line(
                f"{shown(persona)} is deleted. {answer.moved} memories of {answer.people} people are global now."
            ),
        )


def _levels(given: list[str]) -> dict[str, str]:
    """Levels by persona, from words like mira=detailed."""
    pairs = [one.rpartition("=") for one in given]
    if wrong := [one for one, (persona, _, level) in zip(given, pairs, strict=True) if not persona or not level]:
        raise InvalidInput(f"--detail takes PERSONA=LEVEL, not {wrong[0]!r}.", rule="R3", hint=f"Levels: {DETAIL}.")
    return {persona: level for persona, _, level in pairs}


# -- person -----------------------------------------------------------------------------------------------------------

UserKey = Annotated[str, typer.Argument(metavar="USER", help="Key of the user.")]


def person_show(here: Session, user: UserKey) -> None:
    """Show a person's settings."""
    with here.open() as memory:
        _show(here, memory.person(user))


def person_set(
    here: Session,
    user: UserKey,
    privacy: Annotated[
        str | None, option(metavar="everywhere|private_chats_only|nowhere", help="Where their memories may be used.")
    ] = None,
    not_learning: Annotated[list[str] | None, _not_learning("from them")] = None,
    all_learn: Annotated[bool, option("--all-learn", help="Every persona learns from them.")] = False,
    details: Annotated[
        list[str] | None,
        option("--detail", metavar="PERSONA=LEVEL", help=f"How much of their chats is kept ({DETAIL}); repeat."),
    ] = None,
    deep_memory: Annotated[
        bool | None,
        option("--deep-memory/--no-deep-memory", help="Whether a background pass reads their web chats for details."),
    ] = None,
    request_id: RequestId = None,
) -> None:  # fmt: skip
    """Change a person's settings."""
    levels = _levels(details or [])
    given = _given(
        privacy=privacy, not_learning=_names(not_learning, all_learn), details=levels or None, deep_memory=deep_memory
    )
    with here.open() as memory:
        if levels:
            given["details"] = memory.person(user).details | levels
        _show(here, memory.set_person(user, **given, request_id=request_id))


# -- server -----------------------------------------------------------------------------------------------------------

ServerKey = Annotated[str, typer.Argument(metavar="SERVER", help="Key of the server.")]


def server_show(here: Session, server: ServerKey) -> None:
    """Show a server's settings."""
    with here.open() as memory:
        _show(here, memory.server(server))


def server_set(
    here: Session,
    server: ServerKey,
    notices: Annotated[
        str | None, option(metavar="everyone|managers|hidden", help="Who sees what was saved and forgotten.")
    ] = None,
    blocklist: Annotated[
        list[str] | None, option("--block", metavar="USER", help="Whose memories are not used here; repeat.")
    ] = None,
    nobody_blocked: Annotated[bool, option("--block-nobody", help="Empty the blocklist.")] = False,
    personal_memories: Annotated[
        bool | None, option("--personal-memories/--no-personal-memories", help="Use personal memories here.")
    ] = None,
    private: Annotated[
        bool | None, option("--private/--no-private", help="A direct-message pair.")
    ] = None,
    not_learning: Annotated[list[str] | None, _not_learning("here")] = None,
    all_learn: Annotated[bool, option("--all-learn", help="Every persona learns here.")] = False,
    request_id: RequestId = None,
) -> None:  # fmt: skip
    """Change a server's settings."""
    given = _given(
        notices=notices,
        blocklist=_names(blocklist, nobody_blocked),
        personal_memories=personal_memories,
        private=private,
        not_learning=_names(not_learning, all_learn),
    )
    with here.open() as memory:
        _show(here, memory.set_server(server, **given, request_id=request_id))


# -- policy -----------------------------------------------------------------------------------------------------------


def policy_show(here: Session) -> None:
    """Show the numbers of the rules that are in force."""
    with here.open() as memory:
        _show(here, memory.policy())


def policy_set(
    here: Session,
    numbers: Annotated[
        list[str], typer.Argument(metavar="NAME=VALUE...", help="As `policy show` names them; NAME= takes it back.")
    ],
    request_id: RequestId = None,
) -> None:
    """Record the tenant's own numbers.

    remembrancer policy set list_capacity=50 rest_after_days=
    """
    with here.open() as memory:
        _show(here, memory.set_policy(request_id=request_id, **policy_fields(numbers)))


def policy_fields(numbers: list[str]) -> dict[str, Any]:
    """NAME=VALUE; None takes a number back.

    Raises:
        InvalidInput: not of this form, or a name twice.
    """
    fields: dict[str, Any] = {}
    for one in numbers:
        name, equals, value = one.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name:
            raise InvalidInput(f"{one!r} sets nothing.", hint="Write NAME=VALUE, like list_capacity=50.")
        if name in fields:
            raise InvalidInput(f"{name} is set twice.")
        fields[name] = _value(value.strip())
    return fields


def _value(text: str) -> Any:
    """A number or a truth value where it reads like one; whether it fits, the policy says."""
    try:
        return json.loads(text) if text else None
    except ValueError:
        return text


def register(app: typer.Typer) -> None:
    """Add these groups."""
    for name, what, show, change in (
        ("persona", "Name, standing instructions and learn switch of a persona.", persona_show, persona_set),
        ("person", "Privacy of a person, and who learns from them.", person_show, person_set),
        ("server", "Notices, blocklist and switches of a server.", server_show, server_set),
        ("policy", "The numbers of the rules.", policy_show, policy_set),
    ):
        verbs = typer.Typer(help=what, rich_markup_mode=app.rich_markup_mode)
        group(verbs)
        verb(verbs, "show")(show)
        verb(verbs, "set")(change)
        if name == "persona":
            verb(verbs, "delete")(persona_delete)
        app.add_typer(verbs, name=name)
