"""A past moment, by the rules of its day (U1, R12, T10, T17, D19)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest

from remembrancer.domain import events as e
from remembrancer.domain.errors import Unavailable
from remembrancer.domain.identity import ListKey
from remembrancer.domain.moment import ListThen, Moment, asked_at, folded, seen_by
from remembrancer.domain.policy import Policy
from remembrancer.domain.prompt import RENDERER, RENDERERS, in_print_order, render_late, render_prefix, renderer
from remembrancer.domain.visibility import Place

KEY = ListKey("mira", "server", "tea house")
NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
STREAM = UUID(int=7)
STAMP = {"tenant": "acme", "persona": "mira", "scope": "server", "subject": "tea house"}


def saved(n: int, text: str, **more) -> e.MemorySaved:
    return e.MemorySaved(id=uuid4(), **STAMP, memory=UUID(int=n), text=text, day=NOON.date(), **more)


def rolled_back(turn: str, *removed: int) -> e.TurnRolledBack:
    return e.TurnRolledBack(id=uuid4(), **STAMP, turn=turn, removed=tuple(UUID(int=n) for n in removed))


def recorded(*events: e.Event) -> list[e.Recorded]:
    return [e.Recorded(ev, STREAM, n, 0, n, NOON + timedelta(minutes=n)) for n, ev in enumerate(events, start=1)]


def moment(*events: e.Event, at: datetime = NOON + timedelta(hours=1), place: Place | None = None, **policy) -> Moment:
    there = place or Place("tea house", None, ())
    return Moment(at, there, Policy(**policy), "You are Mira.", [ListThen(KEY, folded(recorded(*events)))], KEY.persona)


def reply(attempt: int = 1, asked: datetime | None = NOON, **more) -> e.ReplySearched:
    return e.ReplySearched(
        id=uuid4(), tenant="acme", chat="c", attempt=attempt, persona="mira", users=(), day=NOON.date(), turn="t",
        asked_at=asked, **more,
    )  # fmt: skip


def test_r12_the_desk_is_chosen_by_the_policy_of_the_moment():
    events = [saved(1, "a"), saved(2, "b"), saved(3, "c")]
    assert moment(*events).desk() == [[UUID(int=1), UUID(int=2), UUID(int=3)]]
    assert moment(*events, desk_limit=1).desk() == [[UUID(int=3)]]


def test_t10_what_was_hidden_there_is_not_on_the_desk():
    events = [saved(1, "a", channels=("garden",)), saved(2, "b")]
    assert moment(*events).desk() == [[UUID(int=2)]]
    assert moment(*events, place=Place("tea house", "garden", ())).desk() == [[UUID(int=1), UUID(int=2)]]


def test_t17_both_blocks_are_printed_from_recorded_ids_whatever_the_rules_would_choose_now():
    seen = moment(saved(1, "a"), saved(2, "b"), desk_limit=0)
    b = (seen.lists[0], seen.lists[0].state.memories[UUID(int=2)])
    blocks = seen.blocks(seen.by_list([UUID(int=1), UUID(int=99)]), [b], renderer(1))
    assert blocks.prefix == "You are Mira.\n\n# What you remember\n\n## This server\n1. a"
    assert blocks.late == (
        "# What this message brings to mind\n- b\n\n# Recent\nNew or changed in the last 7 days: 1"
    )  # fmt: skip
    assert blocks.order == [UUID(int=1)]


def test_r12_recent_is_what_was_new_at_the_moment_of_asking():
    later = moment(saved(1, "a"), at=NOON + timedelta(days=7, minutes=1))
    assert later.blocks(later.desk(), [], renderer(1)).late == ""


def test_a_reply_was_asked_when_it_says_else_when_it_was_recorded_on_its_day():
    assert asked_at(reply(), NOON + timedelta(days=3)) == NOON
    assert asked_at(reply(asked=None), NOON + timedelta(hours=1)) == NOON + timedelta(hours=1)
    assert asked_at(reply(asked=None), NOON + timedelta(days=1)).date() == NOON.date()


def test_d19_a_new_attempt_sees_the_list_with_the_old_one_taken_back_also_where_it_recorded_the_version_before():
    events = recorded(saved(1, "a"), saved(2, "b"), rolled_back("t", 2), saved(3, "c"))

    def seen(ev: e.ReplySearched, version: int) -> int:
        return len(seen_by(ev, e.ListSeen(stream=STREAM, version=version), events))

    assert seen(reply(2), 3) == 3
    assert seen(reply(2, asked=None), 2) == 3
    assert seen(reply(1, asked=None), 2) == 2, "a first attempt takes nothing back"
    assert seen(reply(2), 2) == 2, "an undo that came later is not part of it"
    others = recorded(saved(1, "a"), rolled_back("another turn", 1))
    assert len(seen_by(reply(2, asked=None), e.ListSeen(stream=STREAM, version=1), others)) == 1


def test_every_layout_is_kept_and_one_of_tomorrow_is_not_guessed_at():
    assert set(RENDERERS) == set(range(1, RENDERER + 1))
    assert RENDERERS[RENDERER] == (in_print_order, render_prefix, render_late), "a reply prints by the present one"
    with pytest.raises(Unavailable, match="layout 99"):
        renderer(99)
