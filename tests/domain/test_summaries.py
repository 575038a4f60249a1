"""Summaries as their events make them: D16, D17, D18 and R6 over drawn histories, against texts alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from typing import Any
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from remembrancer.domain import events as e
from remembrancer.domain.compaction import Chunk, Condense, Merge, next_step, same_sources
from remembrancer.domain.long_term import LongTerm, grown
from remembrancer.domain.policy import Policy
from remembrancer.domain.summaries import Summaries, Summary, fold_conversation, place_of, quoted, render_summary
from remembrancer.domain.text import ERASED
from remembrancer.domain.transcript import Message, Transcript
from tests.oracle.plain_cover import copied, faults

POLICY = Policy(chunk_messages=3, recent_summaries=2, merged_summaries=2)
WINDOW = 4
AT = datetime(2026, 5, 4, tzinfo=UTC)


@dataclass
class Chat:
    """One chat: its events, the fold, and what a person in it would say is there."""

    stream: UUID
    log: dict[UUID, list[e.Recorded]]
    ids: Any
    transcript: Transcript = field(default_factory=Transcript)
    summaries: Summaries = field(default_factory=Summaries)
    present: dict[str, str] = field(default_factory=dict)
    rules: dict[str, str] = field(default_factory=dict)
    turns: list[str] = field(default_factory=list)
    of_turn: dict[str, list[str]] = field(default_factory=dict)

    def record(self, kind: type[e.Event], **fields: Any) -> None:
        event = kind(id=UUID(int=next(self.ids)), tenant="t", chat="c", **fields)
        events = self.log.setdefault(self.stream, [])
        r = e.Recorded(event, self.stream, len(events) + 1, 0, 0, AT)
        events.append(r)
        if not isinstance(event, e.ChatForked):
            self.summaries.apply(r, self.transcript.apply(r))

    def say(self, role: str, turn: str | None, attempt: int = 1) -> str:
        message = UUID(int=next(self.ids))
        name = f"m{message.int}"
        text = f"Rule {name}: <<{name}a>>" if role == "user" and message.int % 3 == 0 else f"<<{name}a>>"
        self.record(e.MessagePosted, message=message, role=role, author=role, text=text, tokens=1, turn=turn,
                    attempt=attempt)  # fmt: skip
        self.present[name] = f"{name}a"
        if turn is not None:
            self.of_turn.setdefault(turn, []).append(name)
        return name

    def lose(self, name: str) -> None:
        self.present.pop(name, None)
        self.rules.pop(name, None)

    # -- what happens ----------------------------------------------------------------------------------------------

    def turn(self, number: int) -> None:
        for _ in range(1 + number % 4):
            turn = f"t{next(self.ids)}"
            self.turns.append(turn)
            self.say("user", turn)
            self.say("persona", turn)

    def chatter(self, number: int) -> None:
        for _ in range(number % 12):
            self.say("user", None)

    def edit(self, which: int) -> None:
        if self.present:
            name = sorted(self.present)[which % len(self.present)]
            token = f"{name}e{next(self.ids)}"
            self.record(e.MessageEdited, message=UUID(int=int(name[1:])), author="x", text=f"<<{token}>>", tokens=1)
            self.rules.pop(name, None)
            self.present[name] = token

    def delete(self, which: int) -> None:
        if self.present:
            name = sorted(self.present)[which % len(self.present)]
            self.record(e.MessageDeleted, message=UUID(int=int(name[1:])))
            self.lose(name)

    def regenerate(self, which: int) -> None:
        if self.turns:
            turn = self.turns[-1 - which % min(2, len(self.turns))]
            attempt = 2 + next(self.ids)
            self.record(e.TurnRegenerated, turn=turn, attempt=attempt)
            for name in self.of_turn[turn][1:]:
                self.lose(name)
            self.say("persona", turn, attempt)

    def rewind(self, which: int) -> None:
        gone = self.turns[len(self.turns) - which % 4 :] if which % 4 else []
        if gone:
            self.record(e.ChatRewound, to="x", turns=tuple(reversed(gone)))
            for turn in gone:
                for name in self.of_turn[turn]:
                    self.lose(name)
            self.turns = [t for t in self.turns if t not in gone]

    def fork(self, which: int) -> Chat:
        said = [m for m in self.transcript.messages.values() if m.gone is None]
        upto = sorted(said, key=lambda m: m.n)[which % len(said)].n if said else 0
        other = Chat(UUID(int=next(self.ids)), self.log, self.ids)
        version = len(self.log.get(self.stream, []))
        other.record(e.ChatForked, parent="c", parent_stream=self.stream, upto=upto, at_version=version,
                     home_kind="chat", home_key="c", personas=())  # fmt: skip
        other.transcript, other.summaries = other.refold()
        kept = {f"m{m.id.int}" for m in said if m.n <= upto}
        other.present = {k: v for k, v in self.present.items() if k in kept}
        other.rules = {k: v for k, v in self.rules.items() if k in kept}
        return other

    # -- the background --------------------------------------------------------------------------------------------

    def uncovered(self) -> list[Message]:
        rebuild = self.running()
        standing = self.summaries.standing(rebuild)
        upto = self.summaries.rebuild.upto if rebuild and self.summaries.rebuild else 10**9
        said = [m for m in self.transcript.messages.values() if m.gone is None and m.n <= upto]
        return sorted((m for m in said if not any(s.covers(m.n) for s in standing)), key=lambda m: m.n)

    def running(self) -> UUID | None:
        rebuild = self.summaries.rebuild
        return rebuild.id if rebuild is not None and rebuild.state == "running" else None

    def bound(self) -> int:
        said = sorted(m.n for m in self.transcript.messages.values() if m.gone is None)
        bound = min(said[-WINDOW:], default=0)
        return min(bound, self.summaries.rebuild.upto + 1) if self.running() and self.summaries.rebuild else bound

    def protected(self) -> set[int]:
        last = set(self.turns[-2:])
        return {m.n for m in self.transcript.messages.values() if m.gone is None and m.turn in last}

    def step(self, fails: int) -> bool:
        """The background does one step, or the model fails."""
        rebuild, uncovered, bound, protected = self.running(), self.uncovered(), self.bound(), self.protected()
        standing = self.summaries.standing(rebuild)
        step = next_step(
            standing, uncovered, bound, POLICY, 40, protected=protected, to_the_end=rebuild is not None
        )  # fmt: skip
        if step is None:
            if rebuild is not None:
                self.record(e.RebuildCompleted, rebuild=rebuild)
                return True
            return False
        assert same_sources(step, standing, uncovered, bound, protected)
        if fails % 3 == 0:
            return True
        common = {"summary": UUID(int=next(self.ids)), "rebuild": rebuild}
        match step:
            case Chunk():
                assert all(m.n < bound and m.n not in protected for m in step.messages)  # D15
                assert not any(step.messages[0].n < n < step.messages[-1].n for n in protected)
                text = copied(" ".join(m.text for m in step.messages))
                rules = tuple(
                    place_of(m.text, m) for m in step.messages if m.text.startswith("Rule") and m.role == "user"
                )
                for m in step.messages:
                    if m.text.startswith("Rule") and m.role == "user":
                        self.rules[f"m{m.id.int}"] = m.text
                self.record(e.ChunkSummarised, **common, text=text, tokens=1, first=step.messages[0].n,
                            last=step.messages[-1].n, messages=len(step.messages), rules=rules)  # fmt: skip
            case Merge(tier="merged"):
                self.merged(step, copied(" ".join(s.text for s in step.sources)), 1, common)
            case Merge():
                old = next((LongTerm.read(s.text) for s in step.sources if s.tier == "long_term"), None)
                newer = " ".join(s.text for s in step.sources if s.tier != "long_term")
                text = grown(old, [copied(newer)], [], [], ["here"]).text()
                self.merged(step, text, len(text), common)
            case Condense(source=s):
                parts = LongTerm.read(s.text)
                text = parts.condensed([copied(" ".join(parts.older()))], [], [], [1]).text()
                self.record(e.LongTermCondensed, **common, source=s.id, text=text, tokens=1, first=s.first, last=s.last,
                            messages=s.messages)  # fmt: skip
        return True

    def merged(self, step: Merge, text: str, tokens: int, common: dict[str, Any]) -> None:
        self.record(
            e.SummariesMerged, **common, tier=step.tier, sources=tuple(s.id for s in step.sources), text=text,
            tokens=tokens, first=step.sources[0].first, last=step.sources[-1].last, messages=1,
        )  # fmt: skip

    def steps(self, number: int) -> None:
        for n in range(number % 9):
            self.step(number + n)

    def invalidate(self, which: int) -> None:
        known = sorted(self.summaries.known)
        if known:
            self.record(e.SummaryInvalidated, summaries=(known[which % len(known)],), reason="said so")

    def rebuild(self, which: int) -> None:
        old = [m.n for m in self.transcript.messages.values() if m.gone is None and m.n < self.bound()]
        if old and self.running() is None:
            self.record(e.RebuildStarted, rebuild=UUID(int=next(self.ids)), upto=max(old), detail="balanced")

    def give_up(self, _: int) -> None:
        if (running := self.running()) is not None:
            self.record(e.RebuildFailed, rebuild=running, reason="status 500")

    # -- what must hold --------------------------------------------------------------------------------------------

    def refold(self) -> tuple[Transcript, Summaries]:
        return fold_conversation(lambda stream, upto: self.log.get(stream, [])[:upto], self.stream, 10**9)

    def check(self) -> None:
        standing = self.summaries.standing()
        cover = self.summaries.cover()
        raw = [m for m in self.transcript.messages.values() if m.gone is None and m.n not in cover]
        window = sorted((m for m in self.transcript.messages.values() if m.gone is None), key=lambda m: -m.n)[:WINDOW]
        wrong = faults(self.present, [s.text for s in standing], [m.text for m in (*raw, *window)], 0)
        assert not wrong
        by_id = {m.id: m for m in self.transcript.messages.values()}
        told = {f"m{span.message.int}": words for span, words in quoted(self.summaries.rules.values(), by_id)}
        assert told == self.rules  # R6, word for word
        transcript, summaries = self.refold()
        assert transcript.messages == self.transcript.messages
        assert (summaries.known, summaries.rules, summaries.rebuild) == (
            self.summaries.known, self.summaries.rules, self.summaries.rebuild,
        )  # fmt: skip


ACTS = (
    "turn", "turn", "turn", "chatter", "step", "steps", "steps", "edit", "edit", "delete", "regenerate", "rewind",
    "fork", "invalidate", "rebuild", "give_up",
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(ACTS), st.integers(0, 1_000)), min_size=10, max_size=80))
def test_d16_d17_d18_each_message_is_in_the_window_in_a_summary_or_sent_as_it_is_whatever_happens(history):
    ids = count(1)
    chats = [Chat(UUID(int=next(ids)), {}, ids)]
    for act, number in history:
        chat = chats[number % len(chats)]
        if act == "fork":
            chats.append(chat.fork(number))
        else:
            getattr(chat, act)(number)
        for one in chats:
            one.check()
    for one in chats:
        for _ in range(400):
            if not one.step(1):
                break
        else:
            raise AssertionError("it never comes to an end")
        one.check()
        left = [m for m in one.uncovered() if m.n < one.bound()]
        kept = [m for m in left if m.n in one.protected()]
        assert len(left) - len(kept) < POLICY.chunk_messages * (len(kept) + 1), "each message kept parts two stretches"


def a_chat(turns: int) -> Chat:
    ids = count(1)
    chat = Chat(UUID(int=next(ids)), {}, ids)
    for _ in range(turns):
        chat.turn(0)
    while chat.step(1):
        pass
    return chat


def test_r4_the_parts_of_a_stale_long_term_summary_stand_again_where_they_are_still_true():
    chat = a_chat(20)
    before = chat.summaries.standing()
    assert before[0].tier == "long_term"
    chat.edit(0)
    after = chat.summaries.standing()
    assert (before[0].first, before[0].last) == (1, after[-1].last if len(before) == 1 else before[1].first - 1)
    assert len([m for m in chat.uncovered() if m.n <= before[0].last]) == POLICY.chunk_messages
    assert {s.tier for s in after} == {"recent", "merged"}


def test_d16_an_empty_summary_is_none_nor_is_one_whose_key_is_gone():
    for text in ("", "  \n", ERASED):
        chat = a_chat(0)
        for _ in range(4):
            chat.turn(0)
        chat.record(
            e.ChunkSummarised, summary=UUID(int=next(chat.ids)), text=text, tokens=0, first=1, last=3, messages=3
        )
        assert not chat.summaries.standing()
        chat.check()


def test_r6_rules_that_lie_over_each_other_are_one_and_what_is_removed_stays_removed():
    def span(start: int, end: int, message: int = 1) -> Any:
        return e.RuleSpan(message=UUID(int=message), n=message, start=start, end=end)

    summaries = Summaries()
    summaries.find_rules([span(5, 20), span(40, 50), span(5, 48), span(60, 70), span(0, 99, message=2)])
    assert sorted((r.start, r.end) for r in summaries.rules.values()) == [(0, 99), (5, 50), (60, 70)]
    assert all((r.message, r.start, r.end) == place for place, r in summaries.rules.items())
    summaries.remove_rules([span(5, 20)])  # as it was when the removal was written
    summaries.find_rules([span(0, 30)])
    assert sorted((r.start, r.end) for r in summaries.rules.values()) == [(0, 99), (60, 70)]


def test_r6_condensing_shortens_the_oldest_lines_and_leaves_what_still_matters_word_for_word():
    parts = LongTerm(("a" * 40, "b" * 10, "c" * 10, "d" * 40), ("p1", "p2"), ("r1", "r2"), ("s1", "s2"))
    assert parts.older() == ("a" * 40, "b" * 10)
    after = parts.condensed(["long ago"], [2], [1, 2], [9])
    assert after == LongTerm(("long ago", "c" * 10, "d" * 40), ("p2",), ("r1", "r2"), ())
    assert LongTerm.read(after.text()) == after


@given(
    st.lists(
        st.lists(st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1), max_size=4), min_size=4, max_size=4
    )
)
def test_a_long_term_summary_reads_as_it_was_written(parts):
    lines = [tuple(line for line in (" ".join(t.split()) for t in part) if line) for part in parts]
    made = LongTerm(*lines)
    assert LongTerm.read(made.text()) == made


def test_what_a_person_writes_under_no_heading_is_kept_as_chronology():
    read = LongTerm.read("They met.\n- They parted\n  in anger\n\n### Open promises\n- tea\n### Something else\nx")
    assert read == LongTerm(("They met.", "They parted in anger"), ("tea", "### Something else", "x"))


def test_r5_the_whole_summary_comes_in_a_fixed_order():
    def s(n: int, tier: Any) -> Summary:
        return Summary(UUID(int=n), tier, n, n, 1, f"text {n}", 1, (), "balanced", AT)

    text = render_summary([s(1, "merged"), s(2, "recent"), s(3, "long_term"), s(4, "recent")], [("juno", "no ghosts")])
    assert [text.index(x) for x in ("text 3", "text 1", "text 2", "text 4", "no ghosts")] == sorted(
        text.index(x) for x in ("text 3", "text 1", "text 2", "text 4", "no ghosts")
    )
