"""What is drawn, learned and begun with, again in NumPy from the same keys; options in their combinations and ends."""

import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax
import numpy as np
import optax
import pytest
from dictionaries import learned_round, random_dictionary, sparse_codes

from laureate.recovery import (
    ALISTA,
    FISTA,
    ISTA,
    LISTACP,
    BernoulliGaussian,
    ConvALISTA,
    ConvDictionary,
    ConvLISTA,
    HyperLISTA,
    SparseCoder,
    SupportSchedule,
    TiLISTA,
    UnrolledCoherence,
    add_noise,
    as_dictionary,
    certified_schedule,
    coherence_loss,
    dense_matrix,
    estimator,
    fit,
    fit_encoder,
    learn_dictionary,
    learn_filters,
    max_sparsity,
    perturb,
    select_and_shrink,
    training,
)

KEY = jax.random.key(0)
SGD = optax.sgd(0.0)  # nothing moves: the losses are those of the start


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


D = random_dictionary(6, 10)


# --- draws ------------------------------------------------------------------------------------------------------------


def test_what_is_drawn_is_drawn_as_it_says():
    """Noise of the deviation of each signal about its own mean; codes, drifts and their keys: all from the bits."""
    signals = np.random.default_rng(0).normal(size=(3, 4, 5)) + np.array([5.0, -3.0, 0.0])[:, None, None]
    prior = BernoulliGaussian(7, density=0.4, scale=2.5)

    @jax.jit
    def drawn(key):
        where, what = jax.random.split(key)
        noise = [add_noise(key, signals, 7.0, axes) - signals for axes in (1, 2)]
        bits = jax.random.normal(key, (3, 4, 5)), jax.random.uniform(where, (9, 7)), jax.random.normal(what, (9, 7))
        return noise, prior(key, 9), perturb(key, D, 0.3), *bits, jax.random.normal(key, D.shape)

    noise, codes, drifted, normal, uniform, sizes, moves = jax.tree.map(np.asarray, drawn(KEY))
    for found, axes in zip(noise, (-1, (-2, -1)), strict=True):
        np.testing.assert_allclose(found, signals.std(axis=axes, keepdims=True) * 10 ** (-7 / 20) * normal, rtol=1e-9)
    np.testing.assert_allclose(codes, np.where(uniform < 0.4, sizes, 0) * 2.5, rtol=1e-12)
    moved = D + 0.3 * moves
    np.testing.assert_allclose(drifted, moved / np.linalg.norm(moved, axis=0), rtol=1e-12)


def test_the_encoders_loss_is_over_drifts_of_every_size():
    """Of each dictionary of a batch its own σ in U(0, σ) and its own noise; the mean over the batch."""
    encoder = UnrolledCoherence(D, num_steps=2, step_size=0.2)

    @jax.jit
    def both(key):
        _, losses = fit_encoder(key, encoder, jnp.asarray(D), 0.4, optimiser=SGD, num_steps=2, batch=3)

        def one(key):
            size, noise = jax.random.split(key)
            moved = D + 0.4 * jax.random.uniform(size) * jax.random.normal(noise, D.shape)
            moved = moved / jnp.linalg.norm(moved, axis=0)
            return coherence_loss(moved, encoder(moved))

        ones = jax.vmap(jax.vmap(one))(jax.vmap(lambda key: jax.random.split(key, 3))(jax.random.split(key, 2)))
        expected = jnp.mean(ones, axis=1)
        return losses, expected

    losses, expected = both(KEY)
    np.testing.assert_allclose(losses, expected, rtol=1e-9)


# --- training ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("mode", "layers", "steps"), [("greedy", 2, 3), ("greedy", 3, 1), ("end_to_end", 2, 4)])
def test_the_plan_of_training(mode, layers, steps):
    """Greedy: every layer alone, then with those behind it at a fifth and a fiftieth of the rate, each stage anew."""
    plan = jax.tree.map(np.asarray, training._plan(mode, layers, steps))
    rows = []
    for layer in range(layers) if mode == "greedy" else [layers - 1]:
        stages = [(True, 1.0), (False, 0.2), (False, 0.02)] if mode == "greedy" else [(False, 1.0)]
        for alone, factor in stages:
            rows += [(layer, alone, factor, step == 0) for step in range(steps)]
    for found, wanted in zip(plan, zip(*rows, strict=True), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


class Prior(eqx.Module):
    """Codes of one kind; it notes of how many it was asked."""

    asked: list = eqx.field(static=True)

    def __call__(self, key, number):
        self.asked.append(number)
        return jax.random.normal(key, (number, 10)) * (jnp.arange(10) < 3)


def test_a_loss_of_training_by_its_keys():
    """Two dictionaries share a batch, each with codes and noise of its own: the mean of their means."""
    asked = []

    def redraw(key, solver):
        return solver.at(perturb(key, D, 0.2), "stale")

    @jax.jit
    def both(key):
        solver, more = ALISTA(D, num_layers=2), {"redraw": redraw, "num_dictionaries": 2}
        _, losses = fit(key, solver, Prior(asked), optimiser=SGD, num_steps=2, batch=4, snr=12.0, **more)

        def one(key):
            keys = jax.random.split(key, 3)
            made = redraw(keys[0], solver)
            codes = Prior([])(keys[1], 2)
            found = made(add_noise(keys[2], made.synthesise(codes), 12.0))
            return jnp.sum((found - codes) ** 2) / 2

        own = jax.vmap(lambda key: jax.random.split(key, 2))(jax.random.split(key, 2))
        return losses, jnp.mean(jax.vmap(jax.vmap(one))(own), axis=1)

    losses, expected = both(KEY)
    np.testing.assert_allclose(losses, expected, rtol=1e-9)
    assert set(asked) == {2}


def test_a_loss_over_codes_and_over_pairs_by_its_keys():
    """Rows of an array of codes, with noise on their signals; or signals with their own targets, and none."""
    draw = np.random.default_rng(8)
    codes, signals = draw.normal(size=(5, 10)), draw.normal(size=(5, 6))

    @jax.jit
    def both(key):
        solver, found = LISTACP(D * 2.0, num_layers=2, normalise=True), []
        for measured in (False, True):

            def one(key, measured=measured):
                keys = jax.random.split(key, 3)
                rows = jax.random.randint(keys[1], (3,), 0, 5)
                targets = jnp.asarray(codes)[rows]
                given = jnp.asarray(signals)[rows] if measured else add_noise(keys[2], targets @ (2.0 * D).T, 9.0)
                return jnp.sum((solver(given) - targets) ** 2) / 3

            prior = (signals, codes) if measured else codes
            _, losses = fit(key, solver, prior, optimiser=SGD, num_steps=2, batch=3, snr=9.0)
            found.append((losses, jax.vmap(one)(jax.random.split(key, 2))))
        return found

    for losses, expected in both(KEY):
        np.testing.assert_allclose(losses, expected, rtol=1e-9)


def test_no_threshold_that_is_trained_becomes_negative():
    """θ, and the λ of which the classical solvers make it."""

    @jax.jit
    def trained(key):
        found = []
        for solver, name in ((ISTA(D, 2), "penalty"), (FISTA(D, 2), "penalty"), (ALISTA(D, num_layers=2), "theta")):
            lower = lambda solver, estimate, target, name=name: jnp.sum(getattr(solver, name))  # noqa: E731
            made, _ = fit(key, solver, Prior([]), optimiser=optax.sgd(9.0), num_steps=2, loss=lower)  # as low as can be
            found.append(getattr(made, name))
        return found

    for found in trained(KEY):
        np.testing.assert_array_equal(found, 0)


# --- starts -----------------------------------------------------------------------------------------------------------


def test_what_every_network_begins_with():
    """Steps, thresholds and weights by NumPy: L is 1.001‖D‖², θ is 0.4/L, and γ is never above 1."""
    constant = 1.001 * np.linalg.norm(D, 2) ** 2
    solved = np.linalg.solve(D @ D.T, D)
    weight = solved / np.sum(solved * D, axis=0)
    given = (None, D, 0.01 * D, weight)

    @jax.jit
    def begun():
        starts = [(TiLISTA(D, 3, start=s), LISTACP(D, 3, start=s)) for s in ("dictionary", "analytic")]
        analytic = [ALISTA(D, own, num_layers=2) for own in given]
        return (
            [(tied.weight, tied.gamma, tied.theta, own.weight, own.theta) for tied, own in starts],
            [(solver.gamma, solver.theta) for solver in analytic],
        )

    networks, solvers = begun()
    for (tied, gammas, theta, own, same), first, gamma in zip(networks, (D, weight), (1 / constant, 1.0), strict=True):
        np.testing.assert_allclose(tied, first, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(gammas, np.full(3, gamma), rtol=1e-9)
        np.testing.assert_allclose(own, np.tile(first * gamma, (3, 1, 1)), rtol=1e-9, atol=1e-12)
        for found in (theta, same):
            np.testing.assert_allclose(found, [0.4 / constant] * 3, rtol=1e-9)
    for own, (gammas, thetas) in zip(given, solvers, strict=True):
        radius = np.abs(np.linalg.eigvals((weight if own is None else own).T @ D)).max()
        wanted = 1.0 if own is None else min(1.0, 1 / (1.001 * radius))
        np.testing.assert_allclose(gammas, [wanted] * 2, rtol=1e-4)  # by power iteration
        np.testing.assert_allclose(thetas, [0.4 / constant] * 2, rtol=1e-9)
        assert np.all(np.asarray(gammas) <= 1)


def explicit(filters, height, width):
    """The matrix of Σ_m d_m ∗ x_m, a column for every entry of a code."""
    number, side, _ = filters.shape
    shape = height + side - 1, width + side - 1, number
    columns = []
    for place in np.ndindex(*shape):
        whole = np.zeros((shape[0] + side - 1, shape[1] + side - 1))
        whole[place[0] : place[0] + side, place[1] : place[1] + side] = filters[place[2]]
        columns.append(whole[side - 1 : side - 1 + height, side - 1 : side - 1 + width].ravel())
    return np.stack(columns, axis=1)


FILTERS = np.random.default_rng(1).normal(size=(2, 3, 3)) * np.array([1.0, 3.0])[:, None, None]


def test_what_convolutional_networks_begin_with():
    """Both the same: γ = 1/‖WᵀD‖, or as much within the filters, and θ a tenth of it; of unit filters."""
    units = FILTERS / np.sqrt(np.sum(FILTERS**2, axis=(1, 2), keepdims=True))
    other = units + 0.3 * np.random.default_rng(2).normal(size=(2, 3, 3))
    more = {"num_layers": 2, "normalise": True}

    @jax.jit
    def begun():
        solvers = ConvALISTA(FILTERS, (4, 3), other, **more), ConvLISTA(FILTERS, (4, 3), other, **more)
        own = ConvLISTA(FILTERS, (4, 3), **more)
        return [solver.parameters() for solver in (*solvers, own)], solvers[0].scale

    ((gamma, theta, counts), (weight, thresholds), (own, _)), scale = jax.tree.map(np.asarray, begun())
    product = explicit(other, 4, 3).T @ explicit(units, 4, 3)
    step = 1 / (1.001 * np.abs(np.linalg.eigvals(product)).max())
    np.testing.assert_allclose(gamma, [step] * 2, rtol=1e-2)  # by power iteration
    np.testing.assert_allclose(theta, 0.1 * gamma, rtol=1e-9)
    np.testing.assert_allclose(thresholds, theta, rtol=1e-9)
    np.testing.assert_allclose(weight, [gamma[0] * other] * 2, rtol=1e-9)
    np.testing.assert_allclose(own / own[0, 0, 0, 0], [units / units[0, 0, 0]] * 2, rtol=1e-9)
    assert not counts.any()
    np.testing.assert_allclose(scale, np.sqrt(np.sum(FILTERS**2, axis=(1, 2))), rtol=1e-12)


def test_a_constant_of_any_kind_of_number_is_that_constant():
    b = sparse_codes(2, 10, entries=2) @ D.T

    @jax.jit
    def solved():
        made = [
            [method(D, num_layers=3, penalty=0.3, lipschitz_constant=constant) for constant in (4, 4.0)]
            for method in (ISTA, FISTA)
        ]
        return [[(solver.penalty, solver(jnp.asarray(b))) for solver in pair] for pair in made]

    for (penalty, whole), (_, real) in solved():
        assert float(penalty) == pytest.approx(0.3)
        np.testing.assert_array_equal(whole, real)


# --- dictionaries -----------------------------------------------------------------------------------------------------


def test_dictionaries_of_every_kind_are_the_matrix_that_they_say():
    """Forth, back and column by column; also with atoms of norm 1, of which filters are meant and not what is cut."""
    matrix, sizes = D * np.linspace(0.5, 3.0, 10), np.sqrt(np.sum(FILTERS**2, axis=(1, 2)))
    wanted = [matrix, matrix, explicit(FILTERS, 4, 5)]
    unit = [D, D, explicit(FILTERS / sizes[:, None, None], 4, 5)]
    draw = np.random.default_rng(9)
    pairs = [(draw.normal(size=(3, whole.shape[1])), draw.normal(size=(3, whole.shape[0]))) for whole in wanted]

    @jax.jit
    def found():
        kinds = as_dictionary(matrix), as_dictionary(lineax.MatrixLinearOperator(jnp.asarray(matrix)))
        told = []
        for dictionary, (x, r) in zip((*kinds, ConvDictionary(FILTERS, (4, 5))), pairs, strict=True):
            norms = dictionary.norms()
            shape = (4, 5) if dictionary.code_axes == 3 else (dictionary.shape[0],)
            for one in (dictionary, dictionary.divided_by(norms)):
                forth = one.matvec(jnp.asarray(x).reshape(3, *one.code_shape)).reshape(3, -1)
                back = one.rmatvec(jnp.asarray(r).reshape(3, *shape)).reshape(3, -1)
                told.append((forth, back, one.norms(), None if len(shape) > 1 else dense_matrix(one)))
        return told

    rows = [(whole, *pair) for both, pair in zip(zip(wanted, unit, strict=True), pairs, strict=True) for whole in both]
    norms = [np.linalg.norm(matrix, axis=0), np.ones(10)] * 2 + [sizes, np.ones(2)]
    for (forth, back, size, dense), (whole, x, r), norm in zip(found(), rows, norms, strict=True):
        np.testing.assert_allclose(forth, x @ whole.T, atol=1e-9)
        np.testing.assert_allclose(back, r @ whole, atol=1e-9)
        np.testing.assert_allclose(size, norm, rtol=1e-9)
        np.testing.assert_allclose(whole if dense is None else dense, whole, atol=1e-9)


@pytest.mark.parametrize(
    ("factor", "told"), [(0.5, True), (0.998, True), (0.9995, False), (1.0, False), (1.0005, False), (1.002, True)]
)
@pytest.mark.parametrize("method", [ISTA, HyperLISTA])
def test_columns_that_are_too_short_or_too_long_are_told(factor, told, method):
    matrix = D * np.where(np.arange(10) == 4, factor, 1.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        method(matrix, num_layers=1)
        method(matrix, num_layers=1, normalise=True)
    assert [f"off by {abs(factor - 1):.3g}" in str(one.message) for one in caught] == [True] * told


def test_one_penalty_serves_signals_of_any_size():
    """By hand, from random signals and a tenth of noise, round after round; of tiny signals no column is unused."""
    signals = np.random.default_rng(3).normal(size=(9, 4))

    @jax.jit
    def learn(signals):
        choice_key, noise_key, _, _ = jax.random.split(KEY, 4)
        drawn = jax.random.randint(choice_key, (6,), 0, 9), jax.random.normal(noise_key, (4, 6))
        return learn_dictionary(KEY, signals, 6, num_rounds=2, num_steps=3, penalty=0.4), drawn

    _, (chosen, noise) = jax.tree.map(np.asarray, learn(signals))
    wanted = signals[chosen].T + 0.1 * np.sqrt(np.mean(signals**2)) * noise
    wanted /= np.linalg.norm(wanted, axis=0)
    for _ in range(2):
        wanted = learned_round(signals, wanted, 0.4, 3)
    for unit in (1, 64, 2.0**-60):
        np.testing.assert_allclose(learn(unit * signals)[0], wanted, atol=1e-9)


def soft(v, theta):
    return np.sign(v) * np.maximum(np.abs(v) - theta, 0)


def test_a_round_of_learning_filters_by_hand():
    """FISTA with this penalty on the matrix, then least squares; filters that no code uses stay as they were."""
    images = np.random.default_rng(4).normal(size=(3, 4, 5))
    learn = jax.jit(lambda penalty: learn_filters(KEY, images, 2, 3, num_rounds=1, num_steps=4, penalty=penalty))
    start = np.asarray(jax.random.normal(KEY, (2, 3, 3)))
    start = start / np.sqrt(np.sum(start**2, axis=(1, 2), keepdims=True))
    matrix, b = explicit(start, 4, 5), images.reshape(3, -1)
    power, vector = 0.0, np.random.default_rng(0).normal(size=matrix.shape[1])
    for _ in range(2000):
        vector = matrix.T @ (matrix @ vector)
        power = np.linalg.norm(vector)
        vector /= power
    for penalty in (0.3, 0.05):
        step, x = 1 / (1.001 * power), np.zeros((3, matrix.shape[1]))
        previous, before, t = x, 1.0, 1.0
        for _ in range(4):
            y = x + (before - 1) / t * (x - previous)
            x, previous = soft(y - step * (y @ matrix.T - b) @ matrix, penalty * step), x
            before, t = t, (1 + np.sqrt(1 + 4 * t**2)) / 2
        codes, columns = x.reshape(3, 6, 7, 2), []
        for entry in np.ndindex(2, 3, 3):
            unit = np.zeros((2, 3, 3))
            unit[entry] = 1.0
            columns.append((codes.reshape(3, -1) @ explicit(unit, 4, 5).T).ravel())
        columns = np.stack(columns, axis=1)
        gram = columns.T @ columns
        gram += 1e-4 * (np.trace(gram) / 18 + 1e-6) * np.eye(18)
        wanted = np.linalg.solve(gram, columns.T @ b.ravel()).reshape(2, 3, 3)
        wanted /= np.sqrt(np.sum(wanted**2, axis=(1, 2), keepdims=True))
        np.testing.assert_allclose(learn(penalty), wanted, atol=1e-3)  # its norm is by a shorter power iteration
    np.testing.assert_allclose(learn(1e6), start, rtol=1e-12)


# --- thresholds and guarantees ----------------------------------------------------------------------------------------


def test_only_what_is_above_the_threshold_passes_and_what_is_at_it_does_not():
    v = np.array([[0.25, -0.25, 0.5, 0.0], [0.25, 0.25, -0.25, 0.2500001]])
    thetas = 0.25, np.array([0.25, 0.3, 0.5, 0.25])
    run = jax.jit(lambda v: [select_and_shrink(v, theta, 4, 4) for theta in thetas])
    for theta, found in zip(thetas, run(v), strict=True):
        np.testing.assert_array_equal(found, np.where(np.abs(v) > theta, v, 0))


def test_a_sparsity_at_the_bound_itself_is_not_covered():
    """s < (1 + 1/μ)/2: of μ = 1, that of two equal columns, not even one entry; of 1/2, 1/4, 1/8 the next below."""
    for mu, most in ((1.0, 0), (0.5, 1), (0.25, 2), (0.125, 4)):
        matrix = np.array([[1.0, mu, 0, 0, 0, 0], [0, np.sqrt(1 - mu**2), 0, 0, 0, 0]])
        matrix = np.vstack([matrix, np.eye(6)[2:]])
        assert max_sparsity(matrix) == most


@pytest.mark.parametrize("gamma", [1.0, 1.2])
def test_a_schedule_at_and_above_a_step_of_one(gamma):
    """θ_k = γ μ sup‖x^k − x*‖₁, and the bound shrinks by (2μs − μ)γ + |1 − γ| a layer from s B."""
    matrix = np.array([[1.0, 0.2, 0.0], [0.0, np.sqrt(0.96), 0.0], [0.0, 0.0, 1.0]])
    found = certified_schedule(matrix, matrix, sparsity=2, bound=3.0, num_layers=3, gamma=gamma)
    rate = (2 * 0.2 * 2 - 0.2) * gamma + abs(1 - gamma)
    np.testing.assert_allclose(found.rate, rate, rtol=1e-12)
    np.testing.assert_allclose(found.error_bound, 6.0 * rate ** np.arange(4), rtol=1e-12)
    np.testing.assert_allclose(found.theta, gamma * 0.2 * 6.0 * rate ** np.arange(3), rtol=1e-12)
    np.testing.assert_allclose(found.gamma, [gamma] * 3, rtol=1e-12)
    assert rate < 1  # the steps that are let in are those for which it shrinks
    with pytest.raises(
        ValueError, match=r"certified_schedule.gamma must be within 0 and 2/\(2μs − μ \+ 1\) = 1.25; got"
    ):
        certified_schedule(matrix, matrix, sparsity=2, gamma=1.26)


@pytest.mark.parametrize("most", [2, 0])  # none at all is a number, too
def test_hyper_lista_lets_at_most_so_many_entries_pass(most):
    """With another weight, of whose coherence the threshold and the momentum are made, and for every signal alone."""
    weight = np.linalg.solve(D @ D.T, D) + 0.1 * np.random.default_rng(7).normal(size=D.shape)
    weight /= np.sum(weight * D, axis=0)
    signals, c = sparse_codes(3, 10, entries=3) @ D.T * np.array([[1.0], [5.0], [0.1]]), (0.02, 0.2, 30.0)
    mu, inverse = np.abs(weight.T @ D - np.eye(10)).max(), np.linalg.pinv(D)
    solver = HyperLISTA(D, weight, num_layers=4, c=c, max_count=most)
    found = eqx.filter_jit(lambda solver, b: solver(b))(solver, signals)
    passed = []
    for b, codes in zip(signals, np.asarray(found), strict=True):
        x = previous = np.zeros(10)
        for _ in range(4):
            residual = D @ x - b
            error, whole = (np.abs(inverse @ v).sum() for v in (residual, b))
            v = x - weight.T @ residual + c[1] * mu * np.count_nonzero(x) * (x - previous)
            theta, count = c[0] * mu * error, int(np.clip(c[2] * np.log(whole / error), 0, most))
            new, chosen = soft(v, theta), np.argsort(-np.abs(v))[:count]
            new[chosen] = np.where(np.abs(v[chosen]) > theta, v[chosen], new[chosen])
            x, previous = new, x
            passed.append(count)
        np.testing.assert_allclose(codes, x, atol=1e-9 * np.abs(b).max())
    assert max(passed) == most


# --- the estimator ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("density", [0.01, 0.1, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("atoms", [7, 4])
def test_a_coder_trains_what_its_settings_say(monkeypatch, density, atoms):
    """Network, prior and settings that it hands on, for codes of any density and dictionaries of any shape."""
    given = {}

    def alista(unit, weight, layers, support):
        given.update(unit=np.asarray(unit), weight=weight, layers=layers, support=support)
        return None

    def trained(key, solver, prior, snr, rate, steps, batch):
        given.update(prior=prior, snr=float(snr), rate=float(rate), steps=steps, batch=batch)
        return solver

    monkeypatch.setattr(estimator, "ALISTA", alista)
    monkeypatch.setattr(estimator, "_trained", trained)
    X, rows = np.random.default_rng(0).normal(size=(5, 4)), np.random.default_rng(1).normal(size=(atoms, 4))  # noqa: N806
    settings = {"num_layers": 3, "snr": 17.0, "num_steps": 11, "learning_rate": 0.5, "batch": 6}
    coder = SparseCoder(2 * rows, density=density, random_state=0, **settings).fit(X)
    unit = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).T
    np.testing.assert_allclose(given["unit"], unit, rtol=1e-5)
    if atoms > 4:
        assert given["weight"] is None
    else:
        np.testing.assert_allclose(given["weight"], np.linalg.pinv(unit).T, rtol=1e-3, atol=1e-5)
    assert given["support"] == SupportSchedule(12 * density, min(100.0, 130 * density))
    assert (given["prior"].size, given["prior"].density, given["prior"].scale) == (atoms, density, 1.0)
    told = [given[name] for name in ("layers", "snr", "steps", "rate", "batch")]
    assert told == pytest.approx([3, 17.0, 11, 0.5, 6])
    size = np.sqrt(np.mean(np.sum(X**2, axis=1)) / max(1.0, density * atoms))
    assert coder.size_ == pytest.approx(size, rel=1e-12)
    codes = np.random.default_rng(2).normal(size=(2, atoms))
    np.testing.assert_allclose(coder.inverse_transform(codes), codes @ (2 * rows), rtol=1e-5)
    assert coder.get_feature_names_out().shape == (atoms,)


@pytest.mark.parametrize(("asked", "atoms"), [(None, 8), (3, 3), (9, 9)])
def test_a_coder_without_a_dictionary_learns_as_many_atoms_as_asked(monkeypatch, asked, atoms):
    """Twice as many as there are features without a number; of the signals as they are, an atom a row."""
    X, learned = np.random.default_rng(0).normal(size=(5, 4)), np.random.default_rng(1).normal(size=(4, atoms))  # noqa: N806

    def learn(key, signals, number):
        np.testing.assert_allclose(signals, X, rtol=1e-6)
        assert number == atoms
        return learned

    monkeypatch.setattr(estimator, "_learned", learn)
    monkeypatch.setattr(estimator, "ALISTA", lambda unit, *given, **more: np.asarray(unit))
    monkeypatch.setattr(estimator, "_trained", lambda key, solver, *given: solver)
    coder = SparseCoder(n_components=asked, random_state=0).fit(X)
    np.testing.assert_allclose(coder.components_, learned.T)
    np.testing.assert_allclose(coder.norms_, np.linalg.norm(learned, axis=0))
    np.testing.assert_allclose(coder.solver_, learned / np.linalg.norm(learned, axis=0), rtol=1e-6)


# --- reports ----------------------------------------------------------------------------------------------------------


def test_the_report_of_images_is_of_every_image():
    """‖Dx − b‖ of a whole image, whatever axes stand before it, also from a start of one's own and of unit filters."""
    b = np.random.default_rng(5).normal(size=(2, 3, 4, 5))
    start = np.random.default_rng(6).normal(size=(6, 7, 2))

    @jax.jit
    def run(b):
        solver = ConvALISTA(FILTERS, (4, 5), num_layers=2, normalise=True, support=SupportSchedule(5, 10))
        return solver.solve(b, start), solver.trace(b, start), solver.synthesise(jnp.asarray(start))

    (x, info), trace, image = jax.tree.map(np.asarray, run(b))
    assert x.shape == (2, 3, 6, 7, 2)
    matrix = explicit(FILTERS, 4, 5)
    apart = (x.reshape(2, 3, -1) @ matrix.T).reshape(b.shape) - b
    np.testing.assert_allclose(info.residual, np.sqrt(np.sum(apart**2, axis=(2, 3))), rtol=1e-9)
    assert info.residual.shape == info.status.shape == (2, 3)
    np.testing.assert_allclose(trace[-1], x, rtol=1e-12)
    np.testing.assert_allclose(image.ravel(), matrix @ start.ravel(), rtol=1e-9)
    assert int(info.cost) == 4
    np.testing.assert_array_equal(ConvDictionary(FILTERS, (4, 5)).shape, matrix.shape)
