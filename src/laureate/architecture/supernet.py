"""What a supernet is asked for, how its candidates are scored in one compiled call, and whether it keeps the rules."""

import warnings
from collections.abc import Callable
from typing import Any, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from laureate._core import require
from laureate.architecture.space import Space
from laureate.architecture.weights import effective_weights

__all__ = ["ResolutionWarning", "Supernet", "SupernetScore", "check_supernet", "cross_entropy", "score_weights"]

SMALLEST_STEP = 0.005  # of an accuracy: half a point


class Supernet(Protocol):
    """A user's own object; nothing is inherited.

    ops: the names of each edge's operations, as in `Space`. ``nodes``, ``cells`` and ``keep`` may be there, too.
    """

    ops: tuple[tuple[str, ...], ...]

    def apply(
        self, params: Any, state: Any, weights: Float[Array, "edges ops"], x: Any, *, key: Array | None, train: bool
    ) -> tuple[Any, Any]:
        """(output, new state) of a batch x: every edge e gives Σ_o weights[e, o] o(x).

        weights: as they are: no logits, not to be normalised. Rows of decided edges are one-hot.
        state: running statistics and the like; None where there are none. train: with the batch's own statistics.
        key: for operations that draw random numbers; each must split or fold it, for itself.
        """
        ...


class ResolutionWarning(UserWarning):
    """The validation set is too small for the differences in accuracy that are looked for."""


def cross_entropy(output: Float[Array, "batch classes"], labels: Array) -> tuple[Array, Array]:
    """(loss, accuracy) of every example, for logits and the numbers of classes."""
    logits = jax.nn.log_softmax(output)
    loss = -jnp.take_along_axis(logits, labels[:, None], axis=1)[:, 0]
    return loss, (jnp.argmax(output, axis=1) == labels).astype(output.dtype)


@eqx.filter_jit
def score_weights(
    supernet: Any,
    params: Any,
    state: Any,
    weights: Float[Array, "k edges ops"],
    data: tuple[Any, Any],
    *,
    key: Key[Array, ""] | None = None,
    measure: Callable[[Any, Any], tuple[Array, Array]] = cross_entropy,
    train: bool = True,
) -> tuple[Float[Array, "k examples"], Float[Array, "k examples"]]:
    """(loss, accuracy) of every example for each of several arrays of weights: one compiled call.

    It is vmapped over the weights of operations and never over parameters, so that convolutions keep their form. With
    ``train`` the batch's own statistics normalise, since running ones are wrong for a supernet that lacks an
    operation; what new statistics come out of it is dropped.

    data: (inputs, targets) to score on, as one batch. key: one for each array of weights is made of it.
    measure: ``measure(output, targets) -> (loss, accuracy)``, one row an example.
    """
    inputs, targets = data

    def one(weights: Array, number: Array) -> tuple[Array, Array]:
        own = None if key is None else jax.random.fold_in(key, number)
        output, _ = supernet.apply(params, state, weights, inputs, key=own, train=train)
        return measure(output, targets)

    return jax.vmap(one)(weights, jnp.arange(len(weights)))


class SupernetScore:
    """A ``score_fn`` for ``select``, of a supernet in JAX: all operations of an edge in one compiled call.

    supernet: a `Supernet`. params, state: of it; both may be set anew after tuning.
    data: (inputs, targets) to score on.
    criterion: "accuracy" or "loss", as in `PerturbationSelection`; "both" for ``ties="loss"``, with accuracy first.
    key: for operations that draw random numbers: every candidate has a key of its own, the same at every call.
    train: with statistics of the batch (True) or the running ones.
    batch_size: examples that are scored, and normalised, together; None: all at once, which takes memory for all
        candidates. A last batch that is smaller is a program of its own.

    >>> class Net:
    ...     ops = (("none", "double"),)
    ...     def apply(self, params, state, weights, x, *, key, train):
    ...         return x * (2 * weights[0, 1]), state
    >>> score = SupernetScore(Net(), None, None, (jnp.eye(3), jnp.arange(3)), criterion="loss")
    >>> bool(score(np.array([[0.0, 1.0]])) < score(np.array([[0.0, 0.0]])))
    True
    """

    def __init__(
        self,
        supernet: Any,
        params: Any,
        state: Any,
        data: tuple[Any, Any],
        *,
        criterion: str = "accuracy",
        key: Key[Array, ""] | None = None,
        measure: Callable[[Any, Any], tuple[Array, Array]] = cross_entropy,
        train: bool = True,
        batch_size: int | None = None,
    ):
        rule = "'accuracy', 'loss' or 'both'"
        require("SupernetScore", "criterion", rule, criterion, lambda c: c in ("accuracy", "loss", "both"))
        count = len(jax.tree.leaves(data[1])[0])
        require("SupernetScore", "data", "at least one example", count, lambda n: n > 0)
        require("SupernetScore", "batch_size", "None or >= 1", batch_size, lambda n: n is None or n >= 1)
        if criterion == "accuracy" and count < 1 / SMALLEST_STEP:
            warnings.warn(
                f"SupernetScore.data: accuracy on {count} examples moves in steps of 1/{count} = {100 / count:.2g} "
                "points, which leaves many operations equal. Score more examples, or by the loss.",
                ResolutionWarning,
                stacklevel=2,
            )
        self.supernet, self.params, self.state, self.data = supernet, params, state, data
        self.criterion, self.key, self.measure, self.train = criterion, key, measure, train
        self.batch_size = count if batch_size is None else batch_size

    def examples(self, weights: Float[Array, "k edges ops"] | np.ndarray) -> tuple[Array, Array]:
        """(loss, accuracy) of every example, ``[k, examples]`` each: what ``choice_noise`` is given."""
        weights, found = jnp.asarray(weights), []
        for start in range(0, len(jax.tree.leaves(self.data[1])[0]), self.batch_size):
            batch = jax.tree.map(lambda rows, at=start: rows[at : at + self.batch_size], self.data)
            key = None if self.key is None else jax.random.fold_in(self.key, start)
            more = {"key": key, "measure": self.measure, "train": self.train}
            found.append(score_weights(self.supernet, self.params, self.state, weights, batch, **more))
        loss, accuracy = (jnp.concatenate(values, axis=1) for values in zip(*found, strict=True))
        return loss, accuracy

    def many(self, weights: Float[Array, "k edges ops"] | np.ndarray) -> Any:
        """The score of each of several arrays of weights."""
        wide = lambda values: values.astype(jnp.promote_types(values.dtype, jnp.float32))  # noqa: E731
        loss, accuracy = (np.asarray(jnp.mean(wide(values), axis=1)) for values in self.examples(weights))
        return (accuracy, loss) if self.criterion == "both" else accuracy if self.criterion == "accuracy" else loss

    def __call__(self, weights: Float[Array, "edges ops"]) -> Any:
        """The score of one array of weights."""
        found = self.many(jnp.asarray(weights)[None])
        return (float(found[0][0]), float(found[1][0])) if self.criterion == "both" else float(found[0])


def check_supernet(
    key: Key[Array, ""], supernet: Any, params: Any, state: Any, x: Any, *, key_reuse: bool = False
) -> None:
    """Raise where a supernet breaks what selection relies on; a few calls of ``apply``, nothing is compiled for later.

    Checked: it takes weights of its space and gives finite numbers; it uses weights as they are (rows multiplied by 2
    change something).

    key_reuse: also that no key is used for two draws, as operations that add noise may do.

    >>> class Net:
    ...     ops = (("none", "double"),)
    ...     def apply(self, params, state, weights, x, *, key, train):
    ...         return 2 * x * (weights / weights.sum(1, keepdims=True))[0, 1], state
    >>> check_supernet(jax.random.key(0), Net(), None, None, jnp.ones((2, 2)))
    Traceback (most recent call last):
    ValueError: Supernet.apply must use the weights as they are; got the same output with every row multiplied by 2...
    """
    space = Space.of(supernet)

    def output(weights: Array, key: Array = key) -> np.ndarray:
        found, _ = supernet.apply(params, state, weights, x, key=key, train=True)
        return np.asarray(found)

    uniform = effective_weights(space, jnp.zeros(space.shape))
    whole = output(uniform)
    require("Supernet", "apply", "finite for equal weights", whole, lambda y: bool(np.isfinite(y).all()))
    scaled = [output(uniform.at[edge].multiply(2.0)) for edge in range(space.num_edges)]
    tolerance = 4 * float(jnp.finfo(whole.dtype).eps) * np.abs(whole).max()
    if all(np.abs(other - whole).max() <= tolerance for other in scaled):
        raise ValueError(
            "Supernet.apply must use the weights as they are; got the same output with every row multiplied by 2. "
            "Take the normalisation out: an operation that is removed would only strengthen the others."
        )
    if key_reuse:
        try:
            with jax.debug_key_reuse(True):
                output(uniform, jax.random.clone(key))
        except jax.errors.KeyReuseError as error:
            raise ValueError(
                f"Supernet.apply must use every key once; got {str(error).splitlines()[0]} "
                "Fold the number of the edge and of the operation into the key."
            ) from error
