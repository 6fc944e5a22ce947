"""What is wrong with GANs, bottlenecks and environments is refused with field, rule, value and remedy, or warned of."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate import generative as g

KEY = jax.random.key(0)
X = np.random.default_rng(0).normal(size=(20, 2)).astype(np.float32)


def code(x):
    return x, 0 * x


def gan(regulariser=None, generator=lambda z: z, **settings):
    return g.Adversarial(generator, jnp.sum, regulariser=regulariser, num_latents=2, **settings)


def world(**settings):
    usual = {"following": jnp.array([[0, 1], [1, 0]]), "start": jnp.array([1.0, 0.0]), "features": jnp.eye(2)}
    return g.FiniteEnvironment(**usual | settings)


def irl():
    return g.AdversarialIRL(world(), g.ShapedDiscriminator(jnp.sum, jnp.sum))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: g.VariationalBottleneck(code, 0.0), r"information must be > 0; got 0.0. It is a budget in nats"),
        (lambda: g.VariationalBottleneck(code, beta=-1.0), "VariationalBottleneck.beta must be >= 0; got -1.0"),
        (
            lambda: g.VariationalBottleneck(code, beta=0.0, logarithmic=True),
            r"beta must be > 0 where logarithmic; got 0.0. From 0 a factor leads nowhere",
        ),
        (lambda: g.VariationalBottleneck(code, beta_rate=-1.0), "beta_rate must be >= 0; got -1.0"),
        (lambda: g.VariationalBottleneck(code, through="z"), "through must be 'mean' or 'sample'; got 'z'"),
        (lambda: g.VariationalBottleneck(code, sites="all"), "sites must be 'mean' or 'sum'; got 'all'"),
        (lambda: g.VariationalBottleneck(code, patience=0), "patience must be >= 1; got 0"),
        (lambda: g.make_encoder(KEY, (2, 4), 0), "make_encoder.num_codes must be >= 1; got 0"),
        (lambda: g.AdaptiveBudget(target=2.0), "AdaptiveBudget.target must be within 0 and 1; got 2.0"),
        (lambda: g.AdaptiveBudget(below=0.0), "AdaptiveBudget.below must be > 0; got 0.0"),
        (
            lambda: g.AdaptiveBudget(min_information=2.0, max_information=jnp.asarray(1.0)),
            "AdaptiveBudget.max_information must be >= min_information, 2.0; got 1.0",
        ),
        (lambda: g.AdaptiveBudget(max_information=0.0), "AdaptiveBudget.max_information must be >= min_information"),
        (lambda: g.GradientPenalty(-1.0), "GradientPenalty.weight must be >= 0; got -1.0"),
        (lambda: g.GradientPenalty(at="here"), "GradientPenalty.at must be 'real', 'made' or 'interpolated'"),
        (lambda: g.InstanceNoise(-0.1), "InstanceNoise.sigma must be >= 0; got -0.1"),
        (lambda: g.InstanceNoise(horizon=0.0), "InstanceNoise.horizon must be > 0; got 0.0"),
        (lambda: gan(loss="cross"), "Adversarial.loss must be one of non-saturating, .*; got 'cross'"),
        (lambda: gan(learning_rate=0.0), "Adversarial.learning_rate must be > 0; got 0.0"),
        (lambda: gan(ratio=0.0), "Adversarial.ratio must be > 0; got 0.0"),
        (lambda: gan(decay=1.0), "Adversarial.decay must be within 0 and 1; got 1.0"),
        (lambda: gan(num_discriminator_steps=0), "num_discriminator_steps must be >= 1; got 0"),
        (lambda: gan(regulariser="R1").init(), r"Judge.regulariser must be a regulariser .*; got \['str'\]"),
        (lambda: gan().fit(KEY, X[:1]), "Adversarial.x must be at least two rows"),
        (lambda: gan().fit(KEY, (X, np.ones(3))), r"as many as of what is told beside; got \[20, 3\]"),
        (lambda: gan().fit(KEY, np.ones((5, 2))), "x must differ between rows; got 5 equal ones"),
        (lambda: gan().fit(KEY, np.where(np.arange(20)[:, None] == 7, np.nan, X)), "the first 7. Drop them"),
        (lambda: gan().fit(KEY, X[:, :1]), r"real ones, \(1,\); got \(2,\)"),
        (lambda: gan(num_accumulated=3).fit(KEY, X, batch=4), "batch must be a multiple of num_accumulated"),
        (lambda: gan().fit(KEY, X, num_steps=0), "num_steps must be >= 1; got 0"),
        (lambda: gan(g.VariationalBottleneck(lambda x: x)).fit(KEY, X), r"encoder must be a function to \(mean"),
        (
            lambda: gan(g.VariationalBottleneck(lambda x: (x, 20 + 0 * x))).fit(KEY, X),
            "got 'a mean of 20'. Hand back log σ, neither σ nor σ²",
        ),
        (lambda: world(following=jnp.array([[0, 2], [1, 0]])), "following must be states, from 0 to 1"),
        (lambda: world(features=jnp.eye(3)), "features must be one for each state"),
        (lambda: world(discount=1.0), "FiniteEnvironment.discount must be within 0 and 1; got 1.0"),
        (
            lambda: g.AdversarialIRL(world(discount=jnp.asarray(0.8)), g.ShapedDiscriminator(jnp.sum, jnp.sum)),
            r"AdversarialIRL.environment.discount must be the discriminator's, 0.9; got 0.8. With another",
        ),
        (lambda: g.AdversarialImitation(world(), jnp.sum, temperature=0.0), "temperature must be > 0; got 0.0"),
        (lambda: g.AdversarialImitation(world(), jnp.sum, policy_rate=2.0), "policy_rate must be within 0 and 1"),
        (
            lambda: g.AdversarialImitation(world(), jnp.sum).step(KEY, jnp.eye(2)[:1], None),
            "AdversarialImitation.demonstrated must be at least two; got 1",
        ),
        (
            lambda: g.AdversarialImitation(world(), jnp.sum).step(KEY, jnp.full((3, 2), jnp.nan), None),
            "AdversarialImitation.demonstrated must be finite; got 3 rows that are not, the first 0",
        ),
        (
            lambda: irl().step(KEY, jnp.array([[0, 1], [2, 0]]), irl().init()),
            r"must be pairs \[n, 2\] of a state below 2 and an action below 2; got \[\[2, 0\]\]",
        ),
        (
            lambda: irl().step(KEY, jnp.array([0, 1]), irl().init()),
            r"must be pairs \[n, 2\] of a state below 2 and an action below 2; got \[2\]",
        ),
        (
            lambda: g.Judge(jnp.sum).step(KEY, jnp.ones((3, 2)), jnp.ones((3, 4)), g.Judge(jnp.sum).init()),
            r"Judge.made must be examples of the shape of real ones; got \(\(2,\), \(4,\)\)",
        ),
        (lambda: g.frechet_distance(jnp.ones((1, 2)), jnp.ones((3, 2))), "first must be at least two rows; got 1"),
    ],
)
def test_refused(make, said):
    with pytest.raises(ValueError, match=said):
        make()


def test_a_key_comes_first():
    with pytest.raises(TypeError, match="takes a key first"):
        gan().fit(X, KEY)


@pytest.mark.slow
def test_one_program_of_training_tells_what_went_wrong():
    """β runs away, the encoder falls silent, the budget is never felt: each a warning of its own."""
    (generator,) = g.perceptrons(KEY, (2, 2))
    encoder = g.GaussianEncoder(g.perceptrons(KEY, (2, 4))[0])
    bottleneck = g.VariationalBottleneck(encoder, 0.5, beta=0.01, beta_rate=0.02, patience=3)
    made = gan(bottleneck, generator, learning_rate=1e-3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = made.fit(KEY, 3 * X, num_steps=150, batch=8)
    said = [str(one.message) for one in caught]
    assert any("β grew more than 10 times within 100 steps" in one for one in said), said
    beta = np.asarray(fitted.history.regularisers[0].beta)
    assert beta.shape == (150,)
    assert fitted.sample(KEY, 3).shape == (3, 2)


def test_a_silent_bottleneck_and_a_vain_budget_are_warned_of():
    from laureate.generative.adversarial_checks import after_training, before_training

    ones = jnp.ones(4)
    state = g.BottleneckState(ones, ones, jnp.arange(500, 504), jnp.array([False, True, True, True]))
    infos = type("Infos", (), {"status": jnp.zeros(4, int), "regularisers": (state, ())})
    with pytest.warns(g.BottleneckCollapsedWarning, match=r"fallen silent: KL .* for 503 steps, β = 1"):
        after_training("Adversarial", infos)
    with pytest.warns(UserWarning, match="of 60.0 nats is never used up"):
        before_training("Adversarial", (g.VariationalBottleneck(code, 60.0),), (jnp.asarray(X),), (2,))
    lost = type("Infos", (), {"status": jnp.ones(4, int), "regularisers": ()})
    with pytest.raises(FloatingPointError, match="got 4 of 4 steps not finite"):
        after_training("Adversarial", lost)
