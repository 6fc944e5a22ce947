"""cGML against closed forms: the descent, what the flow and the length learn, what the decoder learns, the sampler."""

import dataclasses
import itertools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from laureate.generative import Box, ConditionalState, LatentFlowRegressor, Perceptron, Regression, Sphere, make_model

RNG = np.random.default_rng(0)
X = jax.random.uniform(jax.random.key(0), (200, 1))
Y = jnp.where(jnp.arange(200)[:, None] % 2, X, -X)  # two right answers
WIDE = 1e6
make: Any = make_model


class Linear(eqx.Module):
    """G(h, z) = A h + B z."""

    a: jax.Array
    b: jax.Array

    def __call__(self, h, z):
        return self.a @ h + self.b @ z


class Constant(eqx.Module):
    """The same whatever it is given."""

    value: jax.Array

    def __call__(self, h, z):
        return self.value


class Turned(eqx.Module):
    """v + V z."""

    value: jax.Array
    turn: jax.Array

    def __call__(self, h, z):
        return self.value + self.turn @ z


class Times(eqx.Module):
    """h = a x."""

    a: jax.Array

    def __call__(self, x):
        return self.a * x


def half_squares(prediction, target):
    return 0.5 * jnp.sum((prediction - target) ** 2)


def linear(beta, b, a=None, **settings):
    a = np.zeros((len(b), 2)) if a is None else a
    decoder = Linear(jnp.asarray(a, jnp.float32), jnp.asarray(b, jnp.float32))
    still = lambda h, z: z  # noqa: E731
    usual = {"latent": Box(np.shape(b)[1], WIDE), "cost": half_squares}
    return LatentFlowRegressor(
        lambda x: x, decoder, still, lambda h, z: jnp.ones(()), inner_rate=beta, **usual | settings
    )


@pytest.fixture(scope="module")
def fitted():
    # Six pairs of keys all leave a margin of 7 % between the flow and standing still: rounding turns none.
    model = make(jax.random.key(1), "latent-flow", X, Y, width=32, learning_rate=3e-3, num_inner=10)
    return model.fit(jax.random.key(2), X, Y, num_steps=300, batch=64)


# --- the descent ------------------------------------------------------------------------------------------------------


def test_a_linear_decoder_contracts_to_the_pseudo_inverse_at_the_known_rate():
    """z_t − z* = (I − β BᵀB)^t (z_0 − z*), z* = B⁺(y − A h)."""
    a, b = RNG.normal(size=(4, 2)), RNG.normal(size=(4, 3))
    singular = np.linalg.svd(b, compute_uv=False)
    beta = 1.0 / singular[0] ** 2
    x, y = RNG.normal(size=(5, 2)), RNG.normal(size=(5, 4))
    known = np.linalg.pinv(b) @ (y - x @ a.T).T
    arrays = [jnp.asarray(v, jnp.float32) for v in (x, y)]
    z = jnp.asarray(known.T + 0.3 * RNG.normal(size=(5, 3)), jnp.float32)
    model = linear(beta, b, a)
    path = jax.jit(jax.vmap(lambda h, z, y: model.inner_step(model.networks, h, z, y)[1]))
    apart, matrix = np.asarray(z) - known.T, np.eye(3) - beta * b.T @ b
    for step in range(1, 30):
        z = path(arrays[0], z, arrays[1])
        wanted = known.T + apart @ np.linalg.matrix_power(matrix, step).T
        np.testing.assert_allclose(z, wanted, atol=2e-4)
    factor = max(abs(1 - beta * singular**2))
    assert np.linalg.norm(np.asarray(z) - known.T) <= factor**29 * np.linalg.norm(apart) + 2e-3


def test_costs_never_rise_below_twice_the_inverse_curvature():
    """L by power iteration on the Hessian in z, per example; β = 1 / (2 L)."""
    model = make(jax.random.key(3), "latent-flow", X, Y, width=8, latent=Box(2, WIDE), cost=half_squares)
    model = eqx.tree_at(lambda m: m.decoder, model, _smooth(model.decoder))
    x, y = X[:6], 3 * Y[:6]
    state = model.init()

    def curvature(x, y, z):
        slope = jax.grad(lambda z: model.energy(model.networks, model.encoder(x), z, y))

        def power(vector, _):
            image = jax.jvp(slope, (z,), (vector,))[1]
            return image / jnp.linalg.norm(image), jnp.linalg.norm(image)

        return jax.lax.scan(power, jnp.array([0.6, 0.8]), length=30)[1][-1]

    key = jax.random.key(5)

    def slow_descent():
        largest = jnp.max(jax.vmap(curvature)(x, y, Box(2, 1.0).draw(key, (6,))))
        slow = eqx.tree_at(lambda m: (m.inner_rate, m.latent), model, (0.5 / largest, Box(2, 1.0)))
        return slow.descent(key, state, x, y)

    found = jax.jit(slow_descent)()
    steps = np.diff(np.asarray(found.costs), axis=0)
    assert found.costs.shape == (21, 6)
    assert steps.max() <= 1e-6
    assert (found.costs[-1] < found.costs[0]).all()


def _smooth(network):
    return Perceptron(network.weights, network.biases, network.shape, jnp.tanh)


def test_latents_of_a_batch_do_not_see_each_other():
    """∂z_i / ∂y_j = 0 for i ≠ j, after the whole descent."""
    model = make(jax.random.key(3), "latent-flow", X, Y, width=8, num_inner=3, cost=half_squares)
    latents = lambda y: model.descent(jax.random.key(0), model.init(), X[:4], y).latents  # noqa: E731
    jacobian = np.asarray(jax.jit(jax.jacobian(latents))(Y[:4]))[..., 0]  # [4, 2, 4]
    for i, j in np.ndindex(4, 4):
        assert (np.abs(jacobian[i, :, j]).max() > 1e-6) == (i == j)


def test_the_sphere_keeps_its_length_and_steps_along_its_tangent():
    sphere, vectors = Sphere(5), jnp.asarray(RNG.normal(size=(50, 5)), jnp.float32)
    model = make(jax.random.key(3), "latent-flow", X, Y, width=8, num_inner=1, inner_rate=0.3)
    point, start = np.array([0.6, 0.8]), jnp.array([0.6, 0.8])

    @jax.jit
    def computed(x, y):
        z = sphere.draw(jax.random.key(0), (50,))
        along = sphere.tangent(z, vectors)
        ends = sphere.project(z - 0.7 * along), sphere.project(jnp.array([[3.0, 4.0], [0.0, 2.0]]))
        h = model.encoder(x)
        cost, gradient = jax.value_and_grad(model.energy, argnums=2)(model.networks, h, start, y)
        return (z, along, *ends), (cost, gradient), model.inner_step(model.networks, h, start, y)

    (z, along, moved, rows), (cost, gradient), (told, after) = jax.tree.map(np.asarray, computed(X[0], Y[0]))
    np.testing.assert_allclose((along * z).sum(1), 0, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(moved, axis=1), 1, atol=1e-6)
    # Each example by its own length, not the batch's.
    np.testing.assert_allclose(rows, [[0.6, 0.8], [0, 1]], atol=1e-6)
    wanted = point - 0.3 * (gradient - (gradient @ point) * point)
    np.testing.assert_allclose(after, wanted / np.linalg.norm(wanted), atol=1e-5)
    np.testing.assert_allclose(told, cost, rtol=1e-5)


def test_draws_are_uniform_on_the_sphere_and_in_the_box():
    key, walls = jax.random.key(1), jnp.array([-3.0, 0.05, 3.0])
    all_sets = jax.jit(
        lambda: (Sphere(3).draw(key, (4000,)), Box(2, 0.1).draw(key, (4000,)), Box(3, 0.1).project(walls))
    )
    z, box, clipped = (np.asarray(values) for values in all_sets())
    np.testing.assert_allclose(z.mean(0), 0, atol=5 * (1 / 3 / 4000) ** 0.5)
    np.testing.assert_allclose((z**2).mean(0), 1 / 3, atol=5 * (4 / 45 / 4000) ** 0.5)
    assert np.abs(box).max() <= 0.1
    np.testing.assert_allclose((box**2).mean(0), 0.01 / 3, rtol=0.1)
    np.testing.assert_allclose(clipped, [-0.1, 0.05, 0.1], rtol=1e-6)


# --- a whole training step, in NumPy ----------------------------------------------------------------------------------


@pytest.mark.parametrize("smoothness", [0.0, 0.5])
def test_a_training_step_by_hand(smoothness):
    """Frozen H and G in the descent, Z and ρ by every step of it, then H and G by the last latent; plain descent."""
    a, b, u, v, c = 0.7, np.array([[0.4]]), np.array([[0.5, -0.8]]), np.array([0.1, 0.2]), 0.3
    t = np.array([[0.6, -0.3], [0.2, 0.4]])
    beta, rate, flow_rate, nearby = 0.4, 0.05, 0.03, 0.2
    arrays = [jnp.asarray(value, jnp.float32) for value in (a, b, u, v, c, t)]
    model = LatentFlowRegressor(
        Times(arrays[0]),
        Linear(arrays[1], arrays[2]),
        Turned(arrays[3], arrays[5]),
        Constant(arrays[4]),
        latent=Box(2, WIDE),
        inner_rate=beta,
        learning_rate=rate,
        flow_rate=flow_rate,
        smoothness=smoothness,
        nearby=nearby,
        num_inner=3,
        cost=half_squares,
        optimiser=optax.sgd,
    )
    x, y = RNG.normal(size=(4, 1)), RNG.normal(size=(4, 1))
    key = jax.random.key(4)
    draw_key, near_key = jax.random.split(key)
    model = eqx.tree_at(lambda m: m.latent, model, Box(2, 1.0))
    z = np.asarray(model.latent.draw(draw_key, (4,)), float)
    noise = nearby * np.asarray(jax.random.normal(near_key, (4, 3)))
    model = eqx.tree_at(lambda m: m.latent.radius, model, 1.0)
    h, flow_losses, length_losses, copies = a * x, [], [], []
    first = 0.5 * (h @ b.T + z @ u.T - y)[:, 0] ** 2
    for _ in range(3):
        left = h @ b.T + z @ u.T - y  # [4, 1]
        after = np.clip(z - beta * left @ u, -1, 1)
        lengths = np.linalg.norm(after - z, axis=1)
        there = v + z @ t.T
        flow_losses.append(((there - after) ** 2).sum(1).mean())
        length_losses.append(((c - lengths) ** 2).mean())
        copies.append((lengths**2).mean())
        rough = np.sign(noise[:, 1:] @ t.T)  # |Z(· + e) − Z(·)|, over four rows of two numbers
        v = v - flow_rate * 2 * (there - after).mean(0)
        t = t - flow_rate * (2 * (there - after).T @ z / 4 + smoothness * rough.T @ noise[:, 1:] / 8)
        c = c - flow_rate * 2 * (c - lengths).mean()
        z = after
    left = h @ b.T + z @ u.T - y
    last = 0.5 * left[:, 0] ** 2
    rough = np.sign(noise[:, :1] @ b.T + noise[:, 1:] @ u.T)  # |G(· + e) − G(·)|, whose mean has the weight
    new_b = b - rate * ((left.T @ h) / 4 + smoothness * (rough.T @ noise[:, :1]) / 4)
    new_u = u - rate * ((left.T @ z) / 4 + smoothness * (rough.T @ noise[:, 1:]) / 4)
    new_a = a - rate * float((left @ b * x).mean())
    batch = [jnp.asarray(value, jnp.float32) for value in (x, y)]
    state, info = jax.jit(lambda: model.step(key, *batch, model.init()))()
    found = model.trained(state.parameters)
    wanted = {"encoder": new_a, "flow": v, "turn": t, "length": c}
    got = {"encoder": found["encoder"].a, "flow": found["flow"].value, "length": found["length"].value}
    got["turn"] = found["flow"].turn
    for name, value in wanted.items():
        np.testing.assert_allclose(got[name], value, rtol=1e-4, atol=1e-6, err_msg=name)
    np.testing.assert_allclose(found["decoder"].a, new_b, rtol=1e-4)
    np.testing.assert_allclose(found["decoder"].b, new_u, rtol=1e-4)
    for name, value in (("loss", last), ("first_loss", first), ("risen", last > first)):
        np.testing.assert_allclose(getattr(info, name), value.mean(), rtol=1e-4, err_msg=name)
    for name, values in (("flow_loss", flow_losses), ("length_loss", length_losses), ("copy_loss", copies)):
        np.testing.assert_allclose(getattr(info, name), np.mean(values), rtol=1e-4, err_msg=name)
    assert int(info.cost) == 3 * 3 + 2
    assert int(state.step) == 1


class Shift(eqx.Module):
    """y = x + shift."""

    shift: jax.Array

    def __call__(self, x):
        return x + self.shift


class Watched(Regression):
    """Tells its key and its pairs instead of learning."""

    def step(self, key, x, y, state):  # pyright: ignore[reportIncompatibleMethodOverride]
        return state._replace(step=state.step + 1), (jax.random.key_data(key), x, y)


def test_every_step_of_training_has_the_key_and_the_pairs_of_its_number():
    """Rows with replacement, and of each row both the input and its answer."""
    model, key = Watched(Shift(jnp.zeros(1))), jax.random.key(6)
    x, y = np.arange(5.0)[:, None], 10 + np.arange(5.0)[:, None]

    def of_number(n):
        rows_key, step_key = jax.random.split(jax.random.fold_in(key, n))
        return jax.random.key_data(step_key), jax.random.uniform(rows_key, (4,))

    def run(x, y):
        start = model.init()._replace(step=jnp.asarray(7))
        state, told = model.train(key, x, y, start, num_steps=3, batch=4)
        return state.step, told, jax.vmap(of_number)(7 + jnp.arange(3))

    step, (keys, inputs, answers), (wanted, drawn) = jax.tree.map(np.asarray, jax.jit(run)(x, y))
    places = (drawn * 5).astype(int)
    assert step == 10
    np.testing.assert_array_equal(keys, wanted)
    np.testing.assert_array_equal(inputs, x[places])
    np.testing.assert_array_equal(answers, y[places])


@pytest.mark.parametrize("kind", ["regression", pytest.param("latent-flow", marks=pytest.mark.slow)])
def test_training_in_parts_is_training(kind, request):
    model = Regression(Shift(jnp.zeros(1))) if kind == "regression" else request.getfixturevalue("fitted").model
    key = jax.random.key(6)
    train = jax.jit(lambda state, n: model.train(key, X, Y, state, num_steps=n, batch=8)[0], static_argnums=1)
    whole, part = train(model.init(), 4), train(train(model.init(), 2), 2)
    for one, two in zip(jax.tree.leaves(whole), jax.tree.leaves(part), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-7)


# --- the sampler ------------------------------------------------------------------------------------------------------


def walk(model, start, mode, steps):
    z, path = start, [start]
    for _ in range(steps):
        z = model.move(model.networks, jnp.zeros(2), z, mode)
        path.append(z)
    return np.asarray(path)


def test_the_average_step_between_two_answers_stalls_and_the_length_goes_on():
    """G = b z, y = ±c: the average of the two descents is z − β b² z, with a fixed point midway, where G is wrong.

    The average length there is β b c: with it a latent never comes to rest.
    """
    b, c, beta = 0.8, 0.5, 0.6
    model = linear(beta, [[b]])
    flow, length = (lambda h, z: (1 - beta * b**2) * z), (lambda h, z: jnp.asarray(beta * b * c))
    # By the method's own descent: the average over both answers is that map, and the lengths' average that number.
    z = jnp.array([0.1])
    ends = [model.inner_step(model.networks, jnp.zeros(2), z, jnp.array([y]))[1] for y in (c, -c)]
    np.testing.assert_allclose((ends[0] + ends[1]) / 2, flow(None, z), rtol=1e-5)
    np.testing.assert_allclose((abs(ends[0] - z) + abs(ends[1] - z)) / 2, length(None, z), rtol=1e-5)
    model = eqx.tree_at(lambda m: (m.flow, m.length), model, (flow, length), is_leaf=callable)
    stalled = walk(model, z, "iterated", 30)
    np.testing.assert_allclose(stalled[:, 0], 0.1 * (1 - beta * b**2) ** np.arange(31), rtol=1e-4)
    going = walk(model, z, "directed", 8)
    np.testing.assert_allclose(np.abs(np.diff(going[:, 0])), beta * b * c, rtol=1e-4)


def test_a_directed_step_is_the_formula_on_the_sphere():
    model = make(jax.random.key(3), "latent-flow", X, Y, width=8)
    z = np.array([0.6, -0.8], np.float32)

    @jax.jit
    def computed(x, z):
        h = model.encoder(x)
        moves = (model.move(model.networks, h, z), model.move(model.networks, h, z, "iterated"))
        return model.flow(h, z), model.length(h, z)[0], *moves

    there, rho, found, iterated = (np.asarray(values) for values in computed(X[0], z))
    wanted = z + rho * (there - z) / np.linalg.norm(there - z)
    np.testing.assert_allclose(found, wanted / np.linalg.norm(wanted), atol=1e-5)
    np.testing.assert_allclose(iterated, there / np.linalg.norm(there), atol=1e-5)


@pytest.fixture(scope="module")
def ways(fitted):
    """Answers to the same x from the same first latents, in every way, in one program."""
    model, key, x = fitted.model, jax.random.key(3), X[:6]
    still = dataclasses.replace(model, num_moves=0)

    @jax.jit
    def every(state):
        found = {mode: model.sample(key, state, x, 3, mode=mode) for mode in ("raw", "directed", "iterated")}
        alone = ConditionalState(jnp.zeros((), jnp.int32), state.parameters, None)
        found |= {
            "no optimiser": model.sample(key, alone, x, 3),
            "no moves": model.sample(key, state, x, 3, num_moves=0),
        }
        return found | {"still": still.sample(key, state, x, 3), "longer": model.sample(key, state, x, 3, num_moves=9)}

    return jax.tree.map(np.asarray, every(fitted.state))


def test_no_moves_are_raw_and_each_way_differs(ways):
    for name in ("no moves", "still"):
        np.testing.assert_allclose(ways[name], ways["raw"], atol=1e-6, err_msg=name)
    different = [ways[name] for name in ("raw", "directed", "iterated", "longer")]
    for one, two in itertools.combinations(different, 2):
        assert not np.allclose(one, two)


def test_sampling_has_no_input_for_the_answer(fitted):
    """What is compiled takes the networks, the key and x; y is neither among them nor kept in the state."""
    model, state = fitted.model, fitted.state
    arrays = eqx.filter((state, X[:3]), eqx.is_array)
    closed = jax.make_jaxpr(lambda state, x: model.sample(jax.random.key(0), state, x, 2))(state, X[:3])
    assert len(closed.in_avals) == len(jax.tree.leaves(arrays))
    shapes = [leaf.shape for leaf in (*jax.tree.leaves(state), *closed.consts) if hasattr(leaf, "shape")]
    assert not [shape for shape in shapes if shape[:1] == (len(Y),)]


def test_more_samples_than_fit_at_once_are_the_same(fitted, ways, monkeypatch):
    key, x = jax.random.key(3), X[:6]
    whole = fitted.sample(key, x, 5)
    monkeypatch.setattr("laureate.generative.conditional.ROWS_AT_ONCE", 12)
    chunked = jax.jit(lambda: fitted.model.sample(key, fitted.state, x, 5))()
    # Rounding, which depends on the processor, grows along the moves of a latent; another draw is off by tenths.
    np.testing.assert_allclose(chunked, whole, atol=1e-3)
    np.testing.assert_allclose(ways["directed"], whole[:3], atol=1e-3)


def test_training_finds_latents_that_explain_the_pairs(fitted):
    found = fitted.infer(jax.random.key(4), X, Y)
    assert found.latents.shape == (200, 2)
    assert found.costs.shape == (11, 200)
    assert found.costs[-1].mean() < 0.6 * found.costs[0].mean()
    assert fitted.history.loss[-20:].mean() < 0.6 * fitted.history.first_loss[-20:].mean()
    assert fitted.history.flow_loss[-20:].mean() < fitted.history.copy_loss[-20:].mean()


def test_with_one_answer_all_samples_are_the_regression():
    """The latent has nothing to tell: draws coincide, and are what regression gives."""
    y = 2 * X - 1
    model = make(jax.random.key(1), "latent-flow", X, y, width=16, learning_rate=1e-2, num_inner=5)
    fitted = model.fit(jax.random.key(2), X, y, num_steps=300, batch=32)
    drawn = np.asarray(fitted.sample(jax.random.key(3), X[:50], 8, mode="raw"))
    assert drawn.std(0).mean() < 0.06
    assert np.abs(drawn - np.asarray(y[:50])).mean() < 0.08


def test_a_state_without_its_optimiser_draws(ways):
    np.testing.assert_allclose(ways["no optimiser"], ways["directed"], atol=1e-6)
