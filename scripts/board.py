"""The board of our own measurements, from a store.

    python scripts/board.py                     rewrites docs/board.md between its markers, from what `laureate board`
                                                shows: what lies in LAUREATE_HOME, else the verdicts that ship
    python scripts/board.py --reference STORE   writes papers/*/reference.jsonl, the verdicts that ship, and the column
                                                of verdicts in README.md

STORE is a store.sqlite; a copy of it is read, so that a run may go on writing. Claims of which it knows nothing keep
the reference that they have, and papers of which nothing is known their section.
"""

import argparse
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from laureate.pages import wording
from laureate.pages.wording import MARKS

if TYPE_CHECKING:
    from laureate.lab.claim import Paper
    from laureate.lab.judging.results import ClaimResult

ROOT = Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- board: begin -->", "<!-- board: end -->"
PAPERS = "<!-- papers: begin -->", "<!-- papers: end -->"
BAR = "\\|"  # a bar that ends no cell
TABLE = (
    "| claim | verdict | effect [95 % interval] | arms | the paper | data, scale, seeds |",
    "|---|---|---|---|---|---|",
)
SECTION = re.compile(r"<details><summary>[^\n]*\(<code>([^<]*)</code>\).*?</details>", re.DOTALL)


def board(page: str, results: list["ClaimResult"]) -> str:
    """The page's table anew: a line a paper, and behind it every decided claim as a row of a table."""
    from laureate.papers import all_papers

    decided = [result for result in results if result.verdict != "not run"]
    sections = {found[1]: found[0] for found in SECTION.finditer(page)}
    for paper in all_papers():
        if mine := [result for result in decided if result.paper == paper.id]:
            sections[paper.id] = section(paper, mine)
    machines = sorted({result.machine for result in decided})
    last = (
        f"Measured on: {'; '.join(machines)}. The effect of a comparison is positive where it speaks for the method; "
        "that of a bound is the measured value, that of an equivalence the difference. Beside it stand the means of "
        f"the arms that it compares.\n\n{seen({result.paper for result in decided})}"
    )
    return "\n\n".join([*(sections[paper] for paper in sorted(sections)), last])


def seen(papers: set[str]) -> str:
    """How many claims of these papers were declared, and how many changed in what decides them, after a result."""
    from laureate.lab import ledger
    from laureate.papers import paper

    late = changed = claims = 0
    for one in map(paper, papers):
        lines = ledger.history(one.id)
        for first, *others in (lines[claim.name] for claim in one.claims if not claim.is_question):
            steps = zip((first, *others), others, strict=False)
            claims, late = claims + 1, late + (first.results == "after")
            changed += any(after.results == "after" and after.digest != before.digest for before, after in steps)
    return (
        f"Of {claims} claims {claims - late} were declared before a result of theirs had been seen. Of {changed} "
        "something that decides them, a guard, a grid, a margin, a rival, a scale, was changed after one."
    )


def section(paper: "Paper", claims: list["ClaimResult"]) -> str:
    """Of one paper, folded."""
    from laureate.lab.judging.results import by_role

    findings = [result for result in claims if result.role != "check"]
    about = f"<b>{paper.title}</b> (<code>{paper.id}</code>)"
    parts = [f"<details><summary>{about}: {counted(findings)}</summary>", "", paper.meaning, ""]
    for role, mine in by_role(claims).items():
        parts += [f"**{role}**: {counted(mine)}", "", *TABLE, *map(table_row, mine), ""]
    return "\n".join([*parts, "</details>"])


def counted(results: list["ClaimResult"]) -> str:
    """How many have each verdict."""
    from laureate.lab.judging.results import tally

    return ", ".join(f"{MARKS[word]} {count} {word}" for word, count in tally(results).items())


def table_row(result: "ClaimResult") -> str:
    """One claim, in the words of `laureate board`."""
    words = wording.centre(result), wording.unit_of(result), wording.interval(result)
    effect = f"{' '.join(words)} over {result.over}" if result.has_effect else ""
    arms = "; ".join(filter(None, (wording.means(result), wording.rival(result), wording.busy(result))))
    claim, verdict = f"`{result.id}` {result.statement}", f"{MARKS[result.verdict]} {result.verdict}"
    where = ", ".join((*result.data, result.scale, str(result.seeds)))
    cells = claim, verdict, effect, arms, result.reported, where
    return f"| {' | '.join(cell.replace('|', BAR) for cell in cells)} |"


def write_board() -> None:
    """Write between the markers; all else in the page is left as it is."""
    from laureate.lab.records import board_results
    from laureate.lab.storing.home import store_path
    from laureate.lab.storing.store import Store
    from laureate.papers import all_papers

    page, store = ROOT / "docs" / "board.md", Store(store_path())
    before, _, rest = page.read_text("utf-8").partition(BEGIN)
    known, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n{board(known, board_results(store, all_papers()))}\n{END}{after}", "utf-8")
    store.close()


def write_reference(path: Path) -> None:
    """What is shown of every claim in a store, on the papers' own problems, as the files that ship."""
    from laureate.lab import ledger, reference
    from laureate.lab.cell import DEFAULT_PROBLEM
    from laureate.papers import all_papers
    from store_copy import copied

    with copied(path) as store:
        shown = {claim: result for (claim, where), result in store.shown().items() if where == DEFAULT_PROBLEM}
        for paper in all_papers():
            file, lines, new = reference.path_of(paper.id), [], 0
            old = file.read_text("utf-8").splitlines() if file.is_file() else []
            kept = {json.loads(line)["id"]: line for line in old}
            for experiment in paper.experiments:
                for claim in experiment.claims:
                    id, digest = f"{paper.id}/{claim.name}", ledger.digest(experiment, claim)
                    line = kept.get(id, "") if digest in kept.get(id, "") else ""
                    if found := shown.get(id):
                        versions = ((store.run(found.run) or {}) if found.run else {}).get("environment", {})
                        made = reference.line_of(found, digest, in_words(versions.get("versions", {})))
                        line, new = made or line, new + bool(made)
                    lines += [line] * bool(line)
            if new:
                file.write_text("\n".join(lines) + "\n", "utf-8")
                print(f"{paper.id}: {new} of {len(paper.claims)}")
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


def in_words(versions: dict[str, str]) -> str:
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
