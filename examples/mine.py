"""An unroll of one's own: how stiff and how damped must a hand be that brings a swinging pendulum to rest soonest?

    laureate run pes --problem examples/mine.py:Pendulum

runs those comparisons of the paper that make sense on any unroll (is the gradient unbiased, and who trains best for the
same number of steps) on this one instead of the paper's.

All that is needed are ``init``, ``step``, ``theta0`` and ``horizon``. The three other attributes are optional and
replace the comparisons' own choices.
"""

import jax
import jax.numpy as jnp


class Pendulum:
    """A pendulum under a spring and a damper: angle'' = −sin(angle) − e^{θ_0} angle − e^{θ_1} angle'."""

    horizon = 200  # steps an episode
    sigma = 0.1  # size of the perturbations of theta
    learning_rate = 0.02  # of Adam
    truncation = 10  # steps between two updates of theta

    def theta0(self, key):
        """Where training starts: a soft spring and hardly any damping."""
        return jnp.array([-1.0, -3.0])

    def init(self, key, theta):
        """Every episode begins with another swing: angle and speed."""
        return jax.random.uniform(key, (2,), minval=0.5, maxval=1.5)

    def step(self, key, theta, state):
        """A twentieth of a second; being away from rest costs, and so does force."""
        angle, speed = state
        force = -jnp.exp(theta[0]) * angle - jnp.exp(theta[1]) * speed
        speed = speed + 0.05 * (force - jnp.sin(angle))
        angle = angle + 0.05 * speed
        return jnp.stack([angle, speed]), angle**2 + 0.1 * speed**2 + 0.01 * force**2
