"""SIGKILL of whoever summarises, and several who do at once: nothing is lost, nothing is summarised twice (D16)."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from itertools import pairwise
from typing import Any

from remembrancer.domain import events as e
from tests.support import scripted_chat as script
from tests.support.chats import CHAT, Talk, talking
from tests.support.processes import client
from tests.support.world import PERSONA, USER

NUMBERS: dict[str, Any] = {"chunk_messages": 4, "recent_summaries": 2, "merged_summaries": 2, "chat_model_timeout": 4.0}


def until(true: Callable[[], bool], seconds: float = 90.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it does not come to that"
        time.sleep(0.1)


def settings_of(talk: Talk, url: str) -> dict[str, Any]:
    return {"url": url, "embedder": "none", "chat_model": "scripted", "chat_model_url": talk.model.url, **NUMBERS}


def each_message_once(talk: Talk) -> None:
    """No chunk has a message of another one, and each is covered or raw."""
    spans = sorted((c.first, c.last) for c in talk.world.events(e.ChunkSummarised))
    assert all(a[1] < b[0] for a, b in pairwise(spans))
    talk.world.project()
    answer = talk.look()
    assert answer.window.unsent == 0
    assert sum(p.messages for p in talk.memory.summary(CHAT).parts) + answer.window.unsummarised == answer.window.total


def test_c16_whoever_is_killed_in_the_middle_of_a_run_another_one_goes_on(database_url: str):
    with talking(database_url, **NUMBERS) as talk:
        talk.memory.set_persona(PERSONA, detail="key_events")
        talk.many(40)
        talk.model.script = [script.answers, script.answers, script.stall]
        with client("summariser", **settings_of(talk, database_url)) as first:
            assert first.line() == "ready"
            until(lambda: len(talk.model.requests) >= 3)
            first.kill()
        written = len(talk.world.events(e.ChunkSummarised))
        assert written < 12
        each_message_once(talk)
        with client("summariser", **settings_of(talk, database_url)) as second:
            assert second.line() == "ready"
            until(lambda: talk.memory.chat(CHAT).unsummarised <= 33)
            assert second.end() == 0
        each_message_once(talk)


def test_several_workers_never_summarise_the_same_twice(database_url: str):
    with talking(database_url, **NUMBERS) as talk, ExitStack() as stack:
        talk.memory.set_persona(PERSONA, detail="key_events")
        talk.many(20)
        workers = [stack.enter_context(client("summariser", **settings_of(talk, database_url))) for _ in range(3)]
        assert [one.line() for one in workers] == ["ready"] * 3
        for _ in range(5):
            talk.many(5)
            time.sleep(0.2)
        workers[0].kill()
        until(lambda: talk.memory.chat(CHAT).unsummarised <= 33)
        each_message_once(talk)


def test_r4_a_reply_does_not_wait_for_a_summary(database_url: str):
    with talking(database_url, **NUMBERS) as talk:
        talk.memory.set_persona(PERSONA, detail="key_events")
        talk.many(20)
        talk.model.otherwise = script.stall
        with client("summariser", **settings_of(talk, database_url) | {"chat_model_timeout": 60.0}) as other:
            assert other.line() == "ready"
            until(lambda: len(talk.model.requests) >= 1)
            begin = time.monotonic()
            answer = talk.memory.reply(PERSONA, message="still there?", users=[USER], chat=CHAT, turn="now")
            assert time.monotonic() - begin < 10
            assert len(answer.messages) == 41
            begin = time.monotonic()
            assert other.end() == 0, "an end does not wait for the model"
            assert time.monotonic() - begin < 20
