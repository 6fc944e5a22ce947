"""Rewrite the board between the markers of docs/board.md from the store of LAUREATE_HOME."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LAUREATE = Path(sys.executable).with_name("laureate")
BEGIN, END = "<!-- board: begin -->", "<!-- board: end -->"
ROLES = ("headline", "stand-in", "extension", "check")
MARKS = {"supported": "✔", "refuted": "✘", "inconclusive": "?", "not run": "·"}


def number(value: float | None) -> str:
    """Three digits and a real minus sign."""
    return "" if value is None else f"{value:.3g}".replace("-", "−")


def board() -> str:
    """A line a paper, and behind it every decided claim as a row of a table."""
    rows = json.loads(subprocess.check_output([LAUREATE, "board", "--json"]))["claims"]
    rows = [row for row in rows if row["verdict"] != "not run"]
    parts = []
    for paper in dict.fromkeys(row["paper"] for row in rows):
        claims = [row for row in rows if row["paper"] == paper]
        findings = [row for row in claims if row["role"] != "check"]
        about = f"<b>{claims[0]['title']}</b> (<code>{paper}</code>)"
        parts += [f"<details><summary>{about}: {counted(findings)}</summary>", ""]
        parts += [claims[0]["meaning"], ""] * bool(claims[0]["meaning"])
        for role in ROLES:
            if mine := [row for row in claims if row["role"] == role]:
                parts += [f"**{role}**: {counted(mine)}", ""]
                parts += [
                    "| claim | verdict | effect [95 % interval] | the paper | scale, seeds |",
                    "|---|---|---|---|---|",
                ]
                parts += [*map(table_row, mine), ""]
        parts += ["</details>", ""]
    machines = sorted({row["machine"] for row in rows})
    parts.append(
        f"Measured on: {'; '.join(machines)}. The effect of a comparison is positive where it speaks for the method; "
        "that of a bound is the measured value, that of an equivalence the difference."
    )
    return "\n".join(parts)


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


def main() -> None:
    """Write between the markers; all else in the page is left as it is."""
    page = ROOT / "docs" / "board.md"
    before, _, rest = page.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n{board()}\n{END}{after}")


if __name__ == "__main__":
    main()
