"""Documents: added, found by the reply's one embedding, hidden, removed (T17, T11, R19)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from remembrancer.domain.documents import passages_of
from remembrancer.domain.errors import DocumentTooLarge, InvalidInput, NotFound, RequestReused, ShelfFull
from remembrancer.domain.events import DocumentAdded, DocumentsSearched, ListSearched, PassagesAdded
from remembrancer.services.answers import ReplyAnswer
from tests.support.pdf import pdf
from tests.support.read_model import caught_up, count_of_everything
from tests.support.world import PERSONA, SERVER, USER, World, recalled

LORE = b"""# The harbour

Zephyr lighthouse burns whale oil every winter.

## The market

Grocers sell pickled herring beside the fountain.
"""


def add(world: World, data: bytes | Path = LORE, **how: Any) -> Any:
    how = ({"name": "lore.md"} if isinstance(data, bytes) else {}) | how
    how = how if "server" in how else {"persona": PERSONA} | how
    return world.memory.add_document(data, **how)


def found(answer: ReplyAnswer) -> list[str]:
    return [p.text for p in answer.late.documents]


def asked_of_the_model(world: World) -> int:
    return len(world.fake.requests)


LIGHTHOUSE = "# The harbour\n\nZephyr lighthouse burns whale oil every winter."
MARKET = "## The market\n\nGrocers sell pickled herring beside the fountain."


# -- in a reply ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("projected", [True, False])
def test_a_reply_finds_a_passage_with_the_one_embedding_that_searched_the_memories(  # T17
    world: World, projected: bool
) -> None:
    cat = world.save("Juno's cat is named Mochi")
    added = add(world)
    assert (added.status, added.document.passages, added.document.searchable) == ("added", 2, 2)
    if projected:
        world.project()
    before = world.say("nothing of it").prefix.text
    asked = asked_of_the_model(world)
    answer = world.say("zephyr lighthouse whale oil? and mochi juno's cat")
    assert asked_of_the_model(world) == asked + 1
    assert answer.search.status == "ok"
    assert [m.memory for m in answer.search.matches] == [cat]
    (passage,) = answer.late.documents
    assert (passage.document, passage.n, passage.name) == (added.document.id, 1, "lore.md")
    assert (passage.place, passage.text) == ("The harbour", LIGHTHOUSE)
    assert passage.score >= 0.3
    assert f"# From documents\n\n## lore.md, The harbour\n{LIGHTHOUSE}" in answer.late.text
    assert answer.prefix.text == before
    (event,) = world.events(DocumentsSearched)
    assert [(p.document, p.n) for p in event.passages] == [(added.document.id, 1)]


def test_recalled_memories_and_documents_stand_in_the_late_block_together(world: World) -> None:  # T17
    world.save("zephyr lighthouse was built by Juno")
    world.talk(range(1, 9))
    add(world)
    answer = world.say("zephyr lighthouse burns whale oil? built by juno")
    assert recalled(answer) == ["zephyr lighthouse was built by Juno"]
    assert found(answer) == [LIGHTHOUSE]
    assert answer.late.text.index("brings to mind") < answer.late.text.index("# From documents")


def test_small_talk_finds_no_passage_and_records_none(world: World) -> None:
    add(world)
    answer = world.say("chess tonight?")
    assert (answer.late.documents, answer.late.documents_missing) == ([], None)
    assert "documents" not in answer.late.text
    assert world.events(DocumentsSearched) == []


def test_with_decay_off_documents_are_searched_and_nothing_ticks(world: World) -> None:  # T11
    world.save("Juno's cat is named Mochi")
    add(world)
    world.reopen(memory_decay_enabled=False)
    asked = asked_of_the_model(world)
    answer = world.say("zephyr lighthouse whale oil?")
    assert found(answer) == [LIGHTHOUSE]
    assert (answer.search.status, "decay is off" in (answer.search.reason or "")) == ("off", True)
    assert asked_of_the_model(world) == asked + 1
    assert world.events(ListSearched) == []


def test_with_decay_off_and_no_document_in_play_nothing_is_embedded(world: World) -> None:  # T11, T17
    world.save("Juno's cat is named Mochi")
    add(world, server="another server")
    world.reopen(memory_decay_enabled=False)
    asked = asked_of_the_model(world)
    assert found(world.say("zephyr lighthouse whale oil?")) == []
    assert asked_of_the_model(world) == asked


def test_a_persona_that_does_not_learn_still_knows_its_documents(world: World) -> None:  # R17
    """Its lists are neither read nor searched; what it looks up was not learned from chat."""
    world.save("zephyr lighthouse whale oil is Juno's")
    add(world)
    world.memory.set_persona(PERSONA, learns=False)
    answer = world.say("zephyr lighthouse whale oil?")
    assert found(answer) == [LIGHTHOUSE]
    assert (answer.search.status, answer.prefix.memories) == ("off", [])


def test_a_challenge_chat_reads_no_document(world: World) -> None:  # R17
    add(world)
    asked = asked_of_the_model(world)
    answer = world.say("zephyr lighthouse whale oil?", memory="off")
    assert (found(answer), answer.late.text) == ([], "")
    assert asked_of_the_model(world) == asked


def test_a_message_without_text_looks_nothing_up(world: World) -> None:  # D30
    add(world)
    asked = asked_of_the_model(world)
    assert found(world.say("  ")) == []
    assert asked_of_the_model(world) == asked


@pytest.mark.parametrize("decay", [True, False])
def test_a_model_that_fails_degrades_the_reply_and_asks_once(world: World, decay: bool) -> None:  # T8, T11
    add(world)
    world.reopen(memory_decay_enabled=decay)
    world.lose_the_model()
    asked = asked_of_the_model(world)
    answer = world.say("zephyr lighthouse whale oil?")
    assert found(answer) == []
    assert answer.late.documents_missing
    assert asked_of_the_model(world) == asked + 1
    world.find_the_model()
    assert found(world.say("zephyr lighthouse whale oil?")) == [LIGHTHOUSE]


def test_without_a_model_documents_are_kept_and_found_once_there_is_one(world: World) -> None:  # T11, D22
    world.reopen(embedder="none")
    added = add(world)
    assert (added.document.passages, added.document.searchable) == (2, 0)
    late = world.say("zephyr lighthouse whale oil?").late
    assert (late.documents, late.documents_missing) == ([], "no embedding model is configured (T11)")
    world.reopen(embedder="openai", embedder_model="words")
    world.project()
    while world.memory.embed_pending():
        pass
    assert found(world.say("zephyr lighthouse whale oil?")) == [LIGHTHOUSE]
    (document,) = world.memory.documents(persona=PERSONA).documents
    assert document.searchable == 2


def test_vectors_that_the_model_did_not_give_are_made_up_later(world: World) -> None:  # D22
    world.lose_the_model()
    assert add(world).document.searchable == 0
    world.find_the_model()
    world.project()
    assert found(world.say("zephyr lighthouse whale oil?")) == []
    assert world.memory.embed_pending() == 2
    assert world.memory.embed_pending() == 0
    assert found(world.say("zephyr lighthouse whale oil?")) == [LIGHTHOUSE]


def test_the_budget_and_the_number_of_passages_hold(world: World) -> None:
    text = "\n\n".join(f"# Part {n}\n\nzephyr lighthouse whale {'oil ' * n}" for n in range(1, 9))
    add(world, text.encode())
    world.project()
    for limit, budget in ((3, 1_000), (8, 60), (0, 1_000), (3, 0)):
        world.memory.set_policy(document_limit=limit, document_tokens=budget)
        passages = world.say("zephyr lighthouse whale oil?").late.documents
        assert len(passages) <= limit
        assert sum(p.tokens for p in passages) <= budget
        assert [p.score for p in passages] == sorted((p.score for p in passages), reverse=True)
        assert bool(passages) == (limit > 0 and budget > 0)


def test_the_threshold_of_passages_may_be_set_apart(world: World) -> None:  # D5
    add(world)
    score = world.say("zephyr lighthouse whale oil?").late.documents[0].score
    world.memory.set_policy(document_threshold=score + 0.01)
    assert found(world.say("zephyr lighthouse whale oil?")) == []
    world.memory.set_policy(document_threshold=score - 0.01)
    assert found(world.say("zephyr lighthouse whale oil?")) == [LIGHTHOUSE]


def test_documents_take_their_share_of_the_context_from_the_messages(world: World) -> None:  # R2, D16
    add(world)
    answer = world.say("zephyr lighthouse whale oil?", model_context=1_200)
    assert answer.messages[-1].text == "zephyr lighthouse whale oil?"
    assert found(answer) == [LIGHTHOUSE]


# -- who sees it ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("projected", [True, False])
def test_a_document_is_read_by_its_persona_or_in_its_server_and_nowhere_else(  # T10, C23
    world: World, projected: bool
) -> None:
    add(world, persona="mira")
    add(world, b"Obsidian gateway guards seven sleeping dragons.", name="gates.txt", server=SERVER)
    elsewhere = world.open(tenant="elsewhere")
    if projected:
        world.project()
    both = "zephyr lighthouse burns whale oil? obsidian gateway guards sleeping dragons?"
    assert len(found(world.say(both))) == 2
    assert found(world.say(both, server="another server")) == [LIGHTHOUSE]
    assert found(world.say(both, server=None)) == [LIGHTHOUSE]
    assert found(world.say(both, persona="rui")) == ["Obsidian gateway guards seven sleeping dragons."]
    assert found(elsewhere.reply("mira", message=both, users=[USER], server=SERVER)) == []


def test_channels_limit_a_document(world: World) -> None:  # T10
    add(world, channels=["den", "attic"])
    ask = "zephyr lighthouse whale oil?"
    assert found(world.say(ask, channel="den")) == [LIGHTHOUSE]
    assert found(world.say(ask, channel="hall")) == []
    assert found(world.say(ask)) == []


def test_another_tenants_document_is_as_one_that_never_was(world: World) -> None:  # C23
    mine = add(world).document.id
    elsewhere = world.open(tenant="elsewhere")
    for projected in (False, True):
        never = "0c111111-2222-8333-8444-555555555555"
        for act in (elsewhere.document, elsewhere.remove_document):
            errors = []
            for document in (str(mine), never):
                with pytest.raises(NotFound) as refused:
                    act(document)
                errors.append(str(refused.value).replace(document, "ID"))
            assert errors[0] == errors[1]
        assert elsewhere.documents().documents == []
        if not projected:
            world.project()
    assert world.memory.document(mine).document.id == mine


# -- once ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("projected", [True, False])
def test_the_same_file_again_is_a_duplicate_and_writes_nothing(world: World, projected: bool) -> None:
    first = add(world)
    if projected:
        world.project()
    before, asked = count_of_everything(world.memory)["event"], asked_of_the_model(world)
    again = add(world, name="other name.md")
    assert (again.status, again.document.id, again.document.name) == ("duplicate", first.document.id, "lore.md")
    assert count_of_everything(world.memory)["event"] == before
    assert asked_of_the_model(world) == asked
    assert add(world, server=SERVER).status == "added"


def test_eight_at_once_add_it_once(world: World) -> None:
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: add(world), range(8)))
    assert sorted(a.status for a in answers) == ["added", *["duplicate"] * 7]
    assert len({a.document.id for a in answers}) == 1
    assert len(world.events(DocumentAdded)) == 1


def test_a_request_that_comes_again_gets_the_first_answer(world: World) -> None:  # D19
    first = add(world, request_id="add")
    assert add(world, request_id="add") == first
    removed = world.memory.remove_document(first.document.id, request_id="remove")
    assert world.memory.remove_document(first.document.id, request_id="remove") == removed
    assert add(world, request_id="add") == first
    assert world.memory.documents(persona=PERSONA).documents == []
    with pytest.raises(RequestReused):
        add(world, b"something else", request_id="add")


def test_a_reply_that_comes_again_has_its_passages_as_they_are_now(world: World) -> None:  # D19
    ask: dict[str, Any] = {"message": "zephyr lighthouse whale oil?", "request_id": "reply"}
    document = add(world).document.id
    first = world.say(**ask)
    assert found(first) == [LIGHTHOUSE]
    assert world.say(**ask) == first
    world.project()
    assert world.say(**ask) == first
    world.memory.remove_document(document)
    again = world.say(**ask)
    assert (found(again), again.late.text) == ([], "")
    assert again.turn == first.turn


# -- removing ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("projected", [True, False])
def test_a_removed_document_is_found_no_more_and_may_come_again(world: World, projected: bool) -> None:
    document = add(world).document.id
    if projected:
        world.project()
    gone = world.memory.remove_document(document).document
    assert (gone.id, gone.name) == (document, "lore.md")
    assert found(world.say("zephyr lighthouse whale oil?")) == []
    for act in (world.memory.remove_document, world.memory.document):
        with pytest.raises(NotFound):
            act(document)
    world.project()
    assert found(world.say("zephyr lighthouse whale oil?")) == []
    again = add(world)
    assert (again.status, again.document.id != document) == ("added", True)
    world.project()
    assert found(world.say("zephyr lighthouse whale oil?")) == [LIGHTHOUSE]


def test_the_tables_are_the_same_when_the_events_come_again(world: World) -> None:
    kept = add(world).document.id
    gone = add(world, b"Obsidian gateway guards seven sleeping dragons.", name="gates.txt", server=SERVER).document.id
    world.memory.remove_document(gone)
    caught_up(world.memory)

    def rows() -> Any:
        with world.memory.engine.store.database.connection() as conn:
            return [
                conn.execute(f"SELECT * FROM remembrancer.{table} ORDER BY 3, 4").fetchall()
                for table in ("document", "passage")
            ]

    before = rows()
    assert {row[2] for row in before[1]} == {kept}
    with world.memory.engine.store.database.connection() as conn:
        conn.execute("UPDATE remembrancer.checkpoint SET position = 0 WHERE projection = 'documents'")
    caught_up(world.memory)
    assert rows() == before


# -- shown ---------------------------------------------------------------------------------------------------------


def test_documents_are_listed_and_shown_with_their_places(world: World, tmp_path: Path) -> None:
    file = tmp_path / "Tides.PDF"
    file.write_bytes(pdf(["High water at noon.", "", "Low water at six."]))
    first = add(world, channels=["den"], user="kai").document
    world.later(minutes=1)
    second = add(world, file, server=SERVER).document
    world.project()
    listed = world.memory.documents().documents
    assert [d.id for d in listed] == [first.id, second.id]
    assert (listed[0].persona, listed[0].server, listed[0].channels, listed[0].user) == (PERSONA, None, ("den",), "kai")
    assert listed[1].model_dump(exclude={"id", "added_at"}) == {
        "persona": None, "server": SERVER, "name": "Tides.PDF", "media_type": "application/pdf",
        "bytes": file.stat().st_size, "characters": 36, "pages": 3, "passages": 2, "searchable": 2, "channels": (),
        "user": None,
    }  # fmt: skip
    assert [d.id for d in world.memory.documents(server=SERVER).documents] == [second.id]
    shown = world.memory.document(second.id)
    assert [(p.n, p.page, p.text) for p in shown.passages] == [
        (1, 1, "High water at noon."),
        (2, 3, "Low water at six."),
    ]
    page = world.memory.document(first.id, limit=1)
    assert ([p.heading for p in page.passages], page.next) == (["The harbour"], 1)
    rest = world.memory.document(first.id, after=1)
    assert ([p.heading for p in rest.passages], rest.next) == (["The harbour › The market"], None)
    assert [p.place for p in world.say("low tide at six?").late.documents] == ["page 3"]


def test_a_persona_that_never_was_has_no_list_and_near_ones_are_named(world: World) -> None:  # D31
    add(world)
    world.project()
    with pytest.raises(NotFound, match="Did you mean mira"):
        world.memory.documents(persona="mirra")
    assert world.memory.documents(server="nowhere").documents == []


def test_history_tells_of_documents(world: World) -> None:  # U1
    document = add(world).document.id
    world.later(minutes=1)
    world.say("zephyr lighthouse whale oil?", turn="t1")
    world.later(minutes=1)
    world.memory.remove_document(document)
    world.project()
    told = world.memory.history(persona=PERSONA).entries
    assert [(entry.event, entry.before, entry.after) for entry in told if "Document" in entry.event] == [
        ("DocumentAdded", None, "lore.md"), ("DocumentsSearched", None, None), ("DocumentRemoved", "lore.md", None),
    ]  # fmt: skip
    (sent,) = [entry for entry in world.memory.history(turn="t1").entries if entry.event == "DocumentsSearched"]
    assert sent.sentence == "1 passage of documents went with the reply."
    assert [entry.event for entry in world.memory.history(document=document).entries] == [
        "DocumentAdded",
        "DocumentRemoved",
    ]
    with pytest.raises(NotFound):
        world.open(tenant="elsewhere").history(document=document)


# -- size ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_document_of_megabytes_is_many_events_in_one_append_with_progress(world: World) -> None:
    text = "\n\n".join(
        f"Paragraph {n} " + " ".join(f"word{(n * 7 + k) % 900}" for k in range(60)) for n in range(4_000)
    )
    told: list[tuple[int, int | None]] = []
    answer = add(world, text.encode(), name="long.txt", progress=lambda done, total: told.append((done, total)))
    total = answer.document.passages
    assert answer.document.bytes > 1_500_000
    assert told[-1] == (total, total)
    assert len(told) > 10
    parts = world.events(PassagesAdded)
    assert len(parts) == -(-total // 100)
    assert max(len(ev.model_dump_json()) for ev in parts) < 200_000
    passages = [p for ev in parts for p in passages_of(ev)]
    assert [p.n for p in passages] == list(range(1, total + 1))
    assert "".join("".join(p.text.split()) for p in passages) == "".join(text.split())
    assert len(answer.positions) == 1
    caught_up(world.memory)
    (document,) = world.memory.documents(persona=PERSONA).documents
    assert document.searchable == total


def test_no_more_passages_than_the_policy_allows(world: World) -> None:
    world.memory.set_policy(document_passages=3)
    add(world)
    before = count_of_everything(world.memory)
    with pytest.raises(ShelfFull, match="2 passages, and there are 2 already; at most 3"):
        add(world, LORE + b"more")
    with pytest.raises(DocumentTooLarge, match="more than 3 passages; at most 3"):
        add(world, b"# a\n\none\n\n# b\n\ntwo\n\n# c\n\nthree\n\n# d\n\nfour", server=SERVER)
    assert count_of_everything(world.memory) == before


def test_whose_a_document_is_has_to_be_said_once(world: World) -> None:
    for how in ({"persona": None}, {"persona": PERSONA, "server": SERVER}, {"persona": "*"}, {"persona": "a\x00"}):
        with pytest.raises(InvalidInput):
            world.memory.add_document(LORE, name="lore.md", **how)
    for how in ({"user": ""}, {"channels": "den"}, {"channels": [""]}, {"name": " "}, {"name": 3}, {"request_id": ""}):
        with pytest.raises(InvalidInput):
            add(world, **how)
    for what in (7, None, ["a"]):
        with pytest.raises(InvalidInput, match="a path or bytes"):
            world.memory.add_document(what, persona=PERSONA)  # type: ignore[arg-type]
    for what in ("nonsense", 3, None):
        with pytest.raises(InvalidInput, match="not the id of a document"):
            world.memory.document(what)  # type: ignore[arg-type]
    assert world.memory.documents().documents == []
