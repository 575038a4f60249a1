"""What users call: `open_memory`, and behind it everything that talks to the outside."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from remembrancer.services.remembrancer import Remembrancer

__all__ = ["open_memory"]

logging.getLogger("stamina").addHandler(logging.NullHandler())
"""That something is tried again is for those who set up logging; without it, every retry would stand on stderr."""


def open_memory(
    url: str | None = None,
    *,
    data_dir: Path | str | None = None,
    clock: Callable[[], datetime] | None = None,
    background: bool = True,
    **settings: Any,
) -> Remembrancer:
    """Open the memories of a tenant.

    Args:
        url: address of a PostgreSQL with pgvector; left out, REMEMBRANCER_DATABASE_URL, else an embedded one.
        data_dir: where the embedded database lives; left out, the platform's user data directory.
        clock: returns an aware moment; left out, the system's, asked at each use.
        background: whether this process projects events into the read model; replies are right without it, too.
        settings: `tenant`, `redis_url`, `embedder` (``local``, ``openai``, ``none``) with `embedder_url`,
            `embedder_model`, `embedder_key`, and every field of the policy; over environment and file (SPEC 6).

    Raises:
        Unavailable: the database or the data directory cannot be used; the error says what to do.
        InvalidInput: an unknown setting, or a value that does not fit.
    """
    from remembrancer.services.engine import Engine
    from remembrancer.services.remembrancer import Remembrancer
    from remembrancer.services.settings import load_settings

    loaded = load_settings(database_url=url, data_dir=data_dir, **settings)
    return Remembrancer(Engine(loaded, clock=clock, background=background))
