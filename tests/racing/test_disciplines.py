"""Every discipline: nobody of its area is missing, its code runs as it is handed out, a race of it ends."""

import ast
import importlib
import inspect
import itertools
import re
import warnings

import jax
import pytest
from skeletons import unfinished_areas
from small_problems import BUDGETS, QUICK, problem

from laureate import active, gradients, imbalance, multitask
from laureate.lab.errors import UserError
from laureate.lab.running.references import load
from laureate.loops import Box
from laureate.racing.api import race
from laureate.racing.code import area_names, script, uses
from laureate.racing.disciplines import WITHOUT_RACE, disciplines
from laureate.racing.kinds import detect
from rooms import AREAS

ALL = {one.name: one for one in disciplines()}
# What a class must have, any of these, to be something that one runs rather than a part, a state or a problem.
VERBS = ("step", "update", "run", "solve", "fit", "encode", "layer", "gradient")


def methods(area):
    """The public classes of an area that can be run: neither protocols nor what they report."""
    module = importlib.import_module(f"laureate.{area}")
    found = {}
    for name in module.__all__:
        one = getattr(module, name)
        report = inspect.isclass(one) and issubclass(one, tuple)
        runs = inspect.isclass(one) and any(callable(getattr(one, verb, None)) for verb in VERBS)
        if runs and not (report or inspect.isabstract(one) or getattr(one, "_is_protocol", False)):
            found[name] = one
    return found


@pytest.mark.parametrize("name", ALL)
def test_no_method_of_an_area_is_missing_from_its_discipline(name):
    one = ALL[name]
    entered = {used for entrant in one.entrants for used in entrant.names}
    missing = methods(one.area).keys() - entered - one.absent.keys()
    assert not missing, f"Let {sorted(missing)} enter {name}, or say in `absent` why not."
    assert not one.absent.keys() & entered


def functions(name):
    """The methods of a discipline that are functions and not classes, by what they have in common."""
    if name == "imbalance":
        return {one.__name__ for one in imbalance.LOSSES.values()}
    if name == "active":
        return {one.__name__ for one in active.RISKS.values()}
    if name == "categorical-gradients":
        found = {text: getattr(gradients, text) for text in gradients.__all__}
        return {text for text, one in found.items() if list(_parameters(one))[:2] == ["key", "logits"]}
    found = {text: getattr(multitask, text) for text in multitask.__all__}
    return {text for text, one in found.items() if "shared" in _parameters(one)} - {"aggregator"}  # the maker of all


def _parameters(one):
    return inspect.signature(one).parameters if inspect.isfunction(one) else {}


@pytest.mark.parametrize("name", ["imbalance", "active", "categorical-gradients", "multitask"])
def test_no_function_of_an_area_is_missing_from_its_discipline(name):
    entered = {used for entrant in ALL[name].entrants for used in entrant.names}
    assert len(functions(name)) >= 4
    missing = functions(name) - entered - ALL[name].absent.keys()
    assert not missing, f"Let {sorted(missing)} enter {name}, or say in `absent` why not."


def test_every_area_has_a_race_or_a_reason():
    """But for those that are begun, of which ``tests/papers/test_nothing_missing.py`` tells."""
    raced = {one.area for one in ALL.values()}
    assert raced | WITHOUT_RACE.keys() <= set(AREAS)
    assert not set(AREAS) - unfinished_areas() - raced - WITHOUT_RACE.keys()
    assert not raced & WITHOUT_RACE.keys()
    named = {area: re.findall("`([^`]*)`", why) for area, why in WITHOUT_RACE.items()}
    for area, names in named.items():
        assert all(hasattr(importlib.import_module(f"laureate.{area}"), name) for name in names)


def test_the_test_above_sees_a_missing_method():
    assert {"GibbsWithGradients", "PersistentES", "TensorTrainSolver", "DeTAG", "ALISTA", "PGD"} <= {
        name for one in ALL.values() for name in methods(one.area)
    }


@pytest.mark.parametrize("name", ALL)
def test_a_discipline_is_whole(name):
    one = ALL[name]
    facts = dict(load(one.facts)(problem(name)))
    fragments, absent = facts.pop("code", {}), facts.pop("absent", {})
    assert len({entrant.name for entrant in one.entrants}) == len(one.entrants)
    assert set(absent) <= {entrant.name for entrant in one.entrants}
    module = importlib.import_module(f"laureate.{one.area}")
    for entrant in one.entrants:
        settings = {**facts, **entrant.default, "budget": 8, "num_bits": 4, "block": 4, "num_centroids": 4}
        assert entrant.default in entrant.configs
        assert len(entrant.configs) <= 12  # more could not be told apart with the cost that there is to tune
        text = script(one, entrant, settings | {"learning_rate": 0.01}, fragments, "")
        ast.parse(text)
        for used in area_names(one, entrant.code, {**settings, **fragments}):
            assert hasattr(module, used), f"{entrant.name} uses {used}, which {one.area} does not have"
        ours = entrant.names - {*settings, *fragments, one.problem}
        expected = {f"laureate.{one.area}:{name}" for name in ours if hasattr(module, name)}
        expected |= {"optax:optax"} if "optax" in ours else set()
        assert set(uses(one, entrant.code, settings | fragments)) == expected
    # What is carried on from point to point is one run; else every point is a run of its own.
    assert one.one_shot == ("carry" not in load(one.trial).__code__.co_varnames)


@pytest.mark.parametrize("name", [name for name in ALL if name != "pde"])  # which must be a tree, and computes
def test_a_problem_may_be_a_dictionary(name):
    made, one = problem(name), ALL[name]
    offered = [what for what in (*one.needs, *one.offers) if hasattr(made, what)]
    told = made if isinstance(made, dict) else {what: getattr(made, what) for what in offered}
    assert load(one.facts)(told) == load(one.facts)(made)


def test_every_small_problem_is_known_for_what_it_is():
    for name in ALL:
        assert detect(problem(name), ALL.values()).name == name


def test_a_problem_that_could_be_of_two_kinds_is_asked_which():
    """Whoever needs most of what is offered is meant; for every two kinds, a problem that has all for both."""
    asked = 0
    for pair in itertools.combinations(ALL.values(), 2):
        offered = {name: None for one in pair for name in one.needs}
        fitting = [one for one in ALL.values() if one.needs.keys() <= offered.keys()]
        most = max(len(one.needs) for one in fitting)
        meant = [one for one in fitting if len(one.needs) == most]
        if len(meant) == 1:
            assert detect(offered, ALL.values()) is meant[0]
            continue
        asked += 1
        kinds = re.escape(" or ".join(f"{one.kind} ({one.name})" for one in meant))
        with pytest.raises(UserError, match=f"could be {kinds}. Say which: --kind {meant[0].name}."):
            detect(offered, ALL.values())
    assert asked


def test_an_unknown_kind_says_what_is_missing_and_which_is_nearest():
    class Half:
        def init(self, key, theta): ...
        def step(self, key, theta, state): ...

    with pytest.raises(UserError, match=r"offers init, step: .*Nearest is an unroll \(gradients\).*theta0.*horizon"):
        detect(Half(), ALL.values())
    with pytest.raises(UserError, match=r"\(object\) offers nothing: .*race --list"):
        detect(object(), ALL.values())
    with pytest.raises(UserError, match=r"an energy.*start"):
        race(lambda x: x.sum())
    with pytest.raises(UserError, match=r"rare classes.*lacks features \(it has feature\), .*\(calibration\), without"):
        race({"feature": 1, "labels": 2})
    with pytest.raises(UserError, match=r"is not an energy.*start"):
        race({"X": 1}, kind="sampling")


@pytest.mark.parametrize(
    ("kind", "change", "said"),
    [
        ("gradients", {"horizon": None}, "unroll.horizon must be an integer"),
        ("categorical-gradients", {"targets": jax.numpy.zeros(3)}, "model.inputs and model.targets must have as many"),
        ("categorical-gradients", {"loss": lambda p, z, x, y: z.sum()}, "model.loss must be a number for each of 80"),
        ("categorical-gradients", {"logits": lambda p, x: x[:, 0]}, "model.logits must be"),
        ("decentralized", {"data": jax.numpy.zeros((3, 2))}, "network.data must have a first axis of 4"),
        ("robustness", {"images": jax.numpy.zeros((16, 8))}, "classifier.images must be"),
        ("recovery", {"signals": jax.numpy.zeros((32, 5))}, "recording.signals"),
        ("compression", {"size": 10**9}, "trained.size must be between"),
        ("prediction-sets", {"labels": [0, 1]}, "scored.scores must be"),
        ("calibration", {"labels": jax.numpy.zeros(3)}, "scored.probabilities must be"),
        ("multitask", {"losses": lambda params, batch: params["own"][0]}, "tasks.losses must be an array"),
        ("multitask", {"scores": lambda params, part: params["own"][0]}, r"tasks.scores must be of shape \[2\]"),
        ("exploration", {"observation_space": Box((3,))}, r"environment.reset must show \[3\] numbers; got \[4\]"),
        (
            "exploration",
            {"action_space": Box((2, 2))},
            "environment.action_space: .* must be Discrete",
        ),
        ("simulators", {"states": jax.numpy.zeros((8, 6, 3, 1))}, "motion.states must be .*4 nodes"),
        ("simulators", {"states": jax.numpy.ones((8, 6, 4, 1))}, "motion.states must change"),
        ("simulators", {"cells": [[0, 1, 9]]}, "motion: mesh_graph.cells must be node numbers"),
        ("simulators", {"kinds": [6, 6, 6, 6]}, "motion.kinds must leave nodes to foretell"),
        ("simulators", {"order": 3}, "motion.order must be 1 or 2; got 3"),
        ("imbalance", {"labels": jax.numpy.zeros(3)}, "rows.features must be"),
        ("imbalance", {"labels": [0] * 93 + [1] * 3}, r"too few rows \(class: rows\) in {1: 3}"),
        ("active", {"scores": jax.numpy.zeros(99)}, r"pool.losses must be \[n >= 80\]"),
        ("active", {"scores": -jax.numpy.ones(100)}, "pool.scores finite, >= 0"),
        ("active", {"num_labels": 60}, "pool.num_labels must be between 8 and 25"),
        ("generative", {"y": jax.numpy.zeros((39, 1))}, r"pairs.x and pairs.y must be \[n >= 32"),
        ("generative", {"y": jax.numpy.full((40, 1), jax.numpy.nan)}, "pairs.x and pairs.y must be finite"),
    ],
)
def test_a_problem_that_cannot_be_raced_says_why(kind, change, said):
    made = problem(kind)
    names = ALL[kind].needs
    offered = made if isinstance(made, dict) else {name: getattr(made, name) for name in names}
    with pytest.raises(UserError, match=said):
        load(ALL[kind].facts)({**offered, **change})


def raced(kind, store, only):
    return race(problem(kind), budget=BUDGETS[kind], seeds=3, only=only, store=store)


def pasted(found, kind):
    """Run the code as a person would, with their problem under the name that it has there."""
    for name, text in found.codes.items():
        with jax.enable_x64(ALL[kind].x64), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "KnockoffSelector: the knockoffs are untested")  # there are 180 rows
            exec(compile(text, f"<{name}>", "exec"), {ALL[kind].problem: problem(kind)})


SLOW = [pytest.param(kind, marks=() if kind == "prediction-sets" else pytest.mark.slow) for kind in ALL]


@pytest.mark.parametrize("kind", SLOW)
def test_a_race_ends_and_its_code_runs(kind, store, monkeypatch, capsys):
    """Two entrants of each discipline, very small, in this process."""
    found = raced(kind, store, QUICK[kind])
    assert len(found.standing.order) == 2, [row.words for row in found.rows]
    assert all((row.cost or 0) <= 1.05 * found.budget for row in found.rows)
    assert found.code
    pasted(found, kind)
    assert capsys.readouterr().out.strip()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ALL)
def test_everybody_of_a_discipline_comes_in(kind, store, capsys):
    found = raced(kind, store, "")
    came = {row.entrant for row in found.rows if row.status == "finished"}
    out = {row.entrant: row.words for row in found.rows if row.status in ("crashed", "endless")}
    assert not out
    assert len(came) >= len(ALL[kind].entrants) - 1
    pasted(found, kind)
