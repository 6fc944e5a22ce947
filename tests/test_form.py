"""The form of "The form" in CONTRIBUTING.md, held where a test can hold it: every area, every module, every class."""

import ast
import dataclasses
import doctest
import functools
import importlib
import importlib.util
import inspect
import pkgutil
import re
from pathlib import Path
from typing import NamedTuple

import equinox as eqx
import pytest
from sklearn.base import BaseEstimator

from rooms import AREAS, PACKAGE

PAPERS = sorted(f"laureate.papers.{path.parent.name}.{path.stem}" for path in PACKAGE.glob("papers/*/trials*.py"))
ROOT = Path(__file__).parents[1]
METHODS = ("step", "update", "fit", "run", "solve", "loss")  # who offers one of these is a method


def modules():
    for area in (*AREAS, "layers", "loops"):
        package = importlib.import_module(f"laureate.{area}")
        yield package
        for found in pkgutil.iter_modules(package.__path__):
            yield importlib.import_module(f"laureate.{area}.{found.name}")


def classes_of(module):
    return [thing for thing in vars(module).values() if isinstance(thing, type) and thing.__module__ == module.__name__]


CLASSES = {f"{cls.__module__}.{cls.__qualname__}": cls for module in modules() for cls in classes_of(module)}
MODULES = {name: cls for name, cls in CLASSES.items() if issubclass(cls, eqx.Module)}
PUBLIC = {
    f"{area}.{name}": getattr(importlib.import_module(f"laureate.{area}"), name)
    for area in AREAS
    for name in importlib.import_module(f"laureate.{area}").__all__
}
OTHERS = ("layers", "loops", "testing", "problems")  # rooms that are no area and whose names are a user's, too


def names_of(module):
    """What a module offers; ``laureate.problems`` offers what its parts do, by their own modules."""
    if module.__name__ != "laureate.problems":
        return {name: getattr(module, name) for name in module.__all__}
    parts = [
        importlib.import_module(found.name) for found in pkgutil.iter_modules(module.__path__, "laureate.problems.")
    ]
    offered = [f"{part.__name__.split('.')[-1]}.{name}" for part in parts for name in getattr(part, "__all__", ())]
    return {name: functools.reduce(getattr, name.split("."), module) for name in offered}


SHARED_NAMES = {
    f"{room}.{name}": thing
    for room in OTHERS
    for name, thing in names_of(importlib.import_module(f"laureate.{room}")).items()
}
EVERYTHING = PUBLIC | SHARED_NAMES
INFOS = {name: cls for name, cls in CLASSES.items() if cls.__name__.endswith("Info")}


def is_protocol(cls):
    return getattr(cls, "_is_protocol", False)


def is_method(cls):
    return issubclass(cls, eqx.Module) and not inspect.isabstract(cls) and any(hasattr(cls, name) for name in METHODS)


def is_estimator(cls):
    return issubclass(cls, BaseEstimator) and not inspect.isabstract(cls)


PUBLIC_METHODS = {name: cls for name, cls in PUBLIC.items() if isinstance(cls, type) and is_method(cls)}
ESTIMATORS = {name: cls for name, cls in PUBLIC.items() if isinstance(cls, type) and is_estimator(cls)}
LAYERS = {
    name: cls
    for name, cls in SHARED_NAMES.items()
    if isinstance(cls, type) and issubclass(cls, eqx.Module) and name.split(".")[0] in ("layers", "loops")
}


def of_area(area, things):
    return sorted(name for name in things if name.removeprefix("laureate.").startswith(f"{area}."))


# --- inheritance: abstract or final -----------------------------------------------------------------------------------


@pytest.mark.parametrize("area", AREAS)
def test_a_class_is_abstract_or_final(area):
    for name in of_area(area, MODULES):
        check_abstract_or_final(name)


def check_abstract_or_final(name):
    cls = MODULES[name]
    parents = [base for base in cls.__mro__[1:] if issubclass(base, eqx.Module) and base is not eqx.Module]
    for parent in parents:
        assert inspect.isabstract(parent), f"{name} inherits from {parent.__name__}, which is not abstract"
        for attribute, value in vars(parent).items():
            concrete = (inspect.isfunction(value) or isinstance(value, property)) and not attribute.startswith("__")
            if concrete and not getattr(value, "__isabstractmethod__", False):
                assert attribute not in vars(cls), f"{name} overrides {parent.__name__}.{attribute}, which is concrete"
        own = set(vars(cls).get("__annotations__", {}))
        again = own & {field.name for field in dataclasses.fields(parent)}
        assert not again, f"{name} declares fields of {parent.__name__} anew: {sorted(again)}"


@pytest.mark.parametrize("module", PAPERS)
def test_the_trials_of_papers_override_no_method(module):
    for cls in classes_of(importlib.import_module(module)):
        for parent in cls.__mro__[1:]:
            if issubclass(cls, eqx.Module) and parent.__module__.startswith("laureate."):
                assert inspect.isabstract(parent) or is_protocol(parent), (
                    f"{cls.__name__} inherits from {parent.__name__}"
                )


# --- constructors -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("area", AREAS)
def test_fields_are_the_constructor(area):
    """An ``__init__`` of one's own only where what is kept is computed from what is given."""
    for name in of_area(area, MODULES):
        cls = MODULES[name]
        if "__init__" in vars(cls) and "__init__" in ast_methods(cls):
            given = set(inspect.signature(cls).parameters)
            kept = {field.name for field in dataclasses.fields(cls)}
            variable = any(kind.kind is kind.VAR_POSITIONAL for kind in inspect.signature(cls).parameters.values())
            assert variable or given != kept, f"{name}.__init__ only stores its arguments; fields do"


@functools.cache
def parsed(path):
    return ast.parse(path.read_text())


def ast_methods(cls):
    """The methods written in the class's source; a dataclass writes some of its own."""
    for node in ast.walk(parsed(Path(inspect.getfile(cls)))):
        if isinstance(node, ast.ClassDef) and node.name == cls.__name__:
            return {child.name for child in node.body if isinstance(child, ast.FunctionDef)}
    return set()


# --- names ------------------------------------------------------------------------------------------------------------

REFUSED = {"rng_key": "key", "rng": "key", "seed_key": "key", "n_steps": "num_steps", "num_iterations": "num_steps"}


def functions_in(path):
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node, [argument.arg for argument in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]]


@pytest.mark.parametrize("room", sorted({path.relative_to(PACKAGE).parts[0] for path in PACKAGE.rglob("*.py")}))
def test_one_name_for_one_thing(room):
    for path in [PACKAGE / room] if room.endswith(".py") else sorted((PACKAGE / room).rglob("*.py")):
        for node, names in functions_in(path):
            wrong = {name: REFUSED[name] for name in names if name in REFUSED}
            assert not wrong, f"{path}, line {node.lineno}: {node.name} has parameters {wrong}"


# Plural nouns that count something are called num_* where they are integers.
COUNTED = [
    "atoms",
    "blocks",
    "checkpoints",
    "dictionaries",
    "draws",
    "epochs",
    "hidden_layers",
    "inner_steps",
    "iterations",
    "layers",
    "neighbours",
    "nodes",
    "pieces",
    "points",
    "repeats",
    "restarts",
    "rounds",
    "samples",
    "steps",
    "trees",
    "units",
    "warmup",
]
SPELLED = {"eps": "epsilon", "normalize": "normalise", "num_neighbors": "num_neighbours"}


def declared_in(tree):
    """(name, annotation, line, whether public) of every parameter and every field of a class."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for one in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]:
                public = node.name[0] != "_" or node.name == "__init__"
                yield one.arg, one.annotation, one.lineno, public
        if isinstance(node, ast.ClassDef):
            for one in node.body:
                if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
                    yield one.target.id, one.annotation, one.lineno, node.name[0] != "_"


def misnamed(tree):
    """Public counts without ``num_``, and words that are spelled otherwise everywhere else."""
    wrong = []
    for name, annotation, line, public in declared_in(tree):
        kinds = [] if annotation is None else [part.strip(" \"'") for part in ast.unparse(annotation).split("|")]
        values = any("Sequence" in kind or "tuple" in kind for kind in kinds)  # a count, or the values themselves
        if public and name in COUNTED and "int" in kinds and not values:
            wrong.append(f"line {line}: {name} is a count: num_{name}")
        if public and name in SPELLED:
            wrong.append(f"line {line}: {name} is {SPELLED[name]}")
    return wrong


@pytest.mark.parametrize("room", [*AREAS, "layers", "loops", "testing"])
def test_counts_are_called_num(room):
    paths = sorted((PACKAGE / room).rglob("*.py"))
    wrong = {str(path.relative_to(PACKAGE)): found for path in paths if (found := misnamed(parsed(path)))}
    assert not wrong, wrong


def test_a_count_of_another_name_is_seen():
    def found(text):
        return [line.split(": ")[1] for line in misnamed(ast.parse(text))]

    assert found("def fit(key, steps: int): ...") == ["steps is a count"]
    assert found("class Solver:\n    layers: int = field(static=True)") == ["layers is a count"]
    assert found("class Coder:\n    def __init__(self, *, draws: int | None = None): ...") == ["draws is a count"]
    assert found("def probe(x, eps: float): ...") == ["eps is epsilon"]
    assert not found("def run(num_steps: int, layers: tuple, points: Array, nodes: int | tuple[float, ...]): ...")
    assert not found("def _inner(steps: int): ...")


KEY_LATER = ("selection.blind_list",)  # its order of arguments was promised before there was a rule


def test_what_draws_random_numbers_takes_the_key_first():
    late = []
    for name, thing in PUBLIC.items():
        offered = [thing] if inspect.isfunction(thing) else []
        if inspect.isclass(thing) and not is_protocol(thing):
            offered = [value for word, value in vars(thing).items() if inspect.isfunction(value) and word[0] != "_"]
        for function in offered:
            parameters = {word: kind for word, kind in inspect.signature(function).parameters.items() if word != "self"}
            needed = "key" in parameters and parameters["key"].default is inspect.Parameter.empty
            if needed and next(iter(parameters)) != "key" and name not in KEY_LATER:
                late.append(f"{name}: {function.__qualname__}{tuple(parameters)}")
    assert not late, late


# --- infos ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(INFOS))
def test_an_info_is_a_named_tuple_with_cost_and_status(name):
    cls = INFOS[name]
    assert hasattr(cls, "_fields"), f"{name} must be a NamedTuple"
    assert {"cost", "status"} <= set(cls._fields), f"{name} must have cost and status; has {cls._fields}"


@pytest.mark.parametrize("name", sorted(name for name in CLASSES if name.endswith("State")))
def test_a_state_is_a_named_tuple(name):
    cls = CLASSES[name]
    assert hasattr(cls, "_fields"), f"{name} must be a NamedTuple"


# --- docstrings -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("room", [*AREAS, *OTHERS])
def test_everything_public_begins_with_a_sentence(room):
    for name in of_area(room, EVERYTHING):
        check_first_sentence(name, EVERYTHING[name])


def check_first_sentence(name, thing):
    if not (inspect.isclass(thing) or inspect.isfunction(thing)):
        return
    text = inspect.getdoc(thing) or ""
    first = text.split("\n\n")[0]
    assert "__doc__" in vars(thing) or inspect.isfunction(thing), f"{name} has no docstring of its own"
    assert first.rstrip(":").endswith((".", "?", ")")) or "\n" in first, f"{name}: {first!r} is not a sentence"
    assert "Arguments:" not in text, f"{name}: arguments are listed as `name: meaning`, without a heading"


@pytest.mark.parametrize("name", sorted(PUBLIC_METHODS))
def test_a_method_shows_its_equation_and_an_example(name):
    text = inspect.getdoc(PUBLIC_METHODS[name]) or ""
    symbols = any(sign in text for sign in "=Σ∇∂‖√←~≤") or "argmin" in text
    assert symbols, f"{name}: the docstring has no equation"
    assert doctest.DocTestParser().get_examples(text), f"{name}: the docstring has no example that runs"


DOCUMENTED = PUBLIC_METHODS | ESTIMATORS | LAYERS
ELSEWHERE = re.compile(r"arguments are those of `")  # of another, whose docstring has them


@pytest.mark.parametrize("name", sorted(DOCUMENTED))
def test_every_setting_is_documented(name):
    missing = undocumented(DOCUMENTED[name])
    assert not missing, f"{name} does not say what {sorted(missing)} are"


def undocumented(cls):
    """The settings of a class that have no line in its docstring."""
    text = inspect.getdoc(cls) or ""
    lists = re.findall(r"^((?:\w+, )*\w+): ", text, re.MULTILINE)  # "sigma: meaning" or "rho, eps: as for ..."
    said = {word for words in lists for word in words.split(", ")}
    return set() if ELSEWHERE.search(text) else set(inspect.signature(cls).parameters) - said


# What is public, and what a user holds because a public method returns it.
HELD = {name: cls for name, cls in CLASSES.items() if name.endswith(("State", "Info")) and cls.__name__[0] != "_"}
RECORDS = {name: thing for name, thing in (EVERYTHING | HELD).items() if hasattr(thing, "_fields")}


@pytest.mark.parametrize("room", [*AREAS, *OTHERS])
def test_every_field_of_a_named_tuple_is_documented(room):
    wrong = {name: missing for name in of_area(room, RECORDS) if (missing := unexplained(RECORDS[name]))}
    assert not wrong, f"docstrings that do not say what these fields are: {wrong}"


def unexplained(cls):
    """The fields of a named tuple without a ``name: meaning`` in its docstring; several may share a line."""
    lists = re.findall(r"(?<![\w.`])((?:\w+, )*\w+): ", " ".join((cls.__doc__ or "").split()))
    return sorted(set(cls._fields) - {word for words in lists for word in words.split(", ")})


MOST_UNNAMED = 2  # arguments that a sentence without their names may speak of: "the mean of ``x`` over axes"


@pytest.mark.parametrize("room", [*AREAS, *OTHERS])
def test_a_function_names_its_arguments(room):
    functions = {name: EVERYTHING[name] for name in of_area(room, EVERYTHING) if inspect.isfunction(EVERYTHING[name])}
    wrong = {name: unnamed(function) for name, function in functions.items()}
    wrong = {name: words for name, words in wrong.items() if len(words) > MOST_UNNAMED}
    assert not wrong, f"docstrings that never name these arguments: {wrong}"


def unnamed(function):
    """The arguments whose names do not occur in the docstring."""
    text = inspect.getdoc(function) or ""
    words = inspect.signature(function).parameters
    return [] if ELSEWHERE.search(text) else [word for word in words if not re.search(rf"\b{word}\b", text)]


def test_what_a_docstring_leaves_out_is_seen():
    def many(key, x, width, depth):
        """Makes ``x``."""

    class Norm(eqx.Module):
        """channels: the last axis. epsilon: on the same line."""

        channels: int
        epsilon: float

    class Info(NamedTuple):
        """The loss.

        weights, biases: of the
        layer. cost: in steps; status.
        """

        loss: float
        weights: float
        biases: float
        cost: int
        status: int

    assert unnamed(many) == ["key", "width", "depth"]
    assert undocumented(Norm) == {"epsilon"}
    assert unexplained(Info) == ["loss", "status"]
    assert {
        "control.PPOInfo",
        "laureate.pde.deep_bsde.DeepBSDEInfo",
        "graphs.MeshNodes",
        "loops.Progress",
        "problems.scenes.Drawn",
    } <= RECORDS.keys()


def test_modules_of_tests_have_names_of_their_own():
    """pytest imports them by their base name: of two alike only one would run."""
    names = [path.name for path in Path(__file__).parent.rglob("*.py") if path.name != "conftest.py"]
    assert sorted(name for name in set(names) if names.count(name) > 1) == []


@pytest.mark.parametrize("path", sorted(ROOT.glob("examples/**/*.py")), ids=lambda path: path.stem)
def test_what_an_example_imports_is_there(path):
    """That the examples run is seen by `make test-all`; here that a name which they take from us was not renamed."""
    imports = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.ImportFrom)]
    for node in imports:
        if node.module and node.module.split(".")[0] == "laureate":
            module = importlib.import_module(node.module)
            for name in (alias.name for alias in node.names):
                assert hasattr(module, name) or importlib.util.find_spec(f"{node.module}.{name}"), name


def test_every_slow_example_exists():
    """A name that no longer exists would mark nothing, and its successor would cost its seconds in every run."""
    for name in (Path(__file__).parent / "slow_examples.txt").read_text(encoding="utf-8").split():
        parts = name.split(".")[1:]
        file = next(PACKAGE.joinpath(*parts[:n]).with_suffix(".py") for n in range(len(parts) - 1, 0, -1)
                    if PACKAGE.joinpath(*parts[:n]).with_suffix(".py").is_file())  # fmt: skip
        node: ast.AST = ast.parse(file.read_text(encoding="utf-8"))
        for part in parts[len(file.relative_to(PACKAGE).parts) :]:
            found = [one for one in ast.iter_child_nodes(node) if getattr(one, "name", "") == part]
            assert found, f"{name}: {file.name} has no {part}"
            node = found[0]
