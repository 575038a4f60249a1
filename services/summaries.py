"""The verbs of summaries: read, edit, take a rule away, make anew; and what replies cost (R5-R8)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any
from uuid import UUID

import orjson
from psycopg import Connection
from pydantic import TypeAdapter

from remembrancer.domain import events as e
from remembrancer.domain.costs import Costs, evolve_costs
from remembrancer.domain.errors import InvalidInput, NotAllowed, NotFound
from remembrancer.domain.identity import Subject, check_key
from remembrancer.domain.policy import Policy
from remembrancer.domain.summaries import Summary
from remembrancer.domain.window import LEVELS, Detail, most_sent
from remembrancer.projections.queries import load_queries
from remembrancer.services.answers import NoticeView
from remembrancer.services.answers_summary import (
    CostAnswer,
    RebuildEstimate,
    RebuildView,
    RuleView,
    SummaryAnswer,
    SummaryChange,
    SummaryPart,
    SummaryRebuild,
)
from remembrancer.services.chat_models import ChatModel, Usage
from remembrancer.services.chats import ChatHome, Chats
from remembrancer.services.checks import answer_erased, checked_number, checked_text, shown
from remembrancer.services.clock import make_id
from remembrancer.services.deps import TENANT, Deps
from remembrancer.services.finder import Finder
from remembrancer.services.live_reader import SummaryText, read_summary
from remembrancer.services.requests import positions, request_for
from remembrancer.services.store import Appended, Batch, Decision, Fold
from remembrancer.services.summariser import Summariser
from remembrancer.services.summary_prompts import CHUNK_SHARE, MERGED_SHARE
from remembrancer.services.summary_reader import Backlog, last_turns
from remembrancer.services.tokens import count_tokens

_SQL = load_queries("remembrancer.services", "summaries")
_COSTS = TypeAdapter(Costs)
COSTS: Fold[Costs] = Fold("costs@1", Costs(), evolve_costs, _COSTS.dump_json, _COSTS.validate_json)
LONGEST_SUMMARY = 200_000
"""Code points."""
PROMPT_TOKENS = 500
"""About so many the instructions of one question have."""


class SummaryVerbs:
    """Commands and look-ups of summaries. See the module."""

    def __init__(
        self, deps: Deps, chats: Chats, finder: Finder, summariser: Summariser, model: ChatModel | None
    ) -> None:
        self._deps = deps
        self._chats = chats
        self._finder = finder
        self._summariser = summariser
        self._model = model

    # -- reading ---------------------------------------------------------------------------------------------------

    def show(self, chat: str) -> SummaryAnswer:
        """The summary as it is. See `Remembrancer.summary`."""
        seen = self._chats.view(chat)
        here = self._chats.require(chat)
        _, detail = self._summariser.setting(here)
        found = self._read(here)
        return SummaryAnswer(
            chat=here.key, detail=detail, text=found.text, tokens=found.tokens,
            parts=[_part(s) for s in found.standing],
            rules=[
                RuleView(id=_rule_id(span), message=span.message, author=author, text=words)
                for span, author, words in found.rules
            ],
            messages=seen.messages, unsummarised=seen.unsummarised, waits=seen.summaries_wait,
            rebuild=self._rebuild(here),
        )  # fmt: skip

    def _read(self, here: ChatHome) -> SummaryText:
        return self._deps.store.database.run(lambda conn: read_summary(conn, self._deps.store, here.stream))

    def _rebuild(self, here: ChatHome) -> RebuildView | None:
        at: dict[str, Any] = {"shard": here.stream.bytes[0], "chat": here.stream}

        def work(conn: Connection[Any]) -> RebuildView | None:
            row = conn.execute(_SQL["rebuild"], at).fetchone()
            if row is None:
                return None
            rebuild, upto, detail, started_at, state, reason, ended_at, messages = row
            done = messages
            if state != "completed":
                asked = at | {"rebuild": rebuild, "upto": upto, "protected": list(last_turns(conn, at))}
                left = conn.execute(_SQL["left_to_rebuild"], asked).fetchone()
                done = max(0, messages - (left[0] if left is not None else 0))
            return RebuildView(
                id=rebuild, state=state, detail=detail, messages=messages, done=done, started_at=started_at,
                ended_at=ended_at, reason=reason,
            )  # fmt: skip

        return self._deps.store.database.run(work)

    # -- changing --------------------------------------------------------------------------------------------------

    def edit(self, chat: str, summary: UUID, *, text: str, request_id: str | None) -> SummaryChange:
        """A person words a summary anew. See `Remembrancer.edit_summary`."""
        here = self._chats.require(chat)
        content = checked_text("summary", text)
        if not content.strip():
            raise InvalidInput("The summary is empty.", rule="D16", hint="An empty summary is no summary.")
        if len(content) > LONGEST_SUMMARY:
            raise InvalidInput(f"The summary has {len(content)} characters; at most {LONGEST_SUMMARY} are possible.")

        def decide(backlog: Backlog) -> tuple[e.SummaryEdited, tuple[Subject, ...]]:
            if backlog.running is not None:
                raise NotAllowed(
                    "A rebuild of this chat is under way, and would replace what you write.", rule="R7",
                    hint="Edit when it is done; `summary show` says how far it is.",
                )  # fmt: skip
            s = next((s for s in backlog.summaries.standing() if s.id == summary), None)
            if s is None:
                raise NotFound(
                    f"No summary {summary} is in use in chat {here.key!r}.", rule="D31",
                    hint="`summary show` lists those in use; one that became part of another is edited there.",
                )  # fmt: skip
            event = e.SummaryEdited(
                **self._stamp(here, request_id), summary=s.id, text=content, tokens=count_tokens(content)
            )
            return event, tuple(dict.fromkeys((here.home, *(Subject("user", a) for a in s.authors if a))))

        body = {"chat": chat, "summary": summary, "text": content}
        done = self._change(here, "edit_summary", body, decide, {"summary": summary, "rule": None}, request_id)
        return _changed(done, here)

    def remove_rule(self, chat: str, rule: str, *, request_id: str | None) -> SummaryChange:
        """A person takes a rule away. See `Remembrancer.remove_rule`."""
        here = self._chats.require(chat)
        check_key("rule", rule)

        def decide(backlog: Backlog) -> tuple[e.SummaryEdited, tuple[Subject, ...]]:
            found = [span for span in backlog.summaries.rules.values() if _rule_id(span) == rule]
            if not found:
                raise NotFound(
                    f"There is no rule {rule!r} in chat {here.key!r}.", rule="D31", hint="`summary rules` lists them."
                )
            return e.SummaryEdited(**self._stamp(here, request_id), removed=tuple(found)), (here.home,)

        body = {"chat": chat, "rule": rule}
        done = self._change(here, "remove_rule", body, decide, {"summary": None, "rule": rule}, request_id)
        return _changed(done, here)

    # -- making anew -----------------------------------------------------------------------------------------------

    def estimate(self, chat: str, detail: object) -> RebuildEstimate:
        """What a rebuild would take. See `Remembrancer.estimate_rebuild`."""
        here = self._chats.require(chat)
        wanted = next((level for level in LEVELS if level == detail), None)
        if detail is not None and wanted is None:
            raise InvalidInput(f"{shown(detail)} is no level.", rule="R3", hint=f"Use {', '.join(LEVELS)}.")
        policy, present = self._summariser.setting(here)
        backlog = self._summariser.backlog(here, present, policy)
        messages, tokens, _ = self._to_rebuild(here, backlog)
        level = wanted or present
        usage, calls = _estimated(messages, tokens, level, policy)
        prices = self._model.prices if self._model is not None else None
        return RebuildEstimate(
            chat=here.key, detail=level, messages=messages, calls=calls, input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens, cost=None if prices is None else prices.of(usage),
            extra_tokens=most_sent(level, policy.model_context) - most_sent(present, policy.model_context),
            edited=backlog.edited,
        )  # fmt: skip

    def rebuild(self, chat: str, *, replace_edited: bool, resume: bool, request_id: str | None) -> SummaryRebuild:
        """Make all summaries anew. See `Remembrancer.rebuild_summary`."""
        here = self._chats.require(chat)
        if self._model is None:
            raise NotAllowed(
                "No chat model is configured, so nothing can be summarised.", rule="R7",
                hint="Set REMEMBRANCER_CHAT_MODEL.",
            )  # fmt: skip
        _, detail = self._summariser.setting(here)
        fresh, kept = make_id(here.stream.bytes[0]), dict[str, Any]()

        def decide(backlog: Backlog) -> tuple[e.RebuildStarted, tuple[Subject, ...]]:
            before = backlog.rebuild
            if before is not None and before.state == "running":
                raise NotAllowed(
                    "A rebuild of this chat is under way.", rule="R7", hint="`summary show` says how far it is."
                )
            if resume and (before is None or before.state != "failed"):
                raise NotAllowed("No rebuild of this chat has failed, so none can be resumed.", rule="R7")
            edited = backlog.edited
            if edited and not replace_edited:
                raise NotAllowed(
                    f"{len(edited)} of the summaries are worded by a person, and would be replaced.", rule="D17",
                    hint="Agree with replace_edited (--replace-edited); their texts stay in history.",
                    edited=list(map(str, edited)),
                )  # fmt: skip
            messages, _, newest = self._to_rebuild(here, backlog)
            if resume and before is not None:
                start = before.id, before.upto, before.detail, backlog.rebuild_messages
            elif newest is None:
                raise NotAllowed("Nothing of this chat is old enough to be summarised.", rule="D15")
            else:
                start = fresh, newest, detail, messages
            kept.update(rebuild=start[0], messages=start[3])
            event = e.RebuildStarted(
                **self._stamp(here, request_id), rebuild=start[0], upto=start[1], detail=start[2], messages=start[3]
            )
            return event, (here.home,)

        body = {"chat": chat, "replace_edited": replace_edited, "resume": resume}
        done = self._change(here, "rebuild_summary", body, decide, kept, request_id)
        if done.answer is None:
            raise answer_erased()
        return SummaryRebuild(**orjson.loads(done.answer), chat=here.key, positions=positions(done))

    def _to_rebuild(self, here: ChatHome, backlog: Backlog) -> tuple[int, int, int | None]:
        """Messages old enough to be summarised: how many, their tokens, the newest one's number."""
        at = {
            "shard": here.stream.bytes[0], "chat": here.stream, "bound": backlog.bound,
            "protected": list(backlog.protected),
        }  # fmt: skip
        row = self._deps.store.database.run(lambda conn: conn.execute(_SQL["to_rebuild"], at).fetchone())
        return row if row is not None else (0, 0, None)

    # -- costs -----------------------------------------------------------------------------------------------------

    def report_cost(
        self, turn: str, *, cost: float | None, input_tokens: int | None, output_tokens: int | None,
        request_id: str | None,
    ) -> CostAnswer:  # fmt: skip
        """What a reply cost. See `Remembrancer.report_cost`."""
        check_key("turn", turn)
        spent = self._spent(cost, input_tokens, output_tokens)
        replies = self._finder.replies(turn)
        if not replies:
            raise self._finder.no_such_turn(turn)
        here = self._chats.require(replies[-1]["chat"])
        request = request_for(
            self._deps.tenant, here.stream.bytes[0], "report_cost", request_id, {"turn": turn, "cost": spent}
        )

        def load() -> tuple[Costs, int, Policy]:
            costs, settings = self._deps.store.load_many([(here.stream, COSTS), (self._deps.tenant_stream, TENANT)])
            return costs.state, costs.version, self._deps.policy(settings)[0]

        def decide(state: tuple[Costs, int, Policy]) -> Decision:
            costs, version, policy = state
            stamp = self._stamp(here, request_id) | {"turn": turn}
            events: list[e.Event] = [e.ReplyCosted(**stamp, cost=spent)]
            unusual = costs.unusual(spent, policy.high_cost_factor)
            if unusual:
                stamp["id"] = make_id(here.stream.bytes[0])
                events.append(e.HighCostNoticed(**stamp, cost=spent, median=costs.median()))
            kept = {"cost": spent, "median": costs.median(), "unusual": unusual}
            return Decision([Batch(here.stream, events, version)], orjson.dumps(kept))

        done = self._deps.store.transact(request, load, decide, now=self._deps.now())
        if done.answer is None:
            raise answer_erased()
        said = orjson.loads(done.answer)
        notice = self._notice(here, said) if said["unusual"] else None
        return CostAnswer(
            turn=turn, chat=here.key, cost=said["cost"], median=said["median"], notice=notice, positions=positions(done)
        )

    def _spent(self, cost: object, input_tokens: int | None, output_tokens: int | None) -> float:
        if cost is not None:
            if isinstance(cost, bool) or not isinstance(cost, int | float) or not 0 <= cost <= 1e15:
                raise InvalidInput(f"cost must be a number from 0 to 1e15, not {shown(cost)}.")
            return float(cost)
        usage = Usage(
            checked_number("input_tokens", 0 if input_tokens is None else input_tokens, 0, 2**53),
            checked_number("output_tokens", 0 if output_tokens is None else output_tokens, 0, 2**53),
        )
        if not any(usage):
            raise InvalidInput("What did it cost?", hint="Give cost, or input_tokens and output_tokens.")
        prices = self._model.prices if self._model is not None else None
        return float(sum(usage)) if prices is None else prices.of(usage)

    def _notice(self, here: ChatHome, said: dict[str, Any]) -> NoticeView:
        _, detail = self._summariser.setting(here)
        others = " or ".join(level for level in LEVELS if level != detail)
        return NoticeView(
            audience="everyone",
            text=f"High cost: this reply cost {said['cost']:g}, while {said['median']:g} is usual in this chat. Its"
            f" memory detail is {detail}; another level is {others}, and a rebuild applies it to the whole history.",
        )  # fmt: skip

    # -- the common way --------------------------------------------------------------------------------------------

    def _change(
        self, here: ChatHome, verb: str, body: dict[str, Any],
        decide: Callable[[Backlog], tuple[e.Event, tuple[Subject, ...]]], kept: dict[str, Any], request_id: str | None,
    ) -> Appended:  # fmt: skip
        """Decide on the chat as it is, and write under that version."""
        request = request_for(self._deps.tenant, here.stream.bytes[0], verb, request_id, body, (here.home,))
        if request_id is not None and (before := self._deps.store.find(request)) is not None:
            return before
        policy, detail = self._summariser.setting(here)

        def decided(backlog: Backlog) -> Decision:
            event, owners = decide(backlog)
            return Decision([Batch(here.stream, [event], backlog.version, owners)], orjson.dumps(kept))

        def load() -> Backlog:
            return self._summariser.backlog(here, detail, policy)

        return self._deps.store.transact(request, load, decided, now=self._deps.now())

    def _stamp(self, here: ChatHome, request_id: str | None) -> dict[str, Any]:
        shard = here.stream.bytes[0]
        return {"id": make_id(shard), "tenant": self._deps.tenant, "request_id": request_id, "chat": here.key}


def _estimated(messages: int, tokens: int, detail: Detail, policy: Policy) -> tuple[Usage, int]:
    """Tokens read and written, and questions asked, by the sizes that the model is asked to keep to."""
    size = LEVELS[detail].summary_tokens
    chunks = math.ceil(messages / policy.chunk_messages)
    merged = chunks // policy.recent_summaries
    long = merged // policy.merged_summaries
    recent_size, merged_size = min(size * CHUNK_SHARE, tokens / max(1, chunks)), size * MERGED_SHARE
    calls = chunks + merged + long
    read = tokens + chunks * recent_size + merged * merged_size + long * size / 2 + calls * PROMPT_TOKENS
    written = chunks * recent_size + merged * min(merged_size, policy.recent_summaries * recent_size) + long * size / 2
    return Usage(round(read), round(written)), calls


def _part(s: Summary) -> SummaryPart:
    return SummaryPart(
        id=s.id, tier=s.tier, messages=s.messages, text=s.text, tokens=s.tokens, detail=s.detail, edited=s.edited,
        made_at=s.made_at,
    )  # fmt: skip


def _rule_id(span: e.RuleSpan) -> str:
    return f"{span.message}:{span.start}-{span.end}"


def _changed(done: Appended, here: ChatHome) -> SummaryChange:
    if done.answer is None:
        raise answer_erased()
    return SummaryChange(**orjson.loads(done.answer), chat=here.key, positions=positions(done))
