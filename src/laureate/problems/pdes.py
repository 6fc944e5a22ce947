"""Parabolic equations in many dimensions, each with the oracle that judges its solvers.

∂_t V + b·∇V + ½ tr(σσᵀ∇²V) + h(t, x, V, σᵀ∇V) = 0 on [0, T) × R^d,  V(T, ·) = g.

``exact(t, x)`` is a closed form, a quadrature or the spectral solution of a one-dimensional equation.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr
from jaxtyping import Array, Float

from laureate.problems._spectral import ChebyshevTable, double_well_value, radial_allen_cahn

__all__ = [
    "AllenCahn",
    "BlackScholesBasket",
    "CIRBond",
    "DoubleWell",
    "HJBLog",
    "Heat",
    "InteractingDoubleWell",
    "LinearQuadratic",
    "QuadraticHJB",
    "UnboundedSine",
]


def _positive(owner: str, dimension: int, horizon: float) -> None:
    if dimension < 1 or horizon <= 0:
        raise ValueError(f"{owner} needs dimension >= 1 and horizon > 0; got {dimension} and {horizon}.")


class HJBLog(eqx.Module):
    """The benchmark of the field: b = 0, σ = √2, h = −½‖z‖², g = log(½ + ½‖x‖²), x0 = 0, T = 1.

    V(t, x) = −log E[exp(−g(x + √(2τ) Z))], τ = T − t. V(0, 0) = 4.590161724604866 for d = 100.
    """

    x0: Float[Array, " d"]
    horizon: float

    def __init__(self, dimension: int = 100, horizon: float = 1.0):
        _positive("HJBLog", dimension, horizon)
        self.x0, self.horizon = jnp.zeros(dimension), horizon

    def drift(self, t, x):
        """0."""
        return jnp.zeros_like(x)

    def diffusion(self, t, x):
        """√2."""
        return jnp.full((), np.sqrt(2), x.dtype)

    def driver(self, t, x, y, z):
        """−½‖z‖²."""
        return -0.5 * jnp.sum(z**2)

    def terminal(self, x):
        """log(½ + ½‖x‖²)."""
        return jnp.log(0.5 + 0.5 * jnp.sum(x**2))

    def terminal_gradient(self, x):
        """2x / (1 + ‖x‖²)."""
        return 2 * x / (1 + jnp.sum(x**2))

    def exact(self, t, x):
        """By 2/(1 + q) = 2 ∫ e^{−s(1+q)} ds, a Gaussian integral for each s; trapezoidal in log s, to rounding."""
        tau = self.horizon - t
        u = jnp.linspace(-50.0, 6.0, 2001, dtype=x.dtype)
        s = jnp.exp(u)
        wide = 1 + 4 * s * tau  # E exp(−s‖x + √(2τ) Z‖²) = wide^{−d/2} exp(−s‖x‖²/wide)
        log_terms = u - s - x.shape[0] / 2 * jnp.log(wide) - s * jnp.sum(x**2) / wide
        return -(jax.nn.logsumexp(log_terms) + jnp.log(2 * (u[1] - u[0])))


class QuadraticHJB(eqx.Module):
    """h = −½‖z‖², g = a‖x‖², σ = s: V = a‖x‖²/(1 + 2as²τ) + (d/2) log(1 + 2as²τ), a train of rank 2 and degree 2."""

    x0: Float[Array, " d"]
    horizon: float
    a: float
    s: float

    def __init__(self, dimension: int = 5, horizon: float = 1.0, a: float = 0.25, s: float = 1.0):
        _positive("QuadraticHJB", dimension, horizon)
        self.x0, self.horizon, self.a, self.s = jnp.zeros(dimension), horizon, a, s

    def drift(self, t, x):
        """0."""
        return jnp.zeros_like(x)

    def diffusion(self, t, x):
        """The number s."""
        return jnp.asarray(self.s, x.dtype)

    def driver(self, t, x, y, z):
        """−½‖z‖²."""
        return -0.5 * jnp.sum(z**2)

    def terminal(self, x):
        """a‖x‖²."""
        return self.a * jnp.sum(x**2)

    def exact(self, t, x):
        """The Gaussian integral −log E exp(−a‖x + s√τ Z‖²)."""
        wide = 1 + 2 * self.a * self.s**2 * (self.horizon - t)
        return self.a * jnp.sum(x**2) / wide + x.shape[0] / 2 * jnp.log(wide)


class LinearQuadratic(eqx.Module):
    """Linear-quadratic control: b = −θx, σ = s, h = q‖x‖² − ½‖z‖², g = a‖x‖²; V = p(t)‖x‖² + c(t) by Riccati.

    dimension: d.
    horizon: T.
    theta: θ.
    s, q, a: as above.
    """

    x0: Float[Array, " d"]
    horizon: float
    theta: float
    s: float
    q: float
    a: float

    def __init__(
        self,
        dimension: int = 5,
        horizon: float = 1.0,
        theta: float = 0.5,
        s: float = 1.0,
        q: float = 0.3,
        a: float = 0.25,
    ):
        _positive("LinearQuadratic", dimension, horizon)
        self.x0, self.horizon, self.theta, self.s, self.q, self.a = jnp.ones(dimension), horizon, theta, s, q, a

    def drift(self, t, x):
        """−θx."""
        return -self.theta * x

    def diffusion(self, t, x):
        """The number s."""
        return jnp.asarray(self.s, x.dtype)

    def driver(self, t, x, y, z):
        """q‖x‖² − ½‖z‖²."""
        return self.q * jnp.sum(x**2) - 0.5 * jnp.sum(z**2)

    def terminal(self, x):
        """a‖x‖²."""
        return self.a * jnp.sum(x**2)

    def exact(self, t, x):
        """−p' = q − 2θp − 2s²p², −c' = d s² p, from p(T) = a and c(T) = 0; Runge-Kutta, 200 steps."""
        tau = (self.horizon - jnp.asarray(t, x.dtype)) / 200

        def rate(pc):
            return jnp.stack(
                [self.q - 2 * self.theta * pc[0] - 2 * self.s**2 * pc[0] ** 2, x.shape[0] * self.s**2 * pc[0]]
            )

        def step(_, pc):
            k1 = rate(pc)
            k2 = rate(pc + tau / 2 * k1)
            k3 = rate(pc + tau / 2 * k2)
            k4 = rate(pc + tau * k3)
            return pc + tau / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

        p, c = jax.lax.fori_loop(0, 200, step, jnp.stack([jnp.asarray(self.a, x.dtype), jnp.zeros((), x.dtype)]))
        return p * jnp.sum(x**2) + c


class Heat(eqx.Module):
    """b = 0, σ = s, h = 0, g = ‖x‖²: V = ‖x‖² + d s² τ."""

    x0: Float[Array, " d"]
    horizon: float
    s: float

    def __init__(self, dimension: int = 10, horizon: float = 1.0, s: float = 1.0):
        _positive("Heat", dimension, horizon)
        self.x0, self.horizon, self.s = jnp.zeros(dimension), horizon, s

    def drift(self, t, x):
        """0."""
        return jnp.zeros_like(x)

    def diffusion(self, t, x):
        """The number s."""
        return jnp.asarray(self.s, x.dtype)

    def driver(self, t, x, y, z):
        """0."""
        return jnp.zeros_like(y)

    def terminal(self, x):
        """‖x‖²."""
        return jnp.sum(x**2)

    def exact(self, t, x):
        """‖x‖² + d s² τ."""
        return jnp.sum(x**2) + x.shape[0] * self.s**2 * (self.horizon - t)


class BlackScholesBasket(eqx.Module):
    """A call on the geometric mean of d independent shares: b = rx, σ = s·diag(x), h = −ry, g = max(G(x) − strike, 0).

    G(X_T) is lognormal, which gives Black and Scholes' formula; d = 1 is the plain call.

    dimension: d.
    horizon: T.
    rate: r.
    s: volatility.
    strike: price at which one may buy.
    """

    x0: Float[Array, " d"]
    horizon: float
    rate: float
    s: float
    strike: float

    def __init__(
        self, dimension: int = 5, horizon: float = 1.0, rate: float = 0.05, s: float = 0.2, strike: float = 1.0
    ):
        _positive("BlackScholesBasket", dimension, horizon)
        self.x0, self.horizon, self.rate, self.s, self.strike = jnp.ones(dimension), horizon, rate, s, strike

    def drift(self, t, x):
        """The rate times x."""
        return self.rate * x

    def diffusion(self, t, x):
        """s·diag(x), as its diagonal."""
        return self.s * x

    def driver(self, t, x, y, z):
        """−ry: discounting."""
        return -self.rate * y

    def terminal(self, x):
        """max(G(x) − strike, 0), G the geometric mean."""
        return jnp.maximum(jnp.exp(jnp.mean(jnp.log(x))) - self.strike, 0.0)

    def terminal_gradient(self, x):
        """∇G = G/(d x) in the money, nothing out of it, half of it at the kink.

        By default x0 stands at the kink, where the last bit of G would decide between all and nothing: one program's
        answer then differed from another's by 1e-3. Within rounding of the kink it is half, always.
        """
        mean = jnp.exp(jnp.mean(jnp.log(x)))
        rounding = max(1e-12, 8 * float(jnp.finfo(mean.dtype).eps))
        share = jnp.where(jnp.abs(mean / self.strike - 1) < rounding, 0.5, jnp.where(mean > self.strike, 1.0, 0.0))
        return share * mean / (x.shape[0] * x)

    def exact(self, t, x):
        """log G(X_T) ~ N(log G(x) + (r − s²/2)τ, s²τ/d)."""
        tau = self.horizon - t
        # At T nothing is left to spread, and the price is what is paid, at the strike too.
        spread = jnp.maximum(self.s * jnp.sqrt(tau / x.shape[0]), jnp.finfo(x.dtype).tiny)
        mean = jnp.mean(jnp.log(x)) + (self.rate - self.s**2 / 2) * tau
        upper = (mean - jnp.log(self.strike)) / spread + spread
        call = jnp.exp(mean + spread**2 / 2) * ndtr(upper) - self.strike * ndtr(upper - spread)
        return jnp.exp(-self.rate * tau) * call


class AllenCahn(eqx.Module):
    """b = 0, σ = √2, h = y − y³, g = 1/(2 + 0.4‖x‖²), x0 = 0. V is radial: one equation in ‖x‖², solved spectrally."""

    x0: Float[Array, " d"]
    horizon: float
    table: ChebyshevTable

    def __init__(self, dimension: int = 100, horizon: float = 0.3):
        _positive("AllenCahn", dimension, horizon)
        self.x0, self.horizon = jnp.zeros(dimension), horizon
        self.table = radial_allen_cahn(dimension, float(horizon))

    def drift(self, t, x):
        """0."""
        return jnp.zeros_like(x)

    def diffusion(self, t, x):
        """√2."""
        return jnp.full((), np.sqrt(2), x.dtype)

    def driver(self, t, x, y, z):
        """y − y³."""
        return y - y**3

    def terminal(self, x):
        """1/(2 + 0.4‖x‖²)."""
        return 1 / (2 + 0.4 * jnp.sum(x**2))

    def exact(self, t, x):
        """u(t, ‖x‖²) of the radial equation."""
        return self.table(self.horizon - t, jnp.sum(x**2))


class DoubleWell(eqx.Module):
    """Separable double wells: b = −∇Ψ, Ψ = κ Σ (x_i² − 1)², σ = 1, h = −½‖z‖², g = η Σ (x_i − 1)², x0 = −1.

    V is a sum of d equal one-dimensional functions: a train of rank 2.

    dimension: d.
    horizon: T.
    kappa: κ, the height of the walls.
    eta: η.
    """

    x0: Float[Array, " d"]
    horizon: float
    kappa: float
    eta: float
    table: ChebyshevTable

    def __init__(self, dimension: int = 50, horizon: float = 0.5, kappa: float = 0.1, eta: float = 0.05):
        _positive("DoubleWell", dimension, horizon)
        self.x0, self.horizon, self.kappa, self.eta = -jnp.ones(dimension), horizon, kappa, eta
        self.table = double_well_value(float(horizon), float(kappa), float(eta))

    def drift(self, t, x):
        """−4κ x (x² − 1)."""
        return -4 * self.kappa * x * (x**2 - 1)

    def diffusion(self, t, x):
        """1."""
        return jnp.ones((), x.dtype)

    def driver(self, t, x, y, z):
        """−½‖z‖²."""
        return -0.5 * jnp.sum(z**2)

    def terminal(self, x):
        """η Σ (x_i − 1)²."""
        return self.eta * jnp.sum((x - 1) ** 2)

    def exact(self, t, x):
        """Σ_i v(t, x_i), v = −log ψ of the linear equation of one coordinate."""
        return jnp.sum(self.table(self.horizon - t, x))


class InteractingDoubleWell(eqx.Module):
    """Ψ = Σ_ij C_ij (x_i² − 1)(x_j² − 1), C = I + 0.1 N(0, 1) drawn once; the rest as in ``DoubleWell``.

    No closed form: V(t, x) = −log E[exp(−g(X_T)) | X_t = x] by plain Monte Carlo is the reference.

    dimension: d.
    horizon: T.
    eta: η.
    coupling: deviation of the entries of C − I.
    """

    x0: Float[Array, " d"]
    horizon: float
    coupling: Float[Array, "d d"]
    eta: float

    def __init__(self, dimension: int = 20, horizon: float = 0.3, eta: float = 0.5, coupling: float = 0.1):
        _positive("InteractingDoubleWell", dimension, horizon)
        noise = np.random.default_rng(42).standard_normal((dimension, dimension))
        self.coupling = jnp.eye(dimension) + coupling * jnp.asarray(noise)
        self.x0, self.horizon, self.eta = -jnp.ones(dimension), horizon, eta

    def drift(self, t, x):
        """−∇Ψ = −2x ⊙ ((C + Cᵀ)(x² − 1))."""
        return -2 * x * ((self.coupling + self.coupling.T) @ (x**2 - 1))

    def diffusion(self, t, x):
        """1."""
        return jnp.ones((), x.dtype)

    def driver(self, t, x, y, z):
        """−½‖z‖²."""
        return -0.5 * jnp.sum(z**2)

    def terminal(self, x):
        """η Σ (x_i − 1)²."""
        return self.eta * jnp.sum((x - 1) ** 2)


class CIRBond(eqx.Module):
    """The price of a bond under d Cox-Ingersoll-Ross rates with one common noise: h = −y max_i x_i, g = 1, x0 = 1.

    b = a_i(b_i − x_i), σ_i = s_i √|x_i|; a, b, s drawn once, uniform in (0, 1). The equation is linear in y:
    V(0, x0) = E exp(−∫ max_i X_i dt) by plain Monte Carlo is the reference.
    """

    x0: Float[Array, " d"]
    horizon: float
    speed: Float[Array, " d"]
    level: Float[Array, " d"]
    volatility: Float[Array, " d"]

    def __init__(self, dimension: int = 100, horizon: float = 1.0):
        _positive("CIRBond", dimension, horizon)
        draws = np.random.default_rng(42).uniform(size=(3, dimension))
        self.speed, self.level, self.volatility = (jnp.asarray(row) for row in draws)
        self.x0, self.horizon = jnp.ones(dimension), horizon

    def drift(self, t, x):
        """a(b − x)."""
        return self.speed * (self.level - x)

    def diffusion(self, t, x):
        """One column: every rate feels the same noise."""
        return (self.volatility * jnp.sqrt(jnp.abs(x)))[:, None]

    def driver(self, t, x, y, z):
        """−y max_i x_i."""
        return -y * jnp.max(x)

    def terminal(self, x):
        """1."""
        return jnp.ones((), x.dtype)


class UnboundedSine(eqx.Module):
    """A solution that is neither bounded nor smooth, made to measure: b = 0, σ = I/√d, h = k + y (1·z)/(2√d) + y²/2.

    V = (τ/d) Σ w(x_i) + cos(Σ i x_i), w(x) = sin x for x < 0 and x above; k follows from V.
    """

    x0: Float[Array, " d"]
    horizon: float

    def __init__(self, dimension: int = 5, horizon: float = 1.0):
        _positive("UnboundedSine", dimension, horizon)
        self.x0, self.horizon = jnp.full(dimension, 0.5), horizon

    def drift(self, t, x):
        """0."""
        return jnp.zeros_like(x)

    def diffusion(self, t, x):
        """1/√d."""
        return jnp.full((), 1 / np.sqrt(x.shape[0]), x.dtype)

    def _parts(self, t, x):
        """V, σᵀ∇V and ∂_t V + ½ tr(σσᵀ∇²V)."""
        d = x.shape[0]
        numbers = jnp.arange(1.0, d + 1, dtype=x.dtype)
        phase = numbers @ x
        low = x < 0
        w, slope, bend = (jnp.where(low, a, b) for a, b in ((jnp.sin(x), x), (jnp.cos(x), 1.0), (-jnp.sin(x), 0.0)))
        tau = self.horizon - t
        value = tau / d * jnp.sum(w) + jnp.cos(phase)
        gradient = tau / d * slope - numbers * jnp.sin(phase)
        laplacian = tau / d * jnp.sum(bend) - jnp.sum(numbers**2) * jnp.cos(phase)
        return value, gradient / np.sqrt(d), -jnp.sum(w) / d + laplacian / (2 * d)

    def _reaction(self, y, z):
        return y * jnp.sum(z) / (2 * np.sqrt(z.shape[0])) + y**2 / 2

    def driver(self, t, x, y, z):
        """h with the k that makes V the solution."""
        value, slope, flow = self._parts(t, x)
        return self._reaction(y, z) - self._reaction(value, slope) - flow

    def terminal(self, x):
        """cos(Σ i x_i)."""
        return jnp.cos(jnp.arange(1.0, x.shape[0] + 1, dtype=x.dtype) @ x)

    def exact(self, t, x):
        """V."""
        return self._parts(t, x)[0]
