"""The parts of a long-term summary, as a text and back, and how it is condensed (R6).

The users' corrections and rules are no part of this text: code reads them from the messages themselves, word for word,
and no model ever writes them (`summaries.quoted`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

CHRONOLOGY = "Chronology"
PROMISES = "Open promises"
REFERENCES = "Exact references"
STATE = "Current state"
RULES = "Corrections and rules, word for word"


@dataclass(frozen=True, slots=True)
class LongTerm:
    """Lines of each part, oldest first."""

    chronology: tuple[str, ...] = ()
    promises: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    state: tuple[str, ...] = ()

    def text(self) -> str:
        """As it is stored and sent: a heading for each part that has lines, a dash before each line."""
        parts = ((CHRONOLOGY, self.chronology), (PROMISES, self.promises), (REFERENCES, self.references),
                 (STATE, self.state))  # fmt: skip
        return "\n\n".join(f"### {title}\n{_lines(lines)}" for title, lines in parts if lines)

    @classmethod
    def read(cls, text: str) -> LongTerm:
        """Its parts from the text, however a person has edited it: what stands under no heading is chronology."""
        found: dict[str, list[str]] = {CHRONOLOGY: [], PROMISES: [], REFERENCES: [], STATE: []}
        part = CHRONOLOGY
        for line in text.splitlines():
            title = line.lstrip("# ").strip()
            if line.startswith("#") and title in found:
                part = title
            elif line.startswith("- "):
                found[part].append(line[2:].strip())
            elif line.startswith("  ") and found[part]:
                found[part][-1] += f" {line.strip()}"
            elif line.strip():
                found[part].append(line.strip())
        return cls(*(tuple(line for line in lines if line) for lines in found.values()))

    def older(self) -> tuple[str, ...]:
        """The oldest lines of the chronology that are half of it in length or more: they become short lines on whole
        periods."""
        half, so_far = sum(map(len, self.chronology)) / 2, 0
        for n, line in enumerate(self.chronology, start=1):
            so_far += len(line)
            if so_far >= half:
                return self.chronology[:n]
        return self.chronology

    def condensed(
        self, periods: Sequence[str], promises: Iterable[int], references: Iterable[int], state: Iterable[int]
    ) -> LongTerm:
        """With short lines for the older half, and of the other parts only the lines of these numbers, from 1 on,
        as they are."""
        return replace(
            self,
            chronology=(*_clean(periods), *self.chronology[len(self.older()) :]),
            promises=_chosen(self.promises, promises),
            references=_chosen(self.references, references),
            state=_chosen(self.state, state),
        )


def grown(
    old: LongTerm | None, chronology: Iterable[str], promises: Iterable[str], references: Iterable[str],
    state: Iterable[str],
) -> LongTerm:  # fmt: skip
    """A long-term summary after more was merged into it: the chronology goes on, the other parts are as of now."""
    before = old.chronology if old is not None else ()
    return LongTerm((*before, *_clean(chronology)), _clean(promises), _clean(references), _clean(state))


def _chosen(lines: Sequence[str], numbers: Iterable[int]) -> tuple[str, ...]:
    wanted = set(numbers)
    return tuple(line for n, line in enumerate(lines, start=1) if n in wanted)


def _clean(lines: Iterable[str]) -> tuple[str, ...]:
    return tuple(one for line in lines if (one := " ".join(line.split()).removeprefix("- ").strip()))


def _lines(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)
