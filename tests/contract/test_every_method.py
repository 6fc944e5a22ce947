"""Every public name of every area is a method with a row in this folder, or has a reason for none."""

import importlib
import inspect
from pathlib import Path

import pytest

from laureate.papers import all_papers

AREAS = sorted({paper.area for paper in all_papers()})
# The methods with a row: ``TYPES`` of tests/contract/test_<area>_contract.py.
CONTRACTS = {
    path.stem.removeprefix("test_").removesuffix("_contract")
    for path in Path(__file__).parent.glob("test_*_contract.py")
}
ROWS = {area: importlib.import_module(f"test_{area}_contract").TYPES for area in sorted(CONTRACTS)}
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
        "scores and training of supernets: tests/architecture/test_architecture_use.py": {
            "SupernetScore",
            "SupernetTraining",
        },
        "warnings": {"ResolutionWarning", "TieWarning"},
    },
    "compression": {
        "the base of the quantisers, which have rows": {"Quantizer"},
        "stages over quantisers that have rows: tests/compression/test_compression_iterative.py": {
            "IterativeQuantization"
        },
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
        "networks, laws, cells, inside rows: tests/control": {
            "ActorCritic",
            "Categorical",
            "EncodedActorCritic",
            "Gaussian",
            "SimHash",
        },
        "what is learned from, and how networks are made": {"Layers", "PPOBatch", "Rollout", "Transitions"},
        "rows in tests/contract/test_control_cycle.py": {
            "CycleGAN",
            "DynamicsCycle",
            "PooledCritic",
        },
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
        "rows of their own, with closed forms: tests/control/test_dreamer_exact.py": {
            "DiagonalNormal",
            "DreamerTraining",
            "DreamerV2",
            "OneHot",
            "RSSM",
            "Replay",
            "TruncatedNormal",
        },
        "networks of a world model, and what it learns from": {
            "DreamerMemory",
            "Imagined",
            "NormalisedGRU",
            "PixelDecoder",
            "PixelEncoder",
            "Sequences",
            "WorldModel",
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
        "networks, sets of latents and what is found, inside rows: tests/generative": {
            "Box",
            "AdversarialLoss",
            "BigGANDiscriminator",
            "BigGANGenerator",
            "EachExample",
            "FittedAdversarial",
            "FittedConditional",
            "GaussianEncoder",
            "InferredLatents",
            "Perceptron",
            "ProjectionHead",
            "SelfAttention",
            "ShapedDiscriminator",
            "ShapedEncoder",
            "Sphere",
            "StandingStatistics",
            "TruncationCurve",
        },
        "warnings": {"BottleneckCollapsedWarning", "ScaleWarning"},
    },
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
        "inside rows, and tests/graphs/test_mesh_exact.py": {
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
        "a trainer over a kernel that has a row: tests/memory": {"ContrastiveDivergence"},
        "what annealing returns": {"AnnealedPartition"},
    },
    "multitask": {
        "the protocol of a user's problem": {"Tasks"},
        "a rule behind a transformation, what geometry reports: tests/multitask": {"TaskGeometry", "Weighting"},
    },
    "pde": {
        "regressions, inside rows of the solver": {"ALS", "SALSA"},
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
        "dictionaries, weights, priors and schedules, inside rows: tests/recovery": {
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
        "inside rows, and tests/robustness/test_robustness_attacks.py": {"L2", "Linf", "SGM"},
        "who plays, and the game: tests/robustness/test_robustness_interactions.py": {"PerturbationGame", "Players"},
    },
    "selection": {
        "scikit-learn's own checks: tests/selection": {"KnockoffSelector"},
        "trained for seconds, in tests/selection/test_selection_gan.py": {"KnockoffGAN"},
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
        "rules and supervision, inside rows of the trainer": {
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
        "estimators on the host: tests/uncertainty": {"APS", "LAC", "NaiveSets", "RAPS", "SAPS", "ScoreSets", "TopK"},
        "the same, of confidences and thresholds": {"PACConfidence", "SafeCascade", "Shield"},
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
        "a trainer over kernels that have rows: tests/sampling/test_sampling_quantities.py": {
            "PersistentContrastiveDivergence"
        },
        "what annealing returns": {"AnnealedImportance"},
        "what Stein's discrepancies and tests take and return": {"MaxSlicedKSD", "SlicedKSD", "Slices", "SteinTest"},
    },
}
# References that papers compare with, whose call is that of a sibling with an example, and predictors that the examples
# of ``Siamese`` and of the pages show.
SHOWN_ELSEWHERE = {"DeepBSDE", "DeepBackward", "MonteCarlo", "TwoLayer", "Linear", "Identity", "MixtureKnockoffs"}
SHOWN_ELSEWHERE |= {"FittedKnockoffGAN"}
SHOWN_ELSEWHERE |= {"FISTA", "LISTA", "LISTACP", "TiLISTA", "HyperLISTA", "ConvLISTA"}


@pytest.mark.parametrize("area", AREAS)
def test_every_public_class_has_a_row_or_a_reason(area):
    module = importlib.import_module(f"laureate.{area}")
    public = {name for name in module.__all__ if inspect.isclass(getattr(module, name))}
    rows = {kind.__name__ for kind in ROWS.get(area, set())}
    reasons = set().union(*REASONS.get(area, {}).values())
    records = {name for name in public if name.endswith(RECORDS)}
    lacking = sorted(public - rows - reasons - records)
    assert not lacking, f"no row in tests/contract/test_{area}_contract.py and no reason in REASONS for {lacking}"
    stale = sorted(name for name in reasons if name not in public or name in rows)
    assert not stale, f"{stale} of REASONS[{area!r}] have a row or are no longer public"


@pytest.mark.parametrize("area", sorted(ROWS))
def test_every_method_has_an_example(area):
    kinds = {kind.__name__: kind.__doc__ or "" for kind in ROWS[area]}
    assert not [name for name, text in kinds.items() if ">>> " not in text and name not in SHOWN_ELSEWHERE]
