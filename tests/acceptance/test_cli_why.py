"""`why` on the command line, on a real database: the story, the verdict, and the command that brings it back (U1)."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import pytest
from rich.cells import cell_len

from remembrancer.services.answers_why import WhyAnswer
from tests.support.command_line import PROGRAM, CommandLine, plain
from tests.support.fake_openai import FakeOpenAI

MOCHI = "Juno's cat is named Mochi"
WHERE = ("--server", "guild")


@pytest.fixture
def remembrancer(database_url: str) -> CommandLine:
    return CommandLine(database_url)


@pytest.fixture
def searching(database_url: str) -> Iterator[CommandLine]:
    with FakeOpenAI(dimensions=256) as fake:
        yield CommandLine(
            database_url,
            REMEMBRANCER_EMBEDDER="openai",
            REMEMBRANCER_EMBEDDER_URL=fake.url,
            REMEMBRANCER_EMBEDDER_MODEL="words",
            REMEMBRANCER_MATCH_THRESHOLD="0.3",
        )


def save(remembrancer: CommandLine, text: str = MOCHI, *more: str) -> str:
    return str(remembrancer.json("save", "mira", text, *WHERE, *more)["memory"]["id"])


def test_json_is_the_answer(searching: CommandLine) -> None:
    memory = save(searching)
    searching.json("reply", "mira", "how is Mochi, the cat of Juno?", *WHERE, "--user", "juno")
    answer = searching.json("why", "Juno's cat")
    assert set(answer) == set(WhyAnswer.model_fields)
    assert (answer["memory"]["id"], answer["status"]) == (memory, "on_desk")
    assert [line["event"] for line in answer["story"]] == ["MemorySaved", "MemoriesMatched"]
    assert answer["searches"]["matched"][0]["threshold"] == 0.3


def test_text_short_id_whole_id_and_standard_input_all_name_it(remembrancer: CommandLine) -> None:
    memory = save(remembrancer)
    for words, typed in (
        ([MOCHI], ""),
        ([memory[:8]], ""),
        ([memory[:13]], ""),
        ([memory], ""),
        (["-"], "Juno's cat\n"),
    ):
        said = remembrancer("why", *words, "--json", typed=typed)
        assert said.document["memory"]["id"] == memory, words


def test_a_text_that_looks_like_an_id_is_a_text_where_there_is_no_such_id(remembrancer: CommandLine) -> None:
    memory = save(remembrancer, "The party is on 20260503")
    assert remembrancer.json("why", "20260503")["memory"]["id"] == memory
    assert "There is no memory 20260504" in remembrancer("why", "20260504", code=1).err


def test_a_pipe_gets_plain_lines_that_end_with_the_verdict_and_the_way_back(remembrancer: CommandLine) -> None:
    memory = save(remembrancer, MOCHI, "--actor", "persona")
    remembrancer("delete", memory)
    out = remembrancer("why", "Juno's cat").out
    assert "\x1b" not in out
    assert out.splitlines()[0].startswith(f"\u201c{MOCHI}\u201d  {memory[:8]}")
    assert "note: No embedding model is configured" in out
    rows = [line for line in out.splitlines() if " UTC  " in line]
    assert [row.split("  ")[1] for row in rows] == ["saved", "deleted"]
    assert "verdict: It was deleted by a person on " in out
    back = out.split("bring it back:\n")[1].splitlines()[0]
    words = shlex.split(back)[len(PROGRAM) :] if "-m" in back else shlex.split(back)[1:]
    assert words == ["restore", memory]
    remembrancer(*words)
    assert "It is not forgotten" in remembrancer("why", memory).out


def test_the_way_back_names_the_tenant_that_was_asked(remembrancer: CommandLine) -> None:
    memory = str(remembrancer.json("--tenant", "other", "save", "mira", MOCHI, *WHERE)["memory"]["id"])
    remembrancer("--tenant", "other", "delete", memory)
    out = remembrancer("why", "--tenant", "other", "Juno's cat").out
    assert f"--tenant other restore {memory}" in out
    assert "was ever saved" in remembrancer("why", "Juno's cat", code=1).err


def test_what_was_never_known_leaves_with_1_and_names_near_ones(remembrancer: CommandLine) -> None:
    """D31"""
    save(remembrancer)
    said = remembrancer("why", "Juno's submarine", code=1)
    assert "was ever saved" in said.err
    assert MOCHI in said.err
    assert remembrancer.json("why", "Juno's submarine", code=1)["near"][0]["text"] == MOCHI
    remembrancer("why", code=2)
    remembrancer("why", "  ", code=2)
    remembrancer("why", "0c111111-2222-8333-8444-555555555555", code=1)


def test_others_that_may_be_meant_are_shown_with_their_ids(remembrancer: CommandLine) -> None:
    save(remembrancer)
    other = save(remembrancer, "Juno's cat hates rain")
    out = remembrancer("why", "Juno's cat Mochi").out
    assert other[:8] in out.split("You may have meant another one")[1]


@pytest.mark.parametrize("columns", [80, 120])
def test_a_terminal_gets_a_timeline_and_the_counter_as_blocks_within_its_width(
    remembrancer: CommandLine, columns: int
) -> None:
    memory = save(remembrancer, "猫の名前はモチです")
    remembrancer("edit", memory, f"{MOCHI}, and she likes to sleep on the warm laptop of Kai when it is raining")
    seen = remembrancer.terminal("why", memory, columns=columns)
    assert seen.code == 0
    lines = [line.rsplit("\r", 1)[-1] for line in plain(seen.out).splitlines() if "Opening" not in line]
    assert [line for line in lines if "\u25cf edited" in line]
    assert "unused days  \u2581" in "\n".join(lines)
    assert max(map(cell_len, lines)) <= columns


def test_what_strangers_wrote_cannot_command_the_terminal(remembrancer: CommandLine) -> None:
    memory = save(remembrancer, "Juno \x1b[2J clears")
    for out in (remembrancer("why", memory).out, remembrancer.terminal("why", memory).out):
        assert "\x1b[2J" not in out
        assert "\\x1b[2J" in out


def test_history_is_filtered_by_kind(remembrancer: CommandLine) -> None:
    memory = save(remembrancer)
    remembrancer("pin", memory)
    remembrancer("delete", memory)
    entries = remembrancer.json("history", "mira", "--kind", "MemoryPinned", "--kind", "memorydeleted")["entries"]
    assert [x["event"] for x in entries] == ["MemoryPinned", "MemoryDeleted"]
    assert "MemoryEvicted" in remembrancer("history", "mira", "--kind", "Lost", code=2).err
