"""A packed log can lie anywhere that fsspec reaches: its content is the same as on this machine."""

import pickle
from uuid import uuid4

import fsspec
import numpy as np
import pytest
from shard_tasks import Gradient, packed_log, plain_log

import poem
from poem.errors import InputError, PackedError
from poem.packed import is_packed, open_log

NAMES = ("y", "loss", "log_propensity", "context")


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return packed_log(tmp_path_factory.mktemp("packed") / "log")


@pytest.fixture(params=["memory", "file"])
def address(request, log, tmp_path):
    """The address of a copy of the packed log."""
    if request.param == "file":
        yield (tmp_path / "copy").as_uri()
        return
    memory, place = fsspec.filesystem("memory"), f"/{uuid4().hex}"
    yield f"memory:/{place}/packed"
    memory.rm(place, recursive=True)


@pytest.fixture
def copied(log, address):
    system, root = fsspec.core.url_to_fs(address)
    system.makedirs(root)
    for path in (log.folder.path(name) for name in ("manifest.json", "kind.parquet", *(s.name for s in log.shards))):
        with system.open(f"{root}/{path.name}", "wb") as file:
            file.write(path.read_bytes())
    return address


def assert_same_log(found, expected):
    for name in NAMES:
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    np.testing.assert_array_equal(found.X, expected.X)


def test_a_copy_elsewhere_reads_equal(log, copied):
    found = open_log(copied)
    assert is_packed(copied)
    assert len(found) == len(log) == len(plain_log())
    assert found.fingerprint() == log.fingerprint()
    for note in found.shards:
        assert_same_log(found.read(note), log.read(note))
    assert_same_log(found.part(0.1, 0.6).to_log(), log.part(0.1, 0.6).to_log())


def test_a_copy_elsewhere_travels_by_its_address(log, copied):
    found = open_log(copied).part(0.0, 0.5)
    again = pickle.loads(pickle.dumps(found))
    assert (str(again.folder), again.low, again.high) == (copied, found.low, found.high)
    assert len(pickle.dumps(found)) < 300
    assert_same_log(again.to_log(), log.part(0.0, 0.5).to_log())


@pytest.mark.parametrize("count", [1, 2])
def test_sums_over_a_copy_elsewhere_are_the_same(log, copied, count):
    found, w = open_log(copied), np.linspace(-1.0, 1.0, 5)
    for (value, gradient), (same_value, same) in zip(
        poem.Threads(count).each(Gradient(found, w), found.shards),
        poem.Threads(1).each(Gradient(log, w), log.shards),
        strict=True,
    ):
        assert value == same_value
        np.testing.assert_array_equal(gradient, same)


def test_damage_elsewhere_is_seen(copied):
    system, root = fsspec.core.url_to_fs(copied)
    shards = open_log(copied).shards
    with system.open(f"{root}/{shards[0].name}", "rb") as file:
        content = bytearray(file.read())
    content[len(content) // 2] ^= 1
    with system.open(f"{root}/{shards[0].name}", "wb") as file:
        file.write(bytes(content))
    with pytest.raises(PackedError, match=f"the shard {shards[0].name} was changed after it was packed"):
        open_log(copied).read(shards[0])
    system.rm(f"{root}/{shards[1].name}")
    with pytest.raises(PackedError, match=f"the shard {shards[1].name} is missing"):
        open_log(copied)


@pytest.mark.parametrize("place", ["memory://nowhere/packed", "file:///nowhere/packed"])
def test_nothing_is_there(place):
    assert not is_packed(place)
    with pytest.raises(PackedError, match=f"{place} is no packed log"):
        open_log(place)


def test_an_address_that_no_file_system_has():
    with pytest.raises(InputError, match="'xyz://bucket/packed' cannot be opened"):
        open_log("xyz://bucket/packed")
