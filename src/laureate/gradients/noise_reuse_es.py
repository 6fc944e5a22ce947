"""NRES."""

from laureate.gradients.antithetic import ONCE_AN_EPISODE, Antithetic

__all__ = ["NoiseReuseES"]


class NoiseReuseES(Antithetic):
    """NRES."""

    @property
    def redraw_every(self) -> None:
        """Once an episode."""
        return ONCE_AN_EPISODE
