"""The front door: the README's blocks run, its numbers come from results, its links lead somewhere.

`python tests/test_readme.py` writes the tables of README and docs anew from results.
"""

import json
import re
from pathlib import Path

import pytest

from transduce.report import results_table

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TABLE = re.compile(r"(<!-- table: (\S+) -->\n)(.*?)(<!-- end -->)", re.S)


def table(name):
    """A table that stands beside its rows, as the experiments write it, or the usual one of a results file."""
    text = (ROOT / name).read_text()
    return text if name.endswith(".md") else results_table(json.loads(text))


@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S))
def test_code_blocks_run_and_leave_nothing(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "README.md", "exec"), {"__name__": "readme"})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#]+)\)", page.read_text())
    missing = [link for link in links if not link.startswith("http") and not (page.parent / link).exists()]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tables_are_those_of_the_results(page):
    for _, name, shown, _ in TABLE.findall(page.read_text()):
        assert shown == table(name)


@pytest.mark.parametrize("path", sorted((ROOT / "results").rglob("*.json")), ids=lambda path: path.stem)
def test_results_say_where_they_come_from(path):
    result = json.loads(path.read_text())
    assert {"command", "seed", "versions", "machine", "rows"} <= result.keys()
    assert result["rows"]


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(TABLE.sub(lambda found: found[1] + table(found[2]) + found[4], page.read_text()))
