"""What every track shares: entrants made from their code, programs compiled apart from being timed, the points kept."""

import ast
import pkgutil
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from laureate.lab.claim import Settings
from laureate.lab.running.worker import compiler_options

__all__ = ["Clock", "made", "spend", "traced", "view"]

LIBRARIES = ("jax", "jnp", "optax")
BUILTINS = {"max", "min"}


class View:
    """A dictionary by attributes: a tree, whose arrays are given to programs and whose functions are compiled in."""

    def __init__(self, offered: Mapping[str, Any]):
        vars(self).update(offered)


jax.tree_util.register_pytree_node(
    View,
    lambda one: (list(vars(one).values()), tuple(vars(one))),
    lambda names, values: View(dict(zip(names, values, strict=True))),
)


def view(problem: Any) -> Any:
    """A problem by attributes, also where it was given as a dictionary."""
    return View(problem) if isinstance(problem, Mapping) else problem


def traced(arm: Settings) -> dict[str, Any]:
    """An arm's settings with the floats that are swept as arrays: another value then compiles nothing."""
    swept = arm["swept"].split(",")
    return {
        name: jnp.asarray(value) if isinstance(value, float) and name in swept else value for name, value in arm.items()
    }


def made(arm: Mapping[str, Any], **given: Any) -> Any:
    """What an entrant's code makes of the settings, the problem and the names of its area.

    The names are looked up as the code is read, and are not imported above: the race adds them to a cell's fingerprint
    one by one, so that a sibling's change leaves it as it was.
    """
    scope = {name: value for name, value in arm.items() if name not in ("code", "area", "swept")} | given
    tree = ast.parse(arm["code"])
    bound = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)} | BUILTINS
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id not in scope and node.id not in bound:
            module = {"jnp": "jax.numpy"}.get(node.id, node.id)
            where = module if node.id in LIBRARIES else f"laureate.{arm['area']}:{node.id}"
            scope[node.id] = pkgutil.resolve_name(where)
    return eval(arm["code"], scope)  # our own declarations, never a user's text


class _Itself:
    """What cannot be hashed, such as an object of a dataclass, told from others by being itself, and kept."""

    def __init__(self, one: Any):
        self.one = one

    def __hash__(self) -> int:
        return id(self.one)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and other.one is self.one


def _named(leaf: Any) -> Any:
    """By what a program is known that has this compiled in: 1 and 1.0 make two programs."""
    try:
        hash(leaf)
    except TypeError:
        return _Itself(leaf)
    return type(leaf), leaf


_programs: dict[Any, tuple[Callable, list[Any]]] = {}


class Clock:
    """Runs programs within a budget and keeps what came of it, compile time apart.

    scale: ``cost``, the budget; ``points``, at how many costs the quality is noted, each twice the one before;
        ``seconds``, after which no further point is begun; ``pilot``, above 0: only as many points, from small to
        large, as take so many seconds in all.
    """

    def __init__(self, scale: Settings):
        self.budget, self.points = int(scale.cost), int(scale.points)
        self.limit, self.pilot = float(scale.seconds), float(scale.get("pilot", 0.0))
        self.seconds = self.compiling = 0.0
        self.rows: list[dict[str, float]] = []

    def targets(self) -> Iterator[int]:
        """The costs to go to, one after the other, for as long as there is time."""
        if self.pilot:
            target = max(1, int(self.budget))
            for _ in range(24):
                yield target
                if self.seconds >= self.pilot:
                    return
                target *= 2
            return
        for k in reversed(range(self.points)):
            yield max(1, self.budget >> k)
            if self.seconds > self.limit:
                return

    def run(self, function: Callable, *arguments: Any, free: bool = False) -> Any:
        """What the function returns, compiled; its seconds are counted apart from compiling, neither if ``free``."""
        arguments = jax.tree.map(lambda x: jnp.asarray(x) if isinstance(x, np.ndarray) else x, arguments)
        dynamic, static = eqx.partition(arguments, eqx.is_array)
        leaves, tree = jax.tree.flatten(static)
        shapes = tuple((x.shape, str(x.dtype)) for x in jax.tree.leaves(dynamic))
        key = (function, tree, tuple(map(_named, leaves)), jax.tree.structure(dynamic), shapes)
        if key not in _programs:
            began = time.perf_counter()
            rest: list[Any] = []

            def whole(dynamic):
                found, others = eqx.partition(function(*eqx.combine(dynamic, static)), eqx.is_array)
                rest[:] = [others]
                return found

            options = compiler_options("light")
            _programs[key] = jax.jit(whole).lower(dynamic).compile(compiler_options=options), rest
            # Whoever comes first compiles what measures everybody: that is not his.
            self.compiling += 0.0 if free else time.perf_counter() - began
        program, rest = _programs[key]
        wall, cpu = time.perf_counter(), time.process_time()
        found = jax.block_until_ready(program(dynamic))
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        if not free:
            # Other work on the machine lengthens the one, more threads than one the other; an accelerator has no CPU.
            self.seconds += min(wall, cpu) if jax.default_backend() == "cpu" else wall
        return eqx.combine(found, rest[0])

    def timed(self, function: Callable, *arguments: Any) -> Any:
        """As ``run``, for what is no program: plain Python, and what compiles by itself."""
        before = time.process_time()
        found = function(*arguments)
        self.seconds += time.process_time() - before
        return found

    def note(self, cost: Any, **metrics: Any) -> None:
        """A point of the curve."""
        row = {name: float(value) for name, value in metrics.items()}
        self.rows.append(row | {"cost": float(cost), "seconds": self.seconds})

    def record(self) -> dict[str, np.ndarray]:
        """What the trial returns: a number a point, NaN beyond where it came; of a pilot the last point alone."""
        rows = self.rows[-1:] if self.pilot else self.rows
        length = 1 if self.pilot else self.points
        found = {
            name: np.array([row[name] for row in rows] + [np.nan] * (length - len(rows)), np.float64)
            for name in self.rows[0]
        }
        return found | {"compile_seconds": np.asarray(self.compiling)}


def spend(step: Callable, state: Any, count: Any, cost: Any, target: Any) -> tuple[Any, Any, Any]:
    """Steps until the next would cost more than is left: ``step(state, index) -> (state, cost of it)``.

    The first is always made, for what it costs is not known before, also where a warm-up has cost more already; each
    later one is taken to cost what the last did.
    Costs are integers, so that no sum stands still. Returns the state, the steps and the cost so far.
    """

    def going(carry):
        _, count, cost, last = carry
        return (count == 0) | (cost + last <= target)

    def body(carry):
        state, count, cost, _ = carry
        state, spent = step(state, count)
        spent = jnp.maximum(jnp.asarray(spent).astype(jnp.int32), 1)
        return state, count + 1, cost + spent, spent

    last = jnp.where(count > 0, cost // jnp.maximum(count, 1), 0).astype(jnp.int32)
    state, count, cost, _ = jax.lax.while_loop(going, body, (state, count, cost, last))
    return state, count, cost
