"""References that need no predictor and no target: SimCLR, Barlow Twins and VICReg, as losses and as one loop."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array
from jaxtyping import Float, Int

from laureate._core import Status, require
from laureate.representation.siamese import (
    apply_to_batch,
    check_pair,
    normalised,
    outputs_of,
    spread,
    trained_part,
)

__all__ = ["BarlowTwins", "JointEmbedding", "JointInfo", "JointState", "SimCLR", "VICReg"]


class SimCLR(eqx.Module):
    """NT-Xent: the other view of the same example among all others of the batch (Chen et al., ICML 2020).

    ``−log exp(cos(z_i, z_j)/T) / Σ_{k≠i} exp(cos(z_i, z_k)/T)``, mean over all 2B outputs.

    temperature: T > 0.

    >>> import jax.numpy as jnp
    >>> z = jnp.eye(2)
    >>> round(float(SimCLR(temperature=1.0)(z, z)), 4)  # −log e/(e + 1 + 1)
    0.5514
    """

    temperature: Any = 0.5

    def __check_init__(self):
        require("SimCLR", "temperature", "> 0", self.temperature, lambda t: t > 0)

    def __call__(self, z1: Float[Array, "n d"], z2: Float[Array, "n d"]) -> Float[Array, ""]:
        """The loss of a batch."""
        n = z1.shape[0]
        z = normalised(jnp.concatenate([z1, z2]))
        similarity = jnp.where(jnp.eye(2 * n, dtype=bool), -jnp.inf, z @ z.T / self.temperature)
        other = jnp.roll(jnp.arange(2 * n), n)
        return -jnp.mean(jax.nn.log_softmax(similarity, axis=1)[jnp.arange(2 * n), other])


class BarlowTwins(eqx.Module):
    """The cross-correlation of the two views' outputs becomes the identity (Zbontar et al., ICML 2021).

    ``Σ_i (1 − C_ii)² + λ Σ_{i≠j} C_ij²``, C of outputs standardised over the batch.

    >>> import jax.numpy as jnp
    >>> z = jnp.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    >>> round(float(BarlowTwins()(z, z)), 6), round(float(BarlowTwins(redundancy=0.5)(z, z[:, ::-1])), 3)
    (0.0, 3.0)
    """

    redundancy: Any = 0.005

    def __check_init__(self):
        require("BarlowTwins", "redundancy", ">= 0", self.redundancy, lambda w: w >= 0)

    def __call__(self, z1: Float[Array, "n d"], z2: Float[Array, "n d"]) -> Float[Array, ""]:
        """The loss of a batch."""
        correlation = standardised(z1).T @ standardised(z2) / z1.shape[0]
        diagonal = jnp.diag(correlation)
        off = jnp.sum(correlation**2) - jnp.sum(diagonal**2)
        return jnp.sum((1 - diagonal) ** 2) + self.redundancy * off


class VICReg(eqx.Module):
    """Invariance, variance and covariance, each with its weight (Bardes, Ponce and LeCun, ICLR 2022).

    ``λ mean‖z₁ − z₂‖²/D + Σ_views [μ mean max(0, 1 − std) + ν Σ_{i≠j} C_ij²/D]``, as in the authors' code, in which
    the variance term is halved over the views and the covariance term is not.

    >>> import jax.numpy as jnp
    >>> z = jnp.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    >>> round(float(VICReg()(z, z)), 3)  # apart, uncorrelated, and with a spread above 1
    0.0
    """

    invariance: Any = 25.0
    variance: Any = 25.0
    covariance: Any = 1.0

    def __call__(self, z1: Float[Array, "n d"], z2: Float[Array, "n d"]) -> Float[Array, ""]:
        """The loss of a batch."""
        n, d = z1.shape

        def regularised(z):
            centred = z - z.mean(axis=0, keepdims=True)
            unbiased = centred.T @ centred / (n - 1)
            deviation = jnp.sqrt(jnp.diag(unbiased) + 1e-4)
            off = jnp.sum(unbiased**2) - jnp.sum(jnp.diag(unbiased) ** 2)
            return self.variance * jnp.mean(jax.nn.relu(1 - deviation)) / 2 + self.covariance * off / d

        return self.invariance * jnp.mean((z1 - z2) ** 2) + regularised(z1) + regularised(z2)


class JointState(NamedTuple):
    """All that training needs to go on: a pytree to be saved.

    online: the model; after training its encoder is what one wanted. optimiser: Optax's state for it. step: steps done.
    """

    online: Any
    optimiser: Any
    step: Int[Array, ""]


class JointInfo(NamedTuple):
    """What a step reports.

    loss: before it. spread: standard deviation of the l2-normalised outputs × √D: about 1 in health, 0 in collapse.
    cost: examples seen. status: DIVERGED where the loss is not finite; the step is then not taken.
    """

    loss: Float[Array, ""]
    spread: Float[Array, ""]
    cost: Int[Array, ""]
    status: Int[Array, ""]


class JointEmbedding(eqx.Module):
    """One network, two views, one loss of both outputs: ``init(key, model)`` and ``step(state, view1, view2)``.

    loss: ``SimCLR()``, ``BarlowTwins()``, ``VICReg()`` or your own function of two arrays [batch, D].
    optimiser, apply: as for ``Siamese``.

    >>> import equinox as eqx, jax, optax
    >>> key = jax.random.key(0)
    >>> trainer = JointEmbedding(VICReg(), optax.sgd(0.05))
    >>> state = trainer.init(key, eqx.nn.Linear(6, 4, key=key))
    >>> x = jax.random.normal(key, (32, 6))
    >>> state, info = eqx.filter_jit(trainer.step)(state, x, x + 0.1)
    >>> int(state.step)
    1
    """

    loss: Any
    optimiser: optax.GradientTransformation = eqx.field(static=True)
    apply: Callable[[Any, Any], Array] = eqx.field(default=apply_to_batch, kw_only=True)

    def init(self, key: Array, model: Any) -> JointState:
        """Before the first step."""
        del key
        return JointState(model, self.optimiser.init(eqx.filter(model, trained_part(model))), jnp.asarray(0, jnp.int32))

    def step(self, state: JointState, view1: Any, view2: Any) -> tuple[JointState, JointInfo]:
        """One update from a batch of pairs of views."""
        spec = trained_part(state.online)
        trained, fixed = eqx.partition(state.online, spec)

        def objective(trained):
            model = eqx.combine(trained, fixed)
            z1, after = outputs_of(self.apply, model, view1)
            z2, after = outputs_of(self.apply, after, view2)
            check_pair("JointEmbedding.step", z1, z2)
            return self.loss(z1, z2), (z1, z2, eqx.filter(eqx.filter(after, spec, inverse=True), eqx.is_array))

        (loss, (z1, z2, kept)), gradient = jax.value_and_grad(objective, has_aux=True)(trained)
        updates, memory = self.optimiser.update(gradient, state.optimiser, trained)
        finite = jnp.isfinite(loss)
        new = (optax.apply_updates(trained, updates), memory, kept)
        old = (trained, state.optimiser, eqx.filter(fixed, eqx.is_array))
        trained, memory, kept = jax.tree.map(lambda a, b: jnp.where(finite, a, b) if eqx.is_array(a) else a, new, old)
        fixed = eqx.combine(kept, fixed)
        info = JointInfo(
            loss=loss,
            spread=spread(jnp.concatenate([z1, z2])),
            cost=jnp.asarray(2 * z1.shape[0], jnp.int32),
            status=jnp.where(finite, int(Status.OK), int(Status.DIVERGED)),
        )
        return JointState(eqx.combine(trained, fixed), memory, state.step + finite), info


def standardised(z: Float[Array, "n d"]) -> Float[Array, "n d"]:
    """Mean 0 and standard deviation 1 over the batch."""
    centred = z - z.mean(axis=0, keepdims=True)
    return centred * jax.lax.rsqrt(jnp.mean(centred**2, axis=0, keepdims=True) + 1e-12)
