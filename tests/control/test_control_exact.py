"""Advantages, scales, losses, bonuses and laws against NumPy, closed forms and enumeration."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from laureate import control as c
from laureate.layers import RunningStatistics

RNG = np.random.default_rng(0)
T, E, H = 7, 4, 2
REWARD, VALUE, FOLLOWING = RNG.normal(size=(3, T, E)).astype(np.float32)
TERMINATED = RNG.random((T, E)) < 0.2
ENDED = TERMINATED | (RNG.random((T, E)) < 0.2)
QUICK = {"xla_backend_optimization_level": 0}


def quick(function):
    """Compiled without optimising: these programs run for microseconds."""
    return eqx.filter_jit(function, compiler_options=QUICK)  # pyright: ignore[reportCallIssue]


def gae_by_hand(reward, value, following, terminated, ended, gamma, lam):
    found, ahead = np.zeros(reward.shape), np.zeros(reward.shape[1:])
    for t in reversed(range(len(reward))):
        delta = reward[t] + gamma * (1 - terminated[t]) * following[t] - value[t]
        ahead = delta + gamma * lam * (1 - ended[t]) * ahead
        found[t] = ahead
    return found


# --- returns ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def advantages():
    """``gae`` and ``lambda_return`` as two programs, of whatever masks."""

    def both(reward, value, following, terminated, ended, gamma, lam):
        advantage = c.gae(reward, value, following, terminated=terminated, ended=ended, gamma=gamma, lam=lam)
        discount = gamma * (1 - (terminated * 1.0))
        return advantage, c.lambda_return(reward, following, discount, ended=ended, lam=lam)

    return quick(both)


def test_advantages_are_those_of_a_loop(advantages):
    found, _ = advantages(REWARD, VALUE, FOLLOWING, TERMINATED, ENDED, 0.9, 0.7)
    by_hand = gae_by_hand(REWARD, VALUE, FOLLOWING, TERMINATED, ENDED, 0.9, 0.7)
    np.testing.assert_allclose(found, by_hand, rtol=1e-4, atol=1e-5)


def test_a_termination_ends_though_nobody_says_so(advantages):
    one, _ = advantages(REWARD, VALUE, FOLLOWING, TERMINATED, np.zeros_like(ENDED), 0.9, 0.7)
    by_hand = gae_by_hand(REWARD, VALUE, FOLLOWING, TERMINATED, TERMINATED, 0.9, 0.7)
    np.testing.assert_allclose(one, by_hand, rtol=1e-4, atol=1e-5)


def test_masks_that_are_not_given_are_what_the_docstring_says():
    """Nothing terminates; and where it does an episode ends. A discount may be one number, and no end is known of."""

    @quick
    def all_of_it(reward, value, following):
        once = c.gae(reward, value, following, terminated=TERMINATED, gamma=0.9, lam=0.7)
        cut = c.gae(reward, value, following, ended=ENDED, gamma=0.9, lam=0.7)
        never = c.gae(reward, value, following, gamma=0.9, lam=0.7)
        return once, cut, never, c.gae(reward, value, following), c.lambda_return(reward, following, 0.9, lam=0.7)

    once, cut, never, usual, returns = all_of_it(REWARD, VALUE, FOLLOWING)
    none = np.zeros_like(ENDED)
    close = lambda found, *rest: np.testing.assert_allclose(  # noqa: E731
        found, gae_by_hand(REWARD, VALUE, FOLLOWING, *rest), rtol=1e-4, atol=1e-5
    )
    close(once, TERMINATED, TERMINATED, 0.9, 0.7)
    close(cut, none, ENDED, 0.9, 0.7)
    close(never, none, none, 0.9, 0.7)
    close(usual, none, none, 0.99, 0.95)
    ahead = FOLLOWING[-1].astype(float)
    for t in reversed(range(T)):
        ahead = REWARD[t] + 0.9 * (0.3 * FOLLOWING[t] + 0.7 * ahead)
        np.testing.assert_allclose(returns[t], ahead, rtol=1e-4, atol=1e-5)


def test_the_usual_optimiser_has_the_epsilon_of_the_authors():
    """A first step of Adam: the rate times g / (|g| + ε), of PPO and of bonuses."""
    slopes = np.array([1e-5, -3e-5, 0.0, 2.0], np.float32)
    for rule in (made().optimiser, c.AutoencoderBonus(Matrix(A)).optimiser):
        optimiser = rule(0.1)
        updates, _ = optimiser.update(slopes, optimiser.init(jnp.zeros(4)))
        np.testing.assert_allclose(np.asarray(updates), -0.1 * slopes / (np.abs(slopes) + 1e-5), rtol=1e-4)


def test_lambda_returns_are_advantages_and_values(advantages):
    """Where the value of what follows is the value of the next row, both are the same recursion."""
    value = np.concatenate([VALUE, FOLLOWING[-1:]])
    following = np.where(ENDED, FOLLOWING, value[1:]).astype(np.float32)
    advantage, returns = advantages(REWARD, VALUE, following, TERMINATED, ENDED, 0.9, 0.7)
    np.testing.assert_allclose(advantage + VALUE, returns, rtol=1e-4, atol=1e-5)


def test_with_lambda_one_the_values_telescope(advantages):
    never = np.zeros_like(ENDED)
    following = np.concatenate([VALUE[1:], FOLLOWING[-1:]])
    advantage, _ = advantages(REWARD, VALUE, following, never, never, 0.9, 1.0)
    powers = 0.9 ** np.arange(T + 1)
    whole = np.tensordot(powers[:-1], REWARD, 1) + powers[-1] * FOLLOWING[-1]
    np.testing.assert_allclose(advantage[0], whole - VALUE[0], rtol=1e-4)


def test_two_heads_are_one_by_linearity(advantages):
    values = np.stack([VALUE, RNG.normal(size=VALUE.shape)]).astype(np.float32)
    rewards, after = RNG.normal(size=(2, 2, T, E)).astype(np.float32)
    sum_of = lambda two: 2 * two[0] + two[1]  # noqa: E731
    apart = [advantages(rewards[h], values[h], after[h], TERMINATED, ENDED, 0.9, 0.7)[0] for h in (0, 1)]
    together, _ = advantages(sum_of(rewards), sum_of(values), sum_of(after), TERMINATED, ENDED, 0.9, 0.7)
    np.testing.assert_allclose(sum_of(apart), together, rtol=1e-3, atol=1e-4)


def test_the_scale_of_returns_is_that_of_a_loop_and_is_never_reset():
    scale = c.ReturnScale(0.8)
    step = quick(c.ReturnScale.step)
    rewards, state, sums, filtered = RNG.exponential(size=(3, T, E)).astype(np.float32), scale.init(E), [], np.zeros(E)
    for reward in rewards:
        scaled, state = step(scale, reward, state)
        for row in reward:
            filtered = 0.8 * filtered + row
            sums.append(filtered)
        np.testing.assert_allclose(scaled, reward / np.std(sums), rtol=1e-4)
    np.testing.assert_allclose(state.filtered, filtered, rtol=1e-5)
    for factor in (10.0, 1e-8, 1e8):  # the scale of the bonus does not matter
        other, again = np.zeros(0), scale.init(E)
        for reward in rewards:
            other, again = step(scale, (factor * reward).astype(np.float32), again)
        np.testing.assert_allclose(other, scaled, rtol=1e-3)  # pyright: ignore[reportPossiblyUnboundVariable]


def test_a_constant_reward_sums_to_its_limit_and_one_step_is_not_scaled():
    scale = c.ReturnScale(0.8)

    @quick
    def both(long, short):
        return scale.step(long, scale.init(E))[1], scale.step(short, scale.init(E))[0]

    state, scaled = both(np.ones((60, E), np.float32), np.full((1, E), 0.3, np.float32))
    np.testing.assert_allclose(state.filtered, 1 / (1 - 0.8), rtol=1e-4)
    np.testing.assert_allclose(scaled, 0.3, rtol=1e-6)  # nothing varies yet
    with jax.enable_x64(True):
        wide = scale.init(E)
        assert (wide.filtered.dtype, wide.returns.mean.dtype, wide.returns.squares.dtype) == (np.float64,) * 3


# --- laws and networks ------------------------------------------------------------------------------------------------


def test_laws_sample_what_they_say():
    choice, normal = c.Categorical(3), c.Gaussian(2)
    logits, wanted = jnp.array([0.2, -1.0, 1.3]), jnp.array([0.5, -1.0, 0.1, -0.7])

    @quick
    def all_of_it(key):
        chosen = choice.sample(key, jnp.broadcast_to(logits, (4000, 3)))
        drawn = normal.sample(key, jnp.broadcast_to(wanted, (4000, 4)))
        logs = choice.log_probability(jnp.broadcast_to(logits, (3, 3)), jnp.arange(3))
        entropies = choice.entropy(logits), normal.entropy(wanted)
        return chosen, drawn, logs, normal.log_probability(wanted, drawn), *entropies

    chosen, drawn, logs, of_drawn, entropy, spread = map(np.asarray, all_of_it(jax.random.key(0)))
    law = np.exp([0.2, -1.0, 1.3]) / np.exp([0.2, -1.0, 1.3]).sum()
    np.testing.assert_allclose(np.bincount(chosen) / 4000, law, atol=4 * 0.5 / np.sqrt(4000))
    np.testing.assert_allclose(np.exp(logs), law, rtol=1e-5)
    assert entropy == pytest.approx(-(law * np.log(law)).sum(), rel=1e-5)
    mean, sigma = np.array([0.5, -1.0]), np.exp([0.1, -0.7])
    np.testing.assert_allclose(drawn.mean(0), mean, atol=4 * 1.2 / np.sqrt(4000))
    np.testing.assert_allclose(drawn.std(0), sigma, rtol=0.06)
    density = np.exp(-0.5 * ((drawn - mean) / sigma) ** 2) / (sigma * np.sqrt(2 * np.pi))
    np.testing.assert_allclose(of_drawn, np.log(density).sum(1), rtol=1e-3, atol=1e-3)
    assert -of_drawn.mean() == pytest.approx(spread, abs=4 * of_drawn.std() / np.sqrt(4000))


@pytest.mark.parametrize("kind", ["shared", "separate", "stopped"])
def test_who_trains_which_trunk(kind):
    """Linear parts by hand: the gradient of a head is zero where the kind says so."""
    number = 3 if kind == "separate" else 1
    trunks = tuple(Matrix(np.eye(2, dtype=np.float32) * (1 + i)) for i in range(number))
    heads = Matrix(np.ones((1, 2))), Matrix(2 * np.ones((1, 2)))
    network = c.ActorCritic(trunks, Matrix(np.ones((2, 2))), heads, kind)
    slopes = jax.jacrev(lambda net: jnp.concatenate([net(jnp.array([1.0, 2.0]))[0][:1], net(jnp.array([1.0, 2.0]))[1]]))
    found = quick(slopes)(network)
    moved = np.array([[np.any(np.asarray(trunk.matrix)[row] != 0) for trunk in found.trunks] for row in range(3)])
    expected = {"shared": [[1], [1], [1]], "stopped": [[1], [1], [0]], "separate": [[1, 0, 0], [0, 1, 0], [0, 0, 1]]}
    np.testing.assert_array_equal(moved, np.array(expected[kind], bool))


def test_weights_are_orthogonal():
    make = lambda key: c.make_perceptrons(key, c.Layers((5, 3)), c.Layers((2, 4), 0.5))  # noqa: E731
    wide, tall = quick(make)(jax.random.key(0))
    first = np.asarray(wide.layers[0].weight)
    np.testing.assert_allclose(first @ first.T, 2 * np.eye(3), atol=1e-5)
    last = np.asarray(tall.layers[0].weight)
    np.testing.assert_allclose(last.T @ last, 0.25 * np.eye(2), atol=1e-5)
    assert not np.any(np.asarray(tall.layers[0].bias))


def test_all_orthogonal_matrices_are_as_likely_as_first_weights():
    """Entries have mean 0 and the same variance, and half of all turns are mirror images; LAPACK's own are not so."""
    sizes = ((2, 2), (3, 2), (2, 3))
    make = lambda key: c.make_perceptrons(key, *(c.Layers(size, 0.5) for size in sizes))  # noqa: E731
    weights = lambda key: [one.layers[0].weight for one in make(key)]  # noqa: E731  # pyright: ignore[reportFunctionMemberAccess]
    number = 2000
    found = quick(jax.vmap(weights))(jax.random.split(jax.random.key(0), number))
    for (inputs, outputs), drawn in zip(sizes, found, strict=True):
        assert drawn.shape == (number, outputs, inputs)
        variance = 0.25 / max(inputs, outputs)
        np.testing.assert_allclose(np.mean(drawn, 0), 0, atol=5 * np.sqrt(variance / number))
        np.testing.assert_allclose(np.mean(drawn**2, 0), variance, atol=5 * np.sqrt(2 / number) * variance)
    assert abs(np.linalg.det(2 * found[0]).mean()) < 5 / np.sqrt(number)


def test_networks_are_planned_as_their_makers_say(monkeypatch):
    """Sizes, gains, activations and what stands last, without a weight: of actors and critics, and of bonuses."""
    from laureate.control import policies, prediction_bonuses, rnd

    for module in (policies, prediction_bonuses, rnd):
        monkeypatch.setattr(module, "make_perceptrons", lambda key, *plans: list(plans))
    monkeypatch.setattr(rnd, "size_of", lambda plan: 0)
    key, root = jax.random.key(0), np.sqrt(2)
    for kind, trunks in (("shared", 1), ("stopped", 1), ("separate", 4)):
        made = c.make_actor_critic(key, 5, 7, num_heads=3, width=6, depth=2, kind=kind)
        assert made.trunks == (c.Layers((5, 6, 6), root, True, jax.nn.relu),) * trunks
        assert made.policy == c.Layers((6, 7), 0.01)
        assert made.heads == (c.Layers((6, 1), 0.01),) * 3
    leaky = {"activation": jax.nn.leaky_relu}
    bonus: Any = c.make_rnd(key, 5, num_features=3, width=6, depth=2, keep=0.5)
    assert bonus.target.network == c.Layers((5, 6, 6, 3), **leaky)
    assert bonus.predictor.network == c.Layers((5, 6, 6, 6, 6, 3), **leaky), "two layers more"
    assert bonus.keep == 0.5
    bonus = c.make_dynamics(key, 5, 4, num_features=3, width=6, clip=2.0)
    assert bonus.target.network == c.Layers((5, 6, 3), **leaky)
    assert bonus.predictor.network == c.Layers((9, 6, 6, 6, 3), **leaky)
    assert (bonus.encode.num, bonus.clip) == (4, 2.0)
    assert c.make_autoencoder(key, 5, num_features=3, width=6).predictor == c.Layers((5, 6, 3, 6, 5), **leaky)


class Matrix(eqx.Module):
    """A linear map, from a table."""

    matrix: jax.Array = eqx.field(converter=lambda table: jnp.asarray(table, jnp.float32))

    def __call__(self, x):
        return self.matrix @ x


# --- PPO --------------------------------------------------------------------------------------------------------------


class TwoHeads(eqx.Module):
    """Logits and two values, linear in the observation."""

    policy: jax.Array
    values: jax.Array

    def __call__(self, x):
        return self.policy @ x, self.values @ x


POLICY, VALUES = RNG.normal(size=(3, 5)).astype(np.float32), RNG.normal(size=(H, 5)).astype(np.float32)
SEEN, REACHED = RNG.normal(size=(2, T, E, 5)).astype(np.float32)
ACTION = RNG.integers(0, 3, (T, E))
OLD = np.log(RNG.uniform(0.2, 0.6, (T, E))).astype(np.float32)
LAST = RNG.normal(size=(E, 5)).astype(np.float32)
ROLLOUT = c.Rollout(*map(jnp.asarray, (SEEN, ACTION, OLD, REACHED, REWARD, TERMINATED, ENDED, LAST)))


def made(**settings):
    network = TwoHeads(jnp.asarray(POLICY), jnp.asarray(VALUES))
    given = {"gamma": (0.9, 0.8), "episodic": (1, 0), "lam": 0.7, "clip": 0.2, "entropy": 0.01}
    return c.PPO(network, c.Categorical(3), **given | settings)


def test_an_episodic_head_ends_and_the_other_goes_on():
    """Terminations are worth nothing, time limits the value of what was reached; the second head sees no end."""
    rewards = RNG.normal(size=(T, E, H)).astype(np.float32)
    ppo = made()
    advantage, target = quick(lambda ppo, *more: ppo.advantages(*more, ppo.init()))(ppo, ROLLOUT, rewards)
    values, reached, last = SEEN @ VALUES.T, REACHED @ VALUES.T, LAST @ VALUES.T
    first = gae_by_hand(rewards[..., 0], values[..., 0], reached[..., 0], TERMINATED, ENDED, 0.9, 0.7)
    onward = np.concatenate([values[1:, :, 1], last[None, :, 1]])
    never = np.zeros_like(ENDED)
    second = gae_by_hand(rewards[..., 1], values[..., 1], onward, never, never, 0.8, 0.7)
    np.testing.assert_allclose(advantage, np.stack([first, second], -1), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(target, np.stack([first, second], -1) + values, rtol=1e-3, atol=1e-4)


def loss_by_hand(policy, values, advantage, target, clip, entropy):
    logits = SEEN @ policy.T
    law = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    ratio = np.take_along_axis(law, ACTION[..., None], -1)[..., 0] / np.exp(OLD)
    gain = np.minimum(ratio * advantage, np.clip(ratio, 1 - clip, 1 + clip) * advantage)
    value_loss = 0.5 * ((SEEN @ values.T - target) ** 2).mean((0, 1))
    outside = (ratio < 1 - clip) | (ratio > 1 + clip)
    return -gain.mean() + value_loss.sum() + entropy * (law * np.log(law)).sum(-1).mean(), value_loss, outside.mean()


def test_the_loss_and_a_step_are_those_of_numpy():
    """The step by gradient descent against central differences of a loss in float64."""
    ppo = made(learning_rate=0.1, optimiser=optax.sgd)
    advantage, target = RNG.normal(size=(T, E)).astype(np.float32), RNG.normal(size=(T, E, H)).astype(np.float32)
    batch = c.PPOBatch(jnp.asarray(SEEN), jnp.asarray(ACTION), jnp.asarray(OLD), advantage, target)
    step = quick(lambda ppo, batch: ppo.step(batch, ppo.init()))
    state, info = step(ppo, batch)
    assert int(info.status) == 0
    advantage[0, 0], kept = np.nan, advantage[0, 0]
    assert int(step(ppo, batch)[1].status) == 1
    advantage[0, 0] = kept
    whole, value_loss, outside = loss_by_hand(POLICY, VALUES, advantage, target, 0.2, 0.01)
    assert float(info.loss) == pytest.approx(whole, rel=1e-4)
    np.testing.assert_allclose(info.value_loss, value_loss, rtol=1e-4)
    assert float(info.clipped) == pytest.approx(outside)
    assert int(info.cost) == T * E

    def slope(which, row, column):
        tables = [POLICY.astype(float), VALUES.astype(float)]
        ends = []
        for sign in (1, -1):
            moved = [table.copy() for table in tables]
            moved[which][row, column] += sign * 1e-5
            ends.append(loss_by_hand(*moved, advantage, target, 0.2, 0.01)[0])  # pyright: ignore[reportCallIssue]
        return (ends[0] - ends[1]) / 2e-5

    for which, before, after in ((0, POLICY, state.parameters.policy), (1, VALUES, state.parameters.values)):
        moved = (before - np.asarray(after)) / 0.1
        for row, column in ((0, 0), (1, 3)):
            assert moved[row, column] == pytest.approx(slope(which, row, column), rel=1e-2, abs=1e-4)


def test_every_epoch_deals_all_environments():
    rows = np.asarray(quick(lambda key: c.minibatches(key, 12, 4, 3))(jax.random.key(0)))
    assert rows.shape == (12, 3)
    orders = rows.reshape(3, 12)
    for order in orders:
        assert sorted(order) == list(range(12))
    assert len({tuple(order) for order in orders}) == 3


# --- bonuses ----------------------------------------------------------------------------------------------------------


def steps_of(rows, action=None):
    rows = jnp.asarray(rows, jnp.float32)
    return c.Transitions(jnp.zeros_like(rows), action, rows)


def linear_rnd(target, predictor, **settings):
    given = {"whiten": False, "optimiser": optax.sgd, "learning_rate": 0.1}
    return c.RND(Matrix(target), Matrix(predictor), **given | settings)


A, B = RNG.normal(size=(2, 3, 4))


def test_the_bonus_is_the_mean_squared_error_on_what_was_reached():
    x = RNG.normal(size=(6, 4))
    bonus = linear_rnd(A, B)
    steps = c.Transitions(jnp.asarray(RNG.normal(size=(6, 4)), jnp.float32), None, jnp.asarray(x, jnp.float32))
    state = bonus.init(jnp.zeros(4))
    found = quick(lambda bonus, steps: bonus.reward(steps, state))(bonus, steps)
    np.testing.assert_allclose(found, ((x @ (A - B).T) ** 2).mean(1), rtol=1e-4)


def test_a_predictor_that_is_the_target_gives_no_bonus():
    bonus = linear_rnd(A, A)
    np.testing.assert_array_equal(quick(bonus.novelty)(jnp.eye(4), bonus.init(jnp.zeros(4))), 0)


def test_the_target_gets_no_gradient():
    def loss(bonus):
        state = c.PredictionState(bonus.predictor, None, RunningStatistics.empty((4,)))
        return jnp.sum(bonus.errors(bonus.predictor, steps_of(np.eye(4)), state))

    slope = quick(jax.grad(loss))(linear_rnd(A, B))
    assert np.all(np.asarray(slope.target.matrix) == 0)
    assert np.all(np.asarray(slope.predictor.matrix) != 0)


@pytest.fixture(scope="module")
def fitted():
    """Many steps on the same 15 rows: what was learned, and the novelty of the rows and of one-hot ones."""

    @quick
    def fit(bonus, rows, count):
        learn = lambda at, state: bonus.step(jax.random.key(at), steps_of(rows), state)[0]  # noqa: E731
        state = jax.lax.fori_loop(0, count, learn, bonus.init(rows[0]))
        return state.parameters.matrix, bonus.novelty(rows, state), bonus.novelty(jnp.eye(4), state)

    return lambda bonus, rows, count: fit(bonus, jnp.asarray(rows, jnp.float32), jnp.asarray(count))


def test_a_linear_predictor_learns_the_span_of_the_data_and_nothing_else(fitted):
    """Â = A P + Â₀ (I − P) after many steps: no error on the data, that of the start beside it."""
    data = np.zeros((15, 4))
    data[:, :2] = np.random.default_rng(1).normal(size=(15, 2))
    learned, left, _ = fitted(linear_rnd(A, B, learning_rate=jnp.asarray(0.3)), data, 1500)
    np.testing.assert_allclose(left, 0, atol=1e-5)
    np.testing.assert_allclose(learned, np.concatenate([A[:, :2], B[:, 2:]], 1), atol=5e-3)


def test_thinning_is_unbiased_and_counted():
    rows = RNG.normal(size=(12, 4))
    bonus = linear_rnd(A, B, keep=0.25)
    state = bonus.init(jnp.zeros(4))
    steps = steps_of(rows)
    one = lambda key: bonus.step(key, steps, state)[1]  # noqa: E731
    told = quick(jax.vmap(one))(jax.random.split(jax.random.key(0), 4000))
    kept, loss = np.asarray(told.kept), np.asarray(told.loss)
    assert kept.mean() == pytest.approx(3.0, abs=4 * 1.5 / np.sqrt(4000))
    some, whole = loss[kept > 0], ((rows @ (A - B).T) ** 2).mean()
    assert some.mean() == pytest.approx(whole, abs=4 * some.std() / np.sqrt(len(some)))
    assert np.all(loss[kept == 0] == 0)
    assert np.all(np.asarray(told.cost) == 12)


def test_observations_are_whitened_and_clipped():
    """Three columns: ordinary, constant, and one with an outlier; statistics come from what was reached."""
    rows = np.random.default_rng(2).normal(size=(40, 3))
    rows[:, 1] = 7.0
    bonus = c.AutoencoderBonus(lambda s: 0 * s, clip=2.0)
    more = rows[:5] * [9.0, 1.0, 1.0]

    @quick
    def all_of_it(rows, more):
        state = bonus.observe(steps_of(rows), bonus.init(jnp.zeros(3)))
        return bonus.normalise(more, state), bonus.novelty(more, state), bonus.normalise(more, bonus.init(jnp.zeros(3)))

    seen, novelty, without = all_of_it(jnp.asarray(rows, jnp.float32), jnp.asarray(more, jnp.float32))
    expected = np.clip((more - rows.mean(0)) / np.maximum(rows.std(0), 1e-4), -2, 2)
    expected[:, 1] = 0
    np.testing.assert_allclose(seen, expected, rtol=1e-3, atol=1e-4)
    assert np.abs(expected).max() == 2
    np.testing.assert_allclose(novelty, (expected**2).mean(1), rtol=1e-3)
    assert np.isnan(np.asarray(without)).all()


def test_a_dynamics_bonus_predicts_from_before_and_action():
    before, after, action = RNG.normal(size=(5, 2)), RNG.normal(size=(5, 2)), RNG.integers(0, 2, 5)
    table = RNG.normal(size=(2, 4)).astype(np.float32)
    model = lambda s, a: jnp.asarray(table) @ jnp.concatenate([s, a])  # noqa: E731
    bonus = c.DynamicsBonus(lambda s: 2 * s, model, lambda a: jax.nn.one_hot(a, 2), whiten=False)  # pyright: ignore[reportCallIssue]
    steps = c.Transitions(*(jnp.asarray(x) for x in (before.astype(np.float32), action, after.astype(np.float32))))
    found = quick(lambda steps: bonus.reward(steps, bonus.init(jnp.zeros(2))))(steps)
    predicted = np.concatenate([before, np.eye(2)[action]], 1) @ table.T
    np.testing.assert_allclose(found, ((predicted - 2 * after) ** 2).mean(1), rtol=1e-4)


def test_counts_count_once_and_hashes_are_signs():
    hashed = c.SimHash(jnp.array([[1.0, 0.0], [0.0, 1.0], [1.0, -1.0]]))
    rows = np.array([[1.0, 2.0], [1.0, 2.0], [-1.0, -3.0]], np.float32)
    bonus = c.CountBonus(hashed, hashed.num_cells)

    @quick
    def all_of_it(rows):
        state = bonus.observe(steps_of(rows), bonus.init(None))
        learned, info = bonus.step(jax.random.key(0), steps_of(rows), state)
        return state.counts, learned.counts, bonus.novelty(rows, state), info.kept

    counts, learned, novelty, kept = all_of_it(rows)
    assert (int(counts[3]), int(counts[4]), int(counts.sum())) == (2, 1, 3)
    np.testing.assert_array_equal(counts, learned)
    np.testing.assert_allclose(novelty, [3**-0.5, 3**-0.5, 2**-0.5], rtol=1e-6)
    assert int(kept) == 0


def test_what_lies_beyond_the_cells_is_counted_at_their_ends_and_a_zero_has_no_sign():
    bonus = c.CountBonus(lambda x: x[0], 4)
    rows = np.array([[-3], [0], [3], [4], [100], [2]], np.int32)

    @quick
    def all_of_it(rows):
        state = bonus.observe(c.Transitions(rows - 1, None, rows), bonus.init(None))  # pyright: ignore[reportArgumentType]
        hashed = jax.vmap(c.SimHash(jnp.array([[1.0, 0.0, 0.0, 2.0], [0.0, 1.0, 0.0, 0.0]])))
        images = jnp.array([[[0.0, 0.0], [9.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]], [[-1.0, -1.0], [0.0, 0.5]]])
        return (
            state.counts,
            bonus.novelty(rows, state),
            bonus.reward(c.Transitions(rows, None, rows), state),
            hashed(images),
        )

    counts, novelty, reward, cells = all_of_it(rows)
    assert counts.tolist() == [2, 0, 1, 3]
    np.testing.assert_allclose(novelty, 1 / np.sqrt([3, 3, 4, 4, 4, 2]), rtol=1e-6)
    np.testing.assert_array_equal(novelty, reward)
    assert cells.tolist() == [0, 3, 0]


def test_rarely_seen_states_are_newer(fitted):
    """Of one-hot states, gradient descent takes the same share of the error away with every step, by their counts."""
    counts, num_steps = np.array([8, 4, 2, 1]), 20
    rows = np.repeat(np.eye(4), counts, axis=0)
    _, _, found = fitted(linear_rnd(A, B, learning_rate=jnp.asarray(0.5)), rows, num_steps)
    start = ((A - B) ** 2).mean(0)
    left = (1 - 0.5 * 2 / 3 * counts / counts.sum()) ** (2 * num_steps)  # three features
    np.testing.assert_allclose(np.asarray(found) / start, left, rtol=1e-3)


# --- the update -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def updated():
    """Rewards of a learner with two heads, with one, and after statistics; all in one program."""

    def learner(heads):
        still = made(learning_rate=1e-9)  # so that the mean over the gradient steps is that of one on the whole
        ppo = still if heads == 2 else c.PPO(lambda s: (s[:3], s[:1]), c.Categorical(3))
        return c.BonusPPO(ppo, SPY, c.ReturnScale(0.5), coefficients=(3.0, 0.5), num_epochs=2, num_minibatches=2)

    @quick
    def both(rollout):
        found = []
        for heads in (1, 2):
            one = learner(heads)
            state = one.observe(rollout._replace(following=5 * rollout.following), one.init(rollout.last[0], E))
            reward, raw, after = one.rewards(rollout, state)
            found.append((reward, raw, after.scale, state.bonus.observations, after.bonus.observations))
        _, info = learner(2).step(jax.random.key(0), rollout, state)
        return (*found, info)

    reward = REWARD.copy()
    reward[0, 0] = np.nan
    worst = both(ROLLOUT._replace(reward=jnp.asarray(reward)))[-1]
    return (*both(ROLLOUT), (worst.status, worst.ppo.status))


class Spy(c.AutoencoderBonus):
    """Its loss is the sum of all that it is given to learn from."""

    def step(self, key, transitions, state):
        state, info = super().step(key, transitions, state)
        return state, info._replace(loss=jnp.sum(transitions.following))


SPY = Spy(lambda s: 0 * s, keep=0.5, clip=1.5)


def test_the_bonus_is_computed_before_its_statistics_are_updated(updated):
    one, two, *_ = updated
    rows = REACHED.reshape(-1, 5)
    seen = np.clip((rows - 5 * rows.mean(0)) / (5 * rows.std(0)), -1.5, 1.5)
    raw = (seen**2).mean(1).reshape(T, E)
    for reward, found, scale, before, after in (one, two):
        np.testing.assert_allclose(found, raw, rtol=1e-3)
        np.testing.assert_array_equal((int(before.count), int(after.count)), (T * E, 2 * T * E))
        scaled = raw / np.sqrt(np.asarray(scale.returns.squares) / (T * E))
        both = np.stack([REWARD, scaled], -1)
        expected = both if reward.shape[-1] == 2 else (both * [3.0, 0.5]).sum(-1, keepdims=True)
        np.testing.assert_allclose(reward, expected, rtol=1e-3, atol=1e-4)


def test_an_update_tells_means_and_environment_steps(updated):
    info = updated[2]
    assert int(info.cost) == T * E
    assert int(info.status) == 0
    assert float(info.reward) == pytest.approx(REWARD.mean(), rel=1e-4)
    assert float(info.bonus) == pytest.approx(float(np.mean(updated[1][1])), rel=1e-4)
    assert float(info.deviation) == pytest.approx(np.sqrt(float(updated[1][2].returns.variance())), rel=1e-4)


def test_with_one_head_a_bonus_is_a_reward_and_without_one_nothing_is_told_of_it():
    """The same update as that of PPO alone which is paid the sum; its minibatches are the same."""
    ppo = c.PPO(TwoHeads(jnp.asarray(POLICY), jnp.asarray(VALUES[:1])), c.Categorical(3), gamma=0.9, learning_rate=0.1)
    sizes = {"num_epochs": 1, "num_minibatches": 2}
    paid, plain = c.BonusPPO(ppo, SPY, c.ReturnScale(0.5), coefficients=(3.0, 0.5), **sizes), c.BonusPPO(ppo, **sizes)

    @quick
    def both(rollout):
        state = paid.observe(rollout, paid.init(rollout.last[0], E))
        summed = rollout._replace(reward=paid.rewards(rollout, state)[0][..., 0])
        key = jax.random.key(0)
        return paid.step(key, rollout, state), plain.step(key, summed, plain.init(rollout.last[0], E))

    (one, told), (two, alone) = both(ROLLOUT)
    for left, right in zip(jax.tree.leaves((one.ppo, told.ppo)), jax.tree.leaves((two.ppo, alone.ppo)), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-6)
    assert (two.bonus, two.scale) == (None, None)
    assert [float(alone.bonus), float(alone.deviation), float(alone.distillation)] == [0, 0, 0]
    assert (int(alone.cost), int(alone.status)) == (T * E, 0)


def test_one_status_that_is_bad_is_that_of_the_update(updated):
    for status in updated[3]:
        assert np.issubdtype(status.dtype, np.integer)  # a mean is none
        assert int(status) == 1


def test_advantages_are_added_by_their_coefficients_and_minibatches_are_parts(updated):
    """The mean loss of all gradient steps, of weights that hardly move, is that of the whole rollout by hand."""
    (_, two, info, _), never = updated, np.zeros_like(ENDED)
    values, reached, last = SEEN @ VALUES.T, REACHED @ VALUES.T, LAST @ VALUES.T
    onward = np.concatenate([values[1:, :, 1], last[None, :, 1]])
    rewards = np.asarray(two[0])
    first = gae_by_hand(rewards[..., 0], values[..., 0], reached[..., 0], TERMINATED, ENDED, 0.9, 0.7)
    second = gae_by_hand(rewards[..., 1], values[..., 1], onward, never, never, 0.8, 0.7)
    target = np.stack([first, second], -1) + values
    whole, value_loss, _ = loss_by_hand(POLICY, VALUES, 3.0 * first + 0.5 * second, target, 0.2, 0.01)
    assert float(info.ppo.loss) == pytest.approx(whole, rel=1e-3)
    np.testing.assert_allclose(info.ppo.value_loss, value_loss, rtol=1e-3)
    assert float(info.distillation) == pytest.approx(REACHED.sum() / 2, rel=1e-4)  # two minibatches


def test_the_bonus_sees_rows_of_its_view():
    learner = c.BonusPPO(c.PPO(lambda s: (s[:3], s[:1]), c.Categorical(3)), SPY, view=lambda seen: seen[1:])
    rows = quick(learner.seen)(ROLLOUT)
    np.testing.assert_array_equal(rows.following[E + 1], REACHED[1, 1, 1:])
    np.testing.assert_array_equal(rows.observation[E + 1], SEEN[1, 1, 1:])
    np.testing.assert_array_equal(rows.action[E + 1], ACTION[1, 1])
    assert learner.init(ROLLOUT.last[0], E).bonus.observations.mean.shape == (4,)
