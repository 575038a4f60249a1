"""How long the embedded database takes to be made, to start again, to be shared and to stop.

    python scripts/bench/embedded.py [FOLDER]

FOLDER says on which disk (default: the temporary folder). Median and worst of seven, flushes on.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TypeVar

from remembrancer.services.embedded import EmbeddedPostgres, open_embedded

ROUNDS = 7
T = TypeVar("T")


def main() -> None:
    """Measure and print a table."""
    seconds: dict[str, list[float]] = {"made": [], "started again": [], "shared": [], "stopped": []}

    def timed(what: str, act: Callable[[], T]) -> T:
        start = time.perf_counter()
        result = act()
        seconds[what].append(time.perf_counter() - start)
        return result

    for _ in range(ROUNDS):
        with TemporaryDirectory(dir=sys.argv[1] if sys.argv[1:] else None) as folder:
            Path(folder).chmod(0o755)
            data_dir = Path(folder, "data")

            def opening(data_dir: Path = data_dir) -> EmbeddedPostgres:
                return open_embedded(data_dir)

            timed("made", opening).close()
            server = timed("started again", opening)
            timed("shared", opening).close()
            timed("stopped", server.close)
    print(f"{'the server is':16}{'median ms':>10}{'worst ms':>10}")
    for what, took in seconds.items():
        print(f"{what:16}{median(took) * 1000:10.0f}{max(took) * 1000:10.0f}")


if __name__ == "__main__":
    main()
