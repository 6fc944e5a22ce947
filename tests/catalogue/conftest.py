import sqlite3

import pytest

from laureate.catalogue import Catalogue, entries, index


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("LAUREATE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture(scope="session")
def shipped():
    """A search over the shipped papers alone, built in memory once."""
    db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    index.build(db, entries(), "test")
    with Catalogue(db) as catalogue:
        yield catalogue
