"""Labelled data by name: found in a folder, in the cache, or downloaded from its public home."""

import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from poem.arrays import AnyArray
from poem.compute import Matrix
from poem.errors import DatasetError, DownloadError, ReadError, SizeError
from poem.files import content_of, download, room
from poem.readers import check_parsed

LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multilabel"
SUFFIXES = (".svm.bz2", ".svm.gz", ".svm", ".bz2", "")


@dataclass(frozen=True)
class Dataset:
    """Labelled data with its published split; ``version`` names the data in every table made from it."""

    name: str
    version: str
    X_train: Matrix
    y_train: AnyArray
    X_test: Matrix
    y_test: AnyArray

    def __repr__(self) -> str:
        (n, p), q = self.X_train.shape, self.y_train.shape[1]
        return f"Dataset {self.name} ({self.version}): {n} + {self.X_test.shape[0]} rows, {p} features, {q} labels"


@dataclass(frozen=True)
class _Version:
    """One published form of a data set; the data read must have these sizes."""

    stem: str
    text: str
    n_features: int
    n_labels: int
    n_train: int
    n_test: int
    urls: tuple[str, str] | None = None


CATALOG = {
    "scene": (
        _Version("scene", "LibSVM", 294, 6, 1211, 1196, (f"{LIBSVM}/scene_train.bz2", f"{LIBSVM}/scene_test.bz2")),
    ),
    "yeast": (
        _Version(
            "yeast", "LibSVM", 103, 14, 1500, 917, (f"{LIBSVM}/yeast_train.svm.bz2", f"{LIBSVM}/yeast_test.svm.bz2")
        ),
    ),
    "tmc": (
        _Version(
            "tmc2007",
            "LibSVM, 30438 terms",
            30438,
            22,
            21519,
            7077,
            (f"{LIBSVM}/tmc2007_train.svm.bz2", f"{LIBSVM}/tmc2007_test.svm.bz2"),
        ),
        _Version("tmc2007_500", "500 chosen terms", 500, 22, 21519, 7077),
    ),
    "lyrl": (_Version("lyrl_rcv1sub", "random subset of RCV1-v2, top-level topics", 47236, 4, 14401, 13212),),
}


def load_dataset(
    name: str, folder: str | os.PathLike[str] | None = None, *, test: str | None = None, progress: bool = False
) -> Dataset:
    """Load a data set by name (scene, yeast, tmc, lyrl), or any multi-label LibSVM file by its path.

    Parameters
    ----------
    name : str
        A name, or the path of a training file, with labels numbered from 0 and features from 1.
    folder : path, optional
        Where to look first; the environment variable ``POEM_DATA`` by default. poem then tries the cache
        (``POEM_CACHE``, or poem's folder in the user's cache), and then the set's public home.
    test : str, optional
        The path of the test file for a training file.
    progress : bool
        Show downloads on stderr.
    """
    if name not in CATALOG:
        return _from_files(name, test)
    if folder is not None and not Path(folder).is_dir():
        raise DatasetError(f"{str(folder)!r} is not a folder. Pass the folder that holds the data, or none.")
    places = [Path(place) for place in (folder or os.environ.get("POEM_DATA"), _cache()) if place]
    for place in places:
        for version in CATALOG[name]:
            pair = [_find(place, f"{version.stem}_{part}") for part in ("train", "test")]
            if pair[0] is not None and pair[1] is not None:
                return _read(name, version, pair[0], pair[1])
    return _fetch(name, places, progress)


def _cache() -> Path:
    given = os.environ.get("POEM_CACHE")
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(given) if given else Path(home) / "poem"


def _find(place: Path, stem: str) -> Path | None:
    return next((place / (stem + suffix) for suffix in SUFFIXES if (place / (stem + suffix)).is_file()), None)


def _fetch(name: str, places: list[Path], progress: bool) -> Dataset:
    version = CATALOG[name][0]
    if version.urls is None:
        looked = ", ".join(str(place) for place in places)
        raise DatasetError(
            f"{name} was not found in {looked}, and it has no public home in this form. Put the files "
            f"{version.stem}_train.svm.bz2 and {version.stem}_test.svm.bz2 into a folder: folder= or POEM_DATA."
        )
    try:
        train, test = (download(url, _cache() / Path(url).name, progress=progress) for url in version.urls)
    except DownloadError as error:
        looked = ", ".join(str(place) for place in places)
        raise DownloadError(f"{name} was not found in {looked}, and {error}") from error
    return _read(name, version, train, test)


def _read(name: str, version: _Version, train: Path, test: Path) -> Dataset:
    parts = []
    for path, rows in ((train, version.n_train), (test, version.n_test)):
        X, y = read_libsvm(path, version.n_features, version.n_labels)
        if X.shape[0] != rows:
            raise DatasetError(
                f"{path} has {X.shape[0]} rows, but {name} ({version.text}) has {rows}. "
                "Delete the file, or point folder= to the right one."
            )
        parts += [X, y]
    return Dataset(name, version.text, *parts)


def _from_files(train: str, test: str | None) -> Dataset:
    if not Path(train).is_file():
        raise DatasetError(f"{train!r} is neither a file nor a known data set; known are {', '.join(CATALOG)}.")
    if test is None:
        raise DatasetError(f"{train!r} is a file: pass test= the file that it is to be tested on.")
    (X, y), (X_test, y_test) = (read_libsvm(path) for path in (Path(train), Path(test)))
    p, q = max(X.shape[1], X_test.shape[1]), max(y.shape[1], y_test.shape[1])
    (X, y), (X_test, y_test) = ((_widened(a, p), _widened(b, q)) for a, b in ((X, y), (X_test, y_test)))
    return Dataset(Path(train).name, "file", X, y, X_test, y_test)


def _widened(matrix: Any, width: int) -> Any:
    if isinstance(matrix, np.ndarray):
        return np.pad(matrix, ((0, 0), (0, width - matrix.shape[1])))
    matrix.resize(matrix.shape[0], width)
    return matrix


def read_libsvm(path: Path, n_features: int | None = None, n_labels: int | None = None) -> tuple[Matrix, AnyArray]:
    """Read ``l1,l2 idx:value …`` lines, plain or packed, into (CSR, 0/1 matrix)."""
    from sklearn.datasets import load_svmlight_file

    if not path.is_file():
        raise DatasetError(f"there is no file {str(path)!r}. Check the path.")
    try:
        content = content_of(path)
        check_parsed(content, path.name)
        X, labels = load_svmlight_file(io.BytesIO(content), multilabel=True, zero_based=False, n_features=n_features)
    except SizeError:
        raise
    except (ReadError, ValueError) as error:
        raise DatasetError(f"{str(path)!r} is not a whole multi-label LibSVM file: {error}. Get it again.") from error
    counts = np.array([len(row) for row in labels])
    columns = np.array([label for row in labels for label in row], dtype=np.int64)
    found = int(columns.max(initial=-1)) + 1
    if len(columns) and (columns.min() < 0 or found > (n_labels or found)):
        raise DatasetError(
            f"{str(path)!r} has labels from {columns.min()} to {columns.max()}; "
            f"expected 0 to {(n_labels or found) - 1}. Number the labels from 0."
        )
    room().check(path.name, X.shape[0] * found)
    y = np.zeros((X.shape[0], n_labels or found), dtype=np.uint8)
    y[np.repeat(np.arange(len(counts)), counts), columns] = 1
    return X, y
