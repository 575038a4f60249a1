"""Files of text, markdown and PDF, and the passages that they are split into."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path, PurePath
from typing import NamedTuple

from remembrancer.domain.documents import Passage, too_large
from remembrancer.domain.errors import DocumentTooLarge, InvalidInput
from remembrancer.domain.identity import check_key
from remembrancer.domain.policy import Policy
from remembrancer.services.checks import shown
from remembrancer.services.formats.pdf import read_pdf
from remembrancer.services.tokens import count_tokens

PASSAGE_TOKENS = 200
"""A passage has at most so many tokens: what the local model reads whole, and a few of them fit into a prompt."""
EMPTY_HEADINGS = 5
"""So many times the passages that are possible may be the headings, those that say nothing among them."""
TEXT, MARKDOWN, PDF = "text/plain", "text/markdown", "application/pdf"
_TYPES = {"": TEXT, ".txt": TEXT, ".text": TEXT, ".md": MARKDOWN, ".markdown": MARKDOWN, ".pdf": PDF}
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_LONG_BLANK, _MANY_LINES = re.compile(r"[^\S\n]{9,}"), re.compile(r"\n(?:[^\S\n]*\n){2,}")


_Piece = tuple[int | None, str | None, str]
"""Page, heading and words of a passage."""


class File(NamedTuple):
    """A file as it came: its name, its bytes, their SHA-256."""

    name: str
    data: bytes
    digest: str


class Parsed(NamedTuple):
    """A document that can be looked through. `pages` of a PDF only; `characters` are code points of its text."""

    media_type: str
    pages: int | None
    characters: int
    passages: list[Passage]


def take_file(source: object, name: object, policy: Policy) -> File:
    """The bytes of a file, by its path or as they are, and the name under which people know it.

    Raises:
        InvalidInput: it cannot be read, is empty, or has no name.
        DocumentTooLarge: more bytes than the policy allows.
    """
    most = policy.document_bytes
    if isinstance(source, bytes | bytearray | memoryview):
        data = bytes(source)
        if name is None:
            raise InvalidInput("A document needs a name.", hint="Name it as its file is called: rules.md.")
    elif isinstance(source, str | PurePath):
        path = Path(source)
        name = path.name if name is None else name
        try:
            if path.exists() and not path.is_file():
                raise InvalidInput(f"{path} is no file.")
            with path.open("rb") as file:
                size = file.seek(0, 2)
                file.seek(0)
                data = file.read(most + 1) if size <= most else b""
        except OSError as error:
            raise InvalidInput(f"{path} cannot be read: {error.strerror}.") from None
        except ValueError:  # a NUL in the path
            raise InvalidInput(f"{shown(source)} is no path.") from None
        if size > most:
            raise too_large("bytes", size, most, "Split it.", "document_bytes")
    else:
        raise InvalidInput(f"A document is a path or bytes, not {type(source).__name__}.")
    if len(data) > most:
        raise too_large("bytes", len(data), most, "Split it.", "document_bytes")
    if not data:
        raise InvalidInput("The document is empty.")
    return File(check_key("name", name), data, hashlib.sha256(data).hexdigest())


def parse(file: File, policy: Policy) -> Parsed:
    """The passages of a file.

    Raises:
        InvalidInput: neither text, markdown nor PDF; not UTF-8; a PDF that is encrypted, broken or only pictures.
        DocumentTooLarge: more pages, characters or passages than the policy allows.
    """
    kind = _media_type(file)
    if kind == PDF:
        pages = [_tidy(_readable(page)).strip() for page in read_pdf(file.data, policy)]
        text = "".join(pages)
        if not text.strip():
            raise InvalidInput(
                f"The PDF has {len(pages)} page{'s' * (len(pages) != 1)} and no text: it is a scan, or pictures.",
                hint="Recognise its text (OCR) first.",
            )
        pieces = _up_to(policy, ((n, None, piece) for n, page in enumerate(pages, start=1) for piece in split(page)))
    else:
        text = _tidy(_decoded(file.data))
        if len(text) > policy.document_characters:
            most = policy.document_characters
            raise too_large("characters", len(text), most, "Split it.", "document_characters")
        sections = _sections(text, policy.document_passages) if kind == MARKDOWN else [(None, text)]
        pieces = _up_to(policy, ((None, heading, piece) for heading, section in sections for piece in split(section)))
    if not pieces:
        raise InvalidInput("The document has no text.")
    passages = [Passage(n, page, heading, piece) for n, (page, heading, piece) in enumerate(pieces, start=1)]
    return Parsed(kind, len(pages) if kind == PDF else None, len(text), passages)


def _up_to(policy: Policy, pieces: Iterable[_Piece]) -> list[_Piece]:
    """The pieces, if there are not too many: what no shelf takes is not cut to its end.

    Raises:
        DocumentTooLarge: more than the policy allows.
    """
    most = policy.document_passages
    found = list(islice(pieces, most + 1))
    if len(found) > most:
        raise _too_many(most)
    return found


def _too_many(most: int) -> DocumentTooLarge:
    return too_large("passages", None, most, "Add a part of it.", "document_passages")


def split(text: str) -> list[str]:
    """Pieces of at most `PASSAGE_TOKENS` tokens, cut between paragraphs, else sentences, else words."""
    from semchunk.semchunk import chunk

    if not any(c.isalnum() for c in text):
        return []
    pieces: Sequence[str] = chunk(text, PASSAGE_TOKENS, count_tokens, memoize=False)  # type: ignore[assignment]
    return [piece.strip() for piece in pieces if any(c.isalnum() for c in piece)]


def _media_type(file: File) -> str:
    ending = PurePath(file.name).suffix.lower()
    if (found := _TYPES.get(ending)) is None:
        found = TEXT if " " in ending else None  # "Rules v1. of the house" has no ending
    # A text may speak of "%PDF-" near its beginning; only a file that is named as one may have something before it.
    if file.data.startswith(b"%PDF-") or (found == PDF and b"%PDF-" in file.data[:1024]):
        return PDF
    if found is None:
        raise InvalidInput(
            f"{shown(file.name)} is no kind of file that can be read.", hint="Use .txt, .md or .pdf.",
            endings=[ending for ending in _TYPES if ending],
        )  # fmt: skip
    if found == PDF:
        raise InvalidInput("The PDF is broken: it does not begin like one.", hint="Print it to a new PDF.")
    return found


def _decoded(data: bytes) -> str:
    if data.startswith(_UTF_16):
        raise InvalidInput("The document is UTF-16.", hint="Save it as UTF-8.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"The document is not UTF-8: byte {error.start} is {data[error.start]:#04x}.", hint="Save it as UTF-8."
        ) from None
    if (at := text.find("\x00")) >= 0:
        raise InvalidInput(f"Character {at} of the document is a NUL, which is no text.", hint="Is it a text at all?")
    return text


def _readable(text: str) -> str:
    """What a PDF says without what is no text: nobody can mend that in the file."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")


def _tidy(text: str) -> str:
    """Line ends as one character, and no blanks without end: what a splitter cuts at."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _MANY_LINES.sub("\n\n", _LONG_BLANK.sub(" " * 8, text))


def _sections(text: str, most: int) -> Iterator[tuple[str | None, str]]:
    """The parts of a markdown text between its headings, each with the headings above it: ``Rules › Cats``.

    Raises:
        DocumentTooLarge: more than `most` headings that say something, each of which begins a passage; or many times
            as many that say nothing.
    """
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock, heading, lheading

    begins = headings = 0

    def counted(rule: Callable[[StateBlock, int, int, bool], bool]) -> Callable[[StateBlock, int, int, bool], bool]:
        def run(state: StateBlock, start: int, end: int, silent: bool) -> bool:
            nonlocal begins, headings
            found = rule(state, start, end, silent)
            if found and not silent:
                headings += 1
                begins += state.level == 0 and any(c.isalnum() for c in state.tokens[-2].content)
                if begins > most:
                    raise _too_many(most)
                if headings > EMPTY_HEADINGS * most:
                    raise too_large("headings", None, EMPTY_HEADINGS * most, "Split it.", "document_passages")
            return found

        return run

    parser = MarkdownIt("commonmark")
    parser.block.ruler.at("heading", counted(heading), {"alt": ["paragraph", "reference", "blockquote"]})
    parser.block.ruler.at("lheading", counted(lheading))
    parser.core.ruler.enableOnly(["normalize", "block"])
    tokens = parser.parse(text)
    lines = text.split("\n")
    path: list[tuple[int, str]] = []
    begun = 0
    for token, inside in pairwise(tokens):
        if token.type != "heading_open" or token.map is None or token.level > 0:
            continue
        yield _path(path), "\n".join(lines[begun : token.map[0]])
        begun, level = token.map[0], int(token.tag[1:])
        path = [(above, title) for above, title in path if above < level]
        path.append((level, " ".join(inside.content.split())))
    yield _path(path), "\n".join(lines[begun:])


def _path(path: Sequence[tuple[int, str]]) -> str | None:
    return " › ".join(title for _, title in path if title)[:300] or None
