"""Days of a small region, and models of them."""

import pytest
import torch

from transduce import ExampleSet, models
from transduce.spaces import Region

LAT, LON = (60.0, 50.0, 40.0), (0.0, 10.0, 20.0, 30.0)


def region():
    return Region(LAT, LON)


def days(n, seed=0):
    """Fields like temperature in kelvin, and a smooth function of them like pressure in pascal."""
    v = 280 + 8 * torch.randn(
        n, 3, 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )
    return ExampleSet(v, 101_000 + 60 * (v - 280).roll(1, 2) + 3 * (v - 280) ** 2)


# Fields as a whole, and near each of four places.
COMPARED = [
    {},
    {"slopes": 1.0, "reach": 12.0, "block": 2},
]
everywhere_and_near = pytest.mark.parametrize("compared", COMPARED, ids=["everywhere", "near"])


def model(compared=COMPARED[0]):
    T = models.region(Region(LAT, LON, **compared), region()).double().eval()
    for space, f in ((T.V, days(200).v), (T.U, days(200).u)):
        space.measure(f)
    return T
