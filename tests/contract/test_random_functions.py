"""A row for every public function, and every method without a contract, that takes a key: no key is used twice."""

import importlib
import inspect
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from laureate import (
    architecture,
    compression,
    control,
    decentralized,
    generative,
    gradients,
    graphs,
    grounding,
    interpretation,
    memory,
    multitask,
    recovery,
    sampling,
    training,
)
from laureate import representation as rep
from laureate import robustness as rob
from laureate import selection as sel
from laureate.problems.environments import Chain
from laureate.testing import check_keys, check_random_function
from rooms import AREAS

QUICK: dict[str, Any] = {"compiler_options": {"xla_backend_optimization_level": 0}}
RNG = np.random.default_rng(0)
X = jnp.asarray(RNG.normal(size=(12, 4)), jnp.float32)
LABELS = jnp.asarray(np.arange(12) % 2)
SGD = optax.sgd(0.1)
LINEAR = {"w": jnp.asarray(RNG.normal(size=(4, 8)), jnp.float32)}
PQ = compression.ProductQuantizer(4, 3, 2)
MACHINE = memory.BoltzmannMachine(0.3 * X[:4, :2], jnp.zeros(4), jnp.zeros(2))
SPINS = jnp.asarray(np.sign(X))
D = jnp.asarray(np.asarray(X)[:6].T / np.linalg.norm(np.asarray(X)[:6], axis=1))
BLOCKS = [training.Dense(block) for block in jnp.asarray(RNG.normal(size=(2, 4, 4)), jnp.float32)]
RANDOM = training.LocalizedTraining(training.Fixed(1), training.RandomDirection(), SGD, local_rate=0.1)


CHOICES = (
    lambda key, logits: gradients.gumbel_rao(key, logits, 0.5, 3, chunk=2),
    gradients.st_gumbel_softmax,
    gradients.straight_through,
    gradients.zgr,
)


class Net:
    ops = (("skip", "scale"),)

    def apply(self, params, state, weights, x, *, key, train):
        noise = 0.1 * jax.random.normal(key, x.shape) if train else 0.0
        return weights[0, 0] * x + weights[0, 1] * params * (x + noise), state


class Walk(eqx.Module):
    def init(self, key, theta):
        return theta + jax.random.normal(key)

    def step(self, key, theta, state):
        state = 0.5 * state + theta * jax.random.normal(key)
        return state, state**2


class Coins(eqx.Module):
    biases: jax.Array

    def __call__(self, x):
        return self.biases @ x


class Guess(eqx.Module):
    """Logits of images, with noise."""

    scale: jax.Array

    def __call__(self, images, words, lengths, *, key):
        seen = images.mean(-1)
        return [self.scale * seen + jax.random.normal(key, seen.shape)]


class Points:
    """Two losses of a point that is drawn anew."""

    def batch(self, key):
        return jax.random.normal(key, (2, 3))

    def losses(self, params, batch):
        return jnp.sum((params - batch) ** 2, axis=1)


def referred():
    masks = np.asarray(X).reshape(3, 4, 4) > 0
    return grounding.Referred(np.asarray(X).reshape(3, 4, 4, 1), np.zeros((3, 1), int), np.ones(3, int), masks, masks)


def triangle():
    return graphs.mesh_graph(np.array([[0.0, 0], [1, 0], [0, 1]]), [[0, 1, 2]], kinds=[3, 0, 0])


def supernet():
    return architecture.SupernetTraining(Net(), SGD, alpha_optimiser=SGD)


def coins(energy):
    return sampling.Gibbs(energy, sampling.Binary())


def persistent():
    more = {"sample_start": lambda key: jax.random.bernoulli(key, 0.5, (4,)), "restart": 0.5}
    return sampling.PersistentContrastiveDivergence(coins, SGD, num_steps=2, num_chains=4, **more)


def game(masks):
    return masks[:, 0] * masks[:, 1] + jnp.sin(masks @ jnp.arange(1.0, 5.0))


def network(**more):
    return decentralized.Network(compute=1.0, straggle=0.4, slowdown=2.0, loss=0.3, timeout=1.0, **more)


def attack():
    return rob.PGD(lambda x: x @ D[:, :2], rob.Linf(0.1), num_steps=2, random_start=True)


def estimator():
    return gradients.TruncatedBackprop(Walk(), truncation=2, horizon=4, num_workers=2)


def views():
    return rep.Compose(rep.Shift(1), rep.Flip(), rep.Noise(0.1), rep.Cutout(2), rep.Brightness(0.2), rep.Rescale(0.8))


# From a key to arrays; jitted where that is allowed, for outside every draw would be a program of its own.
CALLS = {
    "architecture.SupernetTraining": lambda key: supernet().darts_step(
        key, supernet().init(jnp.asarray(2.0), None), (X, LABELS), (X[::-1], LABELS)
    ),
    "architecture.train_supernet": lambda key: architecture.train_supernet(
        key, supernet(), supernet().init(jnp.asarray(2.0), None), (X, LABELS), (X[::-1], LABELS), 3, 4
    ),
    "architecture.choice_noise": lambda key: architecture.choice_noise(
        key, X.T, size=5, criterion="loss", num_resamples=40
    ),
    "compression.kmeans": lambda key: compression.kmeans(key, X, 3, 2),
    "compression.quant_noise": lambda key: compression.quant_noise(LINEAR, compression.ScalarQuantizer(2), 0.5, key),
    "compression.refresh": lambda key: compression.refresh({**LINEAR, "v": X}, PQ, key),
    "compression.freeze": lambda key: compression.freeze({**LINEAR, "v": X}, PQ, key),
    "control.make": lambda key: [
        make(one)
        for make, one in zip(
            (
                lambda key: control.make_encoded_actor_critic(key, jnp.sin, jnp.zeros(2), 2, width=2),
                lambda key: control.make_dreamer(key, (64, 64, 1), control.OneHot(1, 2), memory=2, width=2, depth=1),
            ),
            jax.random.split(key),
            strict=True,
        )
    ],
    "control.make_perceptrons": lambda key: control.make_perceptrons(
        key, control.Layers((2, 3, 2)), control.Layers((2, 3, 2))
    ),
    "control.record": lambda key: control.record(
        key, Chain(4, 5), lambda key, seen, memory: (jax.random.randint(key, (), 0, 2), memory), 12
    ),
    "decentralized.Network": lambda key: network().rounds(key, decentralized.ring(4), 1.0, 3),
    "decentralized.Network.all_reduces": lambda key: network().all_reduces(key, 4, 1.0, 3),
    "decentralized.train": lambda key: decentralized.train(
        key,
        decentralized.DPSGD(decentralized.Gossip(decentralized.ring(4)), 0.1),
        lambda key, x, target: x - target * jax.random.normal(key),
        jnp.zeros(4),
        3,
        data=jnp.arange(4.0),
    )[0],
    "generative.orthogonal": lambda key: generative.orthogonal(key, (3, 2), (2, 2)),
    "generative.truncated_normal": lambda key: generative.truncated_normal(key, (3,), 0.5),
    "gradients.categorical": lambda key: tuple(
        jax.grad(lambda logits, draw=draw, own=own: draw(own, logits)[0, 1])(X[:3])
        for draw, own in zip(CHOICES, jax.random.split(key, len(CHOICES)), strict=True)
    ),
    "gradients.conditional_gumbel": lambda key: gradients.conditional_gumbel(key, X, LABELS, 2),
    "gradients.rloo": lambda key: gradients.rloo(key, lambda z: z[0, 1] + z[1, 2], X, 3),
    "gradients.rloo_loss": lambda key: gradients.rloo_loss(key, lambda z: z[:, 1], X, 3),
    "gradients.full_unroll_loss": lambda key: gradients.full_unroll_loss(key, Walk(), 0.5, 3),
    "gradients.train": lambda key: gradients.train(
        key, estimator(), SGD, 0.5, 3, batches=None, record=lambda theta: theta
    )[0],
    "graphs.make_simulator": lambda key: graphs.make_simulator(
        key, triangle(), graphs.SecondOrder(), 2, latent=2, num_steps=2, world_radius=1.6, max_world_edges=4
    ),
    "graphs.windows_of": lambda key: graphs.windows_of(key, X.reshape(2, 3, 2, 4), 2, 3),
    "grounding.train": lambda key: grounding.train(key, Guess(jnp.ones(())), referred(), 2, batch=2),
    "interpretation.permutation_null": lambda key: (
        interpretation.permutation_null(key, [X, jnp.sin(X), X[:, :2]], 0, num_permutations=3).null
    ),
    "interpretation.random_order": lambda key: interpretation.random_order(key, 5),
    "memory.ContrastiveDivergence": lambda key: memory.ContrastiveDivergence(SGD, num_steps=2).update(
        key, memory.ContrastiveDivergence(SGD, num_steps=2).init(MACHINE), SPINS
    ),
    "memory.annealed_log_partition": lambda key: memory.annealed_log_partition(key, MACHINE, 3, 4),
    "memory.random_weights": lambda key: memory.random_weights(key, 4, 2, 1.0),
    # All want to differ from all: who moves depends on the order, and a second sweep, of another, finds nothing to do.
    "memory.recall": lambda key: memory.recall(
        key, memory.HopfieldNetwork(-jnp.ones((8, 8)), jnp.zeros(8)), jnp.ones(8)
    ),
    "memory.reverse_patterns": lambda key: memory.reverse_patterns(key, MACHINE, num_steps=2),
    "memory.train": lambda key: memory.train(
        key,
        memory.ContrastiveDivergence(SGD),
        memory.ContrastiveDivergence(SGD).init(MACHINE),
        SPINS,
        num_updates=3,
        batch_size=4,
    ),
    "multitask.train": lambda key: multitask.train(
        key, Points(), optax.chain(multitask.uniform(), SGD), jnp.zeros(3), 2
    ),
    "recovery.BernoulliGaussian": lambda key: recovery.BernoulliGaussian(8, density=0.5)(key, 3),
    "recovery.add_noise": lambda key: recovery.add_noise(key, X, 10.0),
    "recovery.perturb": lambda key: recovery.perturb(key, D, 0.1),
    "recovery.learn_dictionary": lambda key: recovery.learn_dictionary(key, X, 3, num_rounds=2, num_steps=2),
    # One round: each begins its power method at the same vector.
    "recovery.learn_filters": lambda key: recovery.learn_filters(
        key, jnp.tile(X[:2, :, None], (1, 1, 4)) + X[:4], 2, 3, num_rounds=1, num_steps=2
    ),
    "recovery.fit": lambda key: recovery.fit(
        key,
        recovery.ISTA(D, num_layers=1, lipschitz_constant=4.0),
        recovery.BernoulliGaussian(6, density=0.5),
        optimiser=SGD,
        num_steps=2,
        batch=2,
        snr=10.0,
        redraw=lambda key, solver: eqx.tree_at(lambda s: s.penalty, solver, jax.random.uniform(key)),
        num_dictionaries=2,
    ),
    "recovery.fit_encoder": lambda key: recovery.fit_encoder(
        key, recovery.UnrolledCoherence(D, num_steps=1), D, 0.1, optimiser=SGD, num_steps=2, batch=2
    ),
    # One example a step: which ones are drawn is seen in the accuracy.
    "representation.fine_tune": lambda key: rep.fine_tune(
        key, LINEAR["w"], X, LABELS, X, LABELS, 2, optimiser=SGD, num_steps=2, batch=1, apply=lambda w, x: x @ w
    ),
    "representation.two_views": lambda key: rep.two_views(key, views(), jnp.tile(X[:2, :, None, None], (1, 1, 4, 1))),
    "representation.Compose": lambda key: views()(key, jnp.tile(X[:4, :, None], (1, 1, 1))),
    "representation.times": lambda key: rep.Compose(rep.TimeShift(2), rep.TimeMask(2))(key, X),
    "robustness.estimate_interaction": lambda key: rob.estimate_interaction(key, game, 4, "shapley", num_samples=3),
    "robustness.estimate_by_subsets": lambda key: rob.estimate_by_subsets(key, game, 4, size=2, num_samples=3),
    "robustness.generate": lambda key: rob.generate(key, attack(), jax.nn.sigmoid(X), LABELS),
    "robustness.L2": lambda key: rob.L2(0.1).draw(key, X),
    # Of six chains four are chosen, some of which begin anew.
    "sampling.PersistentContrastiveDivergence": lambda key: persistent().update(
        key, persistent().init(Coins(X[0]), X[:6] > 0), X > 0
    ),
    "sampling.annealed_importance_sampling": lambda key: sampling.annealed_importance_sampling(
        key,
        coins(Coins(X[0])),
        lambda x: 0.0 * jnp.sum(x) - 4 * jnp.log(2.0),
        lambda key: jax.random.bernoulli(key, 0.5, (4,)),
        jnp.linspace(0, 1, 3),
        num_chains=3,
        steps_per_beta=2,
    ),
    "sampling.random_slices": lambda key: sampling.random_slices(key, 4, 3),
    "sampling.stein_mean_test": lambda key: sampling.stein_mean_test(key, X, -X, num_bootstrap=19).null,
    "sampling.stein_test": lambda key: (
        sampling.stein_test(key, X, -X, split=0.84, num_steps=2, batch=4, num_bootstrap=19).null
    ),
    "selection.mine_networks": lambda key: sel.mine_networks(key, 3),
    "training.train": lambda key: training.train(
        key, RANDOM, RANDOM.init(jax.random.key(0), BLOCKS), X, LABELS, batch=4, num_epochs=2
    ),
    "training.local_block": lambda key: training.local_block(
        key, jnp.asarray(0), training.RandomDirection(), BLOCKS[0], X
    ),
}
# Work on the host: outside jit.
EAGER = {"robustness.generate"}
# Loops over steps of which another row has one.
SLOW = {"recovery.learn_filters", "gradients.train", "architecture.train_supernet"}
SLOW |= {"control.make", "control.make_perceptrons", "graphs.make_simulator"}  # every trial makes them
SLOW |= {"compression.freeze", "representation.Compose", "robustness.generate"}
# Both rounds measure the filters by power iterations from one and the same start.
SHARED = {"recovery.learn_filters": 2}
# Rows of several.
TOGETHER = {
    "control.make": ("make_dreamer", "make_encoded_actor_critic"),
    "gradients.categorical": ("gumbel_rao", "st_gumbel_softmax", "straight_through", "zgr"),
    "representation.times": ("TimeMask", "TimeShift"),
}
# Take a key, and have a contract or say here why not.
NETWORKS = ("make_actor_critic", "make_autoencoder", "make_dynamics", "make_rnd", "minibatches")
REASONS = {
    "active": {"plackett_luce": "tests/contract/test_active_contract.py"},
    "architecture": {"select": "the contract", "check_supernet": "a check"},
    "compression": {"quantize": "refresh and freeze, on the host"},
    "control": {
        **dict.fromkeys(NETWORKS, "tests/contract/test_control_contract.py"),
        **dict.fromkeys(
            ("make_cycle_gan", "make_dynamics_cycle", "make_patch_encoder"), "tests/contract/test_control_cycle.py"
        ),
        **dict.fromkeys(("make_pixels", "make_rssm", "make_world_model"), "inside make_dreamer"),
        **dict.fromkeys(("imagine", "world_model_loss"), "inside the row of DreamerV2: test_control_contract.py"),
        "record_gymnasium": "the keys of `record`, with Gymnasium: tests/control/test_episodes.py",
    },
    "generative": {
        **dict.fromkeys(("make_biggan", "make_encoder", "make_model", "perceptrons"), "weights, inside the contract"),
        "truncation_curve": "the same keys for every threshold, on purpose",
    },
    "gradients": {"estimate": "splits its key for an estimator that has a row"},
    "graphs": {"fit_simulator": "tests/graphs/test_mesh_training.py"},
    "grounding": {"fit": "calls train"},
    "imbalance": {"balanced_indices": "tests/contract/test_imbalance_contract.py"},
    "interpretation": {
        "rank_neurons": "hands its key to random_order",
        "record": "refuses a model that answers otherwise with another key",
    },
    "multitask": {
        **dict.fromkeys(("gradvac", "pcgrad", "visiting_order"), "tests/contract/test_multitask_contract.py"),
        "tune": "calls train with one key for all rates, on purpose",
    },
    "pde": {"extrapolate": "two runs of a row", "simulate": "inside every row"},
    "sampling": {"run": "the contract", **dict.fromkeys(("fit_slices", "max_sliced_ksd"), "inside stein_test")},
    "selection": {
        "blind_list": "shuffles names on the host",
        "check_antisymmetry": "a check",
        "validity_report": "tests/selection/test_selection_validity.py",
    },
    "training": {"fit": "calls train once an epoch"},
}


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n in SLOW)) for n in CALLS])
def test_keys(name):
    function = CALLS[name] if name in EAGER else eqx.filter_jit(CALLS[name], **QUICK)
    check_random_function(function, name=name, shared_keys=SHARED.get(name, 1))


THOROUGH = (Path(__file__).parents[1] / "thorough.txt").read_text(encoding="utf-8").splitlines()
LISTED = {name for name in CALLS if f"tests/contract/test_random_functions.py::test_keys[{name}]" in THOROUGH}


@pytest.mark.parametrize("name", sorted((SLOW | LISTED) - EAGER))
def test_keys_alone(name):
    """Of rows that `make test` leaves out it looks at the keys, which takes little time."""
    check_keys(CALLS[name], name=name, shared_keys=SHARED.get(name, 1))


def keyed(area):
    """Public functions that take a key, and classes of which a method does."""
    module = importlib.import_module(f"laureate.{area}")
    public = {name: getattr(module, name) for name in module.__all__}
    functions = {name: one for name, one in public.items() if inspect.isfunction(one)}
    classes = {name: one for name, one in public.items() if inspect.isclass(one)}
    members = {name: inspect.getmembers(one, inspect.isfunction) for name, one in classes.items()}
    methods = {f"{name}.{method}": one for name, found in members.items() for method, one in found}
    takes = lambda named: {name for name, one in named.items() if "key" in inspect.signature(one).parameters}  # noqa: E731
    return takes(functions), takes(methods)


@pytest.mark.parametrize("area", AREAS)
def test_every_function_with_a_key_has_a_row_or_a_reason(area):
    functions, methods = keyed(area)
    named = [name.split(".", 1)[1] for name in CALLS if name.startswith(f"{area}.") and name not in TOGETHER]
    rows = {*named, *(name for row, names in TOGETHER.items() if row.startswith(f"{area}.") for name in names)}
    reasons = REASONS.get(area, {})
    lacking = sorted(functions - rows - set(reasons))
    assert not lacking, f"no row in CALLS and no reason in REASONS for {area}: {lacking}"
    stale = sorted(name for name in reasons if name not in functions or name in rows)
    assert not stale, f"{stale} of REASONS[{area!r}] have a row or take no key"
    unknown = sorted(rows - functions - methods - {method.split(".")[0] for method in methods})
    assert not unknown, f"rows of {area} named after nothing public that takes a key: {unknown}"


def test_rows_of_several_are_rows():
    assert set(TOGETHER) <= set(CALLS)
