"""The front door: the README's blocks run, its numbers come from results, its links lead somewhere."""

import json
import re
from pathlib import Path

import pytest

from transduce.report import results_table

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S))
def test_code_blocks_run(block):
    exec(compile(block, "README.md", "exec"), {"__name__": "readme"})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#]+)\)", page.read_text())
    missing = [link for link in links if not link.startswith("http") and not (page.parent / link).exists()]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tables_are_those_of_the_results(page):
    for name, table in re.findall(r"<!-- table: (\S+) -->\n(.*?)<!-- end -->", page.read_text(), re.S):
        assert table == results_table(json.loads((ROOT / name).read_text()))


@pytest.mark.parametrize("path", sorted((ROOT / "results").rglob("*.json")), ids=lambda path: path.stem)
def test_results_say_where_they_come_from(path):
    result = json.loads(path.read_text())
    assert {"command", "seed", "versions", "machine", "rows"} <= result.keys()
    assert result["rows"]
