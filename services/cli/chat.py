"""The group `chat`: talking, opening one, what was said, worded anew, taken out, and going on as another chat."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, cast
from uuid import UUID

import typer
from rich.text import Text

from remembrancer.domain.errors import InvalidInput
from remembrancer.services.cli.arguments import RequestId, TextOption, option
from remembrancer.services.cli.message_ids import ChatKey, MessageId, message_id
from remembrancer.services.cli.screen import shown
from remembrancer.services.cli.session import Session
from remembrancer.services.cli.talk import talk
from remembrancer.services.cli.transfer import read_file
from remembrancer.services.cli.verb import group, verb
from remembrancer.services.cli.ways_in import chat_save

if TYPE_CHECKING:
    from remembrancer.services.answers import MessageView
    from remembrancer.services.answers_chat import ChatView, MessagesAnswer
    from remembrancer.services.cli.screen import Screen


def chat_show(
    here: Session,
    chat: ChatKey,
    limit: Annotated[int, option(metavar="N", help="At most so many messages, 1 to 1000; left out, 20.")] = 20,
    before: Annotated[int | None, option(metavar="NUMBER", help="Go on into the past after a page.")] = None,
) -> None:
    """Show what was said, oldest first."""
    with here.open() as memory:
        view, page = memory.chat(chat), memory.messages(chat, limit=limit, before=before)
        if here.options.json:
            here.write_json({"chat": view.model_dump(mode="json"), **page.model_dump(mode="json", exclude={"chat"})})
        else:
            _draw(here.screen, view, page)


def chat_open(
    here: Session,
    chat: Annotated[str, typer.Argument(metavar="NAME", help="Name of the new chat.")],
    persona: Annotated[list[str], option("--persona", metavar="KEY", help="Who talks in it; several are a group.")],
    user: Annotated[list[str] | None, option("--user", metavar="KEY", help="Who is expected; may come again.")] = None,
    server: Annotated[str | None, option("--server", metavar="KEY", help="Where, if not in private.")] = None,
    channel: Annotated[str | None, option("--channel", metavar="KEY", help="A room of the server.")] = None,
    platform: Annotated[str, option(metavar="web|discord|telegram|api", help="Left out, web.")] = "web",
    request_id: RequestId = None,
) -> None:
    """Open a chat of several personas: a group, in which each reads what all of them remember."""
    with here.open() as memory:
        answer = memory.open_chat(
            chat, personas=persona, users=user or (), server=server, channel=channel, platform=cast("Any", platform),
            request_id=request_id,
        )  # fmt: skip
        here.show(answer, lambda screen: screen.line(f"{shown(answer.chat)} is open: {_who(answer)}."))


def chat_post(
    here: Session,
    chat: ChatKey,
    text: Annotated[
        str | None, typer.Argument(metavar="MESSAGE", help="What was said; - reads standard input.")
    ] = None,
    text_option: TextOption = None,
    author: Annotated[str, option("--author", metavar="KEY", help="Who said it.")] = "",
    role: Annotated[str, option(metavar="user|persona", help="What the author is; left out, a user.")] = "user",
    turn: Annotated[str | None, option(metavar="ID", help="The turn that a persona answers.")] = None,
    ref: Annotated[str | None, option(metavar="ID", help="Your own id of it.")] = None,
    request_id: RequestId = None,
) -> None:
    """Put a message into a chat: a persona's answer, or what was said without one."""
    said = here.read_text(text, text_option)
    if said is None:
        raise InvalidInput("What was said?", hint="Give the message; - reads standard input.")
    if not author:
        raise InvalidInput("Who said it?", hint="Name the author with --author KEY.")
    with here.open() as memory:
        answer = memory.post(
            chat, said, author=author, role=cast("Any", role), turn=turn, ref=ref, request_id=request_id
        )
        here.show(answer, lambda screen: screen.line(f"Posted as {_short(answer.message)}, {answer.tokens} tokens."))


def chat_edit(
    here: Session,
    chat: ChatKey,
    message: MessageId,
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="How it reads now; - reads standard input.")
    ] = None,
    text_option: TextOption = None,
    request_id: RequestId = None,
) -> None:
    """Word a message anew."""
    said = here.read_text(text, text_option)
    if said is None:
        raise InvalidInput("How does it read now?", hint="Give the text; - reads standard input.")
    with here.open() as memory:
        answer = memory.edit_message(message_id(memory, chat, message), said, chat=chat, request_id=request_id)
        here.show(answer, lambda screen: screen.line(f"Edited {_short(answer.message)}."))


def chat_delete(here: Session, chat: ChatKey, message: MessageId, request_id: RequestId = None) -> None:
    """Take a message out of its chat."""
    with here.open() as memory:
        answer = memory.delete_message(message_id(memory, chat, message), chat=chat, request_id=request_id)
        here.show(answer, lambda screen: screen.line(f"Deleted {_short(answer.message)}."))


def chat_fork(
    here: Session,
    chat: ChatKey,
    to: Annotated[str, typer.Argument(metavar="NAME", help="Name of the new chat.")],
    message: Annotated[
        str | None, option("--message", metavar="MESSAGE", help="The last one inherited; left out, the newest.")
    ] = None,
    request_id: RequestId = None,
) -> None:
    """Go on as another chat, which inherits what was said and shares the memories."""
    with here.open() as memory:
        last = None if message is None else message_id(memory, chat, message)
        answer = memory.fork(chat, to, message=last, request_id=request_id)
        here.show(answer, lambda screen: screen.line(f"{shown(to)} goes on from {answer.messages} messages."))


def chat_import(
    here: Session,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="SillyTavern's .jsonl or plain JSON; - reads standard input.")
    ],
    chat: Annotated[str, option("--chat", metavar="NAME", help="The chat here that it becomes, or goes on.")],
    persona: Annotated[str, option("--persona", metavar="KEY", help="Whose the character's messages are.")],
    user: Annotated[str, option("--user", metavar="KEY", help="Whose the other messages are.")],
    server: Annotated[str | None, option("--server", metavar="KEY", help="Where, if not in private.")] = None,
    platform: Annotated[str | None, option(metavar="web|discord|telegram|api", help="Left out, web.")] = None,
    request_id: RequestId = None,
) -> None:
    """Bring in a chat of another program. The same file again brings nothing, a later state of it what is new."""
    text = read_file(file)
    with here.open() as memory, here.screen.progress("Importing") as progress:
        answer = memory.import_chat(
            text,
            chat=chat,
            persona=persona,
            user=user,
            server=server,
            platform=cast("Any", platform),
            request_id=request_id,
            progress=progress,
        )
    here.show(
        answer,
        lambda screen: screen.line(
            f"{answer.imported} messages imported, {answer.edited} worded anew, {answer.known} known, "
            f"{answer.hidden} left out as hidden there."
        ),
    )


def _draw(screen: Screen, view: ChatView, page: MessagesAnswer) -> None:
    left = f", {view.unsummarised} in no summary" if view.unsummarised else ""
    screen.heading(f"Chat {view.chat}", f"{_who(view)}; {view.messages} messages{left}")
    if (deep := view.deep_memory) is not None and (deep.active or deep.failed):
        failed = f"; the last pass came to nothing: {deep.failed}, and is tried again" if deep.failed else ""
        full = "; a list was full, so the last pass ended early" if deep.full else ""
        done = f"{deep.messages} messages read, {deep.changes} changes{full}{failed}"
        screen.labelled("deep memory", f"{'active' if deep.active else 'off'}, {done}", "bold")
    for m in page.messages:
        screen.line(*_line(m))
    if page.before is not None:
        screen.line(Text(f"more: --before {page.before}", "dim"))


def _who(view: ChatView) -> str:
    group = "a group of " if len(view.personas) > 1 else ""
    return shown(group + ", ".join(view.personas))


def _line(m: MessageView) -> tuple[Text, ...]:
    who = "bold green" if m.role == "persona" else "bold"
    edited = " (edited)" if m.edited_at else ""
    return (
        Text(f"{_short(m.id)}  {m.said_at:%Y-%m-%d %H:%M}Z  ", "dim"),
        Text(f"{shown(m.author)}: ", who),
        Text(shown(m.text)),
        Text(edited, "dim"),
    )


def _short(message: UUID) -> str:
    return message.hex[:8]


def register(app: typer.Typer) -> None:
    """Add this group."""
    verbs = typer.Typer(rich_markup_mode=app.rich_markup_mode)
    group(verbs, alone=talk)
    for name, work in (
        ("show", chat_show),
        ("open", chat_open),
        ("post", chat_post),
        ("save", chat_save),
        ("edit", chat_edit),
        ("delete", chat_delete),
        ("fork", chat_fork),
        ("import", chat_import),
    ):
        verb(verbs, name)(work)
    app.add_typer(verbs, name="chat")
