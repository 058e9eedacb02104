"""Contexts that go over several blocks: their features stand in the first row that saw them, and are kept for later."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

import numpy as np

from poem.data import BanditLog
from poem.errors import PoemError, WholeError
from poem.files import Table
from poem.readers.blocks import moved
from poem.readers.checked import log_of
from poem.readers.raw import RawLog
from poem.readers.values import whole_numbers

MOST = 2  # blocks that the rows kept may take the room of


class HeldContexts:
    """The first rows of contexts that later blocks of a file may see again.

    ``least`` is the smallest number of a context in each block: lower numbers than those to come need not be kept. So
    only a few rows are if rows are sorted by context.
    """

    def __init__(self, least: Sequence[int], block_bytes: int) -> None:
        to_come = list(accumulate(reversed(least), min))[::-1]
        self._to_come = [*to_come[1:], None]
        self._most = MOST * block_bytes
        self._rows: Table | None = None
        self._numbers = np.zeros(0, dtype=np.int64)

    def before(self, raw: RawLog, block: int) -> Table:
        """Return the rows that hold the contexts of a block, as far as they stand in earlier ones; keep its own."""
        import pyarrow as pa

        name = raw.roles.context_id
        assert name is not None
        numbers, first = np.unique(whole_numbers(raw, name), return_index=True)
        held = np.isin(self._numbers, numbers, assume_unique=True)
        found = raw.table.slice(0, 0) if self._rows is None else self._rows.filter(pa.array(held))
        known = np.isin(numbers, self._numbers, assume_unique=True)
        least = self._to_come[block]
        own = np.sort(first[~known & (numbers >= least)]) if least is not None else first[:0]
        rows = raw.table.take(pa.array(own))
        if self._rows is not None and least is not None:
            rows = pa.concat_tables([self._rows.filter(pa.array(self._numbers >= least)), rows])
        self._rows = rows.combine_chunks()
        self._numbers = np.asarray(self._rows.column(name).to_numpy()).astype(np.int64)
        if self._rows.nbytes > self._most:
            raise WholeError(
                f"{raw.origin.name}: rows of one context stand far apart ({len(self._numbers):,} contexts would have "
                "to be kept in memory). Sort its rows by context_id, or read it whole."
            )
        return found


def log_after(before: Table | None, raw: RawLog, missing: bool) -> BanditLog:
    """Return the log of a block; ``before`` are the rows that hold contexts of it and stand in earlier ones."""
    import pyarrow as pa

    if before is None or not before.num_rows:
        return log_of(raw, missing=missing)
    whole = replace(raw, table=pa.concat_tables([before, raw.table]))
    try:
        log = log_of(whole, missing=missing)
    except PoemError as error:
        (name, _), *_ = raw.origin.parts
        raise moved(error, name, -before.num_rows, 0) from error
    return log.take(np.arange(before.num_rows, whole.table.num_rows))
