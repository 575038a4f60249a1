"""Shelves of documents, by their own rules: given these events, when a reply or a person comes, then this."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import reduce
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remembrancer.domain import events as e
from remembrancer.domain.documents import (
    Excerpt,
    Passage,
    Shelf,
    bodies,
    check_room,
    documents_in_play,
    evolve_shelf,
    owner_of,
    passages_of,
    render_documents,
    same_document,
    sealed_by,
    within_budget,
)
from remembrancer.domain.errors import DocumentTooLarge, InvalidInput, ShelfFull
from remembrancer.domain.identity import Subject
from remembrancer.domain.policy import Policy
from remembrancer.domain.text import ERASED
from remembrancer.domain.visibility import Place

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
HERE = Place("tea house", "den", ())


def document(n: int) -> UUID:
    return UUID(int=n)


def added(n: int, **more: object) -> e.DocumentAdded:
    fields = {
        "id": UUID(int=1_000 + n), "tenant": "t", "document": document(n), "owner_kind": "persona", "owner": "mira",
        "name": f"{n}.md", "digest": f"digest {n}", "media_type": "text/markdown", "bytes": 9, "characters": 9,
        "passages": 2,
    }  # fmt: skip
    return e.DocumentAdded(**fields | more)  # type: ignore[arg-type]


def removed(n: int) -> e.DocumentRemoved:
    return e.DocumentRemoved(
        id=UUID(int=2_000 + n), tenant="t", document=document(n), owner_kind="persona", owner="mira"
    )


def shelf(*events: e.Event) -> Shelf:
    recorded = [e.Recorded(ev, UUID(int=9), n, 0, n, NOON) for n, ev in enumerate(events, start=1)]
    return reduce(evolve_shelf, recorded, Shelf())


def in_play(s: Shelf, place: Place = HERE) -> list[UUID]:
    return [d.id for d in documents_in_play([s], place)]


def test_what_was_added_and_not_removed_is_on_the_shelf():
    s = shelf(added(1), added(2), removed(1), added(3))
    assert in_play(s) == [document(2), document(3)]
    assert s.passages == 4


def test_the_same_bytes_are_the_same_document_until_it_is_removed():
    found = same_document(shelf(added(1)), "digest 1")
    assert found is not None
    assert found.id == document(1)
    assert same_document(shelf(added(1)), "digest 2") is None
    assert same_document(shelf(added(1), removed(1)), "digest 1") is None


def test_an_erased_document_is_not_there_and_equals_no_other():  # D24
    s = shelf(added(1, name=ERASED, digest=ERASED, user="juno"), added(2))
    assert in_play(s) == [document(2)]
    assert same_document(s, ERASED) is None


def test_channels_hide_a_document_elsewhere():  # T10
    s = shelf(added(1, channels=("den",)), added(2), added(3, passages=0))
    assert in_play(s) == [document(1), document(2)]
    assert in_play(s, Place("tea house", "hall", ())) == [document(2)]
    assert in_play(s, Place(None, None, ())) == [document(2)]


def test_a_shelf_has_room_for_so_many_passages():
    policy, s = Policy(document_passages=5), shelf(added(1), added(2))
    check_room(s, 1, policy)
    with pytest.raises(ShelfFull, match="2 passages, and there are 4 already; at most 5"):
        check_room(s, 2, policy)
    with pytest.raises(DocumentTooLarge, match="6 passages; at most 5"):
        check_room(Shelf(), 6, policy)


def test_a_document_has_one_owner_and_the_key_of_whoever_added_it():  # D24
    assert owner_of("mira", None) == Subject("persona", "mira")
    assert owner_of(None, "guild") == Subject("server", "guild")
    for wrong in (("mira", "guild"), (None, None)):
        with pytest.raises(InvalidInput):
            owner_of(*wrong)
    owner = Subject("server", "guild")
    assert sealed_by(owner, None) == (owner,)
    assert sealed_by(owner, "juno") == (owner, Subject("user", "juno"))


@given(st.lists(st.tuples(st.none() | st.integers(1, 99), st.none() | st.text(), st.text(min_size=1)), max_size=250))
def test_passages_come_out_of_their_events_as_they_went_in(pieces: list[tuple[int | None, str | None, str]]):
    passages = [Passage(n, *piece) for n, piece in enumerate(pieces, start=1)]
    parts = [
        e.PassagesAdded(id=UUID(int=n), tenant="t", document=document(1), owner_kind="server", owner="guild", body=body)
        for n, body in enumerate(bodies(passages))
    ]
    assert [p for part in parts for p in passages_of(part)] == passages
    assert [passages_of(part.model_copy(update={"body": ERASED})) for part in parts] == [()] * len(parts)


@given(st.lists(st.integers(1, 300), max_size=20), st.integers(0, 10), st.integers(0, 1_000))
def test_the_best_that_fit_are_sent_and_nobody_is_left_out_who_would_fit(tokens: list[int], limit: int, budget: int):
    chosen = within_budget(tokens, limit=limit, budget=budget)
    assert chosen == sorted(set(chosen))
    assert len(chosen) <= limit
    assert sum(tokens[n] for n in chosen) <= budget
    for n in set(range(len(tokens))) - set(chosen):
        before = [c for c in chosen if c < n]
        assert len(before) == limit or sum(tokens[c] for c in before) + tokens[n] > budget


def test_the_late_block_says_where_a_passage_stands():  # T17
    assert render_documents([]) == ""
    place = Passage(1, 3, "Rules › Cats", "text").place
    assert render_documents([Excerpt("a\nb.md", place, "One.\nTwo."), Excerpt("c.txt", "", "Three.")]) == (
        "# From documents\n\n## a b.md, page 3, Rules › Cats\nOne.\nTwo.\n\n## c.txt\nThree."
    )
