"""Recording and changing what a part of an Equinox model hands on, the part named by its path."""

from collections.abc import Callable, Iterator
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array

from laureate._core import require

__all__ = ["Hooked", "insert", "module_paths", "record"]


class Hooked(eqx.Module):
    """A part of a model whose output goes through a function first.

    part: of the model. intervention: ``h -> h``.
    """

    part: Any
    intervention: Callable[[Any], Any]

    def __call__(self, *arguments: Any, **more: Any) -> Any:
        """The part's output, changed."""
        return self.intervention(self.part(*arguments, **more))


def module_paths(model: Any) -> list[str]:
    """The paths of all parts of a model that can be called, as ``layers.0`` or ``encoder.cell``.

    >>> mlp = eqx.nn.MLP(2, 3, 4, 1, key=jax.random.key(0))
    >>> [path for path in module_paths(mlp) if path.startswith("layers")]
    ['layers.0', 'layers.1']
    """
    return [path for path, part in _parts(model) if callable(part)]


def insert(model: Any, where: str, intervention: Callable[[Any], Any]) -> Any:
    """A model like this one in which a part's output goes through ``intervention``.

    where: the part's path, as of `module_paths`.

    >>> import jax.numpy as jnp
    >>> mlp = eqx.nn.MLP(2, 3, 4, 1, key=jax.random.key(0))
    >>> silent = insert(mlp, "layers.0", lambda h: 0 * h)
    >>> bool((silent(jnp.ones(2)) == mlp.layers[-1](jax.nn.relu(jnp.zeros(4)))).all())
    True
    """
    _find(model, where, "insert")
    return eqx.tree_at(
        lambda tree: _find(tree, where, "insert"), model, replace_fn=lambda part: Hooked(part, intervention)
    )


def record(
    forward: Callable[..., Any], model: Any, where: str, inputs: Any, key: Array | None = None
) -> tuple[Array, Any]:
    """What a part hands on for every input, and the model's own outputs.

    forward: ``forward(model, one_input) -> output``, or with a key as third argument where one is given.
    where: the part's path. It must be called once for an input, and in no loop of jax: there its values cannot be had
        from outside; record a part around the loop.
    inputs: with a leading axis of examples. key: for models that draw random numbers. A model that answers otherwise
        with another key is refused: with dropout on, activations are noisy. Use ``eqx.nn.inference_mode``.

    >>> import jax.numpy as jnp
    >>> mlp = eqx.nn.MLP(2, 3, 4, 1, key=jax.random.key(0))
    >>> h, out = record(lambda model, x: model(x), mlp, "layers.0", jnp.ones((5, 2)))
    >>> h.shape, out.shape
    ((5, 4), (5, 3))
    """
    _find(model, where, "record")

    def one(model, example, *keys):
        seen: list[Any] = []

        def keep(h):
            seen.append(h)
            return h

        output = forward(insert(model, where, keep), example, *keys)
        remedy = "Does the forward function call the model that it is given?"
        require("record", "where", f"called once for an input ({where!r})", len(seen), lambda n: n == 1, remedy)
        return seen[0], output

    def every(*keys):
        try:
            return _run(one, model, inputs, keys)
        except jax.errors.UnexpectedTracerError:
            remedy = "Record a part that contains the loop and returns all its states."
            message = f"record.where must be called outside jax's loops; got {where!r}. {remedy}"
            raise ValueError(message) from None

    if key is None:
        return every()
    first, second = jax.random.split(key)
    found, other = every(first), every(second)
    # The outputs as well: noise behind the part is no less noise.
    pairs = zip(jax.tree.leaves(found), jax.tree.leaves(other), strict=True)
    same = all(np.array_equal(np.asarray(one), np.asarray(two), equal_nan=True) for one, two in pairs)
    remedy = "Turn off dropout: eqx.nn.inference_mode(model)."
    require("record", "model", "the same for every key", "another answer", lambda _: same, remedy)
    return found


@eqx.filter_jit
def _run(one: Callable[..., Any], model: Any, inputs: Any, keys: tuple[Array, ...]) -> Any:
    return jax.vmap(lambda example: one(model, example, *keys))(inputs)


def _parts(node: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """All modules, lists and their parts below a node, with their paths."""
    for name, child in _children(node):
        below = f"{path}.{name}" if path else name
        if isinstance(child, eqx.Module):
            yield below, child
        yield from _parts(child, below)


def _children(node: Any) -> list[tuple[str, Any]]:
    if isinstance(node, eqx.Module):
        return [(name, getattr(node, name)) for name in node.__dataclass_fields__ if hasattr(node, name)]
    if isinstance(node, dict):
        return [(str(name), child) for name, child in node.items()]
    if isinstance(node, list | tuple):
        return [(str(index), child) for index, child in enumerate(node)]
    return []


def _find(model: Any, where: str, owner: str) -> Any:
    node = model
    for name in where.split("."):
        children = dict(_children(node))
        if name not in children:
            there = ", ".join(module_paths(model)) or "none"
            raise KeyError(f"{owner}.where must be the path of a part; got {where!r}. There are: {there}.")
        node = children[name]
    if not callable(node):
        there = ", ".join(module_paths(model)) or "none"
        raise KeyError(f"{owner}.where must be the path of a part that is called; got {where!r}. There are: {there}.")
    return node
