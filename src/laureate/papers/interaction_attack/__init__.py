"""Interaction within adversarial perturbations, and attacks that reduce it."""
