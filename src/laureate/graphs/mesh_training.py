"""Training of a mesh simulator on trajectories: noise, normalisers, loss, one compiled loop."""

import warnings
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from jax.core import Tracer
from jax.flatten_util import ravel_pytree
from jaxtyping import Float, Int

from laureate._core import Status, require
from laureate.graphs.mesh import MeshNodes
from laureate.graphs.mesh_simulator import PREDICTED, MeshFeatures, MeshSimulator, MeshStatistics, free_nodes
from laureate.graphs.noise import TrainingNoise
from laureate.layers import Graph

__all__ = ["MeshTrainer", "TrainerInfo", "TrainerState", "fit_simulator", "windows_of"]


class TrainerState(NamedTuple):
    """What the next step needs.

    simulator: the network with its normalisers. optimiser: Optax's state for it.
    """

    simulator: MeshSimulator
    optimiser: Any


class TrainerInfo(NamedTuple):
    """How a step went. loss: before the update. cost: transitions looked at. status: DIVERGED: no update was made."""

    loss: Array
    cost: Array
    status: Array


class MeshTrainer(eqx.Module):
    """Trains a `MeshSimulator` on single transitions, disturbed by noise.

    With ỹ the normalised target of the disturbed frames (Pfaff et al. 2021; their code)::

        loss = mean over free nodes of Σ_components (network(x̃) − ỹ)²

    Normalisers see the noisy features and targets, padding and held targets apart. Gather before you train:
    ``gather`` is a step without an update, of which the authors take a thousand.

    optimiser: any Optax transformation.
    noise: a `TrainingNoise`.

    >>> import equinox as eqx, jax, numpy as np, optax
    >>> from laureate.graphs import FirstOrder, TrainingNoise, make_simulator, mesh_graph
    >>> graph = mesh_graph([[0.0, 0], [1, 0], [0, 1]], [[0, 1, 2]], kinds=[0, 0, 6])
    >>> simulator = make_simulator(jax.random.key(0), graph, FirstOrder(), 1, latent=8, num_steps=1)
    >>> trainer = MeshTrainer(optax.sgd(1e-3), TrainingNoise(0.01, gamma=1.0))
    >>> windows = np.arange(24.0).reshape(4, 2, 3, 1)  # four transitions of two frames
    >>> step = eqx.filter_jit(trainer.step)
    >>> loss, state, info = step(jax.random.key(3), graph, windows, trainer.init(simulator))
    >>> int(info.cost), int(info.status)
    (4, 0)
    """

    optimiser: optax.GradientTransformation = eqx.field(static=True)
    noise: TrainingNoise = TrainingNoise()

    def init(self, simulator: MeshSimulator) -> TrainerState:
        """The state before the first step."""
        return TrainerState(simulator, self.optimiser.init(eqx.filter(simulator.network, eqx.is_inexact_array)))

    def gather(
        self, key: Array, graph: Graph, windows: Float[Array, "b h n d"], state: TrainerState, nodes: Any = None
    ) -> TrainerState:
        """Normalisers with these windows, no update. The arguments are those of ``step``."""
        seen = self._seen(key, graph, windows, state.simulator, nodes)
        return state._replace(simulator=_gathered(graph, state.simulator, *seen))

    def step(
        self,
        key: Array,
        graph: Graph,
        windows: Float[Array, "b h n d"],
        state: TrainerState,
        nodes: MeshNodes | None = None,
    ) -> tuple[Array, TrainerState, TrainerInfo]:
        """One update.

        windows: b times as many frames as the integrator asks for and the one that follows.
        nodes: [b, ...] where every window has a mesh of its own with the same edges, kinds of nodes included; None: all
            have the graph's.
        """
        features, targets, free = self._seen(key, graph, windows, state.simulator, nodes)
        simulator = _gathered(graph, state.simulator, features, targets, free)
        wanted = simulator.statistics.target.apply(targets)

        def loss_of(network: Any) -> Array:
            now = eqx.tree_at(lambda s: s.network, simulator, network)
            found = jax.vmap(lambda f: now.normalised(graph, f))(features)
            error = (found - wanted).astype(jnp.promote_types(found.dtype, jnp.float32))  # sums in float32 at least
            squares = jnp.where(free[..., None], error**2, 0)
            return jnp.sum(squares) / jnp.maximum(jnp.sum(free), 1)

        loss, gradient = eqx.filter_value_and_grad(loss_of)(simulator.network)
        network = eqx.filter(simulator.network, eqx.is_inexact_array)
        updates, optimiser = self.optimiser.update(gradient, state.optimiser, network)
        finite = jnp.isfinite(loss) & jnp.all(jnp.isfinite(ravel_pytree(updates)[0]))
        # What is not finite is not learnt from: neither weights nor optimiser nor normalisers take a step.
        keep = lambda new, old: jax.tree.map(lambda a, b: jnp.where(finite, a, b), new, old)  # noqa: E731
        updates = jax.tree.map(lambda leaf: jnp.where(finite, leaf, 0), updates)
        after = eqx.tree_at(
            lambda s: (s.network, s.statistics),
            simulator,
            (eqx.apply_updates(simulator.network, updates), keep(simulator.statistics, state.simulator.statistics)),
        )
        status = jnp.where(finite, Status.OK, Status.DIVERGED)
        info = TrainerInfo(loss, jnp.asarray(len(windows)), status)
        return loss, TrainerState(after, keep(optimiser, state.optimiser)), info

    def _seen(
        self, key: Array, graph: Graph, windows: Array, simulator: MeshSimulator, nodes: Any
    ) -> tuple[MeshFeatures, Array, Array]:
        """Features and targets of the disturbed windows, and which nodes are predicted: [b, ...]."""

        def one(key: Array, window: Array, nodes: Any) -> tuple[MeshFeatures, Array, Array]:
            here = graph if nodes is None else eqx.tree_at(lambda g: g.nodes, graph, nodes)
            free = free_nodes(here)
            frames, following = self.noise.disturb(key, window[:-1], window[-1], free)
            # What is shown of the following state is that of held nodes, which have no noise.
            return simulator.features(here, frames, following), simulator.integrator.target(frames, following), free

        return jax.vmap(one)(jax.random.split(key, len(windows)), windows, nodes)


def _gathered(
    graph: Graph, simulator: MeshSimulator, features: MeshFeatures, targets: Array, free: Array
) -> MeshSimulator:
    s = simulator.statistics
    world = s.world
    if world is not None and features.world is not None and features.world_edges is not None:
        world = world.gather(features.world, features.world_edges.mask)
    gathered = MeshStatistics(
        s.node.gather(features.node, graph.node_mask),
        s.edge.gather(features.edge, graph.edge_mask),
        world,
        s.target.gather(targets, free),
    )
    return eqx.tree_at(lambda s: s.statistics, simulator, jax.lax.stop_gradient(gathered))


def windows_of(
    key: Array, trajectories: Float[Array, "m t n d"], length: int, num_windows: int
) -> tuple[Float[Array, "b h n d"], Int[Array, " b"]]:
    """``num_windows`` of ``length`` frames each, from anywhere in the trajectories, and which of these each is from."""
    places = jax.random.randint(key, (2, num_windows), 0, 2**30)
    which = places[0] % trajectories.shape[0]
    begin = places[1] % (trajectories.shape[1] - length + 1)
    return trajectories[which[:, None], begin[:, None] + jnp.arange(length)], which


def fit_simulator(
    key: Array,
    simulator: MeshSimulator,
    graph: Graph,
    trajectories: Float[Array, "m t n d"],
    *,
    trainer: MeshTrainer,
    num_steps: int,
    batch: int = 2,
    num_warmup: int = 50,
    nodes: MeshNodes | None = None,
) -> tuple[MeshSimulator, TrainerInfo]:
    """Train on trajectories: ``num_warmup`` batches for the normalisers, then ``num_steps`` updates, in one program.

    trajectories: [m, t, n, d], the states of the nodes of ``graph``. nodes: [m, ...] where every trajectory has a mesh
        of its own with the same edges. batch: transitions a step. Returns the simulator and the steps' infos.

    >>> import jax, numpy as np, optax
    >>> from laureate.graphs import FirstOrder, make_simulator, mesh_graph
    >>> graph = mesh_graph([[0.0, 0], [1, 0], [0, 1]], [[0, 1, 2]], kinds=[0, 0, 6])
    >>> cooling = 0.9 ** np.arange(8.0)[None, :, None, None] * np.array([1.0, 2.0, 0.0])[:, None]
    >>> simulator = make_simulator(jax.random.key(0), graph, FirstOrder(), 1, latent=8, num_steps=1)
    >>> simulator, info = fit_simulator(
    ...     jax.random.key(1), simulator, graph, cooling, trainer=MeshTrainer(optax.adam(0.01)), num_steps=100
    ... )
    >>> bool(info.loss[-1] < 0.5 * info.loss[0])
    True
    """
    length = simulator.integrator.num_frames + 1
    _check_trajectories(simulator, graph, trajectories, length, trainer.noise, nodes)
    for name, value in {"num_steps": num_steps, "batch": batch, "num_warmup": num_warmup}.items():
        require("fit_simulator", name, "an integer >= 1", value, lambda n: isinstance(n, int) and n >= 1)
    return _fit(key, simulator, graph, trajectories, trainer, num_steps, batch, num_warmup, nodes)


@eqx.filter_jit
def _fit(key, simulator, graph, trajectories, trainer, num_steps, batch, warmup, nodes):
    length = simulator.integrator.num_frames + 1
    begin, rest = eqx.partition(trainer.init(simulator), eqx.is_array)

    def drawn(index: Array) -> tuple[Array, Array, Any]:
        draw, disturb = jax.random.split(jax.random.fold_in(key, index))
        windows, which = windows_of(draw, trajectories, length, batch)
        return disturb, windows, jax.tree.map(lambda leaf: leaf[which], nodes)

    def gather(arrays: Any, index: Array) -> tuple[Any, None]:
        disturb, windows, own = drawn(index)
        state = trainer.gather(disturb, graph, windows, eqx.combine(arrays, rest), own)
        return eqx.filter(state, eqx.is_array), None

    def update(arrays: Any, index: Array) -> tuple[Any, TrainerInfo]:
        disturb, windows, own = drawn(index)
        _, state, info = trainer.step(disturb, graph, windows, eqx.combine(arrays, rest), own)
        return eqx.filter(state, eqx.is_array), info

    # Keys by the index of the batch, counted from the first that is gathered.
    arrays, _ = jax.lax.scan(gather, begin, jnp.arange(warmup))
    arrays, infos = jax.lax.scan(update, arrays, warmup + jnp.arange(num_steps))
    return eqx.combine(arrays, rest).simulator, infos


def _check_trajectories(
    simulator: MeshSimulator, graph: Graph, trajectories: Any, length: int, noise: TrainingNoise, nodes: Any
) -> None:
    shape = np.shape(trajectories)
    rule = f"[m, t, {graph.num_nodes}, d] with t >= {length}"
    remedy = "A transition has the integrator's frames and the one that follows."
    fine = len(shape) == 4 and shape[2] == graph.num_nodes and shape[1] >= length
    require("fit_simulator", "trajectories", rule, shape, lambda _: fine, remedy)
    numbers = [np.shape(leaf)[0] for leaf in jax.tree.leaves(nodes)]
    rule = f"None or one mesh for each of the {shape[0]} trajectories"
    require("fit_simulator", "nodes", rule, numbers, lambda many: all(n == shape[0] for n in many))
    if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((simulator, trajectories, graph, noise))):
        return
    values, mask = np.asarray(trajectories), np.asarray(graph.node_mask)
    broken = np.argwhere(~np.isfinite(values[:, :, mask]).all((2, 3)))
    remedy = "These (trajectory, frame) are not. Leave them out."
    require("fit_simulator", "trajectories", "finite", broken[:10].tolist(), lambda bad: not bad, remedy)
    free = mask & np.isin(np.asarray(graph.nodes.kind), PREDICTED)
    require("fit_simulator", "graph", "with nodes to predict", int(free.sum()), lambda n: n >= 1)
    frames = np.stack([values[:, i : shape[1] - length + 1 + i] for i in range(length)])
    changes = np.diff(frames, n=length - 1, axis=0)[0][:, :, free]  # x_{t+1} − x_t, or the second difference
    sigma, size = float(np.max(noise.sigma)), float(changes.std())
    if sigma > size > 0:
        warnings.warn(
            f"fit_simulator: noise of {sigma:.3g} is larger than the deviation of what is to be predicted, {size:.3g}: "
            "it hides it. A few times the error of one step is enough.",
            stacklevel=3,
        )
    spread = np.concatenate([values[:, :, free].std((0, 1, 2)), np.ptp(np.asarray(graph.nodes.extra), axis=0)])
    spread = spread[spread > 0]
    if spread.size and spread.max() / spread.min() > 1e6:
        warnings.warn(
            f"fit_simulator: features differ in size by {spread.max() / spread.min():.1g}. Are the units the same?",
            stacklevel=3,
        )
