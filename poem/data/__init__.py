"""The log in memory: its columns, folds, and the layout that loops run over."""

from poem.data.columns import LARGEST_LOSS, LEAST_SPREAD, NO_WORDS
from poem.data.folds import folds_by_context, folds_of, sample_of, with_seen_contexts
from poem.data.grown import beside, grown_log, grown_offers, logged_pairs, pair_scores, pair_width
from poem.data.layout import SHARD_SCORES, Layout, Piece, Shard, offered_design
from poem.data.log import BanditLog
from poem.data.offers import Catalogue, Offers, has_kinds, mean_square

__all__ = [
    "LARGEST_LOSS",
    "LEAST_SPREAD",
    "NO_WORDS",
    "SHARD_SCORES",
    "BanditLog",
    "Catalogue",
    "Layout",
    "Offers",
    "Piece",
    "Shard",
    "beside",
    "folds_by_context",
    "folds_of",
    "grown_log",
    "grown_offers",
    "has_kinds",
    "logged_pairs",
    "mean_square",
    "offered_design",
    "pair_scores",
    "pair_width",
    "sample_of",
    "with_seen_contexts",
]
