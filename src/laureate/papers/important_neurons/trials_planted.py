"""Activations whose truth is known: units that models share or do not, and a property in one unit or in many."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from laureate import interpretation as i
from laureate.lab.claim import Settings

__all__ = ["localised", "null_level", "planted"]


# An arm names its ranking by its place here, as a float: floats are traced, so that all arms share one program.
PLACES = ("max-corr", "min-corr", "linear-regression", "standard-deviation", "random")


def order_by(key: Array, place: Array, moments: i.Moments) -> Array:
    """The first model's units, the most important first, by the ranking at that place of ``PLACES``."""
    rules = i.max_corr, i.min_corr, i.linear_regression, i.standard_deviation
    orders = [rule(moments, 0).order for rule in rules] + [i.random_order(key, len(moments.means[0])).order]
    return jnp.stack(orders)[jnp.asarray(place).astype(int)]


def moments_of(activations: list[Array]) -> i.Moments:
    """Of whole arrays."""
    stats = i.RunningMoments(tuple(x.shape[1] for x in activations))
    return stats.finish(stats.update(stats.init(), activations)[0])


def planted(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """The share of planted units among as many at the top; in every model they stand at other places, with other signs.

    Every unit has variance 1: a planted one the factor's √(s/(1 + s)) and noise of its own, s the signal-to-noise
    ratio; all others noise alone. ``arm.snr`` 0 plants nothing that is shared.
    """

    def once(key):
        factor_key, noise_key, place_key, sign_key, random_key = jax.random.split(key, 5)
        factors = jax.random.normal(factor_key, (scale.tokens, scale.planted))
        noise = jax.random.normal(noise_key, (scale.models, scale.tokens, scale.units))
        signs = jnp.where(jax.random.bernoulli(sign_key, 0.5, (scale.models, scale.planted)), 1.0, -1.0)
        share = arm.snr / (1 + arm.snr)

        def one(noise, signs, key):
            mixed = jnp.sqrt(share) * signs * factors + jnp.sqrt(1 - share) * noise[:, : scale.planted]
            order = jax.random.permutation(key, scale.units)
            units = jnp.concatenate([mixed, noise[:, scale.planted :]], axis=1)[:, order]
            return units, order < scale.planted

        activations, truth = jax.vmap(one)(noise, signs, jax.random.split(place_key, scale.models))
        order = order_by(random_key, arm.place, moments_of(list(activations)))
        return truth[0][order[: scale.planted]].mean()

    precision = jax.lax.map(once, jax.random.split(key, scale.repeats)).mean()
    return {"precision": precision, "chance": jnp.asarray(scale.planted / scale.units)}


def null_level(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """How often units of unrelated models are found to agree at the level of 5 %.

    Tokens are independent, or follow each other: x_t = a x_{t−1} + √(1 − a²) ε_t, in sentences that begin anew. The
    permutations exchange single tokens or whole sentences.
    """
    sentences = scale.tokens // scale.length

    def once(key):
        data_key, null_key = jax.random.split(key)
        noise = jax.random.normal(data_key, (scale.length, scale.models, sentences, scale.units))

        def step(before, new):
            now = arm.memory * before + jnp.sqrt(1 - arm.memory**2) * new
            return now, now

        _, rest = jax.lax.scan(step, noise[0], noise[1:])
        values = jnp.concatenate([noise[:1], rest]).transpose(1, 2, 0, 3).reshape(scale.models, -1, scale.units)
        found = i.permutation_null(
            null_key, list(values), 0, num_permutations=scale.permutations, block=scale.length if arm.sentences else 1
        )
        expected = i.expected_null((scale.models - 1) * scale.units, scale.tokens)
        return jnp.mean(found.p_value <= 0.05), jnp.mean(found.observed) / expected, jnp.any(found.adjusted <= 0.05)

    level, ratio, any_unit = jax.lax.map(once, jax.random.split(key, scale.repeats))
    return {"level": level.mean(), "over_expected": ratio.mean(), "any_unit": any_unit.astype(float).mean()}


def localised(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """A property that all models have, in one unit or turned into several: how well the first of a ranking tells it.

    ``told`` is R² of the property from the unit, or from the direction, that a ranking puts first; ``found`` the share
    of the units that carry it among as many at the top, 0 for what chance finds and 1 for all.
    """
    carriers = scale.carriers if arm.spread else 1

    def once(key):
        property_key, noise_key, turn_key, random_key = jax.random.split(key, 4)
        told = jax.random.normal(property_key, (scale.tokens,))
        noise = jax.random.normal(noise_key, (scale.models, scale.tokens, scale.units))
        turns = jax.random.normal(turn_key, (scale.models, carriers, carriers))

        def one(noise, turn):
            clean = jnp.sqrt(scale.share) * told + jnp.sqrt(1 - scale.share) * noise[:, 0]
            carried = jnp.concatenate([clean[:, None], noise[:, 1:carriers]], axis=1)
            turned = carried @ jnp.linalg.qr(turn)[0]
            return jnp.concatenate([turned, noise[:, carriers:]], axis=1)

        activations = jax.vmap(one)(noise, turns)
        moments = moments_of(list(activations))
        if arm.directions:
            first = activations[0] @ i.svcca(moments, 0, 1, variance=1.0).directions[:, 0]
            return jnp.corrcoef(first, told)[0, 1] ** 2, jnp.asarray(0.0)
        order = order_by(random_key, arm.place, moments)
        recall, chance = jnp.mean(order[:carriers] < carriers), carriers / scale.units
        return jnp.corrcoef(activations[0][:, order[0]], told)[0, 1] ** 2, (recall - chance) / (1 - chance)

    told, found = jax.lax.map(once, jax.random.split(key, scale.repeats))
    metrics = {"told": told.mean()}
    return metrics if arm.directions else metrics | {"found": found.mean()}
