"""Networks of problems and their training, written out in NumPy: every layer, every step of Adam, every batch."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate.problems import (
    classifiers,
    energies,
    pools,
    scores,
    several_tasks,
    translators,
    two_models,
    unrolls,
    views,
)
from laureate.problems.confidences import TrainedNetworks
from laureate.problems.datasets import digits
from laureate.problems.energies.trained_rbm import _trained
from laureate.problems.peers import ImagesOverNodes
from laureate.problems.supernets import CellSupernet
from laureate.problems.unrolls import training_runs

KEY = jax.random.key(5)


def exactly(x):
    return np.asarray(x, np.float64)


def adam(gradient, start, rates):
    """Kingma and Ba's algorithm 1 on a list of arrays; ``gradient(step, arrays)``."""
    arrays = [exactly(leaf) for leaf in start]
    first, second = ([np.zeros_like(leaf) for leaf in arrays] for _ in range(2))
    for step, rate in enumerate(rates):
        for i, slope in enumerate(gradient(step, arrays)):
            first[i] = 0.9 * first[i] + 0.1 * slope
            second[i] = 0.999 * second[i] + 0.001 * slope**2
            root = np.sqrt(second[i] / (1 - 0.999 ** (step + 1))) + 1e-8
            arrays[i] = arrays[i] - rate * first[i] / (1 - 0.9 ** (step + 1)) / root
    return arrays


def cosine(rate, number):
    """From the whole rate towards 0, which comes after the last step."""
    return [rate * (1 + np.cos(np.pi * step / number)) / 2 for step in range(number)]


def softmax(logits):
    p = np.exp(logits - logits.max(-1, keepdims=True))
    return p / p.sum(-1, keepdims=True)


def of_a_line(x, y, penalty=0.0):
    """The gradient of mean cross-entropy + penalty/2 ‖W‖² by W and b."""

    def gradient(step, arrays):
        del step
        off = (softmax(x @ arrays[0] + arrays[1]) - np.eye(10)[y]) / len(y)
        return x.T @ off + penalty * arrays[0], off.sum(0)

    return gradient


# --- training ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("num_steps", [1, 4])
def test_training_is_adam_on_the_rows_drawn_with_a_rate_that_falls_as_a_cosine(num_steps):
    rng = np.random.default_rng(0)
    images, labels = rng.normal(size=(7, 2, 2, 1)), rng.integers(0, 3, 7)
    start = classifiers.Perceptron(KEY, (4, 3))
    given = (jnp.asarray(images, jnp.float32), jnp.asarray(labels))
    found = jax.jit(lambda: classifiers.train_network(KEY, start, *given, num_steps, batch=3, learning_rate=0.2))()
    rows = np.asarray(jax.random.randint(KEY, (num_steps, 3), 0, 7))
    x = images.reshape(7, 4)

    def gradient(step, arrays):
        chosen = rows[step]
        off = (softmax(x[chosen] @ arrays[0] + arrays[1]) - np.eye(3)[labels[chosen]]) / 3
        return x[chosen].T @ off, off.sum(0)

    expected = adam(gradient, (start.weights[0], start.biases[0]), cosine(0.2, num_steps))
    np.testing.assert_allclose(found.weights[0], expected[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found.biases[0], expected[1], rtol=1e-4, atol=1e-5)


class Table(eqx.Module):
    """A translator that knows words alone."""

    logits: jax.Array

    def __call__(self, words):
        return self.logits[jnp.maximum(words, 0)]


def test_a_translator_learns_from_words_and_never_from_padding():
    """The loss of a batch is the mean over its words, not over its places; of no words at all it is 0."""
    sources, targets = np.array([[0, 1, -1], [1, 1, 0], [0, -1, -1]]), np.array([[1, 0, -1], [2, 2, 1], [2, -1, -1]])
    start = Table(jnp.asarray(np.random.default_rng(0).normal(size=(2, 3)), jnp.float32))
    train = lambda: translators.train_translator(KEY, start, jnp.asarray(sources), jnp.asarray(targets), 3, 2, 0.1)  # noqa: E731
    rows = np.asarray(jax.random.randint(KEY, (3, 2), 0, 3))

    def loss(table, x, y):
        shown = y >= 0
        return -np.log(softmax(table)[np.maximum(x, 0), np.maximum(y, 0)])[shown].sum() / max(shown.sum(), 1)

    def gradient(step, arrays):
        x, y, slope = sources[rows[step]], targets[rows[step]], np.zeros((2, 3))
        for word, target in zip(x[y >= 0], y[y >= 0], strict=True):
            slope[word] += softmax(arrays[0][word]) - np.eye(3)[target]
        return (slope / (y >= 0).sum(),)

    nats = lambda y: translators.nats(jax.vmap(start)(jnp.asarray(sources)), y)  # noqa: E731
    found, value, none = jax.jit(lambda: (train(), nats(jnp.asarray(targets)), nats(jnp.full((3, 3), -1))))()
    np.testing.assert_allclose(found.logits, adam(gradient, (start.logits,), cosine(0.1, 3))[0], rtol=1e-4)
    assert float(value) == pytest.approx(loss(exactly(start.logits), sources, targets), rel=1e-5)
    assert float(none) == 0


def test_a_pool_is_judged_by_softmax_regression_as_scikit_learns():
    """200 steps of Adam at 0.1 on the mean cross-entropy and ‖W‖²/2N, which is C = 1."""
    problem, (x, y) = pools.DigitsPool(num_train=41, num_pool=90), digits()
    x = exactly(x.reshape(len(y), -1))
    order = np.asarray(jax.random.permutation(KEY, len(y)))
    known, pool = order[:41], order[41:131]
    weights, bias = adam(of_a_line(x[known], y[known], 1 / 41), (np.zeros((64, 10)), np.zeros(10)), [0.1] * 200)
    p = softmax(x[pool] @ weights + bias)
    losses, entropies = eqx.filter_jit(problem.draw)(KEY)
    np.testing.assert_allclose(losses, -np.log(p[np.arange(90), y[pool]]), rtol=0.01, atol=2e-3)
    np.testing.assert_allclose(entropies, -(p * np.log(p)).sum(1), rtol=0.01, atol=2e-3)


def test_a_fast_model_and_a_slow_one_by_hand():
    """Coarse images for the line; for the slow one ridge regression with exp(−4 d²/mean d²), of one-hot less 0.1."""
    # 31 rows: of 30 three may be of one class, whose slope at first is rounding alone, which Adam makes a whole step.
    problem, (images, y) = two_models.FastAndSlow("digits", train=31, steps=3), digits()
    whole = exactly(images.reshape(len(y), -1)) - images.mean(dtype=np.float64)
    coarse = exactly(images).reshape(-1, 4, 2, 4, 2).mean((2, 4)).reshape(len(y), -1) - images.mean(dtype=np.float64)
    order = np.asarray(jax.random.permutation(KEY, len(y)))
    known, others = order[:31], order[31:]
    line = adam(of_a_line(coarse[known], y[known]), (np.zeros((16, 10)), np.zeros(10)), [0.05] * 3)
    distance = ((whole[:, None] - whole[known]) ** 2).sum(-1)
    kernel = np.exp(-4 * distance / distance.mean())
    values = kernel @ np.linalg.solve(kernel[known] + 0.01 * np.eye(31), np.eye(10)[y[known]] - 0.1)
    found = problem.pool(KEY)
    logits = coarse[others] @ line[0] + line[1]
    np.testing.assert_allclose(found.logits, logits, rtol=1e-3, atol=1e-4)
    np.testing.assert_array_equal(found.labels, y[others])
    np.testing.assert_array_equal(found.fast, np.argmax(found.logits, 1) == y[others])
    top = np.sort(values[others], axis=1)
    clear = top[:, -1] - top[:, -2] > 1e-3
    assert clear.mean() > 0.95
    np.testing.assert_array_equal(found.slow[clear], (values[others].argmax(1) == y[others])[clear])
    table = two_models.AnswerTable([[0.0, 2], [1, 0], [0, 3]], [1, 1, 0], [0, 1, 1]).pool(KEY)
    assert (table.fast.tolist(), table.slow.tolist()) == ([True, False, False], [False, True, True])


def test_networks_that_are_too_sure_are_trained_on_their_own_rows():
    """One hidden layer, two steps of Adam on batches of those rows, and what it says of all others."""
    problem, (images, y) = TrainedNetworks("digits", train=12, width=3, steps=2, batch=5, learning_rate=0.02), digits()
    shuffle, _, _, first, run = jax.random.split(KEY, 5)
    order, x = np.asarray(jax.random.permutation(shuffle, len(y))), exactly(images.reshape(len(y), -1))
    rows = [np.asarray(jax.random.randint(key, (5,), 0, 12)) for key in jax.random.split(run, 2)]
    network = eqx.nn.MLP(64, 10, 3, 1, key=first)

    def gradient(step, arrays):
        w, b, v, c = arrays
        chosen = order[rows[step]]
        hidden = x[chosen] @ w.T + b
        off = (softmax(np.maximum(hidden, 0) @ v.T + c) - np.eye(10)[y[chosen]]) / 5
        back = (off @ v) * (hidden > 0)
        return back.T @ x[chosen], back.sum(0), off.T @ np.maximum(hidden, 0), off.sum(0)

    start = [leaf for layer in network.layers for leaf in (layer.weight, layer.bias)]
    w, b, v, c = adam(gradient, start, [0.02] * 2)
    probabilities, labels = eqx.filter_jit(problem.predictions)(KEY)
    expected = softmax(np.maximum(x[order[12:]] @ w.T + b, 0) @ v.T + c)
    np.testing.assert_allclose(probabilities, expected, rtol=2e-3, atol=1e-4)
    np.testing.assert_array_equal(labels, y[order[12:]])


def test_a_machine_is_trained_by_ten_sweeps_from_a_hundred_images():
    """Two updates: images are drawn, ten sweeps lead from them, and Adam descends the difference of free energies."""
    images = np.random.default_rng(0).integers(0, 2, (30, 6)).astype(bool)
    weight_key, train_key, _ = jax.random.split(jax.random.key(0), 3)
    mean = images.mean(0)
    span = 6**-0.5
    weights = jax.random.uniform(weight_key, (2, 6), minval=-span, maxval=span)
    keys = [jax.random.fold_in(train_key, number) for number in range(2)]

    @jax.jit
    def draws(key):
        each = jax.vmap(lambda i: jax.random.split(jax.random.fold_in(key, i), 100))(jnp.arange(10))
        return jax.vmap(jax.vmap(lambda k: jax.random.uniform(k, (8,))))(each)

    uniforms = [exactly(draws(key)) for key in keys]
    chosen = [images[np.asarray(jax.random.randint(key, (100,), 0, 30))].astype(float) for key in keys]

    def gradient(step, arrays):
        w, b, c = arrays
        v = chosen[step]
        for u in uniforms[step]:
            h = u[:, :2] < sigmoid(v @ w.T + c)
            v = (u[:, 2:] < sigmoid(h @ w + b)).astype(float)
        slopes = []
        for rows in (v, chosen[step]):
            h = sigmoid(rows @ w.T + c)
            slopes.append((h.T @ rows / 100, rows.mean(0), h.mean(0)))
        return [model - data for model, data in zip(*slopes, strict=True)]

    found = _trained(jnp.asarray(images), 2, 2, 1, 0)
    expected = adam(gradient, (weights, np.log(mean / (1 - mean)), np.zeros(2)), [1e-3] * 2)
    machine = found.machine
    for leaf, wanted in zip((machine.weights, machine.visible_bias, machine.hidden_bias), expected, strict=True):
        np.testing.assert_allclose(leaf, wanted, atol=2e-5)


def test_numbers_are_read_from_the_left():
    """Classes are numbers: log p of 37 is that of 3 at the first place and of 7 at the second."""
    one, two = scores.DigitNumbers("digits", digits=2, train=300, steps=60), 297
    logits, y = map(np.asarray, one.sample(KEY, two))
    assert np.mean(logits.argmax(1) == y) > 0.6
    np.testing.assert_allclose(np.log(np.exp(exactly(logits)).sum(1)), 0, atol=1e-4)
    places = exactly(logits).reshape(two, 10, 10)
    tens, units = (np.log(np.exp(places).sum(axis)) for axis in (2, 1))
    np.testing.assert_allclose(places, tens[:, :, None] + units[:, None], atol=1e-3)


# --- networks ---------------------------------------------------------------------------------------------------------


def relu(x):
    return np.maximum(x, 0)


def test_classifiers_are_the_layers_that_they_say():
    images = np.random.default_rng(0).normal(size=(3, 4, 4, 1))

    @eqx.filter_jit
    def drawn(keys):
        line, kept = (
            classifiers.Perceptron(keys[0], (16, 5, 4, 3)),
            classifiers.ResidualPerceptron(keys[1], 16, 4, 2, 3),
        )
        return line, kept, classifiers.ConvolutionalNetwork(keys[2], (4, 4), (2, 3), 5)

    deep, residual, convolutional = drawn(jax.random.split(KEY, 3))
    # Biases are zero at first: others tell whether they are used.
    shifts = lambda m: (m.shift, m.last.biases)  # noqa: E731
    deep = eqx.tree_at(lambda m: m.biases, deep, tuple(0.1 * jnp.arange(1.0, n + 1) for n in (5, 4, 3)))
    residual = eqx.tree_at(shifts, residual, ((jnp.full(4, 0.2), jnp.full(4, -0.1)), (jnp.arange(3.0),)))
    convolutional = eqx.tree_at(shifts, convolutional, ((jnp.full(2, 0.2), jnp.full(3, -0.1)), (jnp.arange(5.0),)))
    found = jax.jit(lambda x: (deep(x), residual(x), residual(x, lambda z: 0 * z), convolutional(x)))
    one, two, without, three = found(jnp.asarray(images, jnp.float32))

    x = images.reshape(3, 16)
    for i, (weight, bias) in enumerate(zip(deep.weights, deep.biases, strict=True)):
        x = (relu(x) if i else x) @ exactly(weight) + exactly(bias)
    np.testing.assert_allclose(one, x, rtol=1e-4, atol=1e-5)

    z = relu(images.reshape(3, 16) @ exactly(residual.first.weights[0]))
    head = lambda z: z @ exactly(residual.last.weights[0]) + np.arange(3.0)  # noqa: E731
    np.testing.assert_allclose(without, head(z), rtol=1e-4, atol=1e-5)
    for u, c, v in zip(residual.inner, residual.shift, residual.outer, strict=True):
        z = z + relu(z @ exactly(u) + exactly(c)) @ exactly(v)
    np.testing.assert_allclose(two, head(z), rtol=1e-4, atol=1e-5)

    h = images
    for layer, shift in zip(convolutional.layers, convolutional.shift, strict=True):
        side, kernel = h.shape[1], exactly(layer.kernel)
        padded, after = np.pad(h, ((0, 0), (1, 1), (1, 1), (0, 0))), np.zeros((*h.shape[:3], kernel.shape[-1]))
        for i, j in np.ndindex(side, side):
            after[:, i, j] = np.tensordot(padded[:, i : i + 3, j : j + 3], kernel, 3)
        after = relu(after + exactly(shift))
        h = np.zeros((3, side // 2, side // 2, after.shape[-1]))
        for i, j in np.ndindex(h.shape[1:3]):
            h[:, i, j] = after[:, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2].max((1, 2))
    last = convolutional.last
    logits = h.reshape(3, -1) @ exactly(last.weights[0]) + np.arange(5.0)
    np.testing.assert_allclose(three, logits, rtol=1e-4, atol=1e-5)


def test_every_layer_is_drawn_on_its_own_with_the_variance_that_it_states():
    """He's 2/inputs, half of the deviation for what a residual block adds; of sizes that are told apart."""
    images, shared = views.ImagePairs("digits", 1, hidden=50, dim=40), views.SharedDirections(60, 5, 40)
    cells, nodes = CellSupernet(train=20, test=5, channels=40), ImagesOverNodes(2, 10, model="conv", channels=50)

    @eqx.filter_jit
    def drawn(keys):
        networks = classifiers.Perceptron(keys[0], (90, 60, 40)), classifiers.ResidualPerceptron(keys[1], 90, 50, 2, 40)
        readers = translators.RecurrentEncoder(keys[2], 40, 30), translators.AttentionEncoder(keys[3], 40, 24, 20)
        decoder = translators.Decoder(keys[4], 50, 70, 60)
        others = images.model0(keys[5]).layers, shared.model0(keys[6]), cells.init(keys[7])[0], nodes.theta0(keys[8])
        energy = energies.ConvolutionalEnergy(keys[9], jnp.zeros((4, 4)), 40)
        return *networks, *readers, decoder, *others, energy

    made = jax.tree.map(np.asarray, drawn(jax.random.split(KEY, 10)))
    deep, residual, recurrent, attention, decoder, layers, matrix, supernet, node, energy = made
    weights = {
        "deep": (*zip(deep.weights, (2 / 90, 2 / 60), strict=True),),
        "residual": (
            (residual.first.weights[0], 2 / 90),
            (residual.last.weights[0], 2 / 50),
            *((w, 2 / 50) for w in residual.inner),
            *((w, 2 / 50 / 4) for w in residual.outer),
        ),
        "recurrent": ((recurrent.table, 1 / 30), (recurrent.recurrent, 1 / 30)),
        "attention": (
            (attention.table, 0.25),
            (attention.places, 0.25),
            (attention.attention, 1 / 24),
            (attention.inner, 1 / 24),
            (attention.outer, 1 / 48),
        ),
        "decoder": ((decoder.first, 2 / 50), (decoder.last, 1 / 70)),
        "images": tuple((w, 2 / w.shape[0]) for w in layers),
        "shared": ((matrix, 1 / 60),),
        "supernet": ((supernet.stem, 2 / 4), (supernet.kernels, 2 / 360), (supernet.head, 2 / 40)),
        "nodes": ((node["kernel"], 1 / 9), (node["weights"], 1 / 450)),
        "energy": ((energy.first, 2 / 9), (energy.second, 2 / 360), (energy.readout, 1e-4)),
    }
    for name, given in weights.items():
        for one, variance in given:
            assert np.var(one) == pytest.approx(variance, rel=4.5 * np.sqrt(2 / one.size)), (name, one.shape)
        for i, (one, _) in enumerate(given):
            for other, _ in given[i + 1 :]:
                if one.shape == other.shape:
                    alike = np.corrcoef(np.ravel(one), np.ravel(other))[0, 1]
                    assert abs(alike) < 4.5 / np.sqrt(one.size), name


def normed(x):
    x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_readers_are_a_gated_unit_and_causal_attention():
    rng, words = np.random.default_rng(0), np.array([2, 0, 3, -1])
    recurrent = translators.RecurrentEncoder(KEY, 4, 3)
    recurrent = eqx.tree_at(lambda m: m.bias, recurrent, jnp.asarray(rng.normal(size=9), jnp.float32))
    attention = translators.AttentionEncoder(KEY, 4, 6, 5, layers=2, heads=2)
    decoder = translators.Decoder(KEY, 3, 4, 2)
    decoder = eqx.tree_at(lambda m: (m.shift, m.bias), decoder, (jnp.arange(4.0), jnp.array([0.5, -1.0])))
    model = translators.Translator(recurrent, decoder)
    found = jax.jit(lambda w: (recurrent(w), attention(w), model(w), model(w, lambda s: 2 * s)))(jnp.asarray(words))

    table, mixing, h, states = exactly(recurrent.table), exactly(recurrent.recurrent), np.zeros(3), []
    for word in np.maximum(words, 0):
        given, past = table[word] + exactly(recurrent.bias), h @ mixing
        z, r = (sigmoid(given[i : i + 3] + past[i : i + 3]) for i in (0, 3))
        h = (1 - z) * h + z * np.tanh(given[6:] + r * past[6:])
        states.append(h)
    np.testing.assert_allclose(found[0], states, rtol=1e-4, atol=1e-5)
    for factor, logits in ((1, found[2]), (2, found[3])):
        hidden = relu(factor * np.array(states) @ exactly(decoder.first) + np.arange(4.0))
        np.testing.assert_allclose(logits, hidden @ exactly(decoder.last) + [0.5, -1], rtol=1e-4, atol=1e-5)

    x = exactly(attention.table)[np.maximum(words, 0)] + exactly(attention.places)[:4]
    layers = (exactly(leaf) for leaf in (attention.attention, attention.inner, attention.outer))
    for w, inner, outer in zip(*layers, strict=True):
        q, k, v = (normed(x) @ part for part in w[:3])
        mixed = np.zeros((4, 6))
        for head in (slice(0, 3), slice(3, 6)):
            for at in range(4):
                share = softmax(q[at, head] @ k[: at + 1, head].T / np.sqrt(3))
                mixed[at, head] = share @ v[: at + 1, head]
        x = x + mixed @ w[3]
        x = x + relu(normed(x) @ inner) @ outer
    np.testing.assert_allclose(found[1], normed(x), rtol=1e-3, atol=1e-4)


def test_unrolls_start_with_weights_of_the_variance_that_they_state():
    """Uniform around 0, as far as √3 deviations: 1/inputs, or the small numbers that are named; biases are zero."""
    lstm, run = unrolls.CharacterLSTM(horizon=3, hidden=9), training_runs.TrainingRun(hidden=30)
    trained = {hidden: unrolls.LearnedOptimiser(hidden=hidden, pool=2, units=30) for hidden in (0, 11)}
    quadratic = unrolls.LinearQuadratic(memory=0.7, size=5, num_parameters=400)

    @eqx.filter_jit
    def drawn(key):
        starts = [one.init(key, None)[0] for one in trained.values()]
        return lstm.theta0(key), trained[0].theta0(key), *starts, run.init(key, None)[0], quadratic.theta0(key)

    text, optimiser, line, network, weights, theta = jax.tree.map(np.asarray, drawn(KEY))
    c = lstm.num_characters
    spread = [(9 * c, 0.1)] + [(9 * 36, 9**-0.5 * 3**0.5)] * 2 + [(36, 0), (9 * c, 9**-0.5 * 3**0.5), (c, 0)]
    expected = [(text, spread), (optimiser, [(120, 0.75**0.5), (30, 0), (60, 0.01), (2, 0)])]
    expected += [(line, [(160, (3 / 16) ** 0.5), (10, 0)])]
    expected += [(network, [(176, (3 / 16) ** 0.5), (11, 0), (110, (3 / 11) ** 0.5), (10, 0)])]
    for vector, parts in expected:
        assert len(vector) == sum(size for size, _ in parts)
        for part, (_, reach) in zip(np.split(vector, np.cumsum([size for size, _ in parts])[:-1]), parts, strict=True):
            assert np.abs(part).max() <= reach
            assert np.abs(part).max() >= 0.9 * reach
            assert abs(part.mean()) <= 4.5 * reach / np.sqrt(3 * part.size)
    for name, inputs in (("first", 64), ("last", 30)):
        assert np.var(weights[name]) == pytest.approx(1 / inputs, rel=4.5 * np.sqrt(2 / weights[name].size))
    assert theta.std() == pytest.approx(1, rel=4.5 / np.sqrt(800))
    np.testing.assert_allclose(np.abs(np.linalg.eigvals(quadratic.transition)), 0.7, rtol=1e-4)
    assert (quadratic.control.shape, quadratic.cost.shape) == ((5, 400), (5, 5))
    assert np.linalg.eigvalsh(np.asarray(quadratic.cost, float)).min() > -1e-6


def test_a_training_run_costs_at_most_its_worst():
    """A loss beyond 10 is 10; a share is what it is, though all be wrong with huge weights; no number is the worst."""
    for objective in ("loss", "accuracy"):
        run = training_runs.TrainingRun("schedule", objective, hidden=1)
        first = jnp.full((64, 1), 5.0)
        still = {"first": 0 * first, "last": jnp.zeros((1, 10))}
        weights = {"first": first, "last": 1e4 * jnp.eye(1, 10)}
        theta = {"log_rate": jnp.array([-200.0, -200.0])}
        step = eqx.filter_jit(run.step)
        loss = float(step(KEY, theta, (weights, still, jnp.array(0)))[1])
        for broken in (jnp.nan, jnp.inf):
            lost = weights | {"last": weights["last"].at[0, 3].set(broken)}
            assert float(step(KEY, theta, (lost, still, jnp.array(0)))[1]) == (10.0 if objective == "loss" else 2.0)
        logits = np.tanh(exactly(run.others) @ exactly(first)) @ exactly(weights["last"])
        assert loss == (10.0 if objective == "loss" else pytest.approx((logits.argmax(1) != run.other_labels).mean()))


# --- unrolls ----------------------------------------------------------------------------------------------------------


def test_a_learned_optimiser_by_hand():
    """Three steps of a linear classifier of four pixels; weights of all sizes, so that features are cut at ±5."""
    problem, rng = unrolls.LearnedOptimiser(horizon=7, hidden=0, pool=4, batch=3, units=2), np.random.default_rng(0)
    theta = rng.normal(size=16).astype(np.float32)
    state = eqx.filter_jit(problem.init)(KEY, theta)
    assert np.abs(np.asarray(state[0])[:40]).max() <= np.sqrt(3 / 4)
    start = np.concatenate([rng.normal(size=40), np.zeros(10)]) * 4
    state = (jnp.asarray(start, jnp.float32), *state[1:])
    step, images, labels = eqx.filter_jit(problem.step), exactly(problem.images), np.asarray(problem.labels)
    first, first_bias, last, last_bias = np.split(theta.astype(np.float64), (8, 10, 14))
    w, m, v = start, np.zeros(50), np.zeros(50)
    for t in range(3):
        key = jax.random.key(t)
        state, loss = step(key, theta, state)
        rows = np.floor(exactly(jax.random.uniform(key, (3,))) * 1797).astype(int)
        p = softmax(images[rows] @ w[:40].reshape(4, 10) + w[40:])
        assert float(loss) == pytest.approx(-np.log(p[range(3), labels[rows]]).mean(), rel=1e-4)
        off = (p - np.eye(10)[labels[rows]]) / 3
        g = np.concatenate([(images[rows].T @ off).ravel(), off.sum(0)])
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g**2
        root = np.sqrt(v / (1 - 0.99 ** (t + 1))) + 1e-6
        a = m / (1 - 0.9 ** (t + 1)) / root
        features = np.clip(np.stack([g / root, a, w, np.full(50, (t + 1) / 7)], 1), -5, 5)
        out = np.tanh(features @ first.reshape(4, 2) + first_bias) @ last.reshape(2, 2) + last_bias
        w = w - 0.003 * np.exp(out[:, 1]) * (a + out[:, 0])
        np.testing.assert_allclose(state[0], w, rtol=1e-3, atol=1e-4)
    assert int(state[3]) == 3


def test_a_character_lstm_by_hand():
    problem = unrolls.CharacterLSTM(horizon=4, hidden=2)
    characters, text = problem.num_characters, np.asarray(problem.sequence)
    theta = np.random.default_rng(0).normal(size=problem.theta0(KEY).shape).astype(np.float32)
    sizes = np.cumsum([characters * 2, 16, 16, 8, 2 * characters])
    embedding, inputs, recurrent, bias, decoder, last = np.split(theta.astype(np.float64), sizes)
    h, c, state, step = np.zeros(2), np.zeros(2), problem.init(KEY, theta), eqx.filter_jit(problem.step)
    for t in range(4):
        state, loss = step(KEY, theta, state)
        gates = embedding.reshape(-1, 2)[text[t]] @ inputs.reshape(2, 8) + h @ recurrent.reshape(2, 8) + bias
        f, i, o, g = gates[:2], gates[2:4], gates[4:6], gates[6:]
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        p = softmax(h @ decoder.reshape(2, -1) + last)
        assert float(loss) == pytest.approx(-np.log(p[text[t + 1]]), rel=1e-4)


def test_characters_that_are_replaced_are_any_and_as_many_as_said():
    problem = unrolls.CharacterLSTM(horizon=3000)
    sample = jax.jit(lambda key, stride, share: problem.sample(key, stride, share).sequence)
    kept, found = (np.asarray(sample(KEY, 0.0, share)) for share in (0.0, 0.3))
    moved = found != kept
    count = problem.num_characters
    expected = 0.3 * (1 - 1 / count)
    assert moved.mean() == pytest.approx(expected, abs=4.5 * np.sqrt(0.21 / 3001))
    drawn = found[moved]
    assert drawn.mean() == pytest.approx((count - 1) / 2, abs=4.5 * count / np.sqrt(12 * len(drawn)) + 1)
    assert {0, count - 1} <= set(drawn.tolist()) | {int(kept[0])}
    # Half a character a step: every one twice.
    slow, text = np.asarray(sample(KEY, 0.5, 0.0)), np.asarray(problem.text)
    np.testing.assert_array_equal(slow[0:-1:2], slow[1::2])
    at = np.asarray(sample(KEY, 1.0, 0.0))
    np.testing.assert_array_equal(slow[::2], at[: len(slow[::2])])
    assert text.max() == count - 1


# --- views ------------------------------------------------------------------------------------------------------------


def test_views_are_moved_mirrored_and_brightened_as_drawn():
    """Every end of every range: an eighth of the side both ways, the border repeated outwards."""
    images = np.random.default_rng(0).normal(size=(6, 16, 16)).astype(np.float32)
    noise = np.random.default_rng(1).normal(size=(6, 16, 16)).astype(np.float32)
    top = np.float32(1 - 2**-24)
    drawn = np.float32(
        [
            [0, 0, 0, 0, 0],
            [top, top, top, top, top],
            [0.5, 0.3, 0.49, 0.5, 0.5],
            [0.99, 0.01, 0.5, 0.2, 0.9],
            [0.1, 0.99, 0.3, 0.7, 0.1],
            [0.3, 0.7, 0.9, 1 / 3, 2 / 3],
        ]
    )
    found = jax.jit(views.jostled)(drawn, noise, images)
    for row, (down, right, mirror, factor, shift) in enumerate(drawn.astype(np.float64)):
        padded = np.pad(images[row], 2, mode="edge")
        i, j = int(5 * down), int(5 * right)
        moved = padded[i : i + 16, j : j + 16]
        moved = moved[:, ::-1] if mirror < 0.5 else moved
        expected = (0.6 + 0.8 * factor) * moved + 0.8 * shift - 0.4 + 0.1 * noise[row]
        np.testing.assert_allclose(found[row], expected, atol=2e-5)


def test_two_views_share_what_they_should_and_nothing_else():
    """Covariances of one view and between two: 1 + scale² and 1, entry by entry."""
    problem = views.SharedDirections(inputs=4, shared=2, dim=3, strength=1.5, floor=0.4)
    first, second = map(exactly, jax.jit(lambda key: problem.views(key, 20_000))(KEY))
    scale = np.array([0.4, 0.4, 1.5, 1.5])
    for one in (first, second):
        np.testing.assert_allclose(one.T @ one / 20_000, np.diag(1 + scale**2), atol=4.5 * 3.25 * np.sqrt(2 / 20_000))
    np.testing.assert_allclose(first.T @ second / 20_000, np.eye(4), atol=4.5 * 3.4 / np.sqrt(20_000))
    weights = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    np.testing.assert_allclose(problem.apply(weights, first[:5]), first[:5] @ weights.T, rtol=1e-4)
    assert float(problem.energy(weights)) == pytest.approx((weights[:, :2] ** 2).sum() / (weights**2).sum(), rel=1e-5)
    spectrum = np.linalg.svd(weights[:, :2])[1] ** 2
    np.testing.assert_allclose(problem.spectrum(weights), spectrum[::-1], rtol=1e-4)


def test_views_are_of_one_image_and_labels_of_as_many_of_each_class():
    problem = views.LabelledPairs("digits", side=8, channels=(4,), hidden=3, dim=2, train=150, test=10)
    plain = eqx.tree_at(lambda p: p.images, problem, jnp.arange(150.0)[:, None, None] * jnp.ones((1, 8, 8)) * 10)
    first, second = map(np.asarray, eqx.filter_jit(plain.views)(KEY, 40))
    # Contrast ± 40 % of constant pictures is the same for all pixels but noise; the picture's number is about that.
    assert np.std(first - np.mean(first, (1, 2), keepdims=True)) == pytest.approx(0.1, rel=0.1)
    ratio = (np.mean(first, (1, 2)) + 1) / (np.mean(second, (1, 2)) + 1)
    assert (ratio > 0.4 / 1.5).all()
    assert (ratio < 1.5 / 0.4).all()
    assert len(np.unique(np.round(np.mean(first, (1, 2)), 2))) > 30
    labels, counts = np.asarray(problem.labels), np.bincount(np.asarray(problem.labels))
    for asked in (2, 1000):
        chosen = np.asarray(problem.few(KEY, asked))
        assert len(set(chosen.tolist())) == len(chosen)
        np.testing.assert_array_equal(np.bincount(labels[chosen]), np.full(10, min(asked, counts.min())))
    features = np.random.default_rng(0).normal(size=(5, 4))
    one, two = np.random.default_rng(1).normal(size=(4, 3)), np.random.default_rng(2).normal(size=(3, 2))
    hidden = features @ one
    hidden = (hidden - hidden.mean(0)) / np.sqrt(hidden.var(0) + 1e-5)
    np.testing.assert_allclose(views.project(*map(jnp.asarray, (features, one, two))), relu(hidden) @ two, rtol=1e-4)


# --- several tasks ----------------------------------------------------------------------------------------------------


def test_dialects_have_rows_of_their_own_in_writings_of_their_own():
    images, labels = digits()
    flat, draw = images.reshape(-1, 64), np.random.default_rng(0)
    ways = [flat, images.transpose(0, 2, 1).reshape(-1, 64), 1 - flat, flat[:, draw.permutation(64)]]
    ways.append(np.clip(flat + 0.3 * draw.normal(size=images.shape).reshape(-1, 64), 0, 1))
    for sizes in ("unequal", "equal"):
        problem = several_tasks.Dialects(sizes=sizes, hidden=2, batch_size=400)
        ends = np.cumsum((0, *several_tasks.SIZES[sizes]))
        pictures, said = map(np.asarray, problem.batch(KEY))
        for way, (written, first, end) in enumerate(zip(ways, ends, ends[1:], strict=False)):
            np.testing.assert_allclose(problem.images[way], written, atol=1e-6)
            known = {row.tobytes(): at for at, row in enumerate(np.asarray(problem.images[way]))}
            at = np.array([known[row.tobytes()] for row in pictures[way]])
            assert first <= at.min()
            assert at.max() < end
            assert len(set(at)) > 0.8 * min(end - first, 400) * (1 - np.exp(-400 / (end - first)))
            np.testing.assert_array_equal(said[way], labels[at])


def test_two_digits_and_five_dialects_are_judged_on_the_rows_of_each_part():
    """Cross-entropies of a batch, and shares of right answers, task by task; unlike each other, so none for another."""
    over = several_tasks.OverlaidDigits(hidden=30, batch_size=7)
    way = several_tasks.Dialects("rotated", "equal", hidden=30, batch_size=7)

    @eqx.filter_jit
    def found(key):
        one, two = over.params0(key), way.params0(key)
        pairs, rows = over.batch(key), way.batch(key)
        scored = [(over.scores(one, part), way.scores(two, part)) for part in ("validation", "test")]
        return one, two, pairs, rows, over.losses(one, pairs), way.losses(two, rows), scored

    one, two, (x, y), (rows, labels), loss, losses, scored = jax.tree.map(np.asarray, found(KEY))

    def read(x):
        features = relu(exactly(x) @ exactly(one["trunk"].weights[0]))
        return [features @ exactly(head.weights[0]) for head in one["heads"]]

    def nats(z, y):
        return -np.log(softmax(z)[np.arange(len(y)), y]).mean()

    np.testing.assert_allclose(loss, [nats(z, y[:, k]) for k, z in enumerate(read(x))], rtol=1e-3)
    lines = [exactly(weight) for weight in two.weights]
    speak = lambda x: relu(exactly(x) @ lines[0]) @ lines[1]  # noqa: E731
    np.testing.assert_allclose(losses, [nats(speak(rows[k]), labels[k]) for k in range(5)], rtol=1e-3)
    images, truth = exactly(over.images), np.asarray(over.labels)
    for (pair, five), (first, end) in zip(scored, ((1000, 1300), (1300, 1797)), strict=True):
        left, right = np.arange(first, end), np.asarray(over.partners[first:end])
        canvas = np.zeros((len(left), 10, 10))
        canvas[:, :8, :8] = images[left]
        canvas[:, 2:, 2:] = np.maximum(canvas[:, 2:, 2:], images[right])
        said = [z.argmax(1) for z in read(canvas.reshape(-1, 100))]
        wanted = [np.mean(guess == truth[place]) for guess, place in zip(said, (left, right), strict=True)]
        np.testing.assert_allclose(pair, wanted, atol=1.5 / len(left))
        wanted = [np.mean(speak(way.images[k, first:end]).argmax(1) == truth[first:end]) for k in range(5)]
        np.testing.assert_allclose(five, wanted, atol=1.5 / len(left))
        assert len(np.unique(np.round(five, 4))) > 2


def test_questions_are_asked_and_scored_in_their_units():
    """Losses, scores and spreads of all six by hand, on the rows of each part."""
    problem, (images, labels) = several_tasks.DigitQuestions(hidden=3, batch_size=6), digits()
    x, numbers = exactly(images), []
    for picture in x:
        mass = picture / picture.sum()
        at = np.array(list(np.ndindex(8, 8)), float)
        centre = mass.ravel() @ at
        spread = mass.ravel() @ ((at - centre) ** 2).sum(1)
        numbers.append([100 * picture.mean(), *centre, spread])
    numbers = np.array(numbers)
    np.testing.assert_allclose(problem.numbers, numbers, rtol=1e-4, atol=1e-4)
    params = problem.params0(KEY)
    found = jax.jit(lambda p: (problem.losses(p, jnp.arange(20, 60)), problem.scores(p, "validation")))(params)
    np.testing.assert_allclose(problem.spreads, [1, 1, *numbers[:1000].var(0)], rtol=1e-4)

    def said(rows):
        features = relu(x[rows].reshape(len(rows), 64) @ exactly(params["trunk"].weights[0]))
        return [features @ exactly(head.weights[0]) for head in params["heads"]]

    rows, mean = np.arange(20, 60), numbers[:1000].mean(0)
    digit, odd, values = said(rows)
    losses = [-np.log(softmax(z)[range(40), y]).mean() for z, y in ((digit, labels[rows]), (odd, labels[rows] % 2))]
    np.testing.assert_allclose(found[0], [*losses, *((values - numbers[rows] + mean) ** 2).mean(0)], rtol=1e-3)
    rows = np.arange(1000, 1300)
    digit, odd, values = said(rows)
    wanted = []
    for z, y in ((digit, labels[rows]), (odd, labels[rows] % 2)):
        commonest = np.bincount(y).max() / 300
        wanted.append(((z.argmax(1) == y).mean() - commonest) / (1 - commonest))
    truth = numbers[rows] - mean
    error, variance = ((values - truth) ** 2).mean(0), truth.var(0)
    np.testing.assert_allclose(found[1], [*wanted, *((variance - error) / (variance + error))], rtol=1e-3, atol=1e-4)
