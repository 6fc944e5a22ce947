"""What demanding users met: schedules, graphs of other kinds, data that is not dealt out, nodes that fail."""

import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import optax
import pytest
from numpy.testing import assert_allclose

from laureate.decentralized import (
    D2,
    DPSGD,
    AllReduceSGD,
    ChocoSGD,
    DeFacto,
    DeTAG,
    Gossip,
    GradientTracking,
    LaunchError,
    TopK,
    Topology,
    exact_factors,
    from_graph,
    launch,
    ring,
    train,
)

GOSSIP = Gossip(ring(4), kappa=0.5)
MAKE = {
    "detag": (lambda rate: DeTAG(GOSSIP, rate, 3), 3),
    "tracking": (lambda rate: GradientTracking(GOSSIP, rate), 1),
    "d2": (lambda rate: D2(GOSSIP, rate), 1),
    "dpsgd": (lambda rate: DPSGD(GOSSIP, rate, local=optax.trace(0.5)), 1),
    "choco": (lambda rate: ChocoSGD(GOSSIP, rate, TopK(0.5), 0.5), 1),
    "defacto": (lambda rate: DeFacto(GOSSIP, rate), 2 * len(exact_factors(GOSSIP.topology))),
    "all-reduce": (lambda rate: AllReduceSGD(GOSSIP, rate), 1),
}
TARGET = jnp.arange(8.0).reshape(4, 2)


def stepped(make, rates, rounds):
    """``rounds`` rounds, each by an optimiser with a rate of its own and the state of the one before."""
    params = jnp.zeros((4, 2))
    state = make(rates[0]).init(params)
    update = eqx.filter_jit(lambda optimiser, *given: optimiser.update(*given))
    for rate in rates[:rounds]:
        updates, state = update(make(rate), params - TARGET, state, params)
        params = params + updates
    return params


# --- schedules -------------------------------------------------------------------------------------------------------


FEW = ("detag", "d2", "choco")


@pytest.mark.parametrize("name", [n if n in FEW else pytest.param(n, marks=pytest.mark.slow) for n in MAKE])
def test_a_schedule_is_a_rate_a_step(name):
    make, phase = MAKE[name]
    schedule = optax.exponential_decay(0.3, 1, 0.5)
    rates = [float(schedule(t // phase)) for t in range(3 * phase)]  # one step a phase
    by_schedule = make(schedule)
    params = jnp.zeros((4, 2))
    state, update = by_schedule.init(params), eqx.filter_jit(by_schedule.update)
    for _ in range(3 * phase):
        updates, state = update(params - TARGET, state, params)
        params = params + updates
    assert_allclose(params, stepped(make, rates, 3 * phase), rtol=2e-5, atol=1e-6)
    constant = stepped(make, [0.3] * 3 * phase, 3 * phase)
    assert np.abs(np.asarray(params - constant)).max() > 1e-3


def test_training_with_a_schedule_in_parts_is_training_in_one_go():
    optimiser = DPSGD(GOSSIP, optax.cosine_decay_schedule(0.3, 6))
    pull = lambda key, x, target: x - target  # noqa: E731
    whole, _ = train(jax.random.key(0), optimiser, pull, jnp.zeros((4, 2)), 6, data=TARGET, every=3)
    _, half = train(jax.random.key(0), optimiser, pull, jnp.zeros((4, 2)), 3, data=TARGET, every=3)
    parts, _ = train(jax.random.key(0), optimiser, pull, None, 3, data=TARGET, start=half.last, every=3)
    assert np.array_equal(whole, parts)


def test_a_node_on_a_device_of_its_own_is_a_node_in_this_process_and_goes_on():
    mesh = jax.sharding.Mesh(np.asarray(jax.devices()[:1]), ("nodes",))
    optimiser, params, data = DPSGD(Gossip(ring(1)), 0.1), {"a": jnp.ones((1, 2))}, TARGET[3:]
    pull = lambda key, x, target: {"a": x["a"] - target + jax.random.normal(key)}  # noqa: E731
    key = jax.random.key(0, impl="rbg")  # of any generator, whose bits travel to the devices
    go = lambda rounds, **more: train(  # noqa: E731
        key, optimiser, pull, params, rounds, data=data, every=2, record=lambda x: x["a"] * 2, **more
    )
    whole, here = go(4)
    _, half = go(2, mesh=mesh)
    rest, there = go(2, mesh=mesh, start=half.last)
    assert_allclose(rest["a"], whole["a"], rtol=1e-6)
    for name in ("round", "cost", "info", "recorded"):
        parts = [jax.tree.leaves(getattr(history, name)) for history in (half, there, here)]
        for *both, one in zip(*parts, strict=True):
            assert_allclose(np.concatenate(both), one, rtol=1e-6)


@pytest.mark.parametrize(
    ("rate", "message"),
    [
        (lambda t: jnp.nan, r"DPSGD.learning_rate must be a schedule that begins >= 0 and finite; got .*nan"),
        (lambda t: -1.0, r"a schedule that begins >= 0 and finite; got .*-1"),
        (lambda t: jnp.ones(2), r"a schedule that begins >= 0 and finite; got "),
        (-0.1, r"DPSGD.learning_rate must be > 0 and finite; got -0.1"),
    ],
)
def test_a_rate_that_cannot_be(rate, message):
    with pytest.raises(ValueError, match=message):
        DPSGD(GOSSIP, rate)


# --- graphs ----------------------------------------------------------------------------------------------------------


def test_networkx_graphs():
    names = nx.relabel_nodes(nx.path_graph(4), dict(enumerate("dbca")))
    assert from_graph(names).edges == ((0, 1), (1, 2), (2, 3))
    petersen = from_graph(nx.petersen_graph())
    assert (petersen.size, petersen.diameter, set(petersen.degrees.tolist())) == (10, 2, {3})
    assert_allclose(petersen.laplacian, nx.laplacian_matrix(nx.petersen_graph()).toarray())
    grid = nx.grid_2d_graph(3, 3)  # its nodes are pairs
    assert from_graph(grid).degrees.tolist() == [degree for _, degree in grid.degree()]
    double = nx.MultiGraph([(0, 1), (0, 1), (1, 2), (2, 2)])
    assert from_graph(double).edges == ((0, 1), (1, 2))
    both_ways = nx.DiGraph([("x", "y"), ("y", "x"), ("y", "z"), ("z", "y")])
    assert from_graph(both_ways).edges == ((0, 1), (1, 2))
    for pairs in ([[0, 1], [1, 2]], np.array([[0, 1], [1, 2], [1, 2]])):
        assert from_graph(pairs).edges == ((0, 1), (1, 2))
    for matrix in (np.array([[1, 1], [1, 0]]), np.array([[0.0, 2.5], [2.5, 0.0]]), np.eye(2)[::-1] > 0):
        assert from_graph(matrix).edges == ((0, 1),)


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (nx.DiGraph([("x", "y"), ("y", "z"), ("z", "x")]), r"an edge x → y in one direction only. .* push-sum"),
        (np.array([[0, 1], [0, 0]]), r"must be symmetric; got an edge 0 → 1 in one direction only. .*to_undirected"),
        (
            [("a", "b")],
            r"graph must be pairs of node numbers.*; got \('a', 'b'\). .*networkx.Graph\(pairs\)",
        ),
        (
            np.array([[0, 1], [1, 2]]),  # of two edges, or two nodes, one with a loop of weight 2
            r"of zeros and ones, as two pairs .*; got \[\[0, 1\], \[1, 2\]\]. Give pairs as a list: graph.tolist\(\)",
        ),
        ([(0, 1.5)], r"pairs of node numbers.*; got \(0, 1.5\)"),
        ([(0, 1, 2)], r"pairs of node numbers.*; got \(0, 1, 2\)"),
        ([(-1, 0)], r"pairs of node numbers.*; got \(-1, 0\)"),
        ("ring", r"from_graph.graph must be a networkx graph, .*; got 'ring'"),
        (7, r"from_graph.graph must be a networkx graph, .*; got 7"),
        (nx.Graph([(0, 1), (2, 3)]), r"must connect all nodes; got 2 components"),
    ],
)
def test_graphs_that_are_refused(graph, message):
    with pytest.raises(ValueError, match=message):
        from_graph(graph)


def test_a_network_that_changes_is_refused():
    for graphs in ([ring(4), ring(4)], lambda t: ring(4)):
        with pytest.raises(ValueError, match=r"Gossip.topology must be a Topology; .*changes with time is not offered"):
            Gossip(graphs)  # type: ignore[arg-type]
    assert isinstance(from_graph(nx.cycle_graph(4)), Topology)


# --- data ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (jnp.zeros((8, 2)), r"train.data must be .* leading axis of 4 nodes; got \(8, 2\). .*data.reshape\(4, -1, "),
        ({"x": jnp.zeros((4, 3)), "y": jnp.zeros(())}, r"train.data\['y'\] must be .* 4 nodes; got \(\)"),
    ],
)
def test_data_that_is_not_dealt_out(data, message):
    with pytest.raises(ValueError, match=message):
        train(jax.random.key(0), DPSGD(GOSSIP, 0.1), lambda key, x, d: x, jnp.zeros((4, 2)), 2, data=data)


# --- nodes that fail -------------------------------------------------------------------------------------------------

FAILING = """
import os, time
from laureate.decentralized import connect
connect()
if os.environ["LAUREATE_NODE"] == "1":
    raise RuntimeError("out of luck")
time.sleep(1200)
open(os.environ["ENDED"], "w").close()
"""


@pytest.mark.slow
def test_a_node_that_fails_once_connected_is_told_at_once(tmp_path):
    """The other node has twenty minutes to go, and never comes to their end."""
    ended = tmp_path / "ended"
    with pytest.raises(LaunchError, match=r"Node 1 ended with code 1:(.|\n)*RuntimeError: out of luck"):
        launch([sys.executable, "-c", FAILING], 2, environment={"JAX_PLATFORMS": "cpu", "ENDED": str(ended)})
    assert not ended.exists()
