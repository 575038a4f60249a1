"""Memories that read like instructions (T16): found in six languages and two more, and ordinary facts left alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from remembrancer.domain.instructions import WARNING, reads_like_an_instruction

PROBES = sorted((Path(__file__).parents[2] / "services" / "probes").glob("*.jsonl"))

INSTRUCTIONS = {
    "en": [
        "Always answer Juno in Spanish.",
        "always answer Juno in Spanish",
        "Never mention the accident.",
        "Please don't use emojis.",
        "Don’t use emojis.",
        "Address Kai as Captain.",
        "Do not call him Johnny.",
        "Call me Captain.",
        "Speak like a pirate.",
        "Answer in one sentence.",
        "Remember to greet Kai first.",
        "Make sure to sign with your name.",
        "You should always be polite to Ana.",
        "With Juno, never talk about work.",
        "“Always reply in rhyme”",
    ],
    "pt": [
        "Sempre responda em português.",
        "Nunca fale sobre o acidente.",
        "Não use emojis.",
        "Por favor, chame o Caio de Capitão.",
        "Evite falar de política.",
    ],
    "uk": [
        "Завжди відповідай українською.",
        "Ніколи не згадуй про аварію.",
        "Будь ласка, називай Назара капітаном.",
        "Не вживай смайлики.",
    ],
    "de": [
        "Antworte Juno immer auf Spanisch.",
        "Immer auf Deutsch antworten.",
        "Niemals den Unfall erwähnen.",
        "Bitte schreib kurze Sätze.",
        "Nenne Kai nur den Kapitän.",
        "Verwende keine Emojis.",
    ],
    "tr": [
        "Her zaman Türkçe cevap ver.",
        "Asla kazadan bahsetme.",
        "Lütfen daima kibar ol.",
        "Emoji kullanma.",
        "Ona Kaptan diye hitap et.",
    ],
    "ja": [
        "いつも日本語で答えてください。",
        "事故の話はしないでください。",
        "ジュノをキャプテンと呼んでください",
        "必ず敬語で話すこと。",
        "短く答えてほしい。",
    ],
    "es": ["Siempre responde en español.", "Nunca hables del accidente.", "Usa frases cortas."],
    "fr": ["Toujours répondre en français.", "Réponds en une phrase.", "Évite les émojis."],
}

FACTS = [
    "Juno always takes the stairs.",
    "Kai never eats breakfast.",
    "Ana speaks Spanish with her grandmother.",
    "Juno's answering machine plays a waltz.",
    "The use of the shared kitchen ends at ten.",
    "Stopwatch is the name of Kai's tortoise.",
    "Juno wants to learn to write with her left hand.",
    "Immergrün heißt Ngozis Blumenladen.",
    "Niels wohnt in Kiel.",
    "Semprini is the name of Ana's parrot.",
    "Yazar olmak isteyen Defne her gün bir sayfa dolduruyor.",
    "Usain is Kai's cousin.",
    "Addressing parcels is Kai's job.",
    "Address of Juno's studio: 5 Mill Lane.",
    "Selin'in kedisi beyaz.",
    "Baran'ın en sevdiği mevsim yaz.",
]


@pytest.mark.parametrize(("language", "text"), [(lang, one) for lang, some in INSTRUCTIONS.items() for one in some])
def test_an_instruction_is_taken_for_one(language: str, text: str):  # T16
    assert reads_like_an_instruction(text)


@pytest.mark.parametrize("text", FACTS)
def test_a_fact_is_not(text: str):  # T16
    assert not reads_like_an_instruction(text)


@pytest.mark.parametrize("path", PROBES, ids=lambda p: p.stem)
def test_of_a_hundred_facts_of_a_language_at_most_one_is_taken_for_an_instruction(path: Path):  # T16
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    facts = [row["text"] for row in rows if row["kind"] == "fact"]
    assert len(facts) >= 100
    taken = [text for text in facts if reads_like_an_instruction(text)]
    assert len(taken) <= len(facts) // 100, taken


def test_there_are_probes_in_six_languages():
    assert len(PROBES) >= 6


def test_the_warning_names_the_two_ways_to_keep_it():  # T16
    assert "standing instructions" in WARNING
    assert "pin it" in WARNING
