"""How many programs the tests of each folder and of each paper compile, and their CPU seconds; a paper has a budget.

Nearly all the time of this suite is compiling, and programs can be counted exactly where seconds depend on what else
the machine does: more programs than the budget fail ``make check``, more seconds are only marked. A program taken from
the compilation cache counts as well, so that a second run counts as the first. Single operations outside any ``jit``
(an addition, a reshape) are shown in a column of their own and have no budget, for which test meets them first in its
process is chance; but each takes 15 ms of compiling, and a folder with hundreds of them wants a ``jit``.

Which tests those are is written by ``pytest --seconds FILE``: for every test its CPU seconds, programs and operations,
as JSON, the dearest first. What tests share (a fixture, a program) is counted with the first of them.
"""

import json
import os
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rooms import AREAS, PACKAGE

# What a paper may compile in `make check`, and an area with all its methods, one or two more or less by which worker
# runs what: the largest of the papers compiled 24 programs before one arm of each of its trials was recorded, up to 12
# more, and the fullest areas, sampling and gradients, 233 and 211 since faults devised blind led to tests of options
# together. To be lowered as tests learn to share programs.
PAPER_PROGRAMS, AREA_PROGRAMS, SECONDS = 38, 260, 15.0

# A compiled program takes about four megabytes for as long as jax remembers it, and a single operation a tenth of that:
# at the end of a module with more than so many operations' worth in the process, all are forgotten, and within a module
# that has three times as many. Forgetting takes a second or two, and common operations are compiled or read again;
# without it a worker grew to six gigabytes, and one ended in a segmentation fault of XLA among a thousand slow trials.
HELD, WORTH = 5000, 10

# Lowered in one context of the compiler, see ``_share_contexts``.
PROGRAMS_A_CONTEXT = 200

PAPERS = {path.parent.name for path in PACKAGE.glob("papers/*/about.py")}
# Loops outside jit are whole programs, and so is the lab worker's function ``block``, which numpy has as well.
WHOLE = {"block", "cond", "fori_loop", "map", "scan", "switch", "while_loop"}
COMPILED = "/jax/core/compile/backend_compile_duration"


def group_of(nodeid: str, parameters: dict[str, Any]) -> str:
    """The paper, else the area or folder, that a test belongs to.

    >>> group_of("tests/papers/pes/test_pes_trials.py::test_x", {})
    'papers/pes'
    >>> group_of("src/laureate/gradients/rtrl.py::laureate.gradients.rtrl.RTRL", {})
    'gradients'
    >>> group_of("tests/papers/test_every_trial.py::test_x[pes/unbiased-pes]", {"name": "pes/unbiased"})
    'papers/pes'
    >>> group_of("tests/contract/test_gradients_contract.py::test_contract[pes]", {})
    'gradients'
    """
    parts = nodeid.partition("::")[0].split("/")
    if parts[0] == "src":
        return parts[2].removesuffix(".py") if len(parts) > 2 else "src"
    if parts[:2] == ["tests", "papers"]:
        named = (str(value).partition("/")[0].replace("-", "_") for value in parameters.values())
        paper = parts[2] if len(parts) > 3 else next((name for name in named if name in PAPERS), "")
        return f"papers/{paper}" if paper else "papers"
    if parts[:2] == ["tests", "contract"]:
        return parts[2].removeprefix("test_").removesuffix(".py").removesuffix("_contract")
    return parts[1].removesuffix(".py") if len(parts) > 1 else parts[0]


class ProgramBudget:
    """Counts in every process that runs tests, adds up in the one that reports, and fails what exceeds a budget."""

    def __init__(self, config: pytest.Config):
        self.config = config
        self.programs: Counter[str] = Counter()
        self.operations: Counter[str] = Counter()
        self.seconds: Counter[str] = Counter()
        self.tests: dict[str, tuple[float, int, int]] = {}
        self.current = ""
        self.held = 0
        self.single: frozenset[str] | None = None

    def compiled(self, event: str, duration: float, **more: Any) -> None:
        """Called by jax for every program that is compiled or taken from the cache."""
        if event == COMPILED and self.single is not None:
            name = str(more.get("fun_name", "")).removeprefix("jit(").removesuffix(")").removeprefix("jit_")
            single = name.lstrip("_") in self.single
            self.held += 1 if single else WORTH
            (self.operations if single else self.programs)[self.current] += 1

    def listen(self) -> None:
        """From the first test on that finds jax loaded; tests that do not need it do not wait for it."""
        if self.single is None and "jax" in sys.modules:
            import jax

            operations = {name for room in (jax.numpy, jax.lax, jax.random, jax.numpy.linalg) for name in dir(room)}
            self.single = frozenset(name.lstrip("_") for name in operations) - WHOLE
            jax.monitoring.register_event_duration_secs_listener(self.compiled)
            _share_contexts()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item):
        """One test with its fixtures."""
        self.listen()
        parameters = getattr(getattr(item, "callspec", None), "params", {})
        group = self.current = group_of(item.nodeid, parameters)
        started, programs, operations = _cpu_seconds(), self.programs[group], self.operations[group]
        try:
            return (yield)
        finally:
            took = _cpu_seconds() - started
            self.seconds[group] += took
            more = self.programs[group] - programs, self.operations[group] - operations
            self.tests[item.nodeid] = (round(took, 3), *more)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_teardown(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        """After the fixtures of a module, its programs."""
        most = HELD if nextitem is None or nextitem.path != item.path else 3 * HELD
        if self.held > most and nextitem is not None:
            import jax

            jax.clear_caches()
            self.held = 0

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """A worker hands over what it counted; the process that reports judges the sum."""
        output = getattr(self.config, "workeroutput", None)  # xdist's, in a worker
        if output is not None:
            output["program_budget"] = [dict(self.programs), dict(self.operations), dict(self.seconds)]
            output["tests"] = self.tests
            return
        self.write_seconds()
        if self.exceeded() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: Any) -> None:
        """A worker is done."""
        counted = getattr(node, "workeroutput", {}).get("program_budget", ({}, {}, {}))
        for total, more in zip((self.programs, self.operations, self.seconds), counted, strict=True):
            total.update(more)
        self.tests.update(getattr(node, "workeroutput", {}).get("tests", {}))

    def write_seconds(self) -> None:
        """What each test took, where that was asked for."""
        file = getattr(self.config.option, "seconds", None)
        if file:
            dearest = sorted(self.tests.items(), key=lambda entry: -entry[1][0])
            named = {
                name: dict(zip(("seconds", "programs", "operations"), test, strict=True)) for name, test in dearest
            }
            Path(file).write_text(json.dumps(named, indent=1) + "\n", encoding="utf-8")

    def exceeded(self) -> dict[str, tuple[int, int]]:
        """Papers and areas that compile more than they may, with both numbers.

        The slow tests have no budget, nor have those that mutants meet: there all is forgotten between two files.
        """
        if "not slow" not in self.config.option.markexpr or os.environ.get("PROGRAM_BUDGET") == "none":
            return {}
        budgets = {f"papers/{paper}": PAPER_PROGRAMS for paper in PAPERS} | dict.fromkeys(AREAS, AREA_PROGRAMS)
        return {name: (self.programs[name], most) for name, most in budgets.items() if self.programs[name] > most}

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """A line a paper, area and folder, those that compute most first."""
        if not sum(self.programs.values()):
            return
        terminalreporter.section("compiled programs and CPU seconds")
        for name, seconds in sorted(self.seconds.items(), key=lambda entry: -entry[1]):
            if seconds >= 1 or self.programs[name]:
                long = f"   above the {SECONDS:.0f} s that a paper should take"
                note = long if name.startswith("papers/") and seconds > SECONDS else ""
                terminalreporter.write_line(_line(name, self.programs[name], self.operations[name], seconds) + note)
        sums = (sum(counted.values()) for counted in (self.programs, self.operations, self.seconds))
        terminalreporter.write_line(_line("all", *sums))
        for name, (found, most) in self.exceeded().items():
            terminalreporter.write_line(
                f"FAILED {name} compiles {found} programs; it may {most}. Let tests share a program, or"
                " mark those of which a sibling runs `slow`.",
                red=True,
            )


def _share_contexts() -> None:
    """Let jax lower many programs in one context of its compiler.

    It makes a new one for each, with all dialects: a quarter of the time that a single operation takes to compile. What
    a context has seen it keeps, constants too, so that it is renewed from time to time; and each thread has its own.
    """
    try:
        from jax._src.interpreters import mlir

        make = mlir.make_ir_context
    except (ImportError, AttributeError):  # no part of jax's interface: without it the tests only take longer
        return
    kept = threading.local()

    def context() -> Any:
        uses = getattr(kept, "uses", 0)
        if uses % PROGRAMS_A_CONTEXT == 0:
            kept.context = make()
        kept.uses = uses + 1
        return kept.context

    mlir.make_ir_context = context


def _line(name: str, programs: int, operations: int, seconds: float) -> str:
    return f"{name:36} {programs:5d} programs {operations:5d} operations {seconds:7.1f} s"


def _cpu_seconds() -> float:
    """Of this process and the children it has waited for."""
    return time.process_time() + sum(os.times()[2:4])
