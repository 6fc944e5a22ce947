"""DirectPred against closed forms: the rule on known spectra, the running correlation by hand, the linear theory."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from laureate.representation import (
    DirectCopy,
    DirectPred,
    DirectSet,
    Identity,
    Linear,
    LinearDynamics,
    LinearState,
    ModeDynamics,
    Siamese,
    TwoLayer,
    alignment,
)
from laureate.representation.roots import root_by_newton_schulz, spectral_norm

KEY = jax.random.key(0)


update = eqx.filter_jit(lambda predictor, state, z1, z2: predictor.update(state, z1, z2))


def orthogonal(seed: int, d: int) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))[0]


def from_spectrum(values, seed: int = 0) -> np.ndarray:
    u = orthogonal(seed, len(values))
    return (u * np.asarray(values)) @ u.T


rule_of = eqx.filter_jit(lambda predictor, f: predictor.rule(f)[0])  # outside jit each operation is a program
SPECTRUM = np.array([4.0, 1.0, 0.25, 0.04, 0.0])


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_the_rule_on_a_known_spectrum(power):
    f = jnp.asarray(from_spectrum(SPECTRUM), jnp.float32)
    relative, absolute = (rule_of(DirectSet(5, power=power, epsilon=0.1, scale=scale), f) for scale in ("max", "none"))
    np.testing.assert_allclose(relative, from_spectrum((SPECTRUM / 4) ** power + 0.1), atol=1e-3)
    np.testing.assert_allclose(absolute, from_spectrum(SPECTRUM**power + 0.1 * 4), atol=2e-3)
    np.testing.assert_allclose(relative, relative.T, atol=1e-6)
    assert float(alignment(f, relative)) < 1e-6


def test_the_rule_turns_with_its_argument_and_not_with_its_size():
    f, q = from_spectrum(SPECTRUM), orthogonal(3, 5)
    rule = lambda matrix: np.asarray(rule_of(DirectPred(5), np.asarray(matrix, np.float32)))  # noqa: E731
    np.testing.assert_allclose(rule(q @ f @ q.T), q @ rule(f) @ q.T, atol=1e-3)
    np.testing.assert_allclose(rule(7.3 * f), rule(f), atol=1e-3)


def test_a_degenerate_spectrum_has_no_preferred_basis():
    three = 3.0 * np.eye(4, dtype=np.float32)
    np.testing.assert_allclose(rule_of(DirectPred(4, epsilon=0.2), three), 1.2 * np.eye(4), atol=1e-6)


def test_direct_copy_is_the_first_power():
    """F/‖F‖₂ + ε, and without the scale F + ε‖F‖₂: only the second tells F from twice F."""
    rules = jax.jit(lambda f: [DirectCopy(5, epsilon=0.1, scale=scale).rule(f)[0] for scale in ("max", "none")])
    relative, absolute = rules(from_spectrum(SPECTRUM).astype(np.float32))
    np.testing.assert_allclose(relative, from_spectrum(SPECTRUM / 4 + 0.1), atol=1e-5)
    np.testing.assert_allclose(absolute, from_spectrum(SPECTRUM + 0.1 * 4), atol=1e-5)


@pytest.mark.parametrize("d", [3, 64])
def test_newton_and_schulz_find_the_root(d):
    values = np.linspace(0.05, 3.0, d)
    f = jnp.asarray(from_spectrum(values, seed=d), jnp.float32)
    root, largest = (np.asarray(v) for v in jax.jit(lambda f: root_by_newton_schulz(f, relative=False))(f))
    np.testing.assert_allclose(root @ root, f, atol=3e-4)
    assert abs(float(largest) / 3.0 - 1) < np.log(d) / 800
    both = [rule_of(DirectPred(d, root=root), f) for root in ("eigh", "newton-schulz")]
    np.testing.assert_allclose(both[0], both[1], atol=3e-3)


def test_the_norm_is_found_where_two_eigenvalues_are_close():
    f = jnp.asarray(from_spectrum([1.0, 0.99, 0.98, 0.97] + [0.1] * 12), jnp.float32)
    assert 0.996 <= float(jax.jit(spectral_norm)(f)) <= 1.0001


def test_the_correlation_by_hand():
    """F₁ = C₁, F₂ = ρ C₁ + (1 − ρ) C₂: ρ is the memory of the old value, and both views count, uncentred.

    So is the mean's, which is taken from F where asked for: the covariance of all that is remembered.
    """
    rng = np.random.default_rng(0)
    batches = rng.normal(size=(2, 2, 6, 3)).astype(np.float32) + np.array([1.0, -2.0], np.float32)[:, None, None, None]
    predictor, centring = DirectPred(3, rho=0.3), DirectPred(3, rho=0.3, zero_mean=True)
    state, centred = predictor.init(KEY), centring.init(KEY)
    correlation, mean = np.zeros((3, 3)), np.zeros(3)
    for number, views in enumerate(batches):
        state, info = update(predictor, state, *views)
        centred, _ = update(centring, centred, *views)
        z, keep = np.concatenate(views).astype(np.float64), 0.3 if number else 0.0
        correlation, mean = keep * correlation + (1 - keep) * z.T @ z / 12, keep * mean + (1 - keep) * z.mean(axis=0)
        for one, used in ((state, correlation), (centred, correlation - np.outer(mean, mean))):
            np.testing.assert_allclose(one.correlation, correlation, rtol=1e-5)
            np.testing.assert_allclose(one.mean, mean, rtol=1e-4)
            np.testing.assert_allclose(one.matrix, rule_of(predictor, used.astype(np.float32)), atol=1e-4)
        assert int(info.cost) == 12
    short = jnp.asarray(batches[0], jnp.bfloat16)  # three digits come in, and no fewer than seven are kept
    kept, exact = update(predictor, predictor.init(KEY), *short)[0].correlation, np.concatenate(np.float64(short))
    np.testing.assert_allclose(kept, exact.T @ exact / 12, rtol=1e-5)


def test_numbers_can_be_swept_without_compiling_anew():
    z = jax.random.normal(KEY, (8, 3))
    traces = []

    @jax.jit
    def matrix(rho, eps):
        traces.append(1)
        predictor = DirectPred(3, rho=rho, epsilon=eps)
        return predictor.update(predictor.init(KEY), z, z)[0].matrix

    low, high = matrix(0.3, 0.1), matrix(0.3, 0.4)
    np.testing.assert_allclose(high - low, 0.3 * np.eye(3), atol=1e-5)
    np.testing.assert_allclose(jax.vmap(matrix, in_axes=(None, 0))(0.3, jnp.array([0.1, 0.4])), [low, high], atol=1e-5)
    assert len(traces) <= 2  # once, and once more under vmap


def test_the_predictor_is_set_at_its_frequency_only():
    """From what it has seen in between as well."""
    predictor, every = DirectPred(3, freq=3), DirectPred(3)
    state, same, matrices, rng = predictor.init(KEY), every.init(KEY), [], np.random.default_rng(0)
    for number in range(6):
        z = rng.normal(size=(6, 3)).astype(np.float32)
        state, _ = update(predictor, state, z, z)
        same, _ = update(every, same, z, z)
        matrices.append(np.asarray(state.matrix))
        np.testing.assert_array_equal(state.correlation, same.correlation)
        assert number % 3 < 2 or np.array_equal(state.matrix, same.matrix)
    changed = [not np.array_equal(a, b) for a, b in zip([np.eye(3), *matrices], matrices, strict=False)]
    assert changed == [False, False, True, False, False, True]


def test_the_mean_over_devices_is_that_of_the_whole_batch():
    z1, z2 = jax.random.normal(KEY, (2, 8, 3))
    centring = DirectPred(3, zero_mean=True)
    whole, _ = update(centring, centring.init(KEY), z1, z2)
    split = DirectPred(3, zero_mean=True, axis_name="devices")
    over_devices = jax.vmap(lambda a, b: split.update(split.init(KEY), a, b)[0], axis_name="devices")
    parts = jax.jit(over_devices)(z1.reshape(4, 2, 3), z2.reshape(4, 2, 3))
    for found, wanted in zip(parts, whole, strict=True):
        np.testing.assert_allclose(found, np.broadcast_to(wanted, found.shape), atol=1e-5)


def test_no_gradient_reaches_the_predictor_or_the_target():
    """By finite differences of nothing: the gradient with respect to W_p, F and the target is exactly zero."""
    predictor = DirectPred(4)
    siamese = Siamese(predictor, optax.sgd(0.1))
    model = eqx.nn.Linear(6, 4, key=KEY)
    state = siamese.init(KEY, model)
    x = jax.random.normal(KEY, (16, 6))

    def loss(target, predictor_state):
        z, t = jax.vmap(state.online)(x), jax.lax.stop_gradient(jax.vmap(target)(x))
        return siamese.distance(predictor(predictor_state, z), t)

    slope = eqx.filter_jit(eqx.filter_grad(lambda both: loss(*both)))((state.target, state.predictor))
    assert all(not np.any(leaf) for leaf in jax.tree.leaves(eqx.filter(slope, eqx.is_inexact_array)))
    # and the optimiser never saw them: what is trained is the model alone
    assert sum(leaf.size for leaf in jax.tree.leaves(eqx.filter(model, eqx.is_array))) == 28
    trained = jax.tree.leaves(siamese._spec(model, state.predictor))
    assert sum(bool(leaf) for leaf in trained) == 2


@pytest.mark.parametrize("predictor", [Identity(4), Linear(4), Linear(4, symmetric=True), TwoLayer(4, hidden=32)])
def test_a_step_is_the_gradient_of_the_loss_written_out(predictor):
    """One SGD step against jax.grad of BYOL's loss in its textbook form, and the target's moving mean."""
    siamese = Siamese(predictor, optax.sgd(0.1), momentum=0.9)
    state = siamese.init(KEY, eqx.nn.Linear(6, 4, key=KEY))
    state = eqx.tree_at(lambda s: s.target, state, eqx.nn.Linear(6, 4, key=jax.random.key(9)))
    v1, v2 = jax.random.normal(jax.random.key(1), (2, 16, 6))

    def unit(z):
        return z / jnp.linalg.norm(z, axis=1, keepdims=True)

    def loss(trained):
        model, own = trained
        p1, p2 = (predictor(own, jax.vmap(model)(v)) for v in (v1, v2))
        t1, t2 = (jax.vmap(state.target)(v) for v in (v1, v2))
        return sum(jnp.mean(jnp.sum((unit(p) - unit(t)) ** 2, axis=1)) for p, t in ((p1, t2), (p2, t1)))

    @eqx.filter_jit
    def both(state):
        return siamese.step(state, v1, v2), eqx.filter_value_and_grad(loss)((state.online, state.predictor))

    (after, info), (value, slope) = both(state)
    np.testing.assert_allclose(info.loss, value, rtol=1e-5)
    old, target = np.asarray(state.online.weight), np.asarray(state.target.weight)
    expected = old - 0.1 * np.asarray(slope[0].weight)
    np.testing.assert_allclose(after.online.weight, expected, atol=1e-6)
    np.testing.assert_allclose(after.target.weight, 0.9 * target + 0.1 * expected, atol=1e-6)
    for old, new, grad in zip(*map(jax.tree.leaves, (state.predictor, after.predictor, slope[1])), strict=True):
        np.testing.assert_allclose(new, np.asarray(old) - 0.1 * np.asarray(grad), atol=1e-6)


def test_two_layers_and_both_distances_by_hand():
    """Written again in NumPy: a mean and a deviation over the batch for each unit; sums over D, means over examples."""
    rng = np.random.default_rng(7)
    z, target = rng.normal(size=(2, 6, 3)) + 1.0
    state = {"first": rng.normal(size=(3, 5)), "scale": rng.uniform(0.5, 2.0, 5)}
    state |= {"shift": rng.normal(size=5), "last": rng.normal(size=(5, 3))}

    def run(state, z, target):
        trainers = [Siamese(Identity(3), optax.sgd(0.1), loss=loss) for loss in ("l2", "cosine")]
        return TwoLayer(3, hidden=5)(state, z), [trainer.distance(z, target) for trainer in trainers]

    given = jax.tree.map(lambda leaf: leaf.astype(np.float32), (state, z, target))
    found, distances = jax.jit(run)(*given)
    hidden = z @ state["first"]
    hidden = (hidden - hidden.mean(axis=0)) / np.sqrt(hidden.var(axis=0) + 1e-5)
    expected = np.maximum(hidden * state["scale"] + state["shift"], 0) @ state["last"]
    np.testing.assert_allclose(found, expected, atol=2e-5)
    cosines = np.sum(z * target, axis=1) / np.linalg.norm(z, axis=1) / np.linalg.norm(target, axis=1)
    by_hand = [np.sum((z - target) ** 2) / 12, np.mean(2 - 2 * cosines)]
    np.testing.assert_allclose(distances, by_hand, rtol=1e-5)


def test_the_loss_uses_the_predictor_of_the_step_before():
    siamese = Siamese(DirectPred(4, rho=0.0), optax.sgd(0.0))
    state = siamese.init(KEY, eqx.nn.Linear(6, 4, key=KEY))
    v1, v2 = jax.random.normal(jax.random.key(1), (2, 16, 6))
    identity = Siamese(Identity(4), optax.sgd(0.0))
    step = eqx.filter_jit(lambda siamese, state: siamese.step(state, v1, v2))
    first, told = step(siamese, state)
    np.testing.assert_allclose(told.loss, step(identity, identity.init(KEY, state.online))[1].loss, rtol=1e-6)

    @jax.jit
    def by_hand(w):
        z1, z2 = jax.vmap(state.online)(v1), jax.vmap(state.online)(v2)
        return siamese.distance(z1 @ w.T, z2) + siamese.distance(z2 @ w.T, z1)

    _, told = step(siamese, first)
    np.testing.assert_allclose(told.loss, by_hand(first.predictor.matrix), rtol=1e-5)


# ---- the linear theory

simulate = eqx.filter_jit(lambda flow, state, time, steps: flow.simulate(state, time=time, num_steps=steps))
simulate_mode = eqx.filter_jit(lambda modes, p, s, time, steps: modes.simulate(p, s, time, steps))


def random_flow(**settings) -> tuple[LinearDynamics, LinearState]:
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 4, 4))
    flow = LinearDynamics(jnp.asarray(a @ a.T / 4), jnp.asarray(b @ b.T / 8), **settings)
    w, p, t = 0.5 * rng.normal(size=(3, 3, 4))
    return flow, LinearState(jnp.asarray(w), jnp.asarray(p[:, :3] + p[:, :3].T), jnp.asarray(t))


@pytest.mark.parametrize("stop", [True, False])
def test_the_rates_are_the_gradients_of_the_expected_loss(stop):
    """E over x₁ = x̄ + x'₁, x₂ = x̄ + x'₂ in closed form; jax.grad of it, with and without stop-gradient."""
    flow, state = random_flow(decay=0.1, predictor_rate=2.0, stop_gradient=stop)
    x, both = flow.shared, flow.shared + flow.augmentation

    def loss(w, w_p, w_a):
        first = w_p @ w
        return 0.5 * (
            jnp.trace(first @ both @ first.T) - 2 * jnp.trace(first @ x @ w_a.T) + jnp.trace(w_a @ both @ w_a.T)
        )

    def of_both(w, w_p):
        return loss(w, w_p, state.target if stop else w)

    rates, slopes = jax.jit(lambda: (flow.rates(state), jax.grad(of_both, (0, 1))(state.online, state.predictor)))()
    (online, predictor), held = map(np.asarray, slopes), jax.tree.map(np.asarray, state)
    np.testing.assert_allclose(rates.online, -online - 0.1 * held.online, atol=1e-5)
    np.testing.assert_allclose(rates.predictor, -2.0 * predictor - 0.1 * held.predictor, atol=1e-5)
    np.testing.assert_allclose(rates.target, held.online - held.target, atol=1e-6)


def test_the_balance_decays_as_predicted():
    """W Wᵀ − W_p²/α_p falls as e^{−2ηt} while W_p stays symmetric."""
    flow, state = random_flow(decay=0.2, predictor_rate=1.5, symmetric=True)
    # the symmetrised flow conserves it exactly where the two commute; X = 1 makes them
    flow = eqx.tree_at(lambda f: (f.shared, f.augmentation), flow, (jnp.eye(4), 0.3 * jnp.eye(4)))
    state = LinearState(
        jnp.eye(3, 4) * jnp.array([[0.9], [0.6], [0.4]]), jnp.diag(jnp.array([0.5, 0.8, 0.3])), 0.5 * jnp.eye(3, 4)
    )
    last = simulate(flow, state, 2.0, 400)
    balance = lambda s: s.online @ s.online.T - s.predictor @ s.predictor / 1.5  # noqa: E731
    np.testing.assert_allclose(balance(last), np.exp(-2 * 0.2 * 2.0) * balance(state), atol=1e-5)


def test_without_a_predictor_the_network_dies_at_the_predicted_rate():
    flow = LinearDynamics(jnp.eye(4), 0.3 * jnp.eye(4), predictor=False, target_rate=None)
    w = jax.random.normal(KEY, (3, 4))
    last = simulate(flow, LinearState(w, jnp.eye(3), w), 10.0, 1000)
    np.testing.assert_allclose(last.online, np.exp(-0.3 * 10.0) * w, rtol=1e-4)


def test_eigenspaces_align_and_modes_decouple():
    """X = 1, X' = σ²1, W_a = τW: each eigenvalue of the matrices follows the two equations of a mode."""
    modes = ModeDynamics(variance=0.3, decay=0.02, ratio=0.9, predictor_rate=1.4)
    flow = LinearDynamics(
        jnp.eye(5), 0.3 * jnp.eye(5), decay=0.02, ratio=0.9, predictor_rate=1.4, target_rate=None, symmetric=True
    )
    u = jnp.asarray(orthogonal(2, 3), jnp.float32)
    p, s = jnp.array([0.1, 0.5, 1.2]), jnp.array([0.2, 0.6, 0.05])
    w = (u * jnp.sqrt(s)[None, :]) @ jnp.asarray(orthogonal(4, 5)[:3], jnp.float32)
    last = simulate(flow, LinearState(w, (u * p[None, :]) @ u.T, w), 6.0, 600)
    found_p, found_s = jnp.diag(u.T @ last.predictor @ u), jnp.diag(u.T @ last.online @ last.online.T @ u)
    expected_p, expected_s = simulate_mode(modes, p, s, 6.0, 600)
    np.testing.assert_allclose(found_p, expected_p, atol=2e-5)
    np.testing.assert_allclose(found_s, expected_s, atol=2e-5)
    # apart at first, together at last
    rotated = LinearState(w, jnp.asarray(from_spectrum([0.4, 0.6, 0.9], seed=8), jnp.float32), w)
    late = simulate(flow, rotated, 60.0, 6000)
    begin = alignment(w @ w.T, rotated.predictor)
    assert float(alignment(late.online @ late.online.T, late.predictor)) < 1e-3 < 0.02 < float(begin)


def test_the_basin_of_collapse_ends_where_the_formula_says():
    modes = ModeDynamics(variance=0.3, decay=0.02)
    below, above = modes.rests()
    np.testing.assert_allclose([below, above], [0.020549, 0.748682], atol=2e-6)
    for factor, expected in ((0.9, 0.0), (1.1, float(above))):
        start = factor * below
        p, _ = simulate_mode(modes, start, start**2, 1000.0, 20_000)
        np.testing.assert_allclose(p, expected, atol=1e-3)
    hopeless = ModeDynamics(variance=0.3, decay=0.25)
    assert float(hopeless.largest_decay()) < 0.25
    assert bool(jnp.isnan(hopeless.rests()[0]))
    np.testing.assert_allclose(simulate_mode(hopeless, 0.9, 0.81, 100.0, 4000)[0], 0.0, atol=1e-6)


def test_the_mode_keeps_its_invariant():
    modes = ModeDynamics(variance=0.3, decay=0.05, predictor_rate=2.0)
    p, s = simulate_mode(modes, 0.4, 0.5, 3.0, 600)
    np.testing.assert_allclose(s - p**2 / 2.0, np.exp(-2 * 0.05 * 3.0) * (0.5 - 0.4**2 / 2.0), atol=1e-5)


def expected_loss(x, both, w, w_p, w_a):
    """½E‖W_p W x₁ − W_a x₂‖² over x₁ = x̄ + x'₁, x₂ = x̄ + x'₂, in closed form."""
    first = w_p @ w
    return 0.5 * (np.trace(first @ both @ first.T) - 2 * np.trace(first @ x @ w_a.T) + np.trace(w_a @ both @ w_a.T))


def slope(function, at, step=1e-5):
    """By central differences, entry by entry."""
    found = np.zeros_like(at)
    for place in np.ndindex(at.shape):
        move = np.zeros_like(at)
        move[place] = step
        found[place] = (function(at + move) - function(at - move)) / (2 * step)
    return found


def rates_by_hand(flow, w, w_p, target):
    """The flow down the expected loss with weight decay, all options as the docstring has them."""
    x, both = np.asarray(flow.shared, float), np.asarray(flow.shared + flow.augmentation, float)
    used, w_a = w_p if flow.predictor else np.eye(len(w)), target if flow.target_rate is not None else flow.ratio * w
    loss = (
        (lambda w_, p_: expected_loss(x, both, w_, p_, w_a))
        if flow.stop_gradient
        else (lambda w_, p_: expected_loss(x, both, w_, p_, (flow.ratio if flow.target_rate is None else 1.0) * w_))
    )
    online = -slope(lambda one: loss(one, used), w) - flow.decay * w
    predictor = -flow.predictor_rate * slope(lambda one: loss(w, one), used) - flow.decay * used
    if flow.symmetric:
        predictor = (predictor + predictor.T) / 2
    follow = 0.0 if flow.target_rate is None else flow.target_rate
    return online, predictor * flow.predictor, follow * (w - target)


def test_the_rates_of_all_options_are_slopes_of_the_expected_loss():
    """With a predictor that is not symmetric: a transposed product is then another one."""
    rng, settings = np.random.default_rng(3), {"decay": 0.1, "predictor_rate": 1.7, "ratio": 0.6}
    a, b = rng.normal(size=(2, 4, 4))
    flows = [
        LinearDynamics(
            a @ a.T / 4, b @ b.T / 8, predictor=some, stop_gradient=stop, symmetric=even, target_rate=rate, **settings
        )
        for some, stop, even, rate in itertools.product(*[(True, False)] * 3, (None, 0.7))
    ]
    w, w_p, target = rng.normal(size=(3, 4)), rng.normal(size=(3, 3)), rng.normal(size=(3, 4))
    found = jax.jit(lambda state: [flow.rates(state) for flow in flows])(LinearState(w, w_p, target))
    for flow, rates in zip(flows, found, strict=True):
        for got, wanted in zip(rates, rates_by_hand(flow, w, w_p, target), strict=True):
            np.testing.assert_allclose(got, wanted, atol=2e-4, err_msg=str(flow))


def test_a_target_that_is_the_network_itself_is_so_at_every_moment():
    """Times τ, whatever target one began with; a target that follows is another."""
    w, other = np.random.default_rng(6).normal(size=(2, 2, 2))

    def paths(state):
        flows = [LinearDynamics(np.eye(2), 0.3 * np.eye(2), ratio=0.7, target_rate=rate) for rate in (None, 0.5)]
        return [flow.path(state, 0.4, 2, 2) for flow in flows]

    itself, following = jax.jit(paths)(LinearState(w, np.eye(2), other))
    for state in itself:
        np.testing.assert_allclose(state.target, 0.7 * state.online, rtol=1e-6)
    assert np.abs(following[0].target - other).max() > 0.01
    assert np.abs(following[0].target - 0.7 * following[0].online).max() > 0.01


def runge_kutta(rates, state, dt, steps):
    """The classical method of fourth order, its states after every step."""
    seen = []
    for _ in range(steps):
        k1 = rates(state)
        k2 = rates([y + dt / 2 * k for y, k in zip(state, k1, strict=True)])
        k3 = rates([y + dt / 2 * k for y, k in zip(state, k2, strict=True)])
        k4 = rates([y + dt * k for y, k in zip(state, k3, strict=True)])
        mean = [(a + 2 * b + 2 * c + d) / 6 for a, b, c, d in zip(k1, k2, k3, k4, strict=True)]
        state = [y + dt * k for y, k in zip(state, mean, strict=True)]
        seen.append(state)
    return seen


def test_paths_are_of_fourth_order():
    """Steps so long that a method of another order is far off; a mode, whose settings are none a default."""
    modes = ModeDynamics(variance=0.3, decay=0.1, ratio=0.8, predictor_rate=1.4)
    flow = LinearDynamics(np.eye(2), 0.3 * np.eye(2), decay=0.1, predictor_rate=1.4, target_rate=0.5)
    w, w_p, target = 0.6 * np.random.default_rng(5).normal(size=(3, 2, 2))

    @jax.jit
    def both(state):
        return modes.simulate(0.9, 0.4, 2.4, 4), flow.path(state, 1.6, 4, 2)

    mode, (last, points) = both(LinearState(w, w_p, target))

    def rates(state):
        p, s = state
        drive = 0.8 - 1.3 * p
        return [1.4 * s * drive - 0.1 * p, 2 * p * s * drive - 0.2 * s]

    np.testing.assert_allclose(mode, runge_kutta(rates, [0.9, 0.4], 0.6, 4)[-1], rtol=1e-5)
    seen = runge_kutta(lambda state: rates_by_hand(flow, *state), [w, w_p, target], 0.4, 4)
    for got, at, wanted in zip(last, points, zip(seen[1], seen[3], strict=True), strict=True):
        np.testing.assert_allclose(at, wanted, atol=2e-4)
        np.testing.assert_array_equal(got, at[-1])


def test_the_rests_of_a_mode_are_where_its_rates_vanish():
    """Whatever the settings; at the largest decay there is still one, and beyond it none."""
    for variance, ratio, rate in ((0.3, 0.6, 1.4), (0.0, 2.0, 0.5), (1.5, 1.0, 1.0)):
        most = float(ModeDynamics(variance=variance, ratio=ratio, predictor_rate=rate).largest_decay())
        for share, rests in ((0.5, True), (0.99, True), (1.01, False)):
            modes = ModeDynamics(variance=variance, decay=share * most, ratio=ratio, predictor_rate=rate)
            found = np.asarray(modes.rests())
            assert np.isfinite(found).all() == rests
            for p in found[np.isfinite(found)]:
                np.testing.assert_allclose(modes.rates((p, p**2 / rate)), 0.0, atol=1e-6)
            assert found[0] < found[1] or not rests


@pytest.mark.slow
def test_small_steps_of_sgd_follow_the_flow():
    """The loop of this area on a linear network and many examples, against the differential equations."""
    rng = np.random.default_rng(0)
    n, d, rate, steps = 4, 3, 0.01, 200
    x = jnp.asarray(rng.normal(size=(2000, n)), jnp.float32)
    x = x @ jnp.asarray(np.linalg.inv(np.linalg.cholesky(np.asarray(x.T @ x) / 2000)).T, jnp.float32)  # X = 1 exactly
    noise = 0.5 * jnp.asarray(rng.normal(size=(2, 2000, n)), jnp.float32)
    # views ±: their mean over both signs is x exactly, so the four products give X and X' without sampling error
    v1 = jnp.concatenate([x + noise[0], x - noise[0], x + noise[0], x - noise[0]])
    v2 = jnp.concatenate([x + noise[1], x + noise[1], x - noise[1], x - noise[1]])
    siamese = Siamese(Linear(d), optax.sgd(rate), loss="l2", momentum=None, apply=lambda w, batch: batch @ w.T)
    w = jnp.asarray(0.5 * rng.normal(size=(d, n)), jnp.float32)
    state = siamese.init(KEY, w)
    step = eqx.filter_jit(siamese.step)
    extra = noise[0].T @ noise[0] / 2000, noise[1].T @ noise[1] / 2000
    # both directions of the loss together: twice the rate, with the mean of the two views' X'
    flow = LinearDynamics(x.T @ x / 2000, 0.5 * (extra[0] + extra[1]), target_rate=None)
    last = simulate(flow, LinearState(w, state.predictor, w), 2 * rate * steps, steps)
    for _ in range(steps):
        state, _ = step(state, v1, v2)
    np.testing.assert_allclose(state.online, last.online, atol=0.02)
    np.testing.assert_allclose(state.predictor, last.predictor, atol=0.02)
