"""Energies against their exact quantities, and estimators against enumeration."""

import functools
import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from laureate._core import Status
from laureate.problems.energies import (
    ConvolutionalEnergy,
    DenseIsing,
    DensePotts,
    IsingLattice,
    PottsLattice,
    base_logdensity,
    base_logits,
    lattice_energy_per_edge,
    lattice_log_partition,
    lattice_matrix,
    random_factorial_hmm,
    random_rbm,
)
from laureate.sampling import (
    Binary,
    Gibbs,
    GibbsWithGradients,
    LocallyInformed,
    ParallelTempering,
    PathAuxiliary,
    PersistentContrastiveDivergence,
    annealed_importance_sampling,
    mixing,
    run,
)


def log_sum_over(energy, shape):
    states = np.array(list(itertools.product([0.0, 1.0], repeat=int(np.prod(shape))))).reshape(-1, *shape)
    return float(jax.nn.logsumexp(jax.lax.map(energy, jnp.asarray(states), batch_size=4096)))


def test_transfer_matrix_agrees_with_brute_force_and_with_the_constants_computed_before():
    for sigma in (0.1, 0.25):
        assert lattice_log_partition(3, sigma) == pytest.approx(log_sum_over(IsingLattice(3, sigma), (3, 3)), rel=1e-6)
    assert lattice_log_partition(4, 0.1) == pytest.approx(11.7714704, abs=1e-7)
    assert lattice_log_partition(8, 0.1) == pytest.approx(lattice_log_partition(8, -0.1), abs=1e-9)
    assert lattice_energy_per_edge(8, 0.0) == pytest.approx(0.0, abs=1e-9)
    with pytest.raises(ValueError, match=r"side must be in 3\.\.12; got 13"):
        lattice_log_partition(13, 0.1)


@pytest.mark.slow
def test_transfer_matrix_of_ten_by_ten():
    assert lattice_log_partition(10, 0.1) == pytest.approx(73.4530978, abs=1e-7)
    assert lattice_log_partition(10, 0.2) == pytest.approx(88.1877006, abs=1e-7)
    assert lattice_energy_per_edge(10, 0.1) == pytest.approx(0.2141198, abs=1e-6)
    assert lattice_energy_per_edge(10, 0.2) == pytest.approx(0.5925507, abs=1e-6)


def test_lattice_and_dense_ising_follow_one_convention():
    """f = sᵀJs counts an edge twice: the coupling is 2σ. A diagonal of J changes neither f's differences nor d̃."""
    x = jax.random.bernoulli(jax.random.key(0), 0.5, (4, 4)).astype(float)
    dense = DenseIsing(jnp.asarray(lattice_matrix(4, 0.15)), jnp.full(16, 0.1))
    lattice = IsingLattice(4, 0.15, 0.1)
    assert float(dense(x.reshape(-1))) == pytest.approx(float(lattice(x)), rel=1e-5)
    gradient = jax.grad(dense)(x.reshape(-1))
    diagonal = eqx.tree_at(lambda e: e.couplings, dense, dense.couplings + 3 * jnp.eye(16))
    np.testing.assert_allclose(jax.grad(diagonal)(x.reshape(-1)), gradient, rtol=1e-6)


@pytest.mark.slow
def test_local_differences_are_the_energies_differences():
    ising, potts = IsingLattice(4, 0.2, 0.3), PottsLattice(4, 3, 0.6)
    x = ising.start(jax.random.key(0)).reshape(-1)
    z = potts.start(jax.random.key(1)).reshape(-1)
    for site in range(16):
        flipped = x.at[site].set(~x[site])
        change = ising(flipped.reshape(4, 4).astype(float)) - ising(x.reshape(4, 4).astype(float))
        assert float(ising.site_differences(lambda i: x[i], jnp.int32(site))[0]) == pytest.approx(
            float(change), abs=1e-5
        )
        d = potts.site_differences(lambda i: z[i], jnp.int32(site))
        for kind in range(3):
            moved = z.at[site].set(kind)
            change = potts(jax.nn.one_hot(moved.reshape(4, 4), 3)) - potts(jax.nn.one_hot(z.reshape(4, 4), 3))
            if kind != int(z[site]):
                assert float(d[kind]) == pytest.approx(float(change), abs=1e-5)


def test_dense_potts_ignores_a_coupling_of_a_site_to_itself():
    rng = np.random.default_rng(0)
    model = DensePotts(jnp.asarray(rng.normal(size=(3, 2, 3, 2))), jnp.zeros((3, 2)))
    own = jnp.zeros((3, 2, 3, 2)).at[jnp.arange(3), 0, jnp.arange(3), 1].set(7.0)
    x = jax.nn.one_hot(jnp.array([0, 1, 1]), 2)
    assert float(eqx.tree_at(lambda m: m.couplings, model, model.couplings + own)(x)) == pytest.approx(float(model(x)))


@pytest.mark.slow
def test_rbm_partition_and_hmm_evidence_agree_with_enumeration():
    rbm = random_rbm(jax.random.key(0), visible=8, hidden=5)
    assert float(rbm.log_partition()) == pytest.approx(log_sum_over(rbm, (8,)), rel=1e-5)
    hmm = random_factorial_hmm(jax.random.key(1), chains=2, steps=4)
    assert float(hmm.log_evidence()) == pytest.approx(log_sum_over(hmm, (4, 2)), rel=1e-5)
    with pytest.raises(ValueError, match="at most 20 hidden units; got 25"):
        random_rbm(jax.random.key(0)).log_partition()


@pytest.mark.parametrize(
    ("energy", "values", "shape"),
    [
        pytest.param(IsingLattice(2, 0.2, 0.3), 2, (2, 2), id="ising"),
        pytest.param(PottsLattice(2, 3, 0.4), 3, (2, 2), id="potts", marks=pytest.mark.slow),
        pytest.param(random_rbm(jax.random.key(2), visible=5, hidden=3), 2, (5,), id="rbm", marks=pytest.mark.slow),
    ],
)
def test_sweeps_of_the_energies_own_samplers_draw_from_them(energy, values, shape):
    """What trials take as data and reference; the 2 x 2 torus joins a pair twice, in f and in the sweep alike."""
    states = np.array(list(itertools.product(range(values), repeat=int(np.prod(shape))))).reshape(-1, *shape)
    relaxed = jax.nn.one_hot(states, values) if values > 2 else jnp.asarray(states, float)
    exact = np.asarray(jax.nn.softmax(jax.vmap(energy)(relaxed)))
    draws = 20_000

    @jax.jit
    def ends(keys):
        def one(key):
            sweep = lambda i, x: energy.sweep(jax.random.fold_in(key, i), x)  # noqa: E731
            return jax.lax.fori_loop(0, 40, sweep, energy.start(key))

        return jax.vmap(one)(keys)

    found = np.asarray(ends(jax.random.split(jax.random.key(0), draws))).reshape(draws, -1).astype(int)
    observed = np.bincount(found @ values ** np.arange(found.shape[1])[::-1], minlength=len(states))
    expected = draws * exact
    cells = expected > 5
    chi = ((observed - expected)[cells] ** 2 / expected[cells]).sum()
    assert chi < cells.sum() + 6 * np.sqrt(2 * cells.sum())


def test_convolutional_energy_is_base_plus_two_convolutions():
    """Against XLA's own convolution; at first the model is nearly its base, whose density is normalised."""
    images = jax.random.bernoulli(jax.random.key(1), 0.3, (50, 6, 6)).astype(float)
    base = base_logits(images)
    energy = ConvolutionalEnergy(jax.random.key(0), base, channels=4)
    energy = eqx.tree_at(lambda e: (e.readout, e.biases), energy, (jnp.arange(1.0, 5.0), jnp.full((2, 4), 0.3)))

    def layer(h, weights, stride):
        layout = ("NHWC", "HWIO", "NHWC")
        padding = [(1, 1), (1, 1)]
        return jax.lax.conv_general_dilated(h, weights, (stride, stride), padding, dimension_numbers=layout)

    h = jax.nn.silu(layer(2 * images[:, :, :, None] - 1, energy.first, 1) + 0.3)
    h = jax.nn.silu(layer(h, energy.second, 2) + 0.3)
    alone = np.asarray(jax.vmap(lambda x: base_logdensity(base, x))(images))
    expected = alone + np.asarray(jnp.sum(h @ energy.readout, axis=(1, 2)))
    np.testing.assert_allclose(jax.vmap(energy)(images), expected, rtol=1e-4, atol=1e-3)
    small = base_logits(images[:, :3, :3])
    total = log_sum_over(lambda x: base_logdensity(small, x), (3, 3))
    assert total == pytest.approx(0.0, abs=1e-5)
    # Fixed: the base is not trained.
    gradient = eqx.filter_grad(lambda e: e(images[0]))(energy)
    assert float(jnp.abs(gradient.base).max()) == 0.0
    assert float(jnp.abs(gradient.first).max()) > 0.0


def test_annealed_importance_weights_are_unbiased():
    """E[w] = Z/Z_0 also with few temperatures, where log w is far off: the mean weight, not its log, is compared."""
    rbm = random_rbm(jax.random.key(0), visible=6, hidden=4)
    log_z = float(rbm.log_partition())

    def estimate(key, betas):
        return annealed_importance_sampling(
            key,
            GibbsWithGradients(rbm, Binary()),
            lambda v: jnp.sum(0.0 * v) - 6 * jnp.log(2.0),
            lambda k: jax.random.bernoulli(k, 0.5, (6,)),
            betas,
            num_chains=4000,
        )

    for count in (4, 30):
        result = jax.jit(estimate)(jax.random.key(count), jnp.linspace(0.0, 1.0, count))
        assert float(result.standard_error) < 0.2
        ratio = float(jnp.exp(result.log_ratio - log_z))
        assert abs(ratio - 1) < 4 * float(result.standard_error) * ratio
        assert int(result.cost) == 4000 * 3 * (count - 1)  # weight, start and step
        weights = np.exp(np.asarray(result.log_weights, float))
        recomputed = [np.log(weights.mean()), weights.std(ddof=1) / (weights.mean() * np.sqrt(4000))]
        recomputed += [weights.sum() ** 2 / (weights**2).sum()]
        np.testing.assert_allclose([result.log_ratio, result.standard_error, result.effective], recomputed, rtol=1e-4)
        assert int(result.status) == 0
    assert float(result.effective) > 1000
    assert int(result.status) == Status.OK
    broken = jax.jit(estimate)(jax.random.key(1), jnp.linspace(0.0, 1.0, 30).at[5].set(jnp.nan))
    assert int(broken.status) == Status.NOT_CONVERGED, "weights that are NaN are not OK"
    with pytest.raises(ValueError, match="betas must be rising from 0 to 1"):
        estimate(jax.random.key(0), jnp.array([0.0, 0.5]))


def test_annealing_tells_how_often_it_evaluates():
    """Each evaluation is counted where it happens."""
    seen = []

    def logdensity(x):
        jax.debug.callback(seen.append, x)  # once an element of a batch
        return jnp.sum(x)

    base, draw = (lambda x: 0.0 * jnp.sum(x)), (lambda key: jnp.zeros(2, bool))
    kernel = LocallyInformed(logdensity, Binary())
    settings = {"betas": np.linspace(0, 1, 3), "num_chains": 2, "steps_per_beta": 2}
    anneal = jax.jit(lambda key: annealed_importance_sampling(key, kernel, base, draw, **settings))
    cost = int(anneal(jax.random.key(0)).cost)
    jax.effects_barrier()
    assert cost == len(seen) == 2 * 2 * (1 + 3 + 2 * 3)  # chains, temperatures; weight, start, two steps


@pytest.mark.slow
def test_energy_per_edge_of_a_lattice():
    """Means along the chain against the transfer matrix, within four Monte Carlo standard errors, for two samplers."""
    lattice = IsingLattice(6, 0.15)
    exact = lattice_energy_per_edge(6, 0.15)
    start = jax.vmap(lattice.start)(jax.random.split(jax.random.key(0), 16))
    for kernel in (GibbsWithGradients(lattice, Binary()), Gibbs(lattice, Binary())):
        collect = _edge_energy
        result = run(jax.random.key(1), kernel, start, 6000, thin=5, collect=collect)
        trace = jnp.asarray(result.samples[:, 200:])
        error = jnp.std(trace) / jnp.sqrt(mixing(trace).effective)
        assert float(error) < 0.02
        assert abs(float(trace.mean()) - exact) < 4 * float(error)
        assert float(mixing(trace).r_hat) < 1.1


def _edge_energy(state, info):
    return IsingLattice(6).edge_energy(state.position)


def test_parallel_tempering_swaps_by_the_right_ratio_and_crosses_a_valley():
    """Two modes that a single cold chain does not leave; the hot replicas do. Both modes must get their weight."""

    def two_modes(x):
        return 2.5 * jnp.abs(2 * jnp.sum(x) - x.size) + 0.4 * (jnp.sum(x) > x.size / 2)

    kernel = GibbsWithGradients(two_modes, Binary(), lazy=0.1)
    ladder = ParallelTempering(kernel, jnp.array([1.0, 0.6, 0.35, 0.15]), steps_per_swap=2)
    f = jnp.array([3.0, 5.0, 5.5, 1.0])
    np.testing.assert_allclose(ladder.swap_log_ratio(f), [0.4 * 2.0, 0.25 * 0.5, 0.2 * -4.5], rtol=1e-5)
    walk = jax.jit(
        lambda key: jax.lax.scan(
            lambda s, k: (lambda new: (new[0], new[0].position.sum() > 5))(ladder.step(k, s)),
            ladder.init(jnp.zeros(10, bool)),
            jax.random.split(key, 4000),
        )[1]
    )
    traces = np.asarray(jax.vmap(walk)(jax.random.split(jax.random.key(0), 8)))[:, 400:]
    share = float(np.mean(traces))
    states = np.array(list(itertools.product([0.0, 1.0], repeat=10)))
    weights = np.asarray(jax.nn.softmax(jax.vmap(two_modes)(jnp.asarray(states))))
    exact = weights[states.sum(axis=1) > 5].sum()
    error = traces.std() / np.sqrt(float(mixing(jnp.asarray(traces, float)).effective))
    assert error < 0.05
    assert abs(share - exact) < 4 * error


class Coins(eqx.Module):
    biases: jax.Array

    def __call__(self, x):
        return self.biases @ x


def _gwg(energy):
    return GibbsWithGradients(energy, Binary(), num_flips=3)


def test_contrastive_divergence_finds_the_maximum_likelihood_and_resumes_from_its_state():
    """Independent coins: the fit is the logit of the data's mean. Twice ten updates are twenty: the buffer is state."""
    means = np.array([0.2, 0.5, 0.8, 0.65])
    data = jnp.asarray(np.random.default_rng(0).random((1000, 4)) < means)
    trainer = PersistentContrastiveDivergence(_gwg, optax.adam(0.02), num_steps=6)
    state = trainer.init(Coins(jnp.zeros(4)), jnp.zeros((500, 4), bool))

    @jax.jit
    def train(state, first):
        def one(state, step):
            state, info = trainer.update(jax.random.fold_in(jax.random.key(0), step), state, data)
            return state, (state.energy.biases, info.cost)

        return jax.lax.scan(one, state, first + jnp.arange(150))

    halfway, _ = train(state, 0)
    final, (biases, cost) = train(halfway, 150)
    assert (np.asarray(cost) == 500 * 6).all()  # of all chains together
    again, _ = train(jax.tree.map(lambda leaf: jnp.array(leaf), halfway), 150)
    np.testing.assert_array_equal(final.buffer, again.buffer)
    stale, _ = train(halfway._replace(buffer=state.buffer), 150)
    assert not np.array_equal(final.buffer, stale.buffer)
    exact = np.log(data.mean(axis=0) / (1 - data.mean(axis=0)))
    # 500 chains: a coin's mean has a standard error of 0.022, its logit at most six times that; we average 50 fits.
    np.testing.assert_allclose(biases[-50:].mean(axis=0), exact, atol=0.15)


def test_one_contrastive_update_by_hand():
    """Part of the buffer, two steps a chain, a rate and a penalty: every number that an update gives, recomputed."""
    biases, rate = np.array([0.3, -0.8, 0.0, 1.1], np.float32), 0.5
    penalty = lambda energy: 0.1 * jnp.sum(energy.biases**2)  # noqa: E731
    trainer = PersistentContrastiveDivergence(_gwg, optax.sgd(rate), num_steps=2, num_chains=3, penalty=penalty)
    buffer = np.random.default_rng(0).random((6, 4)) < 0.5
    data = np.random.default_rng(1).random((5, 4)) < 0.7
    state, key = trainer.init(Coins(jnp.asarray(biases)), jnp.asarray(buffer)), jax.random.key(3)
    new, info = eqx.filter_jit(trainer.update)(key, state, jnp.asarray(data))
    pick, _, _, walk = jax.random.split(key, 4)
    chosen = np.asarray(jax.random.permutation(pick, 6)[:3])
    kernel = _gwg(Coins(jnp.asarray(biases)))
    begin, step = eqx.filter_jit(kernel.init), eqx.filter_jit(kernel.step)
    expected, rates, costs = buffer.copy(), [], []
    for chain, chain_key in zip(chosen, jax.random.split(walk, 3), strict=True):
        chain_state = begin(jnp.asarray(buffer[chain]))
        for step_key in jax.random.split(chain_key, 2):
            chain_state, report = step(step_key, chain_state)
            rates.append(float(report.acceptance_rate))
            costs.append(int(report.cost))
        expected[chain] = chain_state.position
    np.testing.assert_array_equal(new.buffer, expected)
    assert not np.array_equal(expected, buffer)
    gradient = expected[chosen].mean(axis=0) - data.mean(axis=0) + 0.2 * biases
    np.testing.assert_allclose(new.energy.biases, biases - rate * gradient, atol=1e-6)
    gap = biases @ (data.mean(axis=0) - expected[chosen].mean(axis=0))
    np.testing.assert_allclose(info.energy_gap, gap, atol=1e-5)
    np.testing.assert_allclose(info.acceptance_rate, np.mean(rates), rtol=1e-5)
    np.testing.assert_allclose(info.gradient_norm, np.linalg.norm(gradient), rtol=1e-5)
    assert int(info.cost) == sum(costs)


def test_a_systematic_scan_comes_to_every_site_whoever_begins_the_chain_anew():
    """Of sites that go up as soon as they are looked at: annealing goes on where it was, training begins anywhere."""
    up, steps = np.full(4, 50.0, np.float32), 2
    scan = lambda energy: Gibbs(energy, Binary(), scan="systematic")  # noqa: E731
    trainer = PersistentContrastiveDivergence(scan, optax.sgd(0.0), num_steps=steps)

    @functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
    def both(energy):
        base, draw = (lambda x: 0.0 * jnp.sum(x)), (lambda key: jnp.zeros(4, bool))
        betas, buffer = np.linspace(0, 1, 3), jnp.zeros((40, 4), bool)
        annealed = annealed_importance_sampling(
            jax.random.key(0), scan(energy), base, draw, betas, num_chains=2, steps_per_beta=steps
        )
        moved, _ = trainer.update(jax.random.key(1), trainer.init(energy, buffer), buffer)
        return annealed.position, moved.buffer

    annealed, moved = jax.device_get(both(Coins(jnp.asarray(up))))
    assert annealed.all()
    # Each of four beginnings is that of ten chains: none in 40 has one in 100,000 runs.
    places = {tuple(np.flatnonzero(row)) for row in moved}
    assert places == {(0, 1), (1, 2), (2, 3), (0, 3)}


def test_a_path_length_is_adapted_step_by_step():
    """r ← r + acceptance − target, held inside its limits; frozen at the mean over the second half."""
    bias = jnp.asarray(np.random.default_rng(2).normal(size=6), jnp.float32)
    kernel = PathAuxiliary(Coins(bias), Binary(), path_length=2.0, max_length=3)
    start, key = kernel.init(jnp.zeros(6, bool)), jax.random.key(4)
    frozen, last = eqx.filter_jit(lambda key, state: kernel.adapt(key, state, 7, 0.3))(key, start)
    step = eqx.filter_jit(lambda key, state, r: eqx.tree_at(lambda k: k.path_length, kernel, r).step(key, state))
    state, length, lengths = start, 2.0, []
    for index in range(7):
        state, info = step(jax.random.fold_in(key, index), state, jnp.asarray(length))
        length = float(np.clip(length + float(info.acceptance_rate) - 0.3, 1.0, 3.0))
        lengths.append(length)
    np.testing.assert_allclose(frozen.path_length, np.mean(lengths[3:]), rtol=1e-5)
    np.testing.assert_array_equal(last.position, state.position)
    assert max(lengths) == 3.0  # the limit was met


@pytest.mark.slow
def test_replay_buffer_moves_only_the_chosen_chains_and_restarts_some():
    trainer = PersistentContrastiveDivergence(
        _gwg, optax.sgd(0.0), num_steps=1, num_chains=4, restart=1.0, sample_start=lambda key: jnp.ones(4, bool)
    )
    state = trainer.init(Coins(jnp.full(4, -9.0)), jnp.zeros((32, 4), bool))
    new, info = trainer.update(jax.random.key(0), state, jnp.zeros((2, 4), bool))
    touched = np.asarray(new.buffer).any(axis=1)
    assert touched.sum() == 4
    assert int(info.cost) == 4
    with pytest.raises(ValueError, match="sample_start must be a function where restart > 0"):
        PersistentContrastiveDivergence(_gwg, optax.sgd(0.0), restart=0.5)
