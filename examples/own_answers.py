"""Pairs of one's own with several right answers: where is the elbow of a robot's arm whose hand is at x?

For every place of the hand the elbow may be up or down; a network that is trained by squares points between the two,
where no elbow can be. Also a problem for the lab:

    laureate run cgml/completion --problem examples/own_answers.py:Arms
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from laureate.generative import energy_score, make_model


def reaches(rng, count, upper=1.0, lower=0.8):
    """Places of the hand [count, 2], and of the elbow [count, 2] that reaches it, up or down."""
    shoulder, bend = rng.uniform(0, np.pi, count), rng.uniform(0.4, 2.4, count) * rng.choice([-1, 1], count)
    elbow = upper * np.stack([np.cos(shoulder), np.sin(shoulder)], 1)
    hand = elbow + lower * np.stack([np.cos(shoulder + bend), np.sin(shoulder + bend)], 1)
    return jnp.asarray(hand, jnp.float32), jnp.asarray(elbow, jnp.float32)


class Arms(eqx.Module):
    """What the lab's experiment asks for: pairs to learn from, to choose settings by and to be judged by."""

    x: jax.Array
    y: jax.Array
    validation_x: jax.Array
    validation_y: jax.Array
    test_x: jax.Array
    test_y: jax.Array

    def __init__(self):
        rng = np.random.default_rng(0)
        self.x, self.y = reaches(rng, 1000)
        self.validation_x, self.validation_y = reaches(rng, 64)
        self.test_x, self.test_y = reaches(rng, 100)


if __name__ == "__main__":
    problem = Arms()
    x, y = problem.x, problem.y
    for kind in ("regression", "mixture-density", "latent-flow"):
        model = make_model(jax.random.key(0), kind, x, y, width=32, learning_rate=5e-3)
        fitted = model.fit(jax.random.key(1), x, y, num_steps=1000)
        answers = fitted.sample(jax.random.key(2), problem.test_x, num_samples=16)
        # An elbow is right where the upper arm has its length and the lower one reaches the hand.
        upper = jnp.linalg.norm(answers, axis=-1)
        lower = jnp.linalg.norm(answers - problem.test_x[None], axis=-1)
        right = (jnp.abs(upper - 1.0) < 0.15) & (jnp.abs(lower - 0.8) < 0.15)
        score = jnp.mean(jax.vmap(energy_score, (1, 0))(answers, problem.test_y))
        print(f"{kind:16} {float(right.mean()):4.0%} of the elbows can be, energy score {float(score):.3f}")
    found = fitted.infer(jax.random.key(3), problem.test_x, problem.test_y)
    print(f"the latent of a known pair explains it to {float(found.costs[-1].mean()):.3f}, a drawn one to", end=" ")
    print(f"{float(found.costs[0].mean()):.3f}")
