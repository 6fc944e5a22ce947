"""An epoch of contrastive divergence beside scikit-learn's machine, and sampling by layers beside sampling by spins."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

from laureate import memory
from laureate.lab.running.comparison import Comparison, Side
from laureate.memory import LayerGibbs, SpinGibbs, store, to_boltzmann_machine

__all__ = ["COMPARISONS"]

UNITS, HIDDEN, ROWS, BATCH, RATE = 784, 50, 2000, 100, 0.01


def _rows() -> np.ndarray:
    return np.random.default_rng(0).choice([0.0, 1.0], (ROWS, UNITS)).astype(np.float32)


def our_epoch() -> Side:
    """Persistent contrastive divergence, one Gibbs step an update, as the peer trains."""
    spins = jnp.asarray(2 * _rows() - 1)
    weights = memory.random_weights(jax.random.key(0), UNITS, HIDDEN, 0.01)
    trainer = memory.ContrastiveDivergence(optax.sgd(RATE), num_steps=1)
    machine = memory.BoltzmannMachine(weights, jnp.zeros(UNITS), jnp.zeros(HIDDEN))
    state = trainer.init(machine, spins[:BATCH])
    epoch = jax.jit(lambda key, state: memory.train(key, trainer, state, spins, ROWS // BATCH, BATCH)[0])
    return Side(lambda: epoch(jax.random.key(1), state).machine.weights, note="Gaussian hidden units here.")


def their_epoch() -> Side:
    """``BernoulliRBM``, an epoch by batches of the same rows."""
    from sklearn.neural_network import BernoulliRBM

    rows = _rows()
    machine = BernoulliRBM(HIDDEN, learning_rate=RATE, batch_size=BATCH, random_state=0)

    def epoch():
        for start in range(0, ROWS, BATCH):
            machine.partial_fit(rows[start : start + BATCH])
        return machine.components_

    return Side(epoch, note="Bernoulli hidden units there.")


CHAINS, STEPS, BETA = 10, 20, 0.8


def _sampled(kernel) -> Side:
    first = jnp.ones((CHAINS, UNITS))

    def chain(key, position):
        keys = jax.random.split(key, STEPS)
        return jax.lax.scan(lambda s, k: (kernel.step(k, s)[0], None), kernel.init(position), keys)[0].position

    run = jax.jit(jax.vmap(chain))
    return Side(lambda: run(jax.random.split(jax.random.key(0), CHAINS), first), times=1 / STEPS)


def _network():
    return store(np.random.default_rng(1).choice([-1.0, 1.0], (HIDDEN, UNITS)))


COMPARISONS = (
    Comparison(
        work=f"an epoch of persistent contrastive divergence, {ROWS:,} rows of {UNITS} units, {HIDDEN} hidden",
        peer="scikit-learn's BernoulliRBM",
        package="scikit-learn",
        ours=our_epoch,
        theirs=their_epoch,
    ),
    Comparison(
        work=f"a sweep of {CHAINS} chains over {UNITS} units: two layers against unit after unit",
        peer="Gibbs sampling of the Hopfield network",
        package="",
        ours=lambda: _sampled(LayerGibbs(to_boltzmann_machine(_network(), beta=BETA, factor="lowdin"))),
        theirs=lambda: _sampled(SpinGibbs(_network(), BETA)),
    ),
)
