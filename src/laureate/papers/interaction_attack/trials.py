"""Interaction and transfer: networks trained once a seed, attacks on one of them, success on the others.

Trials are called once a seed (a convolution under vmap over its weights is slow): each function that computes is
compiled once for all seeds, and the arms that a worker computes share a seed's networks.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from laureate import robustness as r
from laureate.lab.claim import Settings
from laureate.problems.classifiers import make_network, train_network

__all__ = ["index_choice", "strength", "transferred"]

# In this order, so that a network's key does not depend on which others are trained.
KINDS = ("residual", "wide", "narrow", "deep", "convolutional")
# The authors' noise for VR: 15/255 beside ε = 16/255.
NOISE = 15 / 16
_trained: dict[tuple, tuple[Any, dict[str, Any]]] = {}
_plain: dict[tuple, tuple[Any, "Attacked"]] = {}


def trained(key: Array, problem: Any, scale: Settings) -> dict[str, Any]:
    """The networks of a seed by kind, the attacked one first."""
    # The problem is kept beside them: as long as it lives its id is no other's.
    name = _name(key, problem, scale)
    if name not in _trained:
        made = {}
        for kind in scale.networks:
            own = jax.random.fold_in(key, KINDS.index(kind))
            made[kind] = _train(own, kind, problem.images, problem.labels, scale.train_steps, _classes(problem))
        _trained[name] = problem, made
    return _trained[name][1]


def _name(key: Array, problem: Any, scale: Settings) -> tuple:
    return np.asarray(jax.random.key_data(key)).tobytes(), scale.networks, scale.train_steps, id(problem)


def _classes(problem: Any) -> int:
    return int(problem.labels.max()) + 1


@eqx.filter_jit
def _train(key, kind, images, labels, steps, classes):
    first, then = jax.random.split(key)
    return train_network(then, make_network(first, kind, images[0], classes), images, labels, steps)


class Attacked(NamedTuple):
    """What an attack did to the images of a seed; numpy arrays, the images that count only.

    success: of the last iterate, [targets, images]. utility: by how much the targets' margins rose, [targets, images].
    by_iterate: success of every iterate before its step, [iterates, targets, images], as the authors record it.
    at_boundary: interaction of the perturbation scaled down until the attacked network just errs; nan if not asked for.
    """

    success: np.ndarray
    utility: np.ndarray
    by_iterate: np.ndarray
    margin: np.ndarray
    interaction: np.ndarray
    at_boundary: np.ndarray
    counted: np.ndarray


def make_attack(arm: Settings, source: Any, players: r.Players, scale: Settings) -> r.AbstractAttack:
    """The attack of an arm; its numbers are arrays, so that another one compiles nothing."""
    ball = r.Linf(jnp.asarray(scale.epsilon))
    passes = 2 * scale.subsets + 3
    network = r.SGM(source, jnp.asarray(0.2)) if arm.gradient == "sgm" else source
    plain = r.PGD(
        network,
        ball,
        jnp.asarray(scale.epsilon / 10),
        num_steps=scale.steps * (passes if arm.long else 1),
        momentum=jnp.asarray(arm.momentum),
        loss=arm.loss,
    )
    reduced = lambda attack: r.InteractionReduced(  # noqa: E731
        attack, players, jnp.asarray(arm.strength), num_subsets=scale.subsets, penalty=arm.penalty
    )
    wrapped = {
        "plain": lambda: plain,
        "sgm": lambda: plain,
        "fgsm": lambda: r.FGSM(network, ball),
        "vr": lambda: r.VR(plain, num_copies=passes, sigma=jnp.asarray(NOISE * scale.epsilon)),
        "ti": lambda: r.TI(plain, side=3, spread=jnp.asarray(1.0)),
        "di": lambda: r.DI(plain),
        "reduced": lambda: reduced(plain),
    }
    return wrapped[arm.gradient]()


@eqx.filter_jit
def _trajectory(attack, key, images, labels):
    return attack.trajectory(key, images, labels)[0]


@eqx.filter_jit
def _last(attack, key, images, labels):
    return attack.run(key, images, labels)[0]


@eqx.filter_jit
def _margins(network, images, labels):
    return r.margin(network(images), labels)


@eqx.filter_jit
def _interaction(source, images, delta, labels, players):
    return r.mean_interaction(r.perturbation_game(source, images, delta, labels, players), players.count)


@eqx.filter_jit
def _to_boundary(source, images, delta, labels):
    """tδ with the least t in (0, 1] found by halving for which the network errs; δ itself where it never does."""

    def halve(_, ends):
        low, high = ends
        middle = (low + high) / 2
        beyond = r.margin(source(images + _each(middle, delta) * delta), labels) > 0
        return jnp.where(beyond, low, middle), jnp.where(beyond, middle, high)

    ends = jnp.zeros(len(images)), jnp.ones(len(images))
    _, share = jax.lax.fori_loop(0, 15, halve, ends)
    return _each(share, delta) * delta


def _each(factors: Array, delta: Array) -> Array:
    return factors.reshape(-1, *(1,) * (delta.ndim - 1))


def attacked(key: Array, arm: Settings, problem: Any, scale: Settings, every: bool = True) -> Attacked:
    """Attack the first network of a seed and try the perturbations on the others: of ``every`` iterate, or the last."""
    train_key, attack_key = jax.random.split(key)
    networks = trained(train_key, problem, scale)
    source, *targets = networks.values()
    images, labels = problem.test_images, problem.test_labels
    players = r.grid_players(images.shape[1:3], scale.grid)
    if arm.gradient == "noise":
        signs = jnp.where(jax.random.bernoulli(attack_key, 0.5, images.shape[1:]), scale.epsilon, -scale.epsilon)
        delta = jnp.clip(images + signs, 0.0, 1.0) - images
        iterates = jnp.stack([jnp.zeros_like(delta), delta])
    else:
        attack = make_attack(arm, source, players, scale)
        if every and not arm.long:
            iterates = _trajectory(attack, attack_key, images, labels)
        else:  # too many to keep, or not asked for: the start and the last
            last = _last(attack, attack_key, images, labels)
            iterates = jnp.stack([jnp.zeros_like(last), last])
    clean = np.stack([_margins(network, images, labels) for network in (source, *targets)])
    counted = np.all(clean < 0, axis=0)
    margins = np.stack([[_margins(network, images + d, labels) for network in targets] for d in iterates])
    margins, delta = margins[:, :, counted], iterates[-1]
    measured = lambda delta: np.asarray(_interaction(source, images, delta, labels, players))[counted]  # noqa: E731
    interaction = measured(delta)
    return Attacked(
        success=margins[-1] > 0,
        utility=margins[-1] - clean[1:, counted],
        by_iterate=margins[:-1] > 0,
        margin=np.asarray(_margins(source, images + delta, labels))[counted],
        interaction=interaction,
        at_boundary=measured(_to_boundary(source, images, delta, labels)) if every else interaction * np.nan,
        counted=np.asarray(counted),
    )


def attacked_plainly(key: Array, arm: Settings, problem: Any, scale: Settings) -> Attacked:
    """What PGD does to the images of a seed, computed once for all arms that a worker compares with it."""
    name = (*_name(key, problem, scale), float(scale.epsilon), scale.steps, scale.grid)
    if name not in _plain:
        plain = Settings(dict(arm), gradient="plain", momentum=0.0, loss="cross-entropy", long=False)
        _plain[name] = problem, attacked(key, plain, problem, scale)
    return _plain[name][1]


def transferred(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """Success on networks that were not attacked, interaction within the perturbation, and how they go together.

    Where an arm has one iterate (FGSM, noise) or too many to keep there is nothing to choose from, and no protocol.
    """
    found = attacked(key, arm, problem, scale)
    share = found.success.mean(0)  # of the targets that an image fools
    utility = found.utility.mean(0)
    metrics = {
        "transfer": found.success.mean(),
        "white_box": (found.margin > 0).mean(),
        "white_margin": found.margin.mean(),
        "interaction": found.interaction.mean(),
        "correlation": r.rank_correlation(found.interaction, share),
        "partial_correlation": r.partial_rank_correlation(found.interaction, share, found.margin),
        "utility_correlation": r.rank_correlation(found.interaction, utility),
        "partial_utility_correlation": r.partial_rank_correlation(found.interaction, utility, found.margin),
        "counted": float(found.counted.sum()),
    }
    if len(found.by_iterate) > 1:
        chosen = np.stack([r.leave_one_out(found.by_iterate[:, target]) for target in range(len(found.success))])
        metrics |= {"protocol_transfer": chosen.mean(), "protocol_gain": chosen.mean() - found.success.mean()}
    # At the same white-box margin, 0, and on the same images: those that both fool.
    plain = attacked_plainly(key, arm, problem, scale)
    both = (found.margin > 0) & (plain.margin > 0)
    change = (found.at_boundary - plain.at_boundary)[both]
    metrics |= {"matched_difference": change.mean() if both.any() else 0.0, "both_fooled": float(both.sum())}
    return {name: jnp.asarray(value) for name, value in metrics.items()}


def strength(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """Transfer for every strength of the penalty; one is chosen on other images and on a network that counts nowhere.

    The first half of the test images and the last network choose among the strengths above 0, the second half and the
    other targets judge.
    """
    rates, interactions, choosing, counted = [], [], [], 0
    for value in scale.strengths:
        found = attacked(key, Settings(dict(arm), strength=value), problem, scale, every=False)
        first = np.flatnonzero(found.counted) < len(found.counted) // 2
        choosing.append(found.success[-1, first].mean())
        rates.append(found.success[:-1, ~first].mean())
        interactions.append(found.interaction[~first].mean())
        counted = found.counted.sum()  # the same for every strength
    best = 1 + int(np.argmax(choosing[1:]))  # of equals the weakest
    rates = np.asarray(rates)
    return {
        "transfer": jnp.asarray(rates),
        "interaction": jnp.asarray(interactions),
        "place": jnp.arange(len(rates), dtype=float),
        "lost_at_strongest": jnp.asarray(rates[0] - rates[-1]),
        "lost_at_authors": jnp.asarray(rates[0] - rates[scale.strengths.index(1.0)]),
        "tuned_gain": jnp.asarray(rates[best] - rates[0]),
        "chosen_strength": jnp.asarray(scale.strengths[best]),
        "counted": jnp.asarray(float(counted)),
    }


def blocks(size: tuple[int, int], rows: int, columns: int) -> r.Players:
    """Rectangles as players, as nearly equal as pixels allow."""
    down, across = np.arange(size[0]) * rows // size[0], np.arange(size[1]) * columns // size[1]
    return r.players_from(down[:, None] * columns + across)


@eqx.filter_jit
def _every_index(source, images, delta, labels, players):
    game = r.perturbation_game(source, images, delta, labels, players)
    table = r.tabulate(game, players.count)
    names = ("shapley", "banzhaf", "faith-shap")
    means = [r.mean_of_pairs(r.exact_interactions(table, players.count, name)) for name in names]
    return (*means, r.mean_interaction(game, players.count))


def index_choice(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """Each image's mean interaction by three indices, from all sets of players, and by the identity."""
    train_key, attack_key = jax.random.split(key)
    (source,) = trained(train_key, problem, scale).values()
    images, labels = problem.test_images.astype(float), problem.test_labels
    players = blocks(images.shape[1:3], scale.rows, scale.columns)
    delta = _last(make_attack(arm, source, players, scale), attack_key, images, labels)
    found = [np.asarray(values) for values in _every_index(source, images, delta, labels, players)]
    counted = np.asarray(_margins(source, images, labels)) < 0
    shapley, banzhaf, faith, identity = (values[counted] for values in found)
    error = np.abs(identity - shapley).max() / np.abs(shapley).max()
    return {
        "banzhaf_correlation": jnp.asarray(r.rank_correlation(shapley, banzhaf)),
        "faith_correlation": jnp.asarray(r.rank_correlation(shapley, faith)),
        "log10_error": jnp.asarray(np.log10(error + 1e-20)),
        "shapley": jnp.asarray(shapley.mean()),
        "banzhaf": jnp.asarray(banzhaf.mean()),
        "faith": jnp.asarray(faith.mean()),
    }
