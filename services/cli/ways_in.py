"""The verbs `generate` and `chat save`: drafts that a person reviews, and messages as they are (R13 c and d)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from rich.text import Text

from remembrancer.domain.errors import InvalidInput
from remembrancer.services.cli.arguments import (
    MaybePersona,
    OfEveryone,
    OfServer,
    OfUser,
    RequestId,
    Scope,
    Subject,
    TextOption,
    one_list,
    option,
    which_list,
)
from remembrancer.services.cli.message_ids import ChatKey, message_id
from remembrancer.services.cli.screen import shown
from remembrancer.services.cli.session import Session
from remembrancer.services.cli.verb import verb

if TYPE_CHECKING:
    from remembrancer.services.answers_drafts import DraftsAnswer, DraftView, SavedFromChat
    from remembrancer.services.cli.screen import Screen

Yes = Annotated[bool, option("--yes", help="Agree to all drafts without being asked.")]


def generate(
    here: Session,
    persona: MaybePersona = None,
    description: Annotated[
        str | None, typer.Argument(metavar="DESCRIPTION", help="What to remember, in your words; - reads stdin.")
    ] = None,
    text_option: TextOption = None,
    scope: Scope = None,
    subject: Subject = None,
    server: OfServer = None,
    user: OfUser = None,
    everyone: OfEveryone = None,
    yes: Yes = False,
) -> None:
    """Have the chat model draft memories from a description; what you agree to is saved.

    remembrancer generate mira --user juno "I keep bees and never answer before noon"
    """
    scope, subject = one_list(*which_list(scope, subject, server, user, everyone))
    if scope == "global" and description is None and text_option is None:
        persona, description = None, persona
    said = here.read_text(description, text_option)
    if said is None:
        raise InvalidInput("Draft what?", hint="Describe it as an argument, with --text, or - for standard input.")
    with here.open() as memory:
        with here.screen.busy("Drafting"):
            answer = memory.generate(persona, scope=cast("Any", scope), subject=subject, description=said)
        agreed = _agreed(here, answer, yes)
        saved = [
            memory.save(answer.persona, scope=scope, subject=subject, text=d.text, until=d.until, actor="person")
            for d in agreed
        ]
    if here.options.json:
        here.write_json(answer.model_dump(mode="json") | {"saved": [one.model_dump(mode="json") for one in saved]})
    elif saved:
        here.screen.line(f"{len(saved)} saved.")


def chat_save(
    here: Session,
    chat: ChatKey,
    messages: Annotated[list[str], typer.Argument(metavar="MESSAGE...", help="Ids, or first 8 digits; at most 20.")],
    draft: Annotated[bool, option("--draft", help="Have the chat model draft memories from them.")] = False,
    persona: Annotated[str | None, option("--persona", metavar="KEY", help="Whose, where several talk.")] = None,
    scope: Scope = None,
    subject: Subject = None,
    server: OfServer = None,
    user: OfUser = None,
    everyone: OfEveryone = None,
    yes: Yes = False,
    request_id: RequestId = None,
) -> None:
    """Save messages of a chat as pinned memories, all or none: as they are, or as drafts that you review."""
    kind, whose = which_list(scope, subject, server, user, everyone)
    place: dict[str, Any] = {"persona": persona, "scope": kind or "personal", "subject": whose}
    with here.open() as memory:
        ids = [message_id(memory, chat, one) for one in messages]
        drafts: Sequence[DraftView] | None = None
        if draft:
            with here.screen.busy("Drafting"):
                answer = memory.draft_from_chat(chat, ids, **place)
            drafts = _agreed(here, answer, yes)
            if not drafts:
                if here.options.json:
                    here.write_json(answer.model_dump(mode="json"))
                return
        saved = memory.save_from_chat(chat, ids, drafts=drafts, request_id=request_id, **place)
    here.show(saved, lambda screen: _saved(screen, saved))


def _agreed(here: Session, answer: DraftsAnswer, yes: bool) -> list[DraftView]:
    """The drafts, shown; those that somebody agrees to."""
    screen = here.screen
    if not here.options.json:
        _show(screen, answer)
    if yes:
        return list(answer.drafts)
    if here.options.json or not screen.can_ask:
        return []
    return [d for d in answer.drafts if screen.ask(f"Save \u201c{d.text}\u201d?")]


def _show(screen: Screen, answer: DraftsAnswer) -> None:
    cost = "" if answer.cost is None else f", cost {answer.cost:.4f}"
    many = len(answer.drafts)
    screen.heading(f"{many} draft{'s' * (many != 1)}", f"{answer.model}{cost}; nothing is saved yet")
    for d in answer.drafts:
        until = "" if d.until is None else f" (until {d.until})"
        screen.line(Text("- "), Text(shown(d.text)), Text(until, "dim"))
        for warning in d.warnings:
            screen.labelled("note", shown(warning), "yellow")
    for out in answer.left_out:
        screen.line(Text(f"left out: {shown(out.text)}: {shown(out.why)}", "dim"))


def _saved(screen: Screen, saved: SavedFromChat) -> None:
    there = f", {len(saved.duplicates)} of them remembered before" if saved.duplicates else ""
    screen.line(f"{len(saved.memories)} pinned{there}:")
    for m in saved.memories:
        screen.line(Text(f"{m.id.hex[:8]}  ", "dim"), Text(shown(m.text)))
    for warning in saved.warnings:
        screen.labelled("note", shown(warning), "yellow")


def register(app: typer.Typer) -> None:
    """Add the verb; `chat save` is added by its group."""
    verb(app, "generate")(generate)
