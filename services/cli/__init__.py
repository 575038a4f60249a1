"""The command line: `remembrancer VERB`. A face like any other: it asks `open_memory` and shows the answer."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line of this process and leave with 0 done, 1 refused, 2 usage, 130 interrupted."""
    from remembrancer.services.cli.process import run

    sys.exit(run(sys.argv[1:]))
