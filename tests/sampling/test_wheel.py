"""Drawing by a two-level inverse CDF, on sizes that divide well, badly and not at all."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate.sampling._wheel import log_normaliser, make_wheel, spin


@pytest.mark.parametrize("size", [1, 7, 36, 998])
def test_draws_follow_the_weights(size):
    weights = 1.5 * np.random.default_rng(size).normal(size=size) + 700.0
    weights[3::5] = -np.inf
    wheel = make_wheel(jnp.asarray(weights, jnp.float32))
    exact = np.exp(weights - 700.0)
    assert float(log_normaliser(wheel)) == pytest.approx(700.0 + np.log(exact.sum()), rel=1e-5)
    draws = 50_000
    indices = jax.jit(spin)(wheel, jax.random.uniform(jax.random.key(size), (draws, 2)))
    observed = np.bincount(np.asarray(indices), minlength=size)
    expected = draws * exact / exact.sum()
    assert observed.size == size
    assert observed[expected == 0].sum() == 0
    cells = expected > 5
    chi = ((observed - expected)[cells] ** 2 / expected[cells]).sum()
    assert chi < cells.sum() + 6 * np.sqrt(2 * cells.sum())


@pytest.mark.parametrize("corner", [0.0, 1.0 - 2.0**-24])
def test_the_ends_of_the_unit_interval_draw_something_possible(corner):
    weights = jnp.full(36, -jnp.inf).at[jnp.array([4, 17])].set(0.0)
    index = int(spin(make_wheel(weights), jnp.full((1, 2), corner))[0])
    assert index in (4, 17)
