"""Learned simulators on meshes: accuracy, features, noise, long rollouts, run time, other meshes."""
