"""Bad input of `transduce.regress`: a clear error, or an answer with a warning."""

import datetime

import numpy as np
import pytest
from regression_samples import X, answers, examples, gap

import transduce
from transduce import TransduceError

pytestmark = pytest.mark.usefixtures("general")
V, U, QUERY = examples()
BROKEN = np.where(np.arange(14)[:, None] == 3, np.nan, V)
SHUFFLED = X[np.r_[:10, 12, 11, 10, 13:24]]

REFUSED = [
    ("single position", (V[:, :1], U), {"x_v": [0.5]}, "x_v holds 1 position.*Leave out x_v"),
    ("missing values", (BROKEN, U), {}, r"v in row 3 \(1 of 14 pairs\).*missing='drop'"),
    ("x not monotone", (V, U), {"x": SHUFFLED}, "ascend throughout.*Sort"),
    ("x too short", (V, U), {"x": X[:-1]}, "23 position.*one position for each of the 24"),
    ("objects", (np.full((14, 9), object()), U), {}, "v holds Python objects"),
    ("text", ([["a"] * 9] * 14, U), {}, r"v holds text \(a\).*Encode"),
    ("dates", ([[datetime.date(2020, 1, 1)] * 9] * 14, U), {}, "v holds .*date"),
    ("unknown model", (V, U), {"model": "generel"}, "'generel'; expected one of adr, .*rbf"),
    ("no examples", (V[:0], U[:0]), {}, "v is empty"),
    ("other count", (V, U[:9]), {}, "v holds 14 functions and u 9"),
    ("option missing", (V, U), {"missing": "skip"}, "'raise' or 'drop'"),
    ("parameters with a baseline", (V, U), {"parameters": V[:, 0], "model": "rbf"}, "general"),
]  # fmt: skip


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case[0])
def test_bad_examples(case):
    _, pairs, options, said = case
    with pytest.raises(TransduceError, match=f"(?s){said}"):
        transduce.regress(*pairs, **options)


def test_bad_queries():
    O = transduce.regress(V, U, x=X)
    for asked, said in [
        (lambda: O(np.stack([QUERY, QUERY], 1)), r"expected \(n, points\)"),
        (lambda: O(QUERY[0]), r"give v\[None\]"),
        (lambda: O(np.where(QUERY > 1, np.nan, QUERY)), "missing or infinite"),
        (lambda: O(QUERY, x=SHUFFLED), "Sort"),
        (lambda: O(QUERY, at=1), "at least 2 points"),
        (lambda: O(QUERY, parameters=QUERY), "none, since the examples have none"),
        *(
            (lambda b=b: O.predict(QUERY, band=b), "between 0 and 1")
            for b in (0.0, 1.0, 90.0, -0.1)
        ),
    ]:
        with pytest.raises(TransduceError, match=said):
            asked()


def test_other_channels_of_queries():
    O = transduce.regress(np.stack([V, V], 1), U)
    with pytest.raises(TransduceError, match="2 channels of the examples"):
        O(np.stack([QUERY] * 3, 1))


@pytest.mark.parametrize("at", [7, [0.5, 0.7]])
def test_numbers_have_no_other_points(at):
    with pytest.raises(TransduceError, match=r"without positions\. Leave out at"):
        transduce.regress(V, U[:, :3])(QUERY, at=at)


def test_new_pairs_on_another_grid():
    O = transduce.regress(V, U, x=X)
    with pytest.raises(TransduceError, match=r"u of shape \(12,\); expected \(24,\).*Interpolate"):
        O.add(V[:2], U[:2, ::2])


def test_one_example_answers_with_its_u():
    O = transduce.regress(V[:1], U[:1])
    assert gap(O(QUERY), np.repeat(U[:1], 4, 0), U) < 1e-6
    assert any("one example: the answer to every query is its u" in t for t in O.report().warnings)
    assert all(np.isfinite(part).all() for part in O.predict(QUERY))
    assert np.isfinite(O.novelty(QUERY, x=None)).all()


def test_two_examples_are_finite():
    O = transduce.regress(V[:2], U[:2])
    assert all(np.isfinite(part).all() for part in O.predict(QUERY))
    assert np.isfinite(O.report().error)


def test_constant_v():
    """The answer is the mean, up to the weight of the best constant function."""
    O = transduce.regress(np.ones((14, 24)), U)
    assert gap(O(np.ones((2, 24))), np.repeat(U.mean(0)[None], 2, 0), U) < 0.1
    assert np.isfinite(O(QUERY)).all()
    assert any("All v are equal" in text for text in O.report().warnings)


@pytest.mark.parametrize("value", [0.0, 5.0, 101325.0])
def test_constant_u(value):
    O = transduce.regress(V, np.full((14, 24), value))
    assert np.abs(O(QUERY) - value).max() <= 1e-9 * max(value, 1)
    assert any("All u are equal" in text for text in O.report().warnings)
    assert all(np.isfinite(part).all() for part in O.predict(QUERY))


def test_equal_v_with_different_u_are_averaged():
    v, u = np.concatenate([V, V[:2]]), np.concatenate([U, U[:2] + 1])
    with pytest.warns(UserWarning, match="equal v with different u, in row pairs 0/14 and 1/15"):
        O = transduce.regress(v, u)
    assert np.isfinite(O(QUERY)).all() and np.isfinite(O.report().error)


def test_missing_pairs_are_dropped():
    with pytest.warns(UserWarning, match="left out 1 pair of 14"):
        O = transduce.regress(BROKEN, U, missing="drop")
    kept = np.arange(14) != 3
    assert gap(O(QUERY), answers(V[kept], U[kept], QUERY), U) == 0


def test_queries_in_other_units_are_warned_of():
    O = transduce.regress(V, U)
    with pytest.warns(UserWarning, match="Give both in the same units"):
        assert np.isfinite(O(1e6 * QUERY)).all()
