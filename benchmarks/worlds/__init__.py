"""Simulated worlds with known truth, in which a certificate must hold: see ``python -m benchmarks.worlds --help``."""

from benchmarks.worlds.adaptive import ADAPTIVE
from benchmarks.worlds.label_sets import SETS_WORLDS
from benchmarks.worlds.offered import OFFERED_WORLDS
from benchmarks.worlds.plain import PLAIN
from benchmarks.worlds.traps import TRAPS
from benchmarks.worlds.world import Draw, Sample, World

WORLDS = {world.name: world for world in (*PLAIN, *TRAPS, *ADAPTIVE, *OFFERED_WORLDS, *SETS_WORLDS)}

__all__ = ["WORLDS", "Draw", "Sample", "World"]
