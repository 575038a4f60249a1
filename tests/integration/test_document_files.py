"""What can be a document, and what is refused with a clear reason: nothing is written then."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from remembrancer.domain.errors import DocumentTooLarge, InvalidInput
from remembrancer.domain.policy import Policy
from remembrancer.services.formats.documents import PASSAGE_TOKENS, Parsed, parse, split, take_file
from remembrancer.services.formats.pdf import read_pdf
from remembrancer.services.tokens import count_tokens
from tests.support.pdf import bomb, encrypted, pdf
from tests.support.read_model import count_of_everything
from tests.support.world import PERSONA, World

POLICY = Policy()


def parsed(data: bytes, name: str, **numbers: int) -> Parsed:
    policy = Policy(**numbers)  # type: ignore[arg-type]
    return parse(take_file(data, name, policy), policy)


# -- text and markdown ---------------------------------------------------------------------------------------------


def test_a_text_is_kept_in_its_own_words() -> None:
    found = parsed("\ufeffКошку зовут Моти.\r\n\r\n猫は月が好き。\r\n".encode(), "note.txt")
    assert (found.media_type, found.pages, found.characters) == ("text/plain", None, 27)
    assert [p.text for p in found.passages] == ["Кошку зовут Моти.\n\n猫は月が好き。"]


def test_a_markdown_has_a_place_for_each_passage() -> None:
    text = b"""before

# Rules *of* the house

One.

### Deep

Two.

```
# no heading
```

Setext
------

Three.

# Rules again
"""
    found = parsed(text, "rules.MD")
    assert [(p.n, p.heading, p.text.split("\n")[-1]) for p in found.passages] == [
        (1, None, "before"),
        (2, "Rules *of* the house", "One."),
        (3, "Rules *of* the house › Deep", "```"),
        (4, "Rules *of* the house › Setext", "Three."),
        (5, "Rules again", "# Rules again"),
    ]
    assert found.media_type == "text/markdown"


@pytest.mark.parametrize(
    "text",
    [
        "word " * 5_000,
        "a" * 20_000,
        "猫は月が好き。" * 1_000,
        "".join("a" + "\n" * n for n in range(400)),
        "".join("a" + " " * n for n in range(400)),
        "\n".join("a" + " " * n + "\n \t" * n for n in range(100)),
        "# \n" * 2_000 + "end",
        "> " * 3_000 + "deep",
        "- [" * 3_000 + "end",
        "\U0001f9e6" * 3_000 + "end",
    ],
    ids=range(10),
)
@pytest.mark.parametrize("name", ["a.txt", "a.md"])
def test_any_text_is_split_into_passages_of_bounded_size_and_nothing_is_lost(text: str, name: str) -> None:
    found = parsed(text.encode(), name)
    assert all(0 < count_tokens(p.text) <= PASSAGE_TOKENS for p in found.passages)
    together = "".join("".join(p.text.split()) for p in found.passages)
    letters = "".join(c for c in text if c.isalnum())
    assert "".join(c for c in together if c.isalnum()) == letters


def test_what_says_nothing_is_no_passage() -> None:
    assert split("---\n\n***\n\n\U0001f9e6") == []
    with pytest.raises(InvalidInput, match="has no text"):
        parsed("\U0001f9e6".encode(), "a.txt")


@pytest.mark.parametrize(
    ("data", "name", "says"),
    [
        (b"", "a.txt", "is empty"),
        (b" \n\t ", "a.txt", "has no text"),
        (b"\n\n---\n", "a.md", "has no text"),
        (b"caf\xe9", "a.txt", "not UTF-8: byte 3 is 0xe9"),
        ("café".encode("utf-16"), "a.txt", "is UTF-16"),
        (b"nul \x00 here", "a.md", "Character 4 of the document is a NUL"),
        (b"PK\x03\x04", "a.docx", "no kind of file that can be read"),
        (b"<html>", "a.html", "no kind of file that can be read"),
        (b"not a pdf", "a.pdf", "does not begin like one"),
    ],
)
def test_what_is_no_text_is_refused_with_the_reason(data: bytes, name: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        parsed(data, name)


def test_bytes_and_characters_have_limits_and_the_error_names_both_numbers() -> None:
    assert parsed(b"ten letter", "a.txt", document_bytes=10, document_characters=10).characters == 10
    with pytest.raises(DocumentTooLarge, match=r"11 bytes; at most 10 .*document_bytes"):
        parsed(b"ten letters", "a.txt", document_bytes=10)
    with pytest.raises(DocumentTooLarge, match=r"11 characters; at most 10 .*document_characters"):
        parsed(b"ten letters", "a.txt", document_characters=10)


def test_a_path_that_is_no_file_is_refused(tmp_path: Path) -> None:
    big = tmp_path / "big.txt"
    with big.open("wb") as file:
        file.truncate(50_000_000_000)  # takes no room, and is not read
    os.mkfifo(tmp_path / "pipe.txt")
    for path, says in (
        (tmp_path / "none.txt", "cannot be read: No such file"),
        (tmp_path, "is no file"),
        (tmp_path / "pipe.txt", "is no file"),
        (Path("/dev/zero"), "is no file"),
        (str(tmp_path / "a\x00b"), "is no path"),
        (tmp_path / ("x" * 400), "cannot be read"),
        (big, "50000000000 bytes; at most 10000000"),
    ):
        with pytest.raises(InvalidInput, match=says):
            take_file(path, None, POLICY)


# -- PDF -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compress", [True, False])
def test_a_pdf_gives_its_pages(compress: bool) -> None:
    found = parsed(
        pdf(["Mochi (the cat)\nsleeps.", "", "Über 3 €".replace("€", "euro")], compress=compress), "any name.pdf"
    )
    assert (found.media_type, found.pages) == ("application/pdf", 3)
    assert [(p.n, p.page, p.text) for p in found.passages] == [
        (1, 1, "Mochi (the cat)\nsleeps."), (2, 3, "Über 3 euro"),
    ]  # fmt: skip


@pytest.mark.parametrize("heading", ["# a\n", "a\n=\n"])
def test_more_headings_than_passages_are_possible_are_not_read_to_their_end(heading: str) -> None:
    begun = time.monotonic()
    with pytest.raises(DocumentTooLarge, match=r"more than 10000 passages; at most 10000 .*document_passages"):
        parsed(heading.encode() * (1_900_000 // len(heading)), "a.md")
    assert time.monotonic() - begun < 10
    with pytest.raises(DocumentTooLarge, match="more than 2 passages"):
        parsed(b"\n".join([b"word " * 200] * 3), "a.txt", document_passages=2)
    with pytest.raises(DocumentTooLarge, match="more than 10 headings; at most 10"):
        parsed(b"#\n" * 11, "a.md", document_passages=2)
    assert len(parsed(b"# a\n# b\n```\n# c\n```\n# !\n", "a.md", document_passages=2).passages) == 2


def test_a_pdf_is_told_by_its_bytes_and_not_by_its_name() -> None:
    assert parsed(pdf(["text"]), "scroll.txt").media_type == "application/pdf"


def test_a_text_may_speak_of_pdf_near_its_beginning() -> None:
    said = b"# Files\n\nA PDF begins with %PDF-1.7 and a line end."
    assert parsed(said, "notes.md").media_type == "text/markdown"
    assert parsed(said, "notes.txt").media_type == "text/plain"
    assert parsed(b"\n\n" + pdf(["text"]), "scroll.pdf").media_type == "application/pdf", "something may come before it"


def test_a_pdf_that_anybody_may_open_is_read_although_it_is_encrypted() -> None:
    assert parsed(encrypted(pdf(["readable"]), ""), "a.pdf").passages[0].text == "readable"


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (encrypted(pdf(["hidden"]), "secret"), "is encrypted"),
        (pdf(["cut"])[:300], "is broken"),
        (b"%PDF-1.7 and nothing else", "is broken"),
        (pdf(["", ""]), "2 pages and no text: it is a scan"),
        (bomb(200), "is broken, page 1"),
    ],
    ids=["encrypted", "cut", "rubbish", "scan", "bomb"],
)
def test_a_pdf_that_cannot_be_read_is_refused_with_the_reason(data: bytes, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        parsed(data, "a.pdf")


def test_pages_and_characters_of_a_pdf_have_limits() -> None:
    data = pdf(["ten letter"] * 3)
    with pytest.raises(DocumentTooLarge, match=r"3 pages; at most 2 .*document_pages"):
        parsed(data, "a.pdf", document_pages=2)
    with pytest.raises(DocumentTooLarge, match=r"characters; at most 15 .*document_characters"):
        parsed(data, "a.pdf", document_characters=15)


def test_a_pdf_that_takes_too_long_is_given_up() -> None:
    with pytest.raises(InvalidInput, match="more than 1 seconds"):
        read_pdf(bomb(20), POLICY, seconds=1)


# -- nothing is written --------------------------------------------------------------------------------------------


def test_a_refused_document_leaves_nothing_behind(world: World) -> None:
    world.memory.set_policy(document_characters=50)
    before, asked = count_of_everything(world.memory), len(world.fake.requests)
    for data, name in (
        (b"", "a.txt"), (b"caf\xe9", "a.txt"), (b"x" * 51, "a.txt"), (pdf([""]), "a.pdf"), (pdf(["x"])[:99], "a.pdf"),
        (encrypted(pdf(["hidden"]), "secret"), "a.pdf"),
    ):  # fmt: skip
        with pytest.raises(InvalidInput):
            world.memory.add_document(data, persona=PERSONA, name=name, request_id="once")
    assert count_of_everything(world.memory) == before
    assert len(world.fake.requests) == asked
    assert world.memory.add_document(b"small", persona=PERSONA, name="a.txt", request_id="once").status == "added"
