"""Conditional generative modelling by learning the latent space."""
