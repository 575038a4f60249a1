"""What was asked of `why`, and what is said of texts that are no memory or may be another one (U1, D31)."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import suppress
from uuid import UUID

from remembrancer.domain.errors import InvalidInput, NotFound
from remembrancer.services.answers_layers import InChat
from remembrancer.services.answers_why import Other, WhyAnswer
from remembrancer.services.checks import checked_text, shown
from remembrancer.services.layers import summed_up
from remembrancer.services.memory_search import Answered, Found

LONGEST = 2_000
"""Code points of a text to look for."""
OTHERS = 5
"""Other memories that are named."""


def as_id(q: object) -> UUID | None:
    """The id of a memory, if it is one."""
    if isinstance(q, UUID):
        return q
    if isinstance(q, str):
        with suppress(ValueError):
            return UUID(q.strip())
    return None


def checked_query(q: object) -> str:
    """A text to look for.

    Raises:
        InvalidInput: no text, an empty one, or one that is too long.
    """
    text = checked_text("search text", q)
    if not text.strip():
        raise InvalidInput("Why what?", hint="Give the id of a memory, or what you remember of it.")
    if len(text) > LONGEST:
        raise InvalidInput(f"The search text has {len(text)} characters; at most {LONGEST} are possible.")
    return text


def never_known(text: str, answered: Answered) -> NotFound:
    """What is said of a text that never was a memory; near ones are named (D31)."""
    near = answered.found[:3]
    named = "; ".join(f"{str(one.memory)[:8]} \u201c{one.text}\u201d" for one in near)
    hint = f"Nearest to it, for `why` with an id: {named}." if near else "There never was a memory that is like it."
    note = f" {answered.note}" if answered.note else ""
    return NotFound(
        f"Nothing like {shown(text)} was ever saved here, as far as likeness and words can tell.{note}"
        if answered.by != "words"
        else f"Nothing with the words of {shown(text)} was ever saved here.{note}",
        rule="D31",
        hint=hint,
        near=[_other(one).model_dump(mode="json") for one in near],
    )


def never_saved(said: Sequence[InChat], answered: Answered) -> WhyAnswer:
    """What is said of a text that never was a memory, but that conversations speak of (U1)."""
    return WhyAnswer(
        status="never_saved", verdict=f"It was never saved as a memory. {summed_up(said)}", memory=None, saved=None,
        story=[], searches=None, days=None, evicted=None, conversation=list(said), hidden_by=[],
        bring_back=f"remembrancer chat save {shlex.quote(said[0].chat)} {said[0].message}",
        found_by=answered.by, note=answered.note, nearest=[_other(one) for one in answered.found[:2]],
    )  # fmt: skip


def others(memory: UUID, answered: Answered) -> list[Other]:
    """The other memories that are as likely meant; where there is none, the two that come next."""
    others = [one for one in answered.found if one.memory != memory]
    likely = [one for one in others if one.likely][:OTHERS]
    return [_other(one) for one in likely or others[:2]]


def _other(one: Found) -> Other:
    return Other(
        memory=one.memory,
        persona=one.key.persona,
        scope=one.key.scope,
        subject=one.key.subject,
        text=one.text,
        similarity=one.similarity,
        words=one.words,
    )
