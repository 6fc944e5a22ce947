"""cGML: regression with many right answers, by a latent that is found by descent and a flow that learns to find it."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.core import Tracer
from jaxtyping import Array, Float

from laureate._core import require
from laureate.generative.conditional import (
    AbstractConditional,
    ConditionalState,
    Hooks,
    Optimiser,
    absolute_error,
    status_of,
)
from laureate.generative.latents import AbstractLatent, Sphere

__all__ = ["InferredLatents", "InnerDivergenceError", "LatentFlowInfo", "LatentFlowRegressor", "Mode"]

Mode = Literal["directed", "iterated", "raw"]
TINY = 1e-12
# Below this the decoder's answer hardly depends on the latent, and descent has nothing to hold on to.
LEAST_SENSITIVITY = 1e-3
PROBES = 64


class InnerDivergenceError(ValueError):
    """The descent in the latent goes up for most pairs: its step is too long."""


class LatentFlowInfo(NamedTuple):
    """What a step reports.

    loss: mean cost at the latents found, E(x, y, z_T). first_loss: at those drawn. risen: the share of pairs whose cost
    is higher than it was. flow_loss: mean ‖Z(h, z_t) − z_{t+1}‖² over the path. copy_loss: the same of Z(h, z) = z.
    length_loss: mean (ρ − ‖z_{t+1} − z_t‖)². cost: passes, a network forward and backward over the batch. status:
    DIVERGED where one of these losses is not finite; the step is taken all the same.
    """

    loss: Array
    first_loss: Array
    risen: Array
    flow_loss: Array
    copy_loss: Array
    length_loss: Array
    cost: Array
    status: Array


class InferredLatents(NamedTuple):
    """Latents of known pairs.

    latents: those found, [batch, dim]. costs: on the way to them, [steps + 1, batch].
    """

    latents: Float[Array, "batch dim"]
    costs: Float[Array, "steps batch"]


class LatentFlowRegressor(AbstractConditional):
    """Answers for inputs that have several or a continuum of them, trained with a regression cost alone (cGML).

    A pair's latent is found by descent on the cost, a flow Z and a length ρ learn that descent without the answer, and
    the decoder learns to answer from the latent found (Ramasinghe et al. 2021)::

        z_{t+1} = Π(z_t − β ∂E/∂z),   E(x, y, z) = d(G(H(x), z), y),   z_0 ~ uniform
        Z(h, z_t) → z_{t+1},   ρ(h, z_t) → ‖z_{t+1} − z_t‖,   (H, G) ← ∇ E(x, y, z_T)
        to answer:   z ← Π(z + ρ(h, z) (Z(h, z) − z) / ‖Z(h, z) − z‖),   y = G(H(x), z)

    ρ is learned apart, for between two answers the average step is nothing, and iterating Z alone stalls there. Nothing
    makes answers as frequent as in the data: how often one is given is the size of its basin.

    encoder: H, from an x to a code h; any function of one example, with its weights.
    decoder: G, from (h, z) to an answer.
    flow: Z, from (h, z) to the next z.
    length: ρ, from (h, z) to the length of the next step, one number.
    latent: where z lives: ``Sphere(d)``, ``Box(d, r)`` or your own.
    inner_rate: β > 0. The most important setting: too small and the flow has nothing to learn, too large and E rises.
    learning_rate: of encoder and decoder, > 0.
    flow_rate: of the flow and the length, > 0; None for the learning rate.
    smoothness: weight >= 0 of E|f([h; z] + e) − f([h; z])| for f = G and Z, with normal e: the authors' Lipschitz term
        for images, 0.1 there.
    nearby: the size of e, > 0.
    num_inner: T, steps of the descent, >= 1.
    num_moves: steps of the flow to an answer, >= 0; None for T.
    cost: d(ŷ, y) of one example, any differentiable number.
    optimiser: from a learning rate to an Optax optimiser.

    >>> from laureate.generative import make_model
    >>> x = jax.random.uniform(jax.random.key(0), (200, 1))
    >>> y = jnp.where(jnp.arange(200)[:, None] % 2, x, -x)  # two right answers
    >>> model = make_model(jax.random.key(1), "latent-flow", x, y, learning_rate=1e-2, num_inner=10)
    >>> fitted = model.fit(jax.random.key(2), x, y, num_steps=200)
    >>> fitted.sample(jax.random.key(3), x[:5], num_samples=4).shape
    (4, 5, 1)
    """

    encoder: Callable[[Array], Array]
    decoder: Callable[[Array, Array], Array]
    flow: Callable[[Array, Array], Array]
    length: Callable[[Array, Array], Array]
    latent: AbstractLatent = Sphere(2)
    inner_rate: float | Array = 0.5
    learning_rate: float | Array = 1e-3
    flow_rate: float | Array | None = None
    smoothness: float | Array = 0.0
    nearby: float | Array = 1e-3
    num_inner: int = eqx.field(static=True, default=20)
    num_moves: int | None = eqx.field(static=True, default=None)
    cost: Callable[[Array, Array], Array] = eqx.field(static=True, default=absolute_error)
    optimiser: Optimiser = eqx.field(static=True, default=optax.adam)

    def __check_init__(self):
        owner = "LatentFlowRegressor"
        for name in ("inner_rate", "learning_rate", "nearby"):
            require(owner, name, "> 0", getattr(self, name), lambda v: v > 0)
        require(owner, "flow_rate", "> 0 or None", self.flow_rate, lambda v: v is None or v > 0)
        require(owner, "smoothness", ">= 0", self.smoothness, lambda v: v >= 0)
        require(owner, "num_inner", ">= 1", self.num_inner, lambda n: n >= 1)
        require(owner, "num_moves", ">= 0 or None", self.num_moves, lambda n: n is None or n >= 0)

    @property
    def networks(self) -> dict[str, Any]:
        """H and G, which answer; Z and ρ, which find the latent."""
        return {"encoder": self.encoder, "decoder": self.decoder, "flow": self.flow, "length": self.length}

    @property
    def hooks(self) -> Hooks:
        """Checks of the decoder's use of z, of the descent, and of the flow before it is used."""
        return _LatentFlowHooks(self)

    def _optimisers(self) -> tuple[optax.GradientTransformation, optax.GradientTransformation]:
        flow_rate = self.learning_rate if self.flow_rate is None else self.flow_rate
        return self.optimiser(self.learning_rate), self.optimiser(flow_rate)

    def init(self) -> ConditionalState:
        """Zero steps, the first weights, an optimiser each for (H, G) and (Z, ρ)."""
        parameters = self.arrays()
        answer, find = (made.init(part) for made, part in zip(self._optimisers(), _parts(parameters), strict=True))
        return ConditionalState(jnp.zeros((), jnp.int32), parameters, (answer, find))

    def energy(self, networks: dict[str, Any], h: Array, z: Array, y: Array) -> Array:
        """E = d(G(h, z), y) of one example."""
        return self.cost(networks["decoder"](h, z), y)

    def inner_step(self, networks: dict[str, Any], h: Array, z: Array, y: Array) -> tuple[Array, Array]:
        """E at z, and z after one step of the descent: Π(z − β (∂E/∂z) along the set); of one example."""
        value, gradient = jax.value_and_grad(self.energy, argnums=2)(networks, h, z, y)
        return value, self.latent.project(z - self.inner_rate * self.latent.tangent(z, gradient))

    def step(self, key: Array, x: Array, y: Array, state: ConditionalState) -> tuple[ConditionalState, LatentFlowInfo]:
        """Find each pair's latent with H and G as they are, Z and ρ learning at every step; then H and G learn."""
        draw_key, near_key = jax.random.split(key)
        rough = not isinstance(self.smoothness, float) or self.smoothness > 0  # else nothing is compiled for it
        frozen = self.trained(state.parameters)
        answer, find = _parts(state.parameters)
        answer_optimiser, find_optimiser = self._optimisers()
        h = jax.vmap(frozen["encoder"])(x)
        size = h[0].size + self.latent.dim
        noise = (
            self.nearby * jax.random.normal(near_key, (len(x), size), h.dtype) if rough else jnp.zeros((len(x), size))
        )

        def roughness(network, codes, z, still):
            """E|f([h; z] + e) − f([h; z])|."""
            code_noise, latent_noise = jnp.split(noise, [h[0].size], axis=1)
            moved = jax.vmap(network)(codes + code_noise.reshape(h.shape), z + latent_noise)
            return jnp.mean(jnp.abs(moved - still))

        def find_loss(parameters, z, after):
            learned = self.trained(answer | parameters)
            length = jnp.linalg.norm(after - z, axis=-1)
            there = jax.vmap(learned["flow"])(h, z)
            flow_loss = jnp.mean(jnp.sum((there - after) ** 2, axis=-1))
            length_loss = jnp.mean((_lengths(learned, h, z) - length) ** 2)
            extra = self.smoothness * roughness(learned["flow"], h, z, there) if rough else 0.0
            return flow_loss + length_loss + extra, (flow_loss, length_loss, jnp.mean(length**2))

        def inner(carry, _):
            z, find, find_state = carry
            costs, after = jax.vmap(self.inner_step, (None, 0, 0, 0))(frozen, h, z, y)
            (_, losses), gradient = eqx.filter_value_and_grad(find_loss, has_aux=True)(find, z, after)
            updates, find_state = find_optimiser.update(gradient, find_state, find)
            return (after, eqx.apply_updates(find, updates), find_state), (jnp.mean(costs), costs, losses)

        start = (self.latent.draw(draw_key, (len(x),)).astype(h.dtype), find, state.optimiser[1])
        (z, find, find_state), (means, costs, losses) = jax.lax.scan(inner, start, length=self.num_inner)

        def answer_loss(parameters):
            learned = self.trained(parameters | find)
            codes = jax.vmap(learned["encoder"])(x)
            answers = jax.vmap(learned["decoder"])(codes, z)
            found = jax.vmap(self.cost)(answers, y)
            extra = self.smoothness * roughness(learned["decoder"], codes, z, answers) if rough else 0.0
            return jnp.mean(found) + extra, found

        (_, found), gradient = eqx.filter_value_and_grad(answer_loss, has_aux=True)(answer)
        updates, answer_state = answer_optimiser.update(gradient, state.optimiser[0], answer)
        answer = eqx.apply_updates(answer, updates)
        flow_loss, length_loss, copy_loss = (jnp.mean(values) for values in losses)
        info = LatentFlowInfo(
            loss=jnp.mean(found),
            first_loss=means[0],
            risen=jnp.mean((found > costs[0]).astype(h.dtype)),
            flow_loss=flow_loss,
            copy_loss=copy_loss,
            length_loss=length_loss,
            cost=jnp.asarray(3 * self.num_inner + 2),
            status=status_of(jnp.mean(found) + flow_loss + length_loss),
        )
        return ConditionalState(state.step + 1, answer | find, (answer_state, find_state)), info

    def move(self, networks: dict[str, Any], h: Array, z: Array, mode: Mode = "directed") -> Array:
        """One step of the learned flow, of one example: ρ along Z − z (``directed``), or to Z (``iterated``)."""
        there = networks["flow"](h, z)
        if mode == "iterated":
            return self.latent.project(there)
        direction = there - z
        direction = direction / (jnp.linalg.norm(direction) + TINY)
        return self.latent.project(z + jnp.sum(networks["length"](h, z)) * direction)

    def draw(
        self,
        key: Array,
        state: ConditionalState,
        x: Array,
        mode: Mode = "directed",
        num_moves: int | None = None,
        **options: Any,
    ) -> Array:
        """One answer for one x: a latent drawn, moved by the flow, decoded; ``raw`` is without moves."""
        if options:
            raise TypeError(f"LatentFlowRegressor.draw takes mode and num_moves; got {', '.join(sorted(options))}.")
        require("LatentFlowRegressor", "mode", f"one of {get_args(Mode)}", mode, lambda m: m in get_args(Mode))
        networks = self.trained(state.parameters)
        h = networks["encoder"](x)
        start = self.latent.draw(key).astype(h.dtype)
        number = self._count_moves(mode, num_moves)
        z, _ = jax.lax.scan(lambda z, _: (self.move(networks, h, z, mode), None), start, length=number)
        return networks["decoder"](h, z)

    def _count_moves(self, mode: Mode = "directed", num_moves: int | None = None) -> int:
        chosen = num_moves if num_moves is not None else self.num_moves
        return 0 if mode == "raw" else self.num_inner if chosen is None else chosen

    def descent(self, key: Array, state: ConditionalState, x: Array, y: Array) -> InferredLatents:
        """The latents of pairs by T steps of descent from latents drawn at random."""
        networks = self.trained(state.parameters)
        h = jax.vmap(networks["encoder"])(x)

        def one(z, _):
            costs, after = jax.vmap(self.inner_step, (None, 0, 0, 0))(networks, h, z, y)
            return after, costs

        z, costs = jax.lax.scan(one, self.latent.draw(key, (len(x),)).astype(h.dtype), length=self.num_inner)
        last = jax.vmap(self.energy, (None, 0, 0, 0))(networks, h, z, y)
        return InferredLatents(z, jnp.concatenate([costs, last[None]]))


def _parts(parameters: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """(H, G) and (Z, ρ)."""
    take = lambda *names: {name: parameters[name] for name in names}  # noqa: E731
    return take("encoder", "decoder"), take("flow", "length")


def _lengths(networks: dict[str, Any], h: Array, z: Array) -> Float[Array, " batch"]:
    """ρ as one number an example, whether it comes as () or (1,)."""
    return jnp.sum(jax.vmap(networks["length"])(h, z).reshape(len(z), -1), axis=-1)


@eqx.filter_jit
def _inferred(model, key, state, x, y):
    return model.descent(key, state, x, y)


@eqx.filter_jit
def _sensitivity(model, key, x):
    networks = model.networks
    h = jax.vmap(networks["encoder"])(x)
    one, two = (jax.vmap(networks["decoder"])(h, model.latent.draw(k, (len(x),))) for k in jax.random.split(key))
    return jnp.mean(jnp.abs(one - two)) / (jnp.mean(jnp.abs(one)) + TINY)


@eqx.filter_jit
def _curvature(model, key, state, x, y):
    """L, the largest ‖∂E(z') − ∂E(z)‖ / ‖z' − z‖ over short ways."""
    networks = model.trained(state.parameters)
    h = jax.vmap(networks["encoder"])(x)
    one_key, two_key = jax.random.split(key)
    z = model.latent.draw(one_key, (len(x),))
    near = z + 1e-2 * jax.random.normal(two_key, z.shape)
    slope = jax.vmap(jax.grad(model.energy, argnums=2), (None, 0, 0, 0))
    apart = jnp.linalg.norm(slope(networks, h, near, y) - slope(networks, h, z, y), axis=-1)
    return jnp.max(apart / jnp.linalg.norm(near - z, axis=-1))


class _LatentFlowHooks(Hooks):
    def __init__(self, model: LatentFlowRegressor):
        self.model = model

    def before_training(self, key: Array, x: Array, y: Array) -> None:
        share = float(_sensitivity(self.model, key, x[:PROBES]))
        require(
            "LatentFlowRegressor",
            "decoder",
            f"a function of z that changes its answer by at least {LEAST_SENSITIVITY} of its size between two latents",
            share,
            lambda s: s >= LEAST_SENSITIVITY,
            "Is its last layer 0, or is the code h much larger than z?",
        )

    def after_training(self, key: Array, state: ConditionalState, x: Array, y: Array, infos: LatentFlowInfo) -> None:
        late = np.asarray(infos.risen)[-max(1, len(infos.risen) // 4) :]
        if late.mean() > 0.5:
            curvature = float(_curvature(self.model, key, state, x[:PROBES], y[:PROBES]))
            raise InnerDivergenceError(
                f"LatentFlowRegressor.inner_rate must be small enough for the cost to fall; got "
                f"{np.asarray(self.model.inner_rate)}, with which it rises for {late.mean():.0%} of the pairs. "
                f"Take about 1 / L = {1 / max(curvature, TINY):.2g}."
            )

    def before_sampling(self, infos: LatentFlowInfo, options: dict[str, Any]) -> dict[str, Any]:
        """``mode``, ``num_moves``; ``untrained=True`` uses a flow that is worse than none."""
        if unknown := set(options) - {"mode", "num_moves", "untrained"}:
            raise TypeError(f"sample takes mode, num_moves and untrained; got {', '.join(sorted(unknown))}.")
        allowed = options.pop("untrained", False)
        raw = self.model._count_moves(**options) == 0
        if not raw and not allowed and not any(isinstance(leaf, Tracer) for leaf in infos):
            last = slice(-max(1, len(infos.flow_loss) // 10), None)
            learned, copied = (float(np.asarray(v)[last].mean()) for v in (infos.flow_loss, infos.copy_loss))
            require(
                "LatentFlowRegressor",
                "flow",
                f"trained: its loss must be below {copied:.3g}, that of standing still",
                learned,
                lambda loss: loss < copied,
                "Train longer, raise inner_rate, sample with mode='raw', or pass untrained=True.",
            )
        return options

    def infer(self, key: Array, state: ConditionalState, x: Array, y: Array) -> InferredLatents:
        return _inferred(self.model, key, state, x, y)
