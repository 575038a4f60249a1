"""undo-turn, rewind and restore on the command line, on a real database (D14, U2)."""

from __future__ import annotations

import pytest

from tests.support.command_line import CommandLine

WHERE = ("--server", "guild")


@pytest.fixture
def remembrancer(database_url: str) -> CommandLine:
    return CommandLine(database_url)


def learn(remembrancer: CommandLine, text: str, turn: str) -> str:
    remembrancer.json("reply", "mira", "hello", *WHERE, "--user", "juno", "--turn", turn)
    saved = remembrancer.json("save", "mira", text, *WHERE, "--actor", "persona", "--turn", turn)
    return str(saved["memory"]["id"])


def texts(remembrancer: CommandLine) -> list[str]:
    return [m["text"] for one in remembrancer.json("list", "mira", *WHERE)["lists"] for m in one["memories"]]


def test_a_turn_is_undone_once_and_says_what_is_gone(remembrancer: CommandLine) -> None:
    learn(remembrancer, "Juno likes tea", "t1")
    assert remembrancer("undo-turn", "t1").out.startswith("gone: Juno likes tea")
    assert texts(remembrancer) == []
    assert remembrancer("undo-turn", "t1").out.startswith("Nothing of t1 is left to take back")


def test_a_chat_is_rewound_to_a_turn(remembrancer: CommandLine) -> None:
    for n in (1, 2, 3):
        learn(remembrancer, f"Fact {n}", f"t{n}")
    answer = remembrancer.json("rewind", "t1")
    assert answer["turns"] == ["t3", "t2"]
    assert {m["text"] for m in answer["removed"]} == {"Fact 2", "Fact 3"}
    assert texts(remembrancer) == ["Fact 1"]


def test_a_deleted_memory_is_restored_and_protected(remembrancer: CommandLine) -> None:
    memory = learn(remembrancer, "Juno likes tea", "t1")
    remembrancer.json("delete", memory)
    answer = remembrancer.json("restore", memory)
    assert (answer["memory"]["text"], answer["memory"]["protected"]) == ("Juno likes tea", True)
    assert texts(remembrancer) == ["Juno likes tea"]


def test_a_turn_or_memory_that_never_was_leaves_with_1_and_the_reason(remembrancer: CommandLine) -> None:
    for words in (["undo-turn", "never"], ["rewind", "never"], ["restore", "0c111111-2222-8333-8444-555555555555"]):
        said = remembrancer(*words, code=1)
        assert "There is no" in said.err
