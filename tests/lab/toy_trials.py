"""A trial small enough to run everywhere: the mean of a few draws, worse by ``arm.shift``."""

import os
import resource
import signal
import time
from pathlib import Path

import jax
import jax.numpy as jnp


class Bowl:
    """A problem with an offset; a user's own may be any object with one."""

    def __init__(self, offset: float = 0.0):
        self.offset = offset


def trial(key, arm, problem, scale):
    draws = jax.random.normal(key, (scale.draws,))
    loss = jnp.mean(draws) + arm.shift + problem.offset
    steps = jnp.arange(1.0, 5.0)
    return {"loss": loss, "curve": loss / steps, "steps": steps, "draws": draws}


def broken(key, arm, problem, scale):
    if arm.fails:
        raise FloatingPointError("the arm is broken on purpose")
    return trial(key, arm, problem, scale)


def deadly(key, arm, problem, scale):
    if arm.fails:
        os._exit(1)
    return {"loss": jnp.float32(0.0)}


def slow(key, arm, problem, scale):
    """A cell that takes its time, and from the seed TOY_HELD on does not end, so that a test can stop a run."""
    seed = int(jax.random.key_data(key)[-1])
    time.sleep(7200.0 if seed >= int(os.environ.get("TOY_HELD", 2**31)) else scale.sleep)
    return {"loss": jax.random.normal(key) + arm.shift}


def announced(key, arm, problem, scale):
    """When it computes, a file in ``scale.folder`` says on which node of a Ray cluster.

    On the node that the file ``held`` names it never ends; on another, not before somebody computes there.
    """
    import ray

    node = ray.get_runtime_context().get_node_id() if ray.is_initialized() else "here"
    folder = Path(scale.folder)
    held = (folder / "held").read_text()
    (folder / f"{node}-{os.getpid()}").touch()
    while node == held or not list(folder.glob(f"{held}-*")):
        time.sleep(0.05)
    return {"loss": jax.random.normal(key) + arm.shift}


def hungry(key, arm, problem, scale):
    """More memory than there is: killed as the system kills, or refused as by a limit on the process."""
    if arm.how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if arm.how == "refused":
        import numpy as np

        before = resource.getrlimit(resource.RLIMIT_AS)
        try:
            resource.setrlimit(resource.RLIMIT_AS, (_address_space() + (64 << 20), before[1]))
            np.ones(1 << 28)
        finally:
            resource.setrlimit(resource.RLIMIT_AS, before)
    return {"loss": jnp.float32(0.0)}


def _address_space() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()
