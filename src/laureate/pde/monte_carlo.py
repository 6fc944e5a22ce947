"""Plain Monte Carlo, for the equations that allow it: linear ones, and h = −½‖z‖² by an exponential."""

from collections.abc import Callable
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, Int, PRNGKeyArray

from laureate import loops
from laureate._core import Status, require
from laureate.pde.problem import Control, ParabolicPDE, check_problem, divided, euler_step, felt, num_noises, spread

__all__ = ["MonteCarlo", "MonteCarloResult"]


class MonteCarloResult(NamedTuple):
    """What simulation found.

    v0: the estimate of V(0, x0). standard_error: of it. cost: paths used. status: DIVERGED where the estimate is not
    finite.
    """

    v0: Float[Array, ""]
    standard_error: Float[Array, ""]
    cost: Int[Array, ""]
    status: Int[Array, ""]


class MonteCarlo(eqx.Module):
    """V(0, x0) by simulation alone.

    "linear":       h = a(t, x) y + f(t, x):  V = E[e^{∫a} g(X_T) + ∫ e^{∫a} f dt]   (Feynman and Kac)
    "exponential":  h = −½‖z‖²:               V = −log E[e^{−g(X_T)}]                (Cole and Hopf)

    num_paths: independent paths, >= 2.
    num_steps: steps of the Euler scheme, >= 1.
    form: which of the two; a driver of another form is refused, and under jit, where nothing can be raised, answered by
        NaN and DIVERGED.

    >>> import jax, jax.numpy as jnp
    >>> class Heat(eqx.Module):
    ...     x0: jax.Array
    ...     horizon: float = 0.5
    ...     def drift(self, t, x): return jnp.zeros_like(x)
    ...     def diffusion(self, t, x): return jnp.ones(())
    ...     def driver(self, t, x, y, z): return 0.0 * y
    ...     def terminal(self, x): return jnp.sum(x**2)
    >>> result = MonteCarlo(num_paths=2000, num_steps=4).run(jax.random.key(0), Heat(jnp.zeros(4)))
    >>> bool(abs(result.v0 - 2.0) < 4 * result.standard_error), int(result.cost)  # d T = 2
    (True, 2000)
    """

    num_paths: int = eqx.field(static=True, default=10_000)
    num_steps: int = eqx.field(static=True, default=100)
    form: Literal["linear", "exponential"] = eqx.field(static=True, default="linear")

    def __check_init__(self):
        require("MonteCarlo", "num_paths", ">= 2", self.num_paths, lambda n: n >= 2)
        require("MonteCarlo", "num_steps", ">= 1", self.num_steps, lambda n: n >= 1)
        rule = "'linear' or 'exponential'"
        require("MonteCarlo", "form", rule, self.form, lambda f: f in ("linear", "exponential"))

    def run(
        self,
        key: PRNGKeyArray,
        pde: ParabolicPDE,
        x: Array | None = None,
        control: Control | None = None,
        progress: Callable[[loops.Progress], None] | None = None,
    ) -> MonteCarloResult:
        """V(0, x0), or V(0, x) for another point; traceable.

        control: importance sampling for "exponential": paths of drift b + σu, weighted by Girsanov's density, give the
        same mean for any u, and with u near −σᵀ∇V hardly any variance. Without it exp(−g) may be hopeless.
        progress: called about every second with a ``laureate.loops.Progress``, in steps of time; not within jit.
        """
        require(
            "MonteCarlo", "control", "None for form 'linear'", control, lambda u: u is None or self.form != "linear"
        )
        check_problem(pde)
        x0 = jnp.asarray(pde.x0 if x is None else x)
        fits = self._fits(pde, x0)
        if not isinstance(fits, Tracer) and not fits:
            wanted = "a(t, x) y + f(t, x)" if self.form == "linear" else "−½‖z‖²"
            raise ValueError(f"MonteCarlo.form = {self.form!r} needs a driver of the form {wanted}; pde.driver is not.")
        dt = jnp.asarray(pde.horizon, x0.dtype) / self.num_steps
        zero, one = jnp.zeros((), x0.dtype), jnp.ones((), x0.dtype)
        nothing = jnp.zeros(num_noises(pde), x0.dtype)

        def body(carry, n):
            x, log_factor, gain = carry
            t = n * dt
            if self.form == "linear":
                source = jax.vmap(lambda x: pde.driver(t, x, zero, nothing))(x)
                growth = jax.vmap(lambda x: pde.driver(t, x, one, nothing))(x) - source
                gain = gain + jnp.exp(log_factor) * source * dt
                log_factor = log_factor + growth * dt
            after = euler_step(jax.random.fold_in(key, n), pde, t, dt, x, control)
            if control is not None:
                density = jax.vmap(_density, (None, None, None, None, 0, 0))
                log_factor = log_factor + density(pde, control, t, dt, x, after)
            return (after, log_factor, gain), None

        start = (jnp.broadcast_to(x0, (self.num_paths, x0.shape[0])), *(jnp.zeros(self.num_paths, x0.dtype),) * 2)
        (x_end, log_factor, gain), _ = loops.scan(body, start, jnp.arange(self.num_steps), progress=progress)
        g = jax.vmap(pde.terminal)(x_end)
        if self.form == "linear":
            samples = gain + jnp.exp(log_factor) * g
            value, error = jnp.mean(samples), jnp.std(samples, ddof=1) / np.sqrt(self.num_paths)
        else:
            g = g - log_factor
            least = jnp.min(g)  # V = least − log E e^{−(g − least)}; the error by the delta method
            weights = jnp.exp(least - g)
            mean = jnp.mean(weights)
            value, error = least - jnp.log(mean), jnp.std(weights, ddof=1) / mean / np.sqrt(self.num_paths)
        value, error = jnp.where(fits, value, jnp.nan), jnp.where(fits, error, jnp.nan)
        status = jnp.where(jnp.isfinite(value), Status.OK, Status.DIVERGED)
        return MonteCarloResult(value, error, jnp.asarray(self.num_paths), status)

    def _fits(self, pde: ParabolicPDE, x: Array) -> Array:
        """Try the driver at a few values: a form it does not have would give a wrong answer without a word."""
        z = jnp.linspace(0.3, 1.1, num_noises(pde), dtype=x.dtype)
        t, y = jnp.zeros((), x.dtype), jnp.full((), 0.7, x.dtype)
        h = [pde.driver(t, x, k * y, c * z) for k, c in ((0, 0), (1, 0), (2, 0), (1, 1))]
        if self.form == "linear":
            found, wanted = jnp.stack([h[2] - h[1], h[3]]), jnp.stack([h[1] - h[0], h[1]])
        else:
            found, wanted = jnp.stack(h), jnp.stack([*(jnp.zeros_like(h[0]),) * 3, -jnp.sum(z**2) / 2])
        return jnp.allclose(found, wanted, rtol=1e-4, atol=1e-6)


def _density(pde: ParabolicPDE, control: Control, t: Array, dt: Array, x: Array, after: Array) -> Array:
    """log dP/dQ of one step: −u·ξ√Δt − ½‖u‖²Δt with σ ξ √Δt = ΔX − (b + σu) Δt."""
    sigma = jnp.asarray(pde.diffusion(t, x))
    u = felt(sigma, control(t, x))
    noise = after - x - (pde.drift(t, x) + spread(sigma, u)) * dt
    xi = jnp.linalg.pinv(sigma) @ noise if sigma.ndim == 2 else divided(noise, sigma)
    return -u @ xi - jnp.sum(u**2) * dt / 2
