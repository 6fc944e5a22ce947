"""Rows for what draws or estimates in ``laureate.active``; ``laureate.testing`` has the checks."""

import io

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate.active import Acquisition, lure_ratio, lure_risk, plackett_luce, plain_risk, pure_risk
from laureate.testing import check_random_function, check_standard_error

SCORES = jnp.asarray(np.random.default_rng(0).uniform(0.2, 1.0, 12), jnp.float32)
LOSSES = SCORES**2 + 0.1 * jnp.sin(jnp.arange(12.0))
ACQUISITION = Acquisition(jnp.asarray(2.0), jnp.asarray(0.1))
TYPES = {"test_acquisition_resumes_saved_and_every_number_counts": {type(ACQUISITION)}}


def session(acquisition, key, state=None, first=0, last=5):
    """Picks from the first to the last, with keys from the absolute number of the pick."""
    state = acquisition.init(12) if state is None else state

    def step(state, number):
        pick, state, info = acquisition.step(jax.random.fold_in(key, number), SCORES, state)
        return state, (pick, info.log_q)

    return jax.lax.scan(step, state, jnp.arange(first, last))


def test_acquisition_resumes_saved_and_every_number_counts():
    run = eqx.filter_jit(session)
    key = jax.random.key(1)
    _, whole = run(ACQUISITION, key)
    half, early = run(ACQUISITION, key, None, 0, 2)
    file = io.BytesIO()
    eqx.tree_serialise_leaves(file, half)
    file.seek(0)
    _, late = run(ACQUISITION, key, eqx.tree_deserialise_leaves(file, half), 2, 5)
    for one, two, three in zip(whole, early, late, strict=True):
        np.testing.assert_array_equal(one, jnp.concatenate([two, three]))
    for beta, floor in ((3.0, 0.1), (2.0, 0.3)):
        _, other = run(Acquisition(jnp.asarray(beta), jnp.asarray(floor)), key)
        assert not np.array_equal(other[1], whole[1])


def estimated(risk):
    def one(key):
        picks, log_q = plackett_luce(key, jnp.log(SCORES), 5)
        found = risk(LOSSES[picks], log_q, 12, log=True)
        return found.value, found.standard_error

    return one


@pytest.mark.parametrize("risk", [lure_risk, pure_risk])
def test_standard_error(risk):
    check_standard_error(estimated(risk), exact=float(LOSSES.mean()), name=risk.__name__, num_repeats=1000)


def uniformly(key):
    """The plain mean, of picks that are as likely each."""
    picks, log_q = plackett_luce(key, jnp.zeros(12), 5)
    found = plain_risk(LOSSES[picks], log_q, 12, log=True)
    return found.value, found.standard_error


def ratio(key):
    """Of what rises with the scores, by which labels are chosen, and of what falls; forty points, half of them."""
    scores = jnp.linspace(0.3, 1.0, 40)
    picks, log_q = plackett_luce(key, jnp.log(scores), 20)
    found = lure_ratio(scores[picks] ** 2, 1.2 - scores[picks], log_q, 40, log=True)
    return found.value, found.standard_error


@pytest.mark.parametrize(("estimate", "exact"), [(uniformly, float(LOSSES.mean())), (ratio, None)])
def test_standard_error_of_plain_means_and_ratios(estimate, exact):
    check_standard_error(estimate, exact=exact, num_repeats=1000, tolerance=0.1)


def test_keys():
    calls = {
        "Acquisition": lambda key: session(Acquisition(), key)[1],
        "plackett_luce": lambda key: plackett_luce(key, SCORES, 5),
    }
    for name, call in calls.items():
        check_random_function(eqx.filter_jit(call), name=name)
