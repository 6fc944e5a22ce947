"""Gradients of very long unrolled computations: eight estimators behind one signature.

    state = estimator.init(key, theta)
    gradient, state, info = estimator.step(key, theta, state)      # the gradient goes into any Optax optimiser

| estimator | an update every | unbiased | needs derivatives |
|---|---|---|---|
| ``PersistentES`` | K inner steps | yes | no |
| ``NoiseReuseES``, ``GPES`` | K inner steps | yes | no |
| ``AnalyticPES`` | K inner steps | for quadratic losses | through K steps |
| ``FullES`` | episode | yes | no |
| ``TruncatedES`` | K inner steps | no: blind beyond K | no |
| ``TruncatedBackprop`` | K inner steps | no: blind beyond K | through K steps |
| ``RTRL`` | K inner steps | exact | forwards, for every parameter |

And gradients through the choice of one of n options, as functions ``z = gumbel_rao(key, logits)`` without a state:

| function | bias | variance | settings |
|---|---|---|---|
| ``gumbel_rao`` | that of its temperature | falls with ``samples`` | ``temperature``, ``samples`` |
| ``zgr`` | none for linear and quadratic functions of one draw | the limit of ``gumbel_rao`` | none |
| ``st_gumbel_softmax`` | as ``gumbel_rao`` | grows as 1/τ | ``temperature`` |
| ``straight_through`` | none for linear functions | low | none |
| ``rloo`` | none | high; needs values of f alone | ``samples`` |
"""

from laureate.gradients.analytic_pes import AnalyticPES
from laureate.gradients.categorical import (
    conditional_gumbel,
    gumbel_rao,
    st_gumbel_softmax,
    straight_through,
    zgr,
)
from laureate.gradients.categorical_reference import (
    EstimateInfo,
    all_choices,
    estimate,
    exact_gradient,
    rloo,
    rloo_loss,
)
from laureate.gradients.full_es import FullES
from laureate.gradients.gpes import GPES
from laureate.gradients.noise_reuse_es import NoiseReuseES
from laureate.gradients.persistent_es import PersistentES
from laureate.gradients.reports import EstimatorState, Info
from laureate.gradients.rtrl import RTRL
from laureate.gradients.sharding import Sharded
from laureate.gradients.training import History, TrainState, train
from laureate.gradients.truncated_backprop import TruncatedBackprop
from laureate.gradients.truncated_es import TruncatedES
from laureate.gradients.unroll import Unroll, full_unroll_loss

__all__ = [
    "GPES",
    "RTRL",
    "AnalyticPES",
    "EstimateInfo",
    "EstimatorState",
    "FullES",
    "History",
    "Info",
    "NoiseReuseES",
    "PersistentES",
    "Sharded",
    "TrainState",
    "TruncatedBackprop",
    "TruncatedES",
    "Unroll",
    "all_choices",
    "conditional_gumbel",
    "estimate",
    "exact_gradient",
    "full_unroll_loss",
    "gumbel_rao",
    "rloo",
    "rloo_loss",
    "st_gumbel_softmax",
    "straight_through",
    "train",
    "zgr",
]
