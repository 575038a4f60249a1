"""What two sequences have in common, in order: pairs of equal items that cross nowhere.

As long as it can be told at little cost: items that are there once are found first, what lies between them after that.
Where one sequence is the other with some items left out, all of the shorter one is found.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from difflib import SequenceMatcher

AT_MOST = 1_000_000
"""So many pairs of items are compared where nothing is there only once."""

Pair = tuple[int, int]


def in_common(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[Pair]:
    """Pairs of places of equal items, each place at most once, both growing."""
    found: list[Pair] = []
    todo = [(0, len(a), 0, len(b))]
    while todo:
        i, i_end, j, j_end = todo.pop()
        while i < i_end and j < j_end and a[i] == b[j]:
            found.append((i, j))
            i, j = i + 1, j + 1
        while i < i_end and j < j_end and a[i_end - 1] == b[j_end - 1]:
            i_end, j_end = i_end - 1, j_end - 1
            found.append((i_end, j_end))
        if i == i_end or j == j_end:
            continue
        mine, theirs = a[i:i_end], b[j:j_end]
        anchors = [(i + m, j + n) for m, n in _single(mine, theirs)]
        if not anchors:
            found += [(i + m, j + n) for m, n in _several(mine, theirs)]
            continue
        found += anchors
        cuts = [(i - 1, j - 1), *anchors, (i_end, j_end)]
        todo += [(m + 1, cuts[k][0], n + 1, cuts[k][1]) for k, (m, n) in enumerate(cuts[:-1], start=1)]
    return sorted(found)


def _single(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[Pair]:
    """The longest row, in order, of items that are on each side once."""
    once_a, once_b = Counter(a), Counter(b)
    at = {key: j for j, key in enumerate(b) if once_b[key] == 1}
    pairs = [(i, at[key]) for i, key in enumerate(a) if once_a[key] == 1 and key in at]
    ends: list[int] = []  # the place in b at which the best row of each length ends, and which pair that is
    last: list[int] = []
    before: list[int | None] = []
    for n, (_, j) in enumerate(pairs):
        k = bisect_left(ends, j)
        before.append(last[k - 1] if k else None)
        ends[k : k + 1], last[k : k + 1] = [j], [n]
    row: list[Pair] = []
    step = last[-1] if last else None
    while step is not None:
        row.append(pairs[step])
        step = before[step]
    return row[::-1]


def _several(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[Pair]:
    """The same where everything that is on both sides is there more than once."""
    first, second = _greedily(a, b), [(i, j) for j, i in _greedily(b, a)]
    best = max(first, second, key=len)
    if len(best) == min(len(a), len(b)) or len(a) * len(b) > AT_MOST:
        return best
    blocks = SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks()
    return [(m.a + k, m.b + k) for m in blocks for k in range(m.size)]


def _greedily(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[Pair]:
    """Each item of `a` with the next one of `b`, if there is one."""
    places: dict[Hashable, list[int]] = defaultdict(list)
    for j, key in enumerate(b):
        places[key].append(j)
    found: list[Pair] = []
    last = -1
    for i, key in enumerate(a):
        here = places.get(key, [])
        if (k := bisect_right(here, last)) < len(here):
            last = here[k]
            found.append((i, last))
    return found
