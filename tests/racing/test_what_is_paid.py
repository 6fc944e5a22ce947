"""What a step of a track says it cost is what was computed in it, and who is given a budget spends it and no more."""

import functools
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_problems import problem

from laureate.lab.claim import Settings
from laureate.lab.running.references import load
from laureate.racing.code import filled
from laureate.racing.disciplines import disciplines
from laureate.racing.tracks import categorical_gradients, decentralized, imbalance, multitask
from laureate.racing.tracks.clock import made, traced, view

ALL = {one.name: one for one in disciplines()}
BUDGETS = (40, 100, 190)
KEY = jax.random.key(0)


def arms(name, **more):
    """Every entrant with every setting, as the track is given them."""
    one = ALL[name]
    facts = dict(load(one.facts)(problem(name)))
    fragments = facts.pop("code", {})
    for entrant in one.entrants:
        for config in entrant.configs:
            settings = {
                "code": filled(entrant.code, {}, fragments),
                "area": one.area,
                "swept": ",".join(config),
                **facts,
                **config,
            }
            yield entrant, config, Settings(settings | more)


# --- of each step -----------------------------------------------------------------------------------------------------

# What an update costs, in the unit of the discipline; of the small problems.
STEPS: dict[str, Any] = {
    "categorical-gradients": (
        categorical_gradients,
        lambda config: 32 * config.get("samples", 1),  # rows of which a loss is computed: of each of rloo's samples
        lambda track, settings, model, carry: track._advance(
            settings, model, (model.inputs, model.targets), KEY, carry, 1, 32
        ),
    ),
    "imbalance": (
        imbalance,
        lambda config: 32,
        lambda track, settings, model, carry: track._advance(
            settings, (jnp.zeros((8, 2)), jnp.arange(8) % 2), KEY, carry, 1
        ),
    ),
    "multitask": (
        multitask,
        lambda config: 2,  # a gradient a task
        lambda track, settings, model, carry: track._advance(settings, model, KEY, carry, 1),
    ),
}


@pytest.mark.filterwarnings(
    "ignore:focal_cross_entropy. tau = 4.0 is far beyond 1"
)  # a number here, in a race an array
@pytest.mark.parametrize("name", STEPS)
def test_a_step_costs_what_is_computed_in_it(name, monkeypatch):
    track, price, advance = STEPS[name]
    told = []

    def spend(step, state, count, cost, target):
        told.append(step(state, 0)[1])
        return state, count, cost

    monkeypatch.setattr(track, "spend", spend)
    _with_costs_as_numbers(track, monkeypatch)
    first = {"imbalance": (2,)}.get(name, (view(problem(name)),))
    for entrant, config, settings in arms(name):
        if config.get("learning_rate", 0) == entrant.grid["learning_rate"][0]:
            told.clear()
            given = traced(settings)
            jax.eval_shape(lambda given=given: advance(track, given, first[0], track._begin(given, *first, KEY))[0])
            assert int(told[0]) == price(config), (entrant.name, config)


def test_a_round_costs_the_bytes_that_its_optimiser_sends(monkeypatch):
    told = []
    monkeypatch.setattr(decentralized, "spend", lambda step, state, *more: (told.append(step(state, 0)[1]), state)[1:])
    _with_costs_as_numbers(decentralized, monkeypatch)
    network = problem("decentralized")
    for entrant, config, settings in arms("decentralized"):
        if config["learning_rate"] == entrant.grid["learning_rate"][0]:
            settings, sent = dict(settings), []
            told.clear()
            jax.eval_shape(functools.partial(_advanced, settings, network, sent))
            assert int(told[0]) == round(sent[0]), (entrant.name, config)


def _advanced(settings, network, sent):
    params = jnp.zeros((settings["nodes"], 2))
    optimiser = made(settings, network=network)
    sent.append(optimiser.sent(params))
    return decentralized._advance(settings, network, KEY, ((params, optimiser.init(params)), 0, 0), 1)[0]


def _with_costs_as_numbers(track, monkeypatch):
    """Nothing is computed here: a cost is a number, and not one of the program."""
    asarray = lambda value, *kind: (jnp if isinstance(value, jax.Array) else np).asarray(value, *kind)  # noqa: E731
    monkeypatch.setattr(track, "jnp", SimpleNamespace(**{**vars(jnp), "asarray": asarray}))


# --- of a whole run ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", BUDGETS)
def test_an_attack_takes_as_many_gradients_as_it_is_given(budget):
    """As far as its copies divide them; FGSM has no use for more than one."""
    for entrant, config, settings in arms("robustness"):
        attack = made(settings, classifier=problem("robustness"), budget=budget)
        gradients = attack.num_passes * attack.walk.num_steps
        expected = 1 if entrant.name == "fgsm" else budget
        assert expected - attack.num_passes < gradients <= expected, (entrant.name, config)


POINTS = {
    "tensor-train-implicit": lambda solver: solver.num_steps * solver.num_samples,
    "tensor-train-explicit": lambda solver: solver.num_steps * solver.num_samples,
    "deep-bsde": lambda solver: solver.num_steps * solver.batch * solver.num_updates,
    "monte-carlo": lambda solver: solver.num_steps * solver.num_paths,
}


@pytest.mark.parametrize("budget", [40_000, 1_000_000])
def test_a_solver_takes_as_many_points_as_it_is_given(budget):
    settings = {"steps": 20, "low": -1.0, "high": 1.0, "form": "linear"}
    for entrant in ALL["pde"].entrants:
        for config in entrant.configs:
            arm = Settings({"code": entrant.code, "area": "pde", "swept": "", **settings, **config})
            solver = made(arm, budget=budget)
            if entrant.name == "deep-backward":  # half to simulate, half to learn from: eight updates more at the end
                learnt = 2 * solver.batch * solver.num_updates * (solver.num_steps + 8)
                assert 0.9 * budget <= learnt <= budget
                assert 2 * solver.num_steps * solver.num_samples <= budget
            else:
                assert 0.9 * budget <= POINTS[entrant.name](solver) <= budget, (entrant.name, config)


def test_layers_and_draws_are_the_budget():
    for _, _, settings in arms("recovery"):
        recording = view({"dictionary": np.eye(3, dtype=np.float32)})
        solver = jax.eval_shape(lambda s=settings, r=recording: made(s, recording=r, budget=12))
        assert solver.num_layers == 12
    for _, _, settings in arms("selection"):
        assert made(settings, budget=3).num_draws == 3
