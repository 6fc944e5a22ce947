"""Problems whose numbers are not finite, as a user's own may be by mistake."""

import equinox as eqx
import jax.numpy as jnp

from laureate.problems.pdes import HJBLog
from laureate.problems.unrolls import ToySchedule


class NanUnroll(eqx.Module):
    """Every loss is NaN."""

    horizon: int = eqx.field(static=True, default=20)

    def init(self, key, theta):
        return ToySchedule(horizon=self.horizon).init(key, theta)

    def step(self, key, theta, state):
        state, loss = ToySchedule(horizon=self.horizon).step(key, theta, state)
        return state, loss * jnp.nan

    def theta0(self, key):
        return ToySchedule(horizon=self.horizon).theta0(key)


class NanPDE(eqx.Module):
    """The terminal condition is NaN."""

    inner: HJBLog = eqx.field(default_factory=lambda: HJBLog(2))
    x0 = property(lambda self: self.inner.x0)
    horizon = property(lambda self: self.inner.horizon)
    drift = property(lambda self: self.inner.drift)
    diffusion = property(lambda self: self.inner.diffusion)
    driver = property(lambda self: self.inner.driver)
    exact = property(lambda self: self.inner.exact)

    def terminal(self, x):
        return self.inner.terminal(x) * jnp.nan
