"""Erasing a person (D24, C29): not a byte is left, whoever is behind, and everything else goes on."""

from __future__ import annotations

import logging
import threading
import time
import traceback
from base64 import b64encode
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis

from remembrancer.domain.errors import InvalidInput, ListFull, NotFound, RemembrancerError, RequestReused, Tombstoned
from remembrancer.domain.events import MemorySaved, Recorded, SubjectErased
from remembrancer.domain.identity import ListKey, list_stream
from remembrancer.domain.text import ERASED
from remembrancer.projections.archive import ArchiveProjection
from remembrancer.projections.history import HistoryProjection
from remembrancer.projections.memory import MemoryProjection
from remembrancer.projections.runner import Runner
from remembrancer.services.embedded import open_embedded
from remembrancer.services.mentions import Mentions, Names
from remembrancer.services.rebuild import Rebuild
from remembrancer.services.store import Appended, StoreSource, UnknownEvent, snapshots
from remembrancer.services.store.pool import _Lost
from tests.conftest import running_redis
from tests.support.fake_openai import Exchange, right
from tests.support.processes import client
from tests.support.read_model import assert_read_model_is_a_fresh_fold, caught_up
from tests.support.world import PERSONA, SERVER, USER, World, desk, matched

MARK = "zyxomma"
"""A word of every text of Juno's, and of no other."""
PROJECTIONS = (MemoryProjection, ArchiveProjection, HistoryProjection)


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    with World(database_url) as one:
        yield one


# -- not a byte (DESIGN 9) -----------------------------------------------------------------------------------------


def found_in(folder: Path, *needles: bytes) -> set[str]:
    """Which files hold one of these."""
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    return {str(path.relative_to(folder)) for path in files if any(n in path.read_bytes() for n in needles)}


def marks() -> list[bytes]:
    """The word as a file may hold it: UTF-8 and UTF-16, as bytes, hex or base64."""
    plain = [MARK.encode("utf-8"), MARK.encode("utf-16-le"), MARK.encode("utf-16-be")]
    # Base64 depends on how many bytes stand before: the part that does not, for each of three.
    sealed = [b64encode(b"x" * n + MARK.encode())[4 if n else 0 : -4] for n in range(3)]
    return [*plain, *(word.hex().encode() for word in plain[:1]), *sealed]


def keys_of(url: str, user: str) -> list[bytes]:
    with psycopg.connect(url) as conn:
        query = "SELECT key FROM remembrancer.subject_key WHERE kind = 'user' AND subject = %s AND key IS NOT NULL"
        return [row[0] for row in conn.execute(query, (user,))]


def a_text(what: str) -> str:
    return f"{MARK} {what}"


def live_a_life(world: World) -> None:
    """A text of Juno's in every field of every verb."""
    memory, mine = world.memory, {"scope": "personal"}
    first = world.save(a_text("said to mira"), request_id="save", **mine)
    memory.edit(first, text=a_text("said otherwise"), request_id="edit")
    memory.edit(first, text=a_text("by the persona"), actor="persona", turn="edit turn", request_id="edit 2")
    world.saving(a_text("by the persona"), request_id="twice", **mine)
    memory.pin(first, request_id="pin")
    memory.unpin(first, request_id="unpin")
    everyone: dict[str, Any] = {"scope": "global", "subject": USER}
    gone = memory.save(None, text=a_text("global and deleted"), request_id="global", **everyone).memory
    memory.delete(gone.id, request_id="delete")
    again = world.save(a_text("learned again"), **mine)
    memory.delete(again, request_id="delete 2")
    with pytest.raises(Tombstoned):
        world.saving(a_text("learned again"), request_id="refused", **mine)
    memory.restore(gone.id, request_id="restore")

    outdated = world.save(a_text("until long ago"), until="2020-01-01", tags=["secret tag"], **mine)
    world.save(a_text("the third"), **mine)
    with pytest.raises(ListFull):
        memory.save(PERSONA, scope="personal", subject=USER, text=a_text("too much"), request_id="full")
    how: dict[str, Any] = {"scope": "personal", "subject": USER, "make_room": outdated}
    memory.save(PERSONA, text=a_text("evicts"), request_id="evicts", **how)

    for n, where in enumerate(({"server": None}, {"server": SERVER, "channel": "den"})):
        memory.reply(PERSONA, message=a_text("in a message"), users=[USER], turn=f"t{n}", request_id=f"r{n}", **where)
        memory.reply(PERSONA, message=a_text("in a message"), users=[USER], **where)
    with pytest.raises(ListFull):
        world.saving(a_text("in a turn"), turn="t0", request_id="turn", **mine)
    memory.edit(first, text=a_text("edited in a turn"), actor="persona", turn="t0", request_id="turn edit")
    memory.undo_turn("t0", request_id="undo")
    memory.set_person(USER, privacy="everywhere", not_learning=["rui"], request_id="person")
    world.save(a_text("cleared"), persona="rui", actor="person", **mine)
    memory.clear("rui", scope="personal", subject=USER, request_id="clear")

    document: dict[str, Any] = {"user": USER, "name": f"{MARK}.md"}
    lore = f"# {MARK}\n\n{a_text('lore of the house')}".encode()
    shelved = memory.add_document(lore, persona=PERSONA, request_id="document", **document).document
    memory.remove_document(memory.add_document(lore, server=SERVER, **document).document.id, request_id="off")
    ask: dict[str, Any] = {"message": "lore of the house", "users": ["kai"], "request_id": "looked up"}
    assert [p.document for p in memory.reply(PERSONA, **ask).late.documents] == [shelved.id]

    header = next(iter(memory.export()))
    row = {"kind": "memory", "persona": "ada", "scope": "personal", "subject": USER, "text": a_text("imported")}
    assert memory.import_rows([header, row]).imported == 1
    world.project()
    assert memory.find(MARK)
    assert memory.history(memory=first).entries


def poison(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every projection fails on some text, and quotes it."""
    for kind in PROJECTIONS:

        def apply(self: Any, conn: Any, generation: int, events: Sequence[Recorded], inner: Any = kind.apply) -> None:
            for r in events:
                if "poison" in getattr(r.event, "text", ""):
                    raise ValueError(f"cannot take {r.event.text!r}")  # type: ignore[attr-defined]
            inner(self, conn, generation, events)

        monkeypatch.setattr(kind, "apply", apply)


def begin_a_rebuild(world: World, upto: str) -> None:
    """A second generation of every table, and somebody who is killed before this step."""

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Rebuild, upto, killed)
        with pytest.raises(KeyboardInterrupt):
            world.memory.rebuild()
    assert world.memory.rebuild_status().generation == 2


@contextmanager
def logs_in(path: Path) -> Iterator[None]:
    """What the product logs, down to the smallest remark, and what its libraries tell a user."""
    handler = logging.FileHandler(path, encoding="utf-8")
    ours, root = logging.getLogger("remembrancer"), logging.getLogger()
    before = ours.level, root.level
    root.addHandler(handler)
    ours.setLevel(logging.DEBUG)
    root.setLevel(logging.INFO)
    try:
        yield
    finally:
        ours.setLevel(before[0])
        root.setLevel(before[1])
        root.removeHandler(handler)
        handler.close()


@pytest.mark.slow
@pytest.mark.parametrize("rebuilt_upto", ["_attach", "_come_level"])
def test_not_a_byte_of_an_erased_person_is_left_on_the_disk(  # D24, C29
    data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rebuilt_upto: str
) -> None:
    """In tables and their indexes, in events, answers, snapshots, statistics, in the write-ahead log, the logs of the
    database and ours, in Redis: with a part of the events projected, a part not, a stream parked and a rebuild begun,
    whose tables stand alone or are attached.

    The log segments of before are removed by the checkpoint, since this server is told not to use them again; a server
    that does holds their bytes until it has written over them (docs/erasing.md).
    """
    monkeypatch.setattr(snapshots, "AFTER", 3)
    with (
        open_embedded(data_dir, settings={"wal_recycle": "off"}) as server,
        running_redis(tmp_path) as redis_url,
        logs_in(tmp_path / "our.log"),
        World(server.url, redis_url=redis_url, list_capacity=3) as world,
    ):
        live_a_life(world)
        begin_a_rebuild(world, rebuilt_upto)
        world.memory.engine.vectors.pending()
        with monkeypatch.context() as poisoned:
            poison(poisoned)
            world.save(a_text("poison"), persona="eve", scope="personal")
            world.project()
        world.save(a_text("not projected"), persona="ivy", scope="personal")
        unread = {"name": f"{MARK} unread.txt", "user": USER, "persona": "ivy"}
        world.memory.add_document(a_text("not projected").encode(), **unread)
        world.save(a_text("parked, and not projected"), persona="eve", scope="personal")
        kept = world.save("Juno has a cat")
        other = world.open()
        assert other.list(subject=USER).lists

        keys = keys_of(server.url, USER)
        assert len(keys) == 1
        parked = world.memory.engine.runner.parked()
        assert {p.projection for p in parked} == {"memory", "archive", "history"}
        assert MARK in parked[0].error
        assert found_in(data_dir / "postgres" / "pg_wal", *marks())
        with psycopg.connect(server.url, autocommit=True) as conn:
            conn.execute("ANALYZE")
            conn.execute("CHECKPOINT")
        assert found_in(data_dir / "postgres" / "base", *marks())
        assert any(found_in(data_dir, key) for key in keys)

        answer = world.memory.erase(USER, compact=True, request_id="erase")
        assert (answer.erased_lists, [m.id for m in answer.mentions], answer.documents) == (6, [kept], 2)
        assert found_in(data_dir / "postgres" / "base", *marks(), *keys) == set()
        assert all(p.error.endswith("ValueError: [erased]") for p in world.memory.engine.runner.parked())
        for memory in (world.memory, other):
            assert not [m for one in memory.list(subject=USER).lists for m in one.memories]

        def nothing_is_left() -> None:
            with psycopg.connect(server.url, autocommit=True) as conn:
                conn.execute("VACUUM (FULL)")
                conn.execute("ANALYZE")
                conn.execute("SELECT pg_switch_wal()")
                conn.execute("CHECKPOINT")
            with redis.Redis.from_url(redis_url) as there:
                there.save()
            assert found_in(data_dir, *marks(), *keys) == set()
            assert found_in(tmp_path, *marks(), *keys) == set()

        nothing_is_left()

        # The projectors go on where they were, the parked streams are repaired, and tell the same story.
        for one in world.memory.engine.runner.parked():
            world.memory.engine.runner.repair(one)
        caught_up(world.memory)
        assert_read_model_is_a_fresh_fold(world.memory)
        assert world.memory.documents().documents == []
        told = world.memory.history(persona=PERSONA, scope="personal", subject=USER).entries
        assert {entry.after for entry in told} == {ERASED, None}
        assert told[-1].event == "SubjectErased"
        nothing_is_left()

        # And so does the rebuild.
        assert world.memory.rebuild(yes=True).status == "switched"
        assert_read_model_is_a_fresh_fold(world.memory)
        told = world.memory.history(persona=PERSONA, scope="personal", subject=USER).entries
        assert {entry.after for entry in told} == {ERASED, None}
        nothing_is_left()
    assert found_in(data_dir, *marks(), *keys) == set()


def test_the_planner_keeps_no_samples_of_texts_vectors_and_keys(world: World) -> None:  # D24
    for n in range(20):
        world.save(f"{MARK} number {n}", persona=f"persona {n}", scope="personal")
    world.project()
    with psycopg.connect(world.url, autocommit=True) as conn:
        conn.execute("ANALYZE")
        sampled = conn.execute(
            "SELECT tablename, attname FROM pg_stats WHERE schemaname = 'remembrancer'"
            " AND concat(most_common_vals, histogram_bounds) LIKE %s", (f"%{MARK}%",)
        ).fetchall()  # fmt: skip
        kept = {row[0] for row in conn.execute("SELECT attname FROM pg_stats WHERE schemaname = 'remembrancer'")}
    assert sampled == []
    assert "persona" in kept
    assert not kept & {"key", "embedding", "vector", "digest", "terms", "before", "after"}


# -- whoever is behind ---------------------------------------------------------------------------------------------


def a_short_life(world: World) -> None:
    """Something of every kind in one list, and something in two others."""
    mine: dict[str, Any] = {"scope": "personal", "persona": PERSONA}
    first, second = world.save("Juno collects stamps", **mine), world.save("Juno sleeps late", **mine)
    world.say("stamps?", server=None)
    world.memory.edit(first, text="Juno collects coins")
    world.memory.pin(second)
    world.day(1)
    world.say("coins?", server=None)
    world.memory.delete(first)
    world.save("Juno sings", persona="rui", scope="personal")
    world.memory.save(None, scope="global", subject=USER, text="Juno is tall")


def rows_of(world: World, user: str = USER) -> dict[str, int]:
    """How many texts and vectors the tables hold of a user, in every generation."""
    with psycopg.connect(world.url) as conn:
        theirs = "list IN (SELECT list FROM remembrancer.list WHERE subject = %s AND scope <> 'server')"
        counts = {
            table: conn.execute(f"SELECT count(*) FROM remembrancer.{table} WHERE {theirs}", (user,)).fetchone()[0]
            for table in ("memory", "memory_use", "archive", "wording")
        }
        at = (ERASED, user)
        said = "coalesce(after, before) <> %s AND subject = %s AND scope <> 'server'"
        counts["history"] = conn.execute(f"SELECT count(*) FROM remembrancer.history WHERE {said}", at).fetchone()[0]
        kept = "SELECT count(*) FROM remembrancer.embedding WHERE subject = %s AND kind = 'user'"
        counts["embedding"] = conn.execute(kept, (user,)).fetchone()[0]
    return counts


NOTHING = dict.fromkeys(("memory", "memory_use", "archive", "wording", "history", "embedding"), 0)


@pytest.mark.parametrize("batches", [0, 1, 2, 4, 7, 100])
def test_a_projector_that_is_behind_by_any_number_of_events_ends_where_a_fresh_fold_ends(  # D24
    world: World, batches: int
) -> None:
    a_short_life(world)
    engine = world.memory.engine
    source = StoreSource(engine.store)
    slow = Runner(engine.store.database.connection, source, engine.runner.projections, batch=4)
    for projection in slow.projections:
        for _ in range(batches):
            slow.run_batch(projection)
    world.memory.erase(USER)
    assert rows_of(world) == NOTHING
    assert desk(world.say("stamps and coins?", server=None)) == []
    while slow.catch_up():
        pass
    assert rows_of(world) == NOTHING
    caught_up(world.memory)
    assert_read_model_is_a_fresh_fold(world.memory)
    told = world.memory.history(persona=PERSONA, scope="personal", subject=USER).entries
    assert [entry.event for entry in told] == [
        "MemorySaved", "MemorySaved", "ListSearched", "MemoriesMatched", "MemoryEdited", "MemoryPinned", "ListSearched",
        "MemoriesMatched", "MemoryDeleted", "SubjectErased",
    ]  # fmt: skip
    assert {text for entry in told for text in (entry.before, entry.after)} == {None, ERASED}


def test_an_erasure_waits_for_the_batch_that_a_projector_is_writing_and_takes_it_away(world: World) -> None:  # D24
    """What the projector has read before, it must not write after."""
    world.save("Juno collects stamps", scope="personal")
    with client("projector", url=world.url, embedder="none", hold="writing") as projector, ThreadPoolExecutor(1) as one:
        assert [projector.line(), projector.line()] == ["ready", "holding"]
        erasing = one.submit(world.memory.erase, USER)
        with pytest.raises(TimeoutError):
            erasing.result(0.5)
        projector.tell("go on")
        assert erasing.result(30).memories == 1
        assert world.memory.engine.waiting.settle(20)
    assert rows_of(world) == NOTHING


def test_a_vector_that_is_on_its_way_is_not_kept(world: World) -> None:  # D24, D22
    asked, go_on = threading.Event(), threading.Event()

    def slowly(exchange: Exchange) -> None:
        asked.set()
        go_on.wait(30)
        right(exchange)

    world.lose_the_model()
    world.save("Juno collects stamps", scope="personal")
    kept = world.save("Kai plays chess")
    world.project()
    world.fake.otherwise = slowly
    with ThreadPoolExecutor(1) as one:
        pending = one.submit(world.memory.embed_pending)
        assert asked.wait(30)
        world.memory.erase(USER)
        go_on.set()
        pending.result(30)
    assert rows_of(world) == NOTHING
    world.fake.otherwise = right
    assert matched(world.say("chess? Kai plays")) == [world.get(kept).text]


def test_an_edit_that_the_erasure_overtakes_finds_nothing_and_leaves_nothing(  # D24
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = world.save("Juno collects stamps", scope="personal")
    vectors, other = world.memory.engine.vectors, world.open()
    keep = vectors.keep

    def overtaken(texts: Any) -> None:
        keep(texts)
        other.erase(USER)
        keep(texts)

    with monkeypatch.context() as patched:
        patched.setattr(vectors, "keep", overtaken)
        with pytest.raises(NotFound):
            world.memory.edit(memory, text="Juno collects coins")
    world.project()
    assert rows_of(world) == NOTHING


def test_a_save_at_the_same_moment_is_erased_or_comes_after_under_a_new_key(world: World) -> None:  # D24, C29
    others = [world.open(list_capacity=1_000) for _ in range(3)]
    world.save("the first", scope="personal")
    begin = threading.Barrier(4)

    def saves(who: int) -> list[tuple[str, int]]:
        begin.wait(30)
        done = []
        for n in range(12):
            text = f"text {n} of {who}"
            answer = others[who].save(PERSONA, scope="personal", subject=USER, text=text, request_id=f"{who} {n}")
            done.append((text, answer.positions[0].position))
        return done

    def erases() -> int:
        begin.wait(30)
        time.sleep(0.1)
        return world.memory.erase(USER).positions[0].position

    with ThreadPoolExecutor(4) as threads:
        saving = [threads.submit(saves, who) for who in range(3)]
        at = threads.submit(erases).result(60)
        acknowledged = [one for each in saving for one in each.result(60)]
    after = {text for text, position in acknowledged if position > at}
    assert len(acknowledged) == 36
    assert world.texts("personal") == after
    stream = list_stream("default", ListKey(PERSONA, "personal", USER))
    events = world.memory.engine.store.read([(stream, 0)])
    for r in events:
        if isinstance(r.event, MemorySaved):
            assert (r.event.text != ERASED) == (r.position > at)
    caught_up(world.memory)
    assert_read_model_is_a_fresh_fold(world.memory)
    assert rows_of(world)["memory"] == len(after)


# -- afterwards ----------------------------------------------------------------------------------------------------


def test_whoever_is_saved_again_starts_anew_and_what_was_stays_unreadable(world: World) -> None:  # D24
    a_short_life(world)
    world.memory.erase(USER)
    again = world.save("Juno is back", scope="personal")
    world.say("is Juno back?", server=None)
    world.project()
    assert world.texts("personal") == {"Juno is back"}
    assert world.get(again).unused_days == 0
    assert [event.text for event in world.events(MemorySaved)].count(ERASED) == 4
    with psycopg.connect(world.url) as conn:
        query = "SELECT generation, key IS NULL FROM remembrancer.subject_key WHERE subject = %s ORDER BY 1"
        assert conn.execute(query, (USER,)).fetchall() == [(1, True), (2, False)]

    assert world.memory.erase(USER).memories == 1
    assert world.texts("personal") == set()
    caught_up(world.memory)
    assert_read_model_is_a_fresh_fold(world.memory)


def test_what_a_person_deleted_is_no_tombstone_any_more(world: World) -> None:  # D13, D24
    gone = world.save("Juno collects stamps", scope="personal")
    world.memory.delete(gone)
    world.memory.erase(USER)
    assert world.saving("Juno collects stamps", scope="personal").status == "saved"


def test_history_of_an_erased_memory_and_turn_goes_on(world: World) -> None:  # U1, D24
    memory = world.save("Juno collects stamps", scope="personal", turn="t1")
    world.say("stamps?", server=None, turn="t2")
    world.project()
    world.memory.erase(USER)
    for projected in (False, True):
        told = world.memory.history(memory=memory).entries
        assert [(entry.event, entry.after) for entry in told] == [("MemorySaved", ERASED), ("MemoriesMatched", ERASED)]
        assert {entry.event for entry in world.memory.history(turn="t2").entries} >= {"ReplySearched"}
        with pytest.raises(NotFound, match="no longer there"):
            world.get(memory)
        if not projected:
            world.project()
    events = world.events(SubjectErased)
    assert {(ev.persona, ev.scope, ev.subject) for ev in events} == {(PERSONA, "personal", USER), ("", None, USER)}


@pytest.mark.parametrize("projected", [True, False])
def test_documents_that_a_person_added_go_with_them_and_the_others_stay(  # D24
    world: World, projected: bool
) -> None:
    theirs = {"name": "mine.txt", "user": USER}
    first = world.memory.add_document(b"zephyr lighthouse whale oil", persona=PERSONA, **theirs).document.id
    other = world.open()
    kept = world.memory.add_document(
        b"obsidian gateway dragons", server=SERVER, name="gates.txt", user="kai"
    ).document.id
    world.memory.add_document(b"zephyr market herring", server=SERVER, name="market.txt")
    ask: dict[str, Any] = {"message": "zephyr lighthouse whale oil?", "users": ["kai"], "server": SERVER}
    looked_up = other.reply(PERSONA, request_id="looked up", **ask)
    assert [p.document for p in looked_up.late.documents] == [first]
    if projected:
        world.project()

    assert world.memory.erase(USER).documents == 1

    for memory in (world.memory, other):
        assert {d.name for d in memory.documents().documents} == {"gates.txt", "market.txt"}
        assert memory.reply(PERSONA, **ask).late.documents == []
        again = memory.reply(PERSONA, request_id="looked up", **ask)
        assert (again.turn, again.late.documents, again.late.text) == (looked_up.turn, [], "")
        with pytest.raises(NotFound):
            memory.document(first)
    world.project()
    with psycopg.connect(world.url) as conn:
        rows = conn.execute(
            "SELECT document, name, gone FROM remembrancer.document WHERE added_by IS NOT NULL"
        ).fetchall()
        assert set(rows) == {(first, "", "erased"), (kept, "gates.txt", None)}
        left = conn.execute("SELECT count(*) FROM remembrancer.passage WHERE document = %s", (first,)).fetchone()
        assert left == (0,)
    told = world.memory.history(document=first).entries
    assert [(entry.event, entry.after) for entry in told] == [("DocumentAdded", ERASED)]
    again = world.memory.add_document(b"zephyr lighthouse whale oil", persona=PERSONA, **theirs)
    assert (again.status, again.document.id != first) == ("added", True)
    assert [p.document for p in world.memory.reply(PERSONA, **ask).late.documents] == [again.document.id]


def test_nobody_else_is_touched(world: World) -> None:  # D24, C23
    """A server of the same name, the same user of another tenant, other people, and who talked with them."""
    a_short_life(world)
    server = world.save("this server is named like a user", subject=USER)
    kai = world.save("Kai plays chess", scope="personal", subject="kai")
    world.say("chess?", users=[USER, "kai"], server=SERVER, request_id="together")
    world.memory.set_persona(PERSONA, instructions="Speak of Juno kindly.")
    world.memory.set_person(USER, privacy="private_chats_only")
    elsewhere = world.open(tenant="elsewhere")
    theirs = elsewhere.save(PERSONA, scope="personal", subject=USER, text="Juno of the other tenant").memory.id

    world.memory.erase(USER)

    world.project()
    for memory, text in ((server, "this server is named like a user"), (kai, "Kai plays chess")):
        assert world.get(memory).text == text
    assert elsewhere.get(theirs).text == "Juno of the other tenant"
    assert world.memory.persona(PERSONA).instructions == "Speak of Juno kindly."
    assert world.memory.person(USER).privacy == "private_chats_only"
    assert desk(world.say("hello", users=["kai"], server=None)) == ["Kai plays chess"]


def test_an_answer_of_before_is_gone_and_its_request_writes_nothing_again(world: World) -> None:  # D19, D24
    world.saving("Juno collects stamps", scope="personal", request_id="save")
    world.say("stamps?", request_id="reply")
    world.memory.erase(USER)
    with pytest.raises(InvalidInput, match="erased"):
        world.saving("Juno collects stamps", scope="personal", request_id="save")
    with pytest.raises(RemembrancerError, match="erased"):
        world.say("stamps?", request_id="reply")
    assert world.texts("personal") == set()


def test_a_process_that_remembers_the_old_key_replies_under_a_new_one(world: World) -> None:  # D24
    world.save("Juno collects stamps", scope="personal")
    other = world.open()
    reply: dict[str, Any] = {"message": "stamps?", "users": [USER]}
    assert desk(other.reply(PERSONA, request_id="before", **reply)) == ["Juno collects stamps"]
    world.memory.erase(USER)
    assert desk(other.reply(PERSONA, request_id="after", **reply)) == []


# -- once ----------------------------------------------------------------------------------------------------------


def test_the_same_request_erases_once_also_from_eight_sides(world: World) -> None:  # D19
    a_short_life(world)
    memories = [world.open() for _ in range(8)]
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda memory: memory.erase(USER, request_id="gone"), memories))
    assert len({answer.model_dump_json() for answer in answers}) == 1
    assert (answers[0].erased_lists, answers[0].memories) == (3, 4)
    assert len(world.events(SubjectErased)) == 5  # three lists, the chat with Mira, and what was deleted

    world.save("Juno is back", scope="personal")
    assert world.memory.erase(USER, request_id="gone") == answers[0]
    assert world.texts("personal") == {"Juno is back"}
    with pytest.raises(RequestReused):
        world.memory.erase("kai", request_id="gone")
    with pytest.raises(NotFound):
        world.open(tenant="elsewhere").erase(USER, request_id="gone")


def test_without_a_request_a_second_time_finds_nothing_left_and_writes_nothing(world: World) -> None:
    a_short_life(world)
    memories = [world.open() for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda memory: memory.erase(USER), memories))
    assert sorted(answer.memories for answer in answers) == [0, 0, 0, 4]
    assert len(world.events(SubjectErased)) == 5


@pytest.mark.parametrize("request_id", [None, "gone"])
def test_a_commit_in_doubt_is_tried_again_and_answered_as_it_was(  # D19, C20
    world: World, monkeypatch: pytest.MonkeyPatch, request_id: str | None
) -> None:
    a_short_life(world)
    database = world.memory.engine.store.database
    once, lost = database._once, []

    def cut_off(work: Any, until: float) -> Any:
        answer = once(work, until)
        if not lost and isinstance(answer, Appended) and answer.reached:
            lost.append(answer)
            raise _Lost
        return answer

    monkeypatch.setattr(database, "_once", cut_off)
    answer = world.memory.erase(USER, request_id=request_id)
    assert len(lost) == 1
    assert (answer.erased_lists, answer.memories) == (3, 4)
    assert len(world.events(SubjectErased)) == 5
    assert world.texts("personal") == set()


def test_somebody_who_never_was_is_named_with_near_ones(world: World) -> None:  # D31
    world.save("Juno collects stamps", scope="personal")
    for user in ("junno", "JUNO"):
        with pytest.raises(NotFound, match="Did you mean juno") as refused:
            world.memory.erase(user)
        assert refused.value.details["near"] == [USER]
    for wrong in ("", " ", "*", "a\x00"):
        with pytest.raises(InvalidInput):
            world.memory.erase(wrong)
    assert world.texts("personal") == {"Juno collects stamps"}


# -- who is named elsewhere ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("juno", "Juno's cat is named Mochi"),
        ("juno", "<@juno> was here"),
        ("Juno Moon", "a letter from Juno M. Moon"),
        ("1122334455", "said <@!1122334455>"),
        ("will", "Will plays the horn"),  # an everyday word
        ("Åsa", "asa sjunger"),
        ("Юнона", "кошку Юноны зовут Моти"),
        ("ユノ", "昨日ユノが来た"),
        ("주노", "주노가 왔다"),
        ("月", "月は猫が好き"),
        ("c++ fan", "the C++ Fan of this server"),
    ],
)
def test_a_name_is_found_in_any_writing_of_it(world: World, name: str, text: str) -> None:  # D24
    assert Names([name]).stand_in(text)
    world.save(text)
    world.save("nobody in particular")
    for projected in (False, True):
        assert [m.text for m in Mentions(world.memory.engine.deps).of(Names([name]))] == [text], projected
        world.project()


@pytest.mark.parametrize(("name", "text"), [("juno", "Junonia is a town"), ("an", "bananas"), ("will", "the goodwill")])
def test_a_part_of_another_word_is_no_name(name: str, text: str) -> None:
    assert not Names([name]).stand_in(text)


def test_mentions_are_those_of_servers_as_they_are_now_also_where_the_tables_are_behind(  # D24
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = world.save("Juno collects stamps", scope="personal")
    world.save("Juno is Kai's friend", scope="personal", subject="kai")
    stays = world.save("Juno likes tea")
    reworded, deleted = world.save("Juno likes coffee"), world.save("Juno likes juice")
    world.project()
    world.memory.edit(reworded, text="Somebody likes coffee")
    world.memory.delete(deleted)
    named = world.save("Somebody likes water")
    world.memory.edit(named, text="Juno likes water")
    with monkeypatch.context() as poisoned:
        poison(poisoned)
        parked = world.save("Juno likes poison", subject="another server")
        world.project()
    answer = world.memory.erase(USER)
    assert {m.id for m in answer.mentions} == {stays, named, parked}
    assert mine not in {m.id for m in answer.mentions}


# -- what errors say -----------------------------------------------------------------------------------------------


def test_an_event_that_cannot_be_read_is_not_quoted(world: World) -> None:  # C29: logs
    world.save(f"{MARK} stamps", scope="personal")
    with psycopg.connect(world.url) as conn:
        query = "SELECT shard, position, stream, version, type, state, recorded_at FROM remembrancer.event"
        (row,) = conn.execute(f"{query} WHERE type = 'MemorySaved'").fetchall()
    broken = row[5].replace(b'"day":"2026', f'"day":"{MARK}'.encode())
    assert broken != row[5]
    with pytest.raises(UnknownEvent, match="MemorySaved cannot be read: day: ") as refused:
        world.memory.engine.store.decode([(*row[:5], broken, row[6])])
    assert MARK not in "".join(traceback.format_exception(refused.value))
