"""One process a node over real sockets: the same numbers as in one process."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

from example_files import loaded
from laureate.decentralized import LaunchError, launch

HERE = Path(__file__).parent
launching: Any = sys.modules["laureate.decentralized.launch"]  # the package has the function under that name
SCRIPT = HERE / "on_four_processes.py"
EXAMPLE = HERE.parents[1] / "examples" / "own_network.py"


@pytest.fixture(scope="module")
def report():
    outputs = launch([sys.executable, str(SCRIPT)], 4, environment={"JAX_PLATFORMS": "cpu"}, timeout=400)
    assert all("processes" not in output for output in outputs[1:])
    return json.loads(outputs[0].splitlines()[-1])


@pytest.mark.slow
def test_four_processes_are_one(report):
    assert report["processes"] == 4
    module = loaded(SCRIPT)
    names = list(module.optimisers())
    assert list(report["found"]) == names
    here = module.run(None, names)
    for name in names:
        ours, theirs = jax.tree.leaves(here[name]), jax.tree.leaves(report["found"][name])
        assert_allclose(ours, theirs, rtol=2e-5, atol=2e-6, err_msg=name)


def test_a_node_that_fails_takes_the_others_with_it():
    script = "import os, sys, time\nif os.environ['LAUREATE_NODE'] == '1': sys.exit('out of luck')\ntime.sleep(60)"
    with pytest.raises(LaunchError, match=r"Node 1 ended with code 1:\nout of luck"):
        launch([sys.executable, "-c", script], 3)
    with pytest.raises(LaunchError, match=r"did not finish within 0\.3 s"):
        launch([sys.executable, "-c", "import time; time.sleep(60)"], 2, timeout=0.3)
    with pytest.raises(ValueError, match=r"launch.num_nodes must be >= 1; got 0"):
        launch([sys.executable, "-c", ""], 0)
    with pytest.raises(ValueError, match=r"launch.command must be a list of words; got 'echo 1'\. shlex.split"):
        launch("echo 1", 1)


def test_all_behind_a_script_is_the_scripts(monkeypatch, tmp_path, capsys):
    script, seen = tmp_path / "train.py", []
    script.write_text("")
    monkeypatch.setattr(launching, "launch", lambda *given, show: seen.append(given))
    behind = ["-n", "9", "--nodes=8", "--help", "-x", "--", "a", "-n3", "--fast"]
    for start in range(len(behind) + 1):
        assert launching.main(["-n", "2", str(script), *behind[start:]]) == 0
        assert seen.pop() == ([sys.executable, str(script), *behind[start:]], 2)
        assert capsys.readouterr().err.rstrip().endswith(" ".join(["python", str(script), *behind[start:]]))


@pytest.mark.slow
def test_launch_from_the_command_line(tmp_path):
    script = tmp_path / "who.py"
    script.write_text("import os, sys; print(os.environ['LAUREATE_NODE'], os.environ['LAUREATE_NODES'], sys.argv[1:])")
    words = ["decentralized", "launch", "-n", "2", str(script), "--fast", "3"]
    command = [sys.executable, "-c", "from laureate.cli import main; main()", *words]
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ))
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"[{i}] {i} 2 ['--fast', '3']" for i in range(2)]
    assert "LAUREATE_COORDINATOR=FIRST_HOST:7777 LAUREATE_NODES=2 LAUREATE_NODE=i python" in done.stderr


@pytest.mark.slow
def test_the_example_in_one_process(capsys):
    losses = loaded(EXAMPLE).main(rounds=300)
    assert losses["DeTAG"] < losses["D-PSGD"]
    assert "kB sent" in capsys.readouterr().out


@pytest.mark.slow
def test_the_example_over_five_processes():
    outputs = launch([sys.executable, str(EXAMPLE)], 5, timeout=600)
    assert "DeTAG   loss" in outputs[0]
    assert "DeTAG   loss" not in outputs[1]
    assert np.isfinite(float(outputs[0].split("on all patients ")[1].split(",")[0]))
