"""Sliced kernelized Stein discrepancy."""
