"""Every verb of the command line, on a real database: as JSON for programs, as text for people."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from remembrancer.domain.policy import Policy
from remembrancer.services.answers import MemoryView
from tests.support.command_line import CommandLine
from tests.support.fake_openai import FakeOpenAI

MOCHI = "Juno's cat is named Mochi"
WHERE = ("--server", "guild")


@pytest.fixture
def remembrancer(database_url: str) -> CommandLine:
    return CommandLine(database_url)


@pytest.fixture
def searching(database_url: str) -> Iterator[CommandLine]:
    """With a model behind HTTP, for which a cosine is about the share of words in common."""
    with FakeOpenAI(dimensions=256) as fake:
        yield CommandLine(
            database_url,
            REMEMBRANCER_EMBEDDER="openai",
            REMEMBRANCER_EMBEDDER_URL=fake.url,
            REMEMBRANCER_EMBEDDER_MODEL="words",
            REMEMBRANCER_MATCH_THRESHOLD="0.3",
        )


def save(remembrancer: CommandLine, text: str = MOCHI, *more: str) -> dict[str, Any]:
    memory: dict[str, Any] = remembrancer.json("save", "mira", text, *WHERE, *more)["memory"]
    return memory


def texts(remembrancer: CommandLine, *which: str) -> list[str]:
    return [m["text"] for one in remembrancer.json("list", *which)["lists"] for m in one["memories"]]


# -- save -------------------------------------------------------------------------------------------------------------


def test_save_answers_with_the_memory_as_every_face_shows_it(remembrancer: CommandLine) -> None:
    answer = remembrancer.json("save", "mira", *WHERE, "--text", MOCHI, "--until", "2999-05-12", "--tag", "cats")
    assert answer["status"] == "saved"
    assert set(answer["memory"]) == set(MemoryView.model_fields)
    assert answer["memory"]["text"] == MOCHI
    assert (answer["memory"]["until"], answer["memory"]["tags"]) == ("2999-05-12", ["cats"])
    assert answer["notices"] == [{"audience": "everyone", "text": f"Remembered: \u201c{MOCHI}\u201d", "user": None}]


def test_save_says_it_in_words_with_an_id_that_can_be_typed(remembrancer: CommandLine) -> None:
    said = remembrancer("save", "mira", MOCHI, *WHERE)
    first, second, *_ = said.out.splitlines()
    assert first.startswith("Saved ")
    assert "mira in server guild, protected" in first
    assert second == MOCHI
    assert remembrancer("pin", first.split()[1]).out.startswith("Pinned ")


def test_a_list_is_named_the_long_way_or_the_short_way(remembrancer: CommandLine) -> None:
    for way in (("--user", "juno"), ("--scope", "personal", "--subject", "juno")):
        remembrancer("save", "mira", f"Juno says {way[0]}", *way)
    assert len(texts(remembrancer, "mira", "--user", "juno")) == 2


def test_a_global_memory_belongs_to_every_persona_so_none_need_be_named(remembrancer: CommandLine) -> None:
    remembrancer("save", "Juno is left-handed", "--global", "juno")
    remembrancer("save", "mira", "Juno is tall", "--global", "juno")
    assert len(texts(remembrancer, "--global", "juno")) == 2


def test_a_text_comes_from_standard_input_without_its_last_end_of_line(remembrancer: CommandLine) -> None:
    for words in (["-"], ["--text", "-"]):
        said = remembrancer("save", "mira", *words, *WHERE, "--json", typed=f"{words} one\ntwo\n")
        assert said.document["memory"]["text"] == f"{words} one\ntwo"


def test_the_same_again_is_known_already(remembrancer: CommandLine) -> None:
    save(remembrancer)
    assert remembrancer("save", "mira", MOCHI.upper(), *WHERE).out.startswith("Known already ")


def test_the_same_request_again_gives_the_same_answer_and_saves_once(remembrancer: CommandLine) -> None:
    """D19"""
    twice = [save(remembrancer, MOCHI, "--request-id", "r-1")["id"] for _ in range(2)]
    assert twice[0] == twice[1]
    assert texts(remembrancer, "mira") == [MOCHI]


def test_a_full_list_names_what_would_be_forgotten_and_makes_room_when_told_to(searching: CommandLine) -> None:
    """D7"""
    searching("policy", "set", "list_capacity=1")
    old = save(searching, MOCHI, "--until", "2020-01-01", "--actor", "persona")
    refused = searching("save", "mira", "Kai plays chess", *WHERE, code=1)
    assert MOCHI in refused.err
    assert f"(D7)\nhint: Say --make-room {old['id']} to do so." in refused.err
    said = searching("save", "mira", "Kai plays chess", *WHERE, "--make-room", old["id"][:8])
    assert f"forgotten: {old['id'][:8]} \u201c{MOCHI}\u201d: its date 2020-01-01 has passed" in said.out


# -- edit, delete, pin, unpin -----------------------------------------------------------------------------------------


def test_edit_changes_what_is_named_and_leaves_the_rest(remembrancer: CommandLine) -> None:
    memory = save(remembrancer, MOCHI, "--tag", "cats", "--until", "2999-01-01")
    edited = remembrancer.json("edit", memory["id"], "Juno's cat is named Miso")["memory"]
    assert (edited["text"], edited["tags"], edited["until"]) == ("Juno's cat is named Miso", ["cats"], "2999-01-01")
    bare = remembrancer.json("edit", memory["id"], "--no-tags", "--until", "none", "--channel", "den")["memory"]
    assert (bare["text"], bare["tags"], bare["until"]) == (edited["text"], [], None)
    assert bare["channels"] == ["den"]


def test_edit_of_nothing_confirms_and_protects(remembrancer: CommandLine) -> None:
    """T13"""
    memory = save(remembrancer, MOCHI, "--actor", "persona")
    assert not memory["protected"]
    assert remembrancer.json("edit", memory["id"])["memory"]["protected"]


def test_delete_shows_what_is_gone(remembrancer: CommandLine) -> None:
    memory = save(remembrancer)
    assert MOCHI in remembrancer("delete", memory["id"]).out
    assert texts(remembrancer, "mira") == []


def test_pin_and_unpin_by_the_first_digits_of_the_id(remembrancer: CommandLine) -> None:
    memory = save(remembrancer)
    assert remembrancer.json("pin", memory["id"][:8])["memory"]["pinned"]
    assert not remembrancer.json("unpin", memory["id"][:13])["memory"]["pinned"]


# -- list -------------------------------------------------------------------------------------------------------------


def test_list_prints_state_counter_text_and_id_on_one_line_each(remembrancer: CommandLine) -> None:
    first, second = save(remembrancer), save(remembrancer, "two\nlines", "--tag", "odd")
    remembrancer("pin", first["id"])
    title, head, *rows = remembrancer("list", "mira").out.splitlines()
    assert title == "mira in server guild  1 of 100, 1 of 20 pinned"
    assert head.split() == ["state", "unused", "memory", "id"]
    assert rows[0].split("  ")[0] == "pinned"
    assert rows[0].endswith(first["id"][:8])
    assert "two\\nlines  [protected; tags odd]" in rows[1]
    assert rows[1].startswith("active")
    assert rows[1].endswith(second["id"][:8])


def test_list_of_a_state_of_a_subject_and_of_everything(remembrancer: CommandLine) -> None:
    save(remembrancer)
    remembrancer("save", "nori", "Kai plays chess", "--server", "club")
    assert texts(remembrancer, "mira", "--state", "resting") == []
    assert texts(remembrancer, "--subject", "club") == ["Kai plays chess"]
    assert len(texts(remembrancer)) == 2


def test_an_empty_tenant_and_an_empty_list_read_as_empty(remembrancer: CommandLine) -> None:
    """D31"""
    assert remembrancer("list").out == "No memories yet.\n"
    assert "empty" in remembrancer("list", "mira", *WHERE).out
    assert remembrancer.json("list", "mira", *WHERE)["lists"][0]["memories"] == []


def test_columns_of_wide_letters_stand_under_each_other(remembrancer: CommandLine) -> None:
    from rich.cells import cell_len

    save(remembrancer, "猫の名前はモチです")
    save(remembrancer, "Juno's cat \U0001f408 is named Mochi")
    rows = remembrancer("list", "mira").out.splitlines()[2:]
    starts = {cell_len(row[: row.rindex("  ")]) for row in rows}
    assert len(starts) == 1, rows


def test_tenants_do_not_see_each_other(remembrancer: CommandLine) -> None:
    save(remembrancer)
    assert remembrancer.json("--tenant", "other", "list")["lists"] == []
    assert remembrancer.json("list", "--tenant", "other")["lists"] == []


# -- clear ------------------------------------------------------------------------------------------------------------


def test_clear_takes_the_unpinned_then_in_a_second_step_the_pinned(remembrancer: CommandLine) -> None:
    """R18"""
    save(remembrancer, "Kai plays chess")
    remembrancer("pin", save(remembrancer)["id"])
    refused = remembrancer("clear", "mira", *WHERE, "--yes", "--pinned", code=1)
    assert "R18" in refused.err
    answer = remembrancer.json("clear", "mira", *WHERE, "--yes")
    assert (answer["cleared"], answer["pinned_left"]) == (1, 1)
    assert texts(remembrancer, "mira") == [MOCHI]
    assert remembrancer.json("clear", "mira", *WHERE, "--yes", "--pinned")["cleared"] == 1


def test_clear_does_nothing_where_nobody_can_be_asked(remembrancer: CommandLine) -> None:
    save(remembrancer)
    refused = remembrancer("clear", "mira", *WHERE, code=2)
    assert "--yes" in refused.err
    assert texts(remembrancer, "mira") == [MOCHI]


# -- reply and history ------------------------------------------------------------------------------------------------


def test_reply_shows_matches_with_scores_the_desk_and_both_blocks(searching: CommandLine) -> None:
    save(searching)
    words = ("reply", "mira", "how is the cat named Mochi", *WHERE, "--user", "juno")
    answer = searching.json(*words)
    assert answer["search"]["status"] == "ok"
    assert [m["text"] for m in answer["search"]["matches"]] == [MOCHI]
    said = searching(*words, "--show-prompt").out
    assert f"  {MOCHI}" in said
    assert "matched" in said
    assert "On the desk  1 sent from the start" in said
    assert answer["prefix"]["text"] in said


def test_reply_reads_the_message_from_standard_input(remembrancer: CommandLine) -> None:
    said = remembrancer("reply", "mira", "-", *WHERE, "--json", typed="how is Mochi?\n")
    assert said.document["search"]["status"] == "off"


def test_a_chat_without_memory_says_why_nothing_was_searched(searching: CommandLine) -> None:
    """R17"""
    save(searching)
    said = searching("reply", "mira", "how is Mochi?", *WHERE, "--memory", "off").out
    assert "search off: this chat has no memory (R17)" in said
    assert MOCHI not in said


def test_history_has_time_with_zone_actor_turn_and_the_text_before_and_after(searching: CommandLine) -> None:
    """C30, U1"""
    memory = save(searching, MOCHI)
    searching("reply", "mira", "how is the cat named Mochi", *WHERE, "--user", "juno", "--turn", "turn-7")
    searching("edit", memory["id"], "Juno's cat is named Miso", "--actor", "persona", "--turn", "turn-7")
    rows = searching("history", "mira", *WHERE).out.splitlines()[1:]
    assert all(" UTC  " in row for row in rows)
    (edited,) = [row for row in rows if "edited it" in row]
    assert f"persona  turn-7  mira in server guild  {memory['id'][:8]}" in edited
    assert edited.endswith(f"\u201c{MOCHI}\u201d \u2192 \u201cJuno's cat is named Miso\u201d")
    entries = searching.json("history", "mira", *WHERE)["entries"]
    assert len(entries) == len(rows)
    assert all(x["at"].endswith(("Z", "+00:00")) for x in entries)


def test_history_of_a_memory_that_is_gone_of_a_turn_and_of_a_time(searching: CommandLine) -> None:
    memory = save(searching)
    searching("reply", "mira", "hello", *WHERE, "--turn", "turn-1")
    searching("delete", memory["id"])
    assert "deleted it" in searching("history", "--memory", memory["id"][:8]).out
    assert {x["turn"] for x in searching.json("history", "--turn", "turn-1")["entries"]} == {"turn-1"}
    assert searching.json("history", "mira", "--until", "2020-01-01")["entries"] == []
    assert searching.json("history", "mira", "--since", "2020-01-01T00:00+02:00")["entries"] != []


def test_history_goes_on_page_by_page(remembrancer: CommandLine) -> None:
    for n in range(3):
        save(remembrancer, f"fact {n}")
    page = remembrancer.json("history", "mira", "--limit", "2")
    rest = remembrancer.json("history", "mira", "--limit", "2", "--after", page["next"])
    assert [x["after"] for x in page["entries"] + rest["entries"]] == ["fact 0", "fact 1", "fact 2"]
    assert f"more: --after {page['next']}" in remembrancer("history", "mira", "--limit", "2").out


# -- settings ---------------------------------------------------------------------------------------------------------


def test_settings_of_a_persona_a_person_and_a_server_are_set_and_shown(remembrancer: CommandLine) -> None:
    of_persona = ("--name", "Mira", "--instructions", "Be kind.", "--no-learns", "--detail", "detailed")
    remembrancer("persona", "set", "mira", *of_persona)
    assert remembrancer.json("persona", "show", "mira") == {
        "persona": "mira", "name": "Mira", "instructions": "Be kind.", "learns": False, "detail": "detailed",
        "switched": [],
    }  # fmt: skip
    set_person = remembrancer.json("person", "set", "juno", "--privacy", "nowhere", "--not-learning", "mira")
    assert set_person == remembrancer.json("person", "show", "juno")
    assert (set_person["privacy"], set_person["not_learning"]) == ("nowhere", ["mira"])
    assert remembrancer.json("person", "set", "juno", "--all-learn")["not_learning"] == []
    remembrancer("person", "set", "juno", "--detail", "mira=detailed")
    details = remembrancer.json("person", "set", "juno", "--detail", "rui=key_events")["details"]
    assert details == {"mira": "detailed", "rui": "key_events"}
    assert "PERSONA=LEVEL" in remembrancer("person", "set", "juno", "--detail", "detailed", code=2).err
    words = ("--notices", "managers", "--block", "kai", "--block", "juno", "--no-personal-memories", "--private")
    server = remembrancer.json("server", "set", "guild", *words)
    assert server["blocklist"] == ["juno", "kai"]
    assert (server["notices"], server["personal_memories"], server["private"]) == ("managers", False, True)
    assert remembrancer.json("server", "set", "guild", "--block-nobody")["blocklist"] == []
    assert "guild" in remembrancer("server", "show", "guild").out


def test_the_policy_is_shown_set_and_taken_back(remembrancer: CommandLine) -> None:
    assert set(remembrancer.json("policy", "show")) == set(Policy.model_fields)
    changed = remembrancer.json("policy", "set", "list_capacity=50", "decay-enabled=false", "match_threshold=0.5")
    assert (changed["list_capacity"], changed["decay_enabled"], changed["match_threshold"]) == (50, False, 0.5)
    assert remembrancer.json("policy", "set", "list_capacity=")["list_capacity"] == 100
    assert "Counted days at which a memory rests (T5)." in remembrancer("policy", "show").out


# -- import and export ------------------------------------------------------------------------------------------------


def test_what_is_exported_imports_elsewhere_as_exactly_the_same(remembrancer: CommandLine, tmp_path: Path) -> None:
    remembrancer("pin", save(remembrancer, "猫の名前はモチです", "--tag", "cats")["id"])
    save(remembrancer)
    file = tmp_path / "all.jsonl"
    written = remembrancer.json("export", "--output", str(file))
    assert written == {"exported": len(file.read_text("utf-8").splitlines()), "file": str(file)}
    assert remembrancer("export").out.splitlines()[1:] == file.read_text("utf-8").splitlines()[1:]

    there = ("--tenant", "copy")
    assert remembrancer.json("import", str(file), *there)["imported"] == 2
    assert remembrancer.json("import", str(file), *there)["imported"] == 0
    here, copied = (
        [{k: v for k, v in row.items() if k != "id"} for row in remembrancer.json("export", *which)[1:]]
        for which in ((), there)
    )
    assert sorted(copied, key=str) == sorted(here, key=str)


def test_an_import_reads_standard_input_and_the_list_that_export_writes_as_json(remembrancer: CommandLine) -> None:
    save(remembrancer)
    rows = remembrancer("export").out
    document = remembrancer("export", "--json").out
    assert remembrancer("import", "-", "--tenant", "a", typed=rows).out.startswith("1 imported")
    assert remembrancer("import", "-", "--tenant", "b", typed=document).out.startswith("1 imported")


def test_a_file_of_tomoribot_is_known_by_its_shape(remembrancer: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "tomori.json"
    bucket = {"name": "main", "label": "mira", "memories": [{"content": MOCHI, "tags": []}]}
    document = {"version": 2, "type": "workspace_memories", "exported_at": "2026-05-01", "data": {"buckets": [bucket]}}
    file.write_text(json.dumps(document), "utf-8")
    answer = remembrancer.json("import", str(file), "--persona", "mira", "--subject", "guild")
    assert answer["imported"] == 1
    assert texts(remembrancer, "mira", *WHERE) == [MOCHI]


# -- operation --------------------------------------------------------------------------------------------------------


def test_doctor_lists_its_findings_and_leaves_with_1_where_one_is_not_well(remembrancer: CommandLine) -> None:
    said = remembrancer.process("doctor", "--json")
    assert said.code == (0 if said.document["ok"] else 1)
    assert {"name", "ok", "detail", "hint"} == set(said.document["checks"][0])
    assert "database" in remembrancer.process("doctor").out
    assert "nothing to repair" in remembrancer("doctor", "--repair").out


def test_help_and_version_need_no_database(remembrancer: CommandLine) -> None:
    for words in (["--help"], ["save", "--help"], ["policy", "set", "-h"]):
        assert "Usage: remembrancer" in CommandLine("postgresql://nowhere.invalid/x")(*words).out
    assert remembrancer("--version").out.startswith("remembrancer ")
