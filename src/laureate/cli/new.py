"""``laureate new``: the skeleton of a paper, in a source checkout. It runs, and one test lists what is missing."""

import datetime
import keyword
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import click

import laureate
from laureate.cli._common import emit, json_option
from laureate.lab.errors import UserError

if TYPE_CHECKING:
    from laureate.catalogue import Entry

# Whatever stands behind this mark is a placeholder; tests/papers/test_nothing_missing.py finds them all.
MARK = "TO WRITE"
# The folders of the package that are no area of methods.
ROOMS = {"catalogue", "cli", "lab", "layers", "loops", "pages", "papers", "problems", "racing", "testing"}

PAPER_INIT = '''"""«title»: what the paper says, the trials that re-measure it, and speed beside peers."""
'''

ABOUT = '''"""TO WRITE: what the method does for whom, in one line."""

from laureate.lab.claim import Paper
from laureate.papers.«folder».experiments import FIRST

__all__ = ["PAPER"]

PAPER = Paper(
    id="«id»",
    area="«area»",
    problem="TO WRITE: the reader's problem, in the reader's words.",
    idea="TO WRITE: how the paper solves it, in a few sentences.",
    equation="TO WRITE: the heart of it, in plain Unicode, a line each",
    example="# TO WRITE: an example of about five lines\\nimport laureate.«area»\\n",
    meaning="TO WRITE, after desk: what the verdicts mean for the reader, in a few sentences.",
    experiments=(FIRST,),
)
'''

EXPERIMENTS = '''"""TO WRITE: what is measured here. Committed before the first run; later changes are deviations."""

from laureate.lab.claim import Arm, Claim, Experiment, Scale

__all__ = ["FIRST"]

TRIALS = "laureate.papers.«folder».trials"

# TO WRITE: guards, where a metric is clipped, an arm is tuned on a grid or samples are correlated
# TO WRITE: data, the names of the data sets that are read, if any; over="data sets", if each seed draws a new one
FIRST = Experiment(
    name="first",
    title="TO WRITE: what is asked, in words a newcomer understands",
    trial=f"{TRIALS}:first",
    problem="",  # TO WRITE: "laureate.problems.module:Problem", or nothing where the trial makes its own
    arms=(
        Arm("method", "TO WRITE: the method's name", shift=0.0),
        Arm("baseline", "TO WRITE: the baseline's name", shift=1.0),
        Arm("trivial", "TO WRITE: what does nothing clever", shift=2.0),
    ),
    scales={
        "tiny": Scale(2, block=2, compilation="lightest", draws=4),
        "smoke": Scale(10, cost=1, draws=100),  # TO WRITE: sizes, and the measured cost in seconds on two cores
        "desk": Scale(20, cost=1, draws=100),  # TO WRITE: sizes, and the measured cost
        "full": Scale(40, cost=1, draws=100),  # TO WRITE: the paper's own sizes, and the cost computed from desk
    },
    claims=(
        Claim(
            "first",
            "TO WRITE: one sentence of the paper, which one test decides",
            metric="loss",
            method="method",
            baseline="baseline",
            trivial="trivial",
            better="lower",
            margin=0.0,  # TO WRITE: the smallest difference that matters, before anything is run
            unit="TO WRITE: of the metric",
            source="TO WRITE: section, figure or table",
            role="stand-in",  # TO WRITE: headline, stand-in, extension or check
            reported="",  # TO WRITE: the paper's own number with its unit, where it gives one
        ),
    ),
    deviations=("TO WRITE: every difference from the paper",),
)
'''

TRIALS = '''"""TO WRITE: what the trials of «title» measure."""

import jax
from jaxtyping import Array

from laureate.lab.claim import Settings

__all__ = ["first"]


def first(key: Array, arm: Settings, problem: object, scale: Settings) -> dict[str, Array]:
    """TO WRITE: the measurement for one seed; the lab runs it over a block of seeds."""
    return {"loss": arm.shift + jax.random.normal(key, (scale.draws,)).mean()}
'''

SPEED = '''"""TO WRITE: a step of the method beside a peer's, on the same work."""

from laureate.lab.running.comparison import Comparison

__all__ = ["COMPARISONS"]

COMPARISONS: tuple[Comparison, ...] = ()  # TO WRITE: a comparison with the nearest peer
'''

TESTS = '''"""The trials of «title»: do they measure what they say?

TO WRITE: tests against numbers that are known from elsewhere; what breaks the trial on purpose turns them red.
"""

from laureate.papers.«folder».about import PAPER


def test_the_paper_is_the_catalogues():
    assert PAPER.id == "«id»"
'''

AREA = '''"""TO WRITE: the problem that the methods of this area solve, and the signature they share."""

__all__: list[str] = []
'''


@click.command()
@click.argument("paper_id", metavar="ID")
@click.option("--area", required=True, help="The package of its methods, laureate.AREA; made where it is new.")
@json_option
def new(paper_id: str, area: str, as_json: bool) -> None:
    """Make the skeleton of a paper of the catalogue, to be filled in.

    It is imported and runs at once, and one test lists what is still to be written. For a source checkout.
    """
    root = _checkout()
    written = write_skeleton(root, _entry(paper_id), _area(area))
    files = [path.relative_to(root).as_posix() for path in written]
    test = "tests/papers/test_nothing_missing.py"
    if as_json:
        emit({"id": paper_id, "area": area, "files": files, "test": test})
        return
    click.echo("\n".join(files))
    click.echo(f"\nWhat is still to be written: python -m pytest {test} -k {paper_id}")
    click.echo("Step by step: CONTRIBUTING.md")


def write_skeleton(root: Path, entry: "Entry", area: str) -> list[Path]:
    """The files of a new paper, and of its area where that is new."""
    folder = entry.id.replace("-", "_")
    paper = root / "src" / "laureate" / "papers" / folder
    tests = root / "tests" / "papers" / folder
    for place in (paper, tests):
        if place.exists():
            raise UserError(f"{place.relative_to(root).as_posix()} is there already.", "Go on with what is in it.")
    texts = {
        paper / "__init__.py": PAPER_INIT,
        paper / "about.py": ABOUT,
        paper / "experiments.py": EXPERIMENTS,
        paper / "trials.py": TRIALS,
        paper / "speed.py": SPEED,
        tests / f"test_{folder}_trials.py": TESTS,
    }
    package = root / "src" / "laureate" / area
    if not package.exists():
        texts[package / "__init__.py"] = AREA
    words = {"id": entry.id, "folder": folder, "area": area, "title": _plain(entry.name or entry.title)}
    for path, text in texts.items():
        for word, value in words.items():
            text = text.replace(f"«{word}»", value)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_wrapped(text), encoding="utf-8")
    return [*texts, _ledger(paper, entry.id)]


def _ledger(folder: Path, paper_id: str) -> Path:
    """The line that every claim needs in the paper's ledger."""
    from laureate.lab.ledger import Entry, missing
    from laureate.papers import paper

    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    reason = f"{MARK}: scripts/ledger.py {paper_id} puts the declared claims in the place of this line"
    lines = [
        Entry(today, claim, digest, reason, "before", "this commit").line()
        for claim, digest in missing(paper(paper_id)).items()
    ]
    ledger = folder / "ledger.jsonl"
    ledger.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return ledger


def _plain(text: str) -> str:
    """Text that may stand in a docstring."""
    return text.replace("\\", " ").replace('"', "'")


def _wrapped(text: str) -> str:
    """A source whose first line, which has the paper's name in it, is no longer than the linter allows."""
    first, rest = text.split("\n", 1)
    return f"{textwrap.fill(first, 120, break_long_words=False)}\n{rest}"


def _checkout() -> Path:
    sources = Path(laureate.__file__).resolve().parents[1]
    root = sources.parent
    if sources.name != "src" or not (root / "pyproject.toml").is_file() or not (root / "tests" / "papers").is_dir():
        raise UserError(
            f"`laureate new` writes into a source checkout; this Laureate is installed in {sources}.",
            "Clone the repository, `make test`, which sets up .venv, and run it there.",
        )
    return root


def _entry(paper_id: str) -> "Entry":
    from laureate.catalogue.entry import entries, entry_by_id
    from laureate.lab.running.plan import unknown

    try:
        return entry_by_id(paper_id)
    except KeyError:
        missing = unknown(paper_id, [entry.id for entry in entries()])
    if "Did you mean" not in missing.remedy:
        missing = UserError(f"The catalogue has no {paper_id!r}.", "Find its id: laureate find WORDS")
    raise missing


def _area(area: str) -> str:
    if (
        not (area.isidentifier() and area.isascii() and area.islower())
        or area.startswith("_")
        or keyword.iskeyword(area)
        or area in ROOMS
    ):
        raise UserError(
            f"--area must be a name for a package, in lower case, that is no room of another kind; got {area!r}.",
            "For example: --area sampling",
        )
    return area
