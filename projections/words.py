"""What a text is found by, beside its meaning: its words, in any language, as 32-bit terms.

A word stands under itself and under its Snowball stem in the language that the text is in. The language is told by
the function words in it ("the", "nicht", "что"), which are no terms themselves: they say nothing about a memory. A text
without them keeps all its words as they are. Scripts without spaces between words give pairs or triples of characters.
Nothing here depends on other texts, so a memory's terms are made once, when its text changes.

Sources: Snowball stemmers (Porter 2001, https://snowballstem.org); language by function words (Grefenstette, "Comparing
two language identification schemes", 1995); character n-grams for unsegmented scripts (McNamee and Mayfield, "Character
n-gram tokenization for European language text retrieval", 2004). Weights are for the query to know: see `scoring.py`.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from functools import cache, lru_cache
from hashlib import blake2b
from importlib.resources import files
from threading import Lock
from typing import NamedTuple, Protocol

import snowballstemmer

# Written without spaces, or, as Hangul, with endings glued on. South East: Thai, Lao, Burmese, Khmer.
_HAN = "\u3005\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_HIRAGANA = "\u3040-\u309f"
_KATAKANA = "\u30a0-\u30ff\u31f0-\u31ff"
_HANGUL = "\uac00-\ud7af"
_SOUTH_EAST = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_UNSPACED = _HAN + _HIRAGANA + _KATAKANA + _HANGUL + _SOUTH_EAST

_RUN = re.compile(
    f"(?P<pairs>[{_HAN}]+|[{_HANGUL}]+)|(?P<triples>[{_HIRAGANA}]+|[{_SOUTH_EAST}]+)|(?P<whole>[{_KATAKANA}]+)"
    rf"|(?P<word>[^\W_{_UNSPACED}](?:[^\W_{_UNSPACED}]|[\u0300-\u036f\u0900-\u0dff])*)"
)
# Accents, Hebrew points, Arabic vowel signs: often left out by who writes fast.
_MARKS = re.compile("[\u0300-\u036f\u0591-\u05c7\u064b-\u0652]")
_LETTERS = str.maketrans({"ı": "i", "ß": "ss", "ø": "o", "ł": "l", "đ": "d", "æ": "ae", "œ": "oe"})

_STEMMERS = {
    "ar": "arabic", "ca": "catalan", "cs": "czech", "da": "danish", "de": "german", "el": "greek", "en": "english",
    "es": "spanish", "fa": "persian", "fi": "finnish", "fr": "french", "hi": "hindi", "hu": "hungarian",
    "id": "indonesian", "it": "italian", "nb": "norwegian", "nl": "dutch", "pl": "polish", "pt": "portuguese",
    "ro": "romanian", "ru": "russian", "sv": "swedish", "tr": "turkish",
}  # fmt: skip
_SCRIPTS = {
    "ARABIC": ("ar", "fa"), "CYRILLIC": ("ru", "uk"), "DEVANAGARI": ("hi",), "GREEK": ("el",),
    "LATIN": tuple(sorted(_STEMMERS.keys() - {"ar", "el", "fa", "hi", "ru"})),
}  # fmt: skip
_PREFIX = 5  # characters that stand for a word of a language without a stemmer (McNamee and Mayfield)


class QueryTerms(NamedTuple):
    """The words of a message, for `score.sql`: `terms[i]` is a form of word number `words[i]`.

    Both have the same length. Words are numbered from 0 without gaps, each has at least one form, a term stands under
    one word only (the first). A message without words that tell anything gives two empty lists.
    """

    terms: list[int]
    words: list[int]


def memory_terms(text: str) -> list[int]:
    """The terms that a memory is found by: distinct signed 32-bit integers in ascending order.

    Empty for a text that is made of function words, signs and pictures only.
    """
    return sorted({_term(form) for forms in _words(text) for form in forms})


def query_terms(text: str) -> QueryTerms:
    """The words of a message with the forms under which a memory may have them."""
    terms: dict[int, int] = {}
    number = 0
    for forms in _words(text):
        new = sorted({_term(form) for form in forms} - terms.keys())
        if new:
            terms.update(dict.fromkeys(new, number))
            number += 1
    return QueryTerms(list(terms), list(terms.values()))


def _words(text: str) -> list[frozenset[str]]:
    """The distinct words of a text that say something, in the order of the text, each with all its forms."""
    runs = [(m.lastgroup, m.group()) for m in _RUN.finditer(_lower(text))]
    languages = _languages([word for kind, word in runs if kind == "word"])
    found: dict[str, frozenset[str]] = {}
    for kind, run in runs:
        if kind == "word":
            word = _fold(run)
            if not any(language in languages for language in _function_words().get(word, ())):
                found.setdefault(word, frozenset({word, *_stems(run, languages)}))
        else:  # a run of Katakana is a loan word or a name
            grams = [run] if kind == "whole" else _grams(run, 2 if kind == "pairs" else 3)
            found.update((gram, frozenset({gram})) for gram in grams)
    return list(found.values())


def _lower(text: str) -> str:
    """One spelling for what is one letter: compatibility forms, case (dotted capital I included), composed accents."""
    folded = unicodedata.normalize("NFKC", text).casefold().replace("i\u0307", "i")
    return unicodedata.normalize("NFC", folded)


@lru_cache(maxsize=50_000)
def _fold(word: str) -> str:
    """A word without its accents."""
    plain = _MARKS.sub("", unicodedata.normalize("NFD", word))
    return unicodedata.normalize("NFC", plain).translate(_LETTERS)


def _grams(run: str, size: int) -> list[str]:
    """Overlapping pieces of a run of one script. A shorter run is one piece, but two Hiragana are none (particles)."""
    if len(run) >= size:
        return [run[i : i + size] for i in range(len(run) - size + 1)]
    return [run] if size == 2 else []


def _languages(words: list[str]) -> tuple[str, ...]:
    """The languages whose function words are the most among these words: several if as many, none if there are none."""
    votes = Counter(language for word in words for language in _function_words().get(_fold(word), ()))
    most = max(votes.values(), default=0)
    return tuple(sorted(language for language, n in votes.items() if n == most))


def _stems(word: str, languages: tuple[str, ...]) -> set[str]:
    """The stems of a word in these languages; where none of them has a stemmer, its first characters."""
    stems = {_stem(language, word) for language in languages or _of_script(word[0]) if language in _STEMMERS}
    if not stems and len(word) > _PREFIX:
        stems.add(_fold(word)[:_PREFIX] + "-")
    return stems


@cache
def _of_script(letter: str) -> tuple[str, ...]:
    """The languages that write this letter."""
    script = unicodedata.name(letter, "").partition(" ")[0]
    return _SCRIPTS.get(script, ())


@lru_cache(maxsize=50_000)
def _term(form: str) -> int:
    """A form as a number. Two forms of a list of 10,000 memories share one with a chance of one in some thousands."""
    return int.from_bytes(blake2b(form.encode("utf-8", "surrogatepass"), digest_size=4).digest(), "big", signed=True)


@cache
def _function_words() -> dict[str, tuple[str, ...]]:
    """The languages of each function word, accents folded."""
    text = files("remembrancer.projections").joinpath("function_words.json").read_text(encoding="utf-8")
    languages: dict[str, list[str]] = {}
    for language, words in json.loads(text).items():
        for word in {_fold(_lower(w)) for w in words.split()}:
            languages.setdefault(word, []).append(language)
    return {word: tuple(found) for word, found in languages.items()}


class _Stemmer(Protocol):
    def stemWord(self, word: str) -> str: ...  # noqa: N802 - the library's name


_stemmers: dict[str, _Stemmer] = {}
_stemmers_lock = Lock()  # a Snowball stemmer keeps the word that it works on in itself


@lru_cache(maxsize=50_000)
def _stem(language: str, word: str) -> str:
    with _stemmers_lock:
        if language not in _stemmers:
            _stemmers[language] = snowballstemmer.stemmer(_STEMMERS[language])
        return _fold(_stemmers[language].stemWord(word))
