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

from laureate._core import Status
from laureate.control import Categorical
from laureate.loops import Checkpoint, checkpoint, describe


class Net(eqx.Module):
    weight: jax.Array
    activation: object
    width: int = eqx.field(static=True)


def test_every_kind_of_leaf_comes_back(tmp_path):
    state = {
        "key": jax.random.key(3),
        "keys": jax.random.split(jax.random.key(3, impl="rbg"), 2),
        "half": jnp.arange(6, dtype=jnp.bfloat16).reshape(2, 3),
        "one half": np.asarray(1.5, jnp.bfloat16),
        "turned": np.arange(6, dtype=jnp.bfloat16).reshape(2, 3).T,  # rows that are not contiguous
        "quarter": np.asarray([0.5, -2.0], jnp.float8_e4m3fn),
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
    for name in ("half", "one half", "turned", "quarter", "flags", "scalar", "empty"):
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


def test_a_file_of_another_format_a_state_of_other_rows_and_one_that_is_longer_are_told_apart(tmp_path, monkeypatch):
    """Rows may be more or fewer, but not of another shape or type; a later format is refused by its number."""
    file, rows = Checkpoint(tmp_path / "a.npz", None), {"loss": np.zeros((3, 2), np.float32)}
    file.save(3, {}, rows)
    for like in (np.zeros((1, 2), np.float32), np.zeros((9, 2), np.float32)):
        found = file.load({}, {"loss": like})
        assert found is not None
        assert_array_equal(found[2]["loss"], rows["loss"])
    for like in (np.zeros((3, 1), np.float32), np.zeros((3, 2), np.float16), np.zeros(3, np.float32)):
        with pytest.raises(ValueError, match=r"Checkpoint\.state must be as in .*rows\['loss'\]"):
            file.load({}, {"loss": like})
    monkeypatch.setattr(checkpoint, "FORMAT", 2)
    with pytest.raises(ValueError, match=r"Checkpoint\.format must be 2; got 1 in .*a\.npz\. Name another file"):
        file.load({}, rows)


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


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"rate": 0.1}, "deep.steps was 3, is (absent)"),
        ({"rate": 0.1, "deep": {"steps": 3}, "new": None}, "new was (absent), is None"),
        ({"rate": 0.1, "deep": {"steps": 4}}, "deep.steps was 3, is 4"),
        ({"rate": 0.1, "deep": {"step": 3}}, "deep.steps was 3, is (absent)"),
        ({"rate": np.float32(0.1), "deep": {"steps": 3}}, "rate was 0.1, is"),
        (None, "rate was 0.1, is (absent)"),
    ],
    ids=["removed", "added", "changed", "renamed", "type", "none"],
)
def test_settings_removed_added_changed_and_renamed_are_refused(tmp_path, other, told):
    settings = {"rate": 0.1, "deep": {"steps": 3}}
    Checkpoint(tmp_path / "a.npz", settings).save(1, np.ones(2), ())
    with pytest.raises(ValueError, match=re.escape(told)):
        Checkpoint(tmp_path / "a.npz", other).load(np.ones(2), ())
    done, *_ = Checkpoint(tmp_path / "a.npz", dict(reversed(settings.items()))).load(np.ones(2), ()) or (0,)
    assert done == 1  # in another order they are the same


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


def test_arrays_that_differ_in_anything_are_told_apart():
    """Type, shape, numbers and generator, of few numbers (up to 16 are written out) and of many; not where they lie."""
    shapes = [(), (1,), (16,), (4, 4), (17,), (1, 17), (17, 1), (4, 5), (5, 4), (20,), (2, 10)]
    shapes += [(0,), (0, 3), (3, 0), (0, 0), (3, 0, 2)]
    kinds = [np.float32, np.int32, np.uint32, np.float16, jnp.bfloat16, np.int16, bool]
    arrays = [np.zeros(shape, kind) for shape in shapes for kind in kinds]
    for last in [one for one in arrays if one.size]:
        other = last.copy()
        other.flat[-1] = 1
        arrays.append(other)
    keys = [
        jax.random.key_data(jax.random.key(0)),
        jax.random.key(0),
        jax.random.key(1),
        jax.random.split(jax.random.key(0), 9),
    ]
    told = [str(describe(one)) for one in [*arrays, *keys]]
    assert len(set(told)) == len(told)
    for one in (np.arange(20.0, dtype=np.float32).reshape(4, 5), np.arange(6, dtype=np.int32).reshape(2, 3)):
        assert describe(one) == describe(np.asfortranarray(one)) == describe(jnp.asarray(one))


def test_functions_that_differ_in_any_part_of_their_code_are_told_apart():
    """Names that are looked up, constants and their types, operations, names of arguments, functions within."""
    bodies = [
        "x",
        "-x",
        "x + 1",
        "x + 1.0",
        "x + 2",
        "x - 1",
        "x[0]",
        "x[1]",
        "1",
        "True",
        "'1'",
        "b'1'",
        "0.0",
        "-0.0",
    ]
    bodies += ["jnp.sin(x)", "jnp.cos(x)", "np.sin(x)", "sin(x)", "x.sin", "x.cos", "x.sin()", "f(x, a=1)", "f(x, b=1)"]
    bodies += ["lambda y: y + 1", "lambda y: y + 2", "lambda y: jnp.sin(y)", "lambda y: jnp.cos(y)", "lambda y: x"]
    bodies += ["x in {1, 2}", "x in {1, 3}", "x in (1, 2)", "lambda: lambda: 1", "lambda: lambda: 2"]
    told = {body: str(describe(eval(f"lambda x: {body}"))) for body in bodies}
    assert len(set(told.values())) == len(bodies)
    assert told == {body: str(describe(eval(f"lambda x: {body}"))) for body in bodies}


def test_a_set_in_the_code_is_the_same_in_whatever_order_it_is_kept():
    """Strings hash otherwise in every process; of 0 and 8, which share a place, the order is that of their coming."""
    ways = [frozenset(order) for order in ((0, 8), (8, 0))]
    assert repr(ways[0]) != repr(ways[1])
    asks = lambda x: x in {0, 8}  # noqa: E731
    assert any(isinstance(constant, frozenset) for constant in asks.__code__.co_consts)
    told = []
    for way in ways:
        constants = tuple(way if isinstance(one, frozenset) else one for one in asks.__code__.co_consts)
        asks.__code__ = asks.__code__.replace(co_consts=constants)
        told.append(describe(asks))
    assert told[0] == told[1]


def test_keys_of_dictionaries_are_told_apart_by_type_and_are_no_paths():
    """Whatever was set beside is then seen where it differs: two keys never share a line."""
    keys = [1, "1", -1, "-1", "a", "a.b", "a[0]", "", ".", None, "None", (1, 2), "(1, 2)", 1.5, "1.5", "a b", b"a"]
    told = describe(dict.fromkeys(keys, 0), "x")
    assert len(told) == len(keys)
    assert {"x.1", "x.a", "x.a b", "x['1']", "x['a.b']"} <= set(told)
    assert describe({"a.b": 1, "a": {"b": 2}}) != describe({"a.b": 2, "a": {"b": 1}})


STEP = """
import dataclasses, functools
import equinox as eqx
import jax

def halved(x):
    return x / 2

class Base:
    def shift(self, x):
        return x + 1

@dataclasses.dataclass(frozen=True)
class Step(Base):
    rate: float
    kind: str = "plain"
    FACTOR = 3

    def __call__(self, x):
        "A step."
        return self.scale(self.shift(x)) * self.twice * self.more()

    @staticmethod
    def scale(x, by=2):
        return by * halved(x)

    @property
    def twice(self):
        return 2 * self.rate

    @classmethod
    def made(cls):
        return cls(0.5)

    @functools.partial(jax.jit, static_argnums=0)
    def more(self):
        return self.rate - 1
"""
KINDS = {
    "dataclass": ("", ""),
    "module": ("@dataclasses.dataclass(frozen=True)\nclass Step(Base)", "class Step(Base, eqx.Module)"),
    "plain": (
        '@dataclasses.dataclass(frozen=True)\nclass Step(Base):\n    rate: float\n    kind: str = "plain"',
        "class Step(Base):\n    def __init__(self, rate):\n        self.rate, self.kind = rate, 'plain'\n",
    ),
}


def step_of(kind, old="", new=""):
    """An instance of a class as somebody wrote it, and then changed it."""
    source = STEP.replace(*KINDS[kind]) if kind != "dataclass" else STEP
    assert old in source
    room: dict = {"__name__": "theirs"}
    exec(compile(source.replace(old, new) if old else source, "theirs.py", "exec"), room)
    return room["Step"](rate=0.5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_class_of_ones_own_is_told_apart_by_the_code_of_its_functions(tmp_path, kind):
    """Else the run of an edited class goes on from where the old one stopped, without a word."""
    first = describe(step_of(kind), "step")
    assert describe(step_of(kind), "step") == first
    changes = {
        "__call__": ("* self.twice", "+ self.twice"),
        "scale": ("by * halved", "by + halved"),
        "twice": ("2 * self.rate", "3 * self.rate"),
        "made": ("cls(0.5)", "cls(0.6)"),
        "more": ("self.rate - 1", "self.rate - 2"),
        "FACTOR": ("FACTOR = 3", "FACTOR = 4"),
        "shift": ("x + 1", "x - 1"),
    }
    for part, (old, new) in changes.items():
        found = describe(step_of(kind, old, new), "step")
        differ = {line for line in first if first[line] != found.get(line)}
        assert differ == {f"step.{'Base' if part == 'shift' else 'Step'}.{part}"}, part
    assert describe(step_of(kind, "by=2", "by=3"), "step") != first
    # Where it stands decides nothing, and what a method calls nobody follows.
    for old, new in (("\nclass Base", "\n\n# first\nclass Base"), ("return x / 2", "return x / 3")):
        assert describe(step_of(kind, old, new), "step") == first
    Checkpoint(tmp_path / "a.npz", {"step": step_of(kind)}).save(1, np.ones(2), ())
    edited = Checkpoint(tmp_path / "a.npz", {"step": step_of(kind, "* self.twice", "+ self.twice")})
    with pytest.raises(ValueError, match=r"step\.Step\.__call__ was theirs\.Step\.__call__ \w{12}, is theirs"):
        edited.load(np.ones(2), ())


def test_a_module_that_is_closed_over_is_its_name():
    import math

    assert describe(lambda x: math.sin(x), "f")["f.math"] == "math"


def test_an_instance_that_is_met_again_in_its_own_class_ends():
    class Step:
        def __call__(self, x):
            return x if self is step else step(x)

    step = Step()
    assert "(itself)" in describe(step, "x").values()


def test_a_class_of_a_library_is_its_name_and_its_fields():
    """Also one of ours: a run goes on after a release. What inherits from it is one's own."""
    law = Categorical(2)
    assert describe(law, "law") == {"law": "laureate.control.policies.Categorical", "law.num": "2"}
    theirs = (eqx.nn.Identity(), PurePosixPath("a"), optax.EmptyState(), datetime.date(2026, 1, 1), Status.OK)
    assert not [line for one in theirs for line in describe(one) if "__" in line]

    class Own(type(law)):
        def sample(self, key, logits):
            return logits

    assert set(describe(Own(2), "law")) == {"law", "law.num", "law.Own.sample"}


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
