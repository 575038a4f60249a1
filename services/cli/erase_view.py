"""What is asked before somebody is erased, and what is said afterwards."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rich.text import Text

from remembrancer.services.cli.screen import Column, Screen, shown
from remembrancer.services.cli.show import short, where

if TYPE_CHECKING:
    from remembrancer.services.answers import EraseAnswer, ListAnswer

_MENTIONS = (Column("list"), Column("memory", wide=True), Column("id", style="dim"))


def confirmed(screen: Screen, user: str, found: ListAnswer) -> bool:
    """Did somebody type the key? A yes would be too easy."""
    lists = [one for one in found.lists if one.scope != "server"]
    screen.line(f"{user} has {_lists(len(lists))} with {_memories(sum(len(one.memories) for one in lists))}.")
    screen.line("They become unreadable, with what was deleted or forgotten before. There is no way back.")
    screen.console.print(Text(f"Type {shown(user)} to erase it: "), end="")
    screen.console.file.flush()
    typed = sys.stdin.readline()
    if not typed.endswith("\n"):
        screen.console.print()
    return typed.rstrip("\r\n") == user


def erased(screen: Screen, user: str, answer: EraseAnswer, *, compact: bool) -> None:
    """After `erase`."""
    what = f"{_lists(answer.erased_lists)}, {_memories(answer.memories)}"
    if answer.documents:
        what += f", {answer.documents} document{'s' * (answer.documents != 1)}"
    screen.line(Text("Erased", "bold green"), f" {user}: {what}.")
    if answer.mentions:
        screen.line("These memories of servers name them, and stay until somebody edits or deletes them:")
        rows = [(where(m.persona, m.scope, m.subject), m.text, short(m.id)) for m in answer.mentions]
        screen.table(_MENTIONS, rows)
    if not compact:
        screen.line(Text("What is free on the disk may still hold bytes of it: --compact rewrites it.", "dim"))


def _lists(n: int) -> str:
    return f"{n} list{'s' * (n != 1)}"


def _memories(n: int) -> str:
    return f"{n} {'memory' if n == 1 else 'memories'}"
