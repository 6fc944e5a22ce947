"""ALISTA's mathematics in double precision: the closed form, the certificate of Theorem 1, the size of Theorem 3."""

import jax
import jax.numpy as jnp
from jax import Array

from laureate import recovery as r
from laureate.lab.claim import Settings

__all__ = ["certificate", "closed_form", "conv_threshold"]


def closed_form(key: Array, arm: Settings, problem: None, scale: Settings) -> dict[str, Array]:
    """How far a weight is from fulfilling Lagrange's conditions, from its constraint, and from the closed form."""
    del problem
    matrix = jax.random.normal(key, (scale.rows, scale.columns))
    matrix = matrix / jnp.linalg.norm(matrix, axis=0)
    exact = r.analytic_weight(matrix)
    if arm.method == "dictionary":
        weight = matrix
    else:
        weight = exact if arm.method == "closed_form" else r.analytic_weight(matrix, "iterative", num_steps=scale.steps)
    slope = matrix @ (matrix.T @ weight)  # must be a multiple of d_m in every column
    along = matrix * jnp.sum(slope * matrix, axis=0)
    off = jnp.max(jnp.abs(jnp.sum(weight * matrix, axis=0) - 1))
    tiny = 1e-17
    return {
        "log_conditions": jnp.log10(jnp.linalg.norm(slope - along) / jnp.linalg.norm(slope) + off + tiny),
        "log_distance": jnp.log10(jnp.linalg.norm(weight - exact) / jnp.linalg.norm(exact) + tiny),
        "objective": r.coherence_loss(matrix, weight),
        "coherence": r.coherence(matrix, weight),
    }


def certificate(key: Array, arm: Settings, problem: None, scale: Settings) -> dict[str, Array]:
    """ALISTA with the steps and thresholds of Theorem 1, on codes of ``arm.entries`` entries, uniform within ±1.

    The schedule is that for two entries, the most that the theorem covers at this size; thresholds are multiplied by
    ``arm.factor``.
    """
    del problem
    dictionary_key, code_key, place_key = jax.random.split(key, 3)
    matrix = jax.random.normal(dictionary_key, (scale.rows, scale.columns))
    matrix = matrix / jnp.linalg.norm(matrix, axis=0)
    weight = r.analytic_weight(matrix)
    schedule = r.certified_schedule(matrix, weight, sparsity=2, bound=1.0, num_layers=scale.layers)
    solver = r.ALISTA(
        matrix, weight, scale.layers, gamma=schedule.gamma, theta=arm.factor * schedule.theta, support=None
    )
    shape = scale.signals, scale.columns
    place = jnp.argsort(jnp.argsort(jax.random.uniform(place_key, shape), axis=1), axis=1)
    codes = jnp.where(place < arm.entries, jax.random.uniform(code_key, shape, minval=-1.0, maxval=1.0), 0.0)
    b = codes @ matrix.T

    def step(carry, at):
        x, false, worst = carry
        parameters, bound = at
        x = solver.layer(parameters, b, x, x)
        false = false | jnp.any((x != 0) & (codes == 0), axis=1)
        error = jnp.sum(jnp.abs(x - codes), axis=1)
        return (x, false, jnp.maximum(worst, jnp.max(error) / bound)), jnp.log10(jnp.max(error))

    start = jnp.zeros_like(codes), jnp.zeros(scale.signals, bool), jnp.zeros(())
    (x, false, worst), curve = jax.lax.scan(step, start, (solver.parameters(), schedule.error_bound[1:]))
    return {
        "false_share": jnp.mean(false),
        "log_over_bound": jnp.log10(worst),
        "nmse": r.nmse_db(x, codes),
        "rate": schedule.rate,
        "log_error": curve,
        "layer": jnp.arange(1.0, scale.layers + 1),
    }


def conv_threshold(key: Array, arm: Settings, problem: None, scale: Settings) -> dict[str, Array]:
    """How far the convolutional weight on a circle of n pixels is from that on a large image, for n from D to 2D + 2.

    The latter is computed in another way, from the filters' spectra: our own formula is the same from 2D − 1 on.
    """
    del arm, problem
    side = scale.side
    filters = jax.random.normal(key, (scale.filters, side, side))
    filters = filters / jnp.sqrt(jnp.sum(filters**2, axis=(1, 2), keepdims=True))
    large = _on_a_large_image(filters, 6 * side)
    sizes = jnp.arange(side, 2 * side + 3)

    def error(size):
        difference = r.circular_conv_weight(filters, size) - large
        return jnp.log10(jnp.linalg.norm(difference) / jnp.linalg.norm(large) + 1e-17)

    curve = jax.lax.map(error, sizes)
    return {
        "log_error_below": curve[side - 2],
        "log_error_at": curve[side - 1],
        "log_error": curve,
        "size_over_d": sizes / side,
    }


def _on_a_large_image(filters: Array, size: int) -> Array:
    """w_m = Q⁻¹ d_m / (d_mᵀ Q⁻¹ d_m), Q[u, v] = c[u − v], with c the inverse Fourier transform of Σ_m |FFT(d_m)|²."""
    number, side, _ = filters.shape
    spectrum = jnp.sum(jnp.abs(jnp.fft.fft2(filters, (size, size))) ** 2, axis=0)
    c = jnp.fft.ifft2(spectrum).real
    rows, columns = jnp.repeat(jnp.arange(side), side), jnp.tile(jnp.arange(side), side)
    gram = c[(rows[:, None] - rows[None, :]) % size, (columns[:, None] - columns[None, :]) % size]
    flat = filters.reshape(number, side * side)
    solved = jnp.linalg.solve(gram, flat.T).T
    return (solved / jnp.sum(solved * flat, axis=1, keepdims=True)).reshape(filters.shape)
