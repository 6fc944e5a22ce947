"""What trials and benchmarks say of seconds, by a clock that moves only where work is done, and by so much.

Every piece of work is planted with the seconds that it takes, and its first call, which compiles, with many more: what
is then reported is known exactly.
"""

import ast
import inspect
import sys
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import laureate.papers
from laureate.lab.claim import Settings
from laureate.papers.alista import speed as alista
from laureate.papers.dynamics_cycle import speed as cycle
from laureate.papers.gibbs_with_gradients import trials as gibbs
from laureate.papers.hopfield_rbm import trials_host as hopfield
from laureate.papers.knockoff_gan import speed as knockoffs
from laureate.papers.localized_learning import trials_host as localized
from laureate.papers.mesh_graph_nets import trials_timed as mesh
from laureate.papers.quant_noise import trials_host as quantised
from laureate.papers.raps import speed as sets
from laureate.papers.rnd import speed as rnd
from laureate.papers.tensor_train_pde import trials_timed as tensors
from laureate.training import Frozen

KEY = jax.random.key(0)
COMPILING = 1000.0
BUSY = 1.5  # times longer than the CPU's the wall's clock runs


class Clock:
    """The CPU's and the wall's, in place of a module's ``time``."""

    def __init__(self):
        self.spent, self.begun = 0.0, set()

    def process_time(self):
        return self.spent

    def perf_counter(self):
        return BUSY * self.spent

    def spend(self, work, seconds):
        """So many, and many more the first time."""
        self.spent += seconds + COMPILING * (work not in self.begun)
        self.begun.add(work)


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    for module in (gibbs, hopfield, localized, mesh, quantised, tensors):
        monkeypatch.setattr(module, "time", made)
    return made


@pytest.mark.parametrize("seconds", [1e-4, 0.004, 3.0])
def test_a_lap_is_the_seconds_of_one_call_however_often_it_repeats_it(clock, seconds):
    calls = {name: lambda name=name, s=s: clock.spend(name, s) for name, s in (("one", seconds), ("two", 0.7))}
    assert mesh._laps(calls, 3) == pytest.approx({"one": seconds, "two": 0.7})


@pytest.mark.parametrize("kind", ["scalar", "product", "proxy"])
def test_an_epoch_with_noise_is_its_steps_and_one_fit(clock, kind, monkeypatch):
    def steps(key, start, part, spec, state, proxy, updates):
        assert (state is not None) == (spec is not None and kind == "product")
        clock.spend(f"steps with {spec}", 0.02 if spec is None else 0.05)

    def refreshed(*_):
        clock.spend("fit", 0.3)
        return 1

    monkeypatch.setattr(quantised, "_steps", steps)
    monkeypatch.setattr(quantised, "_refreshed", refreshed)
    sizes = {"batch": 4, "inputs": 4, "width": 2, "hidden": 1, "centroids": 2, "kmeans_steps": 1}
    scale = Settings(sizes, updates=20, epoch=100, rounds=3)
    found = quantised.overhead(KEY, Settings(kind=kind), None, scale)
    fit = 0.3 * (kind == "product")
    wanted = {"log_ratio": np.log((5 * 0.05 + fit) / (5 * 0.02)), "log_ratio_of_steps": np.log(2.5)}
    wanted |= {"plain_milliseconds": 1.0, "fit_milliseconds": 1000 * fit}
    assert {name: float(value) for name, value in found.items()} == pytest.approx(wanted, rel=1e-5)


def test_effective_samples_a_second_are_of_the_quickest_of_three_calls(clock, monkeypatch):
    laps = iter([5.0, 2.0, 3.0] * 4)
    monkeypatch.setattr(gibbs, "_timed_distances", lambda *_: clock.spend("walk", next(laps)))
    monkeypatch.setattr(gibbs, "_timed_effective", lambda _: np.log(6.0))
    for name in ("random_rbm", "random_factorial_hmm", "make_kernel"):
        monkeypatch.setattr(gibbs, name, lambda *_: None)
    names = "chains steps thin side visible hidden hidden_chains length"
    found = gibbs.seconds(KEY, Settings(), None, Settings(dict.fromkeys(names.split(), 4)))
    for name in ("ising", "potts", "rbm", "fhmm"):
        assert float(found[f"log_ess_per_second_{name}"]) == pytest.approx(np.log(6.0 / (2.0 / 4)))
        assert float(found[f"effective_{name}"]) == pytest.approx(6.0)
    assert float(found["wall_over_cpu"]) == pytest.approx(BUSY)


def test_the_cost_of_a_step_is_a_share_of_full_backpropagation(clock, monkeypatch):
    """The model of costs says 0.7, 0.5 and 0.25 of the whole, the clock 0.6, 0.5 and 0.3."""
    seconds = {("Frozen", 0): 2.0, ("Hebbian", 2): 1.2, ("Frozen", 2): 1.0, ("Hebbian", 3): 0.6}
    operations = {("Frozen", 0): 40, ("Hebbian", 2): 28, ("Frozen", 2): 20, ("Hebbian", 3): 10}
    place = lambda trainer: (type(trainer.rule).__name__, trainer.schedule.boundary)  # noqa: E731

    def jitted(step):
        trainer = step.__self__
        return lambda state, *_: (state, clock.spend(place(trainer), seconds[place(trainer)]))

    def cost(trainer, blocks, inputs, labels, boundary, *, elementwise):
        assert boundary == place(trainer)[1]
        return Settings(total=operations[place(trainer)])

    monkeypatch.setattr(localized.eqx, "filter_jit", jitted)
    monkeypatch.setattr(localized, "step_cost", cost)
    monkeypatch.setattr(localized.LocalizedTraining, "init", lambda *_: 0)
    found = localized.cost(KEY, Settings(), None, Settings(layers=4, width=2, batch=2, rounds=3))
    wanted = {"local_share": 0.6, "frozen_share": 0.5, "local_minus_frozen": 0.1, "model_error": 0.2}
    wanted |= {"local_operations": 0.7, "frozen_operations": 0.5, "fastest": 4.0}
    assert {name: float(value) for name, value in found.items()} == pytest.approx(wanted, rel=1e-5)
    assert Frozen is type(localized.RULES["frozen"])


@pytest.fixture
def solved(clock, monkeypatch):
    """Solvers that are a number of updates, a hundredth of a second each, and whose value is that number."""

    def value(solver, key, pde):
        updates = int(getattr(solver, "num_updates", 0)) or 1
        clock.spend("a solve", 0.01 * updates)
        return float(updates)

    monkeypatch.setattr(tensors, "_compiled", lambda function: value if function is tensors._value else function)
    network = lambda num_steps, num_updates: SimpleNamespace(num_updates=num_updates)  # noqa: E731
    monkeypatch.setattr(tensors, "DeepBackward", network)
    monkeypatch.setattr(tensors, "_truth", lambda pde: 2.0)
    return clock


def test_a_network_gets_as_many_updates_as_fit_into_the_budget(solved):
    updates, seconds = tensors._train_backward(KEY, None, Settings(), Settings(steps=2, budget=1.0))
    assert seconds == pytest.approx(0.01 * updates)
    assert 0.98 <= seconds <= 1.0 + 1e-9


def test_a_network_that_learns_forwards_gets_the_whole_budget_after_compiling(clock, monkeypatch):
    """A call makes one number more, in a fiftieth of a second."""

    def updates(solver, key, pde, state):
        clock.spend("updates", 0.02)
        return SimpleNamespace(update=state.update + 1, parameters=(state.update + 1,))

    start = lambda *_: SimpleNamespace(update=0, parameters=(0,))  # noqa: E731
    planted = {tensors._bsde_updates: updates, tensors._bsde_init: start}
    monkeypatch.setattr(tensors, "_compiled", planted.__getitem__)
    monkeypatch.setattr(tensors, "DeepBSDE", lambda **_: None)
    made, seconds = tensors._train_bsde(KEY, None, Settings(learning_rate=0.1), Settings(steps=2, budget=1.01))
    assert (made, seconds) == (51, pytest.approx(1.02))


@pytest.mark.parametrize("solver", tensors.WITHOUT_SOLVER)
def test_who_solves_nothing_does_not_pay_for_compiling_either(clock, solver, monkeypatch):
    planted = {tensors.without_solver: lambda *_: clock.spend("a mean", 0.3) or 1.0, tensors._truth: lambda _: 2.0}
    monkeypatch.setattr(tensors, "_compiled", planted.__getitem__)
    found = tensors.against_networks(KEY, Settings(solver=solver), None, Settings(budget=1.0))
    assert (float(found["seconds"]), float(found["error"])) == pytest.approx((0.3, 0.5))


def test_a_tensor_train_that_is_not_done_within_the_budget_has_diverged(solved, monkeypatch):
    for seconds, error in ((0.9, 0.5), (1.1, tensors.relative(np.nan, 2.0))):
        monkeypatch.setattr(tensors, "solver_of", lambda *_, s=seconds: SimpleNamespace(num_updates=round(100 * s)))
        value = lambda solver, key, pde: solved.spend("a solve", solver.num_updates / 100) or 1.0  # noqa: E731
        monkeypatch.setattr(tensors, "_compiled", lambda f, value=value: value if f is tensors._value else f)
        found = tensors.against_networks(KEY, Settings(solver="tensor-train"), None, Settings(budget=1.0))
        assert float(found["seconds"]) == pytest.approx(seconds)
        assert float(found["error"]) == pytest.approx(float(error))
        assert float(found["wall_over_cpu"]) == pytest.approx(BUSY)


def test_the_seconds_of_a_dimension_are_the_least_of_three_solves(clock, monkeypatch):
    laps = iter([9.0, 4.0, 2.0, 3.0] * 2)
    monkeypatch.setattr(tensors, "_compiled", lambda _: lambda *__: clock.spend("a solve", next(laps)))
    monkeypatch.setattr(tensors, "solver_of", lambda *_: None)
    found = tensors.dimension(KEY, Settings(), None, Settings(dimensions="2 4"))
    np.testing.assert_allclose(found["seconds"], np.log10([2.0, 2.0]))
    np.testing.assert_allclose(found["dimension"], np.log10([2, 4]))


def test_layers_are_held_against_the_quicker_way_to_visit_spins(clock, monkeypatch):
    """Two rounds after the first, which compiles, in fifths, halves and tenths of a second; of these samples as many
    count as the planted overlaps say."""
    seconds, counted = {"layers": 0.2, "spins": 0.5, "low-rank": 0.1}, {"layers": 6.0, "spins": 12.0, "low-rank": 8.0}

    def mapped(run):
        kernel = inspect.getclosurevars(run).nonlocals["kernel"]
        return lambda keys, place: (place, clock.spend(kernel, seconds[kernel]) or np.full((2, 3, 1), counted[kernel]))

    drawn = SimpleNamespace(split=lambda key, number: [key] * number, bernoulli=lambda key, p, shape: np.ones(shape))
    same = lambda value: value  # noqa: E731
    stand_in = SimpleNamespace(random=drawn, jit=same, vmap=mapped, block_until_ready=same)
    planted = {"jax": stand_in, "jnp": np, "store": same, "to_boltzmann_machine": lambda *_, **__: None}
    planted |= {"LayerGibbs": lambda _: "layers", "SpinGibbs": lambda *_: "spins"}
    planted |= {"LowRankSpinGibbs": lambda _: "low-rank"}
    for name, value in planted.items():
        monkeypatch.setattr(hopfield, name, value)
    diagnostics = SimpleNamespace(effective_sample_size=lambda found: found.mean((0, 1)) * found.shape[1] / 6)
    monkeypatch.setitem(sys.modules, "blackjax", SimpleNamespace(diagnostics=diagnostics))
    scale = Settings(rounds=3, patterns=1, units=4, chains=2, draws=3, beta=1.0)
    found = hopfield.speed(KEY, Settings(), None, scale)
    wanted = {"layers_per_second": 15.0, "spins_per_second": 12.0, "low_rank_per_second": 40.0, "effective": 6.0}
    wanted |= {"log_ratio": np.log(15 / 40), "wall_over_cpu": BUSY}
    assert {name: float(value) for name, value in found.items()} == pytest.approx(wanted)


def test_fewer_tables_of_a_slow_peer_are_scaled_up_to_all(monkeypatch):
    made = lambda **_: SimpleNamespace(forward=lambda X, y, Sigma, fdr: np.zeros(1))  # noqa: E731, N803
    monkeypatch.setitem(sys.modules, "knockpy", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "knockpy.knockoff_filter", SimpleNamespace(KnockoffFilter=made))
    monkeypatch.setattr(knockoffs, "autoregressive", lambda number, rho: np.eye(number))
    monkeypatch.setattr(knockoffs, "GaussianKnockoffs", lambda *_: None)
    for number in (2, 5):
        side = knockoffs.their_side(number)
        assert side.times * len(side.run()) == pytest.approx(knockoffs.REPLICATIONS)
        assert knockoffs.our_side(number).times * number == pytest.approx(knockoffs.REPLICATIONS)


def test_penalties_are_tuned_over_the_peers_grid(monkeypatch):
    made = []
    monkeypatch.setattr(sets, "rows", lambda number, classes: (np.zeros((number, classes)), np.zeros(number)))
    monkeypatch.setattr(sets, "RAPS", lambda **more: made.append(more))
    sets.our_side("raps", 4, 10)
    assert made == [{"lams": (0.001, 0.01, 0.1, 0.2, 0.5), "tune_fraction": 0.2, "temperature": 1.0, "input": "proba"}]


def test_a_peer_of_torch_has_one_thread_and_always_the_same_weights():
    """As ours have: read from the sources, for the peer may not be there. Weights that are drawn are drawn from a
    seed."""
    for path in sorted(Path(laureate.papers.__file__).parent.glob("*/speed.py")):
        text = path.read_text("utf-8")
        tree = list(ast.walk(ast.parse(text)))
        if any(isinstance(node, ast.Import) and node.names[0].name == "torch" for node in tree):
            assert "torch.set_num_threads(1)" in text, path
            drawn = "nn.Linear(" in text or "nn.Conv2d(" in text or "torch.rand" in text
            assert "torch.manual_seed(" in text or not drawn, path


@pytest.mark.parametrize(("module", "seeds"), [(rnd, 1), (rnd, 16), (cycle, 1), (cycle, 16)])
def test_the_time_of_a_repeat_is_divided_by_the_updates_that_it_makes(module, seeds, monkeypatch):
    """Each tells a number for every update of every seed."""
    monkeypatch.setattr(jax, "jit", lambda function: function)
    side = module.our_updates(seeds)
    assert side.times == pytest.approx(1 / jax.eval_shape(side.run).size)


def test_fista_is_timed_at_the_penalty_that_gets_there_first(monkeypatch):
    """Of five penalties three reach -20 dB: 0.1 after 3 iterations, 0.01 after 2, 0.003 after 6."""
    curves = {0.3: [-5.0] * 6, 0.1: [-9, -15, -20, -25, -25, -25], 0.03: [-19.0] * 6}
    curves |= {0.01: [-1, -20, -20, -20, -20, -20], 0.003: [0, 0, 0, 0, 0, -30]}
    made = lambda matrix, number, penalty: SimpleNamespace(penalty=penalty, number=number)  # noqa: E731
    told = lambda function: lambda *given: jnp.asarray(curves.get(getattr(given[0], "penalty", 0), -20.0))  # noqa: E731
    monkeypatch.setattr(alista, "FISTA", made)
    monkeypatch.setattr(alista.eqx, "filter_jit", told)
    monkeypatch.setattr(alista, "trained", lambda *_: None)
    monkeypatch.setattr(alista, "nmse_db", lambda found, codes: found)
    monkeypatch.setattr(alista, "problem", lambda work: (None, np.zeros(3), np.zeros(3)))
    assert alista.fista_side(alista.Work()).note == "2 iterations, penalty 0.01, NMSE -20.0 dB"
