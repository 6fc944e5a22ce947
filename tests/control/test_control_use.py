"""Environments, whole runs, checkpoints, Gymnasium, and what is refused."""

import warnings
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate import control as c
from laureate import loops
from laureate.problems.environments import Chain, NoisyTV
from laureate.testing import KeyRecorder

QUICK = {"xla_backend_optimization_level": 0}
SIZE = 4


def quick(function):
    """Compiled without optimising."""
    return eqx.filter_jit(function, compiler_options=QUICK)  # pyright: ignore[reportCallIssue]


class Tables(eqx.Module):
    """Logits and two values from tables, for one-hot observations: no key is spent."""

    logits: jax.Array
    values: jax.Array

    def __call__(self, x):
        return x @ self.logits, x @ self.values


class Line(eqx.Module):
    """A linear map."""

    matrix: jax.Array

    def __call__(self, x):
        return self.matrix @ x


def learner(**settings):
    rng = np.random.default_rng(0)
    table = lambda *shape: jnp.asarray(rng.normal(size=shape), jnp.float32)  # noqa: E731
    ppo = c.PPO(Tables(table(SIZE, 2), table(SIZE, 2)), c.Categorical(2), gamma=(0.99, 0.9), episodic=(1, 0))
    bonus = c.RND(Line(table(3, SIZE)), Line(table(3, SIZE)), keep=0.5)  # pyright: ignore[reportCallIssue]
    return c.BonusPPO(ppo, bonus, **{"num_epochs": 2, "num_minibatches": 2} | settings)


# --- environments -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def walked():
    """The chain's states after every action, and a walk of more steps than an episode has."""
    chain = Chain(SIZE, limit=3)

    @quick
    def walk(chain, actions):
        def move(carry, at):
            state, seen = carry
            action, wanted = at
            action = jnp.where(wanted >= 0, jnp.where(wanted, chain.forward, 1 - chain.forward)[state.place], action)
            state, after, timestep = loops.step_or_reset(jax.random.key(0), chain, state, action)
            return (state, after), (seen.argmax(), timestep, state)

        return jax.lax.scan(move, chain.reset(jax.random.key(0)), actions)[1]

    on = np.array([1, 1, 1, 0, 1, 1, 1, 1, 1])  # three on: the end. then back, on, on: the limit. then on
    return walk(chain, (np.zeros(9, int), on))


def test_a_chain_ends_at_its_end_and_at_its_limit(walked):
    place, timestep, state = walked
    np.testing.assert_array_equal(place, [0, 1, 2, 0, 0, 1, 0, 1, 2])
    np.testing.assert_array_equal(np.flatnonzero(timestep.terminated), [2, 8])
    np.testing.assert_array_equal(np.flatnonzero(timestep.truncated), [5])
    np.testing.assert_array_equal(np.flatnonzero(timestep.reward), [2, 8])
    # What was reached is shown, though the next state is the first again.
    np.testing.assert_array_equal(np.argmax(timestep.observation, 1)[np.array([2, 5, 8])], [3, 2, 3])
    np.testing.assert_array_equal(state.place[np.array([2, 5, 8])], 0)
    np.testing.assert_array_equal(state.clock[np.array([2, 5, 8])], 0)


def test_a_deadly_limit_terminates():
    chain = Chain(SIZE, limit=3, deadly=True)
    late = quick(lambda: chain.step(None, chain.reset(None)[0]._replace(clock=jnp.asarray(2)), 0)[1])
    timestep = late()
    assert (bool(timestep.terminated), bool(timestep.truncated), float(timestep.reward)) == (True, False, 0.0)


def test_the_values_of_a_chain_are_those_of_long_walks():
    found = np.asarray(quick(Chain(5).values)(0.7, 0.9))
    move = np.zeros((5, 5))
    for at in range(4):
        move[at, at + 1] += 0.7
        move[at, max(at - 1, 0)] += 0.3
    reward, values = move[:, 4].copy(), np.zeros(5)
    for _ in range(500):
        values = reward + 0.9 * move[:, :4] @ values[:4]
    np.testing.assert_allclose(found[:4], values[:4], rtol=1e-4)
    assert found[4] == 0


def test_other_chains_have_other_actions():
    many = quick(jax.vmap(lambda key: Chain(30).drawn(key).forward))(jax.random.split(jax.random.key(0), 20))
    assert len({row.tobytes() for row in np.asarray(many)}) == 20
    assert 0.4 < np.mean(many) < 0.6


def test_a_television_shows_another_picture_only_when_asked():
    rooms = [NoisyTV(2, pixels=6, pictures=pictures, limit=60) for pictures in (3, 0)]

    @quick
    def walk(actions):
        def moved(room):
            def move(state, at):
                state, timestep = room.step(at[1], state, at[0])
                return state, (timestep.observation, room.watching(state), timestep.truncated)

            keys = jax.random.split(jax.random.key(1), len(actions))
            return jax.lax.scan(move, room.reset(jax.random.key(0))[0], (actions, keys))[1]

        return [moved(room) for room in rooms]

    actions = np.array([4, 0, 4, 2] + [4] * 40 + [1, 4] + [0] * 14)
    for room, told in zip(rooms, walk(actions), strict=True):
        seen, watching, late = map(np.asarray, told)
        place, screen = seen[:, :4].argmax(1), seen[:, 4:]
        np.testing.assert_array_equal(place[:5], [0, 1, 1, 3, 3])
        np.testing.assert_array_equal(watching, place == 3)
        assert np.all(screen[:4] == 0), "dark until somebody switches it on"
        assert np.all(np.abs(screen[4:44]) == 1)
        shown = {row.tobytes() for row in screen[4:44]}
        assert len(shown) == 3 if room.pictures else len(shown) > 20
        assert np.all(screen[44:46] == 0), "dark from elsewhere"
        assert late[-1]
        assert not late[:-1].any()


# --- whole runs -------------------------------------------------------------------------------------------------------

TRAINING = c.Training(Chain(SIZE, limit=5), learner(), num_environments=4, num_steps=6, num_warmup=2)


@pytest.fixture(scope="module")
def rollout():
    """One rollout with the first policy, and the warm state it began with."""

    @quick
    def collected(training, key):
        state = training.init(key)
        return training.collect(key, state), state

    return collected(TRAINING, jax.random.key(3))


def test_a_rollout_is_a_walk(rollout):
    (steps, (episodes, total), after), before = rollout
    place, reached = np.argmax(steps.observation, -1), np.argmax(steps.following, -1)
    on = np.where(np.asarray(steps.action) == np.asarray(TRAINING.environment.forward)[place], 1, -1)
    np.testing.assert_array_equal(reached, np.clip(place + on, 0, SIZE - 1))
    np.testing.assert_array_equal(steps.terminated, reached == SIZE - 1)
    np.testing.assert_array_equal(steps.reward, reached == SIZE - 1)
    # The next observation is the one reached, or the first after an end.
    onward = np.concatenate([place[1:], np.argmax(steps.last, -1)[None]])
    np.testing.assert_array_equal(onward, np.where(steps.ended, 0, reached))
    assert np.any(np.asarray(steps.ended) & ~np.asarray(steps.terminated)), "a time limit was met"
    assert int(episodes) == np.asarray(steps.ended).sum()
    assert float(total) == np.asarray(steps.reward).sum()  # 1 an episode that got there, 0 else
    logits = np.asarray(TRAINING.learner.ppo.network.logits)[place]  # pyright: ignore[reportFunctionMemberAccess]
    law = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    chosen = np.take_along_axis(law, np.asarray(steps.action)[..., None], -1)[..., 0]
    np.testing.assert_allclose(np.exp(steps.log_probability), chosen, rtol=1e-4)
    assert int(before.learner.bonus.observations.count) == 2 * 6 * 4
    np.testing.assert_array_equal(after.observation, steps.last)


class Clock(eqx.Module):
    """An episode has three steps, with rewards 1, 2 and 3; one sees how many were made.

    length: of an episode. sign: of the rewards. by_rule: whether it ends by a rule, or by a time limit.
    """

    length: Any = 3
    sign: Any = 1.0
    by_rule: Any = True

    def reset(self, key):
        del key
        return jnp.asarray(0), jnp.zeros(1)

    def step(self, key, state, action):
        del key, action
        state = state + 1
        over = state == self.length
        return state, loops.Timestep(
            state[None] * 1.0, self.sign * state, over & self.by_rule, over & jnp.logical_not(self.by_rule)
        )


class Idle(eqx.Module):
    """A learner that learns nothing; its state is the sum of all it was shown, what was reached a hundredfold."""

    bonus: bool = True
    num_minibatches: int = 1

    def init(self, observation, num_environments):
        return c.BonusPPOState(jnp.sum(observation) + 0 * num_environments, None, None)

    def act(self, key, observation, state):
        del key, state
        return observation[:, 0], observation[:, 0]

    def observe(self, rollout, state):
        return state._replace(ppo=state.ppo + jnp.sum(rollout.observation) + 100 * jnp.sum(rollout.following))

    def step(self, key, rollout, state):
        del key
        told = jnp.mean(rollout.reward)
        return state, c.BonusPPOInfo(told, told, told, told, None, jnp.asarray(rollout.reward.size), jnp.asarray(0))


CLOCK = c.Training(Clock(), Idle(), num_environments=2, num_steps=7, num_warmup=2)


def test_episodes_returns_and_the_warm_up_are_those_of_a_clock():
    """Two environments, rollouts of seven steps: two whole episodes each, and a third that begins."""

    @quick
    def run(training, key):
        state = training.init(key)
        after, info = training.step(key, state)
        return state, after, info

    def of(length=3, sign=1.0, by_rule=True):
        clock = Clock(jnp.asarray(length), jnp.asarray(sign), jnp.asarray(by_rule))
        return run(c.Training(clock, Idle(), num_environments=2, num_steps=7, num_warmup=2), jax.random.key(0))  # pyright: ignore[reportArgumentType]

    # By a rule or by a time limit, and with losses in place of rewards.
    for sign, by_rule in ((1.0, True), (1.0, False), (-1.0, False)):
        state, after, info = of(3, sign, by_rule)
        # The first rollout of the warm-up shows 0 1 2 0 1 2 0, the second goes on with 1 2 0 1 2 0 1. What was reached
        # is one more of each, at an end too, and not the 0 that the next episode begins with.
        assert float(state.learner.ppo) == 2 * (6 + 7) + 100 * 2 * (6 + 7 + 14)
        np.testing.assert_array_equal(state.environments, 2)
        np.testing.assert_array_equal(state.returns, sign * (1 + 2))
        # Then 2 0 1 2 0 1 2: three episodes end, with all their rewards, also those of the rollouts before.
        best = 3.0 if sign > 0 else -1.0
        assert (int(info.episodes), float(info.episode_return), float(info.best)) == (6, sign * 6.0, best)
        np.testing.assert_array_equal(after.environments, 0)
        np.testing.assert_array_equal(after.returns, 0)
    _, after, info = of(length=100)
    assert (int(info.episodes), float(info.episode_return), int(info.cost)) == (0, 0.0, 14), "none has ended"
    np.testing.assert_array_equal(after.returns, 21 * 22 / 2)


def test_a_beginning_and_its_warm_up_use_no_key_twice():
    training = c.Training(Clock(), Idle(), num_environments=2, num_steps=1)
    with KeyRecorder() as recorder:
        jax.block_until_ready(quick(training.init)(jax.random.key(0)))
        assert not recorder.reused()
    assert len(recorder.uses) > 3, "of the whole, of beginnings, of the warm-up, of its steps"


@pytest.mark.parametrize("training", [CLOCK, pytest.param(TRAINING, marks=pytest.mark.slow)], ids=["clock", "chain"])
def test_a_run_goes_on_from_its_checkpoint_and_is_the_same(training, tmp_path):
    key = jax.random.key(5)
    told = []
    whole = training.run(key, 4)
    training.run(key, 2, checkpoint=tmp_path / "run.npz")
    resumed = training.run(key, 4, checkpoint=tmp_path / "run.npz", progress=told.append)
    for one, other in zip(jax.tree.leaves(whole), jax.tree.leaves(resumed), strict=True):
        np.testing.assert_array_equal(one, other)
    assert told[-1].done == 4
    np.testing.assert_array_equal(whole.seen.cost, training.num_environments * training.num_steps)
    assert int(whole.status) == 0


# --- Gymnasium --------------------------------------------------------------------------------------------------------

try:
    import gymnasium  # pyright: ignore[reportMissingImports]
except ImportError:
    gymnasium = None
needs_gymnasium = pytest.mark.skipif(gymnasium is None, reason="Gymnasium (extra `control`) is not installed")


def walker():
    """The chain of four states, in Gymnasium; its time limit is Gymnasium's."""

    class Walker(gymnasium.Env):
        observation_space = gymnasium.spaces.Box(0, 1, (SIZE,), np.float32)
        action_space = gymnasium.spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            self.place = 0
            return np.eye(SIZE, dtype=np.float32)[0], {}

        def step(self, action):
            on = 1 if action == FORWARD[self.place] else -1
            self.place = int(np.clip(self.place + on, 0, SIZE - 1))
            there = self.place == SIZE - 1
            return np.eye(SIZE, dtype=np.float32)[self.place], float(there), there, False, {}

    return gymnasium.wrappers.TimeLimit(Walker(), 5)


FORWARD = np.asarray(Chain(SIZE).forward)


@needs_gymnasium
@pytest.mark.parametrize("mode", ["DISABLED", "SAME_STEP"])
def test_gymnasium_environments_show_what_was_reached(mode):
    vector = gymnasium.vector.SyncVectorEnv([walker] * 3, autoreset_mode=gymnasium.vector.AutoresetMode[mode])
    environments = c.GymnasiumEnvironments(vector)
    seen = environments.reset(0)
    # The first goes on; the second stays at the start until the limit; the third goes on once, then back.
    places, ends = [], []
    for step in range(6):
        at = seen.argmax(1)
        on = np.array([True, False, step == 0])
        reached = environments.step(np.where(on, FORWARD[at], 1 - FORWARD[at]))
        places.append(reached.following.argmax(1))
        ends.append((reached.terminated.copy(), reached.truncated.copy(), reached.observation.argmax(1)))
        seen = reached.observation
    np.testing.assert_array_equal(np.array(places).T, [[1, 2, 3, 1, 2, 3], [0] * 6, [1, 0, 0, 0, 0, 0]])
    terminated, truncated, onward = (np.array(part).T for part in zip(*ends, strict=True))
    np.testing.assert_array_equal(np.flatnonzero(terminated[0]), [2, 5])
    np.testing.assert_array_equal(np.flatnonzero(truncated[1]), [4])
    assert not terminated[1:].any()
    np.testing.assert_array_equal(onward[0], [1, 2, 0, 1, 2, 0])


@needs_gymnasium
def test_the_same_learner_trains_in_gymnasium_and_goes_on(tmp_path):
    def trained(num_updates, **more):
        environments = c.GymnasiumEnvironments(walker, 4)
        training = c.GymnasiumTraining(environments, learner(), num_steps=6)
        return training.run(jax.random.key(0), num_updates, **more)

    state, told = trained(3, checkpoint=tmp_path / "run.npz")
    assert told.cost.tolist() == [24] * 3
    assert int(state.bonus.observations.count) == 4 * 24  # the warm-up and three updates
    assert np.all((told.episode_return >= 0) & (told.episode_return <= 1))
    more, rows = trained(4, checkpoint=tmp_path / "run.npz")
    np.testing.assert_array_equal(rows.learner.reward[:3], told.learner.reward)
    assert int(more.bonus.observations.count) == 5 * 24


@needs_gymnasium
def test_environments_that_cannot_be_bridged_say_what_to_do():
    with pytest.raises(ValueError, match=r"autoreset_mode must be SAME_STEP or DISABLED.*DISABLED"):
        c.GymnasiumEnvironments(gymnasium.vector.SyncVectorEnv([walker]))

    spaces = gymnasium.spaces

    def of(seen, actions):
        members = {"observation_space": seen, "action_space": actions}
        return type("Of", (gymnasium.Env,), members)

    dictionary = of(spaces.Dict({"a": spaces.Box(0, 1, (2,)), "b": spaces.Discrete(3)}), spaces.Discrete(2))
    with pytest.raises(ValueError, match=r"part must be one of the arrays 'a'.*got ''.*FlattenObservation"):
        c.GymnasiumEnvironments(dictionary)
    seen: Any = c.GymnasiumEnvironments(dictionary, part="a").observation_space
    assert seen.shape == (2,)
    with pytest.raises(ValueError, match="part must be '' where observations are no dictionaries"):
        c.GymnasiumEnvironments(walker, part="a")
    with pytest.raises(TypeError, match=r"observation_space must be a Box; got Discrete.*FlattenObservation"):
        c.GymnasiumEnvironments(of(spaces.Discrete(3), spaces.Discrete(2)))
    with pytest.raises(TypeError, match=r"Discrete from 0 on; got Discrete\(2, start=1\).*TransformAction"):
        c.GymnasiumEnvironments(of(spaces.Box(0, 1, (2,)), spaces.Discrete(2, start=1)))
    with pytest.raises(ValueError, match=r"environments.late must be False.*steps that nobody took"):
        c.GymnasiumTraining(c.GymnasiumEnvironments(walker, 2, late=True), learner())


@needs_gymnasium
def test_actions_are_clipped_to_their_box():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        environments = c.GymnasiumEnvironments("Pendulum-v1", 2)
    environments.reset(0)
    big = environments.step(np.array([[9.0], [-9.0]]))
    assert isinstance(c.law_of(environments.action_space), c.Gaussian)
    environments.reset(0)
    bound = environments.step(np.array([[2.0], [-2.0]]))
    np.testing.assert_array_equal(big.following, bound.following)


def test_without_gymnasium_one_is_told_what_to_install(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(ModuleNotFoundError, match=r"laureate\[control\]"):
        c.GymnasiumEnvironments("CartPole-v1")


# --- what is refused --------------------------------------------------------------------------------------------------

PPO = learner().ppo


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: c.PPO(PPO.network, PPO.law, gamma=(0.9, 1.0), episodic=(1, 0)), r"PPO.episodic .*no bound"),
        (lambda: c.PPO(PPO.network, PPO.law, gamma=1.5), "PPO.gamma must be within 0 and 1"),
        (lambda: c.PPO(PPO.network, PPO.law, gamma=(0.9, 0.9)), "PPO.episodic must be of shape"),
        (lambda: c.PPO(PPO.network, PPO.law, clip=0.0), "PPO.clip must be > 0"),
        (lambda: c.PPO(PPO.network, PPO.law).evaluate(jnp.eye(SIZE), PPO.init()), "PPO.network values must be 1"),
        (lambda: c.RND(jnp.sin, jnp.cos, keep=0.0), r"RND.keep must be in \(0, 1\]"),  # pyright: ignore[reportCallIssue]
        (lambda: c.AutoencoderBonus(jnp.sin, keep=1.5), r"AutoencoderBonus.keep must be in \(0, 1\]"),
        (lambda: c.DynamicsBonus(jnp.sin, jnp.cos, jnp.sin, clip=0.0), "DynamicsBonus.clip must be > 0"),  # pyright: ignore[reportCallIssue]
        (lambda: c.CountBonus(jnp.argmax, 0), "CountBonus.num_cells"),
        (lambda: c.ReturnScale(1.0), r"ReturnScale.gamma must be in \[0, 1\)"),
        (lambda: c.BonusPPO(PPO), "ppo.num_heads must be 1 without a bonus"),
        (lambda: learner(coefficients=(1.0, -1.0)), "BonusPPO.coefficients must be >= 0"),
        (lambda: c.Training(Chain(4), learner(), num_environments=3), "a multiple of learner.num_minibatches = 2"),
        (lambda: c.Training(Chain(4), learner(), num_warmup=0), "Training.num_warmup must be >= 1"),
        (lambda: c.gae(np.ones(3), np.ones(2), np.ones(3)), r"gae.value must be of shape \(3,\)"),
        (lambda: c.gae(np.ones(3), np.ones(3), np.ones(3), gamma=2.0), "gae.gamma must be within 0 and 1"),
        (lambda: c.minibatches(jax.random.key(0), 5, 2, 1), "num_environments must be a multiple"),
        (lambda: c.law_of(loops.Box((2, 2))), "Flatten the actions"),
        (lambda: Chain(5, limit=2), "Chain.limit must be 0, or >= size - 1"),
        (lambda: NoisyTV(1), "NoisyTV.side must be >= 2"),
    ],
)
def test_bad_settings(call, said):
    with pytest.raises(ValueError, match=said):
        call()


def test_stacked_frames_and_cold_statistics_are_refused():
    bonus = learner().bonus
    state = bonus.init(jnp.zeros(SIZE))
    with pytest.raises(ValueError, match=r"Bonus.observation must be of shape \(4,\).*stacked frames"):
        bonus.novelty(jnp.zeros((3, SIZE, 4)), state)  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(ValueError, match="Call observe with steps of a random policy first"):
        bonus.novelty(jnp.zeros((3, SIZE)), state)  # pyright: ignore[reportAttributeAccessIssue]


def test_warnings_of_bonuses_that_say_little():
    small, large = Line(jnp.ones((2, 2))), Line(jnp.ones((2, 3)))
    with pytest.warns(c.BonusWarning, match="stays a bonus for ever"):
        c.RND(large, small)  # pyright: ignore[reportCallIssue]
    plain = c.RND(small, small, whiten=False)  # pyright: ignore[reportCallIssue]
    with pytest.warns(c.BonusWarning, match="whiten=True"):
        plain.novelty(np.full((1, 2), 200.0, np.float32), plain.init(jnp.zeros(2)))


def test_a_bonus_that_says_nothing_any_more_is_warned_of_at_the_end_of_a_run():
    from laureate.control.training import warn_if_collapsed

    def ended(variance):
        state = c.ReturnScale().init(2)
        returns = eqx.tree_at(
            lambda one: (one.count, one.squares), state.returns, (np.int32(8), np.float32(8 * variance))
        )
        return c.BonusPPOState(None, None, state._replace(returns=returns))  # pyright: ignore[reportArgumentType]

    unseen = c.BonusPPOState(None, None, c.ReturnScale().init(2))  # pyright: ignore[reportArgumentType]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_collapsed(learner(), unseen)  # of no update at all
    for variance, number in ((1e-13, 1), (1e-11, 0), (1.0, 0)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warn_if_collapsed(learner(), ended(variance))
        assert [one.category for one in caught] == [c.BonusWarning] * number
    warn_if_collapsed(learner(), c.BonusPPOState(None, None, None))  # pyright: ignore[reportArgumentType]
