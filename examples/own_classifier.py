"""Networks of one's own under attack: readers of noisy stripes that were trained by a few lines of JAX.

Are perturbations that were made for one a danger to the others? Also a problem for the lab:

    laureate run interaction-attack/transfer --problem examples/own_classifier.py:Stripes --scale smoke
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from laureate.robustness import (
    MI,
    PGD,
    InteractionReduced,
    Linf,
    compare_transfer,
    generate,
    grid_players,
    mean_interaction,
    perturbation_game,
    transfer,
)


def stripes(rng, count, side=8):
    """Noisy stripes of four directions: pictures in [0, 1] and their direction."""
    labels = rng.integers(4, size=count)
    rows, columns = np.mgrid[:side, :side]
    along = np.stack([rows, columns, rows + columns, rows - columns])[labels]
    waves = np.sin(along * rng.uniform(0.9, 1.6, size=(count, 1, 1)) + rng.uniform(0, 6.3, size=(count, 1, 1)))
    pictures = np.clip(0.5 + 0.3 * waves + 0.15 * rng.normal(size=waves.shape), 0, 1)
    return jnp.asarray(pictures[..., None], jnp.float32), jnp.asarray(labels)


class Stripes(eqx.Module):
    """What the lab's experiments ask for: pictures to train on and pictures to attack."""

    images: jax.Array
    labels: jax.Array
    test_images: jax.Array
    test_labels: jax.Array

    def __init__(self):
        rng = np.random.default_rng(0)
        self.images, self.labels = stripes(rng, 1500)
        self.test_images, self.test_labels = stripes(rng, 150)


def fit(key, widths, images, labels, steps=300):
    """A small perceptron as a pytree of weights, and the function that reads it."""
    sizes = (images[0].size, *widths, 4)
    keys = jax.random.split(key, len(sizes) - 1)
    weights = [
        jax.random.normal(k, (a, b)) * (2 / a) ** 0.5 for k, a, b in zip(keys, sizes[:-1], sizes[1:], strict=True)
    ]

    def logits(weights, images):
        values = images.reshape(len(images), -1) - 0.5
        for weight in weights[:-1]:
            values = jax.nn.relu(values @ weight)
        return values @ weights[-1]

    optimiser = optax.adam(0.003)

    def step(carry, _):
        weights, state = carry
        loss = lambda w: optax.softmax_cross_entropy_with_integer_labels(logits(w, images), labels).mean()  # noqa: E731
        updates, state = optimiser.update(jax.grad(loss)(weights), state)
        return (optax.apply_updates(weights, updates), state), None

    (weights, _), _ = jax.jit(lambda c: jax.lax.scan(step, c, length=steps))((weights, optimiser.init(weights)))
    return lambda images: logits(weights, images)


if __name__ == "__main__":
    problem = Stripes()
    mine = fit(jax.random.key(0), (32,), problem.images, problem.labels)
    others = [fit(jax.random.key(1), (64,), problem.images, problem.labels),
              fit(jax.random.key(2), (24, 24), problem.images, problem.labels)]  # fmt: skip
    images, labels, players = problem.test_images, problem.test_labels, grid_players((8, 8), 4)
    plain = PGD(mine, Linf(0.1), num_steps=10)
    attacks = {
        "PGD": plain,
        "with momentum": MI(plain),
        "interaction-reduced": InteractionReduced(plain, players, strength=0.3, num_subsets=8),
    }
    reports = {}
    for name, attack in attacks.items():
        delta, _ = generate(jax.random.key(3), attack, images, labels)
        reports[name] = transfer(delta, others, images, labels, also=[mine])
        game = perturbation_game(mine, images, delta, labels, players)
        counted = reports[name].counted
        interaction = float(mean_interaction(game, players.count)[counted].mean())
        rate = float(reports[name].rates.mean())
        print(f"{name:20} fools the other networks in {rate:.0%}, mean interaction {interaction:+.5f}")
    print(f"{int(reports['PGD'].num_dropped)} pictures that a network misreads anyway are not counted")
    found = compare_transfer(reports["interaction-reduced"], reports["PGD"])
    print(f"interaction-reduced against PGD: {100 * found.gain:+.1f} points, p = {found.p_value:.2g}")
