"""What single settings do not show: memories with schedules, machines that are not alike, trees of several types."""

import itertools
import os
import signal
import sys
from types import SimpleNamespace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from numpy.testing import assert_allclose, assert_array_equal

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
    Network,
    ScaledSign,
    TopK,
    complete,
    connect,
    count_bytes,
    exact_factors,
    from_graph,
    hypercube,
    launch,
    processes,
    random,
    ring,
    star,
    train,
)
from laureate.decentralized.launch import main

GOSSIP = Gossip(ring(4), kappa=0.5)
# An optimiser of a rate and a local transformation, and how many rounds it needs for a step.
MAKE = {
    "detag": (lambda rate, **more: DeTAG(GOSSIP, rate, 2, **more), 2),
    "tracking": (lambda rate, **more: GradientTracking(GOSSIP, rate, **more), 1),
    "d2": (lambda rate, **more: D2(GOSSIP, rate, **more), 1),
    "d-psgd": (lambda rate, **more: DPSGD(GOSSIP, rate, **more), 1),
    "choco": (lambda rate, **more: ChocoSGD(GOSSIP, rate, TopK(0.5), 0.5, **more), 1),
    "choco-sign": (lambda rate, **more: ChocoSGD(GOSSIP, rate, ScaledSign(), 0.5, **more), 1),
    "defacto": (lambda rate, **more: DeFacto(GOSSIP, rate, **more), 2 * len(exact_factors(GOSSIP.topology))),
    "all-reduce": (lambda rate, **more: AllReduceSGD(GOSSIP, rate, **more), 1),
}
SIGN = optax.GradientTransformation(
    lambda params: (), lambda found, state, params=None: (jax.tree.map(jnp.sign, found), state)
)


def _counted(found: Any, count: Any, params: Any = None) -> Any:
    return jax.tree.map(lambda x: jnp.sign(x) * (1 + count), found), count + 1


# The same times the number of the step, which is its memory.
COUNTED = optax.GradientTransformation(lambda params: jnp.zeros((), jnp.int32), _counted)


@pytest.mark.parametrize("name", [name for name in MAKE if name not in ("d2", "choco-sign")])
def test_a_memory_that_counts_steps_is_a_schedule_that_does(name):
    """The rate multiplies what the local transformation makes of a direction; both know how many steps there were."""
    make, phase = MAKE[name]
    decay = lambda step: 0.1 / (1 + step / 2)  # noqa: E731
    target = jnp.arange(8.0).reshape(4, 2)

    def trained(optimiser):
        def one(carry, _):
            params, state = carry
            updates, state = optimiser.update(params - target, state, params)
            return (optax.apply_updates(params, updates), state), None

        start = jnp.zeros((4, 2)) + 0.3
        return jax.lax.scan(one, (start, optimiser.init(start)), length=4 * phase)[0][0]

    by_memory = make(decay, local=COUNTED)
    by_schedule = make(lambda step: decay(step) * (1 + step), local=SIGN)
    run = jax.jit(lambda: [trained(one) for one in (by_memory, by_schedule, make(0.1, local=SIGN))])
    by_memory, by_schedule, constant = map(np.asarray, run())
    assert_allclose(by_memory, by_schedule, rtol=1e-5, atol=1e-6)
    assert np.abs(by_memory - constant).max() > 0.01


@pytest.mark.parametrize("rate", [0.1, lambda step: 0.1 / (1 + step)], ids=["number", "schedule"])
@pytest.mark.parametrize("name", MAKE)
def test_every_leaf_keeps_its_type_in_updates_and_states(name, rate):
    """Nothing is computed: shapes and types alone. Choco flattens a tree, which then has the type of all its leaves."""
    optimiser = MAKE[name][0](rate)
    halves = {"a": jnp.float16, "b": jnp.bfloat16, "c": jnp.float32}
    for kinds in [halves] * ("choco" not in name) + [dict.fromkeys("abc", kind) for kind in halves.values()]:
        tree = {leaf: jax.ShapeDtypeStruct((4, 3), kind) for leaf, kind in kinds.items()}
        state = jax.eval_shape(optimiser.init, tree)
        updates, after = jax.eval_shape(optimiser.update, tree, state, tree)
        assert updates == tree
        assert after == state
    # Of a node nine numbers in 24 bytes; eight messages a round.
    vectors = {"detag": 2 * 8, "tracking": 2 * 8, "d2": 8, "d-psgd": 8, "defacto": 4, "all-reduce": 2 * 3}
    if name in vectors:
        assert optimiser.sent({leaf: jnp.zeros((4, 3), kind) for leaf, kind in halves.items()}) == 24 * vectors[name]


def test_equal_nodes_stay_equal_in_half_precision():
    """Exactly, however they are averaged; the coefficients of a round add up to 1, which in half precision they do not.
    Nodes that differ end where they do in double precision, but for a rounding a round."""
    values = np.random.default_rng(0).uniform(1, 2, (6, 16))
    kinds, rounds = (jnp.float16, jnp.bfloat16), 12

    @jax.jit
    def run(values):
        found = []
        for method in ("plain", "accelerated", "chebyshev"):
            gossip = Gossip(star(6), method=method, kappa=0.7)
            gathered, peer = eqx.tree_at(lambda g: g.matrix, gossip, None), gossip.over("nodes")
            named = jax.vmap(lambda x, g=peer: g.average(x, rounds), axis_name="nodes")
            averages = *(lambda x, g=g: g.average(x, rounds) for g in (gossip, gathered)), named
            for kind in kinds:
                equal = jnp.broadcast_to(values[0], (6, 16)).astype(kind)
                found.append((equal, [average(equal) for average in averages], averages[0](values.astype(kind))))
        return found

    exact = {}
    with jax.enable_x64(True):
        for method in ("plain", "accelerated", "chebyshev"):
            exact[method] = Gossip(star(6), method=method, kappa=0.7).average(jnp.asarray(values), rounds)
    found = jax.device_get(run(values.astype(np.float32)))
    for (equal, averaged, mixed), (method, kind) in zip(found, itertools.product(exact, kinds), strict=True):
        for one in averaged:
            assert one.dtype == kind
            assert_array_equal(one, equal)
        error = np.abs(mixed.astype(float) - np.asarray(exact[method])).max()
        assert error < (rounds + 1) * 2 * float(jnp.finfo(kind).eps)


@pytest.mark.parametrize("kind", [jnp.float16, jnp.bfloat16])
def test_a_round_in_half_precision_is_the_exact_one_rounded(kind):
    """Weights that half precision rounds as well would be off by as much again, and their rows by more than a digit."""
    weights = 0.1 * from_graph([(i, j) for i in range(11) for j in range(i)]).laplacian / 1.7
    for gossip in (Gossip(star(11), kappa=0.7), Gossip(complete(11), np.eye(11) - weights, kappa=0.9)):
        values = np.random.default_rng(0).uniform(1, 2, (11, 40)).astype(kind)
        found = np.asarray(gossip.mix(jnp.asarray(values)), float)
        exact = gossip.dense() @ values.astype(float)
        assert exact.min() >= 1  # up to 2 the distance of two numbers is the same
        assert np.abs(found - exact).max() <= 0.51 * float(jnp.finfo(kind).eps)


@pytest.mark.parametrize("name", MAKE)
def test_a_report_is_the_same_by_name(name):
    """All nodes are looked at, whoever asks."""
    tree, optimiser = {"a": np.ones((4, 3), np.float32), "b": np.arange(4.0, dtype=np.float32)}, MAKE[name][0](0.1)
    here, there = optimiser.inspect(tree), optimiser.over("nodes").inspect(tree)
    assert_array_equal(jax.tree.leaves(here), jax.tree.leaves(there))
    assert here.cost == optimiser.sent(tree)


@pytest.mark.parametrize("overlap", [False, True])
def test_machines_that_are_not_alike_follow_the_recursion(overlap):
    """t_i ← max over j in {i} and neighbours of t_j + c_j + d_j + ℓ_ij with the draws of each round, in NumPy.

    With overlap a node computes while it sends, and nobody waits for a neighbour's computing: what is sent is known.
    """
    key, rounds, message = jax.random.key(3), 5, 4000.0
    graph = from_graph([(0, 1), (1, 2), (2, 3), (2, 4), (4, 5), (5, 2)])
    network = Network(0.01, 0.002, 1e6, 0.4, 0.03, 0.5, 9.0, overlap=overlap)
    senders = np.concatenate([np.arange(6)[None], graph.senders])

    @jax.jit
    def run():
        def drawn(index):
            slow, lost = jax.random.split(jax.random.fold_in(key, index))
            return network._computing(slow, 6), network._retries(lost, senders.shape)

        return network.rounds(key, graph, message, rounds), jax.vmap(drawn)(jnp.arange(rounds))

    found, (computing, retries) = jax.device_get(run())
    assert len(np.unique(computing)) == 2
    assert len(np.unique(retries)) > 2
    sending = message * graph.degrees / 1e6
    t, wanted = np.zeros(6), []
    for c, again in zip(computing, retries, strict=True):
        later = np.zeros(6)
        for i in range(6):
            arrivals = [t[i] + (max(c[i], sending[i]) if overlap else c[i] + sending[i])]
            for turn, j in enumerate(senders[1:, i], 1):
                if j != i:
                    link = sending[j] + 0.002 + 0.03 * again[turn, i]
                    arrivals.append(t[j] + link + (0.0 if overlap else c[j]))
            later[i] = max(arrivals)
        t = later
        wanted.append(t.max())
    assert_allclose(found, wanted, rtol=1e-5)


ENDS = {
    "compute": lambda limit: Network(compute=limit - 1.0),
    "latency": lambda limit: Network(latency=limit - 1.0),
    "timeout": lambda limit: Network(timeout=limit - 1.0),
    "no loss": lambda limit: Network(loss=limit - 1.0),
    "loss": lambda limit: Network(loss=1.0 - limit / 10),
    "no straggling": lambda limit: Network(straggle=limit - 1.0),
    "straggling": lambda limit: Network(straggle=1.1 - limit / 10),
    "slowdown": lambda limit: Network(slowdown=0.9 + limit / 10),
    "bandwidth": lambda limit: Network(bandwidth=limit),
    "kappa": lambda limit: Gossip(ring(5), kappa=2.0 - limit),
    "no kappa": lambda limit: Gossip(ring(5), kappa=0.1 * limit),
    "fraction": lambda limit: TopK(2.0 - limit),
    "no fraction": lambda limit: TopK(0.1 * limit),
    "gamma": lambda limit: ChocoSGD(GOSSIP, 0.1, TopK(0.5), 2.0 - limit),
    "rounds": lambda limit: DeTAG(GOSSIP, 0.1, limit),
    "rate": lambda limit: DPSGD(GOSSIP, 0.1 * limit),
    "average": lambda limit: GOSSIP.average(jnp.zeros(4), limit - 1),
    "eigenvalue of D2": lambda limit: D2(Gossip(ring(4), kappa=1.0 - limit / 10), 0.1),
    "size": lambda limit: ring(limit),
    "dimension": lambda limit: hypercube(limit - 1),
    "probability": lambda limit: random(3, 2.0 - limit),
    "node": lambda limit: from_graph([(0, limit - 1 + (limit > 0))]),
}


@pytest.mark.parametrize("name", ENDS)
def test_the_last_that_is_allowed_is_and_the_next_is_not(name):
    assert ENDS[name](1) is not None
    with pytest.raises(ValueError, match=" must be "):
        ENDS[name](0)


@pytest.mark.parametrize("num_rounds", [0, -1])
def test_a_network_has_a_round_at_least(num_rounds):
    network, key = Network(), jax.random.key(0)
    for call in (lambda n: network.rounds(key, ring(3), 1.0, n), lambda n: network.all_reduces(key, 3, 1.0, n)):
        with pytest.raises(ValueError, match=rf"Network.num_rounds must be >= 1; got {num_rounds}"):
            call(num_rounds)


def test_a_program_whose_rounds_cannot_be_counted_is_refused():
    """A loop that ends by a condition has no number of rounds; without messages it may be as long as it likes."""
    send = lambda x: jax.lax.ppermute(x, "nodes", [(0, 1), (1, 0)])  # noqa: E731
    inside = lambda x: jax.lax.while_loop(lambda x: x[0] < 9, lambda x: send(x) + 1, x)  # noqa: E731
    asked = lambda x: jax.lax.while_loop(lambda x: send(x)[0] < 9, lambda x: x + 1, x)  # noqa: E731
    for program in (inside, asked, lambda x: jax.jit(inside)(x)):
        with pytest.raises(ValueError, match=r"count_bytes must be given loops of a known length; got a while loop"):
            count_bytes(program, np.zeros(3), axis="nodes", size=2)
    quiet = lambda x: send(jax.lax.while_loop(lambda x: x[0] < 9, lambda x: x + 1, x))  # noqa: E731
    assert count_bytes(quiet, np.zeros(3, np.float32), axis="nodes", size=2) == 2 * 12


@pytest.mark.parametrize("kappa", [1.0, 0.8, 0.3])
def test_a_gap_is_of_the_end_that_is_farther_from_zero(kappa):
    """By the eigenvalues of W after κ, of which the negative one may be the larger; and what a plain round leaves."""
    swinging = 0.05 * np.eye(6) + 0.475 * (np.roll(np.eye(6), 1, 0) + np.roll(np.eye(6), -1, 0))
    for graph, weights in (
        (ring(6), swinging),
        (star(6), "metropolis"),
        (complete(4), "metropolis"),
        (ring(6), "optimal"),
    ):
        gossip = Gossip(graph, weights, method="plain", kappa=kappa)
        values = np.linalg.eigvalsh((1 - kappa) * np.eye(graph.size) + kappa * Gossip(graph, weights).dense())
        low, high = values[0], values[-2]
        assert_allclose(gossip.spectrum(), (low, high), atol=1e-6)
        assert_allclose(gossip.gap, 1 - max(abs(low), abs(high)), atol=1e-6)
        assert_allclose(gossip.contraction(3), max(abs(low), abs(high)) ** 3, atol=1e-6)


def test_advised_rounds_are_rounded_up_and_grow_with_their_scale():
    for graph in (ring(7), ring(32), star(6)):
        gossip = Gossip(graph)
        for scale in (1.0, 2.5, np.log(graph.size)):
            assert DeTAG.advised_rounds(gossip, scale) == int(np.ceil(scale / np.sqrt(float(gossip.gap))))
    for scale in (1, 3):  # a whole number is not rounded, whatever its last digits
        assert DeTAG.advised_rounds(Gossip(complete(4)), scale) == scale


def test_random_graphs_have_the_edges_of_their_probability_and_seed():
    assert random(9, 1.0) == complete(9)
    assert random(20, 0.4, seed=5) == random(20, 0.4, seed=5) != random(20, 0.4, seed=6)
    for probability in (0.3, 0.8):
        edges = [len(random(24, probability, seed=seed).edges) for seed in range(20)]
        pairs = 24 * 23 / 2
        error = np.sqrt(pairs * probability * (1 - probability) / 20)  # of the mean of twenty
        assert abs(np.mean(edges) - pairs * probability) < 4 * error


def test_a_run_records_its_rounds_and_goes_on_counting():
    """Parameters, bytes and consensus at every second round, in one go, in parts, and in NumPy."""
    optimiser, data = DPSGD(GOSSIP, 0.1), np.arange(8.0, dtype=np.float32).reshape(4, 2)
    start, pull = jnp.full((4, 2), 0.5), lambda key, x, target: x - target
    more = {"data": data, "every": 2, "record": lambda x: 2 * x}
    go = lambda rounds, begun=None: train(jax.random.key(0), optimiser, pull, start, rounds, start=begun, **more)  # noqa: E731
    (last, whole), (_, first) = go(6), go(2)
    _, rest = go(4, first.last)
    x, kept = np.asarray(start, float), []
    for number in range(6):
        x = GOSSIP.dense() @ x - 0.1 * (x - data)
        if number % 2:
            kept.append(x)
    kept = np.array(kept)
    assert_allclose(last, x, rtol=1e-5)
    assert_allclose(whole.recorded, 2 * kept, rtol=1e-5)
    assert_allclose(whole.info.consensus, ((kept - kept.mean(1, keepdims=True)) ** 2).sum((1, 2)) / 4, rtol=1e-4)
    assert whole.round.tolist() == [2, 4, 6]
    assert whole.cost.tolist() == [64.0 * number for number in (2, 4, 6)]  # eight messages of two floats
    assert whole.info.cost.tolist() == [64.0] * 3
    for name in ("round", "cost", "info", "recorded"):
        parts = [jax.tree.leaves(getattr(history, name)) for history in (first, rest, whole)]
        for one, two, both in zip(*parts, strict=True):
            assert_allclose(np.concatenate([one, two]), both, rtol=1e-6)


# --- nodes as processes ----------------------------------------------------------------------------------------------


def test_what_a_failing_node_said_last_is_quoted_and_what_the_others_wrote_is_returned_in_their_order():
    script = "import os, sys\nfor line in range(40): print('line', line, file=sys.stderr)\nsys.exit(3)"
    with pytest.raises(LaunchError) as failure:
        launch([sys.executable, "-c", script], 1)
    assert str(failure.value).splitlines() == ["Node 0 ended with code 3:", *(f"line {k}" for k in range(25, 40))]
    script = "import os, time\nnode = int(os.environ['LAUREATE_NODE'])\ntime.sleep(0.2 * (node == 0))\n"
    script += "print(node, os.environ['LAUREATE_NODES'], os.environ['OWN'])\nprint('end')"
    found = launch([sys.executable, "-c", script], 2, environment={"OWN": "mine"})
    assert found == ["0 2 mine\nend\n", "1 2 mine\nend\n"]


def test_a_node_that_is_killed_has_failed_and_its_neighbours_are_stopped(tmp_path):
    """As by a machine without memory: alone, after all others, and while the others wait for it."""
    kill = "import os, signal, time\nif os.environ['LAUREATE_NODE'] == '0': os.kill(os.getpid(), signal.SIGKILL)\n"
    for number, rest in ((1, ""), (2, ""), (2, "time.sleep(20)\nopen(os.environ['END'], 'w')")):
        with pytest.raises(LaunchError, match=r"^Node 0 ended with code -9:"):
            launch([sys.executable, "-c", kill + rest], number, environment={"END": str(tmp_path / "ended")})
    assert not (tmp_path / "ended").exists()


def test_bytes_that_are_no_text_do_not_stop_what_a_node_says():
    """On either stream: they are told by their numbers, and what comes after them is told as well."""
    script = "import os, sys\nos.write(1, b'caf\\xe9\\xff' * 40000 + b'\\nend')\nos.write(2, b'\\xff broken')\n"
    assert launch([sys.executable, "-c", script], 1) == [r"caf\xe9\xff" * 40000 + "\nend"]
    with pytest.raises(LaunchError, match=r"Node 0 ended with code 5:\n\\xff broken$"):
        launch([sys.executable, "-c", script + "sys.exit(5)"], 1)


def test_a_process_that_a_node_leaves_behind_is_not_waited_for(monkeypatch, tmp_path):
    """It holds the node's output open; what the node wrote itself is returned."""
    monkeypatch.setattr(sys.modules["laureate.decentralized.launch"], "PATIENCE", 0.2)
    child = f"import time; time.sleep(20); open({str(tmp_path / 'ended')!r}, 'w')"
    script = f"import subprocess, sys\nprint(subprocess.Popen([sys.executable, '-c', {child!r}]).pid, flush=True)"
    (told,) = launch([sys.executable, "-c", script], 1)
    os.kill(int(told), signal.SIGKILL)
    assert not (tmp_path / "ended").exists()


def test_the_command_line_runs_a_script_on_every_node_and_tells_how_it_ended(tmp_path, capfd):
    script = tmp_path / "who is it.py"
    script.write_text("import os, sys\nprint(os.environ['LAUREATE_NODE'], sys.argv[1:])\nsys.exit(int(sys.argv[2]))")
    assert main(["-n", "2", str(script), "--fast", "0"]) == 0
    told = capfd.readouterr()
    assert sorted(told.out.splitlines()) == ["[0] 0 ['--fast', '0']", "[1] 1 ['--fast', '0']"]
    assert (
        f"LAUREATE_COORDINATOR=FIRST_HOST:7777 LAUREATE_NODES=2 LAUREATE_NODE=i python '{script}' --fast 0" in told.err
    )
    assert main(["-n", "1", str(script), "--fast", "4"]) == 1
    assert "Node 0 ended with code 4" in capfd.readouterr().err
    for words, message in (
        (["-n", "0", str(script)], "--nodes must be >= 1; got 0."),
        (["none.py"], "no file none.py"),
    ):
        assert main(words) == 2
        assert message in capfd.readouterr().err


def test_a_node_joins_by_its_environment_but_for_what_is_said(monkeypatch):
    joined = []
    told = lambda *given: joined.append(given)  # noqa: E731
    fake = {"config": SimpleNamespace(update=told), "distributed": SimpleNamespace(initialize=told)}
    monkeypatch.setattr(processes, "jax", SimpleNamespace(devices=jax.devices, **fake))
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    names = "LAUREATE_COORDINATOR", "LAUREATE_NODES", "LAUREATE_NODE"
    for name, value in zip(names, ("first:7777", "2", "1"), strict=True):
        monkeypatch.setenv(name, value)
    assert connect().axis_names == ("nodes",)
    assert connect(num_nodes=3, node=0).devices.ndim == 1
    assert joined[1::2] == [("first:7777", 2, 1), ("first:7777", 3, 0)]
    assert joined[0] == ("jax_cpu_collectives_implementation", "gloo")
    ended = []
    monkeypatch.setattr(os, "_exit", ended.append)
    sys.excepthook(ValueError, ValueError("out of luck"), None)
    assert set(ended) == {1}
    for name in names[::2]:
        monkeypatch.delenv(name)
    with pytest.raises(ValueError, match=r"connect needs LAUREATE_COORDINATOR, LAUREATE_NODE in the environment"):
        connect()
