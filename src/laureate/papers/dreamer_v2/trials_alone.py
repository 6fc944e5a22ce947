"""Pieces of DreamerV2 alone: the balanced divergence, straight-through draws, what a prior imagines, and aggregates."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array

from laureate import control as c
from laureate._core import Status
from laureate.lab.claim import Settings

__all__ = ["aggregation", "balance", "crossroads", "straight_through"]

NEAR = (0.05, 0.1, 0.2)  # squared distances within which a picture counts as one of the true ones
BLUR = 0.1  # variance of a pixel in the open-loop likelihood


def balance(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """log10 of the error of the gradients of a divergence, beside closed forms times α and 1 − α.

    The error is relative to the norm of both closed forms together, and at least 1e-12.
    """
    del problem
    law = c.OneHot(scale.variables, scale.classes)
    drawn = jax.random.normal(key, (2, scale.rows, law.size))
    if arm.gradient == "balanced":
        loss = lambda q, p: c.kl_balance(law, q, p, arm.alpha)[0]  # noqa: E731
    else:
        loss = lambda q, p: jnp.mean(law.kl(q, p))  # noqa: E731
    found = jax.grad(loss, (0, 1))(drawn[0], drawn[1])
    log_q, log_p = (jax.nn.log_softmax(x.reshape(scale.rows, scale.variables, scale.classes)) for x in drawn)
    q, p = jnp.exp(log_q), jnp.exp(log_p)
    gap = log_q - log_p
    # ∂KL/∂(logits of p) = p − q,    ∂KL/∂(logits of q) = q (log q − log p − KL)
    to_q = (1 - arm.alpha) * q * (gap - jnp.sum(q * gap, axis=-1, keepdims=True))
    exact = (to_q / scale.rows, arm.alpha * (p - q) / scale.rows)
    wrong = sum(jnp.sum((one - two.reshape(one.shape)) ** 2) for one, two in zip(found, exact, strict=True))
    norm = sum(jnp.sum(one**2) for one in exact)
    return {"log10_error": jnp.log10(jnp.sqrt(wrong / norm) + 1e-12)}


def straight_through(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """The mean of straight-through gradients beside the exact one, both by enumeration of all draws.

    f is linear or quadratic in one-hot draws of some variables, with coefficients drawn for this seed.
    cosine: between the two. log10_bias: of their distance, as a share of the exact one's norm.
    """
    del problem
    logit_key, linear_key, square_key = jax.random.split(key, 3)
    law = c.OneHot(scale.variables, scale.classes)
    logits = jax.random.normal(logit_key, (law.size,))
    row, matrix = jax.random.normal(linear_key, (law.size,)), jax.random.normal(square_key, (law.size, law.size))
    value = (lambda z: row @ z) if arm.function == "linear" else (lambda z: row @ z + z @ matrix @ z)
    choices = np.array(list(np.ndindex(*[scale.classes] * scale.variables)))
    every = jnp.asarray(np.eye(scale.classes, dtype=np.float32)[choices].reshape(len(choices), -1))

    def expected(logits: Array) -> Array:
        return jnp.sum(jnp.exp(law.log_probability(logits[None], every)) * jax.vmap(value)(every))

    exact = jax.grad(expected)(logits)
    p = jax.nn.softmax(logits.reshape(scale.variables, scale.classes))
    middle = jnp.cumsum(p, axis=1) - 0.5 * p  # the noise that draws each option
    noise = middle[np.arange(scale.variables), choices]
    if arm.estimator == "straight-through":
        each = jax.vmap(lambda one: jax.grad(lambda logits: value(law.draw(logits, one)))(logits))(noise)
    else:  # f ∇ log p
        found = jax.lax.stop_gradient(jax.vmap(lambda one: law.draw(logits, one))(noise))
        score = jax.vmap(lambda z: jax.grad(lambda logits: law.log_probability(logits, z))(logits))(found)
        each = jax.vmap(value)(found)[:, None] * score
    mean = jnp.exp(law.log_probability(logits[None], every)) @ each
    gap = jnp.linalg.norm(mean - exact) / jnp.linalg.norm(exact)
    return {
        "cosine": mean @ exact / (jnp.linalg.norm(mean) * jnp.linalg.norm(exact)),
        "log10_bias": jnp.log10(gap + 1e-9),
    }


def crossroads(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """A world model of pictures that branch; what its prior draws one step after the middle, without looking.

    What pulls the posterior, β (1 − α), is chosen on the grid by the likelihood of draws of its own, and measured on
    others.
    overlap: Σ over branches of the lesser of 1/branches and the share of drawn pictures within a squared distance of
        0.1 of it: 1 where all are sharp and as frequent as they should be; overlap_05, overlap_20: within 0.05 and
        0.2. sharp: the share within 0.1 of any branch.
    log_score: mean log-likelihood of a branch under the mixture of drawn pictures, each blurred by a variance of 0.1.
    reconstruction: the posterior's squared error of a picture.
    """
    make_key, data_key, run_key, tune_key, test_key = jax.random.split(key, 5)
    one_hot = arm.latent == "one-hot"
    law = c.OneHot(scale.variables, scale.classes) if one_hot else c.DiagonalNormal(scale.normals)
    world = c.make_world_model(make_key, (9,), 1, law=law, memory=scale.memory, width=scale.width, discount=False)
    parameters = eqx.filter(world, eqx.is_inexact_array)
    optimiser = optax.adam(scale.rate, eps=1e-5)
    shape = (scale.length, scale.batch)
    empty = jnp.zeros(shape)
    first = (jnp.arange(scale.length) == 0)[:, None] & (empty == 0)
    # The parts of a batch that are the same in all.
    batch = lambda pictures: c.Sequences(pictures, empty[..., None], empty, empty > 0, first)  # noqa: E731
    data = problem.draw(data_key, scale.length, scale.pool * scale.batch)
    data = data.reshape(scale.length, scale.pool, scale.batch, -1)

    def trained(weight: Array) -> tuple[Any, Array]:
        beta = weight / (1 - arm.alpha)

        def update(carry: Any, number: Array) -> tuple[Any, Array]:
            parameters, state = carry
            pictures = data[:, number % scale.pool]

            def loss(parameters: Any) -> tuple[Array, Any]:
                model = eqx.combine(parameters, world)
                numbers = {"beta": beta, "alpha": arm.alpha, "gamma": 0.9}
                return c.world_model_loss(jax.random.fold_in(run_key, number), model, batch(pictures), **numbers)

            slope, (told, _) = jax.grad(loss, has_aux=True)(parameters)
            updates, state = optimiser.update(slope, state)
            return (eqx.apply_updates(parameters, updates), state), told.status == int(Status.OK)

        start = parameters, optimiser.init(parameters)
        (found, _), fine = jax.lax.scan(update, start, jnp.arange(scale.updates))
        return found, jnp.mean(fine.astype(jnp.float32))

    def look(key: Array, parameters: Any) -> dict[str, Array]:
        model = eqx.combine(parameters, world)
        see_key, draw_key, own_key = jax.random.split(key, 3)
        pictures = problem.draw(see_key, scale.length, scale.batch)
        posterior, _ = model.observe(own_key, batch(pictures))
        # The last time at which the middle was seen.
        last = jax.tree.map(lambda leaf: leaf[problem.last_middle(scale.length)], posterior)
        middle = jax.tree.map(lambda leaf: jnp.repeat(leaf, scale.draws, axis=0), last)
        number = scale.batch * scale.draws
        noise = law.noise(draw_key, (number,))
        ahead = model.rssm.predict(middle, jnp.zeros((number, 1)), noise)
        # The trivial arm's latents are those of a law that knows nothing; the same noise.
        ahead = ahead._replace(latent=law.draw(jnp.where(arm.blind > 0, 0.0, ahead.stats), noise))
        drawn = jax.vmap(model.decoder)(ahead.features)
        distance = jnp.sum((drawn[:, None] - problem.ends) ** 2, axis=-1)
        nearest = distance <= jnp.min(distance, axis=1, keepdims=True)
        share = {at: jnp.mean(((distance < at) & nearest).astype(jnp.float32), axis=0) for at in NEAR}
        overlap = {at: jnp.sum(jnp.minimum(each, 1.0 / problem.branches)) for at, each in share.items()}
        log = (-0.5 * distance / BLUR - 4.5 * jnp.log(2 * jnp.pi * BLUR)).reshape(scale.batch, scale.draws, -1)
        score = jnp.mean(jax.nn.logsumexp(log, axis=1) - jnp.log(scale.draws))
        again = jax.vmap(jax.vmap(model.decoder))(posterior.features)
        return {
            "overlap": overlap[0.1],
            "overlap_05": overlap[0.05],
            "overlap_20": overlap[0.2],
            "sharp": jnp.sum(share[0.1]),
            "log_score": score,
            "reconstruction": jnp.mean(jnp.sum((again - pictures) ** 2, axis=-1)),
        }

    grid = jnp.asarray(scale.weights, jnp.float32)
    every, fine = jax.lax.map(trained, grid)
    score = jax.lax.map(lambda one: look(tune_key, one)["log_score"], every)
    best = jnp.argmax(jnp.where(fine < 1, -jnp.inf, score))  # not finite: the worst
    found = look(test_key, jax.tree.map(lambda leaf: leaf[best], every))
    return found | {"weight": grid[best], "finite": fine[best]}


def aggregation(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """By what share one number for all games changes, at most, when a game is left out."""
    del scale
    table = problem.draw(key)
    reference = table.gamer if arm.reference == "gamer" else table.record
    how: Any = arm.how
    return {
        "influence": c.top_influence(table.scores, table.random, reference, how),
        "value": c.aggregate_scores(table.scores, table.random, reference, how),
    }
