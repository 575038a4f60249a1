"""How the properties of this folder run: the same examples every time, without a deadline on shared cores."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, settings

settings.register_profile(
    "domain", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("explore", settings.get_profile("domain"), derandomize=False)
settings.register_profile("mutants", settings.get_profile("domain"), phases=[Phase.explicit, Phase.generate])


def pytest_configure(config: pytest.Config) -> None:
    """Others by `--hypothesis-profile`: `explore` draws new examples, `mutants` finds and does not explain."""
    if not config.getoption("--hypothesis-profile", None):
        settings.load_profile("domain")
