"""Parabolic partial differential equations in many dimensions."""

from laureate.pde.als import ALS
from laureate.pde.bases import Basis, CustomBasis, Fourier, Hermite, Polynomials, Splines
from laureate.pde.salsa import SALSA
from laureate.pde.sweep import FitInfo
from laureate.pde.tensor_train import FunctionalTensorTrain

__all__ = [
    "ALS",
    "SALSA",
    "Basis",
    "CustomBasis",
    "FitInfo",
    "Fourier",
    "FunctionalTensorTrain",
    "Hermite",
    "Polynomials",
    "Splines",
]
