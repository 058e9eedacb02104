"""Labelled data → logs with a known truth."""

from poem.simulation.datasets import CATALOG, Dataset, load_dataset, read_libsvm
from poem.simulation.logs import simulate

__all__ = ["CATALOG", "Dataset", "load_dataset", "read_libsvm", "simulate"]
