"""The interaction-reduced attack: an attack that is kept from relying on units that only work together."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from laureate._core import require
from laureate.robustness.attack import PGD, AbstractAttack, require_attack
from laureate.robustness.interactions import cuts
from laureate.robustness.players import Players, check_shapes, perturbation_game

__all__ = ["InteractionReduced"]

PENALTIES = {
    "signed": lambda cut: cut,
    "positive": lambda cut: jnp.maximum(cut, 0),
    "absolute": jnp.abs,
}


class InteractionReduced(AbstractAttack):
    """Less interaction within the perturbation, beside what any other attack makes large.

        J(δ) = L(f(x + δ), y) - λ 1/M Σ_m T(S_m),      T(S) = v(N) - v(N∖S) - v(S) + v(∅)

    with S_m random sets of k players and v(S) the margin with the perturbation on S alone. In a game of pairwise terms
    E T = k (n - k) E I_ij, a share of all interaction that λ multiplies; λ also scales with the network's logits.

    Wang et al.: "A unified approach to interpreting and boosting adversarial transferability", ICLR 2021.

    attack: whose gradient is followed beside: `PGD`, `MI`, `VR`, ... Smoothing that is wrapped around this one
        (``TI(InteractionReduced(...))``) acts on the penalty as well, as in the authors' code.
    players: the units, by `grid_players` or `players_from`.
    strength: λ, >= 0; infinity leaves the loss out and follows the penalty alone.
    num_subsets: M, >= 1.
    subset_size: k, 1 .. n - 1; an eighth of the players where it is None, as the authors have 32 of 256.
    replacement: draw the k players with replacement, as the authors do: a set may then have fewer than k.
    penalty: of each T: ``"signed"`` as it is; ``"positive"`` max(T, 0); ``"absolute"`` |T|. The first goes on below 0,
        where large λ destroys the attack.

    All sets go through the network in one call, 2M + 2 copies of the batch.

    >>> from laureate.robustness import Linf, grid_players
    >>> logits = lambda x: jnp.stack([x.sum((1, 2)), x[:, 0, 0] * x[:, 1, 1]], axis=1)
    >>> plain = PGD(logits, Linf(0.1), num_steps=5)
    >>> attack = InteractionReduced(plain, grid_players((2, 2), 2), num_subsets=4)
    >>> delta, info = attack.run(jax.random.key(0), jnp.full((1, 2, 2), 0.5), jnp.array([0]))
    >>> attack.num_passes, delta.shape, int(info.status.max())
    (11, (1, 2, 2), 0)
    """

    attack: AbstractAttack
    players: Players
    strength: float | Array = 1.0
    num_subsets: int = eqx.field(default=32, static=True)
    subset_size: int | None = eqx.field(default=None, static=True)
    replacement: bool = eqx.field(default=True, static=True)
    penalty: Literal["signed", "positive", "absolute"] = eqx.field(default="signed", static=True)

    def __check_init__(self):
        owner, count = "InteractionReduced", self.players.count
        require_attack(owner, self.attack)
        require(owner, "strength", ">= 0", self.strength, lambda s: s >= 0)
        require(owner, "num_subsets", "an integer >= 1", self.num_subsets, lambda m: isinstance(m, int) and m >= 1)
        rule = f"None or an integer in [1, {count - 1}], for {count} players"
        fits = lambda k: k is None or (isinstance(k, int) and 1 <= k < count)  # noqa: E731
        require(owner, "subset_size", rule, self.subset_size, fits)
        require(owner, "penalty", f"one of {', '.join(map(repr, PENALTIES))}", self.penalty, lambda p: p in PENALTIES)

    @property
    def walk(self) -> PGD:
        """That of the attack."""
        return self.attack.walk

    @property
    def num_passes(self) -> int:
        """Those of the attack and 2M + 2 for sets, complements, all and none; the rival costs a forward pass more."""
        return self.attack.num_passes + 2 * self.num_subsets + 2

    @property
    def size(self) -> int:
        """k."""
        return max(1, self.players.count // 8) if self.subset_size is None else self.subset_size

    def subsets(self, key: Key[Array, ""]) -> Float[Array, "m n"]:
        """M random sets, rows of 0 and 1."""
        count, shape = self.players.count, (self.num_subsets, self.size)
        if self.replacement:
            chosen = jax.random.randint(key, shape, 0, count)
            return jnp.max(jax.nn.one_hot(chosen, count), axis=1)
        places = jnp.argsort(jnp.argsort(jax.random.uniform(key, (self.num_subsets, count)), axis=1), axis=1)
        return (places < self.size).astype(float)

    def gradient(self, key, logits, images, delta, labels):
        """∇ of the attack's own objective less λ times that of the mean cut."""
        check_shapes("InteractionReduced", images, self.players)
        key, subset_key = jax.random.split(key)
        objective, gradient = self.attack.gradient(key, logits, images, delta, labels)
        subsets = self.subsets(subset_key).astype(delta.dtype)

        def mean_penalty(delta):
            # The rival is chosen on the whole perturbation and is no function of δ.
            game = perturbation_game(logits, images, delta, labels, self.players, self.walk.targeted)
            values = jnp.mean(PENALTIES[self.penalty](cuts(game, subsets)), axis=0)
            return jnp.sum(values), values

        (_, penalty), penalty_gradient = jax.value_and_grad(mean_penalty, has_aux=True)(delta)
        alone = jnp.isinf(self.strength)
        loss_weight, weight = jnp.where(alone, 0.0, 1.0), jnp.where(alone, 1.0, self.strength)
        return loss_weight * objective - weight * penalty, loss_weight * gradient - weight * penalty_gradient
