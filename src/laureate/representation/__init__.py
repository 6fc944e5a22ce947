"""Representations without labels: DirectPred, BYOL and SimSiam, their references, and monitors against collapse."""

from typing import TYPE_CHECKING, Any

from laureate.representation.dynamics import LinearDynamics, LinearState, ModeDynamics
from laureate.representation.joint_embedding import (
    BarlowTwins,
    JointEmbedding,
    JointInfo,
    JointState,
    SimCLR,
    VICReg,
)
from laureate.representation.monitor import CollapseReport, alignment, collapse_report, effective_rank
from laureate.representation.predictors import (
    DirectCopy,
    DirectPred,
    DirectSet,
    DirectState,
    Identity,
    Linear,
    PredictorInfo,
    TwoLayer,
)
from laureate.representation.probes import Accuracy, accuracy, fine_tune, knn_probe, linear_probe
from laureate.representation.siamese import Siamese, SiameseInfo, SiameseState, apply_to_batch
from laureate.representation.views import (
    Brightness,
    Compose,
    Cutout,
    Flip,
    Noise,
    Rescale,
    Shift,
    TimeMask,
    TimeShift,
    two_views,
)

if TYPE_CHECKING:
    from laureate.representation.estimator import EncoderFeatures

__all__ = [
    "Accuracy",
    "BarlowTwins",
    "Brightness",
    "CollapseReport",
    "Compose",
    "Cutout",
    "DirectCopy",
    "DirectPred",
    "DirectSet",
    "DirectState",
    "EncoderFeatures",
    "Flip",
    "Identity",
    "JointEmbedding",
    "JointInfo",
    "JointState",
    "Linear",
    "LinearDynamics",
    "LinearState",
    "ModeDynamics",
    "Noise",
    "PredictorInfo",
    "Rescale",
    "Shift",
    "Siamese",
    "SiameseInfo",
    "SiameseState",
    "SimCLR",
    "TimeMask",
    "TimeShift",
    "TwoLayer",
    "VICReg",
    "accuracy",
    "alignment",
    "apply_to_batch",
    "collapse_report",
    "effective_rank",
    "fine_tune",
    "knn_probe",
    "linear_probe",
    "two_views",
]


def __getattr__(name: str) -> Any:
    if name == "EncoderFeatures":  # scikit-learn takes a second to import, which training does not need
        from laureate.representation.estimator import EncoderFeatures

        return EncoderFeatures
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
