"""Files that are sent as bytes: what they hold, and bounds on them."""

import time
from contextlib import suppress

import numpy as np
import pytest
from format_samples import WRITERS, U, V, X, frame

from transduce.serving.bodies import TooLargeError
from transduce.serving.files import read_file, read_text
from transduce.types import TransduceError

MOST = 2**20


@pytest.mark.parametrize("name", WRITERS)
def test_every_format(name, tmp_path):
    WRITERS[name](tmp_path / name)
    found = read_file(name, (tmp_path / name).read_bytes(), MOST)
    np.testing.assert_allclose(found["v"], V)
    if name.startswith("pairs"):
        np.testing.assert_allclose(found["u"], U)
        np.testing.assert_allclose(found["x"], X)
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", [n for n in WRITERS if not n.endswith(("sv", "txt", "npz"))])
def test_what_unpacks_to_more_is_refused(name, tmp_path):
    """Zeros, which compress well."""
    zeros = np.zeros((300, 8)) if name == "pairs.parquet" else np.zeros((300, 400))
    WRITERS[name](tmp_path / name, zeros, zeros)
    with pytest.raises(TransduceError, match=rf"{name} unpacks to \d+ bytes.*at most 9999"):
        read_file(name, (tmp_path / name).read_bytes(), 9999)


HOSTILE = {
    "lines": b"\n" * MOST,
    "columns": b"1," * (MOST // 20),
    "a long name": b"_" * MOST + b",v\n1,2\n",
    "brackets": b"(" * 100_000 + b",v\n1,2\n",
    "quotes": b'"' * 100_000 + b"\n1,2\n",
    "names": b",".join(b"a" * 99 + b"%d" % i for i in range(9000)) + b"\n1,2\n",
    "ids": b"id,x,v\n" + b"".join(b"%d,%d,1\n" % (i % 3000, i) for i in range(9000)),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_tables_are_read_or_refused_quickly(kind):
    start = time.process_time()
    with suppress(TransduceError):
        read_text(HOSTILE[kind], MOST)
    assert time.process_time() - start < 5


def test_sizes_and_gaps():
    with pytest.raises(TooLargeError, match="at 16 for each number and 32 for each line"):
        read_text(b"1,2\n" * 1000, 10_000)
    with pytest.raises(TransduceError, match="1 of 48 values of v are not finite"):
        read_text(frame(np.where(V.max() == V, np.nan, V)).to_csv(index=False).encode(), MOST)
    with pytest.raises(TransduceError, match=r"a.xlsx is of an unknown format; expected one of"):
        read_file("a.xlsx", b"PK", MOST)


@pytest.mark.parametrize("name", ["mass", "groups"])
def test_columns_that_are_neither_v_nor_u_are_refused(name):
    table = frame().assign(**{name: np.arange(6) % 3 + 0.5})
    with pytest.raises(TransduceError, match=rf"neither v nor u \({name}\).*Leave them out"):
        read_text(table.to_csv(index_label="id").encode(), MOST)


def test_a_groups_array_is_refused(tmp_path):
    np.savez(tmp_path / "a.npz", v=V, u=U, groups=np.arange(6))
    with pytest.raises(TransduceError, match=r"neither v nor u \(groups\)"):
        read_file("a.npz", (tmp_path / "a.npz").read_bytes(), MOST)


def test_single_columns_as_inputs_are_refused():
    table = frame().drop(columns=[name for name in frame() if name.startswith("v")])
    table.insert(0, "mass", V[:, 0])
    table.insert(1, "damping", list("aabbab"))
    with pytest.raises(TransduceError, match=r"inputs \(mass, damping\).*regress"):
        read_text(table.to_csv(index=False).encode(), MOST)
