"""Who drives a kernel: every step has a key of its own, and what is reported is of all steps and all chains."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from laureate._core import Status
from laureate.sampling import Ordinal, ParallelTempering, PersistentContrastiveDivergence, annealed_importance_sampling
from laureate.sampling._kernel import DiscreteKernel, KernelInfo

ROOM = 8  # for so many keys in a position
DOMAIN = {"steps": Ordinal(0, 99), "chain": Ordinal(0, 99), "keys": Ordinal(0, 1)}


class Slope(eqx.Module):
    """F = slope × steps made."""

    slope: jax.Array

    def __call__(self, x):
        return self.slope * x["steps"]


class ScriptedState(NamedTuple):
    position: dict
    logdensity: jax.Array


class Scripted(DiscreteKernel):
    """No sampler: it counts its steps, notes their keys, and what it reports tells step, chain and temperature.

    The first step of chain 1, and that of a chain hotter than 0.4, are DIVERGED.
    """

    def init(self, position, key=None):
        return ScriptedState(position, self.evaluate(position))

    def step(self, key, state):
        steps, chain = state.position["steps"], state.position["chain"]
        position = {**noted(key, state.position), "steps": steps + 1, "chain": chain}
        diverged = (steps == 0) & ((chain == 1) | (self.inverse_temperature < 0.4))
        info = KernelInfo(
            acceptance_rate=rate(steps, chain, self.inverse_temperature),
            is_accepted=jnp.array(True),
            log_ratio=jnp.zeros(()),
            proposal=position,
            cost=cost(steps, chain),
            status=jnp.where(diverged, int(Status.DIVERGED), int(Status.OK)),
        )
        return self.init(position), info


def rate(steps, chain, beta):
    return (steps + 10 * chain + beta) / 100


def cost(steps, chain):
    return 1 + steps + 10 * chain


def noted(key, position):
    """With the key in the row that has the number of the step."""
    bits = jax.lax.bitcast_convert_type(jax.random.key_data(key), jnp.int32)
    return {**position, "keys": position["keys"].at[position["steps"]].set(bits)}


def at(chain):
    """Before the first step."""
    return {"steps": jnp.asarray(0), "chain": jnp.asarray(chain), "keys": jnp.zeros((ROOM, 2), jnp.int32)}


def drawn(key):
    """A position that is drawn: its key is noted as if it were that of a step."""
    return {**noted(key, at(0)), "steps": jnp.asarray(1)}


KERNEL = Scripted(Slope(jnp.asarray(0.3)), DOMAIN)
BETAS = np.array([0.0, 0.25, 0.6, 1.0])
LADDER = ParallelTempering(KERNEL, np.array([1.0, 0.5, 0.2]), steps_per_swap=2)
# Chains, and the probability with which those that are moved start anew.
GIVEN = (([0, 1, 2, 1], 0.0), ([0, 2, 4, 3], 0.0), ([0, 1, 2, 1], 1.0))


@pytest.fixture(scope="module")
def found():
    """All drivers in one program."""

    def everything(key, chains, restart):
        keys = jax.random.split(key, 4)
        base = lambda x: -0.2 * x["steps"]  # noqa: E731
        trainer = PersistentContrastiveDivergence(
            *(lambda energy: Scripted(energy, DOMAIN), optax.sgd(0.5)),
            **{"num_steps": 3, "num_chains": 3, "restart": restart, "sample_start": drawn},
        )
        data = {**jax.vmap(at)(jnp.zeros(5, int)), "steps": jnp.arange(5)}
        return {
            "annealed": annealed_importance_sampling(keys[0], KERNEL, base, drawn, BETAS, 3, steps_per_beta=2),
            "tempered": jax.lax.scan(lambda state, key: LADDER.step(key, state), LADDER.init(at(0)), keys[1:3]),
            "trained": trainer.update(keys[3], trainer.init(KERNEL.logdensity_fn, jax.vmap(at)(chains)), data),
        }

    run = jax.jit(everything)
    return [
        jax.device_get(run(jax.random.key(number), np.array(chains), restart))
        for number, (chains, restart) in enumerate(GIVEN)
    ]


def test_every_step_of_every_chain_has_a_key_of_its_own(found):
    for given, (_, restart) in zip(found, GIVEN, strict=True):
        seen = given["annealed"].position, given["tempered"][0].replicas.position, given["trained"][0].buffer
        # A start that is drawn counts as a step; one of four chains is not moved.
        counts = [7] * 3, [4] * 3, [0] + [3 + int(restart)] * 3
        for positions, made in zip(seen, counts, strict=True):
            assert sorted(positions["steps"].tolist()) == made
        keys = np.concatenate([positions["keys"].reshape(-1, 2) for positions in seen])
        used = [tuple(key) for key in keys[keys.any(1)].tolist()]
        assert len(used) == sum(map(sum, counts)) == len(set(used))


def test_training_reports_all_steps_of_all_chains_that_were_moved(found):
    for given, (chains, restart) in zip(found, GIVEN, strict=True):
        state, info = given["trained"]
        moved = state.buffer["steps"] > 0
        numbers = (1 - restart) * np.array(chains)[moved]
        np.testing.assert_array_equal(state.buffer["chain"], np.where(moved, (1 - restart) * np.array(chains), chains))
        steps = restart + np.arange(3)[:, None]
        # Of the first step of one chain; what starts anew has made it already.
        assert int(info.status) == (Status.DIVERGED if 1 in numbers else Status.OK)
        assert int(info.cost) == cost(steps, numbers).sum()
        assert float(info.acceptance_rate) == pytest.approx(rate(steps, numbers, 1.0).mean(), rel=1e-5)
        gap = 2 - (3 + restart)  # data have made 0 … 4 steps
        assert float(info.energy_gap) == pytest.approx(0.3 * gap, rel=1e-5)
        assert float(info.gradient_norm) == pytest.approx(abs(gap), rel=1e-5)
        assert float(state.energy.slope) == pytest.approx(0.3 + 0.5 * gap, rel=1e-5)
    assert [int(given["trained"][1].status) for given in found] == [Status.DIVERGED, Status.OK, Status.OK]


def test_tempering_reports_all_steps_of_all_replicas(found):
    info = found[0]["tempered"][1]
    steps = np.arange(4).reshape(2, 2)
    assert info.status.tolist() == [Status.DIVERGED, Status.OK]  # of the hottest one's first step
    assert info.cost.tolist() == (3 * cost(steps, 0).sum(1)).tolist()
    np.testing.assert_allclose(info.acceptance_rate, rate(steps.mean(1)[:, None], 0, LADDER.inverse_temperatures))
    # All are equally likely: whose turn it is swaps.
    assert info.swapped.tolist() == [[True, False], [False, True]]
    assert info.swap_rate.tolist() == [[1, 0], [0, 1]]


def test_annealing_weighs_what_stood_before_every_move(found):
    info = found[0]["annealed"]
    # x_t has made 1 + 2t steps, and f - f_0 is half of that.
    np.testing.assert_allclose(info.log_weights, np.diff(BETAS) @ (0.5 * np.array([1, 3, 5])), rtol=1e-5)
    # Of three chains at three temperatures: a weight, a start and two steps, the second to the seventh of a chain.
    cost_of_chain = 3 * (1 + 1) + cost(np.arange(1, 7), 0).sum()
    assert (int(info.cost), int(info.status)) == (3 * cost_of_chain, Status.OK)
    assert float(info.effective) == pytest.approx(3)
