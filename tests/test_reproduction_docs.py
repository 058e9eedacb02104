"""The tables of docs/reproduction.md are those that the committed runs give."""

from pathlib import Path

import pytest
from test_datasets import SHARED

from poem.experiments.document import Grid, Picture, Section, Text, to_markdown
from poem.experiments.protocol import PROTOCOLS
from poem.experiments.record import Record
from poem.experiments.reproduction import sections_of
from poem.experiments.run import data_named
from poem.experiments.spec import ITEMS

DOCS = Path(__file__).parent.parent / "docs"
SETS = ("scene", "yeast", "tmc", "lyrl")


@pytest.mark.skipif(not SHARED.is_dir(), reason="the data sets are not here")
@pytest.mark.parametrize(("protocol", "items"), [("release", ITEMS), ("paper", ("table2",))])
def test_the_page_shows_what_the_runs_gave(protocol, items):
    page = (DOCS / "reproduction.md").read_text(encoding="utf-8")
    record = Record(DOCS / "reproduction" / "runs.csv")
    data = {name: data_named(name, str(SHARED)) for name in SETS}
    sections, pictures = sections_of(items, "all", PROTOCOLS[protocol], record, data, range(10))
    assert len(pictures) == (6 if items == ITEMS else 0)
    for section in sections[1:]:  # the first says how the rest was made
        assert section.title in page
        for block in section.blocks:
            if isinstance(block, Text):
                assert block.text in page
            elif isinstance(block, Grid):
                assert to_markdown([Section("", [block])]).split("\n\n", 1)[1].strip() in page
            elif isinstance(block, Picture):
                assert f"(reproduction/{block.file})" in page
                assert (DOCS / "reproduction" / block.file).is_file()
