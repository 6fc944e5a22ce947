"""The backward network solver: the same scheme as the tensor train's, with a network in its place."""

from collections.abc import Callable
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, PRNGKeyArray

from laureate import loops
from laureate._core import Status, require
from laureate.pde.networks import NetworkSolution, network, standards
from laureate.pde.problem import ParabolicPDE, check_problem, pull, simulate, terminal_value_and_gradient

__all__ = ["DeepBackward"]


class DeepBackward(eqx.Module):
    """Backward in time: V_n is a network, trained by Adam on the targets of ``TensorTrainSolver``, warm from V_{n+1}.

    explicit:  loss = mean |V(X_n) − V_{n+1}(X_{n+1}) − h(t_{n+1}, X_{n+1}, Y_{n+1}, Z_{n+1}) Δt|²
    implicit:  loss = mean |V(X_n) − V_{n+1}(X_{n+1}) − h(t_n, X_n, V, σᵀ∇V) Δt + σᵀ∇V·ξ √Δt|²

    A baseline. Reference: Huré, Pham and Warin 2020; Richter, Sallandt and Nüsken 2021, section 4.

    num_steps: N, time steps, >= 1.
    num_samples: paths K, simulated once, >= 1.
    batch: how many of them an update sees, >= 1.
    num_updates: updates a time step (ten times as many at n = N − 1, where the network is new), >= 1.
    width, depth: units in a hidden layer and hidden layers of the network.
    learning_rate: Adam's, > 0, or a schedule of Optax, begun anew at every step of time.
    scheme: "implicit" or "explicit", see above.

    >>> import jax, jax.numpy as jnp
    >>> class Heat(eqx.Module):
    ...     x0: jax.Array
    ...     horizon: float = 0.5
    ...     def drift(self, t, x): return jnp.zeros_like(x)
    ...     def diffusion(self, t, x): return jnp.ones(())
    ...     def driver(self, t, x, y, z): return 0.0 * y
    ...     def terminal(self, x): return jnp.sum(x**2)
    >>> solver = DeepBackward(num_steps=2, num_samples=64, batch=16, num_updates=10, width=4, depth=1)
    >>> solution = eqx.filter_jit(solver.run)(jax.random.key(0), Heat(jnp.zeros(4)))
    >>> bool(jnp.isfinite(solution.v0))
    True
    """

    num_steps: int = eqx.field(static=True, default=20)
    num_samples: int = eqx.field(static=True, default=2000)
    batch: int = eqx.field(static=True, default=256)
    num_updates: Array | int = eqx.field(default=100)
    width: int = eqx.field(static=True, default=64)
    depth: int = eqx.field(static=True, default=2)
    learning_rate: Array | float | optax.Schedule = eqx.field(default=1e-3)
    scheme: Literal["implicit", "explicit"] = eqx.field(static=True, default="implicit")

    def __check_init__(self):
        for name in ("num_steps", "num_samples", "batch", "num_updates", "width"):
            require("DeepBackward", name, ">= 1", getattr(self, name), lambda n: n >= 1)
        rule = "> 0 or a schedule of Optax"
        require("DeepBackward", "learning_rate", rule, self.learning_rate, lambda r: callable(r) or r > 0)
        rule = "'implicit' or 'explicit'"
        require("DeepBackward", "scheme", rule, self.scheme, lambda s: s in ("implicit", "explicit"))

    def run(
        self, key: PRNGKeyArray, pde: ParabolicPDE, progress: Callable[[loops.Progress], None] | None = None
    ) -> NetworkSolution:
        """The whole backward training as one traceable program.

        progress: called about every second with a ``laureate.loops.Progress``, in steps of time; not within jit.
        """
        check_problem(pde)
        path_key, pilot_key, net_key, draw_key = jax.random.split(key, 4)
        paths = simulate(path_key, pde, self.num_samples, self.num_steps)
        mean, deviation, level = standards(pilot_key, pde, self.num_steps)
        dt = jnp.asarray(pde.horizon, paths.dtype) / self.num_steps
        net = network(net_key, paths.shape[2], "scalar", self.width, self.depth, paths.dtype)
        arrays, static = eqx.partition(net, eqx.is_array)
        adam = optax.adam(self.learning_rate)

        def value(arrays, n, x):
            return level + eqx.combine(arrays, static)((x - mean[n]) / deviation[n])

        def future_of(arrays, n, x):  # V_N = g is known; before that, the network of step n
            return jax.lax.cond(
                n == self.num_steps,
                lambda: terminal_value_and_gradient(pde, x),
                lambda: jax.value_and_grad(value, argnums=2)(arrays, n, x),
            )

        def residual(arrays, n, x, after, future, future_gradient):
            if self.scheme == "explicit":
                z = pull(jnp.asarray(pde.diffusion((n + 1) * dt, after)), future_gradient)
                return value(arrays, n, x) - future - pde.driver((n + 1) * dt, after, future, z) * dt
            y, gradient = jax.value_and_grad(value, argnums=2)(arrays, n, x)
            z = pull(jnp.asarray(pde.diffusion(n * dt, x)), gradient)
            martingale = gradient @ (after - x - pde.drift(n * dt, x) * dt)
            return y - future - pde.driver(n * dt, x, y, z) * dt + martingale

        def fit(arrays, n) -> tuple[Any, tuple[Array, Array]]:
            x, after = paths[n], paths[n + 1]
            future, slope = jax.vmap(lambda x: future_of(arrays, n + 1, x))(after)
            step_key = jax.random.fold_in(draw_key, n)

            def update(i, carry):
                arrays, optimiser, _ = carry
                chosen = jax.random.choice(jax.random.fold_in(step_key, i), self.num_samples, (self.batch,))

                def mean_square(arrays):
                    rows = jax.vmap(residual, (None, None, 0, 0, 0, 0))
                    return jnp.mean(rows(arrays, n, x[chosen], after[chosen], future[chosen], slope[chosen]) ** 2)

                loss, gradient = jax.value_and_grad(mean_square)(arrays)
                updates, optimiser = adam.update(gradient, optimiser)
                return optax.apply_updates(arrays, updates), optimiser, loss

            start = (arrays, adam.init(arrays), jnp.zeros((), paths.dtype))
            updates = jnp.where(n == self.num_steps - 1, 10, 1) * self.num_updates
            arrays, _, loss = jax.lax.fori_loop(0, updates, update, start)
            return arrays, (loss, jnp.mean(jax.vmap(lambda x: value(arrays, n, x))(x)))

        backwards = jnp.arange(self.num_steps - 1, 0, -1)
        arrays, (losses, centres) = loops.scan(fit, arrays, backwards, progress=progress)
        # n = 0: all paths stand at x0, the mean of the targets is the value.
        x0, after = paths[0, 0], paths[1]
        future, slope = jax.vmap(lambda x: future_of(arrays, jnp.asarray(1), x))(after)
        if self.scheme == "explicit":
            shown = jax.vmap(lambda a, f, s: residual(arrays, 0, x0, a, f, s))(after, future, slope)
            v0 = value(arrays, 0, x0) - jnp.mean(shown)
        else:
            gradient = future_of(arrays, jnp.asarray(1), x0)[1]
            z = pull(jnp.asarray(pde.diffusion(0 * dt, x0)), gradient)
            base = jnp.mean(future - (after - x0[None] - pde.drift(0 * dt, x0)[None] * dt) @ gradient)
            v0 = jax.lax.fori_loop(0, 20, lambda _, y: base + pde.driver(0 * dt, x0, y, z) * dt, base)
        history = jnp.concatenate([centres, v0[None]])
        cost = jnp.asarray(self.num_updates * (self.num_steps + 8) if self.num_steps > 1 else 0)
        status = jnp.where(jnp.isfinite(v0), Status.OK, Status.DIVERGED)
        return NetworkSolution(v0, history, losses, cost, status)
