"""Hopfield networks and Boltzmann machines against enumeration, quadrature and closed forms, in double precision."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from laureate import memory
from laureate.memory import BoltzmannMachine, store, to_boltzmann_machine, to_hopfield

BETA = 1.3


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


def correlated(units=9, count=3, seed=0):
    """Patterns that overlap much, linearly independent."""
    rng = np.random.default_rng(seed)
    first = rng.choice([-1.0, 1.0], units)
    flips = rng.random((count, units)) < 0.25
    patterns = np.where(flips, -first, first)
    return patterns if np.linalg.matrix_rank(patterns) == count else correlated(units, count, seed + 1)


def spins_of(units):
    return np.asarray(memory.all_spins(units), np.float64)


def law_of_network(network, beta=BETA):
    log = np.array([-beta * float(network.energy(jnp.asarray(s))) for s in spins_of(network.num_units)])
    weights = np.exp(log - log.max())
    return weights / weights.sum()


def law_by_quadrature(machine):
    """p(s) from the joint energy E(s, h) alone: h is integrated out numerically, one hidden unit after another."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    w, b, c, beta = (np.asarray(x, np.float64) for x in (
        machine.weights, machine.visible_bias, machine.hidden_bias, machine.beta))  # fmt: skip
    spins = spins_of(len(b))
    total = np.exp(beta * spins @ b)
    for mu in range(w.shape[1]):
        a = spins @ w[:, mu] + c[mu]
        h = nodes / np.sqrt(beta)  # ∫ exp(-βh²/2 + βha) dh ∝ Σ_k weight_k exp(β h_k a)
        total = total * (np.exp(beta * np.outer(a, h)) @ weights)
    return total / total.sum()


def fields(units, hidden, seed=5):
    rng = np.random.default_rng(seed)
    return jnp.asarray(0.3 * rng.normal(size=units)), jnp.asarray(0.4 * rng.normal(size=hidden))


@pytest.mark.parametrize("factor", ["qr", "lowdin", "cholesky", "eigen"])
def test_the_machine_has_the_law_of_the_network(factor):
    patterns = correlated()
    network = store(patterns, field=fields(9, 3)[0])
    machine = to_boltzmann_machine(network, beta=BETA, factor=factor)
    assert machine.weights.shape == (9, 3)
    np.testing.assert_allclose(law_by_quadrature(machine), law_of_network(network), rtol=1e-9)
    np.testing.assert_allclose(to_hopfield(machine).couplings, network.couplings, atol=1e-12)


@pytest.mark.parametrize("rule", ["hebbian", "storkey"])
def test_any_couplings_have_a_machine(rule):
    network = store(correlated(7), rule=rule)
    machine = to_boltzmann_machine(network, beta=0.7, factor="eigen")
    assert machine.weights.shape[1] <= 6
    np.testing.assert_allclose(law_by_quadrature(machine), law_of_network(network, 0.7), rtol=1e-8)


def test_a_machine_with_hidden_fields_has_a_network():
    visible, hidden = fields(6, 2)
    machine = BoltzmannMachine(jnp.asarray(0.5 * np.random.default_rng(1).normal(size=(6, 2))), visible, hidden, 0.8)
    np.testing.assert_allclose(law_by_quadrature(machine), law_of_network(to_hopfield(machine), 0.8), rtol=1e-9)


def test_the_projection_rule():
    patterns = correlated(20, 6)
    network = store(patterns)
    couplings = np.asarray(network.couplings)
    np.testing.assert_allclose(couplings @ couplings, couplings, atol=1e-12)
    np.testing.assert_allclose(couplings @ patterns.T, patterns.T, atol=1e-12)
    assert np.trace(couplings) == pytest.approx(6)
    np.testing.assert_allclose([network.energy(jnp.asarray(p)) for p in patterns], -10.0, atol=1e-12)
    # The pseudo-inverse gives the same, and copes with copies and negatives, for which there is no inverse.
    twice = np.concatenate([patterns, patterns[:1], -patterns[1:2]])
    np.testing.assert_allclose(store(twice, rule="pseudo-inverse").couplings, couplings, atol=1e-12)
    assert to_boltzmann_machine(store(twice, rule="pseudo-inverse")).weights.shape == (20, 6)


def test_storkeys_rule_by_its_sums():
    patterns = correlated(5, 3)
    wanted = np.zeros((5, 5))
    for x in patterns:
        before = wanted.copy()
        for i in range(5):
            for j in range(5):
                if i != j:
                    h_ij = sum(before[i, k] * x[k] for k in range(5) if k not in (i, j))
                    h_ji = sum(before[j, k] * x[k] for k in range(5) if k not in (i, j))
                    wanted[i, j] += (x[i] * x[j] - x[i] * h_ji - h_ij * x[j]) / 5
    np.testing.assert_allclose(store(patterns, rule="storkey").couplings, wanted, atol=1e-12)


def test_lowdin_does_not_depend_on_the_order_and_is_nearest():
    patterns = correlated(12, 4)
    weights = to_boltzmann_machine(store(patterns), factor="lowdin").weights
    turned = to_boltzmann_machine(store(patterns[::-1]), factor="lowdin").weights[:, ::-1]
    np.testing.assert_allclose(weights, turned, atol=1e-12)
    np.testing.assert_allclose(weights.T @ weights, np.eye(4), atol=1e-12)
    scaled = patterns.T / np.sqrt(12)
    others = [np.asarray(to_boltzmann_machine(store(patterns), factor=f).weights) for f in ("qr", "cholesky")]
    distance = [np.linalg.norm(w * np.sign((w * scaled).sum(0)) - scaled) for w in (weights, *others)]
    assert distance[0] < min(distance[1:])


def test_conditionals_follow_from_the_joint_energy():
    visible, hidden_bias = fields(4, 2)
    machine = BoltzmannMachine(jnp.asarray(np.random.default_rng(2).normal(size=(4, 2))), visible, hidden_bias, BETA)
    h = jnp.array([0.3, -0.8])
    for i in range(4):
        up, down = jnp.ones(4), jnp.ones(4).at[i].set(-1)
        odds = -BETA * (machine.energy(up, h) - machine.energy(down, h))
        assert float(machine.visible_logits(h)[i]) == pytest.approx(float(odds))
    s = jnp.array([1.0, -1, -1, 1])
    gradient = jax.grad(machine.energy, argnums=1)(s, machine.hidden_mean(s))
    np.testing.assert_allclose(gradient, 0, atol=1e-12)  # the mean of a Gaussian is where its energy is least
    np.testing.assert_allclose(jax.hessian(machine.energy, argnums=1)(s, h), np.eye(2), atol=1e-12)  # variance 1/β


def test_mattis_and_the_ends_of_the_temperature():
    units = 11
    network = store(correlated(units, 1))
    k = np.arange(units + 1)
    terms = [math.log(math.comb(units, i)) + BETA * (units - 2 * i) ** 2 / (2 * units) for i in k]
    exact = np.logaddexp.reduce(terms)
    assert float(memory.log_partition(network, BETA)) == pytest.approx(exact)
    machine = to_boltzmann_machine(network, beta=BETA)
    assert float(memory.log_partition(machine)) == pytest.approx(exact)
    cold = eqx.tree_at(lambda m: m.beta, machine, 1e-9)
    assert float(memory.log_partition(cold)) == pytest.approx(units * math.log(2))


@pytest.mark.parametrize("kind", ["layer", "spin", "low-rank"])
def test_a_step_draws_what_the_conditionals_say(kind):
    """From one configuration, the frequencies of the next against the exact row of the transition matrix."""
    visible, _ = fields(3, 1)
    network = store(correlated(3, 1), field=visible)
    machine = to_boltzmann_machine(network, beta=0.8)
    start, spins = jnp.array([1.0, -1, 1]), spins_of(3)
    if kind == "layer":
        nodes, weights = np.polynomial.hermite_e.hermegauss(60)
        hidden = np.asarray(machine.hidden_mean(start)) + nodes[:, None] / math.sqrt(0.8)
        odds = np.stack([np.asarray(machine.visible_logits(jnp.asarray(h))) for h in hidden])
        row = np.array([(weights / weights.sum()) @ np.prod(1 / (1 + np.exp(-s * odds)), 1) for s in spins])
        kernel = memory.LayerGibbs(machine)
    else:
        law, row = law_of_network(network, 0.8), np.zeros(8)
        for i, s in enumerate(spins):
            row[i] = 1.0
            for site in range(3):  # sites before are new, sites after still old
                here = np.where(np.arange(3) <= site, s, np.asarray(start))
                other = np.where(np.arange(3) == site, -here, here)
                p, q = (law[np.flatnonzero((spins == x).all(1))[0]] for x in (here, other))
                row[i] *= p / (p + q)
        kernel = memory.SpinGibbs(network, beta=0.8) if kind == "spin" else memory.LowRankSpinGibbs(machine)
    draws = 20_000
    step = jax.jit(jax.vmap(lambda key: kernel.step(key, kernel.init(start))[0].position))
    found = np.asarray(step(jax.random.split(jax.random.key(0), draws)))
    counts = np.array([(found == s).all(1).sum() for s in spins])
    assert row.sum() == pytest.approx(1)
    chi_square = ((counts - draws * row) ** 2 / (draws * row)).sum()
    assert chi_square < 24.3  # 99.9 % of seven degrees of freedom


def test_the_layer_sampler_keeps_the_law():
    """π T = π with T assembled exactly by quadrature."""
    machine = BoltzmannMachine(jnp.array([[0.8], [-0.5], [0.3]]), jnp.array([0.2, 0.0, -0.3]), jnp.array([0.4]), 1.1)
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    spins, rows = spins_of(3), []
    for s in spins:
        hidden = np.asarray(machine.hidden_mean(jnp.asarray(s))) + nodes[:, None] / math.sqrt(1.1)
        odds = np.stack([np.asarray(machine.visible_logits(jnp.asarray(h))) for h in hidden])
        rows.append([(weights / weights.sum()) @ np.prod(1 / (1 + np.exp(-t * odds)), 1) for t in spins])
    law = law_by_quadrature(machine)
    np.testing.assert_allclose(law @ np.array(rows), law, rtol=1e-8)


def test_the_contrastive_gradient_is_that_of_the_likelihood():
    """Chains that begin in equilibrium and stay there: the update is the exact gradient up to their noise."""
    visible, hidden = fields(4, 2)
    machine = BoltzmannMachine(jnp.asarray(0.6 * np.random.default_rng(3).normal(size=(4, 2))), visible, hidden, 0.9)
    data = jnp.asarray(correlated(4, 2))
    rng, count = np.random.default_rng(0), 40_000
    chains = jnp.asarray(spins_of(4)[rng.choice(16, count, p=law_by_quadrature(machine))])
    trainer = memory.ContrastiveDivergence(optax.sgd(1.0), num_steps=2)
    state, info = jax.jit(trainer.update)(jax.random.key(1), trainer.init(machine, chains), data)
    parameters = lambda m: (m.weights, m.visible_bias, m.hidden_bias)  # noqa: E731

    def likelihood(values):
        return memory.log_likelihood(eqx.tree_at(parameters, machine, values), data)

    exact = jax.grad(likelihood)(parameters(machine))
    for after, before, wanted in zip(parameters(state.machine), parameters(machine), exact, strict=True):
        np.testing.assert_allclose(after - before, wanted, atol=5 * 2.5 / math.sqrt(count))
    assert int(info.cost) == 2 * 2 * count
    assert state.chains.shape == chains.shape
    assert not bool(jnp.all(state.chains == chains))


def test_annealing_agrees_with_enumeration_also_with_fields():
    visible, hidden = fields(8, 3)
    weights = to_boltzmann_machine(store(correlated(8, 3))).weights
    machine = BoltzmannMachine(weights, visible, hidden, 1.2)
    found = jax.jit(lambda key: memory.annealed_log_partition(key, machine, 200, 200))(jax.random.key(0))
    assert abs(float(found.log_partition - memory.log_partition(machine))) < 4 * float(found.standard_error)
    assert 0 < float(found.standard_error) < 0.1
    assert 100 < float(found.effective) <= 200
    assert int(found.cost) == 2 * 200 * 199


def test_reverse_finds_the_planted_patterns_behind_any_rotation():
    patterns = np.random.default_rng(4).choice([-1.0, 1.0], (3, 40))
    machine = to_boltzmann_machine(store(patterns))
    turn, _ = np.linalg.qr(np.random.default_rng(5).normal(size=(3, 3)))
    turned = eqx.tree_at(lambda m: m.weights, machine, machine.weights @ jnp.asarray(turn))
    found, info = jax.jit(lambda key: memory.reverse_patterns(key, turned, num_patterns=12))(jax.random.key(0))
    overlap = np.abs(np.asarray(found) @ patterns.T) / 40
    good = np.asarray(info.binary) == 1
    assert good.sum() >= 6
    np.testing.assert_allclose(overlap[good].max(1), 1, atol=0.01)
    np.testing.assert_allclose(np.asarray(turned.weights @ info.mixing).T, found, atol=1e-9)
    assert (np.asarray(info.residual)[good] < 1e-4).all()


@pytest.mark.parametrize("factor", ["qr", "lowdin", "cholesky", "eigen"])
def test_inside_jit_it_is_the_same_machine(factor):
    patterns = jnp.asarray(correlated(8, 3))
    traced = jax.jit(lambda x: to_boltzmann_machine(store(x), factor=factor).weights)(patterns)
    known = to_boltzmann_machine(store(patterns), factor=factor).weights
    np.testing.assert_allclose(traced @ traced.T, known @ known.T, atol=1e-6)
    for rule in ("hebbian", "storkey", "pseudo-inverse"):
        inside = jax.jit(lambda x, rule=rule: store(x, rule=rule).couplings)(patterns)
        np.testing.assert_allclose(inside, store(patterns, rule=rule).couplings, atol=1e-10)
