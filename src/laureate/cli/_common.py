"""What the commands share: the store, the papers by id, output as JSON, numbers and verdicts for people."""

import json
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from laureate.lab.claim import Paper
    from laureate.lab.storing.store import Store

STYLES = {"supported": "green", "refuted": "red", "inconclusive": "yellow", "not run": "bright_black"}
MARKS = {"supported": "✔", "refuted": "✘", "inconclusive": "?", "not run": "·"}


def json_option(command: Callable) -> Callable:
    """``--json`` on every command."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")(command)


def emit(value: Any) -> None:
    """One JSON value on standard output."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def open_store() -> "Store":
    """The user's store."""
    from laureate.lab.storing.home import store_path
    from laureate.lab.storing.store import Store

    return Store(store_path())


def find_paper(paper_id: str) -> "Paper":
    """The paper of that id, or an error that names the nearest."""
    from laureate.lab.running.plan import unknown
    from laureate.papers import paper, paper_ids

    if paper_id not in paper_ids():
        raise unknown(paper_id, paper_ids())
    return paper(paper_id)


def run_number(text: str) -> int | None:
    """A run's number, if the word is one."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 4000 else None


def find_run(store: "Store", run: int | None) -> dict[str, Any]:
    """The run of that number, by default the newest; an error where there is none."""
    from laureate.lab.errors import UserError

    number = run if run is not None else store.last_run()
    # SQLite's numbers end there.
    record = store.run(number) if number is not None and abs(number) < 2**63 else None
    if record is None:
        wanted = "no run yet" if run is None else f"no run {str(run)[:40]}"
        runs = ", ".join(str(row["id"]) for row in store.runs(10))
        raise UserError(f"There is {wanted}.", f"The latest are: {runs}." if runs else "Start one: laureate run pes")
    return record


def number(value: float | None, digits: int = 3) -> str:
    """A number for people: three digits, a real minus sign."""
    if value is None or math.isnan(value):
        return "–"
    return f"{value:.{digits}g}".replace("-", "−")


def interval(claim: Mapping[str, Any]) -> str:
    """An effect with its interval."""
    if claim.get("effect") is None:
        return ""
    return f"{number(claim['effect'])}  [{number(claim['low'])}, {number(claim['high'])}]"


def duration(seconds: float) -> str:
    """Seconds for people."""
    if seconds < 1:
        return f"{seconds:.2f} s"
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h"


def verdict_line(claim: Mapping[str, Any], width: int) -> str:
    """One claim on one line: word and sign, so that colour is never alone."""
    word = claim["verdict"]
    verdict = click.style(f"{MARKS[word]} {word:<13}", fg=STYLES[word], bold=word != "not run")
    detail = interval(claim)
    if detail and claim.get("p") is not None:
        detail += f"  p {number(claim['p'], 2)}"
    return f"  {claim['id']:<{width}}  {verdict} {detail}".rstrip()
