"""Which memories of servers name a person: looked for by words, for a person to decide about (D24)."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection
from typing import Any

from psycopg import Connection

from remembrancer.domain.identity import ListKey
from remembrancer.domain.text import folded
from remembrancer.projections.queries import load_queries
from remembrancer.projections.words import memory_terms, query_terms
from remembrancer.services.answers import MemoryView
from remembrancer.services.deps import LIST, TENANT, Deps
from remembrancer.services.finder import Home
from remembrancer.services.store import Tampered, UnknownEvent, mapper
from remembrancer.services.views import in_reading_order, view

log = logging.getLogger("remembrancer")
_SQL = load_queries("remembrancer.services", "mentions")
# Scripts whose words stand without a space before or after them.
_GLUED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"


class Names:
    """What somebody is called. A text has a name if it has all its words, in any inflection, or the name as it is."""

    def __init__(self, names: Collection[str]) -> None:
        self._words: list[list[set[int]]] = []
        self.patterns = [_pattern(folded(name)) for name in names]
        """Regular expressions for folded texts, as Python and PostgreSQL read them."""
        for name in names:
            words: dict[int, set[int]] = {}
            for term, word in zip(*query_terms(name), strict=True):
                words.setdefault(word, set()).add(term)
            self._words.append(list(words.values()))
        self._compiled = [re.compile(pattern) for pattern in self.patterns]

    @property
    def terms(self) -> list[int]:
        """The words that a text must have one of; names that are everyday words ("will") have none."""
        return sorted({term for words in self._words for forms in words for term in forms})

    @property
    def without_terms(self) -> list[str]:
        """The patterns of names that have no terms."""
        return [pattern for pattern, words in zip(self.patterns, self._words, strict=True) if not words]

    def stand_in(self, text: str) -> bool:
        """Does this text have one of the names?"""
        said = folded(text)
        if any(pattern.search(said) for pattern in self._compiled):
            return True
        terms = set(memory_terms(text))
        return any(words and all(forms & terms for forms in words) for words in self._words)


def _pattern(name: str) -> str:
    before = "" if re.match(f"[{_GLUED}]", name) else r"(?<!\w)"
    after = "" if re.search(f"[{_GLUED}]$", name) else r"(?!\w)"
    return f"{before}{re.escape(name)}{after}"


class Mentions:
    """Looks through the memories of all servers of the tenant, also those that the tables do not have yet."""

    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def of(self, names: Names) -> list[MemoryView]:
        """The memories of servers that have one of the names, list by list."""
        policy, _ = self._deps.policy(self._deps.store.load(self._deps.tenant_stream, TENANT))
        found = []
        for home in self._homes(names):
            try:
                s = self._deps.store.load(home.stream, LIST).state
            except (UnknownEvent, Tampered) as unreadable:
                log.warning("The list %s cannot be looked through: %s", home.stream, unreadable.message)
                continue
            ours = [m for m in s.memories.values() if names.stand_in(m.text)]
            found += in_reading_order([view(m, s, home.key, policy, self._deps.now()) for m in ours])
        return found

    def _homes(self, names: Names) -> list[Home]:
        """The lists that may have one, in the order of their names."""
        at = {"tenant": self._deps.tenant, "terms": names.terms, "patterns": names.without_terms}

        def work(conn: Connection[Any]) -> list[Home]:
            found = conn.execute(_SQL["lists"], at).fetchall()
            where = {"shards": [shard for shard, _ in found], "streams": [stream for _, stream in found]}
            homes = []
            for stream, state in conn.execute(_SQL["first_events"], where):
                said = mapper.open_fields(state)
                if said.get("tenant") == self._deps.tenant and said.get("scope") == "server":
                    homes.append(Home(stream, ListKey(said["persona"], "server", said["subject"])))
            return homes

        return sorted(self._deps.store.database.run(work), key=lambda home: home.key)
