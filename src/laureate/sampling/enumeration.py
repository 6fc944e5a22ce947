"""Transition matrices of the samplers on small spaces, by enumeration: no randomness, no tolerance to guess.

For checking a kernel (ours, or a setting of ours) against the definition of detailed balance, and for spectral gaps.
The probabilities come from the kernels' own `propose` and `conditional`, the functions that `step` draws from.
"""

import functools
import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from laureate.sampling._blocks import PlainState, patterns, shift, valid_patterns
from laureate.sampling._kernel import DiscreteKernel, Tree
from laureate.sampling._layout import Layout
from laureate.sampling.block_gibbs import BlockGibbs
from laureate.sampling.discrete_langevin import DiscreteLangevin
from laureate.sampling.gibbs import Gibbs, GibbsState
from laureate.sampling.gibbs_with_gradients import InformedKernel
from laureate.sampling.hamming_ball import HammingBall
from laureate.sampling.incremental import IncrementalGibbsWithGradients
from laureate.sampling.path_auxiliary import PathAuxiliary

__all__ = ["all_positions", "detailed_balance_error", "exact_distribution", "spectral_gap", "transition_matrix"]


def all_positions(domain: Tree, position: Tree) -> Tree:
    """Every position of the shape of ``position``, stacked along a first axis, the last site changing fastest.

    >>> from laureate.sampling import Binary
    >>> all_positions(Binary(), jnp.zeros(2, bool)).astype(int)
    Array([[0, 0],
           [0, 1],
           [1, 0],
           [1, 1]], dtype=int32)
    """
    layout = Layout(domain, position)
    sites = [d for d, size in zip(layout.domains, np.diff(layout.site_offsets), strict=True) for _ in range(int(size))]
    codes = np.array(list(itertools.product(*([d.code(i) for i in range(d.num_values)] for d in sites))))
    leaves = []
    for i, leaf in enumerate(jax.tree.leaves(position)):
        part = codes[:, layout.site_offsets[i] : layout.site_offsets[i + 1]]
        leaves.append(jnp.asarray(part.reshape(-1, *np.shape(leaf)), jnp.asarray(leaf).dtype))
    return layout.structure.unflatten(leaves)


def exact_distribution(kernel: DiscreteKernel, positions: Tree) -> Float[Array, "states"]:
    """π(x) ∝ exp(β f(x)) over ``positions``."""
    return jax.nn.softmax(kernel.inverse_temperature * jax.vmap(kernel.evaluate)(positions))


def detailed_balance_error(matrix: Float[Array, "s s"], distribution: Float[Array, "s"]) -> Float[Array, ""]:
    """max |π_i P_ij - π_j P_ji|."""
    flow = distribution[:, None] * matrix
    return jnp.max(jnp.abs(flow - flow.T))


def spectral_gap(matrix: Float[Array, "s s"], distribution: Float[Array, "s"]) -> Float[Array, ""]:
    """1 - λ₂ of a reversible chain: how fast, at worst, a function forgets where it started."""
    root = jnp.sqrt(distribution)
    # D^½ P D^-½ is symmetric where P is reversible, and has P's eigenvalues.
    symmetric = root[:, None] * matrix / root[None, :]
    return 1.0 - jnp.linalg.eigvalsh((symmetric + symmetric.T) / 2)[-2]


def transition_matrix(
    kernel: DiscreteKernel | IncrementalGibbsWithGradients, position: Tree, propose: Callable | None = None
) -> Float[Array, "states states"]:
    """P(x → x') over all positions of the shape of ``position``; for a systematic scan, of one whole sweep.

    The number of outcomes of a step must be small: a few thousand a state.

    propose: instead of the ``propose`` of a kernel like `GibbsWithGradients`, to see what a change of it would do.
    """
    layout = Layout(kernel.domain, position)
    positions = all_positions(kernel.domain, position)
    if isinstance(kernel, Gibbs):
        sites = jnp.arange(layout.num_sites, dtype=jnp.int32)
        each = jax.lax.map(lambda site: _matrix(layout, positions, functools.partial(_gibbs, kernel, site)), sites)
        free = layout.free_sites(kernel.site_mask)
        weights = jnp.ones(len(each)) if free is None else free.astype(float)
        if kernel.scan == "random":
            return jnp.tensordot(weights / jnp.sum(weights), each, 1)
        return functools.reduce(jnp.matmul, each)
    for kind, outcomes in _OUTCOMES.items():
        if isinstance(kernel, kind):
            options = {} if propose is None else {"propose": propose}
            return _matrix(layout, positions, functools.partial(outcomes, kernel, **options))
    raise ValueError(f"transition_matrix: kernel must be one of this package's; got {type(kernel).__name__}.")


def _matrix(layout: Layout, positions: Tree, outcomes: Callable[[Tree], tuple[Tree, Array]]) -> Array:
    """Rows of P from each position's outcomes and their probabilities; what is missing to one stays."""

    def row(number, position):
        ends, probabilities = outcomes(position)
        columns = jax.vmap(lambda p: _number(layout, p))(ends)
        probabilities = probabilities.reshape(-1)
        states = len(jax.tree.leaves(positions)[0])
        moved = jnp.zeros(states, probabilities.dtype).at[columns].add(probabilities)
        return moved.at[number].add(1.0 - jnp.sum(probabilities))

    return jax.lax.map(lambda pair: row(*pair), (jnp.arange(len(jax.tree.leaves(positions)[0])), positions))


def _number(layout: Layout, position: Tree) -> Int[Array, ""]:
    sites = jnp.arange(layout.num_sites, dtype=jnp.int32)
    index = layout.index(sites, layout.read(position, sites))
    sizes = [d.num_values for d, n in zip(layout.domains, np.diff(layout.site_offsets), strict=True) for _ in range(n)]
    strides = np.append(np.cumprod(sizes[::-1])[::-1][1:], 1)
    return jnp.sum(index * jnp.asarray(strides, jnp.int32))


def _accepted(log_probability: Array, log_ratio: Array, lazy: Any = 0.0) -> Array:
    """Probability of drawing and accepting; impossible draws have a meaningless ratio."""
    possible = log_probability > -jnp.inf
    log_ratio = jnp.where(possible & ~jnp.isnan(log_ratio), log_ratio, -jnp.inf)
    return jnp.where(possible, jnp.exp(log_probability + jnp.minimum(log_ratio, 0.0)), 0.0) * (1.0 - lazy)


def _informed(kernel: InformedKernel, position: Tree, propose: Any = None) -> tuple[Tree, Array]:
    state, propose = _start(kernel, position), kernel.propose if propose is None else propose
    count = kernel.log_weights(kernel.layout(position), state.differences).size
    draws = jnp.asarray(list(itertools.product(range(count), repeat=kernel.num_flips)), jnp.int32)
    proposal, log_probability, log_ratio = jax.vmap(lambda d: propose(state, d))(draws)
    return proposal.position, _accepted(log_probability, log_ratio, kernel.lazy)


def _langevin(kernel: DiscreteLangevin, position: Tree) -> tuple[Tree, Array]:
    state = _start(kernel, position)
    layout = kernel.layout(position)
    sizes = np.diff(layout.site_offsets)
    widths = [d.num_moves + 1 for d, n in zip(layout.domains, sizes, strict=True) for _ in range(int(n))]
    choices = jnp.asarray(list(itertools.product(*(range(w) for w in widths))), jnp.int32)
    proposal, log_probability, log_ratio = jax.vmap(lambda c: kernel.propose(state, c))(choices)
    if not kernel.adjusted:
        log_ratio = jnp.zeros_like(log_ratio)
    return proposal.position, _accepted(log_probability, log_ratio)


def _path(kernel: PathAuxiliary, position: Tree) -> tuple[Tree, Array]:
    state = _start(kernel, position)
    layout = kernel.layout(position)
    sizes = np.diff(layout.site_offsets)
    site = np.repeat(
        np.arange(layout.num_sites), np.repeat([d.num_moves for d in layout.domains], [int(n) for n in sizes])
    )
    longest = min(kernel.max_length, layout.num_sites)
    paths, lengths = [], []
    for length in range(1, longest + 1):
        for path in itertools.permutations(range(layout.num_moves), length):
            if len(set(site[list(path)])) == length:
                paths.append((*path, *([0] * (longest - length))))
                lengths.append(length)
    moves, lengths = jnp.asarray(paths, jnp.int32), jnp.asarray(lengths, jnp.int32)
    proposal, log_probability, log_ratio = jax.vmap(functools.partial(kernel.propose, state))(moves, lengths)
    # L is ⌊r⌋ + 1 with probability r - ⌊r⌋, else ⌊r⌋
    whole = jnp.floor(jnp.asarray(kernel.path_length))
    share = kernel.path_length - whole
    chance = jnp.where(lengths == whole, 1.0 - share, jnp.where(lengths == whole + 1, share, 0.0))
    return proposal.position, chance * _accepted(log_probability, log_ratio)


def _incremental(kernel: IncrementalGibbsWithGradients, position: Tree) -> tuple[Tree, Array]:
    state = _start(kernel, position)

    def one(site, move):
        change = kernel.change(state, site, move)
        end = position.reshape(-1).at[site].set(change.code.astype(position.dtype)).reshape(position.shape)
        return end, _accepted(change.log_probability, change.log_ratio, kernel.lazy)

    pairs = list(itertools.product(range(position.size), range(kernel.domain.num_moves)))
    return jax.vmap(one)(*jnp.asarray(pairs, jnp.int32).T)


def _gibbs(kernel: Gibbs, site: Int[Array, ""], position: Tree) -> tuple[Tree, Array]:
    layout = kernel.layout(position)
    state = GibbsState(position, kernel.evaluate(position), jnp.int32(0))
    _, log_probs = kernel.conditional(state, site)
    shifts = jnp.asarray(patterns(max(d.num_values for d in layout.domains), 1, 1))
    ends = jax.vmap(lambda s: shift(layout, position, site[None], s)[0])(shifts)
    return ends, jnp.exp(log_probs)


def _blocks(layout: Layout, kernel: DiscreteKernel, block_size: int) -> tuple[Int[Array, "blocks block"], Array]:
    """All blocks of sites, and the probability of each: uniform over those of free sites.

    Where there are too few of these all are in a block, and with which others does not matter, for they stay.
    """
    blocks = jnp.asarray(list(itertools.combinations(range(layout.num_sites), block_size)), jnp.int32)
    free = layout.free_sites(kernel.site_mask)
    if free is None:
        weights = jnp.ones(len(blocks))
    else:
        count = jnp.sum(free[blocks], axis=1)
        weights = (count == jnp.max(count)).astype(float)
    return blocks, weights / jnp.sum(weights)


def _block(kernel: BlockGibbs, position: Tree) -> tuple[Tree, Array]:
    layout = kernel.layout(position)
    state = PlainState(position, kernel.evaluate(position))
    shifts = jnp.asarray(patterns(max(d.num_values for d in layout.domains), kernel.block_size, kernel.block_size))

    def one(sites):
        ends = jax.vmap(lambda s: shift(layout, position, sites, s)[0])(shifts)
        return ends, jnp.exp(kernel.conditional(state, sites)[1])

    blocks, weights = _blocks(layout, kernel, kernel.block_size)
    ends, probabilities = jax.vmap(one)(blocks)
    return _merge(ends), probabilities * weights[:, None]


def _ball(kernel: HammingBall, position: Tree) -> tuple[Tree, Array]:
    layout = kernel.layout(position)
    state = PlainState(position, kernel.evaluate(position))
    table = patterns(max(d.num_values for d in layout.domains), kernel.block_size, kernel.radius)

    def one(sites, towards):
        centre, _, log_probs = kernel.around(state, sites, towards)
        ends = jax.vmap(lambda s: shift(layout, centre, sites, s)[0])(jnp.asarray(table))
        valid = valid_patterns(kernel, layout, sites, table)
        return ends, jnp.exp(log_probs) * valid[towards] / jnp.sum(valid)

    blocks, weights = _blocks(layout, kernel, kernel.block_size)
    ends, probabilities = jax.vmap(lambda b: jax.vmap(lambda t: one(b, t))(jnp.arange(len(table))))(blocks)
    return _merge(_merge(ends)), probabilities * weights[:, None, None]


def _merge(tree: Tree) -> Tree:
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), tree)


def _start(kernel: Any, position: Tree) -> Any:
    # A traced position: init evaluates it and lets the checks through.
    return kernel.init(position)


_OUTCOMES: dict[type, Callable[..., tuple[Tree, Array]]] = {
    InformedKernel: _informed,
    DiscreteLangevin: _langevin,
    PathAuxiliary: _path,
    BlockGibbs: _block,
    HammingBall: _ball,
    IncrementalGibbsWithGradients: _incremental,
}
