"""What solvers compute and report, again in NumPy: an equation in which everything depends on the time, and any σ."""

import dataclasses
from statistics import NormalDist

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate._core import Status
from laureate.pde import (
    CustomBasis,
    DeepBackward,
    DeepBSDE,
    Fourier,
    FunctionalTensorTrain,
    Hermite,
    MonteCarlo,
    Polynomials,
    Solution,
    Splines,
    TensorTrainSolver,
    extrapolate,
    simulate,
)
from laureate.pde.sweep import Rules, Samples, descend


class Weather(eqx.Module):
    """Drift, diffusion and driver all change with t, x, and the driver with y and z; JAX and NumPy both compute it.

    sigma: a number, a diagonal or a matrix. driven: the driver, "all", "linear" in y, or "square": −½‖z‖².
    """

    sigma: jax.Array
    x0: jax.Array
    driven: str = eqx.field(static=True, default="all")
    horizon: float = 0.6

    def drift(self, t, x):
        return (0.3 + t) * x[::-1] - 0.2

    def diffusion(self, t, x):
        return self.sigma * (1 + t) * (1 + 0.1 * x[0])

    def driver(self, t, x, y, z):
        if self.driven == "square":
            return -0.5 * (z @ z)
        linear = (0.4 - t) * x[1] * y + t + x[0]
        return linear if self.driven == "linear" else linear - 0.1 * y**2 + 0.2 * (z @ z) - 0.3 * t * z[0]

    def terminal(self, x):
        return 0.25 * (x @ x) + x[0] + 1.0


RNG = np.random.default_rng(0)
SIGMAS = {
    "number": np.array(0.7),
    "diagonal": np.array([0.5, -0.8, 0.6]),
    "one coordinate stands": np.array([0.5, 0.0, 0.6]),
    "fewer noises": RNG.normal(size=(3, 2)) / 2,
    "more noises": RNG.normal(size=(2, 4)) / 2,
}


def weather(kind, driven="all"):
    sigma = SIGMAS[kind]
    return Weather(sigma, np.array([0.4, -0.3, 0.8])[: len(sigma) if sigma.ndim else 2], driven)


def noises_of(pde):
    return pde.sigma.shape[1] if np.ndim(pde.sigma) == 2 else pde.x0.size


class Wind(eqx.Module):
    """A control: u(t, x) of as many numbers as there are noises."""

    direction: np.ndarray

    def __call__(self, t, x):
        return self.direction * (1 - t) * (0.5 + x[1])


def wind(pde):
    return Wind(np.array([0.6, -0.4, 0.9, 0.2])[: noises_of(pde)])


def spread(sigma, noise):
    return sigma @ noise if np.ndim(sigma) == 2 else sigma * noise


def pull(sigma, gradient):
    return sigma.T @ gradient if np.ndim(sigma) == 2 else sigma * gradient


def felt(sigma, u):
    """The part of u that moves a path, by projection on the rows of σ as a matrix."""
    matrix = sigma if np.ndim(sigma) == 2 else np.diag(np.broadcast_to(sigma, len(u)))
    return np.linalg.pinv(matrix) @ matrix @ u


def slope_of(x):
    return 0.5 * x + np.eye(len(x))[0]


def walked(pde, normals, control=None, x=None):
    """The paths that these normal numbers [steps, paths, noises] give, [steps + 1, paths, d]."""
    dt = pde.horizon / len(normals)
    paths = [np.tile(pde.x0 if x is None else x, (normals.shape[1], 1))]
    for n, noise in enumerate(normals):
        t, after = n * dt, []
        for x, xi in zip(paths[-1], noise, strict=True):
            sigma = pde.diffusion(t, x)
            push = 0.0 if control is None else spread(sigma, control(t, x)) * dt
            after.append(x + pde.drift(t, x) * dt + spread(sigma, xi) * np.sqrt(dt) + push)
        paths.append(np.array(after))
    return np.array(paths)


def normals_of(key, pde, steps, paths):
    return jnp.stack([jax.random.normal(jax.random.fold_in(key, n), (paths, noises_of(pde))) for n in range(steps)])


def test_paths_are_those_of_the_equation_whatever_its_diffusion_under_a_control_too():
    """A control moves them by σu Δt, of every σ; a step reads all at its beginning. Test paths are like the others."""
    solver = TensorTrainSolver(Polynomials(-9.0, 9.0, 0), num_steps=2, num_samples=6, num_test=4)
    ways = [("number", True), ("diagonal", True), ("more noises", True), ("more noises", False)]

    @jax.jit
    def both(key):
        found = []
        for kind, control in ways:
            pde = weather(kind)
            paths = simulate(key, pde, 5, 2, wind(pde) if control else None)
            found.append((paths, normals_of(key, pde, 2, 5)))
        pde = weather("fewer noises")
        state = solver.init(key, pde, wind(pde))
        keys = jax.random.split(key, 3)
        return found, state, [normals_of(keys[at], pde, 2, count) for at, count in ((0, 6), (1, 4))]

    found, state, (own, held_out) = jax.tree.map(np.asarray, both(jax.random.key(3)))
    for (kind, control), (paths, normals) in zip(ways, found, strict=True):
        pde = weather(kind)
        np.testing.assert_allclose(paths, walked(pde, normals, wind(pde) if control else None), rtol=1e-10)
    pde = weather("fewer noises")
    np.testing.assert_allclose(state.paths, walked(pde, own, wind(pde)), rtol=1e-10)
    np.testing.assert_allclose(state.test_paths, walked(pde, held_out, wind(pde)), rtol=1e-10)
    assert state.n == 1
    assert (state.function.weight, state.function.offset) == (1, 0)


@pytest.mark.parametrize("scheme", ["explicit", "implicit"])
def test_a_whole_solution_and_all_its_reports_are_recomputed(scheme):
    """V_n = c_n + w_n g of controlled paths, backwards by NumPy's least squares: and every number of each report."""
    pde, steps = weather("fewer noises"), 3
    control, basis = wind(pde), Polynomials(-0.9, 0.9, 0)
    solver = TensorTrainSolver(
        basis, num_steps=steps, num_samples=40, num_test=7, scheme=scheme, tolerance=1e-9, max_iterations=60
    )

    def everything(key):
        train, test, _ = jax.random.split(key, 3)
        solution = solver.run(key, pde, control)
        both = [simulate(k, pde, count, steps, control) for k, count in ((train, 40), (test, 7))]
        return solution.cores, solution.weights, solution.offsets, solution.v0, solution.info, solution.times, both

    compiled = jax.jit(everything)
    cores, weights, offsets, v0, info, times, both = jax.tree.map(np.asarray, compiled(jax.random.key(5)))
    dt, (paths, held_out) = pde.horizon / steps, both
    np.testing.assert_allclose(times, dt * np.arange(steps + 1), rtol=1e-12)

    def columns(x):
        return np.stack([np.ones(len(x)), [pde.terminal(row) for row in x]], axis=1)

    def targets(n, x, after, later, now):
        """Of all paths, where V_{n+1} is later = (c, w) and V_n, for the implicit scheme, is now."""
        rows, t = [], n * dt
        for here, there in zip(x, after, strict=True):
            sigma, future = pde.diffusion(t, here), later[0] + later[1] * pde.terminal(there)
            if scheme == "explicit":
                gradient = later[1] * slope_of(there)
                z = pull(pde.diffusion(t + dt, there), gradient)
                rows.append(future + pde.driver(t + dt, there, future, z) * dt)
                rows[-1] -= gradient @ spread(sigma, control(t, here)) * dt
            else:
                gradient, value = now[1] * slope_of(here), now[0] + now[1] * pde.terminal(here)
                rows.append(future + pde.driver(t, here, value, pull(sigma, gradient)) * dt)
                rows[-1] -= gradient @ (there - here - pde.drift(t, here) * dt)
        return np.array(rows)

    later = np.array([0.0, 1.0])
    assert (weights[-1], offsets[-1]) == (1, 0)
    for n in range(steps - 1, -1, -1):
        x, after = paths[n], paths[n + 1]
        now = later.copy()
        for _ in range(1 if scheme == "explicit" else 60):
            y = targets(n, x, after, later, now)
            if n:
                now = np.linalg.lstsq(columns(x), y, rcond=None)[0]
            else:  # all stand at x0: the mean is all there is to learn
                now = later + np.array([y.mean() - later @ columns(x)[0], 0])
        y = targets(n, x, after, later, now)
        step = jax.tree.map(lambda leaf, n=n: leaf[n], info)
        constant = float(np.prod(cores[n].reshape(3, -1), axis=0)[0]) + offsets[n]
        np.testing.assert_allclose([constant, weights[n]], now, atol=1e-6)
        np.testing.assert_allclose(step.value, y.mean(), atol=1e-7)
        np.testing.assert_allclose(step.standard_error, y.std(ddof=1) / np.sqrt(40), rtol=1e-5)
        np.testing.assert_allclose(step.outside, np.mean(np.abs(x) > 0.9), rtol=1e-6)
        size, residuals = np.sqrt(np.mean(y**2)), []
        for place in (paths, held_out):
            wanted = targets(n, place[n], place[n + 1], later, now)
            residuals.append(np.sqrt(np.mean((columns(place[n]) @ now - wanted) ** 2)) / size if n else 0.0)
        np.testing.assert_allclose([step.residual, step.test_residual], residuals, rtol=1e-5, atol=1e-9)
        assert step.status == Status.OK
        assert step.cost == (step.iterations if n else 0)  # a constant takes one sweep an iteration
        assert (step.iterations == 1) == (scheme == "explicit")
        later = now
    assert v0 == info.value[0]
    assert np.unique(info.outside).size == steps


def test_step_by_step_on_the_host_all_is_as_in_one_program():
    """Functions, weights and reports of every time in their order, whichever way; doubts name their step."""
    pde = weather("fewer noises")
    solver = TensorTrainSolver(
        Polynomials(-0.9, 0.9, 0), num_steps=3, num_samples=20, num_test=5, scheme="explicit", tolerance=1e-9
    )
    key, control = jax.random.key(9), wind(pde)
    whole = eqx.filter_jit(lambda: solver.run(key, pde, control))()
    far = np.flatnonzero(np.asarray(whole.info.outside) > 0.01)
    with pytest.warns(UserWarning, match=rf"at {far.size} of 3 steps .*, at n = {int(whole.info.outside.argmax())} "):
        solved = solver.solve(key, pde, control)
    for found, wanted in zip(jax.tree.leaves(solved), jax.tree.leaves(whole), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9)
    assert solved.num_steps == 3
    assert np.unique(whole.weights).size == 3  # the first is that of the next, beside another offset
    assert np.unique(whole.info.value).size == 3


def test_deep_bsde_by_hand_its_second_update_and_networks_that_are_not_zero():
    """The loss from the very noise that was drawn: networks in their order, their standards, what of Z a path feels."""
    steps, batch = 3, 4
    solver = DeepBSDE(num_steps=steps, batch=batch, width=3, depth=1, learning_rate=1e-30, num_updates=2)
    kinds = ("more noises", "one coordinate stands")

    def begun(key, pde):
        state = solver.init(key, pde)
        leaves, structure = jax.tree.flatten(state.parameters)
        drawn = [jax.random.normal(jax.random.fold_in(key, i), leaf.shape) for i, leaf in enumerate(leaves)]
        normals = [normals_of(jax.random.fold_in(key, update), pde, steps, batch) for update in range(2)]
        return state._replace(parameters=jax.tree.unflatten(structure, drawn)), normals

    key = jax.random.key(1)
    step = eqx.filter_jit(lambda pde, state: solver.step(key, pde, state))
    for kind in kinds:
        pde = weather(kind)
        state, normals = eqx.filter_jit(begun)(key, pde)
        after, told = step(pde, state)
        infos = [told, step(pde, after)[1]] if kind == kinds[0] else [told]
        level, slope, networks = jax.tree.map(np.asarray, state.parameters)
        (first, shift), (second, constant) = ((layer.weight, layer.bias) for layer in networks.layers)
        mean, deviation = np.asarray(state.mean), np.asarray(state.deviation)
        dt, losses = pde.horizon / steps, []
        for noise in map(np.asarray, normals):
            paths, ends = walked(pde, noise), []
            for k in range(batch):
                y = level
                for n in range(steps):
                    x, z = paths[n, k], slope
                    if n:  # the network of step n is the n-th of those stacked, from 1
                        hidden = np.tanh(first[n - 1] @ ((x - mean[n]) / deviation[n]) + shift[n - 1])
                        z = second[n - 1] @ hidden + constant[n - 1]
                    z = felt(pde.diffusion(n * dt, x), z)
                    y = y - pde.driver(n * dt, x, y, z) * dt + z @ noise[n, k] * np.sqrt(dt)
                ends.append(y - pde.terminal(paths[-1, k]))
            losses.append(np.mean(np.square(ends)))
        np.testing.assert_allclose([info.loss for info in infos], losses[: len(infos)], rtol=1e-9)
        assert losses[0] != losses[1]
        assert {int(info.cost) for info in infos} == {batch}


def test_monte_carlo_by_hand_of_both_forms_from_any_point():
    """Every path's factor, source and density from the noise that was drawn; the error is that of the mean."""
    steps, count, point = 4, 6, np.array([-0.2, 0.5, 0.3])
    kinds = ("more noises", "one coordinate stands", "number")

    def everything(key):
        found = []
        for kind in kinds:
            linear, square = weather(kind, "linear"), weather(kind, "square")
            x = point[: linear.x0.size]
            found.append(
                (
                    MonteCarlo(count, steps).run(key, linear, x),
                    MonteCarlo(count, steps, "exponential").run(key, square, x, wind(square)),
                    normals_of(key, linear, steps, count),
                )
            )
        return found

    for kind, (linear, square, normals) in zip(
        kinds, jax.tree.map(np.asarray, jax.jit(everything)(jax.random.key(2))), strict=True
    ):
        pde, dt = weather(kind, "linear"), 0.6 / steps
        paths = walked(pde, normals, x=point[: pde.x0.size])
        samples, nothing = [], np.zeros(noises_of(pde))
        for k in range(count):
            factor, gain = 1.0, 0.0
            for n in range(steps):
                x, t = paths[n, k], n * dt
                source = pde.driver(t, x, 0.0, nothing)
                gain += factor * source * dt
                factor *= np.exp((pde.driver(t, x, 1.0, nothing) - source) * dt)
            samples.append(gain + factor * pde.terminal(paths[-1, k]))
        np.testing.assert_allclose(linear.v0, np.mean(samples), rtol=1e-9)
        np.testing.assert_allclose(linear.standard_error, np.std(samples, ddof=1) / np.sqrt(count), rtol=1e-9)

        pde = weather(kind, "square")
        control, weights = wind(pde), []
        paths = walked(pde, normals, control, point[: pde.x0.size])
        for k in range(count):
            log = -pde.terminal(paths[-1, k])
            for n in range(steps):
                x = paths[n, k]
                u = felt(pde.diffusion(n * dt, x), control(n * dt, x))
                log -= u @ normals[n, k] * np.sqrt(dt) + u @ u * dt / 2
            weights.append(np.exp(log))
        np.testing.assert_allclose(square.v0, -np.log(np.mean(weights)), rtol=1e-9)
        error = np.std(weights, ddof=1) / np.mean(weights) / np.sqrt(count)
        np.testing.assert_allclose(square.standard_error, error, rtol=1e-9)
        assert (linear.cost, square.cost) == (count, count)


def test_a_solution_between_at_and_at_the_ends_of_its_times():
    """Value, gradient, control and residual of any learned function: V is linear in t between two times of the grid."""
    pde, steps, basis = weather("more noises"), 3, Polynomials(-2.0, 2.0, 2)
    cores, x = np.random.default_rng(4).normal(size=(steps + 1, 2, 2, 3, 2)), np.array([0.3, -0.6])
    dense = np.einsum("nib,nbj->nij", cores[:, 0, 0], cores[:, 1, :, :, 0])
    weights, offsets = np.array([0.3, -1.0, 2.0, 1.0]), np.array([0.7, 0.0, 0.2, 0.0])

    def everything(t, n):
        solution = Solution(
            pde, basis, jnp.asarray(cores), jnp.asarray(weights), jnp.asarray(offsets), jnp.zeros(()), None
        )

        def learned(n, x):
            first, second = basis(x)
            train = first @ jnp.asarray(dense)[n] @ second
            return jnp.asarray(offsets)[n] + train + jnp.asarray(weights)[n] * pde.terminal(x)

        own = learned, jax.grad(learned, argnums=1), jax.hessian(learned, argnums=1)
        jets = [[each(n + later, x) for each in own] for later in (0, 1)]
        found = solution.value_and_gradient(t, x, True), solution.optimal_control(t, x), solution.residual(t, x)
        return found, jets

    compiled, dt = jax.jit(everything), pde.horizon / steps
    for t, n in ((0.0, 0), (0.07, 0), (0.21, 1), (0.33, 1), (0.5, 2), (pde.horizon, 2)):
        ((value, gradient), control, residual), jets = jax.tree.map(np.asarray, compiled(t, n))
        share = t / dt - n
        (low, slope, bend), (high, *later) = jets
        slope, bend = ((1 - share) * a + share * b for a, b in zip((slope, bend), later, strict=True))
        between, sigma = (1 - share) * low + share * high, pde.diffusion(t, x)
        np.testing.assert_allclose(value, between, rtol=1e-9)
        np.testing.assert_allclose(gradient, slope, rtol=1e-8)
        np.testing.assert_allclose(control, -pull(sigma, slope), rtol=1e-8)
        wanted = (high - low) / dt + pde.drift(t, x) @ slope + np.trace(sigma @ sigma.T @ bend) / 2
        wanted += pde.driver(t, x, between, pull(sigma, slope))
        np.testing.assert_allclose(residual, wanted, rtol=1e-7)


def test_intervals_from_the_very_noise_that_was_drawn():
    """What each path gives by NumPy, of one step count and of two that share their noise; errors and ends."""
    pde, count, z = weather("more noises"), 6, NormalDist().inv_cdf(0.9)
    d = pde.x0.size

    @dataclasses.dataclass
    class Learned:
        """A solver that has learned V_n = offset_n + weight_n g, of its own for every step."""

        num_steps: int

        @property
        def weights(self):
            return np.cos(self.num_steps + np.arange(self.num_steps + 1))

        @property
        def offsets(self):
            return np.sin(self.num_steps + np.arange(self.num_steps + 1))

        def solve(self, key, pde, control, progress):
            cores, basis = jnp.zeros((self.num_steps + 1, d, 1, 1, 1)), Polynomials(-1.0, 1.0, 0)
            learned = jnp.asarray(self.weights), jnp.asarray(self.offsets)
            return Solution(pde, basis, cores, *learned, jnp.zeros(()), None)

    def totals(learned, noise):
        paths, dt, found = walked(pde, noise), pde.horizon / len(noise), []
        for k in range(count):
            total = pde.terminal(paths[-1, k])
            for n, xi in enumerate(noise[:, k]):
                x, t, gradient = paths[n, k], n * dt, learned.weights[n] * slope_of(paths[n, k])
                value, sigma = learned.offsets[n] + learned.weights[n] * pde.terminal(x), pde.diffusion(t, x)
                total += pde.driver(t, x, value, pull(sigma, gradient)) * dt - gradient @ spread(sigma, xi) * np.sqrt(
                    dt
                )
            found.append(total)
        return np.array(found)

    coarse, fine = Learned(2), Learned(4)

    @jax.jit
    def both(key):
        found = extrapolate(key, coarse, pde, num_paths=count, level=0.8)  # pyright: ignore[reportArgumentType]
        drawn = jax.random.split(key, 3)[2]
        noise = [jax.random.normal(jax.random.fold_in(drawn, n), (2, count, noises_of(pde))) for n in range(2)]
        plain = fine.solve(None, pde, None, None).interval(key, count, level=0.8)
        return found.estimate, found.time_error, found.interval, plain, noise, normals_of(key, pde, 4, count)

    signs = []
    for seed in range(4):
        estimate, time_error, interval, plain, noise, normals = jax.tree.map(np.asarray, both(jax.random.key(seed)))
        low = totals(coarse, np.array([(pair[0] + pair[1]) / np.sqrt(2) for pair in noise]))
        high = totals(fine, np.concatenate(noise))
        assert time_error == pytest.approx(np.mean(low - high), rel=1e-9)
        assert estimate == interval.estimate
        for found, samples, more in ((interval, 2 * high - low, abs(time_error)), (plain, totals(fine, normals), 0.0)):
            mean, error = np.mean(samples), np.std(samples, ddof=1) / np.sqrt(count)
            np.testing.assert_allclose(
                found, [mean, mean - z * error - more, mean + z * error + more, error], rtol=1e-8
            )
        signs.append(np.sign(time_error))
    assert len(set(signs)) == 2


def test_a_fit_stops_and_reports_by_its_own_rules():
    """Stalls are counted by the share of the best residual; the train that is given is the one that is reported."""
    draw = np.random.default_rng(1)
    x, fresh = draw.uniform(-1, 1, size=(2, 120, 4))
    function = lambda x: 5 + np.exp(x @ [0.5, -0.4, 0.3, 0.2]) * (1 + x[:, 0] * x[:, 3])  # noqa: E731
    y, basis = function(x) + 0.02 * draw.normal(size=120), Polynomials(-1.0, 1.0, 2)
    truth = function(fresh) + 0.02 * draw.normal(size=120)
    start = FunctionalTensorTrain.start(jax.random.key(0), 4, basis, rank=2)

    def fitted(max_sweeps, patience, tolerance, weighed):
        extras = jnp.zeros((120, 0))
        samples, test = Samples(basis(x.T), extras, y), Samples(basis(fresh.T), extras, weighed)
        cores, _, info = descend(start.cores, samples, test, Rules(1e-10, 1.0, tolerance, max_sweeps, patience, False))
        return info, [jax.vmap(FunctionalTensorTrain(cores, basis))(inputs) for inputs in (x, fresh)]

    run = jax.jit(fitted)
    size = np.sqrt(np.mean(y**2))
    for targets in (truth, 7 - truth):  # the second like a train the better, the less it has learned
        best, scores = np.inf, []
        for sweeps in range(1, 9):
            info, values = jax.tree.map(np.asarray, run(sweeps, 99, 1e-30, targets))
            errors = [np.sqrt(np.mean((v - w) ** 2)) / size for v, w in zip(values, (y, targets), strict=True)]
            np.testing.assert_allclose([info.residual, info.test_residual], errors, rtol=1e-6)
            assert (info.cost, info.status) == (sweeps, Status.NOT_CONVERGED)
            assert info.test_residual <= best
            best = info.test_residual
            scores.append(float(best))
        # best after k sweeps; a sweep stalls that does not lower it by the share asked for
        for tolerance, patience in ((0.5, 1), (0.5, 3), (0.02, 1), (0.02, 2), (1e-3, 2)):
            low, stalls, needed = np.inf, 0, None
            for sweeps, score in enumerate(scores, 1):
                stalls = 0 if score < (1 - tolerance) * low else stalls + 1
                low = min(low, score)
                if stalls == patience:
                    needed = sweeps
                    break
            info, _ = run(8, patience, tolerance, targets)
            expected = (8, Status.NOT_CONVERGED) if needed is None else (needed, Status.OK)
            assert (int(info.cost), int(info.status)) == expected


def ridged(matrix, y, penalty, ridge):
    """The penalised least squares of one core, scaled to a unit diagonal for the ridge."""
    normal = matrix.T @ matrix / len(y) + np.diag(penalty)
    scale = 1 / np.sqrt(np.diag(normal))
    system = normal * np.outer(scale, scale) + ridge * np.eye(len(scale))
    return scale * np.linalg.solve(system, scale * (matrix.T @ y / len(y)))


def two_cores(features, y, rank, sweeps, rules, right, live):
    """SALSA of two coordinates with one bond, from what stands right of the first core: reports after every sweep.

    right: [samples, rank], of which live slots are in use. A slot is penalised by ω²/K over its singular value squared,
    or s_min where that is more.
    """
    count, size = features[0].shape
    direction = np.random.default_rng(0).standard_normal(rank * size)
    sigma, unchanged = np.ones(rank), 0
    omega, floor, residual, told = 1.0, 0.2, 1.0, []

    def solved(feature, beside):
        """The core [size, rank] whose rows meet a feature and whose columns meet the other core."""
        matrix = (feature[:, :, None] * beside[:, None, :live]).reshape(count, -1)
        slots = rules.damping * residual / count + omega**2 / count / np.maximum(floor, sigma[:live]) ** 2
        weights = ridged(matrix, y, np.tile(slots, size), rules.ridge)
        return weights.reshape(size, live), matrix @ weights

    def split(core, grow):
        """Orthonormal functions for the next core, how many are in use, and their singular values."""
        whole = np.zeros((rank * size, rank))  # row 0 of the slots alone is in use at an end of the train
        whole[:size, : core.shape[1]] = core
        q, values, _ = np.linalg.svd(whole, full_matrices=False)
        strong = int(np.sum(values > floor))
        used = min(max(core.shape[1], strong + 1) if grow else core.shape[1], rank)
        used = max(min(used, strong + 1), 1)
        kept = q[:, : core.shape[1]]
        if used > core.shape[1]:
            scout = np.where(np.arange(rank * size) < size, direction, 0.0)
            scout = scout - kept @ (kept.T @ scout)
            kept = np.concatenate([kept, (scout / np.linalg.norm(scout))[:, None]], axis=1)
            values[used - 1] = 0.01 * floor
        return kept[:size, :used], used, values

    for _ in range(sweeps):
        grow, before = unchanged >= 2, live
        # There: the first core and its functions; the last is solved for and stands. Back: the same from the other end.
        for end in (0, 1):
            first, _ = solved(features[end], right)
            functions, live, sigma = split(first, grow)
            left = np.zeros((count, rank))
            left[:, :live] = features[end] @ functions
            second, values = solved(features[1 - end], left)
            right = left
        now = np.sqrt(np.mean((values - y) ** 2))
        decrease = np.clip((residual - now) / residual, 0, 1)
        omega = min(omega / rules.shrink, now)
        floor, residual = max(0.2 * min(omega, decrease), 1e-10), now
        unchanged = 0 if live != before else unchanged + 1
        told.append((now, live, functions @ second.T))  # [of coordinate 1, of coordinate 0]
    return told


@pytest.mark.parametrize("shrink", [1.05, 1.6])
def test_salsa_of_two_coordinates_by_hand(shrink):
    """Every sweep's residual, rank and function: what is damped by what, when a slot goes and when a scout comes."""
    rank, count, sweeps, draw = 3, 60, 10, np.random.default_rng(4)
    x, basis = draw.uniform(-1, 1, size=(count, 2)), Polynomials(-1.0, 1.0, 3)
    y = x[:, 0] + 2 * x[:, 1] + 0.4 * x[:, 0] * x[:, 1] + 0.6 * draw.normal(size=count)
    y /= np.sqrt(np.mean(y**2))
    rules = Rules(1e-10, 0.7, 1e-30, sweeps, 99, True, shrink)

    @jax.jit
    def run(sweeps):
        features, start = basis(x.T), FunctionalTensorTrain.constant(1.0, 2, basis, rank)
        samples = Samples(features, jnp.zeros((count, 0)), y)
        cores, _, info = descend(start.cores, samples, None, rules._replace(max_sweeps=sweeps))
        return FunctionalTensorTrain(cores, basis).dense(), info, features

    features = np.asarray(run(1)[2])
    ones = np.eye(1, rank) * np.ones((count, 1))  # what the constant has right of its first core
    told, best = two_cores(features, y, rank, sweeps, rules, ones, 1), np.inf
    for number, (residual, live, function) in enumerate(told, 1):
        dense, info, _ = jax.tree.map(np.asarray, run(number))
        assert info.cost == number
        if residual < best:
            best = residual
            np.testing.assert_allclose(dense, function.T, atol=1e-6)
            np.testing.assert_array_equal(info.ranks, [live])
        assert info.residual == pytest.approx(best, rel=1e-6)
    assert {live for _, live, _ in told} == {1, 2, 3}
    if shrink < 1.1:  # where ω stays high, a slot goes again
        assert [live for _, live, _ in told][-1] == 2


@pytest.mark.parametrize("scheme", ["explicit", "implicit"])
def test_the_only_step_of_a_backward_network_by_hand(scheme):
    """V_1 = g: nothing is trained, and V(0, x0) is the mean of its scheme's targets, with all that changes in time."""
    pde, dt = weather("fewer noises"), 0.6
    solver = DeepBackward(num_steps=1, num_samples=5, width=2, depth=1, scheme=scheme)

    @jax.jit
    def both(key):
        return solver.run(key, pde), simulate(jax.random.split(key, 4)[0], pde, 5, 1)

    found, (_, ends) = jax.tree.map(np.asarray, both(jax.random.key(8)))
    if scheme == "explicit":
        targets = []
        for x in ends:
            future = pde.terminal(x)
            targets.append(future + pde.driver(dt, x, future, pde.diffusion(dt, x).T @ slope_of(x)) * dt)
        value = np.mean(targets)
    else:
        gradient, x = slope_of(pde.x0), pde.x0
        base = np.mean([pde.terminal(end) - gradient @ (end - x - pde.drift(0.0, x) * dt) for end in ends])
        value, z = base, pde.diffusion(0.0, x).T @ gradient
        for _ in range(20):
            value = base + pde.driver(0.0, x, value, z) * dt
    assert float(found.v0) == pytest.approx(value, rel=1e-9)
    assert (found.history.shape, found.loss.shape, int(found.cost)) == ((1,), (0,), 0)


def test_singular_values_and_ranks_are_those_of_the_unfolded_tensor():
    """Of every bond; a rank counts what exceeds its share of the largest at that bond."""
    basis = Polynomials(-1.0, 1.0, 2)
    shapes = np.random.default_rng(2).normal(size=(4, 3, 3, 3)) * np.array([1.0, 0.2, 0.05])
    shares = np.logspace(-3.5, -0.1, 15)

    @jax.jit
    def both(cores):
        train = FunctionalTensorTrain(cores, basis)
        return train.dense(), train.singular_values(), [train.ranks(share) for share in shares], train.norm()

    dense, values, ranks, norm = jax.tree.map(np.asarray, both(shapes))
    unfolded = [np.linalg.svd(dense.reshape(3**k, -1), compute_uv=False)[:3] for k in (1, 2, 3)]
    np.testing.assert_allclose(values, unfolded, atol=1e-12)
    wanted = [[int(np.sum(row > share * row[0])) for row in unfolded] for share in shares]
    np.testing.assert_array_equal(ranks, wanted)
    assert np.ptp([row[0] for row in unfolded]) > 0.01 * norm
    assert len({tuple(row) for row in wanted}) > 3
    np.testing.assert_allclose(norm, np.linalg.norm(dense), rtol=1e-12)


def test_trains_to_begin_with_and_their_arithmetic():
    """A constant, nothing, about unit norm; of any rank and basis; sums within the padding that they need."""
    splines, polynomials = Splines(-1.0, 1.0, 2), Polynomials(-1.0, 1.0, 2)
    x = np.array([0.2, -0.7, 0.9])

    @jax.jit
    def both(key):
        constants = [FunctionalTensorTrain.constant(-2.5, 3, basis, 2)(x) for basis in (splines, polynomials)]
        start = FunctionalTensorTrain.start(key, 3, polynomials, 3)
        norm_of = lambda k: FunctionalTensorTrain.random(k, 6, polynomials, 3).norm()  # noqa: E731
        norms = jax.vmap(norm_of)(jax.random.split(key, 8))
        one, two = (
            FunctionalTensorTrain.random(k, 3, polynomials, r)
            for k, r in zip(jax.random.split(key, 2), (2, 1), strict=True)
        )
        made = (one - 3.0 * two * 0.5).dense(), one.dense(), two.dense()
        return constants, start(x), start.gradient(x), start.cores, norms, made, (one + two).cores, one.inner(two)

    constants, value, gradient, cores, norms, made, summed, inner = jax.tree.map(np.asarray, both(jax.random.key(7)))
    np.testing.assert_allclose(constants, [-2.5, -2.5], rtol=1e-12)
    assert value == 0
    assert not gradient.any()
    np.testing.assert_allclose(np.diagonal(cores[1, :, 0]), [1, 1, 1], atol=0.01)
    assert 0.3 < np.exp(np.mean(np.log(norms))) < 3
    found, first, second = made
    np.testing.assert_allclose(found, first - 1.5 * second, atol=1e-12)
    np.testing.assert_allclose(inner, np.sum(first * second), rtol=1e-9)
    assert summed.shape == (3, 3, 3, 3)


def test_bases_are_the_functions_that_they_say():
    """Of intervals and scales that are neither centred nor of length one; functions of one number see one number."""
    x = np.linspace(-0.4, 2.3, 12).reshape(3, 4)
    seen = []

    def alone(value):
        seen.append(value.shape)
        return jnp.where(value > 1, value**2, -value)

    bases = Fourier(0.5, 2.0, 2), Hermite(0.7, 1.9, 4), CustomBasis((alone, jnp.exp))
    fourier, hermite, custom = jax.jit(lambda x: [basis(x) for basis in bases])(x)
    s = 2 * np.pi / 1.5 * (x - 0.5)
    waves = [np.ones_like(s), *(np.sqrt(2) * f(k * s) for k in (1, 2) for f in (np.cos, np.sin))]
    np.testing.assert_allclose(fourier, np.stack(waves, axis=-1), atol=1e-12)
    s = (x - 0.7) / 1.9
    powers = [1 + 0 * s, s, s**2 - 1, s**3 - 3 * s, s**4 - 6 * s**2 + 3]  # over √k!
    polynomials = [power / np.sqrt(float(factorial)) for power, factorial in zip(powers, (1, 1, 2, 6, 24), strict=True)]
    np.testing.assert_allclose(hermite, np.stack(polynomials, axis=-1), atol=1e-12)
    np.testing.assert_allclose(custom, np.stack([1 + 0 * x, np.where(x > 1, x**2, -x), np.exp(x)], axis=-1), rtol=1e-12)
    assert set(seen) == {()}
