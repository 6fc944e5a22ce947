"""Rewrite what README.md shows of stored results: the board between its markers, and the pictures.

python scripts/readme.py            the board, from the store of LAUREATE_HOME
python scripts/readme.py --pictures also screenshots of the newest run's page (needs chromium)
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LAUREATE = Path(sys.executable).with_name("laureate")
BEGIN, END = "<!-- board: begin -->", "<!-- board: end -->"
MARKS = {"supported": "✔", "refuted": "✘", "inconclusive": "?", "not run": "·"}


def number(value: float | None) -> str:
    """Three digits and a real minus sign."""
    return "" if value is None else f"{value:.3g}".replace("-", "−")


def board() -> str:
    """Every decided claim as a row of a Markdown table."""
    rows = json.loads(subprocess.check_output([LAUREATE, "board", "--json"]))
    rows = [row for row in rows if row["problem"] == "default" and row["verdict"] != "not run"]
    machines = sorted({row["machine"] for row in rows})
    lines = ["| claim | verdict | effect [95 % interval] | scale, seeds |", "|---|---|---|---|"]
    for row in rows:
        effect = f"{number(row['effect'])} [{number(row['low'])}, {number(row['high'])}]"
        verdict = f"{MARKS[row['verdict']]} {row['verdict']}"
        lines.append(f"| `{row['id']}` {row['statement']} | {verdict} | {effect} | {row['scale']}, {row['seeds']} |")
    lines.append("")
    lines.append(f"Measured on: {'; '.join(machines)}. An effect is signed so that positive means the paper is right.")
    return "\n".join(lines)


def pictures() -> None:
    """Screenshots of the newest run's page, wide and light, narrow and dark."""
    chromium = shutil.which("chromium") or sys.exit("pictures need chromium: apt-get install chromium")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        subprocess.check_call([LAUREATE, "report", "-o", str(page)], stdout=subprocess.DEVNULL)
        for name, width, height, dark in [("page-light", 1100, 1180, False), ("page-dark-phone", 500, 1180, True)]:
            quiet = (
                "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --hide-scrollbars"
            )
            subprocess.check_call(
                [
                    *(chromium, *quiet.split(), f"--user-data-dir={folder}/{name}", f"--window-size={width},{height}"),
                    *(["--blink-settings=preferredColorScheme=0"] if dark else []),
                    *(f"--screenshot={ROOT / 'docs' / 'images' / name}.png", page.as_uri()),
                ],
                stderr=subprocess.DEVNULL,
            )


def main() -> None:
    """Write between the markers; all else in the README is left as it is."""
    readme = ROOT / "README.md"
    before, _, rest = readme.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    readme.write_text(f"{before}{BEGIN}\n{board()}\n{END}{after}")
    if "--pictures" in sys.argv:
        pictures()


if __name__ == "__main__":
    main()
