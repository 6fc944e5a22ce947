"""Mutants of our own sources: made from the syntax tree (``operators``), tried on the tests that touch them."""
