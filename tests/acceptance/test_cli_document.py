"""The group `document` as people and scripts have it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command_line import CommandLine
from tests.support.fake_openai import FakeOpenAI
from tests.support.pdf import encrypted, pdf

LORE = "# Harbour\n\nThe lighthouse of Zephyr burns whale oil every winter.\n"


@pytest.fixture
def remembrancer(database_url: str) -> Iterator[CommandLine]:
    with FakeOpenAI(dimensions=64) as fake:
        model = {"URL": fake.url, "MODEL": "words"}
        settings = {f"REMEMBRANCER_EMBEDDER_{name}": value for name, value in model.items()}
        yield CommandLine(database_url, REMEMBRANCER_EMBEDDER="openai", REMEMBRANCER_MATCH_THRESHOLD="0.3", **settings)


def test_a_document_is_added_found_shown_and_removed(remembrancer: CommandLine, tmp_path: Path) -> None:
    lore, tides = tmp_path / "lore.md", tmp_path / "tides.pdf"
    lore.write_text(LORE, encoding="utf-8")
    tides.write_bytes(pdf(["High water at noon.", "Low water at six."]))
    out = remembrancer("document", "add", str(lore), "--persona", "mira").out
    assert out.startswith("Added lore.md (")
    assert "1 passage." in out
    added = remembrancer.json(
        "document", "add", str(tides), "--server", "guild", "--channel", "den", "--user", "kai", "--name", "The tides"
    )
    assert (added["status"], added["document"]["pages"], added["document"]["searchable"]) == ("added", 2, 2)
    assert "There already: lore.md" in remembrancer("document", "add", str(lore), "--persona", "mira").out

    rows = remembrancer("document", "list").out.splitlines()
    assert [row.split()[1:4] for row in rows[1:]] == [["persona", "mira", "lore.md"], ["server", "guild", "The"]]
    listed = remembrancer.json("document", "list", "--persona", "mira")["documents"]
    assert [d["name"] for d in listed] == ["lore.md"]

    reply = remembrancer.json("reply", "mira", "what does the lighthouse of Zephyr burn?", "--user", "juno")
    assert [p["place"] for p in reply["late"]["documents"]] == ["Harbour"]
    out = remembrancer("reply", "mira", "what does the lighthouse of Zephyr burn?", "--user", "juno").out
    assert "From documents" in out
    assert "whale oil" in out

    tide = added["document"]["id"]
    out = remembrancer("document", "show", tide[:8], "--limit", "1").out
    assert out.splitlines()[0] == f"The tides  {tide}"
    assert "1  page 1" in out
    assert "more: --after 1" in out
    shown = remembrancer.json("document", "show", tide, "--after", "1")
    assert ([p["text"] for p in shown["passages"]], shown["next"]) == (["Low water at six."], None)

    assert "removed the document" not in remembrancer("history", "--document", tide).out
    assert remembrancer("document", "remove", tide[:8]).out == "Removed The tides.\n"
    assert "removed the document" in remembrancer("history", "--document", tide).out
    assert "no document" in remembrancer("document", "show", tide, code=1).err
    assert [d["name"] for d in remembrancer.json("document", "list")["documents"]] == ["lore.md"]


def test_mistakes_with_documents_are_told(remembrancer: CommandLine, tmp_path: Path) -> None:
    locked, word = tmp_path / "locked.pdf", tmp_path / "word.docx"
    locked.write_bytes(encrypted(pdf(["hidden"]), "secret"))
    word.write_bytes(b"PK\x03\x04")
    assert "There are no documents." in remembrancer("document", "list").out
    of = ("--persona", "mira")
    assert "The PDF is encrypted" in remembrancer("document", "add", str(locked), *of, code=2).err
    assert "Use .txt, .md or .pdf" in remembrancer("document", "add", str(word), *of, code=2).err
    assert "No such file" in remembrancer("document", "add", str(tmp_path / "none.md"), *of, code=2).err
    assert "to a persona or to a server" in remembrancer("document", "add", str(word), code=2).err
    assert "There is no persona 'mira'" in remembrancer("document", "list", *of, code=1).err
    assert "not the id of a document" in remembrancer("document", "remove", "xyz", code=2).err
    assert "no document 00000000" in remembrancer("document", "remove", "00000000", code=1).err
    told = json.loads(remembrancer("document", "add", str(locked), *of, "--json", code=2).out)
    assert told["type"] == "invalid-input"
