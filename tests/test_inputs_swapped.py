"""Advice to transpose arrays: where it is given, it works; where it cannot, it is not given."""

import re
from itertools import product

import numpy as np
import pytest
import torch

from transduce import TransduceError
from transduce.inputs import read_pairs, read_query

KINDS = {"array": np.asarray, "list": np.ndarray.tolist, "tensor": torch.tensor}
SHAPES = [(9,), (12,), (9, 12), (12, 9), (12, 12), (12, 20), (20, 12), (1, 12), (10, 12), (12, 3)]


def values(shape):
    return np.random.default_rng(0).standard_normal(shape)


def said(call):
    """The message of a TransduceError, or ""."""
    try:
        call()
    except TransduceError as error:
        return str(error)
    return ""


def advised(message):
    """Code of the remedy, by argument: what to give for v and for u. One of two alternatives."""
    remedy = message.split("; expected ", 1)[1]
    code = r"(?:np\.transpose\((\w+)\)|np\.asarray\((\w+)\)\[None\]|(\w+)(?:\.T|\[None\]))"
    found = {next(filter(None, m.groups())): m[0] for m in re.finditer(code, remedy)}
    return dict([next(iter(found.items()))]) if " or " in remedy and len(found) == 2 else found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("x", [None, 9, 12, 20])
def test_advice_about_rows_works(kind, x):
    """Whatever the shapes, arrays after the remedy have equal numbers of rows and fit x."""
    options = {} if x is None else {"x": np.arange(x)}
    followed = 0
    for one, other in product(SHAPES, SHAPES):
        v, u = KINDS[kind](values(one)), KINDS[kind](values(other))
        message = said(lambda v=v, u=u: read_pairs(v, u, **options))
        codes = advised(message) if message else {}
        if codes:
            names = {"v": v, "u": u, "np": np}
            given = {"v": v, "u": u} | {name: eval(code, names) for name, code in codes.items()}
            again = said(lambda given=given: read_pairs(**given, **options))
            assert "the same number" not in again and "Rows must be" not in again, message
            followed += 1
    assert followed


def transposed(v, u, **options):
    return ".T" in said(lambda: read_pairs(values(v), values(u), **options))


def test_missing_rows_of_square_arrays_are_no_reason_to_transpose():
    """There are as many points as functions, so that any shape fits."""
    assert not transposed((20, 20), (15, 20))
    assert not transposed((15, 20), (20, 20))


def test_arrays_whose_points_have_positions_are_not_transposed():
    assert transposed((16, 12), (12, 10))
    assert not transposed((16, 12), (12, 10), x_v=np.arange(12))
    assert transposed((100, 20), (50, 20))
    assert not transposed((100, 20), (50, 20), x=np.arange(20))


def test_positions_of_rows_transpose_both_or_neither():
    assert transposed((16, 12), (16, 12), x=np.arange(16))
    assert not transposed((16, 12), (16, 10), x_v=np.arange(16))  # 12 and 10 rows
    assert not transposed((16, 12), (16,), x_v=np.arange(16))


def test_tables_of_parameters_do_not_look_transposed():
    p = np.linspace(0, 1, 40)[:, None] * [1.0, -700.0, 3.0]
    pairs = read_pairs(None, p**2, parameters=p)
    assert not any(".T" in note for note in pairs.notes)


@pytest.mark.parametrize("kind", KINDS)
def test_functions_in_columns_are_noted_with_code_that_runs(kind):
    x = np.linspace(0, 1, 50)[:, None]
    v, u = KINDS[kind](np.sin(x * [3, -7, 5, 9])), KINDS[kind](np.cos(x * [3, -8, 5, 9]))
    note = next(n for n in read_pairs(v, u).notes if "smooth" in n)
    codes = re.search("give (.*) and (.*)\\.$", note).groups()
    assert len(read_pairs(*(eval(c, {"v": v, "u": u, "np": np}) for c in codes))) == 4


@pytest.mark.parametrize(
    ("shape", "there"),
    [((2, 5), True), ((3, 5), False), ((5, 3), False), ((1, 2), False)],
)
def test_parameters_of_queries_are_transposed_if_that_fits(shape, there):
    pairs = read_pairs(values((12, 9)), values((12, 9)), parameters=values((12, 2)))
    message = said(lambda: read_query(pairs, values((5, 9)), parameters=values(shape)))
    assert ("parameters.T" in message) == there and message
