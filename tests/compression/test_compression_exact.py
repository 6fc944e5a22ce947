"""Quantisers against what is known exactly: NumPy in double precision, closed forms, invariances."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate.compression import Grid, ProductQuantizer, ScalarQuantizer, nearest, pack, unpack
from laureate.compression import kmeans as kmeans_outside_jit
from laureate.compression.quantizer import as_rows, from_rows

WEIGHTS = np.random.default_rng(0).normal(size=(12, 16))


@pytest.fixture(autouse=True)
def _in_double_precision():
    with jax.enable_x64(True):
        yield


kmeans = eqx.filter_jit(kmeans_outside_jit)


@eqx.filter_jit
def fit_and_round(quantizer, weights, key=None):
    parameters = quantizer.fit(key, weights)
    return round_trip(quantizer, weights, parameters), parameters


@eqx.filter_jit
def round_trip(quantizer, weights, parameters):
    return quantizer.decode(quantizer.encode(weights, parameters), parameters, weights.shape)


def rounded(quantizer, weights, grid=None):
    weights = np.asarray(weights)
    found, grid = fit_and_round(quantizer, weights) if grid is None else (round_trip(quantizer, weights, grid), grid)
    return np.asarray(found), jax.tree.map(np.asarray, grid)


# --- scalars ----------------------------------------------------------------------------------------------------------

SCALARS = [
    ScalarQuantizer(bits, scheme, granularity, observer)
    for bits, scheme, granularity, observer in [
        (8, "affine", "tensor", "minmax"),
        (4, "symmetric", "tensor", "minmax"),
        (3, "affine", "channel", "minmax"),
        (2, "symmetric", "channel", "minmax"),
        (1, "affine", "tensor", "minmax"),
        (3, "symmetric", "tensor", "mse"),
        (2, "affine", "channel", "mse"),
    ]
]


@pytest.mark.parametrize("granularity", ["tensor", "channel"])
@pytest.mark.parametrize("scheme", ["affine", "symmetric"])
@pytest.mark.parametrize("outputs", ["first", "last"])
def test_rounding_is_that_of_the_equations(scheme, granularity, outputs):
    quantizer = ScalarQuantizer(3, scheme, granularity, outputs=outputs)
    found, _ = rounded(quantizer, WEIGHTS)
    rows = {"tensor": WEIGHTS.reshape(1, -1), "channel": WEIGHTS if outputs == "first" else WEIGHTS.T}[granularity]
    if scheme == "affine":
        low, high = rows.min(1, keepdims=True), rows.max(1, keepdims=True)
        step = (high - low) / 7
        zero = np.round(-low / step)
        wanted = (np.clip(np.round(rows / step) + zero, 0, 7) - zero) * step
    else:
        step = np.abs(rows).max(1, keepdims=True) / 3
        wanted = np.clip(np.round(rows / step), -3, 3) * step
    wanted = wanted.T if granularity == "channel" and outputs == "last" else wanted
    np.testing.assert_allclose(found, wanted.reshape(WEIGHTS.shape), atol=1e-12)


@pytest.mark.parametrize("quantizer", SCALARS, ids=str)
def test_what_is_rounded_stays_and_order_and_zero_are_kept(quantizer):
    weights = WEIGHTS.copy()
    weights[:, 0] = 0.0
    found, grid = rounded(quantizer, weights)
    assert (found[:, 0] == 0).all()
    np.testing.assert_array_equal(rounded(quantizer, found, grid)[0], found)  # the same grid
    np.testing.assert_allclose(rounded(quantizer, found)[0], found, atol=1e-12)  # a grid found anew
    inside = np.asarray(eqx.filter_jit(quantizer.inside)(weights, grid))
    assert (np.abs(found - weights)[inside] <= np.broadcast_to(grid.scale / 2, found.shape)[inside] + 1e-12).all()
    if quantizer.observer == "minmax":
        assert inside.all()
    assert len(np.unique(found[0])) <= 2**quantizer.num_bits
    order = np.argsort(weights, axis=1)
    assert (np.diff(np.take_along_axis(found, order, 1), axis=1) >= 0).all()  # w1 <= w2: φ(w1) <= φ(w2)


def test_the_symmetric_scheme_is_odd_and_ties_are_no_exception():
    weights = np.array([[-3.0, -1.5, -0.5, 0.5, 1.5, 2.5, 3.0]])
    quantizer = ScalarQuantizer(3, "symmetric")
    found, grid = rounded(quantizer, weights)
    np.testing.assert_array_equal(rounded(quantizer, -weights)[0], -found)
    np.testing.assert_array_equal(rounded(quantizer, WEIGHTS)[0], -rounded(quantizer, -WEIGHTS)[0])
    assert float(grid.scale.item()) == 1.0


@pytest.mark.slow  # codes and steps are pinned exactly
def test_a_bit_more_halves_the_error():
    weights = np.random.default_rng(1).uniform(-1, 1, (100, 100))
    for scheme in ("affine", "symmetric"):
        errors = [np.abs(rounded(ScalarQuantizer(bits, scheme), weights)[0] - weights).mean() for bits in range(4, 13)]
        ratios = np.array(errors[:-1]) / errors[1:]
        # s ∝ 1/(2^N - 1), or 1/(2^(N-1) - 1): a little more than 2 for few bits.
        assert (ratios > 1.9).all(), ratios
        assert (ratios < 2.3).all(), ratios
        np.testing.assert_allclose(ratios[-1], 2, rtol=0.02)


def test_the_mse_observer_cuts_an_outlier_and_never_does_worse():
    weights = np.random.default_rng(2).normal(size=(4, 64))
    weights[0, 0] = 12.0
    for granularity in ("tensor", "channel"):
        errors = [
            ((rounded(ScalarQuantizer(2, "affine", granularity, observer), weights)[0] - weights) ** 2).sum(1)
            for observer in ("minmax", "mse")
        ]
        assert errors[1].sum() < 0.9 * errors[0].sum()
        if granularity == "channel":
            assert (errors[1] <= errors[0] + 1e-12).all()


@pytest.mark.parametrize("value", [0.0, 0.7, -0.3])
@pytest.mark.parametrize("quantizer", SCALARS[:4], ids=str)
def test_a_constant_weight_is_itself(quantizer, value):
    found, grid = rounded(quantizer, np.full((3, 5), value))
    np.testing.assert_allclose(found, value, atol=1e-15)
    assert np.isfinite(np.asarray(grid.scale)).all()


def test_the_range_of_a_grid():
    quantizer = ScalarQuantizer(2)
    grid = quantizer.fit(None, jnp.array([[-1.0, 2.0]]))  # codes stand for -1, 0, 1, 2
    inside = quantizer.inside(jnp.array([-1.6, -1.4, 0.0, 2.4, 2.6]), grid)
    assert inside.tolist() == [[False, True, True, True, False]]
    assert float(quantizer.excess(jnp.array([[-5.0, 3.0]]), grid)) == pytest.approx(2.5)


# --- layouts ----------------------------------------------------------------------------------------------------------


def test_layouts_are_the_same_weights_in_another_order():
    oihw = np.random.default_rng(0).normal(size=(4, 3, 2, 5))
    hwio = oihw.transpose(2, 3, 1, 0)
    rows = np.asarray(as_rows(jnp.asarray(oihw), "first"))
    np.testing.assert_array_equal(rows, oihw.reshape(4, 30))
    np.testing.assert_array_equal(as_rows(jnp.asarray(hwio), "last"), rows)
    np.testing.assert_array_equal(from_rows(jnp.asarray(rows), oihw.shape, "first"), oihw)
    np.testing.assert_array_equal(from_rows(jnp.asarray(rows), hwio.shape, "last"), hwio)
    np.testing.assert_array_equal(as_rows(jnp.asarray(oihw[:, :, 0, 0].T), "last"), oihw[:, :, 0, 0])


# --- codebooks --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "outputs"),
    [((12, 6), "last"), *(pytest.param(s, "first", marks=pytest.mark.slow) for s in ((6, 12), (3, 4, 2, 2)))],
)
def test_few_distinct_blocks_are_kept_exactly(shape, outputs):
    rng = np.random.default_rng(3)
    distinct = rng.normal(size=(5, 4))
    rows = distinct[rng.integers(5, size=np.prod(shape) // 4)].reshape(
        shape[0] if outputs == "first" else shape[-1], -1
    )
    quantizer = ProductQuantizer(4, 5, 3, outputs=outputs)

    @eqx.filter_jit
    def coded(rows, turned):
        weights = from_rows(rows, shape, outputs)
        found, book = fit_and_round(quantizer, weights, jax.random.key(0))
        codes = [quantizer.encode(from_rows(some, shape, outputs), book) for some in (rows, turned)]
        return weights, found, codes

    order = rng.permutation(rows.shape[0])
    weights, found, (codes, turned) = coded(rows, rows[order])
    np.testing.assert_allclose(found, weights, atol=1e-12)
    wanted = np.asarray(codes).reshape(len(order), -1)[order].ravel()  # rows of outputs permuted: so are the codes
    np.testing.assert_array_equal(turned, wanted)


def test_kmeans_is_lloyds_iteration_and_its_objective_never_rises():
    """Against NumPy from the same start; 5,000 points are two blocks and a part of a third."""
    rng = np.random.default_rng(4)
    points, start = rng.normal(size=(5000, 3)), rng.normal(size=(7, 3))
    found = kmeans(jax.random.key(0), jnp.asarray(points), 7, 4, start=jnp.asarray(start))
    centroids, history, last, codes = start, [], start, np.zeros(5000, int)
    for _ in range(5):
        distances = ((points[:, None] - centroids) ** 2).sum(2)
        codes = distances.argmin(1)
        history.append(distances.min(1).sum())
        last, centroids = centroids, np.stack([points[codes == k].mean(0) for k in range(7)])
    np.testing.assert_allclose(found.centroids, last, atol=1e-10)
    np.testing.assert_array_equal(found.codes, codes)
    np.testing.assert_allclose(found.objective, history, rtol=1e-10)
    assert (np.diff(history) <= 0).all()
    np.testing.assert_array_equal(jax.jit(nearest)(points, found.centroids), found.codes)


def test_kmeans_far_from_zero_finds_what_it_finds_near_it():
    """In single precision: squares of 3,000 have no digits left for distances of a tenth."""
    places = np.array([[0.0, 0], [1, 0], [0, 1]])[np.arange(60) % 3]
    points = np.random.default_rng(6).normal(size=(60, 2)) * 0.02 + places
    away = np.array([3000.0, -3000.0])  # to another side in each coordinate
    near, far = (
        kmeans(jax.random.key(0), jnp.asarray(points + shift, jnp.float32), 3, 5, start=jnp.asarray(start, jnp.float32))
        for shift, start in ((0, places[:3] + 0.1), (away, places[:3] + away + 0.1))
    )
    np.testing.assert_array_equal(far.codes, near.codes)
    np.testing.assert_array_equal(near.codes, np.arange(60) % 3)
    np.testing.assert_allclose(far.centroids - away, near.centroids, atol=1e-3)
    np.testing.assert_allclose(far.objective[1:], near.objective[1:], rtol=0.05)


def test_a_centroid_without_points_moves_to_where_the_error_is():
    points = np.concatenate([np.zeros((50, 2)), np.array([[5.0, 0], [6, 0], [5, 1]])])
    start = np.array([[0.0, 0], [5, 0], [90, 90], [91, 90]])
    found = kmeans(jax.random.key(0), points, 4, 6, start=start)
    assert (np.diff(found.objective) <= 1e-9).all()
    assert float(found.objective[-1]) < 1e-9
    assert sorted(np.bincount(found.codes, minlength=4).tolist()) == [1, 1, 1, 50]


def test_seeding_looks_at_all_points():
    """Of more points than it draws from, the far ones at the end are found before the first step."""
    points = np.concatenate([np.zeros((17_000, 1)), np.full((3_000, 1), 9.0)])
    assert sorted(kmeans(jax.random.key(0), points, 2, 0).centroids[:, 0].tolist()) == [0.0, 9.0]


def test_seeds_are_drawn_in_proportion_to_squared_distances():
    """Three of four points in order, each with the probability that k-means++ gives it; 8,000 draws."""
    points = np.array([[0.0, 0, 0], [1, 0, 1], [3, 1, 0], [0, 4, 2]])
    squares = ((points[:, None] - points) ** 2).sum(2)
    seeds = jax.jit(jax.vmap(lambda key: kmeans_outside_jit(key, jnp.asarray(points), 3, 0).centroids))
    found = seeds(jax.random.split(jax.random.key(0), 8000))
    drawn = np.asarray((found[:, :, None] == points).all(3)).argmax(2)
    counts = {order: int((drawn == order).all(1).sum()) for order in itertools.permutations(range(4), 3)}
    assert sum(counts.values()) == 8000  # none twice
    for (a, b, c), count in counts.items():
        nearest_two = squares[[a, b]].min(0)
        chance = 1 / 4 * squares[a, b] / squares[a].sum() * nearest_two[c] / nearest_two.sum()
        assert abs(count - 8000 * chance) < 4 * np.sqrt(8000 * chance * (1 - chance)), (a, b, c)


@pytest.mark.slow  # test_kmeans_is_lloyds_iteration_and_its_objective_never_rises is exact
def test_kmeans_beats_random_centroids_at_the_known_rate():
    """512 Gaussian blocks of 8 and 256 centroids: relative error 0.37 from random blocks
    (the pilot of the method note), a little less from k-means++."""
    weights = np.random.default_rng(5).normal(size=(64, 64))
    quantizer = ProductQuantizer(8, 256)
    seen, book = fit_and_round(quantizer, weights, jax.random.key(0))

    def error(seen):
        return np.linalg.norm(np.asarray(seen) - weights) / np.linalg.norm(weights)

    assert 0.30 < error(seen) < 0.38
    some = book._replace(centroids=weights.reshape(-1, 8)[:256])
    assert error(round_trip(quantizer, weights, some)) > error(seen) + 0.05


# --- bytes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", range(1, 17))
def test_a_grid_of_any_bits_is_stored_in_as_few_bytes_as_hold_it(bits):
    """Steps in four bytes; zero points, from the lowest code to the highest, in one up to eight bits, else in two."""
    scale = np.array([0.5, 1.0, 0.25, 3.0], np.float32)
    for outputs, shape in (("first", (4, 1)), ("last", (1, 4))):
        quantizer = ScalarQuantizer(bits, granularity="channel", outputs=outputs)
        zero = np.array([0, 2**bits - 1, 2 ** (bits - 1), 2**bits // 3], np.int32)
        stored = quantizer.store(Grid(scale.reshape(shape), zero.reshape(shape)))
        assert sum(array.nbytes for array in stored) == 4 * (4 + (1 if bits <= 8 else 2))
        found = quantizer.restore(stored, (4, 4))
        np.testing.assert_array_equal(found.scale, scale.reshape(shape))
        np.testing.assert_array_equal(found.zero_point, zero.reshape(shape))
    if bits > 1:
        quantizer = ScalarQuantizer(bits, "symmetric")
        (stored,) = quantizer.store(Grid(scale[:1, None], np.full((1, 1), 2 ** (bits - 1) - 1)))
        found = quantizer.restore((stored,), (4, 4))
        assert (stored.nbytes, found.scale.tolist(), found.zero_point.tolist()) == (4, [[0.5]], [[2 ** (bits - 1) - 1]])


@pytest.mark.parametrize("bits", [1, 3, 5, 8, 11, 16, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 4, 7))])
def test_codes_of_any_bits_and_number_come_back(bits):
    counts = (1, 7, 8, 9, 61)
    given = [np.random.default_rng(count).integers(0, 2**bits, count) for count in counts]

    @jax.jit
    def there_and_back(some):
        packed = [pack(codes, bits) for codes in some]
        return packed, [unpack(one, bits, count) for one, count in zip(packed, counts, strict=True)]

    for count, codes, packed, unpacked in zip(counts, given, *there_and_back(given), strict=True):
        assert packed.dtype == jnp.uint8
        assert packed.shape == (-(-count * bits // 8),)
        np.testing.assert_array_equal(unpacked, codes)
        bit_string = "".join(f"{code:0{bits}b}"[::-1] for code in codes)
        wanted = [int(bit_string[i : i + 8][::-1], 2) for i in range(0, len(bit_string), 8)]
        assert packed.tolist() == wanted
