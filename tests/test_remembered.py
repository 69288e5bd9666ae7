"""Gaussian processes on the fields of a region, and pairs that weights remember."""

import numpy as np
import pytest
import torch
import xarray as xr

from transduce import Euclidean, ExampleSet, Task, Training, TransduceError, Transducer, metatrain
from transduce.families import latitude_weighted_mse
from transduce.kernels import Local, Metric
from transduce.spaces import Region, space_from_config

LAT, LON = (60.0, 50.0, 40.0), (0.0, 10.0, 20.0, 30.0)


def region():
    return Region(LAT, LON)


def days(n, seed=0):
    """Fields like temperature in kelvin, and a smooth function of them like pressure in pascal."""
    v = 280 + 8 * torch.randn(
        n, 3, 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )
    return ExampleSet(v, 101_000 + 60 * (v - 280).roll(1, 2) + 3 * (v - 280) ** 2)


COMPARED = [
    {},
    {"slopes": 1.0, "reach": 12.0, "block": 2},
]  # fields as a whole, and near each of four places
everywhere_and_near = pytest.mark.parametrize("compared", COMPARED, ids=["everywhere", "near"])


def model(compared=COMPARED[0]):
    T = Transducer(Region(LAT, LON, **compared), region(), depth=1, kappa="metric").double().eval()
    for space, f in ((T.V, days(200).v), (T.U, days(200).u)):
        space.measure(f)
    return T


def test_coefficients_of_a_region_measure_the_latitude_weighted_error():
    space, f = region().double(), days(20).u
    space.measure(f)
    torch.testing.assert_close(space.decode(space.encode(f), (3, 4)), f)
    g = f + torch.randn_like(f)
    weighted = latitude_weighted_mse(g, f, LAT)
    of_coefficients = (space.encode(g) - space.encode(f)).square().mean() * space.unit**2
    torch.testing.assert_close(of_coefficients, weighted)
    assert space_from_config(space.config()).grid == (3, 4)


def test_slopes_come_beside_values_and_are_left_out_again():
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
def test_a_region_says_what_it_expects(shape):
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


@pytest.mark.parametrize(
    ("kappa", "U"),
    [
        ("representer", Region(LAT, LON)),
        ("metric", Region(LAT[:2], LON)),
        ("metric", Euclidean(12)),
    ],
)
def test_what_looks_near_places_answers_at_their_points(kappa, U):
    with pytest.raises(
        TransduceError, match="expected kappa='metric', and for U a Region of the same grid"
    ):
        Transducer(Region(LAT, LON, reach=12.0), U, depth=1, kappa=kappa)


def test_signals_are_positive():
    with pytest.raises(TransduceError, match=r"signal=0.* expected a number above 0"):
        Metric(4, 4, signal=0.0)


def test_a_field_that_says_it_is_elsewhere_is_refused():
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


def test_training_on_leaves_the_units_of_what_is_remembered():
    class Warmer:
        def sample_task(self, n, m, generator):
            one = days(n + m)
            return Task(
                ExampleSet(one.v[:n] + 50, one.u[:n]), ExampleSet(one.v[n:] + 50, one.u[n:])
            )

    R = model().remember(days(40))
    before = {
        name: value.clone()
        for name, value in R.state_dict().items()
        if name.startswith(("V.", "U.", "prior."))
    }
    metatrain(R, Warmer(), Training(steps=1, tasks=1, n=(4, 4), queries=2, warmup=1, muon_lr=0.0))
    assert all(torch.equal(R.state_dict()[name], value) for name, value in before.items())


def test_the_metric_kernel_is_the_one_of_its_equation():
    kappa, v = Metric(12, 12).double(), torch.randn(2, 12, dtype=torch.float64)
    with torch.no_grad():
        g = (10 * kappa.log_gain).exp()
        r = (5 / 12) ** 0.5 * g * (v[0] - v[1]).norm()
        s, lines = (10 * kappa.log_signal).exp(), (10 * kappa.log_lines).exp()
        expected = s * (1 + r + r**2 / 3) * (-r).exp() + lines * g**2 * v[0] @ v[1] / 12
        points = kappa.points(v[None])
        torch.testing.assert_close(kappa.between(points, points)[0, 0, 1], expected)


def test_a_kernel_at_a_place_is_that_of_fields_seen_from_there():
    """Each block is told as a kernel of its own would, whose fields count by how near they are."""
    space = Region(LAT, LON, slopes=1.0, reach=12.0, block=2)
    near, place = space.neighbourhoods()
    assert place.tolist() == [0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3]
    values, slopes = near[:, :12], near[:, 12:]
    (
        torch.testing.assert_close(values.mean(1), torch.ones(4)),
        torch.testing.assert_close(slopes.mean(1), torch.ones(4)),
    )
    assert values[0].argmax() in (0, 1, 4, 5) and values[3].argmin() == 0
    metric, v, u, asked = (
        Metric(29, 12).double(),
        *(torch.randn(1, n, d).double() for n, d in ((9, 29), (9, 12), (4, 29))),
    )
    local = Local(metric, near.double(), place)
    answers = local(local.condition(v, u), asked)
    for p in range(4):
        seen = near[p].double().sqrt()
        alone = metric(metric.condition(v * seen, u), asked * seen)
        torch.testing.assert_close(answers[..., place == p], alone[..., place == p])
    told = local.told(v[0], local.coefficients(v[0], u[0]), asked)
    torch.testing.assert_close(told, answers)


def test_distances_on_the_globe_are_of_arc():
    """A place at 0 E is as far from 10 E as from 350 E, and from all longitudes of a pole."""
    lon = tuple(10.0 * i for i in range(36))
    near, _ = Region((90.0, 0.0), lon, reach=20.0, block=1).neighbourhoods()
    assert torch.isclose(near[36, 37], near[36, 71]) and near[36, 38] < near[36, 37]
    torch.testing.assert_close(near[36, :36], near[36, :1].expand(36))


@everywhere_and_near
def test_what_is_left_of_an_example_is_what_the_others_leave(compared):
    T, examples = model(compared), days(12)
    O = T.regress(examples)
    left = T.U.decode(O._kept[-1].residual, (3, 4))[0] - T.U.mean
    others = T.regress(ExampleSet(examples.v[1:], examples.u[1:]))(examples.v[:1])
    torch.testing.assert_close(left[:1], examples.u[:1] - others)


@everywhere_and_near
def test_examples_that_are_masked_do_not_count(compared):
    T, pairs, asked = model(compared), days(12), days(3, seed=1).v
    (v, _), (u, _), (q, _) = (
        T.encode(s, f, None, "f") for s, f in ((T.V, pairs.v), (T.U, pairs.u), (T.V, asked))
    )
    mask = torch.arange(12)[None] < 8
    kept, alone = T.condition(v[None], u[None], mask), T.condition(v[None, :8], u[None, :8])
    torch.testing.assert_close(T.query(kept, q[None])[-1], T.query(alone, q[None])[-1])
    torch.testing.assert_close(T.deviations(kept, q[None]), T.deviations(alone, q[None]))


@everywhere_and_near
def test_many_regressions_are_those_that_one_by_one_give(compared):
    T, pairs = model(compared).remember(days(40)), days(10, seed=2)
    (v, _), (u, _) = (T.encode(s, f, None, "f") for s, f in ((T.V, pairs.v), (T.U, pairs.u)))
    mask = torch.arange(10)[None] < 7
    answers = T.split(T.read(v[None], u[None]), u[None], mask)
    torch.testing.assert_close(answers[:, 7:], T.forward(v[None, :7], u[None, :7], v[None, 7:]))


@everywhere_and_near
def test_what_is_remembered_is_known_before_any_example(compared):
    T, history, asked = model(compared), days(40), days(5, seed=1)
    R = T.remember(history)
    far = ExampleSet(asked.v + 1000, asked.u)  # so unlike the queries that they say nothing of them
    with torch.no_grad():
        for parameter in R.layers[0].kappa.parameters():
            parameter.fill_(-5.0)
    torch.testing.assert_close(R.regress(far)(asked.v), T.regress(history)(asked.v))


@everywhere_and_near
def test_new_examples_say_how_their_operator_differs(compared):
    T, history, today, asked = model(compared), days(60), days(15, seed=1), days(30, seed=2)
    R = T.remember(history)
    with torch.no_grad():
        kappa = R.layers[0].kappa
        getattr(kappa, "of", kappa).log_signal.fill_(np.log(20.0) / 10)
    moved = ExampleSet(today.v, today.u + 2_000)
    error, stale = (
        (R.regress(e)(asked.v) - (asked.u + 2_000)).square().mean() for e in (moved, today)
    )
    assert error < 0.3 * stale


@everywhere_and_near
def test_weights_that_remember_are_saved_and_loaded(tmp_path, compared):
    R = model(compared).float().remember(ExampleSet(days(40).v.float(), days(40).u.float()))
    R.save_pretrained(tmp_path / "w.safetensors")
    examples, asked = ExampleSet(days(5, 1).v.float(), days(5, 1).u.float()), days(3, 2).v.float()
    loaded = Transducer.from_pretrained(str(tmp_path / "w.safetensors"))
    torch.testing.assert_close(loaded.regress(examples)(asked), R.regress(examples)(asked))
    assert not any(p.requires_grad for p in loaded.prior.parameters())


def test_only_a_metric_kernel_remembers():
    T = Transducer(Euclidean(4), Euclidean(4), depth=1, heads=1, width=4, hidden=8)
    with pytest.raises(TransduceError, match="expected one layer with kappa='metric' and no prior"):
        T.remember(ExampleSet(torch.zeros(3, 4), torch.zeros(3, 4)))
