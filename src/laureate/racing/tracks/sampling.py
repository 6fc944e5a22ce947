"""Chains on an energy: how many effective samples a budget of evaluations gives."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from laureate.lab.claim import Settings
from laureate.lab.errors import UserError
from laureate.racing.tracks.clock import Clock, made, spend, traced, view
from laureate.sampling import hamming_distance, mixing

__all__ = ["facts", "trial"]

CHAINS = 8  # with fewer, all often start in one mode, never leave it, and look as if they had mixed
LONGEST = 16  # sites that the longest path changes at most


def facts(problem: Any) -> dict[str, Any]:
    """The domain as code, and how large a step is at most."""
    problem = view(problem)
    position = jax.eval_shape(problem.start, jax.random.key(0))
    if not hasattr(position, "shape"):
        raise UserError("energy.start must return one array of codes.", "Ravel the variables into one array.")
    kinds, ordinal = getattr(problem, "num_categories", None), getattr(problem, "ordinal", None)
    domain, moves = "Binary()", 1
    if kinds is not None:
        domain, moves = f"Categorical({int(kinds)})", int(kinds) - 1
    elif ordinal is not None:
        low, high = map(int, ordinal)
        domain, moves = f"Ordinal({low}, {high})", 2
    sites = int(np.prod(position.shape, dtype=int))
    absent = {}
    if sites < 3:
        absent["hamming-ball"] = f"its blocks have three sites or more, the problem has {sites}"
    return {
        "longest": max(1, min(LONGEST, sites)),
        "smallest": CHAINS * 16 * (1 + moves * sites),
        "code": {"domain": domain},
        "absent": absent,
    }


def trial(key: Any, arm: Settings, problem: Any, scale: Settings) -> dict[str, np.ndarray]:
    """Eight chains from random starts; what is seen of them lies evenly over the cost, whatever a step costs."""
    clock, energy, settings = Clock(scale), view(problem), traced(arm)
    keys = jax.random.split(key, 3)
    carry, reference = clock.run(_begin, settings, energy, keys[0], int(scale.slots))
    slots = int(scale.slots)
    if clock.pilot:
        for target in clock.targets():
            carry = (*carry[:3], jnp.asarray(0, jnp.int32), carry[4])
            end = jnp.asarray(slots)
            carry = clock.run(_advance, settings, energy, keys[1], carry, reference, _each(target), slots, end)
            clock.note(int(jnp.sum(carry[2])), ess=1.0, rhat=1.0, logdensity=0.0)
        return clock.record()
    whole = _each(clock.budget)
    for target in clock.targets():
        end = max(4, slots * target // clock.budget)
        carry = clock.run(_advance, settings, energy, keys[1], carry, reference, whole, slots, jnp.asarray(end))
        clock.note(int(jnp.sum(carry[2])), **clock.run(_judge, carry[4][:, :end], free=True))
    return clock.record()


def _each(target: int) -> jax.Array:
    """A chain's share of the cost."""
    return jnp.asarray(max(1, target // CHAINS), jnp.int32)


def _begin(settings: dict, energy: Any, key: Any, slots: int) -> tuple[Any, Any]:
    kernel = made(settings, energy=energy)
    *starts, reference = [energy.start(k) for k in jax.random.split(key, CHAINS + 1)]
    states = jax.vmap(kernel.init)(jnp.stack(starts))
    none = jnp.zeros(CHAINS, jnp.int32)
    return (states, none, none, jnp.asarray(0, jnp.int32), jnp.zeros((CHAINS, slots, 2))), reference


def _advance(
    settings: dict, energy: Any, key: Any, carry: Any, reference: Any, whole: Any, slots: int, end: Any
) -> Any:
    """On to slot ``end`` of those into which the whole cost of a chain is divided."""
    kernel = made(settings, energy=energy)

    def chain(number, state, count, cost, target):
        own = jax.random.fold_in(key, number)

        def step(state, index):
            state, info = kernel.step(jax.random.fold_in(own, index), state)
            return state, info.cost

        state, count, cost = spend(step, state, count, cost, target)
        seen = jnp.stack([state.logdensity.astype(float), hamming_distance(state.position, reference)])
        return state, count, cost, seen

    def body(carry):
        states, counts, costs, slot, seen = carry
        # In floats, for a product of two integers may be more than 32 bits hold.
        target = jnp.ceil(whole.astype(float) * (slot + 1).astype(float) / slots).astype(jnp.int32)
        states, counts, costs, now = jax.vmap(chain, in_axes=(0, 0, 0, 0, None))(
            jnp.arange(CHAINS), states, counts, costs, target
        )
        return states, counts, costs, slot + 1, seen.at[:, slot].set(now)

    return jax.lax.while_loop(lambda carry: carry[3] < end, body, carry)


def _judge(seen: jax.Array) -> dict[str, jax.Array]:
    """Of what was seen after the first tenth; a chain that never moved has one sample."""
    length = seen.shape[1]
    found = mixing(seen[:, length // 10 :])
    effective = jnp.where(jnp.isfinite(found.effective), found.effective, 1.0)
    return {
        "ess": jnp.maximum(jnp.min(effective), 1.0),
        "rhat": jnp.max(jnp.where(jnp.isfinite(found.r_hat), found.r_hat, 10.0)),
        "logdensity": jnp.mean(seen[:, length // 2 :, 0]),
    }
