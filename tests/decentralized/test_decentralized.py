"""Decentralised optimisers against matrix formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ xᵀ H_i x − c_iᵀ x differs from node to node: what is biased settles off the common optimum, and where is
known.
"""

from typing import Any

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
    ScaledSign,
    TopK,
    complete,
    count_bytes,
    exact_factors,
    exponential,
    from_graph,
    hypercube,
    random,
    ring,
    stack,
    star,
    torus,
    train,
)

N, P, ALPHA, ROUNDS = 6, 3, 0.05, 3


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


draw = np.random.default_rng(0)
A = draw.normal(size=(N, P, P))
H = A @ A.transpose(0, 2, 1) / P + 0.3 * np.eye(P)
C = 2.0 * draw.normal(size=(N, P))
OPTIMUM = np.linalg.solve(H.mean(0), C.mean(0))
START = draw.normal(size=(N, P))


def lazy(method="chebyshev"):
    return Gossip(ring(N), method=method, kappa=0.5)


MAKE = {
    "detag": lambda g=None: DeTAG(g or lazy(), ALPHA, ROUNDS),
    "detag-accelerated": lambda g=None: DeTAG(lazy("accelerated"), ALPHA, 5),
    "tracking": lambda g=None: GradientTracking(g or lazy(), ALPHA),
    "d2": lambda g=None: D2(g or lazy(), ALPHA),
    "d-psgd": lambda g=None: DPSGD(g or lazy(), ALPHA),
    "choco": lambda g=None: ChocoSGD(g or lazy(), ALPHA, TopK(0.7), 0.5),
    "choco-sign": lambda g=None: ChocoSGD(g or lazy(), ALPHA, ScaledSign(), 0.3),
    "defacto": lambda g=None: DeFacto(g or lazy(), ALPHA),
    "all-reduce": lambda g=None: AllReduceSGD(g or lazy(), ALPHA),
}


def gradients(x):
    return jnp.einsum("npq,nq->np", H, x) - C


def trajectory(optimiser, rounds, start=START, gradient=gradients):
    """Parameters before each round and at the end, the gradients given, the states after each round."""

    def step(carry, _):
        x, state = carry
        g = gradient(x)
        updates, state = optimiser.update(g, state, x)
        new = optax.apply_updates(x, updates)
        return (new, state), (new, g, state)

    start = jnp.asarray(start)
    run = jax.jit(lambda: jax.lax.scan(step, (start, optimiser.init(start)), length=rounds)[1])
    params, given, states = run()
    return np.concatenate([np.asarray(start)[None], params]), np.asarray(given), states


def test_gradient_tracking_is_its_matrix_form_and_keeps_its_invariant_at_every_step():
    params, given, states = trajectory(MAKE["tracking"](), 20)
    w = lazy().dense()
    x, g = START, np.asarray(gradients(START))
    y = g
    for t in range(20):
        assert_allclose(states.tracker[t], y, atol=1e-12)
        assert_allclose(np.asarray(states.tracker[t]).mean(0), given[t].mean(0), atol=1e-12)  # mean y = mean g
        x_new = w @ (x - ALPHA * y)
        assert_allclose(params[t + 1], x_new, atol=1e-12)
        assert_allclose(x_new.mean(0), x.mean(0) - ALPHA * y.mean(0), atol=1e-12)
        new = np.asarray(gradients(x_new))
        x, y, g = x_new, w @ y + new - g, new


@pytest.mark.parametrize("name", ["detag", "detag-accelerated"])
def test_detag_is_its_matrix_form_and_keeps_its_invariant_at_every_phase(name):
    optimiser = MAKE[name]()
    r, phases = int(optimiser.num_rounds), 7
    noise = np.random.default_rng(1).normal(size=(phases * r, N, P))

    def step(carry, noise):
        x, state = carry
        updates, state = optimiser.update(gradients(x) + noise, state, x)
        new = optax.apply_updates(x, updates)
        return (new, state), (new, state)

    start = jnp.asarray(START)
    run = jax.jit(lambda: jax.lax.scan(step, (start, optimiser.init(start)), jnp.asarray(noise))[1])
    params, states = run()
    # The polynomial of W, from the three-term recursion on the identity, in numpy alone.
    w, gap = optimiser.gossip.dense(), float(optimiser.gossip.gap)
    eta = (1 - np.sqrt(1 - (1 - gap) ** 2)) / (1 + np.sqrt(1 - (1 - gap) ** 2))
    low, high = np.linalg.eigvalsh(w)[[0, -2]]
    middle, half = (low + high) / 2, (high - low) / 2
    before, m = np.eye(N), np.eye(N)
    if name == "detag":
        shifted = (w - middle * np.eye(N)) / half
        cheb = np.polynomial.chebyshev.Chebyshev.basis(r)
        powers = [np.eye(N), shifted]
        for _ in range(r - 1):
            powers.append(2 * shifted @ powers[-1] - powers[-2])
        m = powers[r] / cheb((1 - middle) / half)
    else:
        for _ in range(r):
            m, before = (1 + eta) * w @ m - eta * before, m
    x, y, last = START, np.zeros((N, P)), np.zeros((N, P))
    for k in range(phases):
        for inside in range(r - 1):  # frozen within the phase
            assert_array_equal(params[k * r + inside], x if k == 0 else params[k * r - 1])
        g = np.asarray(gradients(x)) + noise[k * r : (k + 1) * r].mean(0)
        x_new = m @ x - ALPHA * (m @ y)
        assert_allclose(params[(k + 1) * r - 1], x_new, atol=1e-11)
        assert_allclose(x_new.mean(0), x.mean(0) - ALPHA * y.mean(0), atol=1e-11)
        x, y, last = x_new, m @ y + g - last, g
        assert_allclose(states.tracker[(k + 1) * r - 1], y, atol=1e-11)
        assert_allclose(np.asarray(states.tracker[(k + 1) * r - 1]).mean(0), g.mean(0), atol=1e-11)


def test_d2_is_its_two_step_formula():
    params, given, _ = trajectory(MAKE["d2"](), 12)
    w = lazy().dense()
    assert_allclose(params[1], w @ (START - ALPHA * given[0]), atol=1e-12)
    for t in range(1, 12):
        two = w @ (2 * params[t] - params[t - 1] - ALPHA * (given[t] - given[t - 1]))
        assert_allclose(params[t + 1], two, atol=1e-11)


def test_dpsgd_and_uncompressed_choco_are_their_formulas():
    params, given, _ = trajectory(MAKE["d-psgd"](), 5)
    w = lazy().dense()
    for t in range(5):
        assert_allclose(params[t + 1], w @ params[t] - ALPHA * given[t], atol=1e-12)
    whole, given, _ = trajectory(ChocoSGD(lazy(), ALPHA, TopK(1.0), 1.0), 5)
    for t in range(5):  # all is known of everyone: x ← W (x − α g)
        assert_allclose(whole[t + 1], w @ (whole[t] - ALPHA * given[t]), atol=1e-12)


def test_all_reduce_is_one_step_along_the_mean_gradient():
    params, given, _ = trajectory(MAKE["all-reduce"](), 3)
    for t in range(3):
        assert_allclose(params[t + 1], params[t] - ALPHA * given[t].mean(0), atol=1e-12)


@pytest.mark.parametrize(("name", "gamma"), [("choco", 0.5), ("choco-sign", 0.3)])
def test_choco_is_its_formulas_with_a_compressor(name, gamma):
    params, given, _ = trajectory(MAKE[name](), 8)
    w, x, public = lazy().dense(), START, np.zeros((N, P))
    for t in range(8):
        half = x - ALPHA * given[t]
        difference = half - public
        kept = np.sign(difference) * np.abs(difference).mean(1, keepdims=True)
        if name == "choco":  # TopK(0.7) of three keeps two
            kept = difference.copy()
            kept[np.arange(N), np.abs(difference).argmin(1)] = 0
        public = public + kept
        x = half + gamma * (w @ public - public)
        assert_allclose(params[t + 1], x, atol=1e-11)


@pytest.mark.parametrize("name", ["detag", "detag-accelerated", "tracking", "d2", "defacto", "all-reduce"])
def test_different_data_do_not_keep_it_from_the_exact_optimum(name):
    params, _, _ = trajectory(MAKE[name](), 12_000, start=np.zeros((N, P)))
    assert_allclose(params[-1], np.tile(OPTIMUM, (N, 1)), atol=1e-8)


def test_dpsgd_settles_off_the_optimum_just_where_algebra_says():
    """(I − W) X + α (H X − C) = 0."""
    params, _, _ = trajectory(MAKE["d-psgd"](), 4000)
    w = lazy().dense()
    system = np.kron(np.eye(N) - w, np.eye(P))
    for i in range(N):
        system[i * P : (i + 1) * P, i * P : (i + 1) * P] += ALPHA * H[i]
    settled = np.linalg.solve(system, ALPHA * C.ravel()).reshape(N, P)
    assert_allclose(params[-1], settled, atol=1e-9)
    assert np.abs(settled - OPTIMUM).max() > 0.1


def test_the_rate_of_gradient_tracking_is_the_spectral_radius_of_its_operator():
    w = lazy().dense()
    mix = np.kron(w, np.eye(P))
    h = np.zeros((N * P, N * P))
    for i in range(N):
        h[i * P : (i + 1) * P, i * P : (i + 1) * P] = H[i]
    # X' = W (X − α Y),  Y' = W Y + H (X' − X)
    top = np.hstack([mix, -ALPHA * mix])
    operator = np.vstack([top, np.hstack([np.zeros_like(mix), mix]) + h @ (top - np.eye(N * P, 2 * N * P))])
    values = np.abs(np.linalg.eigvals(operator))
    radius = np.sort(values[values < 1 - 1e-9])[-1]  # 1 belongs to sums that the invariant fixes
    params, _, _ = trajectory(MAKE["tracking"](), 500)
    errors = np.linalg.norm(params - OPTIMUM, axis=(1, 2))
    assert_allclose((errors[500] / errors[300]) ** (1 / 200), radius, rtol=1e-4)


def test_one_node_is_delayed_sgd_and_a_complete_graph_too():
    for graph in (ring(1), complete(N)):
        n = graph.size
        h, c = (H[:1], C[:1]) if n == 1 else (H, C)
        gradient = lambda x, h=h, c=c: jnp.einsum("npq,nq->np", h, x) - c  # noqa: E731
        start = np.tile(START[:1], (n, 1))
        params, _, _ = trajectory(DeTAG(Gossip(graph), ALPHA, 1), 6, start, gradient)
        x, g = start[0], np.zeros(P)
        for t in range(6):
            x, g = x - ALPHA * g, h.mean(0) @ x - c.mean(0)
            assert_allclose(params[t + 1], np.tile(x, (n, 1)), atol=1e-11)


FEW = ("detag", "d2", "choco")


@pytest.mark.parametrize("name", [n if n in FEW else pytest.param(n, marks=pytest.mark.slow) for n in MAKE])
def test_equal_nodes_stay_equal(name):
    alike = lambda x: x @ jnp.asarray(H[0]) - C[0]  # noqa: E731
    params, _, _ = trajectory(MAKE[name](), 25, np.tile(START[:1], (N, 1)), alike)
    assert np.ptp(params[-1], axis=0).max() < 1e-13
    assert np.abs(params[-1] - params[0]).max() > 1e-3


@pytest.mark.parametrize("name", [n if n in ("detag", "d2") else pytest.param(n, marks=pytest.mark.slow) for n in MAKE])
def test_one_process_stacked_or_by_name_and_in_parts(name):
    optimiser = MAKE[name](Gossip(ring(N), kappa=0.5))
    tree = {"a": jnp.asarray(START), "b": jnp.asarray(START[:, 0])}
    gradient = lambda key, p, d: {"a": d[0] @ p["a"] - d[1], "b": p["b"] + jax.random.normal(key)}  # noqa: E731
    data, key = (jnp.asarray(H), jnp.asarray(C)), jax.random.key(7)
    whole, history = train(key, optimiser, gradient, tree, 12, data=data, every=6)
    first, part = train(key, optimiser, gradient, tree, 6, data=data, every=6)
    rest, _ = train(key, optimiser, gradient, first, 6, data=data, every=6, start=part.last)
    jax.tree.map(assert_array_equal, rest, whole)

    peer = optimiser.over("nodes")

    def node(p, d, i):
        state = peer.init(p)

        def step(carry, t):
            p, state = carry
            g = gradient(jax.random.fold_in(jax.random.fold_in(key, t), i), p, d)
            updates, state = peer.update(g, state, p)
            return (optax.apply_updates(p, updates), state), None

        return jax.lax.scan(step, (p, state), jnp.arange(12))[0][0]

    named = jax.jit(jax.vmap(node, axis_name="nodes"))(tree, data, jnp.arange(N))
    jax.tree.map(lambda a, b: assert_allclose(a, b, atol=1e-12), named, whole)
    # Bytes: read off the traced program of one node, all messages of all nodes.
    one = jax.tree.map(lambda x: x[0], tree)
    counted = count_bytes(lambda g, p: peer.update(g, peer.init(p), p), one, one, axis="nodes", size=N)
    assert counted == optimiser.sent(tree) / (0.5 if name == "defacto" else 1)
    assert_allclose(history.cost, np.array([6, 12]) * optimiser.sent(tree))


# On a star ten messages a round; a node has 4 numbers of 8 bytes. TopK(0.7) sends three of them with their places.
SENT = {
    "detag": 10 * 2 * 32,
    "tracking": 10 * 2 * 32,
    "d2": 10 * 32,
    "d-psgd": 10 * 32,
    "choco": 10 * 3 * (8 + 4),
    "choco-sign": 10 * (1 + 8),
    "defacto": 10 * 32 / 2,
    "all-reduce": 2 * 5 * 32,
}


@pytest.mark.parametrize("name", SENT)
def test_bytes_are_those_of_the_traced_program_and_those_counted_by_hand(name):
    optimiser = MAKE[name](Gossip(star(N), kappa=0.5))
    tree = {"a": np.zeros((N, P)), "b": np.zeros(N)}
    one, peer = jax.tree.map(lambda x: x[0], tree), optimiser.over("nodes")
    counted = count_bytes(lambda g, p: peer.update(g, peer.init(p), p), one, one, axis="nodes", size=N)
    assert counted == SENT[name] * (2 if name == "defacto" else 1)  # it sends in every second round
    assert optimiser.sent(tree) == SENT[name]


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32", "float64"])
def test_a_report_is_summed_in_single_precision_at_least(kind):
    """Differences whose squares float16 does not hold, about a mean that bfloat16 does not hold."""
    leaf = (256 + 400 * np.arange(N)[:, None] + np.arange(P)).astype(jnp.dtype(kind))
    optimiser = DPSGD(lazy(), ALPHA)
    info = jax.jit(lambda params: optimiser.inspect(params))({"a": leaf, "b": leaf[:, 0]})
    exact = leaf.astype(float)[:, [*range(P), 0]]
    assert_allclose(info.consensus, ((exact - exact.mean(0)) ** 2).sum() / N, rtol=1e-12 if kind == "float64" else 1e-5)
    assert (int(info.status), int(info.num_nonfinite)) == (0, 0)


def test_bytes_of_loops_branches_reductions_and_what_a_node_keeps():
    """Messages of 24 bytes: a scan counts all its rounds, of two branches the dearer, a message to oneself nothing."""
    turn = [(0, 1), (1, 2), (2, 0), (3, 3)]
    send = lambda x: jax.lax.ppermute(x, "nodes", turn)  # noqa: E731
    both = lambda x: send((x, x[:1]))  # noqa: E731
    programs = {
        (3 * 24): send,
        (3 * 32): both,
        (5 * 3 * 24): lambda x: jax.lax.scan(lambda x, _: (send(x), None), x, length=5)[0],
        (2 * 3 * 24): lambda x: jax.lax.cond(x[0] > 0, lambda x: send(send(x)), send, x),
        (2 * 3 * 24 + 3 * 24): lambda x: jax.jit(lambda x: send(jax.lax.psum(x, "nodes")))(x),
        0: lambda x: 2 * x,
    }
    for wanted, program in programs.items():
        assert count_bytes(program, np.zeros(3), axis="nodes", size=4) == wanted
    with pytest.raises(ValueError, match="count_bytes knows ppermute and reductions; got all_gather"):
        count_bytes(lambda x: jax.lax.all_gather(x, "nodes"), np.zeros(3), axis="nodes", size=4)


@pytest.mark.parametrize(
    "graph", [ring(5), ring(6), hypercube(3), complete(4), star(5), torus(3, 3), random(12, 0.3), ring(1)]
)
def test_exact_factors_average_exactly_on_edges_alone(graph):
    factors = exact_factors(graph)
    product = np.eye(graph.size)
    for factor in factors:
        assert (factor[graph.laplacian + np.eye(graph.size) == 0] == 0).all()
        product = factor @ product
    assert_allclose(product, 1 / graph.size, atol=1e-12)
    assert graph.diameter <= len(factors) <= max(2 * graph.diameter, 1)


def test_defacto_by_name_makes_one_step_along_the_mean_gradient_a_phase():
    """Whatever the graph: where degrees differ, nodes have nothing to hear in some turns."""
    graphs = (ring(N), star(N), from_graph([(0, 1), (1, 2), (2, 3), (2, 4), (4, 5)]))

    def phase(x, g, peer):
        def step(carry, _):
            updates, state = peer.update(g, carry[1], carry[0])
            return (carry[0] + updates, state), None

        rounds = 2 * len(exact_factors(peer.gossip.topology))
        return jax.lax.scan(step, (x, peer.init(x)), length=rounds)[0][0]

    @jax.jit
    def run(x, g):
        peers = [MAKE["defacto"](Gossip(graph)).over("nodes") for graph in graphs]
        return [jax.vmap(lambda x, g, peer=peer: phase(x, g, peer), axis_name="nodes")(x, g) for peer in peers]

    for moved in run(START, C):
        assert_allclose(moved, START - ALPHA * C.mean(0), atol=1e-12)


@pytest.mark.parametrize("size", [1, 3, 8, 9, 100])
def test_compressors_send_as_many_entries_as_they_say(size):
    vector = jax.ShapeDtypeStruct((size,), np.float32)
    for fraction in (0.01, 0.29, 0.5, 0.999, 1.0):  # 0.29 · 100 is a little less than 29
        values, places = jax.eval_shape(TopK(fraction).encode, vector)
        assert values.shape == places.shape
        assert values.size == max(1, np.rint(fraction * size))
    bits, scale = jax.eval_shape(ScaledSign().encode, vector)
    assert (bits.shape, bits.dtype, scale.shape) == ((-(-size // 8),), np.uint8, ())


def test_what_arrives_is_mixed_by_name_as_it_is_of_stacked_nodes():
    vectors, gossip = np.random.default_rng(4).normal(size=(N, 11)), Gossip(star(N), kappa=0.7)

    def mixed(gossip, vectors, compressor, each):
        decode = lambda message: compressor.decode(message, 11)  # noqa: E731
        return gossip.mix_decoded(each(compressor.encode)(vectors), decode)

    @jax.jit
    def both(vectors):
        named = lambda v, c: mixed(gossip.over("nodes"), v, c, lambda f: f)  # noqa: E731
        compressors = (TopK(0.29), ScaledSign())
        by_name = [jax.vmap(lambda v, c=c: named(v, c), axis_name="nodes")(vectors) for c in compressors]
        return [mixed(gossip, vectors, c, jax.vmap) for c in compressors], by_name

    largest = np.abs(vectors) >= np.sort(np.abs(vectors), axis=1)[:, -3, None]
    sent = [vectors * largest, np.sign(vectors) * np.abs(vectors).mean(1, keepdims=True)]
    for found in both(vectors):
        for one, expected in zip(found, sent, strict=True):
            assert_allclose(one, gossip.dense() @ expected, atol=1e-12)


def test_local_optimisers_run_a_node_each_and_once_a_phase():
    """A clipping by norm must not see the other nodes, and Adam counts phases."""
    clip = optax.clip_by_global_norm(1.0)
    params, given, _ = trajectory(DPSGD(lazy(), ALPHA, local=clip), 1)
    norms = np.linalg.norm(given[0], axis=1, keepdims=True)
    expected = lazy().dense() @ START - ALPHA * given[0] / np.maximum(norms, 1.0)
    assert_allclose(params[1], expected, atol=1e-12)
    _, _, states = trajectory(DeTAG(lazy(), ALPHA, 3, local=optax.scale_by_adam()), 9)
    assert_array_equal(states.local.count[-1], np.full(N, 3))


def test_in_a_chain_of_optax():
    chained = optax.chain(optax.scale(2.0), MAKE["tracking"]())
    params = jnp.asarray(START)
    updates, _ = chained.update(gradients(params), chained.init(params), params)
    twice, _, _ = trajectory(MAKE["tracking"](), 1, gradient=lambda x: 2.0 * gradients(x))
    moved: Any = optax.apply_updates(params, updates)
    assert_allclose(moved, twice[1], atol=1e-12)


def test_the_rate_and_the_rounds_compile_nothing_anew():
    traces, params = [], jnp.asarray(START)

    @jax.jit
    def run(alpha, rounds):
        traces.append(1)
        optimiser = DeTAG(lazy(), alpha, rounds)
        return optimiser.update(params, optimiser.init(params), params)[0]

    for alpha, rounds in ((0.1, 1), (0.2, 4)):
        run(alpha, rounds)
    assert len(traces) == 1
    assert stack({"a": 1.0}, 3)["a"].shape == (3,)
    assert exponential(8).diameter == 2
