"""Energy-based models trained with Gibbs-With-Gradients and with Gibbs at equal sampler steps."""

from typing import Any

import jax
import jax.numpy as jnp
import optax

from laureate.papers.gibbs_with_gradients.trials import make_kernel
from laureate.problems.energies import (
    ConvolutionalEnergy,
    DenseIsing,
    DensePotts,
    IsingLattice,
    PottsLattice,
    base_logdensity,
    base_logits,
    lattice_matrix,
)
from laureate.sampling import Binary, Categorical, PersistentContrastiveDivergence, annealed_importance_sampling

__all__ = ["deep", "ising", "ising_or_none", "potts", "potts_or_none"]

BROKEN = -1000.0  # nats: the floor at which a model that fell apart is reported; the experiment's guard has it too


def _samples(key: Any, lattice: Any, count: int, sweeps: int) -> Any:
    """Independent samples of a lattice by checkerboard sweeps from random starts, a row each."""
    keys = jax.random.split(key, 2 * count)
    start = jax.vmap(lattice.start)(keys[count:])

    def one(key, start):
        return jax.lax.fori_loop(0, sweeps, lambda i, x: lattice.sweep(jax.random.fold_in(key, i), x), start)

    return jax.vmap(one)(keys[:count], start).reshape(count, -1)


def _numbers(key: Any, shape: tuple[int, ...], below: int) -> Any:
    """Whole numbers, uniform but for below / 2^32: a third of what `jax.random.randint` takes to compile."""
    return jax.random.bits(key, shape, jnp.uint32) % jnp.uint32(below)


def _train(key: Any, arm: Any, scale: Any, energy: Any, domain: Any, data: Any, penalty: Any, measure: Any) -> Any:
    """Persistent contrastive divergence; the measure of every update, and the model at the end."""
    buffer_key, loop_key = jax.random.split(key)
    trainer = PersistentContrastiveDivergence(
        lambda f: make_kernel(arm, f, domain),
        optax.adam(scale.learning_rate),
        num_steps=scale.sampler_steps,
        penalty=penalty,
    )
    # Chains start from noise, not from data: what is asked is whether the sampler finds the modes.
    values = 2 if isinstance(domain, Binary) else domain.num_categories
    buffer = _numbers(buffer_key, (scale.chains, *data.shape[1:]), values).astype(data.dtype)

    def one(state, number):
        batch_key, update_key = jax.random.split(jax.random.fold_in(loop_key, number))
        batch = data[_numbers(batch_key, (scale.batch,), len(data))]
        state, _ = trainer.update(update_key, state, batch)
        return state, measure(state.energy)

    state, measured = jax.lax.scan(one, trainer.init(energy, buffer), jnp.arange(scale.updates))
    return state.energy, measured


def ising(key: Any, arm: Any, problem: Any, scale: Any) -> dict[str, Any]:
    """log RMSE of the couplings learnt from samples of a lattice, mean over the last twentieth of the updates."""
    data_key, train_key = jax.random.split(key)
    lattice = IsingLattice(scale.side, scale.sigma)
    data = _samples(data_key, lattice, scale.data, scale.sweeps)
    sites = scale.side**2
    truth = jnp.asarray(lattice_matrix(scale.side, 1.0), jnp.float32) * scale.sigma

    def error(energy):
        found = (energy.couplings + energy.couplings.T) / 2
        apart = 1.0 - jnp.eye(sites)
        return 0.5 * jnp.log(jnp.sum(apart * (found - truth) ** 2) / (sites * (sites - 1)))

    start = DenseIsing(jnp.zeros((sites, sites)), jnp.zeros(sites))
    _, errors = _train(
        train_key, arm, scale, start, Binary(), data, lambda e: scale.l1 * jnp.sum(jnp.abs(e.couplings)), error
    )
    last = max(1, scale.updates // 20)
    return {"log_rmse": jnp.mean(errors[-last:]), "curve": errors, "updates": jnp.arange(1.0, scale.updates + 1)}


def potts(key: Any, arm: Any, problem: Any, scale: Any) -> dict[str, Any]:
    """log RMSE of Potts couplings in the zero-sum gauge, mean over the last twentieth of the updates."""
    data_key, train_key = jax.random.split(key)
    lattice = PottsLattice(scale.side, scale.kinds, scale.coupling)
    data = _samples(data_key, lattice, scale.data, scale.sweeps)
    sites, kinds = scale.side**2, scale.kinds
    joined = jnp.asarray(lattice_matrix(scale.side, 1.0), jnp.float32)
    # f = ½ Σ_ij J_ij counts an edge twice, so J_ij = coupling·1[k = l]; and couplings are only known up to a gauge.
    truth = _zero_sum(scale.coupling * joined[:, None, :, None] * jnp.eye(kinds)[None, :, None, :])

    def error(energy):
        found = (energy.couplings + energy.couplings.transpose(2, 3, 0, 1)) / 2
        apart = (1.0 - jnp.eye(sites))[:, None, :, None]
        square = jnp.sum(apart * (_zero_sum(found) - truth) ** 2)
        return 0.5 * jnp.log(square / (sites * (sites - 1) * kinds**2))

    start = DensePotts(jnp.zeros((sites, kinds, sites, kinds)), jnp.zeros((sites, kinds)))
    _, errors = _train(
        train_key,
        arm,
        scale,
        start,
        Categorical(kinds),
        data,
        lambda e: scale.l1 * jnp.sum(jnp.abs(e.couplings)),
        error,
    )
    last = max(1, scale.updates // 20)
    return {"log_rmse": jnp.mean(errors[-last:]), "curve": errors, "updates": jnp.arange(1.0, scale.updates + 1)}


def _zero_sum(couplings: Any) -> Any:
    for axis in (1, 3):
        couplings = couplings - jnp.mean(couplings, axis=axis, keepdims=True)
    return couplings


def ising_or_none(key: Any, arm: Any, problem: Any, scale: Any) -> dict[str, Any]:
    """`ising`; the arm without a sampler says that there are no couplings."""
    if arm.sampler != "none":
        return ising(key, arm, problem, scale)
    return _unlearned(scale.sigma * jnp.asarray(lattice_matrix(scale.side, 1.0), jnp.float32), 1, scale)


def potts_or_none(key: Any, arm: Any, problem: Any, scale: Any) -> dict[str, Any]:
    """`potts`; the arm without a sampler says that there are no couplings."""
    if arm.sampler != "none":
        return potts(key, arm, problem, scale)
    joined = jnp.asarray(lattice_matrix(scale.side, 1.0), jnp.float32)
    alike = jnp.eye(scale.kinds)[None, :, None, :]
    return _unlearned(_zero_sum(scale.coupling * joined[:, None, :, None] * alike), scale.kinds, scale)


def _unlearned(truth: Any, kinds: int, scale: Any) -> dict[str, Any]:
    """What the trials report where all couplings are 0, as they are before training; no site is joined to itself."""
    sites = scale.side**2
    curve = jnp.full(scale.updates, 0.5 * jnp.log(jnp.sum(truth**2) / (sites * (sites - 1) * kinds**2)))
    return {"log_rmse": curve[-1], "curve": curve, "updates": jnp.arange(1.0, scale.updates + 1)}


def deep(key: Any, arm: Any, problem: Any, scale: Any) -> dict[str, Any]:
    """Test log-likelihood, nats an image, of a convolutional energy model of binary images, log Z by annealing.

    The arms without a sampler are the trivial ones: every pixel by its own frequency (the model's base), or by a coin.
    """
    train, test = problem.train, problem.test
    model_key, train_key, anneal_key = jax.random.split(key, 3)
    base = base_logits(train.astype(float))
    if arm.sampler == "none":
        base = jnp.where(arm.even > 0, 0.0, base)
        alone = jnp.mean(jax.vmap(lambda x: base_logdensity(base, x.astype(float)))(test))
        exact = jnp.asarray(float(scale.annealed))  # nothing to anneal: all weights count
        return {"log_likelihood": alone, "annealing_error": jnp.zeros(()), "annealing_effective": exact}
    start = ConvolutionalEnergy(model_key, base, scale.channels)
    energy, _ = _train(train_key, arm, scale, start, Binary(), train, None, lambda e: jnp.zeros(()))
    # The judge is the same for all arms: annealing with Gibbs-With-Gradients from the base, whose Z_0 is one.
    judge = make_kernel(type(arm)(sampler="gwg"), energy)
    betas = jnp.linspace(0.0, 1.0, scale.temperatures)
    found = annealed_importance_sampling(
        anneal_key,
        judge,
        lambda x: base_logdensity(base, x),
        lambda k: jax.random.bernoulli(k, jax.nn.sigmoid(base)),
        betas,
        num_chains=scale.annealed,
    )
    inside = jnp.mean(jax.lax.map(lambda x: energy(x.astype(float)), test, batch_size=100))
    # A model that fell apart is reported at a floor, which the experiment's guard knows, so that every seed counts.
    likelihood = jnp.nan_to_num(inside - found.log_ratio, nan=BROKEN, posinf=BROKEN, neginf=BROKEN)
    return {
        "log_likelihood": jnp.maximum(likelihood, BROKEN),
        "annealing_error": jnp.minimum(found.standard_error, 100.0),
        "annealing_effective": found.effective,
    }
