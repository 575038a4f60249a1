"""What happened, in plain sentences (U1, C30): every event of a list tells its story, and names each memory once."""

from __future__ import annotations

import pytest

from remembrancer.domain import events as e
from remembrancer.domain.events import EVENTS
from remembrancer.domain.story import LAST, tell
from tests.domain.support import DAY, happening, m, matched, rolled_back, saved, searched
from tests.domain.test_events import filled

OF_LISTS = [name for name in sorted(EVENTS) if issubclass(EVENTS[name], e.ListEvent)]


@pytest.mark.parametrize("name", OF_LISTS)
def test_every_event_of_a_list_tells_something(name: str):  # U1, C30
    lines = list(tell(filled(EVENTS[name])))
    assert lines
    assert all(line.sentence.endswith(".") and "None" not in line.sentence for line in lines)


@pytest.mark.parametrize(
    ("actor", "who"), [("persona", "The persona"), ("person", "A person"), ("import", "An import")]
)
def test_it_says_who(actor: e.Actor, who: str):  # C30, D21
    (line,) = tell(saved(1, actor=actor)[0])
    assert line.sentence.startswith(who)


def test_an_edit_shows_the_text_before_and_after():  # C10, C30
    edit = happening(e.MemoryEdited, DAY, memory=m(1), text="Porto.", before="Lisbon.", protects=True)[0]
    (line,) = tell(edit)
    assert (line.before, line.after) == ("Lisbon.", "Porto.")
    assert "protected" in line.sentence


def test_each_match_is_told_with_its_numbers_and_whether_it_was_added():  # U1
    lines = list(tell(matched(1, 2)[0]))
    assert [line.memory for line in lines] == [m(1), m(2)]
    assert all("0.900" in line.sentence and "desk" in line.sentence for line in lines)
    recalled = e.Match(memory=m(1), score=0.5, similarity=0.4, words=0.1, rank=1, recalled=True)
    (line,) = tell(happening(e.MemoriesMatched, DAY, matches=[recalled])[0])
    assert "added" in line.sentence


def test_an_eviction_says_for_whom_and_why():  # U1, T15
    (line,) = tell(happening(e.MemoryEvicted, DAY, memory=m(1), for_memory=m(2), reason="never matched")[0])
    assert str(m(2)) in line.sentence
    assert "never matched" in line.sentence
    assert (line.before, line.after) == (LAST, None)


def test_an_undo_tells_what_went_what_came_back_and_what_stays_and_why():  # U2, D14
    undo = rolled_back("t", removed=[m(1)], restored=[m(2)], unmatched={m(3): DAY}, kept=[(m(4), "it is pinned")])[0]
    lines = {line.memory: line for line in tell(undo)}
    assert set(lines) == {m(n) for n in (1, 2, 3, 4)}
    assert "it is pinned" in lines[m(4)].sentence


def test_a_day_tick_is_told_of_the_list_and_of_no_memory():  # T4
    (line,) = tell(searched(DAY)[0])
    assert line.memory is None
    assert "2026-05-04" in line.sentence
