"""Was the read model built by this code? What `doctor` says of it.

No number of the policy asks for a rebuild: what follows from it is derived at every read, and what was decided by it is
in the events (U3). Only code that folds the same events into other rows does.
"""

from __future__ import annotations

from remembrancer.services.answers import Check
from remembrancer.services.answers_rebuild import GenerationView, RebuildStatus

IDLE_SECONDS = 60.0
"""After so long without a sign of life, a rebuild was killed, or waits for somebody to agree."""
WAITS = "`remembrancer rebuild` goes on with it, `rebuild --cancel` gives it up."


def read_model(status: RebuildStatus) -> Check:
    """One finding: which live projections another version of their code has built, and what to do."""
    live = [g for g in status.generations if g.live]
    older = [g for g in live if g.current is not None and g.version < g.current]
    newer = [g for g in live if g.current is not None and g.version > g.current]
    said = [f"{g.projection} was built by version {g.version}, this is version {g.current}" for g in newer + older]
    idle = status.state != "none" and status.idle_seconds > IDLE_SECONDS
    if status.state != "none":
        doing = f"waits since {status.idle_seconds:.0f} seconds" if idle else f"is {status.state}"
        said.append(f"a rebuild of {', '.join(status.projections)} {doing}")
    return Check(
        name="read model",
        ok=not older and not newer and not idle,
        detail="; ".join(said) or "built by the present code",
        hint=_hint(older, newer) or (WAITS if idle else None),
    )


def _hint(older: list[GenerationView], newer: list[GenerationView]) -> str | None:
    if newer:
        return "Update this installation: a newer version has rebuilt it."
    if older:
        return f"Run `remembrancer rebuild {' '.join(g.projection for g in older)}`: replies go on meanwhile."
    return None
