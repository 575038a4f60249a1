"""Whatever a caller sends: the right error, which says what to do, or an answer; never a traceback of somebody else's,
and not one row written by what was refused.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from remembrancer.domain.errors import (
    InvalidInput,
    NotFound,
    RemembrancerError,
    TextTooLong,
    Unavailable,
)
from remembrancer.services import open_memory
from remembrancer.services.answers import Position
from remembrancer.services.embedded import EmbeddedPostgres
from remembrancer.services.remembrancer import Remembrancer
from tests.support.fake_openai import FakeOpenAI
from tests.support.read_model import count_of_everything

HALF = "\ud800"
"""Half of a surrogate pair, which is no character."""
LONG = "x" * 301
GUILD: dict[str, Any] = {"scope": "server", "subject": "guild"}
NO_TEXTS: list[Any] = [None, 5, 0.5, True, b"bytes", [], ["text"], {}, {"text": "text"}, object()]
NO_NAMES: list[Any] = [5, 0.5, True, b"bytes", [], ["mira"], {}, "", "  ", "\n", LONG, f"mi{HALF}ra", "mi\x00ra", "*"]
NO_LISTS: list[Any] = ["juno", "", None, 5, True, b"juno", {"juno": 1}, [5], [None], [""], ["  "], [LONG], ["*"], [[]]]
NO_IDS: list[Any] = ["", "nope", "*", None, 5, 0.5, True, b"\0" * 16, [], {}, HALF, "\x00", "x" * 10_000]


@dataclass
class World:
    """An installation in use by two tenants."""

    memory: Remembrancer
    theirs: UUID
    """A memory of the other tenant."""
    mine: UUID
    deleted: UUID
    turn: str
    url: str


@pytest.fixture(scope="module")
def world(postgres: EmbeddedPostgres, migrated_template: str) -> Iterator[World]:
    """One for the whole module: what is refused leaves nothing behind, or a test fails."""
    with psycopg.connect(postgres.url_of("postgres"), autocommit=True) as connection:
        name = f"test_{uuid4().hex}"
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {migrated_template} STRATEGY file_copy".encode())
        url = postgres.url_of(name)
        with FakeOpenAI(dimensions=16) as model:
            settings: dict[str, Any] = {
                "embedder": "openai", "embedder_url": model.url, "embedder_model": "words", "match_threshold": 0.9,
                "embed_timeout": 10.0,
            }  # fmt: skip
            with (
                open_memory(url, **settings) as memory,
                open_memory(url, tenant="theirs", background=False, **settings) as theirs,
            ):
                memory.set_persona("mira", name="Mira")
                mine = memory.save("mira", **GUILD, text="Juno's cat is named Mochi").memory.id
                deleted = memory.save("mira", **GUILD, text="Kit moved to Lisbon").memory.id
                memory.delete(deleted)
                memory.save("mira", scope="personal", subject="juno", text="Juno likes tea")
                turn = memory.reply("mira", message="Mochi?", users=["juno"], server="guild").turn
                other = theirs.save("mira", **GUILD, text="Juno's cat is named Mochi").memory.id
                memory.engine.waiting.settle(10.0)
                yield World(memory, other, mine, deleted, turn, url)
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


Call = Callable[[World], Any]
"""A call that is right."""
MINE = object()
"""Stands for the id of a memory of this tenant in the arguments below; TURN for its turn."""
TURN = object()


@dataclass(frozen=True)
class Verb:
    """A verb, and arguments with which it succeeds."""

    name: str
    arguments: Mapping[str, Any]

    def __call__(self, world: World, **other: Any) -> Any:
        known = {MINE: world.mine, TURN: world.turn}
        arguments = {
            name: known[value] if isinstance(value, object) and value in (MINE, TURN) else value
            for name, value in self.arguments.items()
        }
        answer = getattr(world.memory, self.name)(**arguments | other)
        return list(answer) if self.name == "export" else answer


WRITES = {"actor": "person", "turn": None, "request_id": None}
HEADER = {"format": "remembrancer", "version": 1, "tenant": "x", "exported_at": "2026-05-01T00:00:00Z"}
TOMORI = {
    "version": 2,
    "type": "workspace_memories",
    "exported_at": "2026-05-01T00:00:00Z",
    "data": {"buckets": [{"name": "mira", "label": "Mira", "memories": [{"content": "Juno sings", "tags": []}]}]},
}
VERBS = {
    verb.name: verb
    for verb in [
        Verb(
            "save",
            {
                "persona": "mira", "scope": "server", "subject": "guild", "text": "Juno's cat is named Mochi",
                "until": None, "tags": [], "channels": [], "make_room": None, "source_chat": None,
                "source_messages": [],
            } | WRITES,
        ),
        Verb("edit", {"memory": MINE, "text": "Juno's cat is named Mochi", "until": None, "tags": [], "channels": []}
             | WRITES),
        Verb("delete", {"memory": MINE} | WRITES),
        Verb("pin", {"memory": MINE} | WRITES),
        Verb("unpin", {"memory": MINE, "make_room": None} | WRITES),
        Verb("clear", {"persona": "mira", "scope": "server", "subject": "empty", "pinned": False, "actor": "person",
                       "request_id": None}),
        Verb("get", {"memory": MINE}),
        Verb(
            "what_if",
            {
                "persona": "mira", "scope": None, "subject": None, "rest_after_days": 5, "match_limit": None,
                "match_threshold": None, "list_capacity": None, "desk_limit": None, "pin_capacity": None, "apply": True,
                "request_id": None, "progress": None,
            },
        ),
        Verb("list", {"persona": "mira", "scope": None, "subject": None, "state": None}),
        Verb(
            "reply",
            {
                "persona": "mira", "message": "hello", "users": ["juno"], "server": "guild", "channel": None,
                "tags": [], "chat": None, "platform": "api", "turn": None, "memory": "on", "request_id": None,
            },
        ),
        Verb(
            "history",
            {
                "persona": "mira", "scope": None, "subject": None, "memory": None, "turn": None, "since": None,
                "until": None, "kinds": None, "limit": 10, "after": None,
            },
        ),
        Verb("why", {"q": MINE, "persona": None, "limit": 10}),
        Verb("add_document", {"document": b"Juno's cat", "persona": "mira", "server": None, "name": "cats.txt",
                              "channels": [], "user": None, "request_id": None}),
        Verb("documents", {"persona": "mira", "server": None}),
        Verb("find", {"q": "cat", "limit": 10}),
        Verb("persona", {"persona": "mira"}),
        Verb("set_persona", {"persona": "mira", "name": "Mira", "instructions": "", "learns": True,
                             "request_id": None}),
        Verb("person", {"user": "juno"}),
        Verb("set_person", {"user": "juno", "privacy": "everywhere", "not_learning": [], "request_id": None}),
        Verb("server", {"server": "guild"}),
        Verb(
            "set_server",
            {
                "server": "guild", "notices": "everyone", "blocklist": [], "personal_memories": True,
                "private": False, "not_learning": [], "request_id": None,
            },
        ),
        Verb("policy", {}),
        Verb("set_policy", {"rest_after_days": None, "match_threshold": None, "request_id": None}),
        Verb("export", {"persona": "mira"}),
        Verb("import_rows", {"rows": [HEADER]}),
        Verb("import_tomori", {"data": TOMORI, "persona": "mira", "subject": "guild"}),
        Verb("import_chat", {"text": '[{"role": "user", "text": "hi"}]', "chat": "brought", "persona": "mira",
                             "user": "juno", "server": None, "platform": None, "request_id": None}),
        Verb("wait", {"positions": [], "timeout": 0.1, "mode": "stale"}),
        Verb("embed_pending", {"limit": 1}),
        Verb("doctor", {}),
    ]
}  # fmt: skip


def refused(world: World, act: Callable[[], Any], kind: type[RemembrancerError] = InvalidInput) -> RemembrancerError:
    """Calls; it must be refused with exactly this error, in a sentence that holds, and write nothing."""
    before = count_of_everything(world.memory)
    with pytest.raises(RemembrancerError) as said:
        act()
    error = said.value
    assert type(error) is kind, f"{type(error).__name__}: {error}"
    assert 400 <= error.status < 500
    assert error.message.strip().endswith((".", "?", ".)"))
    str(error).encode()  # can be shown: no half characters in it
    assert count_of_everything(world.memory) == before
    return error


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_every_verb_succeeds_with_right_arguments(world: World, verb: Verb) -> None:
    """Else the tests below would prove nothing."""
    if verb.name in ("delete", "edit", "pin", "unpin"):
        own = world.memory.save("mira", **GUILD, text=f"for {verb.name}").memory.id
        verb(world, memory=own, **({"text": "edited"} if verb.name == "edit" else {}))
    else:
        verb(world)


BAD_ARGUMENTS: dict[str, dict[str, list[Any]]] = {
    "save": {
        "persona": [None, *NO_NAMES],
        "scope": ["planet", "", "Server", *NO_TEXTS],
        "subject": [None, *NO_NAMES],
        "text": ["", "   ", "\n\t", "\u3000", "a\x00b", f"a{HALF}b", "\udfff", *NO_TEXTS],
        "actor": ["robot", "", "Person", *NO_TEXTS],
        "turn": NO_NAMES,
        "until": ["soon", "2026-13-01", "2026-5-1", "12.05.2026", 5, True, datetime(2026, 5, 1, tzinfo=UTC), []],
        "tags": NO_LISTS,
        "channels": NO_LISTS,
        "make_room": [one for one in NO_IDS if one is not None],
        "source_chat": NO_NAMES,
        "source_messages": NO_LISTS,
        "request_id": NO_NAMES,
    },
    "edit": {
        "memory": NO_IDS,
        "text": ["", "   ", "a\x00b", f"a{HALF}b", *NO_TEXTS],
        "until": ["soon", 5, []],
        "tags": NO_LISTS,
        "channels": NO_LISTS,
        "actor": ["robot", *NO_TEXTS],
        "turn": NO_NAMES,
        "request_id": NO_NAMES,
    },
    "delete": {"memory": NO_IDS, "actor": ["robot", *NO_TEXTS], "turn": NO_NAMES, "request_id": NO_NAMES},
    "pin": {"memory": NO_IDS, "actor": ["robot", *NO_TEXTS], "turn": NO_NAMES, "request_id": NO_NAMES},
    "unpin": {
        "memory": NO_IDS,
        "make_room": [one for one in NO_IDS if one is not None],
        "actor": ["robot"],
        "turn": NO_NAMES,
        "request_id": NO_NAMES,
    },
    "clear": {
        "persona": [None, *NO_NAMES],
        "scope": ["planet", *NO_TEXTS],
        "subject": [None, *NO_NAMES],
        "pinned": ["yes", 1, None, []],
        "actor": ["robot", *NO_TEXTS],
        "request_id": NO_NAMES,
    },
    "get": {"memory": NO_IDS},
    "what_if": {
        "persona": NO_NAMES,
        "scope": ["planet", "server", *[one for one in NO_TEXTS if one is not None]],
        "subject": NO_NAMES,
        "rest_after_days": [0, -1, 10**30, "many", 1.5, math.nan, math.inf, []],
        "match_limit": [-1, 11, "few", []],
        "match_threshold": [math.nan, math.inf, -2, "high", []],
        "list_capacity": [0, 100_001],
        "desk_limit": [-1, 10_001],
        "pin_capacity": [-1, 1_001],
        "apply": ["yes", 1, None, []],
        "request_id": NO_NAMES,
    },
    "list": {
        "persona": NO_NAMES,
        "scope": ["planet", *[one for one in NO_TEXTS if one is not None]],
        "subject": NO_NAMES,
        "state": ["sleeping", "", *[one for one in NO_TEXTS if one is not None]],
    },
    "reply": {
        "persona": [None, *NO_NAMES],
        "message": ["a\x00b", f"a{HALF}b", *NO_TEXTS],
        "users": NO_LISTS,
        "server": NO_NAMES,
        "channel": NO_NAMES,
        "tags": NO_LISTS,
        "chat": NO_NAMES,
        "platform": ["irc", "", *(one for one in NO_TEXTS if one is not None)],
        "turn": NO_NAMES,
        "memory": ["maybe", *NO_TEXTS],
        "request_id": NO_NAMES,
    },
    "history": {
        "persona": NO_NAMES,
        "scope": ["planet", "server", *[one for one in NO_TEXTS if one is not None]],
        "subject": NO_NAMES,
        "memory": [one for one in NO_IDS if one is not None],
        "turn": NO_NAMES,
        "since": ["yesterday", 5, datetime(2026, 5, 1), date(2026, 5, 1), []],  # noqa: DTZ001
        "until": ["yesterday", 5, datetime(2026, 5, 1), date(2026, 5, 1), []],  # noqa: DTZ001
        "kinds": ["MemorySaved", 5, True, b"x", {}, ["Nothing"], [5], [None], [""], [HALF]],
        "limit": [0, -1, 1_001, 10**30, "5", None, 1.5, math.nan, True, []],
        "after": ["garbage", "", "====", 5, b"garbage", [], HALF, "WyJ4IiwxLDIsM10="],
    },
    "why": {
        "q": ["", "  ", *NO_TEXTS, f"a{HALF}b", "a\x00b", "x" * 2_001],
        "persona": NO_NAMES,
        "limit": [0, -1, 1_001, 10**30, "5", None, 1.5, True],
    },
    "add_document": {
        "document": [None, 5, [], {}, "", ".", "/dev/null", "no/such/file.md", "a\x00b", b"", b"\xff", b"a\x00b", HALF],
        "persona": [None, *NO_NAMES],
        "server": ["guild", *NO_NAMES],
        "name": [None, *NO_NAMES],
        "channels": NO_LISTS,
        "user": NO_NAMES,
        "request_id": NO_NAMES,
    },
    "import_chat": {
        "text": ["", "  ", "{}", "[1]", "\ufeff", HALF, '[{"role": "user", "text": "a\\u0000"}]', "[" * 100_000,
                 *NO_TEXTS],
        "chat": [None, *NO_NAMES],
        "persona": [None, *NO_NAMES],
        "user": [None, *NO_NAMES],
        "server": NO_NAMES,
        "platform": ["irc", "", *(one for one in NO_TEXTS if one is not None)],
        "request_id": NO_NAMES,
    },
    "documents": {"persona": NO_NAMES, "server": NO_NAMES},
    "find": {"q": ["", "  ", *NO_TEXTS, f"a{HALF}b", "a\x00b"], "limit": [0, -1, 101, 10**30, "5", None, 1.5, True]},
    "persona": {"persona": [None, *NO_NAMES]},
    "set_persona": {
        "persona": [None, *NO_NAMES],
        "name": [None, 5, b"x", [], f"a{HALF}b", "a\x00b"],
        "instructions": [None, 5, b"x", [], f"a{HALF}b", "a\x00b"],
        "learns": ["yes", 1, None, []],
        "request_id": NO_NAMES,
    },
    "person": {"user": [None, *NO_NAMES]},
    "set_person": {
        "user": [None, *NO_NAMES],
        "privacy": ["sometimes", "", HALF, *NO_TEXTS],
        "not_learning": NO_LISTS,
        "request_id": NO_NAMES,
    },
    "server": {"server": [None, *NO_NAMES]},
    "set_server": {
        "server": [None, *NO_NAMES],
        "notices": ["loud", *NO_TEXTS],
        "blocklist": NO_LISTS,
        "personal_memories": ["no", 0, None],
        "private": ["no", 0, None],
        "not_learning": NO_LISTS,
        "request_id": NO_NAMES,
    },
    "set_policy": {
        "rest_after_days": [0, -1, 10**9, 10**30, "many", 1.5, math.nan, math.inf, []],
        "match_threshold": [math.nan, math.inf, -2, "high", []],
        "match_limit": [-1, 11],
        "list_capacity": [0, 100_001],
        "pin_capacity": [-1, 1_001],
        "max_characters": [0, 20_001],
        "desk_limit": [-1, 10_001],
        "recent_days": [-1],
        "document_limit": [-1, 51],
        "document_threshold": [math.nan, math.inf, -2, "high", []],
        "document_tokens": [-1],
        "document_bytes": [0, 10**9],
        "document_pages": [0],
        "document_characters": [0],
        "document_passages": [0, 100_001],
        "decay_enabled": ["perhaps", 5, []],
        "no_such_number": [1],
        "request_id": NO_NAMES,
    },
    "export": {"persona": NO_NAMES},
    "import_rows": {
        "rows": [None, 5, "rows", b"rows", {}, [5], ["row"], [{}], [None], [{"format": "remembrancer", "version": 99}],
                 [{"format": "other", "version": 1}]],
    },
    "import_tomori": {
        "data": [None, 5, "data", b"data", [], {}, {"version": 1}, {"version": 2}, {"version": 2, "type": "songs"},
                 {"version": 2, "type": "workspace_memories", "data": {"buckets": "none"}}],
        "persona": NO_NAMES,
        "subject": [None, *NO_NAMES],
    },
    "wait": {
        "positions": [None, 5, "here", [5], ["here"], [None], {}],
        "timeout": [None, "soon", -1, math.nan, []],
        "mode": ["hope", None, 5],
    },
    "embed_pending": {"limit": [0, -1, 10**30, "all", None, 1.5, True]},
}  # fmt: skip
CASES = [
    (verb, name, value) for verb, names in BAD_ARGUMENTS.items() for name, values in names.items() for value in values
]


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_a_wrong_argument_is_refused_as_bad_input(world: World, verb: Verb) -> None:
    """422, whatever the argument; the sentence says what was wrong with it."""
    wrong = []
    for name, values in BAD_ARGUMENTS.get(verb.name, {}).items():
        for value in values:
            try:
                refused(world, lambda name=name, value=value: verb(world, **{name: value}))
            except BaseException as error:  # noqa: BLE001
                wrong.append(f"{name}={value!r:.60}: {type(error).__name__}: {str(error).splitlines()[0]:.150}")
    assert not wrong, "\n".join(wrong)


def test_a_text_of_501_characters_is_refused_with_both_numbers(world: World) -> None:
    """D10, C14: code points are counted, as sent."""
    for text in ("x" * 501, "\U0001f408" * 501, "e\u0301" * 250 + "!", " " * 500 + "x"):
        assert len(text) == 501
        for act in (
            lambda text=text: VERBS["save"](world, text=text),
            lambda text=text: VERBS["edit"](world, text=text),
        ):
            error = refused(world, act, TextTooLong)
            assert "501" in error.message
            assert "500" in error.message
            assert (error.rule, error.status) == ("D10", 409)
            assert error.hint


@pytest.mark.parametrize("verb", ["get", "edit", "delete", "pin", "unpin", "history"])
def test_an_unknown_id_and_one_of_another_tenant_are_not_found_in_the_same_words(world: World, verb: str) -> None:
    """D31, C23."""
    unknown = UUID(bytes=world.theirs.bytes[:4] + uuid4().bytes[4:])
    other = {"persona": None} if verb == "history" else {}
    said = {
        one: str(refused(world, lambda one=one: VERBS[verb](world, memory=one, **other), NotFound))
        for one in (unknown, world.theirs)
    }
    assert said[unknown].replace(str(unknown), "…") == said[world.theirs].replace(str(world.theirs), "…")
    assert refused(world, lambda: VERBS[verb](world, memory=str(unknown), **other), NotFound).rule == "D31"


def test_a_memory_that_is_gone_is_not_found(world: World) -> None:
    for verb in ("get", "edit", "delete", "pin", "unpin"):
        error = refused(world, lambda verb=verb: VERBS[verb](world, memory=world.deleted), NotFound)
        assert error.hint


@pytest.mark.parametrize("verb", ["list", "history", "export", "persona"])
def test_a_persona_that_never_was_is_not_found_and_near_ones_are_named(world: World, verb: str) -> None:
    """D31."""
    error = refused(world, lambda: VERBS[verb](world, persona="mirra"), NotFound)
    assert error.rule == "D31"
    assert "mira" in str(error)
    assert refused(world, lambda: VERBS[verb](world, persona="Zoltan"), NotFound).hint


def test_an_empty_list_reads_as_empty(world: World) -> None:
    """D31."""
    (found,) = world.memory.list("mira", scope="personal", subject="nobody yet").lists
    assert (found.count, found.memories) == (0, [])


def test_a_turn_that_never_was_is_not_found(world: World) -> None:
    """D31."""
    error = refused(world, lambda: world.memory.history(turn="turn of nobody"), NotFound)
    assert error.rule == "D31"


def test_star_is_no_name_and_the_reason_is_said(world: World) -> None:
    """C22."""
    for verb, name in (("save", "persona"), ("reply", "persona"), ("save", "subject"), ("list", "persona")):
        error = refused(world, lambda verb=verb, name=name: VERBS[verb](world, **{name: "*"}))
        assert "every persona" in error.message


def test_history_of_nothing_is_refused(world: World) -> None:
    assert refused(world, lambda: world.memory.history()).hint


def test_waiting_for_what_never_comes_ends_with_an_error_or_false(world: World) -> None:
    never = [Position(shard=0, position=10**12)]
    assert world.memory.wait(never, timeout=0.05, mode="stale") is False
    with pytest.raises(Unavailable):
        world.memory.wait(never, timeout=0.05)


OPENING: dict[str, list[Any]] = {
    "rest_after_days": [0, -1, "many", 1.5, math.nan, []],
    "match_threshold": [math.nan, math.inf, "high"],
    "match_limit": [-1, 11],
    "list_capacity": [0, 10**9],
    "pin_capacity": [-1],
    "max_characters": [0],
    "desk_limit": [-1],
    "recent_days": [-1],
    "decay_enabled": ["perhaps", 5],
    "embedder": ["magic", "", 5, []],
    "embed_timeout": [0, -1, math.nan, math.inf, "soon"],
    "tenant": ["", "  ", "*", LONG, HALF, "a\x00b", 5, []],
    "redis_url": ["nonsense", 5],
    "no_such_setting": [1],
}


@pytest.mark.parametrize("name", OPENING)
def test_a_wrong_setting_is_refused_at_opening(world: World, name: str) -> None:
    """SPEC 6: not by the first verb, and with a hint."""
    wrong = []
    for value in OPENING[name]:
        try:
            error = refused(
                world,
                lambda value=value: open_memory(world.url, **{"embedder": "none", "background": False, name: value}),
            )
            assert name in error.message or name == "redis_url"
        except BaseException as error:  # noqa: BLE001
            wrong.append(f"{name}={value!r}: {type(error).__name__}: {str(error).splitlines()[0]:.150}")
    assert not wrong, "\n".join(wrong)


def test_an_endpoint_without_a_model_is_refused_at_opening_and_leaves_nothing_open(world: World) -> None:
    with psycopg.connect(world.url, autocommit=True) as connection:

        def connections() -> int:
            row = connection.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            ).fetchone()
            assert row is not None
            return int(row[0])

        before = connections()
        error = refused(world, lambda: open_memory(world.url, embedder="openai", background=False))
        assert "REMEMBRANCER_EMBEDDER_MODEL" in str(error)
        deadline = time.monotonic() + 10
        while connections() > before:
            assert time.monotonic() < deadline
            time.sleep(0.01)


# Anything at all

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
ANYTHING = JSON | st.sampled_from(
    [HALF, "\x00", "*", "mira", "guild", "juno", "server", "personal", "global", "person", "persona", "2026-05-12",
     LONG, 10**30, -(10**30), math.nan, math.inf, b"bytes", date(2026, 5, 12), datetime(2026, 5, 12, tzinfo=UTC),
     datetime(2026, 5, 12), uuid4(), str(uuid4()), "x" * 600, {"a"}, frozenset(["a"]), ("a", "b"), object()]  # noqa: DTZ001
)  # fmt: skip


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
@settings(
    max_examples=40, deadline=None, database=None, derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip
@given(data=st.data())
def test_no_argument_at_all_raises_anything_but_our_errors(world: World, verb: Verb, data: st.DataObject) -> None:
    """What is refused is refused with a status of the caller's fault, and writes nothing."""
    names = list(verb.arguments)
    if not names:
        return
    changed = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
    arguments = {name: data.draw(ANYTHING, label=name) for name in changed}
    if verb.name == "delete":
        arguments.setdefault("memory", world.deleted)  # the world stays as it is
    before = count_of_everything(world.memory)
    error = error_of(lambda: verb(world, **arguments))
    if error is not None:
        assert error.status < 500
        assert str(error)
        assert count_of_everything(world.memory) == before


def error_of(act: Callable[[], Any]) -> RemembrancerError | None:
    """Ours, if there is one; any other passes through."""
    try:
        act()
    except RemembrancerError as error:
        return error
    return None


def test_the_world_is_as_it_was(world: World) -> None:
    """The tests before this one have changed nothing that they should not."""
    assert world.memory.get(world.mine).text
    assert replace(world).mine == world.mine


def test_an_id_that_is_none_is_told_as_what_it_should_be(world: World) -> None:
    memory = world.memory
    for what, act in (
        ("memory", lambda: memory.get("zz")), ("message", lambda: memory.edit_message("zz", "x")),
        ("message", lambda: memory.delete_message("zz")), ("message", lambda: memory.fork("a", "b", message="zz")),
        ("summary", lambda: memory.edit_summary("a", "zz", "x")), ("document", lambda: memory.document("zz")),
    ):  # fmt: skip
        with pytest.raises(InvalidInput, match=f"'zz' is not the id of a {what}"):
            act()
