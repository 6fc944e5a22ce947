"""A restricted Boltzmann machine trained on binary images, with samples of it to compare with."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Key

from laureate.problems.energies.rbm import RestrictedBoltzmannMachine
from laureate.problems.images import binary_images

__all__ = ["TrainedRBM", "trained_rbm"]


class TrainedRBM(eqx.Module):
    """A machine, the means of the pixels it was trained on, and samples of it by its own block-Gibbs sweeps."""

    machine: RestrictedBoltzmannMachine
    mean: Float[Array, "visible"]
    reference: Bool[Array, "samples visible"]

    def start(self, key: Key[Array, ""]) -> Bool[Array, "visible"]:
        """Independent pixels with the data's means."""
        return jax.random.bernoulli(key, self.mean)


def trained_rbm(
    data: str, hidden: int = 100, updates: int = 600, reference: int = 500, sweeps: int = 1000, train: int = 1500
) -> TrainedRBM:
    """Contrastive divergence with ten sweeps, Adam at 0.001, a hundred images an update, as in the paper's code.

    data: a data set of ``binary_images``. train: how many of its images at most.
    reference: how many samples, each after so many ``sweeps`` from an image.

    >>> problem = trained_rbm("digits", hidden=4, updates=2, reference=3, sweeps=2, train=100)
    >>> problem.reference.shape, problem.mean.shape
    ((3, 64), (64,))
    """
    images = binary_images(data, train=train, test=1).train
    return _trained(images.reshape(len(images), -1), hidden, updates, reference, sweeps)


@eqx.filter_jit
def _trained(images: Array, hidden: int, updates: int, count: int, sweeps: int) -> TrainedRBM:
    weight_key, train_key, sample_key = jax.random.split(jax.random.key(0), 3)
    visible = images.shape[1]
    mean = jnp.clip(jnp.mean(images.astype(float), axis=0), 0.01, 0.99)
    span = visible**-0.5
    weights = jax.random.uniform(weight_key, (hidden, visible), minval=-span, maxval=span)
    machine = RestrictedBoltzmannMachine(weights, jnp.log(mean / (1 - mean)), jnp.zeros(hidden))
    adam: Any = optax.adam(1e-3)  # of any tree; Optax's types know none but its own

    def swept(machine, key, rows, number):
        def sweep(i, rows):
            keys = jax.random.split(jax.random.fold_in(key, i), len(rows))
            return jax.vmap(machine.sweep)(keys, rows)

        return jax.lax.fori_loop(0, number, sweep, rows)

    def update(carry, number):
        machine, state = carry
        key = jax.random.fold_in(train_key, number)
        rows = images[jax.random.randint(key, (100,), 0, len(images))]
        model = swept(machine, key, rows, 10)

        def loss(machine):
            free = jax.vmap(machine)
            return jnp.mean(free(model.astype(float))) - jnp.mean(free(rows.astype(float)))

        step, state = adam.update(jax.grad(loss)(machine), state)
        return (eqx.apply_updates(machine, step), state), None

    (machine, _), _ = jax.lax.scan(update, (machine, adam.init(machine)), jnp.arange(updates))
    starts = images[jnp.arange(count) % len(images)]
    return TrainedRBM(machine, mean, swept(machine, sample_key, starts, sweeps))
