"""What answers at once must not load jax."""

import subprocess
import sys

import pytest

PROBE = """
import sys
from laureate.cli import cli
try:
    cli.main({words!r}, standalone_mode=False)
finally:
    loaded = sorted({{"jax", "equinox", "optax", "sklearn", "scipy", "altair", "vl_convert"}} & set(sys.modules))
    print("LOADED", loaded)
"""


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["board"],
        ["board", "--json"],
        ["show", "pes"],
        ["cite", "pes"],
        ["doctor"],
        ["run", "--help"],
        ["plan", "--all", "--scale", "full"],
        ["bench", "--help"],
        ["find", "noisy"],
        ["report"],
    ],
    ids=" ".join,
)
def test_jax_is_not_loaded(words, tmp_path, monkeypatch):
    monkeypatch.setenv("LAUREATE_HOME", str(tmp_path))
    done = subprocess.run([sys.executable, "-c", PROBE.format(words=words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith("LOADED []"), done.stdout[-300:]
