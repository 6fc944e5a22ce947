"""Do the trials of the discriminator bottleneck measure what they say?"""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from example_files import loaded
from laureate.lab.claim import Settings
from laureate.lab.running.plan import Selection, plan
from laureate.lab.running.trying import try_problem
from laureate.lab.running.worker import compute
from laureate.papers import paper
from laureate.papers.vdb import speed, trials, trials_imitation
from laureate.problems.mazes import Mazes
from laureate.problems.supports import DigitImages, PlanarRing

EXAMPLE = Path(__file__).parents[3] / "examples" / "own_images.py"
EXPERIMENTS = {one.name: one for one in paper("vdb").experiments}
KEY = jax.random.key(2)


def tiny(name, **settings):
    return Settings(dict(EXPERIMENTS[name].scales["tiny"].settings) | settings)


def arm(experiment, name):
    return EXPERIMENTS[experiment].arm(name).settings


def kinds(made):
    found = made if isinstance(made, tuple) else (made,)
    return [type(one).__name__ for one in found]


def test_every_arm_has_what_it_says():
    scale, knob = tiny("supports"), jnp.asarray(0.7)
    expected = {
        "vgan": ["VariationalBottleneck"],
        "gan": ["NoneType"],
        "noise": ["InstanceNoise"],
        "penalty": ["GradientPenalty"],
        "wgan-penalty": ["GradientPenalty"],
        "vgan-penalty": ["VariationalBottleneck", "GradientPenalty"],
        "fixed-beta": ["VariationalBottleneck"],
        "noise-alone": ["VariationalBottleneck"],
        "adaptive-budget": ["VariationalBottleneck"],
        "best-budget": ["VariationalBottleneck"],
    }
    made = {name: trials.regulariser_of(KEY, arm("supports", name), scale, 16, knob) for name in expected}
    assert {name: kinds(one) for name, one in made.items()} == expected
    assert float(made["noise"].sigma) == float(made["penalty"].weight) == float(made["vgan-penalty"][1].weight)
    assert (float(made["fixed-beta"].beta), made["fixed-beta"].beta_rate) == (pytest.approx(0.7), 0.0)
    assert (made["vgan"].beta, made["vgan"].information, made["vgan"].beta_rate) == (0.1, 0.5, 1e-2)
    assert float(made["best-budget"].information) == pytest.approx(0.7)
    assert (made["noise-alone"].beta, made["noise-alone"].beta_rate) == (0.0, 0.0)
    assert made["adaptive-budget"].budget is not None
    assert made["vgan"].budget is None
    assert (made["penalty"].at, made["wgan-penalty"].at) == ("real", "interpolated")


def test_every_imitator_has_what_it_says():
    made = {
        name: trials_imitation.regulariser_of(arm("imitation", name), lambda x: (x, x), 0.7)
        for name in ("vail", "gail", "gail-noise", "vail-fixed")
    }
    assert (made["vail-fixed"].beta, made["vail-fixed"].beta_rate) == (0.7, 0.0)
    assert (made["vail"].beta, made["vail"].information, made["vail"].beta_rate) == (0.1, 0.5, 1e-2)
    assert made["gail-noise"].sigma == 0.7
    assert made["gail"] is None


def test_the_generators_average_decays_as_the_scale_says():
    """Traced, not run."""
    seen, scale = [], tiny("images", decay=0.99)
    jax.eval_shape(lambda: seen.append(trials.make(KEY, arm("images", "gan"), (2, 2), scale, 1e-3, 0.0).decay))
    assert seen == [0.99]


class Told(NamedTuple):
    """What is read of a training's infos."""

    slope: jax.Array
    flat: jax.Array
    saturated: jax.Array
    nats: jax.Array
    margin: jax.Array
    cost: jax.Array


class Sum:
    """A GAN that makes its number plus its rate, whatever it is trained on; its slope is what it makes."""

    def __init__(self, key, arm, shape, scale, rate, knob):
        self.made = knob + rate

    def init(self):
        return None

    def train(self, key, rows, state, *, num_steps, batch):
        told = jnp.broadcast_to(self.made, (num_steps,))
        return SimpleNamespace(average=self.made), Told(*[told] * 5, cost=jnp.full(num_steps, 3))

    def make(self, average, z):
        return jnp.broadcast_to(average, (len(z), 1))


def test_of_the_grid_the_pair_nearest_to_fresh_rows_answers(monkeypatch):
    """0.75 is right: 0.5 and 0.24 are the best of two numbers and three rates, 0.5 and 1.1 the worst."""
    monkeypatch.setattr(trials, "make", Sum)
    monkeypatch.setattr(trials.g, "energy_distance", lambda made, real: jnp.mean(jnp.abs(made - real)))
    rows = trials.Rows(*(jnp.asarray(np.full((2, 1), value)) for value in (0.0, 0.75, 1.6)))
    scale = tiny("supports", rates=(0.1, 0.24, 1.1), sigmas=(0.0, 0.5))
    made, told = jax.jit(lambda: trials.trained(KEY, arm("supports", "noise"), rows, scale))()
    np.testing.assert_allclose(made, [[0.74], [0.74]], rtol=1e-5)
    chosen = [float(told[name]) for name in ("chosen_knob", "chosen_rate", "slope", "margin")]
    assert chosen == pytest.approx([0.5, 0.24, 0.74, 0.74])
    np.testing.assert_allclose(told["distance_by_rate"], np.log10([0.15, 0.01, 0.35]), rtol=1e-4)
    assert int(told["passes"]) == 3 * scale.steps


@pytest.mark.slow
def test_the_best_of_the_grid_answers():
    """Rates so large that training is lost are never chosen; the number that answers is among those of the grid."""
    scale = tiny("supports", rates=(1e-3, 1e30), rows=8, fresh=16, tests=16, steps=8)
    run = jax.jit(lambda: trials.supports(KEY, arm("supports", "noise"), PlanarRing(4), scale))
    metrics = run()
    assert float(metrics["chosen_rate"]) == pytest.approx(1e-3)
    assert float(metrics["chosen_knob"]) in [pytest.approx(value) for value in scale.sigmas]
    assert float(metrics["log_distance"]) == pytest.approx(np.log(max(float(metrics["distance"]), 1e-3)), rel=1e-4)


def test_numbers_are_chosen_by_fresh_rows_and_never_by_those_that_count(monkeypatch):
    """Traced, not run: what the grid's distances are taken to has as many rows as there are to choose by."""
    rows, seen = trials.Rows(*(jnp.zeros((number, 4)) for number in (8, 5, 7))), []
    monkeypatch.setattr(trials.g, "energy_distance", lambda made, real: seen.append(len(real)) or jnp.zeros(()))
    jax.eval_shape(lambda: trials.trained(KEY, arm("supports", "gan"), rows, tiny("supports"))[1])
    assert set(seen) == {5}


def test_one_image_made_again_and_again_is_precise_and_recalls_little(monkeypatch):
    real = np.random.default_rng(0).normal(size=(12, 4))
    made = real[:1] + 1e-3 * np.random.default_rng(1).normal(size=(12, 4))
    monkeypatch.setattr(trials, "answered", lambda key, arm, rows, scale: (jnp.asarray(made), {}))
    problem = SimpleNamespace(train=None, validation=None, test=jnp.asarray(real))
    told = jax.jit(lambda: trials.real_images(KEY, arm("images", "gan"), problem, tiny("images")))()
    assert float(told["precision"]) == 1.0
    assert float(told["recall"]) <= 1 / 12 + 1e-6


START, GOAL = 22, 2  # of Mazes(5)


class Planted:
    """The first demonstration stays in the start, the second at the goal."""

    def __init__(self, maze):
        self.learned_in, self.tried_in, self.asked = maze.learned_in, maze.tried_in, []

    def demonstration(self, key, environment, policy, discount, length):
        self.asked.append(key)
        return jnp.stack([jnp.full(length, START if len(self.asked) == 1 else GOAL), jnp.zeros(length, int)], 1)


class Table(NamedTuple):
    log_policy: jax.Array


class Still:
    """An imitator that learns nothing: its policy is a table, the same whatever was demonstrated."""

    logits = np.random.default_rng(0).normal(size=(25, 5)).astype("float32")
    table = logits - np.log(np.exp(logits).sum(1, keepdims=True))

    def __init__(self, *parts, **settings):
        pass

    def init(self):
        return Table(jnp.asarray(self.table))

    def step(self, key, demonstrated, state):
        return state, SimpleNamespace(nats=jnp.zeros(()), accuracy=jnp.zeros(()))

    def reward(self, state):
        return jnp.zeros(25)


def test_imitators_are_chosen_by_the_second_demonstration(monkeypatch):
    maze, scores = Mazes(5), []
    monkeypatch.setattr(trials_imitation.g, "AdversarialImitation", Still)
    monkeypatch.setattr(trials_imitation.g, "AdversarialIRL", Still)
    monkeypatch.setattr(trials_imitation, "chosen", lambda found: scores.append(found) or jnp.argmin(found))

    def both():
        trials_imitation.imitation(KEY, arm("imitation", "gail"), Planted(maze), tiny("imitation"))
        trials_imitation.transfer(KEY, arm("transfer", "airl"), Planted(maze), tiny("transfer"))
        world = trials_imitation.environment_of(maze.learned_in)
        return scores, trials_imitation.g.visits(world, jnp.exp(Still.table))

    (imitating, transferring), law = jax.jit(both)()
    np.testing.assert_allclose(imitating, -np.log(law[GOAL] + 1e-6), rtol=1e-4)
    np.testing.assert_allclose(transferring, -Still.table[GOAL, 0], rtol=1e-4)
    assert abs(np.log(law[GOAL] / law[START])) > 0.1
    assert abs(Still.table[GOAL, 0] - Still.table[START, 0]) > 0.1


def test_a_second_demonstration_is_held_out():
    """How likely it is says which one was looked at."""
    maze = Mazes(5)

    def both():
        planted = Planted(maze)
        found = trials_imitation.imitation(KEY, arm("imitation", "random"), planted, tiny("imitation"))
        world = trials_imitation.environment_of(planted.learned_in)
        assert len(planted.asked) == 2
        return found["likelihood"], trials_imitation.g.visits(world, jnp.full((25, 5), 0.2)), jnp.stack(planted.asked)

    likelihood, law, keys = jax.jit(both)()
    assert float(likelihood) == pytest.approx(float(np.log(law[GOAL] + 1e-6)), rel=1e-4)
    assert float(law[GOAL]) < 0.5 * float(law[START])
    assert not np.array_equal(*jax.random.key_data(keys))


@pytest.mark.slow
def test_trivial_arms():
    ring = PlanarRing(16)
    rows = trials.Rows(ring.draw(KEY, 2000), ring.draw(KEY, 8), ring.draw(jax.random.key(9), 1000))
    gaussian, told = trials.answered(KEY, arm("supports", "gaussian"), rows, tiny("supports"))
    np.testing.assert_allclose(np.mean(gaussian, 0), np.mean(rows.train, 0), atol=0.15)
    np.testing.assert_allclose(np.cov(gaussian.T), np.cov(np.asarray(rows.train).T), atol=0.1)
    again, near = trials.answered(KEY, arm("supports", "rows"), rows, tiny("supports"))
    train = {tuple(row) for row in np.asarray(rows.train)}
    assert all(tuple(row) in train for row in np.asarray(again))
    assert float(near["distance"]) < 0.02 < 0.05 < float(told["distance"])


def test_the_ring_lies_in_its_plane():
    ring = PlanarRing(16)
    np.testing.assert_allclose(ring.plane @ ring.plane.T, np.eye(2), atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(ring.modes, axis=1), 2.0, rtol=1e-5)
    points = np.asarray(ring.draw(KEY, 500))
    np.testing.assert_allclose(points, points @ np.asarray(ring.plane).T @ np.asarray(ring.plane), atol=1e-5)
    nearest = np.linalg.norm(points[:, None] - np.asarray(ring.modes)[None], axis=2)
    assert nearest.min(1).max() < 0.5
    assert len(set(nearest.argmin(1))) == 8


def test_images_to_be_judged_by_were_not_learned_from():
    images = DigitImages(train=100, validation=50, test=40)
    rows = [{row.tobytes() for row in np.asarray(part)} for part in (images.train, images.validation, images.test)]
    assert not rows[0] & rows[1]
    assert not rows[0] & rows[2]
    assert not rows[1] & rows[2]
    with pytest.raises(ValueError, match=r"DigitImages.train must be such that"):
        DigitImages(train=2000)


def test_shares_of_the_best_return():
    tables = Mazes(5).tried_in
    world = trials_imitation.environment_of(tables)

    def every():
        best = world.solve(tables.reward)
        chance = jnp.full(best.shape, 0.2)
        share = lambda policy: trials_imitation.share(world, policy, tables)  # noqa: E731
        return share(best), share(chance), share(0.5 * best + 0.5 * chance)

    best, chance, between = jax.jit(every)()
    assert (float(best), float(chance)) == (pytest.approx(1.0), pytest.approx(0.0, abs=1e-5))
    assert 0.1 < float(between) < 0.95


def test_what_is_not_finite_is_never_chosen():
    assert int(trials_imitation.chosen(jnp.array([jnp.nan, 2.0, 1.0, -jnp.inf]))) == 2


@pytest.mark.slow  # it compiles what `supports` compiles
def test_the_bench_trains_on():
    side = speed.our_side(speed.Work(batch=4, width=4, steps=2))
    assert side.times == 0.5
    first, second = np.asarray(side.run()), np.asarray(side.run())
    assert first.shape == (2,)
    assert not np.allclose(first, second)


# --- one's own --------------------------------------------------------------------------------------------------------


@pytest.mark.slow  # it reads the examples, which a copy of the package alone does not have
def test_the_example_offers_what_the_experiment_asks_for():
    module = loaded(EXAMPLE)
    problem = module.images()
    assert all(hasattr(problem, name) for name in EXPERIMENTS["images"].accepts)
    assert set(np.unique(problem.train)) == {-1.0, 1.0}


@pytest.mark.slow
def test_the_example_runs():
    done = subprocess.run([sys.executable, str(EXAMPLE), "200"], capture_output=True, text=True, check=True)
    assert "GAN with a bottleneck" in done.stdout
    assert "nats at β" in done.stdout


@pytest.mark.slow
def test_a_problem_of_ones_own():
    """As ``laureate run vdb/images --problem examples/own_images.py:images``, at the least scale."""
    experiment = EXPERIMENTS["images"]
    selection = Selection(paper("vdb"), experiment, experiment.claims)
    cells = plan([selection], "tiny", problem=f"{EXAMPLE}:images")
    try_problem(f"{EXAMPLE}:images", cells)
    (cell,) = [cell for cell in cells if cell.arm == "vgan"]
    outcome = compute(cell)
    assert not outcome.error, outcome.error
    assert np.isfinite(outcome.metrics["log_distance"]).all()
