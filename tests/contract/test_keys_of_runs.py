"""Whole runs, with options away from their defaults: no key is used twice.

Rows of ``laureate.testing.check_keys``, which compiles only what makes and consumes keys. Here what is handed a key
draws from it, for else nobody would see that two had the same, and there are two of everything that has a number:
steps, sweeps, chains, environments, parts of a batch, layers of one shape.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import test_control_cycle as cycles
import test_generative_contract as gen
import test_gradients_contract as grads
import test_graphs_contract as meshes
import test_pde_contract as solvers
import test_sampling_contract as chains

from laureate import (
    architecture,
    control,
    generative,
    gradients,
    graphs,
    grounding,
    loops,
    memory,
    multitask,
    pde,
    representation,
    robustness,
    sampling,
    selection,
    training,
)
from laureate.generative import latent_flow
from laureate.generative.regularisers import AbstractRegulariser
from laureate.pde import extrapolation as pde_extrapolation
from laureate.pde import solution as pde_solution
from laureate.pde.networks import network
from laureate.problems.pdes import HJBLog
from laureate.sampling.driver import Step
from laureate.testing import check_keys
from laureate.testing._random import keys_of

RNG = np.random.default_rng(0)
SPINS = jnp.asarray(np.sign(RNG.normal(size=(3, 6))), jnp.float32)
TABLE = RNG.normal(size=(40, 3)).astype(np.float32)


def known_later(key, tree):
    """The same numbers, but traced: what looks at numbers on the host is left out, as in any jitted call."""
    nothing = 0 * jax.random.key_data(key)[0].astype(jnp.float32)
    return jax.tree.map(lambda leaf: leaf + nothing.astype(leaf.dtype), tree)


class Dice(eqx.Module):
    """An environment that draws in every step and at every beginning, for one-hot actions or numbers."""

    action_space: Any = loops.Discrete(2)
    observation_space: Any = loops.Box((4,))

    def reset(self, key):
        start = jax.random.uniform(key, (4,))
        return start, start

    def step(self, key, state, action):
        state = state + jax.random.normal(key, (4,))
        return state, loops.Timestep(state, state[0] + action, state[1] > 1, state[2] > 1)


def explored(key):
    """A first update and its warm-up, then more of them."""
    bonus = control.RND(gen.linear(4, 2), gen.linear(4, 2), keep=0.5)  # pyright: ignore[reportCallIssue]
    policy = control.PPO(lambda x: (x[:2], x[2:]), control.Categorical(2), gamma=(0.9, 0.8), episodic=(1, 0))
    learner = control.BonusPPO(policy, bonus, num_epochs=2, num_minibatches=2)
    training = control.Training(Dice(), learner, num_environments=2, num_steps=2, num_warmup=2)
    return training.run(key, 2).seen.cost


def dreamed(key):
    """An agent is made, acts and learns; tests/control/test_host_training.py has whole runs of others."""
    make_key, act_key, draw_key, step_key = jax.random.split(key, 4)
    sizes = {"latent": control.OneHot(2, 2), "memory": 2, "width": 2, "horizon": 2}
    agent = control.make_dreamer(make_key, (4,), control.OneHot(1, 2), **sizes)
    start, first, steps = agent.init(), jnp.ones(2, bool), jnp.zeros((2, 2))
    memory = agent.act(act_key, jnp.ones((2, 4)), first, agent.remember(2), start)
    rows = control.Sequences(jnp.ones((2, 2, 4)), jnp.stack([memory.action] * 2), steps, steps > 0, steps == 0)
    replay = control.Replay(8, 2)
    return agent.step(step_key, replay.sample(draw_key, 2, replay.add(rows, replay.init(rows))), start)


def cycled(key):
    forward_key, train_key, other_key = jax.random.split(key, 3)
    model, _ = cycles.cycle().fit_forward(forward_key, cycles.Y, 2, 4)
    x, y = cycles.X, cycles.Y
    whole = model.train(train_key, x, y, model.init(x, y), num_steps=2, batch=2, phase="both", pairs=cycles.PAIRS)
    gan = cycles.gan()
    return whole, gan.train(other_key, x, y, gan.init(x, y), num_steps=2, batch=2)


def written_down(key):
    policy = lambda key, seen, memory: (jax.random.randint(key, (), 0, 2), memory)  # noqa: E731
    return control.record(key, Dice(), policy, 3)


def conditional(kind):
    def run(key):
        make_key, train_key, draw_key = jax.random.split(key, 3)
        x, y = known_later(key, (gen.X, gen.Y))
        model = generative.make_model(make_key, kind, x, y, width=4, **gen.MODELS[kind][0])
        fitted = model.fit(train_key, x, y, num_steps=2, batch=2)
        return model.sample(draw_key, fitted.state, x, 2)

    return run


def probed(key):
    """What is looked at before and after a training."""
    one, two = jax.random.split(key)
    model = gen.made("latent-flow", {})
    return latent_flow._sensitivity(model, one, gen.X), latent_flow._curvature(model, two, model.init(), gen.X, gen.Y)


class Loud(AbstractRegulariser):
    """A regulariser that draws in all that it does."""

    @property
    def networks(self):
        return None

    @property
    def passes(self):
        return 0

    def init(self):
        return ()

    def see(self, key, networks, x, state, *, learner):
        noise = 0.0 if key is None else jax.random.normal(key, x.shape)
        return x + noise, jnp.zeros(len(x))

    def penalty(self, key, judge, real, made, nats, state):
        return jax.random.normal(key)

    def update(self, state, nats):
        return state

    def respond(self, state, slopes):
        return state


def adversarial(key):
    """Noise and penalties at once, of two regularisers, for every part of a batch, in every step of D."""
    numbers = {"num_latents": 2, "num_discriminator_steps": 2, "num_accumulated": 2}
    model = generative.Adversarial(gen.linear(2, 3), gen.linear(3, 1), "hinge", (Loud(), Loud()), **numbers)
    return model.fit(key, known_later(key, gen.Y), num_steps=2, batch=4)


def settled(key):
    """Statistics of batches after the steps, of conditions that are drawn too."""
    sizes = {"channels": 2, "num_blocks": 1, "num_latents": 2, "num_shared": 2}
    make_key, fit_key = jax.random.split(key)
    model = generative.make_biggan(make_key, (2, 2, 1), 2, kind="dense", **sizes)
    data = known_later(key, (jnp.ones((4, 2, 2, 1)), jnp.arange(4) % 2))
    return model.fit(fit_key, data, num_steps=2, batch=2).statistics


def imitated(model, demonstrated):
    def run(key):
        step = lambda state, key: model.step(key, demonstrated, state)  # noqa: E731
        return jax.lax.scan(step, model.init(), jax.random.split(key))[0]

    return run


def estimated(make):
    """Three updates, in which episodes end and begin within truncations."""

    def run(key):
        made = make(grads.Swing())
        return gradients.train(key, made, optax.sgd(0.1), grads.THETA, 3, batches=None, record=lambda theta: theta)[0]

    return run


def walked(key):
    """Two chains, two steps each."""
    kernel = chains.ROWS["path-auxiliary"]
    step = Step(key, kernel, jnp.arange(2))
    state = jax.vmap(kernel.init)(jnp.stack([chains.SPINS] * 2))
    return jax.lax.scan(lambda state, index: (step._step(state, index)[0], None), state, jnp.arange(2))[0]


def tempered(key):
    kernel = sampling.ParallelTempering(sampling.Gibbs(*chains.TARGET), jnp.array([1.0, 0.5]), steps_per_swap=2)
    step = lambda state, key: kernel.step(key, state)  # noqa: E731
    return jax.lax.scan(step, kernel.init(chains.SPINS), jax.random.split(key))[1].cost


def knockoffs(method):
    """Fitted, and drawn from."""

    def run(key):
        fit_key, draw_key = jax.random.split(key)
        return method.fit(fit_key, known_later(key, TABLE)).sample(draw_key, TABLE)

    return run


def drawn_on_graphs(key):
    """Networks of two layers, dropout in their steps and in their layers, and two designs."""
    makes, calls = (jax.random.split(one) for one in jax.random.split(key))
    dims = {"node_dims": (3, 2), "edge_dims": (3, 2), "num_layers": 2, "num_message": 2, "num_feedforward": 2}
    quality = graphs.QualityModel(makes[0], (3, 2), (4, 1), with_residues=True, **dims)
    design = graphs.DesignModel(makes[1], (3, 2), (4, 1), **dims)
    answers = design(meshes.GRAPH, meshes.RESIDUES, calls[0])
    return quality, answers, design.sample(calls[1], meshes.GRAPH, 2, num_incoming=4)


def segmented(key):
    """Two ways, two levels, words, and hidden layers of a modulation."""
    makes, call = jax.random.split(key)
    one, two, three = jax.random.split(makes, 3)
    model = grounding.Segmenter(one, 5, inputs=1, text_size=4, depth=2, width=2, dropout=0.5)
    mixed = grounding.Concatenation(two, 2, 4, hidden=3), grounding.FiLM(three, 2, 4, hidden=3)
    words = jnp.ones((1, 2), int)
    return mixed, model(jnp.ones((1, 8, 8, 1)), words, jnp.array([2]), key=call)


def solved(key):
    """A solution and its like of twice as many steps, paths of one and paths of both."""
    keys, equation = jax.random.split(key, 4), HJBLog(2)
    coarse, fine = (
        pde.TensorTrainSolver(solvers.BASIS, 2, number, 16, num_test=2).run(one, equation)
        for number, one in zip((2, 4), keys[:2], strict=True)
    )
    return pde_extrapolation._together(keys[2], coarse, fine, 2), pde_solution._pathwise(keys[3], coarse, 2)


def vaccinated(key):
    """Leaves have orders of their own, and every step has new ones."""
    rule = multitask.gradvac(key, 3, per="leaf")
    grads = {"a": jnp.eye(3), "b": jnp.ones((3, 2))}
    step = lambda state, _: (rule.update(grads, state)[1], None)  # noqa: E731
    return jax.lax.scan(step, rule.init(jax.tree.map(lambda leaf: leaf[0], grads)), length=2)[0]


class Two(eqx.Module):
    """A block of two layers of one shape."""

    first: training.Dense
    second: training.Dense

    def __call__(self, x):
        return self.second(self.first(x))


def localized(key):
    """Two blocks that learn by themselves, for two steps."""
    dense = lambda number: training.Dense(jnp.eye(3) + number)  # noqa: E731
    rule = training.RandomDirection(hold=1)
    trainer = training.LocalizedTraining(training.Fixed(2), rule, optax.sgd(0.1), local_rate=0.1)
    blocks = [Two(dense(0), dense(1)), Two(dense(2), dense(3))]
    return [trainer.local_pass(key, jnp.asarray(step), blocks, jnp.ones((2, 3)))[2] for step in range(2)]


def attacked(wrap):
    def run(key):
        linear = lambda x: x.reshape(len(x), -1)[:, :3]  # noqa: E731
        pgd = robustness.PGD(linear, robustness.L2(0.1), num_steps=2, random_start=True)
        return wrap(pgd).run(key, jnp.ones((2, 4, 4, 1)), jnp.array([0, 1]))

    return run


class Noisy:
    """A supernet with dropout."""

    def apply(self, params, state, weights, x, *, key, train):
        return x * weights[0, 0] + jax.random.normal(key, x.shape), state


def scored(key):
    """Two arrays of weights, two batches."""
    data = jnp.ones((4, 2)), jnp.zeros(4, int)
    score = architecture.SupernetScore(Noisy(), None, None, data, criterion="loss", key=key, batch_size=2)
    return score.examples(jnp.ones((2, 1, 1)))


UNALIGNED = grads.ES | {"horizon": (2, 5), "phase": "random"}
PAIRS = {
    "PersistentES": lambda unroll: gradients.PersistentES(unroll, **UNALIGNED),
    "GPES": lambda unroll: gradients.GPES(unroll, **UNALIGNED, noise_steps=3),
    "TruncatedES": grads.ROWS["truncated-es"],
    "AnalyticPES": grads.ROWS["pes-analytic"],
}
WORKERS = {
    "TruncatedBackprop": lambda unroll: gradients.TruncatedBackprop(unroll, **(grads.WORKERS | {"horizon": 3})),
    "RTRL": lambda unroll: gradients.RTRL(unroll, **(grads.WORKERS | {"horizon": 3})),
}
RUNS = {
    "control.Training": explored,
    "control.DreamerV2": dreamed,
    "control.DynamicsCycle": cycled,
    "control.record": written_down,
    **{f"generative.{kind}": conditional(kind) for kind in gen.MODELS},
    "generative.probes": probed,
    "generative.Adversarial": adversarial,
    "generative.make_biggan": settled,
    "generative.AdversarialImitation": imitated(gen.IMITATION, jnp.eye(3)[1:]),
    "generative.AdversarialIRL": imitated(gen.INVERSE, jnp.array([[0, 1], [1, 1]])),
    "generative.truncation_curve": lambda key: (
        generative.truncation_curve(
            key, lambda key, t: generative.truncated_normal(key, (2,), t), [0.5, 1.0], {"mean": jnp.mean}, num_repeats=2
        ).mean
    ),
    **{f"gradients.{name}": estimated(make) for name, make in (PAIRS | WORKERS).items()},
    "gradients.estimate": lambda key: gradients.estimate(
        key, lambda z: z[0, 1], jnp.zeros((2, 2)), gradients.straight_through, 2
    )[0],
    "sampling.run": walked,
    "sampling.adapt": lambda key: chains.ROWS["path-auxiliary"].adapt(
        key, chains.ROWS["path-auxiliary"].init(chains.SPINS), 2
    )[1],
    "sampling.ParallelTempering": tempered,
    "selection.KnockoffGAN": knockoffs(
        selection.KnockoffGAN(num_steps=2, num_checkpoints=2, batch=4, num_inner_steps=2)
    ),
    "selection.KnockoffGAN.validation": knockoffs(
        selection.KnockoffGAN(num_steps=1, num_checkpoints=1, batch=4, num_inner_steps=1, validation=0.3)
    ),
    "selection.MixtureKnockoffs": knockoffs(selection.MixtureKnockoffs(num_components=2, num_restarts=2)),
    "selection.CopulaKnockoffs": knockoffs(selection.CopulaKnockoffs(selection.MixtureKnockoffs(num_components=2))),
    "architecture.SupernetScore": scored,
    "graphs.models": drawn_on_graphs,
    "grounding.Segmenter": segmented,
    "memory.recall": lambda key: memory.recall(key, memory.store(SPINS[:2]), -SPINS[2], max_sweeps=3)[0],
    "multitask.gradvac": vaccinated,
    "pde.TensorTrainSolver": solved,
    "pde.DeepBSDE": lambda key: pde.DeepBSDE(6, width=2, depth=1, batch=2, num_updates=3).run(key, HJBLog(2)).v0,
    "pde.DeepBackward": lambda key: (
        pde.DeepBackward(2, num_samples=2, width=2, depth=1, batch=2, num_updates=2).run(key, HJBLog(2)).v0
    ),
    "pde.MonteCarlo": lambda key: pde.MonteCarlo(2, 3).run(key, HJBLog(2)),
    "representation.TwoLayer": representation.TwoLayer(2, hidden=2).init,
    "robustness.VR": attacked(lambda pgd: robustness.VR(robustness.DI(pgd, probability=0.5), num_copies=2)),
    "robustness.InteractionReduced": attacked(
        lambda pgd: robustness.InteractionReduced(pgd, robustness.grid_players((4, 4), 2), num_subsets=2)
    ),
    "training.LocalizedTraining": localized,
}
SHARED = {"generative.truncation_curve": 2}  # the same keys for every threshold, on purpose
SHARED |= {"selection.KnockoffGAN.validation": 2}  # the start and the end of a training are tested by the same draws
SHARED |= {f"gradients.{name}": 2 for name in PAIRS}  # the two signs


DOUBLE = {"pde.TensorTrainSolver"}  # refuses single precision


@pytest.mark.parametrize("name", sorted(RUNS.keys() - {"pde.DeepBSDE"}))
def test_no_key_is_used_twice(name):
    with jax.enable_x64(name in DOUBLE):
        check_keys(RUNS[name], name=name, shared_keys=SHARED.get(name, 1))


def test_of_templates_alone_a_key_is_used_again():
    """Deep BSDE makes a network from a fixed key at every update, to keep its form alone; no other key twice."""

    def form(key):
        return eqx.filter(network(key, 2, 2, 2, 1, jnp.float32), eqx.is_array)

    recorder, _ = keys_of(RUNS["pde.DeepBSDE"], jax.random.key(11))
    template, _ = keys_of(form, jax.random.key(0))
    again = [recorder.uses.pop(key) for key in template.uses]
    assert len(again) > 1
    assert recorder.uses
    assert recorder.reused() == []
