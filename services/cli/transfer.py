"""The verbs `import` and `export`: files in and out."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from remembrancer.domain.errors import InvalidInput
from remembrancer.services.cli.arguments import MaybePersona, Subject, option
from remembrancer.services.cli.session import Session, read_stdin
from remembrancer.services.cli.verb import verb

TOMORI = ("workspace_memories", "personal_memories")


def import_(
    here: Session,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Ours or TomoriBot's; - reads standard input.")],
    persona: Annotated[str | None, option(metavar="KEY", help="Whose memories, for a TomoriBot file.")] = None,
    subject: Subject = None,
) -> None:
    """Import memories. The same file again imports nothing, and nothing is forgotten for it."""
    from remembrancer.services.cli import show

    text = read_file(file)
    whole = tomori_file(text)
    if whole is None and (persona is not None or subject is not None):
        raise InvalidInput("Our own files say whose memories they are.", hint="Leave --persona and --subject out.")
    rows = [] if whole is not None else list(json_lines(text, file))
    with here.open() as memory, here.screen.progress("Importing") as progress:
        if whole is not None:
            answer = memory.import_tomori(whole, persona=persona, subject=subject, progress=progress)
        else:
            answer = memory.import_rows(rows, progress=lambda done, _total: progress(done, len(rows)))
    here.show(answer, lambda screen: show.imported(screen, answer))
    if answer.skipped:
        raise typer.Exit(1)


def export(
    here: Session,
    persona: MaybePersona = None,
    output: Annotated[Path | None, option("--output", "-o", metavar="FILE", help="Write there instead.")] = None,
) -> None:
    """Export memories as JSON lines.

    They are complete: `import` makes exactly the same of them.
    """
    with here.open() as memory:
        rows = memory.export(persona=persona)
        if output is None and here.options.json:
            here.write_json(list(rows))
            return
        if output is None:
            sys.stdout.writelines(map(_json_line, rows))
            return
        written = _write_file(here, output, rows)
    if here.options.json:
        here.write_json({"exported": written, "file": str(output)})
    else:
        here.screen.line(f"{written} rows in {output}")


def _write_file(here: Session, output: Path, rows: Iterable[dict[str, Any]]) -> int:
    """All rows or no file: an older one is replaced in one step. Returns how many rows."""
    part = output.with_name(output.name + ".part")
    written = 0
    try:
        with here.screen.progress("Exporting") as progress, part.open("w", encoding="utf-8") as file:
            for written, row in enumerate(rows, start=1):
                file.write(_json_line(row))
                progress(written, None)
        part.replace(output)
    except OSError as error:
        raise InvalidInput(f"{output} cannot be written: {error.strerror}.") from None
    finally:
        part.unlink(missing_ok=True)
    return written


def _json_line(row: dict[str, Any]) -> str:
    from remembrancer.services.cli.screen import json_text

    return json_text(row, indent=None) + "\n"


def read_file(name: str) -> str:
    """The text of a file, or of standard input for `-`.

    Raises:
        InvalidInput: there is none, or it is not UTF-8.
    """
    if name == "-":
        return read_stdin()
    try:
        return Path(name).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InvalidInput(f"{name} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{name} is not UTF-8: byte {error.start} is {error.object[error.start]:#04x}.") from None


def tomori_file(text: str) -> dict[str, Any] | None:
    """The document, if the whole text is one of TomoriBot's."""
    try:
        document = json.loads(text)
    except ValueError:
        return None
    is_one = isinstance(document, dict) and (document.get("type") in TOMORI or "data" in document)
    return document if is_one else None


def json_lines(text: str, name: str) -> Iterator[dict[str, Any]]:
    """The rows of our own format: a line each, or one JSON list of them.

    Raises:
        InvalidInput: a line is no JSON object; or there is none at all.
    """
    if text.lstrip().startswith("["):
        try:
            rows = json.loads(text)
        except ValueError as error:
            raise InvalidInput(f"{name} is not JSON: {error}.") from None
        numbered = list(enumerate(rows, start=1))
    else:
        numbered = [(n, _parsed(line, n, name)) for n, line in enumerate(text.split("\n"), start=1) if line.strip()]
    if not numbered:
        raise InvalidInput(f"{name} holds nothing.", hint="`export` writes such files.")
    for n, row in numbered:
        if not isinstance(row, dict):
            raise InvalidInput(f"{name}, row {n}: not an object but {type(row).__name__}.")
        yield row


def _parsed(line: str, n: int, name: str) -> Any:
    try:
        return json.loads(line)
    except ValueError as error:
        raise InvalidInput(f"{name}, line {n}: not JSON: {error}.", hint="`export` writes such files.") from None


def register(app: typer.Typer) -> None:
    """Add these verbs."""
    verb(app, "import")(import_)
    verb(app)(export)
