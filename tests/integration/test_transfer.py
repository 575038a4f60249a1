"""Out as lines and in again: exact, repeatable, never at the cost of what is there (D8, D12, D22, T13; case C26)."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from remembrancer.domain import events as e
from remembrancer.domain.errors import InvalidInput, ListFull, NotFound, Unavailable
from remembrancer.domain.identity import ListKey, Subject, list_stream
from remembrancer.domain.text import folded
from remembrancer.services.answers import ImportAnswer
from remembrancer.services.remembrancer import Remembrancer
from tests.conftest import _database
from tests.support.fake_openai import status
from tests.support.read_model import assert_read_model_is_a_fresh_fold, caught_up, count_of_everything
from tests.support.world import PERSONA, SERVER, USER, World, desk

CAT = "Juno's cat is named Mochi"
TEA = "The tea house closes on Mondays"
HEADER = {"format": "remembrancer", "version": 1, "tenant": "elsewhere", "exported_at": "2026-05-01T10:00:00Z"}

Row = dict[str, Any]


@pytest.fixture
def elsewhere(world: World, postgres: Any, migrated_template: str) -> Iterator[World]:
    """Another, empty installation, at the same moment as `world`."""
    with _database(postgres, migrated_template) as url, World(url) as other:
        yield other


def memory_row(text: str = CAT, **fields: Any) -> Row:
    return {"kind": "memory", "persona": PERSONA, "scope": "server", "subject": SERVER, "text": text} | fields


def rows_of(memory: Remembrancer, persona: str | None = None) -> list[Row]:
    """An export as a file holds it."""
    return [json.loads(json.dumps(row)) for row in memory.export(persona=persona)]


def but(rows: Sequence[Row], *names: str) -> list[Row]:
    """The rows after the header, without these fields."""
    return [{k: v for k, v in row.items() if k not in names} for row in rows[1:]]


def memories(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row.get("kind") == "memory"]


def bring(memory: Remembrancer, *rows: Row, **header: Any) -> ImportAnswer:
    return memory.import_rows([HEADER | header, *rows])


def view_of(world: World, text: str, **where: Any) -> Any:
    (one,) = [m for m in world.listed(**where).memories if m.text == text]
    return one


# -- a round trip is exact ---------------------------------------------------------------------------------------------

keys = st.sampled_from(["juno", "aiko", "tea house", "ein Name", "名前", "*nearly*"])
moments = st.integers(0, 10**14).map(lambda n: datetime(2023, 1, 1, tzinfo=UTC) + timedelta(microseconds=n))
names = st.lists(st.sampled_from(["garden", "harbour", "#ships", "夜"]), unique=True, max_size=3).map(sorted)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=60).filter(
    lambda text: text.strip() and text != "[erased]"
)
memory_rows = st.fixed_dictionaries(
    {
        "kind": st.just("memory"),
        "persona": st.sampled_from(["mira", "kai"]),
        "scope": st.sampled_from(["server", "personal", "global"]),
        "subject": keys,
        "text": texts,
        "until": st.none() | st.dates(date(2026, 1, 1), date(2026, 12, 31)).map(str),
        "unused_days": st.integers(0, 40),
        "pinned": st.booleans(),
        "protected": st.booleans(),
        "actor": st.sampled_from(["persona", "person", "deep", "import"]),
        "created_at": moments.map(lambda m: m.isoformat()),
        "updated_at": moments.map(lambda m: m.isoformat()),
        "last_matched_at": st.none() | moments.map(lambda m: m.isoformat()),
        "tags": names,
        "channels": names,
        "source": st.fixed_dictionaries(
            {"chat": st.none() | keys, "messages": st.lists(keys, max_size=2), "turn": st.none() | keys}
        ),
    }
)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(given_rows=st.lists(memory_rows, max_size=25))
def test_whatever_is_imported_exports_as_the_same_lines_and_so_does_the_export_of_that(
    world: World, given_rows: list[Row]
):
    here, there = world.open(tenant=str(uuid4())), world.open(tenant=str(uuid4()))
    answer = bring(here, *given_rows)
    first = rows_of(here)
    assert answer.imported + answer.duplicates == len(given_rows)
    assert [_as_given(row) for row in memories(first)] == _each_once(given_rows)
    assert there.import_rows(first).imported == answer.imported
    assert but(rows_of(there), "id") == but(first, "id")
    here.close()
    there.close()


def _each_once(rows: Sequence[Row]) -> list[Row]:
    """What an import has to make of rows: the first of each text of a list, in the order of an export."""
    once: dict[tuple[str, ...], Row] = {}
    for row in rows:
        persona = "*" if row["scope"] == "global" else row["persona"]
        once.setdefault((persona, row["scope"], row["subject"], folded(row["text"])), row | {"persona": persona})
    order = ("server", "personal", "global")
    return sorted(
        (row | {stamp: _moment(row[stamp]) for stamp in _STAMPS} for row in once.values()),
        key=lambda r: (
            order.index(r["scope"]),
            r["persona"],
            r["subject"],
            r["created_at"],
            r["updated_at"],
            r["text"],
        ),
    )


_STAMPS = ("created_at", "updated_at", "last_matched_at")


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _as_given(row: Row) -> Row:
    return {k: v for k, v in row.items() if k not in ("id", "state")} | {s: _moment(row[s]) for s in _STAMPS}


def test_a_life_moves_to_another_installation_and_goes_on_there_as_it_would_have_here(world: World, elsewhere: World):
    live_for_a_week(world)
    rows = rows_of(world.memory)
    elsewhere.now = world.now
    answer = elsewhere.memory.import_rows(rows)
    assert (answer.imported, answer.duplicates, answer.skipped) == (len(memories(rows)), 0, [])
    assert rows_of(elsewhere.memory) == rows  # the ids too: the tenant has the same name, so the shards are the same
    assert _listed(elsewhere) == _listed(world)
    for number in (8, 9, 10):
        for one in (world, elsewhere):
            one.day(number)
            one.say("is the tea house open on Mondays?" if number == 9 else "chess tonight?")
        assert _listed(elsewhere) == _listed(world)
    for one in (world, elsewhere):
        caught_up(one.memory)
        assert_read_model_is_a_fresh_fold(one.memory)


def live_for_a_week(world: World) -> None:
    """Every kind of memory that there is: used, resting, pinned, tagged, expired, edited, of the persona, of people."""
    world.save(CAT, source_chat="harbour chat", source_messages=["1", "2"], turn="t0")
    world.save(TEA)
    world.save("Nobody ever asks about the old lighthouse")
    world.save("Juno paints", scope="personal", actor="person")
    world.save("Juno is on holiday", until="2026-05-06")
    world.save("A secret of the garden", tags=["garden"], channels=["backyard", "alley"])
    pinned = world.save("Juno saved Mira from the river", actor="person")
    world.memory.pin(pinned)
    world.save("Juno is 30 years old", scope="global", actor="person")
    for number in range(1, 8):
        world.day(number)
        world.say("how is Mochi the cat of Juno?" if number == 3 else "chess tonight?")
    edited = world.save("Aiko likes plums", subject="market")
    world.memory.edit(edited, text="Aiko likes pears", actor="persona")


def _listed(world: World) -> Any:
    world.project()
    return world.memory.list().model_dump(mode="json")


def test_counters_go_on_from_the_imported_number_and_the_day_of_the_import_is_used_up(world: World):
    bring(world.memory, memory_row(unused_days=5))
    cat = view_of(world, CAT)
    assert cat.unused_days == 5
    world.say()
    assert world.unused(cat.id) == [5]  # D1: an import is a save, and uses up its day
    world.day(1)
    world.say()
    assert world.unused(cat.id) == [6]
    world.day(2)
    world.say()
    assert (world.unused(cat.id), world.states(cat.id)) == ([7], ["resting"])
    world.day(3)
    world.say("Juno's cat is named Mochi, right?")
    assert world.unused(cat.id) == [0]


def test_a_pinned_memory_comes_back_pinned_with_its_frozen_counter(world: World):
    bring(world.memory, memory_row(unused_days=9, pinned=True))
    cat = view_of(world, CAT)
    world.talk([1, 2, 3])
    assert (world.get(cat.id).pinned, world.unused(cat.id), world.states(cat.id)) == (True, [9], ["active"])
    world.memory.unpin(cat.id)
    assert world.unused(cat.id) == [0]  # D3


def test_d21_who_saved_it_first_and_where_survives_and_history_says_that_an_import_brought_it(world: World):
    row = memory_row(actor="persona", source={"chat": "harbour chat", "messages": ["7"], "turn": "t1"})
    bring(world.memory, row)
    cat = view_of(world, CAT)
    assert cat.actor == "persona"
    assert memories(rows_of(world.memory))[0]["source"] == row["source"]
    world.project()
    (line,) = world.memory.history(memory=cat.id).entries
    assert (line.actor, line.turn, line.after) == ("import", None, CAT)


def test_what_is_gone_is_not_exported(world: World):
    world.memory.delete(world.save(CAT))
    world.save(TEA)
    assert [row["text"] for row in memories(rows_of(world.memory))] == [TEA]


def test_what_was_erased_is_not_exported(world: World):
    world.save(CAT)
    world.save(TEA, subject="market")
    world.memory.engine.store.keys.destroy("default", Subject("server", SERVER), now=world.now)
    assert [row["text"] for row in memories(rows_of(world.reopen()))] == [TEA]


def test_an_export_is_complete_while_the_projector_is_stopped(world: World):
    world.save(CAT)
    world.project()
    world.save(TEA, subject="market")
    world.save("Juno is 30", scope="global", actor="person")
    assert {row["text"] for row in memories(rows_of(world.memory))} == {CAT, TEA, "Juno is 30"}


def test_an_export_of_a_persona_has_its_lists_and_the_global_ones_of_its_people_and_nobody_elses(world: World):
    world.save(CAT)
    world.save("Juno paints", scope="personal")
    world.save("Juno is 30", scope="global", actor="person")
    world.save("Aiko is 31", scope="global", subject="aiko", actor="person")
    world.save("Kai's own", persona="kai")
    world.memory.set_person(USER, privacy="private_chats_only")
    world.memory.set_person("aiko", privacy="nowhere")
    rows = rows_of(world.memory, PERSONA)
    assert {row["text"] for row in memories(rows)} == {CAT, "Juno paints", "Juno is 30"}
    assert [row["user"] for row in rows if row.get("kind") == "person"] == [USER]
    assert rows[0]["persona"] == PERSONA
    with pytest.raises(NotFound, match="mirra"):
        world.memory.export(persona="mirra")


# -- again, and by others ----------------------------------------------------------------------------------------------


def test_d12_the_same_file_again_writes_nothing_and_disturbs_no_counter(world: World, elsewhere: World):
    live_for_a_week(world)
    rows = rows_of(world.memory)
    elsewhere.now = world.now
    elsewhere.memory.import_rows(rows)
    elsewhere.day(9)
    elsewhere.say()
    before, counted = rows_of(elsewhere.memory), count_of_everything(elsewhere.memory)
    answer = elsewhere.memory.import_rows(rows)
    assert (answer.imported, answer.duplicates, answer.skipped) == (0, len(memories(rows)), [])
    assert rows_of(elsewhere.memory) == before
    assert count_of_everything(elsewhere.memory) == counted


def test_d12_what_is_there_stands_and_texts_are_compared_folded(world: World):
    world.save(CAT, actor="person")
    world.talk([1, 2])
    before = memories(rows_of(world.memory))
    answer = bring(
        world.memory, memory_row("  JUNO'S cat is\tnamed Mochi ", pinned=True), memory_row(TEA), memory_row(TEA)
    )
    assert (answer.imported, answer.duplicates) == (1, 2)
    after = memories(rows_of(world.memory))
    assert before[0] in after
    assert {row["text"] for row in after} == {CAT, TEA}


def test_d12_two_imports_of_one_file_at_the_same_time_make_each_memory_once(world: World):
    rows = [memory_row(f"Fact number {n} of the harbour", subject=f"s{n % 3}") for n in range(120)]
    doors = [world.memory, world.open(), world.open(), world.open()]
    answers: list[ImportAnswer] = []
    threads = [threading.Thread(target=lambda m=m: answers.append(bring(m, *rows))) for m in doors]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(a.imported for a in answers) == 120
    assert sum(a.duplicates for a in answers) == 360
    assert len(memories(rows_of(world.memory))) == 120


def test_an_import_that_was_cut_off_is_run_again(world: World, monkeypatch: pytest.MonkeyPatch):
    rows = [memory_row(f"Fact number {n} of the harbour", subject=f"s{n % 7}") for n in range(600)]
    append, calls = world.memory.engine.store.append, iter(range(100))

    def failing(*args: Any, **how: Any) -> Any:
        if next(calls) == 10:
            raise Unavailable("The database cannot be reached.")
        return append(*args, **how)

    monkeypatch.setattr(world.memory.engine.store, "append", failing)
    with pytest.raises(Unavailable):
        bring(world.memory, *rows)
    monkeypatch.undo()
    there = len(memories(rows_of(world.memory)))
    assert 0 < there < 600
    answer = bring(world.memory, *rows)
    assert (answer.imported, answer.duplicates) == (600 - there, there)
    assert len(memories(rows_of(world.memory))) == 600


def test_d13_an_import_may_bring_what_a_person_deleted(world: World):
    world.memory.delete(world.save(CAT))
    assert bring(world.memory, memory_row()).imported == 1
    assert world.texts() == {CAT}


def test_an_id_is_kept_where_it_can_be_and_never_one_that_was_in_use(world: World, elsewhere: World):
    cat = world.save(CAT)
    rows = rows_of(world.memory)
    elsewhere.memory.import_rows(rows)
    assert elsewhere.get(cat).text == CAT

    elsewhere.memory.clear(PERSONA, scope="server", subject=SERVER)
    elsewhere.memory.import_rows(rows)  # its id has a history that ended with the clearing
    assert view_of(elsewhere, CAT).id != cat
    elsewhere.project()
    with pytest.raises(NotFound):
        elsewhere.get(cat)

    other = elsewhere.open(tenant="another")
    other.import_rows(rows)
    (theirs,) = other.list(PERSONA, scope="server", subject=SERVER).lists[0].memories
    assert theirs.id != cat
    assert theirs.id.bytes[0] == list_stream("another", ListKey(PERSONA, "server", SERVER)).bytes[0]


def test_an_id_of_another_tenant_is_not_taken_over_even_where_the_shard_is_the_same(world: World):
    cat = world.save(CAT)
    shard = cat.bytes[0]
    tenant = next(
        name
        for name in map(str, range(100_000))
        if list_stream(name, ListKey(PERSONA, "server", SERVER)).bytes[0] == shard
    )
    other = world.open(tenant=tenant)
    assert bring(other, memory_row("Another text", id=str(cat))).imported == 1
    assert world.get(cat).text == CAT
    with pytest.raises(NotFound):
        other.get(cat)


def test_two_rows_with_one_id_get_two_ids(world: World):
    mine = str(_id_in(world, ListKey(PERSONA, "server", SERVER)))
    bring(world.memory, memory_row(id=mine), memory_row(TEA, id=mine))
    ids = {str(m.id) for m in world.listed().memories}
    assert mine in ids
    assert len(ids) == 2


def _id_in(world: World, key: ListKey) -> UUID:
    from remembrancer.services.clock import make_id

    return make_id(list_stream("default", key).bytes[0])


# -- what no import does -----------------------------------------------------------------------------------------------


def test_d8_no_cap_binds_an_import_and_nothing_is_forgotten_for_it(world: World):
    world.memory.set_policy(list_capacity=5, pin_capacity=2)
    resting = [memory_row(f"Old fact {n} of the harbour", unused_days=30) for n in range(8)]
    pinned = [memory_row(f"Pinned moment {n} at sea", pinned=True) for n in range(4)]
    assert bring(world.memory, *resting).imported == 8
    assert bring(world.memory, *pinned, memory_row(CAT)).imported == 5
    shown = world.listed()
    assert (shown.count, shown.pinned, len(shown.memories)) == (9, 4, 13)
    assert not world.events(e.MemoryEvicted)


def test_t13_imported_memories_are_not_protected_unless_they_were(world: World):
    bring(world.memory, memory_row(CAT, actor="person"), memory_row(TEA, actor="person", protected=True))
    assert (view_of(world, CAT).protected, view_of(world, TEA).protected) == (False, True)
    world.memory.edit(view_of(world, CAT).id)
    assert view_of(world, CAT).protected


def test_c26_an_import_of_500_memories_while_the_embedder_is_down(world: World):
    world.fake.otherwise = status(500)
    world.memory.set_policy(list_capacity=100)
    rows = [memory_row(f"Fact number {n} about harbour {n}") for n in range(500)]
    answer = bring(world.memory, *rows)
    assert (answer.imported, answer.without_vector, answer.skipped) == (500, 500, [])
    assert len(world.fake.requests) <= 3  # a model that does not answer is left alone
    world.find_the_model()
    world.project()
    for number in (1, 2, 3):
        world.day(number)
        assert world.say().search.status == "ok"
    shown = world.listed()
    assert {m.text for m in shown.memories} == {row["text"] for row in rows}
    assert {(m.state, m.unused_days) for m in shown.memories} == {("active", 0)}
    world.say(turn="t")
    with pytest.raises(ListFull):
        world.save(CAT, turn="t")
    assert not world.events(e.MemoryEvicted)

    while world.memory.embed_pending():
        pass
    world.day(4)
    found = world.say("what about fact number 77 about harbour 77?").search
    assert found.candidates[0].text == "Fact number 77 about harbour 77"
    assert {m.unused_days for m in world.listed().memories} == {0, 1}


def test_d22_a_model_that_answers_is_asked_once_a_text_in_batches(world: World):
    rows = [memory_row(f"Fact number {n} about harbour {n}") for n in range(150)]
    assert bring(world.memory, *rows).without_vector == 0
    assert [len(request.texts) for request in world.fake.requests] == [64, 64, 22]
    bring(world.memory, *rows)
    world.memory.clear(PERSONA, scope="server", subject=SERVER)
    assert bring(world.memory, *rows).imported == 150
    assert len(world.fake.requests) == 3


# -- bad files and bad rows --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [memory_row()],
        [{"format": "other"}, memory_row()],
        [HEADER | {"version": 2}, memory_row()],
        [HEADER | {"version": "1"}, memory_row()],
        [{"format": "remembrancer", "version": 1}, memory_row()],
        ["not json", memory_row()],
        [None],
        "[]",
        HEADER,
    ],
)
def test_a_file_that_is_no_export_is_refused_as_a_whole_and_nothing_is_written(world: World, rows: Any):
    before = count_of_everything(world.memory)
    with pytest.raises(InvalidInput) as refused:
        world.memory.import_rows(rows)
    assert refused.value.exit_code == 2
    assert count_of_everything(world.memory) == before


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (memory_row(""), "empty"),
        (memory_row("  \t "), "empty"),
        (memory_row("a\x00b"), "NUL"),
        (memory_row("a\ud800b"), "text"),
        (memory_row("x" * 501), "501 characters; at most 500"),
        (memory_row(text=5), "text"),
        (memory_row(scope="village"), "scope"),
        (memory_row(persona="*"), "every persona"),
        (memory_row(persona=" "), "empty"),
        (memory_row(subject=""), "empty"),
        (memory_row(unused_days=-1), "unused_days"),
        (memory_row(unused_days="3"), "unused_days"),
        (memory_row(pinned="yes"), "pinned"),
        (memory_row(tags="garden"), "tags"),
        (memory_row(tags=[""]), "empty"),
        (memory_row(created_at="2026-05-01T10:00:00"), "created_at"),
        (memory_row(until="soon"), "until"),
        (memory_row(actor="nobody"), "actor"),
        (memory_row(pined=True), "pined"),
        ({"kind": "chat"}, "chat"),
        ({"text": CAT}, "kind"),
        ("no object", "not a JSON object"),
        (None, "not a JSON object"),
    ],
)
def test_a_row_that_cannot_be_is_skipped_and_named_and_the_others_come_in(world: World, row: Any, why: str):
    answer = world.memory.import_rows([HEADER, memory_row(CAT), row, memory_row(TEA)])
    assert (answer.imported, answer.duplicates) == (2, 0)
    (skipped,) = answer.skipped
    assert skipped.row == 3
    assert why in skipped.why
    assert answer.model_dump_json()
    assert world.texts() == {CAT, TEA}


def test_a_memory_left_out_is_named_by_its_beginning(world: World):
    (skipped,) = bring(world.memory, memory_row("Once upon a time " * 50)).skipped
    assert skipped.why.startswith("\u201cOnce upon a time")
    assert "(D10)" in skipped.why


def test_d8_a_text_that_its_old_home_allowed_is_not_lost_in_a_move(world: World, elsewhere: World):
    world.memory.set_policy(max_characters=800)
    world.save("x" * 700)
    world.memory.set_policy(max_characters=None)
    world.project()
    rows = rows_of(world.memory)
    assert elsewhere.memory.import_rows(rows).imported == 1
    assert but(rows_of(elsewhere.memory)) == but(rows)


def test_progress_says_how_far_it_is(world: World):
    told: list[tuple[int, int | None]] = []
    rows = [HEADER, *(memory_row(f"Fact number {n}") for n in range(600))]
    world.memory.import_rows(rows, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (601, 601)
    assert len(told) >= 3
    assert told == sorted(told)
    told.clear()
    world.memory.import_rows(iter(rows), progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (601, None)


# -- settings ----------------------------------------------------------------------------------------------------------


def set_everything(memory: Remembrancer) -> None:
    memory.set_policy(rest_after_days=3, match_limit=2)
    memory.set_persona(PERSONA, name="Mira", instructions="Always answer Juno in Spanish", learns=False)
    memory.set_person(USER, privacy="private_chats_only", not_learning=["kai"])
    memory.set_server(SERVER, notices="managers", blocklist=["aiko"], personal_memories=False, private=True)


def test_what_was_set_moves_along(world: World, elsewhere: World):
    set_everything(world.memory)
    rows = rows_of(world.memory)
    answer = elsewhere.memory.import_rows(rows)
    assert (answer.settings, answer.skipped) == (4, [])
    assert but(rows_of(elsewhere.memory)) == but(rows)
    assert elsewhere.memory.policy() == world.memory.policy()
    assert elsewhere.memory.persona(PERSONA) == world.memory.persona(PERSONA)
    assert elsewhere.memory.person(USER) == world.memory.person(USER)
    assert elsewhere.memory.server(SERVER) == world.memory.server(SERVER)
    before = count_of_everything(elsewhere.memory)
    assert elsewhere.memory.import_rows(rows).settings == 0
    assert count_of_everything(elsewhere.memory) == before


def test_an_import_never_overrules_what_somebody_has_set_here(world: World, elsewhere: World):
    set_everything(world.memory)
    elsewhere.memory.set_policy(rest_after_days=5)
    elsewhere.memory.set_persona(PERSONA, instructions="Be kind")
    elsewhere.memory.set_person(USER, privacy="nowhere")
    elsewhere.memory.set_server(SERVER, notices="hidden")
    before = rows_of(elsewhere.memory)
    answer = elsewhere.memory.import_rows(rows_of(world.memory))
    assert answer.settings == 0
    assert [s.row for s in answer.skipped] == [2, 3, 4, 5]
    assert all("stay" in s.why for s in answer.skipped)
    assert rows_of(elsewhere.memory) == before


def test_settings_that_cannot_be_are_skipped_and_named(world: World):
    bad: list[Mapping[str, Any]] = [
        {"kind": "policy", "own": {"rest_after_weeks": 1}},
        {"kind": "policy", "own": {"rest_after_days": 0}},
        {"kind": "person", "user": "*"},
        {"kind": "person", "user": "juno", "privacy": "sometimes"},
        {"kind": "server", "server": SERVER, "blocklist": "aiko"},
        {"kind": "persona", "persona": PERSONA, "name": "Mira", "learns": "no"},
    ]
    answer = world.memory.import_rows([HEADER, *bad])
    assert [s.row for s in answer.skipped] == [2, 3, 4, 5, 6, 7]
    assert answer.settings == 0


# -- TomoriBot ---------------------------------------------------------------------------------------------------------


def tomori(kind: str, *buckets: Row, **fields: Any) -> Row:
    return {
        "version": 2, "type": kind, "exported_at": "2026-04-30T08:00:00.000Z", "data": {"buckets": list(buckets)},
    } | fields  # fmt: skip


def bucket(name: str, label: str, *texts: str | Row) -> Row:
    return {
        "name": name,
        "label": label,
        "memories": [{"content": t, "tags": []} if isinstance(t, str) else t for t in texts],
    }


def test_a_workspace_file_becomes_the_server_memories_of_the_persona_that_is_named(world: World):
    file = tomori("workspace_memories", bucket("main", "Tomori", CAT, {"content": TEA, "tags": ["garden"]}))
    answer = world.memory.import_tomori(file, persona=PERSONA, subject=SERVER)
    assert (answer.imported, answer.skipped) == (2, [])
    cat, tea = view_of(world, CAT), view_of(world, TEA)
    assert (cat.scope, cat.subject, cat.protected, cat.pinned, cat.actor) == ("server", SERVER, False, False, "import")
    assert (cat.tags, tea.tags) == ((), ("garden",))
    assert desk(world.say()) == [CAT]  # T10: the other one only in replies with its tag
    assert set(desk(world.say(tags=["garden"]))) == {CAT, TEA}


def test_a_tomori_file_again_imports_nothing(world: World):
    file = tomori("workspace_memories", bucket("main", "Tomori", CAT, TEA))
    world.memory.import_tomori(file, persona=PERSONA, subject=SERVER)
    before = rows_of(world.memory)
    world.day(1)
    answer = world.memory.import_tomori(file, persona=PERSONA, subject=SERVER)
    assert (answer.imported, answer.duplicates) == (0, 2)
    assert but(rows_of(world.memory)) == but(before)


@pytest.mark.parametrize("version", [2, "2", "2.0"])
def test_without_a_persona_each_bucket_is_the_persona_of_its_label_or_name(world: World, version: Any):
    file = tomori(
        "workspace_memories",
        bucket("persona-1", "Sparrow", CAT),
        bucket("persona-2", "Kai", CAT, TEA),
        bucket("mira", "Mira the Great", TEA),
        version=version,
    )
    assert world.memory.import_tomori(file, subject=SERVER).imported == 4
    assert world.texts(persona="Sparrow") == {CAT}
    assert world.texts(persona="Kai") == {CAT, TEA}
    assert world.texts(persona="mira") == {TEA}


def test_a_personal_file_becomes_the_memories_of_a_user_and_global_ones_stay_global(world: World):
    file = tomori(
        "personal_memories", bucket("global", "Global", "Juno is 30"), bucket("persona-1", PERSONA, "Juno paints")
    )
    assert world.memory.import_tomori(file, subject=USER).imported == 2
    assert world.texts("personal") == {"Juno paints"}
    assert world.texts("global") == {"Juno is 30"}
    assert world.memory.import_tomori(file, persona="kai", subject=USER).imported == 2
    assert world.texts("personal", persona="kai") == {"Juno is 30", "Juno paints"}


def test_the_order_and_the_age_of_a_tomori_file_are_kept(world: World):
    file = tomori("workspace_memories", bucket("main", "M", "newest", "middle", "oldest"))
    world.memory.import_tomori(file, persona=PERSONA, subject=SERVER)
    assert [m.text for m in world.listed().memories] == ["newest", "middle", "oldest"]
    assert desk(world.say()) == ["oldest", "middle", "newest"]
    assert {m.created_at.date() for m in world.listed().memories} == {date(2026, 4, 30)}
    late = tomori("workspace_memories", bucket("main", "M", "later"), exported_at="2031-01-01T00:00:00Z")
    world.memory.import_tomori(late, persona=PERSONA, subject=SERVER)
    assert world.now - timedelta(seconds=1) < view_of(world, "later").created_at <= world.now


def test_d10_a_tomori_memory_that_is_too_long_is_skipped_and_named_and_the_others_come_in(world: World):
    file = tomori("workspace_memories", bucket("main", "Tomori", CAT, "Long ago " * 60, "", TEA))
    answer = world.memory.import_tomori(file, persona=PERSONA, subject=SERVER)
    assert answer.imported == 2
    assert [s.row for s in answer.skipped] == [2, 3]
    assert answer.skipped[0].why.startswith("Tomori, \u201cLong ago")
    assert "540 characters; at most 500" in answer.skipped[0].why


@pytest.mark.parametrize(
    "file",
    [
        {},
        [],
        "text",
        tomori("workspace_memories", bucket("main", "M", CAT), version=1),
        tomori("workspace_memories", bucket("main", "M", CAT), version="1.0"),
        tomori("workspace_memories", bucket("main", "M", CAT), version=[2]),
        tomori("workspace_config"),
        tomori("workspace_memories", {"name": "main", "label": "M"}),
        tomori("workspace_memories", bucket("main", "M", {"text": CAT})),
        tomori("workspace_memories", bucket("main", "M", {"content": CAT, "tags": "garden"})),
        tomori("workspace_memories", data=None),
        tomori("workspace_memories", data={"buckets": {}}),
    ],
)
def test_a_file_that_is_no_tomori_export_is_refused_and_nothing_is_written(world: World, file: Any):
    before = count_of_everything(world.memory)
    with pytest.raises(InvalidInput):
        world.memory.import_tomori(file, persona=PERSONA, subject=SERVER)
    assert count_of_everything(world.memory) == before


def test_a_tomori_file_does_not_say_whose_it_is_so_the_caller_must(world: World):
    for kind, what in (("workspace_memories", "server"), ("personal_memories", "user")):
        with pytest.raises(InvalidInput, match=what):
            world.memory.import_tomori(tomori(kind, bucket("main", "M", CAT)), persona=PERSONA)
