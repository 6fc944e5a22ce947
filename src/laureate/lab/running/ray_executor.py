"""Cells on a Ray cluster: one that starts here by itself, or one that already runs somewhere.

What travels to a node: Laureate's own source and the settings of a worker, by Ray's runtime environment; the files of a
user's problem, with the cell; and where the node has other versions of the libraries beneath, exactly ours, so that a
number means the same wherever it was computed.
"""

import contextlib
import os
import re
import socket
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import laureate
from laureate.lab.cell import Cell, Outcome
from laureate.lab.errors import UserError
from laureate.lab.running.definitions import source_files
from laureate.lab.running.executors import OF_WORKERS, cores, next_cell
from laureate.lab.running.fingerprint import versions
from laureate.lab.running.worker import compute, prepare
from laureate.lab.storing.home import compilation_cache

__all__ = ["RayCluster"]

LOCAL = "ray"
# A cell that was under way when its node or worker was lost starts anew elsewhere, so many times in all.
ATTEMPTS = 3
# Nodes need the code, not the catalogue, which is most of the package.
NOT_SHIPPED = ["__pycache__", "*.pyc", "catalogue/papers.jsonl", "catalogue/index.sqlite"]
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # a cluster of ours reports to nobody
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # Ray's new default, without its warning
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",  # what travels is said here
}

Files = tuple[tuple[str, bytes], ...]


class RayCluster:
    """Computes cells as Ray tasks, a core each.

    on: ``ray`` (starts a cluster on this machine, or joins that of ``RAY_ADDRESS``), ``ray://HOST:PORT`` (a cluster
        elsewhere, by its client port) or ``HOST:PORT`` (from a machine of the cluster).
    workers: cells at a time; by default as many as the cluster has cores, however many that are just now.
    """

    def __init__(self, on: str, workers: int | None, local_cache: Path):
        self._ray = _import_ray()
        address = os.environ.get("RAY_ADDRESS", LOCAL) if on == LOCAL else on
        self._local = address == LOCAL
        self._most = workers
        self._cache = str(local_cache) if self._local else None
        for name, value in QUIET.items():
            os.environ.setdefault(name, value)
        settings = {name: value for name, value in os.environ.items() if name in OF_WORKERS or name[:4] == "JAX_"}
        quiet = {"logging_level": "error", "log_to_driver": False}
        if self._local:
            # Code and libraries are those of this process; results are small.
            with _readable_refusals(on):
                self._ray.init(
                    "local",
                    num_cpus=workers or cores(),
                    include_dashboard=False,
                    object_store_memory=200 * 2**20,
                    runtime_env={"env_vars": settings},
                    **quiet,
                )
            self._libraries: dict[str, Any] = {}
        else:
            _reach(address)
            shipped = {"py_modules": [str(Path(laureate.__file__).parent)], "excludes": NOT_SHIPPED}
            with _readable_refusals(on):
                self._ray.init(address, runtime_env=shipped | {"env_vars": settings}, namespace="laureate", **quiet)
                self._libraries = self._missing_libraries()
        self.workers = self._most or self._cores()

    def _cores(self) -> int:
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def _missing_libraries(self) -> dict[str, Any]:
        """A runtime environment with our versions of the libraries, where the cluster has others or none."""
        try:
            theirs = self._ray.get(self._task(_versions, {}).remote())
        except self._ray.exceptions.RayError:  # not even numpy
            theirs = {}
        pinned = [f"{name}=={version}" for name, version in versions().items() if name not in ("python", "laureate")]
        same = all(theirs.get(name) == version for name, version in versions().items())
        return {} if same else {"pip": {"packages": pinned}}

    def _task(self, function: Any, runtime_env: dict[str, Any]) -> Any:
        # Ray would try a cell that runs out of memory for ever; we count ourselves.
        return self._ray.remote(num_cpus=1, max_retries=0, runtime_env=runtime_env or None)(function)

    def outcomes(self, cells: Iterable[Cell]) -> Iterator[tuple[Cell, Outcome]]:
        """Each cell once, with what became of it."""
        task = self._task(_compute, self._libraries)
        waiting = list(cells)
        running: dict[Any, Cell] = {}
        compiled: set[str] = set()
        tried: Counter[tuple[str, int]] = Counter()
        with _readable_refusals("the cluster"):
            while waiting or running:
                # As many again wait at the cluster, so that one that grows by itself sees what is wanted.
                room = self._most or 2 * self._cores()
                while waiting and len(running) < room:
                    cell = next_cell(waiting, running.values(), compiled) or waiting.pop(0)
                    tried[cell.key] += 1
                    running[task.remote(cell, () if self._local else _files_of(cell), self._cache)] = cell
                finished, _ = self._ray.wait(list(running), timeout=5.0)
                for reference in finished:
                    cell = running.pop(reference)
                    compiled.add(cell.program)
                    outcome = self._result(reference)
                    if outcome is None and tried[cell.key] < ATTEMPTS:
                        waiting.append(cell)
                    else:
                        yield cell, outcome or Outcome(error=f"Its worker or node was lost {ATTEMPTS} times.")

    def _result(self, reference: Any) -> Outcome | None:
        """What became of a task; None where its worker or node was lost."""
        errors = self._ray.exceptions
        try:
            return self._ray.get(reference)
        except errors.RuntimeEnvSetupError as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            raise UserError(
                f"The nodes could not be given our code and libraries: {lines[-1]}",
                "Give the cluster an image with our versions (docs/clusters.md), or virtualenv and a package index.",
            ) from error
        except (errors.RayTaskError, errors.TaskCancelledError) as error:
            return Outcome(error=f"{_first_line(error)}\n\n{error}")
        except errors.RayError:
            return None

    def close(self) -> None:
        """Stop at once what still runs; a cluster of ours goes, another stays."""
        self._ray.shutdown()


def _import_ray() -> Any:
    try:
        import ray
        import ray.exceptions
    except ImportError:
        raise UserError("Ray is not installed.", "pip install 'laureate[ray]'") from None
    return ray


def _reach(address: str) -> None:
    """Ray would wait for minutes for what does not answer."""
    found = re.fullmatch(r"(?:ray://)?\[?([^/\s]+?)\]?:(\d+)", address)
    if found is None:
        raise UserError(f"--on has no {address!r}.", "It takes ray, ray://HOST:PORT or HOST:PORT.")
    try:
        socket.create_connection((found[1], int(found[2])), timeout=10.0).close()
    except (OSError, OverflowError) as error:
        raise UserError(
            f"Nothing answers at {address}: {error}.", "Is the cluster up, and the port right? (10001 for ray://)"
        ) from None


@contextlib.contextmanager
def _readable_refusals(where: str) -> Iterator[None]:
    try:
        yield
    except UserError:
        raise
    except ImportError as error:
        raise UserError(f"{where} needs more of Ray: {error}.", "pip install 'laureate[ray]'") from error
    except (ConnectionError, TimeoutError, RuntimeError, ValueError) as error:
        raise UserError(
            f"Ray at {where}: {_first_line(error)}",
            "What was finished is kept. From outside a cluster use ray://HOST:10001, with the same Ray and Python.",
        ) from error


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def _files_of(cell: Cell) -> Files:
    """The sources of a user's problem: the file and the neighbours it imports, as the fingerprint counts them."""
    package = Path(laureate.__file__).parent
    own = (path for path in source_files((cell.trial, cell.problem_reference)) if not path.is_relative_to(package))
    return tuple((str(path), path.read_bytes()) for path in sorted(own))


# -- on the node -------------------------------------------------------------------------------------------------------


def _versions() -> dict[str, str]:
    return versions()


def _compute(cell: Cell, files: Files, cache_folder: str | None) -> Outcome:
    _prepare_once(cache_folder)
    if files:
        folders = _unpack(files)
        cell = replace(
            cell, trial=_moved(cell.trial, folders), problem_reference=_moved(cell.problem_reference, folders)
        )
    return compute(cell)


@cache
def _prepare_once(cache_folder: str | None) -> None:
    """Compiled programs go to the run's own cache where the node is this machine, else to the node's."""
    folder = Path(cache_folder) if cache_folder else compilation_cache()
    folder.mkdir(parents=True, exist_ok=True)
    prepare(str(folder))


@cache
def _unpack(files: Files) -> dict[str, str]:
    """Write the files, each as far from the others as it was; old folder -> new."""
    base = Path(tempfile.mkdtemp(prefix="laureate-"))
    above = os.path.commonpath([os.path.dirname(path) for path, _ in files])
    folders = {}
    for path, data in files:
        old = os.path.dirname(path)
        new = base / os.path.relpath(old, above)
        new.mkdir(parents=True, exist_ok=True)
        (new / os.path.basename(path)).write_bytes(data)
        folders[old] = str(new)
    return folders


def _moved(reference: str, folders: dict[str, str]) -> str:
    folder, name = os.path.split(reference)
    return os.path.join(folders[folder], name) if folder in folders else reference
