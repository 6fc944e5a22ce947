"""The same quadratics in one process and over four, one a node, which talk by gloo along the ring's edges."""

import json
import sys
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from laureate.decentralized import connect, launch, train
from laureate.lab.claim import Settings
from laureate.papers.detag.trials import network, optimiser, phase_rounds
from laureate.problems.peers import Quadratics

__all__ = ["distances", "real_processes"]

NODES, DIMENSION, KAPPA, NOISE, BLOCK = 4, 5, 0.1, 0.1, 20
ON_A_NODE = "from laureate.papers.detag.trials_processes import on_a_node; on_a_node()"
QUICK = "--xla_backend_optimization_level=1 --xla_cpu_multi_thread_eigen=false"


def real_processes(key: Array, arm: Settings, problem: None, scale: Settings) -> dict[str, Array]:
    """log10 of the squared distance of DeTAG, and by how much D-PSGD's is larger; all nodes here or one a process."""
    seed = int(jax.random.key_data(key)[-1])
    # A cluster takes seconds to start: one computes a whole block of seeds.
    first = seed // BLOCK * BLOCK
    errors = _cluster if arm.processes > 1 else _here
    detag, rival = errors(first, scale.rounds, scale.rate)[:, seed - first]
    log = np.log10(np.clip([detag, rival], 1e-10, 1e4))
    return {"log_error": jnp.asarray(log[0]), "advantage": jnp.asarray(log[1] - log[0])}


def distances(first: int, rounds: int, rate: float, mesh: jax.sharding.Mesh | None) -> np.ndarray:
    """[2, BLOCK]: the nodes' mean squared distance to the optimum at the end, DeTAG's and D-PSGD's, a seed each.

    All seeds are columns of one problem: a round then is one message a neighbour, as in any training.
    """
    problem = Quadratics(NODES, DIMENSION)

    @jax.jit
    def draw(seeds):
        data = jax.vmap(lambda seed: problem.sample(jax.random.key(seed)), out_axes=1)(seeds)  # [nodes, seeds, …]
        return data, jax.vmap(problem.optimum, in_axes=1)(data)

    data, best = jax.tree.map(np.asarray, draw(np.arange(first, first + BLOCK, dtype=np.uint32)))

    def gradient(key, x, data):
        return jnp.einsum("spq,sq->sp", data[0], x) - data[1] + NOISE * jax.random.normal(key, x.shape)

    def record(x):
        return jnp.mean(jnp.sum((x - best) ** 2, axis=-1), axis=0)

    def run(name, data):
        method = optimiser(name, network(NODES, KAPPA), rate, int(phase_rounds(NODES, (KAPPA,))[0]))
        start = np.zeros((NODES, BLOCK, DIMENSION), np.float32)
        _, history = train(
            jax.random.key(first), method, gradient, start, rounds, data=data, record=record, every=rounds, mesh=mesh
        )
        return history.recorded[-1]

    both = lambda data: [run(name, data) for name in ("detag", "d-psgd")]  # noqa: E731
    if mesh is None:  # one program, compiled quickly; a mesh is given its data a node each, outside
        both = jax.jit(both, compiler_options={"xla_backend_optimization_level": 1})
    return np.stack([np.asarray(errors) for errors in both(data)])


def on_a_node() -> None:
    """What each process runs: join the others, compute; node 0 writes the result."""
    first, rounds, rate = json.loads(sys.argv[1])
    mesh = connect()
    found = distances(first, rounds, rate, mesh)
    if jax.process_index() == 0:
        print(json.dumps(found.tolist()))


@lru_cache(maxsize=8)
def _cluster(first: int, rounds: int, rate: float) -> np.ndarray:
    command = [sys.executable, "-c", ON_A_NODE, json.dumps([first, rounds, rate])]
    settings = {"JAX_THREEFRY_PARTITIONABLE": "0", "JAX_ENABLE_X64": "0", "JAX_PLATFORMS": "cpu", "XLA_FLAGS": QUICK}
    outputs = launch(command, NODES, environment=settings, timeout=600)
    return np.asarray(json.loads(outputs[0].splitlines()[-1]))  # gloo greets before


@lru_cache(maxsize=8)
def _here(first: int, rounds: int, rate: float) -> np.ndarray:
    return distances(first, rounds, rate, None)
