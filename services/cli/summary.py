"""The group `summary`: read, edit and rebuild the summary of a chat (R5-R8)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from remembrancer.domain.errors import InvalidInput, NotAllowed, NotFound
from remembrancer.services.cli.arguments import RequestId, TextOption, option
from remembrancer.services.cli.session import Session
from remembrancer.services.cli.verb import group, verb

if TYPE_CHECKING:
    from remembrancer.services.answers_summary import (
        CostAnswer,
        RebuildEstimate,
        RebuildView,
        SummariesRun,
        SummaryAnswer,
        SummaryChange,
        SummaryRebuild,
    )
    from remembrancer.services.cli.screen import Screen
    from remembrancer.services.remembrancer import Remembrancer

ChatKey = Annotated[str, typer.Argument(metavar="CHAT", help="Key of the chat.")]
Detail = Annotated[
    str | None, option(metavar="key_events|balanced|detailed", help="As if it had this level of detail.")
]
TIERS = {"long_term": "Long-term", "merged": "Merged", "recent": "Recent"}
LOOK_SECONDS = 0.5


def show(here: Session, chat: ChatKey) -> None:
    """The summary as it is sent with every message, part by part."""
    with here.open() as memory:
        answer = memory.summary(chat)
    here.show(answer, lambda screen: whole(screen, answer))


def rules(here: Session, chat: ChatKey) -> None:
    """The corrections and rules that users gave, word for word, with their ids."""
    with here.open() as memory:
        answer = memory.summary(chat)
    here.show(answer, lambda screen: _rules(screen, answer))


def status(here: Session, chat: ChatKey) -> None:
    """How much is summarised, what waits and why, and how far a rebuild is."""
    with here.open() as memory:
        answer = memory.summary(chat)
    here.show(answer, lambda screen: _status(screen, answer))


def run(here: Session) -> None:
    """Summarise now what is due in all chats. A process that stays open does it by itself, in the background."""
    with here.open() as memory, here.screen.progress("Summarising") as progress:
        answer = memory.run_summaries(progress=progress)
    here.show(answer, lambda screen: _run(screen, answer))


def edit(
    here: Session,
    chat: ChatKey,
    summary: Annotated[str, typer.Argument(metavar="SUMMARY", help="Id of a part, or how it begins.")],
    text: Annotated[str | None, typer.Argument(metavar="TEXT", help="Its new text; - reads standard input.")] = None,
    option_text: TextOption = None,
    request_id: RequestId = None,
) -> None:
    """Word a part of the summary anew."""
    said = here.read_text(text, option_text)
    if said is None:
        raise InvalidInput("Which text?", hint="Give it as an argument or with --text; - reads standard input.")
    with here.open() as memory:
        answer = memory.edit_summary(chat, _full(memory, chat, summary), said, request_id=request_id)
    here.show(answer, lambda screen: _changed(screen, answer))


def remove_rule(
    here: Session,
    chat: ChatKey,
    rule: Annotated[str, typer.Argument(metavar="RULE", help="Id of the rule, as `summary rules` shows it.")],
    request_id: RequestId = None,
) -> None:
    """Take a rule out of the summary, for good."""
    with here.open() as memory:
        answer = memory.remove_rule(chat, rule, request_id=request_id)
    here.show(answer, lambda screen: _changed(screen, answer))


def rebuild(
    here: Session,
    chat: ChatKey,
    estimate: Annotated[bool, option("--estimate", help="Only say what it would take.")] = False,
    detail: Detail = None,
    yes: Annotated[bool, option("--yes", help="Do not ask.")] = False,
    replace_edited: Annotated[bool, option("--replace-edited", help="Also what a person has worded.")] = False,
    resume: Annotated[bool, option("--resume", help="Go on with one that failed.")] = False,
    wait: Annotated[bool, option("--wait", help="Stay until it is done.")] = False,
    request_id: RequestId = None,
) -> None:
    """Make all summaries of a chat anew, in the background. Says first what that costs."""
    if detail is not None and not estimate:
        raise InvalidInput(
            "--detail only estimates.", hint="Set the level with `person set` or `persona set`, then rebuild."
        )
    with here.open() as memory:
        expected = memory.estimate_rebuild(chat, detail=cast("Any", detail))
        if estimate:
            here.show(expected, lambda screen: _estimate(screen, expected))
            return
        if not here.options.json:
            _estimate(here.screen, expected)
        if not yes:
            if here.options.json or not here.screen.can_ask:
                raise NotAllowed("Nobody has agreed to the cost.", rule="R7", hint="Agree with --yes.")
            if not here.screen.ask("Make the summaries anew?"):
                raise typer.Exit(1)
        answer = memory.rebuild_summary(chat, replace_edited=replace_edited, resume=resume, request_id=request_id)
        ended = _wait(here, memory, chat, answer) if wait else None
    here.show(answer if ended is None else ended, lambda screen: _started(screen, answer, ended))


def cost(
    here: Session,
    turn: Annotated[str, typer.Argument(metavar="TURN", help="The turn, as `reply` shows it.")],
    cost: Annotated[float | None, option(metavar="NUMBER", help="What its reply cost.")] = None,
    input_tokens: Annotated[int | None, option("--input-tokens", help="Or the tokens that were read,")] = None,
    output_tokens: Annotated[int | None, option("--output-tokens", help="and those that were written.")] = None,
    request_id: RequestId = None,
) -> None:
    """Say what a reply cost; an unusual one is noticed, once a chat."""
    with here.open() as memory:
        answer = memory.report_cost(
            turn, cost=cost, input_tokens=input_tokens, output_tokens=output_tokens, request_id=request_id
        )
    here.show(answer, lambda screen: _cost(screen, answer))


def _wait(here: Session, memory: Remembrancer, chat: str, started: SummaryRebuild) -> RebuildView:
    """Stay until this rebuild has ended. The tables may know only an older one, or that this one failed before."""
    with here.screen.progress("Rebuilding") as progress:
        while not memory.wait(started.positions, timeout=LOOK_SECONDS, mode="stale"):
            progress(0, started.messages)
        while True:
            now = memory.summary(chat).rebuild
            if now is not None and now.id == started.rebuild and now.state != "running":
                return now
            progress(now.done if now is not None else 0, started.messages)
            time.sleep(LOOK_SECONDS)


def _full(memory: Remembrancer, chat: str, given: str) -> str:
    """The id of a part that begins like this."""
    found = [str(p.id) for p in memory.summary(chat).parts if str(p.id).startswith(given.lower())]
    if len(found) > 1:
        raise InvalidInput(f"{len(found)} parts begin with {given}.", hint="Write more of the id.")
    if not found:
        raise NotFound(
            f"No part begins with {given}.", rule="D31", hint="`summary show` shows the parts with their ids."
        )
    return found[0]


def whole(screen: Screen, a: SummaryAnswer) -> None:
    """Part by part, with the rules and what waits."""
    if not a.parts and not a.rules:
        screen.line("Nothing is summarised yet.")
    for part in a.parts:
        by = ", worded by a person" if part.edited else ""
        screen.heading(TIERS[part.tier], f"{part.messages} messages, {part.tokens} tokens{by}  {str(part.id)[:13]}")
        screen.block(part.text)
    if a.rules:
        screen.heading("Corrections and rules, word for word")
        _rules(screen, a)
    _status(screen, a)


def _rules(screen: Screen, a: SummaryAnswer) -> None:
    for rule in a.rules:
        screen.labelled(rule.author, f"{rule.text}  {rule.id}")
    if not a.rules:
        screen.line("No rule was given.")


def _status(screen: Screen, a: SummaryAnswer) -> None:
    screen.line(
        f"{a.messages} messages, {a.unsummarised} of them in no summary; {a.tokens} tokens at level {a.detail}."
    )
    if a.waits:
        screen.line(f"Summaries wait: {a.waits}.")
    if a.rebuild is not None:
        _rebuild_view(screen, a.rebuild)


def _rebuild_view(screen: Screen, r: RebuildView) -> None:
    why = f": {r.reason}. Go on with --resume, or start over" if r.state == "failed" else ""
    screen.line(f"Rebuild {r.state}, {r.done} of {r.messages} messages{why}.")


def _estimate(screen: Screen, x: RebuildEstimate) -> None:
    price = "no price is known" if x.cost is None else f"about {x.cost:.4f}"
    tokens = f"{x.input_tokens} tokens read and {x.output_tokens} written"
    screen.line(f"{x.messages} messages, {x.calls} questions, {tokens}: {price}.")
    if x.extra_tokens:
        screen.line(f"At {x.detail} each reply may read {x.extra_tokens:+d} tokens.")
    if x.edited:
        screen.line(f"{len(x.edited)} summaries are worded by a person; --replace-edited replaces them.")


def _run(screen: Screen, a: SummariesRun) -> None:
    screen.line(f"{a.runs} runs; {a.waiting} chats wait to be looked at.")
    if a.error is not None:
        screen.line(f"{a.failing} of them failed: {a.error}. The next try is at {a.next_try:%Y-%m-%d %H:%M:%S} UTC.")


def _started(screen: Screen, answer: SummaryRebuild, ended: RebuildView | None) -> None:
    if ended is not None:
        _rebuild_view(screen, ended)
    else:
        screen.line(f"Started: {answer.messages} messages are summarised anew in the background.")


def _changed(screen: Screen, answer: SummaryChange) -> None:
    screen.line(f"Edited: {answer.summary}" if answer.summary else f"Removed: {answer.rule}")


def _cost(screen: Screen, answer: CostAnswer) -> None:
    screen.line(f"{answer.cost:g}; {answer.median:g} is usual in chat {answer.chat}.")
    if answer.notice is not None:
        screen.line(answer.notice.text)


def register(app: typer.Typer) -> None:
    """Add this group."""
    verbs = typer.Typer(help="The summary of a chat: read, edit, rebuild.", rich_markup_mode=app.rich_markup_mode)
    group(verbs)
    for one in (show, rules, status, run, edit, rebuild, cost):
        verb(verbs)(one)
    verb(verbs, "remove-rule")(remove_rule)
    app.add_typer(verbs, name="summary")
