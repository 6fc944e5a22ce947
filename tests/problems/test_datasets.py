"""Fashion-MNIST's files are read as they are, and what is missing or broken is told."""

import gzip

import numpy as np
import pytest

from laureate.problems.datasets import FASHION_MNIST, DatasetError, fashion_mnist, small_images
from laureate.problems.images import clothes_or_digits

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


@pytest.mark.skipif(not FASHION_MNIST.is_dir(), reason="Debian's dataset-fashion-mnist is not installed")
def test_the_installed_data_are_ten_classes_of_seven_thousand():
    data = fashion_mnist()
    assert data.train_images.shape == (60_000, 28, 28)
    assert data.test_images.shape == (10_000, 28, 28)
    np.testing.assert_array_equal(np.bincount(data.train_labels), np.full(10, 6000))
    np.testing.assert_array_equal(np.bincount(data.test_labels), np.full(10, 1000))
    assert data.train_images.max() == 255


def test_binary_images_are_clothes_where_installed_and_digits_elsewhere(monkeypatch):
    clothes = clothes_or_digits(train=30, test=10)
    assert clothes.train.shape[1] == (14 if FASHION_MNIST.is_dir() else 8)

    def absent():
        raise DatasetError("not here")

    monkeypatch.setattr("laureate.problems.datasets.fashion_mnist", absent)
    images = clothes_or_digits(train=30, test=10)
    shapes = [(len(part), part.shape[1:], part.dtype) for part in (images.train, images.test)]
    assert shapes == [(30, (8, 8), bool), (10, (8, 8), bool)]
    # Neither blank nor full, and nothing to learn from is tested on.
    assert 0.2 < float(images.train.mean()) < 0.6
    assert not np.array_equal(images.train[:10], images.test)


def test_small_images_say_what_they_are_and_where_they_are_cut(monkeypatch, folder):
    path, arrays = folder
    monkeypatch.setattr("laureate.problems.datasets.fashion_mnist", lambda: fashion_mnist(path))
    clothes = small_images(train=2, test=1)
    assert clothes.name == "Fashion-MNIST"
    np.testing.assert_array_equal(clothes.train_images, arrays[0][:2].astype(np.float32) / 255)
    np.testing.assert_array_equal(clothes.test_labels, [1])
    assert len(small_images().test_labels) == 0
    digits = small_images("digits", train=5000, test=297)
    assert (digits.name, len(digits.train_labels), len(digits.test_labels)) == ("digits", 1500, 297)

    def absent():
        raise DatasetError("not here")

    monkeypatch.setattr("laureate.problems.datasets.fashion_mnist", absent)
    assert small_images().name == "digits"
    with pytest.raises(DatasetError, match="not here"):
        small_images("fashion-mnist")
    with pytest.raises(ValueError, match=r"small_images\.data must be"):
        small_images("cifar")
