"""A cell's identity changes with everything that can move its numbers, and with nothing else."""

from pathlib import Path

import laureate
from laureate.lab.running import fingerprint as module
from laureate.lab.running.fingerprint import fingerprint, source_files

MINE = '''
"""A problem."""
import helper
def trial():
    """Say."""
    return helper.value + {number}  # {comment}
'''


def write(folder: Path, number: int = 1, comment: str = "why", helper: int = 0) -> tuple[str, ...]:
    (folder / "mine.py").write_text(MINE.format(number=number, comment=comment))
    (folder / "helper.py").write_text(f"value = {helper}\n")
    return (f"{folder / 'mine.py'}:trial",)


def test_what_changes_the_program_changes_the_fingerprint(tmp_path):
    first = fingerprint({"sigma": 0.1}, write(tmp_path))
    assert fingerprint({"sigma": 0.1}, write(tmp_path)) == first
    assert fingerprint({"sigma": 0.2}, write(tmp_path)) != first
    assert fingerprint({"sigma": 0.1}, write(tmp_path, number=2)) != first
    assert fingerprint({"sigma": 0.1}, write(tmp_path, helper=1)) != first


def test_comments_and_docstrings_do_not(tmp_path):
    first = fingerprint({}, write(tmp_path))
    assert fingerprint({}, write(tmp_path, comment="another reason")) == first
    (tmp_path / "mine.py").write_text(MINE.format(number=1, comment="why").replace("Say.", "Say it in other words."))
    assert fingerprint({}, (f"{tmp_path / 'mine.py'}:trial",)) == first


def test_the_place_of_a_users_file_does_not(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    assert fingerprint({}, write(here)) == fingerprint({}, write(there))


def test_versions_do(tmp_path, monkeypatch):
    references = write(tmp_path)
    first = fingerprint({}, references)
    monkeypatch.setattr(module, "versions", lambda: {"jax": "99.0"})
    assert fingerprint({}, references) != first


def test_imports_are_followed_through_the_package():
    package = Path(laureate.__file__).parent
    found = {path.relative_to(package).as_posix() for path in source_files(("laureate.lab.running.plan:plan",))}
    assert {"lab/running/plan.py", "lab/claim.py", "lab/errors.py", "lab/running/fingerprint.py"} <= found
    assert not any(name.startswith(("cli/", "pages/")) for name in found)
