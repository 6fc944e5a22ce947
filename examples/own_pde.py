"""An equation that is not ours: steer twenty coupled oscillators to rest, and read off the control.

    python examples/own_pde.py
    laureate run tensor-train-pde/double-well-20 --problem examples/own_pde.py:oscillators

The equation is any object with x0, horizon, drift, diffusion, driver and terminal; everything else is the solver's. The
second line holds the solver's value against an unbiased simulation under its own control, over ten seeds.
"""

import equinox as eqx
import jax
import jax.numpy as jnp

from laureate.pde import ALS, Polynomials, TensorTrainSolver


class CoupledOscillators(eqx.Module):
    """dX = (−sin X + k(mean X − X) + u) dt + dW at the cost ½∫‖u‖² + ¼‖X_T‖²; its value solves an HJB equation."""

    x0: jax.Array
    horizon: float = 0.5
    coupling: float = 0.5
    interval: tuple[float, float] = eqx.field(default=(-4.0, 4.0), static=True)  # where the paths are

    def drift(self, t, x):
        return -jnp.sin(x) + self.coupling * (jnp.mean(x) - x)

    def diffusion(self, t, x):
        return jnp.ones((), x.dtype)

    def driver(self, t, x, y, z):
        return -0.5 * jnp.sum(z**2)

    def terminal(self, x):
        return 0.25 * jnp.sum(x**2)


def oscillators(dimension=20):
    return CoupledOscillators(x0=jnp.linspace(-1.0, 1.0, dimension))


def cost(key, pde, control, num_paths=2000, num_steps=10):
    """What a control costs on average, by simulation: never below the value function."""
    dt = pde.horizon / num_steps

    def path(key):
        def step(carry, n):
            x, paid = carry
            u = control(n * dt, x)
            noise = jax.random.normal(jax.random.fold_in(key, n), x.shape)
            return (x + (pde.drift(n * dt, x) + u) * dt + noise * jnp.sqrt(dt), paid + 0.5 * jnp.sum(u**2) * dt), None

        (x, paid), _ = jax.lax.scan(step, (pde.x0, jnp.zeros(())), jnp.arange(num_steps))
        return paid + pde.terminal(x)

    return jnp.mean(jax.vmap(path)(jax.random.split(key, num_paths)))


def main(dimension=20, num_samples=1000):
    with jax.enable_x64(True):
        pde = oscillators(dimension)
        solver = TensorTrainSolver(
            Polynomials(*pde.interval, degree=2),
            rank=2,
            num_steps=10,
            num_samples=num_samples,
            use_terminal=False,
            regression=ALS(tolerance=1e-3, max_sweeps=3),
            tolerance=1e-4,
        )
        solution = eqx.filter_jit(solver.run)(jax.random.key(0), pde)
        steered = jax.jit(lambda key: cost(key, pde, solution.optimal_control))(jax.random.key(1))
        idle = jax.jit(lambda key: cost(key, pde, lambda t, x: jnp.zeros_like(x)))(jax.random.key(1))
        print(f"value of the start  {float(solution.v0):.3f}")
        print(f"cost when steered   {float(steered):.3f}")
        print(f"cost when left be   {float(idle):.3f}")
        return float(solution.v0), float(steered), float(idle)


if __name__ == "__main__":
    main()
