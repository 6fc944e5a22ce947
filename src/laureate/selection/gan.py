"""KnockoffGAN: a generator of knockoffs against a network that looks for swaps, with a critic and a power network."""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array

from laureate import loops
from laureate._core import require
from laureate.selection.gaussian import GaussianKnockoffs, SecondOrderKnockoffs, symmetric_root
from laureate.selection.losses import critic_loss, information, moment_gap, swap_loss
from laureate.selection.tables import check_table, location_and_scale, refuse_response
from laureate.selection.validity import discrimination

__all__ = ["FittedKnockoffGAN", "History", "KnockoffGAN", "RefinedKnockoffs", "mine_networks", "mine_values"]

ACTIVATIONS = {"tanh": jnp.tanh, "relu": jax.nn.relu}
FEWEST = 8  # rows of which the validity test says anything


class History(NamedTuple):
    """What training saw, a row a checkpoint: the terms a minibatch, and where rows were kept back, the validity test's.

    swap: L_D per coordinate asked (-log 2 at validity). critic: L_f. information: mean Î_j. moments: the gap of
    moments. accuracy: of the held-out validity test at the checkpoints, the start first; empty without validation.
    """

    swap: Array
    critic: Array
    information: Array
    moments: Array
    accuracy: Array


class KnockoffGAN(eqx.Module):
    """Knockoffs from a generative adversarial network (Jordon, Yoon & van der Schaar 2019).

    min_G max_{D, f, T} L_D + λ Σ_j Î_j + μ L_f;   X̃ = G(X, Z)

    The defaults are the paper's; ``KnockoffGAN.released()`` has those of its code. Inputs are standardised.

    power: λ, >= 0.
    stability: μ, >= 0.
    hidden: the hint where nothing is revealed, in [0, 1].
    revealed: the share of hints that tell, in [0, 1].
    penalty: weight of the gradient penalty in L_f, >= 0.
    uniform: 1 for Z ~ U[0, 1]^p, 0 for N(0, 1)^p.
    num_inner_steps: updates of D, f and T for one of G, >= 1.
    simultaneous: 1 to let G answer the networks as they were before these updates.
    start: 1 to let the networks correct second-order Gaussian knockoffs, 0 to begin from nothing.
    moments, target: weights of two terms of ours: the gap of moments, and (cor(X_j, X̃_j) - 1 + s_j)² with MVR's s.
    learning_rate: Adam's, or a schedule of Optax over the updates of a network.
    momentum: Adam's β₁.
    num_steps: updates of G, a multiple of ``num_checkpoints``.
    batch: rows of a minibatch, >= 4.
    width: hidden units of G, D and f; None: p.
    depth: their hidden layers, >= 1.
    activation: of G and D, "tanh" or "relu".
    validation: the share of rows kept back for the validity test, by which the best of ``num_checkpoints`` states, the
        start among them, is kept; 0, or a share of fewer than 8 rows: the last is.
    num_checkpoints: how often the losses are recorded, and that test is made, >= 1.

    >>> x = jax.random.normal(jax.random.key(0), (40, 2))
    >>> fitted = KnockoffGAN(num_steps=2, num_checkpoints=1, batch=8).fit(jax.random.key(1), x)
    >>> fitted.sample(jax.random.key(2), x).shape
    (40, 2)
    """

    power: float | Array = 1.0
    stability: float | Array = 1.0
    hidden: float | Array = 0.5
    revealed: float | Array = 0.9
    penalty: float | Array = 10.0
    uniform: float | Array = 1.0
    num_inner_steps: int | Array = 5
    simultaneous: float | Array = 0.0
    start: float | Array = 0.0
    moments: float | Array = 0.0
    target: float | Array = 0.0
    learning_rate: float | Array | optax.Schedule = 1e-4
    momentum: float | Array = 0.5
    num_steps: int = eqx.field(static=True, default=2000)
    batch: int = eqx.field(static=True, default=128)
    width: int | None = eqx.field(static=True, default=None)
    depth: int = eqx.field(static=True, default=1)
    activation: str = eqx.field(static=True, default="tanh")
    num_checkpoints: int = eqx.field(static=True, default=10)
    validation: float = eqx.field(static=True, default=0.0)

    def __check_init__(self):
        for name in ("power", "stability", "penalty", "moments", "target"):
            require("KnockoffGAN", name, ">= 0", getattr(self, name), lambda v: v >= 0)
        for name in ("hidden", "revealed", "uniform", "simultaneous", "start"):
            require("KnockoffGAN", name, "in [0, 1]", getattr(self, name), lambda v: 0 <= v <= 1)
        rule = "> 0 or a schedule of Optax"
        require("KnockoffGAN", "learning_rate", rule, self.learning_rate, lambda v: callable(v) or v > 0)
        require("KnockoffGAN", "momentum", "in [0, 1)", self.momentum, lambda v: 0 <= v < 1)
        require("KnockoffGAN", "batch", ">= 4", self.batch, lambda v: v >= 4)
        require("KnockoffGAN", "validation", "in [0, 1)", self.validation, lambda v: 0 <= v < 1)
        require(
            "KnockoffGAN", "activation", f"one of {tuple(ACTIVATIONS)}", self.activation, lambda a: a in ACTIVATIONS
        )
        for name in ("num_inner_steps", "num_steps", "depth", "num_checkpoints"):
            require("KnockoffGAN", name, ">= 1", getattr(self, name), lambda v: v >= 1)
        require(
            "KnockoffGAN", "num_steps", f"a multiple of num_checkpoints = {self.num_checkpoints}", self.num_steps,
            lambda v: v % self.num_checkpoints == 0,
        )  # fmt: skip

    @classmethod
    def released(cls, **settings: Any) -> "KnockoffGAN":
        """The authors' code where it differs from their text: λ = 0.01, normal Z, hidden hints 0."""
        theirs: dict[str, Any] = {"power": 0.01, "hidden": 0.0, "uniform": 0.0}
        return cls(**(theirs | settings))

    def fit(
        self, key: Array, x: Any, y: Any = None, progress: Callable[[loops.Progress], None] | None = None
    ) -> "FittedKnockoffGAN":
        """Train on the rows of ``x``. progress: called with a ``laureate.loops.Progress`` at the checkpoints."""
        refuse_response("KnockoffGAN", y)
        x = check_table("KnockoffGAN", x)
        n, p = x.shape
        kept = int(self.validation * n)
        if self.validation > 0 and kept < FEWEST:
            warnings.warn(
                f"KnockoffGAN: validation keeps {kept} of {n} rows and its test takes {FEWEST}: nothing is kept back, "
                "and the last state is taken untested. Give more rows or a larger validation.",
                stacklevel=2,
            )
            kept = 0
        require("KnockoffGAN", "X", "of at least 8 rows to train on", n - kept, lambda rows: rows >= 8)
        if n < 5 * p:
            warnings.warn(f"KnockoffGAN: {n} rows are fewer than 5 for each of {p} columns.", stacklevel=2)
        order_key, base_key, init_key, train_key, test_key = jax.random.split(key, 5)
        mean, scale = location_and_scale(x)
        z = ((x - mean) / scale)[jax.random.permutation(order_key, n)]
        held, rows = z[:kept], z[kept:]
        base = _Base.of(SecondOrderKnockoffs("mvr", shrinkage="ledoit-wolf").fit(base_key, rows))
        players = self._init(init_key, p)
        generator, history = self._train(train_key, test_key, players, base, rows, held, progress)
        return FittedKnockoffGAN(generator, base, mean, scale, self.start, self.uniform, history, self.activation)

    def _init(self, key: Array, p: int) -> "_Players":
        width, keys = self.width or p, jax.random.split(key, 4)
        hidden = [width] * self.depth
        generator = _layers(keys[0], [2 * p, *hidden, p])
        # Where it corrects Gaussian knockoffs it starts as no correction.
        generator[-1] = (generator[-1][0] * (1.0 - self.start), generator[-1][1])
        discriminator, critic = _layers(keys[1], [3 * p, *hidden, p]), _layers(keys[2], [p, *hidden, 1])
        return _Players(generator, discriminator, critic, mine_networks(keys[3], p))

    def _train(self, key, test_key, players, base, rows, held, progress):
        optimiser = optax.adam(self.learning_rate, b1=self.momentum)

        def step(carry, t):
            players, states = carry
            before = players

            def inner(i, carry):
                players, state = carry
                draw = self._draw(jax.random.fold_in(jax.random.fold_in(key, t), i), rows, self.revealed)
                knockoff = self._generate(players.generator, base, draw)

                def gain(rivals):  # D, f and T each see their own term alone, so one gradient serves the three
                    terms = self._terms(players.with_rivals(rivals), draw, knockoff)
                    return -(terms.swap + terms.critic + jnp.sum(terms.information))

                updates, state = optimiser.update(jax.grad(gain)(players.rivals), state)
                return players.with_rivals(optax.apply_updates(players.rivals, updates)), state

            players, rival_state = jax.lax.fori_loop(0, self.num_inner_steps, inner, (players, states[1]))
            seen = jax.tree.map(lambda a, b: jnp.where(self.simultaneous > 0.5, a, b), before.rivals, players.rivals)
            draw = self._draw(jax.random.fold_in(jax.random.fold_in(key, t), 1_000_003), rows, 0.0)

            def cost(generator):
                knockoff = self._generate(generator, base, draw)
                terms = self._terms(players.with_rivals(seen), draw, knockoff)
                gap = moment_gap(draw.x, knockoff)
                reach = jnp.sum((_correlations(draw.x, knockoff) - base.correlation) ** 2)
                # L_f's only part that depends on G and is not the penalty: -μ E f(X̃)
                stability = -jnp.mean(_critic(seen[1], knockoff))
                total = terms.swap + self.power * jnp.sum(terms.information) + self.stability * stability
                return total + self.moments * gap + self.target * reach, (terms, gap)

            (_, (terms, gap)), slope = jax.value_and_grad(cost, has_aux=True)(players.generator)
            updates, generator_state = optimiser.update(slope, states[0])
            players = players._replace(generator=optax.apply_updates(players.generator, updates))
            row = (terms.asked, terms.critic, jnp.mean(terms.information), gap)
            return (players, (generator_state, rival_state)), row

        def accuracy(generator):  # by the same draws for all states, which then differ by the generator alone
            half, (noise_key, normal_key, judge_key) = len(held) // 2, jax.random.split(test_key, 3)
            z = jax.random.normal(normal_key, held.shape)
            draw = _Draw(held, held, self._noise(noise_key, held.shape), z, held > 0, held > 0, held)
            knockoff = self._generate(generator, base, draw)
            return discrimination(judge_key, held[:half], knockoff[:half], held[half:], knockoff[half:])[0]

        def part(carry, i):
            state, best, score = carry
            steps = i * (self.num_steps // self.num_checkpoints) + jnp.arange(self.num_steps // self.num_checkpoints)
            state, rows_seen = jax.lax.scan(step, state, steps)
            found = accuracy(state[0].generator) if len(held) else jnp.zeros(())
            better = (found < score) if len(held) else True
            best = jax.tree.map(lambda a, b: jnp.where(better, a, b), state[0].generator, best)
            means = tuple(jnp.mean(value[-10:]) for value in rows_seen)
            return (state, best, jnp.where(better, found, score)), (*means, found)

        first = accuracy(players.generator) if len(held) else jnp.zeros(())
        states = (optimiser.init(players.generator), optimiser.init(players.rivals))
        carry = ((players, states), players.generator, first)
        each = self.num_steps // self.num_checkpoints
        (_, best, _), seen = loops.scan(
            part, carry, jnp.arange(self.num_checkpoints), progress=progress, steps_per_row=each
        )
        accuracies = jnp.concatenate([first[None], seen[4]]) if len(held) else jnp.zeros((0,))
        swap, critic, mine, gap, _ = seen
        return best, History(swap, critic, mine, gap, accuracies)

    def _draw(self, key: Array, rows: Array, revealed: Array | float) -> "_Draw":
        """A minibatch and all random numbers that a step needs, from one block."""
        p, (first, second, third) = rows.shape[1], jax.random.split(key, 3)
        # Two lists of rows: the second, for MINE's shuffled marginal, is independent of the first.
        index = jax.random.randint(first, (2, self.batch), 0, rows.shape[0])
        uniform = jax.random.uniform(second, (self.batch, 3 * p + 1))
        x, other = rows[index[0]], rows[index[1]]
        normal = jax.random.normal(third, (self.batch, 2 * p))
        noise = jnp.where(self.uniform > 0.5, uniform[:, :p], normal[:, :p])
        swapped, told = uniform[:, p : 2 * p] < 0.5, uniform[:, 2 * p : 3 * p] < revealed
        return _Draw(x, other, noise, normal[:, p:], swapped, told, uniform[:, -1:])

    def _noise(self, key: Array, shape: tuple[int, ...]) -> Array:
        first, second = jax.random.split(key)
        return jnp.where(self.uniform > 0.5, jax.random.uniform(first, shape), jax.random.normal(second, shape))

    def _generate(self, generator, base: "_Base", draw: "_Draw") -> Array:
        return _knockoffs(generator, base, self.activation, self.start, draw.x, draw.noise, draw.normal)

    def _terms(self, players: "_Players", draw: "_Draw", knockoff: Array) -> "_Terms":
        def logits(u, hint):
            return _network(players.discriminator, jnp.concatenate([u, hint], axis=-1), ACTIVATIONS[self.activation])

        total, asked = swap_loss(logits, draw.x, knockoff, draw.swapped, draw.revealed, self.hidden)
        critic = critic_loss(lambda v: _critic(players.critic, v), draw.x, knockoff, draw.mix, self.penalty)
        bound = information(lambda a, b: mine_values(players.power, a, b), draw.x, knockoff, draw.other)
        return _Terms(total, asked, critic, bound)


class FittedKnockoffGAN(eqx.Module):
    """A trained generator. history: what training saw."""

    generator: Any
    base: Any
    mean: Array
    scale: Array
    start: float | Array
    uniform: float | Array
    history: History
    activation: str = eqx.field(static=True, default="tanh")

    def sample(self, key: Array, x: Any) -> Array:
        """One draw of knockoffs ``[n, p]`` for the rows of ``x``."""
        z = (jnp.asarray(x, self.mean.dtype) - self.mean) / self.scale
        first, second, third = jax.random.split(key, 3)
        noise = jnp.where(self.uniform > 0.5, jax.random.uniform(first, z.shape), jax.random.normal(second, z.shape))
        normal = jax.random.normal(third, z.shape)
        drawn = _knockoffs(self.generator, self.base, self.activation, self.start, z, noise, normal)
        return self.mean + self.scale * drawn


def RefinedKnockoffs(**settings: Any) -> KnockoffGAN:  # noqa: N802  (a sampler like the others, by other defaults)
    """Our own default for tables that are not Gaussian: second-order knockoffs that a network corrects.

    The generator starts as Gaussian knockoffs, moments and correlations replace the power network, and of the states
    seen in training the one that a held-out validity test tells least is kept, the start among them.
    """
    ours: dict[str, Any] = {
        "start": 1.0, "power": 0.0, "stability": 0.0, "moments": 1.0, "target": 1.0, "uniform": 0.0,
        "learning_rate": 1e-3, "validation": 0.25,
    }  # fmt: skip
    return KnockoffGAN(**(ours | settings))


class _Players(NamedTuple):
    generator: Any
    discriminator: Any
    critic: Any
    power: Any

    @property
    def rivals(self) -> tuple[Any, Any, Any]:
        return self.discriminator, self.critic, self.power

    def with_rivals(self, rivals: tuple[Any, Any, Any]) -> "_Players":
        return _Players(self.generator, *rivals)


class _Draw(NamedTuple):
    x: Array
    other: Array
    noise: Array
    normal: Array
    swapped: Array
    revealed: Array
    mix: Array


class _Terms(NamedTuple):
    swap: Array
    asked: Array
    critic: Array
    information: Array


def _layers(key: Array, sizes: list[int]) -> list[tuple[Array, Array]]:
    keys = jax.random.split(key, len(sizes) - 1)
    return [
        (jax.random.normal(k, (a, b)) * jnp.sqrt(1.0 / a), jnp.zeros(b))
        for k, a, b in zip(keys, sizes[:-1], sizes[1:], strict=True)
    ]


def _network(layers: Any, x: Array, activation: Any) -> Array:
    for weight, bias in layers[:-1]:
        x = activation(x @ weight + bias)
    weight, bias = layers[-1]
    return x @ weight + bias


def _critic(layers: Any, x: Array) -> Array:
    return _network(layers, x, jax.nn.relu)[..., 0]


def mine_networks(key: Array, num_variables: int, num_units: int = 2) -> tuple[Array, Array]:
    """T_1 .. T_p, each of ``num_units`` tanh units (two in the authors' code), for ``num_variables``."""
    return 0.5 * jax.random.normal(key, (num_variables, num_units, 3)), jnp.zeros((num_variables, num_units))


def mine_values(networks: tuple[Array, Array], x: Array, knockoff: Array) -> Array:
    """T_j(x_j, x̃_j), ``[n, p]``."""
    weights, biases = networks  # weights[j, unit]: from x_j, from x̃_j, to the output
    hidden = jnp.tanh(x[..., None] * weights[..., 0] + knockoff[..., None] * weights[..., 1] + biases)
    return jnp.sum(hidden * weights[..., 2], axis=-1)


class _Base(NamedTuple):
    """Second-order knockoffs of standardised rows, ready to draw: x + (mean - x) shift + normal root."""

    mean: Array
    shift: Array
    root: Array
    correlation: Array  # [p], of a variable with its knockoff

    @classmethod
    def of(cls, law: GaussianKnockoffs) -> "_Base":
        shift = jnp.linalg.solve(law.covariance, jnp.diag(law.s))
        root = symmetric_root(law.conditional(law.mean[None])[1])
        return cls(law.mean, shift, root, 1.0 - law.s / jnp.diag(law.covariance))


def _knockoffs(generator, base: _Base, activation: str, start, x: Array, noise: Array, normal: Array) -> Array:
    """G(x, z), or with start = 1 Gaussian knockoffs corrected by it."""
    gaussian = x - (x - base.mean) @ base.shift + normal @ base.root
    return start * gaussian + _network(generator, jnp.concatenate([x, noise], axis=-1), ACTIVATIONS[activation])


def _correlations(x: Array, knockoff: Array) -> Array:
    a, b = x - jnp.mean(x, axis=0), knockoff - jnp.mean(knockoff, axis=0)
    return jnp.mean(a * b, axis=0) / jnp.sqrt(jnp.mean(a**2, axis=0) * jnp.mean(b**2, axis=0) + 1e-6)
