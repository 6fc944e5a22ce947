"""README: short, and what it shows runs as pasted."""

import re
import subprocess
import sys
from pathlib import Path

from skeletons import marked

from laureate.cli import COMMANDS
from laureate.papers import paper_ids

README = (Path(__file__).parents[1] / "README.md").read_text("utf-8")


def test_it_is_short_and_names_every_paper_and_command():
    assert len(README.splitlines()) <= 150
    assert all(f"| `{paper_id}` |" in README for paper_id in paper_ids() if not marked(paper_id))
    assert all(name in README for name in COMMANDS)
    for word in ("**Time**", "**Disk**", "**Systems**", "**GPU**", "**Privacy**", "**Where results lie**"):
        assert word in README


def test_the_snippet_runs_as_pasted(tmp_path):
    (snippet,) = re.findall(r"```python\n(.*?)```", README, re.S)
    done = subprocess.run([sys.executable, "-c", snippet], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "nan" not in done.stdout


def test_its_verdicts_are_those_that_ship():
    from board import with_verdicts

    assert with_verdicts(README) == README, "python scripts/board.py --reference STORE writes both"


def test_the_board_of_the_documentation_is_what_ships():
    from board import BEGIN, END, board
    from laureate.lab.judging.results import claims_of
    from laureate.lab.reference import reference
    from laureate.papers import all_papers

    page = (Path(__file__).parents[1] / "docs" / "board.md").read_text("utf-8")
    known = page.partition(BEGIN)[2].partition(END)[0].strip("\n")
    shipped = [claim for paper in all_papers() for claim in claims_of(paper, reference(paper))]
    assert board("", shipped) == known, "python scripts/board.py, with an empty LAUREATE_HOME, writes it"


def test_every_link_leads_somewhere():
    root = Path(__file__).parents[1]
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (root / target).exists(), target
