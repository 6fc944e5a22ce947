"""One program over several processes that talk by gloo over sockets: the same numbers as in one."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from example_files import loaded
from laureate.decentralized import launch

SCRIPT = Path(__file__).with_name("on_processes.py")


@pytest.fixture(scope="module")
def here():
    module = loaded(SCRIPT)
    return module.found(None)


@pytest.mark.slow
@pytest.mark.parametrize("processes", [2, 4])
def test_many_processes_are_one(here, processes):
    outputs = launch([sys.executable, str(SCRIPT)], processes, environment={"JAX_PLATFORMS": "cpu"}, timeout=400)
    told = [json.loads(output.splitlines()[-1]) for output in outputs]
    assert all(each["processes"] == each["devices"] == processes for each in told)
    assert all(each == told[0] for each in told), "every process knows the whole result"
    assert f"must be a multiple of the {processes} devices of the mesh; got {processes + 1}" in told[0]["refused"]
    there = told[0]["found"]
    # The order in which numbers are added differs, and Adam divides by small ones.
    assert_allclose(there["particles"]["losses"], here["particles"]["losses"], rtol=1e-4)
    for name in ("a", "b"):
        assert_allclose(there["particles"]["theta"][name], here["particles"]["theta"][name], rtol=1e-3, atol=1e-5)
    assert_array_equal(there["chains"]["samples"], here["chains"]["samples"])
    assert_allclose(there["chains"]["rate"], here["chains"]["rate"], rtol=1e-5)
    assert there["chains"]["cost"] == here["chains"]["cost"]
    if processes == len(here["nodes"]["params"][0]):
        assert_allclose(there["nodes"]["params"], here["nodes"]["params"], rtol=2e-5, atol=2e-6)
        assert there["nodes"]["cost"] == here["nodes"]["cost"]
    else:
        assert there["nodes"] is None


@pytest.mark.slow
def test_what_is_compared_is_not_empty(here):
    samples = np.asarray(here["chains"]["samples"])
    assert samples.shape == (8, 30, 6)
    assert len({chain.tobytes() for chain in samples}) == 8
    assert len(set(here["particles"]["losses"])) > 1
