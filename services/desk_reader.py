"""Reads the desk of a reply: rows of the read model, plus the events that are ahead of them (DESIGN 4).

So a reply sees every acknowledged write, with the projector stopped, too. Usually there is nothing ahead and two
statements are all; where there is, the memories that those events name are folded by the aggregate's own `evolve` and
take the place of their rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, NamedTuple
from uuid import UUID

from psycopg import Connection

from remembrancer.domain.decay import NOBODY, LeftOut, SearchedDays
from remembrancer.domain.desk import OnDesk, choose_desk, is_recent
from remembrancer.domain.events import ListEvent, MemoriesCleared, Recorded, SubjectErased
from remembrancer.domain.identity import ListKey
from remembrancer.domain.memory import Memory
from remembrancer.domain.persona_memory import MemoryList, evolve
from remembrancer.domain.policy import Policy
from remembrancer.domain.prompt import Line, whose
from remembrancer.domain.visibility import Place, is_visible
from remembrancer.projections.memory import ANEW, memories_of
from remembrancer.projections.memory_rows import memory_from_row
from remembrancer.projections.queries import load_queries
from remembrancer.services import views
from remembrancer.services.answers import MemoryView
from remembrancer.services.store import EventStore

_SQL = load_queries("remembrancer.services", "reply")


class Scene(NamedTuple):
    """What a reply is given in: the lists in play in their fixed order, the place, the moment, the rules, the model."""

    keys: Sequence[ListKey]
    streams: Sequence[UUID]
    place: Place
    now: datetime
    policy: Policy
    tenant: str
    model: str | None
    persona: str
    """Who speaks."""

    @property
    def today(self) -> date:
        """The UTC day."""
        return self.now.date()

    def parameters(self) -> dict[str, Any]:
        """The parameters that the statements of a reply share."""
        return {
            "shards": [s.bytes[0] for s in self.streams],
            "lists": list(self.streams),
            "kinds": [key.owner.kind for key in self.keys],
            "subjects": [key.subject for key in self.keys],
            "today": self.today,
            "channel": self.place.channel,
            "tags": list(self.place.tags),
            "model": self.model,
        }


@dataclass(slots=True)
class ListNow:
    """A list in play, as of this reply."""

    key: ListKey
    stream: UUID
    version: int = 0
    searched_today: bool = False
    out_today: LeftOut = NOBODY
    ahead: MemoryList | None = None
    """Days, and the memories that events ahead of the rows name, where there are such events."""
    touched: set[UUID] = field(default_factory=set)
    members: int = 0
    """Unpinned memories: an empty list is not searched. Known after the search, like `hidden` and `seen`."""
    hidden: tuple[UUID, ...] = ()
    seen: tuple[UUID, ...] | None = None
    found_at: int | None = None
    """The version at which the search read what is not on the desk, where that is a later one."""

    @property
    def out(self) -> LeftOut:
        """Who is in no search of this reply."""
        return LeftOut(frozenset(self.hidden)) if self.seen is None else LeftOut(frozenset(self.seen), True)

    def ticks(self, today: date) -> bool:
        """Does this search have to be recorded (T4)? Only if the day is new, or somebody left out so far is seen."""
        if not self.searched_today:
            return True
        return self.out_today.both(self.out) != self.out_today


@dataclass(slots=True)
class Desk:
    """The desk of D2 and what the search needs to know."""

    lists: list[ListNow]
    speaker: str = ""
    order: list[list[UUID]] = field(default_factory=list)
    views: dict[UUID, MemoryView] = field(default_factory=dict)

    @property
    def ids(self) -> set[UUID]:
        """Everything on the desk."""
        return {i for ids in self.order for i in ids}

    @property
    def lines(self) -> dict[UUID, Line]:
        """What is printed of each memory on the desk."""
        return {i: line_of(v, self.speaker) for i, v in self.views.items()}

    @property
    def skip(self) -> list[UUID]:
        """Memories whose rows are behind."""
        return [i for x in self.lists for i in x.touched]


def read_desk(
    conn: Connection[Any], store: EventStore, scene: Scene, taken_back: Mapping[UUID, MemoryList] | None = None
) -> Desk:
    """The desk as of one moment: every statement sees the same snapshot.

    Args:
        taken_back: lists with an earlier attempt of this turn taken back, which replaces what is stored (D19).
    """
    conn.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    try:
        desk = _lists(conn, store, scene)
        _put_taken_back(conn, desk, taken_back or {}, scene.today)
        _desk_rows(conn, desk, scene)
    finally:
        conn.execute("COMMIT")
    return desk


def _lists(conn: Connection[Any], store: EventStore, scene: Scene) -> Desk:
    lists = [ListNow(key, stream) for key, stream in zip(scene.keys, scene.streams, strict=True)]
    behind: list[tuple[ListNow, int, list[date]]] = []
    for no, folded, head, today, all_but, ids, days in _run(conn, "lists", scene.parameters()):
        x = lists[no - 1]
        x.version, x.searched_today = head, today
        if ids is not None:
            x.out_today = LeftOut(frozenset(ids), all_but)
        if days is not None:
            behind.append((x, folded, days))
    desk = Desk(lists, scene.persona)
    if behind:
        _fold_ahead(conn, store, behind, scene.today)
    return desk


def _fold_ahead(
    conn: Connection[Any], store: EventStore, behind: Sequence[tuple[ListNow, int, list[date]]], today: date
) -> None:
    """Fold the events that are ahead of the rows, on the memories that they name."""
    rows = store.select_streams(conn, [(x.stream, folded) for x, folded, _ in behind])
    tails: dict[UUID, list[Recorded]] = defaultdict(list)
    for r in store.decode(rows, conn):
        tails[r.stream].append(r)
    anew = {x.stream for x, _, _ in behind if any(isinstance(r.event, ANEW) for r in tails[x.stream])}
    shards, streams, wanted = [], [], []
    for x, _, _ in behind:
        everything = x.stream in anew or any(
            isinstance(r.event, (MemoriesCleared, SubjectErased)) for r in tails[x.stream]
        )
        named = {m for r in tails[x.stream] for m in memories_of(r.event)}
        for memory in [None] if everything else named:
            shards.append(x.stream.bytes[0])
            streams.append(x.stream)
            wanted.append(memory)
    known: dict[UUID, dict[UUID, Memory]] = defaultdict(dict)
    if wanted:
        for row in _run(conn, "touched", {"shards": shards, "lists": streams, "ids": wanted}):
            known[row[0]][row[1]] = memory_from_row(row[1:])
    off: dict[UUID, dict[date, LeftOut]] = defaultdict(dict)
    at = {"shards": [x.stream.bytes[0] for x, _, _ in behind], "lists": [x.stream for x, _, _ in behind]}
    for stream, day, all_but, ids in _run(conn, "touched_days", at):
        off[stream][day] = LeftOut(frozenset(ids), all_but)
    for x, _, days in behind:
        if x.stream in anew:
            state = _fold_anew(conn, store, x)
        else:
            state = MemoryList(memories=known[x.stream], days=SearchedDays(tuple(days), off[x.stream]))
            for r in tails[x.stream]:
                state = evolve(state, r)
        x.ahead = state
        if today in state.days:
            x.searched_today, x.out_today = True, state.days.off.get(today, NOBODY)
        x.touched = (
            set(known[x.stream])
            | set(state.memories)
            | {m for r in tails[x.stream] if isinstance(r.event, ListEvent) for m in memories_of(r.event)}
        )


def _put_taken_back(conn: Connection[Any], desk: Desk, taken_back: Mapping[UUID, MemoryList], today: date) -> None:
    for x in desk.lists:
        if (state := taken_back.get(x.stream)) is None:
            continue
        at = {"shards": [x.stream.bytes[0]], "lists": [x.stream], "ids": [None]}
        x.touched = {row[1] for row in _run(conn, "touched", at)} | set(state.memories) | set(state.gone)
        x.ahead = state
        x.searched_today = today in state.days
        x.out_today = state.days.off.get(today, NOBODY)


def _fold_anew(conn: Connection[Any], store: EventStore, x: ListNow) -> MemoryList:
    """The whole list from its events: what an undo or a restore brings back is in no row."""
    state = MemoryList()
    for r in store.decode(store.select_streams(conn, [(x.stream, 0)]), conn):
        state = evolve(state, r)
    return state


def _run(conn: Connection[Any], name: str, params: dict[str, Any]) -> list[tuple[Any, ...]]:
    return conn.execute(_SQL[name], params, prepare=True, binary=True).fetchall()


def _desk_rows(conn: Connection[Any], desk: Desk, scene: Scene) -> None:
    """Choose the desk: the statement brings what may be on it, the domain chooses (R12)."""
    p = scene.policy
    params = scene.parameters() | _days_ahead(desk)
    params |= {
        "skip": desk.skip,
        "decay": p.decay_enabled,
        "rest_after_days": p.rest_after_days,
        "desk_limit": p.desk_limit,
    }
    may_be: list[list[OnDesk]] = [[] for _ in desk.lists]
    for row in _run(conn, "desk", params):
        no, memory, text, unused, pinned, protected, actor, created, updated, matched, until, tags, channels = row
        key = desk.lists[no - 1].key
        may_be[no - 1].append(OnDesk(memory, updated, pinned))
        desk.views[memory] = MemoryView.model_construct(
            id=memory, persona=key.persona, scope=key.scope, subject=key.subject, text=text, state="active",
            on_desk=True, until=until, unused_days=unused, pinned=pinned, protected=protected, actor=actor,
            created_at=created, updated_at=updated, last_matched_at=matched,
            recent=is_recent(updated, scene.now, p.recent_days), tags=tuple(tags), channels=tuple(channels),
        )  # fmt: skip
    for no, x in enumerate(desk.lists):
        if x.ahead is None:
            continue
        for m in x.ahead.memories.values():
            if visible(m, scene) and m.state(x.ahead.days, p, scene.today) == "active":
                may_be[no].append(OnDesk(m.id, m.updated_at, m.pinned))
                desk.views[m.id] = view_of(m, x.ahead.days, x.key, scene, on_desk=True)
    desk.order = choose_desk(may_be, p.desk_limit)
    chosen = desk.ids
    desk.views = {i: v for i, v in desk.views.items() if i in chosen}


def _days_ahead(desk: Desk) -> dict[str, Any]:
    """The searched days of lists with events ahead of their rows, and who was left out on them, as columns."""
    ahead = [(no, x.ahead.days.off) for no, x in enumerate(desk.lists, start=1) if x.ahead is not None]
    off = [(no, day, out) for no, days in ahead for day, out in days.items()]
    return {
        "days": [None if x.ahead is None else _array(x.ahead.days.days) for x in desk.lists],
        "off_no": [no for no, _, _ in off],
        "off_day": [day for _, day, _ in off],
        "off_all_but": [out.all_but for _, _, out in off],
        "off_ids": [_array(out.ids) for _, _, out in off],
    }


def _array(values: Iterable[object]) -> str:
    """An array of dates or ids as PostgreSQL writes it: arrays of arrays have no other way in."""
    return "{" + ",".join(map(str, values)) + "}"


def line_of(v: MemoryView, speaker: str) -> Line:
    """What is printed of a memory."""
    return Line(v.text, v.until, v.pinned, whose(v.persona, speaker))


def visible(m: Memory, scene: Scene) -> bool:
    """May it be sent, searched and aged in this reply (T10, D28)?"""
    return is_visible(tags=m.tags, channels=m.channels, until=m.until, place=scene.place, today=scene.today)


def view_of(m: Memory, days: SearchedDays, key: ListKey, scene: Scene, *, on_desk: bool = False) -> MemoryView:
    """The view of a memory as this reply finds it (D2)."""
    return views.view_of(m, days, key, scene.policy, scene.now, on_desk=on_desk)
