"""The tests of the rules can fail: each mistake that looks right turns one red. `scripts/mutate` makes them all."""

from __future__ import annotations

import pytest

from tests.domain import mutants


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_each_mistake_that_looks_right_turns_its_test_red(capsys: pytest.CaptureFixture[str]):
    wrong = mutants.main(["--fast", "--trust"])
    assert not wrong, capsys.readouterr().out


def test_each_mistake_still_applies_to_the_code():
    for mutant in mutants.MUTANTS:
        text = (mutants.CHECKOUT / "domain" / mutant.file).read_text(encoding="utf-8")
        assert text.count(mutant.old) == 1, mutant.name
        assert (mutants.TESTS / mutant.test).exists()
