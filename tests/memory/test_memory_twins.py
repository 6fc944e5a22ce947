"""Two ways to one result: samplers of equal machines, sums in NumPy, arrays of other libraries."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from laureate import memory
from laureate._core import Status
from laureate.memory import BoltzmannMachine, HopfieldNetwork, store, to_boltzmann_machine, to_hopfield
from laureate.sampling import run

UNITS, HIDDEN, BETA = 6, 2, 0.4
WEIGHTS, VISIBLE, HIDDEN_BIAS = (
    np.random.default_rng(0).normal(size=shape) for shape in ((UNITS, HIDDEN), UNITS, HIDDEN)
)
MODES = ("async", "sync")
MACHINE = BoltzmannMachine(*(jnp.asarray(x, jnp.float32) for x in (WEIGHTS, VISIBLE, HIDDEN_BIAS)), beta=BETA)
NETWORK = to_hopfield(MACHINE)
TRAINER = memory.ContrastiveDivergence(optax.sgd(0.1))


def drawn(seed, *shape):
    """Spins."""
    return np.random.default_rng(seed).choice([-1, 1], shape)


def test_a_sweep_visits_the_spins_in_order_with_the_fields_of_those_before_it():
    """With all biases, and from the same uniform numbers: of the network, of the machine without its hidden units, and
    in NumPy. Each says how many multiplications that were."""
    starts = drawn(1, 20, UNITS).astype(float)
    kernels = memory.SpinGibbs(NETWORK, beta=BETA), memory.LowRankSpinGibbs(MACHINE), memory.LayerGibbs(MACHINE)

    @jax.jit
    def run(key, starts):
        keys = jax.random.split(key, len(starts))
        uniforms = jax.vmap(lambda key: jax.random.uniform(key, (UNITS,)))(keys)
        return uniforms, [jax.vmap(lambda key, s, k=k: k.step(key, k.init(s)))(keys, starts) for k in kernels]

    uniforms, found = jax.device_get(run(jax.random.key(1), starts))
    couplings, field = WEIGHTS @ WEIGHTS.T, VISIBLE + WEIGHTS @ HIDDEN_BIAS
    wanted = starts.copy()
    for spins, u in zip(wanted, uniforms, strict=True):
        for i in range(UNITS):
            others = couplings[i] @ spins - couplings[i, i] * spins[i]
            spins[i] = 1 if u[i] < 1 / (1 + np.exp(-2 * BETA * (others + field[i]))) else -1
    assert (wanted != starts).any(0).all()
    for state, _ in found[:2]:
        np.testing.assert_array_equal(state.position, wanted)
    costs = 2 * UNITS * UNITS, 3 * UNITS * HIDDEN, 2 * UNITS * HIDDEN
    for (_, info), cost, hidden in zip(found, costs, (0, 0, HIDDEN), strict=True):
        assert (info.cost == cost).all()
        assert info.hidden.shape == (20, hidden)
        assert (info.acceptance_rate == 1).all()
        assert (info.status == Status.OK).all()


def test_the_constant_of_a_network_counts_its_field_and_its_diagonal():
    spins = np.array(list(itertools.product([-1.0, 1.0], repeat=UNITS)))
    couplings, field = np.asarray(NETWORK.couplings, float), np.asarray(NETWORK.field, float)
    energy = -0.5 * np.einsum("si,ij,sj->s", spins, couplings, spins) - spins @ field
    found = jax.jit(lambda beta: memory.log_partition(NETWORK, beta))(0.7)
    assert float(found) == pytest.approx(np.logaddexp.reduce(-0.7 * energy), rel=1e-5)
    with pytest.raises(ValueError, match=r"log_partition.beta must be left out for a BoltzmannMachine"):
        memory.log_partition(MACHINE, 2.0)


@pytest.mark.parametrize("units", [25, 1100, 100_000])
def test_too_many_units_to_visit_are_refused_however_many(units):
    assert jax.eval_shape(lambda: memory.all_spins(24)).shape == (2**24, 24)
    with pytest.raises(ValueError, match=rf"all_spins.num_units must be <= 24; got {units}\. .*annealed_log_partition"):
        memory.all_spins(units)


def test_weights_to_begin_with():
    """Hebb's are half of his rule, random ones have the size asked for, within five standard errors."""
    patterns = drawn(2, 3, 8)
    weights = memory.hebbian_weights(patterns)
    np.testing.assert_allclose(weights @ weights.T, store(patterns, rule="hebbian").couplings, atol=1e-6)
    random = np.asarray(memory.random_weights(jax.random.key(0), 40, 50, 0.3), float)
    assert random.shape == (40, 50)
    assert abs(random.std() / 0.3 - 1) < 5 / np.sqrt(2 * 2000)
    assert abs(random.mean()) < 5 * 0.3 / np.sqrt(2000)


def test_class_patterns_of_ties_and_of_clusters_as_many_as_rows():
    """A mean of nought counts as +1; as many clusters as rows, or more, are the rows, without copies and negatives."""
    rows = np.array([[1, 1, -1, 1], [1, -1, -1, -1], [-1, -1, 1, -1], [1, 1, 1, 1]])
    assert memory.class_patterns(rows[:2], [7, 7]).tolist() == [[1, 1, -1, 1]]
    assert memory.class_patterns(rows[:3], ["a", "b", "b"]).tolist() == [[1, 1, -1, 1], [1, -1, 1, -1]]
    for per_class in (4, 9):
        found = memory.class_patterns(rows, np.zeros(4), per_class)
        assert sorted((found * found[:, :1]).tolist()) == sorted(rows[[0, 1, 3]].tolist())


def test_a_recall_that_meets_no_number_is_not_sound():
    """A field that is NaN moves no unit, which must not look like peace."""
    couplings = np.zeros((4, 4), np.float32)
    broken = couplings.copy()
    broken[1, 2] = broken[2, 1] = np.nan
    field = np.array([1, 1, np.inf, 1], np.float32)

    @jax.jit
    def run(couplings, field):
        network = HopfieldNetwork(couplings, field)
        return [memory.recall(jax.random.key(0), network, jnp.ones(4), mode=mode)[1].status for mode in MODES]

    assert [int(status) for status in run(broken, np.ones(4, np.float32))] == [Status.DIVERGED] * 2
    assert [int(status) for status in run(couplings, field)] == [Status.DIVERGED] * 2
    assert [int(status) for status in run(couplings, np.ones(4, np.float32))] == [Status.OK] * 2


def test_a_search_for_patterns_is_gradient_descent_by_its_settings():
    """X ← X − η ∇‖WX − tanh(αWX)‖², from numbers uniform in [−1, 1]; three steps, in NumPy."""
    rate, alpha, key = 0.03, 2.5, jax.random.key(0)
    search = jax.jit(lambda: memory.reverse_patterns(key, MACHINE, 5, alpha, rate, 3))
    found, info = jax.device_get(search())
    mixing = np.asarray(jax.random.uniform(key, (HIDDEN, 5), minval=-1.0), float)
    for _ in range(3):
        image = WEIGHTS @ mixing
        bent = np.tanh(alpha * image)
        mixing = mixing - rate * 2 * WEIGHTS.T @ ((image - bent) * (1 - alpha * (1 - bent**2)))
    np.testing.assert_allclose(info.mixing, mixing, atol=1e-5)
    np.testing.assert_allclose(found, (WEIGHTS @ mixing).T, atol=1e-5)
    assert int(info.cost) == 3


def test_a_network_tells_what_it_stores_and_hands_its_field_on():
    patterns, field = drawn(7, 2, UNITS), np.linspace(-1, 1, UNITS)
    for rule in ("projection", "pseudo-inverse", "hebbian", "storkey"):
        network = store(patterns, rule=rule, field=field)
        np.testing.assert_array_equal(network.patterns, patterns)
        np.testing.assert_allclose(network.field, field, rtol=1e-6)
        assert network.rule == rule
        machine = to_boltzmann_machine(network, beta=0.3, factor="eigen")
        np.testing.assert_array_equal(machine.visible_bias, network.field)
        assert not np.asarray(machine.hidden_bias).any()
        assert machine.beta == 0.3
    assert not np.asarray(store(patterns).field).any()


KEY, DATA = jax.random.key(0), drawn(8, 5, UNITS)
ENDS = {
    "chains": lambda limit: memory.annealed_log_partition(KEY, MACHINE, 1 + limit, 2),
    "temperatures": lambda limit: memory.annealed_log_partition(KEY, MACHINE, 2, 1 + limit),
    "sweeps": lambda limit: memory.recall(KEY, NETWORK, DATA[0], max_sweeps=limit),
    "patterns": lambda limit: memory.reverse_patterns(KEY, MACHINE, limit, num_steps=1),
    "steps": lambda limit: memory.reverse_patterns(KEY, MACHINE, 1, num_steps=limit),
    "sharpness": lambda limit: memory.reverse_patterns(KEY, MACHINE, 1, float(limit), num_steps=1),
    "updates": lambda limit: memory.train(KEY, TRAINER, TRAINER.init(MACHINE), DATA, limit, 2),
    "no rows": lambda limit: memory.train(KEY, TRAINER, TRAINER.init(MACHINE), DATA, 1, limit),
    "all rows": lambda limit: memory.train(KEY, TRAINER, TRAINER.init(MACHINE), DATA, 1, 6 - limit),
    "directions": lambda limit: memory.principal_weights(DATA, 6 - limit),
    "clusters": lambda limit: memory.class_patterns(DATA, np.zeros(5), limit),
    "size": lambda limit: memory.random_weights(KEY, 2, 2, 0.5 * limit),
    "units": lambda limit: memory.all_spins(25 - limit),
    "gibbs steps": lambda limit: memory.ContrastiveDivergence(optax.sgd(0.1), num_steps=limit),
}


@pytest.mark.parametrize("name", ENDS)
def test_the_last_that_is_allowed_is_and_the_next_is_not(name):
    """Nothing is computed: what is known is checked while a program is traced."""
    found = []
    jax.eval_shape(lambda: found.append(ENDS[name](1)))
    assert len(found) == 1
    with pytest.raises(ValueError, match=" must be "):
        jax.eval_shape(lambda: found.append(ENDS[name](0)))


def test_an_estimate_that_hangs_on_one_chain_is_no_estimate():
    """Of two chains whose weights are far apart one counts; without couplings both do, which is enough."""

    @jax.jit
    def annealed(keys, size):
        machine = BoltzmannMachine(size * jnp.ones((4, 1)), jnp.zeros(4), jnp.zeros(1), 2.0)
        return jax.vmap(lambda key: memory.annealed_log_partition(key, machine, 2, 2))(keys)

    keys = jax.random.split(KEY, 10)
    apart, alike = jax.device_get([annealed(keys, 9.0), annealed(keys, 0.0)])
    assert (apart.effective < 1.9).sum() > 5
    np.testing.assert_array_equal(apart.status, np.where(apart.effective < 2, Status.NOT_CONVERGED, Status.OK))
    assert (alike.status == Status.OK).all()
    # sd(w)/(mean(w) √n) with n − 1 under the root, in terms of n/effective = 1 + var(w)/mean(w)².
    np.testing.assert_allclose(apart.standard_error, np.sqrt(2 / apart.effective.astype(float) - 1), atol=1e-3)
    assert (alike.standard_error == 0).all()


# --- arrays of other libraries ---------------------------------------------------------------------------------------


def test_rows_and_chains_of_any_array_train_the_same():
    rows, chains = drawn(3, 5, UNITS), drawn(4, 3, UNITS)

    def trained(rows, chains):
        return memory.train(jax.random.key(0), TRAINER, TRAINER.init(MACHINE, chains), rows, 2, 4)

    single = trained(*(jnp.asarray(part, jnp.float32) for part in (rows, chains)))
    jax.tree.map(np.testing.assert_array_equal, trained(rows.astype(np.int8), chains.astype(float)), single)
    first, *others = (memory.log_likelihood(MACHINE, given) for given in (rows.astype(np.float32), rows, rows.tolist()))
    np.testing.assert_allclose(others, first, rtol=1e-6)


def test_chains_that_are_no_spins_are_refused():
    with pytest.raises(ValueError, match=r"ContrastiveDivergence.chains must be -1 or \+1 everywhere"):
        TRAINER.init(MACHINE, jnp.zeros((3, UNITS)))
    with pytest.raises(ValueError, match=rf"ContrastiveDivergence.chains must be of shape \(rows, {UNITS}\)"):
        TRAINER.init(MACHINE, jnp.ones((3, UNITS + 1)))


def test_features_have_names():
    rows = np.random.default_rng(5).normal(size=(12, 5))
    features = memory.HopfieldFeatures().fit(rows, np.arange(12) % 2)
    count = features.transform(rows).shape[1]
    assert features.get_feature_names_out().tolist() == [f"hopfieldfeatures{k}" for k in range(count)]


def test_features_without_labels_are_of_one_class():
    rows = np.random.default_rng(5).normal(size=(12, 5))
    alone = memory.HopfieldFeatures(per_class=2).fit(rows)
    labelled = memory.HopfieldFeatures(per_class=2).fit(rows, np.full(12, 3))
    np.testing.assert_array_equal(alone.patterns_, labelled.patterns_)
    np.testing.assert_array_equal(alone.transform(rows[:3]), alone.transform(rows)[:3])


def test_eigenvectors_are_as_many_as_the_couplings_need():
    """J − λ_min I = WWᵀ at any scale, without columns of zeros."""
    patterns = [[1, 1, 1, -1, -1, 1], [1, -1, 1, 1, -1, -1]]
    couplings = np.asarray(store(patterns, rule="hebbian").couplings, float)
    for scale in (1e-8, 1.0, 1e5):
        network = HopfieldNetwork(jnp.asarray(scale * couplings, jnp.float32), jnp.zeros(UNITS))
        weights = np.asarray(to_boltzmann_machine(network, factor="eigen").weights, float)
        assert weights.shape == (UNITS, 2)
        np.testing.assert_allclose(weights @ weights.T / scale, couplings, atol=1e-5)


PATTERNS = np.array([[1, 1, -1, -1], [1, -1, 1, 1]])


def test_a_field_may_be_differentiated_beside_patterns_that_are_known():
    """The couplings are those of the patterns, whatever the field; the energy's slope in the field is −s."""
    spins = np.array([1.0, -1, -1, 1])

    @jax.jit
    def slope(field):
        energy = lambda field: store(PATTERNS, field=field).energy(jnp.asarray(spins))  # noqa: E731
        return jax.grad(energy)(field), store(PATTERNS, field=field).couplings

    found, couplings = slope(jnp.array([0.1, 0.2, 0.3, 0.4]))
    np.testing.assert_array_equal(found, -spins)
    np.testing.assert_array_equal(couplings, store(PATTERNS).couplings)


@pytest.mark.parametrize("rule", ["projection", "pseudo-inverse", "hebbian", "storkey"])
def test_known_patterns_are_stored_in_double_precision_and_rounded_once(rule):
    """Within half a unit of the last place of single precision of what doubles give; jit is asked for them apart."""
    patterns = np.sign(np.random.default_rng(3).normal(size=(7, 23)))
    with jax.enable_x64(True):
        wide = np.asarray(store(patterns, rule=rule).couplings)
    assert wide.dtype == np.float64
    np.testing.assert_array_equal(store(patterns, rule=rule).couplings, wide.astype(np.float32))


def test_recall_does_not_depend_on_the_unit_of_energies():
    """Couplings and fields in other units, even tiny ones: the sign of a field has none."""
    network = store([[1, 1, 1, 1, -1, -1, -1, -1]], field=0.01 * np.arange(8))
    recalled = jax.jit(lambda network, spins: memory.recall(jax.random.key(0), network, spins))
    start = jnp.array([-1.0, 1, 1, 1, -1, -1, -1, -1])
    wanted, info = recalled(network, start)
    assert not np.array_equal(wanted, start)
    for power in (-30, -10, 3):
        found, again = recalled(jax.tree.map(lambda leaf, p=power: leaf * 2.0**p, network), start)
        np.testing.assert_array_equal(found, wanted)
        assert int(again.num_sweeps) == int(info.num_sweeps)


def test_every_chain_of_spins_is_looked_at_before_the_first_step():
    """A step takes zeros as spins without a word, so that one chain in three of bits would be another law's."""
    machine = to_boltzmann_machine(store(PATTERNS))
    positions = np.ones((3, 4))
    positions[2, 1] = 0
    for kernel in (memory.LayerGibbs(machine), memory.SpinGibbs(store(PATTERNS)), memory.LowRankSpinGibbs(machine)):
        with pytest.raises(ValueError, match=rf"^{type(kernel).__name__}.position must be -1 or \+1 everywhere"):
            run(jax.random.key(0), kernel, positions, 3)
        assert kernel.check_positions(np.where(positions == 0, -1, 1)) is None
