"""What a record may not hold, put in plain words before it is held: paths, versions, hashes; and pages, line by line.

A record is the same on every machine, at every time, in every terminal. So the clock is stopped (``stop_the_clock``),
the machine is an abacus (``FACTS``), and what is left of this place is replaced by a word, by the narrowest pattern.
"""

import datetime
import re
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

BEGINNING = datetime.datetime(2031, 1, 1, 8, 0, tzinfo=datetime.UTC)
FACTS = {
    "commit": "0123456789ab",
    "versions": {"laureate": "0.9", "jax": "9.8.7", "numpy": "6.5.4", "python": "3.99.1"},
    "machine": "an abacus, 2 cores",
    "memory_gib": 4.0,
    "system": "Beads 1.0 wood",
    "executable": "python",
}


class Clock:
    """Goes on by a minute whenever it is read."""

    def __init__(self, step: float = 60.0):
        self.now, self.step = BEGINNING, datetime.timedelta(seconds=step)

    def __call__(self) -> str:
        self.now += self.step
        return self.now.isoformat(timespec="seconds")


def stop_the_clock(patch: Any) -> Clock:
    """The store's clock goes by minutes, and what is under way is looked at a quarter of an hour after its start."""
    clock = Clock()
    patch.setattr("laureate.lab.storing.store._now", clock)

    class Then(datetime.datetime):
        """Where the clock stands, and no reading moves it."""

        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return clock.now + datetime.timedelta(minutes=15)

    stopped = SimpleNamespace(**vars(datetime) | {"datetime": Then})
    for module in ("laureate.pages.content", "laureate.cli.new"):
        patch.setattr(f"{module}.datetime", stopped)
    return clock


def plain_words(text: str, places: Mapping[str, Path | str] | None = None) -> str:
    """Without the paths of this run (the longest first), fingerprints, and the colours of a terminal.

    >>> plain_words("/tmp/a/b: \\x1b[1mdone\\x1b[0m", {"HOME": "/tmp/a"})
    'HOME/b: done'
    """
    for word, place in sorted((places or {}).items(), key=lambda pair: -len(str(pair[1]))):
        text = text.replace(str(place), word)
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    return re.sub(r"\b[0-9a-f]{64}\b", "FINGERPRINT", text)


def tags(page: str) -> str:
    """A page with a line for every tag that opens, white space aside; what stands in ``pre`` keeps its lines.

    >>> tags("<p>a  <b>bold</b>\\n word</p><pre>x\\n  y</pre>")
    '<p>a\\n<b>bold</b> word</p>\\n<pre>x\\n  y</pre>\\n'
    """
    found = []
    for part in re.split(r"(<pre\b.*?</pre>)", page, flags=re.DOTALL):
        if not part.startswith("<pre"):
            part = re.sub(r"\s*(<(?!/))", r"\n\1", " ".join(part.split()))
        found.append(part.strip())
    return "\n".join(filter(None, found)) + "\n"
