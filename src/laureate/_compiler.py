"""Releases of jaxlib that compute wrong numbers, and what to say where one is installed; loads nothing."""

import importlib.metadata

__all__ = ["REMEDY", "complaint"]

# On CPUs, 0.10.2 lets a library compute a matrix product together with the sum over it; from some thousands of numbers
# on what comes out is wrong, without a word (jax-ml/jax#39103). Kernels of a few hundred points were seen to be.
BROKEN = {"0.10.2": "which computes some matrix products under vmap and jit wrongly on CPUs (jax-ml/jax#39103)"}
REMEDY = "pip install 'jax!=0.10.2' 'jaxlib!=0.10.2'"


def complaint(version: str | None = None) -> str:
    """What is wrong with the jaxlib that is installed, or with this version of it; empty where nothing is known.

    >>> complaint("0.10.1")
    ''
    """
    found = _installed() if version is None else version
    return f"jaxlib {found} is installed, {BROKEN[found]}." if found in BROKEN else ""


def _installed() -> str:
    try:
        return importlib.metadata.version("jaxlib")
    except importlib.metadata.PackageNotFoundError:  # built from source, say: nothing is known of it
        return ""
