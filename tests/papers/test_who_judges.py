"""What is judged was not learned from, what chooses does not judge, and all arms are judged alike.

The pieces of a trial that compute for long are planted, and say what they were given: no training, no program.
"""

import inspect
from types import SimpleNamespace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from in_numpy import computed

from laureate.lab.claim import Settings
from laureate.papers.detag import trials as detag
from laureate.papers.directpred import trials as directpred
from laureate.papers.dreamer_v2 import trials_alone as dreamer
from laureate.papers.dynamics_cycle import trials as cycle
from laureate.papers.gibbs_with_gradients import trials_learning as gibbs
from laureate.papers.gibbs_with_gradients import trials_samplers as samplers
from laureate.papers.gradvac import trials as gradvac
from laureate.papers.gumbel_rao import trials as gumbel
from laureate.papers.hopfield_rbm import trials as hopfield
from laureate.papers.important_neurons import trials as neurons
from laureate.papers.imtl import trials as imtl
from laureate.papers.interaction_attack import trials as attack
from laureate.papers.knockoff_gan import trials as knockoffs
from laureate.papers.knockoff_gan import trials_training as networks
from laureate.papers.logit_adjustment import trials_digits as digits
from laureate.papers.referring_segmentation import trials as segmentation
from laureate.papers.sksd import trials as stein
from laureate.papers.sksd import trials_particles as particles
from laureate.papers.tensor_train_pde import trials as tensors

KEY = jax.random.key(0)


@pytest.fixture
def sampler(monkeypatch):
    """A sampler that tells the rows it was fitted to and makes rows of their negatives; a test that tells its rows."""
    seen = {}

    def fit(key, rows):
        seen["fitted"] = rows[:, 0]
        return SimpleNamespace(sample=lambda key, rows: -rows)

    def report(rows, made, key):
        seen["tested"], seen["made"] = rows[:, 0], made[:, 0]
        return Settings(
            accuracy=jnp.asarray(0.5), p_value=jnp.asarray(0.001), covariance_gap=0.1, correlation=jnp.ones(2)
        )

    for module in (knockoffs, networks):
        monkeypatch.setattr(module, "validity_report", report)
        monkeypatch.setattr(module, "selections", lambda key, x, made, scale: seen.update(table=x[:, 0]) or {})
    monkeypatch.setattr(knockoffs, "LassoDifference", lambda: lambda key, x, made, y: y[:2])
    monkeypatch.setattr(knockoffs, "knockoff_filter", lambda w, q: Settings(selected=w > q))
    return SimpleNamespace(fit=fit, seen=seen)


def test_knockoffs_of_real_rows_are_tested_on_those_that_were_not_fitted(sampler):
    rows = np.arange(20.0)
    problem = Settings(inputs=jnp.asarray(rows[:, None] * np.ones(3)), response=jnp.asarray(rows % 2))
    scale = Settings(num_true=2, q=0.1, responses=5)
    trial = lambda key: (knockoffs.judged_on_real(key, sampler, problem, scale), sampler.seen)  # noqa: E731
    told, seen = computed(trial, KEY)
    assert (len(seen["fitted"]), len(seen["tested"])) == (14, 6)
    assert sorted([*seen["fitted"], *seen["tested"]]) == list(rows)
    np.testing.assert_array_equal(seen["made"], -seen["tested"])
    np.testing.assert_array_equal(seen["table"], rows)
    assert float(told["selected"]) == 1  # of the first two responses, 0 and 1


def test_knockoffs_of_drawn_rows_are_tested_on_fresh_ones_and_select_on_the_table(sampler):
    problem = SimpleNamespace(sample=lambda key, number: jax.random.normal(key, (number, 2)))
    trial = lambda key: (networks.judged(key, sampler, problem, Settings(rows=8)), sampler.seen)  # noqa: E731
    _, seen = computed(trial, KEY)
    np.testing.assert_array_equal(seen["table"], seen["fitted"])
    assert not set(seen["tested"]) & set(seen["fitted"])
    np.testing.assert_array_equal(seen["made"], -seen["tested"])


def test_the_worst_rate_of_false_discoveries_is_the_largest_of_three(monkeypatch):
    """As many are false as the correlation of the table's first two columns has tenths."""
    monkeypatch.setattr(knockoffs, "LassoDifference", lambda: lambda key, x, made, y: jnp.corrcoef(x[:, :2].T)[0, 1])
    monkeypatch.setattr(knockoffs, "knockoff_filter", lambda w, *_: Settings(selected=jnp.broadcast_to(w, (4,))))
    monkeypatch.setattr(knockoffs, "score", lambda selected, truth: (selected[0], 1 - selected[0]))
    scale = Settings(rows=400, variables=4, num_true=2, amplitude=1.0, q=0.35, replications=3)
    arm = Settings(permuted=0.0, offset=1, marginal=0.0, random=0.0)
    told = computed(lambda key: knockoffs.filters(key, arm, None, scale), KEY)
    rates = [float(told[f"fdp_{tenths}"]) for tenths in (0, 3, 6)]
    np.testing.assert_allclose(rates, [0, 0.3, 0.6], atol=0.1)
    assert float(told["fdp_worst"]) == pytest.approx(rates[2])
    np.testing.assert_allclose([told[f"tpr_{tenths}"] for tenths in (0, 3, 6)], 1 - np.array(rates), rtol=1e-6)
    assert float(told["exceeds"]) == pytest.approx(1 / 3, abs=0.12)


def test_the_tuned_kernel_is_tested_on_draws_that_did_not_choose_it(monkeypatch):
    seen = []

    def test(key, x, s, *, slices, bandwidth, num_bootstrap):
        seen.append((x[:, 0], num_bootstrap))
        return Settings(value=bandwidth, null=jnp.asarray([0.0, 1.0]), p_value=bandwidth)

    monkeypatch.setattr(stein, "stein_test", test)
    monkeypatch.setattr(stein, "median_distance", lambda x: jnp.max(x))
    x = jnp.arange(20.0)[:, None]

    def trial(key):
        seen.clear()
        return stein.tuned_kernel(key, x, -x, {"num_bootstrap": 7}).value, seen[-1][0]

    width, tested = computed(trial, KEY)
    assert float(width) == 2.0 * 3.0  # the widest, of the median of the first four
    np.testing.assert_array_equal(tested, np.arange(4.0, 20.0))
    assert [number for _, number in seen] == [19, 7]


def test_particles_choose_their_rate_by_another_start_and_are_judged_once(monkeypatch):
    """Where they are at the end is the key they started from, and the force is least at 0.2 for the tuning key."""
    tuning, scoring = (np.asarray(jax.random.key_data(key)) for key in jax.random.split(KEY))

    def moved(key, arm, problem, scale, rate):
        data = jax.random.key_data(key)
        return data, jnp.abs(rate - jnp.where(jnp.all(data == tuning), 0.2, 0.3))

    monkeypatch.setattr(particles, "moved", moved)
    monkeypatch.setattr(particles, "errors", lambda x, problem: {"start": x})
    trial = lambda key: particles.particles(key, Settings(sampler="svgd"), None, Settings(rates=(0.1, 0.2, 0.3)))  # noqa: E731
    told = computed(trial, KEY)
    assert float(told["rate"]) == pytest.approx(0.2)
    np.testing.assert_array_equal(told["start"], scoring)


def test_paths_that_errors_are_measured_along_are_not_those_learned_from(monkeypatch):
    solution = SimpleNamespace(num_steps=2, times=jnp.arange(3.0), v0=1.0, value=lambda t, x, interpolate: x[0])
    keys = []
    learn = lambda key, problem: keys.append(jax.random.key_data(key)) or solution  # noqa: E731
    monkeypatch.setattr(tensors, "solver_of", lambda *_: SimpleNamespace(run=learn))

    def simulate(key, problem, number, steps):
        keys.append(jax.random.key_data(key))
        return 2.0 + jnp.zeros((steps + 1, number, 1))

    monkeypatch.setattr(tensors, "simulate", simulate)
    problem = SimpleNamespace(x0=jnp.zeros(1), exact=lambda t, x: 4.0)

    def trial(key):
        keys.clear()
        return tensors.trajectories(key, Settings(), problem, Settings()), list(keys)

    told, (learned, asked) = computed(trial, KEY)
    assert tuple(learned) != tuple(asked)
    assert (float(told["error"]), float(told["start_error"])) == pytest.approx((0.5, 0.75))
    np.testing.assert_allclose(told["curve"], [0.5, 0.5])


@pytest.mark.parametrize("choose", ["mean", "worst"])
def test_the_rate_for_several_tasks_is_chosen_as_the_scale_says(choose, monkeypatch):
    asked = []

    def tune(key, tasks, optimiser, start, rates, steps, *, choose, failed, gram, watch):
        asked.append(choose)
        assert failed == -1.0
        return Settings(
            scores=jnp.array([0.5, 0.25]), rate=0.1, watched=(jnp.array([True, False]), jnp.array([2.0, 3.0]))
        )

    monkeypatch.setattr(imtl, "tune", tune)
    tasks = SimpleNamespace(params0=lambda key: 0.0, batch=lambda key: 0.0, losses=lambda params, batch: jnp.ones(2))
    scale = Settings(rates=(0.1,), steps=1, choose=choose)
    trial = lambda key: imtl._tuned(key, Settings(among="uniform"), tasks, scale, jnp.asarray(2.0))  # noqa: E731
    told = {name: float(value) for name, value in computed(trial, KEY).items()}
    assert asked == [choose]
    assert told == pytest.approx({"worst": 0.25, "mean": 0.375, "rate": 0.1, "negative": 0.5, "smallest": 2.0})


def test_drops_are_from_the_usual_unit(monkeypatch):
    worst = {0.1: 0.4, 1.0: 0.9, 10.0: 0.2}
    at = lambda unit: sum(jnp.where(unit == u, w, 0.0) for u, w in worst.items())  # noqa: E731
    monkeypatch.setattr(imtl, "_tuned", lambda key, arm, problem, scale, unit: {"worst": at(unit)})
    told = computed(lambda key: imtl.units(key, Settings(), None, Settings(units=tuple(worst))), KEY)
    wanted = {"worst_small": 0.4, "worst_same": 0.9, "worst_large": 0.2, "drop_large": 0.7, "drop_small": 0.5}
    assert {name: float(value) for name, value in told.items()} == pytest.approx(wanted)


@pytest.mark.parametrize("sampler", ["gibbs", "gwg"])
def test_models_of_all_samplers_are_judged_by_the_same_annealing(sampler, monkeypatch):
    made = []
    found = Settings(log_ratio=jnp.asarray(2.0), standard_error=jnp.asarray(0.1), effective=jnp.asarray(3.0))
    energy = lambda x: 10.0 + jnp.sum(x)  # noqa: E731
    monkeypatch.setattr(gibbs, "make_kernel", lambda arm, energy, *_: made.append(arm.sampler) or "judge")
    monkeypatch.setattr(gibbs, "_train", lambda *_: (energy, None))
    monkeypatch.setattr(gibbs, "ConvolutionalEnergy", lambda *_: None)
    monkeypatch.setattr(gibbs, "annealed_importance_sampling", lambda key, judge, *_, num_chains: found)
    problem = Settings(train=jnp.ones((4, 2, 2), bool), test=jnp.ones((3, 2, 2), bool))
    scale = Settings(channels=1, temperatures=3, annealed=5)
    told = computed(lambda key: gibbs.deep(key, Settings(sampler=sampler), problem, scale), KEY)
    assert made == ["gwg"]
    wanted = {"log_likelihood": 12.0, "annealing_error": 0.1, "annealing_effective": 3.0}
    assert {name: float(value) for name, value in told.items()} == pytest.approx(wanted)


def test_rows_to_learn_a_graph_from_have_the_law_of_its_couplings():
    """Three spins with p(s) ∝ exp(sᵀJs): the mean products of pairs by enumeration."""
    couplings = np.array([[0, 0.3, -0.2], [0.3, 0, 0.1], [-0.2, 0.1, 0]])
    rows = 2.0 * computed(lambda key: samplers._samples(key, jnp.asarray(couplings), 4000, 8), KEY) - 1
    spins = np.array(np.meshgrid(*[[-1, 1]] * 3)).reshape(3, -1).T
    law = np.exp(np.einsum("ni,ij,nj->n", spins, couplings, spins))
    wanted = np.einsum("n,ni,nj->ij", law / law.sum(), spins, spins)
    np.testing.assert_allclose(rows.T @ rows / 4000, wanted, atol=4 / np.sqrt(4000))


def test_what_is_not_a_number_has_not_reached_the_bound(monkeypatch):
    """Of four rates one leaves the bound again, one breaks down, two stay inside from the third and fourth round on."""
    curves = [[1, 1e-9, 1, 1e-9, 1e-9, 1e-9], [1e-9, 1e-9, np.nan, np.nan, np.nan, np.nan]]
    curves += [[1, 1, 1e-9, 1e-9, 1e-9, 1e-9], [1, 1, 1, 1e-9, 1e-9, 1e-9]]

    def planted(key, arm, problem, kappa, noise, rate, *_):
        return jnp.asarray(curves)[rate.astype(int)], jnp.asarray(1.0)

    monkeypatch.setattr(detag, "_quadratic_errors", planted)
    monkeypatch.setattr(detag, "phase_rounds", lambda *_: np.ones(2, int))
    scale = Settings(kappas=(0.5, 0.1), rates=(0.0, 1.0, 2.0, 3.0), rounds=6)
    told = computed(lambda key: detag.lower_bound(key, Settings(), Settings(nodes=4), scale), KEY)
    np.testing.assert_allclose(told["log_rounds"], np.log10([3, 3]), rtol=1e-6)
    np.testing.assert_array_equal(told["rate"], [2, 2])
    np.testing.assert_array_equal(told["cut_short"], [0, 0])
    only = computed(
        lambda key: detag.lower_bound(key, Settings(), Settings(nodes=4), Settings(scale, rates=(1.0,))), KEY
    )
    np.testing.assert_array_equal(only["cut_short"], [1, 1])


def test_a_network_has_collapsed_relative_to_its_own_start(monkeypatch):
    class Problem:
        floor, dim = 0.5, 2

        def model0(self, key):
            return jax.random.normal(key, ())

        def outputs(self, model, key, number):
            return model * jnp.ones((number, 2))

    monkeypatch.setattr(directpred, "_train", lambda key, arm, problem, scale: (0.1 * start(key), None, None))
    start = lambda key: Problem().model0(jax.random.fold_in(key, 0))  # noqa: E731
    arm, scale = Settings(learning_rate=0.1), Settings(steps=10)
    told = computed(lambda key: directpred.collapse(key, arm, Problem(), scale), KEY)
    predicted = -4 * 0.25 * 0.1 * 10 / np.log(10)
    assert float(told["log_size"]) == pytest.approx(-2, rel=1e-5)
    assert float(told["rate_ratio"]) == pytest.approx(-2 / predicted, rel=1e-5)


def test_a_point_of_the_spreads_curve_is_the_mean_of_its_own_steps(monkeypatch):
    z = np.random.default_rng(0).normal(size=(6, 2))
    monkeypatch.setattr(directpred, "_train", lambda *_: (None, None, jnp.arange(12.0)))
    problem = SimpleNamespace(outputs=lambda *_: jnp.asarray(z), dim=2)
    scale = Settings(judged=6, points=3, steps=12)
    told = computed(lambda key: directpred.pairs(key, Settings(predictor="none"), problem, scale), KEY)
    np.testing.assert_allclose(told["spread_curve"], [1.5, 5.5, 9.5])
    np.testing.assert_array_equal(told["steps"], [4, 8, 12])
    assert eqx.is_array_like(told["rank"])


def test_two_bodies_start_elsewhere_and_do_other_things():
    """Bodies that stay where they begin: of no step of one domain is there the same in the other."""
    stay = lambda y, u: y  # noqa: E731
    one = SimpleNamespace(
        num_actions=2, reset=lambda key: jax.random.normal(key, (3,)), step=stay, step_x=stay, see=stay
    )
    one.see = lambda y: y
    scale = Settings(episodes=3, length=2, held=4)
    data = computed(lambda key: cycle.data_of(key, one, scale), KEY)
    assert [len(part.action) for part in data[:6]] == [6, 6, 4, 4, 4, 4]
    of = lambda parts, name: {tuple(row) for part in parts for row in getattr(part, name)}  # noqa: E731
    (xs, ys), episodes = ((data.x, data.choose_x, data.held_x), (data.y, data.choose_y, data.held_y)), 7
    for parts in (xs, ys):
        assert len(of(parts, "observation")) == episodes
        assert len(of(parts, "action")) == 2 * episodes
    assert not of(xs, "observation") & of(ys, "observation")
    assert not of(xs, "action") & of(ys, "action")
    np.testing.assert_array_equal(data.truth, data.held_x.observation)


def test_the_small_tasks_are_the_last_two_and_orders_are_compared(monkeypatch):
    cosines = np.array([[1, 0.9, 0.5, 0.1], [0.9, 1, 0.6, 0.4], [0.5, 0.6, 1, 0.7], [0.1, 0.4, 0.7, 1]])
    watched = jnp.stack([jnp.asarray(cosines - 0.2), jnp.asarray(cosines + 0.2)]), jnp.array([0.0, 0.5])
    found = Settings(scores=jnp.array([0.9, 0.3, 0.6, 0.4]), rate=0.1, watched=watched)
    asked = []
    monkeypatch.setattr(gradvac, "tune", lambda *_, choose, failed, watch: asked.append((choose, failed)) or found)
    tasks = SimpleNamespace(params0=lambda key: 0.0, batch=lambda key: 0.0, losses=lambda params, batch: jnp.ones(4))
    arm = Settings(method=0.0, among="uniform", optimiser="sgd")
    trial = lambda key: gradvac.dialects(key, arm, tasks, Settings(rates=(0.1,), steps=1))  # noqa: E731
    told = {name: float(value) for name, value in computed(trial, KEY).items()}
    assert asked == [("mean", -1.0)]
    pairs = np.triu_indices(4, 1)
    ranks, apart = cosines[pairs].argsort().argsort(), np.array([2, 4.5, 6, 2, 4.5, 2])
    wanted = {"mean": 0.55, "small": 0.5, "worst": 0.3, "rate": 0.1, "conflicts": 0.25}
    wanted |= {"cosine": cosines[pairs].mean(), "correlation": np.corrcoef(ranks, apart)[0, 1]}
    assert told == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize("inside", [0.0, 1.0])
def test_targets_move_everywhere_or_only_where_a_pair_is_corrected(inside, monkeypatch):
    """Every step moves all targets by one and corrects one pair of three tasks; late numbers are of the second half."""
    corrected = jnp.eye(3).at[0, 2].set(0.5)
    monkeypatch.setattr(gradvac, "vaccine", lambda gram, target, order, beta, track: (corrected, target + 1))
    told_by = lambda rows, step: Settings(amplification=2.0, cosines=jnp.full((3, 3), 0.25))  # noqa: E731
    monkeypatch.setattr(gradvac, "task_geometry", told_by)
    arm = Settings(tasks=3, cosine=0.5, beta=0.1, track="all", inside=inside)
    trial = lambda key: gradvac.steady(key, arm, None, Settings(dim=4, steps=6))  # noqa: E731
    told = {name: float(value) for name, value in computed(trial, KEY).items()}
    target = 5.0 if inside == 0 else 5.0 / 6  # after four, five and six steps, in all or in one of six places
    wanted = {"amplification": 2.0, "corrected": 1 / 6, "target": target, "cosine": 0.25, "excess": target - 0.25}
    assert told == pytest.approx(wanted, rel=1e-5)


def test_rows_that_choose_a_rate_are_not_trained_on(monkeypatch):
    """A row is its place, and a parameter for each place grows where the row is trained on: those held out tell no rate
    from another, and of equals the first is taken."""
    monkeypatch.setattr(gumbel, "initial", lambda *given: jnp.zeros(21))
    monkeypatch.setattr(gumbel, "surrogate", lambda key, arm, tau, params, x, choices: -jnp.mean(x @ params))
    monkeypatch.setattr(gumbel, "enumerated_bound", lambda params, x, choices: x @ params)
    rows = SimpleNamespace(spins=2 * jnp.eye(21) - 1, test_spins=jnp.ones((1, 21)))
    learning = {"variables": 1, "options": 2, "batch": 60, "steps": 3, "worst": 100.0}
    scale = Settings(learning, rates=(0.01, 0.1), temperatures=(0.03, 0.1, 0.5, 1.0))
    told = computed(lambda key: gumbel.vae(key, Settings(estimator="zgr", samples=1), rows, scale), KEY)
    assert float(told["rate"]) == pytest.approx(0.01)
    assert float(told["bound"]) == pytest.approx(18 * 3 * 0.01, rel=0.1)  # all but three rows, three steps of the rate


def test_units_are_ranked_on_some_sentences_and_their_effects_are_of_the_others(monkeypatch):
    """Effects that are the mean state a loss is of: of the first half of the sentences 1, of the second 3."""

    class Part(eqx.Module):
        first: jax.Array

        def __call__(self, states):
            return states * self.first[0, 0]

    monkeypatch.setattr(neurons, "nats", lambda said, targets: jnp.mean(said))
    effects = lambda loss, units, values: Settings(effects=jnp.full(units, loss(lambda states: states)))  # noqa: E731
    monkeypatch.setattr(neurons.i, "ablation_effects", effects)
    rng = np.random.default_rng(0)
    states = rng.normal(size=(2, 4, 3, 2)) * 0.01 + np.where(np.arange(4) < 2, 1.0, 3.0)[:, None, None]
    targets = np.zeros((4, 3), int)

    def looked(states):
        class Encoder(eqx.Module):
            states: jax.Array

            def __call__(self, words):
                return self.states[words[0]]

        class Model(eqx.Module):
            encoder: Encoder
            decoder: Part

        sources = jnp.arange(4)[:, None] * jnp.ones(3, int)
        models = Model(Encoder(states), Part(jnp.ones((2, 1, 1))))
        return inspect.unwrap(neurons._looked_at)(models, sources, jnp.asarray(targets))

    _, _, scores, effects, losses, _ = computed(looked, jnp.asarray(states))
    np.testing.assert_allclose(scores["ablation"], 1, atol=0.05)
    np.testing.assert_allclose(effects, 3, atol=0.05)
    np.testing.assert_allclose(losses, 3, atol=0.05)


def test_images_that_any_network_gets_wrong_without_an_attack_do_not_count(monkeypatch):
    """Margins of the attacked network and two targets for five images, clean and moved: above 0 is wrong."""
    clean = np.array([[-1, 1, -1, -1, -1], [-1, -1, 1, -1, -1], [-1, -1, -1, -1, -2]])
    moved = np.array([[1, 1, 1, 1, -1], [1, 1, 1, -1, 1], [1, 1, 1, 1, -1]])
    names = {"residual": 0, "wide": 1, "narrow": 2}
    monkeypatch.setattr(attack, "trained", lambda *_: names)
    monkeypatch.setattr(attack, "make_attack", lambda *_: None)
    monkeypatch.setattr(attack, "_margins", lambda which, images, labels: (moved if np.any(images) else clean)[which])
    monkeypatch.setattr(attack, "_last", lambda attack, key, images, labels: np.ones_like(images))
    problem = SimpleNamespace(test_images=np.zeros((5, 4, 4, 1)), test_labels=np.zeros(5, int))
    monkeypatch.setattr(attack, "_interaction", lambda source, images, delta, labels, players: np.arange(5.0))
    found = attack.attacked(KEY, Settings(gradient="plain", long=False), problem, Settings(grid=2), every=False)
    np.testing.assert_array_equal(found.counted, [True, False, False, True, True])
    np.testing.assert_array_equal(found.success, [[True, False, True], [True, True, False]])
    np.testing.assert_array_equal(found.utility, [[2, 0, 2], [2, 2, 1]])
    np.testing.assert_array_equal(found.margin, [1, 1, -1])
    np.testing.assert_array_equal(found.interaction, [0, 3, 4])


@pytest.mark.parametrize("resampled", [0.0, 1.0])
def test_balanced_rows_are_drawn_anew_in_every_step(resampled, monkeypatch):
    """A row is its place, and a parameter for each place grows where it was trained on; errors are how many did."""

    class Places(eqx.Module):
        seen: jax.Array

        def __call__(self, rows):
            return rows * self.seen

    def visited(model, split, arm):
        return jax.nn.one_hot(jnp.sum(model.seen > 0) - 1, 8)[None]

    one = lambda key, labels, classes, number: jnp.full(number, jax.random.randint(key, (), 0, 8))  # noqa: E731
    told = lambda predicted, labels, classes: jnp.full(8, 1.0 + predicted[0])  # noqa: E731
    planted = {"balanced_indices": one, "_logits": visited, "class_errors": told}
    planted |= {"Perceptron": lambda *_: Places(jnp.zeros(8)), "LOSSES": {"plain": lambda f, y, prior: -jnp.sum(f, 1)}}
    for name, value in planted.items():
        monkeypatch.setattr(digits, name, value)
    fields = {"inputs": jnp.eye(8), "labels": jnp.arange(8), "test_inputs": jnp.eye(8), "test_labels": jnp.arange(8)}
    problem = SimpleNamespace(num_classes=8, draw=lambda key: SimpleNamespace(**fields))
    arm = Settings(loss=0, resampled=resampled, after=0.0, centroid=0.0)
    scale = Settings(rate=0.1, hidden=2, steps=(2, 12, 60))
    found = computed(lambda key: digits.networks(key, arm, problem, scale), KEY)["error"]
    if resampled == 0:
        np.testing.assert_array_equal(found, [8, 8, 8])
    else:
        assert found[0] <= 2 < found[1] <= found[2]
        assert found[2] >= 7


class Trained(NamedTuple):
    machine: Any


@pytest.mark.parametrize("rates", [(0.5,), (0.5, 1.0)])
def test_the_fewest_effective_weights_of_all_that_is_reported_are_told(rates, monkeypatch):
    """Machines whose weights grow by the rate at every look, and of which annealing has as many effective weights."""

    class Divergence:
        def __init__(self, optimiser, **_):
            self.rate = -optimiser.update(jnp.ones(()), optimiser.init(jnp.zeros(())))[0]

        def init(self, machine):
            return Trained(machine)

    def train(key, trainer, state, *_):
        weights = state.machine.weights + trainer.rate
        return Trained(eqx.tree_at(lambda m: m.weights, state.machine, weights)), None

    def annealed(key, machine, chains, temperatures):
        return SimpleNamespace(log_partition=-machine.weights[0, 0], effective=10 + machine.weights[0, 0])

    monkeypatch.setattr(hopfield.memory, "ContrastiveDivergence", Divergence)
    monkeypatch.setattr(hopfield.memory, "train", train)
    monkeypatch.setattr(hopfield.memory, "annealed_log_partition", annealed)
    monkeypatch.setattr(hopfield, "initial", lambda *_: jnp.zeros((2, 1)))
    sizes = {"updates": 3, "batch": 1, "chains": 2, "temperatures": 2, "report_chains": 8, "report_temperatures": 4}
    scale = Settings(sizes, rates=rates, records=2, beta=1.0, gibbs_steps=1, constant="annealed")
    rows, arm = jnp.ones((4, 2)), Settings(independent=0.0)
    told = computed(lambda key: hopfield._train(key, arm, rows, rows, rows, rows, scale), KEY)
    assert float(told["effective"]) == pytest.approx(10)  # before any training, where the weights are 0
    assert float(told["average_rate"]) == float(told["final_rate"]) == rates[-1]
    np.testing.assert_array_equal(told["updates"], [0, 3, 6])
    assert float(told["average"]) == pytest.approx(float(np.mean(told["curve"][1:])))


def test_what_is_said_of_another_image_is_its_whole_phrase():
    """Phrases of one to seven words, of which none is another's beginning; half of the test away."""
    phrases = [" ".join([f"w{i}", *["red", "big", "on", "top", "of", "it"][: i % 7]]) for i in range(20)]
    images, masks = np.arange(20.0)[:, None, None, None] * np.ones((2, 2, 3)), np.ones((20, 2, 2), bool)
    problem = SimpleNamespace(draw=lambda key, number: (images, masks, phrases, np.arange(20)))
    found = segmentation._prepare(KEY, problem, Settings(train=8, validation=6, test=6))
    vocabulary = segmentation.g.Vocabulary.of(phrases, 8)
    rows, words, lengths = found.looks["shuffled"]
    other = vocabulary.encode([phrases[14 + (i + 3) % 6] for i in range(6)])
    np.testing.assert_array_equal(found.images[rows, 0, 0, 0], np.arange(14, 20))
    np.testing.assert_array_equal(words, other.words)
    np.testing.assert_array_equal(lengths, other.lengths)
    assert len(set(np.asarray(lengths).tolist())) > 3
    for look, part in (("test", slice(14, 20)), ("validation", slice(8, 14))):
        rows, words, lengths = found.looks[look]
        own = vocabulary.encode(phrases[part])
        np.testing.assert_array_equal(found.images[rows, 0, 0, 0], np.arange(20)[part])
        np.testing.assert_array_equal(words, own.words)
        np.testing.assert_array_equal(lengths, own.lengths)
    np.testing.assert_array_equal(found.train.images[:, 0, 0, 0], np.arange(8))
    np.testing.assert_array_equal(found.kinds, np.arange(14, 20))


class Seen(NamedTuple):
    stats: jax.Array
    latent: jax.Array
    features: jax.Array


class World(eqx.Module):
    """A model that is one number, which training brings to β; it shows a picture less that number."""

    number: jax.Array

    @property
    def rssm(self):
        return SimpleNamespace(predict=lambda middle, action, noise: middle)

    def observe(self, key, batch):
        empty = jnp.zeros((*batch.observation.shape[:2], 4))
        return Seen(empty, empty, batch.observation), None

    def decoder(self, features):
        return features - self.number


def test_what_a_prior_imagines_is_judged_by_other_draws_than_chose_its_weight(monkeypatch):
    """All pictures that choose are 0.1, those that judge 0.3, and what is drawn is best where it is 0."""
    tuning = jax.random.key_data(jax.random.split(jax.random.split(KEY, 5)[3], 3)[0])

    def draw(key, length, number):
        chooses = jnp.all(jax.random.key_data(key) == tuning)
        return jnp.broadcast_to(jnp.where(chooses, 0.1, 0.3), (length, number, 9))

    def loss(key, model, batch, *, beta, alpha, gamma):
        return (model.number - beta) ** 2, (Settings(status=jnp.zeros((), int)), None)

    monkeypatch.setattr(dreamer.c, "make_world_model", lambda *_, **__: World(jnp.zeros(())))
    monkeypatch.setattr(dreamer.c, "world_model_loss", loss)
    problem = SimpleNamespace(draw=draw, branches=2, ends=jnp.zeros((2, 9)))
    problem.last_middle = lambda length: length - 2
    sizes = {"variables": 2, "classes": 2, "memory": 2, "width": 2, "length": 3, "batch": 2, "pool": 1, "draws": 3}
    # What pulls the posterior is β (1 − α): with α a half, half of the numbers above.
    scale = Settings(sizes, rate=0.02, updates=60, weights=(0.05, 0.1, 0.15))
    arm = Settings(latent="one-hot", alpha=0.5, blind=0.0)
    told = {
        name: float(value)
        for name, value in computed(lambda key: dreamer.crossroads(key, arm, problem, scale), KEY).items()
    }
    assert told["weight"] == pytest.approx(0.05)
    squared = 9 * 0.2**2  # of 0.3 less 0.1, in nine pixels
    log = -0.5 * squared / dreamer.BLUR - 4.5 * np.log(2 * np.pi * dreamer.BLUR)
    assert told["log_score"] == pytest.approx(log, abs=0.15)
    assert told["reconstruction"] == pytest.approx(9 * 0.1**2, rel=0.2)
    assert told["finite"] == 1
