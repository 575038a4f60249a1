"""change-model and what doctor says of it, on the command line, on a real database and a real endpoint (D23)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.command_line import CommandLine
from tests.support.fake_openai import FakeOpenAI

WHERE = ("--server", "guild")
CAT = "Juno's cat is named Mochi"


@pytest.fixture
def endpoint() -> Iterator[FakeOpenAI]:
    with FakeOpenAI(64, {"bigger": 96}) as server:
        yield server


def under(database_url: str, endpoint: FakeOpenAI, model: str, **environment: str) -> CommandLine:
    """The command line under settings that name this model."""
    return CommandLine(
        database_url, REMEMBRANCER_EMBEDDER="openai", REMEMBRANCER_EMBEDDER_URL=endpoint.url,
        REMEMBRANCER_EMBEDDER_MODEL=model, **environment,
    )  # fmt: skip


def test_a_command_that_passes_by_changes_no_model_and_change_model_does(
    database_url: str, endpoint: FakeOpenAI
) -> None:
    """D23."""
    old, new = (under(database_url, endpoint, m, REMEMBRANCER_MATCH_THRESHOLD="0.4") for m in ("words", "bigger"))
    old.json("save", "mira", *WHERE, CAT)
    assert new.json("reply", "mira", "how is Mochi?", *WHERE, "--user", "juno")["search"]["model"] == "openai:words"
    doctor = new.json("doctor", code=1)
    (found,) = [check for check in doctor["checks"] if not check["ok"]]
    assert found["name"] == "change of model"
    assert "no process has begun a change" in found["detail"]
    assert "remembrancer change-model" in found["hint"]
    assert (doctor["model"]["serving"], doctor["model"]["settings"]) == ("openai:words", "openai:bigger")
    assert new.json("change-model")["serving"] == "openai:bigger"
    for one in (old, new):
        search = one.json("reply", "mira", "Juno's cat Mochi", *WHERE, "--user", "juno")["search"]
        assert (search["model"], [match["text"] for match in search["matches"]]) == ("openai:bigger", [CAT])
    assert new("doctor").code == 0
    assert "openai:bigger serves since" in new("change-model").out
    assert "openai:words serves since" in old("change-model").out


def test_a_model_that_may_not_serve_is_refused_with_the_reason(database_url: str, endpoint: FakeOpenAI) -> None:
    """D5, D23."""
    under(database_url, endpoint, "words", REMEMBRANCER_MATCH_THRESHOLD="0.4").json("save", "mira", *WHERE, CAT)
    said = under(database_url, endpoint, "bigger")("change-model", code=1)
    assert "no match threshold is known for openai:bigger" in said.err
    assert "remembrancer calibrate" in said.err
    assert "T11" in CommandLine(database_url)("change-model", code=2).err
