"""Gaussian processes between fields of a region, as a whole and at each of its places."""

import numpy as np
import pytest
import torch
import xarray as xr
from region_samples import LAT, LON, days, everywhere_and_near, model, region

from transduce import ExampleSet, TransduceError, models
from transduce.families import latitude_weighted_mse
from transduce.kernels import (
    AtPlaces,
    MaternGram,
    Neighbourhoods,
    NoiseUnits,
    Ridge,
)
from transduce.kernels.mean import coefficients, sums
from transduce.spaces import Region, space_from_config


def test_coefficients_of_a_region_measure_the_latitude_weighted_error():
    space, f = region().double(), days(20).u
    space.measure(f)
    torch.testing.assert_close(space.decode(space.encode(f), (3, 4)), f)
    g = f + torch.randn_like(f)
    weighted = latitude_weighted_mse(g, f, LAT)
    of_coefficients = (space.encode(g) - space.encode(f)).square().mean() * space.unit**2
    torch.testing.assert_close(of_coefficients, weighted)
    assert space_from_config(space.config()).grid == (3, 4)


def test_slopes_follow_the_values_and_are_dropped_on_decoding():
    space, f = Region(LAT, LON, slopes=1.0).double(), days(20).v
    space.measure(f)
    c = space.encode(f)
    assert c.shape == (20, 12 + 9 + 8) and space_from_config(space.config()).slopes
    torch.testing.assert_close(space.decode(c, (3, 4)), f)
    warmer, steeper = (
        space.encode(f[:1] + change) - c[:1] for change in (torch.ones(3, 4), torch.arange(4.0))
    )
    assert warmer[:, 12:21].abs().max() < 1e-9 and steeper[:, 12:21].min() > 0  # eastward
    assert warmer[:, :12].norm() < 0.5 * (space.root / space.unit).expand(3, 4).norm()


@pytest.mark.parametrize("shape", [(5, 3, 5), (5, 12), (3, 4)])
def test_fields_of_another_shape_are_refused(shape):
    with pytest.raises(
        TransduceError, match=r"expects \(n, 3, 4\), fields from 60 to 40 N and 0 to 30 E"
    ):
        region().check(torch.zeros(shape), None, "v")


@pytest.mark.parametrize("lat", [(), (95.0, 80.0), (40.0, 50.0)])
def test_regions_are_on_the_globe(lat):
    with pytest.raises(TransduceError, match="latitudes from 90 down to -90"):
        Region(lat, LON)
    with pytest.raises(TransduceError, match="two with slopes"):
        Region((50.0,), LON, slopes=1.0)
    with pytest.raises(TransduceError, match=r"reach=-1.* degrees from 0"):
        Region(LAT, LON, reach=-1.0)


@pytest.mark.parametrize("U", [Region(LAT[:2], LON), Region(LAT, LON, slopes=1.0)])
def test_a_model_at_places_answers_at_their_points(U):
    with pytest.raises(TransduceError, match="expected for U a Region of the same grid without"):
        models.region(Region(LAT, LON, reach=12.0), U)


def test_places_need_a_reach():
    with pytest.raises(TransduceError, match="a Region with reach=0; expected a reach in degrees"):
        Neighbourhoods(region())


def test_signals_are_positive():
    with pytest.raises(TransduceError, match=r"signal=0.* expected a number above 0"):
        NoiseUnits(MaternGram(), signal=0.0)


def test_fields_with_other_coordinates_are_refused():
    T, one = model(), days(5)
    on_grid = [
        xr.DataArray(f.numpy(), {"lat": list(LAT), "lon": list(LON)}, ["time", "lat", "lon"])
        for f in (one.v, one.u)
    ]
    u_hat = T.regress(ExampleSet(*on_grid))(on_grid[0])
    assert u_hat.dims == ("time", "lat", "lon") and np.array_equal(u_hat["lat"], LAT)
    with pytest.raises(
        TransduceError,
        match=r"v has latitude from 40 to 60; this model expects 60 to 40. .*regress_climate",
    ):
        T.regress(ExampleSet(*on_grid))(on_grid[0].isel(lat=slice(None, None, -1)))
    for names in ({}, {"lat": "latitude", "lon": "longitude"}):
        shifted = on_grid[0].assign_coords(lon=on_grid[0]["lon"] + 100).rename(names)
        with pytest.raises(
            TransduceError, match="v has longitude from 100 to 130; this model expects 0 to 30"
        ):
            T.regress(ExampleSet(*on_grid))(shifted)


def matern():
    return Ridge(NoiseUnits(MaternGram())).double()


def test_the_kernel_is_that_of_its_equation():
    kappa, v = matern(), torch.randn(2, 12, dtype=torch.float64)
    candidates = kappa.candidates
    with torch.no_grad():
        g = (10 * candidates.gram.log_gain).exp()
        r = (5 / 12) ** 0.5 * g * (v[0] - v[1]).norm()
        s, lines = (10 * candidates.log_signal).exp(), (10 * candidates.log_lines).exp()
        expected = s * (1 + r + r**2 / 3) * (-r).exp() + lines * g**2 * v[0] @ v[1] / 12
        points = candidates.gram.points(v[None])
        k = candidates.between(points, points, torch.ones(1, 1, dtype=torch.float64))
        torch.testing.assert_close(k[0, 0, 0, 1], expected)


def test_a_kernel_at_a_place_weights_fields_by_their_distance():
    """Each block is predicted as by a kernel of its own, with fields weighted by their distance."""
    space = Region(LAT, LON, slopes=1.0, reach=12.0, block=2)
    near, place = space.neighbourhoods()
    assert place.tolist() == [0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3]
    values, slopes = near[:, :12], near[:, 12:]
    torch.testing.assert_close(values.mean(1), torch.ones(4))
    torch.testing.assert_close(slopes.mean(1), torch.ones(4))
    assert values[0].argmax() in (0, 1, 4, 5) and values[3].argmin() == 0
    ridge, sizes = matern(), ((9, 29), (9, 12), (4, 29))
    v, u, asked = (torch.randn(1, n, d).double() for n, d in sizes)
    local = AtPlaces(ridge, Neighbourhoods(space)).double()
    answers = local(local.condition(v, u), asked)
    for p in range(4):
        seen = local.places.root[p]
        torch.testing.assert_close(seen, near[p].sqrt().double(), rtol=1e-6, atol=1e-6)
        alone = ridge(ridge.condition(v * seen, u), asked * seen)
        torch.testing.assert_close(answers[..., place == p], alone[..., place == p])
    torch.testing.assert_close(sums(local, v[0], coefficients(local, v[0], u[0]), asked), answers)


def test_distances_on_the_globe_are_of_arc():
    """A place at 0 E is as far from 10 E as from 350 E, and from all longitudes of a pole."""
    lon = tuple(10.0 * i for i in range(36))
    near, _ = Region((90.0, 0.0), lon, reach=20.0, block=1).neighbourhoods()
    assert torch.isclose(near[36, 37], near[36, 71]) and near[36, 38] < near[36, 37]
    torch.testing.assert_close(near[36, :36], near[36, :1].expand(36))


@everywhere_and_near
def test_residuals_are_those_of_regressions_without_the_example(compared):
    T, examples = model(compared), days(12)
    O = T.regress(examples)
    left = T.U.decode(O.fits[-1].residual, (3, 4))[0] - T.U.mean
    others = T.regress(ExampleSet(examples.v[1:], examples.u[1:]))(examples.v[:1])
    torch.testing.assert_close(left[:1], examples.u[:1] - others)


@everywhere_and_near
def test_masked_examples_do_not_narrow_the_deviations(compared):
    T, pairs, asked = model(compared), days(12), days(3, seed=1).v
    (v, _), (u, _), (q, _) = (
        T.encode(s, f, None, "f") for s, f in ((T.V, pairs.v), (T.U, pairs.u), (T.V, asked))
    )
    mask = torch.arange(12)[None] < 8
    masked, alone = T.condition(v[None], u[None], mask), T.condition(v[None, :8], u[None, :8])
    torch.testing.assert_close(T.deviations(masked, q[None]), T.deviations(alone, q[None]))


@everywhere_and_near
def test_bands_are_about_as_wide_as_errors(compared):
    """The mean field, 101,000 Pa, is no part of a residual."""
    T, examples, asked = model(compared), days(30), days(60, seed=1)
    mean, low, high = T.regress(examples).predict(asked.v, band=0.8)
    assert 0.65 < ((low <= asked.u) & (asked.u <= high)).double().mean() < 0.95
    assert (high - low).mean() < 8 * (mean - asked.u).abs().mean()


def test_a_measured_region_used_for_both_sides_keeps_its_units():
    space = region()
    space.measure(days(50).v.float())
    T = models.region(space, space)
    assert T.V is not T.U and T.V.measured and T.U.measured
    torch.testing.assert_close(T.V.unit, T.U.unit)
    torch.testing.assert_close(T.V.mean, T.U.mean)
    assert T.V.unit > 1
