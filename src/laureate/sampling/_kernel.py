"""What all discrete samplers share: the target, its checks, and the Metropolis-Hastings decision."""

import abc
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int, Key

from laureate._core import Status, require
from laureate.sampling._layout import Layout

__all__ = [
    "TEMPERABLE",
    "TEMPERABLE_REMEDY",
    "DiscreteKernel",
    "InformedState",
    "KernelInfo",
    "check_energy",
    "check_start",
    "decide",
    "draw_uniforms",
    "is_temperable",
    "warn_if_flat",
]

Tree = Any


class KernelInfo(NamedTuple):
    """What a step reports.

    acceptance_rate: the probability with which the proposal was accepted.
    is_accepted: whether it was.
    log_ratio: log of π(x')q(x|x') / (π(x)q(x'|x)).
    proposal: the proposed position.
    cost: evaluations of the log density, with or without its gradient, that the step made.
    status: ``Status.DIVERGED`` where the log ratio was NaN (such a proposal is rejected) or, where one draws from a
        conditional, a log density (such a configuration is never entered), else ``Status.OK``.
    """

    acceptance_rate: Float[Array, ""]
    is_accepted: Bool[Array, ""]
    log_ratio: Float[Array, ""]
    proposal: Tree
    cost: Int[Array, ""]
    status: Int[Array, ""]


class InformedState(NamedTuple):
    """What an informed sampler carries: the next step needs no evaluation at its own position.

    position: the codes.
    logdensity: f(x), not tempered.
    differences: d̃(x), one number a move: the gradient's (or the exact) f(x') - f(x); -inf for unavailable moves.
    """

    position: Tree
    logdensity: Float[Array, ""]
    differences: Float[Array, "moves"]


class Function(eqx.Module):
    """A plain function as a pytree without leaves, so that a kernel holds nothing but numbers."""

    function: Callable = eqx.field(static=True)

    def __call__(self, *arguments: Any) -> Any:
        """Call it."""
        return self.function(*arguments)


def _as_pytree(function: Any) -> Any:
    # An energy that is a Module (or a bound method of one) keeps its parameters as leaves: new ones compile nothing.
    return function if isinstance(function, eqx.Module | jax.tree_util.Partial) else Function(function)


class DiscreteKernel(eqx.Module):
    """The target of a sampler: unnormalised log density, domain, temperature, and what is held fixed."""

    logdensity_fn: Callable[[Tree], Float[Array, ""]] = eqx.field(converter=_as_pytree)
    domain: Tree
    inverse_temperature: float | Float[Array, ""] = eqx.field(default=1.0, kw_only=True)
    site_mask: Tree = eqx.field(default=None, kw_only=True)
    category_mask: Tree = eqx.field(default=None, kw_only=True)

    def __check_init__(self):
        owner = type(self).__name__
        require(owner, "inverse_temperature", ">= 0", self.inverse_temperature, lambda b: np.all(np.asarray(b) >= 0))

    @abc.abstractmethod
    def init(self, position: Tree, key: Key[Array, ""] | None = None) -> Any:
        """Check ``position`` and evaluate it. ``key`` is ignored; BlackJAX's drivers pass one."""

    @abc.abstractmethod
    def step(self, key: Key[Array, ""], state: Any) -> tuple[Any, KernelInfo]:
        """One transition."""

    def layout(self, position: Tree) -> Layout:
        """The numbering of sites and moves of such a position."""
        return Layout(self.domain, position)

    def evaluate(self, position: Tree) -> Float[Array, ""]:
        """The log density f(x) of a position of codes, not tempered."""
        return self.logdensity_fn(self.layout(position).relax(position))

    def begin(self, position: Tree) -> tuple[Layout, Tree]:
        """Check position, masks and log density, and return the layout and the position as arrays."""
        layout = self.layout(position)
        layout.check(position, self.category_mask)
        layout.check_masks(type(self).__name__, self.site_mask, self.category_mask)
        position = jax.tree.map(jnp.asarray, position)
        check_energy(self.logdensity_fn, layout, position)
        return layout, position

    def scattered(self, layout: Layout, position: Tree) -> Tree:
        """Another position that the masks allow, always the same one."""
        return layout.scattered(position, self.site_mask, self.category_mask)

    def gradient_differences(self, layout: Layout, position: Tree) -> tuple[Float[Array, ""], Float[Array, "moves"]]:
        """f(x) and d̃(x) from one value-and-gradient, the moves that the masks forbid at -inf."""
        logdensity, gradient = jax.value_and_grad(self.logdensity_fn)(layout.relax(position))
        return logdensity, self.restrict(layout, layout.differences(position, gradient))

    def restrict(self, layout: Layout, differences: Float[Array, "moves"]) -> Float[Array, "moves"]:
        """``differences`` with the moves that the masks forbid at -inf."""
        available = layout.available(self.site_mask, self.category_mask)
        return differences if available is None else jnp.where(available, differences, -jnp.inf)


TEMPERABLE = "a DiscreteKernel, whose state holds no more than f and its differences, untempered"
TEMPERABLE_REMEDY = "IncrementalGibbsWithGradients keeps tempered weights in its state: take LocallyInformed instead."


def is_temperable(kernel: Any) -> bool:
    """Whether another temperature or log density may take over the kernel's states."""
    return isinstance(kernel, DiscreteKernel)


def check_start(
    logdensity: Float[Array, ""], differences: Array | None = None, elsewhere: Callable[[], Array] | None = None
) -> None:
    """Raise where a start has zero probability; warn where the gradient says nothing, neither here nor ``elsewhere``.

    elsewhere: gives the differences at another position. The gradient of a quadratic is zero at zeros, and rightly so.
    """
    if isinstance(logdensity, Tracer):
        return
    if not bool(jnp.isfinite(logdensity)):
        raise ValueError(f"initial state has zero probability: its log density is {float(logdensity)}.")
    if differences is not None:
        warn_if_flat(differences, elsewhere)


def warn_if_flat(differences: Array | np.ndarray, elsewhere: Callable[[], Array] | None) -> None:
    """Warn where no move promises anything, neither here nor ``elsewhere``."""

    def flat(found: Any) -> bool:
        return not np.any((np.asarray(found) != 0) & (np.asarray(found) > -np.inf))

    if flat(differences) and (elsewhere is None or flat(elsewhere())):
        warnings.warn("gradient is zero: proposal is uniform; is the energy differentiable in its input?", stacklevel=4)


def check_energy(logdensity_fn: Callable, layout: Layout, position: Tree) -> None:
    """Raise unless the log density takes the relaxed position and gives one float."""
    relaxed = jax.eval_shape(layout.relax, position)
    shapes = jax.tree.map(lambda leaf: f"{leaf.dtype}{list(leaf.shape)}", relaxed)
    try:
        value = jax.eval_shape(logdensity_fn, relaxed)
    except Exception as error:
        raise TypeError(f"logdensity_fn must accept relaxed float input of shape {shapes}: {error}") from error
    if not hasattr(value, "shape") or value.shape != ():
        got = getattr(value, "shape", value)
        raise TypeError(f"logdensity_fn: expected scalar, got shape {got}; vmap the kernel over chains.")
    if not jnp.issubdtype(value.dtype, jnp.floating):
        raise TypeError(f"logdensity_fn must return a float; got {value.dtype}.")


def draw_uniforms(key: Key[Array, ""], shape: tuple[int, ...], dtype: Any) -> Float[Array, "..."]:
    """Numbers in [0, 1), of this type, single precision at least.

    In half precision there are 1,024 or 128 of them: ties would rank sites, and a 0, which accepts anything, is common.
    """
    return jax.random.uniform(key, shape, jnp.promote_types(dtype, jnp.float32))


def decide(
    uniform: Float[Array, ""],
    state: Any,
    proposal: Any,
    log_ratio: Float[Array, ""],
    *,
    cost: int | Int[Array, ""],
    lazy: float | Float[Array, ""] = 0.0,
) -> tuple[Any, KernelInfo]:
    """Accept with probability (1 - lazy)·min(1, exp(log_ratio)), by ``uniform``; a NaN ratio is rejected, flagged."""
    log_probability = jnp.minimum(log_ratio, 0.0) + jnp.log1p(-jnp.asarray(lazy, log_ratio.dtype))
    # Logs are compared, for exp overflows where energies differ by hundreds. Strictly: log u < NaN is False.
    wide = jnp.promote_types(log_ratio.dtype, jnp.float32)
    accepted = jnp.log(uniform.astype(wide)) < log_probability.astype(wide)
    new = jax.tree.map(lambda a, b: jnp.where(accepted, a, b), proposal, state)
    is_nan = jnp.isnan(log_ratio)
    info = KernelInfo(
        acceptance_rate=jnp.where(is_nan, 0.0, jnp.exp(log_probability)),
        is_accepted=accepted,
        log_ratio=log_ratio,
        proposal=proposal.position,
        cost=jnp.asarray(cost, jnp.int32),
        status=jnp.where(is_nan, int(Status.DIVERGED), int(Status.OK)).astype(jnp.int32),
    )
    return new, info
