"""Chats of other programs come in once, with who said what and when, as often as they are imported."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest

from remembrancer.domain.errors import InvalidInput
from remembrancer.services.answers_chat import ChatImportAnswer
from tests.support.world import World

NAMES = {"user_name": "Juno", "character_name": "Mira", "create_date": "2026-05-01@10h00m00s", "chat_metadata": {}}


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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("{nonsense", "Line 1 is no JSON"),
        (tavern(STORY[0], {"name": "x"}), "Line 3 is no message"),
        (tavern(line("Mira", "hi", at="soon")), "date of line 2"),
        ('[{"role": "boss", "text": "x"}]', "role"),
        ('[{"role": "user", "text": ""}]', "text"),
        ('[{"role": "user", "text": "a\\u0000b"}]', "NUL"),
        ("[1]", "does not fit"),
    ],
)
def test_a_file_of_another_shape_is_told_and_nothing_is_written(world: World, text: str, said: str):
    def refused() -> None:
        with pytest.raises(InvalidInput, match=said):
            bring(world, text)

    assert world.wrote(refused) == []
