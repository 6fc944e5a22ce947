"""Settings take effect: Gibbs steps, temperatures, fields, tolerances and factors."""

import itertools
import re

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from laureate import memory
from laureate._core import Status
from laureate.memory import BoltzmannMachine, HopfieldNetwork, store, to_boltzmann_machine


class Turning:
    """A kernel whose every step turns all spins."""

    def __init__(self, machine):
        del machine

    def init(self, position):
        return memory.SpinState(position)

    def step(self, key, state):
        del key
        return memory.SpinState(-state.position), None


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_chains_are_moved_as_often_as_asked(monkeypatch, steps):
    monkeypatch.setattr("laureate.memory.contrastive.LayerGibbs", Turning)
    machine = BoltzmannMachine(jnp.full((3, 1), 0.1), jnp.zeros(3), jnp.zeros(1))
    chains = jnp.array([[1.0, -1, 1], [1, 1, 1]])
    trainer = memory.ContrastiveDivergence(optax.sgd(0.1), num_steps=steps)
    state, _ = trainer.update(jax.random.key(0), trainer.init(machine, chains), chains)
    np.testing.assert_array_equal(state.chains, chains * (-1) ** steps)


def test_an_update_by_hand(monkeypatch):
    """With chains that are turned and not drawn the gradient is NumPy's: -β ∇F of the data less that of the chains."""
    monkeypatch.setattr("laureate.memory.contrastive.LayerGibbs", Turning)
    rng = np.random.default_rng(0)
    weights, visible, hidden = rng.normal(size=(4, 2)), rng.normal(size=4), rng.normal(size=2)
    data, chains = (rng.choice([-1.0, 1.0], (rows, 4)) for rows in (3, 2))
    trainer = memory.ContrastiveDivergence(optax.sgd(0.5))
    machine = BoltzmannMachine(*(jnp.asarray(x, jnp.float32) for x in (weights, visible, hidden)), beta=0.7)
    start, update = trainer.init(machine, jnp.asarray(chains, jnp.float32)), jax.jit(trainer.update)
    state, info = update(jax.random.key(0), start, data)

    def means(spins):
        """Of F and of its slopes with respect to W, b and c."""
        mean = spins @ weights + hidden
        energy = -0.5 * (mean**2).sum(1) - spins @ visible
        return energy.mean(), -spins.T @ mean / len(spins), -spins.mean(0), -mean.mean(0)

    gap, *slopes = (0.7 * (one - two) for one, two in zip(means(data), means(-chains), strict=True))
    assert float(info.gap) == pytest.approx(gap, rel=1e-4)
    assert float(info.gradient_norm) == pytest.approx(np.sqrt(sum((slope**2).sum() for slope in slopes)), rel=1e-4)
    assert (int(info.cost), int(info.status)) == (4, 0)
    found = state.machine.weights, state.machine.visible_bias, state.machine.hidden_bias
    for after, before, slope in zip(found, (weights, visible, hidden), slopes, strict=True):
        np.testing.assert_allclose(after, before - 0.5 * slope, atol=1e-5)
    np.testing.assert_array_equal(state.chains, -chains)
    for wrong in (0.0, np.nan):  # in a program nothing can be raised
        data[0, 0] = wrong
        assert int(update(jax.random.key(0), start, data)[1].status) == Status.DIVERGED


def test_every_update_has_rows_and_a_key_of_its_own():
    class Spy:
        def update(self, key, state, rows):
            return state, (jax.random.key_data(key), rows, jax.random.randint(key, (4,), 0, 8))

    data = np.array(list(itertools.product([-1.0, 1.0], repeat=3)))
    machine = BoltzmannMachine(jnp.zeros((3, 1)), jnp.zeros(3), jnp.zeros(1))
    state = memory.ContrastiveDivergence(optax.sgd(0.1)).init(machine)
    run = jax.jit(lambda key, data: memory.train(key, Spy(), state, data, 20, 4)[1])
    keys, batches, others = map(np.asarray, run(jax.random.key(0), data))
    chosen = ((batches + 1) / 2) @ [4, 2, 1]  # the number of each row
    assert len({tuple(key) for key in keys.tolist()}) == len({tuple(rows) for rows in chosen.tolist()}) == 20
    assert set(chosen.ravel()) == set(range(8))
    assert (chosen != others).any(1).all()  # the rows are not drawn with the key that moves the chains


def test_all_configurations_count():
    """The constant and the likelihood of a machine with fields against NumPy's sums."""
    rng = np.random.default_rng(1)
    parts = [0.5 * rng.normal(size=shape) for shape in ((5, 2), 5, 2)]
    machine = BoltzmannMachine(*(jnp.asarray(part, jnp.float32) for part in parts), beta=1.3)
    data = rng.choice([-1.0, 1.0], (3, 5))
    every = jax.jit(
        lambda data: (memory.all_spins(5), memory.log_partition(machine), memory.log_likelihood(machine, data))
    )
    spins, constant, likelihood = every(jnp.asarray(data, jnp.float32))
    weights, visible, hidden = parts
    log_weight = lambda s: 1.3 * (0.5 * ((s @ weights + hidden) ** 2).sum(1) + s @ visible)  # noqa: E731
    wanted = sorted(itertools.product([-1.0, 1.0], repeat=5))
    assert sorted(map(tuple, spins.tolist())) == wanted
    exact = np.logaddexp.reduce(log_weight(np.array(wanted)))
    assert float(constant) == pytest.approx(exact, rel=1e-5)
    assert float(likelihood) == pytest.approx(log_weight(data).mean() - exact, rel=1e-4)


def test_configurations_are_visited_4096_at_a_time():
    """Neither one by one nor all at once, for which a large machine has no memory."""
    machine = BoltzmannMachine(jnp.zeros((13, 1)), jnp.zeros(13), jnp.zeros(1))
    loops = re.findall(r"length=(\d+)", str(jax.make_jaxpr(lambda: memory.log_partition(machine))()))
    assert loops == ["2"]


def test_annealing_is_exact_without_couplings_and_right_on_average_with_few_temperatures():
    """At temperatures far from one, too. Of three couplings the first is nought and the last the machine's own, so that
    the weights depend on what a chain begins with and on a move half-way: E[w] = Z/Z₀ holds only if both are right."""
    visible, hidden, betas = np.array([0.3, -0.6, 0.4, 0.5]), np.array([0.9, -0.5]), np.array([0.2, 1.3, 5.0])
    weights = 0.6 * np.array([[0.7, 0.1], [-0.6, 0.3], [0.5, 0.4], [0.2, -0.6]])

    def annealed(coupled, beta):
        # Biases and weights over √β: every temperature has as much to anneal.
        parts = (jnp.asarray(part, jnp.float32) for part in (coupled * weights, visible, hidden))
        machine = BoltzmannMachine(*(part * beta**-0.5 for part in parts), beta=beta)
        return memory.annealed_log_partition(jax.random.key(0), machine, 1000, 3)

    run = jax.jit(jax.vmap(annealed, (None, 0)))
    given = jnp.asarray(betas, jnp.float32)
    apart, found = (jax.device_get(run(coupled, given)) for coupled in (0.0, 1.0))
    spins = np.array(list(itertools.product([-1.0, 1.0], repeat=4)))
    for number, beta in enumerate(betas):
        free = np.log(2 * np.cosh(beta**0.5 * visible)).sum() + 0.5 * hidden @ hidden
        assert float(apart.log_partition[number]) == pytest.approx(free, rel=1e-5)
        exact = np.logaddexp.reduce(0.5 * ((spins @ weights + hidden) ** 2).sum(1) + beta**0.5 * spins @ visible)
        error = float(found.standard_error[number])
        assert abs(float(found.log_partition[number]) - exact) < 4 * error
        assert 0.01 < error < 0.03
        # (Σw)²/Σw² = n/(1 + cv²), and the error is cv/√n: one follows from the other.
        assert float(found.effective[number]) == pytest.approx(1000 / (1 + 999 * error**2), rel=1e-3)
    assert (apart.standard_error == 0).all()
    assert (apart.effective == 1000).all()
    assert not apart.status.any()
    assert (found.cost == 2 * 1000 * 2).all()


@pytest.mark.slow  # test_annealing_agrees_with_enumeration_also_with_fields
def test_annealing_is_right_on_average_with_three_temperatures():
    """Few temperatures and many chains: E[w] = Z/Z₀ holds only if a chain moves at the temperature it has reached."""
    with jax.enable_x64(True):
        weights = 0.8 * jnp.array([[0.7, 0.1], [-0.6, 0.3], [0.5, 0.4], [0.2, -0.6], [0.4, 0.5]])
        machine = BoltzmannMachine(weights, jnp.array([0.3, -0.2, 0.1, 0.4, 0.0]), jnp.array([0.3, -0.2]), 1.3)
        found = jax.jit(lambda key: memory.annealed_log_partition(key, machine, 100_000, 3))(jax.random.key(0))
        assert float(found.standard_error) < 0.01
        assert abs(float(found.log_partition - memory.log_partition(machine))) < 4 * float(found.standard_error)


def test_hidden_units_have_the_mean_and_the_deviation_of_their_layer():
    """h ~ N(Wᵀs + c, 1/β), then each spin is up with σ(2β (Wh + b)): within five standard errors of 4000 draws."""
    weights, visible, hidden, beta = np.array([[0.8], [-0.5]]), np.array([0.2, -0.3]), np.array([0.4]), 0.3
    machine = BoltzmannMachine(*(jnp.asarray(part, jnp.float32) for part in (weights, visible, hidden)), beta=beta)
    kernel, start, draws = memory.LayerGibbs(machine), np.array([1.0, -1.0]), 4000
    step = jax.vmap(lambda key: kernel.step(key, memory.SpinState(jnp.asarray(start, jnp.float32))))
    state, info = jax.device_get(jax.jit(lambda key: step(jax.random.split(key, draws)))(jax.random.key(0)))
    drawn = info.hidden[:, 0].astype(np.float64)
    assert abs(drawn.mean() - (start @ weights + hidden)[0]) < 5 / np.sqrt(beta * draws)
    assert drawn.var() * beta == pytest.approx(1, abs=5 * np.sqrt(2 / draws))
    up = 1 / (1 + np.exp(-2 * beta * (info.hidden @ weights.T + visible)))
    assert np.all(np.abs((state.position > 0).mean(0) - up.mean(0)) < 5 * np.sqrt(0.25 / draws))


def test_a_unit_holds_itself_only_where_the_diagonal_is_kept():
    network = HopfieldNetwork(jnp.array([[2.0, -1], [-1, 2]]), jnp.zeros(2))
    recall = lambda keep: memory.recall(  # noqa: E731
        jax.random.key(0), network, jnp.ones(2), mode="sync", keep_diagonal=keep, max_sweeps=1
    )[0]
    free, held = jax.jit(lambda: (recall(False), recall(True)))()
    assert (free.tolist(), held.tolist()) == ([-1, -1], [1, 1])


@pytest.mark.parametrize("mode", ["async", "sync"])
def test_a_unit_moves_with_its_field_and_stays_where_that_is_nought_but_for_rounding(mode):
    """0.1 + 0.2 - 0.3 need not be 0 in floating point: the first unit has no more reason to move than the next."""
    couplings = np.zeros((9, 9))
    couplings[0, 6:] = couplings[6:, 0] = [0.1, 0.2, 1e-7 - 0.3]
    field = [0, 0, 2e-8, -2e-8, 1e-4, -1e-4, 1, 1, 1]
    network = HopfieldNetwork(jnp.asarray(couplings, jnp.float32), jnp.asarray(field, jnp.float32))
    for spin in (1, -1):
        start = jnp.asarray([spin] * 6 + [1] * 3, jnp.float32)
        found, info = memory.recall(jax.random.key(0), network, start, mode=mode)
        assert found.tolist() == [spin] * 4 + [1, -1, 1, 1, 1]
        assert (int(info.status), int(info.num_sweeps)) == (0, 2)


def test_a_unit_sees_the_units_that_moved_before_it_in_the_same_sweep():
    """Of two units that want to differ one moves, and then the other has no reason to."""
    swap = HopfieldNetwork(jnp.array([[0.0, -1], [-1, 0]]), jnp.zeros(2))
    found, info = memory.recall(jax.random.key(0), swap, jnp.ones(2), max_sweeps=9)
    assert float(found @ jnp.ones(2)) == 0
    assert int(info.status) == 0


def test_binary_is_the_share_of_entries_within_a_tenth():
    machine = BoltzmannMachine(jnp.eye(5), jnp.zeros(5), jnp.zeros(5))
    found, info = memory.reverse_patterns(jax.random.key(0), machine, 40, learning_rate=1e-9, num_steps=1)
    distance = np.abs(np.abs(np.asarray(found)) - 1)  # all but where the search began: uniform in [0, 1]
    np.testing.assert_allclose(info.binary, (distance < 0.1).mean(1), atol=1e-6)
    assert 0 < float(info.binary.mean()) < 0.3
    np.testing.assert_allclose(info.residual, (distance**2).mean(1), rtol=1e-5)


def test_a_search_has_converged_where_all_patterns_are_binary_and_not_where_some_are():
    machine = BoltzmannMachine(jnp.ones((1, 1)), jnp.zeros(1), jnp.zeros(1))
    search = jax.jit(lambda rate: memory.reverse_patterns(jax.random.key(0), machine, 40, 200.0, rate, 100)[1])
    some, every = search(0.0), search(0.05)
    assert 0 < int(some.binary.sum()) < 40
    assert int(some.status) == 2
    assert float(every.binary.min()) == 1
    assert (int(every.status), int(every.cost)) == (0, 100)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("threshold", [None, 0.0, -0.5])
def test_features_are_of_rows_above_the_threshold_or_the_mean_of_their_columns(kind, threshold):
    rows = np.random.default_rng(2).gamma(2.0, size=(30, 6)).astype(kind) - 1
    rows[::3, 2] = threshold or 0.0  # not above it
    labels = np.arange(30) % 2
    features = memory.HopfieldFeatures(threshold=threshold).fit(rows, labels)
    level = rows.mean(0) if threshold is None else np.full(6, threshold)
    np.testing.assert_allclose(features.threshold_, level, rtol=1e-5, atol=1e-12)
    spins = np.where(rows > level, 1.0, -1.0)
    np.testing.assert_array_equal(features.patterns_, memory.class_patterns(spins, labels))
    found = features.transform(rows)
    np.testing.assert_allclose(found, spins @ features.weights_, rtol=1e-5, atol=1e-6)
    assert found.dtype == features.weights_.dtype == kind


def test_features_have_the_factor_asked_for():
    rows = np.random.default_rng(0).choice([-1.0, 1.0], (12, 7))
    labels = np.arange(12) % 3
    made = {f: memory.HopfieldFeatures(threshold=0.0, factor=f).fit(rows, labels) for f in ("qr", "lowdin")}
    for factor, features in made.items():
        wanted = to_boltzmann_machine(store(features.patterns_), factor=factor).weights
        np.testing.assert_allclose(features.weights_, wanted, atol=1e-6)
    assert np.abs(made["qr"].weights_ - made["lowdin"].weights_).max() > 0.01
