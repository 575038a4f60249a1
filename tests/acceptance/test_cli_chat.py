"""The group `chat` as people and scripts have it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command_line import CommandLine, plain


@pytest.fixture
def remembrancer(database_url: str) -> CommandLine:
    return CommandLine(database_url)


def test_a_chat_is_held_shown_mended_and_forked(remembrancer: CommandLine) -> None:
    asked = remembrancer.json("reply", "mira", "hello there", "--user", "juno", "--chat", "tea", "--turn", "t1")
    assert [m["text"] for m in asked["messages"]] == ["hello there"]
    answer = remembrancer.json(
        "chat", "post", "tea", "Hi, Jono!", "--author", "mira", "--role", "persona", "--turn", "t1"
    )
    first = answer["message"][:8]
    assert f"Edited {first}" in remembrancer("chat", "edit", "tea", first, "Hi, Juno!").out
    remembrancer("chat", "post", "tea", "-", "--author", "kai", typed="what a day\n")
    out = remembrancer("chat", "show", "tea").out
    assert out.splitlines()[0] == "Chat tea  mira; 3 messages, 3 in no summary"
    assert [line.split("Z  ")[1] for line in out.splitlines()[1:]] == [
        "juno: hello there", "mira: Hi, Juno! (edited)", "kai: what a day",
    ]  # fmt: skip
    assert "goes on from 2 messages" in remembrancer("chat", "fork", "tea", "other", "--message", answer["message"]).out
    remembrancer("chat", "delete", "tea", first)
    shown = remembrancer.json("chat", "show", "tea", "--limit", "1")
    assert (shown["chat"]["messages"], [m["author"] for m in shown["messages"]]) == (2, ["kai"])
    assert "more: --before" in remembrancer("chat", "show", "tea", "--limit", "1").out
    assert remembrancer.json("chat", "show", "other")["chat"]["parent"] == "tea"


def test_mistakes_are_told(remembrancer: CommandLine) -> None:
    remembrancer("reply", "mira", "hello", "--user", "juno", "--chat", "tea")
    assert "Did you mean tea?" in remembrancer("chat", "show", "teas", code=1).err
    assert "Who said it?" in remembrancer("chat", "post", "tea", "hi", code=2).err
    assert "not the id" in remembrancer("chat", "edit", "tea", "xyz", "hi", code=2).err
    assert "begins with 00000000" in remembrancer("chat", "delete", "tea", "00000000", code=1).err
    assert "is not a role" in remembrancer("chat", "post", "tea", "hi", "--author", "a", "--role", "boss", code=2).err


def test_on_a_terminal_a_chat_reads_like_one(remembrancer: CommandLine) -> None:
    remembrancer("reply", "mira", "hello", "--user", "juno", "--chat", "tea")
    seen = remembrancer.terminal("chat", "show", "tea")
    assert seen.code == 0
    assert "juno: hello" in plain(seen.out)
    assert "\x1b[1m" in seen.out


def test_a_persona_is_deleted_when_asked_for_twice(remembrancer: CommandLine) -> None:
    remembrancer("save", "mira", "--user", "juno", "Juno's cat is named Mochi")
    assert "Say --yes" in remembrancer("persona", "delete", "mira", code=2).err
    seen = remembrancer.terminal("persona", "delete", "mira", answers=[("[y/N]", "y\n")])
    assert (seen.code, "1 memories of 1 people are global now" in plain(seen.out)) == (0, True)
    assert remembrancer.json("list", "--global", "juno")["lists"][0]["count"] == 1


def test_a_chat_of_sillytavern_is_imported(remembrancer: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "chat.jsonl"
    lines = [{"user_name": "J", "character_name": "M"}, {"name": "M", "is_user": False, "mes": "Hi!"}]
    file.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    words = ("chat", "import", str(file), "--chat", "tea", "--persona", "mira", "--user", "juno")
    assert "1 messages imported" in remembrancer(*words).out
    assert remembrancer.json(*words) == {"chat": "tea", "imported": 0, "edited": 0, "known": 1, "hidden": 0}
    again = (*words[:-1], "juno", "--request-id", "once")
    assert remembrancer.json(*again) == remembrancer.json(*again)
    assert "mira: Hi!" in remembrancer("chat", "show", "tea").out
