"""Hyper-parameters tuned through the training that they govern."""

import itertools
from functools import lru_cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from laureate._core import require
from laureate.problems.datasets import diabetes

__all__ = ["RidgeCoefficient", "RidgeFamily", "ToySchedule"]


class ToySchedule(eqx.Module):
    """The paper's 2-D toy: a learning rate that goes linearly from e^{θ_0} to e^{θ_1}, tuned for a whole training run.

    Inner loss  f(x) = √(x_0² + 5) − √5 + sin²(x_1) e^{−5 x_0²} + ¼ |x_1 − 100|, gradient descent from x = (1, 1),
    L_t = f(x_{t+1}). A high rate pays only late (the way to x_1 = 100 is long, and near x_0 = 0 bumps stop a low one),
    so short truncations stay with a low one.

    horizon: T, inner steps of a run, >= 1.

    >>> problem = ToySchedule()
    >>> state, loss = problem.step(jax.random.key(0), problem.theta0(jax.random.key(0)), (jnp.ones(2), jnp.array(0)))
    >>> round(float(loss), 2)
    24.96
    """

    horizon: int = eqx.field(static=True, default=100)

    def __check_init__(self) -> None:
        require("ToySchedule", "horizon", ">= 1", self.horizon, lambda t: t >= 1)

    def theta0(self, key: PRNGKeyArray) -> Float[Array, " 2"]:
        """The paper's start, (−4, −4)."""
        del key
        return jnp.array([-4.0, -4.0])

    def init(self, key: PRNGKeyArray, theta: Float[Array, " 2"]) -> tuple[Float[Array, " 2"], Int[Array, ""]]:
        """x = (1, 1), and the number of steps done."""
        del key, theta
        return jnp.ones(2), jnp.zeros((), jnp.int32)

    def step(
        self, key: PRNGKeyArray, theta: Float[Array, " 2"], state: tuple[Float[Array, " 2"], Int[Array, ""]]
    ) -> tuple[tuple[Float[Array, " 2"], Int[Array, ""]], Float[Array, ""]]:
        """One step of gradient descent with the rate of its time."""
        del key
        x, t = state
        share = t.astype(x.dtype) / self.horizon
        rate = jnp.exp(theta[0]) * (1 - share) + jnp.exp(theta[1]) * share
        x = x - rate * jax.grad(_surface)(x)
        return (x, t + 1), _surface(x)


def _surface(x: Float[Array, " 2"]) -> Float[Array, ""]:
    bowl = jnp.sqrt(x[0] ** 2 + 5.0) - jnp.sqrt(5.0)
    return bowl + jnp.sin(x[1]) ** 2 * jnp.exp(-5.0 * x[0] ** 2) + 0.25 * jnp.abs(x[1] - 100.0)


class RidgeCoefficient(eqx.Module):
    """θ = log λ of ridge regression on scikit-learn's diabetes, tuned on validation data while the model is trained.

    w ← w − α ∇_w [½ ‖X w − y‖² + ½ e^θ ‖w‖²], L_t = ½ ‖X_v w − y_v‖² / n_v. One endless training run; the best λ is
    that of the converged model, w*(λ) = (XᵀX + λI)⁻¹ Xᵀy, found on a fine grid (``best``, within [−8, 8]).
    Only the moments XᵀX, Xᵀy, ... are kept: a step costs the same however many patients there are.

    split: seed of the division of the patients. train_share: share trained on, in (0, 1). step_size: α > 0.

    >>> problem = RidgeCoefficient(split=2)
    >>> round(float(problem.best), 2)
    2.95
    """

    gram: Float[Array, "d d"]  # XᵀX
    correlation: Float[Array, " d"]  # Xᵀy
    validation_gram: Float[Array, "d d"]  # the same of the validation data, over n_v
    validation_correlation: Float[Array, " d"]
    validation_power: Float[Array, ""]  # ‖y_v‖² / n_v
    step_size: Float[Array, ""]
    best: Float[Array, ""]

    def __init__(self, split: int = 2, train_share: float = 0.8, step_size: float = 1e-3):
        require("RidgeCoefficient", "train_share", "in (0, 1)", train_share, lambda s: 0 < s < 1)
        require("RidgeCoefficient", "step_size", "> 0", step_size, lambda a: a > 0)
        train, validation = _divide(split, train_share)
        self.gram, self.correlation, _ = map(_single, _moments(*train))
        moments = [moment / len(validation[1]) for moment in _moments(*validation)]
        self.validation_gram, self.validation_correlation, self.validation_power = map(_single, moments)
        self.step_size = _single(step_size)
        self.best = _single(_best_coefficient(split, train_share))

    @property
    def horizon(self) -> None:
        """The training run never ends."""
        return None

    def theta0(self, key: PRNGKeyArray) -> Float[Array, ""]:
        """log λ uniform between the paper's extreme starts, −5 and 5."""
        return jax.random.uniform(key, minval=-5.0, maxval=5.0)

    def init(self, key: PRNGKeyArray, theta: Float[Array, ""]) -> Float[Array, " d"]:
        """w = 0."""
        del key, theta
        return jnp.zeros_like(self.correlation)

    def step(
        self, key: PRNGKeyArray, theta: Float[Array, ""], state: Float[Array, " d"]
    ) -> tuple[Float[Array, " d"], Float[Array, ""]]:
        """One step of gradient descent on all training data."""
        del key
        gradient = self.gram @ state - self.correlation + jnp.exp(theta) * state
        w = state - self.step_size * gradient
        loss = 0.5 * w @ self.validation_gram @ w - self.validation_correlation @ w + 0.5 * self.validation_power
        return w, loss


class RidgeFamily(eqx.Module):
    """Ridge regression on many divisions of the same patients, so that a claim is not about one lucky division.

    Divisions 0, 1, 2, ... are taken in order, and those kept whose validation loss has one valley over log λ in
    [−8, 8], its floor strictly between the paper's extreme starts, −5 and 5. Elsewhere the best coefficient is 0 or
    larger than any start, or no descent reaches it from every start.

    size: how many, >= 1. train_share, step_size: as in ``RidgeCoefficient``.

    >>> family = RidgeFamily(size=2)
    >>> bool(abs(family.sample(jax.random.key(0)).best) < 5)
    True
    """

    members: RidgeCoefficient  # every leaf with a leading axis

    def __init__(self, size: int = 24, train_share: float = 0.8, step_size: float = 1e-3):
        require("RidgeFamily", "size", ">= 1", size, lambda n: n >= 1)
        sound = (split for split in itertools.count() if _has_one_valley(split, train_share))
        members = [RidgeCoefficient(split, train_share, step_size) for split in itertools.islice(sound, size)]
        self.members = jax.tree.map(lambda *leaves: jnp.stack(leaves), *members)

    def sample(self, key: PRNGKeyArray) -> RidgeCoefficient:
        """One division, each as likely."""
        index = jnp.floor(jax.random.uniform(key) * len(self.members.best)).astype(jnp.int32)
        return jax.tree.map(lambda leaf: leaf[index], self.members)


def _divide(split: int, train_share: float) -> list[tuple[np.ndarray, np.ndarray]]:
    inputs, targets = diabetes()
    order = np.random.default_rng(split).permutation(len(targets))
    parts = np.split(order, [round(train_share * len(targets))])
    return [(inputs[part], targets[part]) for part in parts]


def _moments(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return x.T @ x, x.T @ y, y @ y


def _single(x: np.ndarray | float) -> Array:
    return jnp.asarray(x, jnp.float32)


@lru_cache(maxsize=256)
def _valley(split: int, train_share: float) -> tuple[np.ndarray, np.ndarray]:
    """The converged model's validation loss on a grid of log λ, in double precision."""
    (x, y), (x_v, y_v) = _divide(split, train_share)
    grid = np.linspace(-8.0, 8.0, 3201)
    eigenvalues, vectors = np.linalg.eigh(x.T @ x)  # (XᵀX + λI)⁻¹ = V diag(1 / (e + λ)) Vᵀ for all λ at once
    weights = vectors @ ((vectors.T @ (x.T @ y))[:, None] / (eigenvalues[:, None] + np.exp(grid)))
    return grid, np.mean((x_v @ weights - y_v[:, None]) ** 2, axis=0)


def _best_coefficient(split: int, train_share: float) -> float:
    grid, losses = _valley(split, train_share)
    return float(grid[np.argmin(losses)])


def _has_one_valley(split: int, train_share: float) -> bool:
    _, losses = _valley(split, train_share)
    turns = np.diff(np.sign(np.diff(losses)))
    return bool(np.count_nonzero(turns) == 1 and abs(_best_coefficient(split, train_share)) < 5)
