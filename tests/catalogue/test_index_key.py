"""An index is of today only while all that it was made from is as it was: each ingredient moves its key."""

import ast
import shutil
from pathlib import Path

import pytest

from laureate.catalogue import index

HERE = Path(index.__file__).parent


def imported(name):
    """The modules of the catalogue that one of them imports, by their files."""
    found = set()
    for node in ast.walk(ast.parse((HERE / name).read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("laureate.catalogue"):
            inside = [f"{node.module}.{alias.name}" for alias in node.names]
            found |= {f"{path.split('.')[2]}.py" for path in (f"{node.module}.", *inside) if path.count(".") > 1}
    return {file for file in found if (HERE / file).exists()}


def test_every_source_that_builds_it_is_in_its_key():
    found, left = set(), ["index.py"]
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += imported(name)
    assert found == set(index.SOURCES)


@pytest.mark.parametrize("changed", ["SHIPPED", "SHIPPED_WORDS", *index.SOURCES])
def test_another_byte_in_any_file_is_another_key(changed, tmp_path, monkeypatch):
    for path in (index.SHIPPED, index.SHIPPED_WORDS, *(HERE / name for name in index.SOURCES)):
        shutil.copy(path, tmp_path / path.name)
    before = index.fingerprint("")
    for name in ("SHIPPED", "SHIPPED_WORDS"):
        monkeypatch.setattr(index, name, tmp_path / getattr(index, name).name)
    monkeypatch.setattr(index, "__file__", str(tmp_path / "index.py"))
    assert index.fingerprint("") == before  # where they lie does not matter
    path = tmp_path / getattr(index, changed).name if changed.isupper() else tmp_path / changed
    path.write_bytes(path.read_bytes() + b" ")
    assert index.fingerprint("") != before


def test_a_release_an_import_and_the_order_of_bytes_are_other_keys(monkeypatch):
    seen = [index.fingerprint(""), index.fingerprint("after an import")]
    monkeypatch.setattr(index, "__version__", "99.0")
    seen.append(index.fingerprint(""))
    monkeypatch.setattr(index.sys, "byteorder", "another")
    seen.append(index.fingerprint(""))
    assert len(set(seen)) == 4
