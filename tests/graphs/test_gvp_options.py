"""Settings away from their defaults do what they say, and every key is used once."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from laureate.graphs import GVPConvLayer, GVPNetwork, QualityModel, make_graph, quality_loss
from laureate.testing import KeyRecorder

KEY = jax.random.key(0)
RNG = np.random.default_rng(2)


def draw(rows, scalars, vectors):
    return tuple(np.asarray(RNG.normal(size=shape), np.float32) for shape in ((rows, scalars), (rows, vectors, 3)))


GRAPH = make_graph(draw(4, 2, 1), draw(5, 2, 1), [1, 2, 0, 3, 3], [0, 0, 1, 1, 2])


def test_dropout_draws_anew_in_every_layer_and_place():
    dims = {"node_dims": (4, 2), "edge_dims": (2, 1), "num_layers": 2, "num_message": 1, "num_feedforward": 1}

    @eqx.filter_jit
    def found(key):
        network = GVPNetwork(KEY, (2, 1), (2, 1), (3, 1), dropout=0.5, **dims)
        return network(GRAPH, key), network(GRAPH)

    with KeyRecorder() as recorder:
        dropped, whole = found(jax.random.key(1))
        assert not recorder.reused()
    assert all(np.any(np.abs(one - two) > 1e-3) for one, two in zip(dropped, whole, strict=True))


def test_counts_and_words_reach_the_layers():
    how = {"num_message": 2, "num_feedforward": 3, "aggregate": "sum", "dropout": 0.25, "num_hidden": 5}
    made = [
        eqx.filter_eval_shape(lambda: GVPConvLayer(KEY, (4, 2), (2, 1), **how)),
        eqx.filter_eval_shape(lambda: GVPNetwork(KEY, (2, 1), (2, 1), (3, 1), node_dims=(4, 2), **how)).layers[1],
        eqx.filter_eval_shape(lambda: QualityModel(KEY, (2, 1), (2, 1), node_dims=(4, 2), **how)).network.layers[2],
    ]
    for layer in made:
        assert len(layer.conv.message) == 2
        assert len(layer.feedforward) == 3
        assert layer.conv.aggregate == "sum"
        assert layer.dropout.rate == 0.25
        assert layer.conv.message[0].hidden_map.shape[0] == 5
        assert [gvp.activation is None for gvp in layer.conv.message] == [False, True]
        assert [gvp.out_dims for gvp in layer.feedforward] == [(16, 4), (16, 4), (4, 2)]


def test_the_loss_is_linear_beyond_its_delta():
    found = jax.jit(lambda predicted: quality_loss(predicted, jnp.zeros((1, 2)), delta=0.5))(np.float32([[2.0, 0.25]]))
    np.testing.assert_allclose(found, 0.5 * 1.75 + 0.25**2 / 2 + 0.5 * 1.5, rtol=1e-6)
