"""Rewrite the board between README.md's markers from the store of LAUREATE_HOME; screenshots.py makes the pictures."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LAUREATE = Path(sys.executable).with_name("laureate")
BEGIN, END = "<!-- board: begin -->", "<!-- board: end -->"
MARKS = {"supported": "✔", "refuted": "✘", "inconclusive": "?", "not run": "·"}


def number(value: float | None) -> str:
    """Three digits and a real minus sign."""
    return "" if value is None else f"{value:.3g}".replace("-", "−")


def board() -> str:
    """A line a paper, and behind it every decided claim as a row of a table."""
    rows = json.loads(subprocess.check_output([LAUREATE, "board", "--json"]))
    rows = [row for row in rows if row["problem"] == "default" and row["verdict"] != "not run"]
    parts = []
    for paper in dict.fromkeys(row["paper"] for row in rows):
        claims = [row for row in rows if row["paper"] == paper]
        count = Counter(row["verdict"] for row in claims)
        told = ", ".join(f"{MARKS[verdict]} {count[verdict]} {verdict}" for verdict in MARKS if count[verdict])
        title = json.loads(subprocess.check_output([LAUREATE, "show", paper, "--json"]))["title"]
        parts += [f"<details><summary><b>{title}</b> (<code>{paper}</code>): {told}</summary>", ""]
        parts += ["| claim | verdict | effect [95 % interval] | scale, seeds |", "|---|---|---|---|"]
        parts += [table_row(row) for row in claims]
        parts += ["", "</details>", ""]
    machines = sorted({row["machine"] for row in rows})
    parts.append(
        f"Measured on: {'; '.join(machines)}. The effect of a comparison is positive where it speaks for the method; "
        "that of a bound is the measured value, that of an equivalence the difference."
    )
    return "\n".join(parts)


def table_row(row: dict[str, Any]) -> str:
    """One claim."""
    effect = f"{number(row['effect'])} [{number(row['low'])}, {number(row['high'])}]"
    verdict = f"{MARKS[row['verdict']]} {row['verdict']}"
    return f"| `{row['id']}` {row['statement']} | {verdict} | {effect} | {row['scale']}, {row['seeds']} |"


def main() -> None:
    """Write between the markers; all else in the README is left as it is."""
    readme = ROOT / "README.md"
    before, _, rest = readme.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    readme.write_text(f"{before}{BEGIN}\n{board()}\n{END}{after}")


if __name__ == "__main__":
    main()
