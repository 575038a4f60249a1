"""Changing the embedding model: the old vectors serve until every text has a new one, then the new ones do (D23)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from remembrancer.domain.errors import InvalidInput, Refused
from remembrancer.services import change_model
from remembrancer.services.embedders import EmbedderFailed
from remembrancer.services.remembrancer import Remembrancer
from tests.support import fake_openai as fake
from tests.support.fake_openai import Exchange
from tests.support.read_model import assert_read_model_is_a_fresh_fold, caught_up
from tests.support.world import MATCH, SERVER, SMALL_TALK, USER, World, matched

CAT, CELLO = "Juno's cat is named Mochi", "Kit plays the cello"
OLD, NEW = "openai:words", "openai:bigger"


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    """The new model has other dimensions than the old one."""
    with World(database_url, list_capacity=1_000) as one:
        one.fake.of_model["bigger"] = 384
        yield one


def other(world: World, **settings: Any) -> Remembrancer:
    """A process whose settings name the new model."""
    return world.open(embedder_model="bigger", **settings)


def begin(memory: Remembrancer) -> None:
    """What the background does when it has been open for a moment, without its first batch."""
    memory.engine.change._begin(by_itself=True)


def go_on(memory: Remembrancer, steps: int = 1_000) -> bool:
    """So many steps of the background at most. True if there is nothing more to do."""
    begin(memory)
    return any(not memory.engine.change.step() for _ in range(steps))


def serving(memory: Remembrancer) -> str | None:
    return memory.doctor().model.serving  # type: ignore[union-attr]


def column(world: World, query: str) -> list[Any]:
    with world.memory.engine.store.database.connection() as connection:
        return [row[0] for row in connection.execute(query)]


def kept(world: World, model: str) -> int:
    """How many vectors of a model there are."""
    return column(world, f"SELECT count(*) FROM remembrancer.embedding WHERE model = '{model}' AND vector IS NOT NULL")[
        0
    ]


def finds(memory: Remembrancer, message: str, *, by: str) -> str | None:
    """The text that a message brings to mind first, in a search that this model has to have served."""
    answer = memory.reply("juno", message=message, users=[USER], server=SERVER)
    assert (answer.search.status, answer.search.model) == ("ok", by), answer.search.reason
    return next(iter(matched(answer)), None)


def test_replies_search_and_finds_go_on_with_the_old_vectors_until_all_texts_have_new_ones(world: World) -> None:
    """D23, whatever model the settings of the process name."""
    texts = [f"fact number {n} about {word}" for n in range(50) for word in ("tea", "rain", "trains")]
    for text in [CAT, *texts]:
        world.save(text, persona="juno")
    caught_up(world.memory)
    bot = other(world)
    assert finds(bot, CAT, by=OLD) == CAT
    assert not go_on(bot, steps=2)
    assert 0 < kept(world, NEW) < 151
    for memory in (world.memory, bot):
        assert finds(memory, CAT, by=OLD) == CAT
        assert memory.find(CAT)[0].text == CAT
    report = bot.doctor().model
    assert report is not None
    assert (report.serving, report.coming, report.texts, report.embedded) == (OLD, NEW, 151, kept(world, NEW))
    assert go_on(bot)
    for memory in (world.memory, bot):
        assert finds(memory, CAT, by=NEW) == CAT
        assert memory.find(CAT)[0].text == CAT
    assert column(world, "SELECT DISTINCT model FROM remembrancer.memory") == [NEW]
    assert column(world, "SELECT DISTINCT model FROM remembrancer.archive") == [NEW]
    assert column(world, "SELECT DISTINCT vector_dims(embedding) FROM remembrancer.memory") == [384]
    assert column(world, "SELECT count(*) FROM pg_indexes WHERE indexdef LIKE '%halfvec(384)%'")[0] >= 1
    caught_up(world.memory)
    assert_read_model_is_a_fresh_fold(world.memory)


def test_every_text_is_found_though_no_row_has_followed_the_switch_yet(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D23: the switch is one row; the rows of the texts follow, and no search waits for them."""
    ids = [world.save(text, persona="juno") for text in (CAT, CELLO)]
    caught_up(world.memory)
    bot = other(world)
    with monkeypatch.context() as patched:
        patched.setattr(bot.engine.vectors, "adopt", lambda *_: None)
        assert go_on(bot)
    assert set(column(world, "SELECT model FROM remembrancer.memory")) == {OLD}
    for memory in (world.memory, bot):
        assert finds(memory, CAT, by=NEW) == CAT
        assert memory.find(CELLO)[0].text == CELLO
    stream = column(world, "SELECT DISTINCT list FROM remembrancer.memory")[0]
    assert bot.engine.finder.without_vector(stream) == frozenset()
    assert world.unused(*ids) == [0, 0]
    world.day(1)
    assert finds(bot, SMALL_TALK, by=NEW) is None
    assert world.unused(*ids) == [1, 1], "both were in the search, so the day ticks for both"


def test_a_save_and_an_edit_during_a_change_are_found_before_and_after_it(world: World) -> None:
    """D23: they get vectors of both models at once."""
    world.save(CELLO, persona="juno")
    caught_up(world.memory)
    bot = other(world)
    begin(bot)
    bot.save("juno", scope="server", subject=SERVER, text=CAT)
    assert (kept(world, OLD), kept(world, NEW)) == (2, 1)
    edited = world.save("Otto sings", persona="juno")
    bot.edit(edited, text="Otto dances tango")
    assert kept(world, NEW) == 2, "a process of the old settings learns of the change with its first save"
    world.save("Otto paints", persona="juno")
    assert kept(world, NEW) == 3, "it is behind the same endpoint, so it can ask the new model as well"
    for memory in (world.memory, bot):
        assert finds(memory, CAT, by=OLD) == CAT
        assert finds(memory, "Otto dances tango", by=OLD) == "Otto dances tango"
    caught_up(world.memory)
    assert go_on(bot)
    for memory in (world.memory, bot):
        assert finds(memory, CAT, by=NEW) == CAT
        assert finds(memory, "Otto dances tango", by=NEW) == "Otto dances tango"


def test_what_no_table_has_yet_holds_up_the_switch_until_it_has_its_vector(world: World) -> None:
    """D23: a save by a process that cannot ask the new model, a moment before the switch."""
    world.save(CELLO, persona="juno")
    caught_up(world.memory)
    bot = other(world)
    begin(bot)
    world.fake.by_model["bigger"] = fake.status(400)
    world.save(CAT, persona="juno")
    world.fake.by_model.clear()
    assert bot.engine.change.step()
    assert bot.engine.change.step(), "not yet: the events are ahead of the tables"
    assert finds(bot, CAT, by=OLD) == CAT
    caught_up(bot)
    assert go_on(bot)
    assert finds(bot, CAT, by=NEW) == CAT


def test_a_reply_that_the_switch_overtakes_searches_again_with_the_new_model(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D23: it never comes out with an empty search; nor do `find` and a save."""
    world.save(CAT, persona="juno")
    caught_up(world.memory)
    bot = other(world)
    begin(bot)
    embedder = world.memory.engine.deps.embedder
    assert embedder is not None
    ask = embedder.embed_query

    def overtaken(text: str, *, timeout: float) -> Any:
        vector = ask(text, timeout=timeout)
        assert go_on(bot)
        return vector

    monkeypatch.setattr(embedder, "embed_query", overtaken)
    assert finds(world.memory, CAT, by=NEW) == CAT
    assert world.memory.engine.deps.embedder is not embedder


def test_a_save_that_the_switch_overtakes_gets_a_vector_of_the_new_model(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.save(CELLO, persona="juno")
    caught_up(world.memory)
    bot = other(world)
    begin(bot)
    embedder = world.memory.engine.deps.embedder
    assert embedder is not None
    ask = embedder.embed_passages

    def overtaken(texts: Any, *, timeout: float) -> Any:
        vectors = ask(texts, timeout=timeout)
        assert go_on(bot)
        return vectors

    with monkeypatch.context() as patched:
        patched.setattr(embedder, "embed_passages", overtaken)
        world.save(CAT, persona="juno")
    assert finds(world.memory, CAT, by=NEW) == CAT


def test_no_reply_misses_a_memory_under_load_around_the_switch(world: World) -> None:
    """D23: four clients of two processes, of both settings, while the new model takes over."""
    for n in range(200):
        world.save(f"fact number {n}", persona="juno")
    caught_up(world.memory)
    bot, wrong, ended, models = other(world), [], threading.Event(), set()

    def chats(memory: Remembrancer, who: int) -> None:
        n = who
        while not ended.is_set():
            n = (n + 7) % 200
            answer = memory.reply("juno", message=f"fact number {n}", users=[f"user {who}"], server=SERVER)
            models.add(answer.search.model)
            if f"fact number {n}" not in matched(answer):
                wrong.append((answer.search.status, answer.search.reason, answer.search.model, n))

    threads = [threading.Thread(target=chats, args=(memory, who)) for who, memory in enumerate([world.memory, bot] * 2)]
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    assert go_on(bot)
    time.sleep(0.5)
    ended.set()
    for thread in threads:
        thread.join(30)
    assert wrong == []
    assert models == {OLD, NEW}


def test_processes_of_different_settings_do_not_send_each_other_to_and_fro(world: World) -> None:
    """D23: whatever restarts in whatever order, each model takes over by itself once at most."""
    world.save(CAT, persona="juno")
    caught_up(world.memory)
    assert go_on(other(world))
    for _ in range(3):
        old, new = world.reopen(), other(world)
        assert (go_on(old), go_on(new)) == (True, True)
        assert (serving(old), serving(new)) == (NEW, NEW)
        assert finds(old, CAT, by=NEW) == finds(new, CAT, by=NEW) == CAT
    found = {check.name: check for check in world.memory.doctor().checks}["change of model"]
    assert not found.ok
    assert "it was left" in found.detail
    assert "change-model" in str(found.hint)


def test_processes_of_the_same_settings_that_begin_at_the_same_moment_do_not_hinder_each_other(world: World) -> None:
    world.save(CAT, persona="juno")
    caught_up(world.memory)
    bots = [other(world) for _ in range(4)]
    together = threading.Barrier(4)
    threads = [threading.Thread(target=lambda bot=bot: (together.wait(30), begin(bot))) for bot in bots]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert column(world, "SELECT model || ' ' || state FROM remembrancer.model ORDER BY 1") == [
        f"{NEW} coming",
        f"{OLD} serving",
    ]
    assert any(go_on(bot) for bot in bots)
    assert serving(world.memory) == NEW


def test_one_that_has_not_noticed_that_another_began_leaves_it_at_that(world: World) -> None:
    """The same, one after the other: what the second knows is old."""
    first, second = other(world), other(world)
    begin(first)
    second.engine.deps.models.look_again = lambda: None  # type: ignore[method-assign]
    begin(second)
    assert column(world, "SELECT state FROM remembrancer.model WHERE state <> 'serving'") == ["coming"]


def test_a_third_model_takes_the_place_of_one_that_is_still_on_its_way(world: World) -> None:
    for n in range(70):
        world.save(f"fact {n}", persona="juno")
    caught_up(world.memory)
    second = other(world)
    assert not go_on(second, steps=1)
    third = world.open(embedder_model="third")
    assert go_on(third)
    assert go_on(second)
    assert serving(second) == "openai:third"
    assert finds(second, "fact 7", by="openai:third") == "fact 7"


def test_the_command_goes_back_to_a_model_that_was_left_and_asks_for_new_texts_alone(world: World) -> None:
    """D23: vectors are kept and never asked for again."""
    world.save(CAT, persona="juno")
    caught_up(world.memory)
    bot = other(world)
    told: list[Any] = []
    assert bot.change_model(progress=lambda done, total: told.append((done, total))).serving == NEW
    bot.save("juno", scope="server", subject=SERVER, text=CELLO)
    caught_up(bot)
    world.fake.requests.clear()
    assert world.memory.change_model().serving == OLD
    assert [request.texts for request in world.fake.requests] == [[CELLO]]
    assert finds(bot, CAT, by=OLD) == CAT
    assert finds(bot, CELLO, by=OLD) == CELLO


def test_the_command_under_the_settings_of_what_serves_calls_a_change_off(world: World) -> None:
    world.save(CAT, persona="juno")
    caught_up(world.memory)
    bot = other(world)
    begin(bot)
    assert world.memory.change_model().coming is None
    assert go_on(bot)
    assert serving(bot) == OLD
    nothing = world.open(embedder="none")
    with pytest.raises(InvalidInput, match="name no model"):
        nothing.change_model()


def test_a_process_that_stays_open_begins_by_itself_and_one_that_passes_by_does_not(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D23: what embeds a model's texts for hours should be meant."""
    world.save(CAT, persona="juno")
    caught_up(world.memory)
    monkeypatch.setattr(change_model, "BEGIN_AFTER_SECONDS", 1.0)
    passing = other(world, background=True)
    time.sleep(0.5)
    passing.close()
    assert column(world, "SELECT model FROM remembrancer.model") == [OLD]
    bot = other(world, background=True)
    deadline = time.monotonic() + 30
    while column(world, "SELECT model FROM remembrancer.model WHERE state = 'serving'") == [OLD]:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert finds(bot, CAT, by=NEW) == CAT


def test_a_tenant_without_memories_begins_with_the_model_of_its_settings(world: World) -> None:
    new = other(world, tenant="new")
    assert serving(new) == NEW
    new.save("juno", scope="server", subject=SERVER, text=CAT)
    assert finds(new, CAT, by=NEW) == CAT
    assert serving(world.memory) == OLD, "a model serves a tenant, not the installation"


def test_none_and_back_asks_for_nothing_and_changes_nothing(world: World) -> None:
    """T11, D23."""
    world.save(CAT, persona="juno")
    caught_up(world.memory)
    off = world.reopen(embedder="none")
    assert go_on(off)
    off.save("juno", scope="server", subject=SERVER, text=CELLO)
    caught_up(off)
    back = world.reopen()
    world.fake.requests.clear()
    while back.embed_pending():
        pass
    assert [request.texts for request in world.fake.requests] == [[CELLO]]
    assert finds(back, CAT, by=OLD) == CAT


BAD = {"NaN": fake.nan, "zeros": fake.zeros, "no answer": fake.status(500), "a refusal of all": fake.status(400)}


@pytest.mark.parametrize("bad", list(BAD.values()), ids=list(BAD))
def test_a_new_model_that_fails_waits_and_the_old_one_serves(world: World, bad: fake.Behaviour) -> None:
    """D23, C25: nothing wrong is kept, and `doctor` says why it waits; when it is well, it goes on."""
    for n in range(70):
        world.save(f"fact {n}", persona="juno")
    caught_up(world.memory)
    bot = other(world)
    assert not go_on(bot, steps=1)
    world.fake.by_model["bigger"] = bad
    with pytest.raises(EmbedderFailed):
        go_on(bot)
    assert kept(world, NEW) == 64
    report = bot.doctor()
    assert report.model is not None
    assert (report.model.serving, report.model.coming, report.model.embedded) == (OLD, NEW, 64)
    assert report.model.error
    assert report.model.error_at == world.now
    found = {check.name: check for check in report.checks}["change of model"]
    assert not found.ok
    assert report.model.error in found.detail
    with pytest.raises(EmbedderFailed):
        bot.change_model()
    assert finds(bot, "fact 7", by=OLD) == "fact 7"
    bot.save("juno", scope="server", subject=SERVER, text=CAT)
    assert finds(bot, CAT, by=OLD) == CAT
    world.fake.by_model.clear()
    caught_up(bot)
    assert go_on(bot)
    assert finds(bot, "fact 7", by=NEW) == "fact 7"
    assert finds(bot, CAT, by=NEW) == CAT


def test_vectors_of_another_length_half_way_are_refused_also_after_a_restart(world: World) -> None:
    """C25."""
    for n in range(70):
        world.save(f"fact {n}", persona="juno")
    caught_up(world.memory)
    bot = other(world)
    assert not go_on(bot, steps=1)
    bot.close()
    world.fake.of_model["bigger"] = 385
    with pytest.raises(EmbedderFailed, match="385 dimensions where this model has 384"):
        go_on(other(world))
    assert kept(world, NEW) == 64


def refuses(*words: str) -> Callable[[Exchange], None]:
    def behave(exchange: Exchange) -> None:
        bad = any(word in text for text in exchange.texts for word in words)
        (fake.status(400) if bad else fake.right)(exchange)

    return behave


def test_a_text_that_the_new_model_refuses_holds_up_nothing(world: World) -> None:
    """D23, D22: afterwards it is without a vector, and `doctor` says so."""
    durian = world.save("Otto likes durian", persona="juno")
    world.save(CAT, persona="juno")
    caught_up(world.memory)
    world.fake.by_model["bigger"] = refuses("durian")
    bot = other(world)
    assert not go_on(bot, steps=1)
    report = bot.doctor().model
    assert report is not None
    assert (report.texts, report.embedded, report.refused) == (2, 2, 1)
    assert go_on(bot)
    assert finds(bot, CAT, by=NEW) == CAT
    assert finds(bot, "Otto likes what?", by=NEW) is None
    found = {check.name: check for check in bot.doctor().checks}["vectors"]
    assert found.detail == "1 memories wait for their first vector"
    world.day(1)
    finds(bot, CAT, by=NEW)
    assert world.unused(durian) == [0], "it was in no search, so it does not tick"
    world.fake.by_model.clear()
    assert bot.embed_pending() == 1
    assert finds(bot, "Otto likes durian", by=NEW) == "Otto likes durian"


def test_a_model_that_refuses_most_texts_does_not_take_over(world: World) -> None:
    for n in range(30):
        world.save(f"fact {n}", persona="juno")
    caught_up(world.memory)
    world.fake.by_model["bigger"] = refuses("fact 1", "fact 2")
    bot = other(world)
    assert go_on(bot)
    report = bot.doctor().model
    assert report is not None
    assert (report.serving, report.error) == (OLD, "the model refuses 22 of 30 texts")
    with pytest.raises(Refused, match="refuses 22 of 30"):
        bot.change_model()
    world.fake.by_model.clear()
    assert bot.change_model().serving == NEW, "the command asks once more for what was refused"


def test_a_model_without_a_match_threshold_does_not_take_over(world: World) -> None:
    """D5, D23: it would find nothing."""
    world.save(CAT, persona="juno")
    caught_up(world.memory)
    bot = other(world, match_threshold=None)
    with pytest.raises(Refused, match="no match threshold is known"):
        bot.change_model()
    assert serving(bot) == OLD
    bot.set_policy(match_threshold=MATCH)
    assert go_on(bot)
    assert finds(bot, CAT, by=NEW) == CAT


def test_a_match_threshold_of_the_model_before_is_named(world: World) -> None:
    """D5."""
    world.memory.set_policy(match_threshold=0.31)
    world.save(CAT, persona="juno")
    caught_up(world.memory)
    bot = other(world)
    world.later(minutes=1)
    assert go_on(bot)
    found = {check.name: check for check in bot.doctor().checks}
    assert found["match threshold"].detail.startswith(
        "0.31 was set 2026-05-04 12:00:00 UTC, before openai:bigger served"
    )
    bot.set_policy(match_threshold=0.32)
    world.later(minutes=1)
    bot.set_policy(match_threshold=0.33)
    assert "match threshold" not in {check.name for check in bot.doctor().checks}


def test_an_old_endpoint_that_is_away_holds_up_no_change(world: World) -> None:
    """D23, T8: replies go on without search until the new model serves."""
    world.save(CAT, persona="juno")
    caught_up(world.memory)
    world.fake.by_model["words"] = fake.status(503)
    bot = other(world)
    answer = bot.reply("juno", message=CAT, users=[USER], server=SERVER)
    assert (answer.search.status, [m.text for m in answer.prefix.memories]) == ("unavailable", [CAT])
    assert not {check.name: check for check in bot.doctor().checks}["model"].ok
    assert go_on(bot)
    assert finds(bot, CAT, by=NEW) == CAT


def test_a_key_goes_to_its_own_endpoint_and_to_no_other(world: World) -> None:
    """The one before is asked without the new one's key, unless it is at the same place; `embedder_previous_key` is its
    own, and `embedder_previous_url` says where it has moved to."""
    world.save(CAT, persona="juno")
    caught_up(world.memory)
    with fake.FakeOpenAI(384) as elsewhere, fake.FakeOpenAI(256) as moved:
        far: dict[str, Any] = {"embedder_model": "bigger", "embedder_url": elsewhere.url, "embedder_key": "new secret"}
        world.fake.requests.clear()
        assert finds(world.open(**far), CAT, by=OLD) == CAT
        assert {request.key for request in world.fake.requests} == {"none"}
        world.fake.requests.clear()
        assert finds(world.open(**far, embedder_previous_key="old secret"), CAT, by=OLD) == CAT
        assert {request.key for request in world.fake.requests} == {"old secret"}
        world.fake.requests.clear()
        assert finds(world.open(**far, embedder_previous_url=moved.url), CAT, by=OLD) == CAT
        assert world.fake.requests == []
        assert {request.key for request in moved.requests} == {"none"}
        bot = world.open(**far)
        assert go_on(bot)
        assert finds(bot, CAT, by=NEW) == CAT
        assert {(request.key, request.model) for request in elsewhere.requests} == {("new secret", "bigger")}
    assert "secret" not in str(column(world, "SELECT m::text FROM remembrancer.model m"))


def test_an_address_is_noted_without_what_is_secret_in_it(world: World) -> None:
    url = world.fake.url.replace("127.0.0.1", "juno:password@127.0.0.1") + "?api_key=password"
    world.open(tenant="new", embedder_url=url)
    assert column(world, "SELECT url FROM remembrancer.model WHERE tenant = 'new'") == [world.fake.url]


def test_an_erasure_during_a_change_leaves_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """D24: also where it overtakes a batch that is on its way."""
    world.save(CAT, persona="juno", scope="personal")
    gone = world.save("Mira collects stamps", persona="juno", scope="personal")
    world.memory.delete(gone)
    world.save(CELLO, persona="juno")
    caught_up(world.memory)
    bot = other(world)
    begin(bot)

    def erases(exchange: Exchange) -> None:
        world.fake.by_model.clear()
        world.memory.erase(USER)
        fake.right(exchange)

    world.fake.by_model["bigger"] = erases
    assert go_on(bot)
    assert serving(bot) == NEW
    assert column(world, "SELECT DISTINCT subject FROM remembrancer.embedding") == [SERVER]
    assert finds(bot, CELLO, by=NEW) == CELLO


def test_what_comes_back_after_a_change_is_found(world: World) -> None:
    """D23, U2: texts that are no memories now get vectors as well, since a restore asks no model."""
    gone = world.save(CAT, persona="juno")
    edited = world.save("Otto sings", persona="juno")
    world.memory.delete(gone)
    world.memory.edit(edited, text="Otto dances")
    caught_up(world.memory)
    bot = other(world)
    assert go_on(bot)
    assert kept(world, NEW) == 3
    world.fake.requests.clear()
    bot.restore(gone)
    assert world.fake.requests == []
    assert finds(bot, CAT, by=NEW) == CAT
    assert bot.find("Otto sings")[0].text == "Otto sings"


def test_a_fresh_fold_after_a_change_gives_the_same_rows_and_asks_no_model(world: World) -> None:
    """D23: embeddings are never asked for again for a rebuild; the row takes the vector of the model that serves."""
    for n in range(20):
        world.save(f"fact {n}", persona="juno")
    caught_up(world.memory)
    bot = other(world)
    assert go_on(bot)
    with psycopg.connect(world.url, autocommit=True) as connection:
        connection.execute(
            "UPDATE remembrancer.embedding SET created_at = now() + interval '1 day' WHERE model = %s", (OLD,)
        )
        rows = "SELECT id, model, embedding::text FROM remembrancer.memory ORDER BY id"
        archived = "SELECT memory, version, model, embedding::text FROM remembrancer.archive ORDER BY memory, version"
        before = [connection.execute(query).fetchall() for query in (rows, archived)]
        connection.execute(
            "TRUNCATE remembrancer.memory, remembrancer.memory_use, remembrancer.list, remembrancer.archive"
        )
        connection.execute("UPDATE remembrancer.checkpoint SET position = 0 WHERE projection IN ('memory', 'archive')")
        world.fake.requests.clear()
        caught_up(bot)
        assert [connection.execute(query).fetchall() for query in (rows, archived)] == before
    assert world.fake.requests == []
    assert {row[1] for row in before[0]} == {NEW}


def test_two_processes_of_the_new_settings_share_the_work(world: World) -> None:
    for n in range(200):
        world.save(f"fact {n}", persona="juno")
    caught_up(world.memory)
    first, second = other(world), other(world)
    begin(first)
    world.fake.requests.clear()
    assert first.engine.change.step()
    assert not second.engine.change.step(), "the first one is at it"
    assert len([request for request in world.fake.requests if request.model == "bigger"]) == 1
    first.close()
    assert go_on(second), "an end in good order hands it over at once"
    assert column(world, "SELECT model FROM remembrancer.model WHERE state = 'serving'") == [NEW]
    asked = [text for request in world.fake.requests if request.model == "bigger" for text in request.texts]
    assert len(asked) == len(set(asked)) == 200


def test_a_model_of_which_nobody_noted_the_address_is_not_looked_for_elsewhere(world: World) -> None:
    """A database that is older than the note: texts are not sent to a server that may be another one."""
    world.save(CAT, persona="juno")
    caught_up(world.memory)
    column(world, "UPDATE remembrancer.model SET url = NULL RETURNING 1")
    bot = other(world)
    world.fake.requests.clear()
    answer = bot.reply("juno", message=CAT, users=[USER], server=SERVER)
    assert answer.search.status == "unavailable"
    assert world.fake.requests == []
    found = {check.name: check for check in bot.doctor().checks}["model"]
    assert "REMEMBRANCER_EMBEDDER_PREVIOUS_URL" in str(found.hint)
    assert finds(other(world, embedder_previous_url=world.fake.url), CAT, by=OLD) == CAT


DOES = st.one_of(
    st.tuples(st.just("save"), st.sampled_from("abc"), st.integers(0, 12)),
    st.tuples(st.just("edit"), st.sampled_from("abc"), st.integers(0, 12)),
    st.tuples(st.just("delete"), st.sampled_from("abc"), st.integers(0, 12)),
    st.tuples(st.just("restart"), st.sampled_from("abc"), st.just(0)),
    st.tuples(st.just("work"), st.sampled_from("abc"), st.integers(1, 3)),
    st.tuples(st.just("project"), st.sampled_from("abc"), st.just(0)),
    st.tuples(st.just("command"), st.sampled_from("abc"), st.just(0)),
)
tenants = count()


@given(does=st.lists(DOES, min_size=5, max_size=20))
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
def test_whatever_three_processes_of_three_models_do_every_memory_is_found_by_all_of_them(
    world: World, does: list[tuple[str, str, int]]
) -> None:
    """D23: after each step, in a reply of each process; and no model takes over by itself twice."""
    tenant = f"tenant {next(tenants)}"
    names = {"a": "words", "b": "bigger", "c": "third"}

    def opened(who: str) -> Remembrancer:
        return world.open(tenant=tenant, embedder_model=names[who])

    process = {who: opened(who) for who in names}
    texts: dict[Any, str] = {}
    served = ["openai:words"]
    commands = 0
    for n, (what, who, number) in enumerate(does):
        memory = process[who]
        chosen = list(texts)[number % len(texts)] if texts else None
        match what:
            case "save":
                text = f"novelty{n} number{number}"
                texts[memory.save("juno", scope="server", subject=SERVER, text=text).memory.id] = text
            case "edit" if chosen is not None:
                texts[chosen] = f"other{n} wording{number}"
                memory.edit(chosen, text=texts[chosen])
            case "delete" if chosen is not None:
                memory.delete(chosen)
                del texts[chosen]
            case "restart":
                memory.close()
                process[who] = opened(who)
            case "work":
                go_on(memory, number)
            case "project":
                caught_up(memory)
            case "command":
                caught_up(memory)
                commands += 1
                memory.change_model()
        now = column(world, f"SELECT model FROM remembrancer.model WHERE tenant = '{tenant}' AND state = 'serving'")[0]
        served += [now] if now != served[-1] else []
        for one in process.values():
            for text in texts.values():
                assert finds(one, text, by=now) == text
    assert len(served) <= 3 + commands
    for one in process.values():
        one.close()


def test_the_built_in_model_serves_until_an_endpoint_takes_over_and_its_processes_then_ask_that(world: World) -> None:
    """D23, with the real local model."""
    local = world.open(tenant="local", embedder="local", embed_timeout=30.0)
    local.save("juno", scope="server", subject=SERVER, text=CAT)
    caught_up(local)
    bot = world.open(tenant="local", embed_timeout=30.0)
    assert finds(bot, CAT, by="local:e5-small-q4") == CAT
    assert go_on(bot)
    assert finds(bot, CAT, by=OLD) == CAT
    assert finds(local, CAT, by=OLD) == CAT
    assert local.find(CAT)[0].text == CAT
