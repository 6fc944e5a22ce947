import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "lab"))


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home of its own, for this process and for those it starts."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("LAUREATE_HOME", str(folder))
    return folder
