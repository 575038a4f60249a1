"""The verb `what-if`: history folded under other numbers, and with `apply` the recounted use as events (U3).

Nothing is written without `apply`. With it there is one append for all lists: each gets a `UseRecounted` that says the
whole use of the memories that come out otherwise, at the version of the list that was counted. Where a list moved on
meanwhile, what is new is folded in and counted again.
"""

from __future__ import annotations

import zlib
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

import orjson

from remembrancer.domain import events as e
from remembrancer.domain.errors import InvalidInput, Unavailable
from remembrancer.domain.identity import ListKey, check_key, list_key, list_stream
from remembrancer.domain.in_order import InOrder
from remembrancer.domain.outcome import Change, Standing, changes, recounts, standings
from remembrancer.domain.policy import Policy
from remembrancer.domain.two_courses import TwoCourses
from remembrancer.domain.what_if import MATCHING, NUMBERS, Totals, WhatIf
from remembrancer.services.answers_what_if import (
    UNKNOWN,
    ChangeView,
    Course,
    Number,
    StandingView,
    UnknownView,
    WhatIfAnswer,
)
from remembrancer.services.by_moment import ByMoment, Progress
from remembrancer.services.checks import checked_progress, shown
from remembrancer.services.clock import make_id
from remembrancer.services.configure import checked_policy
from remembrancer.services.deps import LIST, TENANT, Deps
from remembrancer.services.finder import Finder
from remembrancer.services.requests import positions, request_for
from remembrancer.services.store import Appended, Batch, Decision, Request
from remembrancer.services.tokens import count_tokens

DESKS_KEPT = 256
"""Texts whose tokens are remembered: most replies send what the one before sent."""


class Policies:
    """The policies of a tenant, by version and by moment."""

    def __init__(self, events: Sequence[e.Recorded]) -> None:
        changed = [r for r in events if isinstance(r.event, e.PolicyChanged)]
        self._versions = [r.version for r in changed]
        self._moments = [r.recorded_at for r in changed]
        self._policies = [_policy(r.event.policy) for r in changed if isinstance(r.event, e.PolicyChanged)]

    def of(self, which: int | datetime) -> Policy:
        """The policy at a version of the tenant's stream, or at a moment; the default one before the first."""
        at = bisect_right(self._versions, which) if isinstance(which, int) else bisect_right(self._moments, which)
        return self._policies[at - 1] if at else Policy()


def _policy(fields: Mapping[str, Any]) -> Policy:
    return Policy(**{name: value for name, value in fields.items() if name in Policy.model_fields})


class _Nothing(Exception):
    """There is nothing to write."""


class _Run:
    """One what-if: what is asked, and the fold as far as it has come."""

    def __init__(self, by_moment: ByMoment, fold: Callable[[], WhatIf], persona: str | None) -> None:
        self._by_moment, self._make, self._persona = by_moment, fold, persona
        self.fold = fold()
        self._versions: dict[UUID, int] = {}
        self._order = InOrder(self.fold.lists.keys())

    def advance(self, progress: Progress | None = None) -> WhatIf:
        """Fold what has come since the last time.

        Raises:
            Unavailable: the database went away; the next time begins anew.
        """
        try:
            self._advance(progress)
        except Unavailable:
            self.fold, self._versions = self._make(), {}
            self._order = InOrder(self.fold.lists.keys())
            raise
        return self.fold

    def _advance(self, progress: Progress | None) -> None:
        streams = self._by_moment.streams(self._persona)
        self.fold.know(streams.lists)
        for batch in self._by_moment.read(streams, self._versions, progress):
            for r in self._order.feed(batch):
                self.fold.take(r)
            for r in batch:
                self._versions[r.stream] = r.version
        for r in self._order.flush():
            self.fold.take(r)
        self.fold.end()


class WhatIfs:
    """See the module."""

    def __init__(self, deps: Deps, finder: Finder) -> None:
        self._deps = deps
        self._finder = finder
        self._by_moment = ByMoment(deps, finder)

    def what_if(
        self,
        numbers: Mapping[str, Any],
        *,
        persona: str | None,
        scope: str | None,
        subject: str | None,
        apply: bool,
        request_id: str | None,
        progress: Progress | None,
    ) -> WhatIfAnswer:
        """The same history under other numbers. See `Remembrancer.what_if`."""
        checked_progress(progress)
        asked = _asked(numbers)
        only = self._only(persona, scope, subject)
        body = {"numbers": asked, "persona": persona, "list": only}
        request = request_for(self._deps.tenant, self._deps.tenant_stream.bytes[0], "what_if", request_id, body)
        if apply and request_id is not None and (before := self._deps.store.find(request)) is not None:
            return self._again(before)
        run = _Run(
            self._by_moment, lambda: self._fold(asked, persona, only),
            None if only is not None and only.scope == "global" else persona,
        )  # fmt: skip
        if not apply:
            return self._answer(run.advance(progress), asked, persona, only)
        return self._apply(run, request, asked, persona, only, progress)

    def _only(self, persona: str | None, scope: str | None, subject: str | None) -> ListKey | None:
        """The one list that was asked about, if it was one; a persona or a list that is there (D31)."""
        if persona is not None and not self._finder.knows(check_key("persona", persona)):
            raise self._finder.no_such_persona(persona)
        if scope is None and subject is None:
            return None
        if scope is None or subject is None:
            raise InvalidInput("Which list?", hint="Name its scope and its subject.")
        if persona is None and scope != "global":
            raise InvalidInput("Whose list?", hint="Name the persona.")
        return list_key(persona, scope, subject)

    def _fold(self, asked: Mapping[str, Any], persona: str | None, only: ListKey | None) -> WhatIf:
        policies = Policies(self._deps.store.read([(self._deps.tenant_stream, 0)]))
        stream = None if only is None else list_stream(self._deps.tenant, only)

        def counts(of: e.ReplySearched | ListKey) -> bool:
            if isinstance(of, ListKey):
                return only in (None, of)
            if stream is not None:
                return any(seen.stream == stream for seen in of.lists)
            return persona in (None, of.persona)

        model = None if self._deps.embedder is None else self._deps.embedder.model
        tokens = lru_cache(DESKS_KEPT)(count_tokens)
        return WhatIf(asked, policy_of=policies.of, model=model, counts=counts, tokens=tokens)

    # -- the answer ------------------------------------------------------------------------------------------------

    def _policies(self, asked: Mapping[str, Any]) -> tuple[Policy, Policy]:
        own = self._deps.store.load(self._deps.tenant_stream, TENANT).state.own
        now = self._deps.effective(dict(own))
        return now, now.model_copy(update=dict(asked))

    def _answer(
        self, fold: WhatIf, asked: Mapping[str, Any], persona: str | None, only: ListKey | None
    ) -> WhatIfAnswer:
        now, then = self._policies(asked)
        today = self._deps.now().date()
        lists = [x for x in fold.lists.values() if only in (None, x.key) and (x.version or only is not None)]
        found = [change for x in lists for change in changes(x, now, then, today)]
        stand_now = [standings(x.now, now, today) for x in lists]
        stand_then = [standings(x.then, then, today) for x in lists]
        return WhatIfAnswer(
            numbers={name: Number(now=self._number(name, now), then=value) for name, value in asked.items()},
            persona=persona if only is None or only.scope != "global" else None,
            scope=None if only is None else only.scope,
            subject=None if only is None else only.subject,
            events=fold.events,
            lists=len(lists),
            memories=sum(len(x.now.memories) for x in lists),
            changes=[_change(change) for change in found],
            now=_course(fold.now, stand_now),
            then=_course(fold.then, stand_then),
            unknown=_unknown(fold, lists, now, then),
            recounted=sum(len(_recounted(x, asked)) for x in lists),
        )

    def _number(self, name: str, policy: Policy) -> float | int | None:
        """A number of the policy in force; the threshold that is shipped for the model, where none is set (D5)."""
        return self._deps.threshold(policy) if name == "match_threshold" else getattr(policy, name)

    # -- apply -----------------------------------------------------------------------------------------------------

    def _apply(
        self, run: _Run, request: Request, asked: Mapping[str, Any], persona: str | None, only: ListKey | None,
        progress: Progress | None,
    ) -> WhatIfAnswer:  # fmt: skip
        now = self._deps.now()
        counted: list[WhatIfAnswer] = []

        def decide(fold: WhatIf) -> Decision:
            lists = [(stream, x) for stream, x in fold.lists.items() if only in (None, x.key)]
            anew = {stream: found for stream, x in lists if (found := _recounted(x, asked))}
            batches = [self._batch(stream, fold.lists[stream], anew[stream], asked, request, now) for stream in anew]
            answer = self._answer(fold, asked, persona, only)
            answer = answer.model_copy(update={"applied": True})
            counted[:] = [answer]
            if not batches and request.request_id is None:
                raise _Nothing
            return Decision(batches, b"" if request.request_id is None else _kept(answer))

        try:
            done = self._deps.store.transact(request, lambda: run.advance(progress), decide, now=now)
        except _Nothing:
            return counted[0]
        if not done.fresh:
            return self._again(done)
        return counted[0].model_copy(update={"positions": positions(done)})

    def _batch(
        self, stream: UUID, x: TwoCourses, counted: Mapping[UUID, e.Counted], asked: Mapping[str, Any],
        request: Request, now: datetime,
    ) -> Batch:  # fmt: skip
        days = {k: x.then.memories[x.then_id(k)].unused_days(x.then.days) for k in counted}
        event = e.UseRecounted(
            id=make_id(stream.bytes[0]), tenant=self._deps.tenant, request_id=request.request_id, **x.key._asdict(),
            unused_days=days, day=now.date(), counted=counted, numbers=asked,
        )  # fmt: skip
        return Batch(stream, [event], x.version, (x.key.owner,))

    def _again(self, done: Appended) -> WhatIfAnswer:
        """The first answer. It is kept without texts, which are nobody's one key's; they are read where they are."""
        kept = orjson.loads(zlib.decompress(done.answer or b""))
        keys = {ListKey(c["persona"], c["scope"], c["subject"]) for c in kept["changes"]}
        streams = [(list_stream(self._deps.tenant, key), LIST) for key in sorted(keys)]
        texts: dict[str, str] = {}
        for one in self._deps.store.load_many(streams) if streams else ():
            held = [*one.state.memories.values(), *(gone.memory for gone in one.state.gone.values())]
            texts |= {str(m.id): m.text for m in held}
        for change in kept["changes"]:
            change["text"] = texts.get(change["memory"], "")
        return WhatIfAnswer.model_validate(kept).model_copy(update={"positions": positions(done)})


def _asked(numbers: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers asked about.

    Raises:
        InvalidInput: none; one of another name; one out of its bounds.
    """
    if unknown := sorted(set(numbers) - set(NUMBERS)):
        raise InvalidInput(f"what-if knows no {', '.join(unknown)}.", rule="U3", hint=f"Ask about {_named()}.")
    asked = {name: value for name, value in numbers.items() if value is not None}
    if not asked:
        raise InvalidInput("What if what?", rule="U3", hint=f"Name at least one of {_named()}.")
    for name, value in asked.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InvalidInput(f"{name} is a number, not {shown(value)}.", rule="U3")
    return checked_policy(asked)


def _named() -> str:
    return ", ".join(NUMBERS)


def _recounted(x: TwoCourses, asked: Mapping[str, Any]) -> dict[UUID, e.Counted]:
    """What there is to record: only the numbers of a match change who was used; all others show at once."""
    return recounts(x) if any(name in asked for name in MATCHING) else {}


def _kept(answer: WhatIfAnswer) -> bytes:
    plain = answer.model_dump(mode="json")
    for change in plain["changes"]:
        change["text"] = ""
    return zlib.compress(orjson.dumps(plain), 1)


def _change(c: Change) -> ChangeView:
    return ChangeView(
        memory=c.memory, text=c.text, now=_standing(c.now), then=_standing(c.then), uncertain=c.uncertain,
        **c.key._asdict(),
    )  # fmt: skip


def _standing(s: Standing) -> StandingView:
    return StandingView(state=s.state, unused_days=s.unused_days, on_desk=s.on_desk, last_matched_at=s.last_matched_at)


def _course(t: Totals, stand: Sequence[Mapping[Any, int]]) -> Course:
    replies = max(t.replies, 1)
    return Course(
        replies=t.replies, desk=round(t.desk / replies, 2), tokens=round(t.tokens / replies, 1), matches=t.matches,
        recalls=t.recalls, evictions=t.evictions, refused=t.refused,
        **{state: sum(one[state] for one in stand) for state in ("active", "resting", "expired")},
    )  # fmt: skip


def _unknown(fold: WhatIf, lists: Sequence[TwoCourses], now: Policy, then: Policy) -> list[UnknownView]:
    counted = dict(fold.unknown)
    if then.list_capacity > now.list_capacity or then.rest_after_days < now.rest_after_days:
        counted["refused_saves"] = sum(x.was_full for x in lists)
    if then.pin_capacity > now.pin_capacity:
        counted["refused_pins"] = sum(x.now.pinned >= now.pin_capacity for x in lists)
    return [
        UnknownView(what=what, count=n, sentence=f"{n} {one if n == 1 else several} {about}.")
        for what, (one, several, about) in UNKNOWN.items()
        if (n := counted.get(what, 0))
    ]
