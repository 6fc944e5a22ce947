"""The examples run, and find what was put in."""

import pytest

from example_files import EXAMPLES, loaded


@pytest.mark.slow
def test_switches_and_weights_with_blackjax_nuts(capsys):
    inclusion = loaded(EXAMPLES / "mixed_nuts.py").main(num_steps=300)
    assert (inclusion[:3] > 0.9).all()
    assert (inclusion[3:] < 0.5).mean() > 0.8
    assert "P(included)" in capsys.readouterr().out


@pytest.mark.slow
def test_own_energy(capsys):
    effective = loaded(EXAMPLES / "own_energy.py").main(num_steps=1000)
    assert min(effective.values()) > 0
    assert "R-hat" in capsys.readouterr().out
