"""A command happens once, whatever becomes of its answer (D19): every writing verb, in every way that a client may send
its request again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest

from remembrancer.domain.errors import RemembrancerError, RequestReused, Unavailable
from remembrancer.services import open_memory
from remembrancer.services.answers import Answer
from remembrancer.services.remembrancer import Remembrancer
from tests.support.cutting_proxy import CuttingProxy
from tests.support.fake_openai import FakeOpenAI
from tests.support.read_model import all_events, assert_read_model_is_a_fresh_fold, caught_up

LIST: dict[str, Any] = {"scope": "server", "subject": "guild"}
ID = "message 4711"


@dataclass(frozen=True)
class Verb:
    """A writing verb: what has to be there before, the call, the same id with another body, what it writes."""

    name: str
    call: Callable[[Remembrancer, dict[str, Any], str | None], Any]
    other: Callable[[Remembrancer, dict[str, Any], str | None], Any]
    writes: tuple[str, ...]
    before: Callable[[Remembrancer], dict[str, Any]] = lambda memory: {}

    def __str__(self) -> str:
        return self.name


def one_memory(memory: Remembrancer) -> dict[str, Any]:
    saved = memory.save("mira", **LIST, text="Juno's cat is named Mochi")
    another = memory.save("mira", **LIST, text="Kit plays the cello")
    return {"id": saved.memory.id, "another": another.memory.id}


def one_pinned(memory: Remembrancer) -> dict[str, Any]:
    known = one_memory(memory)
    memory.pin(known["id"])
    memory.pin(known["another"])
    return known


def one_matched(memory: Remembrancer) -> dict[str, Any]:
    known = one_memory(memory)
    memory.reply("mira", message="Juno's cat Mochi", users=["juno"], server="guild")
    return known


def settled(memory: Remembrancer) -> dict[str, Any]:
    """A persona that has settings already, and a list of which one memory is no longer on its day."""
    memory.set_persona("mira", name="Mira")
    memory.set_person("juno", not_learning=["otto"])
    memory.set_server("guild", private=True)
    memory.set_policy(recent_days=3)
    return {}


VERBS = [
    Verb(
        "save",
        lambda m, k, r: m.save("mira", **LIST, text="Juno moved to Porto", tags=["home"], request_id=r),
        lambda m, k, r: m.save("mira", **LIST, text="Juno moved to Lisbon", tags=["home"], request_id=r),
        ("MemorySaved",),
    ),
    Verb(
        "save in another list",
        lambda m, k, r: m.save("mira", **LIST, text="Juno moved to Porto", request_id=r),
        lambda m, k, r: m.save(None, scope="global", subject="juno", text="Juno moved to Porto", request_id=r),
        ("MemorySaved",),
    ),
    Verb(
        "save what is known",
        lambda m, k, r: m.save("mira", **LIST, text="JUNO'S cat is named mochi", request_id=r),
        lambda m, k, r: m.save("mira", **LIST, text="Juno's dog is named Mochi", request_id=r),
        ("MemoryAffirmed",),
        one_memory,
    ),
    Verb(
        "edit",
        lambda m, k, r: m.edit(k["id"], text="Juno's cat is named Miso", request_id=r),
        lambda m, k, r: m.edit(k["id"], text="Juno's cat is named Moshi", request_id=r),
        ("MemoryEdited", "TombstonePlaced"),
        one_memory,
    ),
    Verb(
        "delete",
        lambda m, k, r: m.delete(k["id"], request_id=r),
        lambda m, k, r: m.delete(k["another"], request_id=r),
        ("MemoryDeleted", "TombstonePlaced"),
        one_memory,
    ),
    Verb(
        "pin",
        lambda m, k, r: m.pin(k["id"], request_id=r),
        lambda m, k, r: m.pin(k["another"], request_id=r),
        ("MemoryPinned",),
        one_memory,
    ),
    Verb(
        "pin what is pinned",
        lambda m, k, r: m.pin(k["id"], request_id=r),
        lambda m, k, r: m.pin(k["another"], request_id=r),
        (),
        one_pinned,
    ),
    Verb(
        "unpin",
        lambda m, k, r: m.unpin(k["id"], request_id=r),
        lambda m, k, r: m.unpin(k["another"], request_id=r),
        ("MemoryUnpinned",),
        one_pinned,
    ),
    Verb(
        "clear",
        lambda m, k, r: m.clear("mira", **LIST, request_id=r),
        lambda m, k, r: m.clear("mira", **LIST, pinned=True, request_id=r),
        ("MemoriesCleared", "TombstonesLifted"),
        one_memory,
    ),
    Verb(
        "reply",
        lambda m, k, r: m.reply("mira", message="Mochi the cat", users=["juno"], server="guild", request_id=r),
        lambda m, k, r: m.reply("mira", message="Mochi the cat", users=["kit"], server="guild", request_id=r),
        ("ChatStarted", "MessagePosted", "ReplySearched", "ListSearched", "MemoriesMatched"),
        one_memory,
    ),
    Verb(
        "set_persona",
        lambda m, k, r: m.set_persona("mira", instructions="Be kind.", request_id=r),
        lambda m, k, r: m.set_persona("mira", instructions="Be brief.", request_id=r),
        ("PersonaDefined",),
        settled,
    ),
    Verb(
        "set_person",
        lambda m, k, r: m.set_person("juno", privacy="nowhere", request_id=r),
        lambda m, k, r: m.set_person("juno", privacy="everywhere", request_id=r),
        ("PersonChanged",),
        settled,
    ),
    Verb(
        "set_server",
        lambda m, k, r: m.set_server("guild", notices="hidden", request_id=r),
        lambda m, k, r: m.set_server("guild", notices="everyone", request_id=r),
        ("ServerChanged",),
        settled,
    ),
    Verb(
        "what_if",
        lambda m, k, r: m.what_if(match_threshold=9.0, apply=True, request_id=r),
        lambda m, k, r: m.what_if(match_threshold=8.0, apply=True, request_id=r),
        ("UseRecounted",),
        one_matched,
    ),
    Verb(
        "what_if where nothing is otherwise",
        lambda m, k, r: m.what_if(match_limit=3, apply=True, request_id=r),
        lambda m, k, r: m.what_if(match_limit=3, persona="mira", apply=True, request_id=r),
        (),
        one_matched,
    ),
    Verb(
        "set_policy",
        lambda m, k, r: m.set_policy(rest_after_days=10, request_id=r),
        lambda m, k, r: m.set_policy(rest_after_days=5, request_id=r),
        ("PolicyChanged",),
        settled,
    ),
]
EVERY_VERB = pytest.mark.parametrize("verb", VERBS, ids=str)


@pytest.fixture(scope="module")
def model() -> Iterator[FakeOpenAI]:
    with FakeOpenAI(dimensions=32) as server:
        yield server


@pytest.fixture
def opened(database_url: str, model: FakeOpenAI) -> Iterator[Callable[..., Remembrancer]]:
    """Opens this test's database, as often as is wanted: each time like a process of its own."""
    with ExitStack() as stack:

        def again(url: str = database_url, **settings: Any) -> Remembrancer:
            settings = {
                "embedder": "openai", "embedder_url": model.url, "embedder_model": "words", "embed_timeout": 30.0,
            } | settings  # fmt: skip
            memory = open_memory(url, background=False, match_threshold=0.3, **settings)
            memory.engine.store.database.patience = 2.0
            memory.policy()
            return stack.enter_context(memory)

        yield again


def written_by(memory: Remembrancer, request_id: str, tenant: str = "default") -> list[str]:
    """The events that carry this request id, by name, in the order of the commit where they share a shard."""
    events = [one.event for one in all_events(memory)]
    return [type(ev).__name__ for ev in events if ev.request_id == request_id and ev.tenant == tenant]


def what_came_later(memory: Remembrancer) -> None:
    """Everything that an answer could show is changed by others."""
    memory.save("mira", **LIST, text="a later one")
    memory.set_persona("mira", instructions="later", name="Later")
    memory.set_person("juno", privacy="private_chats_only")
    memory.set_server("guild", notices="managers", private=False)
    memory.set_policy(rest_after_days=20)
    for one in memory.list("mira", **LIST).lists[0].memories:
        (memory.unpin if one.pinned else memory.pin)(one.id)


@EVERY_VERB
def test_the_same_request_again_gets_the_first_answer_and_writes_nothing(
    opened: Callable[..., Remembrancer], verb: Verb
) -> None:
    """D19. Also from another process, when everything has changed since, before it is projected and afterwards."""
    memory, other = opened(), opened()
    known = verb.before(memory)
    first = verb.call(memory, known, ID)
    what_came_later(memory)
    events = len(all_events(memory))
    assert verb.call(memory, known, ID) == first
    assert verb.call(other, known, ID) == first
    caught_up(memory)
    assert verb.call(memory, known, ID) == first
    assert len(all_events(memory)) == events
    assert sorted(written_by(memory, ID)) == sorted(verb.writes)


@EVERY_VERB
def test_eight_at_once_are_one(opened: Callable[..., Remembrancer], verb: Verb) -> None:
    """D19. Four threads each of two processes' worth of connections and caches."""
    memories = [opened(), opened()]
    known = verb.before(memories[0])
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda n: verb.call(memories[n % 2], known, ID), range(8), timeout=60))
    assert all(answer == answers[0] for answer in answers)
    assert sorted(written_by(memories[0], ID)) == sorted(verb.writes)
    caught_up(memories[0])
    assert_read_model_is_a_fresh_fold(memories[0])


@EVERY_VERB
def test_the_same_id_with_another_body_is_refused_and_writes_nothing(
    opened: Callable[..., Remembrancer], verb: Verb
) -> None:
    """D19."""
    memory, other = opened(), opened()
    known = verb.before(memory)
    first = verb.call(memory, known, ID)
    events = len(all_events(memory))
    for again in (memory, other):
        with pytest.raises(RequestReused) as refused:
            verb.other(again, known, ID)
        assert (refused.value.status, refused.value.rule) == (422, "D19")
        assert refused.value.hint
    assert len(all_events(memory)) == events
    assert verb.call(memory, known, ID) == first


@EVERY_VERB
def test_the_same_id_of_another_tenant_is_another_request(opened: Callable[..., Remembrancer], verb: Verb) -> None:
    """D19."""
    ours, theirs = opened(), opened(tenant="theirs")
    answers = []
    for memory, tenant in ((ours, "default"), (theirs, "theirs")):
        known = verb.before(memory)
        answers.append(verb.call(memory, known, ID))
        assert sorted(written_by(memory, ID, tenant)) == sorted(verb.writes)
    a, b = answers
    if isinstance(a, Answer) and hasattr(a, "memory"):
        assert a.memory.id != b.memory.id


@EVERY_VERB
@pytest.mark.parametrize("request_id", [ID, None], ids=["with an id", "without"])
def test_a_connection_that_breaks_between_commit_and_answer_is_no_matter(
    opened: Callable[..., Remembrancer], database_url: str, verb: Verb, request_id: str | None
) -> None:
    """D19, C20: the call is sent again by itself, and what it wrote is there once."""
    with CuttingProxy(database_url) as proxy:
        memory, through = opened(), opened(proxy.url)
        known = verb.before(memory)
        before = len(all_events(memory))
        proxy.cuts = 1
        answer = verb.call(through, known, request_id)
        assert proxy.cut == (1 if verb.writes or request_id else 0)  # nothing is written that changes nothing
        assert len(all_events(memory)) == before + len(verb.writes)
        if request_id is not None:
            assert verb.call(memory, known, request_id) == answer
            assert sorted(written_by(memory, request_id)) == sorted(verb.writes)


@pytest.mark.parametrize("verb", [v for v in VERBS if v.name in ("save", "delete", "reply", "set_person")], ids=str)
def test_a_client_that_never_got_its_answer_gets_it_with_the_same_request(
    opened: Callable[..., Remembrancer], database_url: str, verb: Verb
) -> None:
    """C20: the network stays away after the commit, the verb fails, the client asks again when it is back."""
    with CuttingProxy(database_url) as proxy:
        memory, through = opened(), opened(proxy.url)
        known = verb.before(memory)
        through.engine.store.database.patience = through.engine.store.pool.timeout = 0.2
        proxy.cuts, proxy.refuses = 1, True
        with pytest.raises(Unavailable):
            verb.call(through, known, ID)
        assert proxy.cut == 1
        assert sorted(written_by(memory, ID)) == sorted(verb.writes)
        events = len(all_events(memory))
        proxy.refuses = False
        first = verb.call(memory, known, ID)
        assert len(all_events(memory)) == events
        through.engine.store.database.patience = through.engine.store.pool.timeout = 10.0
        assert verb.call(through, known, ID) == first


def test_the_same_id_with_another_verb_is_refused(opened: Callable[..., Remembrancer]) -> None:
    """D19: an id is one request in all of the tenant, whatever it is about and wherever that is kept."""
    memory = opened()
    known = one_memory(memory)
    memory.save("mira", **LIST, text="Juno moved to Porto", request_id=ID)
    events = len(all_events(memory))
    for verb in VERBS:
        if not verb.name.startswith(("save", "pin what")):
            with pytest.raises(RequestReused, match="D19"):
                verb.call(memory, known, ID)
    assert len(all_events(memory)) == events


def test_a_refused_request_leaves_its_id_free(opened: Callable[..., Remembrancer]) -> None:
    """D19: what was refused wrote nothing, so the corrected request may carry the same id."""
    memory = opened()
    with pytest.raises(RemembrancerError):
        memory.save("mira", **LIST, text="x" * 501, request_id=ID)
    assert memory.save("mira", **LIST, text="short enough", request_id=ID).status == "saved"


def test_a_pin_that_changed_nothing_does_not_pin_when_its_request_comes_late(
    opened: Callable[..., Remembrancer],
) -> None:
    """D19: the first answer again, also where the first time there was nothing to write."""
    memory = opened()
    known = one_pinned(memory)
    first = memory.pin(known["id"], request_id=ID)
    memory.unpin(known["id"])
    assert memory.pin(known["id"], request_id=ID) == first
    assert not memory.get(known["id"]).pinned
