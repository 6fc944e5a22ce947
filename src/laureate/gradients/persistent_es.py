"""Persistent evolution strategies: an unbiased gradient every few steps of a very long unroll."""

from laureate.gradients.antithetic import Antithetic

__all__ = ["PersistentES"]


class PersistentES(Antithetic):
    """PES."""
