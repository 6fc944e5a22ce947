import pytest

from laureate.lab.storing.home import store_path
from laureate.lab.storing.store import Store


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """Every test has a home of its own."""
    monkeypatch.setenv("LAUREATE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def store(home):
    opened = Store(store_path())
    yield opened
    opened.close()
