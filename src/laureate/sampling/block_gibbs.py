"""Block Gibbs sampling: a few variables at once from their joint conditional."""

import equinox as eqx
from jaxtyping import Array, Float, Int, Key

from laureate._core import require
from laureate.sampling._blocks import PlainState, choose, draw_block, log_probabilities, patterns
from laureate.sampling._kernel import DiscreteKernel, KernelInfo, Tree, check_start, draw_uniforms

__all__ = ["BlockGibbs"]


class BlockGibbs(DiscreteKernel):
    """Draw ``block_size`` random variables together from p(block | all others).

    A step evaluates f at all K^block_size - 1 other configurations of the block, so blocks are small.

    logdensity_fn, domain, inverse_temperature, site_mask, category_mask: as for `GibbsWithGradients`; the log
        density need not be differentiable.
    block_size: variables a block, >= 1.
    max_configurations: refuse a block with more configurations than this.

    >>> import jax.numpy as jnp
    >>> from laureate.sampling import Binary
    >>> kernel = BlockGibbs(lambda x: 50.0 * jnp.sum(x), Binary(), block_size=2)
    >>> state, info = eqx.filter_jit(kernel.step)(jax.random.key(0), kernel.init(jnp.zeros(3, bool)))
    >>> int(state.position.sum()), int(info.cost)
    (2, 3)
    """

    block_size: int = eqx.field(default=2, static=True, kw_only=True)
    max_configurations: int = eqx.field(default=100_000, static=True, kw_only=True)

    def __check_init__(self):
        require("BlockGibbs", "block_size", ">= 1", self.block_size, lambda b: b >= 1)

    def init(self, position: Tree, key: Key[Array, ""] | None = None) -> PlainState:
        """Check ``position`` and evaluate it. ``key`` is ignored; BlackJAX's drivers pass one."""
        layout, position = self.begin(position)
        rule = f"<= the number of sites, {layout.num_sites}"
        require("BlockGibbs", "block_size", rule, self.block_size, lambda b: b <= layout.num_sites)
        count = max(domain.num_values for domain in layout.domains) ** self.block_size
        rule = f"one with <= {self.max_configurations:,} configurations"
        require("BlockGibbs", "block_size", rule, self.block_size, lambda _: count <= self.max_configurations)
        logdensity = self.evaluate(position)
        check_start(logdensity)
        return PlainState(position, logdensity)

    def step(self, key: Key[Array, ""], state: PlainState) -> tuple[PlainState, KernelInfo]:
        """One transition: one block."""
        layout = self.layout(state.position)
        uniforms = draw_uniforms(key, (1 + layout.num_sites,), state.logdensity.dtype)
        sites = draw_block(uniforms[1:], layout.free_sites(self.site_mask), self.block_size)
        values, log_probs = self.conditional(state, sites)
        shifts = self._shifts(state)
        return choose(uniforms[0], layout, state.position, sites, shifts, values, log_probs, len(shifts) - 1)

    def conditional(
        self, state: PlainState, sites: Int[Array, "block"]
    ) -> tuple[Float[Array, "patterns"], Float[Array, "patterns"]]:
        """f and log p(block | all others) for every configuration, counted cyclically from the current one."""
        layout = self.layout(state.position)
        return log_probabilities(self, layout, state.position, sites, self._shifts(state), known=state.logdensity)

    def _shifts(self, state: PlainState):
        most = max(domain.num_values for domain in self.layout(state.position).domains)
        return patterns(most, self.block_size, self.block_size)
