"""What a parabolic equation must offer, and the few operations every solver does with one.

∂_t V + b·∇V + ½ tr(σσᵀ∇²V) + h(t, x, V, σᵀ∇V) = 0 on [0, T) × R^d,  V(T, ·) = g.
"""

from collections.abc import Callable
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, PRNGKeyArray

__all__ = ["ParabolicPDE", "check_problem", "simulate"]

Control = Callable[[Array, Array], Array]


class ParabolicPDE(Protocol):
    """The user's equation; any object (best an ``equinox.Module``) with these names will do.

    x0: the point [d] where the value is wanted and the paths start. horizon: T > 0.
    diffusion: σ as a number, a diagonal [d], or a matrix [d, noises].
    Optional: ``terminal_gradient(x)``, else automatic differentiation is used; ``exact(t, x)`` where it is known.
    """

    @property
    def x0(self) -> Float[Array, " d"]:
        """The start."""
        ...

    @property
    def horizon(self) -> float | Array:
        """T."""
        ...

    def drift(self, t: Array, x: Float[Array, " d"], /) -> Float[Array, " d"]:
        """b(t, x)."""
        ...

    def diffusion(self, t: Array, x: Float[Array, " d"], /) -> Array:
        """σ(t, x)."""
        ...

    def driver(self, t: Array, x: Float[Array, " d"], y: Array, z: Array, /) -> Float[Array, ""]:
        """h(t, x, y, z) with y = V and z = σᵀ∇V."""
        ...

    def terminal(self, x: Float[Array, " d"], /) -> Float[Array, ""]:
        """g(x)."""
        ...


def spread(sigma: Array, noise: Float[Array, " noises"]) -> Float[Array, " d"]:
    """σ ξ for σ a number, a diagonal or a matrix."""
    return sigma @ noise if sigma.ndim == 2 else sigma * noise


def pull(sigma: Array, gradient: Float[Array, " d"]) -> Float[Array, " noises"]:
    """z = σᵀ∇V for σ a number, a diagonal or a matrix."""
    return sigma.T @ gradient if sigma.ndim == 2 else sigma * gradient


def felt(sigma: Array, z: Float[Array, " noises"]) -> Float[Array, " noises"]:
    """σ⁺σ z: what paths feel of z in R^noises. Of noises that σ stops, or mixes, they tell nothing."""
    return jnp.linalg.pinv(sigma) @ (sigma @ z) if sigma.ndim == 2 else jnp.where(sigma == 0, 0.0, z)


def divided(move: Float[Array, " d"], sigma: Array) -> Float[Array, " d"]:
    """move / σ for σ a number or a diagonal, and 0 where it is 0, for nothing moves there."""
    return move / jnp.where(sigma == 0, jnp.inf, sigma)


def terminal_value_and_gradient(pde: ParabolicPDE, x: Float[Array, " d"]) -> tuple[Array, Array]:
    """g(x) and ∇g(x)."""
    gradient: Any = getattr(pde, "terminal_gradient", None)
    if gradient is None:
        return jax.value_and_grad(pde.terminal)(x)
    return pde.terminal(x), gradient(x)


def num_noises(pde: ParabolicPDE) -> int:
    """The dimension of the Brownian motion that drives the paths."""
    sigma = jax.eval_shape(lambda x: jnp.asarray(pde.diffusion(jnp.zeros((), x.dtype), x)), pde.x0)
    return sigma.shape[1] if len(sigma.shape) == 2 else pde.x0.shape[0]


def euler_step(
    key: PRNGKeyArray, pde: ParabolicPDE, t: Array, dt: Array, x: Float[Array, "k d"], control: Control | None
) -> Float[Array, "k d"]:
    """X_{n+1} = X_n + (b + σu) Δt + σ ξ √Δt for every path."""
    noise = jax.random.normal(key, (x.shape[0], num_noises(pde)), x.dtype)
    return euler_move(pde, t, dt, x, noise, control)


def euler_move(
    pde: ParabolicPDE, t: Array, dt: Array, x: Float[Array, "k d"], noise: Float[Array, "k noises"], control: Any = None
) -> Float[Array, "k d"]:
    """The same step with given ξ."""

    def advance(x, xi):
        sigma = jnp.asarray(pde.diffusion(t, x))
        step = pde.drift(t, x) * dt + spread(sigma, xi) * jnp.sqrt(dt)
        return x + step + (0.0 if control is None else spread(sigma, control(t, x)) * dt)

    return jax.vmap(advance)(x, noise)


def simulate(
    key: PRNGKeyArray, pde: ParabolicPDE, num_paths: int, num_steps: int, control: Control | None = None
) -> Float[Array, "n k d"]:
    """``num_paths`` Euler-Maruyama paths from x0 at the times 0, Δt, …, T; step n draws from ``fold_in(key, n)``.

    pde: says where paths start and how they move. num_steps: into which the horizon is divided. control: u(t, x), by
        which the drift becomes b + σu; None: 0.
    """
    x0 = jnp.asarray(pde.x0)
    dt = jnp.asarray(pde.horizon, x0.dtype) / num_steps
    start = jnp.broadcast_to(x0, (num_paths, x0.shape[0]))

    def body(x, n):
        x = euler_step(jax.random.fold_in(key, n), pde, n * dt, dt, x, control)
        return x, x

    _, rest = jax.lax.scan(body, start, jnp.arange(num_steps))
    return jnp.concatenate([start[None], rest])


NEEDED = {
    "x0": "the point [d] where the value is wanted",
    "horizon": "the time T > 0 of the terminal condition",
    "drift": "a function b(t, x) -> [d]; jnp.zeros_like(x) where there is none",
    "diffusion": "a function σ(t, x) -> a number, a diagonal [d] or a matrix [d, noises]",
    "driver": "a function h(t, x, y, z) -> a number; 0.0 * y for a linear equation without source",
    "terminal": "a function g(x) -> a number",
}


def check_problem(pde: ParabolicPDE) -> None:
    """Raise on an equation that no solver can start with: shapes, horizon, functions that cannot be traced."""
    for name, rule in NEEDED.items():
        found = getattr(pde, name, None)
        if found is None or (rule.startswith("a function") and not callable(found)):
            raise ValueError(f"pde.{name} must be {rule}; got {found!r}. See the protocol ParabolicPDE.")
    if not isinstance(pde.x0, jax.Array | np.ndarray):
        raise ValueError(f"pde.x0 must be an array; got {pde.x0!r}. jnp.asarray(x0) makes it one.")
    x0 = jnp.asarray(pde.x0)
    if not jnp.issubdtype(x0.dtype, jnp.floating):
        raise ValueError(f"pde.x0 must be floating; got {x0.dtype}. x0.astype(float) makes it so.")
    if x0.ndim != 1 or x0.shape[0] < 1:
        raise ValueError(f"pde.x0 must be a vector [d] with d >= 1; got shape {x0.shape}.")
    if not isinstance(pde.horizon, Tracer) and not float(pde.horizon) > 0:
        raise ValueError(f"pde.horizon must be > 0; got {pde.horizon}.")
    d, t = x0.shape[0], jnp.zeros((), x0.dtype)
    y = jnp.zeros((), x0.dtype)
    _shape_of("drift", pde.drift, ((d,),), t, x0)
    sigma = _shape_of("diffusion", pde.diffusion, ((), (d,), (d, None)), t, x0)
    z = jnp.zeros(sigma[1] if len(sigma) == 2 else d, x0.dtype)
    _shape_of("driver", pde.driver, ((),), t, x0, y, z)
    _shape_of("terminal", pde.terminal, ((),), x0)
    if getattr(pde, "terminal_gradient", None) is not None:
        _shape_of("terminal_gradient", pde.terminal_gradient, ((d,),), x0)  # type: ignore[attr-defined]


def _shape_of(name: str, function: Callable[..., Any], allowed: tuple[tuple[int | None, ...], ...], *arguments: Array):
    try:
        shape = jax.eval_shape(lambda *a: jnp.asarray(function(*a)), *arguments).shape
    except (jax.errors.TracerArrayConversionError, jax.errors.ConcretizationTypeError) as error:
        raise TypeError(f"pde.{name} cannot be traced by JAX; use jax.numpy in place of numpy.") from error
    for expected in allowed:
        if len(shape) == len(expected) and all(e in (None, s) for s, e in zip(shape, expected, strict=True)):
            return shape
    wanted = " or ".join(str(list(e)).replace("None", "noises") for e in allowed)
    raise ValueError(f"pde.{name} must return an array of shape {wanted}; got {list(shape)}.")
