"""How a rebuild looks: what differs, what came of it, how far it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from remembrancer.services.cli.screen import Column, Screen, json_text
from remembrancer.services.cli.show import moment

if TYPE_CHECKING:
    from remembrancer.services.answers_rebuild import Comparison, Difference, RebuildAnswer, RebuildStatus

_TABLES = (Column("table"), Column("rows now", number=True), Column("rows anew", number=True),
           Column("not the same", number=True))  # fmt: skip
_SAMPLE = (Column("table"), Column("row", style="dim"), Column("column"), Column("now", wide=True),
           Column("anew", wide=True))  # fmt: skip
_PARKED = (Column("projection"), Column("parked stream"), Column("why", wide=True))
_GENERATIONS = (Column("projection"), Column("generation", number=True), Column(""), Column("built by", wide=True))
WAITS_AFTER = 10.0
"""Seconds without a sign of life."""
_NAMED_BY = ("day", "position", "id", "memory", "list")
"""What tells a person best which row it is."""


def comparison(screen: Screen, found: Comparison) -> None:
    """Counts, and a sample of what differs."""
    rows = [(t.table, f"{t.before:,}", f"{t.after:,}", _count(t.different)) for t in found.tables]
    screen.table(_TABLES, rows)
    if found.sample:
        screen.heading("Some of what is not the same")
        screen.table(_SAMPLE, [row for one in found.sample for row in _rows(one)])
    if found.parked:
        screen.heading("Streams that the new one could not take", "all others go on; `remembrancer doctor --repair`")
        screen.table(_PARKED, [(p.projection, str(p.stream), p.error) for p in found.parked])
    if found.shards_left_out:
        screen.line(Text(f"{found.shards_left_out} shards changed too fast to be compared.", "yellow"))


def _count(n: int) -> Text:
    return Text(f"{n:,}", "bold red" if n else "green")


def _rows(one: Difference) -> list[tuple[str, str, str, str, str]]:
    name = next((str(one.key[key]) for key in _NAMED_BY if key in one.key), "")
    if one.before is None or one.after is None:
        there = one.before or one.after or {}
        said = str(there.get("text") or there.get("sentence") or "a row")
        gone = ("there", "missing") if one.after is None else ("missing", "there")
        return [(one.table, name, said, *gone)]
    before, after = one.before, one.after
    return [(one.table, name, column, _value(before[column]), _value(after[column])) for column in before]


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json_text(value, indent=None)


def rebuilt(screen: Screen, answer: RebuildAnswer) -> None:
    """After `rebuild`."""
    match answer.status:
        case "switched":
            if answer.comparison is not None:
                comparison(screen, answer.comparison)
            rate = f"{answer.events:,} events in {answer.seconds:.1f} seconds" if answer.events else "no events"
            names = ", ".join(answer.projections)
            screen.line(Text("Rebuilt", "bold green"), f" {names}: generation {answer.generation} is live ({rate}).")
        case "waiting":
            if not screen.can_ask and answer.comparison is not None:
                comparison(screen, answer.comparison)
            found = answer.comparison
            why = "the new rows are not the same as the old ones"
            if found is not None and found.shards_left_out and not any(t.different for t in found.tables):
                why = "not all rows could be compared"
            screen.line(Text("Not switched", "bold yellow"), f": {why}.")
            screen.line("`remembrancer rebuild --yes` switches all the same, --cancel gives it up.")
        case "cancelled":
            screen.line(f"The rebuild of {', '.join(answer.projections)} is given up. Nothing else was changed.")
        case "nothing":
            screen.line("There is none.")
    if answer.dropped:
        screen.line(Text(f"Dropped: {', '.join(answer.dropped)}.", "dim"))
    if answer.kept:
        screen.line(f"Somebody is still reading {', '.join(answer.kept)}: `remembrancer rebuild --drop-old` later.")


def status(screen: Screen, found: RebuildStatus) -> None:
    """After `rebuild --status`."""
    if found.state == "none":
        screen.line("No rebuild is under way.")
    else:
        names = ", ".join(found.projections)
        waits = found.idle_seconds > WAITS_AFTER
        screen.heading(f"A rebuild of {names} is under way", "waits: nobody works at it" if waits else found.state)
        screen.line(
            f"{found.events:,} of {found.events_in_all:,} events, {found.shards} of {found.shards_in_all} shards"
        )
        if found.started_at is not None and found.changed_at is not None:
            screen.line(f"begun {moment(found.started_at)}, last sign of life {moment(found.changed_at)}")
        screen.line(Text("`remembrancer rebuild` goes on with it, --cancel gives it up.", "dim"))
    rows = []
    for g in found.generations:
        if g.current is None or g.version == g.current:
            by = Text(f"version {g.version}")
        else:
            by = Text(f"version {g.version}; this is version {g.current}", "yellow")
        under_way = g.generation == found.generation and g.projection in found.projections
        state = Text("live", "green") if g.live else Text("being built" if under_way else "old", "dim")
        rows.append((g.projection, str(g.generation), state, by))
    screen.table(_GENERATIONS, rows)
