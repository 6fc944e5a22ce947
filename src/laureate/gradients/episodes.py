"""Where a particle stands in its episode: how episodes begin, run on and end, for pairs and single workers alike."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from laureate._core import as_key, require

NO_END = jnp.iinfo(jnp.int32).max

Horizon = int | tuple[int, int] | None


class Episode(eqx.Module):
    """What an episode needs to go on.

    inner: the inner state; of a pair, both signs' with an axis of two.
    key: the episode's, of both signs, as bits (a typed key cannot be saved by ``eqx.tree_serialise_leaves``):
        ``fold_in(key, 0)`` is for init, ``fold_in(key, t + 1)`` for step t.
    clock: inner steps done, t; -1 before the first episode.
    length: after how many steps it ends at the latest.
    over: it has ended, and a new one begins as soon as it may.
    ended: per sign, whether the unroll has said ``done``; who ended first waits for the other with zero loss.
    previous: per sign, the last level L_{t−1} (for telescoping losses), 0 at the start.
    """

    inner: Any
    key: Array
    clock: Array
    length: Array
    over: Array
    ended: Array
    previous: Array


def as_horizon(horizon: Any) -> Any:
    """A list becomes a tuple, so that the setting can be compiled in."""
    return tuple(horizon) if isinstance(horizon, (tuple, list)) else horizon


def check_episodes(owner: str, truncation: Any, horizon: Any, phase: Any, restart: Any, telescope: Any) -> None:
    """Raise where the settings of episodes are wrong or do not fit together."""
    require(owner, "truncation", "an integer >= 1", truncation, is_count)
    require(owner, "phase", "'lockstep' or 'random'", phase, lambda p: p in ("lockstep", "random"))
    require(owner, "restart", "'inside' or 'border'", restart, lambda r: r in ("inside", "border"))
    rule = "False, True or 'products'"
    require(owner, "telescope", rule, telescope, lambda t: isinstance(t, bool) or t == "products")
    if isinstance(horizon, tuple):
        rule = "(low, high), integers with 1 <= low <= high"
        require(owner, "horizon", rule, horizon, lambda h: len(h) == 2 and all(map(is_count, h)) and h[0] <= h[1])
    elif horizon is not None:
        remedy = "Take a shorter truncation; None lets only the unroll's `done` end an episode."
        fits = lambda h: is_count(h) and h >= truncation  # noqa: E731
        require(owner, "horizon", f"an integer >= truncation ({truncation})", horizon, fits, remedy)
        if restart == "border":
            rule = f"a multiple of truncation ({truncation}) where episodes begin on borders only"
            require(owner, "horizon", rule, horizon, lambda h: h % truncation == 0, "restart='inside' allows any.")
    if phase == "random":
        remedy = "Give the longest episode, or take phase='lockstep'."
        require(owner, "horizon", "known where phase is 'random'", horizon, lambda h: h is not None, remedy)


def is_count(value: Any) -> bool:
    """An integer >= 1, and not a boolean."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def ends_inside(truncation: int, horizon: Horizon, has_done: bool) -> bool:
    """Whether an episode can end elsewhere than on a border between truncations."""
    return has_done or isinstance(horizon, tuple) or (horizon is not None and horizon % truncation != 0)


def in_lockstep(horizon: Horizon, phase: str, has_done: bool) -> bool:
    """Whether all particles' episodes begin and end together, whatever their losses are."""
    return phase == "lockstep" and not has_done and not isinstance(horizon, tuple)


def draw_length(key: Array, horizon: Horizon, phase: str, grain: int, first: Array) -> Array:
    """How long an episode may last: T, or log-uniform in [low, high].

    With ``phase="random"`` the first episode is cut to a uniformly drawn share, in whole ``grain``s, so that afterwards
    the particles stand at all phases. The estimate of a shorter first episode is as unbiased as any.
    """
    if horizon is None:
        return jnp.asarray(NO_END, jnp.int32)
    whole_key, share_key = jax.random.split(key)
    if isinstance(horizon, tuple):
        low, high = horizon
        u = jax.random.uniform(whole_key, minval=jnp.log(float(low)), maxval=jnp.log(high + 1.0))
        length = jnp.clip(jnp.exp(u).astype(jnp.int32), low, high)
    else:
        length = jnp.asarray(horizon, jnp.int32)
    if phase == "random":
        share = grain * jax.random.randint(share_key, (), 1, length // grain + 1, jnp.int32)
        length = jnp.where(first, share, length)
    return length


def new_episode(
    key: Array, start: Callable[[Array], Any], length: Callable[[Array], Array], previous: Array
) -> Episode:
    """An episode at t = 0; ``start`` and ``length`` make its first state and its length from their keys."""
    return Episode(
        inner=start(jax.random.fold_in(key, 0)),
        key=jax.random.key_data(key),
        clock=jnp.asarray(0, jnp.int32),
        length=length(jax.random.fold_in(key, NO_END)),
        over=jnp.asarray(False),
        ended=jnp.zeros(previous.shape, bool),
        previous=jnp.zeros_like(previous),
    )


def step_key(episode: Episode) -> Array:
    """The key of the episode's next inner step: by its absolute index, so that truncations change nothing."""
    return jax.random.fold_in(as_key(episode.key), episode.clock + 1)


def run_on(
    episode: Episode, inner: Any, level: Array, done: Array, *, telescope: Any, masked: bool
) -> tuple[Episode, Array, Array]:
    """The episode after one more inner step, that step's loss, and who was alive to take it.

    ``masked`` is whether somebody may have to wait: a particle for the other sign of its pair, a pair for the border.
    Who waits keeps stepping, for what it does is thrown away: its loss is masked, and its state soon replaced.
    """
    alive = ~(episode.ended | episode.over)
    loss = level - episode.previous if telescope else level  # p_t = L_t − L_{t−1},  L_0 := 0
    clock = episode.clock + 1
    ended, over = episode.ended, clock >= episode.length
    if masked:
        loss = jnp.where(alive, loss, jnp.zeros_like(loss))
        ended = ended | done
        over = over | episode.over | jnp.all(ended)  # a pair's reset is joint: when both have ended
    previous = jnp.where(alive, level, episode.previous) if telescope else episode.previous
    return Episode(inner, episode.key, clock, episode.length, over, ended, previous), loss, alive


def where(mask: Array, new: Any, old: Any) -> Any:
    """Choose leaf by leaf; the mask is over the leading axes."""
    return jax.tree.map(lambda a, b: jnp.where(mask.reshape(mask.shape + (1,) * (a.ndim - mask.ndim)), a, b), new, old)
