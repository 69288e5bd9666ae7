"""Tables as they are found: missing values of all dtypes, text for numbers, single rows."""

import warnings

import numpy as np
import pandas as pd
import pytest

from transduce import TransduceError
from transduce.inputs import read_pairs, read_query

N = 12
U = np.random.default_rng(0).standard_normal((N, 10))
A = np.random.default_rng(1).uniform(size=N)
TEXT = ["x", "y", "z", None] + ["x", "y"] * 4
NUMBERS = [1, 2, 3, None] + [1, 2] * 4
FLAGS = [True, False, True, None] + [True, False] * 4
COLUMNS = {
    "text": pd.Series(TEXT, dtype=object),
    "text with NaN": pd.Series(TEXT, dtype=object).where(pd.notna(TEXT), np.nan),
    "text with NA": pd.Series(TEXT, dtype=object).where(pd.notna(TEXT), pd.NA),
    "string": pd.Series(TEXT, dtype="string"),
    "str": pd.Series(TEXT, dtype="str"),
    "category": pd.Series(TEXT, dtype="category"),
    "category of numbers": pd.Series(NUMBERS, dtype="category"),
    "numbers": pd.Series(NUMBERS, dtype=float),
    "infinite": pd.Series(NUMBERS, dtype=float).fillna(np.inf),
    "objects": pd.Series(NUMBERS, dtype=object),
    "objects with NA": pd.Series(NUMBERS, dtype=object).where(pd.notna(NUMBERS), pd.NA),
    "Int64": pd.Series(NUMBERS, dtype="Int64"),
    "Float64": pd.Series(NUMBERS, dtype="Float64"),
    "boolean": pd.Series(FLAGS, dtype="boolean"),
    "booleans as objects": pd.Series(FLAGS, dtype=object),
}
PLACES = {
    "parameters": lambda t: {"v": None, "parameters": t},
    "v": lambda t: {"v": t},
    "next to v": lambda t: {"v": U, "parameters": t},
}


def table(column):
    return pd.DataFrame({"a": A, "c": column})


def said(call):
    with pytest.raises(TransduceError) as raised:
        call()
    return str(raised.value)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", COLUMNS)
def test_missing_values_are_named_and_dropped(kind, place):
    given = PLACES[place](table(COLUMNS[kind]))
    where = f"{'v' if place == 'v' else 'parameters'} in row 3, column 'c'"
    message = said(lambda: read_pairs(u=U, **given))
    assert message.startswith(f"missing or infinite values: {where} (1 of 12 pairs); expected")
    assert "Give missing='drop'" in message
    with pytest.warns(UserWarning, match=f"left out 1 pair of 12 .*: {where}"):
        pairs = read_pairs(u=U, missing="drop", **given)
    expected = read_pairs(**PLACES[place](table(COLUMNS[kind]).drop(3)) | _without(3, place))
    assert pairs.rows.tolist() == [i for i in range(N) if i != 3]
    assert np.array_equal(pairs.v.array, expected.v.array) and pairs.levels == expected.levels
    if pairs.parameters is not None:
        assert np.array_equal(pairs.parameters, expected.parameters)


def _without(row, place):
    rest = np.delete(U, row, axis=0)
    return {"u": rest} | ({"v": rest} if place == "next to v" else {})


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", COLUMNS)
def test_queries_with_missing_values_are_named(kind, place):
    whole, broken = table(COLUMNS[kind]).drop(3), table(COLUMNS[kind])
    pairs = read_pairs(**PLACES[place](whole) | _without(3, place))
    message = said(lambda: read_query(pairs, **PLACES[place](broken)))
    name = "v" if place == "v" else "parameters"
    assert f"{name} in row 3, column 'c' (1 of 12); expected a finite number" in message
    code = message.split("Leave those out, ")[1].split(", or fill")[0]
    names = {"v": PLACES[place](broken)["v"], "parameters": broken, "np": np}
    left = {each.split(".")[0]: eval(each, names) for each in code.split(" and ") if "." in each}
    given = {("v" if key == "np" else key): value for key, value in left.items()}
    assert len(read_query(pairs, **{"v": None} | given)) == N - 1


def test_several_columns_and_arrays_are_named():
    t = table(COLUMNS["text"])
    t.loc[5, "a"] = np.nan
    u = U.copy()
    u[7, 2] = np.nan
    message = said(lambda: read_pairs(None, u, parameters=t))
    assert "parameters in rows 3 and 5, columns 'a' and 'c'; u in row 7 (3 of 12" in message
    message = said(lambda: read_pairs(U, u, parameters=t.assign(c=0.0).to_numpy()))
    assert "u in row 7; parameters in row 5, column 0 (2 of 12" in message


def test_categories_of_dropped_rows_alone_are_unknown():
    """Their column would be constant, and answers to them would be made up."""
    t = pd.DataFrame({"a": A, "c": ["lead", "tin", "zinc", *["x", "y"] * 4, "x"]})
    t.loc[0, "a"] = np.nan
    u = U.copy()
    u[1] = np.inf
    with pytest.warns(UserWarning, match="left out 2 pairs"):
        pairs = read_pairs(None, u, parameters=t, missing="drop")
    assert pairs.levels == {"c": ("x", "y", "zinc")}
    assert "holds category 'tin'" in said(lambda: read_query(pairs, t[1:2]))


@pytest.mark.parametrize("dtype", [object, "string", float])
def test_a_column_without_values_is_named(dtype):
    t = table(pd.Series([None] * N, dtype=dtype))
    message = said(lambda: read_pairs(None, U, parameters=t, missing="drop"))
    assert "all 12 pairs" in message and "Leave out column 'c' of parameters" in message
    assert len(read_pairs(None, U, parameters=t.drop(columns="c"))) == N


def test_no_row_is_complete():
    t = pd.DataFrame({"a": [1.0, np.nan], "b": [np.nan, 2.0]})
    message = said(lambda: read_pairs(None, U[:2], parameters=t, missing="drop"))
    assert message.endswith("Fill the gaps of some rows.")


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("texts", [["1.5", "2", "n/a"] * 4, [str(i) for i in range(N)]])
def test_numbers_that_are_written_as_text_are_no_categories(texts, place):
    t = table(pd.Series(texts))
    message = said(lambda: read_pairs(u=U, **PLACES[place](t)))
    if place == "v" and "n/a" not in texts:
        assert "v.astype(float)" in message
        return
    assert "numbers that are written as text" in message
    numbers = t.assign(c=pd.to_numeric(t["c"], errors="coerce"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # dropped rows
        pairs = read_pairs(u=U, missing="drop", **PLACES[place](numbers))
    assert pairs.levels == {} and len(pairs) == sum(text != "n/a" for text in texts)
    categories = t.assign(c=t["c"].astype("category"))
    assert set(read_pairs(u=U, **PLACES[place](categories)).levels["c"]) == set(texts)


def test_a_series_of_text_is_a_table_of_one_column():
    c = pd.Series(["x", "y", "z"] * 4, name="material")
    for given in ({"v": c}, {"v": None, "parameters": c}):
        pairs = read_pairs(u=U, **given)
        assert pairs.levels == {"material": ("x", "y", "z")} and pairs.v.array.shape == (N, 1, 3)
        assert np.array_equal(read_query(pairs, c[:2]).v.array, pairs.v.array[:2])


def test_a_single_row_of_a_table():
    t = table(pd.Series(["x", "y", "z"] * 4))
    pairs = read_pairs(None, U, parameters=t)
    message = said(lambda: read_query(pairs, t.iloc[0]))
    assert "v.to_frame().T" in message
    assert np.array_equal(read_query(pairs, t.iloc[0].to_frame().T).v.array, pairs.v.array[:1])


def test_a_constant_category_is_a_constant_column():
    t = table(pd.Series(["x"] * N))
    pairs = read_pairs(None, U, parameters=t)
    assert pairs.v.layout.names == ("a", "c=x") and (pairs.v.array[:, 0, 1] == 1).all()


def test_lists_in_a_column_are_refused():
    t = table(pd.Series([[1, 2]] * N))
    assert "column 'c' of parameters holds Python objects (list)" in said(
        lambda: read_pairs(None, U, parameters=t)
    )


@pytest.mark.parametrize("columns", [[3, 1], ["2.5", "1.5"], [1.0, 1.0]])
def test_labels_of_parameters_are_no_positions(columns):
    p = pd.DataFrame(np.stack([A, A**2], 1), columns=columns)
    assert read_pairs(None, U, parameters=p).v.array.shape == (N, 1, 2)


def test_x_belongs_to_the_outputs_of_a_table():
    p = np.random.default_rng(0).standard_normal((N, 9))
    for given in ({"x": np.arange(10.0)}, {"x_u": np.arange(10.0)}):
        assert read_pairs(None, U, parameters=p, **given).u.grid.x[-1] == 9
    message = said(lambda: read_pairs(None, U, parameters=p, x=np.arange(9.0)))
    assert "x holds 9 positions, and u has shape (12, 10)" in message
    assert "x and x_u are both given" in said(
        lambda: read_pairs(None, U, parameters=p, x=np.arange(10), x_u=np.arange(10))
    )


def test_rows_of_other_kinds_name_a_remedy_that_works():
    t = table(pd.Series(["x", "y", "z"] * 4))
    pairs = read_pairs(None, U, parameters=t)
    row, columns = dict(t.iloc[0]), t.to_dict("list")
    assert "pd.DataFrame([v])" in said(lambda: read_query(pairs, row))
    assert np.array_equal(read_query(pairs, pd.DataFrame([row])).v.array, pairs.v.array[:1])
    assert "pd.DataFrame(v)" in said(lambda: read_query(pairs, columns))
    assert np.array_equal(read_query(pairs, pd.DataFrame(columns)).v.array, pairs.v.array)
    assert "pd.DataFrame(parameters)" in said(lambda: read_pairs(None, U, parameters=columns))
    for rows in (t.to_numpy(), t.to_numpy().tolist()):
        assert "pd.DataFrame(v, columns=...)" in said(lambda rows=rows: read_query(pairs, rows))
