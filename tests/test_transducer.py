"""The Transducer: what holds of the recurrence whatever its weights."""

from itertools import pairwise

import numpy as np
import pytest
import torch
import xarray as xr
from conftest import small_transducer

from transduce import ExampleSet, TransduceError
from transduce.kernels import KERNELS, kernel
from transduce.metatraining import Episode
from transduce.spaces import BranchTrunk, SineModes
from transduce.transducer import Transducer

VARIANTS = [
    *({"kappa": name} for name in KERNELS),
    {"kappa": "representer", "depth": 1},
    {"kappa": "representer", "universal": False, "F": True, "G": True},
    {"tied": True},
    {"shared": True},
    {"F": False},
    {"G": False},
    {"F": False, "G": False, "depth": 1},
    {"bias": True, "learn_tau": False, "tau": 3.0},
]
variants = pytest.mark.parametrize("options", VARIANTS, ids=str)
both_kinds = pytest.mark.parametrize(
    "kappa", ["exp_dot", "representer"]
)  # one that averages, one that solves


def joint(T, v, u, v_query, mask=None):
    """The joint masked pass of the paper: queries are tokens like the examples, only that no token
    may look at them. An example's stream goes on as its kernel says, a query's as a sum."""
    n, tokens = v.shape[1], torch.cat([v, v_query], 1) / T.spread
    stream = torch.cat([u, torch.zeros(len(u), v_query.shape[1], u.shape[2], dtype=u.dtype)], 1)
    source = torch.arange(tokens.shape[1]).expand(len(v), -1) < n
    if mask is not None:
        source = source & torch.cat(
            [mask, torch.zeros(len(v), v_query.shape[1], dtype=torch.bool)], 1
        )
    for i in range(T.depth):
        layer = T.layers[i % len(T.layers)]
        tokens, stream = layer.F(tokens), layer.G(stream)
        sources = layer.kappa.condition(tokens, stream, source)
        examples, queries = (
            layer.kappa.carry(sources, tokens, stream),
            stream + layer.kappa(sources, tokens),
        )
        stream = torch.cat([examples[:, :n], queries[:, n:]], 1)
    return stream[:, n:]


def encoded(T, pairs):
    v, u, v_query = pairs
    return T.V.encode(v)[None], T.U.encode(u)[None], T.V.encode(v_query)[None]


@variants
def test_cached_equals_one_pass_equals_joint_masked_pass(options, pairs):
    T = small_transducer(**options)
    v, u, v_query = encoded(T, pairs)
    near = {
        "rtol": 0,
        "atol": 1e-7 if options.get("kappa") == "representer" else 1e-10,
    }  # a solve with small ridges magnifies rounding
    expected = joint(T, v, u, v_query)
    torch.testing.assert_close(T(v, u, v_query), expected, **near)
    torch.testing.assert_close(T.query(T.condition(v, u), v_query)[-1], expected, **near)
    O = T.regress(ExampleSet(pairs[0], pairs[1]))
    torch.testing.assert_close(O(pairs[2]), T.U.decode(expected[0], 33), **near)


def test_single_precision_cached_equals_joint(pairs):
    T = small_transducer().float()
    v, u, v_query = (f.float() for f in encoded(T, pairs))
    torch.testing.assert_close(
        T.query(T.condition(v, u), v_query)[-1], joint(T, v, u, v_query), rtol=0, atol=1e-6
    )


@variants
def test_order_of_examples_does_not_matter(options, pairs):
    T = small_transducer(**options)
    v, u, v_query = pairs
    shuffled = torch.randperm(len(v), generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(
        T.regress(ExampleSet(v, u))(v_query),
        T.regress(ExampleSet(v[shuffled], u[shuffled]))(v_query),
    )


@both_kinds
def test_queries_do_not_see_each_other(kappa, pairs):
    T = small_transducer(kappa=kappa)
    O = T.regress(ExampleSet(*pairs[:2]))
    torch.testing.assert_close(O(pairs[2]), torch.cat([O(v[None]) for v in pairs[2]]))
    v, u, v_query = encoded(T, pairs)
    torch.testing.assert_close(T(v, u, v_query)[:, :1], T(v, u, v_query[:, :1]))


@pytest.mark.parametrize("kappa", KERNELS)
def test_padding_is_dropping(kappa, pairs):
    """A batch of tasks with unequal n: what the mask hides might as well not be there."""
    T = small_transducer(kappa=kappa)
    v, u, v_query = (f.expand(3, -1, -1) for f in encoded(T, pairs))
    counts = (9, 4, 1)
    mask = torch.arange(9) < torch.tensor(counts)[:, None]
    padded = T(v, u, v_query, mask)
    torch.testing.assert_close(padded, joint(T, v, u, v_query, mask))
    for i, n in enumerate(counts):
        torch.testing.assert_close(
            padded[i : i + 1], T(v[i : i + 1, :n], u[i : i + 1, :n], v_query[i : i + 1])
        )


@variants
def test_every_parameter_gets_a_gradient(options, pairs):
    T = small_transducer(**options)
    T(*encoded(T, pairs)).square().sum().backward()
    idle = [
        name
        for name, p in T.named_parameters()
        if p.requires_grad and (p.grad is None or not p.grad.abs().sum() > 0)
    ]
    assert idle == []


@both_kinds
def test_gradients_reach_query_and_examples(kappa, pairs):
    T = small_transducer(kappa=kappa)
    v, u, v_query = (f.clone().requires_grad_() for f in pairs)
    assert torch.autograd.gradcheck(
        lambda v, u, q: T.regress(ExampleSet(v, u))(q), (v[:3], u[:3], v_query[:2]), fast_mode=True
    )


@both_kinds
def test_no_graph_is_kept_when_nobody_asked(kappa, pairs):
    assert not small_transducer(kappa=kappa).regress(ExampleSet(*pairs[:2]))(pairs[2]).requires_grad


@both_kinds
def test_one_example_works(kappa, pairs):
    assert torch.isfinite(
        small_transducer(kappa=kappa).regress(ExampleSet(pairs[0][:1], pairs[1][:1]))(pairs[2])
    ).all()


@both_kinds
def test_layer_estimates_end_in_the_answer(kappa, pairs):
    O = small_transducer(kappa=kappa).regress(ExampleSet(*pairs[:2]))
    estimates = O.layer_estimates(pairs[2])
    assert estimates.shape == (3, 4, 33)
    torch.testing.assert_close(estimates[-1], O(pairs[2]))


@both_kinds
def test_conditioning_happens_once(kappa, pairs, monkeypatch):
    T = small_transducer(kappa=kappa)
    O = T.regress(ExampleSet(*pairs[:2]))
    monkeypatch.setattr(T, "condition", None)
    assert O(pairs[2]).shape == (4, 33)


@pytest.mark.parametrize(
    "options",
    [*({"kappa": name} for name in KERNELS), {"kappa": "representer", "depth": 1}],
    ids=str,
)
def test_adding_and_dropping_is_regressing_anew(options, pairs):
    T, (v, u, v_query) = small_transducer(**options), pairs
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
def test_adding_and_dropping_at_scattered_sensors(kappa, pairs):
    T, x = (
        small_transducer(kappa=kappa),
        torch.rand(60, generator=torch.Generator().manual_seed(0), dtype=torch.float64),
    )
    v, u, v_query = (SineModes(12).decode(SineModes(12).encode(f), x) for f in pairs)
    changed = T.regress(ExampleSet(v[:7], u[:7], x=x)).add(v[7:], u[7:]).drop(0)
    torch.testing.assert_close(
        changed(v_query), T.regress(ExampleSet(v[1:], u[1:], x=x))(v_query), rtol=0, atol=1e-6
    )


@both_kinds
def test_gradients_reach_added_examples(kappa, pairs):
    T, (v, u, v_query) = small_transducer(kappa=kappa), pairs
    new = [f[7:].clone().requires_grad_() for f in (v, u)]
    T.regress(ExampleSet(v[:7], u[:7])).add(*new)(v_query).sum().backward()
    all_new = [f.clone().requires_grad_() for f in (v, u)]
    T.regress(ExampleSet(*all_new))(v_query).sum().backward()
    for part, whole in zip(new, all_new, strict=True):
        torch.testing.assert_close(part.grad, whole.grad[7:])


@both_kinds
def test_bad_additions_and_drops(kappa, pairs):
    v, u, _ = pairs
    O = small_transducer(kappa=kappa).regress(ExampleSet(v, u))
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
    T, (v, u, v_query) = small_transducer(kappa="representer"), pairs
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
    O = small_transducer(kappa="representer").regress(ExampleSet(*pairs[:2]))
    widths = [torch.sub(*O.predict(pairs[2], band=band)[:0:-1]) for band in (0.1, 0.5, 0.9, 0.99)]
    assert all((narrow <= wide).all() for narrow, wide in pairwise(widths))
    assert (widths[0] < widths[-1]).all()


@pytest.mark.parametrize("kappa", [name for name in KERNELS if not kernel(name).leaves_out])
def test_kernels_that_average_have_no_band(kappa, pairs):
    with pytest.raises(TransduceError, match="representer kernel"):
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


def test_save_and_load(tmp_path, pairs):
    for options in ({}, {"tied": True}, {"shared": True}, {"kappa": "representer"}):
        T = small_transducer(**options).float()
        T.save_pretrained(tmp_path / "T.safetensors", note="made by a test")
        loaded = Transducer.from_pretrained(str(tmp_path / "T.safetensors"))
        assert loaded.card["note"] == "made by a test"
        assert loaded.config == T.config
        torch.testing.assert_close(
            loaded.regress(ExampleSet(*pairs[:2]))(pairs[2]),
            T.regress(ExampleSet(*pairs[:2]))(pairs[2]),
            rtol=0,
            atol=0,
        )


def test_branch_trunk_transducer(pairs, tmp_path):
    """Values in, a learned basis out: any points may be asked for (supplement S.2.3)."""
    torch.manual_seed(0)
    space = BranchTrunk(33, hidden=8)
    T = Transducer(space, space, depth=2, heads=2, width=4, hidden=8).double().eval()
    O = T.regress(ExampleSet(*pairs[:2]))
    torch.testing.assert_close(O(pairs[2], at=65)[:, ::2], O(pairs[2]))
    T.save_pretrained(tmp_path / "T.safetensors")
    loaded = Transducer.from_pretrained(str(tmp_path / "T.safetensors"))
    torch.testing.assert_close(
        loaded.regress(ExampleSet(*pairs[:2]))(pairs[2]), O(pairs[2]), rtol=0, atol=1e-4
    )


def test_branch_trunk_learns_all_it_has(pairs):
    T = Transducer(
        BranchTrunk(33, hidden=8), BranchTrunk(33, hidden=8), depth=2, heads=2, width=4, hidden=8
    )
    batch = {
        "v": pairs[0][None],
        "u": pairs[1][None],
        "v_query": pairs[0][None, :2],
        "u_query": pairs[1][None, :2],
    }
    Episode(T)(**{key: value.float() for key, value in batch.items()}).sum().backward()
    assert [name for name, p in T.named_parameters() if p.requires_grad and p.grad is None] == []


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


def test_gradients_after_inference_mode(pairs):
    T = small_transducer()
    with torch.inference_mode():
        T.regress(ExampleSet(*pairs[:2]))(pairs[2])
    v_query = pairs[2].clone().requires_grad_()
    T.regress(ExampleSet(*pairs[:2]))(v_query).sum().backward()
    assert v_query.grad is not None


@pytest.mark.parametrize(
    "options",
    [{"tau": 0.0}, {"depth": 0}, {"shared": True, "F": False}, {"kappa": "cosine"}],
    ids=str,
)
def test_bad_options(options):
    with pytest.raises(TransduceError, match=r"expected|needs"):
        small_transducer(**options)


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
            "points",
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
