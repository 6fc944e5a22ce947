"""What answers at once must not load jax."""

import json
import subprocess
import sys

COMMANDS = [
    ["--help"],
    ["board"],
    ["board", "--json"],
    ["show", "pes"],
    ["cite", "pes"],
    ["doctor"],
    ["run", "--help"],
    ["plan", "pes", "--scale", "full"],
    ["bench", "--help"],
    ["find", "noisy"],
    ["report"],
]
# One process for all: what a command loads stays loaded, so that the first of those told is the one that loads it.
PROBE = """
import json, sys
from laureate.cli import cli
found = {}
for words in json.loads(sys.argv[1]):
    cli.main(words, standalone_mode=False)
    slow = {"jax", "equinox", "optax", "sklearn", "scipy", "altair", "vl_convert"}
    found[" ".join(words)] = sorted(slow & set(sys.modules))
print("LOADED", json.dumps({words: modules for words, modules in found.items() if modules}))
"""


def test_jax_is_not_loaded(tmp_path, monkeypatch):
    monkeypatch.setenv("LAUREATE_HOME", str(tmp_path))
    command = [sys.executable, "-c", PROBE, json.dumps(COMMANDS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith("LOADED {}"), done.stdout[-300:]
