"""A row for every public driver that takes ``checkpoint=``: it goes on where it was, and only with its own file."""

import importlib
import inspect
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from test_host_training import Counter, Idle, Ladder, Ladders, Sleeper

from laureate import architecture, control, decentralized, gradients, loops, pde, sampling
from laureate import representation as rep
from laureate.problems.pdes import HJBLog
from laureate.testing import check_resumable
from rooms import AREAS

KEY, OTHER = jax.random.key(0), jax.random.key(1)


def steps_of(owner, method):
    """A driver that is a method, as a function of the settings of its owner and its own."""
    settings = inspect.signature(owner).parameters
    own = [p for name, p in inspect.signature(getattr(owner, method)).parameters.items() if name != "self"]

    def run(**given):
        made = owner(**{name: given.pop(name) for name in settings if name in given})
        return getattr(made, method)(**given)

    named = [p.replace(kind=p.KEYWORD_ONLY) for p in (*settings.values(), *own)]
    run.__signature__, run.__qualname__ = inspect.Signature(named), f"{owner.__name__}.{method}"  # type: ignore
    return run


# --- methods that count, and add up the keys that they were given -----------------------------------------------------


class Walked(NamedTuple):
    position: jax.Array


class Told(NamedTuple):
    acceptance_rate: jax.Array
    cost: jax.Array
    status: jax.Array


class Walker(eqx.Module):
    """A kernel whose position is what its keys have drawn."""

    scale: float | jax.Array = 1.0

    def init(self, position):
        return Walked(position)

    def step(self, key, state):
        drawn = jax.random.bits(key) % 97
        position = state.position + self.scale * drawn
        return Walked(position), Told(drawn / 97, 1 + drawn, 0 * drawn.astype(int))


class Estimator(eqx.Module):
    """Its gradient is drawn, and what it carries counts; it ends where it is told the batch."""

    sigma: float | jax.Array = 1.0

    def init(self, key, theta):
        return jax.random.uniform(key)

    def step(self, key, theta, state, batches=None):
        loss = self.sigma * jax.random.uniform(key) + (0.0 if batches is None else batches)
        none = jnp.asarray(0)
        return theta - loss, state + 1, gradients.Info(loss, none + 3, none, none, none, none)


class Sum(eqx.Module):
    """A learner of correspondences: the sum of its batches' sizes, and of the domains."""

    rate: float = 1.0

    def init(self, x, y):
        return jnp.zeros(())

    def train(self, key, x, y, state, *, num_steps, batch):
        told = state + self.rate * (batch + jnp.sum(x.action) + jnp.sum(y.action) + jax.random.uniform(key))
        return told, told[None]


class Net(eqx.Module):
    """A supernet of one edge."""

    ops = (("skip", "scale"),)

    def apply(self, params, state, weights, x, *, key, train):
        return weights[0, 0] * x + weights[0, 1] * params * (x + jax.random.normal(key, x.shape)), state


class Doubled(Net):
    """Another of the same space."""

    factor: float = 2.0


class Tilted(Ladder):
    """Another environment of the same spaces."""

    slope: float = 1.0


class Taller(Ladders):
    """Another environment of the same spaces, on the host."""

    @property
    def settings(self):
        return {"name": "taller"}


def count(state, index):
    return state + 1, state * index


def count_twice(state, index):
    return state + 2, state * index


def in_chunks(step, state, num_steps, size, settings, adapt=True, steps_per_block=1, shapes=None, **more):
    """``loops.chunks`` of Python's numbers, with a file of its own settings."""

    def advance(state, done, number):
        rows = []
        for index in range(done, done + number):
            state, row = step(state, index)
            rows.append(row)
        return np.asarray(state, np.int32), np.asarray(rows, np.int32)

    path, progress = more.get("checkpoint"), more.get("progress")
    kept = None if path is None else loops.Checkpoint(path, {"step": step, "start": state, **settings})
    form = (lambda: jax.ShapeDtypeStruct((1,), np.int32)) if shapes is None else shapes
    told: dict[str, Any] = {
        "shapes": form,
        "progress": progress,
        "checkpoint": kept,
        "adapt": adapt,
        "steps_per_block": steps_per_block,
    }
    return loops.chunks(advance, np.asarray(state, np.int32), num_steps, size, **told)


in_chunks.__signature__ = inspect.Signature(  # type: ignore
    [p.replace(kind=p.KEYWORD_ONLY) for p in inspect.signature(in_chunks).parameters.values() if p.name != "more"]
)


def tabled(space, train_fn, num_values=1, settings=None, progress=None, checkpoint=None):
    """``architecture.tabular``, which calls its file a path; of all that it may train there are four."""
    table = architecture.tabular(
        space, train_fn, num_values=num_values, path=checkpoint, settings=settings, progress=progress
    )
    return table.values


def supernet(key, supernet, **given):
    """``architecture.train_supernet``, which hands on what it does not know."""
    trainer = architecture.SupernetTraining(supernet, SGD, alpha_optimiser=SGD)
    state = trainer.init(jnp.asarray(given.pop("params")), None)
    return architecture.train_supernet(key, trainer, state, **given)


supernet.__signature__ = inspect.Signature(  # type: ignore
    [
        p.replace(kind=p.KEYWORD_ONLY)
        for name, p in inspect.signature(architecture.train_supernet).parameters.items()
        if name not in ("training", "state", "more")
    ]
)


# --- the table --------------------------------------------------------------------------------------------------------

RNG = np.random.default_rng(0)
POINTS = jnp.asarray(RNG.normal(size=(24, 2)), jnp.float32)
CLASSES = jnp.asarray(np.arange(24) % 2)
LINEAR = eqx.nn.Linear(2, 2, key=KEY)
BEGUN = gradients.TrainState(jnp.asarray(1.0), jnp.asarray(0.5), optax.sgd(0.1).init(1.0), jnp.asarray(4), jnp.ones(()))
NODES = decentralized.DPSGD(decentralized.Gossip(decentralized.ring(4)), learning_rate=0.1)
NODES_BEGUN = decentralized.TrainState(jnp.ones(4), NODES.init(jnp.ones(4)), jnp.asarray(4))
X, Y = (control.Transitions(*jnp.asarray(RNG.uniform(-1, 1, (3, 4, 2)), jnp.float32)) for _ in range(2))
REPLAY = control.Replay(40, 4)


SGD = optax.sgd(0.1)
EDGES = [("skip", "conv3")] * 2


def worth(choice):
    return 0.5 + 0.1 * sum(choice)


def worse(choice):
    return 0.4 + 0.1 * sum(choice)


def pull(key, params, data):
    return params - jax.random.uniform(key) - (0.0 if data is None else data)


def push(key, params, data):
    return params + jax.random.uniform(key)


def twice(model, x):
    return jax.vmap(model)(2 * x)


def solver():
    """Its arrays: the rest of a solution is what it was given."""
    run = steps_of(pde.TensorTrainSolver, "solve")

    def solve(pde, **given):
        with jax.enable_x64(True):
            found = run(pde=HJBLog(pde), **given)
            return found.weights, found.cores, found.v0, found.info

    solve.__signature__, solve.__qualname__ = inspect.signature(run), run.__qualname__  # type: ignore
    return solve


def dreaming():
    """What is told: where a run goes on, the replay sees episodes begin anew."""
    run = steps_of(control.GymnasiumDreamerTraining, "run")
    rows = lambda **given: run(**given)[1]  # noqa: E731
    rows.__signature__, rows.__qualname__ = inspect.signature(run), run.__qualname__
    return rows


DREAMS = {"num_steps": 4, "num_gradients": 2, "batch": 3, "num_warmup": 1}
OTHER_DREAMS = {"num_steps": 5, "num_gradients": 1, "batch": 2, "num_warmup": 2}
ROWS: dict[str, Any] = {
    "loops.run": (
        loops.run,
        {"step": count, "state": jnp.asarray(3), "num_steps": 4},
        {
            "others": {"step": count_twice, "state": jnp.asarray(2), "first": 1, "every": 2, "settings": {"a": 1}}
            | {"record": lambda state: state},
            "free": {"chunk": 3},
            "names": {"state": "start", "settings": "step"},  # they stand for all the others
        },
    ),
    "loops.chunks": (
        in_chunks,
        {"step": count, "state": 3, "num_steps": 4, "size": 3, "settings": {}},
        {
            "others": {"step": count_twice, "state": 2, "settings": {"a": 1}},
            "free": {"size": 1, "adapt": False, "steps_per_block": 2},
            "apart": {"shapes"},
            "names": {"state": "start", "settings": "a"},
        },
    ),
    "architecture.tabular": (
        tabled,
        {"space": architecture.Space(EDGES), "train_fn": worth},
        {
            "others": {"space": architecture.Space([("skip", "conv5")] * 2), "train_fn": worse, "num_values": 2}
            | {"settings": {"a": 1}},
            "names": {"space": "ops", "settings": "train_fn"},
            "number": None,
        },
    ),
    "architecture.train_supernet": (
        supernet,
        {
            "key": KEY,
            "supernet": Net(),
            "params": 2.0,
            "data": (POINTS, CLASSES),
            "validation": (POINTS[1:], CLASSES[1:]),
        }
        | {"num_steps": 4, "batch_size": 3},
        {
            "others": {"key": OTHER, "supernet": Doubled(), "params": 1.0, "data": (2 * POINTS, CLASSES), "first": 1}
            | {"validation": (POINTS, CLASSES), "batch_size": 4, "choice": [1], "kept": [False]},
            "free": {"chunk": 3},
            "names": {"params": "start"},
        },
    ),
    "sampling.run": (
        sampling.run,
        {"key": KEY, "kernel": Walker(), "position": jnp.zeros((2, 3)), "num_steps": 4},
        {
            "others": {"key": OTHER, "kernel": Walker(2.0), "position": jnp.ones((2, 3)), "first_step": 1, "thin": 2}
            | {"collect": lambda state, info: info.cost},
            "free": {"chunk": 3},
            # A state is given instead of a position, and is what a position becomes; over a mesh nothing is kept.
            "apart": {"state", "mesh"},
            "names": {"position": "start", "first_step": "first", "thin": "every", "collect": "record"},
        },
    ),
    "gradients.train": (
        gradients.train,
        {"key": KEY, "estimator": Estimator(), "optimiser": optax.sgd(0.1), "theta": 0.3, "num_updates": 4},
        {
            "others": {"key": OTHER, "estimator": Estimator(2.0), "optimiser": optax.sgd(0.2), "theta": 0.4, "every": 2}
            | {"record": jnp.sin, "batches": lambda index: 1.0 * index, "start": BEGUN},
            "number": "num_updates",
        },
    ),
    "decentralized.train": (
        decentralized.train,
        {"key": KEY, "optimiser": NODES, "gradient": pull, "params": jnp.zeros(4), "num_rounds": 4},
        {
            "others": {"key": OTHER, "gradient": push, "params": jnp.ones(4), "data": jnp.ones(4), "every": 2}
            | {"optimiser": eqx.tree_at(lambda one: one.learning_rate, NODES, jnp.asarray(0.2))}
            | {"record": jnp.sin, "start": NODES_BEGUN},
            "apart": {"mesh"},
            "number": "num_rounds",
        },
    ),
    "representation.fine_tune": (
        rep.fine_tune,
        {"key": KEY, "model": LINEAR, "train": POINTS, "train_labels": CLASSES, "test": POINTS, "test_labels": CLASSES}
        | {"num_classes": 2, "optimiser": optax.adam(0.1), "num_steps": 4, "batch": 3},
        {
            "others": {"key": OTHER, "model": eqx.nn.Linear(2, 2, key=OTHER), "train": 2 * POINTS, "apply": twice}
            | {"train_labels": 1 - CLASSES, "num_classes": 3, "optimiser": optax.adam(0.2), "batch": 4},
            "free": {"test": 2 * POINTS, "test_labels": 1 - CLASSES},
            "names": {"model": "start", "num_classes": "start", "train_labels": "labels"},
            "number": "num_steps",
        },
    ),
    "pde.TensorTrainSolver.solve": (
        solver(),
        {"basis": pde.Polynomials(-6.0, 6.0, 1), "num_steps": 4, "num_samples": 50, "key": KEY, "pde": 3},
        {
            "others": {"basis": pde.Polynomials(-5.0, 6.0, 1), "num_samples": 60, "num_steps": 5, "key": OTHER}
            | {"rank": 2, "scheme": "explicit", "use_terminal": False, "regression": pde.SALSA(), "num_test": 2}
            | {"tolerance": 1e-3, "max_iterations": 9, "pde": 2, "control": lambda t, x: 0.0 * x},
            "number": None,
        },
    ),
    "control.Training.run": (
        steps_of(control.Training, "run"),
        {"environment": Ladder(), "learner": Idle(), "num_environments": 2, "num_steps": 3, "key": KEY}
        | {"num_updates": 4},
        {
            "others": {"environment": Tilted(), "learner": Idle(bonus=2), "num_environments": 3, "num_steps": 4}
            | {"num_warmup": 2, "key": OTHER},
            "names": {"key": "bits"},
            "number": "num_updates",
        },
    ),
    "control.DreamerTraining.run": (
        steps_of(control.DreamerTraining, "run"),
        {"environment": Ladder(), "learner": Sleeper(), "replay": REPLAY, "num_environments": 2, **DREAMS, "key": KEY}
        | {"num_updates": 4},
        {
            "others": {"environment": Tilted(), "learner": Sleeper(world=control.WorldModel(1, *[None] * 4))}
            | {"replay": control.Replay(36, 4), "num_environments": 1, **OTHER_DREAMS, "key": OTHER},
            "names": {"key": "bits"},
            "number": "num_updates",
        },
    ),
    "control.CorrespondenceTraining.run": (
        steps_of(control.CorrespondenceTraining, "run"),
        {"method": Sum(), "x": X, "y": Y, "batch": 4, "key": KEY, "num_steps": 4},
        {
            "others": {"method": Sum(2.0), "x": X._replace(action=2 * X.action), "y": Y._replace(action=2 * Y.action)}
            | {"batch": 3, "key": OTHER},
            "apart": {"turn"},  # 0 for methods without actions
            "names": {"key": "bits"},
        },
    ),
    "control.GymnasiumTraining.run": (
        steps_of(control.GymnasiumTraining, "run"),
        {"environments": Ladders(late=False), "learner": Counter(), "num_steps": 3, "num_warmup": 0, "key": KEY}
        | {"num_updates": 4},
        {
            "others": {"environments": Taller(late=False), "learner": Counter(num_minibatches=2), "num_steps": 4}
            | {"num_warmup": 1, "key": OTHER, "seed": 1},
            "number": "num_updates",
        },
    ),
    "control.GymnasiumDreamerTraining.run": (
        dreaming(),
        {"environments": Ladders(late=True), "learner": Sleeper(), "replay": REPLAY, **DREAMS, "key": KEY}
        | {"num_updates": 4},
        {
            "others": {"environments": Taller(late=True), "learner": Sleeper(world=control.WorldModel(1, *[None] * 4))}
            | {"replay": control.Replay(36, 4), **OTHER_DREAMS, "key": OTHER, "seed": 1},
            "number": "num_updates",
        },
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_it_goes_on_where_it_was_and_only_with_its_own_file(name):
    run, given, more = ROWS[name]
    check_resumable(run, given, **more)


def test_every_public_driver_with_a_file_has_a_row():
    found = set()
    for package in (*AREAS, "loops"):
        public = importlib.import_module(f"laureate.{package}")
        for name in public.__all__:
            owner = getattr(public, name)
            members = inspect.getmembers(owner, inspect.isfunction) if inspect.isclass(owner) else [("", owner)]
            for method, function in members:
                if inspect.isfunction(function) and not method.startswith("_") and keeps(function):
                    found.add(".".join(filter(None, (package, name, method))))
    assert found == set(ROWS)


def keeps(function):
    """Whether it takes a file, under this name or another, or hands one on."""
    told = "``checkpoint``" in (function.__doc__ or "") or "Checkpoint" in function.__code__.co_names
    return told or "checkpoint" in inspect.signature(function).parameters
