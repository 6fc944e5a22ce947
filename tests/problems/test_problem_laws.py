"""Problems draw from the laws that they state: moments, disjoint parts, labels as noisy as said, each image in turn."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate.problems.confidences import TrainedNetworks
from laureate.problems.peers import ImagesOverNodes, judged_images
from laureate.problems.pools import NoisyDigits
from laureate.problems.scores import DigitNumbers
from laureate.problems.tables import KINDS, Design


@pytest.mark.parametrize("kind", KINDS)
def test_every_design_has_mean_zero_and_variance_one(kind):
    rows = np.asarray(Design(kind, num_variables=8, separation=3.0).sample(jax.random.key(0), 40_000), np.float64)
    np.testing.assert_allclose(rows.mean(0), 0.0, atol=0.05)
    if kind != "student":
        np.testing.assert_allclose(rows.var(0), 1.0, atol=0.05)
    else:  # its fourth moment is infinite: by the quartile of t with 3 degrees of freedom over its deviation √3
        np.testing.assert_allclose(np.quantile(rows, 0.75, axis=0), 0.7649 / np.sqrt(3), atol=0.02)


def test_nobody_is_judged_by_an_image_that_a_node_has():
    for test in (1, 40, 1797 - 4 * 100):
        problem = judged_images(nodes=4, per_node=100, test=test)
        known = {row.tobytes() for row in np.asarray(ImagesOverNodes(4, 100).images)}
        held = [row.tobytes() for row in np.asarray(problem.test_images)]
        assert len(held) == test
        assert sum(row in known for row in held) <= 2  # a few digits are twice in the data set


def test_held_out_labels_are_as_noisy_as_the_others():
    network = TrainedNetworks("digits", train=50, steps=1, noise=1.0)
    clean = TrainedNetworks("digits", train=50, steps=1, noise=0.0)
    key = jax.random.key(0)
    noisy, right = network.predictions(key)[1], clean.predictions(key)[1]
    assert np.mean(noisy == right) == pytest.approx(0.1, abs=0.04)  # all are random: one of ten is right by chance
    assert np.abs(np.bincount(noisy, minlength=10) - 174.7).max() < 4.5 * np.sqrt(174.7)  # and may be any
    half = TrainedNetworks("digits", train=50, steps=1, noise=0.5).predictions(key)[1]
    assert np.mean(half == right) == pytest.approx(0.55, abs=0.05)


def test_a_pool_and_its_test_rows_have_one_law():
    problem = NoisyDigits(num_pool=400, num_test=400, decay=0.5, noise=0.0)
    drawn = jax.vmap(lambda key: problem.draw(key)[1:4:2])(jax.random.split(jax.random.key(0), 50))
    pool, test = (np.bincount(np.ravel(labels), minlength=10) / np.size(labels) for labels in drawn)
    np.testing.assert_allclose(pool, test, atol=0.01)


def test_every_image_comes_once_before_one_comes_again():
    problem = DigitNumbers("digits", digits=1, train=1497, steps=1)
    others = 1797 - 1497
    logits, _ = problem.sample(jax.random.key(0), 2 * others)
    first, second, whole = (
        len({row.tobytes() for row in np.asarray(part)}) for part in (logits[:others], logits[others:], logits)
    )
    assert first == second == whole >= others - 3
    assert not jnp.array_equal(logits[:others], logits[others:])
