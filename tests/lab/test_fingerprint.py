"""A cell's identity changes with everything that can move its numbers, and with nothing else."""

import ast
import dataclasses
import hashlib
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from skeletons import folder_of, free_id

import laureate
import toys
from laureate import _data
from laureate.lab.claim import Arm, Claim, Experiment, Guard, Scale
from laureate.lab.running import definitions, executors, source
from laureate.lab.running import fingerprint as module
from laureate.lab.running.definitions import program
from laureate.lab.running.fingerprint import SETTINGS, fingerprint, used_versions
from laureate.lab.running.plan import Selection, plan
from laureate.papers import all_papers

MINE = '''
"""A problem."""
import helper
def trial():
    """Say."""
    return helper.value + {number}  # {comment}
'''
PACKAGE = Path(laureate.__file__).parent
EXPERIMENTS = {f"{paper.id}/{each.name}": each for paper in all_papers() for each in paper.experiments}
PAPER_OF = {f"{paper.id}/{each.name}": paper for paper in all_papers() for each in paper.experiments}
# The fingerprint of every cell of every paper.
ALL_CELLS = """
import json
from laureate.lab.running.plan import Selection, plan
from laureate.papers import all_papers
cells = [
    cell
    for paper in all_papers()
    for experiment in paper.experiments
    for scale in experiment.scales
    for cell in plan([Selection(paper, experiment, experiment.claims)], scale, seeds=1)
]
all_cells = [[cell.name, cell.scale, cell.fingerprint] for cell in cells]
"""


def write(folder: Path, number: int = 1, comment: str = "why", helper: int = 0) -> tuple[str, ...]:
    (folder / "mine.py").write_text(MINE.format(number=number, comment=comment))
    (folder / "helper.py").write_text(f"value = {helper}\n")
    return (f"{folder / 'mine.py'}:trial",)


# -- a user's file ---------------------------------------------------------------------------------------------------


def test_what_changes_the_program_changes_the_fingerprint(tmp_path):
    folders = [tmp_path / name for name in "abcd"]
    for folder in folders:
        folder.mkdir()
    first = fingerprint({"sigma": 0.1}, write(folders[0]))
    assert fingerprint({"sigma": 0.1}, write(folders[1])) == first
    assert fingerprint({"sigma": 0.2}, write(folders[1])) != first
    assert fingerprint({"sigma": 0.1}, write(folders[2], number=2)) != first
    assert fingerprint({"sigma": 0.1}, write(folders[3], helper=1)) != first


def test_comments_and_docstrings_do_not(tmp_path):
    first = fingerprint({}, write(tmp_path))
    assert fingerprint({}, write(tmp_path, comment="another reason")) == first
    (tmp_path / "mine.py").write_text(MINE.format(number=1, comment="why").replace("Say.", "Say it in other words."))
    assert fingerprint({}, (f"{tmp_path / 'mine.py'}:trial",)) == first


GUARDED = """
import warnings

def trial(key, arm, problem, scale):
    if {test}:
        warnings.warn({warning}, {kind}Warning, stacklevel=2)
        raise {kind}Error({text})
    return dict(loss=len({other}))
"""


def test_the_wording_of_an_error_does_not_and_when_and_what_is_raised_does(tmp_path):
    said = {"test": "scale", "warning": "'so'", "kind": "Runtime", "text": "'no'", "other": "'four'"}

    def hash_of(**changes):
        (tmp_path / "mine.py").write_text(GUARDED.format(**said | changes))
        return fingerprint({}, (f"{tmp_path / 'mine.py'}:trial",))

    first = hash_of()
    assert hash_of(text="'another'") == hash_of(text="f'got {scale}'") == hash_of(warning="'else'") == first
    moved = [hash_of(test="arm"), hash_of(kind="Unicode"), hash_of(text="scale"), hash_of(other="'fives'")]
    assert len({first, *moved}) == 5


def test_the_place_of_a_users_file_does_not(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    assert fingerprint({}, write(here)) == fingerprint({}, write(there))


# -- versions --------------------------------------------------------------------------------------------------------


def test_versions_of_the_libraries_that_are_used_do_and_no_others():
    found = used_versions(frozenset({"jax", "sklearn", "json", "jaxtyping", "no_such_library"}))
    assert set(found) == {"python", "jax", "jaxlib", "numpy", "scikit-learn"}


def test_another_version_is_another_fingerprint(tmp_path, monkeypatch):
    references = write(tmp_path)
    first = fingerprint({}, references)
    monkeypatch.setattr(module, "used_versions", lambda libraries: {"jax": "99.0"})
    assert fingerprint({}, references) != first


def test_another_minor_version_of_python_is_too_and_its_last_part_is_not(tmp_path, monkeypatch):
    found = []
    for version in ((3, 11, 2), (3, 12, 2), (4, 11, 2), (3, 11, 9)):
        for cached in (module.used_versions, module._installed_versions):
            cached.cache_clear()
        named = SimpleNamespace(**dict(zip(("major", "minor", "micro"), version, strict=True)))
        monkeypatch.setattr(module.sys, "version_info", named)
        found.append(fingerprint({}, ()))
        monkeypatch.undo()
    for cached in (module.used_versions, module._installed_versions):
        cached.cache_clear()
    assert len(set(found[:3])) == 3
    assert found[3] == found[0]


def test_another_release_is_not(tmp_path, monkeypatch):
    references = write(tmp_path)
    first = fingerprint({}, references)
    monkeypatch.setattr(laureate, "__version__", "99.0")
    assert fingerprint({}, references) == first


def test_the_settings_that_the_worker_hands_to_every_trial_count(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(module, "program", lambda references: asked.append(references) or program(references))
    fingerprint({}, write(tmp_path))
    assert SETTINGS in asked[0]


# -- what is declared ------------------------------------------------------------------------------------------------


def cells_of(**changes):
    """The fingerprints of the arm `ours` at smoke, of the toy paper with these changes."""
    experiment = toys.experiment(**changes)
    return [c.fingerprint for c in plan(toys.selections(toys.paper(experiment)), "smoke") if c.arm == "ours"]


def with_arm(**settings) -> dict:
    return {"arms": (Arm("ours", **{"shift": 0.0, "label": "ours"} | settings), *toys.ARMS[1:])}


def with_scale(**changes) -> dict:
    return {"scales": {"smoke": Scale(**{"seeds": 10, "block": 5, "draws": 8} | changes)}}


# Every field of what is declared, changed: those that reach the trial move its cells, the others do not. An entry a
# field, so that a new one is either hashed or said to be no part of what is computed.
REACH = {
    Arm: {"name": [], "settings": [with_arm(shift=0.5), with_arm(shift=0), with_arm(shift=False), with_arm(more=1)]},
    Scale: {
        "block": [with_scale(block=10)],
        "problem": [with_scale(problem={"offset": 1.0})],
        "compilation": [with_scale(compilation="thorough"), with_scale(compilation="lightest")],
        "settings": [with_scale(draws=9), with_scale(draws=8.0), with_scale(more=1.0)],
    },
    Experiment: {
        "name": [{"name": "another"}],
        "trial": [{"trial": "broken"}],
        "arms": [],
        "scales": [],
        "problem": [{"problem": ""}],
        "over_seeds": [{"over_seeds": "loop"}],
        "x64": [{"x64": True}],
        "data": [{"data": ("digits",)}, {"data": ("digits", "diabetes")}, {"data": {"smoke": ("digits",), "desk": ()}}],
    },
}
DO_NOT_REACH = {
    Arm: {"label": [with_arm(label="another label")]},
    # That more seeds only add cells stands below.
    Scale: {"cost": [with_scale(cost=99.0)], "seeds": [], "compilation": [with_scale(compilation="light")]},
    Experiment: {
        "title": [{"title": "Another title"}],
        "claims": [
            {"claims": (dataclasses.replace(toys.BETTER, statement="other words", reported="7 %", role="check"),)},
            {"claims": (*toys.experiment().claims, Claim("new", "s", "loss", "ours", "theirs", role="check"))},
        ],
        "accepts": [{"accepts": ("offset", "more")}],
        "data": [{"data": {"smoke": (), "desk": ("digits",)}}],  # of another scale
        "deviations": [{"deviations": ("Another.",)}],
        "curves": [{"curves": ()}],
        "over": [{"over": "data sets"}],
        "guards": [{"guards": (Guard("limit", "loss", low=0.0),)}],
        "arms": [{"arms": toys.ARMS[:2], "claims": (toys.BETTER,)}],
    },
}


def all_changes(table: dict) -> list[dict]:
    return [changes for fields in table.values() for each in fields.values() for changes in each]


def test_every_field_is_hashed_or_said_not_to_reach_the_trial():
    for kind in (Arm, Scale, Experiment):
        declared = {field.name for field in dataclasses.fields(kind)}
        assert declared == set(REACH[kind]) | set(DO_NOT_REACH[kind]), kind


@pytest.mark.parametrize("changes", all_changes(REACH))
def test_everything_that_reaches_the_trial_moves_its_cells(changes):
    assert not set(cells_of()) & set(cells_of(**changes))


@pytest.mark.parametrize("changes", all_changes(DO_NOT_REACH))
def test_what_does_not_reach_the_trial_does_not(changes):
    assert cells_of() == cells_of(**changes)


def test_another_file_under_the_name_of_a_data_set_does(tmp_path, monkeypatch):
    """Of a file and of a folder: what is in it, and the names of its files; not where it lies."""
    table, folder = tmp_path / "table.csv", tmp_path / "folder"
    (folder / "inner").mkdir(parents=True)

    def cells(place):
        monkeypatch.setattr(_data, "find", {"digits": place}.get)
        _data.digest.cache_clear()
        return tuple(cells_of(data=("digits",)))

    seen = [cells(None)]
    for text in ("1,2", "1,3"):
        table.write_text(text)
        seen.append(cells(table))
    moved = tmp_path / "moved.csv"
    moved.write_text("1,3")
    assert cells(moved) == seen[-1]
    for name, text in (("a", "1"), ("inner/b", "1"), ("inner/b", "2"), ("inner/c", "1")):
        (folder / name).write_text(text)
        seen.append(cells(folder))
    (folder / "a").rename(folder / "b")  # in the same order
    seen.append(cells(folder))
    assert len(set(seen)) == len(seen)
    _data.digest.cache_clear()


def test_data_sets_count_alike_whether_they_differ_between_scales_or_not():
    both = {"digits", "diabetes"}
    for names in itertools.chain.from_iterable(itertools.combinations(sorted(both), n) for n in range(3)):
        by_scale = {"smoke": names, "desk": tuple(both - set(names))}
        assert cells_of(data=by_scale) == cells_of(data=names)


@pytest.mark.parametrize("length", [0, 1, 3 << 20])
def test_every_byte_of_a_data_set_is_in_its_digest(length, tmp_path, monkeypatch):
    """By its definition; also where a file is cut off."""
    path, bytes_ = tmp_path / "rows.bin", np.random.default_rng(0).bytes(length)
    monkeypatch.setattr(_data, "find", {"digits": path, "diabetes": tmp_path}.get)
    found = []
    for whole in (bytes_, bytes_[:-1], bytes_ + b"x"):
        path.write_bytes(whole)
        _data.digest.cache_clear()
        alone = hashlib.sha256(b"." + hashlib.sha256(whole).digest()).hexdigest()
        among = hashlib.sha256(b"rows.bin" + hashlib.sha256(whole).digest()).hexdigest()
        assert (_data.digest("digits"), _data.digest("diabetes")) == (alone, among)
        found.append(alone)
    assert len(set(found)) == (3 if length else 2)
    _data.digest.cache_clear()


def code_of(path: str, *names: str) -> str:
    """A digest of a file's code, or of these definitions in it, without docstrings."""
    tree = ast.parse((PACKAGE / "lab" / "running" / path).read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
            node.body = node.body[1:] or [ast.Pass()]
    if names:
        tree.body = [node for node in tree.body if {getattr(node, "name", ""), *assigned(node)} & set(names)]
        assert len(tree.body) == len(names)
    return hashlib.sha256(ast.unparse(tree).encode()).hexdigest()[:12]


def assigned(node: ast.stmt) -> set[str]:
    return {target.id for target in getattr(node, "targets", ()) if isinstance(target, ast.Name)}


def test_whoever_changes_the_worker_is_asked_for_the_protocol():
    """How a trial is loaded, called, keyed and batched, and what is set for its process, is in no cell's definitions: a
    new digest here, and PROTOCOL raised where numbers could change by it."""
    assert module.PROTOCOL == 4
    assert {
        "worker": code_of("worker.py"),
        "loaded": code_of("references.py", "is_file", "load", "_FromSource"),
        "set": code_of("executors.py", "SINGLE_THREAD", "OF_WORKERS", "start_worker"),
        "on a cluster": code_of("ray_executor.py", "_compute", "_prepare_once", "_unpack", "_moved"),
    } == {"worker": "bf0131763cf7", "loaded": "32bb69e0ccda", "set": "b77538258561", "on a cluster": "0c9f06b76a62"}


# -- the machine -----------------------------------------------------------------------------------------------------

# Variables that can move numbers, and what they are set to.
MOVING = {
    "JAX_DEFAULT_MATMUL_PRECISION": "bfloat16",
    "JAX_DEFAULT_PRNG_IMPL": "rbg",
    "JAX_RANDOM_SEED_OFFSET": "7",
    "JAX_NUMPY_DTYPE_PROMOTION": "strict",
    "JAX_OF_A_LATER_RELEASE": "1",
    "JAX_PLATFORMS": "cuda,cpu",
    "JAX_PLATFORM_NAME": "gpu",
    "XLA_FLAGS": "--xla_cpu_enable_fast_math=true",
}
# Where programs are kept, what is told, what the worker says itself, and the number of threads, which is rounding.
STILL = {
    "JAX_COMPILATION_CACHE_DIR": "/elsewhere",
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_LOG_COMPILES": "1",
    "JAX_TRACEBACK_FILTERING": "off",
    "JAX_DUMP_IR_TO": "/elsewhere",
    "JAX_ENABLE_X64": "1",
    "JAX_THREEFRY_PARTITIONABLE": "0",
    "JAX_PLATFORMS": "cpu",
    "JAX_DEFAULT_MATMUL_PRECISION": "",
    "PJRT_NPROC": "8",
    "OMP_NUM_THREADS": "8",
    "TF_CPP_MIN_LOG_LEVEL": "0",
}


@pytest.fixture
def unset(monkeypatch):
    """A CPU where nobody has set anything."""
    for name in list(os.environ):
        if name[:4] == "JAX_" or name in executors.OF_WORKERS:
            monkeypatch.delenv(name)
    monkeypatch.setattr(module, "_accelerators", tuple)
    return monkeypatch


def test_an_ordinary_machine_adds_nothing(unset):
    """So that what was computed before is still known."""
    assert module.surroundings() == {}
    first = fingerprint({}, ())
    for name, value in (executors.OF_WORKERS | STILL).items():
        unset.setenv(name, value)
        assert fingerprint({}, ()) == first, name
    assert module.surroundings() == {}


def test_what_is_set_for_jax_and_xla_moves_cells_where_it_can_move_numbers(unset):
    """Each on its own; the flags in any order."""
    seen = [fingerprint({}, ())]
    for name, value in MOVING.items():
        with unset.context() as only:
            only.setenv(name, value)
            seen.append(fingerprint({}, ()))
    assert len(set(seen)) == len(seen)
    for flags in ("--a=1 --b=2", f"--b=2  {executors.OF_WORKERS['XLA_FLAGS']} --a=1"):
        unset.setenv("XLA_FLAGS", flags)
        assert module.surroundings() == {"XLA_FLAGS": "--a=1 --b=2"}


def test_an_accelerator_counts_unless_the_cpu_is_asked_for(unset, tmp_path):
    """A plugin that is installed, or the platform that is named."""
    (tmp_path / "xla_cuda12").mkdir()
    (tmp_path / "xla_cuda12" / "__init__.py").write_text("")
    places = {"jax_plugins": SimpleNamespace(submodule_search_locations=[str(tmp_path)])}
    unset.undo()
    for name in module.PLATFORM:
        unset.delenv(name, raising=False)
    module._accelerators.cache_clear()
    unset.setattr(module.importlib.util, "find_spec", places.get)
    assert module.surroundings()["platform"] == "xla_cuda12"
    places["libtpu"] = SimpleNamespace()
    module._accelerators.cache_clear()
    assert module._accelerators() == ("xla_cuda12", "tpu")
    unset.setenv("JAX_PLATFORMS", "CPU")
    assert "platform" not in module.surroundings()
    module._accelerators.cache_clear()


def test_more_seeds_do_not():
    assert set(cells_of()) == set(cells_of(**with_scale(seeds=20)))


# What two cells of one fingerprint may differ in: which seeds, and words that no trial reads.
FREE = {"start", "scale", "problem", "accepts"}


@pytest.mark.slow
def test_cells_of_one_fingerprint_are_the_same_work():
    """Of all declarations of all papers and of every change above; a user's own problem is another reference."""
    toy = [toys.experiment(**changes) for changes in [{}, *all_changes(REACH), *all_changes(DO_NOT_REACH)]]
    cells = [cell for one in toy for cell in plan(toys.selections(toys.paper(one)), "smoke")]
    own = f"{toys.TRIALS}:Bowl"
    cells += [cell for one in toy for cell in plan(toys.selections(toys.paper(one)), "smoke", problem=own)]
    for paper in all_papers():
        for experiment in paper.experiments:
            chosen = [Selection(paper, experiment, experiment.claims)]
            ends = [scale for scale in ("tiny", "full") if scale in experiment.scales]
            cells += [cell for scale in ends for cell in plan(chosen, scale, seeds=1)]
    work: dict[str, dict] = {}
    for cell in cells:
        fields = {name: value for name, value in dataclasses.asdict(cell).items() if name not in FREE}
        assert work.setdefault(cell.fingerprint, fields) == fields, cell.name


def other(value):
    """Another value of the same type."""
    if isinstance(value, tuple | list):
        return (*value[:-1], other(value[-1])) if value else (1,)
    return not value if isinstance(value, bool) else f"{value}-" if isinstance(value, str) else value + 1


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_setting_of_every_paper_moves_its_cells(name):
    """Each setting of an arm, of the scale and of its problem on its own, and one that is left out."""
    experiment = EXPERIMENTS[name]
    scale, arm = experiment.scales["tiny"], experiment.arms[0]

    def hash_of(arm=arm, scale=scale):
        changed = dataclasses.replace(
            experiment, arms=(arm,), scales={"tiny": scale}, claims=(), curves=(), guards=(), data=()
        )
        whole = dataclasses.replace(PAPER_OF[name], experiments=(changed,), films=())
        return plan([Selection(whole, changed, changed.claims)], "tiny", seeds=1)[0].fingerprint

    def scaled(problem=scale.problem, **settings):
        return Scale(scale.seeds, scale.block, scale.cost, problem, scale.compilation, **settings)

    found = [hash_of()]
    for settings, make in (
        (arm.settings, lambda **new: {"arm": Arm(arm.name, arm.label, **new)}),
        (scale.settings, lambda **new: {"scale": scaled(**new)}),
        (scale.problem, lambda **new: {"scale": scaled(new, **scale.settings)}),
    ):
        for key, value in settings.items():
            rest = {other: kept for other, kept in settings.items() if other != key}
            found += [hash_of(**make(**rest | {key: other(value)})), hash_of(**make(**rest))]
    assert len(set(found)) == len(found)


# -- the package grows -----------------------------------------------------------------------------------------------


def used() -> dict[str, str]:
    return {name: program((e.trial, e.problem, SETTINGS)).hash for name, e in EXPERIMENTS.items()}


def all_cells(package: Path) -> list[list[str]]:
    environment = os.environ | {"PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", f"{ALL_CELLS}print(json.dumps(all_cells))"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def grow(package: Path, areas: set[str]) -> str:
    """A new method in these areas, a new field of claims, a new release, and a new paper, whose id is returned."""
    for area in areas:
        (package / area / "new_method.py").write_text("class NewMethod:\n    rate = 1\n")
        initial = package / area / "__init__.py"
        initial.write_text(
            f"from laureate.{area}.new_method import NewMethod\n{initial.read_text()}\nNEWEST = NewMethod\n"
        )
    edit(package / "lab" / "claim.py", 'reported: str = ""\n', 'reported: str = ""\n    brand_new: str = "field"\n')
    edit(package / "__init__.py", r'__version__ = ".*"\n', '__version__ = "99.0"\n')
    new = free_id()
    shutil.copytree(package / "papers" / "pes", package / "papers" / folder_of(new))
    for path in (package / "papers" / folder_of(new)).glob("*.py"):
        path.write_text(path.read_text().replace("laureate.papers.pes", f"laureate.papers.{folder_of(new)}"))
    edit(package / "papers" / folder_of(new) / "about.py", r'id="pes"', f'id="{new}"')
    return new


def test_a_new_method_a_new_field_of_claims_a_new_paper_and_a_release_move_nothing(tmp_path):
    """The fingerprints of a package that has grown, in a process of its own, are those of this one in this process."""
    package = tmp_path / "laureate"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    new = grow(package, {paper.area for paper in all_papers()})
    here: dict = {}
    exec(ALL_CELLS, here)
    grown = all_cells(package)
    assert [cell for cell in grown if not cell[0].startswith(f"{new}/")] == here["all_cells"]
    assert len(grown) > len(here["all_cells"]), "the new paper is registered"


def test_what_grows_beside_the_methods_of_an_area_moves_none_of_its_papers(tmp_path):
    """The test above for one area, in this process and from the sources alone."""
    package = tmp_path / "laureate"
    left_out = lambda folder, names: [name for name in names if "." in name and not name.endswith(".py")]  # noqa: E731
    shutil.copytree(PACKAGE, package, ignore=left_out)
    trials = [(e.trial, e.problem, SETTINGS) for name, e in EXPERIMENTS.items() if name.startswith("pes/")]

    def hashes():
        return [program(references, package).hash for references in trials]

    before = hashes()
    assert before == [program(references).hash for references in trials]  # wherever the package lies
    grow(package, {"gradients"})
    assert hashes() == before
    edit(package / "gradients" / "persistent_es.py", r"\nclass PersistentES\(.*\n", "\\g<0>    newer = 1\n")
    assert any(old != new for old, new in zip(before, hashes(), strict=True))


def edit(path: Path, pattern: str, by: str) -> None:
    text, count = re.subn(pattern, by, path.read_text(), count=1)
    assert count == 1, (path, pattern)
    path.write_text(text)


def changed(text: str, name: str) -> str:
    """One more line in a function or class, or another value of a constant."""
    lines = text.splitlines(keepends=True)
    (node,) = (
        node
        for node in ast.parse(text).body
        if getattr(node, "name", None) == name
        or (
            isinstance(node, ast.Assign)
            and any(getattr(n, "id", None) == name for t in node.targets for n in ast.walk(t))
        )
    )
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        last = node.body[-1]
        first_line = min(n.lineno for n in (last, *getattr(last, "decorator_list", ())))
        lines.insert(first_line - 1, " " * last.col_offset + "_changed = 1\n")
    else:
        lines.insert(node.end_lineno or 0, f"{name} = ({name}, 1)[0]\n")
    return "".join(lines)


RUNS = ("quadratics", "lower-bound", "sorted-images", "sweep", "conv-net", "real-processes")
DETAG = {f"detag/{name}" for name in RUNS}
PREDICTED = {f"directpred/{name}" for name in ("invariant-subspace", "collapse", "rank", "accuracy")}

EXPLORED = {
    f"rnd/{name}" for name in ("actors", "bonuses", "chain", "discounts", "heads", "stale", "television", "trunk")
}
DIFFUSED = ("classes", "completion", "continuum", "modes", "rivals")


@pytest.mark.parametrize(
    ("file", "name", "moved"),
    [
        # a method, a base class and a helper of its area, a problem and a helper of it, a trial, a helper, a constant
        ("decentralized/detag.py", "DeTAG", DETAG),
        ("decentralized/optimiser.py", "DecentralizedOptimiser", DETAG),
        ("decentralized/mixing.py", "spectral_gap", DETAG | {"detag/consensus"}),
        ("representation/predictors.py", "DirectPred", PREDICTED | {"directpred/parity"}),
        ("pde/deep_bsde.py", "DeepBSDE", {"tensor-train-pde/networks"}),
        ("problems/pdes.py", "AllenCahn", {"tensor-train-pde/allen-cahn"}),
        ("problems/_spectral.py", "double_well_value", {"tensor-train-pde/double-well-separable"}),
        ("problems/unrolls/systems.py", "LinearQuadratic", {"pes/unbiased"}),
        ("papers/pes/trials.py", "unbiased", {"pes/unbiased"}),
        ("papers/directpred/trials.py", "_predictor", PREDICTED),
        ("papers/pes/trials_training.py", "LOWEST", {"pes/influence-balancing"}),
        ("layers/spectral.py", "SpectralNorm", {f"biggan/{name}" for name in ("images", "few-images", "singular")}),
        ("loops/environments.py", "step_or_reset", EXPLORED | {"dreamer-v2/mass", "dreamer-v2/room"}),
        ("control/bonuses.py", "CountBonus", EXPLORED),
        ("graphs/noise.py", "TrainingNoise", {name for name in EXPERIMENTS if name.startswith("mesh-graph-nets/")}),
        ("generative/diffusion.py", "ConditionalDiffusion", {f"cgml/{name}" for name in DIFFUSED}),
        ("papers/pes/about.py", "PAPER", set()),
        ("lab/claim.py", "Experiment", set()),
        ("lab/claim.py", "Settings", set(EXPERIMENTS)),
    ],
)
def test_a_line_in_a_definition_moves_exactly_the_cells_that_use_it(file, name, moved, monkeypatch):
    """The package as it is, but for one file that is newer and reads otherwise: only that one is parsed again."""
    before, path = used(), PACKAGE / file
    tree, newer = ast.parse(changed(path.read_text("utf-8"), name)), (time.time_ns(), 0)
    parsed, modified = source.parsed, definitions._modified
    monkeypatch.setattr(source, "parsed", lambda asked: tree if asked == path else parsed(asked))
    monkeypatch.setattr(definitions, "_modified", lambda asked: newer if asked == path else modified(asked))
    monkeypatch.setattr(definitions, "_programs", dict(definitions._programs))
    after = used()
    assert {name for name in before if before[name] != after[name]} == moved


def test_nobody_depends_on_what_is_not_measured():
    for name, experiment in EXPERIMENTS.items():
        for path, definition in program((experiment.trial, experiment.problem, SETTINGS)).definitions:
            where = path.relative_to(PACKAGE).as_posix()
            assert not where.startswith(("cli/", "pages/", "catalogue/", "lab/storing/", "lab/judging/")), (name, where)
            assert definition != "__version__", name
