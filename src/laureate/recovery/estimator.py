"""ALISTA behind scikit-learn's interface: a transformer like its ``SparseCoder``."""

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from laureate import loops
from laureate._core import require
from laureate.recovery.alista import ALISTA
from laureate.recovery.learning import learn_dictionary
from laureate.recovery.shrinkage import SupportSchedule
from laureate.recovery.training import BernoulliGaussian, fit

__all__ = ["SparseCoder"]


class SparseCoder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Sparse codes of signals by a trained ALISTA, for scikit-learn's pipelines.

    dictionary: [n_components, n_features], an atom a row as in scikit-learn; None: learned from X.
    n_components: how many atoms to learn; twice the features without a number.
    num_layers, density, snr: of the network, and of the codes and noise it is trained for.
    num_steps, learning_rate, batch: of the training by Adam.
    random_state: a number makes it repeatable.

    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> SparseCoder(num_layers=3, num_steps=5, random_state=0).fit_transform(X).shape
    (30, 8)
    """

    def __init__(
        self,
        dictionary: Any = None,
        *,
        n_components: int | None = None,
        num_layers: int = 10,
        density: float = 0.1,
        snr: float = 40.0,
        num_steps: int = 200,
        learning_rate: float = 0.02,
        batch: int = 64,
        random_state: Any = None,
    ):
        self.dictionary = dictionary
        self.n_components = n_components
        self.num_layers = num_layers
        self.density = density
        self.snr = snr
        self.num_steps = num_steps
        self.learning_rate = learning_rate
        self.batch = batch
        self.random_state = random_state

    def fit(
        self,
        X: Any,  # noqa: N803
        y: Any = None,
        progress: Callable[[loops.Progress], None] | None = None,
    ) -> "SparseCoder":
        """Learn a dictionary unless there is one, then train the network for codes whose signals are as large as X.

        progress: called about every second with a ``laureate.loops.Progress`` of the training.
        """
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)  # noqa: N806
        key = jax.random.key(check_random_state(self.random_state).randint(2**31 - 1))
        first, second = jax.random.split(key)
        signals = jnp.asarray(X, jnp.float32)
        if self.dictionary is None:
            require("SparseCoder", "n_components", "None or >= 1", self.n_components, lambda n: n is None or n >= 1)
            atoms = 2 * X.shape[1] if self.n_components is None else self.n_components
            components = np.asarray(_learned(first, signals, atoms)).T
        else:
            components = np.asarray(self.dictionary, np.float32)
            if components.ndim != 2 or components.shape[1] != X.shape[1]:
                raise ValueError(
                    f"SparseCoder.dictionary must be [n_components, {X.shape[1]}], an atom a row; got "
                    f"{components.shape}."
                )
        norms = np.linalg.norm(components, axis=1)
        if (zero := np.flatnonzero(norms == 0)).size:
            raise ValueError(f"SparseCoder.dictionary must have no zero row; row {zero[0]} is zero. Leave it out.")
        unit = jnp.asarray((components / norms[:, None]).T)
        # Codes with unit atoms have ‖Dx‖² = density · M · scale² on average: as much as the signals'.
        power = np.mean(np.sum(np.asarray(X) ** 2, axis=1))
        self.size_ = float(np.sqrt(power / max(1.0, self.density * unit.shape[1]))) or 1.0
        support = SupportSchedule(p=12 * self.density, p_max=min(100.0, 130 * self.density))
        overcomplete = unit.shape[0] < unit.shape[1]
        weight = None if overcomplete else jnp.linalg.pinv(unit).T  # the dual basis, where there is nothing to choose
        solver = ALISTA(unit, weight, self.num_layers, support=support)
        prior = BernoulliGaussian(unit.shape[1], density=self.density)
        trained = _trained if progress is None else partial(_training, progress=progress)
        self.solver_ = trained(
            second, solver, prior, jnp.asarray(self.snr), jnp.asarray(self.learning_rate), self.num_steps, self.batch
        )
        self.components_, self.norms_ = components, norms
        return self

    def transform(self, X: Any) -> np.ndarray:  # noqa: N803
        """The codes [n_samples, n_components] of the signals."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)  # noqa: N806
        codes = _codes(self.solver_, jnp.asarray(X / self.size_, jnp.float32))
        return np.asarray(codes, np.float64) * self.size_ / self.norms_

    def inverse_transform(self, X: Any) -> np.ndarray:  # noqa: N803
        """The signals [n_samples, n_features] of codes."""
        check_is_fitted(self)
        return np.asarray(X) @ self.components_

    @property
    def _n_features_out(self) -> int:
        return self.components_.shape[0]


def _training(key, solver, prior, snr, rate, steps, batch, progress=None):
    more = {"optimiser": optax.adam(rate), "num_steps": steps, "batch": batch, "snr": snr, "progress": progress}
    return fit(key, solver, prior, **more)[0]


_trained = eqx.filter_jit(_training)


@eqx.filter_jit
def _learned(key, signals, atoms):
    return learn_dictionary(key, signals, atoms)


@eqx.filter_jit
def _codes(solver, signals):
    return solver(signals)
