"""A log on disk: a folder of shards, each of which fits into memory."""

from poem.packed.fingerprint import share_units
from poem.packed.hashing import HashArray, context_folds, context_hashes, value_hashes
from poem.packed.keys import Keys, context_numbers, in_order
from poem.packed.log import IN_MEMORY, PackedLog
from poem.packed.loggers import logger_counts
from poem.packed.manifest import ShardNote
from poem.packed.opening import how_to_open, is_packed, open_log
from poem.packed.packing import pack_log
from poem.packed.quantiles import extremes_of, quantiles_of
from poem.packed.rows import has_catalogue
from poem.packed.sampling import Sample, all_units, full_folds, part_within, sample_units, unit_folds
from poem.packed.writing import PackWriter, pack_folder, shards_for

__all__ = [
    "IN_MEMORY",
    "HashArray",
    "Keys",
    "PackWriter",
    "PackedLog",
    "Sample",
    "ShardNote",
    "all_units",
    "context_folds",
    "context_hashes",
    "context_numbers",
    "extremes_of",
    "full_folds",
    "has_catalogue",
    "how_to_open",
    "in_order",
    "is_packed",
    "logger_counts",
    "open_log",
    "pack_folder",
    "pack_log",
    "part_within",
    "quantiles_of",
    "sample_units",
    "shards_for",
    "share_units",
    "unit_folds",
    "value_hashes",
]
