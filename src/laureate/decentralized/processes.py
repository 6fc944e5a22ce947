"""One process per node, over real sockets."""

import os
import sys

import jax
import numpy as np
from jax.sharding import Mesh

from laureate.decentralized.launch import COORDINATOR, NODE, NODES

__all__ = ["connect"]


def _end_at_once_on_error() -> None:
    """A node whose script raises ends there and then, so that whoever started it can tell.

    Otherwise jax's farewell at the end of a process waits for the other nodes, and they for this one, for a minute.
    """
    before = sys.excepthook

    def report(*error) -> None:
        before(*error)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)

    sys.excepthook = report


def connect(coordinator: str | None = None, num_nodes: int | None = None, node: int | None = None) -> Mesh:
    """Join the other nodes; call it first, before anything else of jax. Returns the mesh for ``train(mesh=...)``.

    Processes talk by gloo over TCP. Without arguments the settings are those that ``laureate decentralized launch``
    gives in the environment: ``LAUREATE_COORDINATOR`` (host:port of node 0), ``LAUREATE_NODES`` and ``LAUREATE_NODE``.

    coordinator: host:port of node 0, which all must reach. num_nodes: of processes. node: this one's number, from 0.
    """
    given = (coordinator, num_nodes, node)
    found = tuple(
        os.environ.get(name) if value is None else value
        for name, value in zip((COORDINATOR, NODES, NODE), given, strict=True)
    )
    if None in found:
        missing = [name for name, value in zip((COORDINATOR, NODES, NODE), found, strict=True) if value is None]
        raise ValueError(
            f"connect needs {', '.join(missing)} in the environment. Start the script with "
            "`laureate decentralized launch -n 4 SCRIPT`, which also says how to start it on several machines."
        )
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(str(found[0]), int(found[1] or 0), int(found[2] or 0))
    _end_at_once_on_error()
    return Mesh(np.asarray(jax.devices()), ("nodes",))
