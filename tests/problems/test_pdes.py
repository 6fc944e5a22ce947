"""Every equation's exact solution solves it, and the oracles agree with independent numbers."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from laureate.problems import pdes
from laureate.problems._spectral import double_well_value, radial_allen_cahn


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


# V(0, 0) by quadrature of −log E[2/(1 + 2χ²_d)], made apart from this code.
HJB = {1: -0.08735381308762, 2: 0.39981700509100, 5: 1.35632052478064, 50: 3.88200668219639, 100: 4.590161724604866}


@pytest.mark.parametrize("dimension", HJB)
def test_hjb_log_equals_the_quadrature(dimension):
    pde = pdes.HJBLog(dimension)
    assert abs(eqx.filter_jit(pde.exact)(0.0, pde.x0) - HJB[dimension]) < 1e-12


# Two independent discretisations of the radial equation agree to these digits.
ALLEN_CAHN = {1: (0.566472, 1e-6), 2: (0.523995, 1e-6), 10: (0.3165127, 1e-6), 100: (0.05278, 2e-6)}


@pytest.mark.parametrize("dimension", ALLEN_CAHN)
def test_allen_cahn_equals_independent_discretisations(dimension):
    pde = pdes.AllenCahn(dimension)
    value, digits = ALLEN_CAHN[dimension]
    assert abs(eqx.filter_jit(pde.exact)(0.0, pde.x0) - value) < digits


def test_spectral_oracles_are_converged():
    coarse, fine = radial_allen_cahn(100, 0.3, 300, 150), radial_allen_cahn(100, 0.3)
    assert abs(jax.jit(lambda x: coarse(0.3, x) - fine(0.3, x))(jnp.zeros(()))) < 1e-6
    coarse, fine = double_well_value(0.5, 0.1, 0.05, 250, 70, 5.0), double_well_value(0.5, 0.1, 0.05)
    apart = jax.jit(lambda x: coarse(0.5, x) - fine(0.5, x))(np.linspace(-2.5, 2.5, 11))
    assert np.max(np.abs(apart)) < 1e-5


EQUATIONS = {
    "hjb-log": (pdes.HJBLog, 1e-6),
    "quadratic": (pdes.QuadraticHJB, 1e-6),
    "linear-quadratic": (pdes.LinearQuadratic, 1e-6),
    "heat": (pdes.Heat, 1e-6),
    "black-scholes": (pdes.BlackScholesBasket, 1e-6),
    "sine": (pdes.UnboundedSine, 1e-6),
    # Linear in time between the rows of a table: the time derivative is good to about a step.
    "allen-cahn": (pdes.AllenCahn, 2e-3),
    "double-well": (pdes.DoubleWell, 2e-3),
}


@pytest.mark.parametrize("name", EQUATIONS)
def test_the_exact_solution_solves_the_equation_and_meets_its_end(name):
    make, tolerance = EQUATIONS[name]
    pde = make(3)
    x = np.asarray(pde.x0) + 0.3 * np.sin(np.arange(1.0, 4.0))

    def residual(t, x):
        sigma = jnp.asarray(pde.diffusion(t, x))
        square = sigma @ sigma.T if sigma.ndim == 2 else jnp.diag(jnp.broadcast_to(sigma, x.shape) ** 2)
        z = sigma.T @ jax.grad(pde.exact, 1)(t, x) if sigma.ndim == 2 else sigma * jax.grad(pde.exact, 1)(t, x)
        rate = (pde.exact(t + 1e-5, x) - pde.exact(t - 1e-5, x)) / 2e-5
        flow = pde.drift(t, x) @ jax.grad(pde.exact, 1)(t, x) + jnp.sum(square * jax.hessian(pde.exact, 1)(t, x)) / 2
        return rate + flow + pde.driver(t, x, pde.exact(t, x), z)

    end = pde.horizon * (1 - 1e-12)  # Black and Scholes divide by √τ
    inside, last = jax.jit(lambda x: (residual(0.4 * pde.horizon, x), pde.exact(end, x) - pde.terminal(x)))(x)
    assert abs(inside) < tolerance
    assert abs(last) < 1e-5


def test_at_the_end_a_price_is_what_is_paid_also_where_it_stands_at_the_strike():
    calls = pdes.BlackScholesBasket(2), pdes.BlackScholesBasket(3, horizon=0.7, strike=1.3)
    shares = np.array([1.0, 1.3, 0.8, 2.0])
    for call in calls:
        x = jnp.asarray(np.repeat(shares[:, None], len(call.x0), axis=1))
        found, paid = jax.jit(
            lambda x, call=call: jax.vmap(lambda x: (call.exact(call.horizon, x), call.terminal(x)))(x)
        )(x)
        np.testing.assert_allclose(found, np.maximum(shares - call.strike, 0), atol=1e-12)
        np.testing.assert_allclose(paid, found, atol=1e-12)


@pytest.mark.parametrize("double", [True, False])
def test_at_the_kink_no_last_bit_decides_in_either_precision(double):
    """Of shares around the strike whose geometric mean it is but for rounding: half the gradient, ½ G/(d x)."""
    around = np.exp([0.3, -0.5, 0.2])
    with jax.enable_x64(double):
        at = lambda strike, mean: pdes.BlackScholesBasket(3, strike=strike).terminal_gradient(mean * around)  # noqa: E731
        gradient = jax.jit(jax.vmap(at))
        strikes = jnp.linspace(0.8, 1.3, 40)
        for factor, share in ((1.0, 0.5), (1.0001, 1.0), (0.9999, 0.0)):
            wanted = np.broadcast_to(share / (3 * around), (40, 3))
            np.testing.assert_allclose(gradient(strikes, strikes * factor), wanted, rtol=1e-5)


def test_the_price_of_the_basket_is_black_and_scholes_at_every_time():
    """By SciPy: ln G(X_T) ~ N(ln G(x) + (r − s²/2)τ, s²τ/d), discounted over what is left of the time."""
    numbers = np.array([[0.0, 1.0, 0.05, 0.2, 1.0], [0.3, 1.0, 0.1, 0.4, 0.9], [1.4, 2.0, 0.0, 0.3, 1.2]])
    shares = np.array([1.1, 0.8, 1.2, 1.0])

    def price(t, horizon, rate, s, strike):
        return pdes.BlackScholesBasket(4, horizon, rate, s, strike).exact(t, jnp.asarray(shares))

    whole = jax.jit(lambda rows: [price(row[0], 2.0, *row[2:]) for row in rows])(jnp.asarray(numbers))
    for (t, _, rate, s, strike), found in zip(numbers, whole, strict=True):
        tau, log = 2.0 - t, np.log(shares).mean()
        mean, spread = log + (rate - s**2 / 2) * tau, s * np.sqrt(tau / 4)
        law = stats.lognorm(s=spread, scale=np.exp(mean))
        wanted = np.exp(-rate * tau) * integrate.quad(law.sf, strike, np.inf, epsabs=1e-12)[0]  # E max(G − k, 0)
        assert float(found) == pytest.approx(wanted, rel=1e-6)


def test_gradients_given_by_hand_are_right():
    pde = pdes.HJBLog(4)
    x = jnp.array([0.3, -1.0, 2.0, 0.1])
    assert jnp.max(jnp.abs(pde.terminal_gradient(x) - jax.grad(pde.terminal)(x))) < 1e-12
    call = pdes.BlackScholesBasket(4)
    for shares in (jnp.array([1.3, 1.0, 0.9, 1.4]), jnp.array([0.7, 1.0, 0.9, 1.1])):
        assert jnp.max(jnp.abs(call.terminal_gradient(shares) - jax.grad(call.terminal)(shares))) < 1e-12
    for nudge in (-1e-15, 0.0, 1e-15):  # at the kink no last bit decides
        assert jnp.max(jnp.abs(call.terminal_gradient(call.x0 + nudge) - 0.125)) < 1e-12
    wells = pdes.InteractingDoubleWell(4)

    def potential(x):
        return (x**2 - 1) @ wells.coupling @ (x**2 - 1)

    assert jnp.max(jnp.abs(wells.drift(0.0, x) + jax.grad(potential)(x))) < 1e-12


def test_impossible_sizes_are_told():
    with pytest.raises(ValueError, match=r"HJBLog needs dimension >= 1 and horizon > 0; got 0 and 1\.0"):
        pdes.HJBLog(0)
