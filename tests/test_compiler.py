"""A compiler that computes wrong numbers is no ground to stand on: it is seen, and told."""

import importlib.metadata
import re
import runpy
import warnings
from pathlib import Path

import jax
import numpy as np
import pytest

import laureate._core
from laureate._compiler import BROKEN, complaint
from laureate.lab.errors import UserError
from laureate.lab.running.diagnosis import diagnose
from laureate.lab.running.environment import check_compiler
from laureate.lab.storing.store import Store


def test_sums_over_products_under_vmap_and_jit_are_right():
    """What jaxlib 0.10.2 gets wrong by half of the largest entry."""
    generator = np.random.default_rng(0)
    x, s = generator.normal(size=(2, 200, 10)).astype(np.float32)

    def one(axis):
        u, t = x @ axis, s @ axis
        return (t[:, None] * u[None, :] + u[:, None]).mean(0)

    found = jax.jit(jax.vmap(one))(np.eye(10, dtype=np.float32))
    expected = (s.T[:, :, None] * x.T[:, None, :] + x.T[:, :, None]).mean(1)
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.fixture
def broken(monkeypatch):
    version = next(iter(BROKEN))
    installed = importlib.metadata.version
    monkeypatch.setattr(importlib.metadata, "version", lambda name: version if name == "jaxlib" else installed(name))
    return version


def test_a_broken_release_is_told_where_it_is_installed(broken, tmp_path):
    assert complaint().startswith(f"jaxlib {broken} is installed, which computes")
    with pytest.raises(UserError, match=f"jaxlib {broken} is installed"):
        check_compiler()
    store = Store(tmp_path / "laureate.sqlite")
    assert f"pip install 'jax!={broken}'" in diagnose(store)["versions"]["to be replaced"]
    store.close()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        runpy.run_path(laureate._core.__file__)
    assert [f"jaxlib {broken}" in str(one.message) for one in told] == [True]


def test_a_compiler_that_is_no_distribution_is_taken(monkeypatch):
    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    assert complaint() == ""


def test_what_is_broken_is_not_installed_with_us():
    project = (Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8")
    assert [version for version in BROKEN if not re.search(rf'"jaxlib>=[^"]*!={re.escape(version)}"', project)] == []


def test_other_releases_are_taken(tmp_path):
    assert complaint() == complaint("0.10.1") == complaint("0.12.0") == ""
    check_compiler()
    store = Store(tmp_path / "laureate.sqlite")
    assert "to be replaced" not in diagnose(store)["versions"]
    store.close()
