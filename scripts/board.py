"""The board of our own measurements, from a store.

    python scripts/board.py                     rewrites docs/board.md between its markers, from what `laureate board`
                                                shows: what lies in LAUREATE_HOME, else the verdicts that ship
    python scripts/board.py --reference STORE   writes papers/*/reference.jsonl, the verdicts that ship, and the column
                                                of verdicts in README.md

STORE is a store.sqlite; a copy of it is read, so that a run may go on writing. Papers of which nothing is known keep
the reference and the section that they have.
"""

import argparse
import contextlib
import json
import re
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LAUREATE = Path(sys.executable).with_name("laureate")
BEGIN, END = "<!-- board: begin -->", "<!-- board: end -->"
PAPERS = "<!-- papers: begin -->", "<!-- papers: end -->"
ROLES = ("headline", "stand-in", "extension", "check")
SECTION = re.compile(r"<details><summary>[^\n]*\(<code>([^<]*)</code>\).*?</details>", re.DOTALL)
MARKS = {"supported": "✔", "refuted": "✘", "inconclusive": "?", "not run": "·"}


def number(value: float | None) -> str:
    """Three digits and a real minus sign."""
    return "" if value is None else f"{value:.3g}".replace("-", "−")


def board(page: str) -> str:
    """The page's table anew: a line a paper, and behind it every decided claim as a row of a table."""
    rows = json.loads(subprocess.check_output([LAUREATE, "board", "--json"]))["claims"]
    rows = [row for row in rows if row["verdict"] != "not run"]
    sections = {found[1]: found[0] for found in SECTION.finditer(page)}
    for paper in dict.fromkeys(row["paper"] for row in rows):
        sections[paper] = section(paper, [row for row in rows if row["paper"] == paper])
    machines = sorted({row["machine"] for row in rows})
    last = (
        f"Measured on: {'; '.join(machines)}. The effect of a comparison is positive where it speaks for the method; "
        "that of a bound is the measured value, that of an equivalence the difference."
    )
    return "\n\n".join([*(sections[paper] for paper in sorted(sections)), last])


def section(paper: str, claims: list[dict[str, Any]]) -> str:
    """Of one paper, folded."""
    findings = [row for row in claims if row["role"] != "check"]
    about = f"<b>{claims[0]['title']}</b> (<code>{paper}</code>)"
    parts = [f"<details><summary>{about}: {counted(findings)}</summary>", ""]
    parts += [claims[0]["meaning"], ""] * bool(claims[0]["meaning"])
    for role in ROLES:
        if mine := [row for row in claims if row["role"] == role]:
            parts += [f"**{role}**: {counted(mine)}", ""]
            parts += [
                "| claim | verdict | effect [95 % interval] | the paper | scale, seeds |",
                "|---|---|---|---|---|",
            ]
            parts += [*map(table_row, mine), ""]
    return "\n".join([*parts, "</details>"])


def counted(rows: list[dict[str, Any]]) -> str:
    """How many have each verdict."""
    count = Counter(row["verdict"] for row in rows)
    return ", ".join(f"{MARKS[verdict]} {count[verdict]} {verdict}" for verdict in MARKS if count[verdict])


def table_row(row: dict[str, Any]) -> str:
    """One claim."""
    effect = f"{number(row['effect'])} {row['unit']} [{number(row['low'])}, {number(row['high'])}] over {row['over']}"
    verdict = f"{MARKS[row['verdict']]} {row['verdict']}"
    claim, scale = f"`{row['id']}` {row['statement']}", f"{row['scale']}, {row['seeds']}"
    return f"| {claim} | {verdict} | {effect} | {row['reported']} | {scale} |"


def write_board() -> None:
    """Write between the markers; all else in the page is left as it is."""
    page = ROOT / "docs" / "board.md"
    before, _, rest = page.read_text("utf-8").partition(BEGIN)
    known, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n{board(known)}\n{END}{after}", "utf-8")


def write_reference(path: Path) -> None:
    """What is shown of every claim in a store, on the papers' own problems, as the files that ship."""
    from laureate.lab import ledger, reference
    from laureate.lab.cell import DEFAULT_PROBLEM
    from laureate.lab.storing.store import Store
    from laureate.papers import all_papers

    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "store.sqlite"
        uri = f"{path.absolute().as_uri()}?mode=ro"
        with (
            contextlib.closing(sqlite3.connect(uri, uri=True)) as theirs,
            contextlib.closing(sqlite3.connect(copy)) as ours,
        ):
            theirs.backup(ours)
        store = Store(copy)
        shown = {claim: result for (claim, where), result in store.shown().items() if where == DEFAULT_PROBLEM}
        for paper in all_papers():
            lines = []
            for experiment in paper.experiments:
                for claim in experiment.claims:
                    if found := shown.get(f"{paper.id}/{claim.name}"):
                        versions = ((store.run(found.run) or {}) if found.run else {}).get("environment", {})
                        line = reference.line_of(
                            found, ledger.digest(experiment, claim), told(versions.get("versions", {}))
                        )
                        lines += [line] * bool(line)
            if lines:
                reference.path_of(paper.id).write_text("\n".join(lines) + "\n", "utf-8")
                print(f"{paper.id}: {len(lines)} of {len(paper.claims)}")
        store.close()
    reference._lines.cache_clear()
    page = ROOT / "README.md"
    page.write_text(with_verdicts(page.read_text("utf-8")), "utf-8")


def with_verdicts(text: str) -> str:
    """README with the last column of its table of papers as the reference says: its headlines, else its stand-ins."""
    from laureate.lab.judging.results import by_role, claims_of, tally
    from laureate.lab.reference import reference
    from laureate.papers import all_papers

    before, _, rest = text.partition(PAPERS[0])
    table, _, after = rest.partition(PAPERS[1])
    words = {}
    for paper in all_papers():
        role, claims = next(iter(by_role(claims_of(paper, reference(paper))).items()))
        counts = tally(claims)
        shown = " ".join(f"{MARKS[word]} {count}" for word, count in counts.items() if word != "not run")
        words[paper.id] = f"{role}s: {shown}" if shown else ""
    rows = []
    for line in table.splitlines():
        name, *others = line.removeprefix("| `").split("` | ", 1)
        rows.append(f"{line.rsplit('|', 2)[0]}| {words[name]} |" if others and name in words else line)
    return f"{before}{PAPERS[0]}" + "\n".join(rows) + f"\n{PAPERS[1]}{after}"


def told(versions: dict[str, str]) -> str:
    """The versions that matter most, in words."""
    return ", ".join(f"{name} {versions[name]}" for name in ("laureate", "jax", "numpy", "python") if name in versions)


def main() -> None:
    """As the words say."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--reference", type=Path, metavar="STORE", help="a store.sqlite, or the folder it lies in")
    chosen = parser.parse_args().reference
    if chosen is None:
        write_board()
    else:
        write_reference(chosen / "store.sqlite" if chosen.is_dir() else chosen)


if __name__ == "__main__":
    main()
