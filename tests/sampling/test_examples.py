"""The examples run, and find what was put in."""

import importlib.util
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_switches_and_weights_with_blackjax_nuts(capsys):
    inclusion = load("mixed_nuts").main(num_steps=300)
    assert (inclusion[:3] > 0.9).all()
    assert (inclusion[3:] < 0.5).mean() > 0.8
    assert "P(included)" in capsys.readouterr().out


@pytest.mark.slow
def test_own_energy(capsys):
    effective = load("own_energy").main(num_steps=1000)
    assert min(effective.values()) > 0
    assert "R-hat" in capsys.readouterr().out
