"""Arrays, matrices and compiled loops; nothing here knows what a log is."""

from poem.compute.catalogue import CatalogueDesign, is_catalogue
from poem.compute.cutting import pairs
from poem.compute.exponential import exp_down
from poem.compute.forest import Forest
from poem.compute.gradients import RowGradient, SummedGradient, add_terms
from poem.compute.grown import GrownDesign
from poem.compute.kernels import OneBlasThread, Threads, count_threads, exact_kernel, inlined, kernel
from poem.compute.linear import DenseDesign, Design, SomeContexts
from poem.compute.matrix import Matrix, as_matrix, compact, is_sparse, row_mean_square
from poem.compute.mixing import GOLDEN, mixed
from poem.compute.offered import OfferedDesign, ragged_places
from poem.compute.packed import lanes_for, packed_zeros
from poem.compute.packed import packed as packed_copy
from poem.compute.sparse import design_of
from poem.compute.touched import TouchedDesign, touches_few

__all__ = [
    "GOLDEN",
    "CatalogueDesign",
    "DenseDesign",
    "Design",
    "Forest",
    "GrownDesign",
    "Matrix",
    "OfferedDesign",
    "OneBlasThread",
    "RowGradient",
    "SomeContexts",
    "SummedGradient",
    "Threads",
    "TouchedDesign",
    "add_terms",
    "as_matrix",
    "compact",
    "count_threads",
    "design_of",
    "exact_kernel",
    "exp_down",
    "inlined",
    "is_catalogue",
    "is_sparse",
    "kernel",
    "lanes_for",
    "mixed",
    "packed_copy",
    "packed_zeros",
    "pairs",
    "ragged_places",
    "row_mean_square",
    "touches_few",
]
