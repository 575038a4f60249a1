"""The group `summary` of the command line, with a scripted model over real HTTP (R5-R8)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from remembrancer.domain import events as e
from remembrancer.services.answers_summary import RebuildEstimate, SummaryAnswer
from tests.support import scripted_chat as script
from tests.support.chats import CHAT, Talk, talking
from tests.support.command_line import CommandLine
from tests.support.world import PERSONA

NUMBERS = {"chunk_messages": 4, "recent_summaries": 2, "merged_summaries": 2}


@pytest.fixture
def talk(database_url: str) -> Iterator[Talk]:
    with talking(database_url, **NUMBERS) as made:
        made.memory.set_persona(PERSONA, detail="key_events")
        made.turn("Rule: no ghosts")
        made.many(19)
        made.compact()
        yield made


@pytest.fixture
def remembrancer(talk: Talk, database_url: str) -> CommandLine:
    return CommandLine(
        database_url,
        REMEMBRANCER_CHAT_MODEL="scripted",
        REMEMBRANCER_CHAT_MODEL_URL=talk.model.url,
        REMEMBRANCER_CHAT_PRICES='{"scripted": [1, 10]}',
        **{f"REMEMBRANCER_{name.upper()}": str(value) for name, value in NUMBERS.items()},
    )


def test_the_summary_is_shown_in_json_and_in_words(remembrancer: CommandLine) -> None:
    answer = remembrancer.json("summary", "show", CHAT)
    assert set(answer) == set(SummaryAnswer.model_fields)
    assert [part["tier"] for part in answer["parts"]] == ["merged"]
    said = remembrancer("summary", "show", CHAT).out
    assert "Merged  8 messages" in said
    assert "40 messages, 32 of them in no summary" in said
    rules = remembrancer("summary", "rules", CHAT).out
    assert f"juno: Rule: no ghosts  {answer['rules'][0]['id']}" in rules
    assert "level key_events" in remembrancer("summary", "status", CHAT).out


def test_a_part_is_edited_by_the_beginning_of_its_id_and_a_rule_removed(remembrancer: CommandLine) -> None:
    answer = remembrancer.json("summary", "show", CHAT)
    part, rule = answer["parts"][0]["id"], answer["rules"][0]["id"]
    assert part in remembrancer("summary", "edit", CHAT, part[:13], "-", typed="By hand\n").out
    remembrancer("summary", "remove-rule", CHAT, rule)
    after = remembrancer.json("summary", "show", CHAT)
    assert (after["text"], after["rules"]) == ("By hand", [])
    assert "worded by a person" in remembrancer("summary", "show", CHAT).out


def test_a_rebuild_says_its_cost_first_and_waits_for_a_yes(remembrancer: CommandLine, talk: Talk) -> None:
    estimate = remembrancer.json("summary", "rebuild", CHAT, "--estimate", "--detail", "detailed")
    assert set(estimate) == set(RebuildEstimate.model_fields)
    assert estimate["extra_tokens"] == 22_000
    refused = remembrancer("summary", "rebuild", CHAT, code=1)
    assert "10 messages, 4 questions" in refused.out
    assert "--yes" in refused.err
    assert remembrancer.json("summary", "status", CHAT)["rebuild"] is None
    done = remembrancer.json("summary", "rebuild", CHAT, "--yes", "--wait")
    assert (done["state"], done["done"]) == ("completed", 10)
    assert "Rebuild completed, 10 of 10 messages" in remembrancer("summary", "status", CHAT).out
    again = remembrancer.json("summary", "rebuild", CHAT, "--yes", "--wait")
    assert (again["state"], again["id"]) == ("completed", str(talk.world.events(e.RebuildStarted)[-1].rebuild))
    assert again["id"] != done["id"], "what was waited for is not the one before"


def test_what_is_due_is_summarised_by_one_command(remembrancer: CommandLine, talk: Talk) -> None:
    talk.many(8)
    done = remembrancer.json("summary", "run")
    assert (done["waiting"], done["failing"], done["error"]) == (0, 0, None)
    assert done["runs"] >= 1
    assert remembrancer.json("summary", "status", CHAT)["unsummarised"] == 32
    talk.many(2)
    talk.model.otherwise = script.status(400)
    said = remembrancer("summary", "run").out
    assert "1 of them failed: status 400" in said
    environment = dict(remembrancer.environment)
    del remembrancer.environment["REMEMBRANCER_CHAT_MODEL"]
    assert "No chat model" in remembrancer("summary", "run", code=1).err
    remembrancer.environment |= environment


def test_another_level_says_what_it_takes_and_names_the_rebuild(remembrancer: CommandLine) -> None:
    said = remembrancer("person", "set", "juno", "--detail", f"{PERSONA}=detailed").out
    assert f"each reply of {PERSONA} may read +22000 tokens (about +0.0220)" in said
    assert "remembrancer summary rebuild CHAT" in said
    assert "each reply" not in remembrancer("person", "show", "juno").out


def test_what_a_reply_cost_is_said(remembrancer: CommandLine) -> None:
    assert remembrancer.json("summary", "cost", "t1", "--cost", "0.5")["cost"] == 0.5
    assert "0.5 is usual" in remembrancer("summary", "cost", "t1", "--input-tokens", "1000").out


def test_what_cannot_be_is_refused(remembrancer: CommandLine) -> None:
    assert "campaign" in remembrancer("summary", "show", "campain", code=1).err
    remembrancer("summary", "edit", CHAT, "0000", "x", code=1)
    remembrancer("summary", "cost", "t1", code=2)
    remembrancer("summary", code=2)
