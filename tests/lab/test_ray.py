"""Cells on a Ray cluster: the same numbers as in process, and a node that is lost costs nothing but time."""

import importlib.util
import os
import socket
import tempfile
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import toys
from laureate.lab.cell import Outcome
from laureate.lab.claim import Arm, Claim, Scale
from laureate.lab.errors import UserError
from laureate.lab.records import run_observations
from laureate.lab.running import ray_executor
from laureate.lab.running.executors import make_executor
from laureate.lab.running.plan import plan
from laureate.lab.running.run import run_claims

needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="Ray is not installed: pip install 'laureate[ray]'"
)
# Ray leaves sockets and files to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


class Watcher:
    """A progress that calls back after every cell."""

    def __init__(self, call):
        self.call, self.workers = call, 0

    def start(self, to_compute, cached, workers):
        self.workers = workers

    def finished(self, cell, outcome):
        self.call(cell, outcome)

    def waiting(self, cells):
        pass

    def stop(self):
        pass


def run(store, made=None, **options):
    return run_claims(store, toys.selections(made or toys.paper()), **{"scale": "smoke"} | options)


def deadly():
    """Three arms, of which the second kills its worker."""
    arms = (Arm("ours", fails=0), Arm("theirs", fails=1), Arm("third", fails=0))
    claim = Claim("better", "s", metric="loss", method="ours", baseline="theirs", role="extension")
    scales = {"smoke": Scale(seeds=2, block=2)}
    return toys.paper(toys.experiment(trial="deadly", arms=arms, claims=(claim,), over_seeds="loop", scales=scales))


@pytest.mark.slow
@needs_ray
def test_a_local_cluster_computes_the_same_bits_and_streams_them(store):
    alone = run_observations(store, run(store, workers=1).run)["toy", "toy"]
    kept = []
    watcher = Watcher(lambda cell, outcome: kept.append(store.counts()["cells"]))
    clustered = run(store, on="ray", workers=2, fresh=True, progress=watcher)
    assert clustered.cells == {"total": 6, "computed": 6, "cached": 0, "failed": 0}
    assert kept == [7, 8, 9, 10, 11, 12], "a cell is in the store as soon as it is finished"
    assert watcher.workers == 2
    same = run_observations(store, clustered.run)["toy", "toy"]
    for arm, metrics in alone.items():
        for metric, values in metrics.items():
            np.testing.assert_array_equal(values, same[arm][metric])
    assert store.run(clustered.run)["environment"]["machine"].startswith("a Ray cluster of 2 cores, from ")
    assert run(store, on="ray").cells["computed"] == 0, "what is cached needs no cluster"


@pytest.mark.parametrize(
    ("on", "told"),
    [
        ("ray://nowhere.invalid:10001", "Nothing answers at ray://nowhere.invalid:10001: .*Is the cluster up"),
        ("slurm", "--on has no 'slurm'. It takes ray, ray://HOST:PORT or HOST:PORT."),
        ("ray://", "--on has no 'ray://'"),
        ("127.0.0.1:99999", "Nothing answers at 127.0.0.1:99999"),
    ],
)
@needs_ray
def test_a_cluster_that_is_not_there(store, on, told):
    with pytest.raises(UserError, match=told):
        run(store, on=on)
    assert store.counts()["runs"] == 0


@needs_ray
def test_a_closed_port(store):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with pytest.raises(UserError, match=f"Nothing answers at 127.0.0.1:{port}: .*refused"):
        run(store, on=f"127.0.0.1:{port}")


def test_without_ray(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(UserError, match=r"Ray is not installed. pip install 'laureate\[ray\]'"):
        make_executor(None, tmp_path, "ray")


class RayError(Exception):
    """In the place of Ray's own, of which all its others are."""


class Lossy:
    """In Ray's place: computes at once, and loses the cells of each arm as many times as said."""

    others = ("RayTaskError", "TaskCancelledError", "RuntimeEnvSetupError")
    exceptions = SimpleNamespace(RayError=RayError, **{name: type(name, (RayError,), {}) for name in others})

    def __init__(self, losses):
        self.losses, self.begun = losses, Counter()

    def init(self, *given, **more):
        pass

    def remote(self, **options):
        return lambda function: SimpleNamespace(remote=self.begin)

    def begin(self, cell, files, cache):
        self.begun[cell.arm, cell.start] += 1
        return cell.arm, cell.start, self.begun[cell.arm, cell.start]

    def wait(self, references, timeout):
        return references[:1], references[1:]

    def get(self, reference):
        if reference[2] <= self.losses[reference[0]]:
            raise RayError("its node is gone")
        return Outcome(seconds=float(reference[2]))


def test_a_cell_starts_anew_until_its_third_loss(monkeypatch, tmp_path):
    for name, value in ray_executor.QUIET.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    lossy = Lossy({"ours": 0, "theirs": 2, "third": 3})
    monkeypatch.setattr(ray_executor, "_import_ray", lambda: lossy)
    cluster = ray_executor.RayCluster("ray", 2, tmp_path)
    found = [
        (cell.arm, out.seconds, out.error)
        for cell, out in cluster.outcomes(plan(toys.selections(toys.paper()), "smoke"))
    ]
    told = "Its worker or node was lost 3 times."
    assert sorted(found) == [("ours", 1.0, "")] * 2 + [("theirs", 3.0, "")] * 2 + [("third", 0.0, told)] * 2
    assert sorted(lossy.begun.values()) == [1, 1, 3, 3, 3, 3]


@pytest.mark.parametrize("on", ["ray", "ray://there:10001"])
def test_what_is_set_here_for_jax_and_for_workers_is_set_there(monkeypatch, tmp_path, on):
    """On a cluster of ours and elsewhere; nothing else of this process travels."""
    for name in [name for name in os.environ if name[:4] == "JAX_" or name in ray_executor.OF_WORKERS]:
        monkeypatch.delenv(name)
    given = {"JAX_DEFAULT_MATMUL_PRECISION": "highest", "JAX_PLATFORMS": "cpu", "OMP_NUM_THREADS": "3"}
    for name, value in (given | ray_executor.QUIET | {"SECRET": "x", "AJAX_": "y"}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    lossy, begun = Lossy({}), []
    monkeypatch.setattr(
        lossy, "init", lambda address, **more: begun.append((address, more["runtime_env"])), raising=False
    )
    monkeypatch.setattr(ray_executor, "_import_ray", lambda: lossy)
    monkeypatch.setattr(ray_executor, "_reach", lambda address: None)
    monkeypatch.setattr(ray_executor.RayCluster, "_missing_libraries", lambda self: {})
    ray_executor.RayCluster(on, 2, tmp_path)
    ((address, environment),) = begun
    assert address == ("local" if on == "ray" else on)
    assert environment["env_vars"] == given


def test_a_node_reads_a_users_files_as_they_came(monkeypatch, tmp_path):
    own, node = tmp_path / "own", tmp_path / "node"
    for folder in (own, node):
        folder.mkdir()
    files = {
        "beside.py": "OFFSET = 3.0\n",
        "helpers/__init__.py": "",
        "helpers/maths.py": "from helpers.deep.more import ONE\n",
        "helpers/deep/__init__.py": "",
        "helpers/deep/more.py": "ONE = 1.0\n",
        "mine.py": "from beside import OFFSET\nfrom helpers.maths import ONE\n\nclass Hill:\n    x = OFFSET + ONE\n",
    }
    for name, text in files.items():
        (own / name).parent.mkdir(parents=True, exist_ok=True)
        (own / name).write_text(text)
    cell, *_ = plan(toys.selections(toys.paper()), "smoke", problem=f"{own / 'mine.py'}:Hill")
    monkeypatch.setattr(tempfile, "tempdir", str(node))
    monkeypatch.setattr(ray_executor, "_prepare_once", lambda folder: None)
    computed = []
    monkeypatch.setattr(ray_executor, "compute", computed.append)
    for shipped in (ray_executor._files_of(cell), ()):
        ray_executor._compute(cell, shipped, None)
    there, same = computed
    for before, after in ((cell.trial, there.trial), (cell.problem_reference, there.problem_reference)):
        assert os.path.basename(after) == os.path.basename(before)
        assert after.startswith(f"{node}{os.sep}")
    came = Path(there.problem_reference).parent
    there = [path for path in came.rglob("*") if path.is_file()]
    assert {path.relative_to(came).as_posix(): path.read_text() for path in there} == files
    assert same is cell  # a local cluster ships nothing


@pytest.fixture
def two_nodes():
    """A head that computes nothing and two nodes of a core each: (cluster, nodes, its address from outside)."""
    from ray.cluster_utils import Cluster

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    small = {"object_store_memory": 100 * 2**20, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "ray_client_server_port": port} | small)
    nodes = [cluster.add_node(num_cpus=1, object_store_memory=100 * 2**20) for _ in range(2)]
    cluster.wait_for_nodes()
    yield cluster, nodes, f"ray://127.0.0.1:{port}"
    cluster.shutdown()


@needs_ray
@pytest.mark.slow
def test_a_lost_node_costs_no_cell(store, two_nodes, monkeypatch, tmp_path):
    from laureate.lab.running.ray_executor import RayCluster

    cluster, nodes, _ = two_nodes
    scale = Scale(seeds=5, block=1, folder=str(tmp_path))
    (tmp_path / "held").write_text(nodes[1].node_id)  # until it is killed; the other waits until this one computes
    made = toys.paper(toys.experiment(trial="announced", over_seeds="loop", scales={"smoke": scale}))
    finished, lost = [], []

    def kill_one_that_computes(cell, outcome):
        finished.append(cell.key)
        if len(finished) == 1:
            assert list(tmp_path.glob(f"{nodes[1].node_id}-*"))  # the task itself says that it runs there
            cluster.remove_node(nodes[1], allow_graceful=False)

    def result(self, reference, real=RayCluster._result):
        outcome = real(self, reference)
        lost.extend([reference] if outcome is None else [])
        return outcome

    monkeypatch.setattr(RayCluster, "_result", result)
    clustered = run(store, made, on=cluster.address, progress=Watcher(kill_one_that_computes))
    assert clustered.cells == {"total": 15, "computed": 15, "cached": 0, "failed": 0}
    assert lost, "the node was computing when it was lost"
    assert len(set(finished)) == len(finished) == 15, "each cell once"
    alone = run_observations(store, run(store, made, workers=1, fresh=True, seeds=2).run)["toy", "toy"]
    same = run_observations(store, clustered.run)["toy", "toy"]
    for arm in alone:
        np.testing.assert_array_equal(alone[arm]["loss"], same[arm]["loss"][:2])


@needs_ray
@pytest.mark.slow
def test_a_cell_that_kills_its_worker_is_found_and_a_users_files_travel(store, two_nodes, tmp_path):
    cluster, _, outside = two_nodes
    summary = run(store, deadly(), on=cluster.address)
    assert summary.cells["failed"] == 1
    assert summary.failures == [
        {"cell": "toy/toy · theirs · seeds 0–1", "error": "Its worker or node was lost 3 times."}
    ]
    # From outside, by Ray's client. A file that is read where it lies, and not as it came, says -100.
    (tmp_path / "beside.py").write_text(f"import os\nOFFSET = -100.0 if {str(tmp_path)!r} in __file__ else 3.0\n")
    (tmp_path / "mine.py").write_text("from beside import OFFSET\n\nclass Hill:\n    offset = OFFSET\n")
    own = run(store, on=outside, problem=f"{tmp_path / 'mine.py'}:Hill")
    assert own.cells == {"total": 6, "computed": 6, "cached": 0, "failed": 0}
    means = [metrics["loss"].mean() for metrics in run_observations(store, own.run)["toy", "toy"].values()]
    assert min(means) > 2.0
