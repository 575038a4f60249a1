"""Several writers on one list, each of whom keeps a book of what was acknowledged to it; and the balance of the books.

Every writer edits, pins and deletes only memories of its own, so that what each memory must say in the end is known;
who is forgotten to make room is in the answers of the saves.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from random import Random
from typing import Any

from remembrancer.domain.errors import ListFull, NotFound, PinsFull, RemembrancerError
from remembrancer.services.remembrancer import Remembrancer

LIST: dict[str, Any] = {"scope": "server", "subject": "guild"}
PERSONA = "mira"
FIRST_DAY = datetime(2026, 5, 1, 12, tzinfo=UTC)
SECOND_DAY = datetime(2026, 5, 2, 12, tzinfo=UTC)
POLICY: dict[str, Any] = {"rest_after_days": 1, "match_threshold": 0.9}
"""One day without a mention is enough to rest, so that there is somebody to forget."""


@dataclass
class Book:
    """What was acknowledged to one writer. Ids are texts, so that a book goes through a pipe as JSON."""

    saved: dict[str, str] = field(default_factory=dict)
    """Memory to the text that it must have."""
    pinned: dict[str, bool] = field(default_factory=dict)
    deleted: list[str] = field(default_factory=list)
    forgotten: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    """Memories of this writer that were no longer there: somebody must have forgotten them."""
    refused: dict[str, int] = field(default_factory=dict)
    replies: int = 0

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def write(memory: Remembrancer, writer: str, acts: int) -> Book:
    """Does `acts` things, one after the other, drawn by the writer's name; a refusal by a rule is one, too."""
    book, random = Book(), Random(writer)
    for n in range(acts):
        act = random.choices([_save, _reply, _edit, _pin, _unpin, _delete, _repeat], [40, 12, 16, 12, 6, 8, 6])[0]
        try:
            act(memory, book, random, f"{writer} {n}")
        except RemembrancerError as refused:
            book.refused[refused.type] = book.refused.get(refused.type, 0) + 1
            if not isinstance(refused, ListFull | PinsFull):
                raise
    return book


def write_side_by_side(memories: Sequence[Remembrancer], names: Sequence[str], acts: int) -> list[Book]:
    """A thread for each name, all beginning at the same moment."""
    begin = threading.Barrier(len(names))

    def one(n: int) -> Book:
        begin.wait(30)
        return write(memories[n % len(memories)], names[n], acts)

    with ThreadPoolExecutor(len(names)) as pool:
        return list(pool.map(one, range(len(names)), timeout=120))


def _text(name: str) -> str:
    return f"what {name} found out about the lighthouse"


def _own(book: Book, random: Random) -> str | None:
    return random.choice(sorted(book.saved)) if book.saved else None


def _save(memory: Remembrancer, book: Book, random: Random, name: str) -> None:
    actor = random.choice(["person", "persona"])
    make_room = None
    for _ in range(2):
        try:
            answer = memory.save(PERSONA, **LIST, text=_text(name), actor=actor, make_room=make_room)
        except ListFull as full:
            make_room = full.details.get("would_forget")
            if make_room is None or actor == "persona":
                raise
        else:
            book.saved[str(answer.memory.id)] = _text(name)
            book.forgotten += [str(gone.memory.id) for gone in answer.forgotten]
            assert answer.status == "saved"
            return


def _repeat(memory: Remembrancer, book: Book, random: Random, name: str) -> None:
    if (own := _own(book, random)) is None:
        return
    try:
        answer = memory.save(PERSONA, **LIST, text=f"  {book.saved[own].upper()} ")
    except ListFull:
        book.missing.append(own)
        raise
    if answer.status == "duplicate":
        assert str(answer.memory.id) == own
    else:  # it was forgotten meanwhile, and is a new memory now
        book.missing.append(own)
        book.saved[str(answer.memory.id)] = answer.memory.text
        book.forgotten += [str(gone.memory.id) for gone in answer.forgotten]


def _reply(memory: Remembrancer, book: Book, random: Random, name: str) -> None:
    own = _own(book, random)
    answer = memory.reply(PERSONA, message=book.saved[own] if own else "hello", users=["juno"], server="guild")
    assert answer.search.status == "ok"
    book.replies += 1


def _on_own(memory: Remembrancer, book: Book, random: Random, act: Any) -> None:
    if (own := _own(book, random)) is None:
        return
    try:
        act(own)
    except NotFound:
        book.missing.append(own)
        book.saved.pop(own)
        book.pinned.pop(own, None)


def _edit(memory: Remembrancer, book: Book, random: Random, name: str) -> None:
    def act(own: str) -> None:
        answer = memory.edit(own, text=_text(f"{name}, once more,"), actor=_who(book, random, own))
        book.saved[own] = answer.memory.text

    _on_own(memory, book, random, act)


def _who(book: Book, random: Random, own: str) -> Any:
    return "person" if book.pinned.get(own) else random.choice(["person", "persona"])


def _pin(memory: Remembrancer, book: Book, random: Random, name: str) -> None:
    def act(own: str) -> None:
        memory.pin(own)
        book.pinned[own] = True

    _on_own(memory, book, random, act)


def _unpin(memory: Remembrancer, book: Book, random: Random, name: str) -> None:
    def act(own: str) -> None:
        memory.unpin(own)
        book.pinned[own] = False

    _on_own(memory, book, random, act)


def _delete(memory: Remembrancer, book: Book, random: Random, name: str) -> None:
    def act(own: str) -> None:
        memory.delete(own, actor=_who(book, random, own))
        book.deleted.append(own)
        book.saved.pop(own)
        book.pinned.pop(own, None)

    _on_own(memory, book, random, act)


def fill_and_rest(memory: Remembrancer, day: list[datetime]) -> list[str]:
    """On the first day the persona fills the list; on the second a message about something else lets all of it rest.

    Args:
        day: what the clock of `memory` shows; its only entry is set.

    Returns:
        The ids of the hundred memories.
    """
    day[0] = FIRST_DAY
    ids = [
        str(memory.save(PERSONA, **LIST, text=f"number {n} of the old stories", actor="persona").memory.id)
        for n in range(100)
    ]
    day[0] = SECOND_DAY
    memory.reply(PERSONA, message="weather", users=["juno"], server="guild")
    return ids


def assert_the_books_balance(memory: Remembrancer, before: Sequence[str], books: Sequence[Book]) -> None:
    """Nothing acknowledged is lost, nothing is there that nobody knows of, and every memory says what it must."""
    forgotten = [gone for book in books for gone in book.forgotten]
    assert len(forgotten) == len(set(forgotten)), "a memory was forgotten twice"
    gone = {*forgotten, *(one for book in books for one in book.deleted)}
    missing = {one for book in books for one in book.missing}
    assert missing <= set(forgotten), "a memory vanished that nobody forgot"
    texts = {one: text for book in books for one, text in book.saved.items()}
    (found,) = memory.list(PERSONA, **LIST).lists
    there = {str(one.id): one for one in found.memories}
    assert set(there) == {*before, *texts} - gone
    assert {one: view.text for one, view in there.items() if one in texts} == {
        one: text for one, text in texts.items() if one in there
    }
    pinned = {one for book in books for one, is_pinned in book.pinned.items() if is_pinned}
    assert {one for one, view in there.items() if view.pinned} == pinned
