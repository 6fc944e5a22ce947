"""Sliced kernelized Stein discrepancy (Gong, Li & Hernández-Lobato, ICLR 2021)."""
