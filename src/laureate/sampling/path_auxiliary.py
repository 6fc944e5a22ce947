"""The path-auxiliary sampler: several moves along a path, from two gradients' worth of information."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from laureate._core import require
from laureate.sampling._kernel import DiscreteKernel, InformedState, KernelInfo, Tree, check_start, decide
from laureate.sampling._layout import Layout
from laureate.sampling.balancing import Balancing, log_balanced, require_balancing

__all__ = ["PathAuxiliary"]


class PathAuxiliary(DiscreteKernel):
    """Path-auxiliary fast sampling (PAFS): change several distinct sites in one step.

    A path of L distinct sites is drawn one after another from the same informed proposal without replacement, and
    walked back in reversed order::

        q(m_1..m_L | x) = Π_k w(x)_{m_k} / Σ_{m not at sites of m_1..m_{k-1}} w(x)_m,     w = g(exp d̃)
        accept with min{1, exp(f(x') - f(x)) q(m'_L..m'_1 | x') / q(m_1..m_L | x)}

    L is `path_length` rounded at random, so that its mean is kept. A step costs one value-and-gradient. Find a good
    length with `adapt` during warm-up; it returns a kernel in which the length is frozen.

    Sun, Dai, Xia, Ramamurthy: "Path auxiliary proposal for MCMC in discrete space", ICLR 2022.

    logdensity_fn, domain, balancing, inverse_temperature, site_mask, category_mask: as for `GibbsWithGradients`.
    path_length: mean number of sites changed, in [1, max_length].
    max_length: the longest path, >= 1; sets the size of the compiled program.

    >>> from laureate.sampling import Binary
    >>> kernel = PathAuxiliary(lambda x: jnp.sum(x), Binary(), path_length=2.0)
    >>> state, info = eqx.filter_jit(kernel.step)(jax.random.key(0), kernel.init(jnp.zeros(8, bool)))
    >>> int(info.proposal.sum())
    2
    """

    path_length: float | Float[Array, ""] = eqx.field(default=3.0, kw_only=True)
    max_length: int = eqx.field(default=16, static=True, kw_only=True)
    balancing: Balancing = eqx.field(default="sqrt", static=True, kw_only=True)

    def __check_init__(self):
        require_balancing("PathAuxiliary", self.balancing)
        require("PathAuxiliary", "max_length", ">= 1", self.max_length, lambda n: n >= 1)
        rule = f"in [1, max_length = {self.max_length}]"
        require("PathAuxiliary", "path_length", rule, self.path_length, lambda r: 1 <= float(r) <= self.max_length)

    def init(self, position: Tree, key: Key[Array, ""] | None = None) -> InformedState:
        """Check ``position`` and evaluate it. ``key`` is ignored; BlackJAX's drivers pass one."""
        layout, position = self.begin(position)
        rule = f"<= the number of sites, {layout.num_sites}"
        require("PathAuxiliary", "path_length", rule, self.path_length, lambda r: float(r) <= layout.num_sites)
        logdensity, differences = self.gradient_differences(layout, position)
        check_start(
            logdensity, differences, lambda: self.gradient_differences(layout, self.scattered(layout, position))[1]
        )
        return InformedState(position, logdensity, differences)

    def step(self, key: Key[Array, ""], state: InformedState) -> tuple[InformedState, KernelInfo]:
        """One transition."""
        step_key, site_key, move_key = jax.random.split(key, 3)
        accept, fraction = jax.random.uniform(step_key, (2,))
        layout = self.layout(state.position)
        log_weights = log_balanced(self.balancing, state.differences, self.inverse_temperature)
        # The largest of logit + Gumbel noise, in descending order, are a draw without replacement, in order.
        by_site = _by_site(layout, log_weights)
        noise = jax.random.gumbel(site_key, by_site.shape, by_site.dtype)
        _, sites = jax.lax.top_k(by_site + noise, self._longest(layout))
        candidates, exist = _moves_of(layout, sites)
        within = jnp.where(exist, log_weights[candidates], -jnp.inf)
        choice = jax.random.categorical(move_key, within, axis=-1)
        moves = jnp.take_along_axis(candidates, choice[:, None], axis=1)[:, 0]
        # L = ⌊r⌋ or ⌊r⌋ + 1, with mean r
        length = jnp.floor(jnp.asarray(self.path_length) + fraction).astype(jnp.int32)
        proposal, _, log_ratio = self.propose(state, moves, length)
        return decide(accept, state, proposal, log_ratio, cost=1)

    def propose(
        self, state: InformedState, moves: Int[Array, "path"], length: Int[Array, ""]
    ) -> tuple[InformedState, Float[Array, ""], Float[Array, ""]]:
        """The end of the path of the first ``length`` moves, log of the path's probability, and the log ratio."""
        layout = self.layout(state.position)
        # Masks, and thus the number of sites that have a move, are the same at both ends.
        log_weights = log_balanced(self.balancing, state.differences, self.inverse_temperature)
        movable = jnp.sum(_by_site(layout, log_weights) > -jnp.inf)
        length = jnp.clip(length, 1, jnp.minimum(movable, moves.size))
        sites, new = layout.locate(state.position, moves)
        walked = jnp.arange(moves.size) < length
        sites = jnp.where(walked, sites, layout.num_sites)
        old = layout.read(state.position, sites)
        position = layout.write(state.position, sites, new)
        logdensity, differences = self.gradient_differences(layout, position)
        back, _ = layout.moves_between(sites, new, old)
        log_weights_there = log_balanced(self.balancing, differences, self.inverse_temperature)
        forward = _log_path(layout, log_weights, sites, moves, walked)
        # Reversed, the first move back is the last move there; the path's unused end is skipped either way.
        reverse = _log_path(layout, log_weights_there, sites[::-1], back[::-1], walked[::-1])
        beta = jnp.asarray(self.inverse_temperature, logdensity.dtype)
        log_ratio = beta * (logdensity - state.logdensity) + reverse - forward
        return InformedState(position, logdensity, differences), forward, log_ratio

    def adapt(
        self, key: Key[Array, ""], state: InformedState, num_steps: int, target: float = 0.574
    ) -> tuple["PathAuxiliary", InformedState]:
        """Warm up: r ← r + (acceptance - target) each step; return the kernel with r frozen, and the chain's end.

        The frozen length is the mean over the second half. Samples drawn here are not from the target: drop them.
        """
        require("PathAuxiliary", "num_steps", ">= 1", num_steps, lambda n: n >= 1)
        longest = float(self._longest(self.layout(state.position)))

        def one(carry, index):
            state, length = carry
            kernel = eqx.tree_at(lambda k: k.path_length, self, length)
            state, info = kernel.step(jax.random.fold_in(key, index), state)
            length = jnp.clip(length + info.acceptance_rate.astype(length.dtype) - target, 1.0, longest)
            return (state, length), length

        start = jnp.asarray(self.path_length, float)
        (state, _), lengths = jax.lax.scan(one, (state, start), jnp.arange(num_steps))
        return eqx.tree_at(lambda k: k.path_length, self, jnp.mean(lengths[num_steps // 2 :])), state

    def _longest(self, layout: Layout) -> int:
        return min(self.max_length, layout.num_sites)


def _by_site(layout: Layout, log_weights: Float[Array, "moves"]) -> Float[Array, "sites"]:
    parts = []
    for domain, start, stop in zip(layout.domains, layout.move_offsets[:-1], layout.move_offsets[1:], strict=True):
        parts.append(jax.nn.logsumexp(log_weights[start:stop].reshape(-1, domain.num_moves), axis=1))
    return jnp.concatenate(parts)


def _moves_of(layout: Layout, sites: Int[Array, "path"]) -> tuple[Int[Array, "path moves"], Array]:
    """All moves of each site, a row a site, and which of the columns are there."""
    leaf = jnp.sum(sites[:, None] >= jnp.asarray(layout.site_offsets[1:-1], jnp.int32)[None, :], axis=1)
    widths = jnp.asarray([domain.num_moves for domain in layout.domains], jnp.int32)
    local = sites - jnp.asarray(layout.site_offsets[:-1], jnp.int32)[leaf]
    first = jnp.asarray(layout.move_offsets[:-1], jnp.int32)[leaf] + local * widths[leaf]
    column = jnp.arange(max(domain.num_moves for domain in layout.domains), dtype=jnp.int32)
    exist = column[None, :] < widths[leaf][:, None]
    return jnp.where(exist, first[:, None] + column[None, :], 0), exist


def _log_path(layout: Layout, log_weights: Array, sites: Array, moves: Array, walked: Array) -> Float[Array, ""]:
    """log Π_k w_{m_k} / Σ_{m not at earlier sites} w_m over the walked part of a path."""
    by_site = _by_site(layout, log_weights)
    rest = jax.nn.logsumexp(by_site.at[sites].set(-jnp.inf, mode="drop"))
    on_path = jnp.where(walked, by_site[jnp.minimum(sites, layout.num_sites - 1)], -jnp.inf)

    # Adding sites back from the path's end, never subtracting: exact also where the path holds nearly all the weight.
    def add(total, weight):
        total = jnp.logaddexp(total, weight)
        return total, total

    _, remaining = jax.lax.scan(add, rest, on_path, reverse=True)
    chosen = log_weights[jnp.clip(moves, 0, layout.num_moves - 1)]
    return jnp.sum(jnp.where(walked, chosen - jnp.where(walked, remaining, 0.0), 0.0))
