"""What a terminal shows: at any width no word is broken, and the time left is known as soon as one cell is done."""

import io

import pytest
from rich.console import Console

import toys
from laureate.cli import COMMANDS
from laureate.cli._progress import LineProgress, TerminalProgress, TimeLeft, make_bar
from laureate.lab.cell import Outcome
from laureate.lab.running.plan import plan

SMOKE = ("--scale", "smoke", "--workers", "1", "--quiet")


def cells():
    return plan(toys.selections(toys.paper()), "smoke")


@pytest.mark.parametrize("width", [60, 120])
def test_a_line_of_progress_fits_and_has_the_time_left(width, monkeypatch):
    said = io.StringIO()
    console = Console(file=said, width=width, force_terminal=True, color_system=None, legacy_windows=False)
    monkeypatch.setattr("rich.console.Console", lambda **_: console)
    progress = TerminalProgress()
    progress.start(cells(), 3, 2)
    progress.finished(cells()[0], Outcome(seconds=90.0))
    progress.stop()
    lines = render(width, progress)
    assert len(lines) == 1
    assert len(lines[0]) <= width
    assert lines[0].startswith("toy/toy")
    assert "1/6" in lines[0]
    assert "about 4 min left" in lines[0]
    assert "6 cells to compute, 3 kept" in said.getvalue()


def render(width, progress):
    """The line as it stood when it was taken away."""
    said = io.StringIO()
    Console(file=said, width=width, color_system=None).print(progress._bar.get_renderable())
    return [line.rstrip() for line in said.getvalue().splitlines()]


def test_a_narrow_bar_has_no_clock():
    assert len(make_bar(Console(width=60)).columns) < len(make_bar(Console(width=120)).columns)


def test_time_left_by_experiment():
    left = TimeLeft(cells(), 2)
    assert (left.seconds(), left.words()) == (None, "")
    left.done(cells()[0], 10.0)
    assert left.seconds() == pytest.approx(5 * 10.0 / 2)


def test_lines_in_a_pipe_have_it_too(capsys):
    progress = LineProgress()
    progress.start(cells(), 0, 1)
    progress.finished(cells()[0], Outcome(seconds=2.0))
    assert "[1/6] done toy/toy · ours · seeds 0–4 · 2.0 s · about 10 s left" in capsys.readouterr().err


@pytest.mark.parametrize("width", ["60", "120"])
def test_no_word_is_broken_and_no_summary_cut(laureate, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", width)
    laureate("run", "toy", *SMOKE)
    said = (["board"], ["show", "toy"], ["show", "pse"], ["runs"], ["plan", "toy"], ["run", "toy", *SMOKE])
    for words in (*said, ["find", "gradients through a long unroll"], ["doctor"], ["compare", "1", "1"]):
        out = laureate(*words).out
        for line in out.splitlines():
            path = max(map(len, line.split()), default=0) > int(width) - 26  # a word that no line has room for
            alone = path or "the page:" in line or "laureate run" in line or line.startswith(" " * 4)
            assert len(line) <= int(width) or alone, line
    help_text = laureate("--help").out
    assert "..." not in help_text.partition("Commands:")[2]
    assert all(f"\n  {name}" in help_text for name in COMMANDS)
