"""ALISTA: analytic weights are as good as learned weights in LISTA."""
