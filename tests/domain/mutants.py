"""Can the tests of the rules fail? Each line of the table below is a small mistake and the test that must see it.

    python -m tests.domain.mutants            all of them
    python -m tests.domain.mutants --fast     the mistakes in the day tick that look right, and one of every other kind
    python -m tests.domain.mutants evict      those with this word in their name

Every mistake is made in a copy of `domain/` of its own, which goes first on the path of a new Python.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

CHECKOUT = Path(__file__).parents[2]
TESTS = CHECKOUT / "tests" / "domain"
WEEKS = "test_decay_against_the_naive_model.py"


class Mutant(NamedTuple):
    """A mistake: in `file`, `old` becomes `new`, and `test` must turn red."""

    name: str
    file: str
    old: str
    new: str
    test: str
    fast: bool = False


MUTANTS = [
    # -- the day tick: forms that look right
    Mutant(
        "a use clears the days on which it was hidden", "persona_memory.py",
        "    return _each(s, [match.memory for match in ev.matches], lambda m: _use(m, ev, ev.day, at))",
        "    used = {match.memory for match in ev.matches}\n"
        "    off = {d: o._replace(ids=o.ids | used if o.all_but else o.ids - used) for d, o in s.days.off.items()}\n"
        "    s = replace(s, days=SearchedDays(s.days.days, off))\n"
        "    return _each(s, list(used), lambda m: _use(m, ev, ev.day, at))",
        WEEKS, fast=True,
    ),
    Mutant(
        "the last use overwrites the ones before", "memory.py",
        "uses = (*self.uses, Use(day, turn, matched_at))", "uses = (Use(day, turn, matched_at),)",
        WEEKS, fast=True,
    ),
    Mutant(
        "hidden in the first reply of a day, hidden all day", "decay.py",
        "            if before is None:", "            if True:",
        WEEKS, fast=True,
    ),
    Mutant(
        "the day of the use itself counts", "decay.py",
        "bisect_right(self.days, since)", "bisect_left(self.days, since)",
        WEEKS, fast=True,
    ),
    Mutant(
        "an undo takes the searched day back too", "persona_memory.py",
        "if k not in ev.removed}, s.days\n",
        "if k not in ev.removed}, replace(s.days, days=tuple(d for d in s.days.days if d != at.date()))\n",
        WEEKS, fast=True,
    ),
    Mutant(
        "a pinned memory goes on counting", "memory.py",
        "        if self.pinned:\n            return self.frozen\n", "",
        WEEKS, fast=True,
    ),
    Mutant(
        "a late day is put at the end", "decay.py",
        "days = (*self.days[:i], day, *self.days[i:])", "days = (*self.days, day)",
        WEEKS, fast=True,
    ),
    Mutant(
        "a match does not use up its day", "persona_memory.py",
        "lambda m: _use(m, ev, ev.day, at)", "lambda m: _use(m, ev, ev.day - timedelta(days=1), at)",
        WEEKS, fast=True,
    ),
    # -- the day tick: what our form adds
    Mutant(
        "everybody but those seen, read as those seen", "decay.py",
        "return (memory in self.ids) is not self.all_but", "return memory in self.ids",
        WEEKS,
    ),
    Mutant(
        "two short forms of a day meet in the wrong way", "decay.py",
        "return LeftOut(self.ids | other.ids, True)", "return LeftOut(self.ids & other.ids, True)",
        WEEKS,
    ),
    Mutant(
        "a short and a long form of a day meet in the wrong way", "decay.py",
        "return LeftOut(self.ids - other.ids)", "return LeftOut(self.ids)",
        WEEKS,
    ),
    Mutant(
        "unpinning is no use", "persona_memory.py",
        "frozen=0, base_day=max(m.base_day, ev.day), base_days=0), cleared", "frozen=0), cleared",
        WEEKS,
    ),
    Mutant(
        "restoring is no use", "persona_memory.py",
        "m = replace(m, base_day=max(m.base_day, ev.day), base_days=0, protected", "m = replace(m, protected",
        WEEKS,
    ),
    Mutant(
        "a match of a memory that is away is lost", "persona_memory.py",
        "for k in ids if k in s.gone}", "for k in ids if k in ()}",
        WEEKS,
    ),
    Mutant(
        "away, and so not seen, counts as hidden", "persona_memory.py",
        "            days = days.seen_from(back.away_from, k)\n", "",
        WEEKS,
    ),
    Mutant(
        "what a person did in a turn goes with it", "persona_memory.py",
        'if ev.turn is not None and (matched_at is not None or ev.actor != "person"):', "if ev.turn is not None:",
        WEEKS,
    ),
    Mutant(
        "an undo forgets of which day the use before was", "persona_memory.py",
        "base_day=min(m.base_day, ev.unmatched[m.id])", "base_day=m.base_day",
        "test_busy_memories.py",
    ),
    Mutant(
        "days that were counted anew are lost with a match that comes late", "memory.py",
        "0 if any(u.day >= self.base_day for u in self.uses) else", "0 if self.uses else",
        WEEKS,
    ),
    Mutant(
        "one day more before it rests", "decay.py",
        "unused_days >= rest_after_days", "unused_days > rest_after_days",
        "test_decay.py",
    ),
    Mutant(
        "with decay off, what rested goes on resting", "decay.py",
        "return decay_enabled and not pinned", "return not pinned",
        "test_decay.py", fast=True,
    ),
    # -- who is forgotten
    Mutant(
        "evicts the protected", "eviction.py",
        "if not m.pinned and not m.protected and", "if not m.pinned and",
        "test_eviction.py", fast=True,
    ),
    Mutant(
        "evicts the once matched before the never matched", "eviction.py",
        "_NEVER = datetime.min", "_NEVER = datetime.max",
        "test_eviction.py",
    ),
    Mutant(
        "evicts the expired last", "eviction.py",
        "        if m.expired(today):", "        if False:",
        "test_eviction.py",
    ),
    Mutant(
        "evicts the newer of equals", "eviction.py",
        "or _NEVER, m.created_at, m.id)", "or _NEVER, -m.created_at.timestamp(), m.id)",
        "test_eviction.py",
    ),
    Mutant(
        "evicts what has no vector yet", "eviction.py",
        " and m.id not in without_vector", "",
        "test_eviction.py",
    ),
    Mutant(
        "evicts the active", "eviction.py",
        'if m.state(days, policy, today) == "resting":', "if True:",
        "test_eviction.py",
    ),
    Mutant(
        "evicts from a global list", "eviction.py",
        "if is_global or not policy", "if not policy",
        "test_eviction.py",
    ),
    # -- a full list
    Mutant(
        "one more than the list holds", "persona_memory.py",
        "if s.unpinned < ctx.policy.list_capacity", "if s.unpinned <= ctx.policy.list_capacity",
        "test_saving.py", fast=True,
    ),
    Mutant(
        "forgets for a reply whose search failed", "persona_memory.py",
        "else ctx.search_ok\n", "else True\n",
        "test_saving.py",
    ),
    Mutant(
        "forgets another than the person named", "persona_memory.py",
        "if make_room == first.memory.id:", "if make_room is not None:",
        "test_saving.py",
    ),
    Mutant(
        "learns again what a person deleted, if it is spelled otherwise", "persona_memory.py",
        "folded(text) in ctx.tombstones", "text in ctx.tombstones",
        "test_saving.py",
    ),
    Mutant(
        "one pin more than there is room for", "persona_memory.py",
        "if s.pinned >= ctx.policy.pin_capacity:", "if s.pinned > ctx.policy.pin_capacity:",
        "test_pins.py",
    ),
    Mutant(
        "the ai edits what is pinned", "persona_memory.py",
        '    if ctx.by_model and m.pinned:\n        raise _out_of_reach(m, "edited")\n', "",
        "test_editing_and_deleting.py",
    ),
    Mutant(
        "clears what came after the person was asked", "persona_memory.py",
        "if pinned and (not s.cleared or s.unpinned):", "if pinned and s.unpinned:",
        "test_clearing.py",
    ),
    Mutant(
        "a clear can be undone", "persona_memory.py",
        "for k, v in s.gone.items() if v.memory.pinned is not ev.pinned}", "for k, v in s.gone.items()}",
        "test_clearing.py",
    ),
    # -- what is sent
    Mutant(
        "the desk takes the oldest", "desk.py",
        "key=_age, reverse=True)", "key=_age)",
        "test_desk.py", fast=True,
    ),
    Mutant(
        "the desk has more than there is room for", "desk.py",
        "for i in open_lists[:room]:", "for i in open_lists:",
        "test_desk.py",
    ),
    Mutant(
        "the desk gives the second list nothing", "desk.py",
        "                still_open.append(i)\n", "                still_open = [i]\n",
        "test_desk.py",
    ),
    Mutant(
        "the desk is printed as it came", "desk.py",
        "for m in sorted([*(p for p in memories if p.pinned), *newest[i][: share[i]]], key=_age)]",
        "for m in [*(p for p in memories if p.pinned), *newest[i][: share[i]]]]",
        "test_desk.py",
    ),
    Mutant(
        "a name makes a heading", "prompt.py",
        '    return " ".join(name.splitlines())\n', "    name = key.subject\n",
        "test_prompt.py",
    ),
    Mutant(
        "lists stand in the order in which users were named", "visibility.py",
        "return sorted(keys, key=lambda", "return sorted(keys, key=lambda k: 0) if keys else sorted(keys, key=lambda",
        "test_visibility.py",
    ),
    # -- what may be used
    Mutant(
        "hidden on its last day already", "visibility.py",
        "today > until", "today >= until",
        "test_visibility.py", fast=True,
    ),
    Mutant(
        "any tag opens", "visibility.py",
        "return not tags or any(tag in place.tags for tag in tags)", "return not tags or bool(place.tags)",
        "test_visibility.py",
    ),
    Mutant(
        "a channel hides nothing where there is none", "visibility.py",
        "if channels and place.channel not in channels:",
        "if channels and place.channel and place.channel not in channels:",
        "test_visibility.py",
    ),
    Mutant(
        "a server with a bystander is private", "visibility.py",
        "return len(set(users)) == 1 and (", "return bool(users) and (",
        "test_visibility.py",
    ),
    Mutant(
        "the blocklist hides nobody", "visibility.py",
        "(user in server.blocklist or not", "(not",
        "test_visibility.py",
    ),
    # -- what matched
    Mutant(
        "a match has to be better than the threshold", "matching.py",
        "s.score >= threshold", "s.score > threshold",
        "test_matching.py", fast=True,
    ),
    Mutant(
        "one match too many", "matching.py",
        "n <= match_limit", "n <= match_limit + 1",
        "test_matching.py",
    ),
    Mutant(
        "of equals the newer matches", "matching.py",
        "(-s.score, s.created_at, s.id)", "(-s.score, -s.created_at.timestamp(), s.id)",
        "test_matching.py",
    ),
    # -- names and texts
    Mutant(
        "parts of a name run together", "identity.py",
        'h.update(len(raw).to_bytes(4, "big") + raw)', "h.update(raw)",
        "test_identity.py",
    ),
    Mutant(
        "501 characters", "text.py",
        "if len(text) > max_characters:", "if len(text) > max_characters + 1:",
        "test_texts.py",
    ),
    Mutant(
        "the same in other letters is another", "text.py",
        'unicodedata.normalize("NFKC", text).casefold()', "text.casefold()",
        "test_texts.py",
    ),
]  # fmt: skip


class Verdict(NamedTuple):
    """What became of a mutant."""

    mutant: Mutant
    word: str
    seconds: float
    output: str = ""


@contextmanager
def copy_of_the_domain() -> Iterator[Path]:
    """A folder that, first on the path, is where `remembrancer.domain` comes from."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        home = Path(folder, "remembrancer", "domain")
        shutil.copytree(CHECKOUT / "domain", home, ignore=shutil.ignore_patterns("__pycache__"))
        yield home


def run_python(home: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """Run a new Python with this copy first on its path."""
    path = str(home.parents[1])
    environment = os.environ | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, *args], cwd=CHECKOUT, env=environment, capture_output=True, text=True, timeout=300, check=False
    )


def run_tests(home: Path, *tests: str) -> subprocess.CompletedProcess[str]:
    """Run these tests against a copy. They find and do not explain, with the same examples every time."""
    return run_python(
        home, "-m", "pytest", "-x", "-q", "--tb=line", "-p", "no:cacheprovider", "-p", "no:xdist",
        f"--confcutdir={TESTS}", "--hypothesis-profile=mutants", *(str(TESTS / test) for test in tests),
    )  # fmt: skip


def judge(mutant: Mutant) -> Verdict:
    """Make the mistake and see whether its test sees it."""
    start = time.monotonic()
    with copy_of_the_domain() as home:
        file = home / mutant.file
        text = file.read_text(encoding="utf-8")
        if text.count(mutant.old) != 1:
            return Verdict(mutant, "does not apply", 0.0, f"{mutant.old!r} stands {text.count(mutant.old)} times there")
        file.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
        ran = run_tests(home, mutant.test)
    word = {0: "survived", 1: "red"}.get(ran.returncode, "does not run")
    return Verdict(mutant, word, time.monotonic() - start, ran.stdout + ran.stderr)


def check_the_ground(tests: Sequence[str]) -> str | None:
    """What is wrong before any mistake is made; None if the copy is used and its tests are green."""
    with copy_of_the_domain() as home:
        where = run_python(home, "-c", "import remembrancer.domain.decay as d; print(d.__file__)").stdout.strip()
        if where != str(home / "decay.py"):
            return f"The tests would not use the copy but {where}."
        ran = run_tests(home, *tests) if tests else None
    return None if ran is None or ran.returncode == 0 else f"Not green without any mistake:\n{ran.stdout}{ran.stderr}"


def say(line: str) -> None:
    """To the terminal, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(argv: Sequence[str] | None = None) -> int:
    """Print a table; 0 if every mistake was seen."""
    parser = argparse.ArgumentParser(prog="mutate", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("words", nargs="*", help="only mistakes with one of these words in their name")
    parser.add_argument("--fast", action="store_true", help="a part that takes less than a minute on two cores")
    parser.add_argument("--trust", action="store_true", help="do not first run the tests without any mistake")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time")
    options = parser.parse_args(argv)
    chosen = [
        mutant
        for mutant in MUTANTS
        if (mutant.fast or not options.fast)
        and (not options.words or any(word in mutant.name for word in options.words))
    ]
    if wrong := check_the_ground([] if options.trust else sorted({mutant.test for mutant in chosen})):
        say(wrong)
        return 1
    bad = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for verdict in pool.map(judge, chosen):
            say(f"{verdict.word:15}{verdict.seconds:5.1f} s  {verdict.mutant.file:20}{verdict.mutant.name}")
            if verdict.word != "red":
                bad += 1
                say(f"    {verdict.mutant.test}\n    {verdict.output[-2000:]}")
    say(f"{len(chosen) - bad} of {len(chosen)} mistakes were seen")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
