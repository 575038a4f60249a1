"""A what-if that spares nothing: both courses of every list are folded, each for itself, from the first event."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from remembrancer.domain.two_courses import TwoCourses
from remembrancer.domain.what_if import WhatIf
from remembrancer.services.remembrancer import Remembrancer
from remembrancer.services.what_if import _Run


def folded_apart(memory: Remembrancer, numbers: Mapping[str, Any]) -> WhatIf:
    """The fold of all history of a tenant under these numbers."""
    what_ifs = memory.engine.what_ifs
    run = _Run(what_ifs._by_moment, lambda: what_ifs._fold(numbers, None, None), None)
    for stream, key in what_ifs._by_moment.streams(None).lists.items():
        run.fold.lists[stream] = TwoCourses.apart(key)
    return run.advance()
