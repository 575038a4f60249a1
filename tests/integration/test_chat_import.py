"""Chats of other programs come in once, with who said what and when, as often as they are imported."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest

from remembrancer.domain import events as e
from remembrancer.domain.errors import InvalidInput, NotAllowed, RequestReused
from remembrancer.services.answers_chat import ChatImportAnswer
from tests.support.world import World

NAMES = {"user_name": "Juno", "character_name": "Mira", "create_date": "2026-05-01@10h00m00s", "chat_metadata": {}}

NARRATOR = {"role": "persona", "author": "Mira", "text": "x"}


@pytest.fixture
def world(database_url: str):
    with World(database_url) as made:
        yield made


def line(name: str, text: str, at: Any = "May 1, 2026 10:00am", **more: Any) -> dict[str, Any]:
    return {"name": name, "is_user": name == "Juno", "send_date": at, "mes": text, **more}


def tavern(*lines: dict[str, Any]) -> str:
    return "\n".join(json.dumps(one, ensure_ascii=False) for one in (NAMES, *lines)) + "\n"


STORY = [
    line("Mira", "Welcome!", swipes=["Hey.", "Welcome!", "Hi there"], swipe_id=1),
    line("Juno", "My cat is called Mochi", "2026-05-01@10h05m00s"),
    line("Mira", "(hidden)", is_system=True),
    line("Mira", "What a name!", "2026-5-1 @10h 06m 07s 123ms"),
    line("Juno", "さようなら", 1777629999000),
]


def bring(world: World, text: str, **more: Any) -> ChatImportAnswer:
    return world.memory.import_chat(text, chat="tavern", persona="mira", user="juno", **more)


def there(world: World) -> list[tuple[str, str, str]]:
    world.project()
    return [(m.author, m.role, m.text) for m in world.memory.messages("tavern").messages]


def test_of_swipes_the_chosen_one_counts_and_hidden_messages_stay_out(world: World):
    answer = bring(world, tavern(*STORY))
    assert (answer.imported, answer.known, answer.hidden) == (4, 0, 1)
    assert there(world) == [
        ("mira", "persona", "Welcome!"), ("juno", "user", "My cat is called Mochi"),
        ("mira", "persona", "What a name!"), ("juno", "user", "さようなら"),
    ]  # fmt: skip
    said = [m.said_at for m in world.memory.messages("tavern").messages]
    assert said == [
        datetime(2026, 5, 1, 10, 0, tzinfo=UTC), datetime(2026, 5, 1, 10, 5, tzinfo=UTC),
        datetime(2026, 5, 1, 10, 6, 7, tzinfo=UTC), datetime.fromtimestamp(1777629999, UTC),
    ]  # fmt: skip


def test_the_same_file_again_brings_nothing_and_a_later_state_the_rest(world: World):
    bring(world, tavern(*STORY))
    again = bring(world, tavern(*STORY))
    assert (again.imported, again.edited, again.known) == (0, 0, 4)
    later = bring(
        world, tavern(STORY[0], STORY[1], {**STORY[3], "mes": "Mochi? Sweet!"}, STORY[4], line("Mira", "Bye!"))
    )
    assert (later.imported, later.edited, later.known) == (1, 1, 3)
    assert [text for *_, text in there(world)] == [
        "Welcome!", "My cat is called Mochi", "Mochi? Sweet!", "さようなら", "Bye!",
    ]  # fmt: skip


def test_an_imported_chat_goes_on(world: World):
    bring(world, tavern(*STORY))
    reply = world.memory.reply("mira", message="Remember me?", users=["juno"], chat="tavern")
    assert [m.text for m in reply.messages][-2:] == ["さようなら", "Remember me?"]
    assert reply.window.total == 5


def test_plain_json_of_either_shape(world: World):
    messages = [
        {"role": "user", "text": "hi", "at": "2026-05-01T10:00:00+02:00"},
        {"role": "assistant", "author": "Mira", "text": "hello"},
        {"role": "persona", "author": "Rui", "text": "me, too"},
    ]
    assert bring(world, json.dumps(messages)).imported == 3
    assert bring(world, json.dumps({"messages": messages})).known == 3
    assert there(world) == [("juno", "user", "hi"), ("mira", "persona", "hello"), ("Rui", "persona", "me, too")]


def test_two_imports_at_once_leave_no_doubles(world: World):
    text = tavern(line("Mira", "Welcome!"), *(line("Juno", f"message {n}") for n in range(1_200)))
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: bring(world, text), range(4)))
    assert sum(a.imported for a in answers) == 1_201
    world.project()
    assert world.memory.chat("tavern").messages == 1_201


def test_progress_is_told(world: World):
    told: list[tuple[int, int | None]] = []
    text = tavern(*(line("Juno", f"message {n}") for n in range(1_100)))
    bring(world, text, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (1_101, 1_101)
    assert len(told) == 3


WRONG: list[tuple[Any, str]] = [
    ("", "empty"),
    ("{nonsense", "Line 1 is no JSON"),
    (tavern(STORY[0], {"name": "x"}), "Line 3 is no message"),
    (tavern(line("Mira", "hi", at="soon")), "date of line 2"),
    ('[{"role": "boss", "text": "x"}]', "role"),
    ('[{"role": "user", "text": ""}]', "text"),
    ('[{"role": "user", "text": "a\\u0000b"}]', "NUL"),
    ("[1]", "Message 1 does not fit"),
    ("{}", "without a list of messages"),
    ('{"messages": null}', "without a list of messages"),
    ('{"a": 1}', "without a list of messages"),
    ("[]", "no message in the file"),
    ('{"messages": []}', "no message in the file"),
    (json.dumps(NAMES), "no message in the file"),
    ("5", "Line 1 is no message"),
    ("[" * 200_000, "Line 1 is no JSON"),
    ("9" * 5_000, "Line 1 is no JSON"),
    (None, "must be a text, not NoneType"),
    (5, "must be a text, not int"),
    (b"[]", "must be a text, not bytes"),
    *[
        (json.dumps([{"role": "user", "text": "x"}, {"role": "user", "text": "x", "at": at}]), "date of message 2")
        for at in (
            "0001-01-01T00:00:00+10:00",
            "9999-12-31T23:59:59-10:00",
            "²",
            "9" * 5_000,
            10**300,
            1e300,
            True,
            [[]],
        )
    ],
    *[
        (json.dumps([NARRATOR, {"role": "persona", "author": author, "text": "y"}]), "Message 2: .* author")
        for author in ("b\x00c", "\ud800", "*", "x" * 5_000, " ")
    ],
    (tavern(line("Mira", "hi"), line("*", "hi")), r"Line 3: \* is not the name"),
    (json.dumps([{"role": "user", "text": "\ud800"}]), "Message 1: "),
    (tavern(line("Mira", "a\x00b")), "Line 2: .* NUL"),
]


def test_a_file_of_another_shape_is_told_and_nothing_is_written(world: World):
    def refused() -> None:
        for text, said in WRONG:
            with pytest.raises(InvalidInput, match=said):
                bring(world, text)

    assert world.wrote(refused) == []


# -- later states --------------------------------------------------------------------------------------------------


def texts(world: World) -> list[str]:
    return [text for *_, text in there(world)]


def told(*lines: str, dated: bool = True) -> str:
    """Plain JSON of a chat: a minute between two messages."""
    return plain([(n, text) for n, text in enumerate(lines)], dated=dated)


def plain(lines: list[tuple[int, str]], *, dated: bool = True) -> str:
    return json.dumps([
        {"role": ("persona", "user")[n % 2], "text": text, **({"at": f"2026-05-01T10:{n:02}:00Z"} if dated else {})}
        for n, text in lines
    ])  # fmt: skip


def counts(answer: ChatImportAnswer) -> tuple[int, int, int]:
    return answer.imported, answer.edited, answer.known


@pytest.mark.parametrize("dated", [True, False])
def test_d21_what_was_deleted_there_stays_and_moves_nothing(world: World, dated: bool):
    lines = list(enumerate(["Welcome!", "one", "two", "three", "four"]))
    bring(world, plain(lines, dated=dated))
    file = plain([lines[0], *lines[3:], (5, "five")], dated=dated)
    assert counts(bring(world, file)) == (1, 0, 3)
    assert texts(world) == ["Welcome!", "one", "two", "three", "four", "five"]
    assert counts(bring(world, file)) == (0, 0, 4)


def test_d21_what_was_hidden_there_or_shown_again_moves_nothing(world: World):
    bring(world, tavern(*STORY))
    hidden = [STORY[0], {**STORY[1], "is_system": True}, *STORY[2:]]
    assert counts(bring(world, tavern(*hidden))) == (0, 0, 3)
    shown = [*STORY[:2], {**STORY[2], "is_system": False, "send_date": "2026-05-01@10h05m30s"}, *STORY[3:]]
    for new in (1, 0):
        assert counts(bring(world, tavern(*shown))) == (new, 0, 5 - new)
    assert texts(world) == ["Welcome!", "My cat is called Mochi", "What a name!", "さようなら", "(hidden)"]


@pytest.mark.parametrize("more", [STORY[1:], []])
def test_d21_another_swipe_of_the_greeting_is_an_edit(world: World, more: list[dict[str, Any]]):
    bring(world, tavern(STORY[0]))
    other = {**STORY[0], "swipe_id": 2, "mes": "Hi there", "send_date": "May 1, 2026 10:02am"}
    new = sum(not m.get("is_system", False) for m in more)
    assert counts(bring(world, tavern(other, *more))) == (new, 1, 0)
    assert texts(world)[0] == "Hi there"
    assert counts(bring(world, tavern(other, *more))) == (0, 0, new + 1)


def test_d21_what_was_edited_or_deleted_here_stays_as_it_is_here(world: World):
    bring(world, told("Welcome!", "one", "two", "three"))
    world.project()
    ids = [m.id for m in world.memory.messages("tavern").messages]
    world.memory.edit_message(ids[1], "mine")
    world.memory.delete_message(ids[2])
    for file in (told("Welcome!", "one", "two", "three"), told("Welcome!", "theirs", "gone", "three, anew")):
        bring(world, file)
        assert counts(bring(world, file)) == (0, 0, 4)
    assert texts(world) == ["Welcome!", "mine", "three, anew"]


def test_d21_two_files_without_dates_that_begin_alike_are_two_chats(world: World):
    one, other = told("Welcome!", "a", "b", dated=False), told("Welcome!", "c", "d", dated=False)
    assert [counts(bring(world, file)) for file in (one, other, one, other)] == [(3, 0, 0)] * 2 + [(0, 0, 3)] * 2
    assert texts(world) == ["Welcome!", "a", "b", "Welcome!", "c", "d"]
    assert counts(bring(world, told("Welcome!", "c", "d", "e", dated=False))) == (1, 0, 3)


def test_d21_a_fork_knows_what_it_inherited(world: World):
    bring(world, told("Welcome!", "one", "two"))
    world.project()
    world.memory.fork("tavern", "what if", message=world.memory.messages("tavern").messages[1].id)
    world.project()
    answer = world.memory.import_chat(
        told("Welcome!", "one", "two", "three"), chat="what if", persona="mira", user="juno"
    )
    assert counts(answer) == (2, 0, 2)


def test_d24_what_was_erased_does_not_come_back(world: World):
    for file in (told("Welcome!", "one", "two"), told("Welcome!", "one", "two", dated=False)):
        chat = f"tavern {len(file)}"
        world.memory.import_chat(file, chat=chat, persona="mira", user="juno")
    world.memory.erase("juno")
    for file in (told("Welcome!", "one", "two"), told("Welcome!", "one", "two", dated=False)):
        chat = f"tavern {len(file)}"
        assert counts(world.memory.import_chat(file, chat=chat, persona="mira", user="juno")) == (0, 0, 3)


# -- the rest ------------------------------------------------------------------------------------------------------


def test_any_character_may_be_in_a_text_and_a_mark_in_front(world: World):
    odd = "a\u2028b\u2029c\u0085d\x0be\x0cf"
    lines = "\ufeff" + tavern(line("Mira", "PLACE"), line("Juno", "x")).replace("PLACE", odd).replace("\n", "\r\n")
    assert counts(bring(world, lines)) == (2, 0, 0)
    assert texts(world) == [odd, "x"]
    assert counts(bring(world, "\ufeff" + told("hi", dated=False))) == (1, 0, 0)


def test_d19_the_same_request_is_answered_the_same(world: World):
    file = told("Welcome!", "one")
    first = bring(world, file, request_id="once")
    assert counts(first) == (2, 0, 0)
    assert bring(world, file, request_id="once") == first
    assert {r.event.request_id for r in world.stored() if isinstance(r.event, e.MessagePosted)} == {"once"}
    with pytest.raises(RequestReused):
        bring(world, told("Welcome!", "two"), request_id="once")
    nothing = bring(world, file, request_id="again")
    assert counts(nothing) == (0, 0, 2)
    bring(world, told("Welcome!", "one", "two"))
    assert bring(world, file, request_id="again") == nothing


def test_d19_the_same_request_at_once_is_answered_the_same(world: World):
    file = told(*(f"message {n}" for n in range(60)))
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: bring(world, file, request_id="once"), range(4)))
    assert [counts(a) for a in answers] == [(60, 0, 0)] * 4
    world.project()
    assert world.memory.chat("tavern").messages == 60


def test_a_chat_of_somebody_else_or_elsewhere_is_refused(world: World):
    bring(world, told("Welcome!", "one"))

    def refused(said: str, **other: Any) -> None:
        given = {"chat": "tavern", "persona": "mira", "user": "juno"} | other
        with pytest.raises(NotAllowed, match=said):
            world.memory.import_chat(told("Welcome!", "one", "two"), **given)

    assert world.wrote(lambda: refused("is of mira, not of rui", persona="rui")) == []
    assert world.wrote(lambda: refused("is in private, not in den", server="den")) == []
    assert world.wrote(lambda: refused("is on web, not on discord", platform="discord")) == []
    world.memory.import_chat(
        told("Welcome!"), chat="den", persona="mira", user="juno", server="den", platform="discord"
    )
    refused("is in den, not in lair", chat="den", server="lair")
    more = world.memory.import_chat(told("Welcome!", "one"), chat="den", persona="mira", user="juno")
    assert counts(more) == (1, 0, 1), "what is left out is as the chat has it"
