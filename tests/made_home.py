"""A home that was made up for records: three papers, two dozen entries of a catalogue, and runs of every kind.

Nothing in it was computed by a method or read from a clock: numbers come from whole numbers alone, so that every
machine has the same. Its words are hostile here and there on purpose.
"""

import contextlib
import dataclasses
import importlib
import json
import sqlite3
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "lab"))
import plain_words
import toys
from laureate.catalogue import Entry
from laureate.lab import ledger
from laureate.lab.cell import Cell, Outcome
from laureate.lab.claim import Arm, Claim, Curve, Experiment, Film, Guard, Paper, Scale
from laureate.lab.judging.results import ClaimId, ClaimResult, Measured
from laureate.lab.reference import line_of
from laureate.lab.running.run import Summary, run_claims
from laureate.lab.storing.home import store_path
from laureate.lab.storing.store import Store

HOSTILE = "<b onclick='x'>bold & brave</b>"
IDS = ["idle", "known", "toy"]
ARMS = (
    Arm("ours", "our way", shift=0.0, scan="random"), Arm("theirs", "their way", shift=2.0, scan="fixed"),
    Arm("third", shift=4.0, scan="fixed"), Arm("still", "nothing clever", shift=2.05, scan="none"),
)  # fmt: skip
SCALES = {
    "smoke": Scale(seeds=10, block=5, cost=3.0, draws=8, rates=(0.1, 0.2, 0.5)),
    "desk": Scale(seeds=12, block=6, cost=150.0, draws=80, rates=(0.1, 0.2, 0.5)),
    "full": Scale(seeds=20, block=10, cost=90_000.0, draws=8000, rates=(0.1, 0.2, 0.5)),
}


def claim(name: str, statement: str, metric: str = "loss", method: str = "ours", **facts: Any) -> Claim:
    return Claim(name, statement, metric, method, **{"role": "stand-in"} | facts)


WALK = (
    claim("lower", "our walk has a lower loss than theirs", baseline="theirs", margin=0.5, trivial="still",
          role="headline", unit="nats", source="Table 1, <row 2>", reported="1.9 nats (± 0.1)"),
    claim("faster", "cGML gains more than theirs", "gain", baseline="theirs", better="higher", role="headline"),
    claim("third-lower", "a third has a lower loss than ours", method="third", baseline="ours"),
    claim("share", "our loss is lower by a tenth of theirs", baseline="theirs", margin=0.1, relative=True),
    claim("alike", "theirs is as good as nothing clever", method="theirs", baseline="still", kind="equal", margin=0.6,
          role="extension", source="asked by a reviewer"),
    claim("unlike", "ours is as good as nothing clever", baseline="still", kind="equal", margin=0.3, role="extension"),
    claim("falls", "the curve falls with steps", "curve", kind="trend", against="steps", better="lower"),
    claim("rises", "the curve rises with steps", "curve", kind="trend", against="steps", better="higher"),
    claim("slope", "the curve's slope lies between −1 and 1", "curve", kind="trend", against="steps", at_least=-1.0,
          at_most=1.0, role="extension"),
    claim("small", "our loss is at most 0.8", kind="bound", at_most=0.8, trivial="still", unit="nats"),
    claim("between", "the third's loss lies between 3.9 and 4.1", method="third", kind="bound", at_least=3.9,
          at_most=4.1, role="extension", unit=f"decades of {HOSTILE}"),
    claim("large", "their loss is at least 5", method="theirs", kind="bound", at_least=5.0),
    claim("close-call", "ours gains more than the third by 3", "gain", baseline="third", better="higher", margin=3.0),
    claim("clipped", "ours reaches a higher score", "score", baseline="theirs", better="higher", role="extension"),
    claim("tuned", "ours is lower at its best rate", "tuned_loss", baseline="theirs", role="extension"),
    claim("weighty", "ours is lower, weighed", "weighed_loss", baseline="theirs", role="extension"),
    claim("exact", "the sum is what it must be", "sum", kind="bound", at_least=2.0, at_most=4.0, role="check"),
    claim("exact-too", "the sum is the same for both", "sum", baseline="theirs", kind="equal", margin=0.1,
          role="check"),
    claim("which", "how do all of them compare?", kind="question", role="extension", unit="nats"),
    claim("course", "how do all of them go down?", "curve", kind="question", role="extension"),
)  # fmt: skip
CLOCKED = (
    claim("quick", "ours takes less time", "seconds", baseline="theirs", unit="s", role="headline"),
    claim("never", "ours does not end", "endless", baseline="theirs"),
)
GUARDS = (
    Guard("limit", "score", high=10.0), Guard("grid", "rate", grid="rates", claims=("tuned",)),
    Guard("effective", "ess", low=5.0, claims=("weighty",)),
)  # fmt: skip


def experiments() -> tuple[Experiment, ...]:
    walk = toys.experiment(
        "walk", arms=ARMS, scales=SCALES, claims=WALK, guards=GUARDS, title=f"A walk of {HOSTILE}",
        curves=(
            Curve("curve", "steps", "Loss against steps", "steps taken", "loss", log_x=True),
            Curve("wide", "steps", "A wide range & a band", log_y=True),
        ),
        deviations=("It is a toy.", "Steps are <few> & short."),
    )  # fmt: skip
    clocked = toys.experiment(
        "clocked", arms=ARMS[:2], scales={"desk": Scale(seeds=5, block=1, cost=40.0)}, claims=CLOCKED, accepts=(),
        title="By the clock", over_seeds="loop", over="data sets", curves=(), deviations=(),
    )  # fmt: skip
    return walk, clocked


def paper_of(paper_id: str) -> Paper:
    """One of the three: ``toy`` is measured, of ``known`` there is a reference, of ``idle`` nothing."""
    toy = Paper(
        id="toy", title=f"On Toys: {HOSTILE}", authors=("Ada O'Neil", "Bea Ünal", "Cy Wu", "Di <Xu>"), venue="ICML",
        year=2021, award="Outstanding Paper", url="https://example.org/toy?a=1&b=2", area="toys",
        problem="Walks get lost & take long.", idea="Ours looks back.\nThat is all of it.",
        equation="x_t = Σ_{i≤t} ε_i² / (2σ²N)\np(x) ∝ exp(−√x) · (a + b)/c",
        example="from toys import walk\n\nwalk(3 < 4)",
        meaning="Take ours where walks are long.", experiments=experiments(),
    )  # fmt: skip
    if paper_id == "toy":
        film = Film(
            "walk", f"Walks that {HOSTILE} take", "toys:slow", "walk", ("ours", "theirs"), f"Two walks {HOSTILE}", 0.2
        )
        return dataclasses.replace(toy, films=(film,))
    mine = toys.experiment(
        arms=ARMS[:3],
        claims=tuple(dataclasses.replace(one, role=role) for one, role in zip(
            (toys.BETTER, toys.WORSE, toys.QUESTION), ("headline", "check", "extension"), strict=True)),
    )  # fmt: skip
    facts = {"id": paper_id, "experiments": (mine,), "award": "", "url": "", "meaning": "", "area": f"{paper_id}-area"}
    return dataclasses.replace(toy, **facts | {"title": f"{paper_id.capitalize()} things", "authors": ("Ed Y",)})


def papers() -> list[Paper]:
    return [paper_of(paper_id) for paper_id in IDS]


def panels(paper: Paper) -> dict[str, list[dict[str, Any]]]:
    """What was recorded of its film."""
    way = [[100 * frame + 50, 10 * frame + 50] for frame in range(5)]
    strokes = [
        {"look": "trace", "width": 10, "points": [[number for point in way for number in point]]},
        {"look": "body", "width": 80, "points": way},
    ]
    scene = {"width": 1000, "height": 200, "frames": 5, "strokes": strokes}
    about = {"said": f"five steps {HOSTILE}", "seed": 3, "scale": "desk", "day": "2031-01-01", "versions": "laureate 0"}
    made = [{"film": "walk", "arm": arm, "scene": scene, **about} for arm in ("ours", "theirs")]
    return {"walk": made} if paper.films else {}


def hashed(*numbers: int) -> float:
    """Between 0 and 1, the same everywhere."""
    found = 12345
    for number in numbers:
        found = (found * 31 + number * 7919 + 104729) * 2654435761 % 2**32
        found ^= found >> 15
    return found / 2**32


def drawn(*numbers: int) -> float:
    """About as a normal draw."""
    return sum(hashed(place, *numbers) for place in range(12)) - 6.0


class Remembered:
    """An executor that computes nothing. fails: arms that do. shift: of ours. seconds: that a cell takes."""

    def __init__(self, fails: Iterable[str] = (), shift: float = 0.0, turn: int = 0):
        self.fails, self.shift, self.turn, self.workers = tuple(fails), shift, turn, 2

    def outcomes(self, cells: Iterable[Cell]) -> Iterator[tuple[Cell, Outcome]]:
        for number, cell in enumerate(cells):
            seconds = 0.5 + number % 5
            if cell.arm in self.fails:
                error = f"FloatingPointError: the arm <{cell.arm}> is broken & lost\nTraceback:\n  line 1, in <toy>"
                yield cell, Outcome(seconds=seconds, error=error)
            else:
                yield cell, Outcome(self.metrics(cell), seconds, 0.1 * (number % 3), memory=(1 + number % 4) << 29)

    def metrics(self, cell: Cell) -> dict[str, Any]:
        arm = [one.name for one in ARMS].index(cell.arm)
        seeds = range(cell.start, cell.start + cell.count)
        shift = (0.0, 2.0, 4.0, 2.05)[arm] + (self.shift if arm == 0 else 0.0)
        loss = np.array(
            [shift + 0.25 * drawn(self.turn, seed, 2) + 0.2 * drawn(self.turn, seed, arm) for seed in seeds]
        )
        steps = np.tile(np.array([1.0, 2.0, 4.0, 8.0]), (cell.count, 1))
        if cell.experiment == "clocked":
            endless = np.where(np.arange(cell.start, cell.start + cell.count) == 2, np.nan, loss)
            busy = np.full(cell.count, 1.6 if arm else 1.1)
            return {"seconds": 2.5 + loss / 2, "endless": endless, "wall_over_cpu": busy}
        return {
            "loss": loss, "gain": 3.5 - loss, "steps": steps, "curve": (3 + loss[:, None]) / steps,
            "wide": 10.0 ** (2 - steps / 2 + loss[:, None] / 9), "score": np.minimum(10.0, 11.0 - loss),
            "tuned_loss": loss, "rate": np.where(loss < shift + 0.1, 0.1, 0.2), "weighed_loss": loss,
            "ess": 6.0 - loss, "sum": 3.0 + 0.01 * loss,
        }  # fmt: skip

    def close(self) -> None:
        pass


def entries() -> list[Entry]:
    """A catalogue: odd ones first, then as many as make a second page."""
    toy = paper_of("toy")
    odd = [
        Entry("toy", toy.title, toy.authors, "ICML 2021", "Oral", toy.award, name="Walk", kind="method",
              topic="sampling-inference", problem="Walks get lost & take long.", does="Looks back.", cpu="minutes",
              demo="Walk a little.", fit=3, asks=("why does my walk get lost?", "walks take long"), url=toy.url),
        Entry("known", "Known things", ("Ed Y",), "NeurIPS 2020", "Poster", kind="theory", topic="learning-theory",
              problem="Nobody knows what is known about walks.", does="Knows it.", terms=("knowledge", "walks")),
        Entry("idle", "Idle things", ("Ed Y",), "ICLR 2022", "Spotlight", kind="system", topic="vision"),
        Entry("widget", "=SUM(1) Widgets: \"quoted\" & <i>slanted</i> {braces} 100 % \\n_1 $x^2$", ("=cmd", "-Dash O",
              "Ünal Ö. Ø", "Jean de La Fontaine"), "Workshop 2020 on Widgets", "", "@Best", name="WidGets 2",
              kind="benchmark", topic="audio", problem="@Widgets, how?", does="+Counts them.",
              also=("WGT", "noisy widgets"), symptoms=("the widget blinks",), url="https://example.org/a_b?c=%20d&e=f"),
        Entry("submitted", "A Submission about Noisy Labels", ("Plato",), "ICLR 2022 Submission", "Submission",
              topic="robustness-security", kind="analysis", problem="Labels are wrong.", does="Rights them.",
              asks=("noisy labels break training",)),
        Entry("bare", "A Bare Title"),
        Entry("own-abstract", "Imported by a Reader", ("Ada One",), "JMLR 2019", abstract="Gradients explode. " * 40),
    ]  # fmt: skip
    topics = ("vision", "audio", "language")
    more = [
        Entry(f"filler-{i}", f"Filler {i}: walking widgets of kind {i % 5}", (f"Author {i}", "Bea Two"),
              f"ICML {2015 + i % 4}", ("Oral", "Spotlight", "Poster")[i % 3], topic=topics[i % 3], kind="method",
              problem=f"Widgets of kind {i % 5} walk away.", does=f"Holds {i} of them.", fit=i % 4)
        for i in range(20)
    ]  # fmt: skip
    return odd + more


class Home:
    """What of the package is put aside for this home, and the runs that are made in it."""

    def __init__(self, folder: Path, patch: Any):
        from laureate.catalogue import entry

        self.folder, self.patch = folder, patch
        self.home, self.papers_folder = folder / "home", folder / "papers"
        folder.mkdir(parents=True, exist_ok=True)
        patch.setenv("LAUREATE_HOME", str(self.home))
        patch.setenv("COLUMNS", "100")
        self.clock = plain_words.stop_the_clock(patch)
        # A command leaves its store to the end of the process.
        self.opened: list[Store] = []
        begin = Store.__init__

        def opened(store: Store, path: Path) -> None:
            begin(store, path)
            self.opened.append(store)

        patch.setattr(Store, "__init__", opened)
        # Both are imported before either is changed: the second takes its name from the first.
        for module in [importlib.import_module(name) for name in ("laureate.papers", "laureate.pages.report")]:
            patch.setattr(module, "paper_ids", lambda: list(IDS))
        patch.setattr("laureate.papers.paper", paper_of)
        patch.setattr("laureate.pages.report.load_paper", paper_of)
        patch.setattr("laureate.pages.content.film_panels", panels)
        patch.setattr("laureate.lab.running.run.environment", lambda: dict(plain_words.FACTS))
        # These take the name from the executors: imported first while that is changed, they would keep the stand-in.
        for name in ("laureate.lab.running.diagnosis", "laureate.racing.running"):
            importlib.import_module(name)
        patch.setattr("laureate.lab.running.run.cores", lambda: 2)
        patch.setattr("laureate.lab.running.run.try_problem", lambda *_: None)
        patch.setattr("laureate.lab.running.executors.cores", lambda: 2)
        shipped = folder / "papers.jsonl"
        shipped.write_text("".join(json.dumps(one.record()) + "\n" for one in entries()), "utf-8")
        for module in ("entry", "index"):
            patch.setattr(f"laureate.catalogue.{module}.SHIPPED", shipped)
        patch.setattr("laureate.catalogue.index.READY", folder / "none.sqlite")
        entry.entries.cache_clear()
        patch.setattr("laureate.lab.reference.path_of", lambda name: self.papers_folder / name / "reference.jsonl")
        patch.setattr("laureate.lab.ledger.path_of", lambda name: self.papers_folder / name / "ledger.jsonl")
        self.ship()

    def ship(self) -> None:
        """A ledger with changes, and what ships of ``known`` and of one claim of ``toy``."""
        for paper in (paper_of("known"), paper_of("toy")):
            lines, shipped = [], []
            for number, one in enumerate(paper.claims):
                mine = next(e for e in paper.experiments if one in e.claims)
                digest = ledger.digest(mine, one)
                changes = [("2030-02-01", "before", "declared"), ("2030-03-02", "after", "the margin <was> wrong")]
                changes += [("2030-04-03", "before", "another seed"), ("2030-05-04", "after", "seen again")]
                for day, when, why in changes[: 1 + number % 4]:
                    lines.append(ledger.Entry(day, one.name, digest, why, when, "0123456").line())  # pyright: ignore
                if not one.is_question and (paper.id == "known" or one.name == "lower"):
                    measured = Measured((1.5, 1.25, 1.75, 1.6), 1, 0.5, 2.0, axis="loss: theirs − ours",
                                        lines=((0.0, "no effect"), (0.5, "margin")), holds=(0.5, np.inf))  # fmt: skip
                    word = "supported" if number == 0 else "inconclusive"
                    found = ClaimResult(
                        id=ClaimId(paper.id, one.name), experiment=mine.name, statement=one.statement, kind=one.kind,
                        metric=one.metric, method=one.method, baseline=one.baseline, verdict=word, effect=1.525,
                        low=1.25, high=1.75, p=0.0125, p_raw=0.00625, effect_size=7.1, improvement=1.0, family=2,
                        test="a test", measured=measured, scale="desk", seeds=4, declared_seeds=4, seconds=12.0,
                        reason="the 95 % interval includes the margin 0.5", machine="another abacus",
                        started="2030-06-05T07:08:09+00:00",
                    )  # fmt: skip
                    shipped.append(line_of(found, digest, "laureate 0.1, jax 9.8.7"))
            folder = self.papers_folder / paper.id
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "ledger.jsonl").write_text("\n".join(lines), "utf-8")
            (folder / "reference.jsonl").write_text("\n".join(shipped), "utf-8")

    def open(self) -> Store:
        return Store(store_path())

    def execute(self, executor: Remembered | None = None) -> None:
        """From now on, runs are made so."""
        self.patch.setattr("laureate.lab.running.run.make_executor", lambda *_: executor or Remembered())

    def run(self, *words: str, executor: Remembered | None = None, **options: Any) -> Summary:
        """As ``laureate run`` does it."""
        self.execute(executor)
        store = self.open()
        scale = options.get("scale", "desk")
        command = f"laureate run {' '.join(words or ('toy',))} --scale {scale}"
        chosen = toys.select(words or ["toy"], IDS, paper_of)
        try:
            return run_claims(store, chosen, command=command, **options)
        finally:
            store.close()

    def own_problem(self) -> str:
        """A problem of the reader's, in a file."""
        file = self.folder / "mine.py"
        file.write_text("class Mine:\n    offset = 1.0\n", "utf-8")
        return f"{file}:Mine"

    def fill(self) -> None:
        """Runs of every kind: 1 smoke, 2 desk, 3 failed, 4 more seeds, 5 other numbers, 6 own problem, 7 a name."""
        self.run(scale="smoke")
        self.run(scale="desk")
        self.run("toy/walk/", scale="smoke", executor=Remembered(fails=("third",), turn=1), fresh=True)
        self.run("toy/lower", "toy/small", scale="smoke", seeds=13)
        self.run("toy/walk/", scale="smoke", executor=Remembered(shift=1.9, turn=2), fresh=True)
        self.run("toy", scale="smoke", problem=self.own_problem(), executor=Remembered(shift=1.8, turn=3))
        self.run("toy/lower", "toy/which", scale="desk", seeds=3, executor=Remembered(turn=4), fresh=True)
        store = self.open()
        store.describe(7, f"the {HOSTILE} run", "a note: 1 < 2 & so on")
        store.describe(2, "baseline")
        self.benchmarks(store)
        store.close()

    def benchmarks(self, store: Store) -> None:
        """Three peers of ``toy``: slower, not installed, and faster; the first was measured twice."""
        row = {
            "id": "toy", "work": "a walk of 1,000 steps", "ours_s": 0.0125, "ours_low": 0.012, "ours_high": 0.013,
            "ours_compile_s": 1.5, "ours_mb": 120.0, "peer": "walker", "peer_s": 0.5, "peer_compile_s": 0.0,
            "peer_mb": 80.5, "ratio": 40.0, "low": 38.5, "high": 41.25, "repeats": 9, "package": "walker",
            "peer_version": "1.2", "note": "",
        }  # fmt: skip
        gone = dict.fromkeys(("peer_s", "ratio", "low", "high", "peer_version"))
        for change in (
            {"ratio": 30.0}, {}, {"peer": "runner", "package": "runner", "note": "not installed", **gone},
            {"peer": "our loop", "package": "", "peer_version": "", "ratio": 0.5, "low": None, "high": None,
             "note": f"in Python {HOSTILE}", "peer_s": 0.00625},
        ):  # fmt: skip
            store.add_benchmark(row | change, dict(plain_words.FACTS))  # pyright: ignore[reportArgumentType]

    def begin(self) -> Store:
        """A run that is under way: two of its cells are done, and the store must be closed for it to end."""
        from laureate.lab.running.plan import plan

        store = self.open()
        cells = plan(toys.select(["toy/lower"], IDS, paper_of), "full")
        number = store.start_run("laureate run toy/lower --scale full", "full", 20, "default", plain_words.FACTS)
        mine, _ = store.take(number, cells)
        for cell, outcome in Remembered().outcomes(mine[:2]):
            store.add_cell(number, cell, outcome)
        return store

    def places(self) -> dict[str, Path]:
        """What a record must not hold, by the word that stands for it."""
        return {"HOME": self.home, "FOLDER": self.folder, "TESTS": Path(__file__).parent}

    def close(self) -> None:
        """Forget the papers of this home, and let go of its files."""
        from laureate.catalogue import entry

        entry.entries.cache_clear()
        for store in self.opened:
            with contextlib.suppress(sqlite3.ProgrammingError):  # of a thread of the server, which closed it
                store.close()
