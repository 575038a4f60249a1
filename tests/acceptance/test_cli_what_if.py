"""`remembrancer what-if` on the command line, on a real database (U3)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from remembrancer.services import open_memory
from tests.support.command_line import CommandLine, plain

CAT = "Juno's cat is named Mochi"
LOCAL = ("--embedder", "local")
ASK = (*LOCAL, "what-if")
WHERE = ("--server", "guild")


@pytest.fixture
def remembrancer(database_url: str) -> CommandLine:
    """Nine days of talk, of which the second touched the cat."""
    now = [datetime.now(UTC) - timedelta(days=10)]
    with open_memory(database_url, clock=lambda: now[0], background=False, embed_timeout=30.0) as memory:
        memory.save("mira", scope="server", subject="guild", text=CAT)
        for day in range(9):
            now[0] += timedelta(days=1)
            says = "How is Juno's cat Mochi?" if day == 1 else "Good morning!"
            memory.reply("mira", message=says, users=["juno"], server="guild")
    return CommandLine(database_url)


@pytest.mark.parametrize("columns", [80, 120])
def test_the_table_says_now_and_then_and_both_totals(remembrancer: CommandLine, columns: int) -> None:
    seen = plain(remembrancer.terminal(*ASK, "--rest-after-days", "14", columns=columns).out)
    assert "What if rest_after_days 14 (now 7)?" in seen
    (row,) = [line for line in seen.splitlines() if CAT in line]
    assert "resting, 7 days" in row
    assert "active, 7 days" in row
    assert "tokens of memories in a reply" in seen
    assert max(map(len, seen.splitlines())) <= columns
    piped = remembrancer(*ASK, "--rest-after-days", "14").out
    assert "resting, 7 days" in piped
    assert "\x1b" not in piped


def test_json_is_the_answer_and_nothing_was_written(remembrancer: CommandLine) -> None:
    answer = remembrancer.json(*ASK, "--rest-after-days", "14", *WHERE, "--persona", "mira")
    assert answer["numbers"] == {"rest_after_days": {"now": 7, "then": 14}}
    assert [(c["text"], c["then"]["state"]) for c in answer["changes"]] == [(CAT, "active")]
    assert answer["applied"] is False
    assert remembrancer.json(*ASK, "--rest-after-days", "14", *WHERE, "--persona", "mira") == answer


def test_without_a_number_it_names_them_and_a_number_out_of_bounds_is_the_policy_s_own_error(
    remembrancer: CommandLine,
) -> None:
    said = remembrancer(*ASK, code=2).err
    for name in ("rest-after-days", "match-limit", "match-threshold", "list-capacity", "desk-limit", "pin-capacity"):
        assert f"--{name}" in said
    assert "rest_after_days: input should be greater than or equal to 1" in remembrancer(
        *ASK, "--rest-after-days", "0", code=2
    ).err  # fmt: skip
    assert "There is no persona" in remembrancer(*ASK, "--desk-limit", "1", "--persona", "rui", code=1).err


def test_apply_is_asked_for_on_a_terminal_and_told_with_yes_in_a_script(remembrancer: CommandLine) -> None:
    words = (*ASK, "--match-threshold", "9", "--apply")
    for more in ([], ["--json"]):
        said = remembrancer(*words, *more, code=2)
        assert "--yes" in said.err + said.out
    seen = remembrancer.terminal(*words, answers=[("Record it?", "n\n")])
    assert (seen.code, "Nothing was recorded." in seen.out) == (1, True)
    assert remembrancer.json(*LOCAL, "list", "mira")["lists"][0]["memories"][0]["unused_days"] == 7

    seen = remembrancer.terminal(*words, answers=[("Record it?", "y\n")])
    assert (seen.code, "Recorded: the use of 1 memory anew." in plain(seen.out)) == (0, True), seen.out
    assert remembrancer.json(*LOCAL, "list", "mira")["lists"][0]["memories"][0]["unused_days"] == 9
    again = remembrancer.json(*words, "--yes")
    assert (again["applied"], again["recounted"], again["changes"]) == (True, 0, [])
    assert "nothing to record" in remembrancer(*words, "--yes").out
