"""Whatever happens in a chat, `at` of every turn and attempt gives the bytes that were sent (U1).

Two people talk with Mira in two rooms and alone; memories are saved, edited, pinned, tagged, deleted, restored,
cleared; turns are asked again, undone and rewound; settings and policy change; days pass, the clock goes back, the
projector takes some of it. Then each reply is looked at: as the tables are, after a later change of the policy, with
empty tables, and after they are filled again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from itertools import count
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from psycopg import sql

from remembrancer.domain.errors import RemembrancerError
from remembrancer.services.answers import ReplyAnswer
from remembrancer.services.remembrancer import Remembrancer
from tests.support.world import START, World

TABLES = ("list", "list_day", "memory", "memory_use", "archive", "history")
WORDS = ("Mochi", "sleeps", "chess", "river", "drum", "Porto")
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3, unique=True).map(" ".join)
some = st.sampled_from([(), (), (), ("a",), ("b",)])
any_one = st.integers(0, 30)
"""One of the memories, or turns, that there are."""
SUBJECTS = {"server": ("cafe", "club"), "personal": ("juno", "kai"), "global": ("juno", "kai")}

saves = st.fixed_dictionaries(
    {
        "act": st.just("save"),
        "scope": st.sampled_from(["server", "server", "personal", "global"]),
        "which": st.sampled_from([0, 0, 1]),
        "text": texts,
        "tags": some,
        "channels": some,
        "until": st.none() | st.none() | st.integers(0, 6),
        "in_turn": st.none() | any_one,
    }
)
replies = st.fixed_dictionaries(
    {
        "act": st.just("reply"),
        "message": st.sampled_from([*WORDS, "", "hello"]),
        "users": st.sampled_from([("juno",), ("juno",), ("kai",), ("juno", "kai"), ("kai", "juno")]),
        "server": st.sampled_from(["cafe", "cafe", "cafe", "club", None]),
        "channel": st.sampled_from([None, None, "a", "b"]),
        "tags": some,
        "memory": st.sampled_from([*["on"] * 9, "off"]),
        "again": st.none() | any_one,
    }
)
policies = st.tuples(
    st.just("policy"),
    st.fixed_dictionaries(
        {
            "rest_after_days": st.sampled_from([1, 2, 7]),
            "desk_limit": st.sampled_from([1, 0, 3, 100]),
            "recent_days": st.sampled_from([0, 1, 7]),
            "list_capacity": st.sampled_from([100, 100, 2]),
        }
    ),
)
others = st.one_of(
    st.tuples(st.just("edit"), any_one, texts, st.none() | any_one),
    st.tuples(st.sampled_from(["delete", "pin", "unpin", "restore"]), any_one),
    st.tuples(st.sampled_from(["undo", "rewind"]), any_one),
    st.tuples(st.just("clear"), st.sampled_from(["cafe", "club"]), st.booleans()),
    st.tuples(
        st.just("persona"), st.sampled_from(["", "You are Mira.", "Be kind.\n"]), st.sampled_from([True, True, False])
    ),
    st.tuples(st.just("person"), st.sampled_from(["everywhere", "everywhere", "private_chats_only", "nowhere"])),
    st.tuples(st.just("server"), st.sampled_from([(), (), ("juno",)]), st.sampled_from([True, True, False])),
    policies,
    st.tuples(st.just("project"), st.integers(1, 6), st.integers(1, 4)),
    st.tuples(st.just("day"), st.sampled_from([1, 1, 1, 2, 8])),
    st.tuples(st.just("back"), st.integers(1, 30)),
)
acts = st.sampled_from([saves, replies, replies, others]).flatmap(
    lambda kind: kind
)  # `one_of` would count each other act
stories = st.tuples(
    policies.map(lambda one: [one]),
    st.lists(saves, min_size=3, max_size=6),
    st.lists(acts, min_size=12, max_size=30),
).map(lambda parts: [one for part in parts for one in part])
tenants = count()


class Chat:
    """A tenant of its own, and every reply that it was given."""

    def __init__(self, world: World, memory: Remembrancer) -> None:
        self.world, self.memory = world, memory
        self.memories: list[Any] = []
        self.turns: list[str] = []
        self.sent: list[ReplyAnswer] = []

    def play(self, what: Any) -> None:
        """What a rule refuses, it refuses."""
        self.world.later(minutes=7)
        with suppress(RemembrancerError):
            if isinstance(what, dict):
                how = {name: value for name, value in what.items() if name != "act"}
                self._save(**how) if what["act"] == "save" else self._reply(**how)
            else:
                self._other(*what)

    def _save(self, scope: str, which: int, text: str, until: int | None, in_turn: int | None, **how: Any) -> None:
        turn = None if in_turn is None or not self.turns else self.turns[-1 - in_turn % len(self.turns)]
        day = None if until is None else START.date() + timedelta(days=until)
        saved = self.memory.save(
            "mira", scope=scope, subject=SUBJECTS[scope][which], text=text, until=day, turn=turn,
            actor="person" if turn is None else "persona", **how,
        )  # fmt: skip
        self.memories.append(saved.memory.id)

    def _reply(self, again: int | None, **how: Any) -> None:
        turn = None if again is None or not self.turns else self.turns[again % len(self.turns)]
        answer = self.memory.reply("mira", turn=turn, **how)
        self.sent.append(answer)
        if turn is None:
            self.turns.append(answer.turn)

    def _other(self, act: str, first: Any, *more: Any) -> None:
        if act in ("edit", "delete", "pin", "unpin", "restore"):
            if not self.memories:
                return
            one = self.memories[first % len(self.memories)]
            if act != "edit":
                getattr(self.memory, act)(one)
                return
            text, in_turn = more
            turn = None if in_turn is None or not self.turns else self.turns[-1 - in_turn % len(self.turns)]
            self.memory.edit(one, text=text, turn=turn, actor="person" if turn is None else "persona")
        elif act in ("undo", "rewind"):
            if self.turns:
                turn = self.turns[first % len(self.turns)]
                (self.memory.undo_turn if act == "undo" else self.memory.rewind)(turn)
        elif act == "clear":
            self.memory.clear("mira", scope="server", subject=first, pinned=more[0])
        elif act == "persona":
            self.memory.set_persona("mira", instructions=first, learns=more[0])
        elif act == "person":
            self.memory.set_person("juno", privacy=first)
        elif act == "server":
            self.memory.set_server("cafe", blocklist=first, personal_memories=more[0])
        elif act == "policy":
            self.memory.set_policy(**first)
        elif act == "project":
            runner = self.memory.engine.runner
            for _ in range(more[0]):
                for projection in runner.projections[: first % 3 + 1]:
                    runner.run_batch(projection)
        elif act == "day":
            self.world.later(days=first)
        else:
            self.world.later(hours=-first)

    def assert_all_seen(self, when: str) -> None:
        for sent in self.sent:
            seen = self.memory.at(turn=sent.turn, attempt=sent.attempt)
            assert seen.prefix is not None, when
            assert seen.late is not None, when
            assert seen.prefix.text == sent.prefix.text, when
            assert seen.prefix.fingerprint == sent.prefix.fingerprint, when
            assert seen.late.text == sent.late.text, when
            assert (seen.prefix, seen.late, seen.search) == (sent.prefix, sent.late, sent.search), when
            assert seen.summary == sent.summary, when
            assert [(m.id, m.text) for m in seen.messages or []] == [(m.id, m.text) for m in sent.messages], when
            assert seen.exact, (when, seen.notes)


@contextmanager
def a_chat(world: World) -> Iterator[Chat]:
    memory = world.open(tenant=f"chat {next(tenants)}")
    world.now = START
    try:
        yield Chat(world, memory)
    finally:
        memory.close()


def forget_the_read_model(world: World, start: dict[int, int]) -> None:
    """The projections stand where the story began, and no row is there."""
    with world.memory.engine.store.database.connection() as conn:
        conn.execute(
            "UPDATE remembrancer.checkpoint c SET position = s.position"
            " FROM unnest(%s::int2[], %s::int8[]) AS s (shard, position) WHERE s.shard = c.shard",
            (list(start), list(start.values())),
        )
        for table in TABLES:
            conn.execute(sql.SQL("TRUNCATE remembrancer.{}").format(sql.Identifier(table)))


@settings(
    max_examples=14,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(story=stories)
def test_u1_d19_r12_t17_at_every_turn_of_a_random_chat_are_the_bytes_that_were_sent(world: World, story: list[Any]):
    start = dict.fromkeys(range(256), 0) | world.memory.engine.store.heads()
    forget_the_read_model(world, start)
    with a_chat(world) as chat:
        for what in story:
            chat.play(what)
        chat.assert_all_seen("as the tables are")
        chat.memory.set_policy(rest_after_days=30, desk_limit=2, recent_days=3)
        chat.memory.engine.runner.catch_up()
        chat.assert_all_seen("after a change of the policy")
        forget_the_read_model(world, start)
        chat.assert_all_seen("with an empty read model")
        chat.memory.engine.runner.catch_up()
        chat.assert_all_seen("after a replay")
        assert chat.memory.engine.runner.parked() == []
