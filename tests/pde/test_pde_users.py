"""What demanding users met: intervals that do not cover, warnings at every step, errors from the depths."""

import dataclasses
import warnings
from types import SimpleNamespace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate import loops
from laureate.pde import (
    DeepBackward,
    DeepBSDE,
    MonteCarlo,
    Polynomials,
    TensorTrainSolver,
    extrapolate,
    extrapolation,
)
from laureate.pde.solution import Solution


class Killed(eqx.Module):
    """∂_t V − θ x·∇V + ½ ΔV − r V = 0, V(T, x) = |x|²: of the scheme itself the closed form is known, too."""

    x0: jax.Array
    horizon: float = 1.0
    pull: float = 1.0
    rate: float = 0.5

    def drift(self, t, x):
        return -self.pull * x

    def diffusion(self, t, x):
        return jnp.ones(())

    def driver(self, t, x, y, z):
        return -self.rate * y

    def terminal(self, x):
        return jnp.sum(x**2)

    def exact(self):
        d, square = self.x0.size, float(jnp.sum(self.x0**2))
        keep = np.exp(-2 * self.pull * self.horizon)
        return np.exp(-self.rate * self.horizon) * (square * keep + d * (1 - keep) / (2 * self.pull))

    def with_steps(self, steps):
        """V_N: X_{n+1} = (1 − θΔt) X_n + ξ√Δt, and V_n = E V_{n+1} / (1 + rΔt)."""
        dt = self.horizon / steps
        keep = (1 - self.pull * dt) ** 2
        second = float(jnp.sum(self.x0**2)) * keep**steps + self.x0.size * dt * (1 - keep**steps) / (1 - keep)
        return second / (1 + self.rate * dt) ** steps


def solver(**settings):
    given = {"num_steps": 8, "num_samples": 4000, "use_terminal": False} | settings
    return TensorTrainSolver(Polynomials(-6.0, 6.0, 2), 1, **given)


@pytest.fixture(scope="module")
def found():
    with jax.enable_x64(True):
        pde = Killed(jnp.array([4.0]))
        runs = [extrapolate(jax.random.key(seed), solver(), pde, num_paths=2000) for seed in range(12)]
        plain = [run.fine.interval(jax.random.key(seed), 2000) for seed, run in enumerate(runs)]
        return pde, runs, plain


@pytest.mark.slow
def test_an_interval_that_covers_the_time_step(found):
    pde, runs, plain = found
    exact = pde.exact()
    # the plain estimate's bias is known, of first order, and not in its interval
    assert pde.with_steps(8) - exact == pytest.approx(2 * (pde.with_steps(16) - exact), rel=0.15)
    fine = np.array([float(each.estimate) for each in plain])
    assert np.mean(fine) == pytest.approx(pde.with_steps(16), abs=4e-3)
    assert sum(bool(each.low <= exact <= each.high) for each in plain) <= 2
    # the extrapolated one has a fifth of it at most, and its interval covers
    assert sum(bool(run.interval.low <= exact <= run.interval.high) for run in runs) >= 11
    errors = np.array([float(run.estimate) - exact for run in runs])
    assert abs(np.mean(errors)) < abs(pde.with_steps(16) - exact) / 5
    found_errors = np.mean([float(run.time_error) for run in runs])
    assert found_errors == pytest.approx(pde.with_steps(8) - pde.with_steps(16), abs=8e-3)
    for run in runs:
        assert run.coarse.num_steps == 8
        assert run.fine.num_steps == 16
        half = 1.959964 * float(run.interval.standard_error) + abs(float(run.time_error))
        assert float(run.interval.high - run.estimate) == pytest.approx(half, rel=1e-6)
        assert float(run.estimate - run.interval.low) == pytest.approx(half, rel=1e-6)


class Clock(eqx.Module):
    """All depends on the time: drift, diffusion and source; g = 1 + w·x, h = −r y + z_1 + cos 5t."""

    noise: jax.Array
    rate: jax.Array
    x0: jax.Array = eqx.field(default_factory=lambda: jnp.array([0.2, -0.4]))
    horizon: float = 0.9

    def drift(self, t, x):
        return jnp.stack([1 + t, t**2])

    def diffusion(self, t, x):
        return self.noise * jnp.stack([1 + t, 2 - t])

    def driver(self, t, x, y, z):
        return -self.rate * y + z[0] + jnp.cos(5 * t)

    def terminal(self, x):
        return 1 + jnp.array([1.0, 0.5]) @ x


@dataclasses.dataclass
class Learned:
    """A solver that has learned V_n = offset_n + weight_n g, of its own for every step and number of steps."""

    num_steps: int

    @property
    def offsets(self):
        return np.sin(self.num_steps + np.arange(self.num_steps + 1))

    @property
    def weights(self):
        return np.cos(self.num_steps + np.arange(self.num_steps + 1))

    def solve(self, key, pde, control, progress):
        cores = jnp.zeros((self.num_steps + 1, 2, 1, 1, 1))
        learned = jnp.asarray(self.weights), jnp.asarray(self.offsets)
        return Solution(pde, Polynomials(-1.0, 1.0, 0), cores, *learned, jnp.zeros(()), None)

    def paths(self, noise, rate):
        """What a path gives without noise, and what each step's noise adds."""
        dt, slope = 0.9 / self.num_steps, np.array([1.0, 0.5])
        x, total, added = np.array([0.2, -0.4]), 0.0, []
        for n in range(self.num_steps):
            t, weight = n * dt, self.weights[n]
            value, sigma = self.offsets[n] + weight * (1 + slope @ x), noise * np.array([1 + t, 2 - t])
            total += (-rate * value + sigma[0] * weight + np.cos(5 * t)) * dt
            added.append((1 - weight) * slope * sigma * np.sqrt(dt))
            x = x + np.array([1 + t, t**2]) * dt
        return total + 1 + slope @ x, np.array(added)


def test_every_path_is_walked_by_its_own_clock_and_both_step_counts_share_their_noise():
    """Without noise to rounding; with it (and a driver that asks for no value) mean and deviation are known."""
    three, six, count = Learned(3), Learned(6), 4000
    root = np.sqrt(count)

    @jax.jit
    def both(noise, rate):
        found = extrapolate(jax.random.key(0), three, Clock(noise, rate), num_paths=count)  # type: ignore[arg-type]
        return found.estimate, found.time_error, found.interval, found.coarse.interval(jax.random.key(1), count)

    for noise, rate in ((0.0, 0.7), (1.0, 0.0)):
        estimate, time_error, interval, plain = jax.device_get(both(noise, rate))
        (low, coarse), (high, fine) = three.paths(noise, rate), six.paths(noise, rate)
        # A coarse step's noise is that of its two fine ones, over √2.
        coarse, fine = coarse[:, None] / np.sqrt(2), fine.reshape(3, 2, 2)
        assert abs(time_error - (low - high)) <= 1e-12 + 5 * np.linalg.norm(coarse - fine) / root
        noises = {"both": np.linalg.norm(2 * fine - coarse), "coarse": np.sqrt(2) * np.linalg.norm(coarse)}
        for found, value, deviation, more in (
            (interval, 2 * high - low, noises["both"], abs(time_error)),
            (plain, low, noises["coarse"], 0.0),
        ):
            assert abs(found.estimate - value) <= 1e-12 + 5 * deviation / root
            assert found.standard_error * root == pytest.approx(deviation, rel=5 / np.sqrt(2 * count), abs=1e-12)
            half = 1.959964 * found.standard_error + more
            ends = found.estimate - found.low, found.high - found.estimate
            np.testing.assert_allclose(ends, half, rtol=1e-6, atol=1e-12)
        assert interval.estimate == estimate


class Plain(NamedTuple):
    """g = 1 + w·x and a diagonal noise that grows, without JAX: outside jit every operation is a program."""

    horizon: float = 0.9

    def diffusion(self, t, x):
        return np.array([1.0, 2.0]) * (1 + np.asarray(t))

    def terminal(self, x):
        return 1 + self.terminal_gradient(x) @ x

    def terminal_gradient(self, x):
        return np.array([1.0, 0.5])


class Weighed(Solution):
    """V_n = weight_n g alone, of the steps that it is asked for."""

    def at(self, n) -> Any:
        weight = np.asarray(self.weights)[int(n)]
        return SimpleNamespace(value_and_gradient=lambda x, g, slope: (weight * g, weight * slope))


def test_a_control_is_asked_for_at_any_time_and_a_value_at_those_of_the_grid():
    """Between two times V is linear, where that is asked for; a control, whose user has a clock of his own, always."""
    weights, w, x = np.array([0.3, -1.0, 2.0, 1.0]), np.array([1.0, 0.5]), np.array([0.3, 0.1])
    solution: Any = Weighed(Plain(), None, None, weights, None, np.zeros(()), None)  # type: ignore[arg-type]
    for t, weight in ((0.0, 0.3), (0.3, -1.0), (0.375, -0.25), (0.9, 1.0)):
        control = -np.array([1.0, 2.0]) * (1 + t) * weight * w
        np.testing.assert_allclose(solution.optimal_control(t, x), control, atol=1e-12)
        value, gradient = solution.value_and_gradient(t, x, interpolate=True)
        np.testing.assert_allclose(value, weight * (1 + w @ x), atol=1e-12)
        np.testing.assert_allclose(gradient, weight * w, atol=1e-12)
    for asked in (solution.value, solution.gradient, solution.value_and_gradient):
        with pytest.raises(ValueError, match=r"t must be a multiple of 0\.3; got 0\.375"):
            asked(0.375, x)
    for asked in (solution.value, solution.optimal_control, solution.residual):
        with pytest.raises(ValueError, match=r"t must be in \[0, 0\.9\]; got 1\.2"):
            asked(1.2, x)


def test_the_seconds_of_both_solutions_are_counted_together(monkeypatch):
    """Spent since the first step of the first; to come, as long for each step that is left as one of this part took."""
    clock, seen = [100.0], []

    class Timed(Learned):
        def solve(self, key, pde, control, progress) -> Any:
            begun, each = clock[0], 3.0 / self.num_steps
            for done in range(1, self.num_steps + 1):
                clock[0] += each
                progress(loops.Progress(done, self.num_steps, clock[0] - begun, each * (self.num_steps - done)))

    monkeypatch.setattr(extrapolation, "_together", lambda key, *given: np.ones((2, 3)))
    monkeypatch.setattr(extrapolation.time, "monotonic", lambda: clock[0])
    extrapolate(jax.random.key(0), Timed(2), None, num_paths=3, progress=seen.append)  # type: ignore[arg-type]
    wanted = [(1, 6, 1.5, 7.5), (2, 6, 3.0, 6.0), *((2 + n, 6, 3 + 0.75 * n, 0.75 * (4 - n)) for n in range(1, 5))]
    np.testing.assert_allclose(seen, wanted, atol=1e-12)


@pytest.mark.slow
def test_progress_of_both_solutions_is_one(found):
    seen = []
    extrapolate(jax.random.key(0), solver(), found[0], num_paths=2000, progress=seen.append)
    assert [(p.done, p.total) for p in seen] == [(n, 24) for n in range(1, 25)]
    assert seen[-1].remaining == 0


def test_a_new_number_of_steps_compiles_no_new_step(found):
    """The fixture has solved with 8 and 16 steps: the programs of a step serve 4 as well."""
    from laureate.pde.solver import _advance

    before = _advance._cached._cache_size()  # type: ignore[attr-defined]
    solver(num_steps=4).solve(jax.random.key(0), found[0])
    assert _advance._cached._cache_size() == before  # type: ignore[attr-defined]


def test_doubts_are_told_once(found):
    pde = found[0]
    with pytest.warns(UserWarning, match="did not converge") as told:
        solver(max_iterations=1).solve(jax.random.key(0), pde)
    assert len(told) == 1
    assert str(told[0].message).startswith("the fixed point did not converge at 8 of 8 steps (n = 0, 1, 2, 3, 4, …)")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solver().solve(jax.random.key(0), pde)  # the default tolerance is one that a sensible run meets


class Lacking:
    """An equation without the field of that name, or with another in its place."""

    def __init__(self, **fields):
        whole = {name: getattr(Killed(jnp.zeros(2)), name) for name in ("drift", "diffusion", "driver", "terminal")}
        self.__dict__ |= whole | {"x0": jnp.zeros(2), "horizon": 1.0} | fields


@pytest.mark.parametrize("method", ["tensor train", "monte carlo", "deep bsde", "deep backward"])
@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("driver", None, r"pde.driver must be a function h\(t, x, y, z\).*; got None. See"),
        ("terminal", 3.0, r"pde.terminal must be a function g\(x\).*; got 3.0. See"),
        ("x0", [0.0, 0.0], r"pde.x0 must be an array; got \[0.0, 0.0\]. jnp.asarray\(x0\) makes it one"),
        ("x0", jnp.zeros(2, int), r"pde.x0 must be floating; got int32. x0.astype\(float\)"),
        ("x0", jnp.zeros(()), r"pde.x0 must be a vector \[d\] with d >= 1; got shape \(\)"),
        ("horizon", -1.0, r"pde.horizon must be > 0; got -1.0"),
        ("horizon", np.nan, r"pde.horizon must be > 0; got nan"),
    ],
)
def test_what_an_equation_lacks_is_told_by_name(method, field, value, message):
    pde, key = Lacking(**{field: value}), jax.random.key(0)
    calls = {
        "tensor train": lambda: solver().init(key, pde),
        "monte carlo": lambda: MonteCarlo(num_paths=4, num_steps=2).run(key, pde),
        "deep bsde": lambda: DeepBSDE(num_steps=2).init(key, pde),
        "deep backward": lambda: DeepBackward(num_steps=2).run(key, pde),
    }
    with pytest.raises(ValueError, match=message):
        calls[method]()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bsde", pytest.param("backward", marks=pytest.mark.slow)])
def test_network_solvers_take_schedules(kind):
    """One that is zero after the first update stops there; a rate that cannot be is refused."""
    stop = lambda count: jnp.where(count == 0, 0.1, 0.0)  # noqa: E731
    if kind == "bsde":
        make = lambda rate, updates: DeepBSDE(2, 4, 3, 1, rate, updates)  # noqa: E731
        run = lambda rate, updates: make(rate, updates).run(jax.random.key(0), Killed(jnp.ones(1))).history  # noqa: E731
        history, other = jax.jit(lambda: (run(stop, 3), run(0.2, 1)))()
        assert history[0] == history[1] == history[2]
        assert history[0] != other[0]
    else:
        make = lambda rate, updates: DeepBackward(  # noqa: E731
            num_steps=2, num_samples=6, batch=6, num_updates=updates, width=3, learning_rate=rate
        )
        first, second = (make(stop, n).run(jax.random.key(0), Killed(jnp.ones(1))).v0 for n in (1, 2))
        assert first == second
    with pytest.raises(ValueError, match=r"learning_rate must be > 0 or a schedule of Optax; got -1"):
        make(-1.0, 1)
