"""What is wrong is said at once, by name, with the remedy."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from laureate._core import Status
from laureate.decentralized import (
    D2,
    DPSGD,
    AllReduceSGD,
    ChocoSGD,
    DeFacto,
    DeTAG,
    Gossip,
    GradientTracking,
    Network,
    TopK,
    Topology,
    complete,
    connect,
    exponential,
    from_graph,
    hypercube,
    random,
    ring,
    star,
    torus,
    train,
)
from laureate.problems.peers import ImagesOverNodes, Quadratics

GOSSIP = Gossip(ring(4), kappa=0.5)
PARAMS = {"a": jnp.zeros((4, 2)), "b": jnp.zeros(4)}
MAKE = {
    DeTAG: lambda rate=0.1: DeTAG(GOSSIP, rate, 2),
    GradientTracking: lambda rate=0.1: GradientTracking(GOSSIP, rate),
    D2: lambda rate=0.1: D2(GOSSIP, rate),
    DPSGD: lambda rate=0.1: DPSGD(GOSSIP, rate),
    ChocoSGD: lambda rate=0.1: ChocoSGD(GOSSIP, rate, TopK(0.5), 0.5),
    DeFacto: lambda rate=0.1: DeFacto(GOSSIP, rate),
    AllReduceSGD: lambda rate=0.1: AllReduceSGD(GOSSIP, rate),
}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: from_graph([(0, 1), (2, 3)]), r"must connect all nodes; got 2 components: \{0, 1\}; \{2, 3\}"),
        (lambda: Topology(3, ((0, 1), (0, 1), (1, 2))), r"distinct pairs \(i, j\)"),
        (lambda: Topology(2, ((0, 2),)), r"0 <= i < j < 2; got \(0, 2\)"),
        (lambda: ring(0), r"ring.size must be an integer >= 1; got 0"),
        (lambda: torus(0, 3), r"torus.rows must be an integer >= 1"),
        (lambda: hypercube(-1), r"hypercube.dimension must be an integer >= 0"),
        (lambda: random(30, 0.001), r"random.probability must be large enough for a connected graph of 30"),
        (lambda: random(30, 0.0), r"random.probability must be in \(0, 1\]"),
        (lambda: from_graph(np.array([[0, 1], [0, 0]])), r"must be symmetric; got an edge 0 → 1"),
        (lambda: ring(4).without([(0, 2)]), r"edges of the graph; got \[\(0, 2\)\]"),
        (lambda: from_graph([(0, 1)]).without([(0, 1)]), r"got 2 components"),
    ],
)
def test_graphs(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("make", [ring, exponential, complete, star, random])
def test_a_graph_of_no_whole_number_of_nodes_is_refused_by_its_size(make):
    more = (0.5,) if make is random else ()
    for size in (0, -3, 2.5, True):
        with pytest.raises(ValueError, match=rf"^{make.__name__}.size must be an integer >= 1; got {size}"):
            make(size, *more)
    assert make(1, *more).degrees.tolist() == [0]


def _matrix(**entries):
    matrix = np.full((4, 4), 0.25)
    for place, value in entries.items():
        matrix[int(place[1]), int(place[2])] = value
    return matrix


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones((3, 3)) / 3, r"a 4 × 4 matrix; got \(3, 3\)"),
        (_matrix(_01=0.5, _00=0.0), r"symmetric; got a violation of 0.25 at \(0, 1\)"),
        (_matrix(_00=0.5), r"stochastic \(every row sums to 1\); got a violation of 0.25 at 0"),
        (_matrix(), r"0 where the topology has no edge; got a violation of 0.25 at \(0, 2\)"),
        (_matrix(_00=np.nan), r"finite"),
        ("fastest", r"a matrix or one of \('metropolis', 'constant', 'optimal'\); got 'fastest'"),
        (np.eye(4), r"second eigenvalue must be < 1; got 1.0. The weights cut the graph"),
        (np.roll(np.eye(4), 1, 0) / 2 + np.roll(np.eye(4), -1, 0) / 2, r"> −1; got -1.* Use kappa=0.5"),
    ],
)
def test_matrices(weights, message):
    with pytest.raises(ValueError, match=message):
        Gossip(ring(4), weights=weights)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Gossip("ring"), r"Gossip.topology must be a Topology"),
        (lambda: Gossip(ring(4), method="fast"), r"Gossip.method must be one of"),
        (lambda: Gossip(ring(4), kappa=0.0), r"Gossip.kappa must be in \(0, 1\]; got 0.0"),
        (lambda: Gossip(ring(4), kappa=1.5), r"Gossip.kappa must be in \(0, 1\]"),
        (lambda: GOSSIP.average(jnp.zeros(4), -1), r"Gossip.num_rounds must be >= 0"),
        (
            lambda: D2(Gossip(ring(4)), 0.1),
            r"smallest eigenvalue must be > −1/3; got -0.33.* Use Gossip\(..., kappa=0.5\)",
        ),
        (lambda: DeTAG(GOSSIP, 0.1, 0), r"DeTAG.num_rounds must be an integer >= 1; got 0"),
        (lambda: DeTAG(GOSSIP, 0.1, 1.5), r"DeTAG.num_rounds must be an integer >= 1; got 1.5"),
        (lambda: DeTAG(Gossip(ring(64), method="accelerated"), 0.1, 1), r"factor in a phase must be < 1; got 1.4"),
        (lambda: ChocoSGD(GOSSIP, 0.1, TopK(0.5), 2.0), r"ChocoSGD.gamma must be in \(0, 1\]"),
        (lambda: ChocoSGD(GOSSIP, 0.1, None, 1.0), r"ChocoSGD.compressor must be something with encode and decode"),
        (lambda: TopK(0.0), r"TopK.fraction must be in \(0, 1\]"),
        (lambda: DPSGD(ring(4), 0.1), r"DPSGD.gossip must be a Gossip"),
        (lambda: Network(bandwidth=0.0), r"Network.bandwidth must be > 0"),
        (lambda: Network(loss=1.0), r"Network.loss must be in \[0, 1\)"),
        (lambda: Network(slowdown=0.5), r"Network.slowdown must be >= 1"),
        (lambda: Quadratics(nodes=0), r"Quadratics.nodes must be >= 1"),
        (lambda: ImagesOverNodes(per_node=5000), r"per_node must be at most 224 \(1797 images for 8 nodes\)"),
        (lambda: ImagesOverNodes(model="deep"), r"model must be 'linear' or 'conv'"),
        (lambda: connect(), r"connect needs LAUREATE_COORDINATOR, LAUREATE_NODES, LAUREATE_NODE"),
    ],
)
def test_settings(make, message, monkeypatch):
    for name in ("LAUREATE_COORDINATOR", "LAUREATE_NODES", "LAUREATE_NODE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match=message):
        make()


def test_rounds_too_few_are_refused_where_something_is_traced_as_well():
    """There what was made before is still known, and enough rounds are let through."""
    sound, (few, many) = DeTAG(GOSSIP, 0.1, 1), (Gossip(ring(size), method="accelerated") for size in (3, 64))
    assert jax.eval_shape(lambda: dataclasses.replace(sound, gossip=few).learning_rate).shape == ()
    with pytest.raises(ValueError, match=r"factor in a phase must be < 1; got 1.4"):
        jax.eval_shape(lambda: dataclasses.replace(sound, gossip=many).learning_rate)


@pytest.mark.parametrize("kind", MAKE)
def test_every_optimiser_refuses_the_same(kind):
    name, optimiser = kind.__name__, MAKE[kind]()
    for rate in (0.0, -1.0, np.nan):
        with pytest.raises(ValueError, match=rf"{name}.learning_rate must be > 0 and finite"):
            MAKE[kind](rate)
    with pytest.raises(
        ValueError, match=rf"{name}: leaf \['b'\] must have a leading axis of 4 nodes; got shape \(3,\)"
    ):
        optimiser.init({"a": jnp.zeros((4, 2)), "b": jnp.zeros(3)})
    with pytest.raises(ValueError, match=r"leading axis of 4 nodes; got shape \(\)"):
        optimiser.init(jnp.zeros(()))
    with pytest.raises(TypeError, match=r"leaf \['n'\] has dtype int32; only floating leaves can be averaged"):
        optimiser.init({"n": jnp.zeros((4, 2), jnp.int32)})
    state = optimiser.init(PARAMS)
    with pytest.raises(ValueError, match="needs the parameters"):
        optimiser.update(PARAMS, state)
    with pytest.raises(ValueError, match="must have the parameters' tree"):
        optimiser.update({"a": PARAMS["a"]}, state, PARAMS)
    with pytest.raises(ValueError, match=r"gradient of \['a'\] must have shape \(4, 2\); got \(4, 3\)"):
        optimiser.update({"a": jnp.zeros((4, 3)), "b": PARAMS["b"]}, state, PARAMS)
    with pytest.raises(ValueError, match=r"axis 'nodes' must be as long as the topology has nodes \(4\); got 3"):
        jax.vmap(optimiser.over("nodes").init, axis_name="nodes")(jnp.zeros((3, 2)))


def test_train_checks_its_numbers_and_its_mesh():
    optimiser, pull = MAKE[DPSGD](), lambda key, x, data: x
    run = lambda rounds=4, **more: train(jax.random.key(0), optimiser, pull, jnp.zeros((4, 1)), rounds, **more)  # noqa: E731
    with pytest.raises(ValueError, match="num_rounds must be an integer >= 1; got 0"):
        run(0)
    with pytest.raises(ValueError, match=r"every must be a divisor of num_rounds \(4\); got 3"):
        run(every=3)
    mesh = jax.sharding.Mesh(np.asarray(jax.devices()[:1]), ("nodes",))
    with pytest.raises(
        ValueError, match=r"mesh must be of one axis with 4 devices; got \(1,\).*4 nodes need 4 devices"
    ):
        run(mesh=mesh)


def test_a_node_that_is_not_finite_is_reported():
    params = PARAMS | {"a": PARAMS["a"].at[2, 0].set(jnp.nan)}
    info = MAKE[DPSGD]().inspect(params)
    assert int(info.status) == Status.DIVERGED
    assert int(info.num_nonfinite) == 1
    sound = MAKE[DPSGD]().inspect({"a": jnp.arange(8.0).reshape(4, 2), "b": jnp.zeros(4)})
    assert int(sound.status) == Status.OK
    assert float(sound.consensus) == 10.0  # two columns of variance 5
    assert float(sound.cost) == 8 * 3 * 4  # eight messages of three floats


def test_a_local_optimiser_with_a_learning_rate_of_its_own_is_refused():
    with pytest.raises(ValueError, match=r"DPSGD.local must be .*scale_by_adam"):
        DPSGD(Gossip(ring(4)), 0.1, local=optax.adam(0.1))
    for local in (optax.scale_by_adam(), optax.trace(0.9), optax.clip_by_global_norm(1.0), optax.identity()):
        DPSGD(Gossip(ring(4)), 0.1, local=local)
