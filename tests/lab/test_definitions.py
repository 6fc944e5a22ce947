"""Which changes of a package's sources a trial can see: those of what it uses, and no others."""

import itertools
import os
from pathlib import Path

import pytest

from laureate.lab.errors import UserError
from laureate.lab.running.definitions import program, source_files

PACKAGE = {
    "__init__.py": '__version__ = "1"\n',
    "area/__init__.py": "from toy.area.method import Method\nfrom toy.area.sibling import Sibling\n"
    '__all__ = ["Method", "Sibling"]\n',
    "area/base.py": "RATE = 0.5\nUNUSED = 1\nclass Base:\n    rate = RATE\n",
    "area/method.py": "import jax.numpy as jnp\nfrom toy.area.base import Base\nfrom toy import tools\n"
    'class Method(Base):\n    """Words."""\n'
    "    def step(self, x):\n        return tools.scale(jnp.sin(x)) + self.rate\n",
    "area/sibling.py": "import scipy\nfrom toy.area.base import Base\n"
    "class Sibling(Base):\n    def step(self, x):\n        return scipy.fft.fft(x)\n",
    "tools.py": "def scale(x):\n    return 2 * x\ndef shift(x):\n    return x + 1\n",
    "problem.py": "class Problem:\n    size = 3\nclass Other:\n    size = 4\n",
    "trials.py": "from toy.area import Method\nfrom toy.problem import Other\n"
    "def trial(key, arm, problem, scale):\n    return {'loss': _loss(Method(), key)}\n"
    "def _loss(method, key):\n    return method.step(key)\n"
    "def another(key, arm, problem, scale):\n    return {'loss': Other.size}\n",
}
clock = itertools.count(1)


def write(folder: Path, files: dict[str, str]) -> Path:
    """The files, each with a time of its own: two writes may fall into one tick of the file system's clock."""
    for name, text in files.items():
        path = folder / "toy" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, ns=(next(clock) * 10**9,) * 2)
    return folder / "toy"


def use(folder: Path, reference: str = "toy.trials:trial", **changed: str):
    package = write(folder, PACKAGE | {name.replace("__", "/") + ".py": text for name, text in changed.items()})
    return program((reference, "toy.problem:Problem"), package)


def names(found) -> set[str]:
    return {name for _, name in found.definitions}


def test_names_are_followed_through_the_area_to_the_definitions_and_no_further(tmp_path):
    found = use(tmp_path)
    assert names(found) == {"trial", "_loss", "Method", "Base", "RATE", "scale", "Problem"}
    assert found.libraries == {"jax"}


CHECKED = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n"


@pytest.mark.parametrize(
    ("file", "before", "after"),
    [
        ("area/method.py", "jnp.sin", "jnp.cos"),
        ("area/method.py", "import jax.numpy as jnp", "import numpy as jnp"),
        ("area/base.py", "RATE = 0.5", "RATE = 0.25"),
        ("area/base.py", "rate = RATE", "rate = 2 * RATE"),
        ("tools.py", "2 * x", "3 * x"),
        ("problem.py", "size = 3", "size = 5"),
        ("trials.py", "method.step(key)", "-method.step(key)"),
        ("area/__init__.py", "from toy.area.method import Method", "from toy.area.sibling import Sibling as Method"),
        ("area/base.py", "UNUSED = 1", "import jax\njax.config.update('jax_enable_x64', True)"),
        ("area/__init__.py", "__all__", "Method.rate = 7\n__all__"),
        ("area/sibling.py", "import scipy", "import scipy, jax\njax.config.update('jax_enable_x64', True)"),
        ("area/method.py", "class Method(Base)", "@Base.register\nclass Method(Base)"),
        ("area/method.py", "class Method", f"{CHECKED}    pass\nelse:\n    jnp.sin = jnp.cos\nclass Method"),
        ("area/method.py", "class Method", f"{CHECKED}    pass\nelif jnp.sin(1):\n    jnp.sin = 1\nclass Method"),
    ],
)
def test_what_is_used_counts(tmp_path, file, before, after):
    first = use(tmp_path).hash
    assert before in PACKAGE[file]
    write(tmp_path, {file: PACKAGE[file].replace(before, after)})
    assert program(("toy.trials:trial", "toy.problem:Problem"), tmp_path / "toy").hash != first


@pytest.mark.parametrize(
    ("file", "before", "after"),
    [
        ("area/sibling.py", "scipy.fft.fft(x)", "x"),
        ("area/__init__.py", "__all__", "from toy.area.third import Third\n__all__"),
        ("area/base.py", "UNUSED = 1", "UNUSED = 2\ndef more():\n    return RATE"),
        ("tools.py", "x + 1", "x + 2"),
        ("problem.py", "size = 4", "size = 6"),
        ("trials.py", "Other.size", "0"),
        ("trials.py", "def another", "EXTRA = {}\nEXTRA['x'] = Other\ndef another"),
        ("area/method.py", '"""Words."""', '"""Other words."""  # and a comment'),
        ("area/method.py", "def step(self, x):", "def step(self, x: float) -> float:"),
        ("area/method.py", "from toy.area.base import Base", "from .base import Base"),
        ("area/method.py", "from toy.area.base import Base", "from toy.area.sibling import Base"),
        (
            "area/method.py",
            "class Method",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import toy.x\nclass Method",
        ),
        ("__init__.py", '"1"', '"2"'),
    ],
)
def test_what_is_not_used_does_not(tmp_path, file, before, after):
    first = use(tmp_path).hash
    assert before in PACKAGE[file]
    write(tmp_path, {file: PACKAGE[file].replace(before, after), "area/third.py": "class Third:\n    pass\n"})
    assert program(("toy.trials:trial", "toy.problem:Problem"), tmp_path / "toy").hash == first


def test_a_definition_that_moves_to_another_module_is_the_same(tmp_path):
    first = use(tmp_path / "before")
    moved = use(
        tmp_path / "after",
        area__deep=PACKAGE["area/base.py"],
        area__base="from toy.area.deep import RATE, Base\n",
        trials2=PACKAGE["trials.py"],
        reference="toy.trials2:trial",
    )
    assert moved.hash == first.hash


def test_two_definitions_that_change_places_are_not(tmp_path):
    trials = "from toy.one import f\nfrom toy.two import f as g\ndef trial():\n    return f() - g()\n"
    files = {"one": "def f():\n    return 1\n", "two": "def f():\n    return 2\n"}
    first = use(tmp_path / "before", trials=trials, **files)
    swapped = use(tmp_path / "after", trials=trials, one=files["two"], two=files["one"])
    assert first.hash != swapped.hash


@pytest.mark.parametrize(
    "trials",
    [
        "from toy import tools\ndef trial(name):\n    return getattr(tools, name)\n",
        "import toy.tools\ndef trial(name):\n    return vars(toy)[name]\n",
        "from toy.tools import *\ndef trial():\n    return scale(1)\n",
        "WHERE = 'toy.tools:shift'\ndef trial():\n    return WHERE\n",
        "def trial():\n    return run('from toy.tools import shift; shift(1)')\n",
        "import importlib\ndef trial(name):\n    return importlib.import_module(f'toy.{name}')\n",
        "from toy import tools\ndef shift():\n    return tools.shift\ndef trial():\n    return eval('shift')()\n",
        "from toy.tools import shift\ndef trial():\n    return eval('shift')(1)\n",
        "from toy import tools\nTABLE = {}\nTABLE['x'] = tools.shift\ndef trial():\n    return TABLE['x']\n",
        "from toy import tools\nTABLE = {}\nTABLE.update(x=tools.shift)\ndef trial():\n    return TABLE['x']\n",
        "from toy import tools\ntools.scale = tools.shift\ndef trial():\n    return tools.scale(1)\n",
        "try:\n    from toy.tools import shift\nexcept ImportError:\n    pass\ndef trial():\n    return shift(1)\n",
        "def trial():\n    from toy.tools import shift\n    return shift(1)\n",
        "import toy.tools\ndef trial():\n    return toy.tools.shift(1)\n",
        "from toy.tools import shift\ndef trial(shift=shift):\n    return shift(1)\n",
        "from toy.tools import shift\ndef trial(x):\n    return [shift for shift in x], shift\n",
        "from toy.tools import shift\nclass C:\n    shift = 1\n    def f(self):\n        return shift(1)\n"
        "def trial():\n    return C()\n",
        "from toy.tools import shift\ndef trial():\n    global shift\n    shift = shift(1)\n    return shift\n",
    ],
)
def test_no_way_to_reach_a_definition_is_overlooked(tmp_path, trials):
    first = use(tmp_path / "before", trials=trials).hash
    assert use(tmp_path / "same", trials=trials).hash == first
    changed = PACKAGE["tools.py"].replace("x + 1", "x + 2")
    assert use(tmp_path / "after", trials=trials, tools=changed).hash != first


@pytest.mark.parametrize(
    "body",
    [
        "def trial(shift):\n    return shift(1)\n",
        "def trial():\n    shift = 1\n    return lambda: shift\n",
        "def trial(x):\n    return [shift for shift in x]\n",
        "def trial(x):\n    for shift in x:\n        yield shift\n",
        "def trial(x):\n    return x.shift\n",
    ],
)
def test_a_local_name_is_not_the_modules(tmp_path, body):
    found = use(tmp_path, trials=f"from toy.tools import shift\n{body}")
    assert "shift" not in names(found)


def test_a_users_file_counts_with_its_neighbours_and_what_it_uses_of_ours(tmp_path):
    package = write(tmp_path, PACKAGE)
    mine = tmp_path / "mine.py"
    mine.write_text("import helper\nfrom toy.area import Method\nvalue = 1\ndef problem():\n    return helper.x\n")
    (tmp_path / "helper.py").write_text("x = 1\ny = 2\n")
    found = program((f"{mine}:problem",), package)
    assert {path.name for path, _ in found.definitions} == {"mine.py", "helper.py"}
    for path, text in [(mine, "value = 2\n"), (tmp_path / "helper.py", "x = 1\ny = 300\n")]:
        path.write_text(path.read_text() + text)
        changed = program((f"{mine}:problem",), package)
        assert changed.hash != found.hash
        found = changed


def test_imports_in_a_circle_are_an_error_that_says_so(tmp_path):
    """Of the user's file, whatever else is asked for with it."""
    (tmp_path / "mine.py").write_text("from helper import x\ndef problem():\n    return x\n")
    (tmp_path / "helper.py").write_text("from mine import x\n")
    with pytest.raises(UserError, match=r"mine[.]py:problem go round in a circle"):
        program(
            ("toy.trials:trial", f"{tmp_path / 'mine.py'}:problem", "toy.problem:Problem"), write(tmp_path, PACKAGE)
        )


@pytest.mark.parametrize("words", ["from helpers import losses", "from . import losses", "import helpers.losses"])
def test_a_package_may_import_its_own_modules(tmp_path, words):
    """As ``laureate.catalogue.importers`` does: whoever said ``laureate.race`` in a file was told of a circle."""
    mine, helpers = tmp_path / "mine.py", tmp_path / "helpers"
    helpers.mkdir()
    mine.write_text("from helpers import losses, own\ndef problem():\n    return losses.f() + own\n")
    (helpers / "__init__.py").write_text(f"{words}\nfrom helpers import own\nown = 1\n")
    (helpers / "losses.py").write_text("def f():\n    return 1\n")
    package = write(tmp_path, PACKAGE)
    found = program((f"{mine}:problem",), package)
    assert {path.name for path, _ in found.definitions} == {"mine.py", "__init__.py", "losses.py"}
    (helpers / "losses.py").write_text("def f():\n    return 22\n")
    assert program((f"{mine}:problem",), package).hash != found.hash


def test_our_own_package_that_imports_from_itself_is_followed():
    assert "fields_of" in names(program(("laureate.catalogue.importers:read_file",)))


def test_files_are_followed_through_the_package():
    import laureate

    package = Path(laureate.__file__).parent
    found = {path.relative_to(package).as_posix() for path in source_files(("laureate.lab.running.plan:plan",))}
    assert {"lab/running/plan.py", "lab/claim.py", "lab/errors.py", "lab/running/fingerprint.py"} <= found
    assert not any(name.startswith(("cli/", "pages/")) for name in found)
