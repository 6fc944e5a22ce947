"""From what a network predicts to the next state, and back to what it should have predicted. The time step is 1.

What is learnt takes the simulator's own Δt or Δt² into itself, so a trained model holds for that Δt alone.
"""

import abc

import equinox as eqx
from jax import Array
from jaxtyping import Float

__all__ = ["AbstractIntegrator", "FirstOrder", "SecondOrder"]


class AbstractIntegrator(eqx.Module):
    """How many frames are looked at, what is predicted, and what becomes of it."""

    @property
    @abc.abstractmethod
    def num_frames(self) -> int:
        """Frames before the one that is predicted."""

    @abc.abstractmethod
    def dynamic(self, frames: Float[Array, "h n d"]) -> Float[Array, "n k"]:
        """What of the frames is shown to the network at the nodes."""

    @abc.abstractmethod
    def target(self, frames: Float[Array, "h n d"], following: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """What the network should predict."""

    @abc.abstractmethod
    def advance(self, frames: Float[Array, "h n d"], predicted: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """The next state: the inverse of ``target``."""


class FirstOrder(AbstractIntegrator):
    """The change of the state is predicted: velocities of a flow, temperatures, positions that follow a load.

    ::

        p = x_{t+1} − x_t

    shown: whether the state itself is shown at the nodes. For positions say False: then they are seen as offsets along
        edges alone, and a body that is moved as a whole is the same body.

    >>> import jax.numpy as jnp
    >>> frames = jnp.array([[[2.0]]])
    >>> FirstOrder().target(frames, jnp.array([[5.0]])).tolist()
    [[3.0]]
    """

    shown: bool = eqx.field(static=True, default=True)

    @property
    def num_frames(self) -> int:
        """One."""
        return 1

    def dynamic(self, frames: Float[Array, "h n d"]) -> Float[Array, "n k"]:
        """The state, or nothing."""
        return frames[-1] if self.shown else frames[-1][:, :0]

    def target(self, frames: Float[Array, "h n d"], following: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """The change."""
        return following - frames[-1]

    def advance(self, frames: Float[Array, "h n d"], predicted: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """The state and the change."""
        return frames[-1] + predicted


class SecondOrder(AbstractIntegrator):
    """The acceleration is predicted, from positions and their last change: cloth, bodies, chains.

    ::

        p = x_{t+1} − 2 x_t + x_{t−1}

    >>> import jax.numpy as jnp
    >>> frames = jnp.array([[[1.0]], [[2.0]]])
    >>> SecondOrder().advance(frames, jnp.array([[0.5]])).tolist()
    [[3.5]]
    """

    @property
    def num_frames(self) -> int:
        """Two."""
        return 2

    def dynamic(self, frames: Float[Array, "h n d"]) -> Float[Array, "n k"]:
        """The last change, x_t − x_{t−1}."""
        return frames[-1] - frames[-2]

    def target(self, frames: Float[Array, "h n d"], following: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """The acceleration."""
        return following - 2 * frames[-1] + frames[-2]

    def advance(self, frames: Float[Array, "h n d"], predicted: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """Twice the last less the one before, and the acceleration."""
        return 2 * frames[-1] - frames[-2] + predicted
