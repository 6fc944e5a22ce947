"""Quant-Noise in a character model: a small transformer, rounded, on text not seen."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array

from laureate.compression import ScalarQuantizer, dequantize, freeze, quant_noise
from laureate.lab.claim import Settings
from laureate.loops import repeat

__all__ = ["Transformer", "text"]


class Layer(eqx.Module):
    """Causal attention and a feed-forward part, each after a normalisation and with a shortcut."""

    attention: dict[str, Array]
    forward: dict[str, Array]
    norms: Array
    heads: int = eqx.field(static=True)

    def __init__(self, key: Array, size: int, heads: int):
        shapes = {"inner": (3 * size, size), "outer": (size, size), "up": (4 * size, size), "down": (size, 4 * size)}
        drawn = zip(shapes.items(), jax.random.split(key, 4), strict=True)
        made = {name: jax.random.normal(own, shape) * shape[1] ** -0.5 for (name, shape), own in drawn}
        self.attention = {name: made[name] for name in ("inner", "outer")}
        self.forward = {name: made[name] for name in ("up", "down")}
        self.norms, self.heads = jnp.ones((2, size)), heads

    def __call__(self, x: Array) -> Array:
        """``[places, size]``."""
        places, size = x.shape
        mixed = _normalised(x, self.norms[0]) @ self.attention["inner"].T
        query, key, value = mixed.reshape(places, 3, self.heads, size // self.heads).transpose(1, 2, 0, 3)
        scores = query @ key.transpose(0, 2, 1) * (size // self.heads) ** -0.5
        causal = jnp.tril(jnp.ones((places, places), bool))
        seen = jax.nn.softmax(jnp.where(causal, scores, -1e9)) @ value
        x = x + seen.transpose(1, 0, 2).reshape(places, size) @ self.attention["outer"].T
        return x + jax.nn.relu(_normalised(x, self.norms[1]) @ self.forward["up"].T) @ self.forward["down"].T


class Transformer(eqx.Module):
    """Characters in, the logits of the next one out."""

    embedding: Array
    places: Array
    layers: list[Layer]
    norm: Array
    head: Array

    def __init__(self, key: Array, characters: int, scale: Settings):
        keys = jax.random.split(key, scale.layers + 3)
        self.embedding = 0.3 * jax.random.normal(keys[0], (characters, scale.size))
        self.places = 0.3 * jax.random.normal(keys[1], (scale.context, scale.size))
        self.head = jax.random.normal(keys[2], (characters, scale.size)) * scale.size**-0.5
        self.layers = [Layer(own, scale.size, scale.heads) for own in keys[3:]]
        self.norm = jnp.ones(scale.size)

    def __call__(self, characters: Array) -> Array:
        """``[places]`` to ``[places, characters]``."""
        x = self.embedding[characters] + self.places
        for layer in self.layers:
            x = layer(x)
        return _normalised(x, self.norm) @ self.head.T


def text(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """Nats a character of the rounded model, at the rate of learning that the validation text chooses."""
    init_key, train_key = jax.random.split(key)
    if arm.kind == "frequencies":
        return {"loss": _frequencies(problem), "float_loss": _frequencies(problem), "rate": jnp.zeros(())}
    spec = ScalarQuantizer(arm.bits)
    model = Transformer(init_key, problem.num_characters, scale)

    def tried(rate: Array) -> tuple[Array, Array, Array]:
        optimiser = optax.adam(rate)

        def step(carry, number):
            model, optimiser_state = carry
            batch_key, noise_key = jax.random.split(jax.random.fold_in(train_key, number))
            starts = jax.random.randint(batch_key, (scale.batch,), 0, len(problem.train) - scale.context)
            some = problem.train[starts[:, None] + jnp.arange(scale.context + 1)]
            loss = lambda model: _loss(quant_noise(model, spec, arm.rate, noise_key), some)  # noqa: E731
            changes, optimiser_state = optimiser.update(eqx.filter_grad(loss)(model), optimiser_state)
            return (eqx.apply_updates(model, changes), optimiser_state), None

        start = model, optimiser.init(eqx.filter(model, eqx.is_inexact_array))
        trained = repeat(step, start, 0, scale.updates)[0][0]
        small = dequantize(freeze(trained, spec))
        return tuple(_loss(m, _windows(part, scale)) for m, part in _cases(small, trained, problem))  # pyright: ignore

    rates = jnp.asarray(scale.rates)
    judged, small, whole = jax.lax.map(tried, rates)
    best = jnp.argmin(judged)
    return {"loss": small[best], "float_loss": whole[best], "rate": rates[best]}


def _cases(small: Any, trained: Any, problem: Any) -> tuple[tuple[Any, Array], ...]:
    return (small, problem.validation), (small, problem.test), (trained, problem.test)


def _windows(part: Array, scale: Settings) -> Array:
    """``scale.windows`` pieces of the text, evenly spread."""
    starts = jnp.linspace(0, len(part) - scale.context - 1, scale.windows).astype(jnp.int32)
    return part[starts[:, None] + jnp.arange(scale.context + 1)]


def _loss(model: Any, windows: Array) -> Array:
    logits = jax.vmap(model)(windows[:, :-1])
    return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, windows[:, 1:]))


def _frequencies(problem: Any) -> Array:
    """Nats a character for who knows only how often each occurs, one added to every count."""
    counts = 1 + jnp.zeros(problem.num_characters).at[problem.train].add(1)
    return -jnp.mean(jnp.log(counts / jnp.sum(counts))[problem.test])


def _normalised(x: Array, gain: Array) -> Array:
    centred = x - jnp.mean(x, axis=-1, keepdims=True)
    return gain * centred * jax.lax.rsqrt(jnp.mean(centred**2, axis=-1, keepdims=True) + 1e-5)
