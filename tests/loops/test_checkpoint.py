"""A checkpoint: typed keys, small floats and structure come back; another's file is refused by the field's name."""

import datetime
import functools
import re
from pathlib import PurePosixPath

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from numpy.testing import assert_array_equal

from laureate.loops import Checkpoint, describe


class Net(eqx.Module):
    weight: jax.Array
    activation: object
    width: int = eqx.field(static=True)


def test_every_kind_of_leaf_comes_back(tmp_path):
    state = {
        "key": jax.random.key(3),
        "keys": jax.random.split(jax.random.key(3, impl="rbg"), 2),
        "half": jnp.arange(6, dtype=jnp.bfloat16).reshape(2, 3),
        "flags": jnp.array([True, False]),
        "scalar": jnp.asarray(2, jnp.int8),
        "net": Net(jnp.eye(2), jnp.tanh, 2),
        "nothing": None,
        "empty": jnp.zeros((0, 3)),
    }
    file = Checkpoint(tmp_path / "a.npz", None)
    assert file.load(state, None) is None
    file.save(5, state, {"loss": np.arange(3.0)})
    blank = jax.tree.map(
        lambda leaf: jnp.zeros_like(leaf) if eqx.is_array(leaf) and leaf.dtype.kind != "O" else leaf,
        {**state, "key": None, "keys": None},
    )
    blank |= {"key": jax.random.key(0), "keys": jax.random.split(jax.random.key(0, impl="rbg"), 2)}
    done, loaded, rows = file.load(blank, {"loss": np.zeros(1)}) or (0, {}, {})
    assert done == 5
    assert rows["loss"].tolist() == [0.0, 1.0, 2.0]
    assert bool(loaded["key"] == state["key"])
    assert bool((loaded["keys"] == state["keys"]).all())
    assert jax.random.key_impl(loaded["keys"]) == jax.random.key_impl(state["keys"])
    assert loaded["net"].activation is jnp.tanh
    for name in ("half", "flags", "scalar", "empty"):
        assert loaded[name].dtype == state[name].dtype
        assert_array_equal(np.asarray(loaded[name], float), np.asarray(state[name], float))


def test_no_pickle_and_no_leftover(tmp_path):
    Checkpoint(tmp_path / "a.npz", {"f": jnp.tanh}).save(1, jnp.ones(2), ())
    with np.load(tmp_path / "a.npz", allow_pickle=False) as file:
        assert all(file[name].dtype.kind != "O" for name in file.files)
    assert [path.name for path in tmp_path.iterdir()] == ["a.npz"]


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    file = Checkpoint(tmp_path / "a.npz", None)
    file.save(1, jnp.ones(2), ())

    def full(*args, **kwargs):
        raise OSError("No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match="No space"):
        file.save(2, jnp.zeros(2), ())
    monkeypatch.undo()
    assert (file.load(jnp.zeros(2), ()) or (0,))[0] == 1
    assert [path.name for path in tmp_path.iterdir()] == ["a.npz"]


@pytest.mark.parametrize("content", [b"", b"no zip at all", b"PK\x03\x04 half a file"])
def test_a_file_that_is_none_is_refused(tmp_path, content):
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(ValueError, match=r"Checkpoint\.path must be a file that a checkpoint wrote; got .*a\.npz"):
        Checkpoint(tmp_path / "a.npz", None).load(jnp.zeros(2), ())


def test_another_programs_arrays_are_refused(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.zeros(2))
    with pytest.raises(ValueError, match="a file that a checkpoint wrote"):
        Checkpoint(tmp_path / "a.npz", None).load(jnp.zeros(2), ())


@pytest.mark.parametrize("other", [jnp.zeros(3), jnp.zeros(2, jnp.int32), jax.random.key(0), {"a": jnp.zeros(2)}])
def test_another_state_is_refused(tmp_path, other):
    file = Checkpoint(tmp_path / "a.npz", None)
    file.save(1, jnp.ones(2), ())
    with pytest.raises(ValueError, match=r"Checkpoint\.state must be"):
        file.load(other, ())


def decay(rate):
    return lambda x: rate * x


def test_settings_are_told_apart_by_value_and_not_by_address():
    assert describe(decay(0.5)) == describe(decay(0.5))
    assert describe(optax.adam(0.1)) == describe(optax.adam(0.1))
    assert describe(optax.adam(0.1)) != describe(optax.adam(0.2))
    assert describe(decay(0.5)) != describe(decay(0.6))
    assert describe(lambda x: x + 1) != describe(lambda x: x + 2)
    assert describe(lambda x, rate=1: x) != describe(lambda x, rate=2: x)
    assert describe(Net(jnp.eye(2), jnp.tanh, 2)) != describe(Net(jnp.eye(2), jnp.tanh, 3))
    assert describe(Net(jnp.eye(2), jnp.tanh, 2)) != describe(Net(jnp.eye(2), jnp.sin, 2))
    long = jnp.zeros(100)
    assert describe(long) != describe(long.at[50].set(1.0))
    assert describe(jax.random.key(0)) != describe(jax.random.key(0, impl="rbg"))
    assert "0x" not in str(describe({"f": decay, "jitted": jax.jit(decay(1.0)), "method": [].append, "o": object()}))


class Slotted:
    __slots__ = ("rate",)

    def __init__(self, rate):
        self.rate = rate

    def __repr__(self):
        return "Slotted"


def with_rate(rate):
    def step(state, *, rate=rate):
        return rate * state

    return step


@pytest.mark.parametrize(
    "make",
    [
        lambda n: functools.partial(jnp.clip, max=n),
        lambda n: functools.partial(jnp.clip, n),
        lambda n: jax.tree_util.Partial(jnp.clip, max=jnp.asarray(n)),
        lambda n: functools.partial(jnp.sin if n == 1 else jnp.cos),
        lambda n: {"a", n},
        lambda n: frozenset({(n, "b")}),
        range,
        lambda n: PurePosixPath(f"data/{n}"),
        lambda n: datetime.date(2026, 1, n),
        lambda n: re.compile(300 * "a" + str(n)),
        np.random.default_rng,
        Slotted,
        with_rate,
        lambda n: (np.sin, np.cos)[n - 1],
    ],
    ids=[
        "keyword",
        "place",
        "jax",
        "function",
        "set",
        "frozenset",
        "range",
        "path",
        "date",
        "pattern",
        "generator",
        "slots",
        "keyword-only",
        "ufunc",
    ],
)
def test_what_keeps_its_settings_elsewhere_than_in_fields_is_told_apart(make):
    """Else a checkpoint of other settings is taken up without a word."""
    assert describe(make(1)) == describe(make(1))
    assert describe(make(1)) != describe(make(2))
    assert "0x" not in str(describe(make(1)))


def test_what_refers_to_itself_ends():
    loop: list = []
    loop.append(loop)
    assert describe(loop, "x") == {"x[0]": "(itself)"}
