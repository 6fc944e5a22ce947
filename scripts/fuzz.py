"""Hand the importers, the search and the check of problem files what nobody would, for a fixed time: ``make fuzz``.

    python scripts/fuzz.py [--seconds 60] [--engine atheris|hypothesis] [TARGET...]

A target reads an input and either answers or refuses in its own words (Malformed, UserError); anything else is a
finding, and so is an input of some kilobytes that takes seconds. Findings are printed with the input and kept in a
folder; exit code 1 where there are any. atheris (``pip install atheris``) follows the code it reaches; without it
hypothesis draws from the pieces that hurt (tests/cli/hostile.py).
"""

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "tests" / "catalogue" / "data"
SLOW_SECONDS = 3.0
LARGEST = 16_384
# Target -> (the form of its inputs in tests/cli/hostile.py, a file that atheris begins with).
TARGETS = {
    "openreview": ("notes.json", "api1.json"),
    "bibtex": ("papers.bib", "papers.bib"),
    "virtual_site": ("page.html", "awards.html"),
    "listing": ("list.md", "listing.md"),
    "read_file": ("bytes.bin", "api2.json"),
    "find": ("any.txt", None),
    "problem": ("problem", None),
}


def reader(target: str) -> Callable[[bytes], None]:
    """What is done with an input; what it may raise is caught in here."""
    from laureate.catalogue.importers import Malformed, clean, read_file
    from laureate.lab.errors import UserError

    folder = Path(tempfile.mkdtemp(prefix="laureate-fuzz-"))
    os.environ["LAUREATE_HOME"] = str(folder)

    def check(papers: list[Any]) -> None:
        for paper in papers:
            texts = (paper.title, paper.abstract, paper.venue, paper.award, *paper.authors)
            if not paper.title or any(text != clean(text, 20_000) for text in texts):
                raise ValueError(f"text from outside that is not plain: {paper!r}")

    if target in ("openreview", "bibtex", "virtual_site", "listing"):
        module = importlib.import_module(f"laureate.catalogue.importers.{target}")

        def read(data: bytes) -> None:
            try:
                check(module.read(data.decode("utf-8", "surrogatepass")))
            except (Malformed, UnicodeDecodeError):
                return

    elif target == "read_file":

        def read(data: bytes) -> None:
            (folder / "input").write_bytes(data)
            try:
                check(read_file(folder / "input"))
            except UserError as error:
                if "\n" in str(error):
                    raise ValueError("a message of several lines") from error

    elif target == "find":
        from laureate.catalogue import Catalogue

        catalogue = Catalogue()

        def read(data: bytes) -> None:
            catalogue.search(data.decode("utf-8", "replace"), limit=3)

    else:
        from laureate.lab.running.fingerprint import fingerprint
        from laureate.lab.running.references import check_file

        def read(data: bytes) -> None:
            (folder / "input.py").write_bytes(data)
            try:
                fingerprint({}, (check_file(f"{folder / 'input.py'}:bowl"),))
            except UserError as error:
                if "\n" in str(error):
                    raise ValueError("a message of several lines") from error

    return read


def by_atheris(target: str, seconds: int, found: Path) -> bool:
    """Coverage-guided, in this process; libFuzzer leaves it at the first finding."""
    import atheris  # pyright: ignore[reportMissingImports]

    engine: Any = atheris
    with engine.instrument_imports(include=["laureate"]):
        read = reader(target)
    corpus = found / "corpus" / target
    corpus.mkdir(parents=True, exist_ok=True)
    begin = TARGETS[target][1]
    if begin:
        (corpus / "begin").write_bytes((DATA / begin).read_bytes()[:LARGEST])
    options = [f"-max_total_time={seconds}", f"-max_len={LARGEST}", f"-timeout={int(SLOW_SECONDS)}"]
    options += [f"-artifact_prefix={found}/{target}-", "-verbosity=0", "-print_final_stats=1"]
    engine.Setup([sys.argv[0], *options, str(corpus)], lambda data: read(bytes(data)))
    engine.Fuzz()
    return True


def by_hypothesis(target: str, seconds: int, found: Path) -> bool:
    """At random from the pieces that hurt, until the time is over."""
    from hypothesis import HealthCheck, Phase, given, settings

    sys.path.insert(0, str(ROOT / "tests" / "cli"))
    import hostile  # pyright: ignore[reportMissingImports]

    form = TARGETS[target][0]
    strategy = hostile.PROBLEMS if form == "problem" else hostile.FORMS[form]
    read = reader(target)
    end, tried, wrong = time.monotonic() + seconds, 0, 0

    def one(given_text: Any) -> None:
        nonlocal tried, wrong
        data = given_text if isinstance(given_text, bytes) else given_text.encode("utf-8", "surrogatepass")
        tried += 1
        start = time.process_time()
        try:
            read(data)
        except Exception:
            wrong += 1
            (found / f"{target}-{wrong}").write_bytes(data)
            print(f"{target}: {data[:300]!r}\n{traceback.format_exc()}")
        if time.process_time() - start > SLOW_SECONDS:
            wrong += 1
            print(f"{target}: {time.process_time() - start:.1f} s for {len(data)} bytes: {data[:300]!r}")

    while time.monotonic() < end and wrong < 5:
        settings(
            max_examples=500,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=tuple(HealthCheck),  # pyright: ignore[reportArgumentType],
        )(given(strategy)(one))()
    print(f"{target}: {tried:,} inputs, {wrong} findings")
    return wrong == 0


def main() -> None:
    """Every target in a process of its own, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"some of: {', '.join(TARGETS)}")
    parser.add_argument("--seconds", type=int, default=60, help="for all targets together")
    parser.add_argument("--engine", choices=["atheris", "hypothesis"], help="by default atheris where it is installed")
    parser.add_argument("--found", type=Path, default=None, help="where findings are kept; by default a new folder")
    options = parser.parse_args()
    wanted = options.targets or list(TARGETS)
    if unknown := sorted(set(wanted) - set(TARGETS)):
        sys.exit(f"There is no target {unknown[0]!r}; there are: {', '.join(TARGETS)}.")
    engine = options.engine or ("atheris" if importlib.util.find_spec("atheris") else "hypothesis")
    found = options.found or Path(tempfile.mkdtemp(prefix="laureate-fuzz-found-"))
    found.mkdir(parents=True, exist_ok=True)
    if len(wanted) == 1:
        work = by_atheris if engine == "atheris" else by_hypothesis
        sys.exit(0 if work(wanted[0], options.seconds, found) else 1)
    each = max(1, options.seconds // len(wanted))
    failed = []
    for target in wanted:
        print(f"== {target} ({engine}, {each} s)", flush=True)
        words = [target, "--seconds", str(each), "--engine", engine, "--found", str(found)]
        if subprocess.run([sys.executable, __file__, *words], check=False).returncode:
            failed.append(target)
    print(f"{len(wanted) - len(failed)} of {len(wanted)} targets without a finding; what was found: {found}")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
