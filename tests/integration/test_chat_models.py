"""A chat model over real HTTP: checked answers, bounded tries, a deadline, costs (C17)."""

from __future__ import annotations

import time

import pytest

from remembrancer.domain.errors import InvalidInput
from remembrancer.services.chat_models import ModelFailed, make_chat_model
from remembrancer.services.settings import load_settings
from remembrancer.services.summary_prompts import ChunkDraft, MergedDraft
from tests.support import scripted_chat as script
from tests.support.scripted_chat import ScriptedChat

MESSAGES = "#1 [2026-05-03 10:00] juno: Rule: no ghosts\n#2 [2026-05-03 10:01] mira: Fine."


@pytest.fixture
def server():
    with ScriptedChat() as made:
        yield made


@pytest.fixture
def model(server: ScriptedChat):
    made = make_chat_model("scripted", url=server.url, key="secret", prices={"scripted": (2.0, 8.0)})
    assert made is not None
    yield made
    made.close()


@pytest.mark.parametrize("how", [script.answers, script.fenced, script.no_schema])
def test_an_answer_is_checked_and_its_cost_counted(server: ScriptedChat, model, how):
    server.otherwise = how
    answer = model.ask("Summarise.", MESSAGES, ChunkDraft, timeout=20)
    assert "no ghosts" in answer.value.summary
    assert [(r.message, r.quote) for r in answer.value.rules] == [(1, "Rule: no ghosts")]
    assert answer.usage == (100, 20)
    assert answer.cost == pytest.approx((100 * 2 + 20 * 8) / 1e6)
    assert server.requests[0].key == "secret"


def test_an_endpoint_without_schemas_is_asked_in_words_from_then_on(server: ScriptedChat, model):
    server.otherwise = script.no_schema
    for _ in range(2):
        model.ask("Summarise.", MESSAGES, MergedDraft, timeout=20)
    assert [one.schema for one in server.requests] == [True, False, False]


def test_without_usage_tokens_are_counted(server: ScriptedChat, model):
    server.usage = None
    answer = model.ask("Summarise.", MESSAGES, ChunkDraft, timeout=20)
    assert answer.usage.input_tokens > 20
    assert answer.usage.output_tokens > 5


@pytest.mark.parametrize("bad", script.BAD)
def test_c17_a_bad_answer_is_asked_for_again_and_the_third_is_the_last(server: ScriptedChat, model, bad):
    server.script = [bad]
    assert model.ask("Summarise.", MESSAGES, ChunkDraft, timeout=30).value.summary
    assert len(server.requests) == 2
    server.otherwise = bad
    with pytest.raises(ModelFailed) as failed:
        model.ask("Summarise.", MESSAGES, ChunkDraft, timeout=30)
    assert len(server.requests) == 5
    assert "juno" not in str(failed.value)
    assert "secret" not in str(failed.value)


def test_all_tries_are_paid_for(server: ScriptedChat, model):
    server.script = [script.broken_json]
    assert model.ask("Summarise.", MESSAGES, ChunkDraft, timeout=20).usage == (200, 40)


def test_a_refusal_is_not_asked_again(server: ScriptedChat, model):
    server.otherwise = script.status(401)
    with pytest.raises(ModelFailed, match="REMEMBRANCER_CHAT_MODEL_KEY"):
        model.ask("Summarise.", MESSAGES, ChunkDraft, timeout=20)
    assert len(server.requests) == 1


def test_a_stalling_endpoint_costs_the_deadline_and_no_more(server: ScriptedChat, model):
    server.otherwise = script.stall
    begin = time.monotonic()
    with pytest.raises(ModelFailed, match="took too long"):
        model.ask("Summarise.", MESSAGES, ChunkDraft, timeout=0.5)
    assert time.monotonic() - begin < 5


def test_the_settings_name_the_model_and_its_prices(monkeypatch):
    assert make_chat_model(None) is None
    monkeypatch.setenv("REMEMBRANCER_CHAT_MODEL", "a-model")
    monkeypatch.setenv("REMEMBRANCER_CHAT_PRICES", '{"a-model": [0.15, 0.6]}')
    settings = load_settings()
    assert (settings.chat_model, settings.chat_prices) == ("a-model", {"a-model": (0.15, 0.6)})
    for bad in ("not json", '{"a-model": [1]}', '{"a-model": [-1, 2]}'):
        monkeypatch.setenv("REMEMBRANCER_CHAT_PRICES", bad)
        with pytest.raises(InvalidInput):
            load_settings()
