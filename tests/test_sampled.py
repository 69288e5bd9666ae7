"""Spaces that adapt to grids: functions at positions, plain numbers, and both together."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from transduce import TransduceError
from transduce.spaces import Sampled, SampledFields, Values, WithParameters, space_from_config
from transduce.spaces.splines import resampling, spline_matrix

UNEVEN = (0.0, 0.05, 0.2, 0.3, 0.55, 0.7, 0.9, 1.0)
GRIDS = {"uniform": Sampled(8), "uneven": Sampled(UNEVEN), "inner": Sampled((0.1, 0.3, 0.6, 0.8))}
on_grids = pytest.mark.parametrize("space", GRIDS.values(), ids=GRIDS)


def cubic(x):
    """Two cubics."""
    t = torch.as_tensor(x, dtype=torch.float64)
    return torch.stack([1 - 2 * t + 3 * t**2 - 4 * t**3, t**3 + 5])


@on_grids
def test_splines_reproduce_cubics(space):
    at = torch.linspace(space.x[0], space.x[-1], 31, dtype=torch.float64)
    assert_close(space.decode(cubic(space.x), at), cubic(at), rtol=0, atol=1e-12)


@on_grids
def test_functions_at_other_positions_are_encoded(space):
    x = torch.linspace(0, 1, 13).double()
    assert_close(space.encode(cubic(x), x), cubic(space.x), rtol=0, atol=1e-12)
    assert_close(space.decode(space.encode(cubic(x), x), space.points), cubic(space.x))


@on_grids
def test_beyond_the_ends_functions_are_constant(space):
    c = cubic(space.x)
    ends = space.decode(c, torch.tensor([0.0, 1.0]))
    if space.x[0] > 0:
        assert_close(ends, c[:, [0, -1]])
    assert_close(space.decode(c, space.points), c)


@pytest.mark.parametrize("points", [1, 2, 3])
def test_few_points_are_splines_of_lower_degree(points):
    x = tuple(np.linspace(0, 1, points)) if points > 1 else (0.5,)
    f = torch.tensor(x).double() ** (points - 1)
    at = torch.linspace(0, 1, 7).double()
    assert_close(spline_matrix(x, tuple(at.tolist())) @ f, at ** (points - 1))


def test_resampling_from_many_points_is_the_least_squares_spline():
    x, at = np.linspace(0, 1, 200), np.linspace(0, 1, 20)
    f = np.random.default_rng(0).standard_normal(200)
    found = resampling(tuple(x), tuple(at)).numpy() @ f
    B = spline_matrix(tuple(at), tuple(x)).numpy()
    expected = np.linalg.lstsq(B, f, rcond=None)[0]
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert np.square(B @ found - f).sum() < np.square(B @ np.interp(at, x, f) - f).sum()


def test_resampling_from_few_points_interpolates():
    x, at = tuple(np.linspace(0, 1, 20)), tuple(np.linspace(0, 1, 33))
    assert_close(resampling(x, at), spline_matrix(x, at))
    assert_close(resampling(x, x), torch.eye(20, dtype=torch.float64))


def test_channels_follow_each_other():
    space = Sampled(UNEVEN, channels=2)
    f = torch.stack([cubic(UNEVEN), 2 * cubic(UNEVEN)])
    c = space.encode(f)
    assert c.shape == (2, space.size) == (2, 16)
    assert_close(space.decode(c, 8), f)
    at = torch.linspace(0, 1, 5).double()
    assert_close(space.decode(c, at), torch.stack([cubic(at), 2 * cubic(at)]), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "space",
    [
        Sampled(9),
        Sampled(UNEVEN, 3),
        Values(5),
        WithParameters(Sampled(UNEVEN), 2),
        WithParameters(Values(4), 1),
    ],
    ids=lambda space: str(space.config()),
)
def test_config_builds_it_again(space):
    again = space_from_config(space.config())
    assert type(again) is type(space)
    assert again.config() == space.config()
    assert again.size == space.size and again.precision == torch.float64


def test_a_space_adapts_to_grids_and_channels():
    space, f = Sampled(9), torch.zeros(3, 9)
    assert space.fitted_to(f, None) is space
    assert space.fitted_to(torch.zeros(3, 7), None).points == 7
    assert space.fitted_to(torch.zeros(3, 2, 7), None).config() == Sampled(7, 2).config()
    assert space.fitted_to(torch.zeros(3, 8), torch.tensor(UNEVEN)).points == 8


@pytest.mark.parametrize(
    ("x", "channels", "said"),
    [
        *(
            (x, 1, "rise from 0 to 1")
            for x in ((0.0, 0.5, 0.5), (1.0, 0.0), (-0.5, 1.0), (0.0, 2.0), ())
        ),
        (9, 0, "at least 1"),
    ],
)
def test_bad_positions(x, channels, said):
    with pytest.raises(TransduceError, match=said):
        Sampled(x, channels)
    with pytest.raises(TransduceError, match=said):
        SampledFields(9, x, channels)


def test_numbers_and_parameters_stay_as_they_are():
    f = torch.randn(3, 11)
    for space in (Values(11), WithParameters(Sampled(9), 2)):
        assert space.size == 11 and space.vectors
        assert space.decode(space.encode(f), 11) is f
