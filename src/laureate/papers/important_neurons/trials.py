"""Units of small translators: ranked by the agreement of models, erased, looked at and set.

Trials are called once a seed. A seed's models are trained once for all arms and experiments that a worker computes, and
each function that computes is compiled once for all seeds. Every model of a seed is ranked in turn against the others,
and what is reported is the mean over them: models of a seed share data, so that a seed is one observation. Units are
ranked on the first half of the test sentences; what erasing them costs is measured on the second.
"""

import hashlib
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from laureate import interpretation as i
from laureate.lab.claim import Settings
from laureate.problems.grammar import KINDS
from laureate.problems.translators import make_translator, nats, train_translator

__all__ = ["controlled", "erased", "how_many", "interpreted"]

# Compiling is most of the time at small scales, and these programs run for seconds.
LIGHT: dict[str, Any] = {"compiler_options": {"xla_backend_optimization_level": 1}}
# One random order is noisy: the arm is the mean of several.
RANDOM_ORDERS = 8
# Numbers of keys that no model of a seed is trained with.
ORDER_KEY, UNIT_KEY = 1_000_003, 2_000_003
_prepared: dict[tuple, "Prepared"] = {}


class Prepared(NamedTuple):
    """The trained models of a seed, stacked, what they hand on for the test sentences, and each unit's worth.

    states: ``[models, sentences, length, units]``. means: of each model's units. scores: by name, ``[models, units]``.
    effects: what the loss gains when a unit alone is set to its mean, and to 0, ``[2, models, units]``.
    accuracy: share of words rightly translated, of the worst model. learned: 1 − loss/entropy of its words.
    Means and scores are of the first half of the sentences, effects, accuracy and what was learned of the second.
    """

    models: Any
    states: Array
    means: Array
    scores: dict[str, Array]
    effects: Array
    accuracy: Array
    learned: Array


def prepared(key: Array, problem: Any, scale: Settings, task: str = "translate") -> Prepared:
    """The models of a seed; ``copy`` learns to repeat the source instead."""
    sizes = (scale.kind, scale.models, scale.units, scale.steps, scale.batch)
    arrays = problem.sources, problem.targets, problem.test_sources, problem.test_targets
    told = hashlib.sha256(b"".join(np.asarray(array).tobytes() for array in arrays)).hexdigest()
    name = (np.asarray(jax.random.key_data(key)).tobytes(), *sizes, float(scale.rate), task, told)
    if name not in _prepared:
        targets = problem.targets if task == "translate" else problem.sources
        test_targets = problem.test_targets if task == "translate" else problem.test_sources
        # Who copies has as many words to choose from as who translates: one program serves both.
        counts = int(problem.sources.max()) + 1, int(max(problem.sources.max(), problem.targets.max())) + 1
        models = _train(key, problem.sources, targets, counts, sizes, jnp.asarray(scale.rate))
        states, means, scores, effects, losses, accuracies = _looked_at(models, problem.test_sources, test_targets)
        learned = 1 - jnp.max(losses) / entropy(test_targets[half_of(test_targets) :])
        _prepared[name] = Prepared(models, states, means, scores, effects, accuracies.min(), learned)
    return _prepared[name]


def half_of(sentences: Array) -> int:
    """How many of the sentences units are ranked on."""
    return len(sentences) // 2


def entropy(words: Array) -> float:
    """Of the words by their frequency, in nats: the loss of who knows nothing else. Padding does not count."""
    _, counts = np.unique(np.asarray(words)[np.asarray(words) >= 0], return_counts=True)
    shares = counts / counts.sum()
    return float(-np.sum(shares * np.log(shares)))


@eqx.filter_jit(**LIGHT)
def _train(key, sources, targets, counts, sizes, rate):
    """Each model on sentences of its own, as the authors have."""
    (num_sources, num_targets), (kind, models, units, steps, batch) = counts, sizes
    part = len(sources) // models
    dealt = [x[: part * models].reshape(models, part, -1) for x in (sources, targets)]

    def one(key, sources, targets):
        first, then = jax.random.split(key)
        model = make_translator(first, kind, num_sources, num_targets, units, sources.shape[1])
        return train_translator(then, model, sources, targets, steps, batch, rate)

    return jax.vmap(one)(jax.random.split(key, models), *dealt)


@eqx.filter_jit(**LIGHT)
def _looked_at(models, sources, targets):
    states = eqx.filter_vmap(lambda model: jax.vmap(model.encoder)(sources))(models)
    half = half_of(targets)
    early, late = targets[:half], targets[half:]

    def ranks(place, decoder):
        moments = _moments(jnp.roll(states[:, :half], -place, axis=0), (early >= 0).ravel())
        worth = i.output_norm(decoder.first).scores
        spread = i.standard_deviation(moments, 0).scores
        return moments.means[0], {
            "max-corr": i.max_corr(moments, 0).scores,
            "min-corr": i.min_corr(moments, 0).scores,
            "linear-regression": i.linear_regression(moments, 0).scores,
            "standard-deviation": spread,
            "output-norm": worth,
            "product": spread * worth,
        }

    means, scores = eqx.filter_vmap(ranks)(jnp.arange(len(states)), models.decoder)

    def alone(decoder, states, mean):
        # The effects that rank are those of the first half, the effects that are to be foretold those of the second.
        first, loss = _loss(decoder, states[:half], early), _loss(decoder, states[half:], late)
        ways = (first, mean), (loss, mean), (loss, jnp.zeros_like(mean))
        ranking, *effects = [i.ablation_effects(one, len(mean), values=value).effects for one, value in ways]
        right = (jnp.argmax(decoder(states[half:]), axis=-1) == late) & (late >= 0)
        return ranking, jnp.stack(effects), loss(i.Identity()), jnp.sum(right) / jnp.sum(late >= 0)

    ranking, effects, losses, accuracies = eqx.filter_vmap(alone, out_axes=(0, 1, 0, 0))(models.decoder, states, means)
    return states, means, scores | {"ablation": ranking}, effects, losses, accuracies


def _moments(states: Array, shown: Array) -> i.Moments:
    """Of ``[models, sentences, length, units]``, padding left out."""
    tokens = states.reshape(len(states), -1, states.shape[-1])
    stats = i.RunningMoments((states.shape[-1],) * len(states))
    return stats.finish(stats.update(stats.init(), list(tokens), shown)[0])


def _loss(decoder, states, targets):
    """The mean loss a word, as a function of what is done to the states before the decoder."""
    return lambda intervention: nats(decoder(intervention(states)), targets)


def scores_of(key: Array, ranking: str, found: Prepared) -> Array:
    """The scores of an arm, ``[orders, models, units]``; several orders where they are random."""
    if ranking != "random":
        return found.scores[ranking][None]
    shape = RANDOM_ORDERS, len(found.states), found.states.shape[-1]
    return jax.random.uniform(jax.random.fold_in(key, ORDER_KEY), shape)


def erased(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """The loss with the top and with the bottom of a ranking erased, and how well the ranking tells single effects."""
    found, half = prepared(key, problem, scale), half_of(problem.test_targets)
    early, fractions = problem.test_targets[:half], jnp.asarray(scale.fractions)
    judged = found.means, problem.test_targets[half:]
    scores = None
    if arm.ranking == "svcca":
        seen = found.states[:, :half], (early >= 0).ravel()
        top, bottom = _erase_directions(found.models.decoder, *seen, found.states[:, half:], *judged, fractions)
    else:
        scores = scores_of(key, arm.ranking, found)
        states = found.states[:, half:]
        curves = [_erase_units(found.models.decoder, states, *judged, order, fractions) for order in scores]
        top, bottom = (jnp.mean(jnp.stack(parts), axis=0) for parts in zip(*curves, strict=True))
    # [models, zero or mean, fractions]; the paper compares at a tenth of 500 units, we at the fraction declared.
    at = scale.fractions.index(scale.judged)
    metrics = {
        "gap": (top - bottom)[:, 0, at].mean(),
        "gap_mean": (top - bottom)[:, 1, at].mean(),
        "top_loss": top[:, 0, at].mean(),
        "bottom_loss": bottom[:, 0, at].mean(),
        "top": top[:, 0].mean(0),
        "bottom": bottom[:, 0].mean(0),
        "top_mean": top[:, 1].mean(0),
        "fraction": fractions,
        "accuracy": found.accuracy,
        "learned": found.learned,
    }
    if scores is not None:  # directions have no score a unit
        agreement = [
            np.mean([i.rank_agreement(mine, one) for order in scores for mine, one in zip(order, effects, strict=True)])
            for effects in np.asarray(found.effects)
        ]
        metrics |= {"causal": agreement[0], "causal_zero": agreement[1]}
    return {name: jnp.asarray(value) for name, value in metrics.items()}


@eqx.filter_jit(**LIGHT)
def _erase_units(decoders, states, means, targets, scores, fractions):
    def one(decoder, states, mean, scores):
        loss, order = _loss(decoder, states, targets), i.ranked(scores).order
        curve = lambda end, value: i.erase_curve(loss, order, fractions, from_=end, values=value).values  # noqa: E731
        values = jnp.zeros_like(mean), mean
        return [jnp.stack([curve(end, value) for value in values]) for end in ("top", "bottom")]

    return eqx.filter_vmap(one)(decoders, states, means, scores)


@eqx.filter_jit(**LIGHT)
def _erase_directions(decoders, seen, shown, states, means, targets, fractions):
    """The same for the directions that a model shares with the next one; as many directions as units before.

    seen, shown: the states that directions are found in, and which of their tokens count. states: those changed.
    """
    units = states.shape[-1]

    def one(place, decoder, mine, mean):
        moments = _moments(jnp.roll(seen, -place, axis=0)[:2], shown)
        found, loss = i.svcca(moments, 0, 1), _loss(decoder, mine, targets)
        rank = jnp.arange(units)

        def at(fraction):
            count = jnp.round(fraction * units)
            keeps = rank >= count, rank < found.num_kept - count
            projections = [i.keep_directions(found.directions, keep) for keep in keeps]
            return [jnp.stack([loss(i.Project(p, c)) for c in (jnp.zeros_like(mean), mean)]) for p in projections]

        return [losses.T for losses in jax.lax.map(at, fractions)]

    return eqx.filter_vmap(one)(jnp.arange(len(states)), decoders, states, means)


def how_many(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """Kendall's τ between a model's rankings by two disjoint sets of others, with more and more models in each."""
    found = prepared(key, problem, scale)
    shown = (problem.test_targets >= 0).ravel()
    pairs = np.asarray(_by_halves(found.states, shown, arm.ranking, scale.counts))
    taus = [[i.rank_agreement(pair[0], pair[1], "kendall") for pair in of_count] for of_count in pairs]
    return {
        "tau": jnp.asarray(np.mean(taus, axis=1)),
        "log2_models": jnp.log2(jnp.asarray(scale.counts, float)),
        "tau_most": jnp.asarray(np.mean(taus[-1])),
        "accuracy": found.accuracy,
        "learned": found.learned,
    }


@eqx.filter_jit(**LIGHT)
def _by_halves(states, shown, ranking, counts):
    """Scores ``[counts, models, halves, units]``."""
    rank = {"max-corr": i.max_corr, "min-corr": i.min_corr, "linear-regression": i.linear_regression}[ranking]
    half = (len(states) - 1) // 2

    def one(place):
        moments = _moments(jnp.roll(states, -place, axis=0), shown)
        sets = [[(0, *range(first, first + count)) for first in (1, 1 + half)] for count in counts]
        return jnp.stack([jnp.stack([rank(moments.subset(s), 0).scores for s in pair]) for pair in sets])

    return jax.vmap(one, out_axes=1)(jnp.arange(len(states)))


def interpreted(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """Where in a ranking the unit stands that tells brackets, what its top units say, and the best unit for tense."""
    found = prepared(key, problem, scale, arm.task)
    labels = problem.test_inside, problem.test_tense, problem.test_kind, problem.test_sources
    orders = scores_of(key, arm.ranking, found)
    said = [_say(found.states, scores, labels, problem.num_sources, scale.first) for scores in orders]
    place, bracket, position, token, tense = (jnp.stack(values) for values in zip(*said, strict=True))
    return {
        "bracket_percentile": place.mean(),
        "bracket_variance": bracket.mean(),
        "position_variance": position.mean(),
        "token_variance": token.mean(),
        "tense_f1": tense.mean(),
        "accuracy": found.accuracy,
        "learned": found.learned,
    }


@eqx.filter_jit(**LIGHT)
def _say(states, scores, labels, num_words, first):
    inside, tense, kind, sources = (label.ravel() for label in labels)
    (_, sentences, length, units), shown = states.shape, sources >= 0
    places = jnp.tile(jnp.arange(length), sentences)
    early = jnp.repeat(jnp.arange(sentences) < sentences // 2, length)
    is_verb = kind == KINDS.index("verb")

    def one(states, scores):
        tokens, order = states.reshape(-1, units), i.ranked(scores).order
        told = lambda label, values: i.explained_variance(tokens, label, values, shown)  # noqa: E731
        by_bracket = told(inside, 2)
        best = jnp.argmax(by_bracket)
        place = jnp.argmax(order == best) / (units - 1)
        position, token = told(places, length)[order[:first]], told(sources, num_words)[order[:first]]
        # The best unit is chosen on the sentences the Gaussians were fitted to, and judged on the others, by the mean
        # of both tenses' F1: who always says one of them has 1/3, and not 2/3.
        probe = i.fit_probe(tokens, tense, 2, is_verb & early)
        chosen, judged = (i.score_probe(probe, tokens, tense, is_verb & half).f1.mean(0) for half in (early, ~early))
        return place, by_bracket[best], position.mean(), token.mean(), judged[jnp.argmax(chosen)]

    return jax.vmap(one)(states, scores)


def controlled(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """How often words take the other form when units are set to where that form has them.

    Units are chosen and their values measured on the first half of the test sentences, words are changed in the second.
    ``success``: of the changed words, those said in the form wanted; ``exact``: those that are the right word in it.
    ``best``: ``exact`` at the strength that gives most of them in the first half, ``chosen`` that strength.
    """
    found = prepared(key, problem, scale)
    metrics = {"accuracy": found.accuracy, "learned": found.learned}
    for number, name in enumerate(("tense", "number", "gender")):
        form, other = jnp.asarray(problem.form[name]), jnp.asarray(problem.other_form[name])
        words = form, other, problem.test_targets
        if arm.how == "direction":
            units = None
        else:
            worth = _accuracies(found.states, form, problem.test_targets)
            if arm.how == "random":
                worth = jax.random.uniform(jax.random.fold_in(key, UNIT_KEY + number), worth.shape)
            units = top_units(np.asarray(worth), arm.count)
        strengths = jnp.asarray(scale.strengths)
        (_, tried), (success, exact) = _control(found.models.decoder, found.states, units, words, strengths)
        at = scale.strengths.index(scale.strength)
        metrics |= {f"success_{name}": success[at], f"exact_{name}": exact[at]}
        if name == "tense":
            best = jnp.argmax(tried)
            metrics |= {"success": success, "exact": exact, "strength": strengths}
            metrics |= {"best": exact[best], "chosen": strengths[best]}
    return metrics


def top_units(worth: np.ndarray, count: int) -> Array:
    """True for the best units of every model, ``[models, units]``; −1: all of them."""
    order = np.argsort(-worth, axis=1, kind="stable")
    rank = np.argsort(order, axis=1)
    return jnp.asarray(rank < (worth.shape[1] if count < 0 else count))


def _forms(form, targets):
    """The form of every target word, −1 where it has none, and whether its sentence is of the first half."""
    early = jnp.arange(len(targets))[:, None] < len(targets) // 2
    return jnp.where(targets >= 0, form[targets], -1), early


@eqx.filter_jit(**LIGHT)
def _accuracies(states, form, targets):
    """How well each unit alone tells the form, ``[models, units]``, in the first half of the sentences."""
    has, early = _forms(form, targets)
    fitted = (early & (has >= 0)).ravel()

    def one(states):
        tokens = states.reshape(-1, states.shape[-1])
        probe = i.fit_probe(tokens, has.ravel(), 2, fitted)
        return i.score_probe(probe, tokens, has.ravel(), fitted).accuracy

    return jax.vmap(one)(states)


@eqx.filter_jit(**LIGHT)
def _control(decoders, states, units, words, strengths):
    """Shares of success and of exactly the right word in the first half of the sentences, and in the second.

    Each ``[strengths]``, the mean over models; without units along the direction.
    """
    form, other, targets = words
    has, early = _forms(form, targets)

    def one(decoder, states, units):
        tokens = states.reshape(-1, states.shape[-1])
        probe = i.fit_probe(tokens, has.ravel(), 2, (early & (has >= 0)).ravel())
        direction = probe.means[1] - probe.means[0]

        def changed(start, strength):
            end, chosen = 1 - start, has == start
            if units is None:
                along = [probe.means[value] @ direction / (direction @ direction) for value in (start, end)]
                intervention = i.SetDirection(direction, i.steer(along[0], along[1], strength), chosen)
            else:
                intervention = i.SetUnits(units, i.steer(probe.means[start], probe.means[end], strength), chosen)
            said = jnp.argmax(decoder(intervention(states)), axis=-1)
            wanted = jnp.stack([form[said] == end, said == other[targets]])
            halves = [chosen & early, chosen & ~early]
            return jnp.stack([jnp.sum(wanted & mine, axis=(1, 2)) / jnp.maximum(mine.sum(), 1) for mine in halves])

        return jax.lax.map(lambda strength: (changed(0, strength) + changed(1, strength)) / 2, strengths)

    shares = eqx.filter_vmap(one, in_axes=eqx.if_array(0))(decoders, states, units)  # [models, strengths, halves, 2]
    return shares.mean(0).transpose(1, 2, 0)
