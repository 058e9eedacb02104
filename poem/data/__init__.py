"""The log in memory: its columns, folds, and the layout that loops run over."""

from poem.data.folds import folds_by_context, folds_of
from poem.data.layout import SHARD_SCORES, Layout, Piece, Shard
from poem.data.log import BanditLog

__all__ = ["SHARD_SCORES", "BanditLog", "Layout", "Piece", "Shard", "folds_by_context", "folds_of"]
