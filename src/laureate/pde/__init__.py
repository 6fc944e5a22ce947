"""Parabolic partial differential equations in many dimensions."""

from laureate.pde.als import ALS
from laureate.pde.bases import Basis, CustomBasis, Fourier, Hermite, Polynomials, Splines
from laureate.pde.deep_backward import DeepBackward
from laureate.pde.deep_bsde import DeepBSDE
from laureate.pde.extrapolation import Extrapolation, extrapolate
from laureate.pde.monte_carlo import MonteCarlo, MonteCarloResult
from laureate.pde.networks import NetworkSolution
from laureate.pde.problem import ParabolicPDE, simulate
from laureate.pde.salsa import SALSA
from laureate.pde.solution import Interval, Solution, ValueFunction
from laureate.pde.solver import TensorTrainSolver
from laureate.pde.steps import SolverState, StepInfo
from laureate.pde.sweep import FitInfo
from laureate.pde.tensor_train import FunctionalTensorTrain

__all__ = [
    "ALS",
    "SALSA",
    "Basis",
    "CustomBasis",
    "DeepBSDE",
    "DeepBackward",
    "Extrapolation",
    "FitInfo",
    "Fourier",
    "FunctionalTensorTrain",
    "Hermite",
    "Interval",
    "MonteCarlo",
    "MonteCarloResult",
    "NetworkSolution",
    "ParabolicPDE",
    "Polynomials",
    "Solution",
    "SolverState",
    "Splines",
    "StepInfo",
    "TensorTrainSolver",
    "ValueFunction",
    "extrapolate",
    "simulate",
]
