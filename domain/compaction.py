"""What is summarised next: a chunk of messages, summaries to merge, a long-term one to condense (R4, R6, D15, D16)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal
from uuid import UUID

from remembrancer.domain.policy import Policy
from remembrancer.domain.summaries import Summary
from remembrancer.domain.transcript import Message


@dataclass(frozen=True, slots=True)
class Chunk:
    """Messages that become a recent summary."""

    messages: Sequence[Message]


@dataclass(frozen=True, slots=True)
class Merge:
    """Summaries, oldest first, that become one of this tier; a long-term one that is there already is the first."""

    sources: Sequence[Summary]
    tier: Literal["merged", "long_term"]


@dataclass(frozen=True, slots=True)
class Condense:
    """A long-term summary that is too long."""

    source: Summary


Step = Chunk | Merge | Condense
Sources = frozenset[tuple[UUID, str]]


def next_step(
    standing: Sequence[Summary],
    uncovered: Sequence[Message],
    bound: int,
    policy: Policy,
    size: int,
    *,
    protected: Collection[int] = (),
    resting: Collection[Sources] = (),
    to_the_end: bool = False,
) -> Step | None:
    """What is to be done first, if anything.

    Args:
        standing: the summaries as they stand, oldest first.
        uncovered: the oldest messages that are in none of them, in order.
        bound: from this number on nothing is summarised: the live window.
        protected: numbers of messages that are in no chunk, wherever they are: those of the last two turns (D15).
        size: about so many tokens a long-term summary has (R3).
        resting: what failed lately, by its sources (`sources_of`): it holds nothing else up.
        to_the_end: the last messages before the bound are summarised, too, be they ever so few: a rebuild ends there.
    """
    for step in _of_summaries(standing, uncovered, policy, size):
        if sources_of(step) not in resting:
            return step
    old = [m for m in uncovered if m.n < bound]
    return _chunk(standing, old, protected, bound, policy, to_the_end)


def sources_of(step: Step) -> Sources:
    """The summaries that a step makes one of, as they read; of a chunk none."""
    match step:
        case Merge():
            return frozenset((s.id, s.text) for s in step.sources)
        case Condense():
            return frozenset([(step.source.id, step.source.text)])
    return frozenset()


def _of_summaries(
    standing: Sequence[Summary], uncovered: Sequence[Message], policy: Policy, size: int
) -> Iterator[Step]:
    """What can be done with the summaries that there are, the most urgent first."""
    for s in standing:
        if s.tier == "long_term" and s.tokens > policy.condense_over * size:
            yield Condense(s)
    for run, followed in _runs(standing, uncovered):
        if run[0].tier == "recent" and len(run) >= policy.recent_summaries:
            yield Merge(run[: policy.recent_summaries], "merged")
        elif run[0].tier == "recent" and followed:  # what was made anew in the middle
            yield Merge(run, "merged")
    runs = [run for run, _ in _runs(standing, uncovered)]
    for left, run in pairwise([[], *runs]):
        if run[0].tier != "merged" or len(run) < policy.merged_summaries:
            continue
        if not left and run[0] == standing[0]:
            yield Merge(run[: policy.merged_summaries], "long_term")
        if left and left[-1].tier == "long_term" and not _between(left[-1], run[0], uncovered):
            yield Merge([left[-1], *run[: policy.merged_summaries]], "long_term")


def _runs(standing: Sequence[Summary], uncovered: Sequence[Message]) -> list[tuple[list[Summary], bool]]:
    """Summaries of one tier that lie side by side, and whether another tier follows side by side."""
    runs: list[tuple[list[Summary], bool]] = []
    for s in standing:
        beside = bool(runs) and not _between(runs[-1][0][-1], s, uncovered)
        if beside and runs[-1][0][-1].tier == s.tier:
            runs[-1][0].append(s)
            continue
        if beside:
            runs[-1] = (runs[-1][0], True)
        runs.append(([s], False))
    return runs


def _between(a: Summary, b: Summary, uncovered: Sequence[Message]) -> bool:
    return any(a.last < m.n < b.first for m in uncovered)


def _chunk(
    standing: Sequence[Summary],
    old: Sequence[Message],
    protected: Collection[int],
    bound: int,
    policy: Policy,
    to_the_end: bool,
) -> Chunk | None:
    """The oldest messages that are enough for a chunk; fewer only where summaries follow, which leave no more."""
    for run, followed in _stretches(standing, old, protected, bound):
        if len(run) >= policy.chunk_messages or followed or to_the_end:
            return Chunk(fitting(run[: policy.chunk_messages], policy.model_context // 2))
    return None


def _stretches(
    standing: Sequence[Summary], old: Sequence[Message], protected: Collection[int], bound: int
) -> list[tuple[list[Message], bool]]:
    """Messages with neither a summary nor a protected message in between, and whether a summary comes next."""
    stops = [*((s.first, True) for s in standing), *((n, False) for n in protected), (bound, False)]
    stops.sort(key=lambda stop: (stop[0], not stop[1]))
    numbers = [n for n, _ in stops]
    stretches: list[tuple[list[Message], int]] = []
    for m in old:
        if m.n in protected:
            continue
        stop = bisect_left(numbers, m.n)
        if stretches and stretches[-1][1] == stop:
            stretches[-1][0].append(m)
        else:
            stretches.append(([m], stop))
    return [(run, stops[stop][1]) for run, stop in stretches]


def fitting(messages: Sequence[Message], tokens: int) -> Sequence[Message]:
    """As many as a model can read at once; one at least, which is read in part where it is longer than that."""
    taken: list[Message] = []
    for m in messages:
        tokens -= m.tokens
        if taken and tokens < 0:
            break
        taken.append(m)
    return taken


def same_sources(
    step: Step,
    standing: Sequence[Summary],
    uncovered: Sequence[Message],
    bound: int,
    protected: Collection[int] = (),
) -> bool:
    """Is what a step was decided on still so? Asked under the version at which its event is written (D15, D17)."""
    if isinstance(step, Chunk):
        now = {m.id: m for m in uncovered}
        numbers = [m.n for m in step.messages]
        inside = [m.n for m in uncovered if numbers[0] <= m.n <= numbers[-1]]
        return (
            inside == numbers
            and numbers[-1] < bound
            and not any(n in protected for n in numbers)
            and all(now[m.id].text == m.text for m in step.messages)
        )  # fmt: skip
    sources = step.sources if isinstance(step, Merge) else [step.source]
    present: dict[UUID, str] = {s.id: s.text for s in standing}
    return all(present.get(s.id) == s.text for s in sources) and not any(
        _between(a, b, uncovered) for a, b in pairwise(sources)
    )
