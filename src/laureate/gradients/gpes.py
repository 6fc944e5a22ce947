"""GPES."""

import equinox as eqx

from laureate._core import require
from laureate.gradients.antithetic import ONCE_AN_EPISODE, Antithetic

__all__ = ["GPES"]


class GPES(Antithetic):
    """GPES."""

    noise_steps: int | None = eqx.field(static=True, kw_only=True)

    def __check_init__(self):
        require("GPES", "noise_steps", "an integer >= 1, or None", self.noise_steps, lambda n: n is None or n >= 1)

    @property
    def redraw_every(self) -> int | None:
        """Every ``noise_steps`` inner steps of an episode."""
        return ONCE_AN_EPISODE if self.noise_steps is None else self.noise_steps
