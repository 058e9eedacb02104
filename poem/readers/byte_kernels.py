"""How the readers' loops over bytes are compiled."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

_OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy", "_nrt": False}
F = TypeVar("F", bound=Callable[..., Any])


def byte_kernel(function: F) -> F:
    """Compile a loop over bytes that makes no arrays.

    Numba then counts no references to the arrays that it is given. In functions of a few steps, counting takes longer
    than the steps.
    """
    return cast(F, numba.njit(**_OPTIONS)(function))
