"""Truncated backpropagation through time."""

from typing import Any

import jax
from jax import Array

from laureate.gradients.episodes import Episode
from laureate.gradients.workers import Report, Workers, run_worker, unstarted_worker

__all__ = ["TruncatedBackprop"]


class TruncatedBackprop(Workers):
    """TBPTT."""

    def unstarted(self, key: Array, theta: Any) -> Episode:
        """A worker before its first episode."""
        return unstarted_worker(self, key, theta)

    def episode_of(self, worker: Episode) -> Episode:
        """A worker is its episode."""
        return worker

    def check_state(self, theta: Any, workers: Episode) -> None:
        """The state does not depend on theta's shape."""

    def differentiate(
        self, key: Array, theta: Any, worker: Episode, batches: Any, has_done: bool
    ) -> tuple[Any, Episode, Report]:
        """∇_θ of one worker's losses in this truncation; the state it starts from counts as a constant."""

        def loss(theta):
            episode, report = run_worker(self, key, theta, worker, batches, has_done)
            return report.loss, (episode, report)

        gradient, (episode, report) = jax.grad(loss, has_aux=True)(theta)
        return gradient, episode, report
