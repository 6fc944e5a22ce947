"""The local web under load: a thousand readers at once, slow clients, large bodies.

    python -m benchmarks pages_load [--readers 1000] [--json]

Readers: all connect, then all ask in the same moment. Slow clients: hundreds that
send a letter a second and never finish, while one reader goes on asking. Large bodies: forms that say they have a
gigabyte and begin to send it. The store holds 50 runs of the claims that ship.
"""

import argparse
import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from typing import Any

from benchmarks import pages_server
from laureate.lab.storing.home import store_path

# Name -> address, and how often each reader asks for it.
PAGES = {
    "board": ("/", 1),
    "run": ("/run/25", 1),
    "search": ("/catalogue?q=noisy+labels", 1),
    "style": ("/static/style.css", 3),
}
SLOW, SLOW_SECONDS = 500, 25.0
LARGE = 200


async def answer(reader: asyncio.StreamReader) -> int:
    """The status of one answer, read to its end."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(int(line.split()[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
    await reader.readexactly(length)
    return int(head.split()[1])


async def read_pages(
    port: int, path: str, times: int, begin: asyncio.Event, ready: list[int]
) -> list[tuple[Any, float]]:
    """One reader: (status or name of the error, seconds) of each page."""
    found: list[tuple[Any, float]] = []
    start = time.perf_counter()
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        ready.append(1)
        await begin.wait()
        for _ in range(times):
            start = time.perf_counter()
            writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            status = await asyncio.wait_for(answer(reader), 120)
            found.append((status, time.perf_counter() - start))
        writer.close()
    except (OSError, asyncio.IncompleteReadError, TimeoutError) as error:
        found.append((type(error).__name__, time.perf_counter() - start))
    return found


async def readers(port: int, count: int, path: str, times: int) -> dict[str, Any]:
    begin, ready = asyncio.Event(), []
    tasks = [asyncio.create_task(read_pages(port, path, times, begin, ready)) for _ in range(count)]
    while len(ready) < count and not all(task.done() for task in tasks):
        await asyncio.sleep(0.05)
    start = time.perf_counter()
    begin.set()
    found = [pair for task in tasks for pair in await task]
    seconds = time.perf_counter() - start
    taken = sorted(one for status, one in found if status == 200)
    return {
        "answers": dict(Counter(str(status) for status, _ in found)),
        "a_second": len(taken) / seconds,
        "ours_s": statistics.median(taken),
        "p95_s": taken[int(0.95 * len(taken))],
        "worst_s": taken[-1],
    }


async def dribble(port: int, until: float) -> float:
    """A slow client: how many seconds it was held before the server let it go."""
    start = time.perf_counter()
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
        while time.perf_counter() < until:
            writer.write(b"a")
            await writer.drain()
            if writer.transport.is_closing():
                break
            await asyncio.sleep(1.0)
    except OSError:
        pass
    writer.close()
    return time.perf_counter() - start


async def slow_clients(port: int) -> dict[str, Any]:
    end = time.perf_counter() + SLOW_SECONDS
    tasks = [asyncio.create_task(dribble(port, end)) for _ in range(SLOW)]
    await asyncio.sleep(1.0)
    waits = []
    while not all(task.done() for task in tasks):
        waits.append(await read_once(port))
        await asyncio.sleep(0.25)
    held = [await task for task in tasks]
    return {"ours_s": statistics.median(waits), "worst_s": max(waits), "held_s": max(held)}


async def read_once(port: int) -> float:
    start = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    if await asyncio.wait_for(answer(reader), 60) != 200:
        raise SystemExit("the board was refused")
    writer.close()
    return time.perf_counter() - start


async def large_bodies(port: int) -> dict[str, Any]:
    async def one() -> str:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"POST /start HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n")
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
            writer.write(b"x" * 1_000_000)
            writer.close()
            return head.split()[1].decode()
        except (OSError, asyncio.IncompleteReadError, TimeoutError) as error:
            return type(error).__name__

    return {"answers": dict(Counter(await asyncio.gather(*(one() for _ in range(LARGE)))))}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--readers", type=int, default=1000)
    options = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LAUREATE_HOME"] = folder
        pages_server.RUNS = 50
        pages_server.fill_store(store_path())
        server = subprocess.Popen(
            [sys.executable, "-m", "laureate", "web", "--port", "0", "--json"],
            stdout=subprocess.PIPE,
            text=True,
            # The server must find out by itself how many files it may open.
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard)),
        )
        try:
            told = ""
            while "}" not in told and server.stdout:
                told += server.stdout.readline()
            port = int(json.loads(told)["url"].rstrip("/").rpartition(":")[2])
            for name, (path, times) in PAGES.items():
                alone = asyncio.run(readers(port, 1, path, 5))["ours_s"]
                found = asyncio.run(readers(port, options.readers, path, times)) | {"alone_s": alone}
                work = f"{options.readers} readers at once, {times} x {path}"
                rows.append({"id": f"pages-load/{name}", "work": work} | found)
            found = asyncio.run(slow_clients(port))
            rows.append({"id": "pages-load/slow", "work": f"the board beside {SLOW} slow clients"} | found)
            found = asyncio.run(large_bodies(port))
            rows.append({"id": "pages-load/large", "work": f"{LARGE} forms of a gigabyte"} | found)
            memory = pages_server.memory_mib(server.pid)
            cpu = pages_server.cpu_seconds(server.pid)
        finally:
            server.terminate()
            server.wait()
    if options.json:
        print(json.dumps(rows, indent=2))
        return
    for row in rows:
        shown = {"alone_s": "alone", "ours_s": "median", "p95_s": "95 %", "worst_s": "worst", "held_s": "held at most"}
        numbers = [f"{word} {row[name]:.3f} s" for name, word in shown.items() if name in row]
        numbers += [f"{row['a_second']:.0f} answers a second"] if "a_second" in row else []
        print(f"{row['id']:<20} {row['work']:<60} {row.get('answers', '')} {', '.join(numbers)}")
    print(f"server's memory at its largest {memory:.0f} MiB, CPU {cpu:.0f} s")


if __name__ == "__main__":
    main()
