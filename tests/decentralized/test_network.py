"""The model of the network against formulas for what it leaves to chance."""

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

from laureate.decentralized import Network, complete, ring, star
from laureate.testing import KeyRecorder

KEY = jax.random.key(0)


@pytest.mark.slow
def test_without_chance_it_is_a_sum():
    network = Network(compute=0.01, latency=0.002, bandwidth=1e6)
    times = network.rounds(KEY, ring(8), message=5000, num_rounds=4)
    assert_allclose(times, (0.01 + 0.002 + 2 * 0.005) * np.arange(1, 5), rtol=1e-5)
    # In a star the centre sends to all others, one after the other.
    assert_allclose(network.rounds(KEY, star(5), 5000, 1), [0.01 + 0.002 + 4 * 0.005], rtol=1e-5)
    overlapped = Network(compute=0.01, latency=0.002, bandwidth=1e6, overlap=True)
    assert_allclose(overlapped.rounds(KEY, ring(8), 5000, 2), 0.012 * np.arange(1, 3), rtol=1e-5)
    assert_allclose(network.all_reduces(KEY, 8, 5000, 1), [0.01 + 14 * (0.002 + 5000 / 8 / 1e6)], rtol=1e-5)
    assert_allclose(network.all_reduces(KEY, 1, 5000, 1), [0.01], rtol=1e-5)


@pytest.mark.parametrize("overlap", [False, True])
def test_rounds_follow_the_recursion_where_degrees_differ(overlap):
    """t_i ← max over j in {i} and neighbours of t_j + c + d_j + ℓ_ij, node by node; with overlap c and d_j at once.

    In a star only the hub's own sending holds it up: that of the leaves is over long before.
    """
    c, latency, message, topology = 0.01, 0.002, 0.005, star(5)
    t, wanted = np.zeros(5), []
    for _ in range(3):
        around = [{i, *(int(j) for j in topology.senders[:, i])} for i in range(5)]
        sending = message * np.asarray(topology.degrees)
        if overlap:
            arrival = lambda i, j, t=t, d=sending: t[j] + (max(c, d[j]) if i == j else d[j] + latency)  # noqa: E731
        else:
            arrival = lambda i, j, t=t, d=sending: t[j] + c + d[j] + latency * (i != j)  # noqa: E731
        t = np.array([max(arrival(i, j) for j in around[i]) for i in range(5)])
        wanted.append(t.max())
    network = Network(compute=c, latency=latency, bandwidth=1e6, overlap=overlap)
    both = jax.jit(lambda key: (network.rounds(key, topology, 5000, 3), network.all_reduces(key, 5, 5000, 3)))
    rounds, reduced = both(KEY)
    assert_allclose(rounds, wanted, rtol=1e-5)
    # Eight steps of a fifth of the vector each, after the gradient, overlapped or not.
    assert_allclose(reduced, (c + 8 * (latency + message / 5)) * np.arange(1, 4), rtol=1e-5)
    assert wanted[-1] == pytest.approx(0.062 if overlap else 0.092)  # the hub sends 4 x 5 ms before it goes on


def test_stragglers_hold_up_neighbours_and_no_one_else():
    p, n, rounds = 0.2, 6, 4000
    network = Network(compute=1.0, latency=0.0, bandwidth=1e30, straggle=p, slowdown=3.0)
    times = network.rounds(KEY, complete(n), 1.0, rounds)
    # Everybody waits for everybody: a round is slow if anyone is. Standard error of a share: √(q(1−q)/rounds).
    q = 1 - (1 - p) ** n
    assert_allclose(times[-1] / rounds, 1 + 2 * q, atol=4 * 2 * np.sqrt(q * (1 - q) / rounds))
    assert_allclose(network.all_reduces(KEY, n, 1.0, rounds)[-1] / rounds, 1 + 2 * q, atol=0.06)
    wide = network.rounds(KEY, ring(n), 1.0, rounds)
    assert wide[-1] < times[-1]  # on a ring delays reach the far side late, and overlap


def test_lost_messages_are_sent_again():
    """A message is sent again K times, P(K >= k) = q^k; who waits for several waits for the latest of them.

    The first round of a complete graph ends with the latest of n (n−1) messages. In each of the 2 (n−1) steps of an
    all-reduce n nodes send at once: the law of their sum is a convolution.
    """
    q, draws, k = 0.3, 4000, np.arange(60)
    network = Network(latency=0.0, bandwidth=1e30, loss=q, timeout=1.0)

    @jax.jit
    @jax.vmap
    def waited(key):
        reduced = [network.all_reduces(key, n, 1.0, 1)[0] for n in (5, 1)]
        return network.rounds(key, complete(3), 1.0, 1)[0], *reduced

    gossip, reduced, alone = map(np.asarray, waited(jax.random.split(KEY, draws)))
    latest = lambda messages: (1 - q ** (k + 1)) ** messages  # noqa: E731
    law = np.ones(1)
    for _ in range(2 * (5 - 1)):
        law = np.convolve(law, np.diff(latest(5), prepend=0.0))
    for found, expected in ((gossip, latest(3 * 2)), (reduced, np.cumsum(law)[:60])):
        shares = (found[:, None] <= k + 0.5).mean(0)
        assert np.abs(shares - expected).max() < 1.95 / np.sqrt(draws)  # Kolmogorov and Smirnov, 0.1 %
    assert not alone.any()  # nobody to wait for


def test_slow_nodes_and_lost_messages_have_nothing_to_do_with_each_other():
    network = Network(compute=1.0, loss=0.3, straggle=0.2, slowdown=3.0)
    with KeyRecorder() as recorder:
        jax.block_until_ready(network.rounds(jax.random.key(1), ring(3), 1.0, 3))
        jax.block_until_ready(network.all_reduces(jax.random.key(2), 3, 1.0, 3))
        jax.effects_barrier()
    assert len(recorder.uses) > 12
    assert not recorder.reused()


def test_time_grows_with_every_obstacle():
    base = {"compute": 0.01, "latency": 0.001, "bandwidth": 1e7}
    plain = Network(**base).rounds(KEY, ring(16), 1e4, 200)[-1]
    for obstacle in ({"loss": 0.05}, {"straggle": 0.1, "slowdown": 5.0}, {"latency": 0.01}, {"bandwidth": 1e6}):
        assert Network(**(base | obstacle)).rounds(KEY, ring(16), 1e4, 200)[-1] > plain
