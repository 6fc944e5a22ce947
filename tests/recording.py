"""What was computed and written when somebody last looked at it, held beside what comes out now.

Assertions say what must be true; a record says that nothing else has changed either: a number that no assertion reads,
an option that no oracle reaches, a word on a page. Records are no truth of their own: what is right, the oracles say.

In ``tests/contract`` what the programs of a check return is recorded by itself: all methods, all functions, every row
of options. Elsewhere a test hands over what it wants to be held::

    def test_pages(recorded):
        recorded("board", {"title": "...", "counts": [1, 2]})  # words and whole numbers exactly, others by their digits
        recorded.text("board.html", page)  # a file of its own, whose difference can be read

``python scripts/records.py tests/contract/test_pde_contract.py`` writes anew what these tests record. An array is kept
as one number, a sum with weights of its own for each entry, over the root of its size. How many digits of it are kept
is how many can be relied on: the script asks the compiler once more as on older processors, and other environments, and
keeps fewer digits where they do not agree. Of a release of jaxlib that was never asked, only the types and shapes of
arrays are compared, and the end of the run says so. A change that is meant is recorded anew, and its commit says why.
"""

import difflib
import functools
import importlib.metadata
import json
import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

FOLDER = Path(__file__).parent / "recorded"
ASKED = FOLDER / "compilers.json"  # the releases of jaxlib that confirmed what is recorded of arrays
DIGITS = 5  # of a number, where all compilers agree
UNSURE = "~"  # a number of which no digit can be relied on
MODES = ("compare", "write", "soften")
# Of each program of a contract so many calls: the first steps, and one with another number.
CALLS = 3
# Files of tests/contract whose programs are broken on purpose, or no methods of ours.
LEFT_OUT = {"test_checks_find_faults"}
LINES = 12  # of a difference, in a message
KINDS = re.compile("float|int|complex")  # f32, i32, uint8 as ui8, bool as it is


def weighted(values: Any) -> tuple[float, float]:
    """One number for an array, which moves with every entry and every swap of two, and the size it may have.

    What is not finite counts by its kind.

    >>> weighted(np.array([1.0, 2.0])) == weighted(np.array([2.0, 1.0]))
    False
    """
    array: Any = np.asarray(values)
    parts = [array.real, array.imag] if np.iscomplexobj(array) else [array]
    flat = np.concatenate([part.astype(np.float64).ravel() for part in parts])
    finite = np.isfinite(flat)
    size = float(np.sqrt(np.mean(np.square(flat[finite])))) if finite.any() else 0.0
    kinds = np.select([np.isnan(flat), flat > 0], [3.0, 5.0], -7.0) * (size or 1.0)
    weights = 0.5 + np.cos(np.pi / 3 + 2.399963 * np.arange(len(flat)))  # one number alone has the weight 1
    return float(np.sum(weights * np.where(finite, flat, kinds)) / math.sqrt(max(len(flat), 1))), size


def written(value: float, size: float) -> str:
    """A number to as many places as make ``DIGITS`` digits of its size.

    >>> written(0.123456789, 1.0), written(1234.56789, 2000.0), written(0.0, 0.0)
    ('0.1235', '1234.6', '0')
    """
    if size == 0 or not math.isfinite(value):
        return f"{value:g}"
    if size < 1e-4 or size >= 1e9:
        return f"{value:.{DIGITS - 1}e}"
    return f"{value:.{max(0, DIGITS - 1 - math.floor(math.log10(size)))}f}"


def unit(text: str) -> float:
    """What one step of the last digit is worth.

    >>> unit("0.12"), unit("1235"), unit("1.2340e-05")
    (0.01, 1.0, 1e-09)
    """
    mantissa, _, exponent = text.partition("e")
    return 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))


def agree(known: str, value: float) -> bool:
    """Whether a number is the recorded one, to the digits that stand there."""
    if known == UNSURE:
        return True
    old = float(known)
    return (old == value) or (math.isnan(old) and math.isnan(value)) or abs(value - old) <= 2 * unit(known)


def softened(known: str, value: float) -> str:
    """The recorded number with the digits that another compiler confirms, and one less: none at all is ``UNSURE``.

    >>> softened("0.12346", 0.12346), softened("0.12346", 0.12371), softened("0.12346", -0.4)
    ('0.12346', '0.12', '~')
    """
    if known == UNSURE or agree(known, value):
        return known
    old = float(known)
    if not (math.isfinite(old) and math.isfinite(value)) or abs(old) < 10 * abs(value - old):
        return UNSURE
    places = math.floor(-math.log10(10 * abs(value - old)))
    return f"{old:.{places}f}" if 0 <= places < 9 else f"{old:.{max(0, _digits(old, places))}e}"


def _digits(value: float, places: int) -> int:
    return places + math.floor(math.log10(abs(value)))


@functools.cache
def is_asked() -> bool:
    """Whether this compiler was asked when arrays were recorded, so that their numbers can be held."""
    return importlib.metadata.version("jaxlib") in json.loads(ASKED.read_text(encoding="utf-8"))


def plain(value: Any) -> Any:
    """As JSON: arrays and floats as numbers in words, with the sign that tells them from other words."""
    if isinstance(value, dict):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, str | bool | int) or value is None:
        return value
    if isinstance(value, float):
        return "≈" + written(value, abs(value))
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        found = weighted(value)
        kind = f"{np.asarray(value).dtype}{list(np.shape(value))}".replace(" ", "")
        return f"{KINDS.sub(lambda word: word[0][0], kind)}≈{written(*found)}"
    if hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, Iterable):
        return [plain(one) for one in value]
    raise TypeError(f"{type(value).__name__} is nothing that a record can hold: {value!r}")


def compared(known: Any, found: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """Where what is found is not what is known, and what it was and is."""
    if isinstance(known, dict) and isinstance(found, dict):
        for name in {**known, **found}:
            if name in known and name in found:
                yield from compared(known[name], found[name], f"{place}.{name}")
            else:
                yield f"{place}.{name}", "is no more there" if name in known else "is new"
    elif isinstance(known, list) and isinstance(found, list) and len(known) == len(found):
        for index, (one, two) in enumerate(zip(known, found, strict=True)):
            yield from compared(one, two, f"{place}[{index}]")
    elif not _same(known, found):
        yield place or "the value", f"was {_short(known)}, is {_short(found)}"


def merged(known: Any, found: Any) -> Any:
    """What is known, with fewer digits where what another compiler found differs; of another form, the known."""
    if isinstance(known, dict) and isinstance(found, dict):
        return {name: merged(one, found.get(name)) for name, one in known.items()}
    if isinstance(known, list) and isinstance(found, list):
        return [merged(*pair) for pair in zip(known, found, strict=True)] if len(known) == len(found) else known
    kind, number, other = *_number(known), _number(found)[1]
    return kind + softened(number, float(other)) if number and other else known


def _same(known: Any, found: Any) -> bool:
    if known == found:
        return type(known) is type(found)
    (kind, old), (other, new) = _number(known), _number(found)
    if kind != other or not old or not new:
        return False
    is_array = kind != "≈"
    return (is_array and not is_asked()) or agree(old, float(new))


def _number(text: Any) -> tuple[str, str]:
    """What stands before a number in words, with its sign, and the number; nothing of other words."""
    match = re.fullmatch(r"([a-z0-9\[\],]*≈)(\S+)", text) if isinstance(text, str) else None
    return (match[1], match[2]) if match else ("", "")


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 120 else f"{text[:117]}..."


class Recorder:
    """What one test records, and what stands in the files."""

    def __init__(self, item: pytest.Item, mode: str):
        module = item.path.relative_to(Path(__file__).parent).with_suffix("")
        self.file, self.name, self.mode = FOLDER / module.with_suffix(".json"), item.nodeid.partition("::")[2], mode
        self.folder = FOLDER / module
        self.test = item.nodeid
        self.found: dict[str, Any] = {}
        self.texts: dict[str, str] = {}
        self.paths: dict[str, str] = {}  # of leaves by their place in the list that is kept of a tree

    def __call__(self, name: str, value: Any) -> None:
        """Hold this value under this name."""
        if name in self.found:
            raise ValueError(f"{name!r} is recorded already.")
        self.found[name] = plain(value)

    def tree(self, name: str, tree: Any) -> None:
        """Hold the arrays of a tree, a list in their order: their paths are not kept, only told where one differs."""
        import jax

        leaves = jax.tree_util.tree_leaves_with_path(tree)
        arrays = [(jax.tree_util.keystr(path), one) for path, leaf in leaves if (one := _array(leaf)) is not None]
        self.paths |= {f".{name}[{index}]": f"{name}, {path}" for index, (path, _) in enumerate(arrays)}
        self(name, [array for _, array in arrays])

    def text(self, name: str, text: str) -> None:
        """Hold this text as a file of this name, which no other test of the module may have."""
        self.texts[name] = text

    def finish(self) -> None:
        """Compare, or write; nothing where nothing was recorded."""
        if self.mode == "compare":
            differences = [*self._numbers(), *self._words()]
            if differences:
                more = f"\n... and {len(differences) - LINES} more" if len(differences) > LINES else ""
                pytest.fail(
                    "Not what was recorded:\n" + "\n".join(differences[:LINES]) + more + "\nIf the change is meant:"
                    f" python scripts/records.py '{self.test}', and say why in the commit (tests/recording.py).",
                    pytrace=False,
                )
            return
        if self.found:
            rows = known(self.file)
            if self.mode == "write":
                rows[self.name] = self.found
            elif self.name in rows:
                rows[self.name] = merged(rows[self.name], self.found)
            write(self.file, rows)
        for name, text in self.texts.items():
            if self.mode == "write":
                self.folder.mkdir(parents=True, exist_ok=True)
                (self.folder / name).write_text(text, encoding="utf-8")

    def _numbers(self) -> Iterator[str]:
        if self.found:
            rows = known(self.file)
            if self.name not in rows:
                yield "nothing is recorded of this test yet"
            else:
                for place, what in compared(rows[self.name], self.found):
                    yield f"{self.paths.get(place, place.removeprefix('.'))}: {what}"

    def _words(self) -> Iterator[str]:
        for name, text in self.texts.items():
            path = self.folder / name
            old = path.read_text("utf-8") if path.exists() else ""
            if old != text:
                lines = difflib.unified_diff(old.splitlines(), text.splitlines(), "recorded", name, n=0, lineterm="")
                yield from (line[:300] for line in lines)


_known: dict[Path, tuple[int, dict[str, Any]]] = {}


def known(file: Path) -> dict[str, Any]:
    """The rows of a file, read once for as long as it stays as it is."""
    if not file.exists():
        return {}
    changed = file.stat().st_mtime_ns
    if file not in _known or _known[file][0] != changed:
        _known[file] = changed, json.loads(file.read_text(encoding="utf-8"))
    return _known[file][1]


def write(file: Path, rows: dict[str, Any]) -> None:
    """A line for each thing recorded, so that a difference can be read."""
    file.parent.mkdir(parents=True, exist_ok=True)
    tests = []
    for test, found in sorted(rows.items()):
        lines = [f"  {json.dumps(name)}: {json.dumps(one, ensure_ascii=False)}" for name, one in found.items()]
        tests.append(f" {json.dumps(test, ensure_ascii=False)}: {{\n" + ",\n".join(lines) + "\n }")
    file.write_text("{\n" + ",\n".join(tests) + "\n}\n", encoding="utf-8")
    _known.pop(file, None)


class Recording:
    """The hook: what contracts compute is recorded by itself, and all is compared when a test has passed."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item):
        """One test, where it may have a record; examples in src have none."""
        if not records(item):
            return (yield)
        recorder = recorder_of(item)
        if is_watched(item):
            from laureate.testing._checks import Program

            call = Program.__call__
            Program.__call__ = _recording(call, recorder)
            try:
                result = yield
            finally:
                Program.__call__ = call
        else:
            result = yield
        recorder.finish()
        return result

    def pytest_terminal_summary(self, terminalreporter):
        """Say what is not held."""
        if not is_asked():
            release = importlib.metadata.version("jaxlib")
            told = "Arrays were held beside their records by type and shape alone"
            why = f"jaxlib {release} was never asked for their numbers (scripts/records.py)."
            terminalreporter.write_line(f"{told}: {why}")


def is_watched(item: pytest.Item) -> bool:
    """Whether what programs of a test return is recorded by itself."""
    return item.path.parent == FOLDER.with_name("contract") and item.path.stem not in LEFT_OUT


def records(item: pytest.Item) -> bool:
    """Whether a test may have a record."""
    return is_watched(item) or "recorded" in getattr(item, "fixturenames", ())


RECORDER = pytest.StashKey[Recorder]()


def recorder_of(item: pytest.Item) -> Recorder:
    """The one of this test, which its fixture hands out."""
    if RECORDER not in item.stash:
        item.stash[RECORDER] = Recorder(item, item.config.option.record)
    return item.stash[RECORDER]


def _recording(call: Any, recorder: Recorder) -> Any:
    """The call of a program that also records what it returns, of the first calls of each."""
    seen: dict[int, tuple[int, int, Any]] = {}

    def recorded(program: Any, *arguments: Any) -> Any:
        result = call(program, *arguments)
        number, calls, _ = seen.get(id(program), (len(seen), 0, None))
        seen[id(program)] = number, calls + 1, program  # kept, so that no other takes its id
        if calls < CALLS:
            recorder.tree(f"program {number}, call {calls}", result)
        return result

    return recorded


def _array(leaf: Any) -> Any:
    import jax

    if not isinstance(leaf, jax.Array | np.ndarray | np.generic):
        return None
    is_key = jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(leaf) if is_key else leaf)
