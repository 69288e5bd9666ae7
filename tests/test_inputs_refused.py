"""Bad input: each message says what was expected, what was received, and a remedy that works."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
import xarray as xr
from numpy.lib.recfunctions import structured_to_unstructured

from transduce import TransduceError
from transduce.inputs import read_pairs, read_query

N, P = 12, 16
V = np.random.default_rng(0).standard_normal((N, P))
U = V[:, :10] ** 2
X = np.linspace(0.0, 1.0, P)
GAPS = V.copy()
GAPS[[3, 5], 2] = np.nan
HOLE = V.copy()
HOLE[:, 4] = np.nan
SHUFFLED = np.r_[X[:4], X[6], X[4:6], X[7:]]
REPEATED = np.r_[X[:5], X[4], X[5:-1]]
FRAME = pd.DataFrame(V, columns=[str(i) for i in range(1, P + 1)], index=list("abcdefghijkl"))
TEXTS = sorted(FRAME.columns)  # "1", "10", "11", ...
MIXED = FRAME.assign(site="north")
RECORDS = np.zeros(N, dtype=[("a", "f8"), ("b", "f8")])
ARRAY = xr.DataArray(V, {"lon": np.r_[8:16, 0:8]}, ("t", "lon"))


def order(x):
    return np.unique(x, return_index=True)[1]


def stacked(v):
    return np.stack([np.real(v), np.imag(v)], axis=1)


# arguments, received, expected, remedy, and the arguments after the remedy (None: nothing to run)
CASES = {
    "one position": ({"v": V[:, :1], "x_v": [1.0]}, "x_v holds 1 position", "no positions",
        "Leave out x_v", {"v": V[:, :1]}),
    "positions of numbers": ({"u": U[:, 0], "x_u": X[:10]}, "(12,)", "no positions",
        "Leave out x_u", {"u": U[:, 0]}),
    "one function, one axis": ({"v": V[0], "u": U[0], "x_v": X}, "v holds 16", "the same number",
        "v[None] and u[None]", {"v": V[0][None], "u": U[0][None], "x_v": X}),
    "one pair, one axis": ({"v": V[0], "u": V[1], "x": X}, "(16,)", "no positions",
        "v[None] and u[None]", {"v": V[0][None], "u": V[1][None], "x": X}),
    "one list": ({"v": V[0].tolist(), "u": U[:1]}, "16 functions and u 1", "same number",
        "np.asarray(v)[None]", {"v": np.asarray(V[0].tolist())[None], "u": U[:1]}),
    "NaN": ({"v": GAPS}, "v in rows 3 and 5 (2 of 12 pairs)", "finite", "missing='drop'",
        {"v": GAPS, "missing": "drop"}),
    "masked": ({"v": np.ma.masked_invalid(GAPS)}, "rows 3 and 5", "finite", "missing='drop'",
        {"v": GAPS, "missing": "drop"}),
    "infinite": ({"u": np.where(GAPS[:, :10] > 1, np.inf, U)}, "u in rows", "finite", "'drop'",
        {"u": np.where(GAPS[:, :10] > 1, np.inf, U), "missing": "drop"}),
    "None": ({"v": [None, *range(1, N)]}, "v in row 0", "finite", "'drop'",
        {"v": [None, *range(1, N)], "missing": "drop"}),
    "NaN in all": ({"v": HOLE, "missing": "drop"}, "all 12 pairs", "at least one complete pair",
        "Leave out points", {"v": np.delete(HOLE, 4, 1)}),
    "not sorted": ({"x_v": SHUFFLED}, "x_v[5] = 0.26", "ascend throughout", "order = np.unique(x_v",
        {"v": V[..., order(SHUFFLED)], "x_v": SHUFFLED[order(SHUFFLED)]}),
    "not sorted, descending": ({"x_v": SHUFFLED[::-1]}, "x_v[11] = 0.4", "descend", "order", None),
    "repeated": ({"x_v": REPEATED}, "repeats 0.26", "distinct", "order",
        {"v": V[..., order(REPEATED)], "x_v": REPEATED[order(REPEATED)]}),
    "labels not sorted": ({"v": FRAME[TEXTS]}, "label of points of v[8] = 2.0 follows", "ascend",
        "v[sorted(v.columns, key=float)]", {"v": FRAME[TEXTS][sorted(TEXTS, key=float)]}),
    "labels, x given": ({"v": FRAME[TEXTS]}, "label of points", "ascend", "x_v",
        {"v": FRAME[TEXTS], "x_v": X}),
    "coordinate not sorted": ({"v": ARRAY}, "label of points of v[8] = 0", "ascend",
        'v.sortby("lon")', {"v": ARRAY.sortby("lon")}),
    "x too short": ({"x_v": X[:9]}, "x_v holds 9 positions, and v has shape (12, 16)", "16",
        "each of the 16 points", {"x_v": X}),
    "x of the other": ({"x_v": X[:10]}, "10 positions", "16", "give them as x_u", {"x_u": X[:10]}),
    "x of one only": ({"x": X}, "x holds 16 positions, and u 10 points", "as many", "x_u with 10",
        {"x_v": X, "x_u": X[:10]}),
    "x of neither": ({"x": X[:9]}, "x holds 9", "as many positions", "16 points", None),
    "transposed": ({"v": V.T, "u": V.T, "x": X}, "(16, 12)", "points, 12", "give v.T and u.T",
        {"u": V, "x": X}),
    "x and x_v": ({"x": X, "x_v": X}, "x and x_v are both given", "x for common", "Leave out x,",
        {"x_v": X}),
    "x with NaN": ({"x_v": np.r_[X[:-1], np.nan]}, "x_v[15] is nan", "finite positions",
        "Leave out", {"v": V[:, :-1], "x_v": X[:-1]}),
    "x with NaT": ({"x_v": np.array(["2020-01-01", "NaT"], "M8[D]")}, "x_v[1] is NaT", "finite",
        "Leave out", None),
    "x of text": ({"x_v": list("abcdefghijklmnop")}, "<U1 values (a", "numbers or dates",
        "as numbers", {"x_v": X}),
    "x of two axes": ({"x_v": np.tile(X, (N, 1))}, "shape (12, 16)", "(points,)", "Interpolate",
        None),
    "x a number": ({"x_v": 16}, "shape ()", "(points,)", "common positions", None),
    "x too long": ({"x_v": np.linspace(-1, 1, P) * 1.7e308}, "runs from", "float64", "larger units",
        {"x_v": X}),
    "x for a field": ({"v": np.ones((N, 12, 50)), "x_v": np.arange(50)}, "read as a field",
        "one variable", "channels=12",
        {"v": np.ones((N, 12, 50)), "x_v": np.arange(50), "channels": 12}),
    "shared x for a field": ({"v": np.ones((N, 12, 50)), "x": np.arange(50)}, "field",
        "one variable", "leave out x.", {"v": np.ones((N, 12, 50))}),
    "x for more axes": ({"v": np.ones((N, 2, 9, 9)), "x_v": np.arange(9)}, "field", "one variable",
        "Leave out x_v", None),
    "other n": ({"v": V[:-1]}, "v holds 11 functions and u 12", "the same number", "Drop",
        {"v": V[:-1], "u": U[:-1]}),
    "v transposed": ({"v": V.T}, "16 functions and u 12", "the same", "give v.T", {"v": V}),
    "both transposed": ({"v": V.T, "u": U.T}, "16 functions and u 10", "the same", "v.T and u.T",
        {"v": V}),
    "rows in another order": ({"v": FRAME, "u": FRAME[::-1]},
        "row 0 is labelled 'a' in v and 'l' in u", "same order", "u.loc[v.index]",
        {"v": FRAME, "u": FRAME[::-1].loc[FRAME.index]}),
    "text": ({"v": [["a", "b"]] * N}, "text (a)", "real numbers", "Encode", None),
    "numbers as text": ({"v": V.astype(str)}, "text", "real", "np.asarray(v).astype(float)",
        {"v": np.asarray(V.astype(str)).astype(float)}),
    "text among objects": ({"v": np.array([["1", 2.0]] * N, object)}, "text (1)", "real",
        "astype(float)", {"v": np.array([["1", 2.0]] * N, object).astype(float)}),
    "a column of text": ({"v": MIXED}, "column 'site'", "real numbers", "v.drop(columns=",
        {"v": MIXED.drop(columns=["site"])}),
    "a frame of text": ({"v": FRAME.astype(str)}, "columns '1', '2'", "real", "v.astype(float)",
        {"v": FRAME.astype(str).astype(float)}),
    "labels repeated": ({"v": FRAME.set_axis([1.5] * P, axis=1)}, "repeats 1.5", "distinct", "x_v",
        {"v": FRAME.set_axis([1.5] * P, axis=1), "x_v": X}),
    "lists transposed": ({"v": V.T.tolist()}, "16 functions", "same", "np.transpose(v)",
        {"v": np.transpose(V.T.tolist())}),
    "dates": ({"v": X.astype("M8[s]")[:N]}, "dates", "real", "np.timedelta64(1, 's')",
        {"v": (X.astype("M8[s]")[:N] - X.astype("M8[s]").min()) / np.timedelta64(1, "s")}),
    "durations": ({"v": X.astype("m8[s]")[:N]}, "durations", "real", "(v) / np.timedelta64", None),
    "objects": ({"v": [[object()]] * N}, "Python objects (object)", "real", "Convert", None),
    "records": ({"v": RECORDS}, "dtype [('a'", "real", "structured_to_unstructured(v)",
        {"v": structured_to_unstructured(RECORDS)}),
    "complex": ({"v": V + 1j}, "complex", "real", "np.stack([np.real(v), np.imag(v)], axis=1)",
        {"v": stacked(V + 1j)}),
    "complex objects": ({"v": (V + 1j).astype(object)}, "complex", "real", "np.stack", None),
    "complex tensor": ({"v": torch.from_numpy(V + 1j)}, "complex", "real",
        "torch.stack([v.real, v.imag], dim=1)",
        {"v": torch.stack([torch.from_numpy(V), torch.ones(N, P)], dim=1)}),
    "sparse tensor": ({"v": torch.from_numpy(V).to_sparse()}, "sparse", "real", "v.to_dense()",
        {"v": torch.from_numpy(V).to_sparse().to_dense()}),
    "no rows": ({"v": V[:0], "u": U[:0]}, "empty, of shape (0, 16)", "one row",
        "at least one function", {"v": V}),
    "no points": ({"v": V[:, :0]}, "(12, 0)", "one row", "at least one value", {"v": V}),
    "a number": ({"v": 3.0}, "single number", "one row", "Give [v]", {"v": [3.0], "u": [1.0]}),
    "nothing": ({"v": None}, "v is None", "inputs for each output", "Give v", {"v": V}),
    "a dict": ({"v": dict(enumerate(V))}, "dict", "real", "list(v.values())",
        {"v": list(dict(enumerate(V)).values())}),
    "a dataset": ({"v": ARRAY.to_dataset(name="t")}, "Dataset", "real", "v[...]", None),
    "ragged": ({"v": [[1, 2], [3]]}, "unequal length (1, 2)", "one row", "same points", None),
    "ragged tensors": ({"v": [torch.ones(2), torch.ones(3)]}, "unequal shape", "one row",
        "same points", None),
    "channels of nothing": ({"channels": 2}, "channels is 2, with v of shape (n, 16)",
        "(n, 2, points)", "np.asarray(v).reshape(len(v), 2, -1)",
        {"v": V.reshape(len(V), 2, -1), "channels": 2}),
    "channels a word": ({"channels": "two"}, "'two'", "True, False", "Leave it out", {}),
    "channels zero": ({"channels": 0}, "channels is 0", "True, False", "Leave it out", {}),
    "few parameters": ({"parameters": X[:5]}, "(5,)", "(n, p) with n = 12", "one row of parameters",
        {"parameters": X[:N]}),
    "parameters transposed": ({"parameters": np.ones((2, N))}, "(2, 12)", "n = 12", "parameters.T",
        {"parameters": np.ones((2, N)).T}),
    "parameters of 3 axes": ({"parameters": np.ones((N, 2, 2))}, "(12, 2, 2)", "(n, p)",
        "np.reshape(parameters, (len(parameters), -1))", {"parameters": np.ones((N, 4))}),
    "parameters of text": ({"parameters": ["a", "b"] * 6}, "parameters holds text", "real",
        "pd.DataFrame(parameters)", {"parameters": pd.DataFrame(["a", "b"] * 6)}),
    "parameters with NaN": ({"parameters": [np.nan, *X[1:N]]}, "parameters in row 0", "finite",
        "'drop'", {"parameters": [np.nan, *X[1:N]], "missing": "drop"}),
    "few groups": ({"groups": [1, 2]}, "(2,)", "(12,)", "one label for each row",
        {"groups": [1, 2] * 6}),
    "groups of two axes": ({"groups": np.ones((N, 1))}, "(12, 1)", "(12,)", "np.ravel(groups)",
        {"groups": np.ravel(np.ones((N, 1)))}),
    "groups missing": ({"groups": ["a", None] * 6}, "groups[1] is missing", "a label",
        "of their own", {"groups": ["a", "b"] * 6}),
    "missing": ({"missing": "ignore"}, "'ignore'", "'raise' or 'drop'", "missing='drop'",
        {"missing": "drop"}),
}  # fmt: skip
PAIRS = {
    "functions": {},
    "positions": {"x_v": X},
    "dates": {"x_v": np.datetime64("2020-01-01") + np.arange(P)},
    "channels": {"v": V.reshape(N, 2, 8)},
    "numbers": {"v": V[:, :3]},
    "field": {"v": V.repeat(9, 1).reshape(N, 16, 9)},
    "parameters": {"parameters": V[:, :2]},
}
QUERIES = {
    "one function": ("functions", {"v": V[0]}, "(16,)", "(n, points)", "v[None]",
        {"v": V[0][None]}),
    "one list": ("functions", {"v": V[0].tolist()}, "(16,)", "(n, points)", "np.asarray(v)[None]",
        {"v": np.asarray(V[0].tolist())[None]}),
    "one row of a frame": ("functions", {"v": FRAME.iloc[0]}, "(16,)", "(n, points)",
        "v.to_frame().T", {"v": FRAME.iloc[0].to_frame().T}),
    "one data array": ("functions", {"v": ARRAY[0]}, "(16,)", "(n, points)", 'v.expand_dims("row")',
        {"v": ARRAY[0].expand_dims("row")}),
    "more channels": ("channels", {"v": np.ones((2, 3, 8))}, "(2, 3, 8)", "(n, 2, points)",
        "the 2 channels of the examples", {"v": np.ones((2, 2, 8))}),
    "channels last": ("channels", {"v": np.ones((4, 8, 2))}, "(4, 8, 2)", "(n, 2, points)",
        "np.swapaxes(v, 1, 2)", {"v": np.swapaxes(np.ones((4, 8, 2)), 1, 2)}),
    "no channels": ("channels", {"v": V}, "(12, 16)", "(n, 2, points)", "as the examples", None),
    "other numbers": ("numbers", {"v": V[:, :4]}, "(12, 4)", "(n, 3)", "as the examples",
        {"v": V[:, :3]}),
    "numbers transposed": ("numbers", {"v": V[:5, :3].T}, "(3, 5)", "(n, 3)", "v.T",
        {"v": V[:5, :3]}),
    "other field": ("field", {"v": np.ones((2, 9, 16))}, "(2, 9, 16)", "(n, 16, 9)",
        "as the examples", {"v": np.ones((2, 16, 9))}),
    "x of a field": ("field", {"v": np.ones((2, 16, 9)), "x": X[:9]}, "x is given", "fields",
        "Leave out x", {"v": np.ones((2, 16, 9))}),
    "NaN": ("functions", {"v": GAPS}, "in rows 3 and 5 (2 of 12)", "finite",
        "np.delete(v, [3, 5], axis=0)", {"v": np.delete(GAPS, [3, 5], axis=0)}),
    "x too short": ("positions", {"v": V, "x": X[:9]}, "9 positions", "16", "16 points",
        {"v": V, "x": X}),
    "transposed": ("positions", {"v": V.T, "x": X}, "(16, 12)", "12", "v.T", {"v": V, "x": X}),
    "x not sorted": ("positions", {"v": V, "x": SHUFFLED}, "x[5]", "ascend", "order = np.unique(x",
        {"v": V[..., order(SHUFFLED)], "x": SHUFFLED[order(SHUFFLED)]}),
    "labels not sorted": ("positions", {"v": FRAME[TEXTS]}, "label", "ascend", "as x.",
        {"v": FRAME[TEXTS], "x": X}),
    "x of numbers": ("dates", {"v": V, "x": X}, "x holds numbers", "dates, as in the examples",
        "units of the examples", {"v": V, "x": PAIRS["dates"]["x_v"]}),
    "no parameters": ("parameters", {"v": V}, "without parameters", "2 for each query",
        "Give parameters=", {"v": V, "parameters": V[:, :2]}),
    "too many parameters": ("functions", {"v": V, "parameters": V}, "with parameters", "none",
        "Leave them out", {"v": V}),
    "other parameters": ("parameters", {"v": V, "parameters": V}, "16 columns", "2, as in",
        "same parameters", None),
    "few parameters": ("parameters", {"v": V, "parameters": [1, 2]}, "(2,)", "(n, 2) with n = 12",
        "np.tile(parameters, (len(v), 1))", {"v": V, "parameters": np.tile([1, 2], (N, 1))}),
}  # fmt: skip


def said(call):
    """The message of the error that `call` raises."""
    with pytest.raises(TransduceError) as raised:
        call()
    return str(raised.value)


def check(message, *parts):
    received, after = message.split("; expected ", 1)
    assert parts[0] in received and parts[1] in after and parts[2] in after, message
    assert "\n" not in message and message.endswith(".")


@pytest.mark.parametrize("case", CASES)
def test_bad_examples(case):
    arguments, *parts, remedied = CASES[case]
    check(said(lambda: read_pairs(**{"v": V, "u": U} | arguments)), *parts)
    if remedied is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pairs that are dropped
            assert len(read_pairs(**{"v": V, "u": U} | remedied)) >= 1


@pytest.mark.parametrize("case", QUERIES)
def test_bad_queries(case):
    kind, arguments, *parts, remedied = QUERIES[case]
    pairs = read_pairs(**{"v": V, "u": U} | PAIRS[kind])
    check(said(lambda: read_query(pairs, **arguments)), *parts)
    if remedied is not None:
        assert len(read_query(pairs, **remedied)) >= 1


def test_at_most_eight_rows_are_named():
    v = np.full((40, P), np.nan)
    v[30:] = 1
    message = said(lambda: read_pairs(v, np.ones(40)))
    assert "rows 0, 1, 2, 3, 4, 5, 6, 7 and 22 more (30 of 40 pairs)" in message
    queries = said(lambda: read_query(read_pairs(V, U), v))
    assert "np.delete(v, rows, axis=0)" in queries


@pytest.mark.parametrize("kind", [np.asarray, list, torch.tensor, pd.DataFrame, xr.DataArray])
def test_queries_without_missing_values(kind):
    """The remedy of each kind of array runs as it is written."""
    pairs, v = read_pairs(V, U), kind(GAPS)
    code = re.search("Leave those out, (.*), or fill", said(lambda: read_query(pairs, v)))[1]
    assert len(read_query(pairs, eval(code, {"v": v, "np": np, "torch": torch}))) == N - 2
