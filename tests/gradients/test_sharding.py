"""Pairs split over four devices: the same numbers as on one, and one reduction an update."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # four devices compile for half a minute
SCRIPT = Path(__file__).with_name("on_four_devices.py")


@pytest.fixture(scope="module")
def report():
    flags = "--xla_force_host_platform_device_count=4 --xla_cpu_multi_thread_eigen=false"
    environment = os.environ | {"XLA_FLAGS": flags, "JAX_ENABLE_X64": "1", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, SCRIPT], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_it_ran_on_four_devices(report):
    assert report["devices"] == 4


@pytest.mark.parametrize("name", ["PersistentES", "NoiseReuseES", "TruncatedES", "FullES", "AnalyticPES", "unaligned"])
def test_four_devices_are_one(report, name):
    """Noise goes by the global index of a pair: the union of the shards is the whole, up to the order of adding."""
    case = report[name]
    assert case["largest error"] < 1e-12
    assert case["info error"] < 1e-12


@pytest.mark.parametrize("name", ["PersistentES", "unaligned"])
def test_one_reduction_an_update_and_nothing_else_travels(report, name):
    assert report[name]["collectives"] == {"psum": 1}


def test_states_stay_where_they_are(report):
    assert report["PersistentES"]["sharded leaves"]
