"""How work is cut into pieces for threads: by the data alone, never by the number of threads."""

import numpy as np

from poem.arrays import IntArray

PIECES = 8
PIECE_WORK = 4_000_000  # multiply-adds below which a piece is not worth a thread's wake-up


def pairs(cuts: IntArray) -> list[tuple[int, int]]:
    """Turn borders into (first, last) pairs."""
    return list(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))


def even_cuts(length: int, work: int) -> IntArray:
    """Cut rows of equal work, which is ``work`` multiply-adds in all."""
    pieces = max(1, min(PIECES, length, work // PIECE_WORK))
    if pieces == 1:  # as in every product of a small log
        return np.array([0, length], dtype=np.int64)
    return np.linspace(0, length, pieces + 1).astype(np.int64)


def cuts_by_work(work: IntArray) -> IntArray:
    """Cut rows so that pieces have about equal work, in multiply-adds."""
    rows, total = len(work), np.append(0, np.cumsum(work))
    pieces = max(1, min(PIECES, rows, int(total[-1]) // PIECE_WORK))
    cuts = np.searchsorted(total, np.linspace(0, total[-1], pieces + 1))
    cuts[0], cuts[-1] = 0, rows
    return np.unique(cuts)
