"""Hopfield networks as Boltzmann machines: the law they share, where training begins, how much is remembered."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from laureate import memory
from laureate.lab.claim import Settings
from laureate.memory import BoltzmannMachine, LayerGibbs, store, to_boltzmann_machine

__all__ = ["capacity", "exact", "planted_start", "reverse", "sampling", "start"]


def correlated(key: Array, count: int, units: int, flips: float) -> Array:
    """``count`` >= 3 patterns that are copies of one with a share of ``flips`` turned, linearly independent.

    Among the first ``count`` units pattern μ differs from the original at unit μ alone, and that block has an inverse.
    """
    first_key, flip_key = jax.random.split(key)
    first = jnp.where(jax.random.bernoulli(first_key, 0.5, (units,)), 1.0, -1.0)
    turned = jax.random.bernoulli(flip_key, flips, (count, units))
    turned = turned.at[:, :count].set(jnp.eye(count, dtype=bool))
    return jnp.where(turned, -first, first)


def exact(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """The total variation between the network's law, enumerated, and the machine's, by numerical integration.

    The two computations share no formula: the first knows J alone, the second the joint energy of spins and hidden
    units, which it integrates over each hidden unit by Gauss and Hermite's rule.
    """
    network = store(correlated(key, scale.patterns, scale.units, 0.3))
    machine = to_boltzmann_machine(network, beta=scale.beta, factor=arm.factor)
    spins = memory.all_spins(scale.units).astype(network.couplings.dtype)
    by_energy = jax.nn.log_softmax(jax.vmap(lambda s: -scale.beta * network.energy(s))(spins))
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    # ∫ exp(-βh²/2 + βha) dh with h = x/√β is a sum over the nodes x of weight · exp(√β x a), up to a constant.
    inner = jnp.sqrt(scale.beta) * jax.vmap(machine.hidden_mean)(spins)[..., None] * nodes + np.log(weights)
    by_integral = jax.nn.log_softmax(jnp.sum(jax.nn.logsumexp(inner, axis=-1), axis=-1))
    distance = 0.5 * jnp.sum(jnp.abs(jnp.exp(by_energy) - jnp.exp(by_integral)))
    return {"log10_distance": jnp.log10(jnp.maximum(distance, 1e-30))}


def sampling(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """How far the frequencies of a long chain lie from the enumerated law, in units of what independent draws would.

    E|f - p| of a frequency of n draws is √(2p(1-p)/(πn)), and half the sum over configurations the expected distance.
    """
    pattern_key, chain_key = jax.random.split(key)
    network = store(correlated(pattern_key, scale.patterns, scale.units, 0.3))
    spins = memory.all_spins(scale.units)
    law = jax.nn.softmax(jax.vmap(lambda s: -scale.beta * network.energy(s))(spins))
    if arm.sampler == "layers":
        kernel = LayerGibbs(to_boltzmann_machine(network, beta=scale.beta, factor="lowdin"))
    else:
        kernel = memory.SpinGibbs(network, scale.beta)

    def chain(key):
        def step(state, key):
            keys = jax.random.split(key, scale.thin)
            state, _ = jax.lax.scan(lambda s, k: (kernel.step(k, s)[0], None), state, keys)
            return state, jnp.sum((state.position > 0) * 2 ** jnp.arange(scale.units))

        start_key, walk_key = jax.random.split(key)
        start = jnp.where(jax.random.bernoulli(start_key, 0.5, (scale.units,)), 1.0, -1.0)
        _, codes = jax.lax.scan(step, kernel.init(start), jax.random.split(walk_key, scale.draws + scale.burn_in))
        return codes[scale.burn_in :]

    codes = jax.vmap(chain)(jax.random.split(chain_key, scale.chains)).reshape(-1)
    frequency = jnp.bincount(codes, length=len(law)) / codes.size
    expected = 0.5 * jnp.sum(jnp.sqrt(2 * law * (1 - law) / (math.pi * codes.size)))
    return {"log_excess": jnp.log(0.5 * jnp.sum(jnp.abs(frequency - law)) / expected)}


def start(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """Training from one kind of initial weights on the problem's own rows."""
    half = len(problem.test_spins) // 2
    directions = getattr(problem, "directions", problem.patterns)
    validation, test = problem.test_spins[:half], problem.test_spins[half:]
    return _train(key, arm, directions, problem.spins, validation, test, scale)


def planted_start(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """The same on rows that are damaged copies of planted patterns, drawn anew for every seed."""
    pattern_key, choice_key, flip_key, sign_key, key = jax.random.split(key, 5)
    planted = jnp.where(jax.random.bernoulli(pattern_key, 0.5, (scale.patterns, scale.units)), 1.0, -1.0)
    planted = planted.at[:, : scale.patterns].set(1.0 - 2.0 * jnp.eye(scale.patterns))  # independent of each other
    rows = scale.rows + 2 * scale.held_out
    choice = jax.random.randint(choice_key, (rows,), 0, scale.patterns)
    turned = jnp.where(jax.random.bernoulli(flip_key, scale.damage, (rows, scale.units)), -1.0, 1.0)
    sign = jnp.where(jax.random.bernoulli(sign_key, 0.5, (rows, 1)), 1.0, -1.0)  # p(s) = p(-s) without biases
    train, validation, test = jnp.split(planted[choice] * turned * sign, [scale.rows, scale.rows + scale.held_out])
    # What a person with labels has of rows whose sign means nothing: the leading direction of each class.
    members = jax.nn.one_hot(choice[: scale.rows], scale.patterns)
    moments = jnp.einsum("rc,ri,rj->cij", members, train, train)
    directions = jnp.linalg.eigh(moments)[1][:, :, -1]
    return _train(key, arm, directions, train, validation, test, scale)


def initial(key: Array, arm: Settings, directions: Array, spins: Array) -> Array:
    """The initial weights of an arm. Which kind is a number, so that one program serves all arms.

    ``directions``: one a class, from its rows; their signs are the patterns.
    """
    patterns = jnp.where(directions >= 0, 1.0, -1.0)
    count, units = patterns.shape
    noise = jax.random.normal(key, (units, count))
    left, _, right = jnp.linalg.svd(directions.T, full_matrices=False)
    return (
        arm.means * (left @ right)  # the directions themselves made orthonormal: labels, but nothing binary
        + arm.projection * to_boltzmann_machine(store(patterns), factor="lowdin").weights
        + arm.hebbian * memory.hebbian_weights(patterns)
        + arm.principal * memory.principal_weights(spins, count)
        + arm.orthonormal * jnp.linalg.qr(noise)[0]
        + arm.noise * noise
    )


def _train(
    key: Array, arm: Settings, directions: Array, spins: Array, validation: Array, test: Array, scale: Settings
) -> dict[str, Array]:
    """Contrastive divergence at every rate of the grid; the validation rows choose one, the test rows report it."""
    weight_key, train_key, anneal_key = jax.random.split(key, 3)
    weights = initial(weight_key, arm, directions, spins)
    units, count = weights.shape
    machine = BoltzmannMachine(weights, jnp.zeros(units), jnp.zeros(count), scale.beta)

    def constant(key, machine, chains, temperatures):
        """log Σ exp(-βF) and the effective number of annealed weights."""
        if scale.constant == "enumerated":
            return memory.log_partition(machine), jnp.asarray(jnp.inf)
        found = memory.annealed_log_partition(key, machine, chains, temperatures)
        return found.log_partition, found.effective

    def likelihood(machine, rows, log_partition):
        return jnp.mean(-scale.beta * jax.vmap(machine.free_energy)(rows)) - log_partition

    choose_key, report_key = jax.random.split(anneal_key)

    def at_rate(rate):
        trainer = memory.ContrastiveDivergence(optax.sgd(rate), num_steps=scale.gibbs_steps, train_bias=False)

        def record(state, number):
            key = jax.random.fold_in(train_key, number)
            state, _ = memory.train(key, trainer, state, spins, scale.updates, scale.batch)
            found, _ = constant(jax.random.fold_in(choose_key, number), state.machine, scale.chains, scale.temperatures)
            return state, (state.machine.weights, likelihood(state.machine, validation, found))

        return jax.lax.scan(record, trainer.init(machine), jnp.arange(1, scale.records + 1))[1]

    trained, judged = jax.lax.map(at_rate, jnp.asarray(scale.rates))  # [rates, records, ...]
    # Diverged training is a likelihood of minus infinity, which no arm chooses unless all rates diverge.
    judged = jnp.where(jnp.isfinite(judged), judged, -jnp.inf)
    best = {"average": jnp.argmax(judged.mean(1)), "final": jnp.argmax(judged[:, -1])}
    # What is reported is measured anew, with keys and chains of its own: what chose the rate must not flatter it.
    chosen_weights = jnp.concatenate([weights[None], trained[best["average"]], trained[best["final"], -1:]])

    def report(pair):
        number, weights = pair
        one = BoltzmannMachine(weights, machine.visible_bias, machine.hidden_bias, scale.beta)
        key = jax.random.fold_in(report_key, number)
        found, effective = constant(key, one, scale.report_chains, scale.report_temperatures)
        return likelihood(one, test, found), effective

    reported, effective = jax.lax.map(report, (jnp.arange(len(chosen_weights)), chosen_weights))
    curve = reported[:-1]
    alone = _independent(spins, test)
    metrics = {
        "average": curve[1:].mean(),
        "final": reported[-1],
        "curve": curve,
    }
    metrics = {name: jnp.where(arm.independent > 0, alone, value) for name, value in metrics.items()}
    rates = jnp.asarray(scale.rates)
    # An arm that is not trained has chosen nothing: it reports the middle of the grid.
    middle = rates[len(scale.rates) // 2]
    chosen = {f"{name}_rate": jnp.where(arm.independent > 0, middle, rates[index]) for name, index in best.items()}
    if scale.constant != "enumerated":
        chosen["effective"] = jnp.where(arm.independent > 0, float(scale.report_chains), jnp.min(effective))
    updates = scale.updates * jnp.arange(scale.records + 1)
    return metrics | chosen | {"updates": updates.astype(float)}


def _independent(spins: Array, test: Array) -> Array:
    """Mean log-likelihood under independent pixels with the training rows' frequencies, one count added to each."""
    up = ((spins > 0).sum(0) + 1) / (len(spins) + 2)
    return jnp.mean(jnp.sum(jnp.where(test > 0, jnp.log(up), jnp.log1p(-up)), axis=1))


def capacity(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """The share of patterns restored exactly after ``turned`` of their units were turned, over the number stored.

    ``half_load``: patterns a unit at which half of them are no longer restored, between the loads by a straight line.
    """
    pattern_key, damage_key, recall_key = jax.random.split(key, 3)
    units = scale.units
    loads = [max(1, round(load * units)) for load in scale.loads]
    patterns = jnp.where(jax.random.bernoulli(pattern_key, 0.5, (max(loads), units)), 1.0, -1.0)
    networks = [store(patterns[:count], rule=arm.rule) for count in loads]
    couplings = jnp.stack([network.couplings for network in networks])
    ranks = jnp.argsort(jnp.argsort(jax.random.uniform(damage_key, (scale.probes, units)), axis=1), axis=1)
    damaged = lambda which: jnp.where(ranks < scale.turned, -patterns[which], patterns[which])  # noqa: E731

    def restored(couplings, count):
        which = jnp.arange(scale.probes) % count
        network = memory.HopfieldNetwork(couplings, jnp.zeros(units))
        found = jax.vmap(lambda k, s: memory.recall(k, network, s, keep_diagonal=arm.diagonal, max_sweeps=30)[0])(
            jax.random.split(recall_key, scale.probes), damaged(which)
        )
        return jnp.mean(jnp.all(found == patterns[which], axis=1))

    success = jax.lax.map(lambda pair: restored(*pair), (couplings, jnp.asarray(loads)))
    return {
        "success": success,
        "load": jnp.asarray(loads) / units,
        "half_load": _crossing(jnp.asarray(loads) / units, success),
    }


def _crossing(x: Array, y: Array) -> Array:
    """Where y first falls below a half, by a straight line; the ends of x where it never or always does."""
    below = y < 0.5
    second = jnp.where(jnp.any(below), jnp.argmax(below), len(x) - 1)
    first = jnp.maximum(second - 1, 0)
    share = jnp.clip((y[first] - 0.5) / jnp.maximum(y[first] - y[second], 1e-9), 0.0, 1.0)
    between = x[first] + share * (x[second] - x[first])
    return jnp.where(jnp.any(below), jnp.where(below[0], x[0], between), x[-1])


def reverse(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """How binary the best combinations of the weights are: after training, before it, or of weights without memory."""
    noise_key, train_key, search_key = jax.random.split(key, 3)
    units, count = problem.patterns.shape[::-1]
    stored = to_boltzmann_machine(store(problem.patterns), factor="lowdin").weights
    random = jnp.linalg.qr(jax.random.normal(noise_key, (units, count)))[0]
    weights = arm.stored * stored + (1 - arm.stored) * random
    machine = BoltzmannMachine(weights, jnp.zeros(units), jnp.zeros(count), scale.beta)
    trainer = memory.ContrastiveDivergence(optax.sgd(arm.rate), num_steps=scale.gibbs_steps, train_bias=False)
    state, _ = memory.train(train_key, trainer, trainer.init(machine), problem.spins, scale.updates, scale.batch)
    trained = state.machine
    found, info = memory.reverse_patterns(
        search_key, trained, num_patterns=scale.searches, num_steps=scale.search_steps
    )
    gram = trained.weights.T @ trained.weights
    return {
        "binary": jnp.mean(_best_distinct(found, info.binary, count)),
        "orthonormality": jnp.linalg.norm(gram - jnp.eye(count)) / math.sqrt(count),
    }


def _best_distinct(patterns: Array, scores: Array, count: int) -> Array:
    """The scores of the ``count`` best patterns of which no two agree, up to sign, in 95 % of their units.

    Where there are fewer, the rest are 0.
    """
    signs = jnp.sign(patterns)
    overlap = jnp.abs(signs @ signs.T) / patterns.shape[1]

    def pick(free, _):
        best = jnp.argmax(jnp.where(free, scores, -1.0))
        return free & (overlap[best] < 0.9), jnp.where(jnp.any(free), scores[best], 0.0)

    return jax.lax.scan(pick, jnp.ones(len(scores), bool), length=count)[1]
