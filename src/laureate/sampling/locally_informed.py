"""The exact locally-informed proposal: every neighbour is evaluated. What Gibbs-With-Gradients approximates."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from laureate.sampling._kernel import Tree
from laureate.sampling._layout import Layout
from laureate.sampling.gibbs_with_gradients import InformedKernel

__all__ = ["LocallyInformed"]


class LocallyInformed(InformedKernel):
    """Gibbs-With-Gradients with d(x)_m = f(x'_m) - f(x) computed, not estimated: f need not be differentiable.

    A step evaluates f once a move (binary: once a site), so this is for small problems, cheap energies, and for
    asking how much the gradient's estimate loses. The arguments are those of `GibbsWithGradients`.

    Zanella: "Informed proposals for local MCMC in discrete spaces", JASA 2020.

    >>> from laureate.sampling import Binary
    >>> kernel = LocallyInformed(lambda x: jnp.sum(jnp.round(x)), Binary())
    >>> kernel.init(jnp.zeros(3, bool)).differences
    Array([1., 1., 1.], dtype=float32)
    """

    def score(self, layout: Layout, position: Tree) -> tuple[Float[Array, ""], Float[Array, "moves"]]:
        """f(x) and the exact differences d(x), the moves that the masks forbid at -inf."""
        logdensity = self.evaluate(position)

        def after(move):
            sites, codes = layout.locate(position, move[None])
            return self.evaluate(layout.write(position, sites, codes))

        neighbours = jax.lax.map(after, jnp.arange(layout.num_moves, dtype=jnp.int32), batch_size=256)
        # A zero gradient leaves of d̃ only the -inf of moves that do not exist.
        flat = layout.differences(position, jax.tree.map(jnp.zeros_like, layout.relax(position)))
        exists = flat > -jnp.inf
        return logdensity, self.restrict(layout, jnp.where(exists, neighbours - logdensity, -jnp.inf))

    def num_evaluations(self, layout: Layout) -> int:
        """Evaluations of the log density that a step makes."""
        return layout.num_moves + 1
