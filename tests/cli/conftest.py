"""The command line on a toy paper: fast, and independent of which papers there are."""

import importlib
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from laureate import cli as package

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "lab"))
import toys


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A home with one paper, ``toy``; change ``toy.paper`` to have another."""
    holder = SimpleNamespace(paper=toys.paper())
    monkeypatch.setenv("LAUREATE_HOME", str(tmp_path / "home"))
    for module in [importlib.import_module(name) for name in ("laureate.papers", "laureate.pages.report")]:
        monkeypatch.setattr(module, "paper_ids", lambda: ["toy"])
    monkeypatch.setattr("laureate.papers.paper", lambda _: holder.paper)
    monkeypatch.setattr("laureate.pages.report.load_paper", lambda _: holder.paper)
    return holder


@pytest.fixture
def laureate(toy, monkeypatch, capsys):
    """``laureate("run", "toy")`` -> exit code, standard output, standard error, as at a shell of 100 columns."""
    monkeypatch.setenv("COLUMNS", "100")

    def call(*words: str) -> SimpleNamespace:
        monkeypatch.setattr(sys, "argv", ["laureate", *words])
        with pytest.raises(SystemExit) as stopped:
            package.main()
        said = capsys.readouterr()
        return SimpleNamespace(code=stopped.value.code or 0, out=said.out, err=said.err)

    return call
