"""The paper's experiments: what is run, how it is recorded, and the tables and figures made from it."""

from poem.experiments.demo import draw, run_demo, table_of
from poem.experiments.protocol import PROTOCOLS, Protocol
from poem.experiments.reproduction import Reproduction, reproduce
from poem.experiments.spec import ITEMS

__all__ = ["ITEMS", "PROTOCOLS", "Protocol", "Reproduction", "draw", "reproduce", "run_demo", "table_of"]
