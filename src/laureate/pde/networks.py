"""What the two network solvers share: a small network for standardised inputs, and what they report."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from laureate.pde.problem import ParabolicPDE, simulate

__all__ = ["NetworkSolution", "network", "standards"]


class NetworkSolution(NamedTuple):
    """What training networks found.

    v0: the estimate of V(0, x0). history: the estimate on the way. loss: likewise. cost: gradient updates in all.
    status: DIVERGED where the end is not finite.
    """

    v0: Float[Array, ""]
    history: Float[Array, " updates"]
    loss: Float[Array, " updates"]
    cost: Int[Array, ""]
    status: Int[Array, ""]


def network(key: PRNGKeyArray, inputs: int, outputs: int | str, width: int, depth: int, dtype) -> eqx.nn.MLP:
    """A tanh network; differentiable twice, as a value function must be."""
    mlp = eqx.nn.MLP(inputs, outputs, width, depth, jnp.tanh, key=key)  # type: ignore[arg-type]
    return jax.tree.map(lambda a: a.astype(dtype) if eqx.is_array(a) else a, mlp)


def standards(key: PRNGKeyArray, pde: ParabolicPDE, num_steps: int, num_paths: int = 256):
    """Mean and standard deviation of every coordinate at every time, and the mean of g at the end, from pilot paths.

    They stand in for batch normalisation, which the first deep BSDE solver needed.
    """
    paths = simulate(key, pde, num_paths, num_steps)
    ends = jax.vmap(pde.terminal)(paths[-1])
    return jnp.mean(paths, axis=1), jnp.maximum(jnp.std(paths, axis=1), 1e-3), jnp.mean(ends)
