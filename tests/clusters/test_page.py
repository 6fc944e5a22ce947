"""docs/clusters.md: what can be checked without a cluster, and its example on this machine."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from example_files import loaded
from laureate.decentralized import launch

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "clusters.md").read_text("utf-8")
EXAMPLE = ROOT / "examples" / "several_hosts.py"


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("script", blocks("bash"), ids=range(len(blocks("bash"))))
def test_the_scripts_parse(script):
    done = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr


def test_the_manifests_parse():
    yaml = pytest.importorskip("yaml", reason="PyYAML comes with Ray: pip install 'laureate[ray]'")
    kinds = [part["kind"] for block in blocks("yaml") for part in yaml.safe_load_all(block)]
    assert kinds == ["RayCluster", "Service", "Job"]


def test_what_the_page_names_is_there():
    for path in re.findall(r"examples/\w+\.py", PAGE):
        assert (ROOT / path).is_file(), path
    assert "ray[client]" in (ROOT / "pyproject.toml").read_text()


@pytest.mark.slow
def test_the_example_on_two_processes_is_that_on_one(capsys):
    module = loaded(EXAMPLE)
    theta, agree = module.main()
    alone = capsys.readouterr().out.partition(": ")[2]
    first, second = launch([sys.executable, str(EXAMPLE)], 2, timeout=400)
    assert "devices" not in second
    there = first.splitlines()[-1]  # gloo says something too
    assert there.startswith("2 devices: ")
    # To the three digits that are printed; the order of adding moves the sixth.
    assert there.partition(": ")[2] == alone.strip()
    assert theta > 0.1
    assert 0.6 < agree < 0.85  # ½ (1 + tanh ½) = 0.731
