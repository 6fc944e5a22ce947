"""Do the trials measure what they say?"""

import inspect

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from in_numpy import evaluate

from laureate.graphs import GVP, QualityModel, featurize_backbone
from laureate.lab.claim import Settings
from laureate.papers.gvp import trials, trials_proteins
from laureate.problems.points import PointClouds, off_centre, perimeter, to_marked
from laureate.problems.proteins import AMINO_ACIDS, Backbones

SMALL = {"dims": (4, 2), "edge_dims": (4, 1), "layers": 1}
FEW = Backbones("made", 6, 12)
PLAIN = {"layer": "gvp", "scalars": 1.0, "vectors": 1.0}
RATES = (0.001, 0.01)


def test_points_keep_their_distance_and_have_formulas():
    clouds = PointClouds(6, 12, 4, stretch=1.0, seed=3)
    points = np.asarray(clouds.points)
    apart = np.linalg.norm(points[:, :, None] - points[:, None], axis=-1) + 9 * np.eye(12)
    assert apart.min() >= 2 - 1e-5
    assert (np.asarray(clouds.neighbors)[0] == np.argsort(apart[0], axis=1)[:, :4]).all()
    centre = points[:, :3].mean(1)
    np.testing.assert_allclose(off_centre(clouds.points, clouds.marked), np.linalg.norm(centre, axis=1), rtol=1e-4)
    np.testing.assert_allclose(to_marked(clouds.points, clouds.marked), centre[:, None] - points, atol=1e-5)
    sides = [np.linalg.norm(points[:, a] - points[:, b], axis=1) for a, b in ((0, 1), (1, 2), (2, 0))]
    np.testing.assert_allclose(perimeter(clouds.points), sum(sides), rtol=1e-5)
    long = np.asarray(PointClouds(50, 12, 4, stretch=1.6).points).std((0, 1))
    assert long[0] > 1.4 * long[1] > 1.9 * long[2]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["raw", pytest.param("gvp", marks=pytest.mark.slow), "mean"])
def test_the_pose_changes_the_raw_network_alone(name):
    problem = PointClouds(120, 6, 5, stretch=1.6)
    scale = Settings(test=20, steps=150, batch=16, width=32, rates=RATES, **SMALL)
    found = trials.pose(jax.random.key(0), Settings(model=name, augmented=False), problem, scale)
    if name == "mean":
        assert found["error"] == found["moved_error"]
        return
    assert found["pose_gap"] > 0.03 if name == "raw" else found["pose_gap"] < 1e-3
    assert found["learned"] > 0.1


def test_the_rate_of_the_least_error_on_validation_is_chosen_once():
    keys = []

    def fit(key, rate, arm, problem, scale):
        keys.append(int(jax.random.key_data(key)[-1]))
        return np.where(rate > 0.05, np.nan, np.abs(rate - np.array([0.02, 0.001]))), -rate

    scale = Settings(rates=(0.001, 0.02, 0.03, 0.1))
    for seed in (0, 1):
        found, rate = trials.tuned(fit, jax.random.key(seed), Settings(), None, scale)
        np.testing.assert_allclose(rate, [0.02, 0.001], rtol=1e-6)
        np.testing.assert_allclose(found, -rate)
    assert keys[-1] == 1
    assert len(keys) == 4 + 2  # four rates, then two seeds
    assert len(set(keys)) == 3  # none of which has the key of the choice


def test_what_chooses_rates_is_never_learned_from_nor_tested_on():
    parts = [trials.divided(jax.random.key(seed), 20, 4) for seed in (0, 1)]
    known, valid, new = (np.stack([np.asarray(part) for part in kind]) for kind in zip(*parts, strict=True))
    assert (valid[0] == valid[1]).all()
    assert set(new[0]) != set(new[1])
    for row in range(2):
        assert sorted([*known[row], *valid[row], *new[row]]) == list(range(20))
        assert len(new[row]) == len(valid[row]) == 4


@pytest.mark.parametrize("seed", [0, 1])
def test_half_of_the_turns_are_reflections(seed):
    turns = np.asarray(trials.orthogonal(jax.random.key(seed), 6))
    np.testing.assert_allclose(turns @ turns.swapaxes(1, 2), np.tile(np.eye(3), (6, 1, 1)), atol=1e-5)
    np.testing.assert_allclose(np.linalg.det(turns), [1, -1, 1, -1, 1, -1], atol=1e-5)


def test_a_graph_of_chains_is_that_of_each():
    data = trials_proteins.stack(FEW.chains, 4)
    graph = trials_proteins.joined(data, np.array([3, 1]), np.ones(2))
    assert graph.num_graphs == 2
    size = data.node_mask.shape[1]
    for place, chain in enumerate((3, 1)):
        alone, _ = featurize_backbone(FEW.chains[chain], num_neighbours=4)
        rows = slice(place * size, place * size + 12)
        np.testing.assert_allclose(graph.nodes[0][rows], alone.nodes[0])
        edges = slice(place * 48, place * 48 + 48)
        np.testing.assert_allclose(graph.edges[1][edges], alone.edges[1])
        assert (np.asarray(graph.senders[edges]) == np.asarray(alone.senders) + place * size).all()
    assert int(graph.node_mask.sum()) == 24
    blind = trials_proteins.joined(data, np.array([3, 1]), np.array([1.0, 0.0]))
    assert not np.any(blind.nodes[1])
    assert np.any(blind.nodes[0])


def test_trivial_arms_and_baselines():
    scale = Settings(neighbors=4, test=2, window=1, decoys=5, steps=1, batch=2, tree_rates=(0.1, 0.3))
    key = jax.random.key(0)
    most = trials_proteins.residue_labels(key, Settings(model="majority", **PLAIN), FEW, scale)
    known, valid, new = (np.asarray(part) for part in trials.divided(jax.random.split(key)[0], 6, 2))
    assert sorted([*known, *valid, *new]) == [0, 1, 2, 3, 4, 5]
    first = np.concatenate([FEW.labels[i] for i in known])
    rest = np.concatenate([FEW.labels[i] for i in new])
    np.testing.assert_allclose(most["accuracy"], (rest == np.bincount(first).argmax()).mean(), rtol=1e-6)
    mean = trials_proteins.decoys(key, Settings(model="mean", **PLAIN), FEW, scale)
    assert mean["per_target"] == 0
    contacts = trials_proteins.decoys(key, Settings(model="contacts", **PLAIN), FEW, scale)
    assert -1 <= contacts["per_target"] <= 1
    unigram = trials_proteins.design(key, Settings(model="unigram", **PLAIN), FEW, scale)
    letters, others = (np.concatenate([FEW.residues[i] for i in part]) for part in (known, new))
    share = (1 + np.bincount(letters, minlength=20)) / (20 + len(letters))
    np.testing.assert_allclose(unigram["nats"], -np.log(share[others]).mean(), rtol=1e-5)
    assert trials_proteins._pearson(np.arange(4.0), 3 - np.arange(4.0)) == pytest.approx(-1)


def test_likelihood_and_recovery_are_of_each_chain_as_long_as_it_is(monkeypatch):
    """Six chains of one to twelve residues, padded to the longest; where there are none, all is right."""
    rng, lengths, kinds = np.random.default_rng(0), np.array([1, 12, 3, 7, 2, 5]), len(AMINO_ACIDS)
    mask, residues = np.arange(12) < lengths[:, None], rng.integers(kinds, size=(6, 12))
    logits = np.log(rng.dirichlet(np.ones(kinds), size=(6, 12)))
    right = np.where(mask, rng.random(mask.shape) < 0.5, True)
    residues = np.where(right, logits.argmax(-1), residues)
    key, scale = jax.random.key(0), Settings(neighbors=4, test=2)
    _, _, new = (np.asarray(part) for part in trials.divided(jax.random.split(key)[0], 6, 2))
    monkeypatch.setattr(trials_proteins, "_sequences", lambda *_: (Settings(node_mask=mask), residues))
    monkeypatch.setattr(trials_proteins, "tuned", lambda *_: (logits[new], 0.1))
    found = trials_proteins.design(key, Settings(model="gvp", **PLAIN), None, scale)
    rows = [(logits[i].argmax(-1) == residues[i])[mask[i]].mean() for i in new]
    log_p = np.concatenate([np.take_along_axis(logits[i], residues[i][:, None], 1)[mask[i], 0] for i in new])
    assert float(found["recovery"]) == pytest.approx(np.median(rows))
    assert float(found["nats"]) == pytest.approx(-log_p.mean())
    assert float(found["perplexity"]) == pytest.approx(np.exp(-log_p.mean()))


def test_the_dense_ablation_replaces_every_gvp():

    def made():
        model = QualityModel(jax.random.key(0), node_dims=(4, 2), num_layers=1)
        return trials_proteins.changed(jax.random.key(1), model, "dense")

    model = eqx.filter_eval_shape(made)
    kinds = [
        type(leaf) for leaf in jax.tree.leaves(model, is_leaf=lambda x: isinstance(x, GVP | trials_proteins.DenseLayer))
    ]
    assert GVP not in kinds
    assert kinds.count(trials_proteins.DenseLayer) == 8


CHAINS, RESIDUES, DECOYS = 7, 5, 4
VALID, NEW = np.array([2, 5]), np.array([0, 6])


class Reader(eqx.Module):
    """What stands in a network's place and says what is written into the nodes, or into the first of every graph."""

    name: str = eqx.field(static=True)

    def __call__(self, graph, *_):
        told = graph.nodes[0]
        first = told.reshape(graph.num_graphs, -1, told.shape[-1])[:, 0, 0]
        return {"QualityModel": first, "DesignModel": told, "GVPNetwork": (told, None)}[self.name]


def written(numbers):
    """Chains without edges that matter, of which the last node is padding, with these numbers [c, n, ...] in nodes."""
    count, nodes = numbers.shape[:2]
    mask = np.ones((count, nodes), bool)
    mask[:, -1] = False
    vectors, ends = np.zeros((count, nodes, 1, 3)), np.zeros((count, 2), int)
    edges = np.zeros((count, 2, 1)), np.zeros((count, 2, 1, 3))
    return trials_proteins.Stacked((numbers, vectors), edges, ends, ends, mask, np.ones((count, 2), bool), ())


def fitted(function, monkeypatch, *given):
    """What a fit gives with a reader that training leaves as it is: by what its rate is chosen, and what it found."""
    monkeypatch.setattr(trials_proteins, "trained", lambda key, model, *_: model)
    for name in ("QualityModel", "GVPNetwork", "DesignModel"):
        monkeypatch.setattr(trials_proteins, name, lambda *_, name=name, **__: Reader(name))
    scale = Settings(dropout=0.0, steps=1, batch=2, **SMALL)
    known = np.setdiff1d(np.arange(CHAINS), [*VALID, *NEW])
    rows = jax.tree.map(jnp.asarray, (*given, (known, VALID, NEW)))
    call = lambda key: function(key, 0.1, scale, *rows)  # noqa: E731
    return evaluate(jax.make_jaxpr(call)(jax.random.key(0)), jax.random.key(0))


def test_a_rate_is_chosen_by_the_correlation_within_the_targets_of_validation(monkeypatch):
    rng = np.random.default_rng(0)
    said, quality = rng.normal(size=(2, CHAINS, DECOYS))
    data = written(np.broadcast_to(said.reshape(-1, 1, 1), (CHAINS * DECOYS, RESIDUES, 1)))
    given = data, np.zeros((CHAINS * DECOYS, RESIDUES), int), quality, np.ones(2)
    scored = inspect.unwrap(trials_proteins._scored)
    fit = lambda key, rate, scale, *rows: scored(key, rate, "gvp", scale, *rows)  # noqa: E731
    by, found = fitted(fit, monkeypatch, *given)
    np.testing.assert_allclose(by, -np.mean([np.corrcoef(said[c], quality[c])[0, 1] for c in VALID]), rtol=1e-5)
    np.testing.assert_allclose(found, said[NEW], rtol=1e-6)


@pytest.mark.parametrize("what", ["labels", "residues"])
def test_a_rate_is_chosen_by_the_likelihood_of_all_residues_of_validation(what, monkeypatch):
    rng, kinds = np.random.default_rng(1), 3 if what == "labels" else len(AMINO_ACIDS)
    logits, right = rng.normal(size=(CHAINS, RESIDUES, kinds)), rng.integers(kinds, size=(CHAINS, RESIDUES))
    labelled, designed = map(inspect.unwrap, (trials_proteins._labelled, trials_proteins._designed))
    fits = {"labels": lambda key, rate, scale, *rows: labelled(key, rate, "gvp", scale, kinds, *rows)}
    fits["residues"] = lambda key, rate, scale, *rows: designed(key, rate, "gvp", "gvp", scale, *rows)
    by, found = fitted(fits[what], monkeypatch, written(logits), right, np.ones(2))
    log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    real = np.take_along_axis(log_p, right[..., None], -1)[VALID, :-1]
    np.testing.assert_allclose(by, -real.mean(), rtol=1e-5)
    wanted = logits[NEW].argmax(-1) if what == "labels" else log_p[NEW]
    np.testing.assert_allclose(np.reshape(found, np.shape(wanted)), wanted, rtol=1e-5)
