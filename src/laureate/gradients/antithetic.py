"""The machinery that all evolution-strategies estimators share: antithetic pairs driven through one truncation.

A pair is two particles with θ+ε and θ−ε. They share the first state's key, the data and all inner keys, and start their
episodes together. What the estimators differ in is when the noise ε is drawn, and with which sum of noise ξ the
difference of the losses is weighted::

    g = 1/(2 N) Σ_i (L⁺_i − L⁻_i) ξ_i / σ²,     ξ_i / σ² = Σ_τ ε_iτ / σ_τ²  (the score)

The score is accumulated instead of ξ, so that σ may change inside an episode.
"""

from math import gcd
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from laureate._core import Status, require
from laureate.gradients.episodes import (
    Episode,
    Horizon,
    as_horizon,
    check_episodes,
    draw_length,
    ends_inside,
    in_lockstep,
    new_episode,
    run_on,
    where,
)
from laureate.gradients.reports import EstimatorState, Info, checked, unused_key
from laureate.gradients.unroll import (
    adopt,
    advance,
    as_theta,
    begin,
    check_batches,
    check_unroll,
    differences,
    loss_dtype,
)

EVERY_TRUNCATION = 0
ONCE_AN_EPISODE = None


class Pairs(eqx.Module):
    """All antithetic pairs; every leaf leads with an axis of pairs, so the whole is split over devices by that axis.

    score: Σ ε_τ/σ_τ² over the noise used in the episode, like theta.
    noise: the current ε where it outlives the truncation, otherwise None.
    """

    episode: Episode
    score: Any
    noise: Any


class Tally(eqx.Module):
    """What one truncation adds up, per pair.

    weight: Σ_k (L⁺_k − L⁻_k) since the score last changed; earlier parts are in ``total``, already times their score.
    """

    weight: Array
    difference: Array
    loss: Array
    alive: Array
    done: Array
    unequal: Array
    total: Any


class Shard(NamedTuple):
    """Which pairs live here: their global indices, and the mesh axis they are split over (None: all are here)."""

    pairs: Array
    axis: str | None


def as_sigma(sigma: Any) -> Any:
    """Sigma as arrays, so that a new value never recompiles."""
    return jax.tree.map(jnp.asarray, sigma)


class Antithetic(eqx.Module):
    """The settings every antithetic estimator has; see ``PersistentES`` for what they mean."""

    unroll: Any = eqx.field(converter=adopt)
    num_pairs: int = eqx.field(static=True, kw_only=True)
    truncation: int = eqx.field(static=True, kw_only=True)
    horizon: Horizon = eqx.field(static=True, kw_only=True, converter=as_horizon)
    sigma: Any = eqx.field(kw_only=True, converter=as_sigma)
    phase: str = eqx.field(static=True, kw_only=True, default="lockstep")
    telescope: bool | str = eqx.field(static=True, kw_only=True, default=False)
    restart: str = eqx.field(static=True, kw_only=True, default="inside")
    batches_per_pair: bool = eqx.field(static=True, kw_only=True, default=False)
    noise: str = eqx.field(static=True, kw_only=True, default="gaussian")
    checked: bool = eqx.field(static=True, kw_only=True, default=False)

    def __check_init__(self):
        owner = type(self).__name__
        require(owner, "num_pairs", "an integer >= 1", self.num_pairs, lambda n: isinstance(n, int) and n >= 1)
        for sigma in jax.tree.leaves(self.sigma):
            require(owner, "sigma", "> 0 and finite", sigma, lambda s: bool(jnp.all((s > 0) & jnp.isfinite(s))))
        require(
            owner,
            "noise",
            "'gaussian'",
            self.noise,
            lambda n: n == "gaussian",
            "The weight ε/σ² is the Gaussian's score function; another noise has another.",
        )
        check_episodes(owner, self.window, self.horizon, self.phase, self.restart, self.telescope)

    @property
    def window(self) -> int:
        """Inner steps of one ``step``."""
        return self.truncation

    @property
    def redraw_every(self) -> int | None:
        """How often noise is drawn: every so many inner steps of an episode, or one of the two words above."""
        return EVERY_TRUNCATION

    @property
    def begins_inside(self) -> bool:
        """Whether a new episode may begin inside a truncation; otherwise a pair that is through waits for the border."""
        return self.restart == "inside"

    def init(self, key: Array, theta: Any) -> EstimatorState:
        """The state before the first step. Episodes begin in the first step, with that step's noise."""
        theta = as_theta(type(self).__name__, theta)
        per_leaf(type(self).__name__, self.sigma, theta)
        return self.local_init(key, theta, Shard(jnp.arange(self.num_pairs), None))

    def step(self, key: Array, theta: Any, state: EstimatorState, batches: Any = None) -> tuple[Any, Any, Info]:
        """One gradient estimate from the next ``truncation`` inner steps of every particle.

        key: fresh for every step.
        theta: the parameters now; any pytree of floats.
        batches: None, or data for the unroll's steps with leading axes [truncation] (the same for all pairs), or
            [truncation, num_pairs] with ``batches_per_pair=True``. Both signs of a pair always see the same.

        Returns the gradient (like theta), the next state, and an ``Info``.
        """
        return self.local_step(key, theta, state, batches, Shard(jnp.arange(self.num_pairs), None))

    def local_init(self, key: Array, theta: Any, shard: Shard) -> EstimatorState:
        """``init`` for the pairs of one device."""
        return EstimatorState(pairs=unstarted(self, key, theta, shard), last_key=unused_key(self, key))

    def local_step(
        self, key: Array, theta: Any, state: EstimatorState, batches: Any, shard: Shard
    ) -> tuple[Any, EstimatorState, Info]:
        """``step`` for the pairs of one device."""
        theta, has_done = check_step(self, theta, state.pairs, batches, shard)
        pairs, tally = drive(self, key, theta, state.pairs, batches, shard, has_done)
        gradient, info = estimate(self, theta, pairs, tally, shard, 2 * self.num_pairs * self.window)
        gradient, last_key = checked(self, key, gradient, state, info)
        return gradient, EstimatorState(pairs=carried(self, pairs, tally, has_done), last_key=last_key), info


def unstarted(est: Antithetic, key: Array, theta: Any, shard: Shard, clock: int = -1) -> Pairs:
    """Pairs marked as over, so that the first step begins their first episodes with that step's noise.

    The inner states are placeholders; taking them from ``init`` fits any type a user may hold in a state.
    """

    def place(i):
        start = begin(est.unroll, jax.random.fold_in(key, i), theta)
        inner = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), start)
        length = jnp.asarray(0, jnp.int32)
        previous = jnp.zeros(2, loss_dtype(theta))
        episode = new_episode(jax.random.fold_in(key, i), lambda _: inner, lambda _: length, previous)
        return eqx.tree_at(lambda e: (e.clock, e.over), episode, (jnp.asarray(clock, jnp.int32), jnp.asarray(True)))

    zeros = jax.tree.map(lambda leaf: jnp.zeros((shard.pairs.size, *leaf.shape), leaf.dtype), theta)
    noise = None if est.redraw_every == EVERY_TRUNCATION else zeros
    return Pairs(episode=jax.vmap(place)(shard.pairs), score=zeros, noise=noise)


def check_step(est: Antithetic, theta: Any, pairs: Pairs | None, batches: Any, shard: Shard) -> tuple[Any, bool]:
    """Theta as arrays, and whether the unroll says ``done``; raises where theta, state, unroll or batches do not fit."""
    owner = type(est).__name__
    theta = as_theta(owner, theta)
    per_leaf(owner, est.sigma, theta)
    if pairs is not None:
        built = jax.eval_shape(lambda score: jax.tree.map(lambda leaf: leaf[0], score), pairs.score)
        if problems := differences(built, theta):
            raise ValueError(f"{owner}.step: the state was built for another theta; " + "; ".join(problems) + ".")
    leading = (est.window, shard.pairs.size) if est.batches_per_pair else (est.window,)
    meaning = "truncation, pairs" if est.batches_per_pair else "truncation"
    return theta, check_unroll(est.unroll, theta, check_batches(owner, batches, leading, meaning))


def per_leaf(owner: str, sigma: Any, theta: Any) -> Any:
    """Sigma as a tree like theta, each leaf of theta's type and broadcast against an axis of pairs."""
    leaves, structure = jax.tree.flatten(theta)
    scales = jax.tree.leaves(sigma)
    if jax.tree.structure(sigma) == jax.tree.structure(0.0) and scales[0].ndim == 0:
        scales = scales * len(leaves)
    elif jax.tree.structure(sigma) != structure:
        raise ValueError(
            f"{owner}.sigma must be a scalar or a tree like theta; sigma has the structure {jax.tree.structure(sigma)} and does "
            f"not match theta's, {structure}."
        )
    for scale, leaf in zip(scales, leaves, strict=True):
        if scale.shape not in ((), leaf.shape):
            raise ValueError(
                f"{owner}.sigma must have scalar leaves or leaves like theta's; got shape {list(scale.shape)} where theta has "
                f"{list(leaf.shape)}."
            )
    pairs = zip(scales, leaves, strict=True)
    return structure.unflatten([jnp.broadcast_to(s.astype(x.dtype), (1, *x.shape)) for s, x in pairs])


def draw_noise(key: Array, theta: Any, pairs: Array) -> Any:
    """Standard normal noise like theta for every pair, by its global index: however the pairs are split, the same."""
    leaves, structure = jax.tree.flatten(theta)

    def one(i):
        keys = jax.random.split(jax.random.fold_in(key, i), len(leaves))
        draws = [jax.random.normal(k, leaf.shape, leaf.dtype) for k, leaf in zip(keys, leaves, strict=True)]
        return structure.unflatten(draws)

    return jax.vmap(one)(pairs)


def score_of(noise: Any, sigma: Any) -> Any:
    """ε/σ²: the gradient of log N(ε; 0, σ²) with respect to the mean."""
    return jax.tree.map(lambda eps, s: eps / (s * s), noise, sigma)


def perturb(theta: Any, noise: Any) -> Any:
    """θ ± ε: leaves of shape [pairs, 2, ...]."""
    return jax.tree.map(lambda x, eps: jnp.stack([x[None] + eps, x[None] - eps], axis=1), theta, noise)


def redraw(est: Antithetic, key: Array, theta: Any, pairs: Pairs, shard: Shard, due: Array | None) -> Pairs:
    """New noise for the pairs that are due (None: all); it enters the score before it weights any loss."""
    sigma = per_leaf(type(est).__name__, est.sigma, theta)
    noise = jax.tree.map(jnp.multiply, sigma, draw_noise(key, theta, shard.pairs))
    kept = where(pairs.episode.over, jax.tree.map(jnp.zeros_like, pairs.score), pairs.score)  # ξ = 0 at a reset
    score = jax.tree.map(jnp.add, kept, score_of(noise, sigma))  # ξ_t = ξ_{t−1} + ε_t
    if due is not None:
        noise, score = where(due, (noise, score), (pairs.noise, pairs.score))
    return Pairs(pairs.episode, score, noise)


def restart(est: Antithetic, key: Array, theta: Any, pairs: Pairs, shard: Shard, grain: int) -> Pairs:
    """New episodes, jointly for both signs, for the pairs whose episode is over; they start from init(θ ± ε)."""
    dtype = loss_dtype(theta)

    def fresh(i, particles, clock):
        return new_episode(
            jax.random.fold_in(key, i),
            lambda k: jax.vmap(lambda particle: begin(est.unroll, k, particle))(particles),
            lambda k: draw_length(k, est.horizon, est.phase, grain, clock < 0),
            jnp.zeros(2, dtype),
        )

    episode = jax.vmap(fresh)(shard.pairs, perturb(theta, pairs.noise), pairs.episode.clock)
    return Pairs(where(pairs.episode.over, episode, pairs.episode), pairs.score, pairs.noise)


def drive(
    est: Antithetic, key: Array, theta: Any, pairs: Pairs, batches: Any, shard: Shard, has_done: bool
) -> tuple[Pairs, Tally]:
    """All pairs through one truncation.

    The truncation is cut into segments inside which nothing begins: no episode and no new noise. With episodes that end on
    borders it is one segment, and then nothing of theta's size is touched inside the loop.
    """
    every, window = est.redraw_every, est.window
    unaligned = ends_inside(window, est.horizon, has_done)
    inside = unaligned and est.begins_inside
    segment = 1 if inside else gcd(window, every) if every else window
    grain = 1 if unaligned else window
    sigma = per_leaf(type(est).__name__, est.sigma, theta)
    dtype = loss_dtype(theta)
    zeros = jnp.zeros(shard.pairs.size, dtype)
    counts = jnp.zeros(shard.pairs.size, jnp.int32)
    products = est.telescope == "products"
    single = segment == window and not products
    total = None if single else jax.tree.map(jnp.zeros_like, pairs.score)
    tally = Tally(zeros, zeros, zeros, counts, counts, counts, total)

    def telescoped(before, pairs, tally, due):
        """Second form: L_t ξ_t − L_{t−1} ξ_{t−1} is (L_t − L_{t−1}) ξ_t, counted anyhow, plus L_{t−1} ε_t."""
        if not products:
            return tally
        level = before.previous[:, 0] - before.previous[:, 1]
        level = jnp.where(due & ~before.over, level, jnp.zeros_like(level))
        own = score_of(pairs.noise, sigma)
        total = jax.tree.map(lambda total, own: total + weigh(level, own), tally.total, own)
        return eqx.tree_at(lambda t: t.total, tally, total)

    if every == EVERY_TRUNCATION:
        before = pairs.episode
        pairs = redraw(est, jax.random.fold_in(key, 0), theta, pairs, shard, None)
        tally = telescoped(before, pairs, tally, jnp.ones_like(before.over))

    def start(carry, index):
        """At a segment's start: settle the old score's account, then new noise and new episodes where due."""
        episode = carry[0].episode
        due = episode.over
        if every != EVERY_TRUNCATION and every != ONCE_AN_EPISODE:
            due = due | (episode.clock % every == 0)

        def change(carry):
            pairs, tally = carry
            if not single:  # Σ_k (L⁺_k − L⁻_k)·ξ/σ², before ξ changes
                total = jax.tree.map(lambda t, score: t + weigh(tally.weight, score), tally.total, pairs.score)
                tally = eqx.tree_at(lambda t: (t.total, t.weight), tally, (total, zeros))
            if every != EVERY_TRUNCATION:
                pairs = redraw(est, jax.random.fold_in(key, 2 * index), theta, pairs, shard, due)
                tally = telescoped(episode, pairs, tally, due)
            elif not single:  # an episode that begins inside a truncation has known only this one's noise: ξ = ε
                pairs = Pairs(episode, where(due, score_of(pairs.noise, sigma), pairs.score), pairs.noise)
            return restart(est, jax.random.fold_in(key, 2 * index + 1), theta, pairs, shard, grain), tally

        return jax.lax.cond(jnp.any(due), change, lambda carry: carry, carry)

    def run_segment(carry, x):
        index, batches = x
        pairs, tally = start(carry, index)
        particles = perturb(theta, pairs.noise)

        def body(carry, batch):
            return inner_step(est, particles, *carry, batch, masked=unaligned), None

        (episode, tally), _ = jax.lax.scan(body, (pairs.episode, tally), batches, length=segment)
        return (Pairs(episode, pairs.score, pairs.noise), tally), None

    if segment == window:
        (pairs, tally), _ = run_segment((pairs, tally), (0, batches))
        return pairs, tally
    num_segments = window // segment
    split = jax.tree.map(lambda leaf: leaf.reshape(num_segments, segment, *leaf.shape[1:]), batches)
    (pairs, tally), _ = jax.lax.scan(run_segment, (pairs, tally), (jnp.arange(num_segments), split))
    return pairs, tally


def inner_step(est: Antithetic, particles: Any, episode: Episode, tally: Tally, batch: Any, *, masked: bool):
    """One inner step of all pairs."""

    def pair(particles, episode, batch):
        key = jax.random.fold_in(episode.key, episode.clock)  # the same for + and −, as is the batch
        step = jax.vmap(lambda theta, inner: advance(est.unroll, key, theta, inner, batch))
        inner, level, done = step(particles, episode.inner)
        episode, loss, alive = run_on(episode, inner, level, done, telescope=est.telescope, masked=masked)
        return episode, level, loss, alive

    after, level, loss, alive = jax.vmap(pair, in_axes=(0, 0, 0 if est.batches_per_pair else None))(
        particles, episode, batch
    )
    difference = loss[:, 0] - loss[:, 1]  # step by step: two large sums would cancel badly in float32
    level = jnp.where(alive, level, jnp.zeros_like(level)) if masked else level
    tally = Tally(
        weight=tally.weight + difference,
        difference=tally.difference + difference,
        loss=tally.loss + level.sum(axis=1),
        alive=tally.alive + alive.sum(axis=1, dtype=jnp.int32),
        done=tally.done + (after.over & ~episode.over).astype(jnp.int32),
        unequal=tally.unequal + (after.ended[:, 0] ^ after.ended[:, 1]).astype(jnp.int32),
        total=tally.total,
    )
    return after, tally


def weigh(weight: Array, score: Array) -> Array:
    """Each pair's score times its weight."""
    return weight.astype(score.dtype).reshape(-1, *(1,) * (score.ndim - 1)) * score


def average(weight: Array, score: Array) -> Array:
    """Σ_i w_i ξ_i over the pairs here, as one matrix product."""
    return jnp.tensordot(weight.astype(score.dtype), score, axes=1, precision=jax.lax.Precision.HIGHEST)


def estimate(est: Antithetic, theta: Any, pairs: Pairs, tally: Tally, shard: Shard, cost: int) -> tuple[Any, Info]:
    """g = 1/(2N) Σ_i (L⁺_i − L⁻_i) ξ_i/σ² over the pairs with finite losses: one reduction over all devices."""
    sigma = per_leaf(type(est).__name__, est.sigma, theta)
    finite = is_finite(tally)
    weight = jnp.where(finite, tally.weight, jnp.zeros_like(tally.weight))
    gradient = jax.tree.map(lambda score: average(weight, score), pairs.score)
    if tally.total is not None:
        earlier = where(finite, tally.total, jax.tree.map(jnp.zeros_like, tally.total))
        gradient = jax.tree.map(lambda g, total: g + total.sum(axis=0), gradient, earlier)
    return reduce(est, gradient, sigma, pairs, tally, finite, shard, cost)


def is_finite(tally: Tally) -> Array:
    """Which pairs had only finite losses in this truncation."""
    return jnp.isfinite(tally.difference) & jnp.isfinite(tally.loss)


def reduce(
    est: Antithetic, gradient: Any, sigma: Any, pairs: Pairs, tally: Tally, finite: Array, shard: Shard, cost: int
) -> tuple[Any, Info]:
    """The sums over all pairs on all devices, in one go, and what is reported of them."""
    squares = jax.tree.map(lambda score, s: jnp.sum((score * s) ** 2).astype(tally.loss.dtype), pairs.score, sigma)
    sums = (
        gradient,
        jnp.sum(finite),
        jnp.sum(jnp.where(finite, tally.loss, jnp.zeros_like(tally.loss))),
        jnp.sum(jnp.where(finite, tally.alive, jnp.zeros_like(tally.alive))),
        jnp.sum(tally.done),
        jnp.sum(tally.unequal > 0),
        sum(jax.tree.leaves(squares)),
    )
    if shard.axis is not None:
        sums = jax.lax.psum(sums, shard.axis)
    gradient, num_finite, loss, alive, done, unequal, square = sums
    denominator = 2 * jnp.maximum(num_finite, 1)
    gradient = jax.tree.map(lambda g: g / denominator.astype(g.dtype), gradient)
    size = sum(leaf.size for leaf in jax.tree.leaves(sigma))
    return gradient, Info(
        loss=loss / jnp.maximum(alive, 1).astype(loss.dtype),
        cost=jnp.asarray(cost, jnp.int32),
        status=jnp.where(num_finite > 0, int(Status.OK), int(Status.DIVERGED)).astype(jnp.int32),
        num_nonfinite=est.num_pairs - num_finite,
        num_done=done,
        num_unequal=unequal,
        noise_rms=jnp.sqrt(square / (est.num_pairs * size)),
        difference=tally.difference,
    )


def carried(est: Antithetic, pairs: Pairs, tally: Tally, has_done: bool) -> Pairs:
    """The pairs for the next step.

    A pair that blew up begins anew, unless all episodes run in lockstep: then it waits for the common end.
    """
    episode = pairs.episode
    if not in_lockstep(est.horizon, est.phase, has_done):
        episode = eqx.tree_at(lambda e: e.over, episode, episode.over | ~is_finite(tally))
    return Pairs(episode, pairs.score, None if est.redraw_every == EVERY_TRUNCATION else pairs.noise)
