"""Informed sampling of local energies at a cost that grows with the logarithm of the number of sites."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from laureate._core import Status, require
from laureate.sampling._kernel import check_energy, check_start, draw_uniforms
from laureate.sampling._layout import Layout
from laureate.sampling._wheel import first_beyond
from laureate.sampling.balancing import Balancing, log_balanced, require_balancing
from laureate.sampling.domain import Binary, Categorical, Ordinal

__all__ = ["IncrementalGibbsWithGradients", "IncrementalInfo", "IncrementalState", "LocalEnergy"]


# From site numbers to their codes. A proposal is read as "the codes, but for one", and never written out.
Read = Callable[[Int[Array, "..."]], Int[Array, "..."]]


class LocalEnergy(Protocol):
    """An energy that knows which sites a site touches: what `IncrementalGibbsWithGradients` asks of yours.

    Any object (best an ``equinox.Module``) with these three methods will do. Sites are numbered along the ravelled
    position. Whatever ``site_differences(read, site)`` reads must lie at the site or at sites of which it is a
    neighbour; else the tree of weights is not kept up to date, and the chain samples another law.

    >>> class Chain(eqx.Module):  # f(x) = strength Σ_i x_i x_{i+1} over a ring
    ...     strength: float = 0.5
    ...     sites: int = eqx.field(static=True, default=6)
    ...     def __call__(self, x): return self.strength * jnp.sum(x * jnp.roll(x, 1))
    ...     def neighbours(self, site): return (site + jnp.array([-1, 1])) % self.sites
    ...     def site_differences(self, read, site):
    ...         field = self.strength * read(self.neighbours(site)).sum()
    ...         return ((1 - 2 * read(site)) * field)[None]
    >>> from laureate.sampling import Binary, IncrementalGibbsWithGradients
    >>> state = IncrementalGibbsWithGradients(Chain(), Binary()).init(jnp.array([0, 1, 0, 1, 1, 0]))
    >>> float(state.logdensity)
    0.5
    """

    def __call__(self, x: Any, /) -> Float[Array, ""]:
        """f(x) of the relaxed position."""
        ...

    def neighbours(self, site: Int[Array, ""], /) -> Int[Array, "degree"]:
        """Sites whose differences depend on this one; repeat the site itself to fill up a smaller degree."""
        ...

    def site_differences(self, read: "Read", site: Int[Array, ""], /) -> Float[Array, "moves"]:
        """Exact f(x') - f(x) of every move of one site, -inf for the move to itself; ``read(sites)`` gives codes."""
        ...


class IncrementalState(NamedTuple):
    """What is carried from step to step.

    position: the codes. logdensity: f(x). levels: a tree of log weights: the first holds log Σ_m g(exp d_m) of every
    site, each further one the log sums of `arity` entries below.
    """

    position: Array
    logdensity: Float[Array, ""]
    levels: tuple[Float[Array, "nodes"], ...]


class IncrementalInfo(NamedTuple):
    """What a step reports.

    acceptance_rate: the probability with which the proposal was accepted. is_accepted: whether it was. log_ratio: log
    of π(x')q(x|x') / (π(x)q(x'|x)). site: that was to change. cost: sites whose differences were computed, for no step
    evaluates all of f. status: DIVERGED where the log ratio was NaN (such a proposal is rejected).
    """

    acceptance_rate: Float[Array, ""]
    is_accepted: Bool[Array, ""]
    log_ratio: Float[Array, ""]
    site: Int[Array, ""]
    cost: Int[Array, ""]
    status: Int[Array, ""]


class _Change(NamedTuple):
    log_probability: Float[Array, ""]
    log_ratio: Float[Array, ""]
    difference: Float[Array, ""]
    code: Int[Array, ""]
    updates: tuple[tuple[Int[Array, "touched"], Float[Array, "touched"]], ...]


class IncrementalGibbsWithGradients(eqx.Module):
    """The chain of `LocallyInformed` (and, where f is multilinear, of `GibbsWithGradients`), site by site.

    A flip changes d only at the site and its neighbours. So only these are computed again, and the proposal's
    normaliser Σ_m g(exp d_m) is kept in a tree of log sums: a step touches (1 + degree)·log(sites) numbers instead of
    all. For lattices, sparse graphs and factor graphs; a million sites are no slower than a hundred thousand.

    energy: a `LocalEnergy`; `IsingLattice` and `PottsLattice` of `laureate.problems.energies` are examples.
    domain: one of `Binary()`, `Categorical(K)`, `Ordinal(low, high)`; the position is one array.
    balancing, lazy, inverse_temperature, site_mask, category_mask: as for `GibbsWithGradients`; masks are arrays.
    arity: children of a node of the tree, >= 2.

    The logdensity in the state is the start's plus all accepted differences: over very many steps in single precision
    it drifts (the chain does not: nothing depends on it). Call `init` anew where its last digits matter.

    >>> class Coins(eqx.Module):
    ...     biases: jax.Array
    ...     def __call__(self, x): return self.biases @ x
    ...     def neighbours(self, site): return site[None]
    ...     def site_differences(self, read, site): return ((1.0 - 2.0 * read(site)) * self.biases[site])[None]
    >>> kernel = IncrementalGibbsWithGradients(Coins(jnp.linspace(-2.0, 2.0, 40)), Binary())
    >>> state, info = eqx.filter_jit(kernel.step)(jax.random.key(0), kernel.init(jnp.zeros(40, bool)))
    >>> int(state.position.sum())
    1
    """

    energy: Any
    domain: Binary | Categorical | Ordinal
    balancing: Balancing = eqx.field(default="sqrt", static=True, kw_only=True)
    lazy: float | Float[Array, ""] = eqx.field(default=0.0, kw_only=True)
    inverse_temperature: float | Float[Array, ""] = eqx.field(default=1.0, kw_only=True)
    site_mask: Bool[Array, "..."] | None = eqx.field(default=None, kw_only=True)
    category_mask: Bool[Array, "... K"] | None = eqx.field(default=None, kw_only=True)
    arity: int = eqx.field(default=16, static=True, kw_only=True)

    def __check_init__(self):
        owner = "IncrementalGibbsWithGradients"
        require_balancing(owner, self.balancing)
        require(owner, "arity", ">= 2", self.arity, lambda a: a >= 2)
        require(owner, "lazy", "in [0, 1)", self.lazy, lambda p: np.all((np.asarray(p) >= 0) & (np.asarray(p) < 1)))
        require(owner, "inverse_temperature", ">= 0", self.inverse_temperature, lambda b: np.all(np.asarray(b) >= 0))
        for name in ("neighbours", "site_differences"):
            rule = "a LocalEnergy, with neighbours(site) and site_differences(read, site)"
            require(owner, "energy", rule, self.energy, lambda energy, name=name: hasattr(energy, name))

    def layout(self, position: Array) -> Layout:
        """The numbering of sites and moves of such a position."""
        return Layout(self.domain, position)

    def init(self, position: Array, key: Key[Array, ""] | None = None) -> IncrementalState:
        """Evaluate every site once and build the tree. ``key`` is ignored; BlackJAX's drivers pass one."""
        position = jnp.asarray(position)
        layout = self.layout(position)
        layout.check(position, self.category_mask)
        layout.check_masks(type(self).__name__, self.site_mask, self.category_mask)
        check_energy(self.energy, layout, position)
        logdensity = self.energy(self.domain.relax(position))
        check_start(logdensity)
        codes = position.reshape(-1)
        sites = jnp.arange(codes.size, dtype=jnp.int32)
        level = jax.lax.map(lambda site: self._log_weight(_reader(codes), site), sites, batch_size=4096)
        levels = []
        for _ in range(max(1, math.ceil(math.log(codes.size, self.arity) - 1e-9))):
            level = jnp.pad(level, (0, -level.size % self.arity), constant_values=-jnp.inf)
            levels.append(level)
            level = jax.nn.logsumexp(level.reshape(-1, self.arity), axis=1)
        return IncrementalState(position, logdensity, (*levels, level))

    def check_state(self, state: IncrementalState) -> None:
        """Raise unless the tree of a state is that of this energy, temperature, balancing and masks."""
        found, wanted = (np.asarray(s.levels[0]) for s in (state, self.init(state.position)))
        remedy = "Another temperature or energy made it: begin anew from its position."
        rule = "a state that this kernel made"
        alike = found.shape == wanted.shape and bool(np.allclose(found, wanted, rtol=1e-3, atol=1e-3))
        gap = np.abs(np.exp(found) - np.exp(wanted)).max() if found.shape == wanted.shape else np.inf
        told = f"site weights that differ by {gap:.2g}"
        require("IncrementalGibbsWithGradients", "state", rule, told, lambda _: alike, remedy)

    def step(self, key: Key[Array, ""], state: IncrementalState) -> tuple[IncrementalState, IncrementalInfo]:
        """One transition."""
        uniforms = draw_uniforms(key, (len(state.levels) + 1,), state.levels[0].dtype)
        # Down the tree: of a node's children, one in proportion to its weight.
        site = jnp.zeros((), jnp.int32)
        for level, u in zip(state.levels[-2::-1], uniforms[2:], strict=True):
            children = jax.lax.dynamic_slice(level, (site * self.arity,), (self.arity,))
            site = site * self.arity + _pick(u, children)
        move = _pick(uniforms[1], self._log_moves(_reader(state.position.reshape(-1)), site))
        change = self.change(state, site, move)

        stays = jnp.log1p(-jnp.asarray(self.lazy, change.log_ratio.dtype))
        log_probability = jnp.minimum(change.log_ratio, 0.0) + stays
        accepted = jnp.log(uniforms[0]) < log_probability
        # Only what was touched is written, and once: selecting between whole arrays, or writing a proposal and taking
        # it back, makes XLA copy them, which costs what the tree saves.
        codes = state.position.reshape(-1)
        codes = codes.at[site].set(jnp.where(accepted, change.code.astype(codes.dtype), codes[site]))
        levels = tuple(
            level.at[index].set(jnp.where(accepted, new, level[index]), mode="promise_in_bounds")
            for level, (index, new) in zip(state.levels, change.updates, strict=True)
        )
        logdensity = state.logdensity + jnp.where(accepted, change.difference, 0.0)
        is_nan = jnp.isnan(change.log_ratio)
        info = IncrementalInfo(
            acceptance_rate=jnp.where(is_nan, 0.0, jnp.exp(log_probability)),
            is_accepted=accepted,
            log_ratio=change.log_ratio,
            site=site,
            cost=jnp.asarray(1 + change.updates[0][0].size, jnp.int32),
            status=jnp.where(is_nan, int(Status.DIVERGED), int(Status.OK)).astype(jnp.int32),
        )
        return IncrementalState(codes.reshape(state.position.shape), logdensity, levels), info

    def change(self, state: IncrementalState, site: Int[Array, ""], move: Int[Array, ""]) -> _Change:
        """What making this move would change: its log probability, the log ratio, and the tree's touched nodes."""
        codes = state.position.reshape(-1)
        beta = jnp.asarray(self.inverse_temperature, state.levels[0].dtype)
        before = _reader(codes)
        old = before(site)
        new = self.domain.target(old, move)
        difference = self.energy.site_differences(before, site)[move]
        forward = self._log_moves(before, site)[move] - state.levels[-1][0]

        def after(sites):
            return jnp.where(sites == site, new, before(sites))

        index = jnp.append(site, self.energy.neighbours(site)).astype(jnp.int32)
        values = jax.vmap(lambda touched: self._log_weight(after, touched))(index)
        updates = [(index, values)]
        for level in state.levels[:-1]:
            parents = index // self.arity
            children = parents[:, None] * self.arity + jnp.arange(self.arity, dtype=jnp.int32)[None, :]
            sums = level[children]
            # Lay the new values over the old children (at most degree + 1 of them) instead of writing them yet.
            for i in range(index.size):
                sums = jnp.where(children == index[i], values[i], sums)
            index, values = parents, jax.nn.logsumexp(sums, axis=1)
            updates.append((index, values))
        back, _ = self.domain.move(new, old)
        reverse = self._log_moves(after, site)[back] - values[0]
        log_ratio = beta * difference + reverse - forward
        return _Change(forward, log_ratio, difference, new, tuple(updates))

    def _log_moves(self, read: Read, site: Int[Array, ""]) -> Float[Array, "moves"]:
        differences = self.energy.site_differences(read, site)
        if self.site_mask is not None:
            differences = jnp.where(jnp.asarray(self.site_mask).reshape(-1)[site], differences, -jnp.inf)
        if self.category_mask is not None:
            allowed = jnp.asarray(self.category_mask).reshape(-1, self.domain.num_values)
            differences = jnp.where(allowed[site], differences, -jnp.inf)
        return log_balanced(self.balancing, differences, self.inverse_temperature)

    def _log_weight(self, read: Read, site: Int[Array, ""]) -> Float[Array, ""]:
        return jax.nn.logsumexp(self._log_moves(read, site))


def _reader(codes: Array) -> Read:
    return lambda sites: codes[sites].astype(jnp.int32)


def _pick(u: Float[Array, ""], log_weights: Float[Array, "n"]) -> Int[Array, ""]:
    return first_beyond(jnp.cumsum(jnp.exp(log_weights - jnp.max(log_weights))), u)
