"""Words, flags and counts of methods, by pairs: all compute, none is ignored; one program a method, the rest is traced.

Samplers and estimators of gradients have theirs in the tables of their areas.
"""

import dataclasses
import functools
import math
from typing import Any, Literal, get_origin

import equinox as eqx
import jax
import jax.numpy as jnp
import meshes_drawn
import numpy as np
import pytest
import test_active_contract as active
import test_architecture_contract as architecture
import test_compression_contract as compression
import test_control_contract as control
import test_generative_contract as generative
import test_gradients_contract as gradients
import test_graphs_contract as graphs
import test_memory_contract as memory
import test_pde_contract as pde
import test_recovery_contract as recovery
import test_representation_contract as representation
import test_robustness_contract as robustness
import test_sampling_contract as sampling
import test_selection_contract as selection
import test_training_contract as training
import test_uncertainty_contract as uncertainty
from test_every_method import CONTRACTS, types_of

from laureate.control import PooledCritic, Sequences
from laureate.graphs import GVPConv, SecondOrder
from laureate.grounding import Concatenation, FiLM, LanguageFilter, LanguageUNet
from laureate.memory import BoltzmannMachine
from laureate.problems.pdes import HJBLog
from laureate.representation import DirectCopy, DirectPred, DirectSet, Identity, Linear, Siamese, TwoLayer
from laureate.testing import check_settings
from laureate.testing._checks import in_turn
from laureate.testing._options import every_row

KEY = jax.random.key(0)


def steps(step, state):
    """Three steps, each with a key of its own: the state before and after them, and what each told."""
    return state, *in_turn(lambda state, key: step(key, state), state, jax.random.split(KEY, 3))


def solved(solver):
    solution = solver.run(KEY, HJBLog(3))
    return None, None, (solution.v0, solution)


def recovered(solver):
    return None, None, solver.solve(recovery.IMAGES if type(solver).__name__.startswith("Conv") else recovery.SIGNALS)


def attacked(attack):
    images, labels = np.asarray(robustness.IMAGES, np.float32), robustness.LABELS
    state, after, told = steps(lambda key, state: attack.step(key, images, labels, state), attack.init(KEY, images))
    return state, after, (told, attack.run(KEY, images, labels)[0])


def quantised(quantizer):
    weights = jnp.cos(jnp.arange(96.0)).reshape(6, 16)
    parameters = quantizer.fit(KEY, weights)
    codes = quantizer.encode(weights, parameters)
    stored = quantizer.store(parameters)
    return None, None, (codes, quantizer.decode(codes, quantizer.restore(stored, (6, 16)), (6, 16)), stored)


def fitted(model):
    x, y = jnp.asarray(generative.X), jnp.asarray(generative.Y)
    state = model.init()
    after, info = model.train(KEY, x, y, state, num_steps=2, batch=3)
    return state, after, (info, model.sample(KEY, after, x, 3))


def played(*data):
    def one(model):
        return steps(lambda key, state: model.step(key, *data, state), model.init())

    return one


def praised(bonus):
    def step(key, state):
        seen = bonus.observe(control.STEPS, state)
        return bonus.step(key, control.STEPS, seen)[0], bonus.reward(control.STEPS, seen)

    return steps(step, bonus.init(control.STEPS.following[0]))


def trained(method):
    return steps(method.step, method.init(KEY))


def learned(learner):
    def step(key, state):
        return learner.step(key, control.ROLLOUT, learner.observe(control.ROLLOUT, state))

    return steps(step, learner.observe(control.ROLLOUT, learner.init(jnp.zeros(4), 4)))


def judged(critic):
    rows = control.STEPS.observation
    return steps(lambda key, state: critic.step(key, rows, 2 * rows + 1, state), critic.init(rows[0]))


def diverged(method):
    state = method.init(BoltzmannMachine(memory.WEIGHTS, jnp.zeros(4), jnp.zeros(2)))
    return steps(lambda key, state: method.update(key, state, memory.SPINS), state)


def contrasted(trainer):
    state = trainer.init(sampling.Coins(jnp.zeros(3)), jnp.zeros((4, 3), bool))
    return steps(lambda key, state: trainer.update(key, state, jnp.eye(3) > 0), state)


def moved(particles):
    return steps(particles.step, particles.init(jnp.linspace(-1, 2, 8).reshape(4, 2) ** 2))


def acquired(acquisition):
    def step(key, state):
        pick, after, info = acquisition.step(key, active.SCORES, state)
        return after, (pick, info)

    return steps(step, acquisition.init(12))


def decided(rule):
    scores = jnp.ones(rule.space.shape[1])
    return steps(lambda key, state: rule.decide(key, state, scores), rule.init(KEY, jnp.zeros(rule.space.shape)))


def tuned(predictor):
    trainer = Siamese(predictor, representation.SGD)
    return embedded(trainer)


def embedded(trainer):
    model = eqx.nn.Linear(6, getattr(trainer.predictor, "dim", 4), key=KEY)
    views = jnp.cos(jnp.arange(96.0)).reshape(2, 8, 6)
    return steps(lambda _, state: trainer.step(state, *views), trainer.init(KEY, model))


def in_blocks(trainer):
    return steps(lambda _, state: trainer.step(state, *training.BATCH), trainer.init(KEY, training.BLOCKS))


def dreamt(agent):
    seen = lambda *shape: jnp.cos(jnp.arange(12.0 * math.prod(shape))).reshape(3, 4, *shape)  # noqa: E731
    batch = Sequences(seen(4), seen(2), seen(), seen() > 0.9, seen() > 0.9)
    return steps(lambda key, state: agent.step(key, batch, state), agent.init())


def calibrated(calibrator):
    found = calibrator.fit(*(jnp.asarray(part, jnp.float32) for part in (uncertainty.P, uncertainty.Y)))
    return None, None, (found.transform(jnp.linspace(0.0, 1.0, 5)), found.info)


def modulated(layer):
    """Positions enough for two levels; a phrase of as many numbers as the layer was made for."""
    channels = getattr(layer, "channels", 4)
    maps, phrase = jnp.cos(jnp.arange(2.0 * 5 * 4 * channels)), getattr(layer, "text_size", 6)
    return None, None, layer(maps.reshape(2, 5, 4, channels), jnp.ones((2, phrase)), key=KEY)


def knocked_off(method):
    """Of a table that is traced, as in any jitted call: what looks at numbers on the host is left out."""
    table = jax.random.normal(KEY, (40, 4))
    sampler = method.fit(KEY, table) if hasattr(method, "fit") else method
    return None, None, (sampler.sample(KEY, table), sampler)


def untrained_gan(activation):
    return dataclasses.replace(selection.untrained(KEY), activation=activation)


def frozen_in_part(method):
    weights = {name: jnp.cos(jnp.arange(32.0) + number).reshape(4, 8) for number, name in enumerate("vw")}
    state = method.advance(KEY, method.init(weights))
    loss = lambda model: jnp.mean((model["v"] - model["w"]) ** 2)  # noqa: E731
    return steps(lambda _, state: method.step(state, loss), state)


def convolved(network):
    return None, None, network(graphs.GRAPH)


def simulator(**settings):
    return meshes_drawn.simulator(SecondOrder(), graphs.MESH, 2, ready=True, **graphs.SECOND | settings)


def simulated(one):
    frames = jnp.asarray(graphs.SIMULATORS["second"][2], jnp.float32)
    return steps(lambda _, frames: one.step(graphs.MESH, frames, frames[-1] if one.scripted else None), frames)


def model(kind):
    return generative.made(kind, generative.MODELS[kind][0])


def of_kind(kind, **settings):
    return generative.made(kind, generative.MODELS[kind][0] | settings)


RULE = {"ties": ("random", "first"), "order": ("reverse", "random")}
BONUS = {"whiten": (True, False)}
DIM = {"dim": (4, 3)}
DIRECT = DIM | {"freq": (1, 2), "scale": ("max", "none"), "zero_mean": (False, True), "trainable": (False, True)}
# A method, what it computes, the values of its settings, and those that change no program here.
ROWS: dict[str, Any] = {
    name: (
        functools.partial(recovery.made, row),
        recovered,
        {"num_layers": (recovery.SOLVERS[row][1]["num_layers"], 1)},
    )
    for name, row in ((kind.__name__, row) for row, (kind, *_) in recovery.SOLVERS.items())
}
ROWS["HyperLISTA"][2]["max_count"] = (14, 3)
ROWS |= {
    "MonteCarlo": (
        lambda: pde.ROWS["monte-carlo"](0.1),
        solved,
        {"num_paths": (64, 32), "num_steps": (3, 2), "form": ("exponential", "linear")},
    ),
    "DeepBSDE": (
        lambda: pde.ROWS["deep-bsde"](0.1),
        solved,
        {"num_steps": (3, 2), "batch": (8, 4), "width": (4, 5), "depth": (2, 1), "num_updates": (4, 3)},
    ),
    "DeepBackward": (
        lambda: pde.ROWS["deep-backward"](0.1),
        solved,
        {"num_steps": (3, 2), "num_samples": (16, 12), "batch": (4, 3), "width": (4, 5), "depth": (2, 1)}
        | {"scheme": ("implicit", "explicit")},
    ),
    "TensorTrainSolver": (
        lambda: pde.ROWS["explicit"](0.1),
        solved,
        {"rank": (2, 1), "num_steps": (3, 2), "num_samples": (60, 50), "scheme": ("explicit", "implicit")}
        | {"use_terminal": (True, False), "num_test": (0, 4), "max_iterations": (100, 9)},
    ),
    "FGSM": (
        lambda: robustness.ATTACKS["fgsm"][0],
        attacked,
        {"loss": ("cross-entropy", "margin"), "targeted": (False, True)},
    ),
    "PGD": (
        lambda: robustness.pgd(),
        attacked,
        {"num_steps": (3, 2), "loss": ("cross-entropy", "margin"), "targeted": (False, True)}
        | {"random_start": (False, True)},
    ),
    "VR": (lambda: robustness.ATTACKS["vr"][0], attacked, {"num_copies": (4, 2)}),
    "TI": (lambda: robustness.ATTACKS["ti"][0], attacked, {"side": (3, 5)}),
    "InteractionReduced": (
        lambda: robustness.ATTACKS["ir"][0],
        attacked,
        {"num_subsets": (3, 2), "subset_size": (None, 2), "replacement": (False, True)}
        | {"penalty": ("signed", "positive", "absolute")},
    ),
    "ScalarQuantizer": (
        lambda: compression.QUANTIZERS["int4"],
        quantised,
        {"num_bits": (4, 3), "scheme": ("affine", "symmetric"), "granularity": ("tensor", "channel")}
        | {"observer": ("minmax", "mse"), "outputs": ("first", "last")},
    ),
    "ProductQuantizer": (
        lambda: compression.QUANTIZERS["product"],
        quantised,
        {"block": (4, 2), "num_centroids": (6, 5), "num_steps": (3, 2), "codebook_bits": (32, 8)}
        | {"outputs": ("first", "last")},
    ),
    "Adversarial": (
        lambda: generative.GAN,
        played(generative.Y),
        {"loss": ("hinge", "lsgan"), "num_discriminator_steps": (1, 2), "num_accumulated": (1, 2)},
        "num_latents",  # what its generator takes
    ),
    "Judge": (
        lambda: generative.JUDGE,
        played(generative.Y, -2 * generative.Y),
        {"loss": ("lsgan", "hinge"), "num_accumulated": (1, 2)},
    ),
    "AdversarialImitation": (lambda: generative.IMITATION, played(jnp.eye(3)[1:]), {"batch": (4, 3)}),
    "AdversarialIRL": (lambda: generative.INVERSE, played(jnp.array([[0, 1], [1, 1]])), {"batch": (4, 3)}),
    "LatentFlowRegressor": (lambda: model("latent-flow"), fitted, {"num_inner": (2, 3), "num_moves": (None, 2)}),
    "ConditionalDiffusion": (lambda: model("diffusion"), fitted, {"num_levels": (3, 2)}),
    "PersistentContrastiveDivergence": (
        lambda: sampling.TRAINER,
        contrasted,
        {"num_steps": (2, 1), "num_chains": (3, 2, None)},
    ),
    "SteinVariational": (
        lambda: sampling.PARTICLES["svgd"],
        moved,
        {"slices": ("none", "identity", "rotate"), "kernel": ("rbf", "imq")},
    ),
    "RND": (lambda: control.BONUSES["rnd"](), praised, BONUS),
    "AutoencoderBonus": (lambda: control.BONUSES["autoencoder"](), praised, BONUS),
    "DynamicsBonus": (lambda: control.BONUSES["dynamics"](), praised, BONUS),
    "CountBonus": (lambda: control.COUNTS, praised, {"num_cells": (8, 9)}),
    "BonusPPO": (lambda: control.TRAINING.learner, learned, {"num_epochs": (2, 1), "num_minibatches": (2, 4)}),
    "Training": (
        lambda: control.TRAINING,
        trained,
        {"num_environments": (4, 2), "num_steps": (6, 5), "num_warmup": (1, 2)},
    ),
    "PooledCritic": (
        lambda: PooledCritic(control.line(1, 3), num_kept=2),
        judged,
        {"num_kept": (2, 3), "loss": ("lsgan", "log")},
    ),
    "ContrastiveDivergence": (
        lambda: memory.DIVERGENCES["anew"],
        diverged,
        {"num_steps": (2, 1), "train_bias": (True, False)},
    ),
    "Acquisition": (lambda: active.ACQUISITION, acquired, {"kind": ("proportional", "softmax", "greedy")}),
    "RandomSelection": (lambda: architecture.RULES["random"], decided, RULE),
    "MagnitudeSelection": (lambda: architecture.RULES["magnitude"], decided, RULE | {"order": ("random", "reverse")}),
    "PerturbationSelection": (
        lambda: architecture.RULES["perturbation"],
        decided,
        RULE | {"order": ("random", "reverse"), "criterion": ("accuracy", "loss")},
    ),
    "DirectPred": (lambda: DirectPred(4), tuned, DIRECT | {"root": ("eigh", "newton-schulz")}),
    "DirectCopy": (lambda: DirectCopy(4), tuned, DIRECT, "root"),
    "DirectSet": (lambda: DirectSet(4), tuned, DIRECT | {"root": ("eigh", "newton-schulz")}),
    "Linear": (lambda: Linear(4), tuned, DIM | {"symmetric": (False, True)}),
    "TwoLayer": (lambda: TwoLayer(4), tuned, DIM | {"hidden": (8, 6)}),
    "Identity": (lambda: Identity(4), tuned, DIM),
    "Siamese": (
        lambda: Siamese(Linear(4), representation.SGD, momentum=None),
        embedded,
        {"loss": ("cosine", "l2"), "stop_gradient": (True, False)},
        "target_init",  # of networks that are given
    ),
    "DreamerV2": (control.dreamer, dreamt, {"horizon": (3, 2), "slow_every": (2, 3)}),
    "HistogramBinning": (
        lambda: uncertainty.CALIBRATORS["histogram"],
        calibrated,
        {"num_bins": (4, 3), "scheme": ("mass", "width")},
    ),
    "SplineCalibrator": (
        lambda: uncertainty.CALIBRATORS["spline"],
        calibrated,
        {"knots": (4, 5), "target": ("residual", "direct"), "ends": ("pinned", "free"), "monotone": (False, True)},
    ),
    "IterativeQuantization": (
        lambda: compression.ITERATIVE,
        frozen_in_part,
        {"centroid_gradient": ("sum", "mean")},
    ),
    "SecondOrderKnockoffs": (
        lambda: selection.FITTED["second-order"],
        knocked_off,
        {"method": ("mvr", "equi", "sdp")},
    ),
    "MixtureKnockoffs": (
        lambda: dataclasses.replace(selection.FITTED["mixture"], num_steps=3, num_restarts=2),
        knocked_off,
        {"num_components": (2, 3), "method": ("mvr", "equi", "sdp"), "num_restarts": (2, 1), "num_steps": (3, 2)},
    ),
    "KnockoffGAN": (
        lambda: dataclasses.replace(selection.FITTED["gan-trained"], num_steps=4, num_checkpoints=2),
        knocked_off,
        {"num_steps": (4, 2), "batch": (8, 6), "width": (None, 5), "depth": (1, 2), "activation": ("tanh", "relu")}
        | {"num_checkpoints": (2, 1), "validation": (0.0, 0.3)},
    ),
    "LocalizedTraining": (
        lambda: training.TRAINERS["hebbian"][0],
        in_blocks,
        {"normalise": ("l2", "l1", "max", None), "relative": (True, False)},
        *("monotone", "on_unsupported", "batch_statistics"),  # what is refused, on the host
    ),
}
# Those that are made of other numbers than their fields: the size of a network is drawn anew with it.
REMADE: dict[str, Any] = {
    "BestOfK": (
        lambda num_answers: of_kind("best-of-k", num_components=num_answers),
        fitted,
        {"num_answers": (4, 3)},
    ),
    "CVAE": (functools.partial(of_kind, "cvae"), fitted, {"num_latents": (2, 3)}),
    "ConditionalGAN": (functools.partial(of_kind, "cgan"), fitted, {"num_latents": (2, 3)}),
    "MixtureDensity": (functools.partial(of_kind, "mixture-density"), fitted, {"num_components": (4, 2)}),
    "Concatenation": (functools.partial(Concatenation, KEY, text_size=6), modulated, {"channels": (4, 3)}),
    "FiLM": (functools.partial(FiLM, KEY, text_size=6, hidden=5), modulated, {"channels": (4, 3)}),
    "LanguageFilter": (
        functools.partial(LanguageFilter, KEY, text_size=6),
        modulated,
        {"channels": (4, 3), "kernel_size": (1, 3)},
    ),
    "LanguageUNet": (
        functools.partial(LanguageUNet, KEY, 4, depth=2, width=4, kernel_size=3),
        modulated,
        {"text_size": (6, 4), "conditioning": ("both", "bottom-up", "top-down", "none")},
    ),
    "GVPConv": (
        functools.partial(GVPConv, KEY, (3, 2), (4, 3), (4, 1)),
        convolved,
        {"aggregate": ("sum", "mean")},
    ),
    "MeshSimulator": (
        simulator,
        simulated,
        {"spaces": ("both", "mesh", "world"), "max_world_edges": (12, 7), "scripted": (True, False)},
    ),
    "FittedKnockoffGAN": (untrained_gan, knocked_off, {"activation": ("tanh", "relu")}),
}
ROWS |= {
    name: (functools.partial(make, **{setting: values[0] for setting, values in options.items()}), compute, options)
    for name, (make, compute, options) in REMADE.items()
}
MADE = {name: make for name, (make, compute, *_) in ROWS.items() if compute is recovered}  # not of their fields
MADE |= {name: make for name, (make, *_) in REMADE.items()}
ALLOWED = {"LocalizedTraining": lambda row: row["normalise"] is not None or not row["relative"]}
# Those of the areas' own tables.
ELSEWHERE = set().union(
    *(area.TYPES[f"test_contract[{name}]"] for area in (sampling, gradients) for name in area.OPTIONS)
)


@pytest.mark.parametrize("name", ROWS)
def test_settings(name):
    make, compute, options, *unused = ROWS[name]
    with jax.enable_x64(compute is solved):
        made = make()
        assert type(made).__name__ == name
        check_settings(made, compute, options, make=MADE.get(name), allowed=ALLOWED.get(name, every_row), unused=unused)


def counts_and_words(kind):
    """The names of its static settings."""
    fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    kinds = {bool, int, str, "bool", "int", "str"}
    return {
        field.name
        for field in fields
        if field.metadata.get("static") and (field.type in kinds or get_origin(field.type) is Literal)
    }


def test_every_method_with_static_settings_has_a_row():
    """So that a new flag is tried with the others, and not alone."""
    elsewhere = {kind.__name__ for kind in ELSEWHERE}
    with_settings = set()
    for area in CONTRACTS:
        with_settings |= {name for name, kind in types_of(area)[0].items() if counts_and_words(kind)}
    assert sorted(with_settings - elsewhere - set(ROWS)) == []
    assert sorted((set(ROWS) | elsewhere) - {name for area in CONTRACTS for name in types_of(area)[0]}) == []
