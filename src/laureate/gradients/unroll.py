"""The extension point of the area: the user's own recurrence, and the checks that say what is wrong with it."""

from typing import Any, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.tree_util import keystr

from laureate.gradients.episodes import NO_END

__all__ = ["Unroll", "full_unroll_loss"]


class Unroll(Protocol):
    """A long recurrence driven by parameters θ: s_{t+1} = f(s_t; θ), with a loss L_t at every step.

    Any object with these two methods will do; an ``equinox.Module`` (or other pytree) keeps its arrays sweepable. The
    estimators begin and end the episodes, so an unroll holds no code for that. Both signs of an antithetic pair are
    given the same keys and the same data.

    Where only the last loss matters, return the level L_t at every step and set ``telescope=True``. L_t must then be
    taken on the same validation data during a whole episode: draw it in ``init``, keep it in the state.
    """

    def init(self, key: Array, theta: Any) -> Any:
        """The first state of an episode, any pytree; ``theta`` is the perturbed one, so a learned start is learned."""
        ...

    def step(self, key: Array, theta: Any, state: Any) -> tuple[Any, Array] | tuple[Any, Array, Array]:
        """One inner step: ``(state, loss)`` or ``(state, loss, done)``; given batches, it takes a fourth argument.

        loss: a floating scalar. done: a boolean scalar: this step was its episode's last, and its loss still counts.
        """
        ...


class Opaque(eqx.Module):
    """A plain Python object as an unroll: compiled in, compared by identity."""

    target: Any = eqx.field(static=True)

    def init(self, key: Array, theta: Any) -> Any:
        """Pass on."""
        return self.target.init(key, theta)

    def step(self, key: Array, theta: Any, state: Any, *batch: Any) -> Any:
        """Pass on."""
        return self.target.step(key, theta, state, *batch)


def adopt(unroll: Any) -> Any:
    """A pytree stays as it is, with its arrays as leaves; any other object becomes static."""
    for name in ("init", "step"):
        if not callable(getattr(unroll, name, None)):
            raise TypeError(
                f"unroll must have a method {name!r}; got {type(unroll).__name__}. "
                "Give an object with init(key, theta) and step(key, theta, state)."
            )
    return Opaque(unroll) if jax.tree_util.all_leaves([unroll]) else unroll


def as_theta(owner: str, theta: Any) -> Any:
    """Theta as strongly typed arrays; a leaf that is not floating raises by its path."""

    def leaf(path, value):
        numeric = eqx.is_array_like(value)
        if not numeric or not jnp.issubdtype(jnp.result_type(value), jnp.floating):
            kind = f"has dtype {jnp.result_type(value)}" if numeric else f"is a {type(value).__name__}"
            raise TypeError(
                f"theta leaf {name_of(path)!r} {kind}; {owner} perturbs or differentiates float leaves only: "
                "mark it static (equinox.partition) or keep it in the unroll."
            )
        return strong(value)

    theta = jax.tree_util.tree_map_with_path(leaf, theta)
    if not jax.tree.leaves(theta):
        raise TypeError(f"theta must have at least one float leaf; {owner} got {theta!r}.")
    return theta


def strong(value: Any) -> Any:
    """An array without JAX's weak type, so that a carried state keeps its type."""
    if isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.extended):
        return value  # a key has no weak type
    return jax.lax.convert_element_type(value, jnp.result_type(value)) if eqx.is_array_like(value) else value


def name_of(path: Any) -> str:
    """A leaf's place in words: ``layers/0/weight``."""
    return keystr(path, simple=True, separator="/")


def loss_dtype(theta: Any) -> Any:
    """In which type losses are added up: that of theta, float32 at least."""
    return jnp.promote_types(jnp.result_type(*jax.tree.leaves(theta)), jnp.float32)


def begin(unroll: Any, key: Array, theta: Any) -> Any:
    """The first state of an episode, strongly typed."""
    return jax.tree.map(strong, unroll.init(key, theta))


def placeholder(unroll: Any, key: Array, theta: Any) -> Any:
    """A state that no episode goes on from; the unroll's own ``init`` makes it fit whatever a user may hold in one.

    Its key is one that nobody draws from: an estimator folds numbers of pairs and episodes into the same ``key``.
    """
    return begin(unroll, jax.random.fold_in(key, NO_END), theta)


def advance(unroll: Any, key: Array, theta: Any, state: Any, batch: Any) -> tuple[Any, Array, Array]:
    """One inner step as ``(state, loss, done)``, whichever of the two forms the user wrote."""
    out = unroll.step(key, theta, state) if batch is None else unroll.step(key, theta, state, batch)
    state, loss, *done = out
    done = jnp.asarray(done[0]) if done else jnp.asarray(False)
    return jax.tree.map(strong, state), jnp.asarray(loss).astype(loss_dtype(theta)), done


def check_unroll(unroll: Any, theta: Any, batch: Any) -> bool:
    """Whether the unroll says ``done``; raises where its step does not fit its init, naming the differing paths.

    ``batch`` is one step's, or None. Only shapes are looked at; nothing is computed.
    """
    key = jax.random.key(0)
    state = jax.eval_shape(unroll.init, key, theta)
    data = () if batch is None else (batch,)
    out = jax.eval_shape(unroll.step, key, theta, state, *data)
    if not isinstance(out, tuple) or len(out) not in (2, 3):
        raise TypeError(f"unroll.step must return (state, loss) or (state, loss, done); got {type(out).__name__}.")
    if problems := differences(state, out[0]):
        raise TypeError("unroll.step must return a state like the one it was given; " + "; ".join(problems) + ".")
    for name, value, kind in zip(("loss", "done"), out[1:], (jnp.floating, jnp.bool_), strict=False):
        if getattr(value, "shape", None) != () or not jnp.issubdtype(value.dtype, kind):
            got = f"{value.dtype}{list(value.shape)}" if hasattr(value, "shape") else type(value).__name__
            raise TypeError(f"unroll.step must return {name} as a scalar of type {kind.__name__}; got {got}.")
    return len(out) == 3


def differences(before: Any, after: Any) -> list[str]:
    """In words, where two trees of arrays or shapes differ."""
    if jax.tree.structure(before) != jax.tree.structure(after):
        return [f"its structure was {jax.tree.structure(before)} and became {jax.tree.structure(after)}"]
    pairs = zip(jax.tree_util.tree_leaves_with_path(before), jax.tree.leaves(after), strict=True)
    return [
        f"leaf {name_of(path)!r} was {old.dtype}{list(old.shape)} and became {new.dtype}{list(new.shape)}"
        for (path, old), new in pairs
        if (old.shape, old.dtype) != (new.shape, new.dtype)
    ]


def check_batches(owner: str, batches: Any, leading: tuple[int, ...], meaning: str) -> Any:
    """One step's batch as shapes (None without batches); raises unless every leaf leads with ``leading``."""
    if batches is None:
        return None
    for path, leaf in jax.tree_util.tree_leaves_with_path(batches):
        if jnp.shape(leaf)[: len(leading)] != leading:
            raise ValueError(
                f"{owner}.step: batches must lead with {list(leading)} ({meaning}); "
                f"got leaf {name_of(path)!r} of shape {list(jnp.shape(leaf))}."
            )
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[len(leading) :], leaf.dtype), batches)


def full_unroll_loss(
    key: Array, unroll: Any, theta: Any, horizon: int, batches: Any = None, telescope: bool = False
) -> Array:
    """The loss of one whole unperturbed episode, Σ_t L_t for t ≤ T: all estimators estimate its gradient.

    Differentiable, so that ``jax.grad`` of it is the exact gradient wherever that is affordable.

    key, unroll, theta: as for the estimators.
    horizon: T, in inner steps; steps after the unroll's ``done`` count nothing.
    batches: None, or data with a leading axis of T.
    telescope: the last loss alone, L_T.

    >>> import jax, jax.numpy as jnp
    >>> class Sum:
    ...     def init(self, key, theta):
    ...         return jnp.zeros(())
    ...     def step(self, key, theta, state):
    ...         return state + theta, state + theta
    >>> float(full_unroll_loss(jax.random.key(0), Sum(), 2.0, horizon=3))  # 2 + 4 + 6
    12.0
    """
    theta = as_theta("full_unroll_loss", theta)
    init_key, step_key = jax.random.split(key)

    def body(carry, x):
        state, over, total = carry
        t, batch = x
        state, loss, done = advance(unroll, jax.random.fold_in(step_key, t), theta, state, batch)
        return (state, over | done, jnp.where(over, total, loss if telescope else total + loss)), None

    carry = (begin(unroll, init_key, theta), jnp.asarray(False), jnp.zeros((), loss_dtype(theta)))
    (_, _, total), _ = jax.lax.scan(body, carry, (jnp.arange(horizon), batches), length=horizon)
    return total
