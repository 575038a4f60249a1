"""One run of one verb: its options, its screen, and the memories that it opens."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from uuid import UUID

from remembrancer.domain.errors import InvalidInput
from remembrancer.services.cli.options import Options

if TYPE_CHECKING:
    from pydantic import BaseModel

    from remembrancer.services.cli.screen import Screen
    from remembrancer.services.remembrancer import Remembrancer


class Session:
    """What a verb works with."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._screen: Screen | None = None

    @property
    def screen(self) -> Screen:
        """Where people read; with --json nothing is written there."""
        if self._screen is None:
            from remembrancer.services.cli.screen import Screen

            self._screen = Screen(sys.stdout, bare=self.options.json)
        return self._screen

    @contextmanager
    def open(self, **settings: Any) -> Iterator[Remembrancer]:
        """The memories that the options name; `settings` stand above them."""
        with self.screen.busy("Opening the memories"):
            from remembrancer.services import open_memory

            memory = open_memory(**{**self.options.settings(), **settings})
        memory.engine.change.automatic = False  # a command that passes by changes no model (D23)
        with memory:
            yield memory

    def show(self, answer: BaseModel, view: Callable[[Screen], None]) -> None:
        """The answer as JSON, if that was asked for; otherwise as `view` draws it."""
        if self.options.json:
            self.write_json(answer.model_dump(mode="json"))
        else:
            view(self.screen)

    def write_json(self, document: Any) -> None:
        """One document on stdout."""
        from remembrancer.services.cli.screen import json_text

        sys.stdout.write(json_text(document) + "\n")

    def read_text(self, text: str | None, option: str | None) -> str | None:
        """A text given as argument or option; `-` reads standard input, without the last end of line.

        Raises:
            InvalidInput: both were given, or the input is not UTF-8.
        """
        if text is not None and option is not None:
            raise InvalidInput("The text was given twice.", hint="Give it as an argument or with --text.")
        given = option if text is None else text
        return read_stdin().removesuffix("\n").removesuffix("\r") if given == "-" else given


def read_stdin() -> str:
    """All of standard input.

    Raises:
        InvalidInput: it is not UTF-8.
    """
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        wrong = error.object[error.start]
        raise InvalidInput(f"Standard input is not UTF-8: byte {error.start} is {wrong:#04x}.") from None


def full_id(memory: Remembrancer, given: str) -> UUID:
    """The memory that an id or the beginning of one means.

    Raises:
        InvalidInput: neither; or more than one memory begins like that.
        NotFound: none does.
    """
    from remembrancer.services.cli.short_ids import resolve

    return resolve(memory, given)
