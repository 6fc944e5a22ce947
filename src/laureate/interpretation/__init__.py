"""Interpretation: which units of a network matter, what they say, and what happens when they are erased or set.

Rankings compare a model with others that were trained on the same task; the activations may come from any framework, as
arrays ``[tokens, units]`` of the same tokens. Interventions are functions of activations ``[..., units]``, put into any
model that takes one, or into a part of an Equinox model by its path (`insert`). Whether a ranking is right about a
model is told by `ablation_effects`, which erases every unit in turn.
"""

from laureate.interpretation.activations import (
    FewTokensWarning,
    collect,
    flatten_tokens,
    open_activations,
    rank_neurons,
)
from laureate.interpretation.directions import DirectionsResult, keep_directions, mean_difference, svcca
from laureate.interpretation.erasure import (
    AblationResult,
    CurveResult,
    ablation_effects,
    erase_curve,
    rank_agreement,
)
from laureate.interpretation.hooks import Hooked, insert, module_paths, record
from laureate.interpretation.interventions import (
    Identity,
    Project,
    Resample,
    SetDirection,
    SetUnits,
    erasure_masks,
    steer,
)
from laureate.interpretation.moments import Moments, MomentsInfo, MomentsState, RunningMoments
from laureate.interpretation.probes import GaussianProbe, ProbeResult, explained_variance, fit_probe, score_probe
from laureate.interpretation.ranking import (
    RankingResult,
    linear_regression,
    max_corr,
    min_corr,
    output_norm,
    random_order,
    ranked,
    standard_deviation,
)
from laureate.interpretation.significance import (
    NullResult,
    ScoreInterval,
    expected_null,
    permutation_null,
    score_interval,
)
from laureate.interpretation.steering import ControlPlan, OffDistributionWarning, control, property_units

__all__ = [
    "AblationResult",
    "ControlPlan",
    "CurveResult",
    "DirectionsResult",
    "FewTokensWarning",
    "GaussianProbe",
    "Hooked",
    "Identity",
    "Moments",
    "MomentsInfo",
    "MomentsState",
    "NullResult",
    "OffDistributionWarning",
    "ProbeResult",
    "Project",
    "RankingResult",
    "Resample",
    "RunningMoments",
    "ScoreInterval",
    "SetDirection",
    "SetUnits",
    "ablation_effects",
    "collect",
    "control",
    "erase_curve",
    "erasure_masks",
    "expected_null",
    "explained_variance",
    "fit_probe",
    "flatten_tokens",
    "insert",
    "keep_directions",
    "linear_regression",
    "max_corr",
    "mean_difference",
    "min_corr",
    "module_paths",
    "open_activations",
    "output_norm",
    "permutation_null",
    "property_units",
    "random_order",
    "rank_agreement",
    "rank_neurons",
    "ranked",
    "record",
    "score_interval",
    "score_probe",
    "standard_deviation",
    "steer",
    "svcca",
]
