"""Convolutional ALISTA on real images: noise removed with filters learned from other images."""

import jax
import jax.numpy as jnp
from jax import Array

from laureate import recovery as r
from laureate.lab.claim import Settings
from laureate.papers.alista.trials import trained
from laureate.problems.recovery import DigitImages

__all__ = ["denoising"]


def denoising(key: Array, arm: Settings, problem: DigitImages, scale: Settings) -> dict[str, Array]:
    """Filters learned from clean training images; networks trained to give these back from noisy ones; PSNR on others.

    All arms of a seed share filters and noise. What is chosen is chosen on the last quarter of the training images.
    """
    keys = jax.random.split(key, 5)
    size = problem.train.shape[1], problem.train.shape[2]
    held = problem.train.shape[0] // 4
    learn, check = problem.train[:-held], problem.train[-held:]
    filters = r.learn_filters(keys[0], learn[: scale.pictures], scale.filters, scale.side, num_rounds=scale.rounds)
    noisy = lambda key, images: images + scale.sigma * jax.random.normal(key, images.shape)  # noqa: E731
    check_b, test_b = noisy(keys[1], check), noisy(keys[2], problem.test)
    psnr = lambda found, images: -10 * jnp.log10(jnp.mean((found - images) ** 2))  # noqa: E731
    chosen, parameters = {}, 0
    if arm.kind == "nothing":
        found = test_b
    elif arm.kind == "fista":
        dictionary = r.ConvDictionary(filters, size)
        iterations = scale.layers * arm.multiple
        give = lambda penalty, b: dictionary.matvec(r.FISTA(dictionary, iterations, penalty=penalty)(b))  # noqa: E731
        grid = jnp.asarray(scale.penalties)
        best = jnp.argmax(jax.lax.map(lambda penalty: psnr(give(penalty, check_b), check), grid))
        found, chosen, parameters = give(grid[best], test_b), {"penalty": grid[best]}, 1
    else:
        if arm.kind == "conv-alista":
            solver = r.ConvALISTA(filters, size, num_layers=scale.layers)
        else:
            start = arm.analytic * r.analytic_conv_weight(filters) + (1 - arm.analytic) * filters
            solver = r.ConvLISTA(filters, size, start, num_layers=scale.layers)
        # One noisy copy of every training image, as if they had been measured so.
        pairs = noisy(keys[4], learn), learn
        judge = lambda made: -psnr(made.synthesise(made(check_b)), check)  # noqa: E731
        solver, rate = trained(keys[3], solver, pairs, (check_b, check), scale, judge=judge, loss=_image_loss)
        found, chosen = solver.synthesise(solver(test_b)), {"rate": rate}
        parameters = solver.num_parameters
    value = psnr(found, problem.test)
    size_of = {"log_parameters": jnp.log10(1.0 + parameters)}
    return {"psnr": value} | size_of | chosen


def _image_loss(solver, estimate: Array, target: Array) -> Array:
    return jnp.mean((solver.synthesise(estimate) - target) ** 2)
