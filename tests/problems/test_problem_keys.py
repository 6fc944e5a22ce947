"""What problems draw, they draw with keys of its own: a row for each that splits its key."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate.problems import energies
from laureate.problems.classifiers import ConvolutionalNetwork, ResidualPerceptron
from laureate.problems.confidences import TrainedNetworks
from laureate.problems.energies.trained_rbm import _trained
from laureate.problems.long_tails import LongTailedDigits
from laureate.problems.mazes import Mazes
from laureate.problems.novelty import RareImages
from laureate.problems.peers import ImagesOverNodes, Quadratics
from laureate.problems.pools import NoisyDigits
from laureate.problems.recovery import GaussianDictionary
from laureate.problems.scores import DigitNumbers, NoisyScores
from laureate.problems.several_tasks import DigitQuestions, OverlaidDigits
from laureate.problems.supports import PlanarRing
from laureate.problems.tables import Design
from laureate.problems.translators import make_translator
from laureate.problems.two_bodies import starts
from laureate.problems.unrolls.systems import Blocks, FixedEpisode
from laureate.problems.unrolls.training_runs import TrainingRun
from laureate.problems.views import LabelledPairs
from laureate.testing import ContractError, check_keys


class Dice:
    """An unroll that draws at its start and in every step."""

    horizon = 3

    def init(self, key, theta):
        return jax.random.normal(key)

    def step(self, key, theta, state):
        return state + jax.random.normal(key), state


def both(*draws):
    """Each with a key of its own."""
    return lambda key: [draw(one) for draw, one in zip(draws, jax.random.split(key, len(draws)), strict=True)]


def demonstrated(key):
    mazes = Mazes(5)
    world = mazes.learned_in
    policy = jnp.full(world.following.shape, 1 / world.following.shape[1])
    return mazes.demonstration(key, world, policy, 0.9, 2)


def fixed(key):
    """An episode from its start on; the keys that it is given are not its own."""
    episode = FixedEpisode(Dice(), key)
    step = lambda state, _: (episode.step(key, 0.0, state)[0], None)  # noqa: E731
    return jax.lax.scan(step, episode.init(key, 0.0), length=3)[0]


DRAWS = {
    "classifiers": both(
        lambda key: ResidualPerceptron(key, 4, 2, 2, 2), lambda key: ConvolutionalNetwork(key, (4, 4), (2, 2), 2)
    ),
    "confidences": TrainedNetworks("digits", train=20, width=2, steps=2, batch=2).predictions,
    "energies": both(
        lambda key: energies.ConvolutionalEnergy(key, jnp.zeros((4, 4)), 2),
        lambda key: energies.random_factorial_hmm(key, 2, 3),
        lambda key: energies.random_graph_couplings(key, 4, 2.0),
    ),
    "long_tails": LongTailedDigits().draw,
    "mazes": demonstrated,
    "novelty": RareImages(num_train=10, num_held=5).draw,
    "peers": both(
        Quadratics(2, 2).sample,
        lambda key: ImagesOverNodes(2, 10).parts(key, 0.5),
        ImagesOverNodes(2, 10, model="conv").theta0,
    ),
    "pools": NoisyDigits(20, 20).draw,
    "recovery": lambda key: GaussianDictionary(2, 4).sample(key, 3),
    # Each image comes again before the numbers are drawn.
    "scores": both(
        lambda key: NoisyScores(3, noise=0.1).sample(key, 2),
        lambda key: DigitNumbers(digits=2, steps=1).sample(key, 2000),
    ),
    "several_tasks": both(OverlaidDigits(2).draw, OverlaidDigits(2).params0, DigitQuestions(2).params0),
    "supports": lambda key: PlanarRing().draw(key, 2),
    "tables": both(lambda key: Design("mixture", 3).sample(key, 2), lambda key: Design("student", 3).sample(key, 2)),
    "translators": both(
        *(lambda key, kind=kind: make_translator(key, kind, 3, 3, 2, 2) for kind in ("recurrent", "attention"))
    ),
    "two_bodies": lambda key: starts(key, jax.random.normal, 2, 2, 1),
    "unrolls": both(
        fixed, lambda key: Blocks(Dice(), jnp.asarray(2)).step(key, 0.0, 0.0), lambda key: TrainingRun().init(key, {})
    ),
}


@pytest.mark.parametrize("name", DRAWS)
def test_no_key_is_used_twice(name):
    check_keys(DRAWS[name], name=name)


IMAGES = LabelledPairs("digits", side=8, channels=(4,), hidden=2, dim=2, train=20, test=5)
# A key that is drawn from, and into which a number is folded: what is drawn has to do with the key that is made, not
# with what is drawn from that. Nothing else may be.
FOLDED = {
    "views": (
        both(IMAGES.model0, lambda key: IMAGES.views(key, 2), lambda key: IMAGES.augmented(key, IMAGES.images[:2])),
        ("fold_in and normal", "fold_in and uniform", "fold_in and uniform"),
    ),
    "trained_rbm": (
        lambda key: (_trained(jnp.asarray(np.eye(4, dtype=bool)), 2, 2, 2, 2), jax.random.bits(key)),
        ("fold_in and randint", "fold_in and randint"),
    ),
}


@pytest.mark.parametrize("name", FOLDED)
def test_no_key_is_used_twice_but_to_make_another(name):
    draws, found = FOLDED[name]
    with pytest.raises(ContractError, match=f"got {len(found)}: {'; '.join(found)}"):
        check_keys(draws, name=name)
