"""Attacks that follow a gradient: one interface, the walk within the ball, and FGSM, PGD and MI."""

import abc
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from laureate._core import Status, require
from laureate.loops import repeat
from laureate.robustness.balls import AbstractBall, per_image, reciprocal
from laureate.robustness.objectives import Logits, Loss, loss_of

__all__ = ["FGSM", "MI", "PGD", "AbstractAttack", "AttackInfo", "AttackState"]


class AttackState(NamedTuple):
    """Where an attack stands.

    delta: the perturbations, as large as the images. momentum: the running sum of normalised gradients.
    """

    delta: Float[Array, "b ..."]
    momentum: Float[Array, "b ..."]


class AttackInfo(NamedTuple):
    """What a step did; from a whole run every field has a leading axis of steps.

    objective: what is made large, before the step, one number an image.
    gradient_norm: ‖g‖₁ of its gradient, one an image.
    cost: forward and backward passes of one image.
    status: one an image. ``Status.DIVERGED`` where the gradient is not finite: the perturbation is left as it is.
        ``Status.NOT_CONVERGED`` where it is 0 and gives no direction.
    """

    objective: Float[Array, "b"]
    gradient_norm: Float[Array, "b"]
    cost: Int[Array, ""]
    status: Int[Array, "b"]


class AbstractAttack(eqx.Module):
    """How the gradient is made, and by which walk it is followed; what wraps an attack changes one and keeps the other.

    Random numbers are shared by all images of a batch, so that what becomes of an image does not depend on the others.
    """

    @property
    @abc.abstractmethod
    def walk(self) -> "PGD":
        """The network, the ball, the step, the momentum and the loss."""

    @property
    @abc.abstractmethod
    def num_passes(self) -> int:
        """Forward and backward passes that a gradient costs."""

    @abc.abstractmethod
    def gradient(
        self,
        key: Key[Array, ""],
        logits: Logits,
        images: Float[Array, "b ..."],
        delta: Float[Array, "b ..."],
        labels: Int[Array, "b"],
    ) -> tuple[Float[Array, "b"], Float[Array, "b ..."]]:
        """What is made large, one number an image, and its gradient by ``delta``."""

    def init(self, key: Key[Array, ""], images: Float[Array, "b ..."]) -> AttackState:
        """No perturbation, or with ``random_start`` one that is uniform in the ball."""
        walk, nothing = self.walk, jnp.zeros_like(images)
        delta = walk.ball.project(images, walk.ball.draw(key, images)) if walk.random_start else nothing
        return AttackState(delta, nothing)

    def step(
        self, key: Key[Array, ""], images: Float[Array, "b ..."], labels: Int[Array, "b"], state: AttackState
    ) -> tuple[AttackState, AttackInfo]:
        """One step: g ← ∇J(δ);  m ← μ m + g/‖g‖₁;  δ ← Π(δ + α steepest(m))."""
        walk = self.walk
        objective, gradient = self.gradient(key, walk.logits, images, state.delta, labels)
        norm = jnp.sum(jnp.abs(gradient.reshape(len(gradient), -1)), axis=1)
        fine = jnp.isfinite(norm) & jnp.isfinite(objective)
        unit = per_image(reciprocal(norm), gradient) * gradient
        momentum = walk.momentum * state.momentum + unit
        delta = walk.ball.project(images, state.delta + walk.alpha * walk.ball.steepest(momentum))
        kept = lambda new, old: jnp.where(per_image(fine, old), new, old).astype(old.dtype)  # noqa: E731
        new = jax.tree.map(kept, AttackState(delta, momentum), state)
        status = jnp.where(fine, jnp.where(norm > 0, int(Status.OK), int(Status.NOT_CONVERGED)), int(Status.DIVERGED))
        return new, AttackInfo(objective, norm, jnp.asarray(self.num_passes, jnp.int32), status.astype(jnp.int32))

    def trajectory(
        self, key: Key[Array, ""], images: Float[Array, "b ..."], labels: Int[Array, "b"]
    ) -> tuple[Float[Array, "t b ..."], AttackInfo]:
        """Every perturbation from the start to the last, ``num_steps + 1`` of them, in one compiled loop."""
        start, rest, step = self._walked(key, images, labels)
        _, (info, iterates) = repeat(step, rest, 0, self.walk.num_steps, record=lambda state: state.delta)
        return jnp.concatenate([start[None], iterates]), jax.tree.map(lambda leaf: leaf[:, 0], info)

    def run(
        self, key: Key[Array, ""], images: Float[Array, "b ..."], labels: Int[Array, "b"]
    ) -> tuple[Float[Array, "b ..."], AttackInfo]:
        """The last perturbation, and what every step did; nothing is checked (see ``generate``)."""
        _, rest, step = self._walked(key, images, labels)
        state, (info, _) = repeat(step, rest, 0, self.walk.num_steps)
        return state.delta, jax.tree.map(lambda leaf: leaf[:, 0], info)

    def _walked(self, key, images, labels):
        start_key, key = jax.random.split(key)
        state = self.init(start_key, images)
        step = lambda state, index: self.step(jax.random.fold_in(key, index), images, labels, state)  # noqa: E731
        return state.delta, state, step


def require_attack(owner: str, attack: Any) -> None:
    """What is wrapped must be an attack."""
    require(owner, "attack", "an attack, as PGD", attack, lambda a: isinstance(a, AbstractAttack))


def _require_ball(owner: str, ball: Any) -> None:
    require(owner, "ball", "Linf or L2", ball, lambda b: isinstance(b, AbstractBall), "Write Linf(8 / 255).")


class PGD(AbstractAttack):
    """Projected gradient ascent of the loss, the attack against which others are measured.

        δ ← Π(δ + α sign ∇_δ L(f(x + δ), y))          in Linf; the normalised gradient in L2

    Madry et al.: "Towards deep learning models resistant to adversarial attacks", ICLR 2018.

    logits: f, any function from a batch of images to logits ``[b, classes]``; as an Equinox module its weights may
        change without compiling anew.
    ball: `Linf` or `L2`, with ε and the range of the images' values.
    step_size: α, in the unit of the ball's norm, > 0; a tenth of ε where it is None.
    num_steps: >= 1.
    momentum: μ of the sum of normalised gradients, >= 0; 0 follows each gradient alone.
    loss: ``"cross-entropy"``, ``"margin"`` (which does not saturate) or a function of logits and labels.
    targeted: labels are then the classes to be reached, and the loss is made small.
    random_start: begin anywhere in the ball instead of at 0.

    >>> from laureate.robustness import Linf
    >>> images, labels = jnp.full((1, 2), 0.5), jnp.array([0])
    >>> attack = PGD(lambda x: x @ jnp.array([[1.0, -1], [-2, 2]]), Linf(0.1), num_steps=20)
    >>> delta, info = attack.run(jax.random.key(0), images, labels)
    >>> delta.round(3).tolist()  # against the logit of class 0 with all it may
    [[-0.10000000149011612, 0.10000000149011612]]
    """

    logits: Logits
    ball: AbstractBall
    step_size: float | Array | None = None
    num_steps: int = eqx.field(default=10, static=True)
    momentum: float | Array = 0.0
    loss: str | Loss = eqx.field(default="cross-entropy", static=True)
    targeted: bool = eqx.field(default=False, static=True)
    random_start: bool = eqx.field(default=False, static=True)

    def __check_init__(self):
        require("PGD", "logits", "a function from images to logits", self.logits, callable)
        _require_ball("PGD", self.ball)
        require("PGD", "step_size", "None or > 0", self.step_size, lambda a: a is None or a > 0)
        require("PGD", "num_steps", "an integer >= 1", self.num_steps, lambda n: isinstance(n, int) and n >= 1)
        require("PGD", "momentum", ">= 0", self.momentum, lambda m: m >= 0)
        loss_of(self.loss)

    @property
    def walk(self) -> "PGD":
        """Itself."""
        return self

    @property
    def alpha(self) -> float | Array:
        """The length of a step."""
        return self.ball.epsilon / 10 if self.step_size is None else self.step_size

    @property
    def num_passes(self) -> int:
        """One."""
        return 1

    def gradient(self, key, logits, images, delta, labels):
        """±∇_δ L(f(x + δ), y)."""
        del key
        sign = -1 if self.targeted else 1

        def objective(delta):
            values = sign * loss_of(self.loss)(logits(images + delta), labels)
            return jnp.sum(values), values  # the gradient of a sum is each image's own

        (_, values), gradient = jax.value_and_grad(objective, has_aux=True)(delta)
        return values, gradient


class FGSM(AbstractAttack):
    """One step of the full length: the cheapest attack, and the one whose parts cooperate least.

        δ = Π(ε sign ∇_x L(f(x), y))

    Goodfellow, Shlens, Szegedy: "Explaining and harnessing adversarial examples", ICLR 2015.

    logits, ball, loss, targeted: as for `PGD`.

    >>> from laureate.robustness import Linf
    >>> attack = FGSM(lambda x: x @ jnp.array([[1.0, -1], [-2, 2]]), Linf(0.1))
    >>> attack.run(jax.random.key(0), jnp.full((1, 2), 0.5), jnp.array([0]))[0].round(3).tolist()
    [[-0.10000000149011612, 0.10000000149011612]]
    """

    logits: Logits
    ball: AbstractBall
    loss: str | Loss = eqx.field(default="cross-entropy", static=True)
    targeted: bool = eqx.field(default=False, static=True)

    def __check_init__(self):
        _require_ball("FGSM", self.ball)
        _ = self.walk

    @property
    def walk(self) -> PGD:
        """A single step of length ε."""
        settings = {"loss": self.loss, "targeted": self.targeted}
        return PGD(self.logits, self.ball, self.ball.epsilon, num_steps=1, **settings)

    @property
    def num_passes(self) -> int:
        """One."""
        return 1

    def gradient(self, key, logits, images, delta, labels):
        """As `PGD`'s."""
        return self.walk.gradient(key, logits, images, delta, labels)


class MI(AbstractAttack):
    """Momentum: an attack that follows the running sum of its gradients, each made of length 1.

        m ← μ m + g/‖g‖₁,      δ ← Π(δ + α sign(m))

    Dong et al.: "Boosting adversarial attacks with momentum", CVPR 2018.

    attack: whose gradients they are.
    momentum: μ, >= 0.

    >>> from laureate.robustness import Linf
    >>> attack = MI(PGD(lambda x: x @ jnp.array([[1.0, -1], [-2, 2]]), Linf(0.1)), momentum=0.9)
    >>> float(attack.walk.momentum)
    0.9
    """

    attack: AbstractAttack
    momentum: float | Array = 1.0

    def __check_init__(self):
        require_attack("MI", self.attack)
        require("MI", "momentum", ">= 0", self.momentum, lambda m: m >= 0)

    @property
    def walk(self) -> PGD:
        """The same with momentum."""
        return eqx.tree_at(lambda walk: walk.momentum, self.attack.walk, self.momentum)

    @property
    def num_passes(self) -> int:
        """Those of the attack."""
        return self.attack.num_passes

    def gradient(self, key, logits, images, delta, labels):
        """That of the attack."""
        return self.attack.gradient(key, logits, images, delta, labels)
