"""Array types, and the one form in which arrays reach the kernels."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
AnyArray = NDArray[Any]


def frozen(array: NDArray[Any], dtype: Any = None) -> NDArray[Any]:
    """Return a read-only, C-contiguous view (a copy only if the type or layout differs).

    Numba compiles one kernel per array type, and a read-only array is a type of its own.
    Inputs that always arrive read-only keep that to one variant per kernel.
    """
    view = np.ascontiguousarray(array, dtype=dtype).view()
    view.flags.writeable = False
    return view
