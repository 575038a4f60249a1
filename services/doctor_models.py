"""What `doctor` says of a change of the embedding model (D23): how far it is, why it waits, and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from remembrancer.domain.events import PolicyChanged
from remembrancer.domain.policy import Policy
from remembrancer.services.answers import Check, ModelChange

if TYPE_CHECKING:
    from remembrancer.services.engine import Engine

CHANGE = "change of model"


def findings(engine: Engine, now: ModelChange, policy: Policy) -> Iterator[Check]:
    """Nothing where the model of the settings serves and was never another."""
    if now.coming is not None:
        yield _on_its_way(now)
    elif now.settings != now.serving:
        yield _other_than_the_settings(engine, now)
    if policy.match_threshold is not None:
        yield from _threshold_of_another_model(engine, policy.match_threshold)


def _on_its_way(now: ModelChange) -> Check:
    said = [f"{now.coming} takes over from {now.serving}, begun {_moment(now.since)}"]
    said.append(f"{now.embedded:,} of {now.texts:,} texts have its vector")
    if now.refused:
        said.append(f"it refuses {now.refused:,} of them")
    if now.per_second and now.embedded < now.texts:
        left = timedelta(seconds=round((now.texts - now.embedded) / now.per_second))
        said.append(f"{now.per_second:.1f} a second, {left} left")
    if now.error is not None:
        said.append(f"it has been waiting since {_moment(now.error_at)}: {now.error}")
    elif now.settings != now.coming:
        said.append(f"the settings here name {now.settings}")
    hint = "Replies go on with the old vectors. A process whose settings name the new model goes on by itself."
    return Check(name=CHANGE, ok=now.error is None, detail="; ".join(said), hint=hint)


def _other_than_the_settings(engine: Engine, now: ModelChange) -> Check:
    known = engine.deps.models.met.get(now.settings or "")
    why = "no process has begun a change" if known is None else f"it was left {_moment(known.since)}"
    return Check(
        name=CHANGE,
        ok=False,
        detail=f"the settings name {now.settings}, but {now.serving} serves: {why}",
        hint="`remembrancer change-model` changes to it. If that is not meant, let the settings name what serves.",
    )


def _threshold_of_another_model(engine: Engine, threshold: float) -> Iterator[Check]:
    """A match threshold that was recorded for the model before (D5)."""
    met = engine.deps.models.met.values()
    served = next((one for one in met if one.state == "serving"), None)
    if served is None or all(one.state != "left" for one in met):
        return
    set_at: datetime | None = None
    value: object = None
    for recorded in engine.store.read([(engine.deps.tenant_stream, 0)]):
        if isinstance(recorded.event, PolicyChanged) and recorded.event.policy.get("match_threshold") != value:
            set_at, value = recorded.recorded_at, recorded.event.policy.get("match_threshold")
    if set_at is not None and set_at < served.since:
        yield Check(
            name="match threshold",
            ok=True,  # it may fit all the same
            detail=f"{threshold:g} was set {_moment(set_at)}, before {served.model} served: `remembrancer calibrate` "
            "measures it for this model (D5)",
        )


def _moment(at: datetime | None) -> str:
    return "" if at is None else f"{at:%Y-%m-%d %H:%M:%S} UTC"
