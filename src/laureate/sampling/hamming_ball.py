"""The Hamming-ball sampler: a slice through a ball of configurations around an auxiliary point."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from laureate._core import require
from laureate.sampling._blocks import (
    PlainState,
    choose,
    draw_block,
    log_probabilities,
    patterns,
    shift,
    valid_patterns,
)
from laureate.sampling._kernel import DiscreteKernel, KernelInfo, Tree, check_start, draw_uniforms
from laureate.sampling._wheel import first_beyond

__all__ = ["HammingBall"]


class HammingBall(DiscreteKernel):
    """In a random block, draw u uniformly within ``radius`` changes of x, then x from p within ``radius`` of u.

    Between Gibbs and block Gibbs: larger blocks than the latter can afford, fewer configurations. A step evaluates f
    at every configuration of the ball.

    Titsias, Yau: "The Hamming ball sampler", JASA 2017.

    logdensity_fn, domain, inverse_temperature, site_mask, category_mask: as for `GibbsWithGradients`; the log
        density need not be differentiable.
    block_size: variables a block, >= 1.
    radius: how many of them a draw may change, in 1..block_size.

    >>> from laureate.sampling import Binary
    >>> kernel = HammingBall(lambda x: jnp.sum(x), Binary(), block_size=10, radius=1)
    >>> state, info = eqx.filter_jit(kernel.step)(jax.random.key(0), kernel.init(jnp.zeros(20, bool)))
    >>> int(info.cost)
    11
    """

    block_size: int = eqx.field(default=10, static=True, kw_only=True)
    radius: int = eqx.field(default=1, static=True, kw_only=True)

    def __check_init__(self):
        require("HammingBall", "block_size", ">= 1", self.block_size, lambda b: b >= 1)
        rule = f"in 1..block_size = {self.block_size}"
        require("HammingBall", "radius", rule, self.radius, lambda r: 1 <= r <= self.block_size)

    def init(self, position: Tree, key: Key[Array, ""] | None = None) -> PlainState:
        """Check ``position`` and evaluate it. ``key`` is ignored; BlackJAX's drivers pass one."""
        layout, position = self.begin(position)
        rule = f"<= the number of sites, {layout.num_sites}"
        require("HammingBall", "block_size", rule, self.block_size, lambda b: b <= layout.num_sites)
        logdensity = self.evaluate(position)
        check_start(logdensity)
        return PlainState(position, logdensity)

    def step(self, key: Key[Array, ""], state: PlainState) -> tuple[PlainState, KernelInfo]:
        """One transition: one block."""
        layout = self.layout(state.position)
        uniforms = draw_uniforms(key, (2 + layout.num_sites,), state.logdensity.dtype)
        sites = draw_block(uniforms[2:], layout.free_sites(self.site_mask), self.block_size)
        shifts = self._shifts(state)
        valid = valid_patterns(self, layout, sites, shifts)
        towards = first_beyond(jnp.cumsum(valid.astype(uniforms.dtype)), uniforms[1])
        centre, values, log_probs = self.around(state, sites, towards)
        return choose(uniforms[0], layout, centre, sites, shifts, values, log_probs, len(shifts))

    def around(
        self, state: PlainState, sites: Int[Array, "block"], towards: Int[Array, ""]
    ) -> tuple[Tree, Float[Array, "patterns"], Float[Array, "patterns"]]:
        """The auxiliary point u that pattern ``towards`` leads to, and f and log p of every configuration around it."""
        layout = self.layout(state.position)
        shifts = self._shifts(state)
        centre, _ = shift(layout, state.position, sites, jnp.asarray(shifts)[towards])
        values, log_probs = log_probabilities(self, layout, centre, sites, shifts)
        return centre, values, log_probs

    def _shifts(self, state: PlainState):
        most = max(domain.num_values for domain in self.layout(state.position).domains)
        return patterns(most, self.block_size, self.radius)
