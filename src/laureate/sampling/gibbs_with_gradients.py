"""Gibbs-With-Gradients: the gradient says which variable to change next."""

import abc
import functools
import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from laureate._core import require
from laureate.sampling._kernel import (
    DiscreteKernel,
    InformedState,
    KernelInfo,
    Tree,
    check_start,
    decide,
    draw_uniforms,
)
from laureate.sampling._layout import Layout
from laureate.sampling._wheel import Wheel, log_normaliser, make_wheel, spin
from laureate.sampling.balancing import Balancing, log_balanced, require_balancing

__all__ = ["GibbsWithGradients", "InformedKernel"]


class InformedKernel(DiscreteKernel):
    """A proposal informed by d̃, whatever d̃ comes from (``score``); ``GibbsWithGradients`` has the equations."""

    balancing: Balancing = eqx.field(default="sqrt", static=True, kw_only=True)
    num_flips: int = eqx.field(default=1, static=True, kw_only=True)
    radius: int = eqx.field(default=1, static=True, kw_only=True)
    max_neighbours: int = eqx.field(default=100_000, static=True, kw_only=True)
    lazy: float | Float[Array, ""] = eqx.field(default=0.0, kw_only=True)

    def __check_init__(self):
        owner = type(self).__name__
        require_balancing(owner, self.balancing)
        require(owner, "num_flips", ">= 1", self.num_flips, lambda n: n >= 1)
        require(owner, "radius", ">= 1", self.radius, lambda r: r >= 1)
        require(owner, "lazy", "in [0, 1)", self.lazy, lambda p: np.all((np.asarray(p) >= 0) & (np.asarray(p) < 1)))
        if self.radius > 1:
            require(owner, "num_flips", "1 where radius > 1", self.num_flips, lambda n: n == 1, "Use one or the other.")

    def init(self, position: Tree, key: Key[Array, ""] | None = None) -> InformedState:
        """Check ``position`` and evaluate it. ``key`` is ignored; BlackJAX's drivers pass one."""
        layout, position = self.begin(position)
        rule = f"<= the number of sites, {layout.num_sites}"
        require(type(self).__name__, "num_flips", rule, self.num_flips, lambda n: n <= layout.num_sites)
        if self.radius > 1:
            self._subsets(layout)
        logdensity, differences = self.score(layout, position)
        check_start(logdensity, differences, lambda: self.score(layout, self.scattered(layout, position))[1])
        return InformedState(position, logdensity, differences)

    def step(self, key: Key[Array, ""], state: InformedState) -> tuple[InformedState, KernelInfo]:
        """One transition."""
        # All random numbers of a step from one call: each call costs as much as a small energy.
        uniforms = draw_uniforms(key, (2 * self.num_flips + 1,), state.differences.dtype)
        layout = self.layout(state.position)
        wheel = make_wheel(self.log_weights(layout, state.differences))
        draws = spin(wheel, uniforms[1:].reshape(-1, 2))
        proposal, log_ratio = self._propose(layout, state, wheel, draws)
        return decide(uniforms[0], state, proposal, log_ratio, cost=self.num_evaluations(layout), lazy=self.lazy)

    def propose(
        self, state: InformedState, draws: Int[Array, "draws"]
    ) -> tuple[InformedState, Float[Array, ""], Float[Array, ""]]:
        """The proposal that ``draws`` lead to, log of their probability, and the log Metropolis-Hastings ratio.

        What `step` does between its two random numbers; enumerating all draws gives the transition matrix.
        """
        layout = self.layout(state.position)
        log_weights = self.log_weights(layout, state.differences)
        proposal, log_ratio = self._propose(layout, state, make_wheel(log_weights), draws)
        return proposal, jnp.sum(jax.nn.log_softmax(log_weights)[draws]), log_ratio

    @abc.abstractmethod
    def score(self, layout: Layout, position: Tree) -> tuple[Float[Array, ""], Float[Array, "moves"]]:
        """f(x) and d̃(x), the moves that the masks forbid at -inf."""

    @abc.abstractmethod
    def num_evaluations(self, layout: Layout) -> int:
        """Evaluations of the log density that a step makes."""

    def log_weights(self, layout: Layout, differences: Float[Array, "moves"]) -> Float[Array, "draws"]:
        """log g(exp d̃), unnormalised log q of every draw."""
        if self.radius > 1:
            # q(S|x) ∝ g(exp Σ_{m∈S} d̃_m) over the sets S of 1..radius moves at distinct sites
            subsets = self._subsets(layout)
            differences = jnp.sum(jnp.append(differences, 0.0)[subsets], axis=1)
        return log_balanced(self.balancing, differences, self.inverse_temperature)

    def _subsets(self, layout: Layout) -> np.ndarray:
        return _subsets(type(self).__name__, _moves_per_site(layout), self.radius, self.max_neighbours)

    def _propose(
        self, layout: Layout, state: InformedState, wheel: Wheel, draws: Int[Array, "draws"]
    ) -> tuple[InformedState, Float[Array, ""]]:
        forward = jnp.sum(wheel.rows.reshape(-1)[draws]) - self.num_flips * log_normaliser(wheel)
        moves = draws
        if self.radius > 1:
            subsets = self._subsets(layout)
            moves = jnp.asarray(subsets, jnp.int32)[draws[0]]
        sites, wanted = layout.locate(state.position, moves)
        old = layout.read(state.position, sites)
        # Drawn twice, a site takes the code drawn last.
        order = jnp.arange(moves.size)
        last = jnp.max(jnp.where(sites[:, None] == sites[None, :], order[None, :], -1), axis=1)
        new = wanted[last]

        position = layout.write(state.position, sites, new)
        logdensity, differences = self.score(layout, position)
        proposal = InformedState(position, logdensity, differences)

        # The way back draws the same sites with old and new exchanged: an involution, so the ratio of the two draws'
        # probabilities, the second at x' with its own gradient, is the Metropolis-Hastings correction.
        back, exists = layout.moves_between(sites, new, jnp.where(wanted == new, old, wanted))
        log_weights = self.log_weights(layout, differences)
        reverse_wheel = make_wheel(log_weights)
        if self.radius > 1:
            total = jnp.sum(jnp.append(differences, 0.0)[jnp.where(moves < layout.num_moves, back, layout.num_moves)])
            reverse = log_balanced(self.balancing, total, self.inverse_temperature)
        else:
            reverse = jnp.sum(jnp.where(exists, log_weights[back], -jnp.inf))
        reverse = reverse - self.num_flips * log_normaliser(reverse_wheel)
        beta = jnp.asarray(self.inverse_temperature, logdensity.dtype)
        return proposal, beta * (logdensity - state.logdensity) + reverse - forward


class GibbsWithGradients(InformedKernel):
    """Sample from exp(f(x)) over discrete x, where f can be differentiated at relaxed x.

    For energy-based models, Ising and Potts models, RBMs and discrete posteriors in which plain Gibbs sampling wastes
    its steps on variables that will not move. A step costs one value-and-gradient of f::

        d̃(x)_m  = ∇f(x)·(x'_m - x)                      first-order f(x'_m) - f(x) for every move m
        q(m|x)  = softmax_m(log g(exp d̃(x)_m))          g(t) = √t: softmax(d̃ / 2)
        accept with min{1, exp(f(x') - f(x)) q(m'|x') / q(m|x)},  m' the move back

    Grathwohl, Swersky, Hashemi, Duvenaud, Maddison: "Oops I Took A Gradient", ICML 2021.

    logdensity_fn: f, from the relaxed position (`Binary` and `Ordinal`: floats of the same shape; `Categorical`:
        one-hot rows) to a scalar. A function, or an `equinox.Module` whose parameters are then leaves.
    domain: a tree like the position's with leaves `Binary()`, `Categorical(K)`, `Ordinal(low, high)`.
    balancing: ``"sqrt"`` (the paper's), ``"barker"``, ``"min"``, ``"max"``, or a function from log t to log g(t).
    num_flips: draws a step, with replacement, >= 1; the distinct moves drawn are made together.
    radius: how many sites one draw may change; all subsets are enumerated, so only for small problems.
    max_neighbours: refuse a radius with more neighbours than this.
    lazy: probability of staying, in [0, 1). Without it, a step nearly always changes the parity of Σx, and on a
        flat target the chain has period two.
    inverse_temperature: β >= 0; the target is exp(β f).
    site_mask: a tree of booleans like the position; sites with False never change.
    category_mask: a tree of booleans (..., K) for `Categorical` leaves (None elsewhere); categories with False are
        never entered.

    Forty independent coins.

    >>> from laureate.sampling import Binary
    >>> biases = jnp.linspace(-2.0, 2.0, 40)
    >>> kernel = GibbsWithGradients(lambda x: biases @ x, Binary())
    >>> state = kernel.init(jnp.zeros(40, bool))
    >>> state, info = eqx.filter_jit(kernel.step)(jax.random.key(0), state)
    >>> int(state.position.sum()), int(info.cost)
    (1, 1)
    """

    def score(self, layout: Layout, position: Tree) -> tuple[Float[Array, ""], Float[Array, "moves"]]:
        """f(x) and d̃(x), the moves that the masks forbid at -inf."""
        return self.gradient_differences(layout, position)

    def num_evaluations(self, layout: Layout) -> int:
        """Evaluations of the log density that a step makes."""
        return 1


def _moves_per_site(layout: Layout) -> tuple[int, ...]:
    sizes = np.diff(layout.site_offsets)
    return tuple(domain.num_moves for domain, size in zip(layout.domains, sizes, strict=True) for _ in range(int(size)))


@functools.lru_cache(maxsize=8)
def _subsets(owner: str, moves_per_site: tuple[int, ...], radius: int, limit: int) -> np.ndarray:
    """All sets of 1..radius moves at distinct sites, a row each, padded by the number of moves."""
    counts = [1] + [0] * radius
    for width in moves_per_site:
        # Elementary symmetric polynomials of the widths: how many sets of r moves there are, before any is made.
        for r in range(radius, 0, -1):
            counts[r] += width * counts[r - 1]
    count = sum(counts[1:])
    remedy = f"radius {radius} has {count:,} neighbours here; lower it, or use num_flips."
    require(owner, "radius", f"one with <= {limit:,} neighbours", radius, lambda _: count <= limit, remedy)
    starts = np.concatenate([[0], np.cumsum(moves_per_site)])
    rows = []
    for r in range(1, radius + 1):
        for sites in itertools.combinations(range(len(moves_per_site)), r):
            for moves in itertools.product(*(range(starts[i], starts[i + 1]) for i in sites)):
                rows.append((*moves, *([starts[-1]] * (radius - r))))
    return np.array(rows, np.int32)
