"""What a model drafts as a memory, and what code refuses of it (R13 c-e, R19, D10, D20, D28; C9, C18).

A prompt asks for names and absolute dates; a model does not always give them. What it claims of nobody, or of a day
that will have moved by tomorrow, is no memory: it is left out, and it is said why.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple
from uuid import UUID

MOST_DRAFTS = 5
"""Of one description, or of one choice of messages (R13)."""
LONGEST_DESCRIPTION = 1_000
"""Code points (R13)."""
MOST_MESSAGES = 20
"""Chosen at once out of a conversation (R13)."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A memory that is not saved yet. `about`: whom it is a fact of, by name; `messages`: where it was learned."""

    text: str
    about: str | None = None
    until: date | None = None
    messages: tuple[UUID, ...] = ()


class Heard(NamedTuple):
    """A message that a draft rests on: who wrote it, and what."""

    author: str
    text: str


def fault(draft: Draft, max_characters: int, heard: Sequence[Heard] = ()) -> str | None:
    """Why this draft is no memory; None for one that may be.

    Args:
        heard: the messages that it rests on, where it rests on some.
    """
    text = draft.text
    if not text.strip():
        return "it says nothing"
    if len(text) > max_characters:
        return f"it has {len(text)} characters, over {max_characters} (D10)"
    if (word := passing_day(text)) is not None:
        return f"\u201c{word}\u201d is another day tomorrow, and no date stands with it (D20)"
    if draft.about is not None and not _names(text, draft.about):
        return f"it does not name {draft.about}, whom it is a fact of"
    for clause in (part for h in heard for part in _CLAUSE.split(h.text)):
        for other in introduced(clause):
            if draft.about is not None and not _names(text, other) and _says(clause, text, draft.about):
                return f"what was said of {other} is claimed of {draft.about}"
    return None


# -- days that pass ------------------------------------------------------------------------------------------------

_PASSING = re.compile(
    r"""\b(?:
    today|tonight|tomorrow|yesterday
    |(?:this|next|last)\ (?:morning|evening|night|week|weekend|month|year|spring|summer|autumn|fall|winter
        |monday|tuesday|wednesday|thursday|friday|saturday|sunday)
    |in\ (?:\d+|a|an|two|three|four|five|six|seven|ten)\ (?:minute|hour|day|week|month|year)s?
    |(?:\d+|a|two|three)\ (?:day|week|month|year)s?\ ago

    |heute|gestern|übermorgen|vorgestern|(?:bis|ab)\ morgen|morgen\ (?:um|früh|abend|nachmittag|mittag)
    |(?:nächste|letzte|kommende)[nrs]?\ (?:woche|monat|jahr|wochenende
        |montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag)
    |in\ (?:\d+|einer?|zwei|drei)\ (?:tag|woche|monat|jahr)e?n?

    |aujourd['’]hui|demain|hier\ soir|avant-hier|après-demain|ce\ soir|la\ semaine\ prochaine|le\ mois\ prochain
    |(?:lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche)\ prochain
    |dans\ (?:\d+|une?|deux|trois)\ (?:jour|semaine|mois|an)s?

    |hoy|ayer|mañana\ a\ las?|pasado\ mañana|hasta\ mañana|esta\ (?:noche|tarde|semana)
    |la\ próxima\ semana|la\ semana\ que\ viene|el\ mes\ que\ viene
    |dentro\ de\ (?:\d+|una?|dos|tres)\ (?:día|semana|mes)(?:es|s)?

    |hoje|ontem|amanhã|depois\ de\ amanhã|esta\ (?:noite|semana)|na\ próxima\ semana|na\ semana\ que\ vem
    |daqui\ a\ (?:\d+|uma?|dois|duas|três)\ (?:dia|semana|mês|mes)(?:es|s)?
    )\b
    |明日|明後日|昨日|今日|今夜|来週|来月|先週""",
    re.IGNORECASE | re.VERBOSE,
)
_MONTHS = (
    "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mär|mai|okt|dez|janv|fév|avr|juin|juil|août|déc|ene|abr|ago|dic|fev|"
    "set|out"
)
_DATE = re.compile(
    rf"\b\d{{4}}-\d{{1,2}}-\d{{1,2}}\b|\b\d{{1,2}}[./]\d{{1,2}}[./]\d{{2,4}}\b|\d{{1,2}}月\d{{1,2}}日"
    rf"|\b\d{{1,2}}(?:st|nd|rd|th|\.)?\s+(?:de\s+|of\s+)?(?:{_MONTHS})\w*|\b(?:{_MONTHS})\w*\.?\s+\d{{1,2}}\b",
    re.IGNORECASE,
)


def passing_day(text: str) -> str | None:
    """The first word that means another day tomorrow, where no date says which was meant (D20). Six languages."""
    found = _PASSING.search(text)
    return None if found is None or _DATE.search(text) else found[0]


# -- people --------------------------------------------------------------------------------------------------------

_CLAUSE = re.compile(r"[.,;:!?\n\u3002\u3001]+")
_WORD = re.compile(r"\w{4,}")
_MINE = (
    r"my|our|his|her|their|mein\w*|unser\w*|sein\w*|ihr\w*|mon|ma|mes|notre|nos|son|sa|mi|mis|nuestr\w+|su|sus|meu|minha|"
    r"nosso|nossa|seu|sua"
)
_INTRODUCED = re.compile(rf"\b(?i:{_MINE})(?=((?:\s+[^\W\d_]+){{2,4}}))")


def introduced(text: str) -> list[str]:
    """People whom a message speaks of by name as somebody's: *my friend Ana*, *meine Schwester Lea*."""
    found = []
    for words in (m[1].split() for m in _INTRODUCED.finditer(text)):
        capital = [n for n, word in enumerate(words) if n and word[0].isupper()]
        if capital:  # in German the noun before the name is written with a capital, too
            last = capital[0]
            while last + 1 in capital:
                last += 1
            found.append(words[last])
    return found


def _says(clause: str, text: str, about: str) -> bool:
    """Does a text tell what a clause tells? It has a word of it, other than whom it is about."""
    own = set(_WORD.findall(about.casefold()))
    return bool((set(_WORD.findall(clause.casefold())) & set(_WORD.findall(text.casefold()))) - own)


def _names(text: str, name: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name.strip())}(?!\w)", text, re.IGNORECASE) is not None
