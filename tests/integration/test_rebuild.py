"""`rebuild`: the read model made anew beside the live one, compared, and switched in one row (U3, DESIGN 4)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from threading import Thread
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from remembrancer.domain.errors import InvalidInput, Refused
from remembrancer.domain.events import MemorySaved
from remembrancer.domain.text import ERASED
from remembrancer.projections import history as history_projection
from remembrancer.projections.history import HistoryProjection
from remembrancer.services import rebuild
from remembrancer.services.answers_rebuild import Comparison, RebuildAnswer
from remembrancer.services.rebuild import Rebuild
from remembrancer.services.remembrancer import Remembrancer
from remembrancer.services.retired import Retired
from tests.support.book import Book, acts, days, days_of, returns, saves, searches, story
from tests.support.generations import OF, live, live_rows, tables
from tests.support.world import USER, World

FIRST = {f"{table}_1" for table in OF}
ALL = ("memory", "archive", "history", "conversation", "documents")
stories = st.tuples(
    story(saves, days_of(0, 2), 10),
    story(st.one_of(acts, searches, searches), days, 15),
    story(st.one_of(acts, returns), days, 10),
)
tenants = count()


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    with World(database_url) as one:
        yield one


@pytest.fixture
def lived(world: World) -> World:
    """Something of each kind has happened, and is projected."""
    cat = world.save("Juno's cat is named Mochi", turn="t1")
    world.save("The garden opens at nine", tags=["spring"])
    world.memory.edit(cat, text="Juno's cat is called Mochi")
    world.memory.pin(world.save("Juno likes green tea", scope="personal"))
    world.talk(range(1, 5), "how is Mochi?")
    gone = world.save("Aiko sings")
    world.memory.delete(gone)
    world.memory.restore(gone)
    world.save("said in a turn", turn="t9")
    world.memory.edit(cat, text="Juno's cat is fat", actor="persona", turn="t9")
    world.memory.undo_turn("t9")
    world.memory.set_persona("mira", instructions="Be kind.")
    chat = world.say("shall I read to you?").chat
    world.memory.fork(chat, "another evening")
    world.memory.add_document(b"The lighthouse has 96 steps.", persona="mira", name="lore.txt")
    world.project()
    return world


def damage(world: World, statement: str) -> None:
    with psycopg.connect(world.url, autocommit=True) as conn:
        assert conn.execute(statement).rowcount


def at_shard(monkeypatch: pytest.MonkeyPatch, number: int, then: Any) -> None:
    """Before this shard of a rebuild, counted from 0, something happens."""
    pour, shards = Rebuild._pour_one, count()

    def poured(self: Rebuild, *given: Any) -> bool:
        if next(shards) == number:
            then()
        return pour(self, *given)

    monkeypatch.setattr(Rebuild, "_pour_one", poured)


class Killed(BaseException):
    """As a process that is killed: nothing of it goes on."""


def killed() -> None:
    raise Killed


# -- the same rows -------------------------------------------------------------------------------------------------


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(told=stories, batch=st.integers(1, 12))
def test_u3_a_rebuild_has_the_rows_of_the_runner_whatever_happened(world: World, told: Any, batch: int):
    book = Book(world, f"tenant {next(tenants)}")
    for happened, taken in told:
        book.write(happened)
        book.project(*taken)
    book.runner(batch).catch_up()
    with world.memory.engine.store.database.connection() as conn:
        conn.execute("DELETE FROM remembrancer.parked")
    before = live_rows(world.memory)
    answer = world.memory.rebuild()
    assert answer.comparison is not None
    assert (answer.status, answer.comparison.sample) == ("switched", ())
    assert live_rows(world.memory) == before


def test_u3_it_switches_once_says_what_it_compared_and_drops_the_old_tables(lived: World):
    before = live_rows(lived.memory)
    answer = lived.memory.rebuild()
    assert (answer.status, answer.generation, answer.projections) == ("switched", 2, ALL)
    assert answer.comparison is not None
    assert not answer.comparison.differs
    assert answer.comparison.shards_left_out == 0
    counts = {t.table: (t.before, t.after) for t in answer.comparison.tables}
    assert counts == {table: (len(found), len(found)) for table, found in before.items()}
    empty = {table for table, found in before.items() if not found}
    assert empty == {"summary", "summary_rule", "summary_rebuild"}, "the story has something for each other"
    assert live_rows(lived.memory) == before
    assert set(answer.dropped) == {f"{name} 1" for name in ALL}
    assert tables(lived.memory) == {f"{table}_2" for table in OF}
    assert "Juno's cat is called Mochi" in [m.text for m in lived.say().prefix.memories]


def test_u3_what_happens_afterwards_is_projected_into_the_new_generation(lived: World):
    lived.memory.rebuild()
    lived.save("Mochi is three years old")
    lived.talk([6], "Mochi?")
    lived.project()
    assert lived.memory.rebuild().comparison == lived.memory.rebuild().comparison
    assert "Mochi is three years old" in lived.texts()


def test_a_new_generation_has_the_settings_of_the_old_one_and_keeps_no_samples_of_texts(lived: World):
    """D24. Also while its tables stand alone."""
    query = (
        "SELECT c.relname, c.reloptions::text,"
        " array_agg(a.attname ORDER BY a.attnum) FILTER (WHERE a.attstattarget = 0)"
        " FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0"
        " WHERE c.relnamespace = 'remembrancer'::regnamespace AND c.relname ~ '_[0-9]+$' GROUP BY c.oid ORDER BY 1"
    )
    with psycopg.connect(lived.url) as conn:
        old = [(name.replace("_1", ""), *more) for name, *more in conn.execute(query)]
        conn.execute("SELECT remembrancer.new_generation_v1(t, 7::int2) FROM unnest(%s::text[]) t", (list(OF),))
        new = [(name.replace("_7", ""), *more) for name, *more in conn.execute(query) if name.endswith("_7")]
        conn.execute("SELECT remembrancer.attach_generation_v1(t, 7::int2) FROM unnest(%s::text[]) t", (list(OF),))
        indexes = "SELECT count(*), count(DISTINCT indrelid) FROM pg_index WHERE indrelid = %s::regclass"
        for table in OF:
            ours, theirs = (conn.execute(indexes, (f"remembrancer.{table}_{n}",)).fetchone() for n in (1, 7))
            assert ours == theirs
        conn.rollback()
    assert old == new
    assert "{fillfactor=80}" in {name: options for name, options, _ in old}["memory_use"]


def test_d23_no_vector_is_asked_for_again_and_those_that_came_late_are_there(lived: World):
    asked = len(lived.fake.requests)
    lived.memory.rebuild()
    assert len(lived.fake.requests) == asked
    with psycopg.connect(lived.url) as conn:
        for table in ("memory", "archive"):
            assert (
                conn.execute(
                    f"SELECT count(*), count(embedding) FROM remembrancer.{table} WHERE generation = 2"
                ).fetchone()
                == (len(live_rows(lived.memory)[table]),) * 2
            )


# -- under way -----------------------------------------------------------------------------------------------------


def test_a_rebuild_that_was_killed_leaves_the_live_tables_alone_and_goes_on_where_it_was(
    lived: World, monkeypatch: pytest.MonkeyPatch
):
    before = live_rows(lived.memory)
    for number in (1, 2):
        with monkeypatch.context() as patch:
            at_shard(patch, number, killed)
            with pytest.raises(Killed):
                lived.memory.rebuild()
        status = lived.memory.rebuild_status()
        assert (status.state, status.generation) == ("building", 2)
        assert 0 < status.events < status.events_in_all
        assert status.shards < status.shards_in_all
        assert live_rows(lived.memory) == before
        assert "Juno's cat is called Mochi" in [m.text for m in lived.say().prefix.memories]
        lived.project()
        before = live_rows(lived.memory)
    assert read_model(lived.memory) == (
        True,
        "a rebuild of memory, archive, history, conversation, documents is building",
        "",
    )
    assert lived.memory.rebuild().generation == 2
    assert live_rows(lived.memory) == before


def test_it_can_be_killed_between_any_two_of_its_steps(lived: World, monkeypatch: pytest.MonkeyPatch):
    before = live_rows(lived.memory)
    for step in ("_attach", "_attach_one", "_catch_up", "_adopt", "_switch"):
        with monkeypatch.context() as patch:
            patch.setattr(Rebuild, step, lambda *_: killed())
            with pytest.raises(Killed):
                lived.memory.rebuild(["history"])
        assert live_rows(lived.memory) == before
    for step in ("_drop", "_drop_table"):
        with monkeypatch.context() as patch:
            patch.setattr(Retired, step, lambda *_: killed())
            with pytest.raises(Killed):
                lived.memory.rebuild(["history"])
        assert live_rows(lived.memory) == before
    answer = lived.memory.rebuild(["history"])
    assert answer.status == "switched"
    assert live_rows(lived.memory) == before
    assert len(tables(lived.memory)) == len(OF), "what a kill has left is dropped"


def test_cancel_takes_away_what_was_built_and_nothing_else(lived: World, monkeypatch: pytest.MonkeyPatch):
    before = live_rows(lived.memory)
    with monkeypatch.context() as patch:
        at_shard(patch, 2, killed)
        with pytest.raises(Killed):
            lived.memory.rebuild()
    assert len(tables(lived.memory)) == 2 * len(OF)
    answer = lived.memory.rebuild_cancel()
    assert (answer.status, answer.generation) == ("cancelled", 2)
    assert tables(lived.memory) == FIRST
    assert lived.memory.rebuild_status().state == "none"
    assert lived.memory.rebuild_cancel().status == "nothing"
    assert live_rows(lived.memory) == before
    with psycopg.connect(lived.url) as conn:
        for table in ("checkpoint", "generation", "rebuild_table", "parked"):
            found = conn.execute(f"SELECT count(*) FROM remembrancer.{table} WHERE generation = 2").fetchone()
            assert found == (0,), table
    assert lived.memory.rebuild().generation == 3, "a number is never given twice"


def test_whoever_works_at_a_rebuild_that_is_cancelled_stops_and_says_so(lived: World, monkeypatch: pytest.MonkeyPatch):
    at_shard(monkeypatch, 2, lived.open().rebuild_cancel)
    with pytest.raises(Refused, match="cancelled"):
        lived.memory.rebuild()
    assert tables(lived.memory) == FIRST


def test_a_second_rebuild_joins_the_first_or_is_refused(lived: World, monkeypatch: pytest.MonkeyPatch):
    other, answers = lived.open(), []

    def meanwhile() -> None:
        with pytest.raises(Refused, match="memory, archive, history, conversation, documents is under way"):
            other.rebuild(["history"])
        answers.append(other.rebuild())

    at_shard(monkeypatch, 2, meanwhile)
    answers.append(lived.memory.rebuild())
    assert [(a.status, a.generation) for a in answers] == [("switched", 2)] * 2


def test_two_that_begin_at_the_same_moment_work_at_one_rebuild(lived: World):
    before, answers = live_rows(lived.memory), []
    memories = [lived.memory, lived.open(), lived.open()]
    threads = [Thread(target=lambda m: answers.append(m.rebuild()), args=(m,)) for m in memories]
    for one in threads:
        one.start()
    for one in threads:
        one.join(60)
    assert [a.status for a in answers] == ["switched"] * 3
    assert live_rows(lived.memory) == before
    assert len(tables(lived.memory)) == len(OF)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["histroy"], "Did you mean history"),
        (["xyz"], "memory, archive, history, conversation and documents"),
        ([], "all are rebuilt"),
        ("memory", ""),
    ],
)
def test_d31_an_unknown_projection_names_a_near_one(world: World, names: Any, said: str):
    with pytest.raises(InvalidInput) as refused:
        world.memory.rebuild(names)
    assert said in str(refused.value.hint)
    assert tables(world.memory) == FIRST


# -- compared ------------------------------------------------------------------------------------------------------


def test_u3_a_difference_is_shown_and_waits_for_somebody_to_agree(lived: World):
    damage(lived, "UPDATE remembrancer.memory SET text = 'wrong' WHERE text = 'Juno''s cat is called Mochi'")
    damage(lived, "DELETE FROM remembrancer.history WHERE event = 'MemoryRestored'")
    seen: list[Comparison] = []
    asked = lived.memory.rebuild(yes=lambda found: bool(seen.append(found)))
    assert (asked.status, asked.comparison) == ("waiting", seen[0])
    different = {t.table: (t.after - t.before, t.different) for t in seen[0].tables}
    assert different == dict.fromkeys(OF, (0, 0)) | {"memory": (0, 1), "history": (1, 1)}
    memory, story = sorted(seen[0].sample, key=lambda one: one.table, reverse=True)
    assert (memory.before, memory.after) == ({"text": "5 characters"}, {"text": "26 characters"})
    assert story.before is None
    assert "MemoryRestored" in str(story.after)
    assert '"wrong"' in str(live_rows(lived.memory)["memory"]), "the live one stands until somebody agrees"
    assert lived.memory.rebuild().status == "waiting"
    assert lived.memory.rebuild(yes=True).status == "switched"
    assert '"wrong"' not in str(live_rows(lived.memory)["memory"])


def test_a_stream_that_cannot_be_taken_is_parked_and_shown(lived: World, monkeypatch: pytest.MonkeyPatch):
    """As the runner does it: all others go on, and it can be repaired."""
    tell = history_projection.tell

    def poisoned(event: Any) -> Any:
        if isinstance(event, MemorySaved) and event.subject == USER:
            raise ValueError("no words for it")
        return tell(event)

    before = live_rows(lived.memory)
    with monkeypatch.context() as patch:
        patch.setattr(history_projection, "tell", poisoned)
        found = lived.memory.rebuild().comparison
        assert found is not None
        assert found.differs
        assert [(p.projection, p.error, p.also_live) for p in found.parked] == [
            ("history", "ValueError: no words for it", False)
        ]
        assert lived.memory.rebuild(yes=True).status == "switched"
    assert lived.memory.engine.doctor.repair().ok
    assert live_rows(lived.memory) == before


# -- versions ------------------------------------------------------------------------------------------------------


def read_model(memory: Remembrancer) -> tuple[bool, str, str]:
    (check,) = [check for check in memory.doctor().checks if check.name == "read model"]
    return check.ok, check.detail, check.hint or ""


def test_u3_doctor_names_the_projection_that_newer_code_would_build_otherwise(
    lived: World, monkeypatch: pytest.MonkeyPatch
):
    assert read_model(lived.memory) == (True, "built by the present code", "")
    now = HistoryProjection.version
    monkeypatch.setattr(HistoryProjection, "version", now + 1)
    ok, detail, hint = read_model(lived.memory)
    assert (ok, detail) == (False, f"history was built by version {now}, this is version {now + 1}")
    assert "`remembrancer rebuild history`" in hint
    assert lived.memory.rebuild(["history"]).dropped == ("history 1",)
    assert read_model(lived.memory)[0]
    monkeypatch.setattr(HistoryProjection, "version", now)
    ok, detail, hint = read_model(lived.memory)
    assert not ok
    assert "Update this installation" in hint


def test_a_rebuild_of_older_code_begins_anew_and_one_of_newer_code_is_left_alone(
    lived: World, monkeypatch: pytest.MonkeyPatch
):
    now = HistoryProjection.version
    monkeypatch.setattr(HistoryProjection, "version", now + 1)
    with monkeypatch.context() as patch:
        at_shard(patch, 2, killed)
        with pytest.raises(Killed):
            lived.memory.rebuild()
    with monkeypatch.context() as patch:
        patch.setattr(HistoryProjection, "version", now)
        with pytest.raises(Refused, match="newer version"):
            lived.memory.rebuild()
    monkeypatch.setattr(HistoryProjection, "version", now + 2)
    assert lived.memory.rebuild().generation == 3
    with lived.memory.engine.store.database.connection() as conn:
        assert set(live(conn).values()) == {1, 3}  # what is noted as work is no read model


def test_no_number_of_the_policy_asks_for_a_rebuild(lived: World):
    """U3: what follows from the counters shows at once."""
    lived.talk([7, 8])
    before = lived.memory.rebuild().comparison
    lived.reopen(rest_after_days=1, match_limit=5, list_capacity=10, desk_limit=3)
    assert read_model(lived.memory)[0]
    assert "resting" in {m.state for m in lived.listed().memories}
    again = lived.memory.rebuild().comparison
    assert before is not None
    assert again is not None
    assert not again.differs


# -- while others go on --------------------------------------------------------------------------------------------


def test_a_reader_that_began_before_the_switch_keeps_the_old_tables(lived: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(rebuild, "READERS_SECONDS", 0.3)
    reading = psycopg.connect(lived.url)
    reading.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    with reading as conn:
        conn.execute("SELECT count(*) FROM remembrancer.generation")
        answer = lived.memory.rebuild()
        assert (answer.dropped, set(answer.kept)) == ((), {f"{name} 1" for name in ALL})
        one = "SELECT count(*) FROM remembrancer.{} WHERE generation = 1"
        assert all(conn.execute(one.format(table)).fetchone() != (0,) for table in ("memory", "history"))
    assert set(lived.memory.rebuild_drop_old().dropped) == {f"{name} 1" for name in ALL}
    assert lived.memory.rebuild_drop_old().status == "nothing"


def test_the_old_tables_can_be_kept_until_later(lived: World):
    answer = lived.memory.rebuild(["archive"], keep_old=True)
    assert (answer.dropped, answer.kept) == ((), ())
    assert tables(lived.memory) == FIRST | {"archive_2"}
    lived.memory.rebuild(["archive"])
    assert tables(lived.memory) == (FIRST - {"archive_1"}) | {"archive_3"}


def test_a_projector_that_still_has_the_old_generation_in_hand_is_fenced(lived: World, monkeypatch: pytest.MonkeyPatch):
    """DESIGN 4: a rolling process has read which generation is live, and writes after the switch."""
    runner = lived.memory.engine.runner
    advance, other = runner._advance, lived.open()

    def late(*given: Any) -> None:
        if not switched:
            switched.append(other.rebuild())
        advance(*given)

    switched: list[RebuildAnswer] = []
    lived.save("Mochi is three years old")
    monkeypatch.setattr(runner, "_advance", late)
    assert runner.run_batch(runner.projections[0]) == 0
    lived.project()
    assert lived.memory.rebuild().status == "switched"
    assert "Mochi is three years old" in lived.texts()


def test_a_wait_is_not_ended_by_what_a_new_generation_has_read(lived: World, monkeypatch: pytest.MonkeyPatch):
    saved = lived.saving("Mochi is three years old")
    monkeypatch.setattr(Rebuild, "_come_level", lambda *_: killed())
    with pytest.raises(Killed):
        lived.memory.rebuild()
    assert not lived.memory.wait(saved.positions, timeout=0.05, mode="stale")


# -- erased meanwhile ----------------------------------------------------------------------------------------------

MARK = "zyxomma"


def said_anywhere(url: str, word: str) -> list[str]:
    """Tables that hold the word, also those that stand alone."""
    with psycopg.connect(url) as conn:
        names = "SELECT relname FROM pg_class WHERE relnamespace = 'remembrancer'::regnamespace AND relkind = 'r'"
        return [
            name
            for (name,) in conn.execute(names).fetchall()
            if conn.execute(
                f"SELECT 1 FROM remembrancer.{name} t WHERE t::text LIKE %s LIMIT 1", (f"%{word}%",)
            ).fetchone()
        ]


@pytest.mark.parametrize("step", ["poured", "_attach", "_catch_up", "_adopt", "_switch", "_drop"])
def test_d24_an_erasure_during_a_rebuild_leaves_no_text_in_the_new_generation(
    lived: World, step: str, monkeypatch: pytest.MonkeyPatch
):
    """In the middle; when all is poured and stands alone; when it is attached; when the old tables are there."""
    secret = lived.save(f"{MARK} is what Juno fears", scope="personal")
    lived.memory.edit(secret, text=f"{MARK} is what Juno fears most")
    lived.memory.save(None, scope="global", subject=USER, text=f"{MARK} of everyone")
    lived.project()
    assert {"memory_1", "archive_1", "history_1"} <= set(said_anywhere(lived.url, MARK))
    other, erased = lived.open(), []
    if step == "poured":
        at_shard(monkeypatch, 3, lambda: erased.append(other.erase(USER)))
    else:
        owner: Any = Retired if step == "_drop" else Rebuild
        inner = getattr(owner, step)

        def first(self: Any, *given: Any) -> Any:
            if not erased:
                erased.append(other.erase(USER))
            return inner(self, *given)

        monkeypatch.setattr(owner, step, first)

    answer = lived.memory.rebuild(yes=True)

    assert answer.status == "switched"
    assert erased
    assert erased[0].memories == 3
    assert said_anywhere(lived.url, MARK) == []
    lived.project()
    monkeypatch.undo()
    again = lived.memory.rebuild().comparison
    assert again is not None
    assert again.sample == ()
    told = lived.memory.history(memory=secret).entries
    assert told[0].after == ERASED


def test_d24_what_a_rebuild_folds_of_an_erased_person_is_what_the_runner_has(lived: World):
    lived.save(f"{MARK} is what Juno fears", scope="personal")
    lived.project()
    lived.memory.erase(USER)
    lived.save("Juno is back", scope="personal")
    lived.project()
    before = live_rows(lived.memory)
    lived.memory.rebuild()
    assert live_rows(lived.memory) == before
    assert lived.texts("personal") == {"Juno is back"}


def test_the_archive_is_searched_by_its_index_after_a_rebuild(lived: World):
    """DESIGN 4"""
    lived.memory.engine.vectors.index_archive()
    found = [hit.text for hit in lived.memory.find("Mochi")]
    lived.memory.rebuild()
    assert [hit.text for hit in lived.memory.find("Mochi")] == found
    with psycopg.connect(lived.url) as conn:
        conn.execute("SET enable_seqscan = off")
        indexes = conn.execute("SELECT indexdef FROM pg_indexes WHERE tablename = 'archive_2'").fetchall()
    assert sum("hnsw" in row[0] for row in indexes) == 1


def test_c23_what_differs_is_shown_without_what_people_have_said(lived: World):
    damage(lived, "UPDATE remembrancer.memory SET text = 'damaged plan' WHERE text LIKE '%Mochi%'")
    found = lived.memory.rebuild().comparison
    assert found is not None
    assert [(d.before, d.after) for d in found.sample if d.table == "memory"] == [
        ({"text": "12 characters"}, {"text": "26 characters"})
    ]
    lived.memory.rebuild_cancel()


def test_a_rebuild_at_which_nobody_works_is_told_by_doctor(lived: World):
    damage(lived, "UPDATE remembrancer.memory SET text = 'damaged' WHERE text LIKE '%Mochi%'")
    assert lived.memory.rebuild().status == "waiting"
    assert read_model(lived.memory)[0]
    damage(lived, "UPDATE remembrancer.rebuild SET changed_at = changed_at - interval '5 minutes'")
    ok, detail, hint = read_model(lived.memory)
    assert not ok
    assert "waits since 30" in detail
    assert "--cancel" in hint


def test_shards_that_could_not_be_compared_are_not_known_to_be_the_same():
    assert Comparison(shards=3).differs is False
    assert Comparison(shards=3, shards_left_out=1).differs is True
