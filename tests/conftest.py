"""Strict by default: an accidental promotion of rank or type in a method is an error here."""

import gc
import json
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from laureate._compiler import light_options
from mutants.coverage_map import COMPUTES
from program_budget import ProgramBudget
from recording import MODES, Recorder, Recording, recorder_of, records

# A suite started in the background by a script ignores Ctrl-C, and so would every run that a test starts and stops.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)

# One thread a process: two pytest workers share two cores, and oversubscription is slower than either.
# Most of a test's time is compiling, so the compiler is told to be quick (COMPILATIONS in the lab's worker), and not to
# cut a program into parts for threads that it does not have.
FLAGS = {**light_options(0), "xla_cpu_multi_thread_eigen": False, "xla_cpu_parallel_codegen_split_count": 1}
FLAGS |= json.loads(os.environ.get("MORE_XLA_FLAGS", "{}"))  # of scripts/records.py
os.environ.setdefault("XLA_FLAGS", " ".join(f"--{name}={value}" for name, value in FLAGS.items()))
os.environ.setdefault("PJRT_NPROC", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # see OF_WORKERS in the lab's executors
# Programs that draw random numbers compile about four times faster so; most of a test's time is compiling.
os.environ.setdefault("JAX_THREEFRY_PARTITIONABLE", "0")
# Where in the sources an operation stands is of use in dumps and profiles of programs alone; errors know it anyway.
os.environ.setdefault("JAX_TRACEBACK_IN_LOCATIONS_LIMIT", "0")
# What one worker has compiled, or an earlier run of the suite, is compiled for all: a repeated run takes half the time.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / ".pytest_cache" / "programs"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")

# Examples that compile for about half a second or more; each shows a method that has tests of its own, so that
# `make test AREA=...` loses nothing but the proof that the example runs: `make test-all` and `make docs` run them.
SLOW_EXAMPLES = frozenset((Path(__file__).parent / "slow_examples.txt").read_text(encoding="utf-8").split())


# Tests of about half a second or more that no planted fault needs alone (scripts/thorough.py chooses them): a developer
# has an answer in eight minutes, and nothing lands without them.
THOROUGH = frozenset((Path(__file__).parent / "thorough.txt").read_text(encoding="utf-8").splitlines())

SOURCES = Path(__file__).parents[1] / "src"
COLLECTED: pytest.StashKey[dict[str, bool]] = pytest.StashKey()  # the tests there are, and which are quick


class Examples:
    """Which files are read for examples."""

    def __init__(self, config: pytest.Config):
        places = [config.rootpath / argument for argument in config.args]
        self.whole = "not slow" in config.option.markexpr and SOURCES in places

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(self, file_path):
        """Only helpers among the tests: looking through all objects of every file takes seconds a worker.

        Nor, where `make test` runs everything, sources that compute: their examples compile programs of their own for
        what tests look at anyway. `make test AREA=...`, `make test-all` and `make docs` run them.
        """
        found = yield
        if not found:
            return found
        unread = file_path.name.startswith("test_") or (
            self.whole and SOURCES in file_path.parents and COMPUTES.search(file_path.read_text(encoding="utf-8"))
        )
        return [one for one in found if not unread or type(one).__name__ != "DoctestModule"]


# Helpers are read for examples, but these share a name.
collect_ignore_glob = ["conftest.py", "*/conftest.py"]


def pytest_addoption(parser):
    parser.addoption(
        "--seconds", metavar="FILE", help="write the CPU seconds and programs of every test to a JSON file"
    )
    help = "write anew what the selected tests record; soften: keep the digits that this compiler confirms"
    parser.addoption("--record", nargs="?", const="write", default="compare", choices=MODES, help=help)


def pytest_configure(config):
    # Registered as plugins of their own, for hooks of this file are not called for the examples in src.
    config.pluginmanager.register(ProgramBudget(config), "program-budget")
    config.pluginmanager.register(Recording(), "recording")
    if config.option.record != "compare" and getattr(config.option, "dist", "no") not in ("no", "loadfile"):
        raise pytest.UsageError("A file of records is written by one process: add -n 0, or --dist loadfile.")
    examples = Examples(config)
    config.pluginmanager.register(examples, "examples")
    starts_workers = getattr(config.option, "numprocesses", 0) and not hasattr(config, "workerinput")
    if examples.whole and starts_workers and not sys.dont_write_bytecode:
        _rewrite_once(config)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item, nextitem):
    """A file of tests leaves the package as it was: a stand-in that stays would fail tests of other files, at times."""
    result = yield
    if nextitem is None or nextitem.path != item.path:
        left = sorted(_stand_ins())
        assert not left, f"{item.path.name} leaves stand-ins of its own behind: {', '.join(left)}. Undo them last."
    return result


def _stand_ins() -> Iterator[str]:
    """Names of the package whose value was made by a test."""
    tests = str(Path(__file__).parent)
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "laureate":
            for attribute, value in list(vars(module).items()):
                code = getattr(value, "__code__", None)
                if code is not None and code.co_filename.startswith(tests):
                    yield f"{name}.{attribute}"


def pytest_collection_finish():
    # Tracing makes objects by the million and hardly a cycle: looking for those was a tenth of the time.
    gc.collect()
    gc.freeze()
    gc.set_threshold(200_000, 20, 100)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    _without_constants()
    for item in items:
        if item.name in SLOW_EXAMPLES:
            item.add_marker(pytest.mark.slow)
        elif item.nodeid in THOROUGH:
            item.add_marker(pytest.mark.thorough)
    slower = ("slow", "thorough")
    config.stash[COLLECTED] = {item.nodeid: not any(map(item.get_closest_marker, slower)) for item in items}
    if config.option.record != "compare":
        _leave_out(config, items, [item for item in items if not records(item)])
    if os.environ.get("PAPER") or os.environ.get("AREA"):  # make test PAPER=<id> or AREA=<area>
        _leave_out_others(config, items)


def _leave_out_others(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Rows of other papers and areas, in files that have rows for all."""
    import belongs

    chosen, area = belongs.asked()
    rows_of_all, papers, left = belongs.with_rows_of_all(), set(belongs.paper_ids()), []
    for item in items:
        file, _, name = item.nodeid.partition("::")
        words = set(re.split(r"[^A-Za-z0-9-]+", name))
        others = file.startswith("tests/papers/test_") and papers & words and chosen not in words
        if others or (file in rows_of_all and not belongs.is_of({*words, *re.split(r"\W+", name)}, area)):
            left.append(item)
    _leave_out(config, items, left)


def _leave_out(config: pytest.Config, items: list[pytest.Item], left: list[pytest.Item]) -> None:
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item not in set(left)]


@pytest.fixture
def recorded(request) -> Recorder:
    """Holds what a test hands over beside what was recorded of it."""
    return recorder_of(request.node)


@pytest.fixture
def all_tests(request) -> set[str]:
    """The names of all tests there are, whatever is selected."""
    if not request.config.pluginmanager.get_plugin("examples").whole:
        pytest.skip("only a run of everything knows all tests")
    return set(request.config.stash[COLLECTED])


@pytest.fixture
def quick_tests(request, all_tests) -> set[str]:
    """Those of `make test`."""
    return {name for name in all_tests if request.config.stash[COLLECTED][name]}


def _without_constants() -> None:
    """Let Hypothesis not parse every file of ours for constants to try.

    That takes each worker four seconds, and what is tried would depend on which modules it has loaded.
    """
    providers = sys.modules.get("hypothesis.internal.conjecture.providers")
    if hasattr(providers, "_get_local_constants") and hasattr(providers, "_local_constants"):
        providers._get_local_constants = lambda: providers._local_constants  # type: ignore[union-attr]


def _rewrite_once(config: pytest.Config) -> None:
    """Rewrite the asserts of all tests before workers start, each of which would spend eight seconds on that."""
    try:
        from _pytest.assertion import rewrite

        state = config.stash[rewrite.assertstate_key]
        for path in Path(__file__).parent.rglob("test_*.py"):
            folder = rewrite.get_cache_dir(path)
            known = folder / (path.stem + rewrite.PYC_TAIL)
            if rewrite._read_pyc(path, known) is None and rewrite.try_makedirs(folder):
                made = rewrite._rewrite_test(path, config)
                rewrite._write_pyc(state, made[1], made[0], known)
    except (ImportError, AttributeError, KeyError, TypeError):  # no part of pytest's interface: only longer without it
        return
