"""Losses by hand, views that stay what they should, probes, and collapse that the monitor sees."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression

from laureate._core import Status
from laureate.representation import (
    BarlowTwins,
    Brightness,
    Compose,
    Cutout,
    DirectPred,
    Flip,
    Identity,
    JointEmbedding,
    Linear,
    Noise,
    Rescale,
    Shift,
    Siamese,
    SimCLR,
    TimeMask,
    TimeShift,
    VICReg,
    accuracy,
    collapse_report,
    fine_tune,
    linear_probe,
    two_views,
)
from laureate.representation.probes import FineTuning

KEY = jax.random.key(0)


def test_the_references_losses_by_hand():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 6, 3)).astype(np.float32)
    z = np.concatenate([a, b])
    z = z / np.linalg.norm(z, axis=1, keepdims=True)
    expected = 0.0
    for i in range(12):
        others = [np.exp(z[i] @ z[k] / 0.5) for k in range(12) if k != i]
        expected -= np.log(np.exp(z[i] @ z[(i + 6) % 12] / 0.5) / sum(others)) / 12
    found = jax.jit(lambda a, b: (SimCLR(0.5)(a, b), BarlowTwins(0.01)(a, b), VICReg()(a, b)))(a, b)
    np.testing.assert_allclose(found[0], expected, rtol=1e-5)

    c = np.corrcoef(a.T, b.T)[:3, 3:]
    expected = sum((1 - c[i, i]) ** 2 for i in range(3)) + 0.01 * sum(
        c[i, j] ** 2 for i in range(3) for j in range(3) if i != j
    )
    np.testing.assert_allclose(found[1], expected, rtol=1e-4)

    expected = 25 * np.mean((a - b) ** 2)
    for view in (a, b):
        covariance = np.cov(view.T)
        expected += 25 * np.mean(np.maximum(0, 1 - np.sqrt(np.diag(covariance) + 1e-4))) / 2
        expected += (np.sum(covariance**2) - np.sum(np.diag(covariance) ** 2)) / 3
    np.testing.assert_allclose(found[2], expected, rtol=1e-5)


IMAGE = np.random.default_rng(3).normal(size=(5, 4, 2)).astype(np.float32)  # no two entries are alike
SERIES = np.random.default_rng(4).normal(size=(7, 2)).astype(np.float32)
NUMBER = 600  # of keys: a place that is one of 25 is missed by all of them once in 10¹⁰


@pytest.fixture(scope="module")
def views():
    """All views of one image and one series with many keys, as one program."""

    @jax.jit
    @jax.vmap
    def drawn(key):
        image = {
            "shift": Shift(2), "flip": Flip(), "always": Flip(1.0), "never": Flip(0.0), "bright": Brightness(0.4),
            "cutout": Cutout(2), "noise": Noise(0.3),
        }  # fmt: skip
        series = {"shift": TimeShift(2), "mask": TimeMask(3), "rescale": Rescale(0.2)}
        chain = Compose(Shift(2), Noise(0.3), Flip(1.0))
        first = Shift(2)(jax.random.fold_in(key, 0), IMAGE)
        by_hand = Noise(0.3)(jax.random.fold_in(key, 1), first)[:, ::-1]
        found = [{name: view(key, x) for name, view in each.items()} for each, x in ((image, IMAGE), (series, SERIES))]
        return *found, chain(key, IMAGE), by_hand

    return jax.tree.map(np.asarray, drawn(jax.random.split(KEY, NUMBER)))


def places(views):
    return {np.asarray(view).tobytes() for view in views}


def test_views_of_images_are_all_that_they_may_be_and_nothing_else(views):
    image = views[0]
    padded = np.pad(IMAGE, ((2, 2), (2, 2), (0, 0)), mode="edge")
    assert places(image["shift"]) == places([padded[i : i + 5, j : j + 4] for i in range(5) for j in range(5)])
    holes = np.repeat(IMAGE[None], 12, axis=0)
    for number in range(12):
        holes[number, number // 3 : number // 3 + 2, number % 3 : number % 3 + 2] = IMAGE.mean()
    apart = np.abs(image["cutout"][:, None] - holes[None]).max(axis=(2, 3, 4))
    assert set(apart.argmin(axis=1)) == set(range(12))
    assert apart.min(axis=1).max() < 1e-6
    np.testing.assert_array_equal(image["always"], np.repeat(IMAGE[None, :, ::-1], NUMBER, axis=0))
    np.testing.assert_array_equal(image["never"], np.repeat(IMAGE[None], NUMBER, axis=0))
    turned = np.all(image["flip"] == IMAGE[:, ::-1], axis=(1, 2, 3))
    assert abs(turned.mean() - 0.5) < 5 * 0.5 / np.sqrt(NUMBER)
    assert np.all(image["flip"][~turned] == IMAGE)


def test_shifts_and_holes_of_images_wider_and_higher_than_they_are():
    """All places there are, of each axis its own: what is shifted in repeats the border, no hole is cut by it."""
    images = [np.arange(1.0, 1.0 + h * w, dtype=np.float32).reshape(h, w) for h, w in ((2, 5), (5, 2), (3, 4))]

    @jax.jit
    @jax.vmap
    def drawn(key):
        return [(Cutout(2)(key, image), Shift(1)(key, image)) for image in images]

    for image, (holed, shifted) in zip(images, drawn(jax.random.split(KEY, 300)), strict=True):
        (h, w), padded = image.shape, np.pad(image, 1, mode="edge")
        corners = [(i, j) for i in range(h - 1) for j in range(w - 1)]
        gone = {frozenset(zip(*np.nonzero(one != image), strict=True)) for one in np.asarray(holed)}
        assert gone == {frozenset((i + a, j + b) for a in (0, 1) for b in (0, 1)) for i, j in corners}
        assert set(np.asarray(holed)[np.asarray(holed) != image[None]].tolist()) == {float(image.mean())}
        assert places(shifted) == places([padded[i : i + h, j : j + w] for i in range(3) for j in range(3)])


def test_brightness_and_noise_have_the_sizes_asked_for(views):
    """x ↦ c (x − mean) + mean + b: c and b are found again from every view; uniform in 1 ± 0.4 and ± 0.2."""
    bright, centred = views[0]["bright"], IMAGE - IMAGE.mean()
    b = bright.mean(axis=(1, 2, 3)) - IMAGE.mean()
    c = np.sum(bright * centred, axis=(1, 2, 3)) / np.sum(centred**2)
    expected = c[:, None, None, None] * centred + IMAGE.mean() + b[:, None, None, None]
    np.testing.assert_allclose(bright, expected, atol=1e-5)
    for value, middle, half in ((c, 1.0, 0.4), (b, 0.0, 0.2)):
        assert np.abs(value - middle).max() <= half + 1e-5
        assert value.min() < middle - 0.95 * half < middle + 0.95 * half < value.max()
        assert abs(value.mean() - middle) < 5 * half / np.sqrt(3 * NUMBER)
    assert abs(np.corrcoef(b, c)[0, 1]) < 5 / np.sqrt(NUMBER)
    noise = views[0]["noise"] - IMAGE
    np.testing.assert_allclose(noise.std(), 0.3, rtol=5 / np.sqrt(2 * noise.size))
    assert abs(np.corrcoef(noise[:, 0, 0, 0], noise[:, 1, 0, 0])[0, 1]) < 5 / np.sqrt(NUMBER)


def test_views_of_series_are_all_that_they_may_be_and_nothing_else(views):
    series = views[1]
    assert places(series["shift"]) == places([np.roll(SERIES, shift, axis=0) for shift in range(-2, 3)])
    gaps = np.repeat(SERIES[None], 5, axis=0)
    for start in range(5):
        gaps[start, start : start + 3] = SERIES.mean(axis=0)
    apart = np.abs(series["mask"][:, None] - gaps[None]).max(axis=(2, 3))
    assert set(apart.argmin(axis=1)) == set(range(5))
    assert apart.min(axis=1).max() < 1e-6
    factors = series["rescale"] / SERIES
    np.testing.assert_allclose(factors, np.broadcast_to(factors[:, :1], factors.shape), rtol=1e-5)
    logs = np.log(factors[:, 0])
    np.testing.assert_allclose(logs.std(axis=0), 0.2, rtol=5 / np.sqrt(2 * NUMBER))
    assert abs(np.corrcoef(logs.T)[0, 1]) < 5 / np.sqrt(NUMBER)  # every channel has its own


def test_views_one_after_the_other_and_two_of_each(views):
    np.testing.assert_allclose(views[2], views[3], atol=1e-6)
    batch = np.arange(4.0, dtype=np.float32)[:, None] * np.ones(3, np.float32)

    @jax.jit
    def both(key):
        keys = jax.random.split(key, (2, 4))
        return two_views(key, Noise(0.1), batch), jax.vmap(jax.vmap(Noise(0.1)), in_axes=(0, None))(keys, batch)

    found, expected = both(KEY)
    np.testing.assert_allclose(np.stack(found), expected, atol=1e-6)
    assert not np.any(np.asarray(found[0]) == np.asarray(found[1]))


def blobs(seed, n=300):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, n)
    return (2.5 * np.eye(3, 6)[labels] + rng.normal(size=(n, 6))).astype(np.float32), labels


def test_the_linear_probe_is_logistic_regression():
    x, y = blobs(0)
    test_x, test_y = blobs(1)
    # features come as they are, each of another size, a small one among those that tell the classes: the probe
    # standardises both sets by the known ones
    sizes = np.array([0.03, 3.0, 30.0, 0.3, 3.0, 100.0], np.float32)
    x, test_x = 50 + sizes * x, 50 + sizes * test_x
    found = jax.jit(lambda: linear_probe(x, y, test_x, test_y, 3, decay=1e-2))()
    mean, std = np.asarray(x).mean(0), np.asarray(x).std(0)
    peer = LogisticRegression(C=1 / (1e-2 * len(x)), max_iter=1000).fit((np.asarray(x) - mean) / std, y)
    share = peer.score((np.asarray(test_x) - mean) / std, test_y)
    assert abs(float(found.value) - share) <= 2 / 300
    assert float(found.low) < share < float(found.high)


def test_fine_tuning_learns_what_a_random_network_does_not_know():
    x, y = blobs(0)
    test_x, test_y = blobs(1)
    model = eqx.nn.MLP(6, 4, 16, 1, key=KEY)
    tune = eqx.filter_jit(
        lambda steps: fine_tune(
            KEY, model, x, y, test_x, test_y, 3, optimiser=optax.adam(1e-2), num_steps=steps, batch=32
        )
    )
    assert float(tune(300).value) > 0.85


def test_one_step_of_fine_tuning_by_hand():
    """SGD on the mean cross-entropy of the drawn examples, head and encoder, with the gradients written out."""
    rng = np.random.default_rng(5)
    x, labels = rng.normal(size=(9, 4)), rng.integers(0, 3, 9)
    w, matrix, bias = rng.normal(size=(2, 4)), rng.normal(size=(2, 3)), rng.normal(size=3)
    start = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), (w, (matrix, bias)))
    given = jnp.asarray(x, jnp.float32), jnp.asarray(labels)
    tuning = FineTuning(KEY, *given, (None, (None, None)), apply, optax.sgd(0.5), 5)

    @jax.jit
    def run(start):
        chosen = jax.random.randint(jax.random.fold_in(KEY, 3), (5,), 0, 9)
        return tuning((start, tuning.optimiser.init(start)), jnp.asarray(3))[0][0], chosen

    found, chosen = jax.tree.map(np.asarray, run(start))
    x, labels = x[chosen], labels[chosen]
    logits = x @ w.T @ matrix + bias
    chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    pull = (chances - np.eye(3)[labels]) / 5
    slopes = matrix @ pull.T @ x, ((x @ w.T).T @ pull, pull.sum(axis=0))
    expected = jax.tree.map(lambda leaf, slope: leaf - 0.5 * slope, (w, (matrix, bias)), slopes)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), found, expected)


def test_fine_tuning_trains_the_encoder_too():
    """The features are blind to the second entry, which alone tells the classes: a new last layer cannot help it."""
    x = jax.random.normal(KEY, (400, 2))
    y = (x[:, 1] > 0).astype(int)
    blind = eqx.tree_at(lambda m: m.weight, eqx.nn.Linear(2, 2, key=KEY), jnp.array([[1.0, 0.0], [0.5, 0.0]]))
    frozen = linear_probe(jax.vmap(blind)(x[:200]), y[:200], jax.vmap(blind)(x[200:]), y[200:], 2)
    tuned = fine_tune(
        KEY, blind, x[:200], y[:200], x[200:], y[200:], 2, optimiser=optax.adam(0.05), num_steps=100, batch=64
    )
    assert float(frozen.value) < 0.65 < 0.9 < float(tuned.value)


def test_the_report_on_collapse_recomputed():
    """Eigenvalues, the exponential of their shares' entropy, the spread; zeros have rank 1 and nothing left."""
    z = np.random.default_rng(6).normal(size=(40, 3)) * [3.0, 1.0, 0.2] + 0.5
    report = jax.jit(collapse_report)
    found = report(z.astype(np.float32))
    eigenvalues = np.linalg.eigvalsh(z.T @ z / 40)[::-1]
    shares = eigenvalues / eigenvalues.sum()
    directions = z / np.linalg.norm(z, axis=1, keepdims=True)
    np.testing.assert_allclose(found.eigenvalues, eigenvalues, rtol=1e-4)
    np.testing.assert_allclose(found.effective_rank, np.exp(-np.sum(shares * np.log(shares))), rtol=1e-5)
    np.testing.assert_allclose(found.spread, np.sqrt(3) * directions.std(axis=0).mean(), rtol=1e-5)
    assert not bool(found.collapsed)
    nothing = report(np.zeros((40, 3), np.float32))
    assert (float(nothing.effective_rank), float(nothing.spread), bool(nothing.collapsed)) == (1.0, 0.0, True)


def test_collapse_is_where_the_text_says_at_every_threshold():
    """The spread below it, or a smaller share of E‖z‖² than it beside the first direction."""
    rng = np.random.default_rng(8)
    tables = rng.normal(size=(3, 30, 4)) * np.array([[[1.0, 0.7, 0.4, 0.2]], [[1.0, 0.2, 0.2, 0.2]], [[0.01] * 4]])
    tables[2] += np.eye(4)[0]
    tables[2, 7] = 6 * np.eye(4)[1]  # of nearly all the direction is one, and of the square half lies elsewhere
    thresholds = np.linspace(0.01, 0.99, 99)
    found = jax.jit(jax.vmap(jax.vmap(lambda z, t: collapse_report(z, t).collapsed, (None, 0)), (0, None)))
    seen, by_spread = found(tables.astype(np.float32), thresholds), 0
    for z, collapsed in zip(tables, np.asarray(seen), strict=True):
        eigenvalues = np.linalg.eigvalsh(z.T @ z)
        share = eigenvalues[:-1].sum() / eigenvalues.sum()
        spread = np.sqrt(4) * (z / np.linalg.norm(z, axis=1, keepdims=True)).std(axis=0).mean()
        by_spread += spread < share
        assert min(abs(thresholds - share).min(), abs(thresholds - spread).min()) > 1e-5
        np.testing.assert_array_equal(collapsed, (spread < thresholds) | (share < thresholds))
    assert 0 < by_spread < 3


@pytest.mark.parametrize("kind", ["siamese", "joint"])
def test_what_a_step_reports_recomputed(kind):
    """From the outputs before it, of both views, of which the second is nearly one point."""
    rng = np.random.default_rng(9)
    model, views = rng.normal(size=(4, 6)), rng.normal(size=(2, 10, 6))
    views[1] = views[1, :1] + 0.1 * views[1]
    if kind == "siamese":
        trainer = Siamese(Identity(4), optax.sgd(0.1), momentum=None, apply=apply)
    else:
        trainer = JointEmbedding(lambda a, b: ((a - b) ** 2).sum(), optax.sgd(0.1), apply=apply)
    start = trainer.init(KEY, jnp.asarray(model, jnp.float32))
    state, info = eqx.filter_jit(trainer.step)(start, *views.astype(np.float32))
    z = views @ model.T
    units = z / np.linalg.norm(z, axis=2, keepdims=True)
    loss = 2 * np.mean(((units[0] - units[1]) ** 2).sum(1)) if kind == "siamese" else ((z[0] - z[1]) ** 2).sum()
    np.testing.assert_allclose(info.loss, loss, rtol=1e-5)
    np.testing.assert_allclose(info.spread, 2 * units.reshape(20, 4).std(axis=0).mean(), rtol=1e-5)
    assert (int(info.cost), int(info.status), int(state.step)) == (20, Status.OK, 1)


def test_the_interval_is_wilsons():
    of = jax.jit(accuracy)
    for right, n in ((0, 10), (3, 10), (10, 10), (70, 80)):
        found = of(np.ones(n, int), (np.arange(n) < right).astype(int))
        wilson = binomtest(right, n).proportion_ci(0.95, method="wilson")
        np.testing.assert_allclose([found.low, found.high], [wilson.low, wilson.high], atol=1e-5)


def train(predictor, steps=400, floor=0.0, **settings):
    """A linear network on views that share three directions of eight; the outputs of fresh examples.

    floor: what the augmentation adds to the shared directions too. Only where it adds something do they die.
    """
    siamese = Siamese(predictor, optax.sgd(0.05), **settings)
    mask = jnp.array([1.0] * 3 + [0.0] * 5)

    def views(key):
        x = jax.random.normal(key, (64, 8))
        scale = 1.5 * (1 - mask) + floor * mask
        return x[None] + jax.random.normal(jax.random.fold_in(key, 1), (2, 64, 8)) * scale[None, None, :]

    @jax.jit
    def run(key):
        def step(state, t):
            v1, v2 = views(jax.random.fold_in(key, t))
            state, info = siamese.step(state, v1, v2)
            return state, info.loss

        state = siamese.init(key, 0.5 * jax.random.normal(key, (4, 8)))
        state, losses = jax.lax.scan(step, state, jnp.arange(steps))
        return views(jax.random.key(7))[0] @ state.online.T, losses

    return run(KEY)


def apply(model, batch):
    return batch @ model.T


def test_without_predictor_or_stop_gradient_it_collapses_and_the_monitor_says_so():
    common = {"apply": apply, "loss": "l2", "momentum": None, "steps": 1000, "floor": 0.5}
    alive, _ = train(Linear(4), **common)
    dead, _ = train(Identity(4), **common)
    through, _ = train(Linear(4), **common, stop_gradient=False)
    size = lambda z: float(np.mean(np.sum(np.asarray(z) ** 2, axis=1)))  # noqa: E731
    assert size(dead) < 0.2 * size(alive)
    assert size(through) < 0.1 * size(alive)
    report = jax.jit(collapse_report)
    constant = np.float32(1 + 1e-6 * np.random.default_rng(0).normal(size=(64, 4)))
    assert bool(report(constant).collapsed)
    assert float(report(constant).effective_rank) < 1.01  # centred it would be four
    assert not bool(report(alive).collapsed)


@pytest.mark.slow
def test_direct_pred_keeps_more_directions_than_no_predictor():
    direct, _ = train(DirectPred(4, rho=0.5), apply=apply, momentum=0.99, steps=3000)
    none, _ = train(Identity(4), apply=apply, momentum=0.99, steps=3000)
    assert float(collapse_report(direct).effective_rank) > 2.5
    assert float(collapse_report(none).effective_rank) < float(collapse_report(direct).effective_rank)


SLOW = pytest.mark.slow  # test_the_references_losses_by_hand pins what they minimise


@pytest.mark.parametrize(
    "loss", [SimCLR(), pytest.param(BarlowTwins(), marks=SLOW), pytest.param(VICReg(), marks=SLOW)]
)
def test_the_references_learn_what_the_views_share(loss):
    trainer = JointEmbedding(loss, optax.adam(1e-2), apply=apply)
    model = 0.5 * jax.random.normal(KEY, (3, 8))
    mask = jnp.array([1.0] * 3 + [0.0] * 5)

    @jax.jit
    def run(state):
        def step(state, t):
            key = jax.random.fold_in(KEY, t)
            x = jax.random.normal(key, (64, 8))
            noise = 1.5 * jax.random.normal(jax.random.fold_in(key, 1), (2, 64, 8)) * (1 - mask)[None, None, :]
            return trainer.step(state, x + noise[0], x + noise[1])[0], None

        return jax.lax.scan(step, state, length=None, xs=jnp.arange(600))[0]

    w = run(trainer.init(KEY, model)).online
    shared = float(jnp.sum(w[:, :3] ** 2) / jnp.sum(w**2))
    assert shared > 0.9  # 3/8 at the start
