"""What the commands share: the store, the papers by id, output as JSON, numbers and verdicts for people."""

import json
import shutil
import textwrap
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from laureate.pages.wording import (
    MARKS,
    busy,
    centre,
    duration,
    interval,
    looks,
    means,
    number,
    origin,
    origins,
    plural,
    rival,
    unit_of,
)

if TYPE_CHECKING:
    from laureate.catalogue import Entry
    from laureate.lab.claim import Paper
    from laureate.lab.judging.results import ClaimResult, Result
    from laureate.lab.storing.rows import RunRow
    from laureate.lab.storing.store import Store

__all__ = [
    "MARKS", "STYLES", "claim_name", "columns", "context_line", "duration", "effect", "emit", "filled", "find_entry",
    "find_paper", "find_run", "json_option", "number", "open_store", "plural", "run_number", "say", "say_reference",
    "unit_of", "verdict_line",
]  # fmt: skip

STYLES = {"supported": "green", "refuted": "red", "inconclusive": "yellow", "not run": "bright_black"}


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


def find_entry(paper_id: str) -> "Entry":
    """The paper of the catalogue with that id, however it is capitalised, or an error that names the nearest."""
    from laureate.catalogue.library import all_entries, by_id
    from laureate.lab.running.plan import unknown
    from laureate.papers import paper_ids

    if entry := by_id(paper_id) or by_id(paper_id.lower()):
        return entry
    near = unknown(paper_id, paper_ids())
    known = dict.fromkeys((*paper_ids(), *(entry.id for entry in all_entries())))
    raise near if "Did you mean" in near.remedy else unknown(paper_id, list(known))


def run_number(text: str) -> int | None:
    """A run's number, if the word is one."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 4000 else None


def find_run(store: "Store", run: int | None) -> "RunRow":
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


def effect(claim: "ClaimResult") -> str:
    """An effect with its unit and interval; empty where there is none."""
    parts = centre(claim), unit_of(claim), interval(claim)
    return " ".join(filter(None, parts)) if claim.has_effect else ""


def columns() -> int:
    """How wide a text may be: the terminal, up to what the eye follows."""
    return max(30, min(100, shutil.get_terminal_size((100, 24)).columns - 1))


def filled(text: str, indent: int = 0, hang: int | None = None) -> str:
    """A text in lines of the terminal's width; words are never broken."""
    first, rest = " " * indent, " " * (indent if hang is None else hang)
    return textwrap.fill(
        " ".join(text.split()),
        columns(),
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def say(text: str, indent: int = 0, dim: bool = True) -> None:
    """Print a text in lines of the terminal's width."""
    if text:
        click.echo(click.style(filled(text, indent), dim=True) if dim else filled(text, indent))


def say_reference(results: "Iterable[ClaimResult]") -> None:
    """How many of these were measured by us and not here, and with what: once, above their lines."""
    results = list(results)
    if shipped := [result for result in results if result.reference]:
        say(
            f"{len(shipped)} of {plural('verdict', len(results))} {'is' if len(shipped) == 1 else 'are'} our reference"
            f" ({origins(shipped)}). "
            "What you run takes their place."
        )


def claim_name(result: "Result") -> str:
    """A claim by its id, and on which problem where that is not the paper's."""
    return f"{result.id} on {result.problem}" if result.on_own_problem else str(result.id)


def verdict_line(claim: "ClaimResult", width: int) -> str:
    """One claim: word and sign, so that colour is never alone. On one line where the terminal has room for it."""
    word = claim.verdict
    verdict = click.style(f"{MARKS[word]} {word}", fg=STYLES[word], bold=word != "not run")
    detail, name = effect(claim), claim_name(claim)
    if detail:
        detail += f"{' median' * (claim.centre == 'median')} over {claim.over}  p {number(claim.p, 2)}"
    if claim.reference:
        detail = f"{detail}  (our reference)".strip()
    if width + len(detail) + 20 <= columns():
        return f"  {name:<{width}}  {verdict}{' ' * (13 - len(word))} {detail}".rstrip()
    return f"  {name}\n    {verdict}" + (f"\n{filled(detail, 4)}" if detail else "")


def context_line(claim: "ClaimResult") -> str:
    """What stands beside the number: the arms' own means, the worst seed, the paper's number, the data, the run."""
    seeds = f"{claim.seeds} seeds" + (f" ({claim.declared_seeds} declared)" if claim.more_seeds else "")
    parts = [
        means(claim),
        rival(claim),
        claim.reported and f"the paper: {claim.reported}",
        claim.data and f"data: {', '.join(claim.data)}",
        claim.seeds and f"{claim.scale}, {seeds}" + ("" if claim.reference else f", {origin(claim)}"),
        looks(claim),
        busy(claim),
    ]
    return " · ".join(filter(None, parts))
