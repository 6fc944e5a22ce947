"""Small real data sets that come with scikit-learn, as numpy arrays.

Importing ``sklearn.datasets`` takes seconds, which every worker process would pay. So the files that the package ships
are read where they lie, and its public loaders are asked only where a release has moved them.
"""

import gzip
import importlib.util
from functools import lru_cache
from pathlib import Path

import numpy as np

__all__ = ["DatasetError", "descriptions", "diabetes", "digits"]


class DatasetError(RuntimeError):
    """A data set that should be installed is not there; the message says what to install."""


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


def _file(*parts: str) -> Path | None:
    specification = importlib.util.find_spec("sklearn")  # finds the package and imports nothing
    if specification is None or not specification.submodule_search_locations:
        raise DatasetError(
            "The data sets of this problem come with scikit-learn, which is not installed. "
            "Install it: pip install scikit-learn"
        )
    path = Path(specification.submodule_search_locations[0], "datasets", *parts)
    return path if path.exists() else None
