"""One-dimensional equations solved spectrally, with numpy alone: oracles of what reduces to one variable."""

import functools

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

__all__ = ["ChebyshevTable", "double_well_value", "radial_allen_cahn"]


def _chebyshev(low: float, high: float, degree: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes in (low, high), the differentiation matrix at them, and values-to-coefficients."""
    angles = np.pi * np.arange(degree + 1) / degree
    s = np.cos(angles)
    values = np.cos(np.outer(angles, np.arange(degree + 1)))
    to_coefficients = np.linalg.inv(values)
    slopes = np.stack([np.polynomial.chebyshev.Chebyshev.basis(k).deriv()(s) for k in range(degree + 1)], axis=1)
    return (high - low) / 2 * (s + 1) + low, slopes @ to_coefficients * 2 / (high - low), to_coefficients


class ChebyshevTable(eqx.Module):
    """u(τ, x) on [0, T] × [low, high]: Chebyshev coefficients at equally spaced τ, linear between them."""

    coefficients: Float[np.ndarray, "times k"]
    horizon: float = eqx.field(static=True)
    low: float = eqx.field(static=True)
    high: float = eqx.field(static=True)

    def __call__(self, tau: Array | float, x: Float[Array, "..."]) -> Float[Array, "..."]:
        """u(τ, x); beyond the interval the value at its end."""
        steps = self.coefficients.shape[0] - 1
        position = jnp.clip(jnp.asarray(tau, x.dtype) / self.horizon, 0.0, 1.0) * steps
        n = jnp.minimum(jnp.floor(position), steps - 1).astype(jnp.int32)
        share = position - n
        table = jnp.asarray(self.coefficients, x.dtype)
        row = (1 - share) * table[n] + share * table[n + 1]
        s = jnp.clip(2 * (x - self.low) / (self.high - self.low) - 1, -1.0, 1.0)
        angles = jnp.arccos(s)[..., None] * jnp.arange(row.shape[0], dtype=x.dtype).reshape((1,) * s.ndim + (-1,))
        return jnp.cos(angles) @ row


@functools.lru_cache
def radial_allen_cahn(dimension: int, horizon: float, steps: int = 600, degree: int = 200) -> ChebyshevTable:
    """u_τ = 4q u_qq + 2d u_q + u − u³ in q = ‖x‖², u(0, q) = 1/(2 + 0.4q).

    Strang splitting: the reaction exactly, the diffusion by Crank and Nicolson. The far end follows the drift alone; no
    path from near the origin gets there.
    """
    high = 60 + 12 * dimension * horizon
    q, slope, to_coefficients = _chebyshev(0.0, high, degree)
    operator = 4 * q[:, None] * (slope @ slope) + 2 * dimension * slope
    operator[0] = 0.0  # the first node is the far end
    dt = horizon / steps
    identity = np.eye(degree + 1)
    step = np.linalg.solve(identity - dt / 2 * operator, identity + dt / 2 * operator)
    push = np.linalg.solve(identity - dt / 2 * operator, identity[:, 0])

    def react(u):  # u' = u − u³ over dt/2
        grown = np.exp(dt)
        return u * np.exp(dt / 2) / np.sqrt(1 + u**2 * (grown - 1))

    rows = [1 / (2 + 0.4 * q)]
    for n in range(steps):
        end = [1 / (2 + 0.4 * (high + 2 * dimension * k * dt)) for k in (n, n + 1)]
        u = react(rows[-1])
        # step leaves the far end where it is; push moves it to where the drift has carried it
        u = react(step @ u + push * (end[1] - end[0]))
        rows.append(u)
    return ChebyshevTable(np.stack(rows) @ to_coefficients.T, horizon, 0.0, high)


@functools.lru_cache
def double_well_value(
    horizon: float, kappa: float, eta: float, steps: int = 500, degree: int = 100, reach: float = 4.5
) -> ChebyshevTable:
    """v = −log ψ with ψ_τ = ½ψ'' − 4κx(x² − 1)ψ', ψ(0, x) = exp(−η(x − 1)²), by Crank and Nicolson.

    At the two ends the drift points strongly inwards: there the second derivative is left out.
    """
    x, slope, to_coefficients = _chebyshev(-reach, reach, degree)
    second = slope @ slope / 2
    second[[0, -1]] = 0.0
    operator = second - (4 * kappa * x * (x**2 - 1))[:, None] * slope
    dt = horizon / steps
    identity = np.eye(degree + 1)
    step = np.linalg.solve(identity - dt / 2 * operator, identity + dt / 2 * operator)
    rows = [np.exp(-eta * (x - 1) ** 2)]
    for _ in range(steps):
        rows.append(step @ rows[-1])
    return ChebyshevTable(-np.log(np.stack(rows)) @ to_coefficients.T, horizon, -reach, reach)
