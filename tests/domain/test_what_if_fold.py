"""The same history under other numbers, as the fold sees it (U3); and the order in which it takes facts.

Two lists in two shards, all of it at moments that several events share.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from itertools import permutations
from typing import Any
from uuid import UUID

import pytest

from remembrancer.domain import events as e
from remembrancer.domain.in_order import PATIENCE, InOrder
from remembrancer.domain.outcome import changes
from remembrancer.domain.policy import Policy
from remembrancer.domain.two_courses import TwoCourses
from remembrancer.domain.what_if import WhatIf
from tests.domain.support import DAY, KEY, PERSONAL, days_after, happening, m, noon

HERE, THERE, CHAT = (UUID(int=n << 120) for n in (3, 9, 6))
"""The server's list, the personal one, the chat: none of them in the order of what happens."""
KEYS = {HERE: KEY, THERE: PERSONAL}


class Told:
    """Events of three streams, with the versions that they would have."""

    def __init__(self) -> None:
        self.events: list[e.Recorded] = []
        self.version = dict.fromkeys((HERE, THERE, CHAT), 0)
        self.there: list[int] = []
        """What is on the desk: all that there is."""
        self.ahead: dict[UUID, timedelta] = {}
        """Shards whose moments are ahead of the others'."""

    def add(self, stream: UUID, event: e.Event, at: datetime) -> None:
        self.version[stream] += 1
        at += self.ahead.get(stream, timedelta())
        self.events.append(e.Recorded(event, stream, self.version[stream], stream.bytes[0], len(self.events), at))

    def saved(self, stream: UUID, number: int, day: date = DAY, at: datetime | None = None, /, **fields: Any) -> Told:
        body = {"memory": m(number), "text": f"Fact {number}.", "actor": "person"} | KEYS[stream]._asdict() | fields
        self.add(stream, happening(e.MemorySaved, day, **body)[0], at or noon(day))
        self.there.append(number)
        return self

    def reply(
        self, turn: str, scores: dict[int, float], day: date = DAY, *, attempt: int = 1, ticks: Sequence[UUID] = (),
        limit: int = 1, reads: Mapping[UUID, int] | None = None, search: str = "ok",
    ) -> Told:  # fmt: skip
        """Candidates with their scores; odd numbers are in the one list, even ones in the other.

        Args:
            reads: the versions that it read, if not those of now.
        """
        best = sorted(scores, key=lambda n: -scores[n])
        found = [
            e.Candidate(
                memory=m(n),
                score=scores[n],
                similarity=0,
                words=0,
                rank=rank,
                matched=rank <= limit,
                recalled=rank <= limit and n not in self.there,
            )
            for rank, n in enumerate(best, 1)
        ]
        reads = {s: self.version[s] for s in KEYS if self.version[s]} if reads is None else reads
        seen = tuple(e.ListSeen(stream=s, version=version) for s, version in reads.items())
        record: dict[str, Any] = {
            "chat": "c", "attempt": attempt, "persona": "mira", "users": ("juno",), "server": "tea house", "day": day,
            "lists": seen, "candidates": tuple(found), "threshold": 0.5, "model": "words", "turn": turn,
            "search": search, "actor": "persona", "prefix": tuple(m(n) for n in self.there),
        }  # fmt: skip
        if attempt > 1:
            self.add(CHAT, happening(e.TurnRegenerated, day, chat="c", attempt=attempt, turn=turn)[0], noon(day))
        self.add(CHAT, happening(e.ReplySearched, day, **record)[0], noon(day))
        for stream, odd in ((HERE, 1), (THERE, 0)):
            whose = {"turn": turn, "actor": "persona"} | KEYS[stream]._asdict()
            if stream in ticks:
                self.add(stream, happening(e.ListSearched, day, **whose)[0], noon(day))
            here = tuple(
                e.Match(**c.model_dump(exclude={"matched"})) for c in found if c.matched and c.memory.int % 2 == odd
            )
            if here:
                self.add(stream, happening(e.MemoriesMatched, day, matches=here, **whose)[0], noon(day))
        return self

    def undone(self, stream: UUID, turn: str, day: date = DAY, **fields: Any) -> Told:
        body = {"turn": turn} | KEYS[stream]._asdict() | fields
        self.there = [n for n in self.there if m(n) not in fields.get("removed", ())]
        self.add(stream, happening(e.TurnRolledBack, day, **body)[0], noon(day))
        return self

    def by_moment(self, shards: Sequence[UUID] = (HERE, CHAT, THERE)) -> list[e.Recorded]:
        """As a database gives them: by moment, then shard by shard."""
        return sorted(self.events, key=lambda r: (r.recorded_at, shards.index(r.stream), r.position))


def fold(
    events: Sequence[e.Recorded],
    *,
    apart: bool = False,
    policy_of: Callable[[Any], Policy] = lambda _: Policy(match_limit=1),
    **numbers: Any,
) -> WhatIf:
    course = WhatIf(numbers, policy_of=policy_of, model="words", counts=lambda _: True, tokens=len)
    if apart:
        course.lists |= {stream: TwoCourses.apart(key) for stream, key in KEYS.items()}
    course.know(KEYS)
    order = InOrder(course.lists.keys())
    for r in [*order.feed(events), *order.flush()]:
        course.take(r)
    course.end()
    return course


def then(course: WhatIf, stream: UUID) -> dict[int, int]:
    """The counters that would be."""
    s = course.lists[stream].then
    return {k.int: x.unused_days(s.days) for k, x in s.memories.items()}


def in_every_order(told: Told) -> list[list[e.Recorded]]:
    return [told.by_moment(shards) for shards in permutations((HERE, CHAT, THERE))]


BOTH = (HERE, THERE)


def two_lists() -> Told:
    """A fact in each list, two days of small talk."""
    told = Told().saved(HERE, 1).saved(THERE, 2)
    for n in (1, 2):
        told.reply(f"day {n}", {1: 0.1, 2: 0.1}, days_after(DAY, n), limit=0, ticks=BOTH)
    return told


@pytest.mark.parametrize("number", range(6))
def test_t3_a_larger_limit_reaches_the_other_list_whatever_shard_comes_first(number: int):
    told = two_lists().reply("t", {1: 0.9, 2: 0.8}, days_after(DAY, 3), ticks=BOTH)
    events = in_every_order(told)[number]
    assert (then(fold(events, match_limit=1), HERE), then(fold(events, match_limit=1), THERE)) == ({1: 0}, {2: 3})
    course = fold(events, match_limit=2)
    assert (then(course, HERE), then(course, THERE)) == ({1: 0}, {2: 0})
    assert (course.now.matches, course.then.matches) == (1, 2)
    assert course.lists[HERE].one, "nothing is different there"


@pytest.mark.parametrize("number", range(6))
def test_d14_a_turn_that_comes_again_loses_uses_that_no_list_tells_of(number: int):
    """The first attempt would have matched in the other list, the second would not."""
    told = two_lists()
    day = days_after(DAY, 3)
    told.reply("t", {1: 0.9, 2: 0.8}, day, ticks=BOTH).undone(HERE, "t", day, unmatched={m(1): DAY})
    told.reply("t", {1: 0.9, 2: 0.1}, day, attempt=2)
    course = fold(in_every_order(told)[number], match_limit=2)
    assert (then(course, HERE), then(course, THERE)) == ({1: 0}, {2: 3})


def test_d14_an_undo_in_one_list_takes_back_the_use_that_the_turn_would_have_had_in_another():
    told = two_lists().reply("t", {1: 0.9, 2: 0.8}, days_after(DAY, 3), ticks=BOTH)
    told.undone(HERE, "t", days_after(DAY, 4), unmatched={m(1): DAY})
    course = fold(told.by_moment(), match_limit=2)
    assert (then(course, HERE), then(course, THERE)) == ({1: 3}, {2: 3})


def test_d14_an_undo_gives_no_memory_an_earlier_use_than_it_would_have_had():
    """The undone match would not have been one; the match before it would."""
    told = two_lists().reply("s", {1: 0.9}, days_after(DAY, 3), ticks=BOTH)
    told.reply("t", {1: 0.6}, days_after(DAY, 4), ticks=BOTH)
    told.undone(HERE, "t", days_after(DAY, 5), unmatched={m(1): DAY})
    assert then(fold(told.by_moment(), match_threshold=0.8), HERE) == {1: 1}


@pytest.mark.parametrize("number", range(6))
@pytest.mark.parametrize("reads_back", [False, True], ids=["names the version before", "names the version after"])
@pytest.mark.parametrize("later", [3, 40], ids=["the same day", "weeks later"])
@pytest.mark.parametrize("ahead", [0, 2], ids=["clocks agree", "a clock is ahead"])
def test_d19_a_turn_that_comes_again_has_no_desk_with_what_its_old_attempt_saved(
    number: int, reads_back: bool, later: int, ahead: int
):
    """Whatever shard comes first; a record names the version of the list without what takes it back, or with it."""
    told = two_lists()
    told.ahead[HERE] = timedelta(seconds=ahead)
    day = days_after(DAY, later)
    told.reply("t", {1: 0.9}, days_after(DAY, 3))
    told.saved(HERE, 3, day, noon(day) - timedelta(minutes=1) if later > 3 else None, turn="t", actor="persona")
    before = {s: told.version[s] for s in BOTH}
    told.undone(HERE, "t", day, removed=(m(3),), unmatched={m(1): DAY})
    told.reply("t", {2: 0.9}, day, attempt=2, reads=None if reads_back else before)
    told.reply("u", {1: 0.1}, days_after(day, 1), limit=0)
    course = fold(in_every_order(told)[number], desk_limit=40)
    assert course.now.desk == course.then.desk == 5 * 2
    assert course.now == course.then


@pytest.mark.parametrize("number", range(6))
@pytest.mark.parametrize("ahead", [0, 2], ids=["clocks agree", "a clock is ahead"])
def test_d2_a_turn_that_comes_again_has_the_desk_from_before_its_own_tick(number: int, ahead: int):
    """Its day is the fourth that nothing was used on: with it the memories rest, after this reply."""
    told = two_lists()
    told.ahead[CHAT] = timedelta(seconds=ahead)
    told.reply("t", {1: 0.1, 2: 0.1}, days_after(DAY, 3), limit=0, ticks=BOTH)
    told.reply("t", {1: 0.1, 2: 0.1}, days_after(DAY, 4), attempt=2, limit=0, ticks=BOTH)
    course = fold(in_every_order(told)[number], rest_after_days=4)
    assert course.then.desk == 4 * 2
    told.reply("u", {1: 0.1}, days_after(DAY, 5), limit=0)
    assert fold(in_every_order(told)[number], rest_after_days=4).then.desk == 4 * 2


@pytest.mark.parametrize("number", range(6))
def test_what_a_person_saves_after_a_reply_is_on_the_next_desk_whatever_shard_comes_first(number: int):
    told = two_lists().reply("t", {1: 0.1}, days_after(DAY, 3), limit=0).saved(HERE, 3, days_after(DAY, 3))
    told.reply("u", {1: 0.1}, days_after(DAY, 3), limit=0)
    course = fold(in_every_order(told)[number], desk_limit=40)
    assert course.now == course.then
    assert course.then.desk == 3 * 2 + 3


def test_t4_the_second_reply_of_a_day_has_the_desk_after_the_tick_of_the_first():
    told = two_lists().reply("t", {1: 0.1}, days_after(DAY, 3), limit=0, ticks=BOTH)
    told.reply("u", {1: 0.1}, days_after(DAY, 3), limit=0)
    assert fold(told.by_moment(), rest_after_days=3).then.desk == 3 * 2


def test_a_desk_is_of_the_size_that_was_in_force_on_its_day():
    told = two_lists().reply("t", {1: 0.1}, days_after(DAY, 2), limit=0)
    sizes = {1: 2, 2: 1}
    course = fold(
        told.by_moment(),
        policy_of=lambda at: Policy(match_limit=1, desk_limit=sizes[(at.date() - DAY).days] if at.date() > DAY else 9),
        rest_after_days=9,
    )
    assert course.then.desk == 2 + 1 + 1


def test_tokens_are_of_what_is_said_at_the_time_not_of_how_much():
    long = "Fact 5 has many more words than that."
    one = Told().saved(HERE, 1, text="Short.").reply("t", {1: 0.1}, limit=0)
    other = Told().saved(HERE, 1, text=long).reply("u", {1: 0.1}, limit=0)
    both = Told().saved(HERE, 1, text="Short.").reply("t", {1: 0.1}, limit=0)
    body = {"memory": m(1), "text": long, "before": "Short.", "actor": "person"} | KEY._asdict()
    both.add(HERE, happening(e.MemoryEdited, DAY, **body)[0], noon(DAY) + timedelta(minutes=1))
    later = days_after(DAY, 1)
    both.reply("u", {1: 0.1}, later, limit=0)
    sent = [fold(told.by_moment(), desk_limit=9) for told in (one, other, both)]
    assert sent[0].now.tokens + sent[1].now.tokens == sent[2].now.tokens == sent[2].then.tokens


@pytest.mark.parametrize("number", range(6))
def test_t3_a_smaller_limit_takes_the_match_of_the_second(number: int):
    told = two_lists().reply("t", {1: 0.9, 2: 0.8}, days_after(DAY, 3), ticks=BOTH, limit=2)
    course = fold(in_every_order(told)[number], match_limit=1)
    assert (then(course, HERE), then(course, THERE)) == ({1: 0}, {2: 3})
    assert (course.now.matches, course.then.matches) == (2, 1)


@pytest.mark.parametrize("number", range(6))
def test_d19_a_turn_that_comes_again_loses_uses_though_it_did_nothing_to_take_back(number: int):
    """The first attempt matched nothing, and would have; the second would not."""
    told = two_lists().reply("t", {1: 0.9}, days_after(DAY, 3), limit=0, ticks=BOTH)
    assert then(fold(in_every_order(told)[number], match_limit=1), HERE) == {1: 0}
    told.reply("t", {1: 0.1}, days_after(DAY, 3), limit=0, attempt=2)
    assert then(fold(in_every_order(told)[number], match_limit=1), HERE) == {1: 3}


def test_d14_a_rewind_takes_back_the_uses_of_turns_that_did_nothing():
    told = two_lists().reply("t", {1: 0.9}, days_after(DAY, 3), limit=0, ticks=BOTH)
    told.add(CHAT, happening(e.ChatRewound, DAY, chat="c", to="day 2", turns=("t",))[0], noon(days_after(DAY, 4)))
    assert then(fold(told.by_moment(), match_limit=1), HERE) == {1: 3}


def test_t14_a_turn_without_a_search_would_have_forgotten_nobody():
    told = Told().saved(HERE, 1, actor="persona")
    for n in (1, 2):
        told.reply(f"day {n}", {1: 0.1}, days_after(DAY, n), limit=0, ticks=[HERE])
    day = days_after(DAY, 3)
    told.reply("t", {}, day, search="unavailable").saved(HERE, 3, day, turn="t", actor="persona")
    course = fold(told.by_moment(), list_capacity=1, rest_after_days=2)
    assert (then(course, HERE), course.then.evictions, course.then.refused) == ({1: 2}, 0, 1)


def test_t12_d14_what_a_turn_would_have_forgotten_is_back_when_the_turn_is_undone():
    told = Told().saved(HERE, 1, actor="persona")
    for n in (1, 2):
        told.reply(f"day {n}", {1: 0.1}, days_after(DAY, n), limit=0, ticks=[HERE])
    day = days_after(DAY, 3)
    told.reply("t", {1: 0.1}, day, limit=0).saved(HERE, 3, day, turn="t", actor="persona")
    course = fold(told.by_moment(), list_capacity=1, rest_after_days=2)
    assert (then(course, HERE), course.then.evictions, course.then.refused) == ({3: 0}, 1, 0)
    told.undone(HERE, "t", days_after(DAY, 4), removed=(m(3),))
    assert then(fold(told.by_moment(), list_capacity=1, rest_after_days=2), HERE) == {1: 2}
    awake = fold(told.by_moment()[:-1], list_capacity=1, rest_after_days=3)
    assert (then(awake, HERE), awake.then.evictions, awake.then.refused) == ({1: 2}, 0, 1), "nobody rests (T14)"


@pytest.mark.parametrize("number", range(6))
def test_d19_what_takes_back_an_old_attempt_leaves_the_uses_of_the_new_one_elsewhere(number: int):
    """The new attempt reads one of the two lists."""
    day = days_after(DAY, 3)
    told = two_lists().reply("t", {1: 0.9, 2: 0.8}, day, ticks=BOTH)
    told.undone(HERE, "t", day, unmatched={m(1): DAY})
    told.reply("t", {2: 0.8}, day, attempt=2, limit=0, reads={THERE: told.version[THERE]})
    course = fold(in_every_order(told)[number], match_limit=2)
    assert (then(course, HERE), then(course, THERE)) == ({1: 3}, {2: 0})


def test_under_its_own_numbers_both_courses_are_one_state():
    told = (
        two_lists().reply("t", {1: 0.9, 2: 0.8}, days_after(DAY, 3), ticks=BOTH).undone(HERE, "t", days_after(DAY, 4))
    )
    course = fold(told.by_moment(), match_limit=1, match_threshold=0.5, rest_after_days=7, list_capacity=100)
    assert all(x.one for x in course.lists.values())
    assert course.now == course.then
    today = days_after(DAY, 4)
    assert [c for x in course.lists.values() for c in changes(x, Policy(), Policy(), today)] == []


@pytest.mark.parametrize("number", range(6))
def test_under_its_own_numbers_nothing_changes_where_each_course_is_folded_for_itself(number: int):
    """What the numbers decide is decided again for the other course, and comes to what was recorded."""
    day = days_after(DAY, 3)
    told = two_lists().reply("t", {1: 0.9, 2: 0.8}, day, ticks=BOTH).saved(HERE, 3, day, turn="t", actor="persona")
    told.undone(HERE, "t", day, removed=(m(3),), unmatched={m(1): DAY}).reply("t", {2: 0.8}, day, attempt=2)
    told.reply("u", {1: 0.6, 2: 0.3}, days_after(DAY, 4), ticks=BOTH)
    own = {"match_limit": 1, "match_threshold": 0.5, "rest_after_days": 7, "list_capacity": 100}
    course = fold(in_every_order(told)[number], apart=True, **own)
    assert course.now == course.then
    assert (course.now.matches, course.now.desk) == (3, 5 * 2)
    for x in course.lists.values():
        assert not x.one
        assert x.now == x.then
    assert (then(course, HERE), then(course, THERE)) == ({1: 0}, {2: 1})


def test_a_match_whose_reply_never_comes_stands_and_holds_up_no_more_than_a_while():
    told = two_lists().reply("t", {1: 0.9}, days_after(DAY, 3), ticks=BOTH).saved(HERE, 3, days_after(DAY, 3))
    events = [r for r in told.by_moment() if not (isinstance(r.event, e.ReplySearched) and r.event.turn == "t")]
    order = InOrder(KEYS.keys())
    came = list(order.feed(events))
    assert not any(isinstance(r.event, e.MemoriesMatched) for r in came), "it waits"
    late = Told().saved(THERE, 4).events[0]
    later = e.Recorded(late.event, THERE, 9, 9, 99, noon(days_after(DAY, 3)) + PATIENCE + timedelta(seconds=1))
    came += order.feed([later])
    assert [r.version for r in came if r.stream == HERE] == list(range(1, told.version[HERE] + 1))
    course = fold(events, match_limit=2)
    assert then(course, HERE) == {1: 0, 3: 0}
    assert course.unknown["without_record"] == 1


def test_events_of_a_stream_keep_their_order_and_none_is_lost_and_replies_stand_where_they_read():
    told = two_lists().reply("t", {1: 0.9, 2: 0.8}, days_after(DAY, 3), ticks=BOTH)
    for events in in_every_order(told):
        order = InOrder(KEYS.keys())
        came = [*order.feed(events), *order.flush()]
        assert sorted(r.position for r in came) == sorted(r.position for r in events)
        for stream in (HERE, THERE, CHAT):
            versions = [r.version for r in came if r.stream == stream]
            assert versions == sorted(versions)
        for n, r in enumerate(came):
            if isinstance(r.event, e.ReplySearched):
                for seen in r.event.lists:
                    before = [one.version for one in came[:n] if one.stream == seen.stream]
                    assert before == list(range(1, seen.version + 1))
