"""Add to a paper's ledger what is declared now and is not its last line.

    python scripts/ledger.py pes --reason "why" --before-results
    python scripts/ledger.py pes --claim toy-schedule --reason "why" --after-results

Every new, changed or removed claim of the paper gets a line, or those named (also where only their trial was changed).
``--before-results`` means that nobody had seen a result of the claim when it was written as it stands now. Without a
reason nothing is written: the claims that lack a line are listed. The line that ``laureate new`` wrote in place of a
declaration goes with the first that is one: it must be in no commit, for what is committed stays.
"""

import argparse
import datetime
import json
import sys
from pathlib import Path

from laureate.cli.new import MARK
from laureate.lab.ledger import Entry, history, missing, path_of
from laureate.papers import paper, paper_ids


def drop_placeholders(ledger: Path) -> None:
    """Without the lines of the skeleton."""
    lines = ledger.read_text("utf-8").splitlines(keepends=True) if ledger.exists() else []
    kept = [line for line in lines if not json.loads(line)["reason"].startswith(MARK)]
    if kept != lines:
        ledger.write_text("".join(kept), "utf-8")


def main() -> int:
    """Write the lines, or say which are lacking."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paper", choices=paper_ids())
    parser.add_argument("--reason", default="", help="why it was declared or changed, in a sentence")
    parser.add_argument("--claim", action="append", default=[], help="only this one; may be given several times")
    seen = parser.add_mutually_exclusive_group()
    seen.add_argument("--before-results", dest="results", action="store_const", const="before")
    seen.add_argument("--after-results", dest="results", action="store_const", const="after")
    options = parser.parse_args()

    if unknown := [
        name for name in options.claim if name not in history(options.paper) | missing(paper(options.paper))
    ]:
        parser.error(f"there are no claims {', '.join(unknown)}")
    if options.reason and options.results:
        drop_placeholders(path_of(options.paper))
    lacking = missing(paper(options.paper))
    # A claim that is named may have a line though its declaration is the same: its trial was changed.
    last = {name: entries[-1].digest for name, entries in history(options.paper).items()}
    chosen = {name: (last | lacking)[name] for name in options.claim} or lacking
    if not options.reason or not options.results:
        print("\n".join(f"{name}: {found or 'removed'}" for name, found in chosen.items()) or "nothing is lacking")
        print("give --reason and --before-results or --after-results to write" if chosen else "", end="")
        return 1 if chosen else 0
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    with path_of(options.paper).open("a", encoding="utf-8") as file:
        for name, found in chosen.items():
            file.write(Entry(today, name, found, options.reason, options.results, "this commit").line() + "\n")
    print(f"{len(chosen)} lines written to {path_of(options.paper)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
