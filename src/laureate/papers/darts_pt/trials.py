"""DARTS-PT: which network each rule takes from the same supernets, and what that network is worth when trained alone.

What every network of the space is worth is computed once in every process (``Bench.table``), the same everywhere: its
keys do not depend on seeds. So are the supernets, which the arms of a seed share.
"""

import warnings
from functools import cached_property
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from laureate.architecture import (
    AbstractSelection,
    MagnitudeSelection,
    PerturbationSelection,
    RandomSelection,
    ResolutionWarning,
    SelectionResult,
    Space,
    SupernetScore,
    SupernetTraining,
    SupernetTrainingState,
    Table,
    TieWarning,
    choice_noise,
    hypervolume,
    optimal_mixture,
    pareto,
    select,
    tabular,
    train_supernet,
    without_operations,
)
from laureate.architecture import effective_weights as weights_of
from laureate.lab.claim import Settings

__all__ = ["bench", "fronts", "proposition", "rates", "selection", "trajectory", "validation"]

PIECES = 10  # of a supernet's training, at the end of each of which it is kept
# What training depends on; experiments with the same share tables and supernets.
DECIDE = ("batch", "rate", "alpha_rate", "steps", "tune_steps", "table_steps", "table_values")


class Bench:
    """A problem with everything that arms and seeds share: two trainings, the table, the trained supernets.

    problem: a `Supernet` with ``init(key) -> (params, state)``, ``inputs``, ``labels``, ``test_inputs`` and
        ``test_labels``. The second half of its training examples is for validation.
    """

    def __init__(self, problem: Any, scale: Settings):
        self.problem, self.scale = problem, scale
        half = len(problem.inputs) // 2
        self.data = (problem.inputs[:half], problem.labels[:half])
        self.validation = (problem.inputs[half:], problem.labels[half:])
        self.all = (problem.inputs, problem.labels)
        self.test = (problem.test_inputs, problem.test_labels)
        optimiser = optax.chain(
            optax.clip_by_global_norm(5.0),
            optax.add_decayed_weights(3e-4),
            optax.inject_hyperparams(optax.sgd)(learning_rate=scale.rate, momentum=0.9),
        )
        # DARTS' own: Adam with a short memory of the mean, and weight decay.
        adam = optax.chain(
            optax.add_decayed_weights(1e-3),
            optax.inject_hyperparams(optax.adam)(learning_rate=scale.alpha_rate, b1=0.5),
        )
        self.fixed = SupernetTraining(problem, optimiser)
        self.learned = SupernetTraining(problem, optimiser, alpha_optimiser=adam)
        self.space = self.fixed.space
        self._supernets: dict[tuple[bytes, str, float], list[SupernetTrainingState]] = {}

    def start(self, key: Array, training: SupernetTraining, factor: float = 1.0) -> SupernetTrainingState:
        """A supernet before training. Alpha begins near zero, as in DARTS; its rate is ``factor`` times the usual."""
        params_key, alpha_key = jax.random.split(key)
        alpha = 1e-3 * jax.random.normal(alpha_key, self.space.shape)
        state = training.init(*self.problem.init(params_key), alpha)  # pyright: ignore
        if state.alpha_state is None:
            return state
        rate = jnp.asarray(self.scale.alpha_rate * factor)
        return state._replace(alpha_state=optax.tree_utils.tree_set(state.alpha_state, learning_rate=rate))

    def train(
        self, key: Array, training: SupernetTraining, state: SupernetTrainingState, steps: int, rate: float, **more: Any
    ) -> SupernetTrainingState:
        """Some steps at one learning rate; ``more`` goes to ``train_supernet``."""
        optimiser_state = optax.tree_utils.tree_set(state.optimiser_state, learning_rate=jnp.asarray(rate))
        state = state._replace(optimiser_state=optimiser_state)
        data, validation = more.pop("data", self.data), more.pop("validation", self.validation)
        batch = min(self.scale.batch, len(data[1]))
        return train_supernet(key, training, state, data, validation, steps, batch, **more)[0]

    def whole(
        self, key: Array, training: SupernetTraining, steps: int, ends: list[float], factor: float = 1.0, **more: Any
    ) -> list[Any]:
        """A training with a rate that falls to 0.3 and 0.1 of itself after a half and 0.8; kept at the ends named."""
        init_key, train_key = jax.random.split(key)
        state, done, kept = self.start(init_key, training, factor), 0, []
        for end in ends:
            share = done / steps
            rate = self.scale.rate * (1.0 if share < 0.5 else 0.3 if share < 0.8 else 0.1)
            count = round(end * steps) - done
            state = self.train(train_key, training, state, count, rate, first=done, **more)
            done += count
            kept.append(state)
        return kept

    def supernets(self, key: Array, alpha: str, factor: float = 1.0) -> list[SupernetTrainingState]:
        """The supernet of a seed after each tenth of its training. alpha: "bilevel", "one-level" or "fixed"."""
        place = (np.asarray(jax.random.key_data(key)).tobytes(), alpha, factor)
        if place not in self._supernets:
            training = self.fixed if alpha == "fixed" else self.learned
            more = {"data": self.all, "validation": self.all} if alpha == "one-level" else {}
            ends = [(piece + 1) / PIECES for piece in range(PIECES)]
            self._supernets[place] = self.whole(key, training, self.scale.steps, ends, factor, **more)
        return self._supernets[place]

    @cached_property
    def table(self) -> Table:
        """Test accuracy of every network of the space, trained alone on all training images."""

        def alone(choice: tuple[int, ...]) -> list[float]:
            return [self.alone(jax.random.key(2**31 + seed), choice) for seed in range(self.scale.table_values)]

        return tabular(self.space, alone, num_values=self.scale.table_values)

    def alone(self, key: Array, choice: tuple[int, ...]) -> float:
        """One network, trained alone and tested with the statistics of its training."""
        chosen = jnp.asarray(choice, jnp.int32)
        more = {"data": self.all, "validation": None, "choice": chosen}
        state = self.whole(key, self.fixed, self.scale.table_steps, [0.5, 0.8, 1.0], **more)[-1]
        weights = weights_of(self.space, state.alpha, chosen)
        return self.accuracy(state, weights, self.test, train=False)

    def accuracy(self, state: SupernetTrainingState, weights: Array, data: Any, *, train: bool) -> float:
        """Of a supernet with these weights."""
        _, right = self.score(state, data, criterion="loss", train=train).examples(weights[None])
        return float(jnp.mean(right))

    def score(self, state: SupernetTrainingState, data: Any, **more: Any) -> SupernetScore:
        """The scores of a supernet as it is."""
        return SupernetScore(self.problem, state.params, state.net_state, data, **more)


_benches: dict[Any, Bench] = {}


def bench(problem: Any, scale: Settings) -> Bench:
    """The bench of a problem: one in a process for experiments that train alike."""
    place = (id(problem), *(scale[name] for name in DECIDE))
    if place not in _benches:
        _benches[place] = Bench(problem, scale)  # keeps the problem, so that its id stays its own
    return _benches[place]


def per_cost(found: Bench, weights: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Scores of which the lowest is the operation whose removal costs most accuracy for what it costs to compute.

    -(accuracy lost) / (1 + cost); weights: the candidates', each without one operation.
    """
    removed = (np.asarray(weights) == 0) & (np.max(weights, axis=0) > 0)
    return (scores - scores.max()) / (1.0 + (removed * costs_of(found.space)).sum((1, 2)))


def rule_of(arm: Settings, found: Bench) -> AbstractSelection:
    """The rule of an arm."""
    # A user's own problem may have no such operation.
    exclude = (arm.exclude,) if any(arm.exclude in ops for ops in found.space.ops) else ()
    if arm.rule in ("perturbation", "per-cost"):
        return PerturbationSelection(found.space, exclude=exclude, criterion=arm.criterion, ties=arm.ties)
    rule = MagnitudeSelection if arm.rule == "magnitude" else RandomSelection
    return rule(found.space, exclude=exclude, ties=arm.ties)


def searched(
    key: Array,
    arm: Settings,
    found: Bench,
    state: SupernetTrainingState,
    penalty: float = 0.0,
    passed: list[SupernetTrainingState] | None = None,
) -> SelectionResult:
    """One network out of a supernet, by the rule of an arm, with its tuning where the arm has any.

    penalty: of a network's relative cost, taken off its score. passed: gets the supernet as it is after each tuning.
    """
    validation = jax.tree.map(lambda rows: rows[: arm.examples] if arm.examples else rows, found.validation)
    criterion = "both" if arm.ties == "loss" else arm.criterion
    now = {"state": state}
    training = found.learned if state.alpha_state is not None else found.fixed

    class Score:
        """Of the supernet as it is now, after tuning."""

        def __call__(self, weights: np.ndarray) -> Any:
            scores = self.many(np.asarray(weights)[None])
            return (float(scores[0][0]), float(scores[1][0])) if criterion == "both" else float(scores[0])

        def many(self, weights: np.ndarray) -> Any:
            scorer = found.score(now["state"], validation, criterion=criterion, train=arm.statistics == "batch")
            scores = scorer.many(weights)
            if arm.rule == "per-cost":
                return per_cost(found, weights, scores)
            return scores if not penalty else scores - penalty * np.asarray([relative_cost(found, w) for w in weights])

    def tune(key: Array, weights: Any, decided: Any) -> Array:
        before = now["state"]._replace(alpha=decided.alpha)
        more = {"choice": decided.choice, "kept": decided.kept}
        if arm.alpha == "one-level":
            more |= {"data": found.all, "validation": found.all}
        now["state"] = found.train(key, training, before, found.scale.tune_steps, found.scale.rate / 10, **more)
        if passed is not None:
            passed.append(now["state"])
        return now["state"].alpha

    # As in the released code: the weights' optimiser begins anew, at a tenth of its rate; alpha's goes on.
    begun = training.init(state.params, state.net_state, state.alpha)
    now["state"] = begun._replace(alpha_state=state.alpha_state)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TieWarning)  # how many there were is reported
        warnings.simplefilter("ignore", ResolutionWarning)
        tune_fn = tune if arm.tuned else None
        return select(key, rule_of(arm, found), state.alpha, Score(), tune_fn)


def selection(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """What the network that an arm chooses is worth.

    accuracy: when trained alone. rank: the share of the other networks that are better. none_share, skip_share: of
    edges that got ``none`` or ``skip``. ties: decisions that scores did not make. supernet_accuracy: on validation
    images, before any decision.
    """
    found = bench(problem, scale)
    supernet_key, select_key = jax.random.split(key)
    state = found.supernets(supernet_key, arm.alpha)[-1]
    chosen = searched(select_key, arm, found, state)
    whole = found.accuracy(state, weights_of(found.space, state.alpha), found.validation, train=True)
    return _worth(found, chosen) | {"supernet_accuracy": jnp.asarray(whole)}


def _worth(found: Bench, chosen: SelectionResult) -> dict[str, Array]:
    table = found.table
    names = [found.space.ops[edge][op] for edge, op in enumerate(chosen.choice)]
    metrics = {
        "accuracy": table.value(chosen.choice),
        "regret": table.value(table.best()) - table.value(chosen.choice),
        "rank": table.rank(chosen.choice) / (found.space.size - 1),
        "none_share": np.mean([name == "none" for name in names]),
        "skip_share": np.mean([name == "skip" for name in names]),
        "ties": float(sum(decision.tied > 1 for decision in chosen.history)),
        "scored": float(chosen.num_scores),
        "table_mean": table.means.mean(),
    }
    return {name: jnp.asarray(value, float) for name, value in metrics.items()}


def rates(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """The same where alpha was learned at ``arm.factor`` times its rate.

    With 0 the factor is the one of ``scale.factors`` whose whole supernet has the best validation accuracy, the first
    of equals. factor: the one taken.
    """
    found = bench(problem, scale)
    supernet_key, select_key = jax.random.split(key)
    tried = [arm.factor] if arm.factor else scale.factors
    states = [found.supernets(supernet_key, "bilevel", factor)[-1] for factor in tried]
    wholes = [found.accuracy(s, weights_of(found.space, s.alpha), found.validation, train=True) for s in states]
    best = int(np.argmax(wholes))
    worth = _worth(found, searched(select_key, arm, found, states[best]))
    return worth | {"supernet_accuracy": jnp.asarray(wholes[best]), "factor": jnp.asarray(tried[best], float)}


def trajectory(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """What is chosen after each fifth of the supernet's training, and the slope of that over its course."""
    found = bench(problem, scale)
    supernet_key, select_key = jax.random.split(key)
    kept = range(1, PIECES, 2)
    states = [found.supernets(supernet_key, arm.alpha)[piece] for piece in kept]
    worth = [_worth(found, searched(select_key, arm, found, state)) for state in states]
    accuracy = np.asarray([one["accuracy"] for one in worth])
    progress = np.asarray([(piece + 1) / PIECES for piece in kept])
    return {
        "accuracy": jnp.asarray(accuracy),
        "progress": jnp.asarray(progress),
        "slope": jnp.asarray(np.round(np.polyfit(progress, accuracy, 1)[0], 9)),  # no rounding errors of a constant
        "last_fall": jnp.asarray(accuracy[-1] - accuracy.max()),
    }


def validation(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """How often a resampled validation set of each size gives an edge the operation that all images give it."""
    found = bench(problem, scale)
    supernet_key, resample_key = jax.random.split(key)
    state = found.supernets(supernet_key, "bilevel")[-1]
    weights, score = weights_of(found.space, state.alpha), found.score(state, found.validation, criterion="loss")
    noise, more, agreement = eqx.filter_jit(choice_noise), {"num_resamples": scale.resamples}, []
    for edge in range(found.space.num_edges):
        loss, accuracy = score.examples(without_operations(weights, jnp.asarray(edge)))
        values, edge_key = (loss if arm.criterion == "loss" else accuracy), jax.random.fold_in(resample_key, edge)
        reports = [noise(edge_key, values, size=size, criterion=arm.criterion, **more) for size in scale.sizes]
        agreement.append([float(report.agreement) for report in reports])
    mean = np.mean(agreement, axis=0)
    return {
        "agreement": jnp.asarray(mean),
        "size": jnp.asarray(scale.sizes, float),
        "judged": jnp.asarray(mean[scale.sizes.index(scale.judged)]),
    }


def cost_of(name: str) -> float:
    """Multiplications of an operation, a channel and position; a user's own operation counts as a convolution."""
    return {"none": 0.0, "skip": 0.0, "avg3": 1.0}.get(name, 9.0)


def costs_of(space: Space) -> np.ndarray:
    """Of every operation of every edge."""
    costs = np.zeros(space.shape)
    for edge, names in enumerate(space.ops):
        costs[edge, : len(names)] = list(map(cost_of, names))
    return costs


def relative_cost(found: Bench, weights: np.ndarray) -> float:
    """The cost of the operations that have any weight, over that of all."""
    costs = costs_of(found.space)
    return float(costs[np.asarray(weights) > 0].sum() / costs.sum())


def fronts(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """The area under accuracy against cost of the networks that a selection passes, and its last network."""
    found = bench(problem, scale)
    supernet_key, select_key = jax.random.split(key)
    state, passed = found.supernets(supernet_key, arm.alpha)[-1], []
    chosen = searched(select_key, arm, found, state, penalty=arm.penalty, passed=passed)
    # A snapshot is worth what it gets right of the test images, which no decision has seen.
    history = [
        step._replace(score=found.accuracy(after, jnp.asarray(step.weights), found.test, train=True))
        for step, after in zip(chosen.history, passed, strict=True)
    ]
    points = pareto(history, lambda weights: relative_cost(found, weights))
    return _worth(found, chosen) | {
        "hypervolume": jnp.asarray(hypervolume(points, 1.0)),
        "last_cost": jnp.asarray(relative_cost(found, history[-1].weights)),
    }


def proposition(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """How far the weight of proposition 1 is from the one that minimises the variance, over drawn errors.

    The variance is a parabola in θ; its lowest point follows from three of its values.
    """
    error_key, mix_key = jax.random.split(key)
    mixing = jax.random.normal(mix_key, (2, 2)) * jnp.asarray([[1.0, arm.coupling], [arm.coupling, 1.0]])
    o, x = mixing @ jax.random.normal(error_key, (2, scale.draws))
    low, middle, high = (jnp.var(t * o + (1 - t) * x) for t in (0.0, 0.5, 1.0))
    curvature = 2 * low - 4 * middle + 2 * high
    best = -(4 * middle - 3 * low - high) / (2 * curvature)
    (variance_op, covariance), (_, variance_skip) = jnp.cov(jnp.stack([o, x]), bias=True)
    claimed = optimal_mixture(variance_op, variance_skip, covariance)
    return {"log10_error": jnp.log10(jnp.maximum(jnp.abs(claimed - best), 1e-17))}
