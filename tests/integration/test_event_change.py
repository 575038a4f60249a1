"""An event gets another form: what was stored stays readable, and two versions work side by side.

How to do it: docs/changing-events.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import orjson
import psycopg
import pytest

from remembrancer.domain.events import SubjectErased
from remembrancer.domain.identity import ListKey, list_stream
from remembrancer.services.store.append import ASSIGN, Call, Placed, append
from tests.samples.make import FOLDER
from tests.support.other_version import Changes, OtherVersion, Refused, copy_with, other_version
from tests.support.read_model import assert_read_model_is_a_fresh_fold, caught_up
from tests.support.world import PERSONA, START, USER, World

TOMORROW: Changes = {
    "domain/events.py": [
        # A new form: what it says is needed, so its version rises, and the old form gets a way up.
        (
            '''sent whole with every reply (R15)."""

    memory: UUID
    day: date
''',
            '''sent whole with every reply (R15)."""

    version: ClassVar[int] = 2

    memory: UUID
    pinned_on: date
''',
        ),
        (
            '''UPCASTERS: dict[tuple[str, int], Callable[[dict[str, Any]], dict[str, Any]]] = {
''',
            '''def _with_its_new_name(pinned: dict[str, Any]) -> dict[str, Any]:
    """`MemoryPinned` 1 -> 2: its day is called `pinned_on`."""
    return {"pinned_on" if name == "day" else name: value for name, value in pinned.items()}


UPCASTERS: dict[tuple[str, int], Callable[[dict[str, Any]], dict[str, Any]]] = {
    ("MemoryPinned", 1): _with_its_new_name,
''',
        ),
        # A field more that nobody has to know: no new version.
        (
            '''will; a person's leaves a tombstone (D13)."""

    memory: UUID
''',
            '''will; a person's leaves a tombstone (D13)."""

    memory: UUID
    why: str = "asked to"
''',
        ),
    ],
    "domain/persona_memory.py": [
        ("MemoryPinned(**ctx.stamp(), memory=m.id, day=", "MemoryPinned(**ctx.stamp(), memory=m.id, pinned_on="),
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def tomorrow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The code of the next version."""
    return copy_with(tmp_path_factory.mktemp("tomorrow"), TOMORROW)


def save(version: OtherVersion, server: str, text: str) -> str:
    memory: str = version.do("save", PERSONA, scope="server", subject=server, text=text)["memory"]["id"]
    return memory


def texts(version: OtherVersion, server: str) -> list[str]:
    (one,) = version.do("list", PERSONA, scope="server", subject=server)["lists"]
    return sorted(m["text"] for m in one["memories"])


def until(condition: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


PROJECTIONS = ("memory", "archive", "history", "conversation", "documents", "summary_work")


def test_old_and_new_work_side_by_side_and_a_new_form_waits_for_the_new_one(database_url: str, tomorrow: Path) -> None:
    """A rolling restart: the old version answers for every list but those that have an event of the new form. It leaves
    them aside, and the new version takes them up again by itself."""

    def parked() -> set[tuple[str, str]]:
        with psycopg.connect(database_url) as conn:
            query = "SELECT projection, split_part(error, ':', 1) FROM remembrancer.parked"
            return set(conn.execute(query).fetchall())

    with other_version(None, database_url, background=True) as old, other_version(tomorrow, database_url) as new:
        assert str(tomorrow) in new.where
        assert str(tomorrow) not in old.where
        pinned_by_old, untouched = save(old, "one", "pinned by the old one"), save(old, "two", "of another list")
        old.do("pin", pinned_by_old)
        assert new.do("get", pinned_by_old)["pinned"]
        pinned_by_new = save(new, "three", "pinned by the new one")
        new.do("pin", pinned_by_new)
        assert new.do("get", pinned_by_new)["pinned"]

        with pytest.raises(Refused, match="UnknownEvent"):
            old.do("get", pinned_by_new)
        with pytest.raises(Refused, match="UnknownEvent"):
            save(old, "three", "into the same list")
        until(lambda: len(parked()) == len(PROJECTIONS))
        assert parked() == {(name, "UnknownEvent") for name in PROJECTIONS}
        assert old.do("get", untouched)["text"] == "of another list"
        save(old, "two", "goes on meanwhile")
        assert old.do("reply", PERSONA, message="hello", users=[USER], server="two")["prefix"]["memories"]
        new.do("unpin", pinned_by_old)
        assert not old.do("get", pinned_by_old)["pinned"]

    with other_version(tomorrow, database_url, background=True) as new:
        until(lambda: not parked())
        assert new.do("get", pinned_by_new)["pinned"]
        assert texts(new, "two") == ["goes on meanwhile", "of another list"]
        told = new.do("history", persona=PERSONA, scope="server", subject="three")["entries"]
        assert [entry["event"] for entry in told] == ["MemorySaved", "MemoryPinned"]


def test_a_field_more_troubles_nobody(database_url: str, tomorrow: Path) -> None:
    with other_version(None, database_url, background=True) as old, other_version(tomorrow, database_url) as new:
        by_new, by_old = save(new, "one", "deleted by the new one"), save(old, "one", "deleted by the old one")
        new.do("delete", by_new)
        old.do("delete", by_old)
        assert texts(old, "one") == texts(new, "one") == []
        told = old.do("history", persona=PERSONA, scope="server", subject="one")["entries"]
        assert [entry["event"] for entry in told].count("MemoryDeleted") == 2
    with psycopg.connect(database_url) as conn:
        assert not conn.execute("SELECT * FROM remembrancer.parked").fetchall()


def test_an_erasure_of_the_first_form_is_read_as_one_of_an_unknown_list(database_url: str) -> None:
    """The example that is in the code: `SubjectErased` did not say in version 1 which list it erased."""
    stored = orjson.loads((FOLDER / "SubjectErased.v1.json").read_bytes())["stored"]
    assert (stored["$"]["v"], SubjectErased.version) == (1, 2)
    stream = list_stream("default", ListKey(PERSONA, "personal", USER))
    with World(database_url) as world:
        world.save("Juno collects stamps", scope="personal")
        state = orjson.dumps(stored | {"id": str(uuid4()), "tenant": "default"})
        with world.memory.engine.store.database.connection() as conn:
            assert append(conn, [Placed(stream.bytes[0], stream, ASSIGN, "SubjectErased", state)], Call(START))
        (event,) = world.events(SubjectErased)
        assert (event.persona, event.scope, event.subject) == ("", None, None)
        assert world.texts("personal") == set()
        caught_up(world.memory)
        assert_read_model_is_a_fresh_fold(world.memory)
