"""A manifest that was changed, or does not go together, is refused: no answer comes from it."""

import copy
import json
import os

import pytest
from packing import packed
from test_laws_risk import make_log

from poem.errors import PackedError
from poem.packed import open_log
from poem.packed.manifest import EMPTY, _checksum


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("packed") / "p"
    packed(make_log("classes", "csr"), folder, 3)
    return folder


@pytest.fixture
def folder(source, tmp_path):
    """A folder with the same files."""
    (tmp_path / "p").mkdir()
    for path in source.iterdir():
        os.link(path, tmp_path / "p" / path.name)
    return tmp_path / "p"


def shard(**changes):
    return lambda content: content["shards"][1].update(changes)


EDITS = {
    "rows": shard(rows=4000),
    "no rows": shard(rows=0, units=0),
    "no units": shard(units=0),
    "more units than rows": shard(units=1000),
    "infinite": shard(rows=float("inf")),
    "NaN": shard(loss=[0.0, float("nan"), 1.0]),
    "two losses": shard(loss=[0, 1]),
    "quantiles": shard(quantiles={"loss": [0.0, float("inf")]}),
    "range": shard(high=5),
    "beyond": shard(high=1 << 70),
    "below": shard(low=-1),
    "elsewhere": shard(name="../kind.parquet"),
    "none": lambda content: content.update(shards=[]),
    "a dictionary": lambda content: content.update(shards={}),
    "twice": lambda content: content.update(shards=2 * content["shards"]),
    "one twice": lambda content: content.update(shards=content["shards"] + content["shards"][-1:]),
    "turned": lambda content: content.update(shards=content["shards"][::-1]),
    "fewer": lambda content: content["shards"].pop(),
    "all rows": lambda content: content.update(rows=7),
    "all units": lambda content: content.update(units=7),
    "columns": lambda content: content.update(columns={"output": ["x"]}),
    "kind": lambda content: content.update(kind_sha256=3),
}


def change(folder, edit, *, signed):
    path = folder / "manifest.json"
    content = copy.deepcopy(json.loads(path.read_text()))
    edit(content)
    path.unlink()
    if signed:
        content["sha256"] = EMPTY
        content["sha256"] = _checksum(json.dumps(content).encode(), EMPTY)
    path.write_text(json.dumps(content))


@pytest.mark.parametrize("name", EDITS)
def test_a_manifest_that_was_edited_is_refused(folder, name):
    change(folder, EDITS[name], signed=False)
    with pytest.raises(PackedError, match=r"manifest\.json was changed after the log was packed: its checksum differs"):
        open_log(folder)


@pytest.mark.parametrize("name", [name for name in EDITS if name not in ("columns", "kind")])
def test_a_manifest_that_does_not_go_together_is_refused(folder, name):
    change(folder, EDITS[name], signed=True)
    with pytest.raises(PackedError, match=r"broken manifest\.json"):
        open_log(folder)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"[]", b"{}", b'{"format": "poem.packed"}', b"[" * 10**5])
def test_what_is_no_manifest_is_refused(folder, content):
    (folder / "manifest.json").unlink()
    (folder / "manifest.json").write_bytes(content)
    with pytest.raises(PackedError, match=r"broken manifest\.json"):
        open_log(folder)


@pytest.mark.parametrize("name", ["kind.parquet", "shard-000001.parquet", "manifest.json"])
def test_a_folder_in_place_of_a_file(folder, name):
    (folder / name).unlink()
    (folder / name).mkdir()
    with pytest.raises(PackedError):
        open_log(folder)


def test_what_was_not_changed_is_read(folder):
    change(folder, lambda content: None, signed=True)
    assert len(open_log(folder).to_log()) == 120
