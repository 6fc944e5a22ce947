"""Wrong input is refused by its name, with the rule, the value and a remedy; nothing is compiled for it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate import robustness as r
from laureate._core import Status
from laureate.robustness.driver import _tell

KEY = jax.random.key(0)
BALL = r.Linf(0.1)
IMAGES, LABELS = np.full((2, 4, 4, 1), 0.5, np.float32), np.array([0, 1])
PLAYERS = r.grid_players((4, 4), 2)


def logits(images):
    return images.reshape(len(images), -1)[:, :3]


PGD = r.PGD(logits, BALL, num_steps=1)
GAME = lambda masks: masks.sum(1)  # noqa: E731
REFUSED = {
    "epsilon as of bytes": (lambda: r.Linf(8.0), r"Linf.epsilon must be <= high - low; got 8.0.*did you mean 8/255"),
    "epsilon 0": (lambda: r.L2(0.0), r"L2.epsilon must be > 0; got 0.0"),
    "range turned around": (lambda: r.L2(1.0, low=1.0, high=0.0), r"L2.high must be > low"),
    "no network": (lambda: r.PGD(3, BALL), r"PGD.logits must be a function"),
    "no ball": (lambda: r.PGD(logits, 0.1), r"PGD.ball must be Linf or L2; got 0.1. Write Linf"),
    "step": (lambda: r.PGD(logits, BALL, step_size=0.0), r"PGD.step_size must be None or > 0"),
    "steps": (lambda: r.PGD(logits, BALL, num_steps=0), r"PGD.num_steps must be an integer >= 1; got 0"),
    "momentum": (lambda: r.MI(PGD, momentum=-1.0), r"MI.momentum must be >= 0"),
    "momentum of pgd": (lambda: r.PGD(logits, BALL, momentum=-1.0), r"PGD.momentum must be >= 0"),
    "loss": (
        lambda: r.FGSM(logits, BALL, loss="hinge"),
        r"attack.loss must be 'cross-entropy', 'margin' or a function",
    ),
    "copies": (lambda: r.VR(PGD, num_copies=0), r"VR.num_copies must be an integer >= 1"),
    "sigma": (lambda: r.VR(PGD, sigma=-1.0), r"VR.sigma must be >= 0"),
    "even kernel": (lambda: r.TI(PGD, side=4), r"TI.side must be odd"),
    "spread": (lambda: r.TI(PGD, spread=0.0), r"TI.spread must be > 0"),
    "probability": (lambda: r.DI(PGD, probability=1.5), r"DI.probability must be in \[0, 1\]"),
    "smallest": (lambda: r.DI(PGD, smallest=0.0), r"DI.smallest must be in \(0, 1\]"),
    "gamma": (lambda: r.SGM(lambda x, b: x, gamma=2.0), r"SGM.gamma must be in \[0, 1\]"),
    "no branches": (lambda: r.SGM(logits), r"SGM.network must be a function of two arguments.*residual branch"),
    "strength": (lambda: r.InteractionReduced(PGD, PLAYERS, -1.0), r"InteractionReduced.strength must be >= 0"),
    "no subsets": (lambda: r.InteractionReduced(PGD, PLAYERS, num_subsets=0), r"num_subsets must be an integer >= 1"),
    "empty subsets": (lambda: r.InteractionReduced(PGD, PLAYERS, subset_size=0), r"subset_size must be None or an int"),
    "all players": (lambda: r.InteractionReduced(PGD, PLAYERS, subset_size=4), r"in \[1, 3\], for 4 players; got 4"),
    "half a player": (
        lambda: r.InteractionReduced(PGD, PLAYERS, subset_size=1.5),
        r"subset_size must be None or an int",
    ),
    "nothing to reduce": (
        lambda: r.InteractionReduced(logits, PLAYERS),
        r"InteractionReduced.attack must be an attack",
    ),
    "nothing to average": (lambda: r.VR(None), r"VR.attack must be an attack, as PGD; got None"),
    "nothing to smooth": (lambda: r.TI(logits), r"TI.attack must be an attack"),
    "nothing to shrink": (lambda: r.DI(logits), r"DI.attack must be an attack"),
    "nothing to push": (lambda: r.MI(logits), r"MI.attack must be an attack"),
    "penalty": (lambda: r.InteractionReduced(PGD, PLAYERS, penalty="square"), r"penalty must be one of 'signed'"),
    "grid": (lambda: r.grid_players((28, 28), 16), r"grid_players.grid must be a divisor of 28 and 28; got 16"),
    "one square": (lambda: r.grid_players((4, 4), 1), r"grid_players.grid must be an integer >= 2"),
    "a player is missing": (lambda: r.players_from([0, 2, 2]), r"players_from.labels must be 0 .. n - 1.*\[0, 2\]"),
    "players are floats": (lambda: r.players_from([0.0, 1.0]), r"players_from.labels must be integers; got 'float64'"),
    "too many to enumerate": (lambda: r.exact_interactions(GAME, 21), r"num_players.*2\^21 = 2097152 rewards"),
    "index": (lambda: r.exact_interactions(GAME, 3, "sii"), r"interactions.index must be 'shapley', 'banzhaf'"),
    "one player": (lambda: r.mean_interaction(GAME, 1), r"num_players must be >= 2"),
    "size of subsets": (lambda: r.estimate_by_subsets(KEY, GAME, 4, 4, 10), r"size must be an integer in \[1, 3\]"),
    "one sample": (lambda: r.estimate_interaction(KEY, GAME, 4, num_samples=1), r"num_samples must be an integer >= 2"),
    "bytes": (lambda: r.generate(KEY, PGD, np.zeros((2, 4, 4, 1), np.uint8), LABELS), r"must be floats; got 'uint8'"),
    "out of range": (lambda: r.generate(KEY, PGD, IMAGES * 255, LABELS), r"images must be within \[0.0, 1.0\]"),
    "below the range": (lambda: r.generate(KEY, PGD, IMAGES - 1, LABELS), r"images must be within .*got -0.5 to -0.5"),
    "not finite": (lambda: r.generate(KEY, PGD, IMAGES * np.nan, LABELS), r"images must be within"),
    "labels are floats": (lambda: r.generate(KEY, PGD, IMAGES, [0.0, 1.0]), r"generate.labels must be integers"),
    "too few labels": (
        lambda: r.generate(KEY, PGD, IMAGES, [0]),
        r"generate.labels must be 2, one an image; got \[1\]",
    ),
    "class beyond": (
        lambda: r.generate(KEY, PGD, IMAGES, [0, 7]),
        r"check_network.labels must be in 0 .. 2; got \[7\]",
    ),
    "one logit": (
        lambda: r.check_network(lambda x: x.sum((1, 2, 3)), IMAGES, LABELS),
        r"logits must be \[2, classes\]",
    ),
    "logits not finite": (
        lambda: r.check_network(lambda x: logits(x) * np.nan, IMAGES, LABELS),
        r"logits must be finite",
    ),
    "one logit not finite": (
        lambda: r.check_network(lambda x: logits(x).at[1, 2].set(jnp.inf), jnp.asarray(IMAGES), LABELS),
        r"logits must be finite",
    ),
    "no networks": (lambda: r.transfer(IMAGES, [], IMAGES, LABELS), r"transfer.networks must be one or more"),
    "too few labels to transfer": (
        lambda: r.transfer(IMAGES, [logits], IMAGES, LABELS[:1]),
        r"transfer.labels must be 2, one an image; got \[1\]",
    ),
    "one class for all": (
        lambda: r.transfer(IMAGES, [logits], IMAGES, LABELS, jnp.array([1])),
        r"transfer.wanted must be 2, one an image; got \[1\]",
    ),
    "a number for a ball": (
        lambda: r.FGSM(logits, 8 / 255),
        r"FGSM.ball must be Linf or L2; got 0.03.*. Write Linf\(8 / 255\)",
    ),
    "one iterate": (lambda: r.leave_one_out([True, False]), r"leave_one_out.success must be \[iterates, images\]"),
    "other images": (lambda: r.transfer(IMAGES[:1], [logits], IMAGES, LABELS), r"transfer.delta must be of the images"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_named(case):
    call, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        call()


def test_a_network_that_draws_random_numbers():
    generator = np.random.default_rng(0)
    dropout = lambda images: logits(images) + generator.normal(size=(len(images), 3))  # noqa: E731
    with pytest.raises(ValueError, match=r"the same when called twice.*dropout"):
        r.check_network(dropout, jnp.asarray(IMAGES), LABELS)


def test_a_network_that_mixes_images():
    images = jnp.asarray(np.random.default_rng(0).uniform(size=(2, 4, 4, 1)))
    with pytest.raises(ValueError, match=r"of each image alone.*batch norm"):
        r.check_network(lambda x: logits(x - x.mean(0)), images, LABELS)


def test_probabilities_warn():
    with pytest.warns(UserWarning, match="rows sum to 1"):
        r.check_network(lambda x: jax.nn.softmax(logits(x)), jnp.asarray(IMAGES), LABELS)


def test_a_gradient_that_is_not_finite_is_told_with_its_step():
    def cliff(images):  # the root of what is left above 0.4: its slope is infinite there
        flat = images.reshape(len(images), -1)
        return jnp.stack([jnp.sqrt(flat[:, 0] - 0.4), jnp.zeros(len(flat))], axis=1)

    attack = r.PGD(cliff, r.Linf(0.3), step_size=0.06, num_steps=5)
    with pytest.raises(FloatingPointError, match=r"image 0 is not finite at step 2"):
        r.generate(KEY, attack, IMAGES[:1], [0])


def test_a_gradient_of_nought_warns():
    flat = r.PGD(lambda x: jnp.zeros((len(x), 2)), BALL, num_steps=1)
    with pytest.warns(UserWarning, match=r"gradient of 2 images is 0 at every step.*margin"):
        r.generate(KEY, flat, IMAGES, LABELS)


def test_a_gradient_of_nought_now_and_then_does_not_warn():
    status = np.array([[Status.NOT_CONVERGED, Status.OK], [Status.OK, Status.NOT_CONVERGED]])
    _tell(r.AttackInfo(np.zeros((2, 2)), np.zeros((2, 2)), np.ones(2), status))  # warnings are errors here


def test_players_must_cover_the_image():
    for made in (
        lambda: r.perturbation_game(logits, jnp.zeros((2, 6, 6, 1)), 0.0, LABELS, PLAYERS),
        lambda: r.InteractionReduced(PGD, PLAYERS).gradient(KEY, logits, jnp.zeros((2, 6, 6, 1)), 0.0, LABELS),
    ):
        with pytest.raises(ValueError, match=r"players must be in the shape of an image.*\[6, 6, 1\]"):
            made()


def test_images_for_smoothing_and_shrinking_have_axes():
    flat = jnp.zeros((2, 5))
    for attack in (r.TI(PGD), r.DI(PGD)):
        with pytest.raises(ValueError, match=r"images must be \[b, height, width"):
            attack.gradient(KEY, logits, flat, flat, LABELS)


def test_numbers_under_jit_are_not_checked():
    made = jax.jit(lambda e: r.Linf(e).within(jnp.array([[3.0]])))
    assert float(made(0.5)[0, 0]) == 0.5
