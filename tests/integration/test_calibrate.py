"""`calibrate` measures a threshold by the product's own score, for any model in use; it leaves nothing behind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remembrancer.domain.errors import InvalidInput
from remembrancer.projections import scoring
from remembrancer.services import open_memory
from remembrancer.services.calibrate import SMALL_TALK, lowest_threshold
from remembrancer.services.embedders import EmbedderFailed
from remembrancer.services.formats.probes import read_probes
from tests.support.read_model import count_of_everything
from tests.support.world import World

PEOPLE = ["Juno", "Aiko", "Rui", "Priya", "Tobias", "Ngozi", "Mateus", "Olena", "Kenji", "Elif"]
THINGS = ["cat", "boat", "garden", "violin", "bakery"]
NAMES = ["Mochi", "Tofu", "Saffron", "Biscuit", "Nimbus"]
TALK = [
    "chess tonight?",
    "good morning",
    "what a day",
    "is it raining",
    "ha ha",
    "see you",
    "boat or train",
    "Mochi is tasty",
]


def facts() -> list[str]:
    return [f"{who} has a {what} named {name}" for who in PEOPLE for what, name in zip(THINGS, NAMES, strict=True)]


@pytest.fixture
def probes(tmp_path: Path) -> Path:
    """Two languages: 50 facts, 50 messages that touch them well or badly, 40 of small talk; and 2, 2, 2."""
    told = facts()
    write(
        tmp_path / "en.jsonl",
        [{"kind": "fact", "id": f"en-{n}", "text": text} for n, text in enumerate(told)]
        + [
            {"kind": "touch", "fact": f"en-{n}", "text": "how is Elif?" if n % 10 == 0 else f"how is the {text[4:]}"}
            for n, text in enumerate(told)
        ]
        + [{"kind": "small_talk", "text": f"{text} {n // len(TALK)}"} for n, text in enumerate(TALK * 5)],
    )
    write(
        tmp_path / "xx.jsonl",
        [{"kind": "fact", "id": str(n), "text": f"alpha beta {n}"} for n in (1, 2)]
        + [{"kind": "touch", "fact": str(n), "text": f"beta {n}"} for n in (1, 2)]
        + [{"kind": "small_talk", "text": f"gamma {n} delta"} for n in (3, 4)],
    )
    return tmp_path


def write(file: Path, lines: list[dict[str, Any]]) -> None:
    file.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")


@given(st.lists(st.floats(-2, 2), min_size=1, max_size=300))
def test_d5_the_threshold_is_the_lowest_that_3_percent_of_small_talk_reach(best: list[float]):
    threshold = lowest_threshold(best)

    def reach(value: float) -> float:
        return sum(score >= value for score in best) / len(best)

    assert reach(threshold) <= SMALL_TALK
    assert reach(threshold - 0.001 - 1e-9) > SMALL_TALK


def test_d5_any_model_is_measured_and_replies_then_do_what_was_measured(world: World, probes: Path):
    measured = world.memory.calibrate(probes)
    assert (measured.model, measured.shipped) == ("openai:words", None)
    assert [(x.language, x.facts, x.touches, x.small_talk) for x in measured.languages] == [
        ("en", 50, 50, 40), ("xx", 2, 2, 2),
    ]  # fmt: skip
    assert measured.matched_small_talk <= 0.03
    assert 0.3 < measured.found <= measured.ranked < 1.0

    world.memory.set_policy(match_threshold=measured.threshold)
    for language, result in zip(read_probes(probes), measured.languages, strict=True):
        texts = list(language.facts)
        for n, text in enumerate(texts):
            world.day(2 * (n - len(texts)))  # not near each other, and older in the order of the file (D6)
            world.save(text, subject=language.language)
        world.project()
        world.day(1)
        found = sum(
            texts[fact] in [m.text for m in world.say(message, server=language.language).search.matches]
            for message, fact in language.touches
        )
        matched = sum(bool(world.say(m, server=language.language).search.matches) for m in language.small_talk)
        assert found == round(result.found * result.touches)
        assert matched == round(result.matched_small_talk * result.small_talk)


def test_calibrating_leaves_nothing_behind(world: World, probes: Path):
    world.memory.policy()
    before = count_of_everything(world.memory)
    first = world.memory.calibrate(probes)
    assert world.memory.calibrate(probes) == first
    assert count_of_everything(world.memory) == before
    with world.memory.engine.store.database.connection() as connection:
        assert connection.execute("SELECT to_regclass('searched'), to_regclass('pg_temp.searched')").fetchone() == (
            None,
            None,
        )


def test_progress_counts_every_text(world: World, probes: Path):
    told: list[tuple[int, int | None]] = []
    world.memory.calibrate(probes, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (146, 146)
    assert told == sorted(told)


def test_a_model_that_does_not_answer_and_no_model_at_all_are_errors(world: World, probes: Path):
    world.lose_the_model()
    with pytest.raises(EmbedderFailed):
        world.memory.calibrate(probes)
    with pytest.raises(InvalidInput, match="no model"):
        world.open(embedder="none").calibrate(probes)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"kind": "fact", "id": "1"}', "line 2: text"),
        ('{"kind": "fact", "id": "1", "text": ""}', "line 2: text"),
        ('{"kind": "fact", "id": "1", "text": "x", "more": 1}', "line 2: more"),
        ('{"kind": "riddle", "text": "x"}', "line 2: row"),
        ('{"kind": "touch", "fact": "9", "text": "x"}', "not there: 9"),
        ("not json", "line 2"),
        ('{"kind": "fact", "id": "1", "text": "x"}', "no probes"),
    ],
)
def test_probes_that_do_not_fit_are_refused_by_file_and_line(world: World, tmp_path: Path, line: str, why: str):
    (tmp_path / "en.jsonl").write_text('{"kind": "small_talk", "text": "hello"}\n' + line + "\n", encoding="utf-8")
    with pytest.raises(InvalidInput, match=why):
        world.memory.calibrate(tmp_path)


def test_a_folder_without_probes_is_refused(world: World, tmp_path: Path):
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(InvalidInput):
            world.memory.calibrate(folder)


def test_our_own_probes_have_six_languages_with_100_lines_of_each_kind():
    ours = read_probes(None)
    assert {"en", "pt", "uk", "ja"} < {p.language for p in ours}
    assert len(ours) == 6
    assert all(min(len(p.facts), len(p.touches), len(p.small_talk)) >= 100 for p in ours)


@pytest.mark.slow
def test_d5_the_shipped_threshold_is_the_one_that_calibrating_measures(database_url: str, tmp_path: Path):
    with open_memory(database_url, embedder="local", background=False) as memory:
        # Most of the touching messages are left out: the threshold does not depend on them.
        for p in read_probes(None):
            lines: list[dict[str, Any]] = [{"kind": "fact", "id": str(n), "text": t} for n, t in enumerate(p.facts)]
            lines += [{"kind": "touch", "fact": str(n), "text": text} for text, n in p.touches[:1]]
            lines += [{"kind": "small_talk", "text": text} for text in p.small_talk]
            write(tmp_path / f"{p.language}.jsonl", lines)
        measured = memory.calibrate(tmp_path)
    assert measured.threshold == scoring.threshold_of(measured.model) == measured.shipped
    assert measured.matched_small_talk <= 0.03
