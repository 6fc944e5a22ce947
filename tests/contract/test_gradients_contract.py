"""A row for every estimator; what they must do stands in ``laureate.testing.check_gradient_estimator``."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest
from row_types import of_rows
from together import TogetherEstimators, costs

from laureate.gradients import (
    GPES,
    RTRL,
    AnalyticPES,
    FullES,
    NoiseReuseES,
    PersistentES,
    TruncatedBackprop,
    TruncatedES,
)
from laureate.testing import check_gradient_estimator


class Swing(eqx.Module):
    """A damped, driven swing with a learned start; random in init and steps; a tree of parameters."""

    friction: jax.Array = eqx.field(default=0.1, converter=jnp.asarray)

    def init(self, key, theta):
        place = theta["start"] + 0.1 * jax.random.normal(key, (), theta["start"].dtype)
        return {"place": place, "speed": jnp.zeros_like(place), "t": jnp.zeros((), jnp.int32)}

    def step(self, key, theta, state) -> Any:
        drive = theta["push"] @ jax.random.normal(key, (2,), theta["push"].dtype)
        drive = drive.astype(theta["start"].dtype)
        friction = self.friction.astype(drive.dtype)
        speed = state["speed"] + 0.3 * (drive - jnp.sin(state["place"]) - friction * state["speed"])
        place = state["place"] + 0.3 * speed
        return {"place": place, "speed": speed, "t": state["t"] + 1}, place**2


class Ending(Swing):
    """The same, and it ends when it has swung through."""

    def step(self, key, theta, state):  # pyright: ignore[reportIncompatibleMethodOverride]
        state, loss = super().step(key, theta, state)
        return state, loss, state["place"] < 0


ES: dict[str, Any] = {"num_pairs": 3, "truncation": 2, "horizon": 6, "sigma": 0.1}
WORKERS: dict[str, Any] = {"truncation": 2, "horizon": 6, "num_workers": 3}
ROWS = {
    "pes": lambda unroll: PersistentES(unroll, **ES),
    "pes-random": lambda unroll: PersistentES(unroll, **ES, phase="random", telescope=True),
    "pes-unaligned": lambda unroll: PersistentES(unroll, **(ES | {"horizon": (2, 5)}), telescope="products"),
    "gpes": lambda unroll: GPES(unroll, **ES, noise_steps=3),
    "nres": lambda unroll: NoiseReuseES(unroll, **(ES | {"horizon": 5})),
    "pes-analytic": lambda unroll: AnalyticPES(unroll, **ES),
    "full-es": lambda unroll: FullES(unroll, **ES),
    "truncated-es": lambda unroll: TruncatedES(unroll, **ES),
    "truncated-backprop": lambda unroll: TruncatedBackprop(unroll, **WORKERS),
    "rtrl": lambda unroll: RTRL(unroll, **(WORKERS | {"horizon": 5})),
    "pes-done": lambda unroll: PersistentES(Ending(unroll.friction), **(ES | {"horizon": None})),
    "nres-border": lambda unroll: NoiseReuseES(Ending(unroll.friction), **ES, restart="border"),
    "rtrl-done": lambda unroll: RTRL(Ending(unroll.friction), **(WORKERS | {"horizon": None})),
}
TYPES = of_rows("test_contract", ROWS, lambda make: type(make(Swing())))
# Inner steps of a step: 2 signs, 3 pairs, 2 steps a truncation; whole episodes, one more beside the pairs, or workers.
COSTS = {"full-es": 2 * 3 * 6, "truncated-es": (2 * 3 + 1) * 2, "pes-analytic": (2 * 3 + 1) * 2}
COSTS |= {"truncated-backprop": 3 * 2, "rtrl": 3 * 2, "rtrl-done": 3 * 2}
THETA = {"start": jnp.asarray(1.0), "push": jnp.asarray([0.2, -0.1])}


# Other settings of estimators with a row, whose rules tests/gradients looks at one by one.
VARIANTS = {"pes-random", "pes-unaligned", "pes-done", "nres-border", "rtrl-done"}
# What is set in words, flags and counts.
PAIRS: dict[str, Any] = {
    "num_pairs": (3, 2),
    "truncation": (2, 3),
    "horizon": (6, (2, 5)),
    "phase": ("lockstep", "random"),
    "telescope": (False, True, "products"),
    "restart": ("inside", "border"),
    "checked": (False, True),
}
OF_WORKERS = {"num_workers": (3, 2), **{name: PAIRS[name] for name in ("truncation", "horizon", "phase", "checked")}}
OF_WORKERS |= {"telescope": (False, True)}
# Without batches there is nothing to deal out, and there is one noise.
IDLE = ("batches_per_pair", "batches_per_worker", "noise")


def left(*names):
    return {name: values for name, values in PAIRS.items() if name not in names}


OPTIONS = {
    "pes": PAIRS,
    "gpes": PAIRS | {"noise_steps": (3, 2, None)},
    "nres": left("horizon") | {"horizon": (5, (2, 5))},
    # An episode a step; backpropagation in step with all pairs.
    "full-es": left("truncation", "phase", "restart"),
    "truncated-es": PAIRS,
    "pes-analytic": left("phase", "restart") | {"horizon": (6, 12), "telescope": (False, True)},
    "truncated-backprop": OF_WORKERS,
    "rtrl": OF_WORKERS | {"horizon": (5, (2, 5))},
}
UNUSED = {"full-es": (*IDLE, "truncation", "phase", "restart"), "pes-analytic": (*IDLE, "phase", "restart")}


def fits(row):
    """An episode is as long as a truncation at least, and of whole ones where it begins on borders only."""
    horizon, truncation = row.get("horizon"), row.get("truncation")
    if not isinstance(horizon, int) or truncation is None:
        return True
    return horizon >= truncation and (row.get("restart", "inside") == "inside" or horizon % truncation == 0)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in VARIANTS else []) for name in ROWS]
)
def test_contract(name):
    make = ROWS[name]
    estimator = make(Swing())
    others = [make(Swing(0.2))]
    if hasattr(estimator, "sigma"):
        others.append(eqx.tree_at(lambda e: e.sigma, estimator, jnp.asarray(0.3)))
    shared = 2 if hasattr(estimator, "num_pairs") else 1
    settings: Any = {"options": OPTIONS.get(name), "allowed": fits, "unused": UNUSED.get(name, IDLE)}
    cost = COSTS.get(name, 2 * 3 * 2)
    check_gradient_estimator(estimator, THETA, others=others, cost=cost, shared_keys=shared, **settings)


TYPES |= {
    f"test_all_of_them_together_keep_what_one_keeps[{which}]": set().union(
        *(TYPES[f"test_contract[{name}]"] for name in ROWS if (name in VARIANTS) == (which == "variants"))
    )
    for which in ("methods", "variants")
}


@pytest.mark.parametrize("which", ["methods", "variants"])
def test_all_of_them_together_keep_what_one_keeps(which):
    """All rows in the same programs, the quick twin of ``test_contract``, which sees to their keys and options, too."""
    names = [name for name in ROWS if (name in VARIANTS) == (which == "variants")]
    make = lambda friction: TogetherEstimators({name: ROWS[name](Swing(friction)) for name in names})  # noqa: E731
    theta, cost = dict.fromkeys(names, THETA), costs({name: COSTS.get(name, 2 * 3 * 2) for name in names})
    skip = {"vmap over keys is a loop", "keys are used once"}
    check_gradient_estimator(make(0.1), theta, others=[make(0.2)], cost=cost, skip=skip, unused=IDLE)


@pytest.mark.parametrize("name", ROWS)
def test_bad_values_raise(name):
    kind = type(ROWS[name](Swing()))
    known = {"truncation": 0} if kind is not FullES else {"num_pairs": 0}
    settings = (WORKERS if "num_workers" in kind.__dataclass_fields__ else ES) | known
    extra = {"noise_steps": 1} if kind is GPES else {}
    with pytest.raises(ValueError, match=r"must be an integer >= 1; got 0"):
        kind(Swing(), **settings, **extra)
    with pytest.raises(TypeError, match="theta leaf 'start' has dtype int32"):
        ROWS[name](Swing()).init(jax.random.key(3), {"start": 1, "push": THETA["push"]})
