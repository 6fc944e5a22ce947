"""What computes a race: one module a discipline, loaded in the worker alone."""
