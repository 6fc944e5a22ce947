"""Which rows of a data set a problem hands out, how they are scaled, and whose labels they have: recomputed in NumPy.

Of the two larger sets there are small ones of noise, of their shapes, so that every path of 28 x 28 pixels is run.
"""

import itertools

import equinox as eqx
import jax
import numpy as np
import pytest

from laureate.problems import (
    answers,
    classes,
    classification,
    classifiers,
    confidences,
    datasets,
    images,
    long_tails,
    novelty,
    peers,
    pools,
    recovery,
    scores,
    several_tasks,
    spins,
    supernets,
    supports,
    tables,
    two_models,
    unrolls,
    views,
)
from laureate.problems.energies import trained_rbm
from laureate.problems.unrolls import training_runs

SETS = ("digits", "mnist-5k", "fashion-mnist")
LABELS = np.random.default_rng(1).permutation(np.arange(360) % 10).astype(np.int32)
NOISE = np.random.default_rng(2).integers(0, 256, (360, 28, 28), np.uint8)


@pytest.fixture(autouse=True)
def large_sets(monkeypatch):
    clothes = datasets.LabelledImages(NOISE[:300], LABELS[:300], NOISE[300:], LABELS[300:])
    monkeypatch.setattr(datasets, "mnist_5k", lambda: (NOISE, LABELS))
    monkeypatch.setattr(datasets, "fashion_mnist", lambda: clothes)


def rows_of(data, train=None, test=0):
    """Images in [0, 1] and labels: the first so many, and the last, at most a fifth, or of a set's own second part."""
    pictures, labels = datasets.digits() if data == "digits" else (NOISE / np.float32(255), LABELS)
    if data == "fashion-mnist":
        known, end, held = len(labels[:300]), 300 + test, 300
    else:
        known = held = len(labels) - min(test, len(labels) // 5)
        end = len(labels)
    first = slice(known if train is None else min(known, train))
    return pictures[first], labels[first], pictures[held:end], labels[held:end]


def pooled(pictures, pool):
    """Means over squares of pool x pool pixels, one square at a time."""
    side = pictures.shape[1] // pool
    found = np.empty((len(pictures), side, side), np.float32)
    for i, j in np.ndindex(side, side):
        found[:, i, j] = pictures[:, i * pool : (i + 1) * pool, j * pool : (j + 1) * pool].mean((1, 2))
    return found


def small(pictures):
    """Those of 28 x 28 averaged to 14 x 14."""
    return pooled(pictures, 2) if pictures.shape[1] == 28 else pictures


def flat(pictures):
    return pictures.reshape(len(pictures), -1)


def image_rows(data):
    found, (x, y, v, w) = classification.ImageRows(data, 50, 20), rows_of(data, 50, 20)
    assert found.num_classes == 10
    return (found.inputs, flat(x)), (found.labels, y), (found.test_inputs, flat(v)), (found.test_labels, w)


def classified(data):
    pool = 2 if data == "digits" else 7
    found, (x, y, v, w) = classifiers.ImageClasses(data, 50, 20, pool), rows_of(data, 50, 20)
    assert found.num_classes == 10
    pictures = ((found.images, pooled(x, pool)[..., None]), (found.test_images, pooled(v, pool)[..., None]))
    return *pictures, (found.labels, y), (found.test_labels, w)


def standardised(data):
    found, (x, y, v, w) = classes.image_classes(data, 40, 30, 20), rows_of(data, 70, 20)
    order = np.random.default_rng(0).permutation(70)
    x, y = small(x)[order].astype(np.float64), y[order]
    mean, deviation = x[:40].mean(), x[:40].std()
    scaled = lambda part: ((part - mean) / deviation)[..., None]  # noqa: E731
    inputs = ((found.inputs, scaled(x[:40])), (found.validation_inputs, scaled(x[40:])))
    held = ((found.test_inputs, scaled(small(v))), (found.test_labels, w))
    return *inputs, *held, (found.labels, y[:40]), (found.validation_labels, y[40:])


def binary(data):
    found, (x, _, v, _) = images.binary_images(data, 50, 20), rows_of(data, 50, 20)
    return (found.train, small(x) > 0.4999), (found.test, small(v) > 0.4999)


def spinning(data):
    """At a threshold that pixels of digits have: they are not above it."""
    found, (x, y, v, w) = spins.SpinImages(data, 80, 20, threshold=0.5), rows_of(data, 80, 20)
    up = np.where(flat(x) > 0.5, 1.0, -1.0)
    means = np.stack([up[y == label].mean(0) for label in range(10)])
    held = ((found.test_spins, np.where(flat(v) > 0.5, 1.0, -1.0)), (found.test_labels, w))
    made = ((found.directions, means), (found.patterns, np.where(means >= 0, 1.0, -1.0)))
    return *held, (found.spins, up), (found.labels, y), *made


def by_class(data):
    found, (x, y, v, w) = supports.ImagesByClass(data, 40, 30, 20), rows_of(data, 70, 20)
    order = np.random.default_rng(0).permutation(70)

    def scaled(pictures):
        if pictures.shape[1] == 28:  # a frame of two black pixels
            pictures = pooled(np.pad(pictures, ((0, 0), (2, 2), (2, 2))), 2)
        return (2 * pictures - 1)[..., None]

    x, y = scaled(x)[order], y[order]
    assert found.num_classes == 10
    known = ((found.train, x[:40]), (found.validation, x[40:]), (found.test, scaled(v)))
    return *known, (found.train_labels, y[:40]), (found.validation_labels, y[40:]), (found.test_labels, w)


def over_nodes(data):
    """Those of 28 x 28 at 14 x 14 at first; sorted by label, equal ones in the order in which they were chosen."""
    found = peers.ImagesOverNodes(4, 15, data, pool=2)
    x, y, _, _ = rows_of(data)
    chosen = np.random.default_rng(0).permutation(len(y))[:60]
    order = chosen[np.argsort(y[chosen], kind="stable")]
    x = pooled(small(x), 2)[order]
    return (found.images, flat(x)), (found.labels, y[order]), (found.side, x.shape[1])


def judged(data):
    found = peers.judged_images(4, 15, 20, data)
    x, y, _, _ = rows_of(data)
    others = np.random.default_rng(0).permutation(len(y))[60:80]
    return (found.test_images, flat(small(x))[others]), (found.test_labels, y[others]), (found.nodes, 4)


def rare(data):
    """The rare class is one class, the common one another; every row to learn from or to test on is another one."""
    pool = 2
    problem, (x, y, _, _) = novelty.RareImages(data, 8, 5, pool), rows_of(data, None, 0)
    each = np.stack([flat(pooled(x[y == label][:13], pool)) for label in range(10)])
    drawn = jax.jit(jax.vmap(problem.draw))(jax.random.split(jax.random.key(0), 60))
    found = [(problem.images, each)]
    which = lambda row: int(np.argmin([np.abs(own - np.asarray(row)).max(1).min() for own in each]))  # noqa: E731
    in_order = lambda rows: rows[np.lexsort(rows.round(3).T)]  # noqa: E731
    for one, other, held in zip(*drawn, strict=True):
        common, rare = which(one[0]), which(other[0])
        assert common != rare
        both = np.concatenate([other, held])
        found += [(one, each[common][:8]), (in_order(both), in_order(each[rare]))]
    return found


def two_speeds(data):
    problem, (x, y, _, _) = two_models.FastAndSlow(data, train=20, steps=2), rows_of(data)
    x = small(x)
    return (problem.images, flat(x) - x.mean()), (problem.coarse, flat(pooled(x, 2)) - x.mean()), (problem.labels, y)


def confident(data):
    problem, (x, y, _, _) = confidences.TrainedNetworks(data, train=20), rows_of(data)
    return (problem.inputs, flat(small(x))), (problem.labels, y)


def pairs(data):
    pool = 2
    problem, (x, y, _, _) = views.ImagePairs(data, pool), rows_of(data)
    x = pooled(x, pool).astype(np.float64)
    return (problem.images, (x - x.mean()) / x.std()), (problem.labels, y)


def labelled_pairs(data):
    side = 4 if data == "digits" else 14
    problem = views.LabelledPairs(data, side, channels=(2,), train=100, test=20)
    x, y, v, w = rows_of(data, 100, 20)
    x, v = (pooled(part, part.shape[1] // side).astype(np.float64) for part in (x, v))
    scaled = [(part - x.mean()) / x.std() for part in (x, v)]
    assert (problem.classes, problem.least) == (10, np.bincount(y).min())
    shown = ((problem.images, scaled[0]), (problem.test_images, scaled[1]))
    return *shown, (problem.labels, y), (problem.test_labels, w)


def numbered(data):
    problem, (x, y, _, _) = scores.DigitNumbers(data, train=20), rows_of(data)
    return (problem.images, flat(small(x)) - small(x).mean()), (problem.labels, y)


def positions(data):
    """Pixels of position (i, j): rows 2i and 2i + 1, columns 2j and 2j + 1; of 28 x 28 the inner 24 x 24 are taken."""
    problem, (x, y, v, w) = supernets.CellSupernet(data, 40, 20), rows_of(data, 40, 20)

    def cut(pictures):
        eight = pictures if data == "digits" else pooled(pictures[:, 2:26, 2:26], 3)
        return np.stack([flat(eight[:, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2]) for i, j in np.ndindex(4, 4)], 1)

    assert problem.num_classes == 10
    return (problem.inputs, cut(x)), (problem.labels, y), (problem.test_inputs, cut(v)), (problem.test_labels, w)


ANY_SET = (image_rows, classified, standardised, binary, spinning, by_class, over_nodes, judged, rare, two_speeds)
ANY_SET += (confident, pairs, labelled_pairs, numbered, positions)


def digit_images(data):
    whole, _ = datasets.digits()
    one, other = supports.DigitImages(30, 20, 10), recovery.DigitImages(30, 10)
    scaled = ((one.train, 2 * whole[:30] - 1), (one.validation, 2 * whole[30:50] - 1), (one.test, 2 * whole[-10:] - 1))
    return *scaled, (other.train, whole[:30]), (other.test, whole[-10:])


def halves(data):
    whole, labels = datasets.digits()
    one, other, found = answers.DigitHalves(30, 20, 10), answers.LabelledDigits(30, 20, 10), []
    for part, name in ((slice(30), ""), (slice(30, 50), "validation_"), (slice(-10, None), "test_")):
        found += [
            (getattr(one, f"{name}x"), whole[part, :4]),
            (getattr(one, f"{name}y"), whole[part, 4:]),
            (getattr(other, f"{name}x"), labels[part, None] == np.arange(10)),
            (getattr(other, f"{name}y"), whole[part]),
        ]
    return found


def patches(data):
    """Every second one or so of those that are bright enough, from the first to the last."""
    whole, _ = datasets.digits()
    every = np.stack([flat(whole[:, i : i + 5, j : j + 5]) for i, j in np.ndindex(4, 4)], 1).reshape(-1, 25)
    bright = every[np.sqrt((every.astype(np.float64) ** 2).sum(1)) > 0.5]
    chosen = np.linspace(0, len(bright) - 1, 77).astype(int)
    return ((recovery.DigitPatches(5, 77).patches, bright[chosen]),)


def own_rows(data):
    """A column that is constant in training is left as it is, less its mean."""
    x, held = np.array([[0.0, 1, 5], [2, 4, 5], [7, 1, 5]]), np.array([[3.0, 3, 4], [1, 1, 5]])
    found = long_tails.RareRows(x, [0, 1, 1], held, [1, 0]).draw(jax.random.key(0))
    deviation = np.array([*x.std(0)[:2], 1.0])
    table = tables.Table(x[:, :2], [3.0, 1.0, 2.0])
    scaled = ((found.inputs, (x - x.mean(0)) / deviation), (found.test_inputs, (held - x.mean(0)) / deviation))
    own = ((table.inputs, ((x - x.mean(0)) / deviation)[:, :2]), (table.response, [3.0, 1.0, 2.0]))
    return *scaled, (found.labels, [0, 1, 1]), (found.test_labels, [1, 0]), *own


def patients(data):
    """Deviations are of the whole population: divided by n."""
    inputs, targets = datasets.diabetes()
    rows, response = datasets.breast_cancer()
    table = tables.BreastCancer()
    scaled = ((inputs.std(0), np.ones(10)), (targets.std(), 1.0), (inputs.mean(0), np.zeros(10)), (targets.mean(), 0.0))
    return *scaled, (table.inputs, (rows - rows.mean(0)) / rows.std(0)), (table.response, response)


def prose(data):
    words, found = datasets.descriptions(), classification.Prose()
    part, letters = len(words) // 6, sorted(set(words))
    numbers = [letters.index(letter) for letter in words]
    ends = (0, len(words) - 2 * part, len(words) - part, len(words))
    parts = [numbers[first:end] for first, end in itertools.pairwise(ends)]
    return (found.num_characters, len(letters)), *zip((found.train, found.validation, found.test), parts, strict=True)


def learned(data):
    whole, labels = datasets.digits()
    x = pooled(whole, 2).astype(np.float64)
    one, run = unrolls.LearnedOptimiser(pool=2), training_runs.TrainingRun()
    order = np.random.default_rng(0).permutation(len(labels))
    scaled = flat(whole - whole.mean(dtype=np.float64)) / whole.std(dtype=np.float64)
    mine = ((run.images, scaled[order[200:]]), (run.labels, labels[order[200:]]), (run.others, scaled[order[:200]]))
    held = (run.other_labels, labels[order[:200]])
    return (one.images, flat((x - x.mean()) / x.std())), (one.labels, labels), *mine, held


def trained(data):
    x, _, _, _ = rows_of("digits", 60, 1)
    found = trained_rbm.trained_rbm("digits", hidden=2, updates=0, reference=62, sweeps=0, train=60)
    bits = flat(x >= 0.5)
    mean = np.clip(bits.mean(0), 0.01, 0.99)
    start = ((found.machine.visible_bias, np.log(mean / (1 - mean))), (found.machine.hidden_bias, np.zeros(2)))
    return (found.mean, mean), *start, (found.reference, bits[np.arange(62) % 60])


ONE_SET = (digit_images, halves, patches, own_rows, patients, prose, learned, trained)


@pytest.mark.parametrize(
    ("problem", "data"), [*((one, data) for one in ANY_SET for data in SETS), *((one, "digits") for one in ONE_SET)]
)
def test_rows_and_labels_are_those_that_the_problem_names(problem, data):
    for found, expected in problem(data):
        assert np.shape(found) == np.shape(expected)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=2e-5)


def places(rows, among):
    """Where in a data set of which no two rows are equal these rows stand; each must."""
    table, rows = (np.ascontiguousarray(np.asarray(part).reshape(len(part), -1)) for part in (among, rows))
    known = {row.tobytes(): place for place, row in enumerate(table)}
    return np.array([known[row.tobytes()] for row in rows])


def test_what_is_drawn_has_its_own_labels_and_no_row_is_on_both_sides():
    whole, labels = datasets.digits()
    whole = flat(whole)
    tail = eqx.filter_jit(long_tails.LongTailedDigits(head=50, ratio=20.0, test=30).draw)
    noiseless = eqx.filter_jit(pools.NoisyDigits(num_pool=90, num_test=80, noise=0.0).draw)
    for seed in range(2):
        key = jax.random.key(seed)
        split = tail(key)
        train, test = places(split.inputs, whole), places(split.test_inputs, whole)
        np.testing.assert_array_equal(labels[train], split.labels)
        np.testing.assert_array_equal(labels[test], split.test_labels)
        np.testing.assert_array_equal(np.bincount(labels[test]), np.full(10, 30))
        assert (np.diff(np.bincount(split.labels)) > 0).any()
        assert (np.diff(np.bincount(split.labels)) < 0).any()  # which class is the r-th is drawn
        counts = [np.round(50 * 20.0 ** (-r / 9)) for r in range(10)]
        np.testing.assert_array_equal(np.sort(np.bincount(labels[train]))[::-1], counts)
        assert len({*train, *test}) == len(train) + len(test)
        pool = noiseless(key)
        mine, others = places(pool.inputs, whole), places(pool.test_inputs, whole)
        np.testing.assert_array_equal(labels[mine], pool.labels)
        for said in (pool.test_labels, pool.test_truth):
            np.testing.assert_array_equal(labels[others], said)
        assert len({*mine, *others}) == 170
    # All labels wrong: a class at random, the right one too; the truth stays.
    wrong = eqx.filter_jit(pools.NoisyDigits(num_pool=700, num_test=700, decay=1.0, noise=1.0).draw)(jax.random.key(2))
    np.testing.assert_array_equal(labels[places(wrong.test_inputs, whole)], wrong.test_truth)
    for said, truth in ((wrong.labels, labels[places(wrong.inputs, whole)]), (wrong.test_labels, wrong.test_truth)):
        assert np.abs(np.bincount(said, minlength=10) - 70).max() < 4.5 * np.sqrt(63)
        assert np.mean(said == truth) == pytest.approx(0.1, abs=4.5 * np.sqrt(0.09 / 700))


def test_rarer_classes_are_drawn_as_rarely_as_said():
    """Of few rows out of many, class c has a share in proportion to its rows times decay^c."""
    _, labels = datasets.digits()
    problem = pools.NoisyDigits(num_pool=20, num_test=10, decay=0.7, noise=0.0)
    drawn = jax.jit(jax.vmap(lambda key: problem.draw(key).labels))(jax.random.split(jax.random.key(0), 300))
    weight = np.bincount(labels) * 0.7 ** np.arange(10)
    expected = weight / weight.sum()
    found = np.bincount(np.ravel(drawn), minlength=10) / np.size(drawn)
    assert (np.abs(found - expected) < 4.5 * np.sqrt(expected / np.size(drawn)) + 0.004).all()


def test_tasks_keep_their_parts_apart_whatever_is_drawn():
    """A digit is in one part only, its partner in the same, and in training it is one dialect's."""
    whole, labels = datasets.digits()
    flat_whole = flat(whole)
    for seed in (None, 3):
        over = several_tasks.OverlaidDigits(hidden=2, batch_size=50)
        asked = several_tasks.DigitQuestions(hidden=2, batch_size=50)
        if seed is not None:
            over, asked = over.draw(jax.random.key(seed)), asked.draw(jax.random.key(seed))
        at = places(over.images, flat_whole)
        np.testing.assert_array_equal(labels[at], over.labels)
        assert sorted(at) == list(range(1797))
        for first, end in several_tasks.PARTS.values():
            assert sorted(np.asarray(over.partners[first:end])) == list(range(first, end))
        # Rows of the batch are drawn as they are anywhere: left and right ones, each at its end of the diagonal.
        left, right = np.asarray(jax.random.randint(jax.random.key(1), (2, 50), 0, 1000))
        pictures, named = map(np.asarray, over.batch(jax.random.key(1)))
        each, said = np.asarray(over.images), np.asarray(over.labels)
        expected = np.zeros((50, 10, 10), np.float32)
        expected[:, :8, :8] = each[left]
        expected[:, 2:, 2:] = np.maximum(expected[:, 2:, 2:], each[right])
        np.testing.assert_array_equal(pictures, flat(expected))
        np.testing.assert_array_equal(named, np.stack([said[left], said[right]], 1))
        at = places(asked.inputs, flat_whole)
        np.testing.assert_array_equal(labels[at], asked.labels)
        assert np.asarray(asked.batch(jax.random.key(2))).max() < 1000


def test_labels_that_are_no_whole_numbers_are_refused():
    """Whole floats are taken for what they are; a class of its own below 0, a half and what is no number are told."""
    x, held = [[0.0], [1.0], [2.0]], [[1.0], [2.0]]
    split = long_tails.RareRows(x, [0.0, 1.0, 1.0], held, [1.0, 0.0]).split
    assert split.labels.dtype == split.test_labels.dtype == np.int32
    for wrong, said in (([0, -1, 1], r"\[-1\]"), ([0, 0.5, 1], r"\[0.5\]"), ([0, np.nan, 1], r"\[nan\]")):
        with pytest.raises(ValueError, match=rf"RareRows.labels must be whole numbers from 0 on; got {said}"):
            long_tails.RareRows(x, wrong, held, [0, 1])
    with pytest.raises(ValueError, match=r"RareRows.test_labels must be whole numbers from 0 on; got \[-1\]"):
        long_tails.RareRows(x, [0, 1, 1], held, [-1, 1])


def test_rows_of_ones_own_that_fit_no_others_are_refused():
    """One column alone would be repeated for all; what is no number would be nobody's mean; no row has no class."""
    x, held = [[0.0, 1.0], [1.0, 5.0], [2.0, 3.0]], [[1.0, 2.0], [2.0, 0.0]]
    nan = [[1.0, np.nan], [2.0, 0.0]]
    cases = [
        (
            (x, [0, 1, 1], [[1.0], [2.0]], [0, 1]),
            r"test_inputs must be a matrix \[m, 2\] of one row at least; got \(2, 1\)",
        ),
        ((x, [0, 1, 1], [1.0, 2.0], [0, 1]), r"test_inputs must be a matrix \[m, 2\] of one row at least; got \(2,\)"),
        ((x, [0, 1, 1], nan, [0, 1]), "test_inputs must be finite; got False. Impute or leave out rows"),
        ((nan, [0, 1], held, [0, 1]), "inputs must be finite; got False. Impute or leave out rows"),
        ((np.zeros((0, 2)), [], held, [0, 1]), r"inputs must be a matrix \[n, d\] of one row at least; got \(0, 2\)"),
        ((x, [0, 1, 1], np.zeros((0, 2)), []), r"test_inputs must be .*; got \(0, 2\)"),
    ]
    for given, said in cases:
        with pytest.raises(ValueError, match=rf"RareRows\.{said}"):
            long_tails.RareRows(*given)


@pytest.mark.parametrize(
    "make",
    [scores.ScoreTable, lambda logits, labels: two_models.AnswerTable(logits, labels, [True] * 3)],
)
def test_labels_of_ones_own_logits_are_their_classes(make):
    """An array would hand out the last class for one that there is not."""
    logits = [[0.0, 1.0], [-np.inf, 0.0], [2.0, 1.0]]
    table = make(logits, [1.0, 0.0, 1.0])
    assert (table.labels.tolist(), table.labels.dtype) == ([1, 0, 1], np.int32)
    for wrong in (2, -1, 0.5, np.nan):
        with pytest.raises(ValueError, match=rf"Table.labels must be whole numbers from 0 to 1, .*; got \[{wrong}\]"):
            make(logits, [1, wrong, 0])
    with pytest.raises(ValueError, match=r"Table.logits must be without nan; got '1 rows with some'. Leave them out"):
        make([[0.0, np.nan], [1.0, 0.0], [0.0, 0.0]], [0, 1, 1])
