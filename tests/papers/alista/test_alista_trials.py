"""The claims of ALISTA: the promised ids, trials that would notice a fault, and a problem of one's own."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from in_numpy import computed
from scipy.stats import rankdata
from trial_runner import run

from example_files import EXAMPLES, loaded
from laureate import recovery
from laureate.lab.claim import Settings
from laureate.lab.judging.evidence import draft
from laureate.lab.judging.guards import held_back
from laureate.papers.alista import speed, trials
from laureate.papers.alista.about import PAPER
from laureate.papers.alista.trials import _ranks, _shape, _tuned_curve, conditioning, drift, trained
from laureate.papers.alista.trials import recovery as recovery_trial
from laureate.papers.alista.trials_exact import certificate, closed_form, conv_threshold
from laureate.problems.recovery import DigitPatches, GaussianDictionary

EXPERIMENTS = {experiment.name: experiment for experiment in PAPER.experiments}
KEY = jax.random.key(0)


def tiny(name):
    return EXPERIMENTS[name].scales["tiny"].settings


def settings(name, arm):
    return EXPERIMENTS[name].arm(arm).settings


def test_the_ids_are_the_ones_promised():
    promised = {
        "closed-form",
        "certificate",
        "conv-threshold",
        "analytic-vs-learned",
        "against-fista",
        "weights-matter",
    }
    promised |= {"learned-shape", "drift", "noise", "denoising", "conditioning"}
    assert promised <= {claim.name for claim in PAPER.claims}
    assert next(claim for claim in PAPER.claims if claim.name == "conditioning").kind == "question"


def test_every_tuned_arm_has_the_same_grid_and_is_guarded():
    for experiment in PAPER.experiments:
        for scale in experiment.scales.values():
            assert scale.settings.get("rates", EXPERIMENTS["recovery"].scales["desk"].settings.rates) == (
                EXPERIMENTS["recovery"].scales["desk"].settings.rates
            )
        if "rates" in experiment.scales["desk"].settings and experiment.name != "conditioning":
            assert {"rate", "penalty"} <= {guard.metric for guard in experiment.guards}


def test_the_trivial_arms_by_hand():
    problem = GaussianDictionary(rows=6, columns=10, density=0.2)
    for name in ("zero", "least-squares"):
        found = run(recovery_trial, settings("recovery", name), problem, tiny("recovery"))["nmse"]
        # N/M of the energy is found again by least squares, on average, and nothing by nothing.
        assert np.all((found < -0.5) & (found > -6) if name == "least-squares" else np.abs(found) < 1e-5)


def test_the_tuned_curve_takes_the_best_penalty_of_every_iteration():
    matrix = np.random.default_rng(0).normal(size=(6, 10)).astype(np.float32)
    matrix = matrix / np.linalg.norm(matrix, axis=0)
    codes = np.asarray(jax.jit(lambda: recovery.BernoulliGaussian(10, density=0.2)(KEY, 40))())
    pair = jnp.asarray(codes @ matrix.T), jnp.asarray(codes)
    grid = (1.0, 0.1, 0.01)
    curve, chosen = jax.jit(lambda: _tuned_curve("fista", jnp.asarray(matrix), pair, pair, grid, 30))()
    trace = jax.jit(lambda penalty: recovery.FISTA(matrix, 30, penalty=penalty).trace(pair[0]))
    traces = [np.asarray(trace(penalty)) for penalty in grid]
    each = np.array([10 * np.log10(np.sum((x - codes) ** 2, axis=(1, 2)) / np.sum(codes**2)) for x in traces])
    np.testing.assert_allclose(curve, each.min(0), atol=1e-3)
    np.testing.assert_allclose(chosen, np.array(grid, np.float32)[each.argmin(0)])


@pytest.mark.parametrize("kind", ["ista", "fista", "alista"])
def test_some_signals_choose_and_others_judge_and_iterations_are_counted_from_one(kind, monkeypatch):
    """Signals are their number; the curves fall by a decibel an iteration, and the network gets to -6.5 dB."""
    asked, iterations = [], trials.FARTHEST * 4

    def tuned(kind, matrix, check, judge, penalties, number):
        asked.append((kind, check, judge, number))
        return -1.0 - jnp.arange(number), 0.01 * (1.0 + jnp.arange(number))

    def trained_on(key, solver, prior, check, scale, snr, mode):
        asked.append(("network", check, None, 0))
        return solver, jnp.asarray(0.1)

    def curve_of(solver, pair):
        asked.append(("network", None, pair, 0))
        return jnp.array([-1.0, -2.0, -4.0, -6.5])

    monkeypatch.setattr(trials, "_signals", lambda key, matrix, sample, number, snr: number)
    monkeypatch.setattr(trials, "_tuned_curve", tuned)
    monkeypatch.setattr(trials, "trained", trained_on)
    monkeypatch.setattr(trials, "_error_curve", curve_of)
    monkeypatch.setattr(trials, "_network", lambda *_: Settings(num_parameters=99))
    monkeypatch.setattr(trials, "_shape", lambda solver, pair: asked.append(("shape", None, pair, 0)) or {})
    problem = GaussianDictionary(rows=3, columns=5, density=0.2)
    scale = Settings(layers=4, validation=3, test=5, penalties=(0.1,))
    arm = Settings(kind=kind, snr=40.0, multiple=2)
    told = computed(lambda key: recovery_trial(key, arm, problem, scale), KEY)
    if kind != "alista":
        assert asked == [(kind, 3, 5, iterations)]
        np.testing.assert_allclose(told["nmse_curve"], [-2, -4, -6, -8])  # after 2, 4, 6 and 8 iterations
        assert (float(told["nmse"]), float(told["penalty"])) == pytest.approx((-8, 0.08))
        return
    assert asked == [
        ("network", 3, None, 0),
        ("network", None, 5, 0),
        ("fista", 3, 5, iterations),
        ("shape", None, 5, 0),
    ]
    assert float(told["nmse"]) == pytest.approx(-6.5)
    assert float(told["log_worth"]) == pytest.approx(np.log10(7 / 4))  # seven iterations of FISTA are as near
    assert float(told["fista_penalty"]) == pytest.approx(0.07)
    assert float(told["log_parameters"]) == pytest.approx(2)


def test_every_layers_error_is_held_against_the_bound_after_that_layer():
    """Errors and false places recomputed from the codes of every layer."""
    scale = Settings(rows=12, columns=16, layers=3, signals=5)
    arm = Settings(entries=6, factor=0.02)

    def known(key):
        """The codes, those after every layer, and the bounds, from the first on."""
        dictionary_key, code_key, place_key = jax.random.split(key, 3)
        matrix = jax.random.normal(dictionary_key, (12, 16))
        matrix = matrix / jnp.linalg.norm(matrix, axis=0)
        weight = recovery.analytic_weight(matrix)
        schedule = recovery.certified_schedule(matrix, weight, sparsity=2, bound=1.0, num_layers=3)
        theta = 0.02 * schedule.theta
        solver = recovery.ALISTA(matrix, weight, 3, gamma=schedule.gamma, theta=theta, support=None)
        rank = jnp.argsort(jnp.argsort(jax.random.uniform(place_key, (5, 16)), axis=1), axis=1)
        codes = jnp.where(rank < 6, jax.random.uniform(code_key, (5, 16), minval=-1.0), 0.0)
        return codes, solver.trace(codes @ matrix.T), schedule.error_bound

    with jax.enable_x64(True):
        told = computed(lambda key: certificate(key, arm, None, scale), KEY)
        codes, layers, bounds = computed(known, KEY)
    errors = np.abs(layers - codes).sum(-1).max(1)
    assert bounds.shape == (4,)
    np.testing.assert_allclose(told["log_over_bound"], np.log10(max(errors / bounds[1:])), rtol=1e-6)
    np.testing.assert_allclose(told["log_error"], np.log10(errors), rtol=1e-6)
    false = ((layers != 0) & (codes == 0)).any((0, 2))
    assert 0 < false.mean() <= 1
    np.testing.assert_allclose(told["false_share"], false.mean())


@pytest.mark.slow
def test_the_rate_is_chosen_by_validation_and_broken_ones_never_are():
    matrix = jnp.eye(3, 4) + 0.1
    matrix = matrix / jnp.linalg.norm(matrix, axis=0)
    codes = recovery.BernoulliGaussian(4, density=0.5)(KEY, 20)
    solver = recovery.ALISTA(matrix, num_layers=2)
    scale = Settings(rates=(1e-3, 1e30), steps=3, batch=4)
    _, rate = trained(KEY, solver, recovery.BernoulliGaussian(4, density=0.5), (codes @ matrix.T, codes), scale)
    np.testing.assert_allclose(rate, 1e-3)


def test_the_shape_is_one_where_thresholds_follow_the_errors():
    matrix = np.random.default_rng(1).normal(size=(30, 40)).astype(np.float32)
    matrix = matrix / np.linalg.norm(matrix, axis=0)

    @jax.jit
    def shape(key):
        codes = recovery.BernoulliGaussian(40, density=0.03)(key, 50)
        solver = recovery.ALISTA(matrix, num_layers=4, theta=[0.4, 0.2, 0.1, 0.05], support=None)
        return _shape(solver, (codes @ matrix.T, codes))

    falling = shape(KEY)
    np.testing.assert_allclose(falling["rank_correlation"], 1.0, atol=1e-6)
    assert float(falling["shape_slope"]) > 0


def test_equal_layers_share_their_mean_rank():
    values = np.array([0.3, 0.1, 0.3, 0.2, 0.3], np.float32)
    np.testing.assert_allclose(_ranks(jnp.asarray(values)), rankdata(values) - 0.5)


def test_one_dictionary_beyond_the_bound_holds_the_certificate_back():
    experiment = EXPERIMENTS["certificate"]
    for name, metric in (("certificate", "log_over_bound"), ("certificate-support", "false_share")):
        claim = next(claim for claim in experiment.claims if claim.name == name)
        good = np.zeros(20) if metric == "false_share" else np.linspace(-0.3, -0.1, 20)
        bad = np.where(np.arange(20) == 7, 0.01, good)
        assert not held_back(claim, {"certified": {metric: good}}, good, experiment.guards)
        (found,) = held_back(claim, {"certified": {metric: bad}}, bad, experiment.guards)
        assert "in 1 of 20 seeds" in found.words


@pytest.mark.slow  # traced in tests/papers/test_every_trial.py
def test_the_penalty_of_the_fista_that_is_judged_is_one_of_the_grid():
    problem = GaussianDictionary(rows=6, columns=10, density=0.2)
    found = run(recovery_trial, settings("recovery", "alista"), problem, tiny("recovery"))
    grid = np.asarray(tiny("recovery").penalties, np.float32)
    assert np.isin(np.asarray(found["fista_penalty"], np.float32), grid).all()


def test_the_penalty_of_the_fista_that_is_judged_is_guarded():
    guards = [guard for guard in EXPERIMENTS["recovery"].guards if guard.metric == "fista_penalty"]
    assert [guard.claims for guard in guards] == [("against-fista",)]


def test_what_is_allowed_is_a_margin_and_the_effect_is_the_measured_one():
    allowed = {claim.name: claim.margin for claim in PAPER.claims if claim.margin < 0}
    names = ("analytic-vs-learned", "analytic-vs-tied", "analytic-vs-started", "noise", "drift")
    assert allowed == dict.fromkeys(names, -1.0) | {"denoising": -0.2}
    claim = next(claim for claim in PAPER.claims if claim.name == "drift")
    assert (claim.method, claim.metric) == ("fresh", "nmse_inside")
    rng = np.random.default_rng(0)
    levels = {"fresh": -20.0, "encoder": -20.5, "least-squares": -3.0}
    arms = {name: {"nmse_inside": level + rng.normal(0, 0.1, 20)} for name, level in levels.items()}
    found = draft(claim, arms)
    np.testing.assert_allclose(found.effect, -0.5, atol=0.15)  # 5 · 0.1 √(2/20)
    assert found.inside
    assert not draft(claim, arms | {"encoder": {"nmse_inside": arms["encoder"]["nmse_inside"] - 1}}).inside


@pytest.mark.slow
def test_the_exact_trials_tell_right_from_wrong():
    exact = lambda trial, arm, scale: run(trial, arm, None, scale, seeds=1, x64=True)  # noqa: E731
    scale = {"rows": 12, "columns": 20, "steps": 2000}
    right, wrong = (exact(closed_form, {"method": method}, scale) for method in ("closed_form", "dictionary"))
    assert right["log_conditions"] < -12 < -1 < wrong["log_conditions"]
    assert exact(closed_form, {"method": "iterative"}, scale)["log_distance"] < -6
    scale = {"rows": 60, "columns": 64, "layers": 12, "signals": 30}
    certified, control = (exact(certificate, {"entries": 2.0, "factor": f}, scale) for f in (1.0, 0.01))
    assert certified["false_share"] == 0
    assert certified["log_over_bound"] <= 0
    assert control["false_share"] > 0
    sizes = exact(conv_threshold, {}, {"side": 3, "filters": 4})
    assert sizes["log_error_at"] < -12 < -3 < sizes["log_error_below"]


def test_drift_hurts_least_squares_never_and_codes_are_judged_with_their_own_dictionary():
    problem = GaussianDictionary(rows=6, columns=10, density=0.2)
    found = run(drift, settings("drift", "least-squares"), problem, tiny("drift"))
    assert np.all(found["nmse_curve"] < -0.3)


@pytest.mark.slow
def test_the_condition_number_is_the_one_asked_for():
    problem = DigitPatches(side=3, number=40)
    scale = tiny("conditioning")
    low, high = (run(conditioning, {"learned": 0.0, "kappa": k}, problem, scale) for k in (1.0, 50.0))
    assert np.all(low["log_condition"] < 0.3)
    assert np.all((high["log_condition"] > 1.2) & (high["log_condition"] < 2.2))


def example():
    return loaded(EXAMPLES / "own_dictionary.py")


@pytest.mark.slow
def test_an_operator_of_ones_own_is_compared():
    made = example().dictionary()
    assert all(hasattr(made, name) for name in EXPERIMENTS["recovery"].accepts)
    metrics = run(recovery_trial, settings("recovery", "fista"), made, tiny("recovery"))
    assert np.isfinite(metrics["nmse"]).all()


def test_the_examples_operator_has_its_adjoint():
    detector = example().Detector()
    x, r = (np.random.default_rng(k).normal(size=n).astype(np.float32) for k, n in ((0, 120), (1, 60)))
    np.testing.assert_allclose(r @ detector.matvec(x), x @ detector.rmatvec(r), rtol=1e-3)


@pytest.mark.slow
def test_the_example_recovers_spikes(capsys):
    errors = example().main(steps=150)
    assert errors["ALISTA, trained"] < errors["ALISTA, not trained"] - 3
    assert "FISTA, 120 iterations" in capsys.readouterr().out


@pytest.mark.slow
def test_no_time_is_given_where_fista_does_not_come_as_near():
    work = speed.Work(rows=20, columns=40, signals=10, most=1, layers=4)
    with pytest.raises(RuntimeError, match=r"does not reach ALISTA's NMSE .* within 1 iterations .* Raise Work.most"):
        speed.fista_side(work)


@pytest.mark.slow
@pytest.mark.parametrize("side", ["solve_side", "fista_side", "scikit_learn_side", "training_side"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_sides_of_the_benchmark_run(side):
    work = speed.Work(rows=20, columns=40, signals=10, most=20, layers=4, steps=2)
    made = getattr(speed, side)(work)
    assert np.all(np.isfinite(np.asarray(made.run())))
