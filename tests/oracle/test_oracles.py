"""An oracle that imports what it judges proves nothing."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ORACLES = sorted(p for p in Path(__file__).parent.glob("*.py") if not p.name.startswith("test_"))


@pytest.mark.parametrize("path", ORACLES, ids=lambda p: p.stem)
def test_an_oracle_imports_nothing_of_the_product(path: Path):
    imported = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add((node.module or "").split(".")[0])
    assert not imported & {"remembrancer", "domain", "projections", "services", "tests", "importlib"}
