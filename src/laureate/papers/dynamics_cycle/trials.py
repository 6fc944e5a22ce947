"""Two domains of one thing, steps that are not paired: is the map between them found, and does a policy cross it?"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from laureate import control as c
from laureate._core import Status
from laureate.lab.claim import Settings
from laureate.problems.two_bodies import starts, walk

__all__ = ["Data", "Wrong", "control", "correspond", "data_of", "measured", "pairs", "trained"]

RIDGES = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)  # of linear alignment


class Data(NamedTuple):
    """Steps of both domains: to learn from, to choose a setting by, held out; the states behind the last ones of X.

    What chooses a setting sees neither ``held_x`` nor ``held_y`` nor ``truth``, of which errors are reported.
    """

    x: c.Transitions
    y: c.Transitions
    choose_x: c.Transitions
    choose_y: c.Transitions
    held_x: c.Transitions
    held_y: c.Transitions
    truth: Array


def random_action(noise: Array, y: Array) -> Array:
    """Whatever the state."""
    del y
    return noise


def data_of(key: Array, problem: Any, scale: Settings, act: Callable[[Array, Array], Array] = random_action) -> Data:
    """Episodes of both domains, each with its own start and actions: no state of X belongs to one of Y.

    Of those not learned from, the first half is there to choose by, the other half to be reported.
    """
    x_key, y_key = jax.random.split(key)
    total, kept = scale.episodes + scale.held, scale.episodes * scale.length
    reported = kept + scale.held // 2 * scale.length
    both = total, scale.length, problem.num_actions
    y, a, after = walk(*starts(x_key, problem.reset, *both), problem.step_x, act)
    x = c.Transitions(jax.vmap(problem.see)(y), a, jax.vmap(problem.see)(after))
    other = c.Transitions(*walk(*starts(y_key, problem.reset, *both), problem.step, act))
    cuts = (0, kept), (kept, reported), (reported, len(y))
    parts = [jax.tree.map(lambda rows: rows[first:last], steps) for first, last in cuts for steps in (x, other)]  # noqa: B023
    return Data(*parts, y[reported:])  # pyright: ignore[reportCallIssue]


class Wrong(eqx.Module):
    """A forward model with an error of so many times the mean change of y, the same wherever it is asked again."""

    forward: Callable[[Array, Array], Array]
    matrix: Array
    size: Array

    def __call__(self, y: Array, u: Array) -> Array:
        """F(y, u) + size · π/2 · sin(M (y, u)), of mean absolute value size."""
        return self.forward(y, u) + self.size * (math.pi / 2) * jnp.sin(self.matrix @ jnp.concatenate([y, u]))


def method_of(key: Array, arm: Settings, data: Data, scale: Settings) -> tuple[c.DynamicsCycle, Array]:
    """The method with an arm's weights; F is fitted, and made worse where the arm says so. And ``gain`` of the fit."""
    make_key, encoder_key, forward_key, wrong_key = jax.random.split(key, 4)
    encoder, shape = None, data.x.observation.shape[1:]
    if len(shape) == 3:
        outputs = data.y.observation.shape[-1]
        encoder = c.make_patch_encoder(encoder_key, shape, outputs, size=scale.patch, width=scale.width)  # pyright: ignore[reportArgumentType]
    model = c.make_dynamics_cycle(
        make_key,
        data.x,
        data.y,
        width=arm.get("width", scale.width),
        num_kept=arm.get("num_kept", 128),
        loss=arm.get("gan", "lsgan"),
        encoder=encoder,
        dynamics=arm.dynamics,
        adversarial=arm.adversarial,
        ahead=arm.ahead,
        paired=arm.get("paired", 0.0),
    )
    model, told = model.fit_forward(forward_key, data.y, scale.forward_steps, batch=64)
    if "wrong" not in arm:
        return model, gain(told)
    units = model.y_units
    change = jnp.mean(jnp.abs((data.y.following - data.y.observation) / units.deviation))  # pyright: ignore[reportOptionalMemberAccess]
    size = data.y.observation.shape[-1]
    matrix = 2.0 * jax.random.normal(wrong_key, (size, size + data.y.action.shape[-1]))
    worse = Wrong(model.forward, matrix, arm.wrong * change)
    return eqx.tree_at(lambda m: m.forward, model, worse), gain(told)


def gain(told: c.ForwardInfo) -> Array:
    """How many times the error of predicting no change is that of F, on steps that F was not fitted to."""
    return told.copying / told.error


class Found(NamedTuple):
    """A map that an arm has found: of one observation of X; what it chose; whether all steps were finite.

    more: what else is reported: the value chosen of a grid by its name, ``forward_gain`` where there is an F.
    """

    translate: Callable[[Array], Array]
    finite: Array
    more: dict[str, Array]


def distance(translate: Callable[[Array], Array], data: Data, number: int) -> Array:
    """How unlike the mapped steps of X are to those of Y, both there to choose by: it knows no pairs."""
    thin = lambda steps: jax.tree.map(lambda rows: rows[:: max(1, len(rows) // number)][:number], steps)  # noqa: E731
    x, y = thin(data.choose_x), thin(data.choose_y)
    mapped = c.Transitions(jax.vmap(translate)(x.observation), x.action, jax.vmap(translate)(x.following))
    return c.transition_distance(mapped, y)


def trained(key: Array, model: Any, data: Data, scale: Settings, pairs: Any = None) -> Found:
    """``model`` at every rate of the grid; the one whose steps look most like Y's is kept."""
    more = {} if pairs is None else {"pairs": pairs}

    def at(rate):
        own = eqx.tree_at(lambda m: m.learning_rate, model, rate)
        state = own.init(data.x, data.y)
        state, told = own.train(key, data.x, data.y, state, num_steps=scale.steps, batch=scale.batch, **more)
        look = lambda x: own.translate(x[None], state)[0]  # noqa: E731
        score = distance(look, data, scale.compared)
        return state, jnp.where(jnp.isfinite(score), score, jnp.inf), jnp.all(told.status == int(Status.OK))

    rates = jnp.asarray(scale.rates, jnp.float32)
    states, scores, fine = jax.vmap(at)(rates)
    best = jnp.argmin(scores)
    state = jax.tree.map(lambda leaf: leaf[best], states)
    chosen = {"rate": rates[best]}
    return Found(lambda x: model.translate(x[None], state)[0], fine[best].astype(jnp.float32), chosen)


def found_by(key: Array, arm: Settings, data: Data, scale: Settings, pairs: Any = None) -> Found:
    """The map of an arm: what it is told beside the steps are ``pairs``, where there are any."""
    make_key, train_key = jax.random.split(key)
    one, flat = jnp.asarray(1.0), lambda rows: rows.reshape(len(rows), -1)
    x = c.Transitions(flat(data.x.observation), data.x.action, flat(data.x.following))
    middle = jnp.mean(data.y.observation, axis=0)
    if arm.method == "mean":
        return Found(lambda _: middle, one, {})
    if arm.method == "moments":
        return Found(c.moment_alignment(x.observation, data.y.observation), one, {})
    if arm.method == "linear":
        ridges = jnp.asarray(RIDGES)
        maps = jax.lax.map(lambda ridge: c.dynamics_alignment(x, data.y, ridge=ridge), ridges)
        scores = jax.lax.map(lambda aligned: distance(aligned, data, scale.compared), maps)
        best = jnp.argmin(jnp.where(jnp.isfinite(scores), scores, jnp.inf))
        return Found(jax.tree.map(lambda leaf: leaf[best], maps), one, {"ridge": ridges[best]})
    if arm.method == "kernel":
        units_x, units_y = c.Units.of(x.observation), c.Units.of(data.y.observation)
        fitted = c.kernel_regression(units_x(flat(pairs[0])), units_y(pairs[1]))
        return Found(lambda row: units_y.restore(fitted(units_x(jnp.ravel(row)))), one, {"penalty": fitted.penalty})
    if arm.method == "gan":
        model = c.make_cycle_gan(make_key, x, data.y, width=scale.width, cycle=arm.cycle)
        flattened = data._replace(x=x, choose_x=jax.tree.map(flat, data.choose_x))
        found = trained(train_key, model, flattened, scale)
        return found._replace(translate=lambda row: found.translate(jnp.ravel(row)))
    model, better = method_of(make_key, arm, data, scale)
    found = trained(train_key, model, data, scale, pairs)
    return found._replace(more=found.more | {"forward_gain": better})


def measured(found: Found, data: Data, scale: Settings) -> dict[str, Array]:
    """Errors of a map against the states behind the observations, which nobody else has seen.

    error: mean |ŷ − y| over the deviation of y (the paper's L1, in units of deviations). correlation: mean over the
    numbers of y. distance: what the rate was chosen by.
    """
    guess = jax.vmap(found.translate)(data.held_x.observation)
    deviation = jnp.std(data.truth, axis=0)
    error = jnp.mean(jnp.abs(guess - data.truth) / deviation)
    middle = lambda rows: rows - jnp.mean(rows, axis=0)  # noqa: E731
    product = jnp.mean(middle(guess) * middle(data.truth), axis=0)
    correlation = jnp.mean(product / (deviation * jnp.std(guess, axis=0) + 1e-9))
    return {
        "error": error,
        "log_error": jnp.log(error),
        "correlation": correlation,
        "distance": distance(found.translate, data, scale.compared),
        "finite": found.finite,
        **found.more,
    }


def control(key: Array, problem: Any, scale: Settings, *policies: Callable[[Array, Array], Array]) -> list[Array]:
    """The mean reward a step of X of each policy ``act(noise, state)``, from the same starts with the same noise."""
    first = starts(key, problem.reset, scale.trials, scale.horizon, problem.num_actions)
    walks = [walk(*first, problem.step_x, act)[2] for act in policies]
    return [jnp.mean(jax.vmap(problem.reward)(following)) for following in walks]


def recovered(key: Array, problem: Any, act: Callable[[Array], Array], scale: Settings) -> dict[str, Array]:
    """The return of a policy ``act(state)``, and its share of the way from random actions to Y's policy on true states.

    Where the body differs, too, the best are Y's actions turned exactly.
    """

    def best(_: Array, y: Array) -> Array:
        wanted = problem.policy(y)
        return problem.exact_back(y, wanted) if hasattr(problem, "exact_back") else wanted

    own, low, high = control(key, problem, scale, lambda _, y: act(y), random_action, best)
    return {"return_": own, "return_random": low, "return_oracle": high, "recovered": (own - low) / (high - low)}


def correspond(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """A map found from unpaired steps; its error, and what Y's policy earns in X by way of it."""
    world_key, data_key, find_key, act_key = jax.random.split(key, 4)
    problem = problem.drawn(world_key)
    data = data_of(data_key, problem, scale)
    found = found_by(find_key, arm, data, scale)
    result = measured(found, data, scale)
    if hasattr(problem, "policy"):
        result |= recovered(act_key, problem, lambda y: problem.policy(found.translate(problem.see(y))), scale)
    return result


def pairs(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """The error with so many pairs; an arm without pairs has the same with every number of them.

    few, many: the second and the last of the numbers of pairs.
    """
    world_key, data_key, pair_key, find_key = jax.random.split(key, 4)
    problem = problem.drawn(world_key)
    data = data_of(data_key, problem, scale)
    most = max(scale.counts)
    first = starts(pair_key, problem.reset, -(-most // scale.length), scale.length, problem.num_actions)
    y, _, _ = walk(*first, problem.step_x, random_action)
    # Rows of one episode are alike: deal them out, so that few pairs come from many episodes.
    y = y.reshape(-1, scale.length, y.shape[-1]).swapaxes(0, 1).reshape(-1, y.shape[-1])[:most]
    x = jax.vmap(problem.see)(y)

    def one(rows: Array | None) -> dict[str, Array]:
        found = found_by(find_key, arm, data, scale, None if rows is None else (x[rows], y[rows]))
        return measured(found, data, scale)

    counts = jnp.asarray(scale.counts)
    if arm.method == "kernel":
        each = [one(jnp.arange(count)) for count in scale.counts]
        result = jax.tree.map(lambda *values: jnp.stack(values), *each)
    elif arm.told:  # so many pairs, again and again
        result = jax.vmap(lambda count: one(jnp.arange(most) % count))(counts)
    else:
        result = jax.tree.map(lambda value: jnp.broadcast_to(value, counts.shape), one(None))
    errors = result["log_error"]
    chosen = {name: result[name] for name in ("penalty", "forward_gain") if name in result}
    named = {f"{name}_few": value[1] for name, value in chosen.items()}
    named |= {f"{name}_many": value[-1] for name, value in chosen.items()}
    named |= {"log_error_few": errors[1], "log_error_many": errors[-1]}
    curve = {"log_errors": errors, "log_counts": jnp.log(counts.astype(jnp.float32))}
    return named | curve | {"finite": jnp.min(result["finite"])}
