"""The claims of MeshGraphNets: the ids promised, trials that measure what they say, a problem of one's own."""

import math
import subprocess
import sys
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate.graphs import free_nodes
from laureate.lab.claim import Settings
from laureate.papers.mesh_graph_nets import trials, trials_timed
from laureate.papers.mesh_graph_nets.about import PAPER
from laureate.papers.mesh_graph_nets.experiments import SIMPLE, TRANSITIONS
from laureate.papers.mesh_graph_nets.experiments_noise import NOISE
from laureate.problems.meshes_simulations import FRAME, cloth, many_frames, plate, transport

EXAMPLE = Path(__file__).parents[3] / "examples" / "own_mesh.py"
KEY = jax.random.key(3)
FEW = {"side": 7, "train": 2, "test": 2, "frames": 10, "long": 12, "elsewhere": 1}


@pytest.fixture(scope="module")
def problem():
    return transport(**FEW)


def arm(name, experiment=TRANSITIONS):
    return experiment.arm(name).settings


def test_the_ids_are_the_ones_promised():
    promised = {"one-step", "mesh-features", "message-steps", "nearest-neighbour", "noise-survival", "noise-everywhere"}
    assert promised | {"long-rollout", "runtime", "finer-mesh", "other-shape"} <= {claim.name for claim in PAPER.claims}


def test_every_comparison_of_accuracy_has_a_trivial_arm():
    for claim in PAPER.claims:
        if claim.kind == "better":
            assert claim.trivial in {rule.name for rule in SIMPLE}, claim.name


def test_the_arms_differ_in_what_they_say_and_in_nothing_else():
    """Two arms of a comparison of networks have the same settings but for one."""
    pairs = {("mgn", "mgn-clean"): "noise"}
    noises = {("few-noise", "few"): "noise", ("many-noise", "many"): "noise"}
    for experiment, wanted in ((TRANSITIONS, pairs), (NOISE, noises)):
        for names, setting in wanted.items():
            one, two = (dict(arm(name, experiment)) for name in names)
            assert {key for key in one if one[key] != two[key]} == {setting}


def test_rules_that_need_no_training_are_what_they_are_called(problem):
    graph = trials.graph_of(problem, problem.test_positions[0])
    frames = problem.test[0, :2]
    after = {rule.name: trials.stepper(KEY, rule.settings, problem, Settings())(graph, frames, None) for rule in SIMPLE}
    np.testing.assert_allclose(after["no-change"], frames[1])
    np.testing.assert_allclose(after["extrapolated"], 2 * frames[1] - frames[0], atol=1e-6)
    np.testing.assert_allclose(after["mean"], problem.train.mean((0, 1)), atol=1e-6)


def test_the_nearest_training_state_is_found_where_the_state_is_one(problem):
    """From a training state itself the copied change is the one that followed, for the whole mesh and node by node."""
    graph = trials.graph_of(problem, problem.positions[1])
    free = np.asarray(free_nodes(graph))
    frames, following = problem.train[1, 3:5], problem.train[1, 5]
    for name in ("nearest", "patch"):
        step = jax.jit(trials.stepper(KEY, arm(name), problem, Settings()))
        np.testing.assert_allclose(step(graph, frames, following)[free], following[free], atol=1e-5)


def test_errors_by_hand(problem):
    """Of no change: single steps relative to the changes themselves are 1; the rollout's are those of a constant."""
    step = trials.stepper(KEY, arm("no-change"), problem, Settings())
    found = jax.jit(lambda p: trials.judged(step, p, 1e9, 10))(problem)
    np.testing.assert_allclose(found.one_step, 1, rtol=1e-4)
    free = np.asarray(free_nodes(trials.graph_of(problem, problem.positions[0])))
    for k, truth in enumerate(np.asarray(problem.test)):
        seen = truth[2:, free]
        squares = ((truth[1, free] - seen) ** 2).sum((1, 2))
        spread = ((seen - seen.mean(0)) ** 2).sum() / len(seen)
        np.testing.assert_allclose(found.by_step[k], np.sqrt(squares / spread), rtol=1e-3)
    np.testing.assert_array_equal(found.failed_at, 10)
    short = jax.jit(lambda p: trials.judged(step, p, 1e9, 4, 4))(problem)
    np.testing.assert_allclose(short.by_step, found.by_step[:, :4], rtol=1e-5)  # in the same unit


def test_a_failure_is_an_error_above_one_in_some_step_and_lasts(monkeypatch):
    by_step = jnp.array([[0.1, 0.2, 0.3, 0.4], [0.1, 1.2, 0.3, 0.4], [0.1, 0.2, 0.3, 5.0]])
    made = trials.Judged(jnp.ones(3), by_step, jnp.array([4, 4, 3]))
    monkeypatch.setattr(trials, "stepper", lambda *_: None)
    monkeypatch.setattr(trials, "_limit", lambda _: 1.0)
    monkeypatch.setattr(trials, "judged_by_draw", lambda *_: made)
    found = trials.noise(KEY, Settings(), None, Settings(horizon=3, every=1))
    assert float(found["failed"]) == pytest.approx(1 / 3)
    assert float(found["failed_at_end"]) == pytest.approx(2 / 3)
    np.testing.assert_allclose(found["surviving"], [1, 2 / 3, 2 / 3, 1 / 3], atol=1e-6)
    assert float(found["stopped"]) == pytest.approx(1 / 3)
    errors = np.sqrt((np.asarray(by_step)[:, :3] ** 2).mean(1))
    assert float(found["log_median_error"]) == pytest.approx(np.log10(np.median(errors)), abs=1e-5)


def test_noise_is_told_in_the_deviation_from_each_nodes_mean(problem):
    free = np.asarray(free_nodes(trials.graph_of(problem, problem.positions[0])))
    runs = np.asarray(problem.train)[:, :, free]
    wanted = np.sqrt(((runs - runs.mean(1, keepdims=True)) ** 2).mean())
    assert float(trials.spread_of(problem)) == pytest.approx(wanted, rel=1e-4)


def test_the_tuned_solver_is_the_cheapest_that_is_as_accurate():
    errors = {0.5: math.inf, 1: 0.5, 2: 0.1, 4: 0.02, 8: 0.0}
    assert [trials_timed.choose(errors, bound) for bound in (0.6, 0.2, 0.1, 0.01)] == [1, 2, 2, 8]


def test_a_solver_with_half_a_step_a_frame_is_straight_between():
    hung = cloth(side=3, train=1, test=2, frames=4, long=9)
    springs, x, v = hung.springs
    number = hung.test.shape[1] - 2
    coarse = np.asarray(jax.jit(lambda s, x, v: many_frames(s, x, v, 6, 2 * FRAME, 1))(springs, x, v))
    found = np.asarray(trials_timed._solved(springs, x, v, number, 0.5))
    assert found.shape == hung.test[:, 2:].shape
    np.testing.assert_allclose(found[:, 0::2], coarse[:, 1:5], atol=1e-6)  # frames 2, 4, 6, 8
    np.testing.assert_allclose(found[:, 1::2], (coarse[:, 1:4] + coarse[:, 2:5]) / 2, atol=1e-6)


@pytest.mark.parametrize("few", [0.0, 2.0])
def test_a_seed_learns_from_trajectories_of_its_own_each_with_its_mesh(few, monkeypatch):
    pool = transport(**FEW | {"train": 6})
    given = []
    monkeypatch.setattr(trials, "make_simulator", lambda *_, **__: None)
    monkeypatch.setattr(trials, "fit_simulator", lambda *rest, nodes, **_: given.append((rest[3], nodes)) or (None, 0))
    scale = Settings(latent=4, steps=1, hidden=1, updates=1, batch=1, warmup=1, rate=0.1, learn=4)
    settings = Settings({**arm("mgn"), "trajectories": few})
    for seed in range(3):
        trials.trained(jax.random.key(seed), settings, pool, scale)
    sets = []
    for runs, nodes in given:
        which = [int(np.flatnonzero((np.asarray(pool.train) == run).all((1, 2, 3)))[0]) for run in np.asarray(runs)]
        np.testing.assert_array_equal(nodes.position, pool.positions[np.array(which)])
        assert len(which) == 4
        assert len(set(which)) == (few or 4)
        sets.append(tuple(sorted(set(which))))
    assert len(set(sets)) > 1


def test_rules_are_judged_by_the_trajectories_that_the_seed_draws(problem):
    pool = transport(**FEW | {"test": 5})
    rule = arm("no-change")
    step = trials.stepper(KEY, rule, pool, Settings())
    scale = Settings(horizon=4, judge=3)

    @jax.jit
    def both(pool, key):
        drawn = trials.judged_by_draw(key, rule, step, pool, 1e9, scale)
        network = trials.judged_by_draw(key, Settings(model="network"), step, pool, 1e9, scale)
        return trials.judged(step, pool, 1e9, 4), drawn, network

    found = [both(pool, jax.random.key(seed)) for seed in (0, 1)]
    for whole, drawn, network in found:
        assert drawn.by_step.shape == (3, 10)
        assert set(np.asarray(drawn.by_step[:, -1]).tolist()) < set(np.asarray(whole.by_step[:, -1]).tolist())
        np.testing.assert_allclose(network.by_step, drawn.by_step, rtol=1e-5)
    assert not np.array_equal(found[0][1].by_step, found[1][1].by_step)


def test_least_squares_find_a_law_that_is_linear_in_the_neighbourhood(problem):
    """Of a field that follows x ← x + 0.002 Σ (x_j − x_i) / |u_ij|² at free nodes."""
    graphs = [trials.graph_of(problem, p) for p in problem.positions]
    free = np.asarray(free_nodes(graphs[0]))[:, None]

    def law(graph, x):
        s, r = np.asarray(graph.senders), np.asarray(graph.receivers)
        offset = np.asarray(graph.nodes.position)[s] - np.asarray(graph.nodes.position)[r]
        change = np.zeros_like(x)
        np.add.at(change, r, (x[s] - x[r]) / (offset**2).sum(1, keepdims=True))
        return x + 0.002 * change * free

    runs = []
    for graph, run in zip(graphs, np.asarray(problem.train), strict=True):
        states = [run[0]]
        for _ in range(9):
            states.append(law(graph, states[-1]))
        runs.append(np.stack(states))
    made = eqx.tree_at(lambda p: p.train, problem, jnp.asarray(np.stack(runs)))
    frames = made.test[0, :2]
    graph = trials.graph_of(made, made.test_positions[0])
    found = jax.jit(trials.stepper(KEY, arm("linear"), made, Settings()))(graph, frames, frames[1])
    wanted = law(graph, np.asarray(frames[1]))
    change = np.abs((wanted - np.asarray(frames[1]))[free[:, 0]]).max()
    np.testing.assert_allclose(np.asarray(found)[free[:, 0]], wanted[free[:, 0]], atol=0.02 * change)


def test_other_meshes_have_other_sizes_and_the_same_law(problem):
    assert problem.others["finer"].test.shape[2] == 13**2
    hole = problem.others["hole"]
    assert hole.test.shape[2] == 48  # the middle node is gone
    assert not np.array_equal(problem.positions[0], problem.positions[1])
    # Held nodes of the rim stay at 0, the inflow moves, free nodes do too.
    moved = np.ptp(np.asarray(hole.test[0, ..., 0]), axis=0)
    kinds = np.asarray(hole.kinds)
    assert moved[kinds == 6].max() == 0
    assert moved[kinds != 6].min() > 0


def test_a_plate_is_at_rest_and_a_cloth_hangs_on():
    pulled = plate(side=4, train=1, test=1, frames=5)
    kinds = np.asarray(pulled.kinds)
    runs = np.asarray(pulled.train[0])
    np.testing.assert_allclose(runs[:, kinds == 6], np.broadcast_to(runs[0, kinds == 6], (5, 4, 2)), atol=1e-6)
    assert np.ptp(runs[:, kinds == 0], axis=0).min() > 0
    hung = cloth(side=3, train=1, test=1, frames=6, long=6)
    runs, held = np.asarray(hung.train[0]), np.asarray(hung.kinds) == 3
    np.testing.assert_allclose(runs[:, held], np.broadcast_to(runs[0, held], (6, 2, 3)), atol=1e-6)
    assert np.isfinite(runs).all()
    assert eqx.tree_equal(hung.springs[1], hung.test[:, 0])  # the reference starts where the test does


@pytest.mark.slow
def test_the_example_tells_its_errors():
    done = subprocess.run([sys.executable, str(EXAMPLE)], capture_output=True, text=True, check=True)
    assert "relative error after 1, 10 and 50 steps" in done.stdout


@pytest.mark.slow
def test_a_problem_of_ones_own(tmp_path, monkeypatch):
    from laureate.cli import cli

    monkeypatch.setenv("LAUREATE_HOME", str(tmp_path))
    command = ["run", "mesh-graph-nets/noise", "--problem", f"{EXAMPLE}:Membrane", "--scale", "smoke", "--quiet"]
    assert not cli.main(command, standalone_mode=False)
