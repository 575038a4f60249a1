"""What a Python program that sets up no logging sees of what is tried again in the background: nothing."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import stamina
from remembrancer import services

for attempt in stamina.retry_context(on=ValueError, attempts=3, wait_initial=0, wait_max=0):
    with attempt:
        if attempt.num < 3:
            raise ValueError
print("done")
"""


def test_retries_write_nothing_on_stderr_where_no_logging_is_set_up():
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=True)
    assert (ran.stdout, ran.stderr) == ("done\n", "")
