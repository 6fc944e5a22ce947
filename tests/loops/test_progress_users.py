"""Every driver that can run for more than ten seconds says how far it is, by one callback, and changes no number."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from numpy.testing import assert_allclose
from small_runs import Decay, Heat

from laureate import decentralized, gradients, loops, memory, pde, recovery, representation, sampling, selection

KEY = jax.random.key(0)


HEAT, TABLE = Heat(jnp.zeros(1)), jax.random.normal(KEY, (40, 3))
SPINS = jnp.sign(jax.random.normal(KEY, (12, 4)))
MACHINE = memory.BoltzmannMachine(0.1 * jnp.ones((4, 2)), jnp.zeros(4), jnp.zeros(2))
SGD = optax.sgd(0.01)
CD = memory.ContrastiveDivergence(SGD)
BACKWARD = pde.DeepBackward(num_steps=4, num_samples=8, batch=4, num_updates=2, width=3)
UNIT = jax.random.normal(KEY, (4, 6))
UNIT = UNIT / jnp.linalg.norm(UNIT, axis=0)
CODES = recovery.BernoulliGaussian(6)
ES = gradients.PersistentES(Decay(), num_pairs=2, truncation=2, horizon=4, sigma=0.1)


def mean_of(x):
    return jnp.sum(x)


def pull(key, x, target):
    return x - target


# A call, and of how many steps it speaks.
DRIVERS = {
    "gradients.train": (lambda **p: gradients.train(KEY, ES, SGD, 0.3, 6, **p)[0], 6),
    "decentralized.train": (
        lambda **p: decentralized.train(
            KEY, decentralized.DPSGD(decentralized.Gossip(decentralized.ring(4)), 0.1), pull, jnp.zeros(4), 6,
            data=jnp.arange(4.0), **p,
        )[0],
        6,
    ),
    "sampling.run": (
        lambda **p: sampling.run(
            KEY, sampling.GibbsWithGradients(mean_of, sampling.Binary()), np.zeros((2, 3), bool), 6, **p
        ).samples,
        6,
    ),
    "sampling.annealed_importance_sampling": (
        lambda **p: sampling.annealed_importance_sampling(
            KEY, sampling.GibbsWithGradients(mean_of, sampling.Binary()), lambda x: 0.0 * jnp.sum(x),
            lambda key: jax.random.bernoulli(key, 0.5, (3,)), np.linspace(0, 1, 7), 4, **p,
        ).log_weights,
        6,
    ),
    "memory.train": (lambda **p: memory.train(KEY, CD, CD.init(MACHINE), SPINS, 6, 4, **p)[0].machine.weights, 6),
    "memory.annealed_log_partition": (
        lambda **p: memory.annealed_log_partition(KEY, MACHINE, 4, 7, **p).log_partition, 6
    ),
    "memory.reverse_patterns": (lambda **p: memory.reverse_patterns(KEY, MACHINE, num_steps=6, **p)[0], 6),
    "pde.MonteCarlo": (lambda **p: pde.MonteCarlo(20, 6).run(KEY, HEAT, **p).v0, 6),
    "pde.DeepBSDE": (lambda **p: pde.DeepBSDE(2, 4, 3, 1, num_updates=6).run(KEY, HEAT, **p).loss, 6),
    "pde.DeepBackward": (lambda **p: BACKWARD.run(KEY, HEAT, **p).v0, 3),
    "recovery.fit": (
        lambda **p: recovery.fit(
            KEY, recovery.ALISTA(UNIT, num_layers=2), CODES,
            optimiser=SGD, num_steps=6, batch=4, **p,
        )[1],
        6,
    ),
    "recovery.learn_dictionary": (
        lambda **p: recovery.learn_dictionary(KEY, TABLE, 4, num_rounds=6, num_steps=2, **p), 6
    ),
    "selection.MixtureKnockoffs": (
        lambda **p: selection.MixtureKnockoffs(2, num_restarts=2, num_steps=6).fit(KEY, TABLE, **p).components.mean, 6
    ),
    "representation.linear_probe": (
        lambda **p: representation.linear_probe(
            TABLE, (TABLE[:, 0] > 0).astype(int), TABLE, (TABLE[:, 1] > 0).astype(int), 2, num_steps=6, **p
        ).value,
        6,
    ),
}  # fmt: skip


# Those that compile for seconds and go the same way, by `loops.scan`.
HEAVY = {
    "memory.annealed_log_partition",
    "memory.reverse_patterns",
    "pde.DeepBSDE",
    "pde.DeepBackward",
    "recovery.fit",
    "representation.linear_probe",
    "sampling.annealed_importance_sampling",
    "selection.MixtureKnockoffs",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow if n in HEAVY else ()) for n in DRIVERS])
def test_a_driver_says_how_far_it_is(name):
    call, steps = DRIVERS[name]
    seen: list[loops.Progress] = []
    found = call(progress=seen.append)
    assert seen[-1].done == seen[-1].total == steps
    assert [p.done for p in seen] == sorted({p.done for p in seen})
    assert seen[-1].remaining == 0
    assert_allclose(found, call(), rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_networks_that_learn_knockoffs_say_it_too():
    seen: list[loops.Progress] = []
    sampler = selection.KnockoffGAN(num_steps=40, num_checkpoints=4, batch=8)
    selector = selection.KnockoffSelector(sampler, random_state=0, validation_fraction=0.0, q=0.4)
    selector.fit(np.asarray(TABLE), np.asarray(TABLE[:, 0]), progress=seen.append)
    assert [(p.done, p.total) for p in seen][-1] == (40, 40)
    whole = selection.KnockoffSelector(sampler, random_state=0, validation_fraction=0.0, q=0.4)
    whole.fit(np.asarray(TABLE), np.asarray(TABLE[:, 0]))
    assert_allclose(selector.statistics_, whole.statistics_, rtol=1e-3, atol=1e-4)
    coder: list[loops.Progress] = []
    recovery.SparseCoder(num_layers=2, num_steps=5, random_state=0).fit(np.asarray(TABLE), progress=coder.append)
    assert coder[-1].done == 5


# --- the scan itself -------------------------------------------------------------------------------------------------


def test_a_scan_that_is_watched_is_the_scan():
    matrix = jnp.asarray(np.random.default_rng(0).normal(size=(3, 3)), jnp.float32)

    def step(carry, x):
        state, count = carry
        return (jnp.tanh(matrix @ state + x["a"]), count + x["b"]), (state[0], x["b"])

    given = (jnp.ones(3), jnp.asarray(0)), {"a": jnp.arange(7.0), "b": jnp.arange(7)}
    plain, seen = jax.lax.scan(step, *given), []
    watched = loops.scan(step, *given, progress=seen.append, steps_per_row=3)
    assert_allclose(watched[0][0], plain[0][0], rtol=1e-6)
    assert int(watched[0][1]) == int(plain[0][1]) == 21
    assert_allclose(watched[1][0], plain[1][0], rtol=1e-6)
    assert np.array_equal(watched[1][1], plain[1][1])
    assert seen[-1][:2] == (21, 21)
    with pytest.raises(ValueError, match=r"scan.progress must be None where anything is traced; .*call it outside"):
        jax.jit(lambda s: loops.scan(step, s, given[1], progress=seen.append))(given[0])


def test_what_the_callback_raises_ends_the_run():
    def stop(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        loops.scan(lambda s, x: (s + x, None), jnp.asarray(0.0), jnp.arange(4.0), progress=stop)
