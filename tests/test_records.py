"""Records are of tests there are, and see what they are for."""

import json
from pathlib import Path

import numpy as np
import pytest

import recording
from recording import ASKED, FOLDER, compared, merged, plain


def test_every_record_is_of_a_test(all_tests):
    stale = []
    for path in FOLDER.rglob("*"):
        module = path.relative_to(FOLDER).with_suffix("").as_posix()
        if path.is_dir() and path.name.startswith("test_"):  # of texts
            stale += [module] * (not (TESTS / f"{module}.py").exists())
        elif path.suffix == ".json" and path != ASKED and not path.parent.name.startswith("test_"):
            rows = json.loads(path.read_text(encoding="utf-8"))
            stale += [name for row in rows if (name := f"tests/{module}.py::{row}") not in all_tests]
    assert stale == [], "remove these rows"


TESTS = Path(__file__).parent


@pytest.fixture(autouse=True)
def asked(monkeypatch):
    monkeypatch.setattr(recording, "is_asked", lambda: True)


VALUES = np.array([[1.0, -2.0, 3.0], [0.5, 0.0, 7.0]], np.float32)


@pytest.mark.parametrize(
    "fault",
    [
        lambda x: x.T,
        lambda x: x[::-1],
        lambda x: -x,
        lambda x: x * 1.001,
        lambda x: x.astype(np.float16),
        lambda x: x + np.float32(0.01) * (x == 0),
        lambda x: np.where(x == 0, np.nan, x),
        lambda x: x[:, :2],
    ],
)
def test_one_number_sees_what_happens_to_an_array(fault):
    assert list(compared(plain(VALUES), plain(VALUES.copy()))) == []
    assert list(compared(plain(VALUES), plain(fault(VALUES)))) != []


def test_what_compilers_do_not_agree_on_is_kept_with_fewer_digits():
    rounded, chaotic = VALUES * np.float32(1 + 2e-5), VALUES * 2
    soft = merged({"x": plain(VALUES)}, {"x": plain(rounded)})
    assert list(compared(soft, {"x": plain(rounded)})) == list(compared(soft, {"x": plain(VALUES)})) == []
    assert list(compared(soft, {"x": plain(chaotic)})) != []
    none = merged(soft, {"x": plain(chaotic)})
    assert list(compared(none, {"x": plain(-VALUES)})) == []
    assert list(compared(none, {"x": plain(VALUES.T)})) != []


def test_a_compiler_that_was_never_asked_is_held_to_types_and_shapes(monkeypatch):
    monkeypatch.setattr(recording, "is_asked", lambda: False)
    known = {"array": plain(VALUES), "number": plain(0.5), "count": 3}
    assert list(compared(known, known | {"array": plain(VALUES + 1)})) == []
    for other in ({"array": plain(VALUES[:1])}, {"number": plain(0.6)}, {"count": 4}, {"new": "word"}):
        assert list(compared(known, known | other)) != []
