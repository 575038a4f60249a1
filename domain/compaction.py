"""What is summarised next: a chunk of messages, summaries to merge, a long-term one to condense (R4, R6, D15, D16)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
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
NONE_STUCK: Mapping[UUID, str] = MappingProxyType({})


def next_step(
    standing: Sequence[Summary],
    uncovered: Sequence[Message],
    bound: int,
    policy: Policy,
    size: int,
    *,
    to_the_end: bool = False,
    protected: Collection[int] = (),
    stuck: Mapping[UUID, str] = NONE_STUCK,
) -> Step | None:
    """What is to be done first, if anything.

    Args:
        standing: the summaries as they stand, oldest first.
        uncovered: the oldest messages that are in none of them, in order.
        bound: from this number on nothing is summarised: the live window.
        protected: messages of the last two turns, which are in no summary, be they ever so long ago (D15).
        size: about so many tokens a long-term summary has (R3).
        stuck: long-term summaries that could not be condensed, as they read: they are left as they are.
        to_the_end: the last messages before the bound are summarised, too, be they ever so few: a rebuild ends there.
    """
    for s in standing:
        if s.tier == "long_term" and s.tokens > policy.condense_over * size and stuck.get(s.id) != s.text:
            return Condense(s)
    return _merge(standing, uncovered, policy) or _chunk(standing, uncovered, bound, policy, to_the_end, protected)


def _merge(standing: Sequence[Summary], uncovered: Sequence[Message], policy: Policy) -> Merge | None:
    for run, followed in _runs(standing, uncovered):
        if run[0].tier == "recent" and len(run) >= policy.recent_summaries:
            return Merge(run[: policy.recent_summaries], "merged")
        if run[0].tier == "recent" and followed:  # what was made anew in the middle
            return Merge(run, "merged")
    runs = [run for run, _ in _runs(standing, uncovered)]
    for left, run in pairwise([[], *runs]):
        if run[0].tier != "merged" or len(run) < policy.merged_summaries:
            continue
        if not left and run[0] == standing[0]:
            return Merge(run[: policy.merged_summaries], "long_term")
        if left and left[-1].tier == "long_term" and not _between(left[-1], run[0], uncovered):
            return Merge([left[-1], *run[: policy.merged_summaries]], "long_term")
    return None


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
    standing: Sequence[Summary], uncovered: Sequence[Message], bound: int, policy: Policy, to_the_end: bool,
    protected: Collection[int],
) -> Chunk | None:  # fmt: skip
    """The oldest messages that are enough for a chunk; fewer only where summaries follow, which leave no more."""
    for stretch, followed in _stretches(standing, uncovered):
        for run in _apart(stretch, protected):
            old = [m for m in run if m.n < bound]
            whole = (followed and len(old) == len(run)) or to_the_end
            if len(old) >= policy.chunk_messages or (whole and old):
                return Chunk(_fitting(old[: policy.chunk_messages], policy.model_context // 2))
    return None


def _apart(messages: Sequence[Message], protected: Collection[int]) -> list[list[Message]]:
    """Runs without protected messages: a summary covers all that lies between its ends."""
    runs: list[list[Message]] = [[]]
    for m in messages:
        if m.n in protected:
            runs.append([])
        else:
            runs[-1].append(m)
    return [run for run in runs if run]


def _stretches(standing: Sequence[Summary], uncovered: Sequence[Message]) -> list[tuple[list[Message], bool]]:
    """Messages with no summary in between, and whether one comes after them."""
    stretches: list[list[Message]] = []
    for m in uncovered:
        if stretches and not any(stretches[-1][-1].n < s.first and s.last < m.n for s in standing):
            stretches[-1].append(m)
        else:
            stretches.append([m])
    return [(run, any(s.first > run[-1].n for s in standing)) for run in stretches]


def _fitting(messages: Sequence[Message], tokens: int) -> Sequence[Message]:
    """As many as a model can read at once; one at least."""
    taken: list[Message] = []
    for m in messages:
        tokens -= m.tokens
        if taken and tokens < 0:
            break
        taken.append(m)
    return taken


def same_sources(
    step: Step, standing: Sequence[Summary], uncovered: Sequence[Message], bound: int, protected: Collection[int] = ()
) -> bool:
    """Is what a step was decided on still so? Asked under the version at which its event is written (D15, D17)."""
    if isinstance(step, Chunk):
        now = {m.id: m for m in uncovered}
        numbers = [m.n for m in step.messages]
        inside = [m.n for m in uncovered if numbers[0] <= m.n <= numbers[-1]]
        return (
            inside == numbers
            and not set(numbers) & set(protected)
            and numbers[-1] < bound
            and all(now[m.id].text == m.text for m in step.messages)
        )  # fmt: skip
    sources = step.sources if isinstance(step, Merge) else [step.source]
    present: dict[UUID, str] = {s.id: s.text for s in standing}
    return all(present.get(s.id) == s.text for s in sources) and not any(
        _between(a, b, uncovered) for a, b in pairwise(sources)
    )
