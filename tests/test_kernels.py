"""One contract for every kappa, and what holds of those that average the examples, which are the
paper's."""

import math

import pytest
import torch

from transduce import TransduceError
from transduce.kernels import KERNELS, Attention, kernel

every_kernel = pytest.mark.parametrize("name", KERNELS)
averaging_kernel = pytest.mark.parametrize(
    "name", [name for name in KERNELS if issubclass(kernel(name), Attention)]
)


def make(name, n=7, m=4, b=2):
    torch.manual_seed(0)
    kappa = kernel(name)(16, 6, heads=3, width=4).double()
    return (
        kappa,
        torch.randn(b, n, 16).double(),
        torch.randn(b, n, 6).double(),
        torch.randn(b, m, 16).double(),
    )


@every_kernel
def test_masked_examples_do_not_count(name):
    kappa, v, u, v_query = make(name)
    mask = torch.arange(7).expand(2, 7) < torch.tensor([[4], [7]])
    masked = kappa(kappa.condition(v, u, mask), v_query)
    torch.testing.assert_close(
        masked[:1], kappa(kappa.condition(v[:1, :4], u[:1, :4]), v_query[:1])
    )
    torch.testing.assert_close(masked[1:], kappa(kappa.condition(v[1:], u[1:]), v_query[1:]))


@every_kernel
def test_masked_examples_have_no_weight(name):
    kappa, v, u, v_query = make(name, b=1)
    mask = torch.arange(7).expand(1, 7) < 4
    A = kappa.weights(kappa.condition(v, u, mask), v_query)
    torch.testing.assert_close(
        A[..., :4], kappa.weights(kappa.condition(v[:, :4], u[:, :4]), v_query)
    )
    assert (A[..., 4:] == 0).all()


@every_kernel
def test_batched_is_looped(name):
    kappa, v, u, v_query = make(name)
    looped = torch.cat(
        [kappa(kappa.condition(v[i : i + 1], u[i : i + 1]), v_query[i : i + 1]) for i in range(2)]
    )
    torch.testing.assert_close(kappa(kappa.condition(v, u), v_query), looped)


@every_kernel
def test_order_of_examples_does_not_matter(name):
    kappa, v, u, v_query = make(name)
    shuffled = torch.randperm(7, generator=torch.Generator().manual_seed(0))
    sources, other = kappa.condition(v, u), kappa.condition(v[:, shuffled], u[:, shuffled])
    torch.testing.assert_close(kappa(other, v_query), kappa(sources, v_query))
    torch.testing.assert_close(
        kappa.weights(other, v_query), kappa.weights(sources, v_query)[..., shuffled]
    )
    torch.testing.assert_close(
        kappa.carry(other, v[:, shuffled], u[:, shuffled]), kappa.carry(sources, v, u)[:, shuffled]
    )


def test_unknown_kernel():
    with pytest.raises(TransduceError, match="expected one of exp_dot, rbf, l2, representer"):
        kernel("cosine")


@averaging_kernel
def test_linear_in_u(name):
    """Proposition 1: kappa(v, v') is a linear map of U."""
    kappa, v, u, v_query = make(name)
    w = torch.randn_like(u)
    a, b, ab = (kappa(kappa.condition(v, f), v_query) for f in (u, w, 2 * u - 3 * w))
    torch.testing.assert_close(ab, 2 * a - 3 * b)


@averaging_kernel
def test_weights_are_normalised_and_give_the_sum(name):
    kappa, v, u, v_query = make(name)
    sources = kappa.condition(v, u)
    A = kappa.weights(sources, v_query)
    assert A.min() >= 0
    torch.testing.assert_close(A.sum(-1), torch.ones_like(A[..., 0]))
    summed = kappa.out(torch.einsum("bhmn,bhnc->bmhc", A, sources.value).flatten(2))
    torch.testing.assert_close(summed, kappa(sources, v_query))


@averaging_kernel
def test_weights_are_the_formula(name):
    kappa, v, u, v_query = make(name)
    kappa.log_tau.data.fill_(math.log(1.7))
    sources = kappa.condition(v, u)
    query = kappa.query(v_query).unflatten(-1, (3, 4)).transpose(1, 2)
    dot = torch.einsum("bhmc,bhnc->bhmn", query, sources.key)
    squared = (query[:, :, :, None] - sources.key[:, :, None]).square().sum(-1)
    A = {"exp_dot": torch.exp(dot / 1.7), "rbf": torch.exp(-squared / 1.7), "l2": squared}[name]
    torch.testing.assert_close(kappa.weights(sources, v_query), A / A.sum(-1, keepdim=True))


@averaging_kernel
def test_equal_examples_weigh_the_same(name):
    """Where nothing tells the examples apart, and even where a query is one of them, the result is
    finite and their mean."""
    kappa, v, u, _ = make(name)
    v = v[:, :1].expand(-1, 7, -1)
    kappa.key.weight.data.copy_(kappa.query.weight.data)
    A = kappa.weights(kappa.condition(v, u), v[:, :1])
    torch.testing.assert_close(A, torch.full_like(A, 1 / 7))


@averaging_kernel
def test_examples_look_at_one_another_as_queries_do(name):
    """Equation 6: one recurrence for examples and queries."""
    kappa, v, u, _ = make(name)
    sources = kappa.condition(v, u)
    torch.testing.assert_close(kappa.carry(sources, v, u), u + kappa(sources, v))
