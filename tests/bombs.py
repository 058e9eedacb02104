"""Files that are small on disk and large in memory."""

import bz2
import gzip
import json
from base64 import b64encode

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

LONG = "a" * (1 << 20)
ROWS = 200_000
DECISION = {"_label_cost": 1, "_label_probability": 0.5, "_labelIndex": 0, "c": {"u": {"x": 1}, "_multi": [{}, {}]}}
LINES = {
    "csv": ("output,loss,propensity,x\n", "0,1,0.5,3\n"),
    "jsonl": ("", '{"output": 0, "loss": 1, "propensity": 0.5, "x": 3}\n'),
    "vw": ("", "1:1:0.5 | a b c d\n"),
    "svm": ("", "0 0:1 1:1 2:1\n"),
    "dsjson": ("", json.dumps(DECISION) + "\n"),
}


def zstd(content):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return sink.getvalue().to_pybytes()


COMPRESSIONS = {"gz": gzip.compress, "bz2": bz2.compress, "zst": zstd}


def text_bomb(folder, kind, compression="gz", size=1 << 21):
    """Write a log of equal lines, compressed; LibSVM has its table of decisions beside it."""
    head, line = LINES[kind]
    rows = size // len(line)
    path = folder / f"log.{kind}.{compression}"
    path.write_bytes(COMPRESSIONS[compression]((head + line * rows).encode()))
    if kind == "svm":
        side = pa.table({"output": np.zeros(rows, int), "loss": np.ones(rows), "propensity": np.full(rows, 0.5)})
        pq.write_table(side, folder / "log.parquet")
    return path


def repeated(rows=ROWS, empty=0):
    """Return a column in which all rows but the first ones hold the same long string."""
    codes = pa.array(np.zeros(rows, dtype=np.int32), mask=np.arange(rows) < empty)
    return pa.DictionaryArray.from_arrays(codes, pa.array([LONG]))


def offsets(rows):
    """Return where lists of one value each begin; the first list is empty."""
    return pa.array(np.concatenate([[0], np.arange(rows)]), pa.int32())


PARQUET_BOMBS = {  # names of columns that become 200 GB, or 8 GB if they hold numbers
    "text": repeated,
    "late": lambda: repeated(empty=70_000),
    "lists": lambda: pa.ListArray.from_arrays(offsets(ROWS), repeated(ROWS - 1)),
    "struct": lambda: pa.StructArray.from_arrays([pa.nulls(ROWS, pa.string()), repeated()], ["none", "text"]),
    "map": lambda: pa.MapArray.from_arrays(offsets(ROWS), pa.array(["k"] * (ROWS - 1)), repeated(ROWS - 1)),
}


def parquet_bomb(path, kind):
    """Write a table of decisions with one column that is small only in the file."""
    columns = {"output": np.zeros(ROWS, dtype=int), "loss": np.zeros(ROWS), "propensity": np.ones(ROWS)}
    pq.write_table(pa.table(columns | {kind: PARQUET_BOMBS[kind]()}), path, compression="zstd", store_schema=False)
    return path


def packed_catalogue(rows):
    """Return a table of actions as poem keeps it in a file's metadata, all zeros."""
    table = pa.table({"id": np.arange(rows), "price": np.zeros(rows)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    return b64encode(sink.getvalue())
