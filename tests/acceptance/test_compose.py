"""docker-compose.yml: valid for Compose, closed to the network, with no password of ours in it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

COMPOSE_FILE = Path(__file__).parents[2] / "docker-compose.yml"


def validate(path: Path) -> subprocess.CompletedProcess[str]:
    """Checks a file against the Compose specification's own schema, which the validator carries: no network."""
    schema = ["--builtin-schema", "vendor.compose-spec"]
    return subprocess.run(
        [sys.executable, "-m", "check_jsonschema", *schema, str(path)], capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    services: dict[str, Any] = YAML(typ="safe").load(COMPOSE_FILE)["services"]
    return services


def test_it_is_valid_for_the_compose_specification() -> None:
    checked = validate(COMPOSE_FILE)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_validator_would_notice_a_misspelt_key(tmp_path: Path) -> None:
    broken = tmp_path / "docker-compose.yml"
    broken.write_text(COMPOSE_FILE.read_text("utf-8").replace("healthcheck:", "healthchek:"), "utf-8")
    assert "healthchek" in validate(broken).stdout


def test_postgres_with_pgvector_and_redis_say_when_they_are_ready(services: dict[str, Any]) -> None:
    assert services["postgres"]["image"].startswith("pgvector/pgvector:pg18")
    assert services["redis"]["image"].startswith("redis:")
    assert all("test" in service["healthcheck"] for service in services.values())


def test_nothing_listens_beyond_this_machine(services: dict[str, Any]) -> None:
    ports = [port for service in services.values() for port in service["ports"]]
    assert len(ports) == 2
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_the_password_has_no_default_and_starting_without_one_is_refused(services: dict[str, Any]) -> None:
    password = services["postgres"]["environment"]["POSTGRES_PASSWORD"]
    assert re.fullmatch(r"\$\{POSTGRES_PASSWORD:\?.+\}", password)


def test_the_data_live_in_a_volume_where_images_of_postgres_18_keep_them(services: dict[str, Any]) -> None:
    assert services["postgres"]["volumes"] == ["postgres:/var/lib/postgresql"]
