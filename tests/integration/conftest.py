"""What the integration tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.world import World


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    """A world on a database of its own, under the default policy."""
    with World(database_url) as one:
        yield one
