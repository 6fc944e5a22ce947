"""The solver against discrete recursions that are exact, closed forms, quadrature and Monte Carlo."""

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate._core import Status
from laureate.pde import (
    ALS,
    DeepBackward,
    DeepBSDE,
    MonteCarlo,
    Polynomials,
    TensorTrainSolver,
)
from laureate.pde.networks import network, standards
from laureate.pde.problem import simulate
from laureate.pde.steps import Along
from laureate.problems import pdes


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


run = eqx.filter_jit(lambda solver, key, pde, *control: solver.run(key, pde, *control))
QUICK: dict[str, Any] = {"compiler_options": {"xla_backend_optimization_level": 0}}  # for what runs for milliseconds


class Affine(eqx.Module):
    """g = 1 + w·x, h = −r y + c·z − q/2 |z|² + f cos(5t), drift b (1 + t): V is affine in x, and each step is known."""

    w: jax.Array
    r: jax.Array
    c: jax.Array
    q: jax.Array
    f: jax.Array
    b: jax.Array
    sigma: jax.Array
    x0: jax.Array
    horizon: float = 0.8

    def drift(self, t, x):
        return self.b * (1 + t)

    def diffusion(self, t, x):
        return self.sigma

    def driver(self, t, x, y, z):
        return -self.r * y + self.c @ z - self.q / 2 * jnp.sum(z**2) + self.f * jnp.cos(5 * t)

    def terminal(self, x):
        return 1 + self.w @ x


def affine(w=1.0, r=0.0, f=0.7, q=0.6, c=1.0):
    sigma = np.random.default_rng(0).normal(size=(4, 3)) / 2
    return Affine(
        w=w * np.array([1.0, -0.5, 0.3, 0.8]),
        r=np.array(r),
        c=c * np.array([0.4, -0.2, 0.5]),
        q=np.array(q),
        f=np.array(f),
        b=np.array([0.3, 0.1, -0.2, 0.5]),
        sigma=sigma,
        x0=np.array([0.2, -0.1, 0.4, 0.0]),
    )


def affine_solver(scheme):
    return TensorTrainSolver(
        Polynomials(-4.0, 4.0, 1),
        rank=2,
        num_steps=8,
        num_samples=400,
        scheme=scheme,
        use_terminal=False,
        regression=ALS(tolerance=1e-8, max_sweeps=60, damping=0.0),  # damping is a bias, if a small one
        tolerance=1e-10,
    )


def affine_value(pde, times):
    """With the driver's source at these times; the drift is always that of a step's beginning."""
    dt = pde.horizon / len(times)
    z = pde.sigma.T @ pde.w
    flat = pde.c @ z - pde.q / 2 * np.sum(z**2)
    end = pde.x0 + pde.b * dt * np.sum(1 + dt * np.arange(len(times)))
    return pde.terminal(end) + pde.horizon * flat + pde.f * dt * np.sum(np.cos(5 * times))


class Turning(Affine):
    """The same where drift and diffusion depend on place and time."""

    def drift(self, t, x):
        return self.b * (1 + t) + 0.5 * x[..., ::-1]

    def diffusion(self, t, x):
        return self.sigma * (1 + t) * (1 + 0.2 * x[0])


class Push(eqx.Module):
    u: jax.Array

    def __call__(self, t, x):
        return self.u


def test_implicit_scheme_is_exact_where_the_martingale_term_takes_all_noise():
    """Drift, matrix diffusion, driver's sign in z, the martingale term and its sign, h at t_n and not t_{n+1}."""
    pde = affine()
    solution = run(affine_solver("implicit"), jax.random.key(0), pde)
    assert abs(solution.v0 - affine_value(pde, np.arange(8) * 0.1)) < 1e-7
    assert jnp.all(solution.info.status == Status.OK)
    gradient = np.asarray(jax.jit(lambda x: solution.gradient(0.3, x))(pde.x0))
    z = pde.sigma.T @ (gradient - pde.w)  # four coordinates, three noises: no more can be known
    assert np.max(np.abs(z)) < 1e-5


@pytest.mark.parametrize("scheme", ["implicit", "explicit"])
def test_without_noise_each_scheme_follows_its_own_recursion(scheme):
    """The driver's sign in y and its time: t_n in the implicit, t_{n+1} in the explicit scheme."""
    pde = affine(w=0.0, r=0.9)
    value, dt = 1.0, 0.1
    for n in range(7, -1, -1):
        if scheme == "implicit":
            value = (value + 0.7 * np.cos(5 * n * dt) * dt) / (1 + 0.9 * dt)
        else:
            value = value + (-0.9 * value + 0.7 * np.cos(5 * (n + 1) * dt)) * dt
    assert abs(run(affine_solver(scheme), jax.random.key(1), pde).v0 - value) < 1e-7


@pytest.mark.slow
def test_explicit_scheme_is_right_within_its_noise():
    pde = affine()
    found = [run(affine_solver("explicit"), jax.random.key(seed), pde).v0 for seed in range(6)]
    noise = np.linalg.norm(pde.sigma.T @ pde.w) * np.sqrt(0.8 / 400)
    # Six independent means; four standard errors of their mean.
    assert abs(np.mean(found) - affine_value(pde, np.arange(1, 9) * 0.1)) < 4 * noise / np.sqrt(6)
    assert 0.2 * noise < np.std(found) < 3 * noise


def test_an_explicit_target_under_a_control_by_hand():
    """V + h Δt at the end of the step, less ∇V·σu Δt where the paths were pushed."""
    pde, rng = affine(), np.random.default_rng(1)
    x, after, gradient = rng.normal(size=(3, 5, 4))
    value, nothing, solver = rng.normal(size=5), jnp.zeros(0), affine_solver("explicit")
    along = Along(0.3, 0.1, x, after, nothing, nothing, nothing, (value, gradient), nothing)
    driven = [pde.driver(0.4, a, v, pde.sigma.T @ g) for a, v, g in zip(after, value, gradient, strict=True)]
    expected = value + 0.1 * np.asarray(driven)
    push = np.array([1.0, -2.0, 0.5])
    np.testing.assert_allclose(solver._explicit(pde, None, along), expected, rtol=1e-9)
    expected -= 0.1 * gradient @ pde.sigma @ push
    np.testing.assert_allclose(solver._explicit(pde, Push(jnp.asarray(push)), along), expected, rtol=1e-9)


@pytest.mark.slow
def test_a_control_of_the_paths_does_not_change_the_solution():
    pde, push = affine(), Push(jnp.array([1.0, -2.0, 0.5]))
    solution = run(affine_solver("implicit"), jax.random.key(0), pde, push)
    assert abs(solution.v0 - affine_value(pde, np.arange(8) * 0.1)) < 1e-7
    found = [run(affine_solver("explicit"), jax.random.key(seed), pde, push).v0 for seed in range(6)]
    noise = np.linalg.norm(pde.sigma.T @ pde.w) * np.sqrt(0.8 / 400)
    assert abs(np.mean(found) - affine_value(pde, np.arange(1, 9) * 0.1)) < 4 * noise / np.sqrt(6)


def test_hjb_100():
    pde = pdes.HJBLog(100)
    solver = TensorTrainSolver(Polynomials(-6.0, 6.0, 0), num_steps=100, num_samples=2000)
    solution = run(solver, jax.random.key(0), pde)
    # Seed-to-seed scatter 1.5e-4 relative (measured); four of them. Looser, it is blind to a diffusion left out.
    assert abs(solution.v0 / 4.590161724604866 - 1) < 6e-4
    assert jnp.all(solution.info.status == Status.OK)


@pytest.mark.slow
def test_allen_cahn_100():
    pde = pdes.AllenCahn(100)
    solver = TensorTrainSolver(Polynomials(-6.0, 6.0, 0), num_steps=30, num_samples=1000)
    assert abs(run(solver, jax.random.key(0), pde).v0 / 0.0527813 - 1) < 5e-3


@pytest.fixture(scope="module")
def quadratic():
    with jax.enable_x64(True):
        pde = pdes.QuadraticHJB(5)
        solver = TensorTrainSolver(
            Polynomials(-6.0, 6.0, 2),
            rank=2,
            num_steps=20,
            num_samples=1500,
            use_terminal=False,
            regression=ALS(tolerance=1e-3, max_sweeps=3),
            tolerance=1e-4,
        )
        return run(solver, jax.random.key(0), pde)


def test_quadratic_hjb_value_gradient_and_control(quadratic):
    pde = quadratic.pde
    exact = float(pde.exact(0.0, pde.x0))
    assert abs(quadratic.v0 / exact - 1) < 0.03
    points = np.random.default_rng(1).normal(size=(50, 5)) * 0.7  # where the paths are at t = 0.5

    @jax.jit
    @jax.vmap
    def all_of(t, x):
        found, exact = quadratic.value_and_gradient(t, x), jax.value_and_grad(lambda x: pde.exact(t, x))(x)
        return found, exact, quadratic.optimal_control(t, x)

    times, places = np.append(np.full(50, 0.5), 0.0), np.concatenate([points, pde.x0[None]])
    first, rest = (
        jax.tree.map(lambda leaf, at=at: np.asarray(leaf)[at], all_of(times, places)) for at in (-1, slice(50))
    )
    assert abs(first[0][0] - quadratic.v0) < 1e-12
    (value, gradient), (truth, slope), control = rest
    assert np.mean(np.abs(value - truth)) < 0.03 * np.mean(truth)
    assert np.mean((gradient - slope) ** 2) < 0.05 * np.mean(slope**2)
    assert np.max(np.abs(control + gradient)) < 1e-12


def test_quadratic_hjb_interval_holds_the_truth(quadratic):
    interval = quadratic.interval(jax.random.key(5), num_paths=2000, level=0.99)
    truth = float(quadratic.pde.exact(0.0, quadratic.pde.x0))
    bias = 0.02 * truth  # twenty time steps
    assert interval.low - bias < truth < interval.high + bias
    assert interval.standard_error < 0.01


def test_residual_equals_finite_differences(quadratic):
    x, t, e = np.array([0.3, -0.2, 0.5, 0.1, -0.4]), 0.52, 1e-4
    compiled = jax.jit(lambda t, x: (quadratic.value(t, x, interpolate=True), quadratic.residual(t, x)))
    value = lambda t, x: float(compiled(t, x)[0])  # noqa: E731
    basis = np.eye(5) * e
    laplacian = sum((value(t, x + s) - 2 * value(t, x) + value(t, x - s)) / e**2 for s in basis)
    slope = np.array([(value(t, x + s) - value(t, x - s)) / (2 * e) for s in basis])
    rate = (value(t + e, x) - value(t - e, x)) / (2 * e)
    expected = rate + laplacian / 2 - np.sum(slope**2) / 2
    assert abs(compiled(t, x)[1] - expected) < 1e-5


def test_times_are_checked(quadratic):
    x = jnp.zeros(5)
    with pytest.raises(ValueError, match=r"t must be in \[0, 1\.0\]; got 1\.5"):
        quadratic.value(1.5, x)
    with pytest.raises(ValueError, match=r"multiple of 0\.05"):
        quadratic.value(0.51, x)

    @jax.jit
    def values(x):
        times = quadratic.value(0.525, x, interpolate=True), quadratic.value(0.5, x), quadratic.value(0.55, x)
        last = quadratic.value(1.0, x + 1) - quadratic.pde.terminal(x + 1)
        return (*times, last, quadratic.value(0.0, quadratic.pde.x0) - quadratic.v0)

    between, before, after, last, first = map(float, values(x))
    assert abs(between - (before + after) / 2) < 1e-12
    assert abs(last) < 1e-12
    assert abs(first) < 1e-12
    with pytest.raises(ValueError, match="level must be in"):
        quadratic.interval(jax.random.key(0), level=1.0)


@pytest.mark.slow
def test_black_scholes_call_in_one_dimension():
    pde = pdes.BlackScholesBasket(1)
    solver = TensorTrainSolver(Polynomials(0.2, 2.5, 5), num_steps=20, num_samples=4000, use_terminal=False)
    assert abs(run(solver, jax.random.key(0), pde).v0 / pde.exact(0.0, pde.x0) - 1) < 0.03


EQUATIONS = [
    # Tolerances: the bias of the few time steps used here, by hand from two step sizes, plus the scatter over seeds.
    ("heat", lambda: pdes.Heat(6, 0.5), Polynomials(-5.0, 5.0, 2), False, 0.01),
    ("linear-quadratic", lambda: pdes.LinearQuadratic(4), Polynomials(-5.0, 5.0, 2), False, 0.03),
    ("basket", lambda: pdes.BlackScholesBasket(4), Polynomials(0.2, 2.5, 2), True, 0.05),
    ("double-well", lambda: pdes.DoubleWell(6), Polynomials(-3.0, 3.0, 3), False, 0.02),
    # Scatter over six seeds 1.3 %, of which four, and no bias to be seen between 20 and 40 steps.
    ("unbounded-sine", lambda: pdes.UnboundedSine(2), Polynomials(-4.0, 5.0, 3), True, 0.06),
]


@pytest.mark.slow  # the quadratic HJB equation above has one as well
@pytest.mark.parametrize("case", [pytest.param(case, id=case[0]) for case in EQUATIONS])
def test_equations_with_a_closed_form(case):
    _, make, basis, use_terminal, tolerance = case
    pde = make()
    regression = ALS(tolerance=1e-3, max_sweeps=3)
    solver = TensorTrainSolver(basis, 2, 20, 1000, use_terminal=use_terminal, regression=regression, tolerance=1e-4)
    assert abs(run(solver, jax.random.key(0), pde).v0 / pde.exact(0.0, pde.x0) - 1) < tolerance


@pytest.mark.slow
def test_bond_price_agrees_with_feynman_and_kac():
    pde = pdes.CIRBond(5)
    solver = TensorTrainSolver(Polynomials(0.0, 4.0, 2), 1, 40, 1000, use_terminal=False, tolerance=1e-4)
    reference = eqx.filter_jit(lambda key: MonteCarlo(20_000, 40).run(key, pde))(jax.random.key(1))
    # 1/(1 + rΔt) against Monte Carlo's exp(−rΔt): (rΔt)²/2 a step, 1.5 % in all for r = 1.1.
    assert abs(run(solver, jax.random.key(0), pde).v0 / reference.v0 - 1) < 0.02 + 4 * reference.standard_error


def test_monte_carlo_forms():
    pde = pdes.QuadraticHJB(4)
    exact = pde.exact(0.0, pde.x0)
    exponential = MonteCarlo(20_000, 4, "exponential")
    plain, push = jax.jit(
        lambda key: (exponential.run(key, pde), exponential.run(key, pde, control=lambda t, x: 0.3 + 0.0 * x))
    )(jax.random.key(0))
    assert abs(plain.v0 - exact) < 4 * plain.standard_error
    # Any control gives the same mean; the right one hardly any variance.
    assert abs(push.v0 - exact) < 4 * push.standard_error

    def best(t, x):
        return -jax.grad(pde.exact, argnums=1)(t, x)

    sharp = jax.jit(lambda key: MonteCarlo(2000, 50, "exponential").run(key, pde, control=best))(jax.random.key(0))
    assert sharp.standard_error * np.sqrt(2000) < plain.standard_error * np.sqrt(20_000) / 3
    heat = jax.jit(lambda key: MonteCarlo(20_000, 4).run(key, pdes.Heat(3)))(jax.random.key(0))
    assert abs(heat.v0 - 3.0) < 4 * heat.standard_error
    with pytest.raises(ValueError, match="needs a driver of the form"):
        MonteCarlo(10, 2).run(jax.random.key(0), pde)
    with pytest.raises(ValueError, match="needs a driver of the form"):
        MonteCarlo(10, 2, "exponential").run(jax.random.key(0), pdes.CIRBond(2))
    compiled = eqx.filter_jit(lambda key, pde: MonteCarlo(10, 2).run(key, pde))
    refused = compiled(jax.random.key(0), pde)
    assert jnp.isnan(refused.v0)
    assert jnp.isnan(refused.standard_error)
    assert refused.status == Status.DIVERGED
    assert compiled(jax.random.key(0), pdes.CIRBond(2)).status == Status.OK


def test_monte_carlo_discounts():
    """Without noise the sum is known to rounding; with it, Black and Scholes' formula is met."""
    pde = eqx.tree_at(lambda pde: pde.sigma, affine(r=0.9, q=0.0, c=0.0), np.zeros((4, 3)))
    dt = pde.horizon / 8
    factors = np.exp(-0.9 * dt * np.arange(9))
    end = pde.x0 + pde.b * dt * np.sum(1 + dt * np.arange(8))  # b (1 + t) at the beginning of each step
    expected = factors[8] * (1 + pde.w @ end) + np.sum(factors[:8] * 0.7 * np.cos(5 * dt * np.arange(8))) * dt
    assert abs(jax.jit(lambda key: MonteCarlo(2, 8).run(key, pde).v0)(jax.random.key(0)) - expected) < 1e-12
    call = pdes.BlackScholesBasket(2)
    found = jax.jit(lambda key: MonteCarlo(20_000, 20).run(key, call))(jax.random.key(1))
    assert abs(found.v0 - call.exact(0.0, call.x0)) < 4 * found.standard_error


def test_deep_bsde_has_no_loss_at_the_solution():
    """Driver's sign, martingale's sign, times, the last point: with the true V(0, x0) and Z the path of Y ends at g."""
    pde, solver = affine(), DeepBSDE(num_steps=8, batch=16, width=4)
    state = eqx.filter_jit(lambda key: solver.init(key, pde), **QUICK)(jax.random.key(0))
    z = pde.sigma.T @ pde.w
    nets = jax.tree.map(jnp.zeros_like, state.parameters[2])
    nets = eqx.tree_at(lambda net: net.layers[-1].bias, nets, jnp.broadcast_to(z, (7, 3)))
    value = affine_value(pde, np.arange(8) * 0.1)

    one = lambda level: solver.step(jax.random.key(1), pde, state._replace(parameters=(level, z, nets)))  # noqa: E731
    step: Any = eqx.filter_jit(one, **QUICK)

    right = step(value)[1]
    assert right.loss < 1e-20
    assert (int(right.cost), int(right.status)) == (16, Status.OK)
    # A wrong V(0, x0) is off by the same amount on every path, and the update corrects it.
    moved, info = step(value + 0.1)
    assert abs(info.loss - 0.01) < 1e-12
    assert moved.parameters[0] < value + 0.1
    assert step(np.nan)[1].status == Status.DIVERGED


def test_the_backward_network_takes_its_last_step_exactly():
    """One step alone: V_1 = g is known, and the martingale term takes all noise, so that nothing is left to train."""
    pde = affine()
    solution = run(DeepBackward(num_steps=1, num_samples=64, width=4), jax.random.key(0), pde)
    assert abs(solution.v0 - affine_value(pde, np.zeros(1))) < 1e-10
    assert solution.cost == 0


def test_standards_are_those_of_every_coordinate_at_every_time():
    pde = affine()
    both = jax.jit(lambda key: (standards(key, pde, 3, 40), simulate(key, pde, 40, 3)))
    (mean, deviation, level), paths = jax.tree.map(np.asarray, both(jax.random.key(0)))
    np.testing.assert_allclose(mean, paths.mean(axis=1), rtol=1e-12)
    np.testing.assert_allclose(deviation, np.maximum(paths.std(axis=1), 1e-3), rtol=1e-10)
    np.testing.assert_allclose(level, 1 + paths[-1].mean(axis=0) @ pde.w, rtol=1e-12)


@pytest.mark.parametrize("scheme", ["implicit", "explicit"])
def test_the_backward_network_by_hand(scheme):
    """Two steps at a rate of next to nothing: the loss of the last batch, and V(0, x0), of the network as it began."""
    pde, dt, key = Turning(**vars(affine(r=0.9))), 0.4, jax.random.key(0)
    solver = DeepBackward(2, 32, 8, num_updates=1, width=3, depth=1, learning_rate=1e-30, scheme=scheme)

    @functools.partial(jax.jit, **QUICK)
    def everything(key):
        path_key, pilot_key, net_key, draw_key = jax.random.split(key, 4)
        last = jax.random.fold_in(jax.random.fold_in(draw_key, 1), 9)  # of ten times num_updates at n = N − 1
        net = network(net_key, 4, "scalar", 3, 1, jnp.float64)
        drawn = simulate(path_key, pde, 32, 2), standards(pilot_key, pde, 2), jax.random.choice(last, 32, (8,))
        longer = DeepBackward(4, 32, 8, num_updates=7, width=3, depth=1).run(
            key, pde
        )  # of which nothing but this runs:
        return longer.cost, solver.run(key, pde), *drawn, [(layer.weight, layer.bias) for layer in net.layers]

    cost, found, paths, (mean, deviation, level), chosen, layers = jax.tree.map(np.asarray, everything(key))
    (first, shift), (second, constant) = layers
    assert (found.cost, cost) == (10, 7 * (10 + 1 + 1))  # ten times as many at n = N − 1, and none at n = 0

    def value_and_gradient(x):
        hidden = np.tanh((x - mean[1]) / deviation[1] @ first.T + shift)
        return level + (hidden @ second.T + constant)[:, 0], ((1 - hidden**2) * second) @ first / deviation[1]

    def source(t, y, z):
        return -pde.r * y + z @ pde.c - pde.q / 2 * np.sum(z**2, axis=-1) + pde.f * np.cos(5 * t)

    def pulled(t, x, gradient):
        """σᵀ∇V."""
        return gradient @ pde.sigma * (1 + t) * (1 + 0.2 * x[:, :1])

    x, after = paths[1][chosen], paths[2][chosen]
    y, gradient = value_and_gradient(x)
    future = 1 + after @ pde.w
    if scheme == "explicit":
        residual = y - future - source(2 * dt, future, pulled(2 * dt, after, np.tile(pde.w, (8, 1)))) * dt
    else:
        martingale = np.sum(gradient * (after - x - pde.drift(dt, x) * dt), axis=1)
        residual = y - future - source(dt, y, pulled(dt, x, gradient)) * dt + martingale
    np.testing.assert_allclose(found.loss, [np.mean(residual**2)], rtol=1e-9)
    np.testing.assert_allclose(found.history[0], value_and_gradient(paths[1])[0].mean(), rtol=1e-9)
    y, gradient = value_and_gradient(paths[1])
    if scheme == "explicit":
        wanted = np.mean(y + source(dt, y, pulled(dt, paths[1], gradient)) * dt)
    else:
        slope = value_and_gradient(pde.x0[None])[1]
        base = np.mean(y - (paths[1] - pde.x0 - pde.drift(0.0, pde.x0) * dt) @ slope[0])
        wanted = (base + source(0.0, 0.0, pulled(0.0, pde.x0[None], slope)[0]) * dt) / (1 + pde.r * dt)
    np.testing.assert_allclose(found.v0, wanted, rtol=1e-9)


@pytest.mark.slow
def test_network_baselines_come_near_a_small_problem():
    pde = pdes.QuadraticHJB(2)
    exact = float(pde.exact(0.0, pde.x0))
    bsde = run_network(DeepBSDE(num_steps=10, batch=64, width=16, num_updates=400), pde)
    assert abs(bsde.v0 / exact - 1) < 0.1
    assert bsde.loss[-20:].mean() < 0.3 * bsde.loss[:5].mean()
    backward = run_network(DeepBackward(num_steps=10, num_samples=1000, width=16, num_updates=60), pde)
    assert abs(backward.v0 / exact - 1) < 0.1
    assert bsde.status == backward.status == Status.OK


def run_network(solver, pde):
    return eqx.filter_jit(lambda key: solver.run(key, pde))(jax.random.key(0))
