"""Speed, kept: the gate on records that no machine measured, and rows by the real way on work that takes no time."""

import json
import time
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from laureate import papers
from laureate.cli import cli
from laureate.lab.errors import UserError
from laureate.lab.running import bench, timing
from laureate.lab.running.bench import latest_rows, slow_down
from laureate.lab.running.comparison import Comparison, Side
from laureate.lab.running.timing import REPEATS, _summary, compare, measure
from laureate.papers import comparisons_of, paper_ids

MACHINE = "an abacus, 2 cores"


def row(ratio=2.0, spread=0.05, ours=0.5, **changes):
    """A record whose intervals reach so far to both sides."""
    made = {"id": "pes", "work": "an update", "ours_s": ours, "peer": "evosax", "peer_s": ours * ratio, "ratio": ratio}
    made |= {"low": ratio * (1 - spread), "high": ratio * (1 + spread), "peer_version": "0.3", "package": "evosax"}
    made |= {"ours_low": ours * (1 - spread), "ours_high": ours * (1 + spread), "note": "", "repeats": 15}
    made |= {"ours_compile_s": 1.0, "peer_compile_s": 1.0, "ours_mb": 3.0, "peer_mb": None}
    return made | changes


@pytest.mark.parametrize(
    ("new", "old", "slow"),
    [
        (row(), None, False),
        (row(), row(), False),
        (row(3.0), row(), False),  # faster
        (row(1.9), row(), False),  # the intervals overlap
        (row(1.7), row(), False),  # they do not, but by less than two processes differ
        (row(1.5), row(), True),
        (row(1.5, spread=0.4), row(), False),  # too noisy to say
        (row(1.5, ours=0.2), row(ours=0.5), True),  # a faster machine-moment does not hide it
        (row(2.0, ours=5.0), row(ours=0.5), False),  # a busy machine slows both sides
        (row(1.5, peer_version="0.4"), row(), False),  # the peer became faster, not ours slower
        (row(2.0, ours=0.8, peer_version="0.4"), row(ours=0.5), True),
        (row(ratio=1.0, ours=0.8) | {"ratio": None}, row(ours=0.5), True),  # alone, by our own seconds
        (row(ratio=1.0, ours=0.52) | {"ratio": None}, row(ours=0.5), False),
    ],
)
def test_the_gate(new, old, slow):
    assert bool(slow_down(new, old)) == slow


@pytest.fixture
def measured(store, monkeypatch):
    """``laureate bench`` with what is about to be measured in a list."""
    coming: list[dict] = []
    asked = lambda methods: (each for method, _ in methods for each in coming if each["id"] == method)  # noqa: E731
    monkeypatch.setattr(bench, "bench_rows", asked)
    monkeypatch.setattr("laureate.lab.running.environment.environment", lambda: {"machine": MACHINE, "versions": {}})
    return coming


def call(*words):
    return cli.main(["bench", *words], standalone_mode=False)


def test_results_are_kept_and_a_slower_one_is_told_and_not_kept(store, measured, capsys):
    measured[:] = [row(2.0)]
    assert call("pes", "--gate") == 0, "nothing to compare with"
    measured[:] = [row(1.5)]
    assert call("pes", "--gate") == 3
    said = capsys.readouterr().err
    assert "slower than last time: 1.5 times as fast as evosax [1.42, 1.58], before 2 [1.9, 2.1]" in said
    assert [each["ratio"] for each in store.benchmarks("pes")] == [2.0]
    assert call("pes", "--gate") == 3, "the next is held to the same"
    assert call("pes") == 0
    capsys.readouterr()
    assert call("pes", "--gate", "--json") == 0, "without the gate it was kept"
    (told,) = json.loads(capsys.readouterr().out)
    assert {"id", "work", "ours_s", "peer", "peer_s", "ratio", "low", "high"} <= told.keys()


def test_another_machine_is_no_measure(store, measured):
    store.add_benchmark(row(9.0), {"machine": "another"})
    store.add_benchmark(row(9.0, work="other work"), {"machine": MACHINE})
    measured[:] = [row(2.0)]
    assert call("pes", "--gate") == 0


def test_the_last_is_what_counts(store, measured):
    for ratio in (9.0, 2.0):
        store.add_benchmark(row(ratio), {"machine": MACHINE})
    assert [each["ratio"] for each in latest_rows(store.benchmarks())] == [2.0]
    measured[:] = [row(2.0)]
    assert call("--gate") == 0


def test_a_row_is_held_to_the_last_of_the_same_work_peer_method_and_machine():
    """Each of these on its own makes another row."""
    here = {"environment": {"machine": MACHINE}}
    same = row(2.0) | here
    others = [same | {"id": "detag"}, same | {"work": "more"}, same | {"peer": "another"}]
    others.append(same | {"environment": {"machine": "another"}})
    assert bench.last_row(others, row(1.0), MACHINE) is None
    older = same | {"ratio": 3.0}
    assert bench.last_row([older, same, *others], row(1.0), MACHINE) == same
    assert latest_rows([older, *others[:3], same]) == [same, *others[:3]]


def test_a_missing_peer_is_told_with_the_remedy(measured, capsys):
    measured[:] = [row() | {"ratio": None, "peer_s": None, "low": None, "high": None}]
    assert call("pes") == 0
    assert "evosax: not installed; pip install evosax" in capsys.readouterr().out


def test_an_unknown_method(measured):
    with pytest.raises(UserError, match="Did you mean pes"):
        call("pess")


def test_every_paper_that_runs_has_a_comparison():
    assert all((Path(papers.__file__).parent / name.replace("-", "_") / "speed.py").is_file() for name in paper_ids())


def test_a_benchmark_that_fails_is_one_line(monkeypatch):
    monkeypatch.setattr(bench, "MEASURE", "raise SystemExit('no such thing')")
    with pytest.raises(UserError, match=r"The benchmark of pes failed: no such thing"):
        list(bench.bench_rows([("pes", "module:COMPARISONS")]))


def test_rows_come_from_another_process(monkeypatch):
    code = "import json, os, sys; print(json.dumps({'words': sys.argv[1:], 'threads': os.environ['OMP_NUM_THREADS']}))"
    monkeypatch.setattr(bench, "MEASURE", f"print('noise'); {code}")
    rows = list(bench.bench_rows([("pes", comparisons_of("pes"))]))
    assert rows == [{"words": ["pes", "laureate.papers.pes.speed:COMPARISONS"], "threads": "1"}]


def work(seconds, calls, name):
    def run():
        calls.append(name)
        time.sleep(seconds)
        return np.zeros(1)

    return run


def test_a_measured_row_is_in_turn_and_in_the_told_unit():
    calls: list[str] = []
    sides = [lambda: Side(work(0.001, calls, "ours"), 0.5, "Half."), lambda: Side(work(0.004, calls, "theirs"))]
    found = measure("pes", Comparison("sleep", "a sleeper", "", *sides))
    assert found["note"] == "Half."
    assert found["repeats"] == 15
    assert calls[:4] == ["ours", "ours", "theirs", "theirs"], "compiled, and memory looked at, before the clock"
    pairs = list(zip(calls[4::2], calls[5::2], strict=True))
    assert all(set(pair) == {"ours", "theirs"} for pair in pairs)
    assert len(set(pairs)) == 2, "who begins changes"
    low, ratio, high = (found[name] or 0.0 for name in ("low", "ratio", "high"))
    assert 0.0 < low <= ratio <= high
    assert found["ours_low"] <= found["ours_high"]
    # Sleeping may take longer than asked, and never shorter.
    assert found["ours_s"] >= 0.0005
    assert (found["peer_s"] or 0.0) >= 0.004
    json.dumps(found, allow_nan=False)


@pytest.mark.parametrize("times", [(1.0, 1.0), (0.5, 8.0)])
def test_every_number_of_a_row_is_what_the_clock_read(times):
    seconds = np.random.default_rng(0).lognormal(0.0, 0.3, (REPEATS, 2)) * [1.0, 3.0]
    ours, peer = seconds.T * np.array(times)[:, None]
    found = _summary(seconds, *times)
    assert (found["ours_s"], found["peer_s"]) == pytest.approx((np.median(ours), np.median(peer)))
    assert found["ratio"] == pytest.approx(stats.gmean(peer / ours))
    # The bootstrap of a mean of logarithms, against its normal approximation.
    for low, high, logs in (("ours_low", "ours_high", np.log(ours)), ("low", "high", np.log(peer / ours))):
        error = logs.std() / np.sqrt(REPEATS)
        ends = np.log([found[low], found[high]])
        assert ends == pytest.approx(logs.mean() + 1.96 * error * np.array([-1, 1]), abs=0.3 * error)
    alone = _summary(seconds[:, :1], times[0])
    assert alone == {name: found[name] for name in ("ours_s", "ours_low", "ours_high")}


@pytest.mark.parametrize("peer", [0.5, 7.0, None])
def test_compiling_is_what_the_first_call_takes_beyond_a_later_one(peer, monkeypatch):
    """Of each side by its own calls, whatever they are multiplied by; not less than nothing. ``peer``: his first."""
    firsts = iter([(5.0, 12.5), (peer, None)])
    seconds = np.random.default_rng(0).lognormal(0.0, 0.1, (REPEATS, 2)) * [1.0, 3.0]
    monkeypatch.setattr(timing, "_first_calls", lambda side: next(firsts))
    monkeypatch.setattr(timing, "_interleaved", lambda works, repeats: seconds[:, : len(works)])
    sides = [lambda: Side(lambda: 0, 0.25, "Ours."), lambda: Side(lambda: 0, 2.0, "Theirs.")]
    found = measure("pes", Comparison("work", "them", "numpy" if peer else "no-such-package", *sides))
    assert found["ours_compile_s"] == pytest.approx(5.0 - np.median(seconds[:, 0]))
    assert found["ours_s"] == pytest.approx(0.25 * np.median(seconds[:, 0]))
    assert (found["ours_mb"], found["repeats"]) == (12.5, REPEATS)
    assert (found["id"], found["work"], found["peer"]) == ("pes", "work", "them")
    if peer:
        assert found.get("peer_compile_s") == pytest.approx(max(0.0, peer - np.median(seconds[:, 1])))
        assert found.get("peer_mb", 0) is None
        assert found["peer_s"] == pytest.approx(2.0 * np.median(seconds[:, 1]))
        assert (found["package"], found["peer_version"], found["note"]) == ("numpy", np.__version__, "Ours. Theirs.")
    else:
        assert (found["peer_s"], found["peer_version"], found["note"]) == (None, None, "Ours.")


def test_without_the_peer_ours_is_measured_alone():
    def theirs():
        raise AssertionError("the peer must not be touched")

    calls: list[str] = []
    found = measure("pes", Comparison("w", "p", "no-such-package", lambda: Side(work(0.0, calls, "ours")), theirs))
    assert (found["ratio"], found["peer_s"], found["peer_version"]) == (None, None, None)
    assert found["ours_s"] > 0


def test_the_older_name_for_both_sides():
    found = compare(lambda: 0, lambda: 0, 3)
    assert set(found) >= {"ours_s", "peer_s", "ratio", "low", "high"}
