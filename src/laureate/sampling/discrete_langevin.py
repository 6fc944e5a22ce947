"""Discrete Langevin proposals: every variable may change in one step."""

import functools
from typing import NamedTuple

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
from laureate.sampling._layout import Layout, split_at

__all__ = ["DiscreteLangevin"]


class _Proposal(NamedTuple):
    state: InformedState
    log_probability: Float[Array, ""]
    log_ratio: Float[Array, ""]


class DiscreteLangevin(DiscreteKernel):
    """Discrete Metropolis-adjusted Langevin (DMALA) and, with ``adjusted=False``, its unadjusted form (DULA).

    All sites change independently, guided by one gradient::

        q(x'|x) = Π_i softmax_{x'_i}( d̃(x)_{i,x'_i} / 2 - |x'_i - x_i|² / (2α) )
        accept with min{1, exp(f(x') - f(x)) q(x|x') / q(x'|x)}

    A step costs one value-and-gradient. DULA accepts every proposal and is biased; the bias falls with α.

    Zhang, Liu, Liu: "A Langevin-like sampler for discrete distributions", ICML 2022.

    logdensity_fn, domain, inverse_temperature, site_mask, category_mask: as for `GibbsWithGradients`.
    step_size: α > 0; larger changes more sites a step.
    adjusted: whether to accept or reject (DMALA) or always accept (DULA).

    >>> from laureate.sampling import Binary
    >>> kernel = DiscreteLangevin(lambda x: jnp.sum(x), Binary(), step_size=0.2)
    >>> state, info = eqx.filter_jit(kernel.step)(jax.random.key(0), kernel.init(jnp.zeros(8, bool)))
    >>> int(info.cost)
    1
    """

    step_size: float | Float[Array, ""] = eqx.field(default=0.2, kw_only=True)
    adjusted: bool = eqx.field(default=True, static=True, kw_only=True)

    def __check_init__(self):
        require("DiscreteLangevin", "step_size", "> 0", self.step_size, lambda a: np.all(np.asarray(a) > 0))

    def init(self, position: Tree, key: Key[Array, ""] | None = None) -> InformedState:
        """Check ``position`` and evaluate it. ``key`` is ignored; BlackJAX's drivers pass one."""
        layout, position = self.begin(position)
        logdensity, differences = self.gradient_differences(layout, position)
        check_start(
            logdensity, differences, lambda: self.gradient_differences(layout, self.scattered(layout, position))[1]
        )
        return InformedState(position, logdensity, differences)

    def step(self, key: Key[Array, ""], state: InformedState) -> tuple[InformedState, KernelInfo]:
        """One transition."""
        layout = self.layout(state.position)
        accept, *rest = split_at(
            draw_uniforms(key, (layout.num_sites + 1,), state.differences.dtype),
            np.append(0, layout.site_offsets + 1),
        )
        choices = []
        for log_probs, u in zip(self.log_probabilities(layout, state.differences), rest, strict=True):
            ends = jnp.cumsum(jnp.exp(log_probs), axis=1)
            # The first choice whose cumulated probability exceeds u; scaled by the last, so one always does.
            choices.append(jnp.sum(ends <= (u * ends[:, -1])[:, None], axis=1).astype(jnp.int32))
        proposal = self.propose(state, jnp.concatenate(choices))
        log_ratio = proposal.log_ratio
        if not self.adjusted:
            log_ratio = jnp.where(jnp.isnan(log_ratio), log_ratio, 0.0)
        return decide(accept[0], state, proposal.state, log_ratio, cost=1)

    def propose(self, state: InformedState, choices: Int[Array, "sites"]) -> _Proposal:
        """The proposal in which site i stays (choice 0) or makes its move number choice - 1."""
        layout = self.layout(state.position)
        parts = split_at(choices, layout.site_offsets)
        old = [leaf.reshape(-1).astype(jnp.int32) for leaf in jax.tree.leaves(state.position)]
        new = [
            jnp.where(choice == 0, code, domain.target(code, choice - 1))
            for domain, code, choice in zip(layout.domains, old, parts, strict=True)
        ]
        leaves = zip(new, jax.tree.leaves(state.position), strict=True)
        position = layout.structure.unflatten([code.astype(leaf.dtype).reshape(leaf.shape) for code, leaf in leaves])
        logdensity, differences = self.gradient_differences(layout, position)
        back = []
        for domain, start, end in zip(layout.domains, new, old, strict=True):
            move, _ = domain.move(start, end)
            back.append(jnp.where(start == end, 0, move + 1))
        forward = _total(self.log_probabilities(layout, state.differences), parts)
        reverse = _total(self.log_probabilities(layout, differences), back)
        beta = jnp.asarray(self.inverse_temperature, logdensity.dtype)
        log_ratio = beta * (logdensity - state.logdensity) + reverse - forward
        return _Proposal(InformedState(position, logdensity, differences), forward, log_ratio)

    def log_probabilities(
        self, layout: Layout, differences: Float[Array, "moves"]
    ) -> list[Float[Array, "sites moves"]]:
        """For each leaf, log q of staying (column 0) and of every move, a row a site."""
        beta = jnp.asarray(self.inverse_temperature, differences.dtype)
        alpha = jnp.asarray(self.step_size, differences.dtype)
        result = []
        for domain, part in zip(layout.domains, split_at(differences, layout.move_offsets), strict=True):
            d = part.reshape(-1, domain.num_moves)
            distance = jnp.asarray(domain.squared_distances, d.dtype)[None, :]
            # d̃/2 - |x'_i - x_i|²/(2α)
            logits = jnp.where(
                d == -jnp.inf, -jnp.inf, beta * jnp.where(d == -jnp.inf, 0.0, d) / 2 - distance / (2 * alpha)
            )
            result.append(jax.nn.log_softmax(jnp.pad(logits, ((0, 0), (1, 0))), axis=1))
        return result


def _total(log_probs: list[Float[Array, "sites moves"]], choices: list[Int[Array, "sites"]]) -> Float[Array, ""]:
    chosen = [jnp.sum(jnp.take_along_axis(p, c[:, None], axis=1)) for p, c in zip(log_probs, choices, strict=True)]
    return functools.reduce(jnp.add, chosen)
