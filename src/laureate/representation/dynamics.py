"""The theory as a tool: how a linear network learns from two views, as differential equations.

With x = x̄ + x', x̄ what an example's views share and x' what the augmentation adds, the data enter by two matrices
alone, X = E[x̄ x̄ᵀ] and X' = E[x' x'ᵀ].
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from laureate._core import require

__all__ = ["LinearDynamics", "LinearState", "ModeDynamics"]


class LinearState(NamedTuple):
    """The weights of a linear model.

    online: W, [D, n]. predictor: W_p, [D, D]. target: W_a, [D, n].
    """

    online: Float[Array, "d n"]
    predictor: Float[Array, "d d"]
    target: Float[Array, "d n"]


class LinearDynamics(eqx.Module):
    """Gradient flow of ½E‖W_p W x₁ − sg(W_a x₂)‖² with weight decay η and a target that follows.

    ::

        Ẇ_p = α_p (−W_p W (X + X') + W_a X) Wᵀ − η W_p
        Ẇ   = W_pᵀ (−W_p W (X + X') + W_a X) − η W
        Ẇ_a = β (W − W_a)

    Yuandong Tian, Xinlei Chen and Surya Ganguli, ICML 2021, theorem 1. While W_p stays symmetric,
    W Wᵀ − W_p²/α_p decays as e^{−2ηt}.

    shared: X, the covariance of what two views have in common, [n, n].
    augmentation: X', the covariance of what a view adds, [n, n].
    predictor_rate: α_p > 0, the predictor's learning rate over the network's.
    target_rate: β >= 0; None: the target is τ times the network itself at every moment, W_a = τ W.
    ratio: τ, read only where ``target_rate`` is None. The state's target is then told, and not looked at.
    decay: η >= 0.
    predictor: False holds W_p = 1, and collapses.
    stop_gradient: False lets the gradient through the target too, which is then the network (τ times it where
        ``target_rate`` is None), and collapses.
    symmetric: use the symmetric part of Ẇ_p, as the analysis does.

    >>> import jax.numpy as jnp
    >>> flow = LinearDynamics(jnp.eye(1), 0.3 * jnp.eye(1), decay=0.02, target_rate=None)
    >>> half = jnp.full((1, 1), 0.5)
    >>> last = flow.simulate(LinearState(half, half, half), time=200.0, num_steps=4000)
    >>> round(float(last.predictor[0, 0]), 4)  # p₊ = (1 + √(1 − 4·0.02·1.3))/2.6
    0.7487
    """

    shared: Float[Array, "n n"]
    augmentation: Float[Array, "n n"]
    predictor_rate: Any = eqx.field(default=1.0, kw_only=True)
    target_rate: Any = eqx.field(default=1.0, kw_only=True)
    ratio: Any = eqx.field(default=1.0, kw_only=True)
    decay: Any = eqx.field(default=0.0, kw_only=True)
    predictor: bool = eqx.field(static=True, default=True, kw_only=True)
    stop_gradient: bool = eqx.field(static=True, default=True, kw_only=True)
    symmetric: bool = eqx.field(static=True, default=False, kw_only=True)

    def __check_init__(self):
        require("LinearDynamics", "predictor_rate", "> 0", self.predictor_rate, lambda a: a > 0)
        require("LinearDynamics", "target_rate", "None or >= 0", self.target_rate, lambda b: b is None or b >= 0)
        require("LinearDynamics", "decay", ">= 0", self.decay, lambda e: e >= 0)
        if self.shared.shape != self.augmentation.shape or self.shared.ndim != 2:
            raise ValueError(
                f"LinearDynamics: shared and augmentation must both be [n, n]; "
                f"got {list(self.shared.shape)} and {list(self.augmentation.shape)}."
            )

    def rates(self, state: LinearState) -> LinearState:
        """The right-hand sides."""
        w, shared, both = state.online, self.shared, self.shared + self.augmentation
        w_p = state.predictor if self.predictor else jnp.eye(w.shape[0], dtype=w.dtype)
        follows = self.stop_gradient and self.target_rate is not None
        size = self.ratio if self.target_rate is None else 1.0  # of a target that is the network itself
        w_a = state.target if follows else size * w
        residual = -w_p @ w @ both + w_a @ shared  # −E[(W_p W x₁ − W_a x₂) x₁ᵀ]
        predictor = self.predictor_rate * residual @ w.T - self.decay * w_p
        if self.symmetric:
            predictor = 0.5 * (predictor + predictor.T)
        online = w_p.T @ residual - self.decay * w
        if not self.stop_gradient:  # the target's share: −E[(W_a x₂ − W_p W x₁) x₂ᵀ], times τ
            online = online - size * (w_a @ both - w_p @ w @ shared)
        follow = 0.0 if self.target_rate is None else self.target_rate
        return LinearState(online, predictor if self.predictor else jnp.zeros_like(w_p), follow * (w - state.target))

    def simulate(self, state: LinearState, time: Any, num_steps: int) -> LinearState:
        """The state after ``time``, by ``num_steps`` steps of the classical Runge–Kutta method."""
        return self.path(state, time, num_steps, 1)[0]

    def path(self, state: LinearState, time: Any, num_steps: int, num_points: int) -> tuple[LinearState, LinearState]:
        """The last state, and ``num_points`` states on the way, evenly in time: a divisor of ``num_steps``."""
        rule = f"a divisor of num_steps ({num_steps})"
        require("LinearDynamics.path", "num_points", rule, num_points, lambda p: p >= 1 and num_steps % p == 0)
        found = integrate(self.rates, state, time, num_steps, num_points)
        if self.target_rate is not None:
            return found
        last, states = (part._replace(target=self.ratio * part.online) for part in found)
        return last, states


class ModeDynamics(eqx.Module):
    """One eigenmode where X = 1 and X' = σ² 1: predictor's eigenvalue p and the correlation's s.

    ::

        ṗ = α_p s (τ − (1 + σ²) p) − η p
        ṡ = 2 p s (τ − (1 + σ²) p) − 2 η s,      s − p²/α_p decays as e^{−2ηt}

    On s = p²/α_p there are three rests: 0, and p± = (τ ± √(τ² − 4η(1 + σ²)))/(2(1 + σ²)). A mode that starts below p₋
    dies; above, it goes to p₊. With η > τ²/(4(1 + σ²)) every mode dies.

    variance: σ² >= 0.
    decay: η >= 0.
    ratio: τ > 0, the target's size over the network's.
    predictor_rate: α_p > 0.

    >>> modes = ModeDynamics(variance=0.3, decay=0.02)
    >>> [round(float(p), 6) for p in modes.rests()], round(float(modes.largest_decay()), 6)
    ([0.020549, 0.748682], 0.192308)
    """

    variance: Any = eqx.field(kw_only=True)
    decay: Any = eqx.field(default=0.0, kw_only=True)
    ratio: Any = eqx.field(default=1.0, kw_only=True)
    predictor_rate: Any = eqx.field(default=1.0, kw_only=True)

    def __check_init__(self):
        require("ModeDynamics", "variance", ">= 0", self.variance, lambda v: v >= 0)
        require("ModeDynamics", "decay", ">= 0", self.decay, lambda e: e >= 0)
        require("ModeDynamics", "ratio", "> 0", self.ratio, lambda t: t > 0)
        require("ModeDynamics", "predictor_rate", "> 0", self.predictor_rate, lambda a: a > 0)

    def rates(self, mode: tuple[Array, Array]) -> tuple[Array, Array]:
        """(ṗ, ṡ)."""
        p, s = mode
        drive = self.ratio - (1 + self.variance) * p
        return self.predictor_rate * s * drive - self.decay * p, 2 * p * s * drive - 2 * self.decay * s

    def simulate(self, p: Any, s: Any, time: Any, num_steps: int) -> tuple[Array, Array]:
        """(p, s) after ``time``."""
        start = jnp.asarray(p, jnp.result_type(float)), jnp.asarray(s, jnp.result_type(float))
        return integrate(self.rates, start, time, num_steps, 1)[0]

    def rests(self) -> tuple[Array, Array]:
        """(p₋, p₊); NaN where every mode dies."""
        both = 1 + jnp.asarray(self.variance)
        root = jnp.sqrt(self.ratio**2 - 4 * self.decay * both)
        return (self.ratio - root) / (2 * both), (self.ratio + root) / (2 * both)

    def largest_decay(self) -> Array:
        """Above which η every mode dies: τ²/(4(1 + σ²))."""
        return self.ratio**2 / (4 * (1 + jnp.asarray(self.variance)))


def integrate(rates: Any, state: Any, time: Any, num_steps: int, num_points: int) -> tuple[Any, Any]:
    """Runge and Kutta's method of fourth order as one scan: the last state, and those at ``num_points`` moments."""
    dt = time / num_steps

    def add(scale, state, rate):
        return jax.tree.map(lambda x, r: x + scale * r, state, rate)

    def step(state, _):
        k1 = rates(state)
        k2 = rates(add(dt / 2, state, k1))
        k3 = rates(add(dt / 2, state, k2))
        k4 = rates(add(dt, state, k3))
        mean = jax.tree.map(lambda a, b, c, d: (a + 2 * b + 2 * c + d) / 6, k1, k2, k3, k4)
        return add(dt, state, mean), None

    def chunk(state, _):
        state, _ = jax.lax.scan(step, state, length=num_steps // num_points)
        return state, state

    return jax.lax.scan(chunk, state, length=num_points)
