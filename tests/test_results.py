"""Committed results: their rows stay as they were measured, whatever happens to the code.

`python tests/test_results.py` records the checksums of new rows in results_rows.json. A checksum
that is there already is never replaced: delete its line to do so on purpose."""

import hashlib
import json
from pathlib import Path

import pytest

pytestmark = pytest.mark.results
ROOT = Path(__file__).parent.parent
RECORDED = Path(__file__).parent / "results_rows.json"
FILES = sorted(
    str(path.relative_to(ROOT))
    for path in (ROOT / "results").rglob("*.json")
    # Timings are measured again whenever the code changes; quick runs are not committed.
    if path.parent.name != "benchmarks" and not path.parent.name.endswith("-quick")
)


def rows_checksum(name):
    """SHA-256 of the bytes of a result from its rows on, which come last."""
    text = (ROOT / name).read_bytes()
    return hashlib.sha256(text[text.index(b'"rows": ') :]).hexdigest()


def recorded():
    return json.loads(RECORDED.read_text())


@pytest.mark.parametrize("name", FILES)
def test_rows_are_those_that_were_measured(name):
    assert rows_checksum(name) == recorded()[name]


def test_no_result_is_lost():
    assert set(recorded()) == set(FILES)


@pytest.mark.parametrize("name", FILES)
def test_rows_come_last(name):
    """So that the checksum covers all of them and nothing else."""
    assert list(json.loads((ROOT / name).read_text()))[-1] == "rows"


if __name__ == "__main__":
    known = recorded() if RECORDED.exists() else {}
    checksums = {name: known.get(name) or rows_checksum(name) for name in FILES}
    RECORDED.write_text(json.dumps(checksums, indent=1) + "\n")
