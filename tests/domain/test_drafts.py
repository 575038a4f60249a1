"""What code refuses of a model's drafts, and memories that arrive pinned (R13, D9, D10, D12, D20; C9, C18)."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest

from remembrancer.domain import events as e
from remembrancer.domain.arrivals import save_pinned
from remembrancer.domain.drafts import Draft, Heard, fault, introduced, passing_day
from remembrancer.domain.errors import NotAllowed, PinsFull, TextTooLong
from remembrancer.domain.identity import ListKey
from remembrancer.domain.persona_memory import Context, MemoryList, NewMemory, with_events
from remembrancer.domain.policy import Policy
from tests.domain.support import DAY

STREAM, NOON = UUID(int=7), datetime(2026, 5, 4, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "See you tomorrow at nine", "Juno and Mira meet tomorrow at nine", "Juno is away next week",
        "They talk again in three days", "Ana came two weeks ago", "Wir sehen uns morgen um neun", "Bis morgen, Juno",
        "Juno kommt nächsten Freitag", "On se voit demain", "Nos vemos mañana a las nueve", "Até amanhã, Juno",
        "明日の九時に会う", "TONIGHT Juno sings", "dans deux semaines Juno part",
    ],
)  # fmt: skip
def test_c18_d20_a_day_that_passes_is_no_lasting_fact(text: str):
    assert passing_day(text) is not None
    assert fault(Draft(text), 500) is not None


@pytest.mark.parametrize(
    "text",
    [
        "Juno and Mira meet on 4 May 2026 at nine", "Juno and Mira meet tomorrow, 2026-05-04, at nine",
        "Am 4. Mai 2026, also morgen um neun", "Juno greets with Guten Morgen", "Juno may come in spring",
        "Juno's band is called Yesterday's Toast 12.05.1999", "Juno lives in two houses", "5月4日、明日の九時に会う",
    ],
)  # fmt: skip
def test_c18_d20_one_that_stays_is(text: str):
    assert passing_day(text) is None


@pytest.mark.parametrize(
    ("said", "name", "claim"),
    [
        ("my friend Ana hates coffee", "Ana", "{} hates coffee"),
        ("My best friend Ana hates coffee", "Ana", "{} hates coffee"),
        ("meine beste Freundin Ana hasst Kaffee", "Ana", "{} hasst Kaffee"),
        ("mi amiga Ana odia el café", "Ana", "{} odia el café"),
        ("minha amiga Ana odeia café", "Ana", "{} odeia café"),
        ("mon amie Ana déteste le café", "Ana", "{} déteste le café"),
        ("yesterday her brother Rui called", "Rui", "{} called on 3 May 2026"),
    ],
)
def test_c9_what_is_said_of_a_friend_is_not_claimed_of_who_tells_it(said: str, name: str, claim: str):
    heard = [Heard("juno", said)]
    assert introduced(said) == [name]
    assert fault(Draft(claim.format("Juno"), "Juno"), 500, heard) is not None
    assert fault(Draft(claim.format(name), name), 500, heard) is None
    assert fault(Draft(claim.format(f"Juno's friend {name}"), "Juno"), 500, heard) is None
    more = [Heard("juno", f"{said}, and I keep bees; they like it")]
    assert fault(Draft("Juno keeps bees", "Juno"), 500, more) is None


def test_c9_a_draft_names_whom_it_is_a_fact_of():
    assert fault(Draft("hates coffee", "Ana"), 500) is not None
    assert fault(Draft("Anabel hates coffee", "Ana"), 500) is not None
    assert fault(Draft("ana hates coffee", "Ana"), 500) is None


@pytest.mark.parametrize(("text", "good"), [("", False), ("  ", False), ("x" * 500, True), ("x" * 501, False)])
def test_d10_a_draft_is_never_cut(text: str, good: bool):
    assert (fault(Draft(text), 500) is None) is good


# -- pinned, all or none


def context(actor: str = "person", **policy: int) -> Context:
    ids = iter(range(1_000, 2_000))
    return Context(
        "default", ListKey("mira", "personal", "juno"), actor, DAY, Policy(**policy), lambda: UUID(int=next(ids))
    )  # fmt: skip


def arriving(s: MemoryList, *texts: str, **how: object):
    ids = [UUID(int=100 + s.pinned + s.unpinned + n) for n in range(len(texts))]
    return save_pinned(s, [NewMemory(t) for t in texts], context(**how), ids)


def after(s: MemoryList, *texts: str, **how: object) -> MemoryList:
    return with_events(s, arriving(s, *texts, **how)[0], STREAM, 0, NOON)


def test_r13_they_arrive_pinned_and_protected():
    state = after(MemoryList(), "a", "b")
    assert [(m.text, m.pinned, m.protected) for m in state.memories.values()] == [("a", True, True), ("b", True, True)]


def test_d9_all_or_none_where_pins_are_short():
    state = after(MemoryList(), "a", "b", pin_capacity=3)
    with pytest.raises(PinsFull, match=r"2 memories would be pinned, and 1 of 3 .*\u201ca\u201d.*\u201cb\u201d"):
        arriving(state, "c", "d", pin_capacity=3)
    assert after(state, "c", pin_capacity=3).pinned == 3


def test_d12_what_is_there_is_pinned_instead_of_doubled_and_takes_no_second_pin():
    state = after(MemoryList(), "a")
    events, arrived = arriving(state, "A ", "b", "B", pin_capacity=2)
    assert [one.duplicate for one in arrived] == [True, False, True]
    assert arrived[1].memory == arrived[2].memory
    assert [type(ev) for ev in events] == [e.MemoryAffirmed, e.MemorySaved]


def test_r15_only_a_person_does_and_d10_none_is_too_long():
    for actor in ("persona", "deep", "system"):
        with pytest.raises(NotAllowed):
            arriving(MemoryList(), "a", actor=actor)
    with pytest.raises(TextTooLong):
        arriving(MemoryList(), "a", "x" * 501)
