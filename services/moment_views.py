"""A past moment as an answer: its lists, its prompt, what the search found."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

from remembrancer.domain import events as e
from remembrancer.domain.identity import ListKey
from remembrancer.domain.moment import Blocks, Moment, asked_at, folded
from remembrancer.domain.prompt import fingerprint
from remembrancer.services.answers import MatchView, MemoryView, Prefix, Search
from remembrancer.services.answers_moment import MomentList, NearReply
from remembrancer.services.past import Stream, said
from remembrancer.services.views import in_reading_order, view, view_of


def erased_notes(lists: Mapping[ListKey, Stream]) -> list[str]:
    """A note on each list whose texts cannot be read any more, if there were any."""
    return [
        f"The list of {key} was erased since: its texts read [erased]."
        for key, one in lists.items()
        if one.erased and folded(one.events).memories
    ]


def lists_view(moment: Moment, streams: Mapping[ListKey, Stream], on_desk: Collection[UUID] | None) -> list[MomentList]:
    """The lists as they were. Without a place, the desk is R12's choice for each list alone, and nothing is hidden."""
    made = []
    for x in moment.lists:
        memories = x.state.memories.values()
        views = [
            view(m, x.state, x.key, moment.policy, moment.at)
            if on_desk is None
            else view_of(m, x.state.days, x.key, moment.policy, moment.at, on_desk=m.id in on_desk)
            for m in memories
        ]
        made.append(
            MomentList(
                **x.key._asdict(),
                version=streams[x.key].version,
                erased=streams[x.key].erased,
                memories=in_reading_order(views),
                hidden=[] if on_desk is None else sorted(m.id for m in memories if not moment.visible(m)),
            )
        )
    return made


def prefix_view(moment: Moment, blocks: Blocks) -> Prefix:
    """The beginning of the prompt."""
    views = memory_views(moment, blocks.order, on_desk=True)
    return Prefix(text=blocks.prefix, fingerprint=fingerprint(blocks.prefix), memories=views)


def memory_views(moment: Moment, ids: Sequence[UUID], *, on_desk: bool) -> list[MemoryView]:
    """These memories as they were; what is in none of the lists is left out."""
    found = [one for i in ids if (one := moment.find(i)) is not None]
    return [view_of(m, x.state.days, x.key, moment.policy, moment.at, on_desk=on_desk) for x, m in found]


def search_view(ev: e.ReplySearched, moment: Moment, found: Moment) -> Search:
    """What the search found, with the texts of then."""
    on_desk = set(ev.prefix)
    shown = [
        MatchView(**c.model_dump(), text=one[1].text)
        for c in ev.candidates
        if (one := (moment if c.memory in on_desk else found).find(c.memory)) is not None
    ]
    return Search(
        status=ev.search,
        reason=ev.reason,
        model=ev.model,
        threshold=ev.threshold,
        matches=[m for m in shown if m.matched],
        candidates=shown,
    )


def near_view(r: e.Recorded | None) -> NearReply | None:
    """A reply beside a moment, if there is one."""
    if r is None:
        return None
    ev = said(r)
    return NearReply(
        turn=ev.turn or "", attempt=ev.attempt, at=asked_at(ev, r.recorded_at), chat=ev.chat, server=ev.server,
        users=ev.users,
    )  # fmt: skip
