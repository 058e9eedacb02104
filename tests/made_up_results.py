"""Made-up results of the paper's experiments, and readers of the pages that show them."""

import re
from dataclasses import astuple, replace
from html.parser import HTMLParser

from poem.experiments import PROTOCOLS
from poem.experiments.run import Result
from poem.experiments.spec import Run, table_logging
from poem.version import VERSION

PAPER, RELEASE = PROTOCOLS["paper"], PROTOCOLS["release"]
LOGGING = table_logging(RELEASE)


def made_up(method="h0", loss=5.0, seed=0, logging=LOGGING, **changes):
    """A result that nobody has computed."""
    log = {"logger_C": None, "fraction": None, "temperature": None, "replay": None}
    if logging is not None:
        log = dict(zip(log, astuple(logging), strict=True))
    rest = {
        "protocol": "release",
        "dataset": "yeast",
        "data": "made up",
        "c": None,
        "lam": None,
        "steps": None,
        "chosen": True,
        "map_loss": loss / 2,
        "validation": None,
        "cpu_seconds": None,
        "problems": "",
        "poem": VERSION,
    }
    return Result(**(log | rest | {"method": method, "expected_loss": loss, "seed": seed} | changes))


def candidates(method, values, **changes):
    """All fits of a method that chooses, the second one chosen."""
    return [made_up(method, c=c, chosen=position == 1, **changes) for position, c in enumerate(values)]


def timeless(results):
    """Results without what no two runs share, in an order of their own."""
    return sorted((astuple(replace(result, cpu_seconds=None)) for result in results), key=repr)


def run_of(*methods, logging=LOGGING, seed=0):
    return Run("yeast", logging, seed, methods)


class Page(HTMLParser):
    """Checks that every element is closed where it should be, and keeps what the page shows."""

    def __init__(self, text):
        super().__init__()
        self.open, self.seen, self.shown, self.links, self.alts = [], [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.seen.append(tag)
        self.links += [value for name, value in attributes if name in ("src", "href", "srcset", "data", "action")]
        self.alts += [value for name, value in attributes if name == "alt"]
        if tag not in ("meta", "img"):  # these are never closed
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.shown.append(data)


def table_lines(markdown):
    """The lines of each table of a text."""
    return [table.splitlines() for table in re.findall(r"(?:^\|.*\n)+", markdown, re.MULTILINE)]
