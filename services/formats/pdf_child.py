"""Reads a PDF from standard input, as a process of its own: see `pdf.py`. Imports nothing of Remembrancer.

Writes one JSON document: {"pages": [texts]}, or {"error": what, ...} where it cannot.
"""

from __future__ import annotations

import io
import json
import logging
import sys
from contextlib import suppress
from typing import Any


def read(data: bytes, most_pages: int, most_characters: int) -> dict[str, Any]:
    """The texts of the pages, or why there are none."""
    from pypdf import PdfReader

    try:
        reader = PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            return {"error": "encrypted"}
        count = len(reader.pages)
        if count > most_pages:
            return {"error": "pages", "pages": count}
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 (whatever the file makes the library stumble over)
        return {"error": "broken", "why": type(error).__name__}
    pages: list[str] = []
    characters = 0
    for n in range(count):
        try:
            pages.append(reader.pages[n].extract_text())
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 (as above)
            return {"error": "broken", "page": n + 1, "why": type(error).__name__}
        characters += len(pages[-1])
        if characters > most_characters:
            return {"error": "characters", "characters": characters, "page": n + 1}
    return {"pages": pages}


def main() -> None:
    """Read, and answer."""
    most_pages, most_characters, memory, seconds = map(int, sys.argv[1:])
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    logging.disable(logging.CRITICAL)
    try:
        answer = read(sys.stdin.buffer.read(), most_pages, most_characters)
    except MemoryError:
        answer = {"error": "memory"}
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main()
