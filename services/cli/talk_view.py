"""How a chat looks in the terminal: what was said, and under each answer what it was made from and what it changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from remembrancer.services.cli.screen import Screen, shown

if TYPE_CHECKING:
    from uuid import UUID

    from remembrancer.services.answers import MessageView, NoticeView, ReplyAnswer, UndoAnswer
    from remembrancer.services.answers_talk import TalkAnswer, ToolUse

PERSONA = "bold green"
DONE = {"saved": "green", "known": "dim", "updated": "green", "deleted": "yellow", "refused": "yellow"}


def begin(screen: Screen, persona: str, model: str, chat: str, before: Sequence[MessageView]) -> None:
    """Above the first message."""
    screen.heading(f"{persona}, spoken by {model}", f"chat {chat}; /help shows what else there is")
    for m in before:
        screen.line(Text(f"{shown(m.author)}: {shown(m.text)}", "dim"))


def turn(screen: Screen, answer: TalkAnswer, persona: str, *, asked_for_tools: bool) -> None:
    """An answer, and below it how it came about."""
    screen.line(Text(f"{shown(persona)}: ", PERSONA), Text(shown(answer.text)))
    price = "" if answer.cost is None else f", cost {answer.cost:g}"
    spent = f"{answer.input_tokens:,} tokens read, {answer.output_tokens:,} written{price}"
    found(screen, answer.reply, answer.calls, spent)
    of_calls = [n for call in answer.calls for n in call.notices]
    _notices(screen, [n for n in answer.notices if n not in of_calls])
    if asked_for_tools and not answer.tools:
        screen.labelled("note", "this model takes no tools, so that it can save nothing itself (R17)", "yellow")


def found(screen: Screen, reply: ReplyAnswer, calls: Sequence[ToolUse], spent: str = "") -> None:
    """What a reply was made from, and what the model did to memories."""
    screen.line(Text(shown("  " + " \u00b7 ".join([*_sizes(reply), *([spent] if spent else [])])), "dim"))
    for m in reply.late.recalled:
        _labelled(screen, "recalled", m.text, "blue")
    for p in reply.late.documents:
        _labelled(screen, "document", f"{p.name}, {p.place}" if p.place else p.name, "blue")
    if reply.late.documents_missing:
        _labelled(screen, "documents", f"not searched: {reply.late.documents_missing}", "yellow")
    before = {m.id: m.text for m in [*reply.prefix.memories, *reply.late.recalled]}
    for call in calls:
        _labelled(screen, _LABELS[call.did], _did(call, before), DONE[call.did])
        for f in call.forgotten:
            _labelled(screen, "forgotten", f"{f.memory.text} ({f.reason})", "blue")


_LABELS = {"saved": "saved", "known": "known already", "updated": "updated", "deleted": "deleted", "refused": "refused"}


def _sizes(reply: ReplyAnswer) -> Sequence[str]:
    """The desk, the three layers in numbers, and why nothing was searched, if so."""
    said = [f"on the desk {len(reply.prefix.memories)}"]
    if reply.search.status != "ok":
        said.append(f"not searched: {reply.search.reason}")
    if (w := reply.window) is not None:
        older = len(reply.messages) - w.messages
        said.append(f"{w.messages} messages live" + (f", {older} older as they are" if older else ""))
        if reply.summary.tokens:
            said.append(f"summary {reply.summary.tokens:,} tokens")
        said.append(f"{w.unsummarised} in no summary" + (f", {w.unsent} of them without room" if w.unsent else ""))
    return said


def _did(call: ToolUse, before: Mapping[UUID, str]) -> str:
    if call.memory is None:
        return f"{call.name}: {call.content}"
    old = before.get(call.memory.id)
    return f"{old} \u2192 {call.memory.text}" if call.did == "updated" and old is not None else call.memory.text


def undone(screen: Screen, text: str, answer: UndoAnswer) -> None:
    """After a message was taken back."""
    screen.line(Text("Taken back: ", "bold"), Text(shown(text)))
    for label, style, some in (
        ("gone", "yellow", answer.removed), ("back", "green", answer.restored), ("as before", "green", answer.reverted),
    ):  # fmt: skip
        for one in some:
            _labelled(screen, label, one.text, style)
    for kept in answer.kept:
        _labelled(screen, "kept", f"{kept.text} ({kept.why})", "dim")


def _notices(screen: Screen, notices: Sequence[NoticeView]) -> None:
    for n in notices:
        _labelled(screen, "notice", n.text, "yellow")


def _labelled(screen: Screen, label: str, text: str, style: str) -> None:
    screen.labelled(f"  {label}", text, style)
