"""Antithetic pairs driven through one truncation: noise, episodes, and what is added up on the way.

A pair is two particles, with θ+ε and θ−ε. They share the key of their first state, the data and all inner keys, and
begin their episodes together. Each keeps its own state for the whole episode: sharing it would truncate the gradient.
"""

from dataclasses import replace
from math import gcd
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from laureate.gradients.episodes import Episode, draw_length, ends_inside, new_episode, run_on, step_key, where
from laureate.gradients.noise import Shard, draw_noise, pair_keys, per_leaf, perturb, score_of, zero_scores
from laureate.gradients.unroll import advance, begin, loss_dtype, placeholder

if TYPE_CHECKING:
    from laureate.gradients.antithetic import Antithetic

EVERY_TRUNCATION = 0
ONCE_AN_EPISODE = None


class Pairs(eqx.Module):
    """All antithetic pairs; every leaf leads with an axis of pairs, by which the whole is split over devices.

    score: Σ_τ ε_τ/σ_τ² over the noise of the episode so far, like theta.
    noise: the current ε; carried between steps only where it outlives a truncation, otherwise None there.
    """

    episode: Episode
    score: Any
    noise: Any


class Tally(eqx.Module):
    """What one truncation adds up, per pair.

    weight: Σ_k (L⁺_k − L⁻_k) since the score last changed.
    total: the same times its score, for the parts before; None where the score cannot change inside a truncation.
    difference: Σ_k (L⁺_k − L⁻_k) of the whole truncation.
    loss, alive: the unroll's own losses added up, and over how many particle steps.
    done, unequal: episodes ended; inner steps during which one sign waited for the other.
    """

    weight: Array
    total: Any
    difference: Array
    loss: Array
    alive: Array
    done: Array
    unequal: Array


def unstarted_pairs(est: "Antithetic", key: Array, theta: Any, shard: Shard, clock: int = -1) -> Pairs:
    """Pairs marked as over, so that the next step begins their episodes with that step's noise."""
    inner = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), placeholder(est.unroll, key, theta))
    none = jnp.asarray(0, jnp.int32)
    episode = new_episode(key, lambda _: inner, lambda _: none, jnp.zeros(2, loss_dtype(theta)))
    episode = replace(episode, clock=jnp.asarray(clock, jnp.int32), over=jnp.asarray(True))
    everyone = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (shard.pairs.size, *leaf.shape)), episode)

    noise = jax.tree.map(lambda leaf: jnp.zeros((shard.pairs.size, *leaf.shape), leaf.dtype), theta)
    noise = None if est.redraw_every == EVERY_TRUNCATION else noise
    return Pairs(episode=everyone, score=zero_scores(theta, shard), noise=noise)


def redraw(est: "Antithetic", keys: Array, theta: Any, pairs: Pairs, due: Array | None) -> Pairs:
    """New noise for the pairs that are due (None: all); it enters the score before it weights any loss."""
    sigma = per_leaf(type(est).__name__, est.sigma, theta)
    noise = jax.tree.map(jnp.multiply, sigma, draw_noise(keys, theta))  # ε ~ N(0, σ²)
    past = where(pairs.episode.over, jax.tree.map(jnp.zeros_like, pairs.score), pairs.score)  # ξ = 0 at a reset
    score = est.accumulate(past, score_of(noise, sigma))
    if due is not None:
        noise, score = where(due, (noise, score), (pairs.noise, pairs.score))
    return Pairs(pairs.episode, score, noise)


def restart(est: "Antithetic", keys: Array, theta: Any, pairs: Pairs, begins: Array, grain: int) -> Pairs:
    """New episodes, jointly for both signs, for the pairs whose episode begins; they start from init(θ ± ε)."""
    dtype = loss_dtype(theta)

    def fresh(key, particles, clock):
        return new_episode(
            key,
            lambda k: jax.vmap(lambda particle: begin(est.unroll, k, particle))(particles),
            lambda k: draw_length(k, est.horizon, est.phase, grain, clock < 0),
            jnp.zeros(2, dtype),
        )

    episode = jax.vmap(fresh)(keys, perturb(theta, pairs.noise), pairs.episode.clock)
    return Pairs(where(begins, episode, pairs.episode), pairs.score, pairs.noise)


def run_pairs(
    est: "Antithetic", key: Array, theta: Any, pairs: Pairs, batches: Any, shard: Shard, has_done: bool
) -> tuple[Pairs, Tally]:
    """All pairs through one truncation.

    It is cut into segments inside which nothing begins, neither an episode nor new noise. Where episodes end on
    borders it is one segment, and nothing of theta's size is touched inside the loop.
    """
    every, window = est.redraw_every, est.window
    unaligned = ends_inside(window, est.horizon, has_done)
    segment = 1 if unaligned and est.begins_inside else gcd(window, every) if every else window
    grain = 1 if unaligned else window
    products = est.telescope == "products"
    one_score = segment == window and not products
    # An episode that ended because of its noise must not hand that noise on: the next one's would not be Gaussian.
    fresh_noise = every != EVERY_TRUNCATION or has_done
    sigma = per_leaf(type(est).__name__, est.sigma, theta)
    zeros = jnp.zeros(shard.pairs.size, loss_dtype(theta))
    counts = jnp.zeros(shard.pairs.size, jnp.int32)
    total = None if one_score else jax.tree.map(jnp.zeros_like, pairs.score)
    tally = Tally(zeros, total, zeros, zeros, counts, counts, counts)

    def keys(draw):
        return pair_keys(key, est.num_pairs, shard, draw)

    def telescoped(before, pairs, tally, due):
        """Second form: L_t ξ_t − L_{t−1} ξ_{t−1} is (L_t − L_{t−1}) ξ_t, counted anyhow, and L_{t−1} ε_t."""
        level = before.previous[:, 0] - before.previous[:, 1]
        level = jnp.where(due & ~before.over, level, jnp.zeros_like(level))
        own = score_of(pairs.noise, sigma)
        return replace(tally, total=jax.tree.map(lambda t, score: t + weigh(level, score), tally.total, own))

    def begin_segment(carry, index):
        """Settle the account of the old score, then new noise and new episodes where they are due."""
        before = carry[0].episode
        begins = before.over if est.begins_inside else before.over & (index == 0)  # or it waits for the border
        due = begins
        if every != EVERY_TRUNCATION and every != ONCE_AN_EPISODE:
            due = due | (~before.over & (before.clock % every == 0))

        def change(carry):
            pairs, tally = carry
            if not one_score:  # Σ_k (L⁺_k − L⁻_k)·ξ/σ², before ξ changes
                total = jax.tree.map(lambda t, score: t + weigh(tally.weight, score), tally.total, pairs.score)
                tally = replace(tally, total=total, weight=zeros)
            if every == EVERY_TRUNCATION and segment == window:
                pass  # the border's draw, above, was for all pairs
            elif fresh_noise:
                pairs = redraw(est, keys(2 * index), theta, pairs, due)
                tally = telescoped(before, pairs, tally, due) if products else tally
            else:  # an episode that begins inside a truncation has known only this truncation's noise: ξ = ε
                pairs = replace(pairs, score=where(due, score_of(pairs.noise, sigma), pairs.score))
            return restart(est, keys(2 * index + 1), theta, pairs, begins, grain), tally

        return jax.lax.cond(jnp.any(due), change, lambda carry: carry, carry)

    def run_segment(carry, x):
        index, batches = x
        pairs, tally = begin_segment(carry, index)
        particles = jax.tree.map(one_axis, perturb(theta, pairs.noise)) if fixed is None else fixed

        def body(carry, batch):
            episode, tally = carry
            return inner_step(est, particles, episode, tally, batch, masked=unaligned), None

        episode = replace(pairs.episode, inner=jax.tree.map(one_axis, pairs.episode.inner))
        (episode, tally), _ = jax.lax.scan(body, (episode, tally), batches, length=segment)
        episode = replace(episode, inner=jax.tree.map(two_axes, episode.inner))
        return (replace(pairs, episode=episode), tally), None

    if every == EVERY_TRUNCATION:
        before = pairs.episode
        pairs = redraw(est, keys(0), theta, pairs, None)
        tally = telescoped(before, pairs, tally, jnp.ones_like(before.over)) if products else tally
    fixed = None if fresh_noise else jax.tree.map(one_axis, perturb(theta, pairs.noise))
    if segment == window:
        return run_segment((pairs, tally), (0, batches))[0]
    number = window // segment
    data = jax.tree.map(lambda leaf: leaf.reshape(number, segment, *leaf.shape[1:]), batches)
    return jax.lax.scan(run_segment, (pairs, tally), (jnp.arange(number), data))[0]


def one_axis(leaf: Array) -> Array:
    """[pairs, 2, ...] as [2 pairs, ...]: products batched over one axis are faster than over two."""
    return leaf.reshape(-1, *leaf.shape[2:])


def two_axes(leaf: Array) -> Array:
    """[2 pairs, ...] as [pairs, 2, ...]."""
    return leaf.reshape(-1, 2, *leaf.shape[1:])


def inner_step(
    est: "Antithetic", particles: Any, episode: Episode, tally: Tally, batch: Any, *, masked: bool
) -> tuple[Episode, Tally]:
    """One inner step of all pairs; ``particles`` and the inner states lie along one axis, + and − alternating."""
    # The two signs of a pair get the same key and the same data.
    keys = jnp.repeat(jax.vmap(step_key)(replace(episode, inner=None)), 2, axis=0)
    batch = jax.tree.map(lambda leaf: jnp.repeat(leaf, 2, axis=0), batch) if est.batches_per_pair else batch
    axes = (0, 0, 0, 0 if est.batches_per_pair else None)
    step = jax.vmap(lambda *args: advance(est.unroll, *args), in_axes=axes)
    inner, level, done = step(keys, particles, episode.inner, batch)
    level, done = two_axes(level), two_axes(done)
    go_on = jax.vmap(lambda *args: run_on(*args, telescope=est.telescope, masked=masked))
    after, loss, alive = go_on(replace(episode, inner=None), None, level, done)
    difference = loss[:, 0] - loss[:, 1]  # step by step: two large sums would cancel badly in float32
    level = jnp.where(alive, level, jnp.zeros_like(level)) if masked else level
    tally = Tally(
        weight=tally.weight + difference,
        total=tally.total,
        difference=tally.difference + difference,
        loss=tally.loss + level.sum(axis=1),
        alive=tally.alive + alive.sum(axis=1, dtype=jnp.int32),
        done=tally.done + (after.over & ~episode.over).astype(jnp.int32),
        # Of a pair that is over already nobody waits for anybody: what it goes on computing is thrown away.
        unequal=tally.unequal + ((after.ended[:, 0] ^ after.ended[:, 1]) & ~episode.over).astype(jnp.int32),
    )
    return replace(after, inner=inner), tally


def weigh(weight: Array, score: Array) -> Array:
    """Each pair's score times its weight."""
    return weight.astype(score.dtype).reshape(-1, *(1,) * (score.ndim - 1)) * score
