"""What a backward solver hands back: the value function at every time, its gradient, control, residual and interval."""

from statistics import NormalDist
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, PRNGKeyArray

from laureate._core import require
from laureate.pde.bases import Basis
from laureate.pde.problem import ParabolicPDE, euler_step, pull, terminal_value_and_gradient
from laureate.pde.tensor_train import FunctionalTensorTrain

__all__ = ["Interval", "Solution", "ValueFunction", "gains"]


class ValueFunction(eqx.Module):
    """V_n(x) = offset + train(x) + weight · g(x): the paper's ansatz, one time step.

    offset is zero but at t = 0, where all paths stand at one point and nothing but a number can be learned.
    """

    train: FunctionalTensorTrain
    weight: Float[Array, ""]
    offset: Float[Array, ""]

    def value_and_gradient(
        self, x: Float[Array, " d"], terminal: Array, terminal_gradient: Array
    ) -> tuple[Float[Array, ""], Float[Array, " d"]]:
        """V_n(x) and ∇V_n(x), given g(x) and ∇g(x)."""
        value, gradient = self.train.value_and_gradient(x)
        return self.offset + value + self.weight * terminal, gradient + self.weight * terminal_gradient


class Interval(NamedTuple):
    """An estimate with its confidence interval.

    estimate: of V(0, x0). low, high: the ends of the interval. standard_error: from which they are made.
    """

    estimate: Float[Array, ""]
    low: Float[Array, ""]
    high: Float[Array, ""]
    standard_error: Float[Array, ""]


class Solution(eqx.Module):
    """The value function on [0, T] × R^d, as learned.

    pde: the equation. basis: the φ of all trains. cores, weights, offsets: of the ``ValueFunction`` at 0, Δt, …, T,
    stacked along the first axis. v0: the estimate of V(0, x0). info: one ``StepInfo`` a time 0 … N − 1, stacked.
    """

    pde: ParabolicPDE
    basis: Basis
    cores: Float[Array, "n d r m r"]
    weights: Float[Array, " n"]
    offsets: Float[Array, " n"]
    v0: Float[Array, ""]
    info: Any

    @property
    def num_steps(self) -> int:
        """N."""
        return self.weights.shape[0] - 1

    @property
    def times(self) -> Float[Array, " n"]:
        """0, Δt, …, T."""
        return jnp.arange(self.num_steps + 1) * (jnp.asarray(self.pde.horizon, self.v0.dtype) / self.num_steps)

    def at(self, n: Array | int) -> ValueFunction:
        """The value function of time step n."""
        return ValueFunction(FunctionalTensorTrain(self.cores[n], self.basis), self.weights[n], self.offsets[n])

    def _bracket(self, t: Array | float, interpolate: bool) -> tuple[Array, Array]:
        """The step n and the share s with t = (n + s) Δt."""
        position = jnp.asarray(t, self.v0.dtype) / jnp.asarray(self.pde.horizon, self.v0.dtype) * self.num_steps
        if not isinstance(position, Tracer):
            where = float(position)
            if not -1e-9 <= where <= self.num_steps + 1e-9:
                raise ValueError(f"t must be in [0, {self.pde.horizon}]; got {t}.")
            if not interpolate and abs(where - round(where)) > 1e-6:
                raise ValueError(
                    f"t must be a multiple of {float(jnp.asarray(self.pde.horizon)) / self.num_steps:g}; got {t}. "
                    "Use interpolate=True for times between."
                )
            position = jnp.where(jnp.abs(position - jnp.round(position)) <= 1e-6, jnp.round(position), position)
        n = jnp.clip(jnp.floor(position), 0, self.num_steps - 1).astype(jnp.int32)
        return n, position - n

    def value_and_gradient(
        self, t: Array | float, x: Float[Array, " d"], interpolate: bool = False
    ) -> tuple[Float[Array, ""], Float[Array, " d"]]:
        """V(t, x) and ∇V(t, x) of one point; between two grid times linear in t, if ``interpolate``."""
        n, share = self._bracket(t, interpolate)
        g, slope = terminal_value_and_gradient(self.pde, x)
        first, first_gradient = self.at(n).value_and_gradient(x, g, slope)
        second, second_gradient = self.at(n + 1).value_and_gradient(x, g, slope)
        # At a grid time the other end has weight zero, and must not spoil the value if it is infinite.
        low, high = jnp.where(share == 1, 0.0, 1 - share), jnp.where(share == 0, 0.0, share)

        def mix(a, b):
            return jnp.where(low == 0, b, jnp.where(high == 0, a, low * a + high * b))

        return mix(first, second), mix(first_gradient, second_gradient)

    def value(self, t: Array | float, x: Float[Array, " d"], interpolate: bool = False) -> Float[Array, ""]:
        """V(t, x)."""
        return self.value_and_gradient(t, x, interpolate)[0]

    def gradient(self, t: Array | float, x: Float[Array, " d"], interpolate: bool = False) -> Float[Array, " d"]:
        """∇V(t, x)."""
        return self.value_and_gradient(t, x, interpolate)[1]

    def optimal_control(self, t: Array | float, x: Float[Array, " d"]) -> Float[Array, " noises"]:
        """u*(t, x) = −σᵀ∇V, the control of a Hamilton-Jacobi-Bellman equation with h = −½‖z‖² (and more)."""
        return -pull(jnp.asarray(self.pde.diffusion(jnp.asarray(t), x)), self.gradient(t, x, interpolate=True))

    def residual(self, t: Array | float, x: Float[Array, " d"]) -> Float[Array, ""]:
        """∂_t V + b·∇V + ½ tr(σσᵀ∇²V) + h at (t, x), V linear in t between grid times: zero for a true solution."""
        n, share = self._bracket(t, interpolate=True)
        t = jnp.asarray(t, self.v0.dtype)

        def gradient(x):
            g, slope = terminal_value_and_gradient(self.pde, x)
            (low, low_gradient), (high, high_gradient) = (
                self.at(k).value_and_gradient(x, g, slope) for k in (n, n + 1)
            )
            values = (low, (1 - share) * low + share * high, high)
            return (1 - share) * low_gradient + share * high_gradient, values

        (slope, (low, value, high)) = gradient(x)
        rate = (high - low) * self.num_steps / jnp.asarray(self.pde.horizon, self.v0.dtype)
        sigma = jnp.asarray(self.pde.diffusion(t, x))
        columns = sigma.T if sigma.ndim == 2 else jnp.diag(jnp.broadcast_to(sigma, x.shape))
        # tr(σσᵀ∇²V) = Σ_j σ_jᵀ ∇²V σ_j, one directional derivative of the gradient a column
        curvature = jax.vmap(lambda c: c @ jax.jvp(lambda y: gradient(y)[0], (x,), (c,))[1])(columns)
        reaction = self.pde.driver(t, x, value, pull(sigma, slope))
        return rate + self.pde.drift(t, x) @ slope + jnp.sum(curvature) / 2 + reaction

    def interval(self, key: PRNGKeyArray, num_paths: int = 1000, level: float = 0.95) -> Interval:
        """A confidence interval for V(0, x0) from fresh paths, the learned function as control variate.

        Each path gives g(X_N) + Σ_n [h(t_n, X_n, V_n, Z_n) Δt − Z_n·ξ_{n+1} √Δt]; were V exact, all would agree.

        Which errors it covers: that of sampling these paths, alone. Not that of the time step, which is of order Δt
        and often a hundred times larger (``laureate.pde.extrapolate`` has an interval that covers both); nor that of V
        within h, which comes of the rank, the basis and the regression's own samples.
        """
        require("Solution", "level", "in (0, 1)", level, lambda p: 0 < p < 1)
        require("Solution", "num_paths", ">= 2", num_paths, lambda k: k >= 2)
        totals = _pathwise(key, self, num_paths)
        mean, error = jnp.mean(totals), jnp.std(totals, ddof=1) / np.sqrt(num_paths)
        half = NormalDist().inv_cdf(0.5 + level / 2) * error
        return Interval(mean, mean - half, mean + half, error)


def gains(
    solution: Solution, n: Array, dt: Array, x: Float[Array, "k d"], after: Float[Array, "k d"]
) -> Float[Array, " k"]:
    """h(t_n, X_n, V_n, Z_n) Δt − Z_n·ξ_{n+1} √Δt of every path's step from x to after."""
    pde, t = solution.pde, n * dt

    def gain(x, after):
        g, slope = terminal_value_and_gradient(pde, x)
        value, gradient = solution.at(n).value_and_gradient(x, g, slope)
        sigma = jnp.asarray(pde.diffusion(t, x))
        martingale = gradient @ (after - x - pde.drift(t, x) * dt)  # Z·ξ√Δt = ∇V·σξ√Δt
        return pde.driver(t, x, value, pull(sigma, gradient)) * dt - martingale

    return jax.vmap(gain)(x, after)


@eqx.filter_jit
def _pathwise(key: PRNGKeyArray, solution: Solution, num_paths: int) -> Float[Array, " k"]:
    pde, steps = solution.pde, solution.num_steps
    x0 = jnp.asarray(pde.x0)
    dt = jnp.asarray(pde.horizon, x0.dtype) / steps

    def body(carry, n):
        x, total = carry
        after = euler_step(jax.random.fold_in(key, n), pde, n * dt, dt, x, None)
        return (after, total + gains(solution, n, dt, x, after)), None

    start = jnp.broadcast_to(x0, (num_paths, x0.shape[0]))
    (x, total), _ = jax.lax.scan(body, (start, jnp.zeros(num_paths, x0.dtype)), jnp.arange(steps))
    return total + jax.vmap(pde.terminal)(x)
