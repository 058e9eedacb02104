import bz2
import gzip
import os
from pathlib import Path

import numpy as np
import pytest

import poem
from poem.errors import DatasetError
from poem.simulation import datasets
from poem.simulation.datasets import _Version, read_libsvm

LINES = b"0,2 1:0.5 3:1\n 2:1\n1 1:2\n"
SHARED = Path(os.environ.get("POEM_DATA", Path(__file__).parent.parent.parent / "shared" / "data"))


@pytest.fixture
def small(monkeypatch, tmp_path):
    """A catalogue of one set with three rows, and an empty cache."""
    version = _Version("small", "made up", 3, 3, 3, 3)
    monkeypatch.setattr(datasets, "CATALOG", {"small": (version,)})
    monkeypatch.setenv("POEM_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("POEM_DATA", raising=False)
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


def write(folder, suffix=".svm", content=LINES):
    pack = {".svm.bz2": bz2.compress, ".svm.gz": gzip.compress}.get(suffix, bytes)
    for part in ("train", "test"):
        (folder / f"small_{part}{suffix}").write_bytes(pack(content))


@pytest.mark.parametrize("suffix", [".svm", ".svm.bz2", ".svm.gz", ""])
def test_a_set_is_found_in_a_folder_whatever_it_is_packed_with(small, suffix):
    write(small, suffix)
    found = poem.load_dataset("small", small)
    np.testing.assert_array_equal(found.X_train.toarray(), [[0.5, 0, 1], [0, 1, 0], [2, 0, 0]])
    np.testing.assert_array_equal(found.y_test, [[1, 0, 1], [0, 0, 0], [0, 1, 0]])
    assert "small (made up): 3 + 3 rows, 3 features, 3 labels" in repr(found)


def test_the_environment_names_the_folder_and_then_the_cache(small, monkeypatch):
    write(small)
    monkeypatch.setenv("POEM_DATA", str(small))
    assert poem.load_dataset("small").name == "small"
    monkeypatch.delenv("POEM_DATA")
    monkeypatch.setenv("POEM_CACHE", str(small))
    assert poem.load_dataset("small").name == "small"


def test_a_set_that_is_nowhere_says_where_it_was_looked_for(small):
    with pytest.raises(DatasetError, match=f"small was not found in {small}.*small_train.svm.bz2.*POEM_DATA"):
        poem.load_dataset("small", small)


def test_a_set_with_other_sizes_is_refused(small):
    write(small, content=LINES * 2)
    with pytest.raises(DatasetError, match=r"has 6 rows, but small \(made up\) has 3"):
        poem.load_dataset("small", small)


@pytest.mark.parametrize("content", [b"0 1:x\n", b"a 1:1\n", b"\xff\xfe", b"0 0:1\n"])
def test_a_broken_file_is_refused(small, content):
    write(small, content=content)
    with pytest.raises(DatasetError, match="is not a whole multi-label LibSVM file"):
        poem.load_dataset("small", small)


def test_a_truncated_file_is_refused(small):
    packed = bz2.compress(LINES * 1000)
    (small / "small_train.svm.bz2").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(DatasetError, match="is not a whole multi-label LibSVM file"):
        read_libsvm(small / "small_train.svm.bz2")


def test_labels_beyond_the_known_ones_are_refused(small):
    (small / "labels.svm").write_bytes(b"7 1:1\n")
    with pytest.raises(DatasetError, match="has labels from 7 to 7; expected 0 to 2"):
        read_libsvm(small / "labels.svm", 3, 3)


def test_any_libsvm_file_works(small):
    (small / "mine.svm").write_bytes(LINES)
    (small / "other.svm").write_bytes(b"3 5:1\n")
    found = poem.load_dataset(str(small / "mine.svm"), test=str(small / "other.svm"))
    assert found.X_train.shape == (3, 5)
    assert found.y_train.shape == (3, 4)
    assert found.y_test.tolist() == [[0, 0, 0, 1]]


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(DatasetError, match="neither a file nor a known data set; known are scene, yeast, tmc, lyrl"):
        poem.load_dataset("sceen")


@pytest.mark.skipif(not SHARED.is_dir(), reason="the paper's data are not on this machine")
@pytest.mark.parametrize("name", ["scene", "yeast", "tmc", "lyrl"])
def test_the_papers_data_are_read(name):
    found = poem.load_dataset(name, SHARED)
    assert 1.0 < found.y_train.sum(axis=1).mean() < 4.3
    assert found.X_train.shape[1] == found.X_test.shape[1]
