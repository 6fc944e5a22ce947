"""Variational discriminator bottleneck."""
