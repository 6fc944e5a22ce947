"""Who may import whom: docs/DESIGN.md's table, kept true by reading the imports."""

import ast
from pathlib import Path

import pytest

import laureate

PACKAGE = Path(laureate.__file__).parent
SHARED = {"layers", "loops"}  # what areas and problems may share
ROOMS = {"problems", "papers", "lab", "catalogue", "pages", "cli"} | SHARED
AREAS = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()} - ROOMS
VOCABULARY = "laureate.lab.claim"
COMMON = {"laureate._core", *(f"laureate.{room}." for room in SHARED)}

# What a room may import of Laureate beside itself (a trailing dot: the whole room), and which libraries it must not.
HEAVY = {"jax", "jaxlib", "equinox", "optax", "blackjax", "sklearn"}
MAY = {
    "problems": (COMMON | {"laureate._data"}, set()),
    **{room: ({"laureate._core"}, {"scipy", "sklearn", "click", "rich"}) for room in SHARED},
    "lab": ({"laureate", "laureate._data"}, set()),
    "catalogue": ({"laureate", "laureate.lab.", "laureate.papers"}, HEAVY),
    "pages": ({"laureate", "laureate.lab.", "laureate.papers", "laureate.catalogue."}, HEAVY),
    "cli": (
        {"laureate", "laureate.lab.", "laureate.papers", "laureate.catalogue.", "laureate.pages."},
        HEAVY,
    ),
    "speed": ({"laureate.problems.", "laureate.lab.running.memory", *(f"laureate.{area}." for area in AREAS)}, set()),
}


def imports(path: Path) -> set[str]:
    """Modules a file imports, absolute; inside functions too."""
    package = ["laureate", *path.relative_to(PACKAGE).parent.parts]
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            names = (f"{origin}.{alias.name}" for alias in node.names)
            found.update(name if is_module(name) else origin for name in names)
    return found


def is_module(name: str) -> bool:
    path = PACKAGE.parent.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def files(room: str) -> list[Path]:
    return sorted((PACKAGE / room).rglob("*.py"))


def check(path: Path, allowed: set[str], forbidden: set[str]) -> list[str]:
    own = f"laureate.{path.relative_to(PACKAGE).parts[0]}"
    wrong = []
    for module in imports(path):
        root = module.partition(".")[0]
        if root == "laureate":
            inside = module == own or module.startswith(f"{own}.")
            open_room = any(module == a.rstrip(".") or (a.endswith(".") and module.startswith(a)) for a in allowed)
            if not (inside or open_room):
                wrong.append(f"{path.relative_to(PACKAGE)} imports {module}")
        elif root in forbidden:
            wrong.append(f"{path.relative_to(PACKAGE)} imports {module}")
    return wrong


def test_there_are_areas():
    assert {"gradients"} <= AREAS


@pytest.mark.parametrize("area", sorted(AREAS))
def test_an_area_knows_only_itself(area):
    assert not [w for path in files(area) for w in check(path, COMMON, {"scipy.stats", "click", "rich"})]


@pytest.mark.parametrize("room", sorted(MAY))
def test_a_room_knows_only_whom_it_may(room):
    allowed, forbidden = MAY[room]
    assert not [w for path in files(room) for w in check(path, allowed, forbidden)]


def test_only_the_worker_of_the_lab_and_its_clock_run_jax():
    users = {path.name for path in files("lab") if imports(path) & HEAVY}
    assert users == {"worker.py", "timing.py"}


METHODS = {*COMMON, "laureate.problems.", *(f"laureate.{area}." for area in AREAS)}


def test_a_peer_is_imported_only_where_its_side_is_made_ready():
    """So that a comparison can be listed, and ours timed, without it."""
    for path in (PACKAGE / "papers").glob("*/speed.py"):
        for node in ast.parse(path.read_text()).body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {name.partition(".")[0] for name in names} & {"torch", "evosax"}, path


def test_declarations_are_data_and_trials_know_no_store():
    for folder in (PACKAGE / "papers").iterdir():
        if not (folder / "about.py").is_file():
            continue
        own = f"laureate.papers.{folder.name}."
        for path in folder.glob("*.py"):
            if path.name.startswith("trials"):
                wrong = check(path, METHODS | {VOCABULARY}, set())
            elif path.name.startswith("speed"):
                wrong = check(path, METHODS | {"laureate.lab.running.comparison", "laureate.lab.running.memory"}, set())
            else:
                assert not any(module.startswith(f"{own}trials") for module in imports(path)), path
                wrong = check(path, {VOCABULARY}, HEAVY | {"numpy"})
            others = [m for m in imports(path) if m.startswith("laureate.papers.") and not m.startswith(own)]
            assert not wrong + others, path


PURE = ("render.py", "charts.py", "figures.py", "mathml.py", "wording.py")


def test_rendering_reads_nothing():
    """Data in, HTML out: no store, no home, no catalogue, no network, no clock."""
    allowed = {VOCABULARY, "laureate.lab.judging.results"}
    for name in PURE:
        path = PACKAGE / "pages" / name
        wrong = [
            m for m in imports(path) if m.startswith("laureate.pages.") and f"{m.rpartition('.')[2]}.py" not in PURE
        ]
        wrong += check(path, allowed, {"sqlite3", "http", "socket", "time", "datetime", "subprocess", "os"})
        assert not wrong, name


def test_only_one_module_knows_the_heavy_chart_library():
    heavy = {"altair", "vl_convert"}
    assert {path.name for path in PACKAGE.rglob("*.py") if imports(path) & heavy} == {"vega.py"}


def test_no_assert_on_input_no_pickle():
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text())
        assert not any(isinstance(node, ast.Assert) for node in ast.walk(tree)), f"{path}: python -O drops assert"
        assert "pickle" not in imports(path)
