"""Every public name of every area is a method with a row in this folder, or has a reason for none."""

import functools
import importlib
import inspect
from pathlib import Path

import pytest
from tiers import QUICK, SLOW, calls, tiers

import laureate.testing
from rooms import AREAS

# The methods with a row: ``TYPES`` of tests/contract/test_<area>_contract.py, by test, made from the rows.
CONTRACTS = {
    path.stem.removeprefix("test_").removesuffix("_contract")
    for path in Path(__file__).parent.glob("test_*_contract.py")
}
INSIDE = "inside rows"  # how a reason begins whose classes are parts of rows
# What carries or reports numbers and computes nothing.
RECORDS = ("State", "Info", "History", "Progress", "Run", "Report", "Result", "Interval", "Accuracy", "Error")
REASONS = {
    "active": {"what estimators return, a warning: tests/active": {"RiskEstimate", "WeightWarning"}},
    "architecture": {
        "the base of the rules, which have rows": {"AbstractSelection"},
        "the protocol of a user's supernet": {"Supernet"},
        "what may be chosen, was chosen and was passed: tests/architecture": {
            "Decision",
            "Genotype",
            "ParetoPoint",
            "Space",
            "Table",
        },
        "the score of a supernet: tests/architecture/test_architecture_use.py": {"SupernetScore"},
        "warnings": {"ResolutionWarning", "TieWarning"},
    },
    "compression": {
        "the base of the quantisers, which have rows": {"Quantizer"},
        "what quantisers, rules and k-means hand back": {
            "Clusters",
            "Codebook",
            "Grid",
            "QuantizedArray",
            "Row",
            "Rules",
        },
    },
    "control": {
        "bases of one's own bonuses and laws": {"AbstractBonus", "AbstractLaw", "AbstractPredictionBonus"},
        "inside rows: laws, cells, networks and the scale of rewards": {
            "Categorical",
            "NormalisedGRU",
            "OneHot",
            "RSSM",
            "ReturnScale",
            "SimHash",
            "WorldModel",
        },
        "networks and laws: tests/control/test_control_exact.py and test_encoded.py": {
            "ActorCritic",
            "EncodedActorCritic",
            "Gaussian",
        },
        "what is learned from, and how networks are made": {"Layers", "PPOBatch", "Rollout", "Transitions"},
        "closed forms, units, a warning: tests/control/test_dynamics_cycle_exact.py": {
            "Affine",
            "CorrespondenceWarning",
            "KernelRegression",
            "LinearDynamics",
            "PatchEncoder",
            "Simulator",
            "Units",
        },
        "on the host, with Gymnasium: tests/control/test_control_use.py and test_simulators.py": {
            "GymnasiumDreamerTraining",
            "GymnasiumEnvironments",
            "GymnasiumTraining",
        },
        "runs of methods that have rows: tests/control/test_correspondence_training.py": {"CorrespondenceTraining"},
        "what was recorded: tests/control/test_episodes.py": {"Episode", "GymnasiumEpisode"},
        "a warning": {"BonusWarning"},
        "closed forms, and whole runs of DreamerV2, which has a row: tests/control/test_dreamer_exact.py": {
            "DiagonalNormal",
            "DreamerTraining",
            "Replay",
            "TruncatedNormal",
        },
        "networks of images, and what a world model learns from: tests/control/test_dreamer_exact.py": {
            "DreamerMemory",
            "Imagined",
            "PixelDecoder",
            "PixelEncoder",
            "Sequences",
        },
    },
    "decentralized": {
        "the base of the optimisers, which have rows": {"DecentralizedOptimiser"},
        "the network and its weights: tests/decentralized/test_gossip.py": {"Gossip", "Topology", "Network"},
        "compressors, inside ChocoSGD: tests/decentralized": {"ScaledSign", "TopK"},
    },
    "generative": {
        "bases of the models, the latents' sets and a model's own checks": {
            "AbstractConditional",
            "AbstractLatent",
            "AbstractNetwork",
            "AbstractOneLoss",
            "AbstractOneNetwork",
            "AbstractRegulariser",
            "Hooks",
        },
        "inside rows: layers, networks and sets of latents": {
            "Affine",
            "BigGANDiscriminator",
            "BigGANGenerator",
            "ConditionalBatchNorm",
            "GaussianEncoder",
            "Perceptron",
            "ProjectionHead",
            "ShapedDiscriminator",
            "ShapedEncoder",
            "SpectrallyNormalised",
            "Sphere",
            "WholeBatch",
        },
        "inside rows: regularisers and the problem of an imitator": {
            "AdaptiveBudget",
            "FiniteEnvironment",
            "GradientPenalty",
            "InstanceNoise",
            "OrthogonalPenalty",
            "VariationalBottleneck",
        },
        "what rows make of a plain network when they call it": {"EachExample"},
        "options, losses, and what is fitted and found: tests/generative": {
            "AdversarialLoss",
            "Box",
            "FittedAdversarial",
            "FittedConditional",
            "InferredLatents",
            "SelfAttention",
            "StandingStatistics",
            "TruncationCurve",
        },
        "warnings": {"BottleneckCollapsedWarning", "ScaleWarning"},
    },
    "imbalance": {"scikit-learn's own checks: tests/imbalance/test_imbalance_use.py": {"LogitAdjusted"}},
    "gradients": {
        "the protocol of a user's problem": {"Unroll"},
        "wraps an estimator over devices, bit by bit the same: tests/gradients/test_sharding.py": {"Sharded"},
    },
    "interpretation": {
        "what rankings are made from: tests/interpretation/test_interpretation_rankings.py": {"Moments"},
        "interventions and hooks: tests/interpretation/test_interpretation_changes.py": {
            "ControlPlan",
            "Hooked",
            "Identity",
            "Project",
            "Resample",
            "SetDirection",
            "SetUnits",
        },
        "Gaussians of a probe: tests/interpretation/test_interpretation_probes.py": {"GaussianProbe"},
        "warnings": {"FewTokensWarning", "OffDistributionWarning"},
    },
    "graphs": {
        "the padded graph: tests/layers/test_graphs.py": {"Graph"},
        "drops nothing without a key: tests/graphs/test_gvp_exact.py": {"VectorDropout"},
        "the base of the integrators": {"AbstractIntegrator"},
        "parts of simulators: tests/graphs/test_mesh_exact.py": {
            "FirstOrder",
            "MeshGraphNet",
            "Normaliser",
            "Perceptron",
            "SecondOrder",
            "TrainingNoise",
        },
        "what meshes and simulators are made of and hand back": {
            "MeshFeatures",
            "MeshNodes",
            "MeshStatistics",
            "NodeKind",
            "WorldEdges",
        },
    },
    "grounding": {
        "the base of one's own modulations": {"AbstractModulation"},
        "networks and encoders: tests/grounding": {"PhraseEncoder", "Segmenter"},
        "words, examples and scores: tests/grounding": {"MaskCounts", "Referred", "Tokens", "UNetMaps", "Vocabulary"},
    },
    "memory": {
        "models and their features: tests/memory": {"BoltzmannMachine", "HopfieldFeatures", "HopfieldNetwork"},
        "what annealing returns": {"AnnealedPartition"},
    },
    "multitask": {
        "the protocol of a user's problem": {"Tasks"},
        "a rule behind a transformation, what geometry reports: tests/multitask": {"TaskGeometry", "Weighting"},
    },
    "pde": {
        "regressions of the solver that has rows: tests/pde": {"ALS", "SALSA"},
        "bases and trains: tests/pde/test_pde_tensor_train.py": {
            "Basis",
            "CustomBasis",
            "Fourier",
            "FunctionalTensorTrain",
            "Hermite",
            "Polynomials",
            "Splines",
        },
        "what a solver is given and hands back": {"NetworkSolution", "ParabolicPDE", "Solution", "ValueFunction"},
        "two solutions and their interval: tests/pde/test_pde_users.py": {"Extrapolation"},
    },
    "representation": {
        "a step of scikit-learn's pipelines: tests/representation/test_representation_users.py": {"EncoderFeatures"},
        "theory, against closed forms: tests/representation/test_direct_predictor.py": {
            "LinearDynamics",
            "ModeDynamics",
        },
        "augmentations: tests/representation/test_representation.py": {
            "Brightness",
            "Compose",
            "Cutout",
            "Flip",
            "Noise",
            "Rescale",
            "Shift",
            "TimeMask",
            "TimeShift",
        },
    },
    "recovery": {
        "bases of the solvers and dictionaries": {"AbstractDictionary", "AbstractSolver"},
        "dictionaries, weights, priors and schedules of solvers: tests/recovery": {
            "BernoulliGaussian",
            "Certificate",
            "ConvDictionary",
            "ConvWeight",
            "Dense",
            "Operator",
            "OperatorWeight",
            "SupportSchedule",
            "UnrolledCoherence",
            "Weight",
        },
        "scikit-learn's own checks: tests/recovery": {"SparseCoder"},
    },
    "robustness": {
        "bases of the attacks and of what bounds them": {"AbstractAttack", "AbstractBall"},
        "parts of attacks that have rows: tests/robustness/test_robustness_attacks.py": {
            "L2",
            "Linf",
            "SGM",
        },
        "who plays, and the game: tests/robustness/test_robustness_interactions.py": {"PerturbationGame", "Players"},
    },
    "selection": {
        "scikit-learn's own checks: tests/selection": {"KnockoffSelector"},
        "what mixtures are fitted to": {"GaussianMixtureKnockoffs"},
        "statistics: tests/selection/test_selection_statistics.py": {
            "LassoDifference",
            "LassoEntry",
            "RandomForestDifference",
            "RidgeDifference",
        },
        "results and warnings": {"BlindScore", "InvalidKnockoffWarning", "Selection"},
    },
    "training": {
        "bases of one's own rules and schedules": {"AbstractRule", "AbstractSchedule"},
        "blocks and kinds of layers: tests/training/test_training_rules.py": {
            "Chain",
            "Dense",
            "LinearLayer",
            "Normalised",
            "PerExample",
            "Site",
        },
        "rules and supervision of the trainer that has rows: tests/training/test_training_rules.py": {
            "Frozen",
            "Hebbian",
            "Oja",
            "RandomDirection",
            "WeakSupervision",
        },
        "schedules, on the host: tests/training/test_training_schedules.py": {
            "Fixed",
            "NormRule",
            "OfEpoch",
            "Plateau",
            "Staircase",
        },
        "what the compiler knows of the boundary, what the cost model returns, a warning": {
            "Boundary",
            "CostRow",
            "HebbianCollapseWarning",
            "StepCost",
        },
    },
    "uncertainty": {
        "bases of one's own sets": {"AbstractRankedSets", "AbstractSets"},
        "thresholds with an exact promise, counted: tests/uncertainty/test_confidence_exact.py": {
            "SafeCascade",
            "Shield",
        },
        "what they are made and judged with": {"BinCounts", "BinTable", "CoverageLaw", "Ranked", "Strata"},
        "bases of the calibrators and of what they fit": {"AbstractCalibrator", "AbstractScoreMap"},
        "maps that calibrators with rows fit, and their spline": {
            "IdentityMap",
            "InterpolatedMap",
            "LogitMap",
            "NaturalSpline",
            "StepMap",
            "TemperatureMap",
        },
        "a warning": {"CalibrationWarning"},
    },
    "sampling": {
        "the protocol of a user's energy": {"LocalEnergy"},
        "domains: tests/sampling/test_bad_input.py": {"Binary", "Categorical", "Ordinal"},
        "what annealing returns": {"AnnealedImportance"},
        "what Stein's discrepancies and tests take and return": {"MaxSlicedKSD", "SlicedKSD", "Slices", "SteinTest"},
    },
}
# References that papers compare with, whose call is that of a sibling with an example, and predictors that the examples
# of ``Siamese`` and of the pages show.
SHOWN_ELSEWHERE = {"DeepBSDE", "DeepBackward", "MonteCarlo", "TwoLayer", "Linear", "Identity", "MixtureKnockoffs"}
SHOWN_ELSEWHERE |= {"FittedKnockoffGAN", "APS", "LAC", "NaiveSets", "SAPS", "TopK"}
SHOWN_ELSEWHERE |= {"FISTA", "LISTA", "LISTACP", "TiLISTA", "HyperLISTA", "ConvLISTA"}
# Networks that a function makes, and cells of these.
SHOWN_ELSEWHERE |= {"BigGANDiscriminator", "BigGANGenerator", "GaussianEncoder", "NormalisedGRU", "WorldModel"}
SHOWN_ELSEWHERE |= {"ShapedDiscriminator", "ShapedEncoder"}


@functools.cache
def types_of(area):
    """The classes of the rows of an area, and of what is inside them where the area tells, by their names."""
    if area not in CONTRACTS:
        return {}, {}
    rows, parts = rows_of(area)
    return {kind.__name__: kind for kinds in rows.values() for kind in kinds}, {kind.__name__: kind for kind in parts}


@functools.cache
def rows_of(area):
    """The classes that each test of an area's contract is about, and those inside rows where the area tells."""
    found = importlib.import_module(f"test_{area}_contract").TYPES
    return (found, set()) if isinstance(found, dict) else found()


def inside(area):
    """Those that are excused as parts of rows."""
    return set().union(*(names for reason, names in REASONS.get(area, {}).items() if reason.startswith(INSIDE)))


@pytest.mark.parametrize("area", AREAS)
def test_every_public_class_has_a_row_or_a_reason(area):
    module = importlib.import_module(f"laureate.{area}")
    public = {name for name in module.__all__ if inspect.isclass(getattr(module, name))}
    rows, parts = map(set, types_of(area))
    reasons = set().union(*REASONS.get(area, {}).values())
    records = {name for name in public if name.endswith(RECORDS)}
    lacking = sorted(public - rows - reasons - records)
    assert not lacking, f"no row in tests/contract/test_{area}_contract.py and no reason in REASONS for {lacking}"
    stale = sorted(name for name in reasons if name not in public or name in rows)
    assert not stale, f"{stale} of REASONS[{area!r}] have a row or are no longer public"
    unseen = sorted(inside(area) - parts)
    assert not unseen, f"{unseen} of REASONS[{area!r}] are said to be inside rows, and are in none"


@pytest.mark.parametrize("area", sorted(CONTRACTS))
def test_every_method_has_an_example(area):
    public = set(importlib.import_module(f"laureate.{area}").__all__) - SHOWN_ELSEWHERE
    rows, parts = types_of(area)
    texts = {name: kind.__doc__ or "" for name, kind in (rows | parts).items() if name in public}
    assert not [name for name, text in texts.items() if ">>> " not in text]


@pytest.mark.parametrize("area", sorted(CONTRACTS))
def test_every_method_has_a_row_that_is_not_slow(area):
    """So that CI sees a fault in any method; slow are other settings of those."""
    found = {}
    for test, kinds in rows_of(area)[0].items():
        module, _, name = test.rpartition("::")
        tier = tiers(importlib.import_module(module or f"test_{area}_contract"))[name]
        for kind in kinds:
            found.setdefault(kind.__name__, set()).add(tier)
    assert [name for name, tier in found.items() if tier == {SLOW}] == []


def test_every_check_has_a_row_that_is_quick():
    quick = set()
    for path in Path(__file__).parent.glob("test_*.py"):
        if path.stem == "test_checks_find_faults":
            continue
        called = calls(path.stem)
        for test, tier in tiers(importlib.import_module(path.stem)).items():
            quick |= called.get(test.partition("[")[0], set()) if tier == QUICK else set()
    assert [name for name in laureate.testing.__all__ if name.startswith("check_") and name not in quick] == []


def test_tiers_are_those_of_pytest(all_tests):
    """What is computed from marks is what pytest would run."""
    for path in Path(__file__).parent.glob("test_*_contract.py"):
        names = {f"tests/contract/{path.name}::{test}" for test in tiers(importlib.import_module(path.stem))}
        assert names == {test for test in all_tests if test.startswith(f"tests/contract/{path.name}::")}
