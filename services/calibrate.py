"""Measures the match threshold for the model in use (D5)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from remembrancer.services.answers import Calibration
from remembrancer.services.deps import Deps


class Calibrator:
    """See `Remembrancer.calibrate`."""

    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def calibrate(self, probes: Path | None, progress: Callable[[int, int | None], None] | None) -> Calibration:
        """Not there yet."""
        raise NotImplementedError
