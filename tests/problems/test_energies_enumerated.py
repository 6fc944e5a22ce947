"""Energies on so few sites that every state can be listed: f, its differences, sums over states, and laws of starts."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate.problems import energies
from laureate.problems.energies import convolutional
from laureate.problems.gaussians import GaussianTarget

KEY = jax.random.key(0)


def states(shape, values=2):
    return np.array(list(itertools.product(range(values), repeat=int(np.prod(shape))))).reshape(-1, *shape)


def edges(side):
    """The sites' pairs of a torus, each once."""
    for row, column in np.ndindex(side, side):
        for other in ((row + 1) % side, column), (row, (column + 1) % side):
            yield (row, column), other


def log_sum(values):
    values = np.asarray(values, np.float64)
    return values.max() + np.log(np.exp(values - values.max()).sum())


def test_the_ising_lattice_counts_every_edge_once_and_its_field():
    lattice, every = energies.IsingLattice(3, 0.17, 0.4), states((3, 3))
    s = 2.0 * every - 1
    pairs = sum(s[(slice(None), *one)] * s[(slice(None), *other)] for one, other in edges(3))
    expected = 2 * 0.17 * pairs + 0.4 * s.sum((1, 2))

    @jax.jit
    def found(every):
        difference = lambda x: jax.vmap(lambda site: lattice.site_differences(lambda at: x[at], site))(jnp.arange(9))  # noqa: E731
        f = jax.vmap(lattice)(every)
        return f, jax.vmap(difference)(every.reshape(-1, 9)), jax.vmap(lattice.edge_energy)(every)

    f, differences, mean = map(np.asarray, found(every.astype(np.float32)))
    np.testing.assert_allclose(f, expected, atol=1e-4)
    np.testing.assert_allclose(mean, pairs / 18, atol=1e-5)
    for site in range(9):  # the first site is the largest digit of a state's number
        flipped = np.arange(512) ^ (1 << (8 - site))
        np.testing.assert_allclose(differences[:, site, 0], expected[flipped] - expected, atol=1e-4)
    # Without a field: log Z, and E s_i s_j over an edge.
    for sigma in (0.05, 0.17):
        log_z = log_sum(2 * sigma * pairs)
        assert energies.lattice_log_partition(3, sigma) == pytest.approx(log_z, rel=1e-9)
        mean = np.exp(2 * sigma * pairs - log_z) @ pairs / 18
        assert energies.lattice_energy_per_edge(3, sigma) == pytest.approx(mean, abs=1e-6)


def test_potts_counts_every_edge_whose_ends_agree():
    lattice = energies.PottsLattice(3, 3, 0.7)
    every = np.random.default_rng(0).integers(0, 3, (40, 3, 3))

    def f(x):
        return 0.7 * sum(x[one] == x[other] for one, other in edges(3))

    @jax.jit
    def found(every):
        difference = lambda x: jax.vmap(lambda site: lattice.site_differences(lambda at: x[at], site))(jnp.arange(9))  # noqa: E731
        return jax.vmap(lattice)(jax.nn.one_hot(every, 3)), jax.vmap(difference)(every.reshape(-1, 9))

    values, differences = map(np.asarray, found(every))
    np.testing.assert_allclose(values, [f(x) for x in every], rtol=1e-5)
    for x, row in zip(every, differences, strict=True):
        for site, kind in itertools.product(range(9), range(3)):
            moved = x.copy()
            moved.flat[site] = kind
            expected = f(moved) - f(x) if kind != x.flat[site] else -np.inf
            np.testing.assert_allclose(row[site, kind], expected, atol=1e-5)


def test_potts_sweeps_draw_every_site_from_its_conditional():
    """Even sites first, then odd ones: the largest of coupling times agreeing neighbours plus Gumbel noise."""
    lattice = energies.PottsLattice(4, 3, 0.8)
    x = np.random.default_rng(1).integers(0, 3, (4, 4))
    noise, expected = np.asarray(jax.random.gumbel(KEY, (4, 4, 3))), x.copy()
    for colour in range(2):
        before = expected.copy()
        for i, j in np.argwhere(np.indices((4, 4)).sum(0) % 2 == colour):
            near = [before[(i + d) % 4, j] for d in (1, -1)] + [before[i, (j + d) % 4] for d in (1, -1)]
            expected[i, j] = np.argmax(0.8 * np.bincount(near, minlength=3) + noise[i, j])
    np.testing.assert_array_equal(jax.jit(lattice.sweep)(KEY, jnp.asarray(x)), expected)


def test_couplings_that_one_learns_are_symmetrised_without_a_sites_own():
    """f is the sum over pairs of different sites, whichever half of the couplings holds them; so is its gradient."""
    rng = np.random.default_rng(2)
    table, bias, one_hot = rng.normal(size=(3, 2, 3, 2)), rng.normal(size=(3, 2)), np.eye(2)[states((3,))]
    spins, coupling, field = 2.0 * states((3,)) - 1, rng.normal(size=(3, 3)), rng.normal(size=3)
    potts = energies.DensePotts(jnp.asarray(table), jnp.asarray(bias))
    ising = energies.DenseIsing(jnp.asarray(coupling), jnp.asarray(field))

    @jax.jit
    def found(x, y):
        return jax.vmap(jax.value_and_grad(potts))(x), jax.vmap(jax.value_and_grad(ising))(y)

    (f, slope), (g, tilt) = jax.tree.map(
        np.asarray, found(jnp.asarray(one_hot, jnp.float32), jnp.asarray(states((3,)), jnp.float32))
    )
    for row in range(8):
        apart = [(i, j) for i, j in np.ndindex(3, 3) if i != j]
        x, s = one_hot[row], spins[row]
        value = sum(x[i] @ table[i, :, j] @ x[j] for i, j in apart) / 2 + (bias * x).sum()
        assert f[row] == pytest.approx(value, abs=1e-4)
        expected = [sum(table[i, :, j] @ x[j] + table[j, :, i].T @ x[j] for j in range(3) if j != i) for i in range(3)]
        np.testing.assert_allclose(slope[row], np.array(expected) / 2 + bias, atol=1e-4)
        assert g[row] == pytest.approx(sum(coupling[i, j] * s[i] * s[j] for i, j in apart) + field @ s, abs=1e-4)
        leaning = [sum((coupling[i, j] + coupling[j, i]) * s[j] for j in range(3) if j != i) for i in range(3)]
        np.testing.assert_allclose(tilt[row], 2 * (np.array(leaning) + field), atol=1e-4)


def test_hidden_units_and_hidden_states_are_summed_out():
    """A machine's f and log Z by all hidden and visible units; a Markov model's evidence by all chains' states."""
    machine = energies.random_rbm(KEY, visible=4, hidden=3)
    model = energies.random_factorial_hmm(KEY, chains=2, steps=3, keep=0.8, noise=0.7)

    @jax.jit
    def found(v, x):
        return jax.vmap(machine)(v), machine.log_partition(), jax.vmap(model)(x), model.log_evidence()

    v, h, x = states((4,)), states((3,)), states((3, 2))
    f, log_z, joint, evidence = map(np.asarray, found(v.astype(np.float32), x.astype(np.float32)))
    w, b, c = (np.asarray(leaf, np.float64) for leaf in (machine.weights, machine.visible_bias, machine.hidden_bias))
    whole = v @ b + (h @ c)[:, None] + h @ w @ v.T  # [hidden states, visible states]
    np.testing.assert_allclose(f, np.log(np.exp(whole).sum(0)), rtol=1e-5)
    assert float(log_z) == pytest.approx(log_sum(whole), rel=1e-5)
    y, weights = np.asarray(model.observations, np.float64), np.asarray(model.weights, np.float64)
    expected = []
    for path in x:
        kept = path[1:] == path[:-1]
        prior = 2 * np.log(0.5) + np.where(kept, np.log(0.8), np.log(0.2)).sum()
        seen = -((y - path @ weights) ** 2) / (2 * 0.7**2) - np.log(0.7 * np.sqrt(2 * np.pi))
        expected.append(prior + seen.sum())
    np.testing.assert_allclose(joint, expected, rtol=1e-5)
    assert float(evidence) == pytest.approx(log_sum(expected), rel=1e-5)


def test_hidden_chains_begin_at_either_value_and_keep_it_as_often_as_said():
    """One chain under next to no noise: y over its weight is the chain; the noise is what is left of it."""

    def found(key):
        model = energies.random_factorial_hmm(key, chains=1, steps=4, keep=0.8, noise=1e-3)
        noisy = energies.random_factorial_hmm(key, chains=1, steps=4, keep=0.8, noise=0.5)
        return model.observations / model.weights, noisy.observations - model.observations, model.weights

    share, noise, weights = jax.jit(jax.vmap(found))(jax.random.split(KEY, 1000))
    sharp = np.abs(np.asarray(weights)[:, 0]) > 0.05
    x = np.round(np.asarray(share)[sharp])
    assert set(x.ravel()) == {0.0, 1.0}
    np.testing.assert_allclose(x.mean(0), 0.5, atol=4.5 * 0.5 / np.sqrt(len(x)))
    changed = (np.diff(x, axis=1) != 0).mean(0)
    np.testing.assert_allclose(changed, 0.2, atol=4.5 * 0.4 / np.sqrt(len(x)))
    assert np.std(noise) == pytest.approx(0.499, rel=4.5 / np.sqrt(2 * 4000))


def test_random_machines_and_graphs_have_the_weights_that_they_state():
    """A second degree than the one elsewhere: 1/degree is told from 1/√degree."""
    machine = energies.random_rbm(KEY, visible=90, hidden=60)
    assert np.var(machine.weights) == pytest.approx(0.05, rel=4.5 * np.sqrt(2 / 5400))
    for bias in (machine.visible_bias, machine.hidden_bias):
        assert np.std(bias) == pytest.approx(1, rel=4.5 / np.sqrt(2 * len(bias)))
    for degree in (2.0, 9.0):
        found = np.asarray(energies.random_graph_couplings(KEY, 80, degree))
        present = found[np.triu_indices(80, 1)] != 0
        assert present.mean() == pytest.approx(degree / 80, rel=4.5 / np.sqrt(3160 * degree / 80))
        weights = found[np.triu_indices(80, 1)][present]
        assert np.var(weights) == pytest.approx(1 / degree, rel=4.5 * np.sqrt(2 / len(weights)))


def test_the_base_of_a_deep_energy_is_normalised_and_smoothed():
    """Pixels are 1 with probability mean (1 − 2ε) + ε: never 0, never 1."""
    images = np.zeros((5, 2, 2), np.float32)
    images[:, 0, 1], images[:2, 1, 0] = 1, 1
    base = np.asarray(energies.base_logits(jnp.asarray(images), smoothing=0.05))
    np.testing.assert_allclose(1 / (1 + np.exp(-base)), [[0.05, 0.95], [0.41, 0.05]], rtol=1e-4)
    every = states((2, 2)).astype(np.float32)
    model = energies.ConvolutionalEnergy(KEY, jnp.asarray(base), channels=3)
    model = eqx.tree_at(lambda m: (m.readout, m.biases), model, (jnp.arange(1.0, 4), jnp.full((2, 3), 0.3)))
    fixed = eqx.filter_jit(eqx.filter_grad(lambda m, x: m(x)))(model, every[5]).base
    np.testing.assert_array_equal(fixed, 0)  # the base is given, not learned
    alone = lambda x: convolutional.base_logdensity(jnp.asarray(base), x)  # noqa: E731
    density, f = map(np.asarray, jax.jit(lambda x: (jax.vmap(alone)(x), jax.vmap(model)(x)))(every))
    assert np.exp(density.astype(np.float64)).sum() == pytest.approx(1, rel=1e-5)

    def layer(h, kernel, bias, stride):
        """A convolution of 3 x 3 with zeros around, place by place, and SiLU."""
        side, kernel = h.shape[0], np.asarray(kernel, np.float64)
        found = np.zeros((-(-side // stride),) * 2 + (kernel.shape[-1],))
        for i, j in np.ndindex(found.shape[:2]):
            for a, b in np.ndindex(3, 3):
                r, c = stride * i + a - 1, stride * j + b - 1
                if 0 <= r < side and 0 <= c < side:
                    found[i, j] += h[r, c] @ kernel[a, b]
        found += bias
        return found / (1 + np.exp(-found))

    for x, value, base_alone in zip(every, f, density, strict=True):
        h = layer(layer(2.0 * x[:, :, None] - 1, model.first, 0.3, 1), model.second, 0.3, 2)
        assert value == pytest.approx(base_alone + (h @ [1, 2, 3]).sum(), rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("correlation", [-0.6, 0.0, 0.45])
def test_a_gaussian_has_the_covariance_that_it_states(correlation):
    target = GaussianTarget(4, correlation)
    covariance = [[correlation ** abs(i - j) for j in range(4)] for i in range(4)]
    np.testing.assert_allclose(target.covariance, covariance, atol=1e-6)
    np.testing.assert_array_equal(target.mean, np.zeros(4))
    x = np.array([0.3, -1.0, 2.0, 0.5])
    expected = -x @ np.linalg.solve(covariance, x) / 2
    assert float(target.logdensity(jnp.asarray(x, jnp.float32))) == pytest.approx(expected, rel=1e-4)
    outside = np.abs(np.subtract.outer(range(4), range(4))) > 1
    np.testing.assert_allclose(np.asarray(target.precision)[outside], 0, atol=1e-6)
