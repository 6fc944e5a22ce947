import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import toy_site
from laureate.catalogue import index


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A home with one paper, the toy, measured twice, and the index of the catalogue; made once, only to be read."""
    folder = tmp_path_factory.mktemp("shared")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAUREATE_HOME", str(folder))
        toy_site.install(patch)
        toy_site.measure(patch, runs=2)
        index.opened().close()
        yield folder


@pytest.fixture
def home(shared, tmp_path, monkeypatch):
    """A copy of it that a test may change."""
    shutil.copytree(shared, tmp_path / "home")
    monkeypatch.setenv("LAUREATE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"
