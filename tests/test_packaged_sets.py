"""benchmarks/packaged_sets.py: files of other packages as pairs, and what was measured on them."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.packaged_sets import SETS, between, folder_of, halves, read_ts
from benchmarks.wild_sets import geometric_mean
from transduce.types import TransduceError

ROOT = Path(__file__).parents[1]
AT_MOST = {5: 1.03, 10: 0.98, 20: 0.95, 50: 0.94}  # as on the sets of the folder `wild`


def test_series_of_a_ts_file(tmp_path):
    path = tmp_path / "A_TRAIN.ts"
    path.write_text(
        "# a: comment\n@classLabel true\n@data\n1,2,3,4:5,6,7,8:up\n0,0,0,1:2,2,2,3:down\n"
    )
    found = np.array(read_ts(path))
    assert found.shape == (2, 2, 4) and found[0, 1].tolist() == [5, 6, 7, 8]
    first, second = halves(found)
    assert first.tolist() == [[1, 2], [0, 0]] and second.tolist() == [[3, 4], [0, 1]]
    v, u = between(found, slice(0, 1), 1)
    assert v.shape == (2, 1, 4) and u.shape == (2, 4)


def test_a_package_that_is_not_installed(monkeypatch):
    monkeypatch.setattr("benchmarks.packaged_sets.find_spec", lambda name: None)
    with pytest.raises(TransduceError, match=r"pip install --no-deps aeon==1\.6\.0"):
        folder_of("aeon")


@pytest.mark.results
@pytest.mark.parametrize("n", AT_MOST)
def test_sets_on_which_nothing_was_chosen(n):
    rows = json.loads((ROOT / "results/packaged/accuracy.json").read_text())["rows"]
    ours = [row for row in rows if row["regressor"] == "general" and row["n"] == n]
    assert {row["set"] for row in ours} == set(SETS)
    assert geometric_mean([row["ratio"] for row in ours]) <= AT_MOST[n]
    assert max(row["ratio"] for row in ours) < 1.4
