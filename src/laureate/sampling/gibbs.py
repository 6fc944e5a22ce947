"""Gibbs sampling, one site at a time: the baseline of every discrete sampler."""

from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key, UInt

from laureate._core import require
from laureate.sampling._blocks import choose, log_probabilities, patterns
from laureate.sampling._kernel import DiscreteKernel, KernelInfo, Tree, check_start

__all__ = ["Gibbs", "GibbsState", "is_systematic"]


class GibbsState(NamedTuple):
    """What a Gibbs sampler carries.

    position: the codes. logdensity: f(x), not tempered. num_steps: steps made, the systematic scan's place.
    """

    position: Tree
    logdensity: Float[Array, ""]
    num_steps: Int[Array, ""]


class Gibbs(DiscreteKernel):
    """Draw one variable at a time from its conditional p(x_i | all others).

    Random scan picks the site uniformly and is reversible; the systematic scan visits the free sites in order, and
    one step is one site. A step evaluates f once for each other value of the site.

    Geman, Geman: "Stochastic relaxation, Gibbs distributions, and the Bayesian restoration of images", 1984.

    logdensity_fn, domain, inverse_temperature, site_mask, category_mask: as for `GibbsWithGradients`; the log
        density need not be differentiable.
    scan: ``"random"`` or ``"systematic"``.

    >>> from laureate.sampling import Binary
    >>> kernel = Gibbs(lambda x: 50.0 * jnp.sum(x), Binary(), scan="systematic")
    >>> state = kernel.init(jnp.zeros(3, bool))
    >>> state, info = kernel.step(jax.random.key(0), state)
    >>> state.position
    Array([ True, False, False], dtype=bool)
    """

    scan: Literal["random", "systematic"] = eqx.field(default="random", static=True, kw_only=True)

    def __check_init__(self):
        require("Gibbs", "scan", "'random' or 'systematic'", self.scan, lambda s: s in ("random", "systematic"))

    def init(self, position: Tree, key: Key[Array, ""] | None = None) -> GibbsState:
        """Check ``position`` and evaluate it. ``key`` is ignored; BlackJAX's drivers pass one."""
        _, position = self.begin(position)
        logdensity = self.evaluate(position)
        check_start(logdensity)
        return GibbsState(position, logdensity, jnp.zeros((), jnp.int32))

    def step(self, key: Key[Array, ""], state: GibbsState) -> tuple[GibbsState, KernelInfo]:
        """One transition: one site."""
        # All random numbers of a step from one call: each call costs as much as a small energy.
        words = jax.random.bits(key, (2,), jnp.uint32)
        site = self.pick(words[0], state)
        # Half precision has no room for 24 bits: what is drawn would be 1 or not a number.
        wide = jnp.promote_types(state.logdensity.dtype, jnp.float32)
        uniform = (words[1] >> 8).astype(wide) * 2.0**-24
        layout = self.layout(state.position)
        shifts = self._shifts(state)
        values, log_probs = self.conditional(state, site)
        cost = len(shifts) - 1
        moved, info = choose(uniform, layout, state.position, site[None], shifts, values, log_probs, cost)
        return GibbsState(moved.position, moved.logdensity, state.num_steps + 1), info

    def pick(self, word: UInt[Array, ""], state: GibbsState) -> Int[Array, ""]:
        """The site of this step, of a random scan by 32 random bits: uniform but for sites / 2^32."""
        layout = self.layout(state.position)
        free = layout.free_sites(self.site_mask)
        count = layout.num_sites if free is None else jnp.sum(free)
        rank = word % jnp.asarray(count, jnp.uint32) if self.scan == "random" else state.num_steps % count
        rank = rank.astype(jnp.int32)
        return rank if free is None else jnp.sum(jnp.cumsum(free) <= rank).astype(jnp.int32)

    def conditional(
        self, state: GibbsState, site: Int[Array, ""]
    ) -> tuple[Float[Array, "values"], Float[Array, "values"]]:
        """f and log p(x_site = v | all others) for every value v, counted cyclically from the current one."""
        layout = self.layout(state.position)
        shifts = self._shifts(state)
        return log_probabilities(self, layout, state.position, site[None], shifts, known=state.logdensity)

    def _shifts(self, state: GibbsState):
        return patterns(max(domain.num_values for domain in self.layout(state.position).domains), 1, 1)


def is_systematic(kernel: Any) -> bool:
    """Whether the state says which site is next: who begins a chain anew where another ended sets its ``num_steps``."""
    return isinstance(kernel, Gibbs) and kernel.scan == "systematic"
