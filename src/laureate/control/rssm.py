"""Recurrent state-space models: a deterministic memory and a random latent, known from an observation or predicted."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from laureate._core import require
from laureate.control.laws import DiagonalNormal, OneHot
from laureate.control.policies import Layers, make_perceptrons

__all__ = ["RSSM", "NormalisedGRU", "RSSMState", "make_rssm"]


class RSSMState(NamedTuple):
    """Where a model stands.

    memory: h. stats: the numbers of the latent's law. latent: z, drawn from it.
    """

    memory: Float[Array, "... memory"]
    stats: Float[Array, "... size"]
    latent: Float[Array, "... width"]

    @property
    def features(self) -> Float[Array, "... features"]:
        """[z, h], which the heads see."""
        return jnp.concatenate([self.latent, self.memory], axis=-1)


class NormalisedGRU(eqx.Module):
    """A gated recurrent unit with layer normalisation, as in DreamerV2's code.

    ::

        r, c, u = LayerNorm(W [x, h] + b),    h ← σ(u − 1) tanh(σ(r) c) + (1 − σ(u − 1)) h

    The reset gate multiplies what the candidate is made from, not the memory; the −1 makes it remember at first.

    linear: from [x, h] to three times the memory. norm: of all three together.
    """

    linear: Callable[[Array], Array]
    norm: Callable[[Array], Array]

    def __call__(self, x: Float[Array, " x"], memory: Float[Array, " memory"]) -> Float[Array, " memory"]:
        """The new memory."""
        reset, candidate, update = jnp.split(self.norm(self.linear(jnp.concatenate([x, memory]))), 3)
        update = jax.nn.sigmoid(update - 1)
        return update * jnp.tanh(jax.nn.sigmoid(reset) * candidate) + (1 - update) * memory


class RSSM(eqx.Module):
    """A recurrent state-space model (Hafner et al. 2019, 2021)::

        h_t = cell(elu(W [z_{t−1}, a_{t−1}]), h_{t−1}),    ẑ_t ~ p(· | h_t),    z_t ~ q(· | h_t, x_t)

    All but ``cell`` are of one example; the methods take a batch. ``action[t]`` is the one that led to step t.

    inputs: from [z, a] to what the cell takes.
    cell: from it and h to the new h.
    prior: from h to the numbers of p.
    posterior: from [h, embedded observation] to those of q.
    law: of the latents, ``OneHot`` or ``DiagonalNormal``.
    num_memory: numbers of h.
    num_actions: numbers of an action.

    >>> rssm = make_rssm(jax.random.key(0), 3, 2, law=OneHot(2, 4), memory=8, width=8)
    >>> ahead = rssm.predict(rssm.init(5), jnp.zeros((5, 2)), rssm.law.noise(jax.random.key(1), (5,)))
    >>> ahead.features.shape
    (5, 16)
    """

    inputs: Callable[[Array], Array]
    cell: Callable[[Array, Array], Array]
    prior: Callable[[Array], Array]
    posterior: Callable[[Array], Array]
    law: OneHot | DiagonalNormal
    num_memory: int = eqx.field(static=True)
    num_actions: int = eqx.field(static=True)

    def init(self, batch: int) -> RSSMState:
        """Nothing is known: zeros."""
        sizes = self.num_memory, self.law.size, self.law.width
        return RSSMState(*(jnp.zeros((batch, size)) for size in sizes))

    def predict(
        self, state: RSSMState, action: Float[Array, "batch actions"], noise: Float[Array, "batch ..."]
    ) -> RSSMState:
        """One step on without an observation; ``noise``: of the law, for one draw each."""
        if not jnp.issubdtype(action.dtype, jnp.floating):
            raise TypeError(
                f"RSSM.action must be floats of size {self.num_actions}, one-hot where discrete; got {action.dtype}."
            )
        rule = f"of {self.num_actions} numbers"
        require("RSSM", "action", rule, action.shape, lambda s: s[-1] == self.num_actions)
        x = jax.vmap(self.inputs)(jnp.concatenate([state.latent, action], axis=-1))
        memory = jax.vmap(self.cell)(x, state.memory)  # h_t
        stats = jax.vmap(self.prior)(memory)
        return RSSMState(memory, stats, self.law.draw(stats, noise))  # ẑ_t

    def update(
        self, predicted: RSSMState, embedded: Float[Array, "batch embedded"], noise: Float[Array, "batch ..."]
    ) -> RSSMState:
        """The same step with its observation."""
        stats = jax.vmap(self.posterior)(jnp.concatenate([predicted.memory, embedded], axis=-1))
        return RSSMState(predicted.memory, stats, self.law.draw(stats, noise))  # z_t

    def step(
        self, key: Array, state: RSSMState, action: Array, embedded: Array, first: Bool[Array, " batch"]
    ) -> tuple[RSSMState, RSSMState]:
        """Posterior and prior of one step; where an episode begins, what was before counts as zeros."""
        noise = self.law.noise(key, (2, first.shape[0]))
        return self._step(state, action, embedded, first, noise[0], noise[1])

    def observe(
        self,
        key: Array,
        action: Float[Array, "T batch actions"],
        embedded: Float[Array, "T batch embedded"],
        first: Bool[Array, "T batch"],
        state: RSSMState | None = None,
    ) -> tuple[RSSMState, RSSMState]:
        """Posteriors and priors of whole sequences, [T, batch, ...]; ``state``: where they go on from."""
        noise = self.law.noise(key, (2, *first.shape))

        def on(state: RSSMState, at: tuple[Array, ...]) -> tuple[RSSMState, tuple[RSSMState, RSSMState]]:
            known, predicted = self._step(state, *at)
            return known, (known, predicted)

        start = self.init(first.shape[1]) if state is None else state
        return jax.lax.scan(on, start, (action, embedded, first, noise[0], noise[1]))[1]

    def _step(
        self, state: RSSMState, action: Array, embedded: Array, first: Array, to_predict: Array, to_update: Array
    ) -> tuple[RSSMState, RSSMState]:
        clear = lambda leaf: jnp.where(first[:, None], 0.0, leaf)  # noqa: E731
        predicted = self.predict(jax.tree.map(clear, state), clear(action), to_predict)
        return self.update(predicted, embedded, to_update), predicted


def make_rssm(
    key: Array, num_embedded: int, num_actions: int, *, law: OneHot | DiagonalNormal, memory: int = 64, width: int = 64
) -> RSSM:
    """Its networks, with one hidden layer each and orthogonal weights.

    num_embedded: numbers of an embedded observation. num_actions: of an action. law: of the latents. memory: of h.
    width: of hidden layers.

    >>> rssm = make_rssm(jax.random.key(0), 3, 2, law=OneHot(2, 4), memory=8, width=8)
    >>> steps = jnp.zeros((5, 1, 2)), jnp.ones((5, 1, 3)), jnp.zeros((5, 1), bool)
    >>> posterior, prior = rssm.observe(jax.random.key(1), *steps)
    >>> posterior.latent.shape, prior.stats.shape
    ((5, 1, 8), (5, 1, 8))
    """
    sizes = (("num_embedded", num_embedded), ("num_actions", num_actions), ("memory", memory), ("width", width))
    for name, value in sizes:
        require("make_rssm", name, ">= 1", value, lambda n: n >= 1)
    elu = jax.nn.elu
    inputs, linear, prior, posterior = make_perceptrons(
        key,
        Layers((law.width + num_actions, width), 1.0, True, elu),
        Layers((width + memory, 3 * memory), 1.0),
        Layers((memory, width, law.size), 1.0, False, elu),
        Layers((memory + num_embedded, width, law.size), 1.0, False, elu),
    )
    cell = NormalisedGRU(linear, eqx.nn.LayerNorm(3 * memory))
    return RSSM(inputs, cell, prior, posterior, law, memory, num_actions)
