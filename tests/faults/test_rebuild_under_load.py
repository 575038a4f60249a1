"""A rebuild while people chat, killed and gone on with: nothing is lost, and the rows are those of a fresh fold."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from remembrancer.services import open_memory
from remembrancer.services.remembrancer import Remembrancer
from tests.support.generations import OF, live, live_rows, rows, tables
from tests.support.processes import client
from tests.support.read_model import assert_read_model_is_a_fresh_fold, caught_up

SETTINGS: dict[str, Any] = {"embedder": "none", "list_capacity": 100_000}


class Chatters:
    """People who save and reply, each in a place of their own; each acknowledged save must be on the next desk."""

    def __init__(self, url: str, number: int) -> None:
        self._url = url
        self._ended = threading.Event()
        self.wrong: list[str] = []
        self.failed: list[BaseException] = []
        self.said = [0] * number
        self._threads = [threading.Thread(target=self._chat, args=(n,)) for n in range(number)]

    def _chat(self, n: int) -> None:
        try:
            with open_memory(self._url, background=n == 0, **SETTINGS) as memory:
                while not self._ended.is_set():
                    text = f"fact {self.said[n]} of chatter {n}"
                    saved = memory.save("mira", scope="server", subject=f"guild {n}", text=text, actor="persona")
                    reply = memory.reply("mira", message="hello", users=[f"user {n}"], server=f"guild {n}")
                    if saved.memory.id not in [m.id for m in reply.prefix.memories]:
                        self.wrong.append(text)
                    if self.said[n] % 3 == 2:
                        memory.edit(saved.memory.id, text=f"{text}, edited")
                    self.said[n] += 1
        except BaseException as error:  # noqa: BLE001
            self.failed.append(error)

    @contextmanager
    def chatting(self) -> Iterator[None]:
        for one in self._threads:
            one.start()
        try:
            yield
        finally:
            self._ended.set()
            for one in self._threads:
                one.join(60)

    def goes_on(self) -> None:
        """All of them say something more."""
        before = list(self.said)
        deadline = time.monotonic() + 30
        while any(a <= b for a, b in zip(self.said, before, strict=True)):
            assert not self.failed, self.failed
            assert time.monotonic() < deadline, "somebody no longer gets an answer"
            time.sleep(0.005)


def fill(memory: Remembrancer, servers: int = 40) -> None:
    """Enough shards for a rebuild to be killed in the middle of."""
    for n in range(servers):
        memory.save("mira", scope="server", subject=f"server {n}", text=f"the fact of server {n}")


def projected_anew(memory: Remembrancer) -> Any:
    """The rows as the runner writes them, from the first event on, into a generation that is made by hand."""
    runner = memory.engine.runner
    with memory.engine.store.database.connection() as conn:
        for table in OF:
            conn.execute("SELECT remembrancer.new_generation_v1(%s, 99::int2)", (table,))
            conn.execute("SELECT remembrancer.attach_generation_v1(%s, 99::int2)", (table,))
        conn.execute(
            "INSERT INTO remembrancer.generation SELECT projection, 99 FROM remembrancer.generation WHERE live"
        )
        conn.execute(
            "INSERT INTO remembrancer.checkpoint SELECT projection, 99, shard, 0 FROM remembrancer.checkpoint c"
            " JOIN remembrancer.generation g USING (projection, generation) WHERE g.live"
        )
        for projection in runner.projections:
            while runner.run_batch(projection, generation=99):
                pass
        return rows(conn, dict.fromkeys(live(conn), 99))


@pytest.mark.slow
def test_u3_a_rebuild_under_load_that_is_killed_twice_equals_a_fresh_fold_byte_for_byte(database_url: str) -> None:
    """U3, DESIGN 9: four clients chat; each reply sees what was acknowledged before, during and after the switch."""
    chatters = Chatters(database_url, 4)
    with open_memory(database_url, background=False, **SETTINGS) as memory:
        fill(memory)
        caught_up(memory)
        with ExitStack() as stack:
            stack.enter_context(chatters.chatting())
            chatters.goes_on()
            for _ in range(2):
                rebuilding = stack.enter_context(client("rebuilder", url=database_url, pause=0.05, **SETTINGS))
                assert [rebuilding.line(), rebuilding.line()] == ["ready", "events"]
                time.sleep(0.3)
                rebuilding.kill()
                status = memory.rebuild_status()
                assert (status.state, status.generation) == ("building", 2)
                assert 0 < status.shards < status.shards_in_all
                chatters.goes_on()
                with memory.engine.store.database.connection() as conn:
                    assert set(live(conn).values()) == {1}
            done = memory.rebuild_status().events
            rebuilding = stack.enter_context(client("rebuilder", url=database_url, **SETTINGS))
            while (said := rebuilding.line(120))[:1] != "{":
                pass
            answer = json.loads(said)
            assert (answer["status"], answer["generation"]) == ("switched", 2)
            assert answer["events"] > done, "what was poured before the kill was not poured again"
            assert all(t["different"] == 0 for t in answer["comparison"]["tables"])
            chatters.goes_on()
        assert chatters.failed == []
        assert chatters.wrong == [], "a reply has not seen what was acknowledged before it"
        caught_up(memory)
        assert_read_model_is_a_fresh_fold(memory)
        found = live_rows(memory)
        assert len(found["memory"]) == 40 + sum(chatters.said)
        assert found == projected_anew(memory)


def test_two_processes_share_the_shards_of_one_rebuild(database_url: str) -> None:
    with open_memory(database_url, background=False, **SETTINGS) as memory, ExitStack() as stack:
        fill(memory)
        caught_up(memory)
        before = live_rows(memory)
        both = [stack.enter_context(client("rebuilder", url=database_url, pause=0.02, **SETTINGS)) for _ in range(2)]
        answers = []
        for one in both:
            while (said := one.line(120))[:1] != "{":
                pass
            answers.append(json.loads(said))
        assert [(a["status"], a["generation"]) for a in answers] == [("switched", 2)] * 2
        assert live_rows(memory) == before
        assert len(tables(memory)) == len(OF)


def test_a_process_that_stands_still_in_the_middle_of_a_shard_loses_it(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGSTOP: whoever goes on with the rebuild gets the shard after a while, and the first one changes nothing."""
    with open_memory(database_url, background=False, **SETTINGS) as memory, ExitStack() as stack:
        fill(memory, 12)
        caught_up(memory)
        before = live_rows(memory)
        still = stack.enter_context(client("rebuilder", url=database_url, pause=0.3, standstill=1.0, **SETTINGS))
        assert [still.line(), still.line()] == ["ready", "events"]
        still.stop()
        began = time.monotonic()
        assert memory.rebuild().status == "switched"
        assert time.monotonic() - began < 20
        assert live_rows(memory) == before
        still.go_on()
        while (said := still.line(120))[:1] != "{":
            pass
        assert json.loads(said)["status"] == "switched"
        assert live_rows(memory) == before
