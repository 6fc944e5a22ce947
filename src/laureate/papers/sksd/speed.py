"""SVGD beside BlackJAX's, the same particles after the same steps; and what slices and tests cost beside NumPy."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from laureate.lab.running.comparison import Comparison, Side
from laureate.sampling import sliced_svgd, stein_test, svgd

__all__ = ["COMPARISONS"]

PARTICLES, DIMENSION, STEPS = 91, 50, 50  # 4,095 pairs: both take the same median
DRAWS, REPLICATES = 500, 500


def _start() -> jax.Array:
    return 1 + 2 * jax.random.normal(jax.random.key(0), (PARTICLES, DIMENSION))


def _density(x: jax.Array) -> jax.Array:
    return -jnp.sum(x**2) / 2


def our_particles(sampler: Any) -> Side:
    """All steps in one program."""

    def run(x):
        keys = jax.random.split(jax.random.key(1), STEPS)
        return jax.lax.scan(lambda state, key: (sampler.step(key, state)[0], None), sampler.init(x), keys)[0].position

    program, start = jax.jit(run), _start()
    return Side(lambda: program(start))


def their_particles() -> Side:
    """BlackJAX's steps in one program, its bandwidth set by its median heuristic, also before the first step."""
    import blackjax
    from blackjax.vi.svgd import update_median_heuristic

    peer = blackjax.svgd(jax.grad(_density), optax.sgd(0.5))

    def run(x):
        state = update_median_heuristic(peer.init(x, {"length_scale": 1.0}))  # pyright: ignore[reportArgumentType]
        return jax.lax.scan(lambda state, _: (peer.step(state), None), state, None, STEPS)[0].particles  # pyright: ignore[reportCallIssue]

    program, start = jax.jit(run), _start()
    return Side(lambda: program(start))


def our_test() -> Side:
    """Slices along the axes, multinomial weights."""
    x = jax.random.normal(jax.random.key(0), (DRAWS, DIMENSION))
    more: dict[str, Any] = {"slices": "identity", "num_bootstrap": REPLICATES}
    program = jax.jit(lambda key, x: stein_test(key, x, -x, **more).p_value)
    return Side(lambda: program(jax.random.key(1), x))


def their_test() -> Side:
    """The same in NumPy, one slice after the other, float32."""
    x = np.asarray(jax.random.normal(jax.random.key(0), (DRAWS, DIMENSION)))

    def run():
        gram = np.zeros((DRAWS, DRAWS), np.float32)
        for u in x.T:
            delta = u[:, None] - u[None, :]
            ell2 = np.median(np.abs(delta[np.triu_indices(DRAWS, 1)])) ** 2
            pulls = (-u[:, None] - delta / ell2) * (-u[None, :] + delta / ell2) + 1 / ell2
            gram += np.exp(-(delta**2) / (2 * ell2)) * pulls
        np.fill_diagonal(gram, 0)
        w = np.random.default_rng(0).multinomial(DRAWS, np.full(DRAWS, 1 / DRAWS), REPLICATES).astype(np.float32)
        w = (w - 1) / DRAWS
        null = ((w @ gram) * w).sum(axis=1)
        return (1 + np.sum(null >= gram.sum() / (DRAWS * (DRAWS - 1)))) / (1 + REPLICATES)

    return Side(run)


WORK = f"{STEPS} steps of {PARTICLES} particles in {DIMENSION} dimensions"

COMPARISONS = (
    Comparison(
        work=f"{WORK}: SVGD, the same bandwidth",
        peer="blackjax.svgd",
        package="blackjax",
        ours=lambda: our_particles(svgd(_density, optax.sgd(0.5), bandwidth="log")),
        theirs=their_particles,
    ),
    Comparison(
        work=f"{WORK}: sliced, the axes, beside SVGD",
        peer="blackjax.svgd",
        package="blackjax",
        ours=lambda: our_particles(sliced_svgd(_density, optax.sgd(0.5))),
        theirs=their_particles,
    ),
    Comparison(
        work=f"a sliced test of {DRAWS} draws in {DIMENSION} dimensions, {REPLICATES} replicates",
        peer="NumPy, slice after slice",
        package="numpy",
        ours=our_test,
        theirs=their_test,
    ),
)
