"""The search of a reply: one statement that scores every memory in play exactly, and brings the best ten (DESIGN 4)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any, NamedTuple
from uuid import UUID

from psycopg import Connection

from remembrancer.domain.decay import LeftOut, SearchedDays
from remembrancer.projections.memory_rows import digest, memory_from_row
from remembrancer.projections.queries import load_queries
from remembrancer.projections.scoring import scale_of, score_parameters
from remembrancer.projections.words import memory_terms
from remembrancer.services.answers import MemoryView
from remembrancer.services.desk_reader import Desk, Scene, view_of, visible
from remembrancer.services.embedders import Vector

_SQL = load_queries("remembrancer.services", "candidates")
_REPLY = load_queries("remembrancer.services", "reply")


class Row(NamedTuple):
    """A scored memory and its view before this reply."""

    list_no: int
    view: MemoryView
    score: float
    similarity: float
    words: float


class OtherModel(Exception):
    """Another model than the scene's serves by now: the message has to be embedded by that one."""


def find(conn: Connection[Any], scene: Scene, desk: Desk, message: str, vector: Vector) -> Sequence[Row]:
    """The best candidates of a message over all lists in play together (T2, T3), pinned ones left out (D3).

    Notes on each list of the desk who was part of this search, for the day tick (T4).

    Raises:
        OtherModel: the vector is not one of the model that serves in the snapshot of this search (D23).
    """
    assert scene.model is not None
    params = scene.parameters() | _overlay(scene, desk) | score_parameters(scale_of(scene.model), vector, message)
    params |= {"skip": desk.skip, "tenant": scene.tenant}
    best = []
    for no, memory, score, similarity, words, members, hidden, seen, serving in conn.execute(
        _SQL["candidates"], params, prepare=True, binary=True
    ):
        if memory is not None:
            best.append((no, memory, score, similarity, words))
            continue
        if serving is not None and serving != scene.model:
            raise OtherModel
        x = desk.lists[no - 1]
        x.members = members
        x.hidden = tuple(hidden or ())
        x.seen = None if seen is None else tuple(seen)
    views = _views(conn, scene, desk, [(no, memory) for no, memory, *_ in best])
    return [Row(no, views[memory], *numbers) for no, memory, *numbers in best if memory in views]


def _overlay(scene: Scene, desk: Desk) -> dict[str, Any]:
    """Unpinned memories whose rows are behind, as columns."""
    ahead = [
        (no, x, m)
        for no, x in enumerate(desk.lists, start=1)
        if x.ahead is not None
        for m in x.ahead.memories.values()
        if not m.pinned
    ]
    return {
        "o_no": [no for no, _, _ in ahead],
        "o_shard": [x.stream.bytes[0] for _, x, _ in ahead],
        "o_id": [m.id for _, _, m in ahead],
        "o_kind": [x.key.owner.kind for _, x, _ in ahead],
        "o_subject": [x.key.subject for _, x, _ in ahead],
        "o_digest": [digest(m.text) for _, _, m in ahead],
        "o_terms": ["{" + ",".join(map(str, memory_terms(m.text))) + "}" for _, _, m in ahead],
        "o_created_at": [m.created_at for _, _, m in ahead],
        "o_visible": [visible(m, scene) for _, _, m in ahead],
    }


def _views(conn: Connection[Any], scene: Scene, desk: Desk, best: Sequence[tuple[int, UUID]]) -> dict[UUID, MemoryView]:
    """The views of the best candidates: from the desk, from what is ahead of the rows, else from the rows."""
    views = {memory: desk.views[memory] for _, memory in best if memory in desk.views}
    missing: list[tuple[int, UUID]] = []
    for no, memory in best:
        x = desk.lists[no - 1]
        if memory in views:
            continue
        if x.ahead is not None and memory in x.ahead.memories:
            views[memory] = view_of(x.ahead.memories[memory], x.ahead.days, x.key, scene)
        else:
            missing.append((no, memory))
    if missing:
        params = {
            "nos": [no for no, _ in missing],
            "shards": [desk.lists[no - 1].stream.bytes[0] for no, _ in missing],
            "lists": [desk.lists[no - 1].stream for no, _ in missing],
            "ids": [memory for _, memory in missing],
        }
        rows = conn.execute(_SQL["views"], params, prepare=True, binary=True).fetchall()
        off = _left_out(conn, desk, {row[0] for row in rows})
        for no, stream, version, days, *row in rows:
            x = desk.lists[no - 1]
            if version > x.version:
                x.found_at = version
            known = SearchedDays(tuple(days), off.get(stream, {})) if x.ahead is None else x.ahead.days
            m = memory_from_row(row)
            views[m.id] = view_of(m, known, x.key, scene)
    return views


def _left_out(conn: Connection[Any], desk: Desk, nos: set[int]) -> dict[UUID, dict[date, LeftOut]]:
    """The days on which part of these lists was left out."""
    lists = [desk.lists[no - 1] for no in nos if desk.lists[no - 1].ahead is None]
    params = {"shards": [x.stream.bytes[0] for x in lists], "lists": [x.stream for x in lists]}
    off: dict[UUID, dict[date, LeftOut]] = {}
    if lists:
        for stream, day, all_but, ids in conn.execute(_REPLY["touched_days"], params, prepare=True, binary=True):
            off.setdefault(stream, {})[day] = LeftOut(frozenset(ids), all_but)
    return off
