"""What a cell's result depends on, as one hash: its configuration, the definitions it uses, the versions beneath.

The definitions are followed by reading (``definitions``), so nothing is loaded: a fully cached run never starts jax.
"""

import hashlib
import importlib.metadata
import json
import sys
from collections.abc import Mapping
from functools import cache
from typing import Any

import laureate
from laureate.lab.running.definitions import program

__all__ = ["SETTINGS", "fingerprint", "used_versions", "versions"]

# Raise it when the worker changes how a trial is called or compiled (keys, precision, batching): old cells no longer
# count then.
PROTOCOL = 4
LIBRARIES = ("jax", "jaxlib", "numpy", "scipy", "equinox", "optax", "blackjax", "scikit-learn")
ALWAYS = ("jax", "jaxlib", "numpy")
# The distributions that are not named as their module, of those in daily use here.
DISTRIBUTIONS = {"sklearn": "scikit-learn"}
# What they provide ends when a program is traced.
TYPES = {"jaxtyping", "typing_extensions"}
# The worker hands these to every trial.
SETTINGS = "laureate.lab.claim:Settings"


def fingerprint(configuration: Mapping[str, Any], references: tuple[str, ...]) -> str:
    """The hash of a configuration (JSON values), of the definitions behind the references, and of the versions."""
    used = program((*references, SETTINGS))
    depends_on = {
        "protocol": PROTOCOL,
        "configuration": configuration,
        "definitions": used.hash,
        "versions": used_versions(used.libraries),
    }
    return hashlib.sha256(json.dumps(depends_on, sort_keys=True).encode()).hexdigest()


@cache
def versions() -> dict[str, str]:
    """Versions that a reader of a result wants to know."""
    return {"laureate": laureate.__version__} | _installed_versions(LIBRARIES)


@cache
def _installed_versions(distributions: tuple[str, ...]) -> dict[str, str]:
    """The version of Python, without its last part, and of those of the distributions that are installed."""
    python = {"python": f"{sys.version_info.major}.{sys.version_info.minor}"}
    return python | {name: version for name in distributions if (version := _version(name))}


@cache
def used_versions(libraries: frozenset[str]) -> dict[str, str]:
    """Versions that can move the numbers of code that uses these libraries (the roots of their modules)."""
    names = set(ALWAYS)
    for root in libraries - sys.stdlib_module_names - TYPES:
        name = DISTRIBUTIONS.get(root, root)
        names |= {name} if _version(name) else _distributions().get(root, set())
    return _installed_versions(tuple(sorted(names)))


@cache
def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return ""


@cache
def _distributions() -> dict[str, set[str]]:
    """The distributions that provide a module; slow, and asked for only where the names differ."""
    return {root: set(names) for root, names in importlib.metadata.packages_distributions().items()}
