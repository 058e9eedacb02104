"""Blocks of features side by side: the same matrix as scipy's, entry by entry."""

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp

from poem.data.features.blocks import STEP, Lookup, joined, side_by_side
from poem.files import coded_strings, with_codes

RNG = np.random.default_rng(0)


def numbers(n, zeros=0.0):
    return RNG.normal(size=(n, 3)) * (RNG.random((n, 3)) >= zeros)


def sparse(n):
    return sp.random_array((n, 5), density=0.3, format="csr", rng=RNG)


def lookup(n):
    rows = sp.vstack([sparse(4), sp.csr_array((1, 5))], format="csr")
    return Lookup(rows, RNG.integers(-1, 4, n))


def as_csr(block):
    return block.matrix() if isinstance(block, Lookup) else sp.csr_array(block)


@pytest.mark.parametrize("n", [0, 1, 7, STEP, STEP + 1])
@pytest.mark.parametrize(
    "makers",
    [
        (numbers, sparse),
        (lookup, numbers),
        (lookup, lookup, sparse),
        (numbers, numbers, lookup, numbers),
        (lambda n: numbers(n, zeros=0.5), lookup),
    ],
)
def test_joined_blocks_are_those_of_scipy(makers, n):
    blocks = [make(n) for make in makers]
    found, expected = joined(blocks), sp.hstack([as_csr(block) for block in blocks], format="csr")
    assert found.shape == expected.shape
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
        assert getattr(found, name).dtype == getattr(expected, name).dtype


def test_few_zeros_are_kept_and_many_are_not():
    full = np.ones((1000, 2))
    full[0] = 0.0
    assert joined([full, lookup(1000)]).indptr[1] >= 2
    assert joined([np.zeros((1000, 2)), Lookup(sp.csr_array((1, 2)), np.zeros(1000, dtype=int))]).nnz == 0


def test_dense_blocks_stay_dense_and_one_block_is_itself():
    one, other = numbers(4), numbers(4)
    np.testing.assert_array_equal(joined([one, other]), np.hstack([one, other]))
    assert joined([one]) is one
    block = lookup(6)
    np.testing.assert_array_equal(joined([block]).toarray(), block.rows.toarray()[block.which])


def test_columns_in_chunks_of_any_size_stand_side_by_side():
    one = pa.chunked_array([[1.0, 2.0], [], [3.0, None, 5.0]])
    other = pa.chunked_array([[6.0], [7.0, 8.0, 9.0, 10.0]])
    np.testing.assert_array_equal(
        side_by_side([one, other], 5), [[1.0, 6.0], [2.0, 7.0], [3.0, 8.0], [np.nan, 9.0], [5.0, 10.0]]
    )


def test_values_that_are_written_alike_have_one_code():
    codes, distinct = coded_strings(pa.chunked_array([[0.0, -0.0, 1.0], [None, float("nan"), 1.0]]))
    assert (codes.tolist(), distinct.to_pylist()) == ([0, 0, 1, -1, -1, 1], ["0", "1"])


def test_columns_of_strings_are_coded_once_and_others_stay():
    table = pa.table({"s": ["b", "a", None, "b"], "n": [1, 2, 3, 4], "c": pa.array(list("xyxy")).dictionary_encode()})
    found = with_codes(table)
    assert found.column("s").cast(pa.string()).to_pylist() == ["b", "a", None, "b"]
    assert found.select(["n", "c"]).equals(table.select(["n", "c"]))
    assert [one.tolist() for one in (coded_strings(table.column("s"))[0], coded_strings(found.column("s"))[0])] == [
        [0, 1, -1, 0],
        [0, 1, -1, 0],
    ]
