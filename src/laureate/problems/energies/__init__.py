"""Unnormalised log densities over discrete variables, with their exact quantities where there are any."""

from laureate.problems.energies.convolutional import ConvolutionalEnergy, base_logdensity, base_logits
from laureate.problems.energies.factorial_hmm import FactorialHMM, random_factorial_hmm
from laureate.problems.energies.ising import (
    DenseIsing,
    IsingLattice,
    lattice_energy_per_edge,
    lattice_log_partition,
    lattice_matrix,
    random_graph_couplings,
)
from laureate.problems.energies.potts import DensePotts, PottsLattice
from laureate.problems.energies.rbm import RestrictedBoltzmannMachine, random_rbm

__all__ = [
    "ConvolutionalEnergy",
    "DenseIsing",
    "DensePotts",
    "FactorialHMM",
    "IsingLattice",
    "PottsLattice",
    "RestrictedBoltzmannMachine",
    "base_logdensity",
    "base_logits",
    "lattice_energy_per_edge",
    "lattice_log_partition",
    "lattice_matrix",
    "random_factorial_hmm",
    "random_graph_couplings",
    "random_rbm",
]
