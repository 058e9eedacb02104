"""A synthetic log of TMC's shape (Zipf-distributed words, 22 labels, every document replayed), and sets of classes."""

import bz2
import csv
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import poem

CONTEXTS, FEATURES, LABELS, NON_ZEROS = 21_519, 30_438, 22, 70


def documents(rng: np.random.Generator, contexts: int = CONTEXTS) -> sp.csr_array:
    """Return contexts × FEATURES with about NON_ZEROS non-zeros a row."""
    frequency = 1.0 / np.arange(1, FEATURES + 1)
    draws = round(1.27 * NON_ZEROS)  # frequent words are drawn more than once
    words = rng.choice(FEATURES, size=(contexts, draws), p=frequency / frequency.sum())
    # The order of columns in real files is not that of frequency.
    words = rng.permutation(FEATURES)[words]
    rows = np.repeat(np.arange(contexts), draws)
    X = sp.csr_array((rng.random(contexts * draws) + 0.1, (rows, words.ravel())), shape=(contexts, FEATURES))
    X.sum_duplicates()
    return X


def tmc_like(replay: int, seed: int = 0, contexts: int = CONTEXTS) -> poem.BanditLog:
    """Return the log, with every context replayed."""
    rng = np.random.default_rng(seed)
    X = documents(rng, contexts)
    context = np.tile(np.arange(contexts), replay)
    y = (rng.random((len(context), LABELS)) < 0.2).astype(np.uint8)
    log_propensity = np.where(y, np.log(0.2), np.log(0.8)).sum(axis=1)
    loss = np.clip(y.sum(axis=1) + rng.integers(-2, 3, len(context)), 0, LABELS).astype(float)
    return poem.BanditLog(X, y, loss=loss, log_propensity=log_propensity, context=context)


def labelled(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Read a name.csv.bz2 with the class in the last column: features as text, (n, d), and classes from 0, (n,)."""
    with bz2.open(path, "rt") as file:
        _, *rows = (row for row in csv.reader(file) if row)
    classes = np.unique([row[-1] for row in rows], return_inverse=True)[1]
    return np.array([row[:-1] for row in rows]), classes.astype(np.int64)
