"""What SQL chooses is what the domain chooses, whatever the tables have seen of the events so far.

Random histories of three lists are written as events, with late days, hidden memories in both forms, and pins, clears
and deletions in between; now and then the projector takes some of it. Then a reply is read three times: as the tables
are, after some more of it, and after all of it. All three, and the domain's own functions over the folded events, must
agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from itertools import count
from typing import Any
from uuid import UUID

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from remembrancer.domain.desk import OnDesk, choose_desk
from remembrancer.domain.identity import ListKey
from remembrancer.domain.persona_memory import MemoryList
from remembrancer.domain.policy import Policy
from remembrancer.domain.prompt import Line, render_prefix
from remembrancer.domain.visibility import Place, is_visible
from remembrancer.services import candidates
from remembrancer.services.desk_reader import Scene, read_desk, view_of
from tests.support.book import DARK, KEYS, Book, acts, days, days_of, returns, saves, searches, story, texts, unit
from tests.support.world import World

stories = st.tuples(
    story(saves, days_of(0, 2), 12),
    story(st.one_of(acts, searches), days, 15),
    story(st.one_of(searches, searches, acts, returns), days, 10),
)
scenes = st.fixed_dictionaries(
    {
        "channel": st.sampled_from([None, "a", "b"]),
        "tags": st.sampled_from([(), ("a",), ("b",), ("a", "b")]),
        "today": days_of(5, 9) | days,
        "policy": st.builds(
            Policy,
            rest_after_days=st.sampled_from([1, 2, 3, 5, 99, 99, 99]),  # counters show where memories are on the desk
            desk_limit=st.sampled_from([0, 1, 2, 4, 99, 99, 99]),
            decay_enabled=st.sampled_from([True, True, True, False]),
        ),
        "message": texts,
    }
)
tenants = count()


def scene_of(
    book: Book, channel: str | None, tags: tuple[str, ...], today: date, policy: Policy, message: str
) -> Scene:
    embedder = book.world.memory.engine.deps.embedder
    assert embedder is not None
    now = datetime.combine(today, time(12), UTC)
    streams = [book.stream(key) for key in KEYS]
    return Scene(KEYS, streams, Place("tea house", channel, tags), now, policy, book.tenant, embedder.model, "mira")


@dataclass
class Read:
    """What a reply makes of the lists: all of it that could differ."""

    prefix: str
    desk: list[list[UUID]]
    views: dict[UUID, dict[str, Any]]
    unused: dict[UUID, int]
    found: dict[UUID, float]
    order: list[UUID]
    searched: list[set[UUID]]
    members: list[int]
    ticks: list[bool]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Read):
            return NotImplemented
        same = self.prefix == other.prefix and self.desk == other.desk and self.views == other.views
        same = same and self.unused == other.unused
        rest = self.searched == other.searched and self.members == other.members
        near = self.found.keys() == other.found.keys() and all(
            abs(s - other.found[i]) < 2e-3 for i, s in self.found.items()
        )
        return same and rest and near


def by_sql(book: Book, scene: Scene, message: str, lists: dict[ListKey, MemoryList]) -> Read:
    """As `Recall.reply` reads it."""

    def work(conn: Any) -> Read:
        desk = read_desk(conn, book.store, scene)
        rows = candidates.find(conn, scene, desk, message, unit(book.world, message))
        text = render_prefix("", list(zip(scene.keys, desk.order, strict=True)), desk.lines)
        members = [{k for k, m in lists[x.key].memories.items() if not m.pinned} for x in desk.lists]
        return Read(
            text,
            desk.order,
            {i: v.model_dump() for i, v in desk.views.items()},
            {i: v.unused_days for i, v in desk.views.items()} | {r.view.id: r.view.unused_days for r in rows},
            {r.view.id: r.similarity for r in rows},
            [r.view.id for r in rows],
            [{k for k in here if k not in x.out} for here, x in zip(members, desk.lists, strict=True)],
            [x.members for x in desk.lists],
            [bool(x.members) and x.ticks(scene.today) for x in desk.lists],
        )

    return book.store.database.run(work)


def by_domain(book: Book, scene: Scene, message: str, lists: dict[ListKey, MemoryList]) -> Read:
    """As the rules say it."""
    seen = {
        key: {
            k: m
            for k, m in lists[key].memories.items()
            if is_visible(tags=m.tags, channels=m.channels, until=m.until, place=scene.place, today=scene.today)
        }
        for key in KEYS
    }
    may_be = [
        [
            OnDesk(m.id, m.updated_at, m.pinned)
            for m in seen[key].values()
            if m.state(lists[key].days, scene.policy, scene.today) == "active"
        ]
        for key in KEYS
    ]
    order = choose_desk(may_be, scene.policy.desk_limit)
    searched = {key: {k: m for k, m in seen[key].items() if not m.pinned and DARK not in m.text} for key in KEYS}
    on_desk = {i: seen[key][i] for key, ids in zip(KEYS, order, strict=True) for i in ids}
    q = unit(book.world, message)
    found = {k: float(unit(book.world, m.text) @ q) for key in KEYS for k, m in searched[key].items()}
    owner = {k: key for key in KEYS for k in seen[key]}
    lines = {i: Line(m.text, m.until, m.pinned) for i, m in on_desk.items()}
    members = [[m for m in lists[key].memories.values() if not m.pinned] for key in KEYS]
    return Read(
        render_prefix("", list(zip(KEYS, order, strict=True)), lines),
        order,
        {
            m.id: view_of(m, lists[owner[m.id]].days, owner[m.id], scene, on_desk=True).model_dump()
            for m in on_desk.values()
        },
        {i: seen[owner[i]][i].unused_days(lists[owner[i]].days) for i in {*on_desk, *found}},
        found,
        [],
        [set(searched[key]) for key in KEYS],
        [len(one) for one in members],
        [
            bool(one)
            and (
                scene.today not in lists[key].days
                or any(m.id in searched[key] and m.id in lists[key].days.off.get(scene.today, ()) for m in one)
            )
            for key, one in zip(KEYS, members, strict=True)
        ],
    )


@settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(
    told=stories,
    more=st.tuples(st.integers(1, 6), st.integers(0, 4)),
    scene=scenes,
)
def test_t4_t5_t10_t17_d1_d2_d28_r12_sql_reads_what_the_domain_says_however_far_the_tables_are(
    world: World, told: Any, more: tuple[int, int], scene: dict[str, Any]
):
    book = Book(world, f"tenant {next(tenants)}")
    for happened, some_more in told:
        book.write(happened)
        book.project(*some_more)
    at = scene_of(book, **scene)
    lists = book.lists()
    said = by_domain(book, at, scene["message"], lists)
    first = by_sql(book, at, scene["message"], lists)
    assert first == said, "as the tables are"
    book.project(*more)
    second = by_sql(book, at, scene["message"], lists)
    assert second == said, "after some more"
    book.project(500, 9)
    third = by_sql(book, at, scene["message"], lists)
    assert third == said, "after all"
    assert first.order == second.order == third.order
    assert first.ticks == second.ticks == third.ticks
    assert all(does or not has_to for does, has_to in zip(first.ticks, said.ticks, strict=True)), (
        "one too many is harmless"
    )
