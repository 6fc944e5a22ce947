"""The claims of MeshGraphNets: the ids promised, trials that measure what they say, a problem of one's own."""

import math
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from in_numpy import computed

from example_files import run_with_problem
from laureate.graphs import NodeKind, TrainerInfo
from laureate.lab.claim import Settings
from laureate.papers.mesh_graph_nets import trials, trials_timed
from laureate.papers.mesh_graph_nets.about import PAPER
from laureate.papers.mesh_graph_nets.experiments import SIMPLE, TRANSITIONS
from laureate.papers.mesh_graph_nets.experiments_noise import NOISE
from laureate.papers.mesh_graph_nets.trials_rules import graph_of
from laureate.problems.meshes_simulations import FRAME, cloth, plate, transport

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
    rules = {rule.name for rule in SIMPLE} | {"extrapolated-told"}
    for claim in PAPER.claims:
        if claim.kind == "better":
            assert claim.trivial in rules, claim.name


def test_the_arms_differ_in_what_they_say_and_in_nothing_else():
    """Two arms of a comparison of networks have the same settings but for one."""
    pairs = {("mgn", "mgn-clean"): "noise"}
    noises = {("few-noise", "few"): "noise", ("many-noise", "many"): "noise"}
    for experiment, wanted in ((TRANSITIONS, pairs), (NOISE, noises)):
        for names, setting in wanted.items():
            one, two = (dict(arm(name, experiment)) for name in names)
            assert {key for key in one if one[key] != two[key]} == {setting}


@pytest.fixture(scope="module")
def stepped(problem):
    """The next state by every rule, from two frames of the second training trajectory, by one program.

    What follows is true at held nodes and nonsense at free ones, which nobody may read.
    """
    rules = {rule.name: rule.settings for rule in SIMPLE} | {name: arm(name) for name in ("nearest", "patch")}
    told = ("linear", "linear-reach", "extrapolated-told")
    step = lambda rule, problem, *given: trials.stepper(KEY, rule, problem, Settings(steps=2))[0](*given)  # noqa: E731

    free = free_of(problem)[:, None]

    @jax.jit
    def all_of(problem, linear):
        graph, frames, after = graph_of(problem, problem.positions[1]), problem.train[1, 3:5], problem.train[1, 5]
        found = {name: step(rule, problem, graph, frames, jnp.where(free, 9.0, after)) for name, rule in rules.items()}
        there, begin = graph_of(linear, linear.positions[1]), linear.train[1, 3:5]
        after = jnp.where(free, 9.0, linear.train[1, 5])
        found |= {name: step(arm(name), linear, there, begin, after) for name in told}
        other = frames[1] - 100 * (problem.train[1, 5] - frames[1])  # an inflow that goes far the other way
        moved = {f"{name} moved": step(rules[name], problem, graph, frames, other) for name in ("nearest", "patch")}
        return found | moved | {"spread": trials.spread_of(problem)}

    return jax.tree.map(np.asarray, all_of(problem, linear_problem(problem)))


def laplacian(graph, x):
    """Σ (x_j − x_i) / |u_ij|² at every node."""
    s, r = np.asarray(graph.senders), np.asarray(graph.receivers)
    offset = np.asarray(graph.nodes.position)[s] - np.asarray(graph.nodes.position)[r]
    total = np.zeros_like(x)
    np.add.at(total, r, (x[s] - x[r]) / (offset**2).sum(1, keepdims=True))
    return total


def law(problem, graph, x, motion):
    """x + 0.002 Lx + 1e-5 LLm at free nodes, with m the motion of held nodes; these move by it."""
    change = 0.002 * laplacian(graph, x) + 1e-5 * laplacian(graph, laplacian(graph, motion))
    return x + np.where(free_of(problem)[:, None], change, motion)


def free_of(problem):
    return np.isin(np.asarray(problem.kinds), (0, 5))


def linear_problem(problem):
    """The same meshes, starts and inflows, by a law that is linear in what lies two edges away."""
    runs = []
    held = ~free_of(problem)[:, None]
    for places, run in zip(problem.positions, np.asarray(problem.train), strict=True):
        graph, states = graph_of(problem, places), [run[0]]
        for motion in np.diff(run, axis=0):
            states.append(law(problem, graph, states[-1], np.where(held, motion, 0)))
        runs.append(np.stack(states))
    return eqx.tree_at(lambda p: p.train, problem, jnp.asarray(np.stack(runs)))


def test_rules_that_need_no_training_are_what_they_are_called(problem, stepped):
    frames = np.asarray(problem.train[1, 3:5])
    np.testing.assert_allclose(stepped["no-change"], frames[1])
    np.testing.assert_allclose(stepped["extrapolated"], 2 * frames[1] - frames[0], atol=1e-6)
    np.testing.assert_allclose(stepped["mean"], np.asarray(problem.train).mean((0, 1)), atol=1e-6)


def test_the_nearest_training_state_is_found_where_the_state_is_one(problem, stepped):
    """From a training state itself the copied change is the one that followed, for the whole mesh and node by node."""
    free, following = free_of(problem), np.asarray(problem.train[1, 5])
    for name in ("nearest", "patch"):
        np.testing.assert_allclose(stepped[name][free], following[free], atol=1e-5)


def test_least_squares_find_a_law_that_is_linear_as_far_as_they_are_told(problem, stepped):
    """As far as two edges, and the next motion of held nodes; who sees one edge cannot."""
    free, run = free_of(problem), np.asarray(linear_problem(problem).train)[1]
    change = np.abs((run[5] - run[4])[free]).max()
    np.testing.assert_allclose(stepped["linear-reach"][free], run[5][free], atol=0.02 * change)
    assert np.abs(stepped["linear"] - run[5])[free].max() > 0.05 * change


def test_an_extrapolation_is_corrected_by_the_motion_of_held_nodes_alone(problem, stepped):
    """Least squares in NumPy of what 2 x_t − x_{t−1} misses, on L, LL, slopes and sums of the inflow's surprise."""
    free, made = free_of(problem), linear_problem(problem)

    def rows(graph, frames, after):
        surprise = np.where(free[:, None], 0, after - 2 * frames[1] + frames[0])
        s, r = np.asarray(graph.senders), np.asarray(graph.receivers)
        offset = np.asarray(graph.nodes.position)[s] - np.asarray(graph.nodes.position)[r]
        more, sums = surprise[s] - surprise[r], np.zeros((len(free), 3))
        np.add.at(sums, r, np.concatenate([more, more * offset / (offset**2).sum(1, keepdims=True)], 1))
        once = laplacian(graph, surprise)
        return np.concatenate([sums, once, laplacian(graph, once), np.ones((len(free), 1))], 1)[free]

    graphs = [graph_of(made, places) for places in made.positions]
    runs = np.asarray(made.train, float)
    windows = [
        (graph, run[k : k + 3]) for graph, run in zip(graphs, runs, strict=True) for k in range(runs.shape[1] - 2)
    ]
    inputs = np.concatenate([rows(graph, window[:2], window[2]) for graph, window in windows])
    missed = np.concatenate([(window[2] - 2 * window[1] + window[0])[free] for _, window in windows])
    weights = np.linalg.lstsq(inputs, missed, rcond=None)[0]
    frames, after = runs[1, 3:5], runs[1, 5]
    correction = rows(graphs[1], frames, after) @ weights
    found = stepped["extrapolated-told"][free] - (2 * frames[1] - frames[0])[free]
    np.testing.assert_allclose(found, correction, atol=0.05 * np.abs(correction).max())


def test_neighbours_are_told_the_next_motion_too(problem, stepped):
    """Where the inflow goes far the other way another change is copied, at least somewhere."""
    free = free_of(problem)
    for name in ("nearest", "patch"):
        assert np.abs(stepped[f"{name} moved"] - stepped[name])[free].max() > 1e-4


def test_noise_is_told_in_the_deviation_from_each_nodes_mean(problem, stepped):
    runs = np.asarray(problem.train)[:, :, free_of(problem)]
    wanted = np.sqrt(((runs - runs.mean(1, keepdims=True)) ** 2).mean())
    assert float(stepped["spread"]) == pytest.approx(wanted, rel=1e-4)


@pytest.fixture(scope="module")
def judged():
    """No change, judged in several ways by one program; five test trajectories, of which four seeds draw three."""
    pool, rule = transport(**FEW | {"test": 5}), arm("no-change")
    scale = Settings(horizon=4, judge=3)

    @jax.jit
    def all_of(pool, keys):
        step, _ = trials.stepper(KEY, rule, pool, Settings())
        by = lambda arm: jax.vmap(lambda key: trials.judged_by_draw(key, arm, step, pool, 1e9, scale))(keys)  # noqa: E731
        whole, short = trials.judged(step, pool, 1e9, 10), trials.judged(step, pool, 1e9, 4, 4)
        return whole, short, by(rule), by(Settings(model="network"))

    return pool, jax.tree.map(np.asarray, all_of(pool, jax.random.split(KEY, 4)))


def test_errors_by_hand(judged):
    """Of no change: single steps relative to the changes themselves are 1; the rollout's are those of a constant."""
    pool, (found, short, _, _) = judged
    np.testing.assert_allclose(found.one_step, 1, rtol=1e-4)
    free = free_of(pool)
    for k, truth in enumerate(np.asarray(pool.test)):
        seen = truth[2:, free]
        squares = ((truth[1, free] - seen) ** 2).sum((1, 2))
        spread = ((seen - seen.mean(0)) ** 2).sum() / len(seen)
        np.testing.assert_allclose(found.by_step[k], np.sqrt(squares / spread), rtol=1e-3)
        node = np.flatnonzero(free)[np.argmax(truth[:, free, -1].std(0))]
        np.testing.assert_allclose(found.watched[k], truth[1, node, -1])  # the node that moves most stands still
    np.testing.assert_array_equal(found.failed_at, 10)
    np.testing.assert_allclose(short.by_step, found.by_step[:, :4], rtol=1e-5)  # in the same unit


@pytest.mark.parametrize("length", [None, 3])
def test_rollouts_of_any_length_are_judged_in_the_unit_of_the_whole_trajectory(length):
    """Three nodes, of which the last is held; a rule that says no change."""
    truth = np.random.default_rng(0).normal(size=(1, 9, 3, 2))
    kinds, nothing = jnp.array([NodeKind.NORMAL, NodeKind.NORMAL, NodeKind.HANDLE]), jnp.zeros(0, jnp.int32)
    meshes = {"test_positions": jnp.zeros((1, 3, 2)), "test": jnp.asarray(truth), "order": 1}
    problem = SimpleNamespace(kinds=kinds, senders=nothing, receivers=nothing, **meshes)
    still = lambda graph, frames, after: frames[-1]  # noqa: E731
    found = computed(lambda limit: trials.judged(still, problem, limit, 4, length), jnp.asarray(1e9))
    seen = truth[0, 2:, :2]
    typical = ((seen - seen.mean(0)) ** 2).sum() / len(seen)
    squares = ((truth[0, 1, :2] - seen) ** 2).sum((1, 2))[:length]
    np.testing.assert_allclose(found.by_step[0], np.sqrt(squares / typical), rtol=1e-5)
    np.testing.assert_allclose(found.one_step, 1, rtol=1e-5)


def test_rules_are_judged_by_the_trajectories_that_the_seed_draws_and_never_by_the_one_that_is_watched(judged):
    _, (whole, _, drawn, network) = judged
    ends = whole.by_step[:, -1].tolist()
    assert drawn.by_step.shape == (4, 3, 10)
    for seed in range(4):
        which = [int(np.argmin(np.abs(np.asarray(ends) - end))) for end in drawn.by_step[seed, :, -1]]
        assert len(set(which)) == 3
        assert 0 not in which
        np.testing.assert_allclose(drawn.by_step[seed], whole.by_step[which], rtol=1e-5)
        np.testing.assert_array_equal(drawn.watched[seed], whole.watched[0])
    assert not np.array_equal(drawn.by_step[0], drawn.by_step[1])
    for one, other in zip(network, drawn, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_a_failure_is_an_error_above_one_in_some_step_and_lasts(monkeypatch):
    by_step = jnp.array([[0.1, 0.2, 0.3, 0.4], [0.1, 1.2, 0.3, 0.4], [0.1, 0.2, 0.3, 5.0]])
    made = trials.Judged(jnp.ones(3), by_step, jnp.array([4, 4, 3]), jnp.ones(4))
    monkeypatch.setattr(trials, "stepper", lambda *_: (None, {"refused": jnp.asarray(2.0)}))
    monkeypatch.setattr(trials, "_limit", lambda _: 1.0)
    monkeypatch.setattr(trials, "judged_by_draw", lambda *_: made)
    found = jax.jit(lambda: trials.noise(KEY, Settings(), None, Settings(horizon=3, every=1)))()
    assert float(found["failed"]) == pytest.approx(1 / 3)
    assert float(found["failed_at_end"]) == pytest.approx(2 / 3)
    np.testing.assert_allclose(found["surviving"], [1, 2 / 3, 2 / 3, 1 / 3], atol=1e-6)
    assert float(found["stopped"]) == pytest.approx(1 / 3)
    assert float(found["refused"]) == 2
    errors = np.sqrt((np.asarray(by_step)[:, :3] ** 2).mean(1))
    assert float(found["log_median_error"]) == pytest.approx(np.log10(np.median(errors)), abs=1e-5)


def test_what_training_refused_and_where_its_loss_ended_is_told():
    """Three of twenty updates were not made; the last tenth are two."""
    status = np.zeros(20, int)
    status[[3, 4, 9]] = 1
    info = TrainerInfo(np.append(np.ones(18), [0.3, 0.1]), np.ones(20), status)
    found = jax.jit(trials.training)(info)
    assert float(found["refused"]) == 3
    assert float(found["log_train_loss"]) == pytest.approx(np.log10(0.2), abs=1e-5)


def test_growth_is_the_last_quarter_over_the_second_half_of_the_horizon(monkeypatch):
    by_step = jnp.array([[0.1, 0.1, 0.2, 0.3, 9.0, 9.0, 0.5, 0.6], [0.3, 0.1, 0.2, 0.2, 9.0, 9.0, 0.4, 0.6]])
    made = trials.Judged(jnp.array([0.5, 0.7]), by_step, jnp.array([8, 8]), jnp.ones(8))
    monkeypatch.setattr(trials, "stepper", lambda *_: (None, {"refused": jnp.asarray(2.0)}))
    monkeypatch.setattr(trials, "_limit", lambda _: 1.0)
    monkeypatch.setattr(trials, "judged_by_draw", lambda *_: made)
    pool, rows = Settings(others={"finer": None}), np.asarray(by_step)
    found = jax.jit(lambda: trials.transitions(KEY, Settings(model="network"), pool, Settings(horizon=4, every=2)))()
    root = lambda part: np.log10(np.sqrt(np.mean(part**2)))  # noqa: E731
    wanted = {"one_step": root(np.array([0.5, 0.7])), "rollout": root(rows[:, :4]), "long": root(rows[:, 6:])}
    wanted |= {"growth": root(rows[:, 6:]) - root(rows[:, 2:4]), "finer": root(rows[:, :4]), "finer_growth": 0.0}
    assert float(found["refused"]) == 2
    for name, value in wanted.items():
        assert float(found[f"log_{name}"]) == pytest.approx(value, abs=1e-5), name
    np.testing.assert_allclose(found["error_by_step"], [root(rows[:, k]) for k in (0, 2, 4, 6)], atol=1e-5)


def test_the_tuned_solver_is_the_cheapest_that_is_as_accurate():
    errors = {0.5: math.inf, 1: 0.5, 2: 0.1, 4: 0.02, 8: 0.0}
    assert [trials_timed.choose(errors, bound) for bound in (0.6, 0.2, 0.1, 0.01)] == [1, 2, 2, 8]
    assert trials_timed.choose({0.5: 0.3, 1: 0.2, 2: 0.1}, 0.05) == 2  # where none is as accurate, the finest


@pytest.fixture(scope="module")
def hung():
    return cloth(side=3, train=2, test=2, frames=9, long=9)


def test_a_solver_with_half_a_step_a_frame_is_straight_between(hung):
    """Störmer and Verlet's rule in NumPy, a step every other frame."""
    springs, x, v = jax.tree.map(np.asarray, hung.springs)
    number, dt = hung.test.shape[1] - 2, 2 * FRAME
    found = np.asarray(trials_timed._solved(hung.springs[0], hung.springs[1], hung.springs[2], number, 0.5))
    assert found.shape == hung.test[:, 2:].shape
    for k in range(len(x)):
        own = springs._replace(rest=springs.rest[k])

        def force(x, v, own=own):
            offset = x[own.senders] - x[own.receivers]
            length = np.linalg.norm(offset, axis=1)
            total = np.zeros_like(x)
            np.add.at(total, own.receivers, (own.stiffness * (length - own.rest) / length)[:, None] * offset)
            return np.where(own.fixed[:, None], 0, total + own.weight - own.drag * v)

        coarse, place, speed = [x[k]], x[k], v[k]
        for _ in range(5):
            half = speed + dt / 2 * force(place, speed)
            place = place + dt * half
            speed = half + dt / 2 * force(place, half)
            coarse.append(place)
        coarse = np.stack(coarse)
        np.testing.assert_allclose(found[k, 0::2], coarse[1:5], rtol=1e-3, atol=1e-4)  # frames 2, 4, 6, 8
        np.testing.assert_allclose(found[k, 1::2], (coarse[1:4] + coarse[2:5]) / 2, rtol=1e-3, atol=1e-4)


def test_a_seed_learns_from_trajectories_of_its_own_each_with_its_mesh(monkeypatch):
    """Of a pool of six a seed draws four, and of these the first two alone where so many are asked for."""
    pool, given = transport(**FEW | {"train": 6}), []
    monkeypatch.setattr(trials, "make_simulator", lambda *_, **__: None)
    monkeypatch.setattr(trials, "fit_simulator", lambda *rest, nodes, **_: given.append((rest[3], nodes)) or (None, 0))
    scale = Settings(latent=4, steps=1, hidden=1, updates=1, batch=1, warmup=1, rate=0.1, learn=4)

    @jax.jit
    def learnt(keys, few):
        def one(key, few):
            trials.trained(key, Settings({**arm("mgn"), "trajectories": few}), pool, scale)
            return given.pop()

        return jax.vmap(jax.vmap(one, (None, 0)), (0, None))(keys, few)

    runs, nodes = jax.tree.map(np.asarray, learnt(jax.random.split(KEY, 3), jnp.array([0.0, 2.0])))
    sets = []
    for seed in range(3):
        numbers = [
            [int(np.flatnonzero((np.asarray(pool.train) == run).all((1, 2, 3)))[0]) for run in runs[seed, few]]
            for few in range(2)
        ]
        for which, place in zip(numbers, nodes.position[seed], strict=True):
            np.testing.assert_array_equal(place, np.asarray(pool.positions)[which])
        assert len(set(numbers[0])) == 4
        assert numbers[1] == numbers[0][:2] * 2
        sets.append(tuple(sorted(numbers[0])))
    assert len(set(sets)) > 1


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


def test_a_plate_is_at_rest_and_a_cloth_hangs_on(hung):
    pulled = plate(side=4, train=1, test=1, frames=5)
    kinds = np.asarray(pulled.kinds)
    runs = np.asarray(pulled.train[0])
    np.testing.assert_allclose(runs[:, kinds == 6], np.broadcast_to(runs[0, kinds == 6], (5, 4, 2)), atol=1e-6)
    assert np.ptp(runs[:, kinds == 0], axis=0).min() > 0
    runs, held = np.asarray(hung.train[0]), np.asarray(hung.kinds) == 3
    np.testing.assert_allclose(runs[:, held], np.broadcast_to(runs[0, held], (9, 2, 3)), atol=1e-6)
    assert np.isfinite(runs).all()
    assert eqx.tree_equal(hung.springs[1], hung.test[:, 0])  # the reference starts where the test does


@pytest.mark.slow
def test_the_example_tells_its_errors():
    done = subprocess.run([sys.executable, str(EXAMPLE)], capture_output=True, text=True, check=True)
    assert "relative error after 1, 10 and 50 steps" in done.stdout


@pytest.mark.slow
def test_a_problem_of_ones_own(tmp_path, monkeypatch):
    run_with_problem(monkeypatch, tmp_path, "mesh-graph-nets/noise", f"{EXAMPLE}:Membrane")
