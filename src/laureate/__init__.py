"""Laureate: the methods of celebrated machine-learning papers, and their claims re-measured on your machine.

The areas are imported by name (``from laureate.gradients import PersistentES``); nothing is loaded here, so that
``laureate --help`` answers at once.
"""

__version__ = "0.1.0"
