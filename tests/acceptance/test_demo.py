"""The demo on a real store with the real local model: it shows what it claims, or says that it does not."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from rich.cells import cell_len

from remembrancer.services.cli import story
from remembrancer.services.cli.quoting import Quoting
from remembrancer.services.summary_prompts import ChunkDraft, CondensedDraft, LongTermDraft, MergedDraft
from tests.support.command_line import PROGRAM, CommandLine, plain
from tests.support.scripted_chat import ScriptedChat

MOCHI = "Juno's cat is named Mochi"
CHECKOUT = Path(__file__).parents[2]
AT = "1:56 pm on {} May, 2023"


@pytest.fixture
def remembrancer(database_url: str) -> CommandLine:
    """With the real model."""
    return CommandLine(database_url, REMEMBRANCER_EMBEDDER="local")


# -- the story --------------------------------------------------------------------------------------------------------


def test_the_demo_plays_the_mochi_table_then_an_eviction_and_a_refusal(remembrancer: CommandLine) -> None:
    """T1, T5, T6, T8, T12, T14, T15"""
    told = remembrancer.json("demo")
    assert told["broken"] == []
    days = {day["day"]: day for day in told["days"]}
    assert [days[n]["unused_days"] for n in (1, 2, 3, 4, 5, 6, 7, 14, 15, 17, 18)] == [0, 1, 2, 3, 4, 5, 6, 6, 7, 0, 1]
    assert {n: MOCHI in [m["text"] for m in days[n]["drawer"]] for n in (7, 14, 15, 17)} == {
        7: False, 14: False, 15: True, 17: False,
    }  # fmt: skip
    assert [n for n, day in days.items() if MOCHI in day["recalled"]] == [17]
    full = told["full"]
    assert full["forgotten"] in full["notice"]
    assert full["saved"] in full["notice"]
    assert "never matched" in full["reason"]
    assert "(T14)" in full["refusal"]
    assert full["refused"] in full["refusal_notice"]
    assert told["seconds"] < 60


def test_what_the_demo_says_to_try_works(remembrancer: CommandLine) -> None:
    said = remembrancer.process("demo")
    assert (said.code, said.err) == (0, "")
    tries = [shlex.split(line) for line in said.out.split("Try:\n")[1].splitlines()]
    assert len(tries) == 3
    for words in tries:
        at = words.index("--tenant")
        tried = remembrancer.process(*words[at:])
        assert tried.code == 0, tried
        assert "Mochi" in tried.out


def test_u1_after_the_demo_why_tells_the_story_of_mochi_and_of_the_laptop(remembrancer: CommandLine) -> None:
    remembrancer.json("demo", "--tenant", "told")
    mochi = remembrancer.json("--tenant", "told", "why", "Juno's cat")
    assert (mochi["memory"]["text"], mochi["status"]) == (MOCHI, "on_desk")
    assert [day["unused_days"] for day in mochi["days"]["counter"]][:9] == [0, 1, 2, 3, 4, 5, 6, 7, 0]
    assert [line["event"] for line in mochi["story"] if line["event"] != "NearMiss"] == [
        "MemorySaved", "Rested", "MemoriesMatched",
    ]  # fmt: skip
    for asked in ("Junos Katze", "el gato de Juno", "ジュノの猫"):
        assert remembrancer.json("--tenant", "told", "why", asked)["memory"]["text"] == MOCHI
    laptop = remembrancer.json("--tenant", "told", "why", "the laptop of Kai")
    assert laptop["status"] == "evicted"
    assert laptop["evicted"]["for_text"] == story.MAKES_ROOM[1]
    assert laptop["bring_back"] == f"remembrancer restore {laptop['memory']['id']}"


def test_in_a_pipe_the_days_are_one_plain_table(remembrancer: CommandLine) -> None:
    out = remembrancer("demo").out
    assert "\x1b" not in out
    assert "\u2502" not in out
    rows = [line for line in out.splitlines() if line.startswith((" ", "1"))]
    assert len(rows) == len(story.SCRIPT)
    assert "kai: Juno, how is Mochi?" in out


def test_on_a_terminal_desk_and_drawer_stand_side_by_side(remembrancer: CommandLine) -> None:
    for columns in (80, 120):
        seen = remembrancer.terminal("demo", columns=columns)
        assert seen.code == 0, plain(seen.out)
        lines = plain(seen.out).splitlines()
        side_by_side = [line for line in lines if "Desk: sent with every reply" in line and "Drawer: resting" in line]
        assert len(side_by_side) >= 3
        drawn = [
            line for line in lines if not line.startswith(("python", "remembrancer", "--")) and "--tenant" not in line
        ]
        assert max(map(cell_len, drawn)) <= columns


def test_a_second_run_starts_afresh_beside_the_first(remembrancer: CommandLine) -> None:
    first, second = (remembrancer.json("demo", "--tenant", f"run-{n}") for n in range(2))
    assert first["broken"] == second["broken"] == []
    again = remembrancer("demo", "--tenant", "run-0", code=2)
    assert "memories of its own" in again.err


def use_until(url: str, moment: datetime, shards: range) -> None:
    """Others have written to these shards until then."""
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(
            "UPDATE remembrancer.head SET position = position + 1, recorded_at = %s WHERE shard = ANY (%s)",
            (moment, list(shards)),
        )


def test_a_demo_tells_of_the_past_where_others_have_written_since(
    remembrancer: CommandLine, database_url: str, file: Path
) -> None:
    """Moments are monotone in a shard, and tenants share shards: the story goes where it can stay on its days."""
    remembrancer("doctor")
    use_until(database_url, datetime.now(UTC), range(200))
    told = remembrancer.json("demo")
    assert told["broken"] == []
    days = {m["created_at"][:10] for day in told["days"] for m in (*day["desk"], *day["drawer"])}
    assert max(days) == told["days"][0]["date"]
    played = remembrancer.json("demo", "--play", str(file), "--embedder", "none")
    listed = remembrancer.json("--tenant", played["tenant"], "list", "Ben", "--server", "c-1")["lists"][0]["memories"]
    assert {m["created_at"][:10] for m in listed} == {"2023-05-01"}


def test_a_demo_that_finds_no_room_for_the_past_says_so(remembrancer: CommandLine, database_url: str) -> None:
    remembrancer("doctor")
    use_until(database_url, datetime.now(UTC), range(256))
    assert "time never goes back" in remembrancer("demo", code=2).err


def test_a_demo_that_does_not_hold_says_so_and_fails(database_url: str) -> None:
    """Without a model nothing rests (T11), and that is what it says."""
    remembrancer = CommandLine(database_url)
    said = remembrancer("demo", "--embedder", "none", code=1)
    assert "not as claimed: the search was off: no embedding model is configured (T11)" in said.out
    assert "All as the rules say" not in said.out


def test_the_demo_has_a_data_directory_of_its_own_beside_the_usual_one(monkeypatch: pytest.MonkeyPatch) -> None:
    from remembrancer.services.cli.demo import own_place
    from remembrancer.services.cli.options import Options
    from remembrancer.services.cli.session import Session
    from remembrancer.services.embedded.directory import default_data_dir

    monkeypatch.delenv("REMEMBRANCER_DATABASE_URL", raising=False)
    monkeypatch.delenv("REMEMBRANCER_DATA_DIR", raising=False)
    place = own_place(Session(Options()))
    assert place["data_dir"] == default_data_dir().with_name(default_data_dir().name + "-demo")
    assert "data_dir" not in own_place(Session(Options(data_dir=Path("/elsewhere"))))
    assert "data_dir" not in own_place(Session(Options(url="postgresql://elsewhere/x")))


def test_the_whole_demo_on_a_new_embedded_database_takes_less_than_a_minute(data_dir: Path) -> None:
    remembrancer = CommandLine(None, REMEMBRANCER_DATA_DIR=str(data_dir), REMEMBRANCER_EMBEDDER="local")
    told = remembrancer.process("demo", "--json")
    assert told.code == 0, told
    assert told.document["seconds"] < 60
    assert told.document["data"] == str(data_dir)
    tries = [shlex.split(one) for one in told.document["try_these"]]
    assert remembrancer.process(*tries[0][len(PROGRAM[1:]) + 1 :]).code == 0


def test_the_picture_of_the_readme_shows_what_the_demo_prints_now(tmp_path: Path) -> None:
    drawn = tmp_path / "demo.svg"
    subprocess.run([sys.executable, CHECKOUT / "scripts" / "lib" / "render_demo.py", drawn], check=True, timeout=120)
    texts = [
        re.findall(r"<text[^>]*>([^<]*)", file.read_text("utf-8")) for file in (drawn, CHECKOUT / "docs" / "demo.svg")
    ]
    assert texts[0] == texts[1], "draw it again with scripts/render-demo"


# -- a conversation ---------------------------------------------------------------------------------------------------


def conversation(days: Iterator[int] | range, name: str = "c-1") -> dict[str, Any]:
    """Ana and Ben meet every day; on the first one Ben learns two facts, and then it is all chess."""
    sessions = []
    for n, day in enumerate(days):
        facts = [{"text": "Ana's dog is called Pudding"}, {"text": "Ana works at a bakery"}] if n == 0 else []
        turns = [{"speaker": "Ana", "text": f"Shall we play chess, game {n}?"}, {"speaker": "Ben", "text": "Gladly."}]
        sessions.append({"at": AT.format(day), "turns": turns, "facts": facts})
    sessions[-1]["turns"].append({"speaker": "Ana", "text": "Pudding, my dog, says hello!"})
    return {"id": name, "speakers": ["Ana", "Ben"], "sessions": sessions, "questions": []}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([conversation(range(1, 11)), conversation(range(1, 3), "c-2")]), "utf-8")
    return path


def test_a_conversation_is_played_on_its_days_and_counted_by_session(remembrancer: CommandLine, file: Path) -> None:
    played = remembrancer.json("demo", "--play", str(file))
    first, second = played["conversations"]
    assert (first["id"], first["persona"], len(first["sessions"])) == ("c-1", "Ben", 10)
    assert len(second["sessions"]) == 2
    assert [s["desk"] + s["drawer"] for s in first["sessions"]] == [2] * 10
    assert first["sessions"][0]["saved"] == 2
    assert first["sessions"][0]["tokens"] == 0  # its facts are saved after it
    assert first["sessions"][1]["tokens"] > 0
    assert first["sessions"][7]["drawer"] == 2
    assert first["sessions"][9]["recalled"] >= 1
    assert first["sessions"][9]["desk"] >= 1
    assert played["total"]["turns"] == 20 + 1 + 4 + 1
    assert played["total"]["saved"] == 4
    assert played["total"]["unsearched"] == 0
    listed = remembrancer.json("--tenant", played["tenant"], "list", "Ben", "--server", "c-1")["lists"][0]["memories"]
    assert {m["created_at"][:10] for m in listed} == {"2023-05-01"}


def test_a_played_file_prints_a_line_a_session_and_the_totals(remembrancer: CommandLine, file: Path) -> None:
    out = remembrancer(
        "demo", "--play", str(file), "--embedder", "none", "--conversations", "1", "--limit-sessions", "3"
    ).out
    title, head, *rows = out.splitlines()
    assert title == "Conversation c-1  Ben remembers"
    assert head.split() == ["#", "date", "turns", "saved", "desk", "drawer", "recalled", "evicted", "refused", "tokens"]
    assert rows[0].split()[:6] == ["1", "2023-05-01", "2", "2", "2", "0"]
    assert rows[3].split()[:3] == ["total", "6", "2"]
    assert "note: 6 of the replies went without search." in out
    assert max(map(cell_len, out.splitlines()[:7])) < 80


SMALL = {
    f"REMEMBRANCER_{name}": number
    for name, number in (("CHUNK_MESSAGES", "4"), ("RECENT_SUMMARIES", "2"), ("MERGED_SUMMARIES", "2"))
}


@pytest.fixture
def long_file(tmp_path: Path) -> Path:
    """Eight sessions of ten messages each: 30 more than a live window holds."""
    path = tmp_path / "long.json"
    sessions = [
        {"at": AT.format(day), "turns": [
            {"speaker": ("Ana", "Ben")[n % 2], "text": f"Today is day {day}. I say number {n}."} for n in range(10)
        ]}
        for day in range(1, 9)
    ]  # fmt: skip
    path.write_text(json.dumps([{"id": "c-1", "speakers": ["Ana", "Ben"], "sessions": sessions}]), "utf-8")
    return path


def test_a_played_file_keeps_window_and_summaries_by_a_script_that_says_so(database_url: str, long_file: Path) -> None:
    """R2, R4"""
    remembrancer = CommandLine(database_url, **SMALL)
    told = remembrancer.json("demo", "--play", str(long_file))
    assert told["summaries_by"] == "a script that quotes"
    chat = told["conversations"][0]["chat"]
    assert (chat["messages"], chat["window"], chat["unsent"]) == (80, 50, 0)
    assert (chat["long_term"], chat["merged"], chat["recent"]) == (1, 1, 1)  # 7 chunks of 4, of 30 messages
    assert chat["unsummarised"] == 80 - 7 * 4
    assert chat["sent"] < chat["whole"]
    where = ("--tenant", told["tenant"])
    parts = remembrancer.json(*where, "summary", "show", "server:c-1:Ben")["parts"]
    assert "- 2023-05-01, Ana: \u201cToday is day 1.\u201d" in parts[0]["text"]
    shown = remembrancer.json(*where, "chat", "show", "server:c-1:Ben", "--limit", "2")["messages"]
    assert [(m["author"], m["said_at"][:10]) for m in shown] == [("Ana", "2023-05-08"), ("Ben", "2023-05-08")]
    out = remembrancer("demo", "--play", str(long_file), "--limit-sessions", "1").out
    assert "note: summaries by a script that quotes; set REMEMBRANCER_CHAT_MODEL for real ones." in out


def test_where_a_chat_model_is_configured_it_makes_the_summaries_of_a_played_file(
    database_url: str, long_file: Path
) -> None:
    with ScriptedChat() as model:
        chosen = {"REMEMBRANCER_CHAT_MODEL": "scripted", "REMEMBRANCER_CHAT_MODEL_URL": model.url}
        out = CommandLine(database_url, **SMALL, **chosen)("demo", "--play", str(long_file)).out
    assert "chat: 80 messages, 50 live, 52 in no summary\nsummaries: 1 long-term, 1 merged, 1 recent" in out
    assert "summaries by scripted" in out
    assert "note: summaries" not in out
    assert sum(asked.shape == "ChunkDraft" for asked in model.requests) == 7


def test_the_script_that_quotes_answers_every_question_that_a_summary_asks() -> None:
    script = Quoting()

    def ask(question: str, shape: type[Any]) -> Any:
        return script.ask("", question, shape, timeout=1.0).value

    said = "#1 [2026-05-04 12:00] juno: Hi. My cat is\ncalled Mochi.\n#2 [2026-05-04 12:01] mira: A fine name, that is!"
    chunk = ask(said, ChunkDraft)
    assert chunk.summary.splitlines() == [
        "2026-05-04, juno: \u201cHi.\u201d", "2026-05-04, juno: \u201cMy cat is called Mochi.\u201d",
        "2026-05-04, mira: \u201cA fine name, that is!\u201d",
    ]  # fmt: skip
    assert chunk.rules == []
    parts = "## 2026-05-04 12:00 to 2026-05-04 12:01\none\ntwo\n\n## undated\nthree"
    assert ask(parts, MergedDraft).summary == "one\ntwo\nthree"
    grown = ask(f"LONG-TERM SUMMARY\nThere is none yet.\n\nNEW SUMMARIES\n{parts}", LongTermDraft)
    assert (grown.chronology, grown.state) == (["one", "three"], ["three"])
    old = "OLDER LINES\n- a\n- b\n- c\n- d\n\nPROMISES\n1. p\n\nREFERENCES\n\nSTATE\n1. s"
    assert ask(old, CondensedDraft).chronology == ["a", "d"]


def test_the_policy_of_a_played_file_can_be_chosen(remembrancer: CommandLine, file: Path) -> None:
    small = ("--list-capacity", "1", "--rest-after-days", "1", "--conversations", "1")
    total = remembrancer.json("demo", "--play", str(file), *small)["total"]
    assert (total["saved"], total["refused"]) == (1, 1)
    assert "list_capacity" in remembrancer("demo", "--play", str(file), "--list-capacity", "0", code=2).err


def test_progress_is_shown_on_a_terminal_above_lines_that_stay_whole(remembrancer: CommandLine, file: Path) -> None:
    seen = remembrancer.terminal("demo", "--play", str(file), "--embedder", "none")
    assert seen.code == 0
    assert "Playing" in plain(seen.out)
    assert "12  2" not in seen.out
    assert "total" in plain(seen.out)


BAD = {
    "nothing": ("", "the whole"),
    "no JSON": ("{", "the whole"),
    "an object": ('{"id": 1}', "the whole"),
    "no conversation": ("[]", "holds no conversation"),
    "no sessions": ('[{"id": "a", "speakers": ["x", "y"]}]', "1 sessions"),
    "one speaker": ('[{"id": "a", "speakers": ["x"], "sessions": []}]', "1 speakers"),
    "a strange date": (
        '[{"id": "a", "speakers": ["x", "y"], "sessions": [{"at": "soon", "turns": []}]}]',
        "1 sessions 1 at: 'soon' is no moment",
    ),
    "a turn without text": (
        '[{"id": "a", "speakers": ["x", "y"], "sessions": [{"at": "2023-05-01", "turns": [{"speaker": "x"}]}]}]',
        "1 sessions 1 turns 1 text",
    ),
    "the same id twice": (json.dumps([conversation(range(1, 2))] * 2), "the same id"),
}


@pytest.mark.parametrize(("text", "said"), BAD.values(), ids=BAD)
def test_a_file_of_another_shape_is_told_with_its_place(
    remembrancer: CommandLine, tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text, "utf-8")
    told = remembrancer("demo", "--play", str(path), code=2)
    assert said in told.err
    assert told.out == ""


def test_a_file_that_is_not_there_or_not_utf8_is_told(remembrancer: CommandLine, tmp_path: Path) -> None:
    assert "cannot be read" in remembrancer("demo", "--play", str(tmp_path / "none.json"), code=2).err
    path = tmp_path / "bad.json"
    path.write_bytes(b"\xff")
    assert "not UTF-8" in remembrancer("demo", "--play", str(path), code=2).err
    assert "1 or more" in remembrancer("demo", "--play", str(path), "--conversations", "0", code=2).err
