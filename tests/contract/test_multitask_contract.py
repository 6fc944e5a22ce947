"""A row for every aggregator of ``laureate.multitask``; ``laureate.testing`` has the check."""

import inspect
from functools import partial
from typing import Any

import equinox as eqx
import jax
import numpy as np
import optax
import pytest

from laureate import multitask as m
from laureate.testing import check_aggregator, check_random_function

RNG = np.random.default_rng(0)
PARAMS = {"head": np.zeros(2, np.float32), "trunk": np.zeros((2, 3), np.float32)}
GRADS = jax.tree.map(lambda p: jax.numpy.asarray(RNG.normal(size=(3, *p.shape)), "float32"), PARAMS)
LOSSES = np.array([0.5, 2.0, 8.0], np.float32)
TRUNK = {"head": False, "trunk": True}
TYPES = {}  # transformations are functions, as Optax's are; all of them are below

ROWS = {
    "uniform": m.uniform((1.0, 2.0, 3.0), shared=TRUNK),
    "unit_sum": m.unit_sum(rescale=True),
    "imtl_g": m.imtl_g(shared=TRUNK, rescale=True),
    "imtl_l": m.imtl_l(3, optax.adam(0.1), start="zeros"),
    "imtl": m.imtl(3, optax.sgd(0.1), shared=TRUNK),
    "mgda": m.mgda(normalise=True, shared=TRUNK),
    "gradnorm": m.gradnorm(3, optax.adam(0.1), shared=TRUNK),
    "uncertainty": m.uncertainty(3, optax.sgd(0.1), factor=(0.5, 1.0, 1.0), start="zeros"),
    "inverse_loss": m.inverse_loss(3, by="first"),
    "gradvac": m.gradvac(jax.random.key(0), 3, beta=0.3, target=0.2, per="leaf"),
    "pcgrad": m.pcgrad(jax.random.key(0), 3, rescale=True),
}


# Made of the numbers that the row has, "rate" of its optimiser.
RATE = {"rate": 0.1}
NUMBERS: dict[str, Any] = {
    "uniform": (partial(m.uniform, shared=TRUNK), {"weights": (1.0, 2.0, 3.0)}),
    "imtl_l": (lambda rate: m.imtl_l(3, optax.adam(rate), start="zeros"), RATE),
    "imtl": (lambda rate: m.imtl(3, optax.sgd(rate), shared=TRUNK), RATE),
    "gradnorm": (
        lambda rate, gamma: m.gradnorm(3, optax.adam(rate), gamma=gamma),
        RATE | {"gamma": 0.1},
    ),  # γ acts by signs
    "uncertainty": (
        lambda rate, factor: m.uncertainty(3, optax.sgd(rate), factor=factor, start="zeros"),
        RATE | {"factor": (0.5, 1.0, 1.0)},
    ),
    "gradvac": (partial(m.gradvac, jax.random.key(0), 3, per="leaf"), {"beta": 0.3, "target": 0.2}),
}


@pytest.mark.parametrize("name", ROWS)
def test_contract(name):
    make, numbers = NUMBERS.get(name, (None, None))
    checked = check_aggregator(ROWS[name], PARAMS, GRADS, LOSSES, name=name, make=make, numbers=numbers)
    assert "vmap and scan are loops" in checked


def test_states_are_in_single_precision_though_the_gradients_are_in_half():
    """Traced, not run: updates have the type of the gradients, states keep theirs."""
    given = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, "bfloat16"), (PARAMS, GRADS, LOSSES))

    def step(params, grads, losses, tx):
        start = tx.init(params)
        updates, state = tx.update(grads, start, params, losses=losses)
        return start, state, updates

    for name, tx in ROWS.items():
        *states, updates = jax.eval_shape(partial(step, tx=tx), *given)
        assert {str(leaf.dtype) for leaf in jax.tree.leaves(states)} <= {"float32", "int32", "uint32"}, name
        assert {str(leaf.dtype) for leaf in jax.tree.leaves(updates)} == {"bfloat16"}, name


def test_every_transformation_has_a_row():
    made = {
        name
        for name in m.__all__
        if getattr(m, name).__annotations__.get("return") is optax.GradientTransformationExtraArgs
    }
    assert made - {"aggregator", "select"} == set(ROWS)


@pytest.mark.parametrize("name", ROWS)
def test_every_number_of_a_transformation_stands_in_its_row(name):
    """A number is what may be a float, and the rate of an optimiser that is given."""
    arguments = inspect.signature(getattr(m, name)).parameters
    numbers = {argument for argument, one in arguments.items() if "float" in str(one.annotation)}
    assert numbers | ({"rate"} if "optimiser" in arguments else set()) == set(NUMBERS.get(name, ((), ()))[1])


def test_a_transformation_with_another_number_gives_other_updates():
    """As users hand them in who cannot trace their numbers."""
    known = check_aggregator(m.uniform((1.0, 2.0, 3.0)), PARAMS, GRADS, LOSSES)
    same: dict[str, Any] = {"name": "mine", "skip": known}
    rows = [m.uniform((1.0, 2.0, weight)) for weight in (3.0, 2.0, 3.0)]
    given = rows[0], PARAMS, GRADS, LOSSES
    assert check_aggregator(*given, others=rows[1:2], **same) == ["every number is used"]
    with pytest.raises(AssertionError, match=r"the same for others\[0\]"):
        check_aggregator(*given, others=rows[2:], **same)


def test_a_fault_is_found():
    broken = m.aggregator(m.Weighting("broken", lambda groups: (), lambda gram, losses, state: (1 / gram[0], state)))
    with pytest.raises(AssertionError, match="gradients of zero"):
        check_aggregator(broken, PARAMS, GRADS, LOSSES, name="broken")


def test_keys_of_orders():
    check_random_function(eqx.filter_jit(lambda key: m.visiting_order(key, 4)), name="visiting_order")

    for name, make in (("gradvac", partial(m.gradvac, target=0.5)), ("pcgrad", m.pcgrad)):

        def steps(key, make=make):
            tx = make(key, 3)
            _, state = tx.update(GRADS, tx.init(PARAMS))
            return tx.update(GRADS, state)

        check_random_function(eqx.filter_jit(steps), name=name)
