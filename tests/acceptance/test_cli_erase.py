"""`remembrancer erase`: asked on a terminal, told with --yes in a script (D24)."""

from __future__ import annotations

import pytest

from tests.support.command_line import CommandLine, plain

SECRET = "Juno is afraid of moths"


@pytest.fixture
def remembrancer(database_url: str) -> CommandLine:
    cli = CommandLine(database_url)
    cli("save", "mira", SECRET, "--user", "juno")
    cli("save", "Juno is left-handed", "--global", "juno")
    cli("delete", cli.json("save", "rui", "Juno owes Rui ten coins", "--user", "juno")["memory"]["id"])
    return cli


def left(remembrancer: CommandLine) -> list[str]:
    return [m["text"] for one in remembrancer.json("list")["lists"] for m in one["memories"]]


def test_a_script_says_yes_and_gets_counts_positions_and_what_names_the_person(remembrancer: CommandLine) -> None:
    """D24"""
    remembrancer("save", "mira", "Juno and Kai met at the fair", "--server", "guild")
    remembrancer("save", "mira", "Moonchild is Juno's stage name", "--server", "guild")
    remembrancer("save", "mira", "Kai knows Moonchild", "--server", "guild")
    remembrancer("save", "mira", "Kai plays chess", "--server", "guild")

    answer = remembrancer.json("erase", "--user", "juno", "--name", "Moonchild", "--yes")

    assert set(answer) == {"erased_lists", "memories", "documents", "mentions", "positions"}
    assert (answer["erased_lists"], answer["memories"]) == (3, 3)
    kept = ["Juno and Kai met at the fair", "Kai knows Moonchild", "Moonchild is Juno's stage name"]
    assert sorted(m["text"] for m in answer["mentions"]) == kept
    assert {m["scope"] for m in answer["mentions"]} == {"server"}
    assert len(answer["positions"]) == 1
    assert sorted(left(remembrancer)) == sorted([*kept, "Kai plays chess"])


def test_what_is_erased_is_nowhere_in_the_command_line_any_more(remembrancer: CommandLine) -> None:
    """D24, C29: history goes on, without the texts."""
    memory = remembrancer.json("list", "mira", "--user", "juno")["lists"][0]["memories"][0]["id"]
    remembrancer("erase", "--user", "juno", "--yes", "--compact")
    for words in (["list"], ["export"], ["history", "mira"], ["history", "rui"], ["history", "--memory", memory]):
        said = remembrancer(*words).out
        assert "moths" not in said, words
        assert "coins" not in said, words
    told = remembrancer.json("history", "mira", "--user", "juno")["entries"]
    assert [(one["event"], one["after"]) for one in told] == [("MemorySaved", "[erased]"), ("SubjectErased", None)]


def test_in_a_pipe_it_refuses_without_yes(remembrancer: CommandLine) -> None:
    for words in (["erase", "--user", "juno"], ["erase", "--user", "juno", "--json"]):
        said = remembrancer(*words, code=2, typed="juno\n")
        assert "--yes" in said.err + said.out
    assert SECRET in left(remembrancer)
    assert "--user" in remembrancer("erase", "--yes", code=2).err


def test_on_a_terminal_the_key_is_typed_and_nothing_else_will_do(remembrancer: CommandLine) -> None:
    words = ("erase", "--user", "juno")
    for answer in ("y\n", "Juno\n", "\n", "\x04"):
        seen = remembrancer.terminal(*words, answers=[("Type juno to erase it:", answer)])
        assert (seen.code, "Nothing was erased." in seen.out) == (1, True), seen.out
    assert SECRET in left(remembrancer)

    seen = remembrancer.terminal(*words, answers=[("Type juno to erase it:", "juno\n")])
    assert seen.code == 0
    assert "juno has 3 lists with 2 memories." in plain(seen.out)
    assert "Erased juno: 3 lists, 3 memories." in plain(seen.out)
    assert left(remembrancer) == []


def test_somebody_who_never_was_is_an_error_that_names_near_ones(remembrancer: CommandLine) -> None:
    """D31"""
    said = remembrancer("erase", "--user", "junno", "--yes", code=1)
    assert "Did you mean juno?" in said.err
    assert SECRET in left(remembrancer)


def test_a_second_time_there_is_nothing_left_to_erase(remembrancer: CommandLine) -> None:
    first = remembrancer.json("erase", "--user", "juno", "--yes", "--request-id", "gone")
    again = remembrancer.json("erase", "--user", "juno", "--yes", "--request-id", "gone")
    assert again == first
    assert remembrancer("erase", "--user", "juno", "--yes").out.startswith("Erased juno: 0 lists, 0 memories.")
