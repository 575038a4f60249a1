"""The texts of a PDF's pages, read by a process of its own: a file that takes all the time or memory there is takes
that of the child, which is ended."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from remembrancer.domain.documents import too_large
from remembrancer.domain.errors import InvalidInput, Unavailable
from remembrancer.domain.policy import Policy

SECONDS = 60
MEMORY = 2_000_000_000
"""Bytes of address space."""


def read_pdf(data: bytes, policy: Policy, *, seconds: int = SECONDS) -> list[str]:
    """The text of each page; empty for a page without one.

    Raises:
        InvalidInput: encrypted, broken, or too much work to read.
        DocumentTooLarge: more pages or characters than the policy allows.
    """
    limits = (policy.document_pages, policy.document_characters, MEMORY, seconds)
    command = [sys.executable, "-P", str(Path(__file__).with_name("pdf_child.py")), *map(str, limits)]
    try:
        done = subprocess.run(command, input=data, capture_output=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        raise _too_much_work(f"{seconds} seconds") from None
    except OSError as error:
        raise Unavailable(f"No process could be started to read the PDF: {error.strerror}.") from None
    try:
        said = json.loads(done.stdout)
    except ValueError:  # ended by the system, for its time or its memory
        raise _too_much_work(f"{seconds} seconds or {MEMORY // 1_000_000} MB") from None
    if "error" in said:
        raise _error(said, policy)
    pages: list[str] = said["pages"]
    return pages


def _too_much_work(limit: str) -> InvalidInput:
    return InvalidInput(
        f"Reading the PDF takes more than {limit}.", hint="Print it to a new PDF, or save its text as a .txt file."
    )


def _error(said: dict[str, Any], policy: Policy) -> InvalidInput:
    where = f", page {said['page']}" if "page" in said else ""
    match said["error"]:
        case "encrypted":
            return InvalidInput("The PDF is encrypted.", hint="Save it without a password first.")
        case "pages":
            return too_large("pages", said["pages"], policy.document_pages, "Split it.", "document_pages")
        case "characters":
            most = policy.document_characters
            return too_large("characters", said["characters"], most, "Split it.", "document_characters")
        case "memory":
            return _too_much_work(f"{MEMORY // 1_000_000} MB of memory")
        case _:
            return InvalidInput(f"The PDF is broken{where} ({said['why']}).", hint="Print it to a new PDF.")
