"""The operator that a regression returns: changes by a few examples, bands, kinds of arrays, grids
and bad input."""

from itertools import pairwise

import numpy as np
import pytest
import torch
import xarray as xr
from conftest import small_transducer

from transduce import ExampleSet, SineModes, TransduceError
from transduce.kernels import ATTENTION

both_kinds = pytest.mark.parametrize("model", ["softmax", "representer"])  # averaging and solving


@both_kinds
def test_one_example_works(model, pairs):
    O = small_transducer(model).regress(ExampleSet(pairs[0][:1], pairs[1][:1]))
    assert torch.isfinite(O(pairs[2])).all()


@both_kinds
def test_layer_estimates_end_in_the_answer(model, pairs):
    O = small_transducer(model).regress(ExampleSet(*pairs[:2]))
    estimates = O.layer_estimates(pairs[2])
    assert estimates.shape == (3, 4, 33)
    torch.testing.assert_close(estimates[-1], O(pairs[2]))


@both_kinds
def test_conditioning_happens_once(model, pairs, monkeypatch):
    T = small_transducer(model)
    O = T.regress(ExampleSet(*pairs[:2]))
    monkeypatch.setattr(T, "condition", None)
    assert O(pairs[2]).shape == (4, 33)


@pytest.mark.parametrize(
    ("model", "options"),
    [("softmax", {}), ("representer", {}), ("representer", {"depth": 1}), ("spectral", {})],
    ids=str,
)
def test_adding_and_dropping_is_regressing_again(model, options, pairs):
    T, (v, u, v_query) = small_transducer(model, **options), pairs
    O = T.regress(ExampleSet(v[:7], u[:7]))
    before = O(v_query)

    def check(changed, rows):
        assert len(changed.examples) == len(rows)
        torch.testing.assert_close(
            changed(v_query), T.regress(ExampleSet(v[rows], u[rows]))(v_query), rtol=0, atol=1e-6
        )

    check(O.add(v[7:8], u[7:8]), list(range(8)))
    check(O.add(v[7:], u[7:]), list(range(9)))
    check(O.add(v[7:].numpy(), u[7:].numpy()), list(range(9)))
    check(O.drop(2), [0, 1, 3, 4, 5, 6])
    check(O.drop(-1), [0, 1, 2, 3, 4, 5])
    check(O.drop([0, -2, 3, 0]), [1, 2, 4, 6])
    check(O.drop(range(6)), [6])
    check(O.drop([True, False, False, True, False, False, False]), [1, 2, 4, 5, 6])
    check(O.drop([1, 4]).add(v[8:], u[8:]).drop(0), [2, 3, 5, 6, 8])
    check(O.add(v[7:], u[7:]).drop([7, 8]), list(range(7)))
    assert len(O.examples) == 7
    torch.testing.assert_close(O(v_query), before, rtol=0, atol=0)


@both_kinds
def test_adding_and_dropping_at_scattered_sensors(model, pairs):
    T, x = (
        small_transducer(model),
        torch.rand(60, generator=torch.Generator().manual_seed(0), dtype=torch.float64),
    )
    v, u, v_query = (SineModes(12).decode(SineModes(12).encode(f), x) for f in pairs)
    changed = T.regress(ExampleSet(v[:7], u[:7], x=x)).add(v[7:], u[7:]).drop(0)
    torch.testing.assert_close(
        changed(v_query), T.regress(ExampleSet(v[1:], u[1:], x=x))(v_query), rtol=0, atol=1e-6
    )


@both_kinds
def test_gradients_reach_added_examples(model, pairs):
    T, (v, u, v_query) = small_transducer(model), pairs
    new = [f[7:].clone().requires_grad_() for f in (v, u)]
    T.regress(ExampleSet(v[:7], u[:7])).add(*new)(v_query).sum().backward()
    all_new = [f.clone().requires_grad_() for f in (v, u)]
    T.regress(ExampleSet(*all_new))(v_query).sum().backward()
    for part, whole in zip(new, all_new, strict=True):
        torch.testing.assert_close(part.grad, whole.grad[7:])


@both_kinds
def test_bad_additions_and_drops(model, pairs):
    v, u, _ = pairs
    O = small_transducer(model).regress(ExampleSet(v, u))
    for which in (9, -10, [0, 9]):
        with pytest.raises(TransduceError, match="among 9; expected numbers from 0 to 8"):
            O.drop(which)
    with pytest.raises(TransduceError, match="leaves none of 9 examples"):
        O.drop(list(range(9)))
    with pytest.raises(TransduceError, match="leaves none of 1 examples"):
        O.drop(list(range(8))).drop(0)
    with pytest.raises(TransduceError, match=r"examples.v holds 2 functions and examples.u 3"):
        O.add(v[:2], u[:3])
    with pytest.raises(
        TransduceError, match=r"v has shape \(2, 17\); the examples' v have \(9, 33\)"
    ):
        O.add(v[:2, ::2], u[:2])
    with pytest.raises(TransduceError, match=r"u has shape \(2, 17\)"):
        O.add(v[:2], u[:2, ::2])
    with pytest.raises(TransduceError, match=r"v has shape \(33,\)"):
        O.add(v[0], u[0])


def test_a_band_is_about_the_answer_and_of_the_query_kind(pairs):
    T, (v, u, v_query) = small_transducer("representer"), pairs
    O = T.regress(ExampleSet(v, u))
    named = xr.DataArray(
        v_query.numpy(), dims=("run", "x"), coords={"run": list("abcd"), "x": np.linspace(0, 1, 33)}
    )
    for query in (v_query, v_query.numpy().astype(np.float32), named):
        answer = O(query)
        parts = O.predict(query)
        assert all(
            type(part) is type(answer) and part.dtype == answer.dtype and part.shape == answer.shape
            for part in parts
        )
        mean, low, high = (np.asarray(part) for part in parts)
        np.testing.assert_array_equal(mean, np.asarray(answer))
        assert (low <= mean).all() and (mean <= high).all()
    assert all(part.dims == ("run", "x") for part in O.predict(named))
    for options in ({"at": 65}, {"at": torch.tensor([0.1, 0.5])}):
        mean, low, high = O.predict(v_query, **options)
        torch.testing.assert_close(mean, O(v_query, **options))
        assert low.shape == mean.shape == high.shape


def test_a_higher_level_is_a_wider_band(pairs):
    O = small_transducer("representer").regress(ExampleSet(*pairs[:2]))
    widths = [torch.sub(*O.predict(pairs[2], band=band)[:0:-1]) for band in (0.1, 0.5, 0.9, 0.99)]
    assert all((narrow <= wide).all() for narrow, wide in pairwise(widths))
    assert (widths[0] < widths[-1]).all()


@pytest.mark.parametrize("kappa", ATTENTION)
def test_kernels_that_average_have_no_band(kappa, pairs):
    with pytest.raises(TransduceError, match="no leave-one-out residuals and therefore no bands"):
        small_transducer(kappa=kappa).regress(ExampleSet(*pairs[:2])).predict(pairs[2])


def test_kinds_and_precisions(pairs):
    T, (v, u, v_query) = small_transducer(), pairs
    expected = T.regress(ExampleSet(v, u))(v_query)
    for dtype in (np.float32, np.float64):
        result = T.regress(ExampleSet(v.numpy().astype(dtype), u.numpy().astype(dtype)))(
            v_query.numpy().astype(dtype)
        )
        assert isinstance(result, np.ndarray)
        assert result.dtype == dtype
        np.testing.assert_allclose(result, expected.numpy(), atol=1e-5)
    assert T.float().regress(ExampleSet(v, u))(v_query).dtype == torch.float64
    named = xr.DataArray(
        v_query.numpy(), dims=("run", "x"), coords={"run": list("abcd"), "x": np.linspace(0, 1, 33)}
    )
    result = T.regress(ExampleSet(v, u))(named)
    assert result.dims == ("run", "x")
    assert list(result.run.values) == list("abcd")
    counts = T.regress(ExampleSet(v, u))(np.zeros((2, 33), dtype=int))
    assert counts.shape == (2, 33)


def test_any_grid_and_scattered_points(pairs):
    """The operator is the same whatever grid its examples, its queries and its answers are on."""
    T, modes = small_transducer(), SineModes(12)
    v, u, v_query = pairs
    O = T.regress(ExampleSet(v, u))
    expected = O(v_query)
    finer = [modes.decode(modes.encode(f), 65) for f in pairs]
    torch.testing.assert_close(
        T.regress(ExampleSet(*finer[:2]))(finer[2])[:, ::2], expected, rtol=0, atol=1e-8
    )
    torch.testing.assert_close(O(finer[2]), expected, rtol=0, atol=1e-8)
    torch.testing.assert_close(O(v_query, at=65)[:, ::2], expected, rtol=0, atol=1e-8)
    torch.testing.assert_close(O(v_query, at=torch.linspace(0, 1, 33)), expected, rtol=0, atol=1e-6)
    x = torch.rand(60, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    sensed = [modes.decode(modes.encode(f), x) for f in pairs]
    from_sensors = T.regress(ExampleSet(*sensed[:2], x=x))
    torch.testing.assert_close(from_sensors(sensed[2], at=33), expected, rtol=0, atol=1e-5)
    assert from_sensors(v_query).shape == (4, 60)
    torch.testing.assert_close(O(sensed[2], x=x), expected, rtol=0, atol=1e-5)


def test_xarray_keeps_what_is_true(pairs):
    T, (v, u, v_query) = small_transducer(depth=4), pairs
    O = T.regress(ExampleSet(v, u))
    named = xr.DataArray(
        v_query.numpy(), dims=("run", "x"), coords={"run": list("abcd"), "x": np.linspace(0, 1, 33)}
    )
    assert O.layer_estimates(named).dims == ("layer", "run", "x")
    moved = O(named, at=np.linspace(0, 0.5, 33))
    assert "x" not in moved.coords
    assert list(moved.run.values) == list("abcd")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda v, u: (v[:0], u[:0]), "no examples"),
        (lambda v, u: (v, u[:5]), "examples.v holds 9 functions and examples.u 5"),
        (lambda v, u: (v[0], u[0]), r"examples.v has shape \(33,\); expected \(n, \*grid\)"),
        (
            lambda v, u: (v[:, None], u),
            r"examples.v has shape \(9, 1, 33\); this model expects \(n, points\)",
        ),
        (
            lambda v, u: (v[:, :4], u),
            "examples.v has 4 points, enough for 2 modes; this model reads 12. Give at least 14 "
            "points, or use model='general'",
        ),
        (
            lambda v, u: (v.index_fill(1, torch.tensor([3]), torch.nan), u),
            r"examples.v\[0, 3\] is nan \(9 of 297",
        ),
        (
            lambda v, u: (v, u.index_fill(0, torch.tensor([2]), torch.inf)),
            r"examples.u\[2, 0\] is inf",
        ),
        (lambda v, u: (v + 0j, u), "examples.v is complex"),
        (lambda v, u: (v.numpy() + 0j, u.numpy()), "complex128 values; expected real"),
        (lambda v, u: (v.numpy().astype(object), u.numpy()), "object values; expected real"),
    ],
)
def test_bad_examples(change, message, pairs):
    with pytest.raises(TransduceError, match=message):
        small_transducer().regress(ExampleSet(*change(*pairs[:2])))


def test_bad_queries(pairs):
    O = small_transducer().regress(ExampleSet(*pairs[:2]))
    with pytest.raises(TransduceError, match=r"v has shape \(33,\)"):
        O(pairs[2][0])
    with pytest.raises(TransduceError, match="v has 4 points"):
        O(pairs[2][:, :4])
    for at in (torch.tensor([0.5, 1.5]), (0.5, 1.5), (33, 33), (), -3, np.zeros((4, 2)), "all"):
        with pytest.raises(TransduceError, match="at"):
            O(pairs[2], at=at)
    assert O(pairs[2], at=(0.1, 0.5)).shape == (4, 2)
    assert O(pairs[2], at=np.int64(65)).shape == (4, 65)
    with pytest.raises(TransduceError, match="received tuple"):
        small_transducer().regress(pairs[:2])
    with pytest.raises(TransduceError, match="not finite"):
        small_transducer().float().regress(ExampleSet(1e300 * pairs[0], pairs[1]))
    with pytest.raises(TransduceError, match="10 sensors are too few for the 12 coefficients"):
        O(pairs[2][:, :10], x=torch.linspace(0, 1, 10))
    with pytest.raises(TransduceError, match="one position for each value"):
        O(pairs[2], x=torch.linspace(0, 1, 10))


def test_a_coarse_grid_is_warned_of(pairs):
    with pytest.warns(UserWarning, match="v has 9 points, enough for 7 modes; this model reads 12"):
        small_transducer().regress(ExampleSet(*pairs[:2]))(pairs[2][:, ::4])


def test_regress_says_what_it_takes():
    T, f = small_transducer(), torch.zeros(3, 17)
    for given in ((f, f), ((f, f),), (f,)):
        with pytest.raises(
            TransduceError,
            match=r"received (Tensor and Tensor|tuple|Tensor)\. Give ExampleSet\(v, u\)",
        ):
            T.regress(*given)
    assert (
        repr(T.regress(ExampleSet(f, f)))
        == "ConditionedOperator(n = 3 examples, (m, 17) -> (m, 17))"
    )


def test_no_queries_are_refused_in_words(pairs):
    v, u, v_query = pairs
    with pytest.raises(TransduceError, match="no functions; expected one or more"):
        small_transducer().regress(ExampleSet(v, u))(v_query[:0])
