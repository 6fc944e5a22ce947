"""The adversarial trainer, its regularisers and the bottleneck against NumPy, closed forms and one another."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import scipy.linalg
import scipy.optimize

from laureate.generative import (
    LOSSES,
    AdaptiveBudget,
    Adversarial,
    BottleneckState,
    GradientPenalty,
    InstanceNoise,
    Judge,
    VariationalBottleneck,
    divergence,
    frechet_distance,
    imitation_reward,
    make_encoder,
)

RNG = np.random.default_rng(3)
REAL, MADE = RNG.normal(1, 1, (6, 2)).astype(np.float32), RNG.normal(-1, 1, (6, 2)).astype(np.float32)
W, B = np.array([0.7, -0.4], np.float32), np.float32(0.2)
KEY = jax.random.key(5)


class Linear(eqx.Module):
    """l = w·x + b."""

    w: jax.Array
    b: jax.Array

    def __call__(self, x):
        return self.w @ x + self.b


class Affine(eqx.Module):
    """x = A z + c, and a label's shift where one is told."""

    a: jax.Array
    c: jax.Array

    def __call__(self, z, *label):
        return self.a @ z + self.c + sum(label)


HEAD = Linear(jnp.asarray(W), jnp.asarray(B))
GENERATOR = Affine(jnp.asarray(RNG.normal(size=(2, 3)), jnp.float32), jnp.asarray([0.1, -0.2], jnp.float32))


def softplus(x):
    return np.logaddexp(0, x)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


# values and derivatives by the logit: real, made, generator
PLAY = {
    "non-saturating": (
        (lambda v: softplus(-v), lambda v: -sigmoid(-v)),
        (softplus, sigmoid),
        (lambda v: softplus(-v), lambda v: -sigmoid(-v)),
    ),
    "saturating": (
        (lambda v: softplus(-v), lambda v: -sigmoid(-v)),
        (softplus, sigmoid),
        (lambda v: -softplus(v), lambda v: -sigmoid(v)),
    ),
    "hinge": (
        (lambda v: np.maximum(0, 1 - v), lambda v: -1.0 * (v < 1)),
        (lambda v: np.maximum(0, 1 + v), lambda v: 1.0 * (v > -1)),
        (lambda v: -v, lambda v: -1 + 0 * v),
    ),
    "wasserstein": (
        (lambda v: -v, lambda v: -1 + 0 * v),
        (lambda v: v, lambda v: 1 + 0 * v),
        (lambda v: -v, lambda v: -1 + 0 * v),
    ),
    "lsgan": (
        (lambda v: (v - 1) ** 2, lambda v: 2 * (v - 1)),
        (lambda v: v**2, lambda v: 2 * v),
        (lambda v: (v - 1) ** 2, lambda v: 2 * (v - 1)),
    ),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses_are_those_of_their_papers(name):
    logits = np.linspace(-3, 3, 13)
    for mine, (theirs, _) in zip(LOSSES[name], PLAY[name], strict=True):
        np.testing.assert_allclose(mine(jnp.asarray(logits)), theirs(logits), atol=1e-6)


def test_the_reward_of_imitation_is_minus_log_of_one_minus_d():
    logits = np.array([-3.0, 0.0, 2.0])
    np.testing.assert_allclose(imitation_reward(jnp.asarray(logits)), -np.log(1 - sigmoid(logits)), rtol=1e-5)
    assert np.isclose(float(imitation_reward(jnp.asarray(200.0))), 200.0)  # where 1 − D is 0 in floats


# --- one step of the trainer, by hand ---------------------------------------------------------------------------------


def by_hand(loss, latents, rows, labels, w, b, a, c, rate, ratio, parts):
    """k steps of D and one of G in NumPy; ``parts`` micro-batches change nothing, for the mean of means is the mean."""
    real_slope, made_slope, generator_slope = (pair[1] for pair in PLAY[loss])
    margin = np.nan
    for z, x, label in zip(latents[:-1], rows, labels, strict=True):
        made = z @ a.T + c + label[:, None]
        on_real, on_made = x @ w + b, made @ w + b
        by_w = np.mean(real_slope(on_real)[:, None] * x, 0) + np.mean(made_slope(on_made)[:, None] * made, 0)
        by_b = np.mean(real_slope(on_real)) + np.mean(made_slope(on_made))
        margin = on_real.mean() - on_made.mean()
        w, b = w - rate * ratio * by_w, b - rate * ratio * by_b
    z = latents[-1]
    made = z @ a.T + c + labels[-1][:, None]
    slopes = generator_slope(made @ w + b)
    by_x = slopes[:, None] * w[None]
    lengths = np.linalg.norm(by_x, axis=1)
    return w, b, a - rate * by_x.T @ z / len(z), c - rate * by_x.mean(0), lengths, margin


class Heard(InstanceNoise):
    """No noise; its state is what it was last told of the generator's slopes."""

    def respond(self, state, slopes):
        return slopes


@pytest.fixture(scope="module")
def stepped():
    """All losses with two discriminator steps, two parts, a ratio, an average and labels; one program."""
    x = jnp.asarray(RNG.normal(size=(8, 2)), jnp.float32)
    labels = jnp.asarray(RNG.normal(size=8), jnp.float32)

    class Told(eqx.Module):
        head: Linear

        def __call__(self, x, label):
            return self.head(x)

    models = {
        name: Adversarial(
            GENERATOR,
            Told(HEAD),
            name,
            Heard(0.0) if name == "lsgan" else None,
            num_latents=3,
            learning_rate=0.1,
            ratio=3.0,
            optimiser=optax.sgd,
            num_discriminator_steps=2,
            num_accumulated=2,
            decay=0.25,
            below=0.3,
        )
        for name in LOSSES
    }
    run = jax.jit(lambda: {name: model.step(KEY, (x, labels), model.init()) for name, model in models.items()})
    latent_key = jax.random.split(KEY, 3)[0]
    latents = np.asarray(jax.random.normal(latent_key, (3, 4, 3)))
    return run(), latents, np.asarray(x).reshape(2, 4, 2), np.asarray(labels).reshape(2, 4)


@pytest.mark.parametrize("name", LOSSES)
def test_a_step_is_that_by_hand(stepped, name):
    results, latents, rows, labels = stepped
    state, info = results[name]
    a, c = np.asarray(GENERATOR.a), np.asarray(GENERATOR.c)
    w, b, new_a, new_c, lengths, margin = by_hand(name, latents, rows, labels, W, B, a, c, 0.1, 3.0, 2)
    head = state.judge.parameters[0].head
    for mine, theirs in ((head.w, w), (head.b, b), (state.generator.a, new_a), (state.generator.c, new_c)):
        np.testing.assert_allclose(mine, theirs, rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(state.average.c, 0.25 * c + 0.75 * new_c, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(info.slope, lengths.mean(), rtol=1e-5)
    np.testing.assert_allclose(info.flat, np.mean(lengths < 0.3), rtol=1e-5)
    np.testing.assert_allclose(info.margin, margin, rtol=1e-4, atol=1e-5)
    assert int(info.cost) == 2 * 2 + 2
    assert int(state.step) == 1


def test_regularisers_are_told_the_slope_at_every_made_example(stepped):
    """One number each in the order of the batch, in however many parts it was made; of least squares they differ."""
    results, latents, rows, labels = stepped
    hand = by_hand("lsgan", latents, rows, labels, W, B, np.asarray(GENERATOR.a), np.asarray(GENERATOR.c), 0.1, 3.0, 2)
    (slopes,) = results["lsgan"][0].judge.regularisers
    assert np.ptp(hand[4]) > 0.01
    np.testing.assert_allclose(slopes, hand[4], rtol=1e-4)
    assert slopes.shape == (4,)


class Watched(Adversarial):
    """Tells its key and its rows instead of learning."""

    def step(self, key, x, state):  # pyright: ignore[reportIncompatibleMethodOverride]
        return state._replace(step=state.step + 1), (jax.random.key_data(key), *x)


def test_every_step_of_training_has_the_key_and_the_rows_of_its_number():
    """Rows with replacement, as many as all steps of the discriminator take, of all arrays the same."""
    model = Watched(GENERATOR, HEAD, num_latents=3, num_discriminator_steps=2)
    x, labels = np.arange(10.0).reshape(5, 2), np.arange(5)

    def of_number(n):
        rows_key, step_key = jax.random.split(jax.random.fold_in(KEY, n))
        return jax.random.key_data(step_key), jax.random.uniform(rows_key, (8,))

    def run(x, labels):
        start = model.init()._replace(step=jnp.asarray(7))
        state, told = model.train(KEY, (x, labels), start, num_steps=3, batch=4)
        return state.step, told, jax.vmap(of_number)(7 + jnp.arange(3))

    step, (keys, rows, told), (wanted, drawn) = jax.tree.map(np.asarray, jax.jit(run)(x, labels))
    places = (drawn * 5).astype(int)
    assert step == 10
    np.testing.assert_array_equal(keys, wanted)
    np.testing.assert_array_equal(told, places)
    np.testing.assert_array_equal(rows, x[places])


# --- the discriminator and its monitors -------------------------------------------------------------------------------


def judged(regulariser=(), real=REAL, made=MADE, loss="non-saturating", **settings):
    judge = Judge(HEAD, loss, regulariser, optimiser=optax.sgd, **settings)
    return judge.step(KEY, jnp.asarray(real), jnp.asarray(made), judge.init())


@pytest.fixture(scope="module")
def told():
    """The same step behind every regulariser; one program."""
    identity = lambda x: (x, jnp.full_like(x, np.log(0.3)))  # noqa: E731
    cases = {
        "plain": (),
        "mean": VariationalBottleneck(identity, beta=0.0, information=1e6, noise=False),
        "noise": InstanceNoise(0.3),
        "sampled": VariationalBottleneck(identity, beta=0.0, beta_rate=0.0),
        "annealed": (InstanceNoise(0.3, horizon=4.0),),
        "real": GradientPenalty(0.5),
        "made": GradientPenalty(0.5, "made"),
        "interpolated": GradientPenalty(0.5, "interpolated"),
        "priced": VariationalBottleneck(identity, beta=2.0, information=0.5, beta_rate=0.1, noise=False),
        "few": VariationalBottleneck(identity, beta=2.0, information=0.5, beta_rate=0.1, noise=False),
        "both": (VariationalBottleneck(identity, beta=2.0, information=0.5, noise=False), GradientPenalty(0.5)),
    }

    def every():
        found = {name: judged(one, real=REAL[: 2 if name == "few" else 6]) for name, one in cases.items()}
        return found | {"far": judged(real=REAL + 20, loss="hinge")}

    return jax.jit(every)()


def pairs(told, first, second):
    return zip(*(jax.tree.leaves(told[name][0].parameters) for name in (first, second)), strict=True)


def loss_of(info):
    return float(info.loss)


def test_a_bottleneck_without_noise_and_price_is_the_plain_step(told):
    for leaf, other in zip(
        jax.tree.leaves(told["mean"][0].parameters), jax.tree.leaves(told["plain"][0].parameters), strict=True
    ):
        np.testing.assert_array_equal(leaf, other)
    assert float(told["mean"][0].regularisers[0].beta) == 0.0


def test_instance_noise_is_a_bottleneck_with_a_fixed_deviation(told):
    for leaf, other in zip(
        jax.tree.leaves(told["noise"][0].parameters), jax.tree.leaves(told["sampled"][0].parameters), strict=True
    ):
        np.testing.assert_allclose(leaf, other, rtol=1e-6)
    assert loss_of(told["noise"][1]) != loss_of(told["plain"][1])
    assert int(told["annealed"][0].regularisers[0]) == 1
    np.testing.assert_allclose(InstanceNoise(0.3, horizon=4.0).level(jnp.asarray(1)), 0.225, rtol=1e-6)
    assert float(InstanceNoise(0.3, horizon=4.0).level(jnp.asarray(9))) == 0.0


def test_real_and_made_examples_have_noise_of_their_own(told):
    keys = [jax.random.fold_in(key, 0) for key in jax.random.split(KEY, 3)[:2]]
    on_real, on_made = (
        (rows + 0.3 * np.asarray(jax.random.normal(key, rows.shape))) @ W + B
        for key, rows in zip(keys, (REAL, MADE), strict=True)
    )
    np.testing.assert_allclose(told["noise"][1].loss, softplus(-on_real).mean() + softplus(on_made).mean(), rtol=1e-5)
    np.testing.assert_allclose(told["noise"][1].margin, on_real.mean() - on_made.mean(), rtol=1e-5)


def test_every_regulariser_has_noise_of_its_own():
    judge = Judge(HEAD, regulariser=(InstanceNoise(0.3), InstanceNoise(0.4)))
    state = judge.init()
    seen, _ = judge.seen(KEY, state.parameters, jnp.asarray(REAL), state.regularisers, "discriminator")
    first, second = (np.asarray(jax.random.normal(jax.random.fold_in(KEY, n), REAL.shape)) for n in range(2))
    np.testing.assert_allclose(seen, REAL + 0.3 * first + 0.4 * second, rtol=1e-5, atol=1e-6)


def test_penalties_of_a_linear_logit(told):
    plain, square = loss_of(told["plain"][1]), float(W @ W)
    np.testing.assert_allclose(loss_of(told["real"][1]), plain + 0.5 * square, rtol=1e-5)
    np.testing.assert_allclose(loss_of(told["made"][1]), plain + 0.5 * square, rtol=1e-5)
    np.testing.assert_allclose(loss_of(told["interpolated"][1]), plain + 0.5 * (square**0.5 - 1) ** 2, rtol=1e-5)
    assert int(told["real"][1].cost) == 4
    # d/dw weight ‖w‖² = 2 weight w: the penalty is learned from.
    moved = told["real"][0].parameters[0].w - told["plain"][0].parameters[0].w
    np.testing.assert_allclose(moved, -1e-3 * 2 * 0.5 * W, rtol=1e-3)


def test_where_the_penalty_is_taken():
    x, y = jnp.asarray(REAL), jnp.asarray(MADE)
    bent = lambda x: jnp.sum(x**2)  # noqa: E731
    price = lambda at: float(GradientPenalty(1.0, at).penalty(KEY, bent, x, y, jnp.zeros(()), ()))  # noqa: E731
    np.testing.assert_allclose(price("real"), np.mean(np.sum(4 * REAL**2, 1)), rtol=1e-5)
    np.testing.assert_allclose(price("made"), np.mean(np.sum(4 * MADE**2, 1)), rtol=1e-5)
    share = np.asarray(jax.random.uniform(KEY, (6, 1)))
    between = share * REAL + (1 - share) * MADE
    np.testing.assert_allclose(
        price("interpolated"), np.mean((2 * np.linalg.norm(between, axis=1) - 1) ** 2), rtol=1e-4
    )


def nats_of(x):
    return np.sum(-np.log(0.3) + 0.5 * (0.09 + x**2) - 0.5, axis=1).mean()


def test_the_price_is_beta_times_the_mixture_above_the_budget(told):
    for name, real in (("priced", REAL), ("few", REAL[:2])):
        state, info = told[name]
        nats = 0.5 * (nats_of(real) + nats_of(MADE))  # whatever the sizes of the batches
        np.testing.assert_allclose(info.nats, nats, rtol=1e-5)
        on_real, on_made = real @ W + B, MADE @ W + B
        plain = softplus(-on_real).mean() + softplus(on_made).mean()
        np.testing.assert_allclose(info.loss, plain + 2.0 * (nats - 0.5), rtol=1e-5)
        np.testing.assert_allclose(state.regularisers[0].beta, 2.0 + 0.1 * (nats - 0.5), rtol=1e-5)
    both = 2.0 * (0.5 * (nats_of(REAL) + nats_of(MADE)) - 0.5) + 0.5 * float(W @ W)
    np.testing.assert_allclose(told["both"][1].loss, loss_of(told["plain"][1]) + both, rtol=1e-5)


def test_monitors_by_recomputation(told):
    info = told["plain"][1]
    on_real, on_made = REAL @ W + B, MADE @ W + B
    np.testing.assert_allclose(info.margin, on_real.mean() - on_made.mean(), rtol=1e-5)
    np.testing.assert_allclose(info.accuracy, 0.5 * (np.mean(on_real > 0) + np.mean(on_made < 0)))
    far = told["far"][1]
    beyond = np.mean((REAL + 20) @ W + B > 1), np.mean(on_made < -1)
    np.testing.assert_allclose(far.saturated, 0.5 * sum(beyond))


# --- the bottleneck ---------------------------------------------------------------------------------------------------


def test_the_divergence_and_its_gradient():
    mean, log_deviation = jnp.array([0.5, -1.2]), jnp.array([0.3, -0.7])
    grid = np.linspace(-12, 12, 40001)
    total = 0.0
    for m, s in zip(np.asarray(mean), np.exp(np.asarray(log_deviation)), strict=True):
        p = np.exp(-0.5 * ((grid - m) / s) ** 2) / (s * np.sqrt(2 * np.pi))
        ratio = -0.5 * ((grid - m) / s) ** 2 - np.log(s) + 0.5 * grid**2
        total += np.trapezoid(p * ratio, grid)
    np.testing.assert_allclose(divergence(mean, log_deviation), total, rtol=1e-4)
    by_mean, by_log = jax.grad(divergence, argnums=(0, 1))(mean, log_deviation)
    np.testing.assert_allclose(by_mean, mean, rtol=1e-6)
    np.testing.assert_allclose(by_log, np.exp(2 * np.asarray(log_deviation)) - 1, rtol=1e-5)
    assert float(divergence(jnp.zeros(3), jnp.zeros(3))) == 0.0


@pytest.mark.parametrize(("gain", "deviation", "tight"), [(0.6, 0.8, True), (0.9, 0.5, False), (2.0, 1.0, False)])
def test_the_divergence_bounds_the_information_of_a_linear_code(gain, deviation, tight):
    """x ~ N(0, 1), z = gain x + deviation ε: I(X; Z) = ½ log(1 + gain² / deviation²)."""
    points, weights = np.polynomial.hermite_e.hermegauss(40)
    nats = divergence(jnp.asarray(gain * points)[:, None], jnp.full((40, 1), np.log(deviation)))
    bound = float(np.asarray(nats) @ weights / np.sqrt(2 * np.pi))
    information = 0.5 * np.log(1 + (gain / deviation) ** 2)
    assert bound >= information - 1e-5
    assert (bound - information < 1e-5) == tight  # where the codes' law is the prior


def test_dual_ascent_stands_at_the_budget_or_at_zero():
    made = VariationalBottleneck(lambda x: (x, x), 0.5, beta=0.2, beta_rate=0.1, beta_cap=0.25, patience=2)
    state = made.init()
    assert float(made.update(state, jnp.asarray(0.5)).beta) == float(state.beta)
    np.testing.assert_allclose(made.update(state, jnp.asarray(0.8)).beta, 0.23, rtol=1e-6)
    np.testing.assert_allclose(made.update(state, jnp.asarray(9.0)).beta, 0.25)  # its cap
    moved = state._replace(information=jnp.asarray(0.8))  # where the budget adapts, it is the state's that counts
    assert float(made.update(moved, jnp.asarray(0.8)).beta) == float(state.beta)
    zero = state._replace(beta=jnp.asarray(0.01))
    assert float(made.update(zero, jnp.asarray(0.0)).beta) == 0.0
    logarithmic = VariationalBottleneck(lambda x: (x, x), 0.5, beta=0.2, beta_rate=0.1, logarithmic=True)
    np.testing.assert_allclose(logarithmic.update(state, jnp.asarray(1.5)).beta, 0.2 * np.exp(0.1), rtol=1e-6)
    once = made.update(state, jnp.asarray(0.02))
    assert (int(once.silent), bool(once.collapsed)) == (1, False)
    twice = made.update(once, jnp.asarray(0.02))
    assert (int(twice.silent), bool(twice.collapsed)) == (2, True)
    assert int(made.update(twice, jnp.asarray(0.03)).silent) == 0
    assert isinstance(twice, BottleneckState)
    # After the first step the settings that began β and I_c count no more: 0.03 is silence beside 0.8, not beside 0.5.
    assert int(made.update(moved, jnp.asarray(0.03)).silent) == 1
    begun = VariationalBottleneck(lambda x: (x, x), 9.0, beta=7.0, beta_rate=0.1, beta_cap=0.25, patience=2)
    for nats in (0.0, 0.02, 0.03, 0.5, 0.9):
        after = made.update(moved, jnp.asarray(nats))
        assert eqx.tree_equal(begun.update(moved, jnp.asarray(nats)), after)
        assert float(after.beta) == pytest.approx(np.clip(0.2 + 0.1 * (nats - 0.8), 0, 0.25))


def test_an_adaptive_budget_shrinks_with_the_share_of_vanished_gradients():
    """0, 1 and 3 of four vanished where 1 is accepted; and no further than its bounds."""
    vanished = np.array([0.0, 0.25, 0.75])
    slopes = np.array([[0.2, 0.3, 0.4, 0.5], [0.2, 0.05, 0.4, 0.5], [0.01, 0.0, 0.09, 0.5]], np.float32)
    free, bound = (AdaptiveBudget(0.8, 0.25, 0.1, *between) for between in ((0.01, 10.0), (0.45, 0.55)))
    adapted = lambda budget, slopes: jax.vmap(budget.adapt, (None, 0))(jnp.full((), 0.5), slopes)  # noqa: E731
    found, kept = jax.jit(lambda slopes: (adapted(free, slopes), adapted(bound, slopes)))(slopes)
    np.testing.assert_allclose(found, 0.5 * np.exp(-0.8 * (vanished - 0.25)), rtol=1e-5)
    np.testing.assert_allclose(kept, [0.55, 0.5, 0.45], rtol=1e-5)


def test_what_each_learner_sees():
    encoder = lambda x: (x, jnp.full_like(x, -50.0))  # noqa: E731  (kept at −6)
    x = jnp.asarray(REAL)
    noise = np.asarray(jax.random.normal(KEY, x.shape))
    for through, shown in (("mean", REAL), ("sample", REAL + np.exp(-6.0) * noise)):
        made = VariationalBottleneck(encoder, through=through)
        for_generator, _ = made.see(KEY, encoder, x, made.init(), learner="generator")
        for_itself, nats = made.see(KEY, encoder, x, made.init(), learner="discriminator")
        np.testing.assert_allclose(for_generator, shown, rtol=1e-6)
        np.testing.assert_allclose(for_itself, REAL + np.exp(-6.0) * noise, rtol=1e-6)
        np.testing.assert_allclose(nats, divergence(x, jnp.full_like(x, -6.0)), rtol=1e-5)
        np.testing.assert_array_equal(made.see(None, encoder, x, made.init(), learner="discriminator")[0], x)


def test_sites_are_summed_or_averaged():
    x = jnp.asarray(RNG.normal(size=(2, 3, 5, 4)), jnp.float32)
    encoder = lambda x: (x, 0.1 * x)  # noqa: E731
    found = {}
    for sites in ("sum", "mean"):
        made = VariationalBottleneck(encoder, sites=sites)
        found[sites] = np.asarray(made.see(None, encoder, x, made.init(), learner="generator")[1])
    np.testing.assert_allclose(found["sum"], 15 * found["mean"], rtol=1e-5)
    np.testing.assert_allclose(found["sum"], np.sum(np.asarray(divergence(x, 0.1 * x)), axis=(1, 2)), rtol=1e-5)


def test_an_encoder_begins_with_little_to_say():
    def nats(x):
        encoder = make_encoder(KEY, (2, 16), 8)
        made = VariationalBottleneck(encoder)
        return made.see(None, encoder, x, made.init(), learner="generator")[1]

    assert np.mean(jax.jit(nats)(REAL)) < 0.1


def test_frechet_distance_of_two_normal_laws():
    first, second = RNG.normal(size=(50, 3)), RNG.normal(size=(40, 3)) @ np.diag([1.0, 2.0, 0.5]) + 1
    one, two = np.cov(first.T), np.cov(second.T)
    apart = np.sum((first.mean(0) - second.mean(0)) ** 2)
    expected = apart + np.trace(one + two - 2 * np.real(scipy.linalg.sqrtm(one @ two)))
    np.testing.assert_allclose(frechet_distance(jnp.asarray(first), jnp.asarray(second)), expected, rtol=1e-4)


# --- the trade of a whole problem -------------------------------------------------------------------------------------


class Code(eqx.Module):
    """A linear code of one number with a constant deviation."""

    gain: jax.Array
    log_deviation: jax.Array

    def __call__(self, x):
        return self.gain * x, self.log_deviation + 0 * x


def best_trade(beta, distance):
    """The nats, and E log-loss, of the best linear code of N(±distance, 1) at a price β, by quadrature."""
    points, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()

    def parts(numbers):
        gain, log_deviation, w = numbers
        mean, deviation = gain * (distance + points), np.exp(log_deviation)
        logits = w * (mean[:, None] + deviation * points[None])
        loss = 2 * weights @ softplus(-logits) @ weights  # both laws alike, by symmetry
        return loss, weights @ (-log_deviation + 0.5 * (deviation**2 + mean**2) - 0.5)

    def objective(numbers):
        loss, nats = parts(numbers)
        return loss + beta * nats

    found = scipy.optimize.minimize(objective, [0.5, -0.3, 1.0], method="Nelder-Mead", options={"maxiter": 4000})
    return parts(found.x)[1]


@pytest.mark.slow  # the parts of it have tests of their own
def test_the_learned_trade_is_the_best_one_and_vanishes_at_a_high_price():
    distance, betas = 1.5, jnp.array([0.1, 0.3, 100.0])

    def at(beta):
        code = Code(jnp.asarray(0.3), jnp.asarray(-0.1))
        bottleneck = VariationalBottleneck(code, beta=beta, beta_rate=0.0)
        judge = Judge(Linear(jnp.ones(1), jnp.zeros(())), "non-saturating", bottleneck, 5e-3)

        def one(state, key):
            draw_key, step_key = jax.random.split(key)
            real, made = jax.random.normal(draw_key, (2, 512, 1)) + jnp.array([distance, -distance])[:, None, None]
            state, info = judge.step(step_key, real, made, state)
            return state, info.nats

        state, nats = jax.lax.scan(one, judge.init(), jax.random.split(KEY, 2500))
        x = jnp.linspace(-3, 3, 7)[:, None]
        slopes = jax.vmap(jax.grad(lambda x: judge.score(state, x[None])[0]))(x)
        return jnp.mean(nats[-800:]), judge.score(state, x), slopes

    nats, logits, slopes = jax.jit(jax.vmap(at))(betas)
    for found, beta in zip(nats[:2], betas[:2], strict=True):
        np.testing.assert_allclose(found, best_trade(float(beta), distance), rtol=0.05)
    # At a high price D is ½ everywhere and there is no gradient either: the budget has a best value between.
    np.testing.assert_allclose(jax.nn.sigmoid(logits[2]), 0.5, atol=0.02)
    assert np.abs(slopes[2]).max() < 0.02 < 0.2 < np.abs(slopes[0]).max()
