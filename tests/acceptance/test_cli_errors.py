"""What the command line says when something is wrong: a reason, what to do, an exit code, and never a traceback."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from remembrancer.services.remembrancer import Remembrancer
from tests.support.command_line import CommandLine
from tests.support.cutting_proxy import CuttingProxy

WHERE = ("--server", "guild")
PROBLEM = {"type", "title", "status", "detail", "rule", "hint"}
NOBODY = "00000000-0000-8000-8000-000000000000"


@pytest.fixture
def remembrancer(database_url: str) -> CommandLine:
    return CommandLine(database_url)


def problem(remembrancer: CommandLine, *words: str, code: int, typed: str | bytes = "") -> dict[str, Any]:
    """The same error twice: as a sentence on stderr alone, as JSON on stdout alone."""
    said = remembrancer(*words, code=code, typed=typed)
    assert said.out == ""
    assert said.err.startswith("error: ")
    assert "Traceback" not in said.err
    document = remembrancer(*words, "--json", code=code, typed=typed)
    assert document.err == ""
    assert set(document.document) >= PROBLEM
    found: dict[str, Any] = document.document
    return found


@pytest.mark.parametrize(
    "words",
    [
        ["save", "mira", "", *WHERE],
        ["save", "mira", " \t ", *WHERE],
        ["save", "mira", *WHERE],
        ["save", "mira", "a text"],
        ["save", "mira", "a text", "--server", " "],
        ["save", "*", "a text", *WHERE],
        ["save", "mira", "a text", "--scope", "world", "--subject", "guild"],
        ["save", "mira", "a text", "--scope", "server"],
        ["save", "mira", "a text", *WHERE, "--user", "juno"],
        ["save", "mira", "a text", *WHERE, "--scope", "server", "--subject", "guild"],
        ["save", "mira", "a text", *WHERE, "--text", "another"],
        ["save", "mira", "a text", *WHERE, "--until", "12 May"],
        ["save", "mira", "a text", *WHERE, "--actor", "nobody"],
        ["save", "mira", "a text", *WHERE, "--tag", ""],
        ["save", "mira", "a text", *WHERE, "--make-room", "that one"],
        ["edit", NOBODY, "--tag", "a", "--no-tags"],
        ["edit", "not-an-id", "a text"],
        ["delete", "12345"],
        ["list", "mira", *WHERE, "--state", "asleep"],
        ["list", "--scope", "world"],
        ["reply", "mira", *WHERE],
        ["reply", "mira", "hi", "--platform", "fax"],
        ["reply", "mira", "hi", "--memory", "maybe"],
        ["reply", "mira", "hi", "--user", "*"],
        ["history"],
        ["history", "mira", "--scope", "server"],
        ["history", "mira", "--since", "yesterday"],
        ["history", "mira", "--since", "2026-05-03T10:00"],
        ["history", "mira", "--limit", "0"],
        ["history", "mira", "--limit", "1001"],
        ["history", "mira", *WHERE, "--after", "nonsense"],
        ["persona", "set", "mira"],
        ["person", "set", "juno", "--privacy", "sometimes"],
        ["person", "set", "juno", "--not-learning", "mira", "--all-learn"],
        ["server", "set", "guild", "--notices", "nobody"],
        ["policy", "set", "list_capacity"],
        ["policy", "set", "list_capacity=0"],
        ["policy", "set", "list_capacity=many"],
        ["policy", "set", "list_capacity=[1]"],
        ["policy", "set", "match_threshold=NaN"],
        ["policy", "set", "colour=red"],
        ["policy", "set", "desk_limit=1", "desk_limit=2"],
        ["import", "/nowhere/at/all.jsonl"],
        ["import", "/"],
        ["export", "--output", "/nowhere/at/all.jsonl"],
        ["list", "--embedder", "telepathy"],
        ["list", "--tenant", ""],
        ["demo", "--conversations", "1"],
    ],
    ids=" ".join,
)
def test_input_that_cannot_mean_anything_is_usage(remembrancer: CommandLine, words: list[str]) -> None:
    found = problem(remembrancer, *words, code=2)
    assert found["status"] == 422
    assert found["type"] == "invalid-input"


@pytest.mark.parametrize(
    "words",
    [["frobnicate"], ["list", "--nonsense"], ["history", "mira", "--limit", "many"], ["delete"], ["policy", "get"]],
    ids=" ".join,
)
def test_a_line_that_cannot_be_understood_points_to_help(remembrancer: CommandLine, words: list[str]) -> None:
    assert "--help` shows what there is" in problem(remembrancer, *words, code=2)["hint"]


def test_no_verb_at_all_shows_the_help_as_usage(remembrancer: CommandLine) -> None:
    for words in ([], ["policy"]):
        said = remembrancer(*words, code=2)
        assert said.out == ""
        assert "Commands:" in said.err


def test_a_text_that_is_too_long_is_refused_with_both_numbers(remembrancer: CommandLine) -> None:
    """D10"""
    found = problem(remembrancer, "save", "mira", "x" * 501, *WHERE, code=1)
    assert (found["type"], found["status"], found["rule"]) == ("text-too-long", 409, "D10")
    assert "501" in found["detail"]
    assert "500" in found["detail"]
    remembrancer("save", "mira", "x" * 500, *WHERE)


def test_what_is_no_text_is_told_as_such(remembrancer: CommandLine) -> None:
    assert "NUL" in problem(remembrancer, "save", "mira", "-", *WHERE, typed="a\0b", code=2)["detail"]
    assert (
        "not UTF-8: byte 1 is 0xff"
        in problem(remembrancer, "save", "mira", "-", *WHERE, typed=b"a\xff", code=2)["detail"]
    )
    assert "surrogate" in problem(remembrancer, "save", "mira", os.fsdecode(b"a\xff"), *WHERE, code=2)["detail"]
    assert remembrancer.json("list")["lists"] == []


def test_what_never_was_is_not_found_and_near_names_are_named(remembrancer: CommandLine) -> None:
    """D31"""
    remembrancer("save", "mira", "Juno's cat is named Mochi", *WHERE)
    found = problem(remembrancer, "list", "mirra", code=1)
    assert (found["status"], found["rule"], found["near"]) == (404, "D31", ["mira"])
    assert found["hint"] == "Did you mean mira?"
    for words in (
        ["delete", NOBODY],
        ["pin", "00000000"],
        ["history", "--turn", "never"],
        ["history", "--memory", NOBODY],
    ):
        assert problem(remembrancer, *words, code=1)["type"] == "not-found"


def test_what_belongs_to_another_tenant_is_not_found_either(remembrancer: CommandLine) -> None:
    """C23"""
    memory = remembrancer.json("save", "mira", "a secret", *WHERE)["memory"]
    for which in (memory["id"], memory["id"][:8]):
        found = problem(remembrancer, "pin", which, "--tenant", "other", code=1)
        assert found["type"] == "not-found"
        assert "secret" not in json.dumps(found)


def test_what_a_rule_refuses_carries_the_rule(remembrancer: CommandLine) -> None:
    """R15, D9, D12, D13"""
    cat = remembrancer.json("save", "mira", "Juno's cat is named Mochi", *WHERE)["memory"]["id"]
    chess = remembrancer.json("save", "mira", "Kai plays chess", *WHERE)["memory"]["id"]
    remembrancer("pin", cat)
    remembrancer("policy", "set", "pin_capacity=1")
    refused = [
        (["delete", cat, "--actor", "persona"], "pinned", "R15"),
        (["pin", chess], "pins-full", "D9"),
        (["edit", chess, "juno's  CAT is named mochi"], "same-as-another", "D12"),
    ]
    for words, kind, rule in refused:
        found = problem(remembrancer, *words, code=1)
        assert (found["type"], found["rule"], found["status"]) == (kind, rule, 409)
    remembrancer("delete", chess)
    learned = problem(remembrancer, "save", "mira", "Kai plays chess", *WHERE, "--actor", "persona", code=1)
    assert (learned["type"], learned["rule"]) == ("tombstoned", "D13")


def test_a_request_id_with_another_body_is_usage(remembrancer: CommandLine) -> None:
    """D19"""
    remembrancer("save", "mira", "one", *WHERE, "--request-id", "r-1")
    found = problem(remembrancer, "save", "mira", "two", *WHERE, "--request-id", "r-1", code=2)
    assert found["type"] == "request-id-reused"


def test_a_file_that_is_no_export_is_told_with_its_line(remembrancer: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "memories.jsonl"
    for text, said in (("", "holds nothing"), ('{"a": 1}\n{b}\n', "line 2: not JSON"), ("[1]", "row 1: not an object")):
        file.write_text(text, "utf-8")
        assert said in problem(remembrancer, "import", str(file), code=2)["detail"]
    file.write_bytes(b"\xff\xfe")
    assert "not UTF-8" in problem(remembrancer, "import", str(file), code=2)["detail"]
    file.write_text("[1]", "utf-8")
    assert "Leave --persona" in problem(remembrancer, "import", str(file), "--persona", "mira", code=2)["hint"]
    assert remembrancer.json("list")["lists"] == []


def test_an_export_that_fails_leaves_the_older_file_as_it_was(remembrancer: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "all.jsonl"
    file.write_text("older", "utf-8")
    problem(remembrancer, "export", "nobody", "--output", str(file), code=1)
    assert file.read_text("utf-8") == "older"
    assert list(tmp_path.iterdir()) == [file]


@pytest.fixture
def nobody_listens() -> Iterator[str]:
    """The address of a port on which nothing answers."""
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"postgresql://u:secret@127.0.0.1:{taken.getsockname()[1]}/x?connect_timeout=2"


def test_a_stopped_database_is_unavailable_and_its_password_is_not_told(nobody_listens: str) -> None:
    found = problem(CommandLine(nobody_listens), "list", code=1)
    assert (found["type"], found["status"]) == ("unavailable", 503)
    assert "secret" not in json.dumps(found)


def test_a_database_that_goes_away_in_the_middle_is_unavailable(database_url: str) -> None:
    """The answer to a save is cut off and nobody gets a new one; the same request again gets it (D19)."""
    words = ("save", "mira", "Juno's cat is named Mochi", *WHERE, "--request-id", "r-1")
    CommandLine(database_url)("save", "mira", "Juno plays the harp", *WHERE)  # the policy is recorded by that
    with CuttingProxy(database_url) as proxy:
        proxy.cuts, proxy.refuses = 1, True
        found = CommandLine(proxy.url).json(*words, code=1)
    assert (found["type"], found["status"]) == ("unavailable", 503)
    assert proxy.cut == 1
    again = CommandLine(database_url)
    assert again.json(*words)["status"] == "saved"
    assert len(again.json("history", "mira", "--kind", "MemorySaved")["entries"]) == 2


def test_a_data_directory_that_is_none_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "from-juno.txt").write_text("dear Mira", "utf-8")
    found = problem(CommandLine(None, REMEMBRANCER_DATA_DIR=str(tmp_path / "letters")), "list", code=1)
    assert found["type"] == "unavailable"
    assert [file.name for file in (tmp_path / "letters").iterdir()] == ["from-juno.txt"]


def test_an_error_that_nobody_thought_of_is_one_line_and_where_to_report_it(
    remembrancer: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("division\nby zero")

    monkeypatch.setattr(Remembrancer, "list", broken)
    found = problem(remembrancer, "list", code=1)
    assert found["detail"] == "ZeroDivisionError: division by zero"
    assert "--debug" in found["hint"]
    assert "Traceback" in remembrancer("list", "--debug", code=1).err


def test_log_lines_and_warnings_reach_only_those_who_ask(remembrancer: CommandLine) -> None:
    words = ("reply", "mira", "hi", *WHERE, "--json")
    no_redis = {"REMEMBRANCER_REDIS_URL": "redis://127.0.0.1:1"}
    quiet = remembrancer.process(*words, **no_redis)
    assert (quiet.code, quiet.err) == (0, "")
    loud = remembrancer.process(*words, REMEMBRANCER_LOG="warning", **no_redis)
    assert loud.code == 0
    assert " WARNING remembrancer" in loud.err
    assert loud.document.keys() == quiet.document.keys()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_command_leaves_quietly(remembrancer: CommandLine, number: signal.Signals) -> None:
    """Standard input that never ends is what it waits for."""
    running = remembrancer.start_waiting("save", "mira", "-", *WHERE)
    running.send_signal(number)
    out, err = running.communicate(timeout=30)
    assert running.returncode == 128 + number
    assert (out, err) == ("", "")
    assert remembrancer.json("list")["lists"] == []


def test_a_reader_that_has_enough_is_no_error(remembrancer: CommandLine) -> None:
    for n in range(3):
        remembrancer("save", "mira", f"fact {n}", *WHERE)
    done = remembrancer.shell("$REMEMBRANCER export | head -c 1; exit ${PIPESTATUS[0]}")
    assert (done.code, done.out, done.err) == (0, "{", "")


def test_an_output_that_is_closed_or_full_is_no_mistake_of_ours(remembrancer: CommandLine) -> None:
    remembrancer("save", "mira", "--server", "guild", "Juno's cat is named Mochi")
    closed = remembrancer.shell("$REMEMBRANCER list mira >&-")
    assert (closed.code, closed.err) == (0, "")
    full = remembrancer.shell("$REMEMBRANCER list mira > /dev/full")
    assert full.code == 1
    assert full.err == "error: The output cannot be written: No space left on device.\n"
