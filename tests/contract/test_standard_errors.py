"""A row for every estimate that says how far off it may be; ``laureate.testing.check_standard_error`` has the check.

Every public field that reports a standard error, a p-value or the ends of an interval stands in ``REPORTED``, with the
row or the test that recomputes it.
"""

import dataclasses
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate import memory, sampling
from laureate import robustness as rob
from laureate.architecture import choice_noise
from laureate.imbalance import tune_tau
from laureate.pde import MonteCarlo
from laureate.problems.pdes import HJBLog
from laureate.testing import check_standard_error
from rooms import AREAS

RNG = np.random.default_rng(0)
WEIGHTS = jnp.asarray(0.4 * RNG.normal(size=(5, 2)), jnp.float32)
MACHINE = memory.BoltzmannMachine(WEIGHTS, 0.1 * jnp.ones(5), jnp.zeros(2))
BIASES = jnp.asarray([0.5, -1.0, 1.5, 0.2])


def game(masks):
    return 3 * masks[:, 0] * masks[:, 1] + masks[:, 2] * masks[:, 3] * masks[:, 0]


def found(result):
    return result.mean, result.standard_error


def annealed(key):
    kernel = sampling.Gibbs(lambda x: BIASES @ x, sampling.Binary())
    uniform = lambda x: 0.0 * jnp.sum(x) - 4 * jnp.log(2.0)  # noqa: E731
    result = sampling.annealed_importance_sampling(
        key, kernel, uniform, lambda key: jax.random.bernoulli(key, 0.5, (4,)), jnp.linspace(0, 1, 6), num_chains=60
    )
    return result.log_ratio, result.standard_error


def partition(key):
    result = memory.annealed_log_partition(key, MACHINE, num_chains=60, num_temperatures=6)
    return result.log_partition, result.standard_error


def margin(key):
    """The margin's error is that of the examples: new ones for every key."""
    data_key, key = jax.random.split(key)
    values = jnp.asarray([0.0, 1.0])[:, None] + jax.random.normal(data_key, (2, 40))
    report = choice_noise(key, values, criterion="loss", num_resamples=1)
    return report.margin, report.standard_error


def strength(key):
    """The balanced error at one strength, of as many labels a class as are given, drawn anew."""
    labels = np.repeat([0, 1, 2], [60, 25, 9])
    logits = jax.nn.one_hot(labels, 3) + jax.random.normal(key, (len(labels), 3))
    _, (error,), (spread,) = tune_tau(logits, labels, jnp.log(jnp.array([0.6, 0.3, 0.1])), jnp.ones(1))
    return error, spread


# A function of a key, and what it estimates where that is known. A logarithm of a mean is biased: no exact value.
ROWS = {
    "interaction": (lambda key: found(rob.estimate_interaction(key, game, 4, "banzhaf", num_samples=60)), None),
    "subsets": (lambda key: found(rob.estimate_by_subsets(key, game, 4, size=2, num_samples=60)), None),
    "annealed-importance": (annealed, None),
    "annealed-partition": (partition, None),
    "choice-noise": (margin, 1.0),
    "tuned-strength": (strength, None),
    "monte-carlo": (lambda key: MonteCarlo(64, 3, form="exponential").run(key, HJBLog(3))[:2], None),
}


@pytest.mark.parametrize("name", ROWS)
def test_standard_error(name):
    function, exact = ROWS[name]
    check_standard_error(function, exact=exact, name=name)


REPORTS = re.compile(r"(^|_)(standard_errors?|low|high|lo|hi|lower|upper|intervals?|p_values?)(_|$)")
PDE, CONFIDENCE = "tests/pde/test_pde_recomputed.py::", "tests/uncertainty/test_confidence_exact.py::"
SHUFFLED = "tests/interpretation/test_interpretation_significance.py::"
CURVE = "tests/generative/test_biggan_exact.py::test_a_curve_has_the_means_and_students_intervals"
WILSON = "tests/representation/test_representation.py::test_the_interval_is_wilsons"
PAIRED = "tests/robustness/test_robustness_reports.py::test_the_paired_test_is_that_of_all_signs_of_the_counted_images"
NULL = SHUFFLED + "test_the_null_is_made_of_all_orders_of_blocks_and_its_report_of_the_null"
JACKKNIFE, NOISE = (
    SHUFFLED + "test_intervals_are_the_jackknife",
    PDE + "test_intervals_from_the_very_noise_that_was_drawn",
)
GIVEN = "the user's, or where something begins and ends: nothing that is estimated"
# Where each is held beside what it should be: a row of this file, or a test that is not slow.
REPORTED = {
    "active.RiskEstimate.interval": "tests/active/test_active_exact.py::test_intervals",
    "active.RiskEstimate.standard_error": "tests/contract/test_active_contract.py::test_standard_error",
    "architecture.NoiseReport.standard_error": "choice-noise",
    **dict.fromkeys(("generative.TruncationCurve.low", "generative.TruncationCurve.high"), CURVE),
    **dict.fromkeys(("interpretation.NullResult.p_value", "interpretation.NullResult.high"), NULL),
    **{f"interpretation.ScoreInterval.{field}": JACKKNIFE for field in ("low", "high", "standard_error")},
    "memory.AnnealedPartition.standard_error": "annealed-partition",
    "pde.Extrapolation.interval": NOISE,
    **{f"pde.Interval.{field}": NOISE for field in ("low", "high", "standard_error")},
    "pde.Solution.interval": NOISE,
    "pde.MonteCarloResult.standard_error": "monte-carlo",
    "pde.StepInfo.standard_error": "tests/pde/test_solver.py::test_a_steps_report_is_recomputed",
    **dict.fromkeys(("representation.Accuracy.low", "representation.Accuracy.high"), WILSON),
    **{f"robustness.PairedResult.{kind}": PAIRED for kind in ("p_values_by_network", "p_value_pooled", "p_value")},
    "robustness.InteractionResult.standard_error": "interaction",
    "sampling.AnnealedImportance.standard_error": "annealed-importance",
    "sampling.SteinTest.p_value": "tests/sampling/test_stein_exact.py::test_p_values_are_those_of_a_second_writing",
    "selection.BlindScore.p_value": "tests/selection/test_selection_selector.py::test_the_blind_list_hides_and_scores",
    "selection.ValidityReport.p_value": "tests/selection/test_selection_validity.py::test_the_p_value_is_binomial",
    "uncertainty.KSResult.p_value": "tests/uncertainty/test_calibration_exact.py::"
    "test_the_law_of_the_test_has_its_known_quantiles_and_joins",
    "uncertainty.PACConfidence.interval": CONFIDENCE + "test_intervals_of_bins_by_hand",
    "uncertainty.PACConfidence.ece_interval": CONFIDENCE + "test_the_calibration_error_lies_between_its_ends",
    **dict.fromkeys(("robustness.Linf.low", "robustness.Linf.high", "robustness.L2.low", "robustness.L2.high"), GIVEN),
    **dict.fromkeys(("sampling.Ordinal.low", "sampling.Ordinal.high"), GIVEN),
    **dict.fromkeys(("uncertainty.BinTable.low", "uncertainty.BinTable.high"), GIVEN),
    **{f"pde.{basis}.{end}": GIVEN for basis in ("Polynomials", "Fourier", "Splines") for end in ("low", "high")},
    **{
        f"pde.{basis}.interval": GIVEN
        for basis in ("Basis", "Polynomials", "Hermite", "Fourier", "Splines", "CustomBasis")
    },
}


def reported_in(area):
    """Fields and methods of an area's public classes that say how sure something is, by their names."""
    package = importlib.import_module(f"laureate.{area}")
    found = set()
    for part in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        module = importlib.import_module(part.name)
        for name, kind in vars(module).items():
            if not inspect.isclass(kind) or kind.__module__ != module.__name__ or name.startswith("_"):
                continue
            fields = getattr(kind, "_fields", ())
            fields = {
                *fields,
                *(one.name for one in (dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ())),
            }
            members = fields | {member for member in vars(kind) if not member.startswith("_")}
            found |= {f"{area}.{name}.{member}" for member in members if REPORTS.search(member)}
    return found


@pytest.mark.parametrize("area", AREAS)
def test_every_field_that_says_how_sure_something_is_has_a_row_or_a_test(area):
    """So that a new interval or p-value is held beside what it should be."""
    known = {name for name in REPORTED if name.startswith(f"{area}.")}
    assert sorted(reported_in(area) - known) == []
    assert sorted(known - reported_in(area)) == []


def test_what_recomputes_a_field_is_there():
    root = Path(__file__).parents[2]
    for field, where in REPORTED.items():
        file, _, test = where.partition("::")
        if where in ROWS or where == GIVEN:
            continue
        text = (root / file).read_text(encoding="utf-8")
        assert f"def {test}(" in text, field
        body = text.split(f"def {test}(")[1].split("\ndef ")[0]
        assert "assert" in body or "check_standard_error" in body, field
        assert "mark.slow" not in text.split(f"def {test}(")[0].rsplit("\n\n\n", 1)[-1], field
