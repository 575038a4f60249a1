"""at and diff on the command line, on a real database (U1)."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from remembrancer.services.answers_moment import DiffAnswer, MomentAnswer
from tests.support.command_line import CommandLine, plain

WHERE = ("--server", "guild")
MOCHI = "Juno's cat is named Mochi"


@pytest.fixture
def remembrancer(database_url: str) -> CommandLine:
    made = CommandLine(database_url)
    made("save", "mira", MOCHI, *WHERE)
    made("reply", "mira", "hello", *WHERE, "--user", "juno", "--turn", "turn-1")
    made("save", "mira", "Juno plays chess", *WHERE)
    made("reply", "mira", "hello", *WHERE, "--user", "juno", "--turn", "turn-2")
    return made


def test_at_a_turn_answers_as_python_does_and_shows_the_prompt_to_people(remembrancer: CommandLine) -> None:
    answer = remembrancer.json("at", "turn-1")
    assert set(answer) == set(MomentAnswer.model_fields)
    assert [m["text"] for m in answer["prefix"]["memories"]] == [MOCHI]
    said = remembrancer("at", "turn-1").out
    assert said.startswith("Turn turn-1\n")
    assert answer["prefix"]["text"] in said
    assert answer["prefix"]["fingerprint"][:12] in said
    assert "Juno plays chess" not in said


def test_at_a_moment_needs_a_persona_and_says_which_replies_are_near(remembrancer: CommandLine) -> None:
    after = remembrancer.json("at", "turn-2")["at"]
    said = remembrancer("at", after, "--persona", "mira", *WHERE, "--user", "juno").out
    assert "as a reply would have had it" in said
    assert "reply before: turn-2" in said or "reply after: turn-2" in said
    assert "Whose memories" in remembrancer("at", after, code=2).err
    early = remembrancer("at", "1999-12-31", "--persona", "mira").out
    assert "Nothing was remembered yet." in early
    assert "reply after: turn-1" in early


def test_a_turn_named_like_a_date_is_found_with_turn(remembrancer: CommandLine) -> None:
    remembrancer("reply", "mira", "hello", *WHERE, "--user", "juno", "--turn", "2026-05-03")
    assert remembrancer.json("at", "--turn", "2026-05-03")["turn"] == "2026-05-03"
    assert "named twice" in remembrancer("at", "turn-1", "--turn", "turn-1", code=2).err
    assert "Which moment?" in remembrancer("at", code=2).err


def test_at_a_position_of_history(remembrancer: CommandLine) -> None:
    first = remembrancer.json("history", "mira", *WHERE)["entries"][0]["position"]
    answer = remembrancer.json("at", f"{first['shard']}:{first['position']}")
    assert [m["text"] for one in answer["lists"] for m in one["memories"]] == [MOCHI]


def test_diff_marks_what_came_and_shows_the_prompts_lines(remembrancer: CommandLine) -> None:
    answer = remembrancer.json("diff", "turn-1", "turn-2")
    assert set(answer) == set(DiffAnswer.model_fields)
    assert [c["after"]["text"] for c in answer["added"]] == ["Juno plays chess"]
    said = remembrancer("diff", "turn-1", "turn-2").out
    assert "+ added" in said
    assert "+2. Juno plays chess" in said
    assert "the same, byte for byte" in remembrancer("diff", "turn-2", "turn-2").out


def test_diff_of_a_turn_and_a_moment_and_of_two_attempts(remembrancer: CommandLine) -> None:
    now = remembrancer.json("at", "turn-2")["at"]
    assert remembrancer.json("diff", "turn-1", now)["after"]["server"] == "guild"
    remembrancer("reply", "mira", "again", *WHERE, "--user", "juno", "--turn", "turn-1")
    answer = remembrancer.json("diff", "turn-1", "turn-1", "--from-attempt", "1", "--to-attempt", "2")
    assert (answer["before"]["attempt"], answer["after"]["attempt"]) == (1, 2)
    assert len(answer["added"]) == 1


def test_what_never_was_leaves_with_1_and_what_is_no_moment_with_2(remembrancer: CommandLine) -> None:
    assert "Did you mean turn-2 or turn-1?" in remembrancer("at", "turn-9", code=1).err
    assert "no attempt 4" in remembrancer("at", "turn-1", "--attempt", "4", code=1).err
    assert "There is no turn" in remembrancer("diff", "turn-1", "turn-9", code=1).err
    assert "is not a moment" in remembrancer("at", "2026-99-99", "--persona", "mira", code=2).err
    problem = remembrancer.json("at", "turn-9", code=1)
    assert (problem["type"], problem["rule"], problem["near"]) == ("not-found", "D31", ["turn-2", "turn-1"])


def test_a_terminal_of_80_or_120_columns_shows_it_all(remembrancer: CommandLine) -> None:
    remembrancer("save", "mira", "猫の名前はモチです" * 8, *WHERE)
    remembrancer("reply", "mira", "hello", *WHERE, "--user", "juno", "--turn", "turn-3")
    for columns in (80, 120):
        for words in (("at", "turn-3"), ("diff", "turn-1", "turn-3")):
            seen = remembrancer.terminal(*words, columns=columns)
            assert seen.code == 0
            lines = [line.rstrip() for line in plain(seen.out).splitlines()]
            shown = [line.rpartition("\r")[2] for line in lines if "Opening" not in line]
            assert max(cell_len(line) for line in shown) <= columns
            assert "Mochi" in "".join(shown)


def test_nothing_that_a_terminal_would_obey_comes_through(remembrancer: CommandLine) -> None:
    remembrancer("save", "mira", "red \x1b[31m alert", *WHERE)
    remembrancer("reply", "mira", "hello", *WHERE, "--user", "juno", "--turn", "evil\x1b[2J")
    for words in (("at", "--turn", "evil\x1b[2J"), ("diff", "turn-1", "evil\x1b[2J")):
        assert "\x1b" not in remembrancer(*words).out
