"""The Boltzmann machine with binary visible and Gaussian hidden units that equals a Hopfield network."""

from typing import Any, Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from laureate._core import require
from laureate.memory.hopfield import HopfieldNetwork, library_of

__all__ = ["BoltzmannMachine", "to_boltzmann_machine", "to_hopfield"]

Factor = Literal["qr", "lowdin", "cholesky", "eigen"]


class BoltzmannMachine(eqx.Module):
    """A restricted Boltzmann machine with spins s in {-1, +1}ᴺ and Gaussian hidden units h in ℝᵖ.

    E(s, h) = ½ hᵀh - sᵀWh - bᵀs - cᵀh,    p(s, h) ∝ exp(-βE)
    h | s ~ N(Wᵀs + c, 1/β),    P(s_i = +1 | h) = σ(2β (Wh + b)_i)

    weights: W, ``[units, hidden]``.
    visible_bias, hidden_bias: b, ``[units]``, and c, ``[hidden]``.
    beta: the inverse temperature, > 0; 1/β is the hidden variance.

    >>> machine = BoltzmannMachine(jnp.eye(2), jnp.zeros(2), jnp.zeros(2), 1.0)
    >>> float(machine.free_energy(jnp.array([1.0, -1.0])))
    -1.0
    """

    weights: Float[Array, "units hidden"]
    visible_bias: Float[Array, "units"]
    hidden_bias: Float[Array, "hidden"]
    beta: float | Float[Array, ""] = 1.0

    def __check_init__(self):
        require("BoltzmannMachine", "beta", "> 0", self.beta, lambda beta: beta > 0)
        units, hidden = self.weights.shape
        for name, size in (("visible_bias", units), ("hidden_bias", hidden)):
            shape = getattr(self, name).shape
            require("BoltzmannMachine", name, f"of shape ({size},)", shape, lambda s, size=size: s == (size,))

    def energy(self, spins: Float[Array, "units"], hidden: Float[Array, "hidden"]) -> Float[Array, ""]:
        """E(s, h)."""
        return 0.5 * hidden @ hidden - hidden @ self.hidden_mean(spins) - self.visible_bias @ spins

    def free_energy(self, spins: Float[Array, "units"]) -> Float[Array, ""]:
        """F(s) = -½ |Wᵀs + c|² - bᵀs: p(s) ∝ exp(-βF(s)), the hidden units integrated out."""
        mean = self.hidden_mean(spins)
        return -0.5 * mean @ mean - self.visible_bias @ spins

    def hidden_mean(self, spins: Float[Array, "units"]) -> Float[Array, "hidden"]:
        """E[h | s] = Wᵀs + c."""
        return spins @ self.weights + self.hidden_bias

    def visible_logits(self, hidden: Float[Array, "hidden"]) -> Float[Array, "units"]:
        """log P(s_i = +1 | h) / P(s_i = -1 | h) = 2β (Wh + b)_i; the factor 2 because spins differ by two."""
        return 2 * self.beta * (self.weights @ hidden + self.visible_bias)


def to_boltzmann_machine(network: HopfieldNetwork, beta: float = 1.0, factor: Factor = "qr") -> BoltzmannMachine:
    """The machine whose visible units have the network's law, exactly: J = WWᵀ up to the diagonal.

    ========  ==================================================================================================
    qr        W = Q of ξᵀ = QR, for patterns stored by the projection rule; depends on their order
    lowdin    W = ξᵀ(ξξᵀ)^-½: of all orthonormal W the nearest to the patterns, whatever their order
    cholesky  W = ξᵀL⁻ᵀ with ξξᵀ = LLᵀ: Gram and Schmidt's; QR up to signs
    eigen     any couplings: J - λ_min I = WWᵀ from its eigenvectors, at most N - 1 hidden units
    ========  ==================================================================================================

    W and WO give the same law for every orthogonal O.

    >>> from laureate.memory import store
    >>> network = store([[1, 1, -1, -1], [1, 1, 1, -1]])
    >>> machine = to_boltzmann_machine(network, factor="lowdin")
    >>> bool(jnp.allclose(machine.weights @ machine.weights.T, network.couplings, atol=1e-6))
    True
    """
    owner = "to_boltzmann_machine"
    require(owner, "factor", "a name in its table", factor, lambda f: f in ("qr", "lowdin", "cholesky", "eigen"))
    weights = _eigenvectors(network.couplings) if factor == "eigen" else _orthonormal(network, factor)
    weights = jnp.asarray(weights, network.couplings.dtype)
    return BoltzmannMachine(weights, network.field, jnp.zeros(weights.shape[1], weights.dtype), beta)


def _eigenvectors(couplings: Array) -> Any:
    """W with WWᵀ = J - λ_min I; where J is known, without the columns that are nought."""
    xp = library_of(couplings)
    values, vectors = xp.linalg.eigh(couplings if xp is jnp else np.asarray(couplings, np.float64))
    shifted = values - values[0]  # s_i² = 1: a shift of the diagonal changes no probability
    kept = slice(1, None) if xp is jnp else shifted > 1e-6 * shifted[-1]
    return vectors[:, kept] * xp.sqrt(shifted[kept])


def _orthonormal(network: HopfieldNetwork, factor: str) -> Any:
    """W with WᵀW = I and WWᵀ = J, for J that projects onto the patterns."""
    xp, patterns = library_of(network.couplings), network.patterns
    remedy = "Store them by rule='projection', or ask for factor='eigen', which takes any couplings."
    # Under jit nothing can be counted: dependent patterns are for known ones.
    rules = ("projection", "pseudo-inverse") if xp is np else ("projection",)
    wanted = " or ".join(map(repr, rules))
    require("to_boltzmann_machine", "network.rule", wanted, network.rule, lambda rule: rule in rules, remedy)
    if patterns is None:
        raise ValueError(f"to_boltzmann_machine.network must know its patterns; got None. {remedy}")
    if xp is np:
        patterns = np.asarray(patterns, np.float64)
    left, size, right = xp.linalg.svd(patterns.T, full_matrices=False)
    if xp is np and (rank := int(np.sum(size > 1e-9 * size[0]))) < len(patterns):
        return left[:, :rank]  # dependent patterns, stored by the pseudo-inverse: any basis of what they span
    if factor == "lowdin":
        return left @ right
    if factor == "qr":
        return xp.linalg.qr(patterns.T)[0]
    return xp.linalg.solve(xp.linalg.cholesky(patterns @ patterns.T), patterns).T


def to_hopfield(machine: BoltzmannMachine) -> HopfieldNetwork:
    """The Hopfield network with the law of the machine's visible units: J = WWᵀ, field b + Wc. Always exact."""
    couplings = machine.weights @ machine.weights.T
    return HopfieldNetwork(couplings, machine.visible_bias + machine.weights @ machine.hidden_bias)
