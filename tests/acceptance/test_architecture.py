"""What the code base promises about itself: imports go one way, the domain is pure, SQL is never built from strings,
and a rule number or limit that somebody reads can be looked up in docs/rules.md."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from remembrancer.domain.policy import Policy

CHECKOUT = Path(__file__).parents[2]
PACKAGES = [CHECKOUT / name for name in ("domain", "projections", "services")]
RULES = (CHECKOUT / "docs" / "rules.md").read_text("utf-8")
LAST_RULE = {"T": 17, "R": 19, "D": 31, "U": 3}
EVERY_RULE = {f"{letter}{number + 1}" for letter, last in LAST_RULE.items() for number in range(last)}

SQL = re.compile(
    r"\b(select\b.+\b(from|where)\b|insert\s+into\b|update\s+\S+\s+set\b|delete\s+from\b|merge\s+into\b"
    r"|truncate\s+(table\s+)?\S|copy\s+\S.*\b(from|to)\s+std|refresh\s+materialized"
    r"|(create|alter|drop|grant|comment\s+on)\b.*\b(table|index|schema|view|role|database|function|extension|type)\b)",
    re.IGNORECASE | re.DOTALL,
)
BUILDS_TEXT = {"format", "format_map", "join", "replace"}
RUNS_SQL = {"execute", "executemany", "copy", "stream"}
# What depends on when, where or how often it is asked. `datetime(...)` and `UUID(...)` of given values are fine.
IMPURE = {"now", "today", "utcnow", "uuid1", "uuid4", "uuid7", "urandom", "open", "print", "input", "getenv"}


def python_files(*folders: Path) -> Iterator[tuple[str, ast.Module]]:
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            yield path.relative_to(CHECKOUT).as_posix(), ast.parse(path.read_text("utf-8"), str(path))


def built_text(node: ast.AST) -> str | None:
    """The text of a string that Python puts together at run time, `{}` for its unknown parts; None for all else."""
    match node:
        case ast.JoinedStr(values=parts):
            return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in parts)
        case ast.BinOp(left=left, op=ast.Add() | ast.Mod(), right=right):
            texts = [text_of(side) for side in (left, right)]
            return None if texts == [None, None] else "".join("{}" if text is None else text for text in texts)
        case ast.Call(func=ast.Attribute(value=template, attr=method), args=given) if method in BUILDS_TEXT:
            return " ".join(text_of(part) or "{}" for part in [template, *given])
        case _:
            return None


def text_of(node: ast.AST) -> str | None:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            return " ".join(text_of(part) or "{}" for part in parts)
        case ast.Call(func=ast.Attribute(attr="SQL"), args=[template]):
            return text_of(template)
        case _:
            return built_text(node)


def built_sql(tree: ast.AST) -> list[str]:
    """Where SQL is put together: text that reads like SQL, and any built text that is handed to a cursor."""
    found = []
    for node in ast.walk(tree):
        text = built_text(node)
        if text is not None and SQL.search(text):
            found.append(f"line {node.lineno}: {text!r}")  # type: ignore[attr-defined]
        match node:
            case ast.Call(func=ast.Attribute(attr=name), args=[first, *_]) if name in RUNS_SQL:
                if built_text(first) is not None:
                    found.append(f"line {node.lineno}: {name}({ast.unparse(first)})")
    return found


def test_imports_go_one_way_and_the_domain_imports_nothing_that_does_io() -> None:
    lint = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
    linted = subprocess.run(
        [sys.executable, "-c", lint], cwd=CHECKOUT, capture_output=True, encoding="utf-8", check=False
    )
    assert linted.returncode == 0, linted.stdout + linted.stderr
    assert re.search(r"[1-9] kept, 0 broken", linted.stdout)


def test_the_domain_asks_no_clock_and_makes_nothing_random() -> None:
    calls = [
        f"{file}:{node.lineno} {ast.unparse(node)}"
        for file, tree in python_files(CHECKOUT / "domain")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in IMPURE
    ]
    assert calls == []


def test_no_sql_is_built_from_strings() -> None:
    found = [f"{file} {place}" for file, tree in python_files(*PACKAGES) for place in built_sql(tree)]
    assert found == []


@pytest.mark.parametrize(
    "code",
    [
        "f'SELECT text FROM memory WHERE id = {id}'",
        "'select text from memory where id = ' + id",
        "'DELETE FROM memory WHERE id = %s' % id",
        "'INSERT INTO {} VALUES (1)'.format(table)",
        "' '.join(['UPDATE', table, 'SET a = 1'])",
        "SQL_TEXT = 'CREATE TABLE ' + name + ' (a int)'",
        "sql.SQL('DROP TABLE {}').format(name)",
        "cursor.execute(f'{verb} everything')",
        "connection.execute(STATEMENT.replace('memory', table))",
    ],
)
def test_the_check_for_built_sql_sees_each_way_of_building_it(code: str) -> None:
    assert built_sql(ast.parse(code))


@pytest.mark.parametrize(
    "code",
    [
        "cursor.execute(queries['load'], (tenant,))",
        "cursor.execute('SELECT position FROM remembrancer.head WHERE shard = %s', (shard,))",
        "f'{count} memories were selected'",
        "f'The list is full: delete one, or update {name} first.'",
        "logger.info('copied %s rows from %s' % (count, name))",
    ],
)
def test_the_check_for_built_sql_leaves_honest_code_alone(code: str) -> None:
    assert not built_sql(ast.parse(code))


def test_every_rule_has_one_entry_of_its_own() -> None:
    assert Counter(re.findall(r"^\*\*([TRDU]\d+) ", RULES, re.MULTILINE)) == Counter(EVERY_RULE)


def test_every_rule_number_that_is_cited_can_be_looked_up() -> None:
    cited = {
        number: path.relative_to(CHECKOUT).as_posix()
        for folder in [*PACKAGES, CHECKOUT / "tests", CHECKOUT / "scripts", CHECKOUT / "docs"]
        for path in sorted(folder.rglob("*"))
        if path.suffix in {".py", ".sql", ".md"}
        for number in re.findall(r"\b[TRDU]\d{1,2}\b", path.read_text("utf-8"))
    }
    assert {number: file for number, file in cited.items() if number not in EVERY_RULE} == {}


def test_every_number_of_the_policy_stands_in_the_table_of_limits_with_its_default() -> None:
    rows = dict(re.findall(r"^\| [^|]+ \| `(\w+)` \| ([^|]+) \| [^|]+ \|$", RULES, re.MULTILINE))
    words = {None: "per model", True: "true", False: "false"}
    defaults = {name: field.default for name, field in Policy.model_fields.items()}
    assert rows == {
        name: words[value] if value is None or isinstance(value, bool) else f"{value:,}"
        for name, value in defaults.items()
    }
