"""Which operation stays: by what its removal costs (perturbation), by its weight (magnitude), or by chance."""

from typing import ClassVar, Literal

import equinox as eqx
import jax
from jaxtyping import Array, Float, Key

from laureate._core import require
from laureate.architecture.selection import AbstractSelection

__all__ = ["MagnitudeSelection", "PerturbationSelection", "RandomSelection"]


class PerturbationSelection(AbstractSelection):
    """Keep the operation without which the supernet is worst, however large its weight (DARTS-PT).

    o*_e = argmin_o accuracy(supernet | w_eo = 0),   or argmax_o loss(supernet | w_eo = 0)

    One edge after the other, the supernet tuned in between; then of every node with more than ``keep`` inputs the edge
    whose removal costs least is dropped, one at a time, each time with the others scored anew without it (the released
    code leaves dropped edges of the node in place until the node is done) (Ruochen Wang, Minhao
    Cheng, Xiangning Chen, Xiaocheng Tang and Cho-Jui Hsieh, ICLR 2021). ``select`` runs it.

    space: what may be chosen.
    criterion: what the scores are: "accuracy", the higher the better, or "loss", the lower the better.
    exclude: names of operations that are never chosen; they stay in the supernet.
    order: of the edges: "random", "fixed" (by their numbers), "reverse", or a function (key, space) -> edges.
    ties: among equal scores: "random", by the key; "first", by the operation's number, as in the released code, where
        it is ``none`` that comes first; "loss", by a second score, then by chance.

    >>> from laureate.architecture import Space, select
    >>> space = Space([("none", "skip", "conv3")] * 2)
    >>> accuracy = lambda weights: 0.1 + 0.6 * weights[0, 2] + 0.3 * weights[1, 1]  # yours: of any supernet
    >>> select(jax.random.key(0), PerturbationSelection(space), score_fn=accuracy).genotype.ops
    ('conv3', 'skip')
    """

    criterion: Literal["accuracy", "loss"] = eqx.field(default="accuracy", static=True, kw_only=True)
    uses_scores: ClassVar[bool] = True  # pyright: ignore

    def __check_init__(self):
        rule = "'accuracy' or 'loss'"
        require("PerturbationSelection", "criterion", rule, self.criterion, lambda c: c in ("accuracy", "loss"))

    def importance(
        self, key: Key[Array, ""], strength: Float[Array, " k"], scores: Float[Array, " k"]
    ) -> Float[Array, " k"]:
        """What is lost without a candidate, up to a constant: -accuracy, or the loss."""
        return -scores if self.criterion == "accuracy" else scores


class MagnitudeSelection(AbstractSelection):
    """Keep the operation with the largest weight: the rule of DARTS, without scores.

    o*_e = argmax_o softmax(α_e)_o

    Of a node with too many inputs the edge is dropped whose largest weight is smallest. Given a ``tune_fn`` to
    ``select``, the weights are learned on between decisions: the paper's ablation PT-Mag.

    space: what may be chosen.
    exclude: names of operations that are never chosen; DARTS leaves out "none".
    order, ties: as in `PerturbationSelection`; without tuning the order changes nothing.

    >>> from laureate.architecture import Space, select
    >>> rule = MagnitudeSelection(Space([("none", "skip", "conv3")]), exclude=("none",))
    >>> select(jax.random.key(0), rule, [[3.0, 1.0, 2.0]]).genotype.ops
    ('conv3',)
    """

    uses_scores: ClassVar[bool] = False  # pyright: ignore

    def importance(
        self, key: Key[Array, ""], strength: Float[Array, " k"], scores: Float[Array, " k"]
    ) -> Float[Array, " k"]:
        """The weight itself."""
        return strength


class RandomSelection(AbstractSelection):
    """Any operation, each as likely as the others: what a search must beat.

    o*_e ~ uniform

    space: what may be chosen.
    exclude: names of operations that are never chosen.
    order, ties: as in `PerturbationSelection`; neither changes anything.

    >>> from laureate.architecture import Space, select
    >>> rule = RandomSelection(Space([("none", "skip")] * 3), exclude=("none",))
    >>> select(jax.random.key(0), rule).genotype.ops
    ('skip', 'skip', 'skip')
    """

    uses_scores: ClassVar[bool] = False  # pyright: ignore

    def importance(
        self, key: Key[Array, ""], strength: Float[Array, " k"], scores: Float[Array, " k"]
    ) -> Float[Array, " k"]:
        """Chance."""
        return jax.random.uniform(key, strength.shape)
