"""Who may import whom: docs/DESIGN.md's table, kept true by reading the sources; planted violations show that it bites.

An import counts wherever it stands, inside a function too; only what is under ``if TYPE_CHECKING`` does not. A string
that is the name of a module of the package counts as well, alone or as ``"laureate.module:name"``: it is how a
declaration names what computes (``f"{TRIALS}:name"``) and how something is loaded when it is asked for. What is
imported by a name that is computed cannot be seen: only a few modules may (``COMPUTED``).
"""

import ast
import functools
import graphlib
import re

import pytest

from rooms import AREAS, PACKAGE, SHARED

MODULES = {
    ".".join(("laureate", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}
VOCABULARY = ("claim", "errors", "cell")

COMMON = {"_core", *SHARED}
LAB = {"lab", "lab.judging", "lab.storing", "lab.ledger", "lab.reference", "lab.records", "lab.running"}
# Room -> the rooms, or single modules of rooms, that it may know beside itself.
MAY = {
    "laureate": {"cli", "racing.api"},  # __main__; laureate.race, which is loaded when it is asked for
    "_compiler": set(),
    "_core": {"_compiler"},
    "_data": set(),
    "area": COMMON,
    "layers": {"_core"},
    "loops": {"_core", "layers"},
    "testing": COMMON | {"area", "problems", "lab"},
    "problems": COMMON | {"_data"},
    "declaration": {"lab"},
    "trials": COMMON | {"area", "problems", "lab"},
    "speed": COMMON | {"area", "problems", "lab.running.comparison", "lab.running.memory"},
    "papers": {"lab", "catalogue.entry"},
    "lab": set(),
    "lab.judging": {"lab"},
    "lab.storing": {"lab", "lab.judging.results"},
    "lab.ledger": {"lab", "lab.judging"},
    "lab.reference": {"lab", "lab.judging.results"},
    "lab.records": {"lab", "lab.judging", "lab.storing", "lab.reference"},
    "lab.running": {"laureate", "_compiler", "_data", "lab", "lab.judging", "lab.storing", "lab.records"},
    "catalogue": {"laureate", "lab", "lab.storing.home", "lab.storing.files", "lab.storing.database"},
    "racing.results": set(),
    "pages": {"laureate", "papers", "catalogue", "racing.results", *LAB},
    "racing": {"laureate", "racing.results", "pages", *LAB},
    "tracks": COMMON | {"area", "lab", "lab.running.worker"},
    "cli": {"laureate", "_data", "papers", "catalogue", "pages", "racing.results", "racing", *LAB},
}
HEAVY = {"jax", "jaxlib", "equinox", "optax", "blackjax", "sklearn"}
FILES = {"sqlite3", "os", "pathlib", "io", "shutil", "tempfile", "subprocess", "socket", "multiprocessing"}
# Room -> libraries that it must not load; a dotted name bans that part alone.
NEVER = {
    "laureate": HEAVY | FILES | {"numpy", "scipy", "click", "rich"},
    "_compiler": HEAVY | FILES | {"numpy", "scipy", "click", "rich"},
    "_data": HEAVY | {"numpy", "scipy", "click", "rich", "sqlite3"},
    "area": {"click", "rich", "sqlite3"},
    **{room: {"scipy", "sklearn", "click", "rich", "sqlite3"} for room in COMMON},
    "testing": {"scipy", "click", "rich", "sqlite3"},  # estimators are cloned by scikit-learn
    "declaration": HEAVY | FILES | {"numpy", "scipy"},
    "lab": HEAVY | FILES | {"numpy", "scipy"},
    "lab.judging": HEAVY | FILES | {"scipy"},
    "lab.storing": HEAVY | {"scipy"},
    "lab.ledger": HEAVY | {"scipy", "sqlite3"},
    "lab.reference": HEAVY | {"numpy", "scipy", "sqlite3"},
    "lab.records": HEAVY | FILES | {"scipy"},
    "lab.running": {"sqlite3", "sklearn", "optax", "blackjax"},
    "catalogue": HEAVY | {"numpy", "scipy"},
    "pages": HEAVY | {"scipy", "sqlite3"},
    "cli": HEAVY | {"scipy", "sqlite3"},
    "racing.results": HEAVY | FILES | {"numpy", "scipy", "click", "rich"},
    "racing": HEAVY | {"scipy", "sqlite3", "click", "rich"},
    "tracks": {"sqlite3", "click", "rich"},
    "trials": {"sqlite3", "click", "rich"},
    "speed": {"sqlite3", "click", "rich"},
    "problems": {"sqlite3", "click", "rich"},
    "papers": HEAVY | {"numpy", "scipy", "sqlite3"},
}
EVERYWHERE = {"scipy.stats", "pickle", "_pickle", "cloudpickle", "dill", "joblib", "shelve"}
# Library -> the only modules that may load it.
ONLY = {
    "altair": {"laureate.pages.vega"},
    "vl_convert": {"laureate.pages.vega"},
    "jinja2": {"laureate.pages.render"},
}
# Who imports by a name that is computed: papers, disciplines and commands by their folder, and ``"module:name"``.
COMPUTED = {f"laureate.{name}" for name in ("papers", "racing.disciplines", "cli", "lab.running.references")}
# Where jax runs in the lab.
WITH_JAX = {"laureate.lab.running.worker", "laureate.lab.running.timing"}
# Data in, HTML out: no store, no catalogue, no network, no clock.
PURE = {f"laureate.pages.{name}" for name in ("render", "charts", "figures", "mathml", "race", "wording")}
PURE_MAY = {"laureate.lab.claim", "laureate.lab.judging.results", "laureate.racing.results"}
REFERENCE = re.compile(r"(laureate(?:\.\w+)+)(:[\w.]*|\.)?")  # a dot at the end: an f-string goes on


def room_of(module: str) -> str:
    """The room of a module of Laureate."""
    first, *rest = module.split(".")[1:] or ["laureate"]
    if first in AREAS:
        return "area"
    if first == "papers" and len(rest) > 1:
        return next((kind for kind in ("trials", "speed") if rest[1].startswith(kind)), "declaration")
    if first == "papers" and rest:
        return "declaration"
    if first == "racing" and rest[:1] in (["tracks"], ["results"]):
        return "tracks" if rest[0] == "tracks" else "racing.results"
    if first == "lab" and rest and rest[0] not in VOCABULARY:
        return f"lab.{rest[0]}"
    return "laureate" if first.startswith("__") else first


@functools.cache
def nodes(source: str) -> list[ast.AST]:
    """What of a source may break a rule, but for what only a type checker reads."""
    found: list[ast.AST] = []
    left: list[ast.AST] = [ast.parse(source)]
    while left:
        node = left.pop()
        if isinstance(node, ast.Import | ast.ImportFrom | ast.Constant | ast.Assert | ast.Call | ast.Attribute):
            found.append(node)
        if isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            left += node.orelse
        else:
            left += ast.iter_child_nodes(node)
    return found


def imports(module: str, source: str, is_package: bool = False) -> set[str]:
    """The modules that a source imports, absolute, wherever the import stands and in whichever way."""
    package = module.split(".") if is_package else module.split(".")[:-1]

    def absolute(name: str, level: int) -> str:
        return ".".join([*(package[: len(package) - level + 1] if level else []), *filter(None, [name])])

    found = set()
    for node in nodes(source):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.Call) and (name := imported_name(node)) is not None:
            found.add(absolute(name.lstrip("."), len(name) - len(name.lstrip("."))))
        elif isinstance(node, ast.Attribute) and (name := ast.unparse(node)) in ("scipy.stats", "laureate.race"):
            found.add(name)
        elif isinstance(node, ast.ImportFrom):
            origin = absolute(node.module or "", node.level)
            # `from laureate.lab import ledger` names a module; of another library we cannot know, so both count.
            found.update(
                name if name in MODULES else origin if origin.startswith("laureate") else name
                for name in (f"{origin}.{alias.name}" for alias in node.names)
            )
            found.update({"laureate.race"} if origin == "laureate" and "race" in names_of(node) else ())
    # The package's attribute ``race`` is loaded from there when it is asked for.
    return {"laureate.racing.api" if name == "laureate.race" else name for name in found}


def names_of(node: ast.ImportFrom) -> set[str]:
    return {alias.name for alias in node.names}


def is_import(call: ast.Call) -> bool:
    return ast.unparse(call.func).rpartition(".")[2] in ("import_module", "__import__")


def imported_name(call: ast.Call) -> str | None:
    """What ``import_module("name")`` imports; None for other calls, and where the name is computed."""
    name = call.args[0] if is_import(call) and call.args else None
    return name.value if isinstance(name, ast.Constant) and isinstance(name.value, str) else None


def references(source: str) -> set[str]:
    """The modules that a source names in strings, ``"module:name"`` or ``"module"``; parts of f-strings are strings."""
    strings = (node.value for node in nodes(source) if isinstance(node, ast.Constant))
    found = [match for text in strings if isinstance(text, str) and (match := REFERENCE.fullmatch(text))]
    return {match[1] for match in found if (match[2] or "").startswith(":") or match[1] in MODULES}


def banned(name: str, libraries: set[str]) -> bool:
    return any(name == library or name.startswith(f"{library}.") for library in libraries)


def violations(module: str, source: str, is_package: bool = False) -> list[str]:
    """What a module's source may not do, in words."""
    room, wrong = room_of(module), []
    imported = imports(module, source, is_package)
    for name in sorted(imported | references(source)):
        if name.split(".")[0] == "laureate":
            if not may_know(module, name, by_name=name not in imported):
                wrong.append(f"{module} ({room}) knows {name}")
        else:
            libraries = NEVER[room] | EVERYWHERE
            if room == "lab.running" and module not in WITH_JAX:
                libraries = libraries | HEAVY
            if module in PURE:
                libraries = libraries | (FILES - {"io"}) | {"http", "time", "datetime"}
            only = {library for library, where in ONLY.items() if module not in where}
            if banned(name, libraries | only):
                wrong.append(f"{module} ({room}) loads {name}")
    broken = {never(module, node) for node in nodes(source)} - {""}
    return wrong + [f"{module} {rule}" for rule in sorted(broken)]


def never(module: str, node: ast.AST) -> str:
    """What no module may do, or none of this room, whomever it knows."""
    if isinstance(node, ast.Assert):
        return "has an assert, which python -O drops"
    if isinstance(node, ast.ImportFrom) and "*" in names_of(node):
        return "imports a star, behind which nobody sees who is known"
    if isinstance(node, ast.Call) and is_import(node) and imported_name(node) is None and module not in COMPUTED:
        return "imports by a name that is computed"
    reads = isinstance(node, ast.Call) and ast.unparse(node.func) == "open"
    return "opens a file" if reads and (module in PURE or NEVER[room_of(module)] >= FILES) else ""


def may_know(module: str, name: str, by_name: bool) -> bool:
    room, other = room_of(module), room_of(name)
    if module in PURE:
        return name in PURE | PURE_MAY or name == "laureate.pages"
    # A declaration names its own trials and the problems; else whoever names a module may as well import it.
    if by_name and room == "declaration" and (other == "problems" or (other == "trials" and same_paper(module, name))):
        return True
    # A discipline names its track, which is loaded where it runs.
    if by_name and room == "racing" and other == "tracks":
        return True
    if room == "area":
        return other in MAY["area"] or name.split(".")[:2] == module.split(".")[:2]
    if room == "declaration" or (room in ("trials", "speed") and name.startswith("laureate.papers.")):
        return other in MAY[room] or (other in (room, "declaration") and same_paper(module, name))
    return other == room or other in MAY[room] or name.removeprefix("laureate.") in MAY[room]


def same_paper(module: str, name: str) -> bool:
    return module.split(".")[:3] == name.split(".")[:3]


def is_package(module: str) -> bool:
    return MODULES[module].name == "__init__.py"


@pytest.mark.parametrize("room", sorted({room_of(module) for module in MODULES}))
def test_a_room_knows_only_whom_it_may(room):
    wrong = []
    for module, path in MODULES.items():
        if room_of(module) == room:
            wrong += violations(module, path.read_text(), is_package(module))
    assert not wrong, "\n".join(wrong)


def test_every_room_is_in_the_table():
    assert {room_of(module) for module in MODULES} == MAY.keys() == NEVER.keys()
    assert {"gradients", "sampling"} <= set(AREAS)


def test_no_room_knows_itself_by_way_of_others():
    graph: dict[str, set[str]] = {}
    for module, path in MODULES.items():
        for name in imports(module, path.read_text(), is_package(module)):
            if name in MODULES and room_of(name) != room_of(module):
                graph.setdefault(room_of(module), set()).add(room_of(name))
    # The package's own __init__ (its version) knows nobody; __main__ starts the command line.
    graph.pop("laureate", None)
    graphlib.TopologicalSorter(graph).prepare()


def test_the_package_itself_loads_nothing():
    imported = imports("laureate", (PACKAGE / "__init__.py").read_text(), True)
    assert {name for name in imported if "laureate" in name} == {"laureate.racing.api"}  # when ``race`` is asked for


def test_a_peer_is_imported_only_where_its_side_is_made_ready():
    """So that a comparison can be listed, and ours timed, without it."""
    for path in (PACKAGE / "papers").glob("*/speed.py"):
        for node in ast.parse(path.read_text()).body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {name.partition(".")[0] for name in names} & {"torch", "evosax"}, path


# Where a violation is planted, for rooms that are no folder. Areas and papers may not know each other either: how many
# parts of a module's name make it one's own.
HOMES = {
    "laureate": "laureate.__new",
    "_compiler": "laureate._compiler",
    "_core": "laureate._core",
    "_data": "laureate._data",
    "area": "laureate.gradients.new",
    "declaration": "laureate.papers.pes.experiments_new",
    "trials": "laureate.papers.pes.trials_new",
    "speed": "laureate.papers.pes.speed_new",
    "papers": "laureate.papers",
    "lab": "laureate.lab.cell",
    "tracks": "laureate.racing.tracks.new",
}
OWN = {"area": 2, "declaration": 3, "trials": 3, "speed": 3}
NAMED = {"declaration": {"problems"}, "racing": {"tracks"}}  # whom a room may name, though not import


@pytest.mark.parametrize("room", sorted(MAY))
def test_every_ban_of_the_table_fires(room):
    """A module of every room that this one may not know: imported, and named in each form that is in use."""
    home, parts = HOMES.get(room, f"laureate.{room}.new"), OWN.get(room, 0)
    assert room_of(home) == room
    strangers = {
        room_of(name): name
        for name in sorted(MODULES)
        if (room_of(name) != room or name.split(".")[:parts] != home.split(".")[:parts])
        and (room_of(name) not in MAY[room] and name.removeprefix("laureate.") not in MAY[room])
        and not same_paper(home, name)  # what a paper's files may know of each other is planted below
    }
    assert strangers.keys() - {room} == MAY.keys() - MAY[room] - {room}
    imported = sorted(strangers.values())
    assert violations(home, "\n".join(f"import {name}" for name in imported)) == known(home, imported)
    named = sorted(name for other, name in strangers.items() if other not in NAMED.get(room, ()))
    for form in ('X = "{}"', 'X = "{}:name"', 'X = f"{}:{{name}}"', 'import_module("{}")'):
        assert violations(home, "\n".join(map(form.format, named))) == known(home, named), form


def known(home: str, names: list[str]) -> list[str]:
    return [f"{home} ({room_of(home)}) knows {name}" for name in names]


@pytest.mark.parametrize("room", sorted(NEVER))
def test_every_banned_library_is_seen(room):
    home = HOMES.get(room, f"laureate.{room}.new")
    libraries = sorted(NEVER[room] | EVERYWHERE | ONLY.keys() | (HEAVY if room == "lab.running" else set()))
    found = violations(home, "\n".join(f"import {name}" for name in libraries))
    assert [line.partition(" loads ")[2] for line in found] == libraries


@pytest.mark.parametrize("module", sorted(PURE))
def test_a_pure_page_knows_nobody(module):
    strangers = sorted(MODULES.keys() - PURE - PURE_MAY - {"laureate.pages"})
    assert violations(module, "\n".join(f"import {name}" for name in strangers)) == known(module, strangers)
    libraries = sorted(FILES - {"io"} | {"http", "time", "datetime"} | NEVER["pages"])
    found = violations(module, "\n".join(f"import {name}" for name in libraries))
    assert [line.partition(" loads ")[2] for line in found] == libraries


# What the tests above do not generate: other forms of an import, modules of one's own paper or of a deeper folder, and
# asserts. (module, what is planted in it, what must be said)
PLANTED = (
    ("laureate.gradients.new", "from scipy.stats import norm", "loads scipy.stats.norm"),
    ("laureate.gradients.new", "from scipy import stats", "loads scipy.stats"),
    ("laureate.gradients.new", "from laureate.sampling import driver", "knows laureate.sampling.driver"),
    ("laureate.gradients.new", "from ..sampling import driver", "knows laureate.sampling.driver"),
    ("laureate.gradients.new", "def f():\n    from laureate.problems import peers", "knows laureate.problems.peers"),
    ("laureate.gradients.new", 'def f():\n    import_module("laureate.sampling")', "knows laureate.sampling"),
    (
        "laureate.papers.pes.experiments_new",
        "from laureate.papers.pes import trials",
        "knows laureate.papers.pes.trials",
    ),
    ("laureate.papers.pes.speed_new", "from laureate.papers.pes import trials", "knows laureate.papers.pes.trials"),
    ("laureate.papers.pes.trials_new", "from laureate.papers.pes import speed", "knows laureate.papers.pes.speed"),
    ("laureate.lab.judging.new", "import jax.numpy as jnp", "loads jax.numpy"),
    ("laureate.lab.judging.new", "from laureate.lab.storing.store import Store", "knows laureate.lab.storing.store"),
    ("laureate.racing.disciplines.new", "from laureate.racing.tracks import clock", "knows laureate.racing.tracks"),
    ("laureate.sampling.new", "assert True", "has an assert"),
    ("laureate.gradients.new", "import scipy\nscipy.stats.norm", "loads scipy.stats"),
    ("laureate.gradients.new", "from scipy import *", "imports a star"),
    ("laureate.gradients.new", 'X = "laureate.sampling.driver:Gibbs.step"', "knows laureate.sampling.driver"),
    ("laureate.gradients.new", 'X = f"laureate.sampling.{name}"', "knows laureate.sampling"),
    ("laureate.gradients.new", 'import_module("laureate." + name)', "a name that is computed"),
    ("laureate.gradients.new", 'import_module(f"laureate.{area}.driver")', "a name that is computed"),
    ("laureate.gradients.new", 'import_module("..sampling", __package__)', "knows laureate.sampling"),
    ("laureate.gradients.new", "if not TYPE_CHECKING:\n    import laureate.sampling", "knows laureate.sampling"),
    ("laureate.lab.judging.new", '__import__("sqlite3")', "loads sqlite3"),
    ("laureate.cli.new", 'importlib.import_module("jax")', "loads jax"),
    ("laureate.lab.judging.new", 'open("x")', "opens a file"),
    ("laureate.pages.charts", 'open("x")', "opens a file"),
    ("laureate.catalogue.new", "from laureate import race", "knows laureate.racing.api"),
    ("laureate.pages.new", "import laureate\nlaureate.race(x)", "knows laureate.racing.api"),
    ("laureate.papers.pes.trials_new", "from laureate.papers import alista", "knows laureate.papers.alista"),
)


@pytest.mark.parametrize(("module", "source", "said"), PLANTED, ids=[f"{m}: {s}" for m, s, _ in PLANTED])
def test_a_planted_violation_is_seen(module, source, said):
    (found,) = violations(module, source)
    assert said in found


def test_what_is_allowed_is_not_reported():
    allowed = (
        ("laureate.gradients.new", "from laureate._core import require\nimport jax\nfrom jax.scipy.stats import norm"),
        ("laureate.papers.pes.experiments_new", 'T = ("laureate.papers.pes.trials:f", "laureate.problems.unrolls:X")'),
        ("laureate.papers.pes.experiments_new", 'TRIALS = "laureate.papers.pes.trials"\nT = f"{TRIALS}:f"'),
        ("laureate.gradients.new", '"""Who says laureate.sampling in a sentence."""\nX = "laureate.html"'),
        ("laureate.lab.cell", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import numpy"),
        ("laureate.lab.storing.new", "import sqlite3\nfrom laureate.lab.judging.results import Result"),
        ("laureate.pages.new", "from laureate import papers\nfrom laureate.lab import ledger"),
    )
    assert [found for module, source in allowed for found in violations(module, source)] == []
