"""The results of the races in ``examples/races``, from a store, into ``docs/races.md`` between its markers.

    laureate race examples/races/karate_energy.py:energy --seconds 30    # and so on: the newest of each problem counts
    python scripts/races.py LAUREATE_HOME

Races that the store does not have keep what the page says of them. The picture of one of them goes to ``docs/images``.
"""

import argparse
import json
import re
from pathlib import Path

from laureate.pages.race import NOTEBOOK, cells, columns, picture
from laureate.racing.results import RaceResult
from store_copy import copied

ROOT = Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
SECTION = re.compile(r"<details><summary><code>([^<]*)</code>.*?</details>", re.DOTALL)
DRAWN = "karate_energy.py:energy"  # the race whose picture is shown
IMAGE = Path("images") / "race.svg"
MOST = 4  # names in a summary


def races(home: Path) -> dict[str, tuple[str, RaceResult]]:
    """By problem: the day and the newest race that ended; none of an older form, to be raced again."""
    with copied(home / "store.sqlite") as store:
        runs = reversed(store.runs(store.last_run() or 0))
        rows = [(run["started"][:10], store.artefact(run["id"], "race.json")) for run in runs]
    ended = [(day, RaceResult.from_json(json.loads(data))) for day, data in rows if data and b'"against"' in data]
    examples = {path.name for path in (ROOT / "examples" / "races").glob("*.py")}
    return {one.problem: (day, one) for day, one in ended if one.problem.partition(":")[0] in examples}


def section(day: str, race: RaceResult) -> str:
    """Of one race, folded: the table, the advice, and what must be known to read it."""
    quality = columns(race.metric)[2]
    facts = f"{race.budget:,} {race.unit} a run, {race.seeds} seeds, {day}, {race.machine}"
    lines = [
        f"<details><summary><code>{race.problem}</code> ({race.discipline}): {summary(race)}</summary>",
        "",
        f"{race.title} {quality}: {race.metric.words}. {facts}.",
        "",
        f"|  | entrant | {quality} | 95 % interval | to the first | a run | settings |",
        "|---|---|---|---|---|---|---|",
        *(f"| {' | '.join(without_compiling(cells(row)))} |" for row in race.rows),
        "",
        f"**{race.advice}**",
    ]
    words = [f"{row.entrant}: {word}" for row in race.rows for word in row.words]
    return "\n".join([*lines, *([""] if words else []), *(f"- {word}" for word in words), "", "</details>"])


def without_compiling(row: tuple[str, ...]) -> tuple[str, ...]:
    """A row of the pages' table without its last column but one."""
    return (*row[:-2], row[-1])


def summary(race: RaceResult) -> str:
    """The first, who is within noise, who is really worse; in one line."""
    groups: dict[str, list[str]] = {}
    for row in race.rows:
        words = {"first": "", "the same in every seed": "the same"}
        word = row.against.partition(",")[0]
        groups.setdefault(words.get(word, word), []).append(row.entrant)
    first = f"<b>{', '.join(groups.pop('', ['nobody']))}</b>"
    return "; ".join([first, *(f"{word}: {_some(names)}" for word, names in groups.items())])


def _some(names: list[str]) -> str:
    return (
        ", ".join(names) if len(names) <= MOST else f"{', '.join(names[: MOST - 1])} and {len(names) - MOST + 1} more"
    )


def drawn(race: RaceResult) -> str:
    """Quality against cost as a picture that stands alone: the pages' chart with its style and its names inside."""
    chart, _, legend = picture(race, "cost").partition("</svg>")
    entries = re.findall(r'<li class="([^"]*)">([^<]*)</li>', legend)
    height = 300 + 18 * ((len(entries) + 2) // 3)
    style = NOTEBOOK.replace(".laureate-race ", "").replace(".laureate-race{", "svg{")
    names = []
    for i, (look, name) in enumerate(entries):
        x, y = 20 + 150 * (i % 3), 308 + 18 * (i // 3)
        names.append(f'<path class="line {look}" d="M{x} {y - 4}h18"/><text x="{x + 24}" y="{y}">{name}</text>')
    chart = chart.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1).replace(
        "0 0 460 300", f"0 0 460 {height}"
    )
    paper = f'<rect width="460" height="{height}" fill="#fff"/>'
    start = chart.index("<desc>")
    return f"{chart[:start]}{style}{paper}{chart[start:]}{''.join(names)}</svg>\n"


def main() -> None:
    """As the words say."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("home", type=Path, help="the folder of a store.sqlite")
    home = parser.parse_args().home
    if not (home / "store.sqlite").is_file():
        parser.error(f"{home} holds no store.sqlite")
    found = races(home)
    page = ROOT / "docs" / "races.md"
    before, _, rest = page.read_text("utf-8").partition(BEGIN)
    known, _, after = rest.partition(END)
    sections = {match[1]: match[0] for match in SECTION.finditer(known)}
    sections |= {problem: section(day, race) for problem, (day, race) in found.items()}
    parts = [sections[problem] for problem in sorted(sections)]
    raced = {problem.partition(":")[0] for problem in sections}
    if others := sorted(path.name for path in (ROOT / "examples" / "races").glob("*.py") if path.name not in raced):
        parts.append(f"Not raced with enough seeds yet: {', '.join(f'`{name}`' for name in others)}.")
    picture_file = ROOT / "docs" / IMAGE
    if DRAWN in found:
        picture_file.write_text(drawn(found[DRAWN][1]), "utf-8")
    if picture_file.exists():
        parts.append(f"![{DRAWN}: quality against cost, a line an entrant]({IMAGE})")
    page.write_text(f"{before}{BEGIN}\n\n" + "\n\n".join(parts) + f"\n\n{END}{after}", "utf-8")
    print(f"{len(found)} of {len(sections)} races from the store")


if __name__ == "__main__":
    main()
