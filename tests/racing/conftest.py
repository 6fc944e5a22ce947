"""A store of one's own for every test."""

import pytest

from laureate.lab.storing.store import Store


@pytest.fixture
def store(tmp_path, monkeypatch):
    """Empty, in a home of its own."""
    monkeypatch.setenv("LAUREATE_HOME", str(tmp_path))
    made = Store(tmp_path / "store.sqlite")
    yield made
    made.close()
