"""What methods are tried on: unrolls, energies, equations, data sets."""
