"""Quant-Noise: what the paper says, the trials that re-measure it, speed beside peers."""
