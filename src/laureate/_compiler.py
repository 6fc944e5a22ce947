"""Releases of jaxlib that compute wrong numbers, and options that only some know; loads nothing."""

import importlib.metadata

__all__ = ["REMEDY", "complaint", "light_options"]

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


def light_options(level: int, version: str | None = None) -> dict[str, bool | int]:
    """Options of a compiler that shall be quick: a third of the time to compile, a tenth more to run.

    level: of optimisation, 1, or 0 for programs that hardly run at all.

    >>> light_options(1, "0.10.1")
    {'xla_backend_optimization_level': 1, 'xla_cpu_use_fusion_emitters': False}
    >>> light_options(0, "0.12.0.1")
    {'xla_backend_optimization_level': 0}
    """
    found = _installed() if version is None else version
    release = tuple(int(part) for part in found.split(".")[:3] if part.isdigit())
    # From 0.11.1 on there is no other way any more, and an unknown option is an error.
    return {"xla_backend_optimization_level": level} | (
        {"xla_cpu_use_fusion_emitters": False} if () < release < (0, 11, 1) else {}
    )


def _installed() -> str:
    try:
        return importlib.metadata.version("jaxlib")
    except importlib.metadata.PackageNotFoundError:  # built from source, say: nothing is known of it
        return ""
