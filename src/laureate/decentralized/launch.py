"""Start a local cluster: the same script once per node, each in a process of its own."""

import argparse
import os
import shlex
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["COORDINATOR", "NODE", "NODES", "LaunchError", "launch"]

COORDINATOR, NODES, NODE = "LAUREATE_COORDINATOR", "LAUREATE_NODES", "LAUREATE_NODE"
# Bytes that are no text of this machine's encoding are shown by their numbers.
TEXT: Any = {"errors": "backslashreplace"}
PATIENCE = 5.0  # seconds for the last lines of a node that has ended: a process it left behind may hold its output


class LaunchError(RuntimeError):
    """A node failed; the message ends with what it said last."""


def launch(
    command: Sequence[str],
    num_nodes: int,
    *,
    environment: Mapping[str, str] | None = None,
    timeout: float | None = None,
    show: bool = False,
) -> list[str]:
    """Run ``command`` once per node on this machine; returns what each wrote to standard output.

    If one fails the others are stopped, for they would wait for it for ever, and ``LaunchError`` quotes the end of its
    output. Failing is to raise, to be killed, or to end with a code before ``connect()``; a connected node that calls
    ``sys.exit`` waits at its end for the others, as one that is done, from which it is not distinguished.

    command: a program and its arguments, such as ``[sys.executable, "train.py"]``. num_nodes: how many, >= 1.
    environment: added to this process'. timeout: seconds after which all are stopped. show: print lines as they come,
    each with its node's number.
    """
    if isinstance(command, str):
        raise ValueError(f"launch.command must be a list of words; got {command!r}. shlex.split makes one.")
    if num_nodes < 1:
        raise ValueError(f"launch.num_nodes must be >= 1; got {num_nodes}.")
    shared = {**os.environ, **(environment or {}), COORDINATOR: f"127.0.0.1:{_free_port()}", NODES: str(num_nodes)}
    # One thread a node: they share this machine's cores.
    shared.setdefault("OMP_NUM_THREADS", "1")
    shared.setdefault("PJRT_NPROC", "1")
    with tempfile.TemporaryDirectory() as folder:
        running: list[Any] = []
        errors, outputs, readers = [], [[] for _ in range(num_nodes)], []
        try:
            for node in range(num_nodes):
                errors.append(open(os.path.join(folder, str(node)), "w+", **TEXT))  # noqa: SIM115
                process = subprocess.Popen(
                    list(command), env={**shared, NODE: str(node)}, stdout=subprocess.PIPE, stderr=errors[-1], **TEXT
                )
                running.append(process)
                readers.append(threading.Thread(target=_read, args=(process, node, outputs[node], show), daemon=True))
                readers[-1].start()
            _wait(running, errors, timeout)
        finally:
            for process in running:
                if process.poll() is None:
                    process.kill()
                process.wait()
            for reader in readers:
                reader.join(None if show else PATIENCE)  # whoever reads what is shown may be slow
            for file in errors:
                file.close()
        return ["".join(lines) for lines in outputs]


def _wait(running, errors, timeout) -> None:
    end = None if timeout is None else time.monotonic() + timeout
    while any(process.poll() is None for process in running):
        _raise_if_failed(running, errors)
        if end is not None and time.monotonic() > end:
            raise LaunchError(f"The nodes did not finish within {timeout:g} s.")
        time.sleep(0.05)
    _raise_if_failed(running, errors)


def _raise_if_failed(running, errors) -> None:
    for node, (process, file) in enumerate(zip(running, errors, strict=True)):
        if process.poll():
            file.seek(0)
            said = file.read().strip().splitlines()[-15:]
            raise LaunchError(f"Node {node} ended with code {process.returncode}:\n" + "\n".join(said))


def _read(process, node, lines, show) -> None:
    with process.stdout as output:
        for line in output:
            lines.append(line)
            if show:
                print(f"[{node}] {line}", end="", flush=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def main(words: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="laureate decentralized launch")
    parser.add_argument("-n", "--nodes", type=int, default=4)
    # One argument, for argparse would keep a "--" between two to itself.
    parser.add_argument("command", nargs=argparse.PARSER, metavar="script")
    given = parser.parse_args(words)
    script, *_ = given.command
    if not os.path.isfile(script):
        print(f"There is no file {script}.", file=sys.stderr)
        return 2
    if given.nodes < 1:
        print(f"--nodes must be >= 1; got {given.nodes}.", file=sys.stderr)
        return 2
    line = shlex.join(given.command)
    print(
        f"{given.nodes} nodes on this machine. On machines of your own run, with node i = 0 … {given.nodes - 1} and a "
        f"free port of the first:\n  {COORDINATOR}=FIRST_HOST:7777 {NODES}={given.nodes} {NODE}=i python {line}",
        file=sys.stderr,
    )
    try:
        launch([sys.executable, *given.command], given.nodes, show=True)
    except LaunchError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0
