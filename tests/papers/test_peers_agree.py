"""The peers of ``laureate bench`` compute what ours does: the same weights in, the same numbers out.

Peers are no dependencies (``benchmarks/requirements-peers.txt``); what is missing is skipped. TorchJD, MAPIE and
BigGAN's blocks are held to the same in the tests of their papers.
"""

import importlib

import numpy as np
import pytest

pytestmark = pytest.mark.slow


def speed(paper, *peers):
    for peer in peers:
        pytest.importorskip(peer, reason=f"{peer}, a peer, is not installed")
    return importlib.import_module(f"laureate.papers.{paper}.speed")


def same(ours, theirs, **tolerances):
    np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), **tolerances)


def test_a_gvp_layer():
    module = speed("gvp", "torch")
    work = module.Work(nodes=20, neighbors=4, scalars=6, vectors=3, edge_scalars=5, gradient=False)
    for mine, peer in zip(module.our_side(work).run(), module.torch_side(work).run(), strict=True):
        same(mine, peer, rtol=1e-4, atol=1e-5)


def test_gradients_of_a_gvp_layer():
    module = speed("gvp", "torch")
    work = module.Work(nodes=20, neighbors=4, scalars=6, vectors=3, edge_scalars=5)
    ours, theirs = module.our_side(work).run(), module.torch_side(work).run()
    gvps = [*ours.conv.message, *ours.feedforward]
    mine = [
        part
        for gvp in gvps
        for part in (gvp.hidden_map, gvp.output_map, np.concatenate([gvp.scalar_map, gvp.norm_map], 1), gvp.bias)
    ]
    mine += [part for norm in ours.norms for part in (norm.scale, norm.shift)]
    for one, two in zip(mine, theirs, strict=True):
        same(one, 0 * np.asarray(one) if two is None else two, rtol=1e-3, atol=1e-3)


def test_a_mesh_graph_net():
    module = speed("mesh_graph_nets", "torch")
    work = module.Work(rows=5, columns=6, latent=8, steps=2)
    same(module.our_side(work).run(), module.torch_side(work).run(), rtol=1e-4, atol=1e-5)
    ours, theirs = (side(work._replace(training=True)).run for side in (module.our_side, module.torch_side))
    same([ours() for _ in range(5)], [theirs() for _ in range(5)], rtol=1e-3)  # losses of five steps of Adam


def test_isotonic_maps_and_sigmoids():
    module = speed("spline_calibration")
    for comparison in module.COMPARISONS[:3]:
        ours, theirs = np.asarray(comparison.ours().run()), np.asarray(comparison.theirs().run())
        same(ours, theirs if theirs.ndim == 1 else theirs[:, 1], atol=2e-3)


def test_clusters(monkeypatch):
    module = speed("quant_noise")
    monkeypatch.setattr(module, "POINTS", 20_000)
    points = module._points()
    found = [np.asarray(side.run()) for side in (module.our_kmeans(module.LLOYD), module.their_kmeans())]
    # A point halfway between two centroids may go to either by rounding: the objective is the same, not every centroid.
    objectives = [((points[:, None] - centroids) ** 2).sum(-1).min(1).mean() for centroids in found]
    same(*objectives, rtol=1e-4)
    assert np.mean(np.abs(found[0] - found[1]).max(1) < 1e-4) > 0.8


def test_particles():
    module = speed("sksd")
    first = module.COMPARISONS[0]
    same(first.ours().run(), first.theirs().run(), rtol=1e-3, atol=1e-3)
