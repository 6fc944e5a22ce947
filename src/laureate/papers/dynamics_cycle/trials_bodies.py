"""What dynamics cannot tell, and bodies that act differently: offsets, rotations, gears, masses."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from laureate import control as c
from laureate._core import Status
from laureate.lab.claim import Settings
from laureate.papers.dynamics_cycle.trials import (
    control,
    data_of,
    distance,
    gain,
    method_of,
    random_action,
    recovered,
)

__all__ = ["Shifted", "bodies", "displaced", "offset", "physics"]


class Shifted(eqx.Module):
    """A map whose first outputs are off by a constant that it can learn to take back."""

    network: Any
    offset: Array

    def __call__(self, x: Array) -> Array:
        """G(x) + offset."""
        return self.network(x) + self.offset


def offset(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """A free mass: are its changes found, and where it is?

    G begins off by an offset of its positions (plane) that is drawn, of one deviation; the arm "first" keeps the map as
    it begins. The metrics are those of ``displaced``.
    """
    world_key, data_key, make_key, shift_key, train_key = jax.random.split(key, 5)
    problem = problem.drawn(world_key)
    data = data_of(data_key, problem, scale)
    plane = problem.kind == "plane"
    size = data.truth.shape[-1]
    if arm.method == "mean":
        middle = jnp.mean(data.y.observation, axis=0)
        translate, fine, more = (lambda _: middle), jnp.asarray(True), {}
    else:
        model, better = method_of(make_key, arm, data, scale)
        more = {"forward_gain": better}
        drawn = jax.random.normal(shift_key, (2,))
        shift = jnp.zeros(size).at[:2].set(drawn / jnp.linalg.norm(drawn) * jnp.sqrt(2.0)) * plane
        model = eqx.tree_at(lambda m: m.state_map, model, Shifted(model.state_map, shift))
        model = eqx.tree_at(lambda m: m.learning_rate, model, scale.rate)
        length, start = 0 if arm.method == "first" else scale.steps, model.init(data.x, data.y)
        state, told = model.train(train_key, data.x, data.y, start, num_steps=length, batch=scale.batch)
        translate, fine = (lambda x: model.translate(x[None], state)[0]), jnp.all(told.status == int(Status.OK))
    before, after = (jax.vmap(translate)(rows) for rows in (data.held_x.observation, data.held_x.following))
    following = jax.vmap(problem.step_x)(data.truth, data.held_x.action)
    told_metrics = displaced(problem.kind, (before, after), (data.truth, following))
    score = distance(translate, data, scale.compared)
    return told_metrics | more | {"distance": score, "finite": fine.astype(jnp.float32)}


def displaced(kind: str, made: tuple[Array, Array], real: tuple[Array, Array]) -> dict[str, Array]:
    """How states and next states as a map makes them lie to those that are.

    place: the mean error of the position over its deviation (plane), or the angle by which all is turned, in radians
    (circle). change: the mean absolute error of the change in a step (plane) or of the velocity (circle), over its
    deviation. change_gain: how many times smaller it is than that of the best constant. coherence: of the turns of all
    rows (circle), 1 where the map is a rotation.
    """
    (before, after), (truth, following), more = made, real, {}
    deviation = jnp.std(truth, axis=0)
    if kind == "plane":
        place = jnp.mean(jnp.abs(jnp.mean(before - truth, axis=0) / deviation)[:2])
        found, wanted = after - before, following - truth
    else:
        turned = jnp.arctan2(before[:, 1], before[:, 0]) - jnp.arctan2(truth[:, 1], truth[:, 0])
        up, along = jnp.mean(jnp.sin(turned)), jnp.mean(jnp.cos(turned))
        place, more = jnp.abs(jnp.arctan2(up, along)), {"coherence": jnp.hypot(up, along)}
        found, wanted = after[:, 2:], following[:, 2:]  # the velocity: what a turn leaves alone
    scaled = lambda rows: jnp.mean(jnp.abs(rows) / (jnp.std(wanted, axis=0) + 1e-9))  # noqa: E731
    change, still = scaled(found - wanted), scaled(wanted - jnp.mean(wanted, axis=0))
    error = jnp.mean(jnp.abs(before - truth) / deviation)
    logs = {"log_place": jnp.log(place + 1e-3), "log_change": jnp.log(change), "log_error": jnp.log(error)}
    return {"place": place, "change": change, "change_gain": still / change} | more | logs


def bodies(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """Another sensor and turned actions: G, H and P in turns, together, or G alone with H and P as they begin.

    action_error: mean |P(y, u) − a| for the action a that does what u does.
    """
    world_key, data_key, make_key, train_key, act_key = jax.random.split(key, 5)
    problem = problem.drawn(world_key)
    data = data_of(data_key, problem, scale)
    if arm.method == "random":
        (low,) = control(act_key, problem, scale, random_action)
        nothing = jnp.asarray(0.0)
        return {"return_": low, "recovered": nothing, "finite": nothing + 1.0}
    if arm.method == "as-is":
        return recovered(act_key, problem, problem.policy, scale) | {"finite": jnp.asarray(1.0)}
    first_key, forward_key = jax.random.split(make_key)
    weights = {"dynamics": arm.dynamics, "adversarial": arm.adversarial, "ahead": arm.ahead}
    weights |= {"action_adversarial": arm.action_adversarial, "action_cycle": arm.action_cycle}
    model = c.make_dynamics_cycle(
        first_key, data.x, data.y, width=scale.width, acts=True, learning_rate=scale.rate, **weights
    )
    model, fit = model.fit_forward(forward_key, data.y, scale.forward_steps, batch=64)
    turns = {"turns": ("states", "actions"), "joint": ("both", "both"), "first": ("states", "states")}[arm.method]

    def turn(state, phase):
        return model.train(train_key, data.x, data.y, state, num_steps=scale.steps, batch=scale.batch, phase=phase)

    def one(state, _):
        state, first = turn(state, turns[0])
        state, second = turn(state, turns[1])
        return state, jnp.all(first.status == int(Status.OK)) & jnp.all(second.status == int(Status.OK))

    state, fine = jax.lax.scan(one, model.init(data.x, data.y), length=scale.rounds)
    act = model.transfer(problem.policy, state)
    result = recovered(act_key, problem, lambda y: act(problem.see(y)), scale)
    back = model.maps(state)[2]
    y, u = data.held_y.observation, data.held_y.action
    made = jax.vmap(back)(model.y_units(y), u)  # pyright: ignore[reportOptionalCall, reportArgumentType]
    wanted = jax.vmap(problem.exact_back)(y, u)
    guess = model.translate(data.held_x.observation, state)
    error = jnp.mean(jnp.abs(guess - data.truth) / jnp.std(data.truth, axis=0))
    more = {"log_error": jnp.log(error), "action_error": jnp.mean(jnp.abs(made - wanted)), "forward_gain": gain(fit)}
    return result | more | {"finite": jnp.all(fine).astype(jnp.float32)}


def same_state(x: Array) -> Array:
    """G where both domains show the same."""
    return x


def physics(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """A heavier body under the policy of a lighter one: actions by P, learned, exact, or as they are.

    Steps of both are made with Y's policy and noise, as in the paper. saturated: the share of exact actions beyond what
    the motors can do, which no map can mend.
    """
    data_key, make_key, forward_key, train_key, act_key = jax.random.split(key, 5)
    follow = lambda noise, y: jnp.clip(problem.policy(y) + scale.noise * noise, -1, 1)  # noqa: E731
    data = data_of(data_key, problem, scale, follow)
    fine = jnp.asarray(1.0)
    act = {
        "direct": lambda _, y: problem.policy(y),
        "exact": lambda _, y: problem.exact_back(y, problem.policy(y)),
        "random": random_action,
    }.get(arm.method)
    held = data.held_y
    wanted = jax.vmap(problem.exact_back)(held.observation, held.action)
    result = {"saturated": jnp.mean((jnp.abs(wanted) > 1).astype(jnp.float32))}
    if act is None:
        model = c.make_dynamics_cycle(
            make_key,
            data.x,
            data.y,
            width=scale.width,
            acts=True,
            encoder=same_state,
            learning_rate=scale.rate,
            dynamics=arm.dynamics,
            adversarial=0.0,
            ahead=0.0,
            action_adversarial=arm.action_adversarial,
            action_cycle=arm.action_cycle,
        )
        model = eqx.tree_at(lambda m: m.x_units, model, model.y_units)  # G is the identity: one unit for both
        if arm.forward == "fitted":
            model, fit = model.fit_forward(forward_key, data.y, scale.forward_steps, batch=64)
            result["forward_gain"] = gain(fit)
        else:
            model = eqx.tree_at(lambda m: m.forward, model, c.Simulator(problem.step, model.y_units))  # pyright: ignore[reportArgumentType]
        state, told = model.train(
            train_key,
            data.x,
            data.y,
            model.init(data.x, data.y),
            num_steps=scale.steps,
            batch=scale.batch,
            phase="actions",
        )
        fine = jnp.all(told.status == int(Status.OK)).astype(jnp.float32)
        policy = model.transfer(problem.policy, state)
        act = lambda _, y: policy(y)  # noqa: E731
        back = model.maps(state)[2]
        made = jax.vmap(back)(model.y_units(held.observation), held.action)  # pyright: ignore[reportOptionalCall, reportArgumentType]
        result["action_error"] = jnp.mean(jnp.abs(jnp.clip(made, -1, 1) - jnp.clip(wanted, -1, 1)))
    exact = lambda _, y: problem.exact_back(y, problem.policy(y))  # noqa: E731
    own, best = control(act_key, problem, scale, act, exact)
    return result | {"return_": own, "return_exact": best, "log_cost": jnp.log(-own), "finite": fine}
