"""Labelled data → logs with a known truth."""

from poem.simulation.datasets import CATALOG, Dataset, load_dataset, read_libsvm
from poem.simulation.labelled import Labelled, read_labelled, simulate_weak
from poem.simulation.logs import simulate

__all__ = [
    "CATALOG",
    "Dataset",
    "Labelled",
    "load_dataset",
    "read_labelled",
    "read_libsvm",
    "simulate",
    "simulate_weak",
]
