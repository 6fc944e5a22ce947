"""How the solver behaves: step, run and solve agree, a killed run resumes, and bad input is told before it hurts."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate._core import Status
from laureate.pde import (
    DeepBackward,
    DeepBSDE,
    MonteCarlo,
    Polynomials,
    TensorTrainSolver,
    extrapolate,
    extrapolation,
    solver,
)
from laureate.pde.steps import StepInfo, judge, warn_of_doubts
from laureate.problems.pdes import HJBLog, QuadraticHJB
from laureate.testing import KeyRecorder


def small(**settings):
    return TensorTrainSolver(Polynomials(-6.0, 6.0, 0), **{"num_steps": 4, "num_samples": 50, **settings})


def test_step_by_step_run_and_solve_agree_and_do_not_retrace():
    pde, solver = HJBLog(3), small()
    whole = eqx.filter_jit(lambda key: solver.run(key, pde))(jax.random.key(0))
    traces = []

    @eqx.filter_jit
    def step(state):
        traces.append(1)
        return solver.step(pde, state)

    state = eqx.filter_jit(lambda key: solver.init(key, pde))(jax.random.key(0))
    values = []
    for _ in range(4):
        state, info = step(state)
        values.append(info.value)
    assert len(traces) == 1
    assert state.n == -1
    np.testing.assert_allclose(values[-1], whole.v0, rtol=1e-12)
    np.testing.assert_allclose(values[::-1], whole.info.value, rtol=1e-12)
    solved = solver.solve(jax.random.key(0), pde)
    np.testing.assert_allclose(solved.v0, whole.v0, rtol=1e-12)
    np.testing.assert_allclose(solved.weights, whole.weights, rtol=1e-10)
    assert jax.tree.structure(solved) == jax.tree.structure(whole)


@pytest.mark.slow
def test_vmap_over_keys_equals_a_loop():
    pde, solver = HJBLog(3), small()
    keys = jax.random.split(jax.random.key(1), 3)
    together = jax.jit(jax.vmap(lambda key: solver.run(key, pde).v0))(keys)
    single = jax.jit(lambda key: solver.run(key, pde).v0)
    np.testing.assert_allclose(together, [single(key) for key in keys], rtol=1e-10)


def test_a_stopped_solve_resumes_from_its_checkpoint(tmp_path, monkeypatch):
    pde, solver, file = HJBLog(3), small(), tmp_path / "run.npz"
    whole = solver.solve(jax.random.key(0), pde)
    calls = []

    def interrupt(n, *rest):
        calls.append(n)
        if n == 1:
            raise KeyboardInterrupt
        judge(n, *rest)

    monkeypatch.setattr("laureate.pde.solver.judge", interrupt)
    with pytest.raises(KeyboardInterrupt):
        solver.solve(jax.random.key(0), pde, checkpoint=file)
    assert calls == [3, 2, 1]
    calls.clear()
    monkeypatch.setattr("laureate.pde.solver.judge", lambda n, *rest: calls.append(n))
    resumed = solver.solve(jax.random.key(0), pde, checkpoint=file)
    assert calls == [1, 0]
    assert resumed.v0 == whole.v0
    assert jnp.array_equal(resumed.weights, whole.weights)
    with pytest.raises(ValueError, match=r"key was key<threefry2x32> \[0, 0\] uint32, is"):
        solver.solve(jax.random.key(1), pde, checkpoint=file)
    with pytest.raises(ValueError, match=r"solver.num_samples was 50, is 60"):
        small(num_samples=60).solve(jax.random.key(0), pde, checkpoint=file)
    with pytest.raises(ValueError, match="control was"):
        solver.solve(jax.random.key(0), pde, lambda t, x: 0.0 * x, checkpoint=file)


def test_a_solve_tells_its_progress():
    seen = []
    small().solve(jax.random.key(0), HJBLog(3), progress=seen.append)
    assert [(p.done, p.total) for p in seen] == [(n, 4) for n in (1, 2, 3, 4)]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rank": 0}, "TensorTrainSolver.rank must be >= 1; got 0."),
        ({"num_steps": 0}, "TensorTrainSolver.num_steps must be >= 1; got 0."),
        ({"num_samples": 1}, "TensorTrainSolver.num_samples must be >= 2"),
        ({"num_test": -1}, "TensorTrainSolver.num_test must be >= 0"),
        ({"scheme": "midpoint"}, "TensorTrainSolver.scheme must be 'implicit' or 'explicit'; got 'midpoint'."),
        ({"tolerance": 0.0}, "TensorTrainSolver.tolerance must be > 0"),
        ({"max_iterations": 0}, "TensorTrainSolver.max_iterations must be >= 1"),
    ],
)
def test_wrong_settings_are_told(settings, message):
    with pytest.raises(ValueError, match=message):
        small(**settings)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DeepBSDE(learning_rate=0.0), "DeepBSDE.learning_rate must be > 0"),
        (lambda: DeepBackward(scheme="x"), "DeepBackward.scheme must be"),  # type: ignore[arg-type]
        (lambda: MonteCarlo(form="x"), "MonteCarlo.form must be"),  # type: ignore[arg-type]
        (lambda: MonteCarlo(num_paths=1), "MonteCarlo.num_paths must be >= 2"),
    ],
)
def test_wrong_settings_of_the_baselines_are_told(make, message):
    with pytest.raises(ValueError, match=message):
        make()


class Broken(QuadraticHJB):
    """A quadratic HJB equation of which one function may be replaced."""

    replaced: dict = eqx.field(static=True)

    def __init__(self, dimension=3, horizon=1.0, **replaced):
        super().__init__(dimension)
        self.horizon = horizon
        self.replaced = replaced

    def drift(self, t, x):
        return self.replaced.get("drift", super().drift)(t, x)

    def diffusion(self, t, x):
        return self.replaced.get("diffusion", super().diffusion)(t, x)

    def driver(self, t, x, y, z):
        return self.replaced.get("driver", super().driver)(t, x, y, z)

    def terminal(self, x):
        return self.replaced.get("terminal", super().terminal)(x)


class Spoiled(QuadraticHJB):
    """One of its functions gives what is not finite; which one is a number, so that all of them are one program.

    slope: of g's derivatives the first alone is not finite. half: g is not, where x_1 > 0.
    """

    which: jax.Array

    def __init__(self, name):
        super().__init__(3)
        self.which = jnp.asarray(["terminal", "driver", "drift", "slope", "half"].index(name))

    def terminal(self, x):
        root = jnp.sqrt(jnp.where(self.which == 3, 0.0 * x[0], 1.0))
        broken = (self.which == 0) | ((self.which == 4) & (x[0] > 0))
        return jnp.where(broken, jnp.nan, super().terminal(x) + root)

    def driver(self, t, x, y, z):
        return jnp.where((self.which == 1) & (t < 0.6), jnp.nan, super().driver(t, x, y, z))

    def drift(self, t, x):
        return jnp.where(self.which == 2, jnp.inf, super().drift(t, x))


def solve(pde, **settings):
    return small(**settings).solve(jax.random.key(0), pde)


@pytest.mark.parametrize(
    ("pde", "error", "message"),
    [
        (lambda: Broken(horizon=0.0), ValueError, "pde.horizon must be > 0; got 0.0."),
        (
            lambda: Broken(drift=lambda t, x: x[:2]),
            ValueError,
            r"pde.drift must return .* \[3\]; got \[2\]",
        ),
        (
            lambda: Broken(diffusion=lambda t, x: jnp.ones(2)),
            ValueError,
            r"pde.diffusion must return an array of shape \[\] or \[3\] or \[3, noises\]; got \[2\]",
        ),
        (lambda: Broken(driver=lambda t, x, y, z: z), ValueError, "pde.driver must return an array of shape"),
        (lambda: Broken(terminal=lambda x: np.sum(np.asarray(x))), TypeError, "pde.terminal cannot be traced by JAX"),
        (lambda: Spoiled("terminal"), FloatingPointError, "pde.terminal .* n = 3"),
        (lambda: Spoiled("slope"), FloatingPointError, "pde.terminal or its gradient .* n = 3"),
        (lambda: Spoiled("driver"), FloatingPointError, "pde.driver, .* n = 2"),
        (lambda: Spoiled("drift"), FloatingPointError, "pde.drift or pde.diffusion"),
    ],
)
def test_a_broken_equation_is_told_by_name(pde, error, message):
    with pytest.raises(error, match=message):
        solve(pde())


@pytest.mark.parametrize(("name", "message"), [("half", "pde.driver, or the value.* n = 0"), ("drift", "pde.drift or")])
def test_what_breaks_at_the_end_of_the_paths_alone_is_told(name, message):
    """With one step the last points are seen by nobody but the mean at x0, of which half the targets are lost."""
    with pytest.raises(FloatingPointError, match=message):
        solve(Spoiled(name), num_steps=1)


def test_a_steps_report_is_recomputed():
    """From V_N = g = |x|²/4 with h = −½|z|², z = x/2, explicitly; in a basis that is too narrow for the paths."""
    pde = QuadraticHJB(3)
    solver = TensorTrainSolver(Polynomials(-1.0, 1.0, 0), num_steps=4, num_samples=50, scheme="explicit")
    run = eqx.filter_jit(lambda key: (state := solver.init(key, pde), solver.step(pde, state)[1]))
    state, info = jax.tree.map(np.asarray, run(jax.random.key(0)))
    x, after = state.paths[3], state.paths[4]
    targets = np.sum(after**2, axis=1) * (1 / 4 - 1 / 8 * 0.25)
    columns = np.stack([np.ones(50), np.sum(x**2, axis=1) / 4], axis=1)
    fitted = columns @ np.linalg.lstsq(columns, targets, rcond=None)[0]
    np.testing.assert_allclose(info.value, targets.mean(), rtol=1e-12)
    np.testing.assert_allclose(info.standard_error, targets.std(ddof=1) / np.sqrt(50), rtol=1e-12)
    np.testing.assert_allclose(
        info.residual, np.sqrt(np.mean((fitted - targets) ** 2) / np.mean(targets**2)), rtol=1e-6
    )
    assert float(info.outside) == pytest.approx(np.mean(np.abs(x) > 1), rel=1e-6)
    assert 0.1 < info.outside < 0.9
    assert (info.change, info.iterations, info.cost, info.status) == (0, 1, 1, Status.OK)
    assert info.terminal_finite
    assert info.driver_finite


def test_doubts_name_the_worst_step():
    outside = np.array([0.0, 0.2, 0.005, 0.05, 0.3, 0.02, 0.1])
    change = np.array([0.9, 0.1, 0.5, 0.7, 0.0, 0.2, 0.3])
    status = np.where([0, 0, 1, 0, 0, 1, 1], Status.NOT_CONVERGED, Status.OK)
    given = {"outside": outside, "change": change, "status": status, "iterations": 10 + np.arange(7)}
    infos = StepInfo(**(dict.fromkeys(StepInfo._fields) | given))  # pyright: ignore[reportArgumentType]
    paths = [np.linspace(-n, n, 2001)[:, None] for n in range(8)]
    with pytest.warns(UserWarning, match="outside the basis|did not converge") as told:
        warn_of_doubts(infos, Polynomials(-1.0, 1.0, 0), paths)  # pyright: ignore[reportArgumentType]
    far, slow = (str(one.message) for one in told)
    assert far == (
        "at 5 of 7 steps (n = 1, 3, 4, 5, 6), coordinates lie outside the basis' interval (-1.0, 1.0), at n = 4 "
        "30 % of them; (-3.99, 3.99) would hold all but 0.2 % there."
    )
    assert slow.startswith(
        "the fixed point did not converge at 3 of 7 steps (n = 2, 5, 6): at n = 2 its last relative change was "
        "5.0e-01 after 12 iterations."
    )


def test_too_few_samples_for_the_rank_is_told():
    solver = TensorTrainSolver(Polynomials(-6.0, 6.0, 2), rank=3, num_steps=4, num_samples=50)
    with pytest.raises(ValueError, match="num_samples must be >= 84 for rank 3 and 3 functions; got 50"):
        solver.solve(jax.random.key(0), HJBLog(6))


def test_single_precision_is_refused():
    with jax.enable_x64(False), pytest.raises(RuntimeError, match="needs float64"):
        small().solve(jax.random.key(0), HJBLog(3))


@pytest.mark.slow
def test_doubts_are_warned_of():
    narrow = TensorTrainSolver(Polynomials(-0.5, 0.5, 0), num_steps=2, num_samples=50)
    with pytest.warns(UserWarning, match="outside the basis' interval"):
        narrow.solve(jax.random.key(0), HJBLog(3))
    with pytest.warns(UserWarning, match="capped at 1"):
        small(rank=2).solve(jax.random.key(0), HJBLog(3))
    with pytest.warns(UserWarning, match="did not converge"):
        small(max_iterations=1).solve(jax.random.key(0), HJBLog(3))


@pytest.mark.slow
def test_one_dimension_works():
    solver = small(num_samples=2000, num_steps=20)
    solution = eqx.filter_jit(lambda key: solver.run(key, HJBLog(1)))(jax.random.key(0))
    # g alone is a poor ansatz in one dimension: only the order of magnitude is asked for.
    assert abs(solution.v0 + 0.08735381308762) < 0.05


def test_settings_are_leaves_that_do_not_recompile():
    traces = []

    @eqx.filter_jit
    def solved(tolerance):
        traces.append(1)
        solution = small(tolerance=tolerance, max_iterations=12).run(jax.random.key(0), HJBLog(3))
        return solution.v0, solution.info

    (first, info), (second, _) = (solved(jnp.asarray(tolerance, float)) for tolerance in (1e-6, 1e-8))
    assert abs(first - second) < 1e-4
    # A change that just meets the tolerance ends the fixed point: the first step back does what it did.
    _, again = solved(info.change[3])
    assert info.iterations[3] > 1
    assert again.iterations[3] == info.iterations[3]
    assert again.status[3] == Status.OK
    # One that is not met within the iterations is told, at its step.
    _, spent = solved(jnp.asarray(1e-30, float))
    assert 0 < np.sum(spent.iterations == 12) < 4
    np.testing.assert_array_equal(spent.status, np.where(spent.change > 1e-30, Status.NOT_CONVERGED, Status.OK))
    np.testing.assert_array_equal(spent.change > 1e-30, spent.iterations == 12)
    assert len(traces) == 1


def test_what_solves_on_the_host_uses_no_key_twice(monkeypatch):
    """Paths to fit to and paths to test by, the first functions; two solutions, and paths of both."""

    def begin(key, *given):
        jax.random.normal(key)
        raise StopIteration

    @dataclasses.dataclass
    class Drawn:
        num_steps: int = 2

        def solve(self, key, pde, control, progress=None):
            return jax.random.normal(key)

    monkeypatch.setattr(solver, "_euler_step", lambda key, pde, t, dt, x, control: x + jax.random.normal(key, x.shape))
    monkeypatch.setattr(solver, "_begin", begin)
    monkeypatch.setattr(extrapolation, "_together", lambda key, *given: jax.random.normal(key, (2, 3)))
    with KeyRecorder() as recorder:
        with pytest.raises(StopIteration):
            small(num_test=2).solve(jax.random.key(0), HJBLog(3))
        assert not recorder.reused()
        assert recorder.uses
        recorder.forget()
        extrapolate(jax.random.key(0), Drawn(), None, num_paths=3)  # pyright: ignore[reportArgumentType]
        assert not recorder.reused()


def test_an_update_that_spoils_the_value_is_told():
    """√|y − 1| has no derivative where the path begins: the loss is still finite, V(0, x0) is not."""

    class Kink(HJBLog):
        def driver(self, t, x, y, z):
            return jnp.sqrt(jnp.abs(y - 1.0))

        def terminal(self, x):
            return jnp.ones(())

    solver, pde = DeepBSDE(num_steps=1, batch=2, width=1, depth=1, num_updates=1), Kink(2)  # pyright: ignore[reportCallIssue]

    def both(key):
        state, info = solver.step(key, pde, solver.init(key, pde))
        return solver.run(key, pde), (state.parameters[0], info.loss, info.status)

    found, step = eqx.filter_jit(both)(jax.random.key(0))
    for value, loss, status in ((found.v0, found.loss[-1], found.status), step):
        assert bool(jnp.isfinite(loss))
        assert bool(jnp.isnan(value))
        assert int(status) == Status.DIVERGED
