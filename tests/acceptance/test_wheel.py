"""What an installed copy is: complete, runnable, and no guest that brings a package called `domain` into the house."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
PACKAGES = ("domain", "projections", "services")
NOT_SHIPPED = {".md"}
LEFTOVERS = shutil.ignore_patterns("__pycache__", ".*")

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("wheel")]

# Run inside the installed copy: imports every module there is and says where all of it came from.
LOOK_AROUND = """
import importlib, importlib.util, json, pkgutil
names = ["remembrancer.domain", "remembrancer.projections", "remembrancer.services"]
modules = [importlib.import_module(name) for name in names]
for package in list(modules):
    for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not found.name.endswith("__main__"):
            modules.append(importlib.import_module(found.name))
print(json.dumps({
    "files": [module.__file__ for module in modules if module.__file__],
    "strangers": [n for n in ("domain", "projections", "services", "tests", "scripts") if importlib.util.find_spec(n)],
}))
"""


def run(*command: str | Path, cwd: Path) -> str:
    """Runs a program that must succeed, with nothing of this checkout on its paths."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=environment, capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of this checkout without what tools and earlier builds left in it."""
    source = tmp_path_factory.mktemp("source")
    for name in PACKAGES:
        shutil.copytree(CHECKOUT / name, source / name, ignore=LEFTOVERS)
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(CHECKOUT / name, source / name)
    return source


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel as a release makes it: by way of the source distribution."""
    built = tmp_path_factory.mktemp("built")
    run(sys.executable, "-m", "build", "--outdir", built, source, cwd=built)
    (path,) = built.glob("remembrancer-*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of an environment that holds the wheel, what it says it depends on, and nothing else."""
    home = tmp_path_factory.mktemp("installed")
    run(sys.executable, "-m", "venv", home, cwd=home)
    run(home / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel, cwd=home)
    return home / "bin"


def test_the_wheel_holds_every_file_of_the_three_packages_and_nothing_else(source: Path, wheel: Path) -> None:
    expected = {
        f"remembrancer/{path.relative_to(source).as_posix()}"
        for name in PACKAGES
        for path in (source / name).rglob("*")
        if path.is_file() and path.suffix not in NOT_SHIPPED
    }
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {name for name in names if ".dist-info/" not in name} == expected
    assert {Path(name).suffix for name in expected} >= {".py", ".sql", ".jsonl"}


def test_the_wheel_is_typed_and_carries_its_licence(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {f"remembrancer/{name}/py.typed" for name in PACKAGES} <= set(names)
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


def test_an_empty_environment_can_import_all_of_it_and_gets_no_package_called_domain(
    installed: Path, tmp_path: Path
) -> None:
    seen = json.loads(run(installed / "python", "-c", LOOK_AROUND, cwd=tmp_path))
    assert seen["strangers"] == []
    assert len(seen["files"]) > 10
    assert all(Path(file).is_relative_to(installed.parent) for file in seen["files"])


def test_an_empty_environment_has_the_command_and_it_explains_itself(installed: Path, tmp_path: Path) -> None:
    assert "demo" in run(installed / "remembrancer", "--help", cwd=tmp_path)
