"""Theorems of `transduce.regress`: changes of units, grids and containers change nothing else."""

import numpy as np
import pandas as pd
import pytest
import torch
import xarray as xr
from regression_samples import X, answers, examples, gap, operator, smooth

import transduce

pytestmark = pytest.mark.usefixtures("general")
CLOSE = 1e-5  # of the spread of u
V, U, QUERY = examples()
EXEMPT = ("identity", "window", "far window", "readout")
UNEVEN = np.sort(np.concatenate([[0, 1], np.random.default_rng(0).random(22)]))


@pytest.fixture
def expected():
    return answers(V, U, QUERY)


@pytest.mark.parametrize("c", [1e-6, 1.0, 1e6])
def test_scaling_v_changes_nothing(expected, c):
    assert gap(answers(c * V, U, c * QUERY), expected, U) < CLOSE


@pytest.mark.parametrize("d", [1e-6, 3.0, 1e6])
def test_scaling_u_scales_answers(expected, d):
    assert gap(answers(V, d * U, QUERY) / d, expected, U) < CLOSE


def test_a_constant_is_added_to_answers(expected):
    """Pressures of 101325 Pa that vary by 10 keep their digits."""
    found = answers(V, 10 * U + 101325, QUERY)
    assert gap((found - 101325) / 10, expected, U) < CLOSE


def test_a_function_is_added_to_answers(general):
    """Answers that compare u with v at the same point are exempt."""
    general(without=EXEMPT)
    added = 3 * np.sin(7 * X)
    assert gap(answers(V, U + added, QUERY) - added, answers(V, U, QUERY), U) < CLOSE


@pytest.mark.parametrize("x", [X, UNEVEN], ids=["uniform", "uneven"])
@pytest.mark.parametrize(("scale", "shift"), [(1e-3, 0), (250.0, 1e4)])
def test_an_affine_change_of_x_changes_nothing(x, scale, shift):
    found, same = (answers(V, U, QUERY, x=at) for at in (scale * x + shift, x))
    assert gap(found, same, U) < CLOSE


@pytest.mark.parametrize("x", [X, UNEVEN], ids=["uniform", "uneven"])
def test_descending_grids(x):
    found = answers(V[:, ::-1], U[:, ::-1], QUERY[:, ::-1], x=x[::-1])
    assert gap(found[:, ::-1], answers(V, U, QUERY, x=x), U) < CLOSE


def frame(f):
    return pd.DataFrame(f, columns=X)


def data_array(f):
    return xr.DataArray(f, dims=("row", "x"), coords={"x": X})


@pytest.mark.parametrize(
    "kind",
    [np.float32, np.ndarray.tolist, frame, data_array, torch.from_numpy],
    ids=["float32", "lists", "frame", "xarray", "torch"],
)
def test_containers_give_the_same_numbers(kind):
    v, u, query = (f.astype(np.float32).astype(np.float64) for f in (V, U, QUERY))
    O = transduce.regress(kind(v), kind(u), x=X)
    found = O(kind(query))
    assert type(found) is type(kind(u)) or kind is np.ndarray.tolist
    assert gap(found, answers(v, u, query), u) < CLOSE
    assert all(gap(part, part, u) == 0 for part in O.predict(kind(query)))


def test_order_of_examples_does_not_matter(expected):
    order = np.random.default_rng(1).permutation(len(V))
    assert gap(answers(V[order], U[order], QUERY), expected, U) < CLOSE


def test_queries_on_another_grid():
    """A finer grid, which the examples' spline reproduces."""
    fine = np.linspace(0, 1, 47)
    O = transduce.regress(V, U, x=X)
    query = smooth(18, fine)[14:]
    assert gap(O(query, x=fine), O(QUERY), U) < 0.02
    with pytest.warns(UserWarning, match="came without x"):
        assert gap(O(query), O(query, x=fine), U) < CLOSE


def test_answers_at_other_points(expected):
    O = transduce.regress(V, U, x=100 * X)
    assert gap(O(QUERY, at=24), expected, U) < CLOSE
    assert O(QUERY, at=47).shape == (4, 47)
    assert gap(O(QUERY, at=47)[:, ::2], expected, U) < CLOSE
    assert gap(O(QUERY, at=100 * X[3:7]), expected[:, 3:7], U) < CLOSE
    assert gap(O(QUERY, at=100 * X[6:2:-1]), expected[:, 6:2:-1], U) < CLOSE
    for part in O.predict(QUERY, at=100 * X[3:7]):
        assert part.shape == (4, 4)


def test_channels():
    v, u, query = (np.stack([f, f**2], 1) for f in (V, U, QUERY))
    O = transduce.regress(v, u)
    assert O(query).shape == (4, 2, 24)
    other = transduce.regress(1e3 * v, u[..., ::-1], x_v=X, x_u=X[::-1])
    assert gap(other(1e3 * query)[..., ::-1], O(query), u) < CLOSE
    assert transduce.regress(v, U)(query).shape == (4, 24)
    assert transduce.regress(V, u)(QUERY).shape == (4, 2, 24)


def test_v_and_u_on_different_grids():
    O = transduce.regress(V, U[:, ::2], x_v=X, x_u=X[::2])
    assert O(QUERY).shape == (4, 12)
    assert O.report().error < 1


PARAMETERS = np.random.default_rng(2).standard_normal((18, 2))


def test_parameters_with_functions():
    u = U * PARAMETERS[:14, :1]
    O = transduce.regress(V, u, parameters=PARAMETERS[:14])
    found = O(QUERY, parameters=PARAMETERS[14:])
    assert found.shape == (4, 24)
    scaled = transduce.regress(V, u, parameters=1e4 * PARAMETERS[:14] + 5)
    assert gap(scaled(QUERY, parameters=1e4 * PARAMETERS[14:] + 5), found, u) < CLOSE
    assert O.novelty(QUERY, parameters=PARAMETERS[14:]).shape == (4,)


def test_parameters_alone():
    u = np.sin(np.outer(PARAMETERS[:, 0], X) + PARAMETERS[:, 1:])
    O = transduce.regress(None, u[:14], parameters=PARAMETERS[:14])
    assert gap(O(PARAMETERS[14:]), answers(PARAMETERS[:14], u[:14], PARAMETERS[14:]), u) == 0
    assert O.report().error < 1


OUTER = np.einsum("na,nb->nab", V[:, :9], V[:, :9])


@pytest.mark.parametrize(
    ("v", "u", "shape"),
    [
        (V[:, :3], V[:, :3] @ np.ones((3, 2)), (2,)),
        (V, V.mean(1), ()),
        (V[:, :2], V[:, :2] @ np.ones((2, 24)), (24,)),
        (V[:, :2], V[:, 0], ()),
        (V[:, :16].reshape(14, 1, 4, 4), V[:, :4].reshape(14, 1, 2, 2), (1, 2, 2)),
        (OUTER, OUTER.sum(1), (9,)),
    ],
    ids=["numbers", "to numbers", "from numbers", "to one number", "fields", "outer products"],
)
def test_numbers_and_fields(v, u, shape):
    """Linear maps of numbers are found almost exactly."""
    O = transduce.regress(v, u)
    found = O(v[:5])
    assert found.shape == (5, *shape)
    assert O.report().error < 1
    assert gap(answers(1e3 * v, u, 1e3 * v[:5]), found, u) < CLOSE
    assert all(part.shape == found.shape for part in O.predict(v[:5]))


def gradient(f, at):
    """The derivative of f by central differences in two directions, and by autograd."""
    at = at.clone().requires_grad_()
    (found,) = torch.autograd.grad(f(at), at)
    assert torch.isfinite(found).all() and found.abs().max() > 0
    generator = torch.Generator().manual_seed(0)
    for _ in range(2):
        direction = torch.randn(at.shape, generator=generator, dtype=at.dtype)
        ends = [f((at + step * direction).detach()) for step in (1e-5, -1e-5)]
        yield float((found * direction).sum()), float((ends[0] - ends[1]) / 2e-5)


@pytest.mark.parametrize("of", ["query", "v", "u"])
def test_gradients(general, of):
    """The network, which is in single precision, is left out here."""
    general(without=("readout",))
    given = {"v": torch.tensor(V), "u": torch.tensor(U), "query": torch.tensor(QUERY)}

    def squares(changed):
        now = given | {of: changed}
        return transduce.regress(now["v"], now["u"])(now["query"]).square().sum()

    for found, expected in gradient(squares, given[of]):
        assert found == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("of", ["query", "v", "u"])
def test_gradients_of_the_whole_model_are_finite(of):
    given = {"v": torch.tensor(V), "u": torch.tensor(U), "query": torch.tensor(QUERY)}
    given[of].requires_grad_()
    transduce.regress(given["v"], given["u"])(given["query"]).square().sum().backward()
    assert torch.isfinite(given[of].grad).all() and given[of].grad.abs().max() > 0


def test_gradients_with_parameters():
    v = torch.tensor(V, requires_grad=True)
    O = transduce.regress(v, torch.tensor(U), parameters=PARAMETERS[:14])
    O(QUERY, parameters=PARAMETERS[14:]).square().sum().backward()
    assert torch.isfinite(v.grad).all() and v.grad.abs().max() > 0


def test_examples_are_learned_from():
    """More examples of an operator give smaller errors, far below the mean's."""
    query = smooth(60, seed=9)
    errors = []
    for n in (5, 20, 80):
        v = smooth(n, seed=3)
        errors.append(np.square(answers(v, operator(v), query) - operator(query)).mean())
    assert errors[2] < errors[1] < errors[0]
    assert errors[2] < 0.2 * operator(query).var()
