"""What holds at the ends: outside an interval, at a tolerance, at the first and the last moment of a step."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate.pde import DeepBackward, Fourier, FunctionalTensorTrain, Hermite, Polynomials, Splines


@pytest.mark.parametrize(
    "basis", [Splines(-1.0, 2.0, 3), Polynomials(-1.0, 2.0, 3, clip=True)], ids=["splines", "clip"]
)
def test_what_is_held_outside_its_interval_has_its_end_values_there(basis):
    outside, ends = basis(jnp.array([-40.0, -1.01, 2.01, 70.0])), basis(jnp.array([-1.0, -1.0, 2.0, 2.0]))
    np.testing.assert_allclose(outside, ends, atol=1e-6)
    assert np.abs(ends[0] - ends[2]).max() > 0.1


@pytest.mark.parametrize(
    "basis", [Splines(-1.0, 2.0, 3), Polynomials(-1.0, 2.0, 3), Hermite(degree=2), Fourier(0, 1, 2)]
)
def test_the_constant_is_written_as_it_says(basis):
    inside = jnp.linspace(-1.0, 2.0, 7)
    np.testing.assert_allclose(basis(inside) @ jnp.asarray(basis.constant, jnp.float32), 1.0, atol=1e-5)


@pytest.mark.parametrize("tolerance", [0.3, 0.5, 0.7])
def test_rounding_stays_within_its_tolerance_over_all_bonds(tolerance):
    """Every bond may drop a share of what is allowed: together they stay within it."""
    for seed in range(5):
        train = FunctionalTensorTrain.random(jax.random.key(seed), 6, Polynomials(-1.0, 1.0, 1), rank=4)
        whole, rounded = train.dense(), train.round(tolerance).dense()
        assert np.linalg.norm(whole - rounded) <= tolerance * np.linalg.norm(whole) * (1 + 1e-5)


class _Late(eqx.Module):
    """h = t: V(0, x0) is Σ h Δt, by the clock of the scheme."""

    x0: jax.Array
    horizon: float = 1.0

    def drift(self, t, x):
        return jnp.zeros_like(x)

    def diffusion(self, t, x):
        return jnp.zeros(())

    def driver(self, t, x, y, z):
        return t + 0.0 * y

    def terminal(self, x):
        return 0.0 * jnp.sum(x)


@pytest.mark.parametrize(("scheme", "value"), [("explicit", 1.0), ("implicit", 0.0)])
def test_the_network_reads_the_driver_when_its_scheme_says(scheme, value):
    solver = DeepBackward(num_steps=1, num_samples=4, batch=2, num_updates=1, width=2, depth=1, scheme=scheme)
    found = eqx.filter_jit(solver.run)(jax.random.key(0), _Late(jnp.zeros(1)))
    assert float(found.v0) == pytest.approx(value, abs=1e-5)
