"""What a step costs: operations and kept activations, counted in the program that JAX would run.

Counted are matrix products and convolutions, two operations for each multiplication with its addition, and one for each
entry of an element-wise sum, difference, product or quotient. What nothing depends on is left out, as a compiler does.
The optimiser's own work is not counted: it is the same for every entry that learns.
"""

# pyright: reportAttributeAccessIssue=false
# (JAX does not tell that the values of a program have shapes.)
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from laureate.training.blocks import advance, trainable
from laureate.training.localized import Boundary, LocalizedTraining
from laureate.training.rules import Frozen

__all__ = ["CostRow", "StepCost", "cost_table", "count_operations", "step_cost"]

ELEMENTWISE = {"add", "sub", "mul", "div", "add_any"}


class StepCost(NamedTuple):
    """Operations of a step's parts, and bytes of activations that wait for the backward pass.

    forward: of all blocks and the loss. local: of the rule, beyond the forward pass. backward: of backpropagation, from
    the loss down to the boundary. kept: bytes that the forward pass leaves for it.
    """

    forward: float
    local: float
    backward: float
    kept: int

    @property
    def total(self) -> float:
        """All operations of the step."""
        return self.forward + self.local + self.backward


class CostRow(NamedTuple):
    """A boundary, as shares of full backpropagation.

    boundary: blocks that are local. localized: operations with the trainer's rule. frozen: with the blocks below the
    boundary left as they are. kept: bytes of activations, which is the same for both.
    """

    boundary: int
    localized: float
    frozen: float
    kept: float


def step_cost(
    trainer: LocalizedTraining, blocks: Any, inputs: Any, targets: Any, boundary: int, *, elementwise: bool = True
) -> StepCost:
    """The cost of one step at a boundary.

    inputs, targets: a batch, or its shapes (``jax.ShapeDtypeStruct``). Nothing is computed.
    elementwise: False to count products and convolutions alone.

    >>> import optax
    >>> from laureate.training import Dense, Fixed, Frozen
    >>> trainer = LocalizedTraining(Fixed(), Frozen(), optax.sgd(0.1))
    >>> blocks = [Dense(jnp.ones((8, 8))) for _ in range(4)]
    >>> full, half = (step_cost(trainer, blocks, jnp.ones((64, 8)), jnp.zeros(64, int), t) for t in (0, 2))
    >>> half.total < full.total, half.kept < full.kept
    (True, True)
    """
    blocks, key, step = tuple(blocks), jax.random.key(0), jnp.asarray(0)
    trainer._within(boundary, len(blocks))
    rest: Any
    params, rest = trainer._learning(blocks, Boundary(boundary))

    def forward(blocks: Any, inputs: Array, training: bool = True) -> Array:
        for block in blocks:
            inputs, _ = advance(block, inputs, training)
        return inputs

    def unruled(blocks: Any, inputs: Array) -> Array:
        return forward(blocks, inputs, trainer.batch_statistics != "freeze")

    def local(blocks: Any, inputs: Array) -> Any:
        hidden, after, directions = trainer.local_pass(key, step, blocks, inputs)
        statistics = [eqx.filter(trainable(block)[1], eqx.is_array) for block in after]
        return hidden, statistics, directions

    def objective(params: Any, hidden: Array, targets: Array) -> Array:
        return trainer.loss(forward(eqx.combine(params, rest)[boundary:], hidden), targets)

    below = blocks[:boundary]
    hidden = eqx.filter_eval_shape(unruled, below, inputs)
    count = partial(count_operations, elementwise=elementwise)
    before, ruled = count(unruled, below, inputs), count(local, below, inputs)
    after, both = (count(f, params, hidden, targets) for f in (objective, jax.value_and_grad(objective)))
    return StepCost(before + after, ruled - before, both - after, _kept(objective, params, hidden, targets))


def cost_table(trainer: LocalizedTraining, blocks: Any, inputs: Any, targets: Any) -> tuple[CostRow, ...]:
    """Every boundary beside full backpropagation and beside freezing.

    trainer: whose rule is compared. blocks: the network. inputs, targets: a batch, for its shapes.
    """
    blocks = tuple(blocks)
    frozen = eqx.tree_at(lambda t: t.rule, trainer, Frozen())
    full = step_cost(frozen, blocks, inputs, targets, 0)
    rows = []
    for boundary in range(len(blocks)):
        here, still = (step_cost(one, blocks, inputs, targets, boundary) for one in (trainer, frozen))
        rows.append(CostRow(boundary, here.total / full.total, still.total / full.total, here.kept / full.kept))
    return tuple(rows)


def count_operations(function: Callable, *arguments: Any, elementwise: bool = True) -> float:
    """Operations of a function of pytrees of arrays or shapes, as described at the top.

    >>> count_operations(lambda a, b: a @ b + 1, jnp.ones((2, 3)), jnp.ones((3, 4)))
    56.0
    """
    return _operations(_traced(function, *arguments).jaxpr, elementwise)


def _traced(function: Callable, *arguments: Any) -> ClosedJaxpr:
    is_shape = lambda leaf: eqx.is_array(leaf) or isinstance(leaf, jax.ShapeDtypeStruct)  # noqa: E731
    arrays, rest = eqx.partition(arguments, is_shape)
    flat, form = jax.tree.flatten(arrays)

    def call(*flat: Any) -> Any:
        return eqx.filter(function(*eqx.combine(form.unflatten(flat), rest)), eqx.is_array)

    return jax.make_jaxpr(call)(*flat)


def _operations(jaxpr: Jaxpr, elementwise: bool) -> float:
    total, needed = 0.0, {var for var in jaxpr.outvars if not isinstance(var, Literal)}
    for equation in reversed(jaxpr.eqns):
        if not needed & set(equation.outvars):
            continue  # nothing depends on it
        needed |= {var for var in equation.invars if not isinstance(var, Literal)}
        name, parameters = equation.primitive.name, equation.params
        size = math.prod(equation.outvars[0].aval.shape)
        if name == "dot_general":
            (contracted, _), _ = parameters["dimension_numbers"]
            total += 2 * size * math.prod(equation.invars[0].aval.shape[axis] for axis in contracted)
        elif name == "conv_general_dilated":
            kernel = equation.invars[1].aval.shape
            total += 2 * size * math.prod(kernel) / kernel[parameters["dimension_numbers"].rhs_spec[0]]
        elif name in ELEMENTWISE:
            total += size * elementwise
        else:
            inner = [_operations(found, elementwise) for found in _inner(parameters)]
            total += parameters.get("length", 1) * (max(inner, default=0) if name == "cond" else sum(inner))
    return total


def _inner(parameters: dict[str, Any]) -> Iterator[Jaxpr]:
    for value in parameters.values():
        for one in value if isinstance(value, tuple | list) else (value,):
            if isinstance(one, ClosedJaxpr):
                yield one.jaxpr
            elif isinstance(one, Jaxpr):
                yield one


def _kept(objective: Callable, params: Any, hidden: Any, targets: Any) -> int:
    """Bytes that wait for the backward pass: what it is handed beside parameters and constants."""
    traced = _traced(lambda p, *more: jax.vjp(lambda q: objective(q, *more), p)[1], params, hidden, targets).jaxpr
    parameters = len(jax.tree.leaves(params))
    of_data = set(traced.invars[parameters:])
    for equation in traced.eqns:
        if of_data & {var for var in equation.invars if not isinstance(var, Literal)}:
            of_data |= set(equation.outvars)
    kept = {var for var in traced.outvars if not isinstance(var, Literal)} & of_data
    return sum(math.prod(var.aval.shape) * var.aval.dtype.itemsize for var in kept)
