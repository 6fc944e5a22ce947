"""DeTAG and D-PSGD by the accuracy on images that no node has: from sorted to shuffled, from dense to sparse."""

import jax
import jax.numpy as jnp
from jax import Array

from laureate.decentralized import stack, train
from laureate.lab.claim import Settings
from laureate.papers.detag.trials import network, optimiser, phase_rounds
from laureate.problems.peers import JudgedImages

__all__ = ["sweep"]


def sweep(key: Array, arm: Settings, problem: JudgedImages, scale: Settings) -> dict[str, Array]:
    """Test accuracy by the share of images shuffled, at the first κ, and by κ, on sorted images.

    Each case at the rate that gives the lowest loss on the training images; no test image is looked at for that. The
    arm without an optimiser says the same class of every image.
    """
    kappas, shuffles = scale.kappas, scale.shuffles
    # (κ, share): all shares at the first κ, then the other κ on sorted images; the first case belongs to both sweeps.
    cases = [(kappas[0], share) for share in shuffles] + [(kappa, 0.0) for kappa in kappas[1:]]
    places = {"shuffle": range(len(shuffles)), "kappa": [0, *range(len(shuffles), len(cases))]}
    axes = {"shuffles": jnp.asarray(shuffles), "log_kappas": jnp.log10(jnp.asarray(kappas))}
    if arm.optimiser == "none":
        start = problem.accuracy(jax.tree.map(jnp.zeros_like, problem.training.theta0(key)))
        same = jnp.full(len(cases), start)
        return _reported({"accuracy": same, "nodes_accuracy": same}, places) | axes
    split_key, start_key, run_key = jax.random.split(key, 3)
    begin = stack(problem.training.theta0(start_key), problem.nodes)
    rounds = phase_rounds(problem.nodes, tuple(kappa for kappa, _ in cases))
    rates = jnp.asarray(scale.rates)

    def judged(params):
        mean = jax.tree.map(lambda x: x.mean(0), params)
        whole = problem.training.whole_loss
        losses = jnp.stack([whole(mean), jax.vmap(whole)(params).mean()])
        accuracies = jnp.stack([problem.accuracy(mean), jax.vmap(problem.accuracy)(params).mean()])
        return losses, accuracies

    def run(kappa, share, rate, rounds):
        method = optimiser(arm.optimiser, network(problem.nodes, kappa), rate, rounds)
        data = problem.training.parts(split_key, share)
        gradient = problem.training.gradient
        _, history = train(run_key, method, gradient, begin, scale.rounds, data=data, record=judged, every=scale.rounds)
        return jax.tree.map(lambda x: x[-1], history.recorded)

    over_rates = jax.vmap(run, in_axes=(None, None, 0, None))
    kappa, share = (jnp.asarray(column) for column in zip(*cases, strict=True))
    losses, accuracies = jax.vmap(over_rates, in_axes=(0, 0, None, 0))(kappa, share, rates, jnp.asarray(rounds))
    best, chosen = _at_lowest(losses, accuracies)
    found = {"accuracy": chosen[:, 0], "nodes_accuracy": chosen[:, 1]}
    return _reported(found | {"rate": rates[best[:, 0]], "nodes_rate": rates[best[:, 1]]}, places) | axes


def _at_lowest(losses: Array, accuracies: Array) -> tuple[Array, Array]:
    """Which rate has the lowest finite training loss, and the accuracy there; both [cases, 2] of [cases, rates, 2]."""
    best = jnp.argmin(jnp.where(jnp.isfinite(losses), losses, jnp.inf), axis=1)
    return best, jnp.take_along_axis(accuracies, best[:, None, :], axis=1)[:, 0]


def _reported(found: dict[str, Array], places: dict) -> dict[str, Array]:
    """Each number of the sorted case, and by sweep."""
    sorted_ones = {f"sorted_{name}": values[0] for name, values in found.items()}
    return sorted_ones | {
        f"{name}_by_{sweep}": values[jnp.asarray(list(where))]
        for name, values in found.items()
        for sweep, where in places.items()
    }
