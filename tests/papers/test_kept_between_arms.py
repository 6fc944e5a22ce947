"""What trials keep for the arms, seeds and experiments that follow is kept for those alone that would make the same.

A worker computes many cells of a paper in one process. What is trained once for all arms of a seed lies in a table
whose key must hold all that it was made from: an ingredient that is missing there gives one experiment what another
made, and only in one process, so that no trial that runs alone shows it.
"""

import ast
import inspect
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate.lab.claim import Settings
from laureate.papers.darts_pt import trials as darts
from laureate.papers.gvp import trials as gvp
from laureate.papers.important_neurons import trials as neurons
from laureate.papers.interaction_attack import trials as attack
from laureate.papers.localized_learning import trials_host as localized
from laureate.papers.referring_segmentation import trials as segmentation

KEY, OTHER = jax.random.key(0), jax.random.key(1)
WORDS = {name: np.arange(6).reshape(2, 3) for name in ("sources", "targets", "test_sources", "test_targets")}
PICTURES = SimpleNamespace(images=np.zeros((2, 4, 4, 1)), labels=np.array([0, 1]))


def of_neurons(made, monkeypatch):
    looked = None, None, {}, None, jnp.ones(1), np.ones(1)
    monkeypatch.setattr(neurons, "_train", lambda *_: made())
    monkeypatch.setattr(neurons, "_looked_at", lambda *_: looked)
    monkeypatch.setattr(neurons, "_prepared", {})
    usual = {"key": KEY, "problem": SimpleNamespace(**WORDS), "task": "translate"}
    usual["scale"] = Settings(kind="worst", models=2, units=3, steps=1, batch=2, rate=0.1)
    others = {"key": [OTHER], "task": ["copy"]}
    others["problem"] = [SimpleNamespace(**WORDS | {name: 1 + rows}) for name, rows in WORDS.items()]
    return neurons.prepared, usual, others


def of_networks(made, monkeypatch):
    monkeypatch.setattr(attack, "_train", lambda *_: made())
    monkeypatch.setattr(attack, "_trained", {})
    usual = {"key": KEY, "problem": PICTURES, "scale": Settings(networks=("wide",), train_steps=1)}
    others = {"key": [OTHER], "problem": [SimpleNamespace(**vars(PICTURES))]}
    others["scale"] = [Settings(networks=("narrow",), train_steps=1), Settings(networks=("wide",), train_steps=2)]
    return attack.trained, usual, others


def of_plain_attacks(made, monkeypatch):
    monkeypatch.setattr(attack, "attacked", lambda *_: made())
    monkeypatch.setattr(attack, "_plain", {})
    scale = Settings(networks=("wide",), train_steps=1, epsilon=0.1, steps=2, grid=3)
    usual = {"key": KEY, "arm": Settings(gradient="vr"), "problem": PICTURES, "scale": scale}
    others = {"key": [OTHER], "problem": [SimpleNamespace(**vars(PICTURES))]}
    return attack.attacked_plainly, usual, others


def of_scenes(made, monkeypatch):
    monkeypatch.setattr(segmentation, "_prepare", lambda *_: made())
    monkeypatch.setattr(segmentation, "_prepared", {})
    usual = {"key": KEY, "problem": PICTURES, "scale": Settings(train=3, validation=2, test=2)}
    return segmentation.prepared, usual, {"key": [OTHER], "problem": [SimpleNamespace(**vars(PICTURES))]}


def of_benches(made, monkeypatch):
    monkeypatch.setattr(darts, "Bench", lambda *_: made())
    monkeypatch.setattr(darts, "_benches", {})
    usual = {"problem": PICTURES, "scale": Settings(dict.fromkeys(read_by_a_bench(), 1))}
    return darts.bench, usual, {"problem": [SimpleNamespace(**vars(PICTURES))]}


def of_supernets(made, monkeypatch):
    monkeypatch.setattr(darts.Bench, "whole", lambda *_, **__: made())
    found = object.__new__(darts.Bench)
    empty = {"fixed": None, "learned": None, "all": None, "scale": Settings(steps=10), "_supernets": {}}
    vars(found).update(empty)
    ask = lambda key, alpha, factor, scale: found.supernets(key, alpha, factor)  # noqa: E731
    usual = {"key": KEY, "alpha": "bilevel", "factor": 1.0, "scale": Settings()}  # a bench has one scale
    return ask, usual, {"key": [OTHER], "alpha": ["one-level", "fixed"], "factor": [0.5, 2.0]}


def read_by_a_bench():
    """What is read of a bench's scale, by itself and by who has one."""
    nodes = [node for node in ast.walk(ast.parse(inspect.getsource(darts))) if isinstance(node, ast.Attribute)]
    kept = [node.attr for node in nodes if isinstance(node.value, ast.Attribute) and node.value.attr == "scale"]
    return sorted({*kept, "rate", "alpha_rate"})  # of which its optimisers are made


def of_rates(made, monkeypatch):
    monkeypatch.setattr(localized, "_trained", lambda *_: (made(), 0.0))
    monkeypatch.setattr(localized, "_CHOSEN", {})
    scale = Settings(rates=(0.1,), local_rates=(0.1,), epochs=1, channels=2)
    usual = {"problem": PICTURES, "arm": Settings(rule="hebb", schedule="stairs", rising=1.0), "scale": scale}
    others = {"problem": [SimpleNamespace(**vars(PICTURES))]}
    others["arm"] = [Settings(dict(usual["arm"]) | one) for one in ({"rule": "oja"}, {"rising": -1.0})]
    return localized._chosen, usual, others


def of_tuned_rates(made, monkeypatch):
    def fit(key, rate, arm, problem, scale):
        return np.asarray(float(made())), None

    usual = {"fit": fit, "arm": Settings(model="gvp"), "held": gvp.Held(PICTURES), "scale": Settings(rates=(0.1,))}
    others = {"arm": [Settings(model="raw")], "held": [gvp.Held(SimpleNamespace(**vars(PICTURES)))]}
    others["fit"] = [lambda *given: fit(*given)]
    return gvp._best_rate, usual, others


def changed(value):
    if isinstance(value, tuple):
        return ("narrow",) if isinstance(value[0], str) else (2 * value[0],)
    return "last" if isinstance(value, str) else value + 1


TABLES = [of_neurons, of_networks, of_plain_attacks, of_scenes, of_benches, of_supernets, of_rates, of_tuned_rates]


@pytest.mark.parametrize("table", TABLES)
def test_another_ingredient_is_made_anew_and_the_same_is_not(table, monkeypatch):
    """Each ingredient is changed alone; of a scale every setting that is there."""
    count = [0]

    def made():
        count[0] += 1
        return count[0]

    ask, usual, others = table(made, monkeypatch)
    settings = dict(usual["scale"])
    others["scale"] = [Settings(settings | {name: changed(value)}) for name, value in settings.items()]
    ask(**usual)
    for name, values in others.items():
        for value in values:
            before = count[0]
            ask(**usual | {name: value})
            assert count[0] == before + 1, (name, value)
            ask(**usual)
            ask(**usual | {name: value})
            assert count[0] == before + 1, (name, value)
