"""Files that become much larger than they are on disk end with an error before memory is gone."""

import json
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bombs import COMPRESSIONS, LINES, PARQUET_BOMBS, packed_catalogue, parquet_bomb, text_bomb
from refusals import refuses

import poem
from poem.cli import main
from poem.errors import InputError, PolicyFileError, SizeError
from poem.files.room import Room, free_in_groups, free_memory, room_for, size_of
from poem.simulation.datasets import read_libsvm


def read_log(source, *, max_size, **options):
    with room_for(max_size):
        return poem.read_log(source, **options)


# ---- text, compressed ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", LINES)
def test_compressed_text_stops_at_the_limit_and_more_can_be_allowed(tmp_path, kind):
    path = text_bomb(tmp_path, kind)
    assert path.stat().st_size < 40_000
    with refuses(SizeError, path.name, "needs at least", "the limit is 1 MB", "--max-size"):
        read_log(path, max_size="1MB")
    assert len(read_log(path, max_size="1GB")) > 10_000


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_all_compressions_have_the_limit(tmp_path, compression):
    path = text_bomb(tmp_path, "vw", compression, size=1 << 22)
    with refuses(SizeError, path.name, "needs at least", "the limit is 1 MB"):
        read_log(path, max_size="1MB")


def test_plain_text_has_the_same_limit(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(LINES["csv"][0] + LINES["csv"][1] * 200_000)
    with refuses(SizeError, "log.csv", "the limit is 1 MB"):
        read_log(path, max_size=10**6)


def test_catalogues_and_side_files_have_the_limit_too(tmp_path):
    log, catalogue = tmp_path / "decisions.csv", text_bomb(tmp_path, "csv")
    log.write_text("output,loss,propensity\n1,0,1\n")
    with refuses(SizeError, "log.csv.gz", "the limit is 1 MB"):
        read_log(log, actions=catalogue, max_size="1MB")
    contexts = tmp_path / "contexts.svm"
    contexts.write_text("0 0:1\n")
    with refuses(SizeError, "log.csv.gz", "the limit is 1 MB"):
        read_log(contexts, side=catalogue, max_size="1MB")


def test_labelled_data_have_the_limit(tmp_path, monkeypatch):
    path = text_bomb(tmp_path, "svm")
    monkeypatch.setenv("POEM_MAX_SIZE", "1MB")
    with refuses(SizeError, "log.svm.gz", "the limit is 1 MB"):
        read_libsvm(path)
    few = tmp_path / "labels.svm"
    few.write_text("2000000000 1:1\n" * 10)  # a small file with 20 GB of labels
    with refuses(SizeError, "labels.svm needs at least 20 GB"):
        read_libsvm(few)


# ---- Parquet ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", PARQUET_BOMBS)
def test_parquet_that_repeats_long_values_stops_at_the_limit(tmp_path, kind):
    path = parquet_bomb(tmp_path / "log.parquet", kind)
    assert path.stat().st_size < 100_000
    before = pa.default_memory_pool().max_memory()
    with refuses(SizeError, "log.parquet", "needs at least", "the limit is 40 MB"):
        read_log(path, max_size="40MB")
    assert pa.default_memory_pool().max_memory() < max(before, 200e6)


def test_parquet_that_says_how_large_it_is_is_not_read_at_all(tmp_path):
    zeros = pa.table({"output": np.zeros(1 << 20, dtype=int), "loss": np.zeros(1 << 20)})
    with pq.ParquetWriter(tmp_path / "log.parquet", zeros.schema) as writer:
        for _ in range(8):
            writer.write_table(zeros)
    assert (tmp_path / "log.parquet").stat().st_size < 100_000
    with refuses(SizeError, "log.parquet needs at least 134 MB", "the limit is 130 MB"):
        read_log(tmp_path / "log.parquet", max_size="130MB")


def test_one_list_can_be_a_bomb(tmp_path):
    lists = pa.ListArray.from_arrays(pa.array([0, 1 << 22], pa.int32()), pa.array(np.zeros(1 << 22)))
    pq.write_table(pa.table({"features": lists}), tmp_path / "log.parquet")
    with refuses(SizeError, "log.parquet needs at least 33.6 MB"):
        read_log(tmp_path / "log.parquet", max_size="10MB")


def test_part_files_share_one_limit(tmp_path):
    rows = 400_000
    part = pa.table({"output": np.arange(rows) % 2, "loss": np.zeros(rows), "propensity": np.full(rows, 0.5)})
    for number in range(4):
        pq.write_table(part, tmp_path / f"part-{number}.parquet")
    with refuses(SizeError, "part-2.parquet"):
        read_log(tmp_path, max_size=int(2.5 * part.nbytes))
    assert len(read_log(tmp_path, max_size=10 * part.nbytes)) == 4 * rows


def test_a_catalogue_inside_a_file_is_not_unpacked_if_it_is_too_large(tmp_path, rows):
    candidates = pa.array([[{"id": 0, "price": 1.0}, {"id": 1, "price": 2.0}]] * rows.n)
    table = pa.table({"output": rows.y % 2, "loss": rows.loss, "propensity": rows.propensity, "candidates": candidates})
    poem.write_log(poem.read_log(table), tmp_path / "log.parquet")
    table = pq.read_table(tmp_path / "log.parquet")
    notes = table.schema.metadata | {b"poem.actions": packed_catalogue(2_000_000)}
    pq.write_table(table.replace_schema_metadata(notes), tmp_path / "bomb.parquet")
    with refuses(SizeError, "the catalogue in bomb.parquet needs at least 32"):
        read_log(tmp_path / "bomb.parquet", max_size="20MB")


# ---- policies --------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [[1 << 40, 2], [1 << 62, 1 << 62], [0, 1 << 62]])
def test_a_policy_file_cannot_claim_more_weights_than_it_has(tmp_path, class_logger, shape):
    content = class_logger.save(tmp_path / "policy.poem").read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    header["weights"]["shape"] = shape
    changed = json.dumps(header).encode()
    (tmp_path / "policy.poem").write_bytes(struct.pack("<Q", len(changed)) + changed + content[8 + length :])
    with pytest.raises(PolicyFileError, match=r"policy\.poem"):
        poem.load_policy(tmp_path / "policy.poem")


def large_text(folder):
    return text_bomb(folder, "jsonl", size=1 << 28)


# ---- the limit -------------------------------------------------------------------------------------


def test_the_command_line_has_the_option_and_the_variable(tmp_path, capsys, monkeypatch):
    path = text_bomb(tmp_path, "csv")
    assert main(["inspect", str(path), "--max-size", "1MB"]) == 2
    told = capsys.readouterr().err
    assert "log.csv.gz needs at least" in told
    assert "(--max-size, or the environment variable POEM_MAX_SIZE)" in told
    monkeypatch.setenv("POEM_MAX_SIZE", "1MB")
    assert main(["convert", str(path), str(tmp_path / "new.parquet")]) == 2
    assert main(["convert", str(path), str(tmp_path / "new.parquet"), "--max-size", "1GB"]) == 0


@pytest.mark.parametrize("text", ["", "lots", "-1GB", "0", "12XB", "1e400GB", "True"])
def test_a_size_that_is_none_is_refused(text, capsys):
    with refuses(InputError, "such as '500MB' or '20GB'; found", repr(text)):
        size_of(text)
    with pytest.raises(SystemExit, match="2"):
        main(["inspect", "log.csv", f"--max-size={text}"])
    assert "such as '500MB'" in capsys.readouterr().err


def test_sizes_are_read_in_all_units():
    found = [size_of(text) for text in (7, "7", "7B", "7 kB", "1.5MB", "2 GB", "1TB")]
    assert found == [7, 7, 7, 7_000, 1_500_000, 2_000_000_000, 10**12]


def test_half_of_the_free_memory_is_the_default(monkeypatch):
    monkeypatch.delenv("POEM_MAX_SIZE", raising=False)
    free = free_memory()
    assert 0.4 * free < Room().limit < 0.6 * free


def test_the_limits_of_containers_count(tmp_path):
    (tmp_path / "own").write_text("0::/pod/worker\n3:cpu:/\n")
    files = {"memory.max": "1000", "memory.current": "700", "memory.stat": "anon 5\ninactive_file 100\n"}
    (tmp_path / "pod" / "worker").mkdir(parents=True)
    for name, text in files.items():
        (tmp_path / "pod" / name).write_text(text)
    (tmp_path / "pod" / "worker" / "memory.max").write_text("max\n")
    assert free_in_groups(tmp_path, tmp_path / "own") == [400]
    (tmp_path / "own").write_text("4:memory:/elsewhere\n")
    (tmp_path / "memory").mkdir()
    old = {"memory.limit_in_bytes": "90", "memory.usage_in_bytes": "50", "memory.stat": "total_inactive_file 10\n"}
    for name, text in old.items():
        (tmp_path / "memory" / name).write_text(text)
    assert free_in_groups(tmp_path, tmp_path / "own") == [50]


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of a process is read as on Linux")
@pytest.mark.parametrize("make", [lambda folder: parquet_bomb(folder / "log.parquet", "lists"), large_text])
def test_a_process_that_meets_a_bomb_stays_small(tmp_path, make):
    script = "import re, sys, poem.cli; status = poem.cli.main(['inspect', sys.argv[1], '--max-size', '100MB']); "
    script += "print(status, *re.findall(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read()))"
    command = [sys.executable, "-c", script, str(make(tmp_path))]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    status, peak = map(int, found.stdout.split())
    assert status == 2, found.stderr
    assert peak < 600_000, "kilobytes; a start alone takes 150,000"
