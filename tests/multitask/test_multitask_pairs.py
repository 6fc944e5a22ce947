"""Every transformation with all of its options by pairs: three steps, recomputed in NumPy from the docstrings."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from multitask_quick import quick
from test_multitask_options import shortest

from laureate import multitask as m
from laureate.testing import pairwise

STEPS, RATE = 3, 0.2
KEY = jax.random.key(5)
RNG = np.random.default_rng(8)
# Of three tasks. The first leaf belongs to the first task alone, and the second task has no gradient in the last.
GRADS = {name: RNG.normal(size=(STEPS, 3, size)).astype(np.float32) for name, size in (("h", 3), ("u", 4), ("v", 5))}
GRADS["h"][:, 1:] = 0
GRADS["v"][:, 1] = 0
LOSSES = np.array([[0.5, 2.0, 8.0], [0.4, 1.9, 3.0], [0.45, 1.0, 2.0]], np.float32)
PARAMS = {name: np.zeros(leaf.shape[2:], np.float32) for name, leaf in GRADS.items()}

SHARED = {"shared": (None, {"h": False, "u": True, "v": True})}
START = {"start": ("loss", "zeros")}
GROUPS = {"per": ("all", "leaf"), "rescale": (False, True)} | SHARED
OPTIONS = {
    "uniform": {"weights": (None, (1.0, 2.0, 0.5))} | SHARED,
    "unit_sum": GROUPS,
    "mgda": {"normalise": (False, True)} | GROUPS,
    "imtl_g": {"normalise": ("unit", "sum")} | GROUPS,
    "imtl_l": START | SHARED,
    "imtl": START | {"normalise": ("unit", "sum")} | GROUPS,
    "gradnorm": {"gamma": (1.5, 0.0)} | SHARED,
    "uncertainty": {"factor": (0.5, (0.5, 1.0, 2.0))} | START | SHARED,
    "inverse_loss": {"by": ("now", "first")} | SHARED,
    "gradvac": {"beta": (0.3, 0.0), "target": (0.8, 0.0), "track": ("modified", "raw")} | GROUPS,
    "pcgrad": GROUPS,
}


def made(name, **options):
    arguments = inspect.signature(getattr(m, name)).parameters
    given = {"key": KEY, "num_tasks": 3, "optimiser": optax.sgd(RATE)}
    return getattr(m, name)(**{one: value for one, value in given.items() if one in arguments}, **options)


def lengths_of(rows):
    return np.linalg.norm(rows, axis=1)


def over(numbers, others):
    """The quotient, 0 where nothing is divided by."""
    return np.where(others == 0, 0.0, numbers / np.where(others == 0, 1.0, others))


def impartial(rows, normalise):
    """K⁻¹ 1 over the lengths, of the tasks that have a gradient."""
    n = lengths_of(rows)
    active = n > 0
    units = rows[active] / n[active, None]
    x = np.zeros(3)
    x[active] = np.linalg.solve(units @ units.T, np.ones(active.sum()))
    a = over(x, n)
    return a / a.sum() if normalise == "sum" else a * active.sum() / x.sum()


def least(rows, normalise):
    """MGDA's: a task without a gradient is the shortest combination."""
    n = lengths_of(rows)
    if (n == 0).any():
        return (n == 0) / (n == 0).sum()
    return shortest(rows @ rows.T / np.outer(n, n)) / n if normalise else shortest(rows @ rows.T)


def visited(rows, target, order, beta, track):
    """Gradient Vaccine on the gradients themselves; changes the targets, and sums what it corrected."""
    n, weights = lengths_of(rows), np.zeros(3)
    for i in range(3):
        c = np.eye(3)[i]
        for j in order[i]:
            g = c @ rows
            if j == i or n[i] == 0 or n[j] == 0:
                continue
            length = np.linalg.norm(g)
            p, h = g @ rows[j] / (length * n[j]), target[i, j]
            if p < h:
                c = (
                    c
                    + length
                    * (h * np.sqrt(1 - p**2) - p * np.sqrt(1 - h**2))
                    / (n[j] * np.sqrt(1 - h**2))
                    * np.eye(3)[j]
                )
            seen = p if track == "modified" else rows[i] @ rows[j] / (n[i] * n[j])
            target[i, j] = (1 - beta) * h + beta * seen
        weights += c
    return weights


def scaled(memory, step, losses, c, floor, start):
    """c e^s, and s moved down the slope of c e^s L - floor · s, but not at the step at which it begins at the best."""
    if step == 0:
        memory["s"] = np.log(floor / c) - np.log(losses) if start == "loss" else np.zeros(3)
    s, fresh = memory["s"], step == 0 and start == "loss"
    memory["s"] = s if fresh else s - RATE * (c * np.exp(s) * losses - floor)
    return c * np.exp(s)


def balanced(memory, step, rows, losses, gamma):
    """GradNorm's weights, which move after they were used."""
    n, w = lengths_of(rows), memory.setdefault("w", np.ones(3))
    speed = losses / memory.setdefault("first", losses)
    target = np.mean(w * n) * (speed / speed.mean()) ** gamma
    moved = np.maximum(w - RATE * np.sign(w * n - target) * n, 1e-6)
    memory["w"] = 3 * moved / moved.sum()
    return w


def weights_of(name, options, rows, losses, memory, step, order):
    """The weights of a group's gradients, and those of heads."""
    one = np.ones(3)
    if name == "uniform":
        w = np.asarray(options["weights"] or one)
        return w, w
    if name == "inverse_loss":
        w = 1 / (losses if options["by"] == "now" else memory.setdefault("first", losses))
        return w, w
    if name == "gradnorm":
        w = balanced(memory, step, rows, losses, options["gamma"])
        return w, w
    if name == "uncertainty":
        w = scaled(memory, step, losses, np.asarray(options["factor"]) * one, 0.5, options["start"])
        return w, w
    if name in ("imtl", "imtl_l"):
        w = scaled(memory, step, losses, one, 1.0, options["start"])
        return (w, w) if name == "imtl_l" else (w * impartial(w[:, None] * rows, options["normalise"]), w)
    if name in ("gradvac", "pcgrad"):
        target = memory.setdefault("target", np.full((3, 3), options.get("target", 0.0)))
        return visited(rows, target, order, options.get("beta", 0.0), options.get("track", "modified")), one
    if name == "unit_sum":
        return over(one, lengths_of(rows)), one
    return (impartial if name == "imtl_g" else least)(rows, options["normalise"]), one


@pytest.fixture(scope="module")
def orders():
    """Whom each task visits, by how many groups there are, the group and the step; each has a key of its own."""

    def every():
        step = lambda key: jax.vmap(lambda k: m.visiting_order(jax.random.fold_in(key, k), 3))(jnp.arange(STEPS))  # noqa: E731
        return {groups: jax.vmap(step)(jax.random.split(KEY, groups)) for groups in (1, 2, 3)}

    return quick(every)


def by_hand(name, options, orders):
    """The updates of all steps."""
    kept = [leaf for leaf in GRADS if options["shared"] is None or options["shared"][leaf]]
    groups = [[leaf] for leaf in kept] if options.get("per") == "leaf" else [kept]
    memories, updates = [{} for _ in groups], []
    for step in range(STEPS):
        grads = {leaf: values[step].astype(np.float64) for leaf, values in GRADS.items()}
        update, heads = {}, None
        for number, group in enumerate(groups):
            rows, order = np.concatenate([grads[leaf] for leaf in group], axis=1), orders[len(groups)][number, step]
            losses = LOSSES[step].astype(np.float64)
            w, of_heads = weights_of(name, options, rows, losses, memories[number], step, order)
            heads = of_heads if heads is None else heads
            if options.get("rescale"):
                w = w * over(np.linalg.norm(rows.sum(0)), np.linalg.norm(w @ rows))
            update |= {leaf: w @ grads[leaf] for leaf in group}
        updates.append({leaf: update.get(leaf, heads @ grads[leaf]) for leaf in GRADS})
    return updates


@pytest.mark.parametrize("name", OPTIONS)
def test_options_by_pairs(name, orders):
    # MGDA makes no step where a task has no gradient, and of nothing but rounding no length can be made.
    allowed = lambda row: name != "mgda" or not row["rescale"] or row["per"] == "all"  # noqa: E731
    rows = pairwise(OPTIONS[name], allowed)

    def every(grads, losses):
        def walked(options):
            tx = made(name, **options)

            def one(state, given):
                updates, state = tx.update(given[0], state, PARAMS, losses=given[1])
                return state, updates

            return jax.lax.scan(one, tx.init(PARAMS), (grads, losses))[1]

        return [walked(options) for options in rows]

    for options, found in zip(rows, quick(every, GRADS, LOSSES), strict=True):
        for step, expected in enumerate(by_hand(name, options, orders)):
            for leaf, wanted in expected.items():
                size = 1e-3 * np.abs(wanted).max() + (3e-3 if name == "mgda" else 1e-5)  # it stops within a tolerance
                np.testing.assert_allclose(found[leaf][step], wanted, atol=size, err_msg=f"{options} {step} {leaf}")


def test_every_option_of_every_transformation_is_tried():
    returns = lambda one: one.__annotations__.get("return") is optax.GradientTransformationExtraArgs  # noqa: E731
    transformations = {name for name in m.__all__ if returns(getattr(m, name))} - {"aggregator", "select"}
    assert transformations == set(OPTIONS)
    for name in transformations:
        told = set(inspect.signature(getattr(m, name)).parameters) - {"key", "num_tasks", "optimiser"}
        assert told == set(OPTIONS[name]), name
