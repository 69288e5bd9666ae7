"""Tables with named columns, and grids of dates: read, kept and saved."""

import warnings
from datetime import datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pytest
from regression_samples import examples, gap

import transduce
from transduce.regression.saving import load

pytestmark = pytest.mark.usefixtures("general")
V, U, QUERY = examples()
DAYS = np.datetime64("2020-03-01") + np.arange(24)
ZONE = timezone(timedelta(hours=1))
DATES = {
    "days": DAYS,
    "nanoseconds": DAYS.astype("M8[ns]"),
    "months": np.datetime64("2020-03") + np.arange(24),
    "durations": np.arange(24).astype("m8[h]"),
    "descending": DAYS[::-1],
    "with a zone": np.array([datetime(2020, 1, 1 + i, tzinfo=ZONE) for i in range(24)], object),
}


@pytest.mark.parametrize("kind", DATES)
def test_dates_are_saved_as_dates(kind, tmp_path):
    x = DATES[kind]
    O = transduce.regress(V, U, x=x)
    O.save(tmp_path / "dates.safetensors")
    again = load(tmp_path / "dates.safetensors")
    for f in (again.pairs.v, again.pairs.u):
        assert f.grid.x.dtype == O.pairs.u.grid.x.dtype and f.grid.x.dtype.kind in "MmO"
        assert (f.grid.x == x).all()
    found, expected = (o(QUERY[:, 2:], x=x[2:], at=x[3:7]) for o in (again, O))
    assert gap(found, expected, U) < 1e-9
    assert gap(again(QUERY, at=5), O(QUERY, at=5), U) < 1e-9


def test_dates_of_a_frame_are_saved_as_dates(tmp_path):
    v, u = (pd.DataFrame(f, columns=pd.DatetimeIndex(DAYS)) for f in (V, U))
    O = transduce.regress(v, u)
    O.save(tmp_path / "dates.safetensors")
    again = load(tmp_path / "dates.safetensors")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = again(pd.DataFrame(QUERY, columns=pd.DatetimeIndex(DAYS)))
    assert gap(found, O(QUERY), U) < 1e-9


NAMES = ["width", "height", "mass"]


def table(rows):
    return pd.DataFrame(rows[:, :3] * [1, 10, 100], columns=NAMES)


@pytest.mark.parametrize("loaded", [False, True])
def test_named_columns_of_queries_are_read_by_name(loaded, tmp_path):
    O = transduce.regress(table(V), U[:, 0])
    expected = O(table(QUERY))
    if loaded:
        O.save(tmp_path / "table.safetensors")
        O = load(tmp_path / "table.safetensors")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for other in (table(QUERY)[NAMES[::-1]], table(QUERY)[NAMES[::-1]].assign(extra=1.0)):
            assert gap(O(other), expected, U) < 1e-12
            assert gap(O.predict(other)[0], expected, U) < 1e-9
            assert (O.novelty(other) == O.novelty(table(QUERY))).all()
        assert gap(O(table(QUERY).to_numpy()), expected, U) < 1e-12


def test_named_columns_of_curves_parameters_and_new_pairs_are_read_by_name():
    names = [f"sensor {i}" for i in range(24)]
    other = names[::-1]
    v, u, query = (pd.DataFrame(f, columns=names) for f in (V, U, QUERY))
    p = pd.DataFrame(V[:, :2], columns=["a", "b"])
    O = transduce.regress(v[:13], u[:13], parameters=p[:13])
    asked = pd.DataFrame(QUERY[:, :2], columns=["a", "b"])
    expected = O(query, parameters=asked)
    assert gap(O(query[other], parameters=asked[["b", "a"]]), expected, U) < 1e-12
    whole = O.add(v[13:], u[13:], parameters=p[13:])
    mixed = O.add(v[13:][other], u[13:][other], parameters=p[13:][["b", "a"]])
    assert gap(mixed(query, parameters=asked), whole(query, parameters=asked), U) < 1e-12


def test_columns_of_other_names_are_warned_of():
    O = transduce.regress(table(V), U[:, 0])
    renamed = table(QUERY).rename(columns={"mass": "weight"})
    said = "column 'weight' of v, where the examples have 'mass': columns are read by place"
    with pytest.warns(UserWarning, match=said):
        assert gap(O(renamed), O(table(QUERY)), U) < 1e-12
