"""Correspondences learned in runs that can be stopped: the numbers of ``train``, checkpoints, and what is refused."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate import control as c
from laureate.control import correspondence_training, dreaming, training

QUICK = {"xla_backend_optimization_level": 0}
RNG = np.random.default_rng(0)


class Line(eqx.Module):
    """A linear map of all that it is given."""

    matrix: jax.Array

    def __call__(self, *parts):
        return self.matrix @ jnp.concatenate(parts)


def line(rows, columns):
    return Line(jnp.asarray(0.5 * RNG.normal(size=(rows, columns)), jnp.float32))


def steps(shift):
    at = RNG.uniform(-1, 1, (3, 12, 2)).astype(np.float32)
    return c.Transitions(jnp.asarray(at[0] + shift), jnp.asarray(at[1]), jnp.asarray(at[2] + shift))


X, Y = steps(0.0), steps(1.0)
CRITIC = c.PooledCritic(Line(jnp.ones((1, 2))), num_kept=2)
ACTING = c.DynamicsCycle(
    line(2, 2), line(2, 4), CRITIC, action_map=line(2, 4), action_back=line(2, 4), action_critic=CRITIC,
    back_critic=CRITIC, learning_rate=0.01,
)  # fmt: skip
GAN = c.CycleGAN(line(2, 2), line(2, 2), CRITIC, CRITIC, learning_rate=0.01)


def same(one, other):
    for left, right in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(left, right, rtol=2e-5, atol=1e-6)


def test_a_run_in_turns_is_training_in_turns_and_goes_on(tmp_path):
    training, key, told = c.CorrespondenceTraining(ACTING, X, Y, batch=4, turn=2), jax.random.key(1), []
    whole = training.run(key, 5)
    training.run(key, 3, checkpoint=tmp_path / "run.npz")
    resumed = training.run(key, 5, checkpoint=tmp_path / "run.npz", progress=told.append)
    for left, right in zip(jax.tree.leaves(whole), jax.tree.leaves(resumed), strict=True):
        np.testing.assert_array_equal(left, right)
    assert told[-1].done == 5

    @eqx.filter_jit(compiler_options=QUICK)  # pyright: ignore[reportCallIssue]
    def by_hand(method):
        state, infos = method.init(X, Y), []
        for phase, number in (("states", 2), ("actions", 2), ("states", 1)):
            state, info = method.train(key, X, Y, state, num_steps=number, batch=4, phase=phase)
            infos.append(info)
        return state, jax.tree.map(lambda *parts: jnp.concatenate(parts), *infos)

    state, infos = by_hand(ACTING)
    same((state, infos), (whole.state, whole.seen))


def test_a_gan_is_run_alike_and_its_domains_are_looked_at():
    training, key = c.CorrespondenceTraining(GAN, X, Y, batch=4), jax.random.key(1)
    outcome = training.run(key, 3)
    trained = eqx.filter_jit(lambda: GAN.train(key, X, Y, GAN.init(X, Y), num_steps=3, batch=4))()
    same(trained, (outcome.state, outcome.seen))
    with pytest.raises(ValueError, match=r"x.observation must be finite; got '1 that are not'"):
        c.CorrespondenceTraining(GAN, X._replace(observation=X.observation.at[0, 0].set(jnp.nan)), Y)
    with pytest.raises(ValueError, match=r"y must be of one length"):
        c.CorrespondenceTraining(GAN, X, Y._replace(action=Y.action[1:]))
    with pytest.warns(c.CorrespondenceWarning, match="the same observations"):
        c.CorrespondenceTraining(GAN, X, X)


class Counting(eqx.Module):
    """A method that learns nothing: its state is the number of its steps, which is all that it tells."""

    def init(self, x, y):
        return jnp.zeros((), int)

    def train(self, key, x, y, state, *, num_steps, batch):
        jax.random.uniform(key)
        return state + num_steps, (state + jnp.arange(num_steps), jnp.full(num_steps, batch))


@pytest.mark.parametrize("one", [correspondence_training._Steps, training._Updates, dreaming._Updates])
def test_a_run_takes_keys_of_other_generators(one):
    class Asked(eqx.Module):
        def step(self, key, state):
            return state, jax.random.key_data(key)

    kinds = [{"impl": "rbg"}, {"impl": "unsafe_rbg"}, {}]
    bits = [jax.random.key_data(jax.random.key(0, **kind)) for kind in kinds]
    found = [eqx.filter_eval_shape(one(Asked(), word), 0, jnp.asarray(1))[1].shape for word in bits]
    assert found == [(2,)] * 3


class Turned(c.DynamicsCycle):
    """Learns nothing, and tells in which phase it was asked to: 1 for states, 2 for actions."""

    def train(self, key, x, y, state, *, num_steps, batch=32, phase="states", pairs=None):
        told = jnp.full(num_steps, {"states": 1, "actions": 2}[phase])
        return state._replace(step=state.step + num_steps), c.DynamicsCycleInfo(*[told] * 11)


def test_a_turn_has_as_many_steps_as_it_says():
    method = Turned(line(2, 2), line(2, 4), None, action_map=line(2, 4), action_back=line(2, 4))
    training = c.CorrespondenceTraining(method, X, Y, batch=4, turn=2)
    step = eqx.filter_jit(lambda state: training.step(jax.random.key(0), state), compiler_options=QUICK)  # pyright: ignore[reportCallIssue]
    state, told = training.init(), []
    for _ in range(7):
        state, info = step(state)
        told.append(int(info.loss))
    assert told == [1, 1, 2, 2, 1, 1, 2]


def test_the_domains_of_a_run_are_looked_at():
    with pytest.raises(ValueError, match=r"x.observation must be finite; got '1 that are not'"):
        c.CorrespondenceTraining(GAN, X._replace(observation=X.observation.at[0, 0].set(jnp.nan)), Y)
    with pytest.raises(ValueError, match=r"y must be of one length"):
        c.CorrespondenceTraining(GAN, X, Y._replace(action=Y.action[1:]))


def test_a_run_is_kept_and_tells_how_far_it_is(tmp_path):
    training, key, told = c.CorrespondenceTraining(Counting(), X, Y, batch=4), jax.random.key(1), []  # pyright: ignore[reportArgumentType]
    outcome = training.run(key, 3, checkpoint=tmp_path / "run.npz", progress=told.append)
    assert (tmp_path / "run.npz").exists()
    assert (told[-1].done, told[-1].total) == (3, 3)
    assert int(outcome.state) == 3
    np.testing.assert_array_equal(outcome.seen, [[0, 1, 2], [4, 4, 4]])


@pytest.mark.parametrize(
    ("method", "more", "said"),
    [
        (ACTING, {}, "turn must be >= 1, for there are maps of actions; got 0"),
        (GAN, {"turn": 3}, "turn must be 0, for there are no maps of actions; got 3"),
        (GAN, {"batch": 0}, "batch must be >= 1"),
    ],
)
def test_bad_settings(method, more, said):
    with pytest.raises(ValueError, match=said):
        c.CorrespondenceTraining(method, X, Y, **more)
