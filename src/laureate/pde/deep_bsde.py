"""The deep BSDE solver, the best known rival: one network a time step for Z, trained forward in time."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from laureate import loops
from laureate._core import Status, require
from laureate.pde.networks import NetworkSolution, network, standards
from laureate.pde.problem import (
    ParabolicPDE,
    check_problem,
    divided,
    felt,
    num_noises,
    simulate,
    terminal_value_and_gradient,
)

__all__ = ["DeepBSDE", "DeepBSDEState"]


class DeepBSDEState(NamedTuple):
    """What the next update needs.

    parameters: V(0, x0), Z_0 and the arrays of the networks of the steps 1 … N − 1. optimiser: Adam's state for them.
    mean, deviation: of the paths at each step, by which the networks' inputs are normalised. update: updates done.
    """

    parameters: Any
    optimiser: Any
    mean: Array
    deviation: Array
    update: Int[Array, ""]


class DeepBSDEInfo(NamedTuple):
    """What an update reports.

    loss: before it. cost: paths simulated. status: DIVERGED where the loss, or V(0, x0) after it, is not finite; the
    update is made all the same.
    """

    loss: Float[Array, ""]
    cost: Int[Array, ""]
    status: Int[Array, ""]


class DeepBSDE(eqx.Module):
    """Deep BSDE: learn V(0, x0) and Z_n = network_n(X_n) so that the path of Y ends at g(X_T).

        Y_{n+1} = Y_n − h(t_n, X_n, Y_n, Z_n) Δt + Z_n·ξ_{n+1} √Δt,   loss = E|Y_N − g(X_N)|².

    A baseline: it yields V(0, x0) and nothing else. Reference: E, Han and Jentzen 2017; Han, Jentzen and E 2018. Batch
    normalisation is replaced by standards from pilot paths; V(0, x0) starts at E g(X_T).

    num_steps: N, time steps, >= 1.
    batch: fresh paths an update, >= 1.
    width, depth: units in a hidden layer and hidden layers of each network.
    learning_rate: Adam's, > 0, or a schedule of Optax; without batch normalisation a hundred dimensions want about
        3e-4, and at 1e-2 the error grows.
    num_updates: gradient updates, >= 1.

    >>> import jax, jax.numpy as jnp
    >>> class Heat(eqx.Module):
    ...     x0: jax.Array
    ...     horizon: float = 0.5
    ...     def drift(self, t, x): return jnp.zeros_like(x)
    ...     def diffusion(self, t, x): return jnp.ones(())
    ...     def driver(self, t, x, y, z): return 0.0 * y
    ...     def terminal(self, x): return jnp.sum(x**2)
    >>> solver = DeepBSDE(num_steps=2, batch=16, width=4, depth=1, num_updates=5)
    >>> state = solver.init(jax.random.key(0), Heat(jnp.zeros(4)))
    >>> state, info = eqx.filter_jit(solver.step)(jax.random.key(1), Heat(jnp.zeros(4)), state)
    >>> int(info.cost), bool(info.loss > 0)
    (16, True)
    """

    num_steps: int = eqx.field(static=True, default=20)
    batch: int = eqx.field(static=True, default=64)
    width: int = eqx.field(static=True, default=110)
    depth: int = eqx.field(static=True, default=2)
    learning_rate: Array | float | optax.Schedule = eqx.field(default=1e-2)
    num_updates: int = eqx.field(static=True, default=1000)

    def __check_init__(self):
        for name in ("num_steps", "batch", "width", "num_updates"):
            require("DeepBSDE", name, ">= 1", getattr(self, name), lambda n: n >= 1)
        rule = "> 0 or a schedule of Optax"
        require("DeepBSDE", "learning_rate", rule, self.learning_rate, lambda r: callable(r) or r > 0)

    def init(self, key: PRNGKeyArray, pde: ParabolicPDE) -> DeepBSDEState:
        """Networks, V(0, x0) = E g(X_T) and Z_0 = 0."""
        check_problem(pde)
        pilot, nets = jax.random.split(key)
        mean, deviation, level = standards(pilot, pde, self.num_steps)
        noises, d, dtype = num_noises(pde), mean.shape[1], mean.dtype

        def make(k):
            # Z starts at zero: a random Z in a hundred dimensions has a ‖z‖² that first drives V(0, x0) far away.
            net = network(k, d, noises, self.width, self.depth, dtype)
            return eqx.tree_at(lambda n: n.layers[-1], net, jax.tree.map(jnp.zeros_like, net.layers[-1]))

        stacked = eqx.filter_vmap(make)(jax.random.split(nets, max(self.num_steps - 1, 1)))
        parameters = (level, jnp.zeros(noises, dtype), eqx.filter(stacked, eqx.is_array))
        memory = optax.adam(self.learning_rate).init(parameters)
        return DeepBSDEState(parameters, memory, mean, deviation, jnp.zeros((), jnp.int32))

    def _loss(self, parameters, pde: ParabolicPDE, state: DeepBSDEState, paths: Array) -> Array:
        level, slope, arrays = parameters
        like = network(jax.random.key(0), paths.shape[2], num_noises(pde), self.width, self.depth, paths.dtype)
        static = eqx.filter(like, eqx.is_array, inverse=True)
        dt = jnp.asarray(pde.horizon, paths.dtype) / self.num_steps

        def advance(y, z, n, x, after):
            sigma = jnp.asarray(pde.diffusion(n * dt, x))
            noise = after - x - pde.drift(n * dt, x) * dt  # σ ξ √Δt
            z = felt(sigma, z)
            gain = z @ (jnp.linalg.pinv(sigma) @ noise) if sigma.ndim == 2 else jnp.sum(divided(z * noise, sigma))
            return y - pde.driver(n * dt, x, y, z) * dt + gain

        steps = jax.vmap(advance, (0, 0, None, 0, 0))
        k = paths.shape[1]
        y = steps(jnp.full(k, level), jnp.broadcast_to(slope, (k, slope.shape[0])), 0, paths[0], paths[1])

        def body(y, inputs):
            n, net_arrays, x, after = inputs
            net = eqx.combine(net_arrays, static)
            z = jax.vmap(net)((x - state.mean[n][None]) / state.deviation[n][None])
            return steps(y, z, n, x, after), None

        if self.num_steps > 1:
            inputs = (jnp.arange(1, self.num_steps), arrays, paths[1:-1], paths[2:])
            y, _ = jax.lax.scan(body, y, inputs)
        g = jax.vmap(lambda x: terminal_value_and_gradient(pde, x)[0])(paths[-1])
        return jnp.mean((y - g) ** 2)

    def step(self, key: PRNGKeyArray, pde: ParabolicPDE, state: DeepBSDEState) -> tuple[DeepBSDEState, DeepBSDEInfo]:
        """One update by Adam on fresh paths, drawn from ``fold_in(key, update)``."""
        paths = simulate(jax.random.fold_in(key, state.update), pde, self.batch, self.num_steps)
        loss, gradient = jax.value_and_grad(self._loss)(state.parameters, pde, state, paths)
        updates, optimiser = optax.adam(self.learning_rate).update(gradient, state.optimiser)
        parameters: Any = optax.apply_updates(state.parameters, updates)
        status = _judged(loss, parameters[0])
        info = DeepBSDEInfo(loss, jnp.asarray(self.batch), status)
        return state._replace(parameters=parameters, optimiser=optimiser, update=state.update + 1), info

    def run(
        self, key: PRNGKeyArray, pde: ParabolicPDE, progress: Callable[[loops.Progress], None] | None = None
    ) -> NetworkSolution:
        """The whole training as one traceable program.

        progress: called about every second with a ``laureate.loops.Progress``; not within jit.
        """
        start, steps = jax.random.split(key)

        def body(state, _):
            state, info = self.step(steps, pde, state)
            return state, (state.parameters[0], info.loss)

        updates = jnp.arange(self.num_updates)
        state, (history, loss) = loops.scan(body, self.init(start, pde), updates, progress=progress)
        status = _judged(loss[-1], state.parameters[0])
        return NetworkSolution(state.parameters[0], history, loss, state.update, status)


def _judged(loss: Float[Array, ""], value: Float[Array, ""]) -> Int[Array, ""]:
    """By V(0, x0) too: where a gradient is not finite the loss before the update may be."""
    return jnp.where(jnp.isfinite(loss) & jnp.isfinite(value), Status.OK, Status.DIVERGED)
