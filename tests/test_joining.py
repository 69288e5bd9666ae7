"""Joining pairs: shapes, messages, notes and warnings of `O.add`."""

import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from regression_samples import X, examples

import transduce
from transduce import TransduceError

V, U, _ = examples(20)


def said(action) -> list[str]:
    """The warnings of an action."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        action()
    return [str(w.message) for w in found]


def test_numbers_of_several_axes_are_joined():
    v = np.random.default_rng(0).uniform(size=(20, 2, 3))
    O = transduce.regress(v, U)
    again = O.drop([18, 19]).add(v[18:], U[18:])
    assert np.array_equal(again.pairs.v.array, O.pairs.v.array)


def test_new_outputs_on_other_points_are_refused():
    O = transduce.regress(V[:15], U[:15], x=X)
    with pytest.raises(TransduceError, match=r"u of shape \(20,\).*\(24,\).*Interpolate"):
        O.add(V[15:], U[15:, :20])


def test_another_number_of_outputs_is_refused():
    O = transduce.regress(V[:15], U[:15], x=X)
    with pytest.raises(TransduceError, match="v holds 5 functions and u 4"):
        O.add(V[15:], U[16:])


def test_notes_are_those_of_all_pairs():
    notes = transduce.regress(V[:1], U[:1]).add(V[1:], U[1:]).report().warnings
    assert not any("one example" in text for text in notes)


def test_conflicts_with_new_pairs_are_noted_with_one_warning():
    O = transduce.regress(V[:15], U[:15])
    found = []
    heard = said(lambda: found.append(O.add(V[[0, 15]], U[[1, 15]])))
    assert sum("equal v with different u" in text for text in heard) == 1
    assert any("row pair 0/15" in text for text in found[0].pairs.notes)


def test_pairs_left_out_of_those_added_are_noted():
    u = U[15:].copy()
    u[0, 3] = np.nan
    O = transduce.regress(V[:15], U[:15])
    with pytest.warns(UserWarning, match="left out 1 pair of 5"):
        joined = O.add(V[15:], u, missing="drop")
    assert any("left out 1 pair of 5" in text for text in joined.report().warnings)


def test_warnings_of_the_examples_are_not_repeated():
    v, u = V[[0, 0, *range(1, 15)]], U[[0, 1, *range(1, 15)]]
    with pytest.warns(UserWarning, match="row pair 0/1"):
        O = transduce.regress(v, u)
    again = []
    assert not said(lambda: again.append(O.add(V[15:], U[15:])))
    assert sum("row pair 0/1" in text for text in again[0].pairs.notes) == 1


@pytest.mark.parametrize("functions", [False, True])
def test_a_renamed_column_gives_one_warning(functions):
    p = pd.DataFrame(np.random.default_rng(0).uniform(size=(20, 3)), columns=list("abc"))
    v = V if functions else None
    O = transduce.regress(v if v is None else v[:15], U[:15], parameters=p[:15])
    new = p[15:].rename(columns={"b": "d"})
    heard = said(lambda: O.add(v if v is None else v[15:], U[15:], parameters=new))
    assert [text.startswith("column 'd'") for text in heard] == [True]


def test_suggestions_are_a_whole_number():
    O = transduce.regress(V, U)
    with pytest.raises(TransduceError, match=r"k=2\.0.*whole number.*k=2"):
        O.suggest(V, 2.0)


def test_suggestions_from_examples_with_gradients_do_not_warn():
    O = transduce.regress(torch.tensor(V, requires_grad=True), torch.from_numpy(U))
    assert not said(lambda: O.suggest(V, 2))


@pytest.mark.parametrize("constant", [0.0, 0.1])
def test_a_constant_column_has_gradients(constant):
    p = np.random.default_rng(0).uniform(size=(12, 3))
    p[:, 1] = constant
    v = torch.tensor(p, requires_grad=True)
    transduce.regress(v, torch.from_numpy(U[:12]))(p[:2] + 0.01).square().sum().backward()
    assert torch.isfinite(v.grad).all()
