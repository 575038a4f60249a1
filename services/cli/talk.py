"""`remembrancer chat`: a chat in the terminal with the configured model, or one message a line from a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, cast
from uuid import uuid4

import typer

from remembrancer.domain.errors import InvalidInput, NotFound, RemembrancerError
from remembrancer.services.cli.arguments import option
from remembrancer.services.cli.problems import tell
from remembrancer.services.cli.session import Session

if TYPE_CHECKING:
    from pydantic import BaseModel

    from remembrancer.services.answers import MessageView, ReplyAnswer
    from remembrancer.services.answers_talk import ToolUse
    from remembrancer.services.cli.screen import Screen
    from remembrancer.services.remembrancer import Remembrancer

BEFORE = 4
"""Messages of before that are shown where a chat goes on."""
LOOK_BACK = 50
"""So many messages are looked through for the last turn."""


def talk(
    here: Session,
    persona: Annotated[str | None, option("--persona", metavar="KEY", help="Who answers.")] = None,
    users: Annotated[
        list[str] | None, option("--user", metavar="KEY", help="Who you are; repeat for others who take part.")
    ] = None,
    server: Annotated[str | None, option("--server", metavar="KEY", help="Where, if not in private.")] = None,
    channel: Annotated[str | None, option("--channel", metavar="KEY", help="In which room of it.")] = None,
    chat: Annotated[
        str | None, option("--chat", metavar="NAME", help="Which chat; left out, the one of you two.")
    ] = None,
    platform: Annotated[str, option("--platform", metavar="web|discord|telegram|api", help="Left out, web.")] = "web",
    model_context: Annotated[
        int | None, option("--model-context", metavar="N", help="Tokens that the chat model reads.")
    ] = None,
    tools: Annotated[bool, option("--tools/--no-tools", help="Whether the model may save and forget.")] = True,
    once: Annotated[str | None, option("--once", metavar="TEXT", help="Say only this; - reads standard input.")] = None,
) -> None:
    """Talk in the terminal, or show and mend what was said in a chat.

    The model is that of REMEMBRANCER_CHAT_MODEL. After each answer: what was on the desk, recalled, saved, forgotten.

    remembrancer chat --persona mira --user juno
    """
    if persona is None or not users:
        raise InvalidInput("Who talks with whom?", hint="Name both: --persona KEY --user KEY.")
    place = Place(persona, users, server, channel, chat, platform, model_context, tools)
    said = here.read_text(None, once)
    with here.open() as memory:
        model = memory.engine.talking.require_model()
        talking = _Talk(here, memory, place)
        if said is not None:
            talking.say(said)
            return
        if not here.options.json:
            talking.begin(model.name)
        for line in _lines(here, f"{users[0]}: "):
            if not talking.heard(line):
                break
        if talking.unanswered and not sys.stdin.isatty():
            raise typer.Exit(1)


@dataclass(frozen=True)
class Place:
    """Who talks where."""

    persona: str
    users: Sequence[str]
    server: str | None
    channel: str | None
    chat: str | None
    platform: str
    model_context: int | None
    tools: bool

    @property
    def key(self) -> str:
        """The name of the chat (D26)."""
        from remembrancer.domain.chat import default_chat

        if self.chat is not None:
            return self.chat
        return default_chat(self.persona, server=self.server, channel=self.channel, users=self.users)


def _lines(here: Session, prompt: str) -> Iterator[str]:
    """What is typed, line by line, with a history to go back in; or the lines of a pipe."""
    from remembrancer.services.cli.screen import one_line

    if not sys.stdin.isatty():
        while line := sys.stdin.buffer.readline():
            try:
                text = line.decode("utf-8").rstrip("\r\n")
            except UnicodeDecodeError:
                raise InvalidInput("Standard input is not UTF-8.") from None
            if not here.options.json and text.strip():
                here.screen.line(f"{prompt}{text}")
            yield text
        return
    with suppress(ImportError):
        import readline  # noqa: F401 (from here on `input` can edit)
    while True:
        try:
            yield input(one_line(prompt))
        except EOFError:
            here.screen.line("")
            return
        except KeyboardInterrupt:
            here.screen.line("")
            raise
        except UnicodeDecodeError:
            tell(InvalidInput("What was typed is not UTF-8."), as_json=here.options.json)


class _Seen:
    """What comes to pass before there is an answer."""

    def __init__(self) -> None:
        self.reply: ReplyAnswer | None = None
        self.uses: list[ToolUse] = []

    def __call__(self, one: ReplyAnswer | ToolUse) -> None:
        """Told by `talk`."""
        from remembrancer.services.answers import ReplyAnswer

        if isinstance(one, ReplyAnswer):
            self.reply = one
        else:
            self.uses.append(one)


class _Talk:
    """One chat, for as long as the command runs."""

    def __init__(self, here: Session, memory: Remembrancer, place: Place) -> None:
        self._here, self._memory, self._place = here, memory, place
        self._reply: ReplyAnswer | None = None
        self.unanswered = 0
        self._commands: dict[str, tuple[str, Callable[[str], None]]] = {
            "/regenerate": ("answer my last message once more; what the old answer did to memories is undone",
                            lambda _: self._regenerate()),
            "/undo": ("take my last message back, with its answer and what it did to memories", lambda _: self._undo()),
            "/desk": ("the memories that were sent from the start", lambda _: self._desk()),
            "/recalled": ("what my last message was compared with, and what it brought to mind",
                          lambda _: self._recalled()),
            "/why": ("TEXT: the life of a memory", self._why),
            "/summary": ("the summary of this chat", lambda _: self._summary()),
            "/help": ("this", lambda _: self._help()),
            "/quit": ("end", lambda _: None),
        }  # fmt: skip

    def begin(self, model: str) -> None:
        """Say where one is, and how it stood."""
        from remembrancer.services.cli import talk_view

        place = self._place
        talk_view.begin(self._here.screen, place.persona, model, place.key, self._messages(BEFORE))

    def heard(self, line: str) -> bool:
        """Do what a line asks for, or say it. False at the end. What goes wrong is told, and one goes on."""
        text = line.strip()
        if not text:
            return True
        name, _, rest = text.partition(" ")
        if name == "/quit":
            return False
        try:
            if not text.startswith("/") or text.startswith("//"):
                self.say(text.removeprefix("/") if text.startswith("//") else line)
            elif name in self._commands:
                self._commands[name][1](rest.strip())
            else:
                raise InvalidInput(
                    f"There is no {name}.", hint="/help shows what there is; // begins a message with /."
                )
        except RemembrancerError as error:
            tell(error, as_json=self._here.options.json)
        return True

    def say(self, text: str, turn: str | None = None, users: Sequence[str] | None = None) -> None:
        """A turn. `turn`: one that was there before.

        Raises:
            ModelFailed: no answer; what was found for it is shown, and the message stays.
        """
        from remembrancer.services.chat_models import ModelFailed
        from remembrancer.services.cli import talk_view

        place, seen = self._place, _Seen()
        try:
            with self._here.screen.busy(f"{place.persona} is writing"):
                answer = self._memory.talk(
                    place.persona, message=text, users=users or place.users, server=place.server,
                    channel=place.channel, chat=place.chat, platform=cast("Any", place.platform),
                    turn=turn or str(uuid4()), model_context=place.model_context, tools=place.tools, watch=seen,
                )  # fmt: skip
        except ModelFailed as failed:
            self.unanswered += 1
            if seen.reply is not None and not self._here.options.json:
                talk_view.found(self._here.screen, seen.reply, seen.uses)
            failed.hint = " ".join(filter(None, ["The message is kept; /regenerate asks again.", failed.advice]))
            raise
        finally:
            self._reply = seen.reply or self._reply
        self._show(answer, lambda screen: talk_view.turn(screen, answer, place.persona, asked_for_tools=place.tools))

    # -- what a slash asks for -------------------------------------------------------------------------------------

    def _regenerate(self) -> None:
        last = self._last()
        others = [user for user in self._place.users if user != last.author]
        self.say(last.text, last.turn, [last.author, *others])

    def _undo(self) -> None:
        last = self._last()
        assert last.turn is not None
        undone = self._memory.undo_turn(last.turn)
        for m in self._messages(LOOK_BACK):
            if m.turn == last.turn:
                self._memory.delete_message(m.id, chat=self._place.key)
        from remembrancer.services.cli import talk_view

        self._show(undone, lambda screen: talk_view.undone(screen, last.text, undone))

    def _desk(self) -> None:
        from remembrancer.services.cli import show

        reply = self._last_reply()
        self._show(reply.prefix, lambda screen: show.on_desk(screen, reply))

    def _recalled(self) -> None:
        from remembrancer.services.cli import show

        reply = self._last_reply()
        self._show(reply.search, lambda screen: show.searched(screen, reply))

    def _why(self, text: str) -> None:
        from remembrancer.services.cli import why_view

        if not text:
            raise InvalidInput("Why what?", hint="Say what you remember of it: /why Juno's cat.")
        answer = self._memory.why(text, persona=self._place.persona)
        self._show(answer, lambda screen: why_view.life(screen, self._here, answer))

    def _summary(self) -> None:
        from remembrancer.services.cli import summary

        answer = self._memory.summary(self._place.key)
        self._show(answer, lambda screen: summary.whole(screen, answer))

    def _help(self) -> None:
        from remembrancer.services.cli.screen import Column

        rows = [(name, what) for name, (what, _) in self._commands.items()]
        self._here.screen.table((Column(""), Column("", wide=True)), rows)

    def _show(self, answer: BaseModel, view: Callable[[Screen], None]) -> None:
        self._here.show(answer, view)
        sys.stdout.flush()

    # -- what was said ---------------------------------------------------------------------------------------------

    def _messages(self, limit: int) -> Sequence[MessageView]:
        try:
            return self._memory.messages(self._place.key, limit=limit).messages
        except NotFound:  # it comes into being with its first message (D31)
            return []

    def _last(self) -> MessageView:
        """The last message of a person that was meant for the persona, said now or in another session."""
        asked = [m for m in self._messages(LOOK_BACK) if m.role == "user" and m.turn is not None and m.author]
        if not asked:
            raise InvalidInput("Nothing was said here yet.")
        return asked[-1]

    def _last_reply(self) -> ReplyAnswer:
        if self._reply is None:
            raise InvalidInput("Nothing was said yet.", hint="The desk is read with the first message.")
        return self._reply
