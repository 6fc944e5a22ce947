"""A row for the dynamics cycle, for CycleGAN and for their critics; ``laureate.testing`` has the checks."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate import control as c
from laureate._core import Status
from laureate.testing import KeyRecorder, check_learner

QUICK: Any = {"compiler_options": {"xla_backend_optimization_level": 0}}
RNG = np.random.default_rng(0)


class Line(eqx.Module):
    """A linear map of all that it is given."""

    matrix: jax.Array

    def __call__(self, *parts):
        return self.matrix @ jnp.concatenate(parts)


def line(outputs, inputs):
    return Line(jnp.asarray(RNG.normal(size=(outputs, inputs)), jnp.float32))


def steps(*widths):
    return c.Transitions(*(jnp.asarray(RNG.normal(size=(8, width)), jnp.float32) for width in widths))


X, Y, PAIRS = steps(3, 2, 3), steps(2, 3, 2), (steps(3, 1, 1)[0], steps(2, 1, 1)[0])
NETWORKS = [line(*shape) for shape in ((2, 3), (2, 5), (3, 5), (2, 5), (1, 2), (1, 3), (1, 2), (3, 2), (1, 3))]
NUMBERS = {"dynamics": 1.0, "adversarial": 0.5, "ahead": 0.3, "action_adversarial": 0.4, "action_cycle": 0.6}
NUMBERS |= {"paired": 0.2, "learning_rate": 0.01, "forward_rate": 0.01, "critic": 0.02, "acting": 0.03, "backing": 0.04}
GAN = {"cycle": 1.0, "learning_rate": 0.01, "critic": 0.02, "backing": 0.03}


def cycle(**numbers):
    given = {name: jnp.asarray(value) for name, value in (NUMBERS | numbers).items()}
    g, f, h, p, d, d_u, d_a, _, _ = NETWORKS
    rates = [given.pop(name) for name in ("critic", "acting", "backing")]
    judges = [c.PooledCritic(one, rate, num_kept=5) for one, rate in zip((d, d_u, d_a), rates, strict=True)]
    return c.DynamicsCycle(g, f, judges[0], h, p, judges[1], judges[2], **given)


def gan(**numbers):
    given = {name: jnp.asarray(value) for name, value in (GAN | numbers).items()}
    judges = [c.PooledCritic(NETWORKS[at], given.pop(name), num_kept=5) for at, name in ((4, "critic"), (8, "backing"))]
    return c.CycleGAN(NETWORKS[0], NETWORKS[7], *judges, **given)


CYCLES = {"dynamics-cycle": cycle(), "cycle-gan": gan()}
# The test with their rows, for test_control_contract.py to tell.
CYCLING = f"{__name__}::test_every_number_counts_none_compiles_no_key_is_used_twice_and_parts_are_the_whole"


def taken(model, key, steps, state):
    """One step of all networks."""
    more = {"phase": "both", "pairs": PAIRS} if hasattr(model, "fit_forward") else {}
    return model.step(key, *steps, state, **more)


@pytest.mark.parametrize(("make", "numbers"), [(cycle, NUMBERS), (gan, GAN)], ids=["dynamics-cycle", "cycle-gan"])
def test_every_number_counts_none_compiles_no_key_is_used_twice_and_parts_are_the_whole(make, numbers):
    changed = [make(**{name: 2 * value}) for name, value in numbers.items() if name != "forward_rate"]
    check_learner(
        make(),
        (X, Y),
        init=lambda model, key: model.init(X, Y),
        step=taken,
        others=changed,
        cost=8,
        unused=(".forward_rate",),  # of F, which is fitted below
    )

    traces = []

    def run(model, key):
        traces.append(model)
        forward_key, train_key = jax.random.split(key)
        more: dict[str, Any] = {}
        if isinstance(model, c.DynamicsCycle):
            model, _ = model.fit_forward(forward_key, Y, 2, 4)
            more = {"phase": "both", "pairs": PAIRS}
        start = model.init(X, Y)
        whole, told = model.train(train_key, X, Y, start, num_steps=3, batch=4, **more)
        part = lambda state, _: (model.train(train_key, X, Y, state, num_steps=1, batch=4, **more)[0], None)  # noqa: E731
        return whole, told, jax.lax.scan(part, start, length=3)[0]

    compiled = eqx.filter_jit(run, **QUICK)
    with KeyRecorder() as recorder:
        whole, told, parts = jax.block_until_ready(compiled(make(), jax.random.key(0)))
        # The same steps are taken at once and in parts: a key is used twice at most, and for one thing.
        assert not recorder.reused(shared=2)
    for one, other in zip(jax.tree.leaves(whole), jax.tree.leaves(parts), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(told.cost, 4)
    np.testing.assert_array_equal(told.status, int(Status.OK))
    assert int(whole.step) == 3
    if make is cycle:
        other = compiled(cycle(forward_rate=2 * NUMBERS["forward_rate"]), jax.random.key(0))[0]
        assert not np.array_equal(other.state_map.matrix, whole.state_map.matrix)
        assert len(traces) == 1


@pytest.mark.slow  # every trial makes them
def test_networks_and_single_steps_use_no_key_twice():
    def made(key):
        one, two, three, four = jax.random.split(key, 4)
        both = c.make_dynamics_cycle(one, X, Y, width=2, acts=True), c.make_cycle_gan(two, X, Y, width=2)
        encoder = c.make_patch_encoder(three, (4, 4, 1), 2, width=2)
        model = cycle()
        state, _ = model.step(four, X, Y, model.init(X, Y), phase="both")
        return eqx.filter((both, encoder, state), eqx.is_array)

    with KeyRecorder() as recorder:
        jax.block_until_ready(eqx.filter_jit(made, **QUICK)(jax.random.key(0)))
        assert not recorder.reused()
