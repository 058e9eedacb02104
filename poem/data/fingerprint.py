"""A digest of all that a log holds."""

import hashlib
from typing import TYPE_CHECKING

from poem.compute import is_sparse

if TYPE_CHECKING:
    from poem.data.log import BanditLog


def digest_of(log: "BanditLog") -> str:
    """Return the digest: the same for the same log in the same order."""
    X = log.X
    about = (
        log.labels,
        log.feature_names,
        log.outcome,
        log.propensities,
        None if log.group is None else log.group.tolist(),
    )
    digest = hashlib.sha256(repr(about).encode())
    if not log.structure.inferred:
        digest.update(repr(log.structure).encode())
    parts = [X.data, X.indices, X.indptr] if is_sparse(X) else [X]
    more = [array for array in (log.time,) if array is not None]
    if log.logger is not None:
        digest.update(repr(log.logger.tolist()).encode())
    more += [] if log.available is None else log.available.arrays()
    for array in [*parts, log.y, log.loss, log.log_propensity, log.context, *more]:
        digest.update(str((array.dtype, array.shape)).encode())
        digest.update(array)
    return digest.hexdigest()
