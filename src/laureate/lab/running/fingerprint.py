"""What a cell's result depends on, as one hash: its configuration, the definitions it uses, the versions beneath.

The definitions are followed by reading (``definitions``), so nothing is loaded: a fully cached run never starts jax.

What a person sets for jax and XLA counts where it can move numbers, and an accelerator that is there; on a machine with
neither nothing is added. No part of the hash, for they move numbers by rounding at most: the model of the processor,
how many threads a library takes (``OF_WORKERS``), how many workers there are and where. Nor is what only ``jax.config``
says in the calling process, which no worker sees. How a worker loads and calls a trial is told by ``PROTOCOL``.
"""

import hashlib
import importlib.metadata
import importlib.util
import json
import os
import pkgutil
import re
import sys
from collections.abc import Mapping
from functools import cache
from typing import Any

import laureate
from laureate.lab.running.definitions import program

__all__ = ["SETTINGS", "fingerprint", "surroundings", "used_versions", "versions"]

# Raise it when the worker changes how a trial is called or compiled (keys, precision, batching): old cells no longer
# count then.
PROTOCOL = 4
LIBRARIES = ("jax", "jaxlib", "numpy", "scipy", "equinox", "optax", "blackjax", "scikit-learn")
ALWAYS = ("jax", "jaxlib", "numpy")
# The distributions that are not named as their module, of those in daily use here.
DISTRIBUTIONS = {"sklearn": "scikit-learn"}
# What they provide ends when a program is traced.
TYPES = {"jaxtyping", "typing_extensions"}
# Of the variables of jax: where programs are kept, what is told, and what the worker says itself for every trial.
NO_NUMBERS = re.compile("CACHE|LOG|TRACEBACK|DUMP|_ENABLE_X64$|_THREEFRY_PARTITIONABLE$")
PLATFORM = ("JAX_PLATFORMS", "JAX_PLATFORM_NAME")
THREADS = "--xla_cpu_multi_thread_eigen="  # the worker's own, where nobody sets others
# The worker hands these to every trial.
SETTINGS = "laureate.lab.claim:Settings"


def fingerprint(configuration: Mapping[str, Any], references: tuple[str, ...]) -> str:
    """The hash of a configuration (JSON values), of the definitions behind the references, and of the versions."""
    used = program((*references, SETTINGS))
    depends_on: dict[str, Any] = {
        "protocol": PROTOCOL,
        "configuration": configuration,
        "definitions": used.hash,
        "versions": used_versions(used.libraries),
    }
    if found := surroundings():
        depends_on["surroundings"] = found
    return hashlib.sha256(json.dumps(depends_on, sort_keys=True).encode()).hexdigest()


def surroundings() -> dict[str, str]:
    """What is set for the workers and can move their numbers, by name; empty on a CPU where nobody sets anything.

    An accelerator counts where its plugin is installed, unless the CPU is asked for.
    """
    given = {name: value for name, value in os.environ.items() if value}
    found = {name: value for name, value in given.items() if name[:4] == "JAX_" and not NO_NUMBERS.search(name)}
    asked = [found.pop(name) for name in PLATFORM if name in found] or [",".join(_accelerators())]
    platform = asked[0].partition(",")[0].lower()
    flags = [flag for flag in given.get("XLA_FLAGS", "").split() if not flag.startswith(THREADS)]
    more = {"platform": "" if platform == "cpu" else platform, "XLA_FLAGS": " ".join(sorted(flags))}
    return found | {name: value for name, value in more.items() if value}


@cache
def _accelerators() -> tuple[str, ...]:
    """The plugins by which jax finds another device than the CPU; jax itself is not loaded."""
    plugins = importlib.util.find_spec("jax_plugins")
    places = list(plugins.submodule_search_locations or ()) if plugins else []
    tpu = ["tpu"] if importlib.util.find_spec("libtpu") else []
    return tuple(sorted(module.name for module in pkgutil.iter_modules(places))) + tuple(tpu)


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
