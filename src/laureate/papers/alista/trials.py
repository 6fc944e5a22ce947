"""ALISTA: recovery by networks and classical solvers with the same budget, noise, drift and ill-conditioning.

What is exact (closed form, certificate, convolutions) and the images are in ``trials_exact`` and ``trials_images``.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array

from laureate import recovery as r
from laureate.lab.claim import Settings

__all__ = ["conditioning", "drift", "recovery", "trained"]

STAGES = 3  # of a layer in greedy training
FARTHEST = 20  # FISTA is followed for so many times the network's layers


def recovery(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """One dictionary a seed; a network trained at every rate of the grid, or a classical solver at every penalty.

    What is chosen is chosen on validation signals, and judged on others. Networks see the same number of signals.
    """
    keys = jax.random.split(key, 5)
    matrix = r.dense_matrix(r.as_dictionary(problem.dictionary(keys[0])))
    sizes = jnp.linalg.norm(matrix, axis=0)
    matrix = matrix / sizes
    sample = lambda key, number: problem.sample(key, number) * sizes  # noqa: E731  (codes for the unit columns)
    density = getattr(problem, "density", 0.1)
    check, judge = (
        _signals(k, matrix, sample, number, arm.snr)
        for k, number in ((keys[1], scale.validation), (keys[2], scale.test))
    )
    layers = jnp.arange(1.0, scale.layers + 1)
    if arm.kind == "trivial":
        estimate = arm.share * judge[0] @ jnp.linalg.pinv(matrix).T
        nmse = r.nmse_db(estimate, judge[1])
        return _common(nmse, jnp.full(scale.layers, nmse), layers, 0)
    if arm.kind in ("ista", "fista"):
        tuned, penalties = _tuned_curve(arm.kind, matrix, check, judge, scale.penalties, FARTHEST * scale.layers)
        at = jnp.round(arm.multiple * layers).astype(jnp.int32) - 1
        metrics = _common(tuned[at[-1]], tuned[at], layers, 1)
        return metrics | {"penalty": penalties[at[-1]]}

    solver = _network(arm, matrix, scale.layers, density, keys[4])
    solver, rate = trained(keys[3], solver, sample, check, scale, arm.snr, mode=arm.get("mode", "end_to_end"))
    curve = _error_curve(solver, judge)
    metrics = _common(curve[-1], curve, layers, solver.num_parameters) | {"rate": rate}
    if arm.kind == "alista":
        farthest = FARTHEST * scale.layers
        tuned, penalties = _tuned_curve("fista", matrix, check, judge, scale.penalties, farthest)
        reached = tuned <= curve[-1]
        needed = jnp.where(reached.any(), jnp.argmax(reached) + 1, farthest)
        metrics |= {"log_worth": jnp.log10(needed / scale.layers), "fista_penalty": penalties[needed - 1]}
        metrics |= _shape(solver, judge)
    return metrics


def _common(nmse: Array, curve: Array, layers: Array, parameters: int) -> dict[str, Array]:
    return {
        "nmse": nmse,
        "nmse_curve": curve,
        "layers": layers,
        "log_parameters": jnp.log10(1.0 + parameters),
    }


def _signals(key: Array, matrix: Array, sample: Callable, number: int, snr: Any) -> tuple[Array, Array]:
    code_key, noise_key = jax.random.split(key)
    codes = sample(code_key, number)
    return r.add_noise(noise_key, codes @ matrix.T, snr), codes


def _network(arm: Settings, matrix: Array, layers: int, density: float, key: Array) -> Any:
    """The network an arm names. Weights and starts are mixed by floats, so that they share a program."""
    support = r.SupportSchedule(p=12 * density, p_max=min(100.0, 130 * density))
    if arm.kind == "lista":
        return r.LISTA(matrix, layers)
    if arm.kind == "hyper-lista":
        return r.HyperLISTA(matrix, num_layers=layers, max_count=matrix.shape[1] // 4)
    analytic = r.analytic_weight(matrix)
    if arm.kind == "tilista":
        return r.TiLISTA(matrix, layers, support=support)
    if arm.kind == "lista-cpss":
        plain = r.LISTACP(matrix, layers, support=support)
        start = arm.analytic * jnp.tile(analytic, (layers, 1, 1)) + (1 - arm.analytic) * plain.weight
        return eqx.tree_at(lambda s: s.weight, plain, start)
    # A random feasible weight: any direction, scaled so that w_mᵀ d_m = 1.
    drawn = matrix + jax.random.normal(key, matrix.shape) / jnp.sqrt(matrix.shape[0])
    drawn = drawn / jnp.sum(drawn * matrix, axis=0)
    weight = arm.analytic * analytic + arm.plain * matrix + arm.random * drawn
    safe = jnp.minimum(1.0, 1 / (1.001 * jnp.linalg.norm(weight.T @ matrix, 2)))
    gamma = jnp.where(arm.analytic > 0.5, 1.0, safe)  # as the paper starts; with other weights γ = 1 diverges
    return r.ALISTA(matrix, weight, layers, support=support, gamma=gamma)


def trained(
    key: Array,
    solver: Any,
    prior: Any,
    check: tuple[Array, Array],
    scale: Settings,
    snr: Any = 200.0,
    redraw: Callable | None = None,
    judge: Callable | None = None,
    loss: Callable = r.squared_error,
    mode: Any = "end_to_end",
) -> tuple[Any, Array]:
    """The solver trained by Adam at the rate of the grid that does best on the validation signals, and that rate.

    The rate falls linearly to nothing over the steps, in greedy training over those of a stage; both modes take the
    same number of steps. judge: lower is better; by default the NMSE.
    """
    steps = scale.steps if mode == "end_to_end" else max(1, scale.steps // (STAGES * solver.num_layers))
    judge = judge or (lambda made: r.nmse_db(made(check[0]), check[1]))
    names = solver.trainable
    rates = jnp.asarray(scale.rates)

    def at(values):
        return eqx.tree_at(lambda s: [getattr(s, n) for n in names], solver, [values[n] for n in names])

    def train(rate):
        optimiser = optax.adam(lambda count: rate * (1 - count / steps))
        settings = {"num_steps": steps, "batch": scale.batch, "snr": snr, "redraw": redraw, "loss": loss, "mode": mode}
        made, _ = r.fit(key, solver, prior, optimiser=optimiser, **settings)
        value = judge(made)
        return {n: getattr(made, n) for n in names}, jnp.where(jnp.isfinite(value), value, jnp.inf)

    every, values = jax.vmap(train)(rates)
    best = jnp.argmin(values)
    return at(jax.tree.map(lambda leaf: leaf[best], every)), rates[best]


def _error_curve(solver: Any, pair: tuple[Array, Array]) -> Array:
    """The NMSE after every layer, without keeping the codes."""
    b, target = pair
    start = jnp.zeros_like(target)

    def step(carry, parameters):
        x, previous = carry
        new = solver.layer(parameters, b, x, previous)
        return (new, x), r.nmse_db(new, target)

    return jax.lax.scan(step, (start, start), solver.parameters())[1]


def _tuned_curve(
    kind: str, matrix: Array, check: tuple, judge: tuple, penalties: Any, iterations: int
) -> tuple[Array, Array]:
    """The NMSE of ISTA or FISTA after every iteration, with the penalty that is best then on the validation signals."""
    make = {"ista": r.ISTA, "fista": r.FISTA}[kind]
    grid = jnp.asarray(penalties)
    curves = lambda penalty: [_error_curve(make(matrix, iterations, penalty=penalty), pair) for pair in (check, judge)]  # noqa: E731
    on_check, on_judge = jax.lax.map(curves, grid)
    best = jnp.argmin(on_check, axis=0)
    return jnp.take_along_axis(on_judge, best[None], axis=0)[0], grid[best]


def _shape(solver: Any, judge: tuple[Array, Array]) -> dict[str, Array]:
    """θ_k/γ_k against sup‖x^k − x*‖₁ before layer k: rank correlation, and slope in logarithms."""
    b, target = judge
    before = jnp.concatenate([jnp.zeros_like(target)[None], solver.trace(b)[:-1]])
    error = jnp.max(jnp.sum(jnp.abs(before - target), axis=-1), axis=-1)
    ratio = solver.theta / solver.gamma
    log_error, log_ratio = jnp.log10(error), jnp.log10(jnp.maximum(ratio, 1e-4))
    centred = log_error - log_error.mean()
    return {
        "rank_correlation": _correlation(_ranks(ratio), _ranks(error)),
        "lowest_ratio": jnp.min(log_ratio),
        "shape_slope": jnp.sum(centred * log_ratio) / jnp.sum(centred**2),
    }


def _ranks(values: Array) -> Array:
    """How many are smaller; equal ones share their mean rank."""
    return jnp.sum((jnp.sign(values[:, None] - values[None, :]) + 1) / 2, axis=1)


def _correlation(a: Array, b: Array) -> Array:
    a, b = a - a.mean(), b - b.mean()
    return jnp.sum(a * b) / jnp.sqrt(jnp.sum(a**2) * jnp.sum(b**2))


def drift(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """Solvers trained around one dictionary, judged on signals of others that drifted from it by four amounts.

    σ is that of the paper's 250 rows: entries move by σ √(250/N), so that columns turn by the same angle. All solvers
    are given the drifted dictionary for Dx − b; arms differ in the weight, and in what they were trained on.
    """
    keys = jax.random.split(key, 6)
    matrix = problem.dictionary(keys[0])
    size = jnp.sqrt(250 / matrix.shape[0])
    support = r.SupportSchedule(p=12 * problem.density, p_max=130 * problem.density)
    nominal = r.analytic_weight(matrix)
    levels = jnp.asarray(scale.levels)

    def drifted(key, level):
        return r.perturb(key, matrix, level * size)

    def signals(key, level, number):
        drift_key, code_key = jax.random.split(key)
        moved = drifted(drift_key, level)
        codes = problem.sample(code_key, number)
        return moved, codes @ moved.T, codes

    if arm.kind == "fista":

        def fista(moved, b, x, penalty):
            return r.nmse_db(r.FISTA(moved, scale.layers, penalty=penalty)(b), x)

        def at_level(k, level):
            check = signals(jax.random.fold_in(keys[1], k), level, scale.validation)
            judge = signals(jax.random.fold_in(keys[2], k), level, scale.test)
            grid = jnp.asarray(scale.penalties)
            best = jnp.argmin(jax.vmap(lambda penalty: fista(*check, penalty))(grid))
            return fista(*judge, grid[best]), grid[best]

        nmse, chosen = jax.vmap(at_level)(jnp.arange(len(levels)), levels)
        return _by_level(nmse, levels) | {"penalty": chosen[-1]}
    if arm.kind == "trivial":

        def least_squares(k, level):
            moved, b, x = signals(jax.random.fold_in(keys[2], k), level, scale.test)
            return r.nmse_db(b @ jnp.linalg.pinv(moved).T, x)

        return _by_level(jax.vmap(least_squares)(jnp.arange(len(levels)), levels), levels)
    if arm.kind == "encoder":
        untrained = r.UnrolledCoherence(matrix)
        pretrain = lambda rate: r.fit_encoder(  # noqa: E731
            keys[5],
            untrained,
            matrix,
            arm.trained_to * size,
            optimiser=optax.adam(lambda count: rate * (1 - count / scale.steps)),
            num_steps=scale.steps,
            batch=4,
        )
        encoders, losses = jax.vmap(pretrain)(jnp.asarray(scale.encoder_rates))
        end = jnp.mean(losses[:, -max(1, scale.steps // 10) :], axis=1)
        best = jnp.argmin(jnp.where(jnp.isfinite(end), end, jnp.inf))
        weight_of = jax.tree.map(lambda leaf: leaf[best], encoders)
        more = {"encoder_rate": jnp.asarray(scale.encoder_rates)[best]}
    else:
        weight_of = lambda moved: arm.fresh * r.analytic_weight(moved) + (1 - arm.fresh) * nominal  # noqa: E731
        more = {}

    def redraw(key, solver):
        level_key, drift_key = jax.random.split(key)
        moved = drifted(drift_key, arm.trained_to * jax.random.uniform(level_key))
        return solver.at(moved, weight_of)

    def judged(solver, key, number):
        def one(k, level):
            moved, b, x = signals(jax.random.fold_in(key, k), level, number)
            return r.nmse_db(solver.at(moved, weight_of)(b), x)

        return jax.vmap(one)(jnp.arange(len(levels)), levels)

    # The rate is chosen for what the arm was trained on: by the mean over the levels it has seen.
    seen = (levels <= arm.trained_to + 1e-6).astype(jnp.float32)
    solver = r.ALISTA(matrix, nominal, scale.layers, support=support, gamma=1.0)
    judge = lambda made: jnp.sum(seen * judged(made, keys[1], scale.validation)) / seen.sum()  # noqa: E731
    empty = (jnp.zeros((1, matrix.shape[0])), jnp.zeros((1, matrix.shape[1])))
    solver, rate = trained(keys[3], solver, problem.sample, empty, scale, redraw=redraw, judge=judge)
    return _by_level(judged(solver, keys[2], scale.test), levels) | more | {"rate": rate}


def _by_level(nmse: Array, levels: Array) -> dict[str, Array]:
    metrics = {"nmse_curve": nmse, "levels": levels, "nmse_still": nmse[0], "nmse_inside": nmse[-2]}
    return metrics | {"nmse_far": nmse[-1]}


def conditioning(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """How many decibels the analytic weight gains over W = D, for singular values from 1 to 1/κ, or a learned D."""
    keys = jax.random.split(key, 4)
    columns, density = scale.columns, scale.percent / 100
    drawn = jax.random.normal(keys[0], (problem.patches.shape[1], columns))
    u, _, v = jnp.linalg.svd(drawn, full_matrices=False)
    drawn = (u * arm.kappa ** -jnp.linspace(0.0, 1.0, u.shape[1])) @ v
    learned = r.learn_dictionary(keys[0], problem.patches, columns, num_rounds=scale.rounds)
    matrix = jnp.where(arm.learned > 0.5, learned, drawn / jnp.linalg.norm(drawn, axis=0))
    prior = r.BernoulliGaussian(columns, density=density)
    check, judge = (
        _signals(k, matrix, prior, number, 200.0) for k, number in ((keys[1], scale.validation), (keys[2], scale.test))
    )

    def error(analytic):
        settings = Settings(kind="alista", analytic=analytic, plain=1 - analytic, random=0.0)
        solver, rate = trained(keys[3], _network(settings, matrix, scale.layers, density, keys[3]), prior, check, scale)
        return r.nmse_db(solver(judge[0]), judge[1]), rate

    (with_weight, without), rates = jax.lax.map(error, jnp.array([1.0, 0.0]))
    values = jnp.linalg.svd(matrix, compute_uv=False)
    return {
        "advantage": without - with_weight,
        "nmse": with_weight,
        "log_condition": jnp.log10(values[0] / values[-1]),
        "rate": rates[0],
        "rate_plain": rates[1],
    }
