"""What demanding users met: intervals that do not cover, warnings at every step, errors from the depths."""

import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate.pde import (
    DeepBackward,
    DeepBSDE,
    MonteCarlo,
    Polynomials,
    TensorTrainSolver,
    extrapolate,
)


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


def test_the_two_step_counts_share_their_paths(found):
    """Coupled, what two step counts give for a path is much the same."""
    from laureate.pde.extrapolation import _together

    _, runs, _ = found
    low, high = _together(jax.random.key(3), runs[0].coarse, runs[0].fine, 2000)
    assert np.corrcoef(low, high)[0, 1] > 0.7


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
