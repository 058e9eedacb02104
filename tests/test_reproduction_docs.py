"""The tables of docs/reproduction.md are those that the committed runs give."""

from pathlib import Path

import pytest
from test_datasets import SHARED

from poem.experiments.document import Grid, Picture, Section, Text, to_markdown
from poem.experiments.protocol import PROTOCOLS
from poem.experiments.record import Record
from poem.experiments.reproduce import sections_of
from poem.experiments.run import data_named
from poem.experiments.spec import ITEMS

DOCS = Path(__file__).parent.parent / "docs"
SETS = ("scene", "yeast", "tmc", "lyrl")


@pytest.mark.skipif(not SHARED.is_dir(), reason="the data sets are not here")
def test_the_page_shows_what_the_runs_gave():
    page = (DOCS / "reproduction.md").read_text(encoding="utf-8")
    record = Record(DOCS / "reproduction" / "runs.csv")
    data = {name: data_named(name, str(SHARED)) for name in SETS}
    sections, pictures = sections_of(ITEMS, "all", PROTOCOLS["release"], record, data, range(10))
    for section in sections:
        assert section.title in page or section.title == "How this was made"
        for block in section.blocks:
            if isinstance(block, Text):
                assert block.text in page
            elif isinstance(block, Grid):
                table = to_markdown([Section("", [block])]).split("\n\n", 1)[1].strip()
                assert table in page
            elif isinstance(block, Picture):
                assert f"(reproduction/{block.file})" in page
                assert (DOCS / "reproduction" / block.file).is_file()
    assert len(pictures) == 6
