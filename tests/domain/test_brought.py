"""Which messages of a file came before: a chat elsewhere goes on, is mended, and is imported again and again (D21)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import NamedTuple
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from remembrancer.domain import events as e
from remembrancer.domain.brought import Brought, Given, align, between, brought_by, places_of, ref_of, sources_of
from remembrancer.domain.common import in_common

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


class Here:
    """What imports brought, as their rules say it is."""

    def __init__(self) -> None:
        self.brought: list[Brought] = []

    def bring(self, file: list[Given]) -> tuple[int, int]:
        """How many are new, and how many were worded anew."""
        before = sorted(self.brought, key=lambda b: b.place)
        aligned = align(before, file)
        found = aligned.before if aligned.same or not before else [None] * len(file)
        assert aligned.same or not before, "these are all of one chat"
        used = [j for j in found if j is not None]
        assert len(used) == len(set(used)), "each is one"
        posted = edited = 0
        for g, j, place in zip(file, found, places_of(before, found), strict=True):
            if j is None:
                posted += 1
                n = len(self.brought) + 1
                self.brought.append(Brought(n, UUID(int=n), "s", place, g.role, g.text, g.said_at))
            elif before[j].text != g.text:
                edited += 1
                assert before[j].role == g.role
                at = self.brought.index(before[j])
                self.brought[at] = replace(before[j], text=g.text)
        return posted, edited

    def texts(self) -> list[str]:
        return [b.text for b in sorted(self.brought, key=lambda b: b.place)]


class Change(NamedTuple):
    """Something that happens to the chat elsewhere, at about so far into it."""

    what: str
    where: float


CHANGES = st.lists(
    st.builds(Change, st.sampled_from(["say", "say", "insert", "delete", "word", "swipe"]), st.floats(0, 0.999)),
    max_size=8,
)


def said(n: int, *, dated: bool, text: str | None = None) -> Given:
    return Given(
        "persona" if n % 2 == 0 else "user", text or f"message {n}", NOON + timedelta(minutes=n) if dated else None
    )


@given(imports=st.lists(CHANGES, min_size=1, max_size=4), dated=st.booleans())
@example(imports=[[Change("swipe", 0), Change("say", 0), Change("word", 0.875)]], dated=True)
def test_d21_what_a_chat_elsewhere_has_is_here_once_and_in_its_order(imports, dated):
    here, n = Here(), 12
    file = [said(k, dated=dated) for k in range(n)]
    assert here.bring(file) == (12, 0)
    for changes in imports:
        new = worded = swiped = 0
        for what, where in changes:
            at = int(where * len(file))
            n += 1
            match what:
                case "say":
                    file.append(said(n, dated=dated))
                    new += 1
                case "insert" if dated:
                    file.insert(at, said(n, dated=True))
                    new += 1
                case "delete" if dated and len(file) > 8:
                    del file[at]
                case "word" if dated:
                    file[at] = file[at]._replace(text=f"anew {n}")
                    worded += 1
                case "swipe" if dated:
                    g = file[-1]
                    file[-1] = Given(g.role, f"swipe {n}", NOON + timedelta(days=n), [*g.others, g.text, f"swipe {n}"])
                    swiped += 1
        posted, edited = here.bring(file)
        assert posted <= new + min(swiped, worded), "one that was worded anew and then swiped is another one"
        assert edited <= worded + swiped + new
        mine = [g.text for g in file]
        assert [text for text in here.texts() if text in set(mine)] == mine
        assert here.bring(file) == (0, 0), "the same file again brings nothing"


@given(
    texts=st.lists(st.sampled_from(["ok", "yes", "hm", "no"]), min_size=1, max_size=12),
    more=st.lists(st.sampled_from(["ok", "yes"]), max_size=6),
)
def test_d21_what_is_said_again_and_again_without_a_date_comes_as_often_as_it_was_said(texts, more):
    here = Here()
    here.bring([Given("user", text, None) for text in texts])
    file = [Given("user", text, None) for text in [*texts, *more]]
    assert here.bring(file) == (len(more), 0)
    assert here.texts() == [*texts, *more]
    assert here.bring(file) == (0, 0)


PLACES = st.lists(st.integers(-3, 3), min_size=1, max_size=4).map(tuple)


@given(a=PLACES, b=PLACES)
def test_between_two_places_is_always_room(a, b):
    assert between(None, a) < a < between(a, None)
    if a < b:
        assert a < between(a, b) < b


def brought(*texts: str, dated: bool = False) -> list[Brought]:
    given_ = [said(n, dated=dated, text=text) for n, text in enumerate(texts)]
    return [Brought(n, UUID(int=n), "s", (n,), g.role, g.text, g.said_at) for n, g in enumerate(given_)]


def file(*texts: str, dated: bool = False) -> list[Given]:
    return [said(n, dated=dated, text=text) for n, text in enumerate(texts)]


def test_d21_a_common_greeting_makes_no_one_chat_of_two():
    assert not align(brought("Welcome!", "a", "b"), file("Welcome!", "c", "d")).same
    assert not align(brought("Welcome!", "a"), file("Welcome!", "c")).same
    assert align(brought("Welcome!", "a", "b"), file("Welcome!", "a", "c")).same
    assert align(brought(*"abcdefgh", dated=True), file(*"abijklmn", dated=True)).same, "two moments are no chance"


@pytest.mark.parametrize("dated", [True, False])
def test_d21_the_greeting_that_was_swiped_is_the_same_message(dated: bool):
    at = NOON if dated else None
    now = [Given("persona", "Hi!", at and at + timedelta(hours=1), ["Welcome!", "Hi!"]), Given("user", "x", at)]
    found = align([Brought(1, UUID(int=1), "s", (0,), "persona", "Welcome!", at)], now)
    assert (found.same, found.before) == (True, [0, None])


def test_d21_as_it_was_brought_is_what_files_said_and_nobody_else():
    def posted(n: int, **more: object) -> e.MessagePosted:
        kept = {"role": "user", "author": "juno", "text": f"{n}", "tokens": 1, "ref": f"0f3a#{n}", "actor": "import"}
        return e.MessagePosted(id=UUID(int=n), tenant="t", chat="tea", message=UUID(int=n), **kept | more)

    def edited(n: int, text: str, actor: str) -> e.MessageEdited:
        return e.MessageEdited(
            id=UUID(int=n), tenant="t", chat="tea", message=UUID(int=n), author="juno", text=text, tokens=1, actor=actor
        )

    events = [
        posted(0), posted(1), posted(2, ref="0f3a#0.-1"), posted(3, actor="person"), posted(4, ref=None),
        posted(5, ref="0f3a#\u00b2"), edited(0, "there", "import"), edited(1, "here", "person"),
        edited(0, "here, too", "person"), e.MessageDeleted(id=UUID(int=9), tenant="t", chat="tea", message=UUID(int=1)),
    ]  # fmt: skip
    read = [e.Recorded(ev, UUID(int=1), n, 0, n, NOON) for n, ev in enumerate(events, start=1)]
    (found,) = sources_of(brought_by(lambda *_: read, UUID(int=1), 99).values()).values()
    assert [(b.text, b.place, b.n) for b in found] == [("there", (0,), 1), ("2", (0, -1), 3), ("1", (1,), 2)]
    assert ref_of("0f3a", found[1].place) == "0f3a#0.-1"


def test_d21_a_word_deleted_there_and_said_again_later_without_a_date_is_said_again():
    here = Here()
    here.bring([Given("user", text, None) for text in ["ok", "a", "b", "ok", "c"]])
    later = [Given("user", text, None) for text in ["a", "b", "ok", "c", "ok", "ok"]]
    assert here.bring(later) == (2, 0)
    assert here.texts() == ["ok", "a", "b", "ok", "c", "ok", "ok"]
    assert here.bring(later) == (0, 0)


WORDS = st.lists(st.sampled_from("abcde"), max_size=12)


@given(a=WORDS, b=WORDS)
def test_what_two_have_in_common_is_equal_and_in_order(a, b):
    found = in_common(a, b)
    assert all(a[i] == b[j] for i, j in found)
    assert all(i < k and j < m for (i, j), (k, m) in pairwise(found))
    assert in_common(a, a) == [(i, i) for i in range(len(a))]


@given(whole=WORDS, data=st.data())
def test_all_of_what_is_left_of_something_is_found_in_it(whole, data):
    part = [w for w in whole if data.draw(st.booleans())]
    assert [i for i, _ in in_common(part, whole)] == list(range(len(part)))
    assert [j for _, j in in_common(whole, part)] == list(range(len(part)))


def test_d21_a_chat_exported_with_dates_is_the_one_without():
    found = align(brought(*"abcd"), file(*"abcd", dated=True))
    assert (found.same, found.before) == (True, [0, 1, 2, 3])


def test_d21_a_message_deleted_there_and_one_said_later_are_two():
    now = file(*"abcdef", dated=True)
    assert align(brought(*"abcde", dated=True), [now[0], *now[2:]]).before == [0, 2, 3, 4, None]


def test_a_long_chat_of_one_word_takes_no_time():
    now = [Given("user", "ok", None)] * 50_000
    before = [Brought(n, UUID(int=n), "s", (n,), "user", "ok", None) for n in range(1, 50_000)]
    assert align(before, [Given("user", "well", None), *now]).before[-1] == 49_998
