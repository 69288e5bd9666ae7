"""Fixed mean functions: the regression on their pairs, and what layers after them regress."""

import pytest
import torch
from region_samples import COMPARED, LAT, LON

from transduce import Euclidean, ExampleSet, TransduceError, Transducer
from transduce.kernels import (
    AtPlaces,
    ExpDot,
    MaternGram,
    Mean,
    Neighbourhoods,
    NoiseUnits,
    PatchGrid,
    Ridge,
)
from transduce.layer import Layer
from transduce.spaces import Region


def matern(signal=60.0):
    return Ridge(NoiseUnits(MaternGram(), signal)).double()


def at_places():
    return AtPlaces(matern(), Neighbourhoods(Region(LAT, LON, **COMPARED[1]))).double()


KERNELS = {"everywhere": (matern, 5), "near": (at_places, 29)}


def samples(d, n=9, m=4):
    torch.manual_seed(0)
    return (torch.randn(1, *shape).double() for shape in ((n, d), (n, 12), (m, d)))


@pytest.mark.parametrize("name", KERNELS)
def test_it_is_the_regression_on_its_pairs(name):
    make, d = KERNELS[name]
    kernel, (v, u, query) = make(), samples(d)
    mean = Mean(make(), 9, d, 12).double()
    mean.remember(kernel, v[0], u[0])
    expected = kernel(kernel.condition(v, u), query)
    torch.testing.assert_close(mean.B(query), expected)
    other = mean.condition(query, 0 * expected)  # whatever the examples are
    torch.testing.assert_close(mean(other, query), expected)
    torch.testing.assert_close(other.residual, -expected)
    assert not any(parameter.requires_grad for parameter in mean.parameters())


def test_examples_have_no_weight():
    mean, (v, u, query) = Mean(matern(), 9, 5, 12).double(), samples(5)
    mean.remember(matern(), v[0], u[0])
    weights = mean.weights(v, u, query)
    assert weights.shape == (1, 4, 9) and not weights.any()


def test_the_next_layer_regresses_the_difference():
    v, u, query = samples(5)
    mean = Mean(matern(), 9, 5, 12).double()
    mean.remember(matern(), v[0], u[0])
    T = Transducer(Euclidean(5), Euclidean(12), [Layer(mean), Layer(matern())]).double().eval()
    examples, kappa = ExampleSet(query[0], mean.B(query)[0] + 1.0), T.steps[1].kappa
    difference = kappa.condition(query, torch.ones(1, 4, 12).double())
    torch.testing.assert_close(T.regress(examples)(v[0]), (mean.B(v) + kappa(difference, v))[0])


def test_only_kernels_of_inner_products_make_a_mean():
    for kernel in (ExpDot(4, 4, 1, 2), AtPlaces(matern(), PatchGrid())):
        with pytest.raises(TransduceError, match="expected a Ridge of one candidate over inner"):
            Mean(kernel, 3, 4, 4)
