"""TO WRITE: a step of the method beside a peer's, on the same work."""

from laureate.lab.running.comparison import Comparison

__all__ = ["COMPARISONS"]

COMPARISONS: tuple[Comparison, ...] = ()  # TO WRITE: a comparison with the nearest peer
