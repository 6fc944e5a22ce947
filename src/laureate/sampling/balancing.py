"""Balancing functions g with g(t) = t g(1/t), in logs: how eagerly a proposal follows the difference of energies."""

from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from laureate._core import require

__all__ = ["BALANCING", "Balancing", "log_balanced", "require_balancing"]

LogBalancing = Callable[[Float[Array, "..."]], Float[Array, "..."]]
Balancing = str | LogBalancing

# log g as a function of log t. Divided by two once, here and nowhere else: g(t) = √t is the temperature of two.
BALANCING: Mapping[str, LogBalancing] = {
    "sqrt": lambda log_t: log_t / 2,
    "barker": jax.nn.log_sigmoid,  # t / (1 + t)
    "min": lambda log_t: jnp.minimum(log_t, 0.0),
    "max": lambda log_t: jnp.maximum(log_t, 0.0),
}


def require_balancing(owner: str, balancing: Balancing) -> None:
    """Raise unless ``balancing`` is a known name or a function."""
    names = ", ".join(map(repr, BALANCING))
    rule = f"one of {names} or a function from log t to log g(t)"
    require(owner, "balancing", rule, balancing, lambda b: callable(b) or b in BALANCING)


def log_balanced(
    balancing: Balancing, differences: Float[Array, "..."], inverse_temperature: float | Float[Array, ""]
) -> Float[Array, "..."]:
    """log g(exp(β d)); an unavailable move, d = -inf, stays so whatever g says (max(1, 0) is 1) and whatever β is."""
    log_g = balancing if callable(balancing) else BALANCING[balancing]
    beta = jnp.asarray(inverse_temperature, differences.dtype)
    gone = differences == -jnp.inf
    return jnp.where(gone, -jnp.inf, log_g(beta * jnp.where(gone, 0.0, differences)))
