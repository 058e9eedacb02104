"""Where work over the shards of a log is run."""

from poem.backends.base import Backend
from poem.backends.dask import Dask
from poem.backends.threads import Threads

__all__ = ["Backend", "Dask", "Threads"]
