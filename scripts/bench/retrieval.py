"""How well a question finds the memories that answer it, through the product's own reply.

    python scripts/bench/retrieval.py FILE [--conversations N]

FILE holds long conversations (LoCoMo). In one list each turn of a conversation is a memory, in another each fact that
was noted of it, with the moments of their sessions. Then each question is the message of a reply, with the built-in
model and the shipped score and threshold. A reply writes its matches down, which moves no score.

- turns: `@3` is the share of a question's evidence among the matches (at most 3, at or above the threshold), `@10`
  among the ten candidates, whatever the threshold.
- facts: `@3` says whether any match shows evidence of the question, `@10` whether any candidate does. Questions of
  whose evidence no fact was noted are left out.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from conversations import SECONDS, Conversation, Once, Question, a_second_apart, read, rows, verdict
from rich.console import Console
from rich.progress import Progress
from world import database

from remembrancer.services import open_memory
from remembrancer.services.remembrancer import Remembrancer

TARGETS = {"turns": (0.58, 0.74), "facts": (0.76, 0.86)}


class Task(NamedTuple):
    """A list to search, and what counts as found. `share` takes a question and the texts that came."""

    name: str
    memories: Sequence[tuple[str, datetime]]
    questions: Sequence[Question]
    share: Callable[[Question, Sequence[str]], float]


class Found(NamedTuple):
    """Of one question: found by the matches, by the candidates, by the first three whatever the threshold."""

    matches: float
    candidates: float
    first_three: float


def main() -> None:
    """Measure and print two tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--conversations", type=int, help="only so many")
    args = parser.parse_args()
    conversations = read(args.file, args.conversations)
    with (
        database() as url,
        open_memory(url, embedder="local", list_capacity=2_000, embed_timeout=SECONDS) as memory,
        Progress(console=Console(stderr=True)) as progress,
    ):
        memory.engine.deps.embedder = Once(memory.engine.deps.embedder)
        measured = {
            kind: {c.name: list(_measure(memory, task_of(c), progress)) for c in conversations}
            for kind, task_of in (("turns", _turns), ("facts", _facts))
        }
    for kind, found in measured.items():
        everything = [one for of_one in found.values() for one in of_one]
        print(f"{kind:12}{'questions':>12}{'@3':>8}{'@10':>8}{'@3, any score':>16}")
        for name, of_one in (found | {"overall": everything}).items():
            print(f"{name:12}{len(of_one):12}{_mean(of_one, 0):8.3f}{_mean(of_one, 1):8.3f}{_mean(of_one, 2):16.3f}")
        for n, (what, target) in enumerate(zip(("@3", "@10"), TARGETS[kind], strict=True)):
            print(f"  {kind} {what}: {_mean(everything, n):.3f}, {verdict(_mean(everything, n), target)}")


def _turns(c: Conversation) -> Task:
    ids = {f"{turn.speaker}: {turn.text}": turn.id for session in c.sessions for turn in session.turns}
    memories = [
        one
        for session in c.sessions
        for one in a_second_apart(session.at, [f"{turn.speaker}: {turn.text}" for turn in session.turns])
    ]

    def share(question: Question, texts: Sequence[str]) -> float:
        return len(question.evidence & {ids[text] for text in texts}) / len(question.evidence)

    return Task(f"{c.name}, turns", memories, c.questions, share)


def _facts(c: Conversation) -> Task:
    facts = {fact.text: fact for fact in c.facts}
    memories = [
        one for session in c.sessions for one in a_second_apart(session.at, [fact.text for fact in session.facts])
    ]

    def share(question: Question, texts: Sequence[str]) -> float:
        return float(any(question.needs(facts[text]) for text in texts))

    return Task(f"{c.name}, facts", memories, [q for q in c.questions if any(map(q.needs, c.facts))], share)


def _measure(memory: Remembrancer, task: Task, progress: Progress) -> Iterator[Found]:
    saving = progress.add_task(f"{task.name}: saving", total=len(task.memories))
    brought = memory.import_rows(
        list(rows(task.name, task.memories)), progress=lambda done, _: progress.update(saving, completed=done - 1)
    )
    assert brought.imported == len(task.memories)
    assert not brought.without_vector
    memory.engine.waiting.settle(60)
    for question in progress.track(task.questions, description=f"{task.name}: asking"):
        search = memory.reply("mira", message=question.text, server=task.name).search
        assert search.status == "ok", search.reason
        yield Found(
            *(
                task.share(question, [m.text for m in found])
                for found in (search.matches, search.candidates, search.candidates[:3])
            )
        )


def _mean(found: Sequence[Found], of: int) -> float:
    return mean(one[of] for one in found)


if __name__ == "__main__":
    main()
