"""`remembrancer chat` as people and scripts have it, with a scripted model over real HTTP."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support import scripted_chat as script
from tests.support.command_line import CommandLine, plain
from tests.support.fake_openai import FakeOpenAI
from tests.support.scripted_chat import ScriptedChat, calls, says

CAT = "Juno's cat is named Mochi"
WHO = ("chat", "--persona", "mira", "--user", "juno")
REMEMBERS = calls(("remember", {"text": CAT}))


@pytest.fixture
def model() -> Iterator[ScriptedChat]:
    with ScriptedChat() as made:
        yield made


@pytest.fixture
def remembrancer(database_url: str, model: ScriptedChat) -> Iterator[CommandLine]:
    with FakeOpenAI(dimensions=256) as embedder:
        yield CommandLine(
            database_url, REMEMBRANCER_EMBEDDER="openai", REMEMBRANCER_EMBEDDER_MODEL="words",
            REMEMBRANCER_EMBEDDER_URL=embedder.url, REMEMBRANCER_MATCH_THRESHOLD="0.3",
            REMEMBRANCER_CHAT_MODEL="scripted", REMEMBRANCER_CHAT_MODEL_URL=model.url,
            REMEMBRANCER_CHAT_PRICES='{"scripted": [1, 10]}',
        )  # fmt: skip


def test_a_pipe_is_a_message_a_line_and_each_turn_is_told(remembrancer: CommandLine, model: ScriptedChat) -> None:
    model.script = [REMEMBERS, says("What a name!"), says("Asleep.")]
    said = remembrancer(*WHO, typed="my cat is called Mochi\n\nhow is Mochi?\n")
    assert said.err == ""
    assert said.out.splitlines() == [
        "mira, spoken by scripted  chat user:juno:mira; /help shows what else there is",
        "juno: my cat is called Mochi",
        "mira: What a name!",
        "  on the desk 0 \u00b7 1 messages live \u00b7 1 in no summary \u00b7 200 tokens read, 40 written, cost 0.0006",
        f"  saved: {CAT}",
        "juno: how is Mochi?",
        "mira: Asleep.",
        "  on the desk 1 \u00b7 3 messages live \u00b7 3 in no summary \u00b7 100 tokens read, 20 written, cost 0.0003",
    ]  # fmt: skip
    assert "What a name!" in remembrancer(*WHO, typed="/quit\nnever said\n").out
    assert len(model.requests) == 3


def test_t6_t12_it_shows_what_was_recalled_updated_deleted_and_forgotten(
    remembrancer: CommandLine, model: ScriptedChat
) -> None:
    for text in (CAT, "Kai plays the oboe"):
        remembrancer("save", "mira", text, "--server", "tea", "--actor", "persona")
    remembrancer("policy", "set", "desk_limit=1")
    model.script = [calls(("update_memory", {"memory": CAT, "text": "Mochi is a cat"})), says("So it is.")]
    said = remembrancer(*WHO, "--server", "tea", typed="what is Juno's cat named?\n").out
    assert f"  recalled: {CAT}\n" in said
    assert f"  updated: {CAT} \u2192 Mochi is a cat\n" in said
    model.script = [calls(("forget_memory", {"memory": "1"}), ("forget_memory", {"memory": "77"})), says("Gone.")]
    said = remembrancer(*WHO, "--server", "tea", typed="forget it\n").out
    assert "  deleted: " in said
    assert "  refused: forget_memory: Not done. You remember nothing that reads '77'." in said


def test_t12_what_was_forgotten_to_make_room_is_shown(remembrancer: CommandLine, model: ScriptedChat) -> None:
    remembrancer("policy", "set", "list_capacity=1", "rest_after_days=1")
    remembrancer("save", "mira", "Kai plays the oboe", "--user", "juno", "--actor", "persona", "--until", "2026-01-01")
    model.script = [REMEMBERS, says("What a name!")]
    said = remembrancer(*WHO, typed="hello\n").out
    assert f"  saved: {CAT}\n  forgotten: Kai plays the oboe (" in said


def test_d19_d14_a_turn_is_regenerated_and_taken_back_also_by_another_run(
    remembrancer: CommandLine, model: ScriptedChat
) -> None:
    model.script = [REMEMBERS, says("What a name!"), says("A fine cat.")]
    remembrancer(*WHO, typed="my cat is called Mochi\n")
    assert remembrancer.json("list", "mira", "--user", "juno")["lists"][0]["count"] == 1
    assert "mira: A fine cat." in remembrancer(*WHO, typed="/regenerate\n").out
    assert remembrancer.json("list", "mira", "--user", "juno")["lists"][0]["count"] == 0
    shown = remembrancer.json("chat", "show", "user:juno:mira")["messages"]
    assert [m["text"] for m in shown] == ["my cat is called Mochi", "A fine cat."]
    assert "Taken back: my cat is called Mochi" in remembrancer(*WHO, typed="/undo\n").out
    assert remembrancer.json("chat", "show", "user:juno:mira")["messages"] == []
    assert "Nothing was said here yet." in remembrancer(*WHO, typed="/undo\n").err


def test_the_other_slashes_show_what_they_say(remembrancer: CommandLine, model: ScriptedChat) -> None:
    remembrancer("save", "mira", CAT, "--user", "juno")
    lines = ["/desk", "how is Mochi, Juno's cat?", "/desk", "/recalled", "/why cat named Mochi", "/summary", "/help"]
    said = remembrancer(*WHO, typed="\n".join([*lines, "/dance", "//me waves"]))
    assert "The desk is read with the first message." in said.err
    assert "On the desk  1 sent from the start" in said.out
    assert "Candidates  a match from 0.300 on" in said.out
    assert "It is not forgotten" in said.out
    assert "Nothing is summarised yet." in said.out
    assert "/regenerate" in said.out
    assert "There is no /dance." in said.err
    assert "mira: You say: /me waves" in said.out


def test_json_is_a_document_a_turn(remembrancer: CommandLine, model: ScriptedChat) -> None:
    once = remembrancer.json(*WHO, "--once", "hello")
    assert (once["text"], once["reply"]["window"]["messages"], once["tools"]) == ("You say: hello", 1, True)
    said = remembrancer(*WHO, "--once", "-", "--chat", "tea", "--json", typed="two\nlines").document
    assert said["chat"] == "tea"
    assert said["text"] == "You say: two\nlines"


def test_without_a_model_it_ends_with_what_to_set(database_url: str) -> None:
    for words in (WHO, (*WHO, "--once", "hello")):
        said = CommandLine(database_url)(*words, typed="hello\n", code=1)
        assert "No chat model is configured" in said.err
        assert "REMEMBRANCER_CHAT_MODEL " in said.err
        assert "REMEMBRANCER_CHAT_MODEL_URL" in said.err
        assert said.out == ""


def test_d16_a_model_that_fails_is_told_and_one_goes_on(remembrancer: CommandLine, model: ScriptedChat) -> None:
    model.script = [script.status(401), says("Here I am."), says("Hello to you, too.")]
    said = remembrancer(*WHO, typed="hello\nare you there?\n", code=1)
    assert "The chat model gave no answer: status 401." in said.err
    assert "The message is kept; /regenerate asks again. Check REMEMBRANCER_CHAT_MODEL_KEY." in said.err
    assert "mira: Here I am." in said.out
    shown = remembrancer.json("chat", "show", "user:juno:mira")["messages"]
    assert [m["text"] for m in shown] == ["hello", "are you there?", "Here I am."]
    model.script = [script.status(401)]
    failed = remembrancer(*WHO, "--chat", "other", "--once", "hello", "--json", code=1).document
    assert failed["detail"] == "The chat model gave no answer: status 401."


def test_r17_a_model_without_tools_is_said_to_be_one(remembrancer: CommandLine, model: ScriptedChat) -> None:
    model.otherwise = script.no_tools
    assert "note: this model takes no tools" in remembrancer(*WHO, "--once", "hello").out
    assert "note:" not in remembrancer(*WHO, "--once", "hello", "--no-tools").out


def test_mistakes_of_usage_are_told(remembrancer: CommandLine) -> None:
    assert "--persona KEY --user KEY" in remembrancer("chat", "--persona", "mira", code=2).err
    assert "before show are not its own" in remembrancer("chat", "--persona", "mira", "show", "tea", code=2).err
    assert "Usage:" in remembrancer("chat", code=2).err
    assert "not UTF-8" in remembrancer(*WHO, typed=b"\xff\n", code=2).err
    assert "is not a platform" in remembrancer(*WHO, "--platform", "irc", "--once", "hello", code=2).err


def test_on_a_terminal_one_talks_and_leaves_with_control_d_or_c(remembrancer: CommandLine, model: ScriptedChat) -> None:
    model.script = [REMEMBERS, says("What a \x1b[31mname!")]
    talked = remembrancer.terminal(*WHO, answers=[("juno: ", "hello\n"), ("cost 0.000", ""), ("juno: ", "\x04")])
    assert talked.code == 0
    assert "mira: What a \\x1b[31mname!" in plain(talked.out)
    assert "\x1b[31mname!" not in talked.out
    assert f"saved: {CAT}" in plain(talked.out)
    left = remembrancer.terminal(*WHO, answers=[("juno: ", "\x03")])
    assert left.code == 130
    assert "Traceback" not in left.out
    assert "juno: hello" in plain(left.out), "how it stood before"
