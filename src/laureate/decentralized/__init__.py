"""Training among peers, with no server: a sparse network, different data on every node.

    gossip = Gossip(ring(8))                                # the network, and how to average over it
    optimiser = DeTAG(gossip, learning_rate=0.1, num_rounds=4)  # Optax's form; leaves have a leading axis of nodes
    state = optimiser.init(params)
    updates, state = optimiser.update(grads, state, params)

| optimiser | vectors a round | exact on different data | rounds grow with the gap 1 − λ |
|---|---|---|---|
| ``DeTAG`` | 2 | yes | as 1/√(1 − λ) |
| ``GradientTracking`` | 2 | yes | as 1/(1 − λ)² and worse |
| ``D2`` | 1 | yes, if λ_n > −1/3 | as 1/(1 − λ) and worse |
| ``DPSGD`` | 1 | no: off by α/(1 − λ) | as 1/(1 − λ)² |
| ``ChocoSGD`` | 1, compressed | no | as D-PSGD, and by the compression |
| ``DeFacto`` | ½ | yes | with the diameter |
| ``AllReduceSGD`` | 2 (n−1)/n a node, to all | yes | not at all |
"""

from laureate.decentralized.all_reduce import AllReduceSGD
from laureate.decentralized.choco import ChocoSGD, ChocoState
from laureate.decentralized.compression import ScaledSign, TopK
from laureate.decentralized.d2 import D2, D2State
from laureate.decentralized.defacto import DeFacto, DeFactoState, exact_factors
from laureate.decentralized.detag import DeTAG, DeTAGState
from laureate.decentralized.dpsgd import DPSGD
from laureate.decentralized.gossip import Gossip
from laureate.decentralized.gradient_tracking import GradientTracking, TrackingState
from laureate.decentralized.launch import LaunchError, launch
from laureate.decentralized.mixing import (
    constant_weights,
    metropolis_weights,
    optimal_weights,
    spectral_gap,
    spectrum_ends,
)
from laureate.decentralized.network import Network
from laureate.decentralized.optimiser import DecentralizedOptimiser, Info
from laureate.decentralized.processes import connect
from laureate.decentralized.topologies import (
    Topology,
    complete,
    exponential,
    from_graph,
    hypercube,
    random,
    ring,
    star,
    torus,
)
from laureate.decentralized.traffic import count_bytes
from laureate.decentralized.training import History, TrainState, place, stack, train

__all__ = [
    "D2",
    "DPSGD",
    "AllReduceSGD",
    "ChocoSGD",
    "ChocoState",
    "D2State",
    "DeFacto",
    "DeFactoState",
    "DeTAG",
    "DeTAGState",
    "DecentralizedOptimiser",
    "Gossip",
    "GradientTracking",
    "History",
    "Info",
    "LaunchError",
    "Network",
    "ScaledSign",
    "TopK",
    "Topology",
    "TrackingState",
    "TrainState",
    "complete",
    "connect",
    "constant_weights",
    "count_bytes",
    "exact_factors",
    "exponential",
    "from_graph",
    "hypercube",
    "launch",
    "metropolis_weights",
    "optimal_weights",
    "place",
    "random",
    "ring",
    "spectral_gap",
    "spectrum_ends",
    "stack",
    "star",
    "torus",
    "train",
]
