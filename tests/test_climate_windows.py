"""Climate in time and on the globe: windows, tasks, other grids, errors by area."""

import numpy as np
import pytest
import torch
import xarray as xr
from climate_samples import daily, days, on, real, same

from transduce import OperatorFamily, TransduceError
from transduce.families import (
    ClimateFields,
    ClimateHistory,
    ClimateWindows,
    Period,
    load_climate,
    open_climate,
    previous_week,
    previous_year,
    regridded,
)
from transduce.families.climate import latitude_weighted_mse, latitude_weights
from transduce.random_fields import generator_for


def test_the_week_before_ends_a_lag_before_the_date():
    fields = daily("2007-01-01", "2010-01-01")
    assert days(fields, previous_week(fields, "2008-03-10")) == [
        str(d) for d in np.arange("2008-02-18", "2008-03-04", dtype="datetime64[D]")
    ]
    # A date that is not in it.
    assert days(fields, previous_week(fields, "2010-01-03T18", n=2, lag=4)) == [
        "2009-12-29",
        "2009-12-30",
    ]


def test_the_year_before_is_centred_on_the_same_date():
    fields = daily("2006-01-01", "2010-01-01")
    for date, centre in (
        ("2007-06-15", "2006-06-15"),
        ("2008-02-29", "2007-02-28"),
        ("2008-03-01", "2007-03-01"),
        ("2009-03-01", "2008-03-01"),
    ):
        expected = [str(np.datetime64(centre) + k) for k in range(-7, 8)]
        assert days(fields, previous_year(fields, date)) == expected
    assert "2008-02-29" in days(fields, previous_year(fields, "2009-02-28"))


@pytest.mark.parametrize("seed", range(20))
def test_windows_hold_n_steps_none_nearer_than_the_lag(seed):
    """Whatever is missing: n distinct steps in order, all of them before the date by the lag or
    more, and the nearest that there are."""
    rng = np.random.default_rng(seed)
    every = np.arange("2000-01-01", "2004-01-01", dtype="datetime64[D]")
    fields = daily("2000-01-01", "2004-01-01", drop=rng.choice(every, 200, replace=False))
    date, n, lag = (
        every[rng.integers(500, len(every))],
        int(rng.integers(1, 20)),
        int(rng.integers(1, 10)),
    )
    present = fields.time.astype("datetime64[D]")
    week, year = previous_week(fields, date, n, lag), previous_year(fields, date, n)
    assert present[week].tolist() == present[present <= date - lag][-n:].tolist()
    assert len(set(year)) == n and (np.diff(year) > 0).all() and (present[year] < date).all()
    distance = np.abs(present - (date - 365)).astype(int)
    assert distance[year].max() <= np.sort(distance)[n - 1] + 1  # 365 or 366 days


def test_windows_go_by_the_step_of_the_data():
    months = on(np.arange("1990-01", "2000-01", dtype="datetime64[M]"))
    chosen = months.time[previous_year(months, "1995-02-14", n=5)]
    assert chosen.astype("datetime64[M]").astype(str).tolist() == [
        "1993-12", "1994-01", "1994-02", "1994-03", "1994-04",
    ]  # fmt: skip
    assert months.time[previous_week(months, "1995-02", n=2, lag=1)].astype("datetime64[M]").astype(
        str
    ).tolist() == ["1994-12", "1995-01"]
    # A long one stops before the date.
    assert months.said(months.time[previous_year(months, "1995-02", n=30)[-1]]) == "1995-01"
    years = on(np.arange("1990", "2010", dtype="datetime64[Y]"))
    assert years.time[previous_year(years, "2005", n=3)].astype("datetime64[Y]").astype(
        str
    ).tolist() == ["2002", "2003", "2004"]
    assert years.time[previous_week(years, "2005", n=2, lag=2)].astype("datetime64[Y]").astype(
        str
    ).tolist() == ["2002", "2003"]


def test_windows_that_are_not_there():
    fields = daily("2001-01-01", "2003-01-01")
    for ask, said in (
        (
            lambda: previous_year(fields, "2001-06-01"),
            "0 steps from 2000-05-02 to 2000-07-01 are there to tell 2001-06-01 from",
        ),
        (
            lambda: previous_week(fields, "2001-01-10"),
            "3 steps from 2000-12-04 to 2001-01-03 .*; expected n = 15",
        ),
        (
            lambda: previous_week(fields, "2004-01-01"),
            "The fields are from 2001-01-01 to 2002-12-31: choose another date",
        ),
        (lambda: previous_week(fields, "2002-01-01", n=0), "n=0; expected at least 1"),
        (lambda: previous_year(fields, "2002-01-01", n=0), "n=0; expected at least 1"),
        (lambda: previous_week(fields, "2002-01-01", lag=0), "lag=0; expected 1 or more"),
        (lambda: previous_year(fields, "yesterday"), "'yesterday' is not a date"),
    ):
        with pytest.raises(TransduceError, match=said):
            ask()


def test_tasks_are_distinct_steps_of_one_window():
    fields = daily("2001-01-01", "2001-04-01", drop=["2001-02-10"])
    family = ClimateWindows(fields)
    assert isinstance(family, OperatorFamily)
    spans, last = set(), 40
    for seed in range(200):
        task = family.sample_task(15, 5, generator_for("train", seed))
        assert (
            task.examples.v.shape == (15, 2, 2)
            and task.queries.u.shape == (5, 2, 2)
            and task.examples.v.dtype == torch.float32
        )
        assert torch.equal(task.examples.u, -task.examples.v)
        steps = sorted(torch.cat([task.examples.v, task.queries.v])[:, 0, 0].int().tolist())
        # None across the gap.
        assert steps == list(range(steps[0], steps[0] + 20)) and (steps[-1] < last) == (
            steps[0] < last
        )
        spans.add(steps[0])
    assert spans == {*range(21), *range(40, 70)}  # all of those that there are
    assert len(family.sample_task(3, 1, generator_for("train", 0)).examples) == 3


def test_queries_are_anywhere_in_the_window():
    family = ClimateWindows(daily("2001-01-01", "2001-01-21"))
    places = torch.cat(
        [
            family.sample_task(15, 5, generator_for("train", seed)).queries.v[:, 0, 0]
            for seed in range(200)
        ]
    )
    assert sorted(places.unique().int().tolist()) == list(range(20)) and 9 < places.mean() < 10


def test_windows_that_cannot_be_drawn():
    fields = daily("2001-01-01", "2001-02-01", drop=["2001-01-15"])
    for window in (1, 20, 40):
        with pytest.raises(
            TransduceError, match=f"window={window}, lag=0, of 30 steps with 1 gaps"
        ):
            ClimateWindows(fields, window)
    with pytest.raises(
        TransduceError, match="6 examples and 5 queries were asked of a window of 10 steps"
    ):
        ClimateWindows(fields, 10).sample_task(6, 5, generator_for("train", 0))


def bilinear(lat, lon):
    """A function that bilinear interpolation leaves exact, as fields at one time."""
    values = 280 + 0.5 * lat[:, None] - 0.25 * lon + 0.01 * lat[:, None] * lon
    time = np.array(["2001-01-01"], dtype="datetime64[s]")
    return ClimateFields(
        values[None].astype(np.float32), -values[None].astype(np.float32), time, lat, lon
    )


def test_regridding_is_exact_for_bilinear_functions():
    lat, lon = np.array([60.0, 58.0, 51.0, 50.0]), np.array([-20.0, -15.0, -14.0, 3.0])
    fine = regridded(bilinear(lat, lon), np.linspace(50, 60, 23), np.linspace(-20, 3, 37))
    assert same(fine, bilinear(np.linspace(60, 50, 23), np.linspace(-20, 3, 37)))
    # On its own grid, given in another form.
    assert same(regridded(fine, fine.lat[::-1], fine.lon + 360), fine)


def test_regridding_goes_round_the_globe():
    lat, lon = np.array([90.0, 0.0, -90.0]), np.arange(-180, 180, 10.0)
    time = np.array(["2001-01-01"], dtype="datetime64[s]")
    # Linear on both sides of the date line.
    values = np.broadcast_to(np.abs(lon), (1, 3, 36)).astype(np.float32)
    coarse = ClimateFields(values, values, time, lat, lon)
    fine = regridded(coarse, [45.0, -45.0], np.arange(0, 360, 2.5))
    assert (
        fine.v.shape == (1, 2, 144)
        and np.allclose(fine.v, np.abs(fine.lon), atol=1e-4)
        and fine.lon[0] == -180
    )
    with pytest.raises(
        TransduceError,
        match=r"latitude 91 \(1 of 2\) is outside of the fields, which reach from -90 to 90",
    ):
        regridded(coarse, [91.0, 0.0], [0.0, 1.0])


def test_regridding_does_not_extrapolate():
    fields = bilinear(np.array([60.0, 50.0]), np.array([-20.0, 0.0]))
    for lat, lon, said in (
        ([61.0, 55.0], [-5.0, -1.0], "latitude 61"),
        ([55.0, 52.0], [-5.0, 5.0], "longitude 5 .*from -20 to 0"),
    ):
        with pytest.raises(TransduceError, match=said):
            regridded(fields, lat, lon)


def test_latitudes_count_by_area():
    lat = np.linspace(90, -90, 181)
    weights = latitude_weights(lat)
    assert (
        weights.mean() == pytest.approx(1)
        and weights[0] == pytest.approx(0, abs=1e-12)
        and weights.argmax() == 90
    )
    errors = np.zeros((2, 181, 8))
    errors[:, np.abs(lat) <= 30] = 1
    # Half of the globe.
    assert latitude_weighted_mse(errors, 0 * errors, lat) == pytest.approx(0.5, abs=0.01)
    u = torch.from_numpy(errors).requires_grad_()
    latitude_weighted_mse(u, torch.zeros_like(u), lat).backward()
    assert torch.allclose(u.grad, 2 * u * torch.from_numpy(weights)[:, None] / u.numel())
    there = xr.DataArray(errors, dims=["time", "lat", "lon"])
    assert latitude_weighted_mse(there, 0 * errors, lat) == latitude_weighted_mse(
        errors, 0 * errors, lat
    )
    with pytest.raises(TransduceError, match="there are 3 latitudes; expected"):
        latitude_weighted_mse(errors, errors, [1, 2, 3])


def test_european_days_give_the_known_errors_of_their_context():
    """The mean of the 15 context days: 78.4 hPa^2 for the week before; 84.3 for 365 days before,
    83.9 for the same date a year before."""
    fields = open_climate(*real("eraint_europe_daily_t850.nc", "eraint_europe_daily_mslp.nc"))
    assert (
        repr(fields)
        == "ClimateFields(t -> msl, 4018 steps of 1 D from 2000-01-01 to 2010-12-31, 11 x 13)"
        and fields.gaps() == []
    )
    test = fields.select(slice("2007", "2010"))
    for window, error in ((previous_week, 78.39), (previous_year, 83.89)):
        mean = np.stack([fields.u[window(fields, date)].mean(0) for date in test.time])
        assert latitude_weighted_mse(mean / 100, test.u / 100, fields.lat) == pytest.approx(
            error, abs=0.01
        )


def test_queries_may_follow_the_examples_after_a_lag():
    fields = daily("2001-01-01", "2001-02-01")
    task = ClimateWindows(fields, window=12, lag=4).sample_task(
        5, 3, torch.Generator().manual_seed(0)
    )
    when = [
        int(np.flatnonzero((fields.v == v).all((1, 2)))[0])
        for v in [*task.examples.v.numpy(), *task.queries.v.numpy()]
    ]
    first = when[5]
    assert when[5:] == [first, first + 1, first + 2] and when[:5] == [
        first - 4 - i for i in range(5)
    ]
    with pytest.raises(
        TransduceError,
        match="5 examples and 3 queries, 6 steps apart, were asked of a window of 12 steps",
    ):
        ClimateWindows(fields, window=12, lag=6).sample_task(5, 3, torch.Generator())


def test_queries_of_a_history_are_in_blocks_that_no_example_is_from(monkeypatch):
    fields = daily("2001-01-01", "2001-12-31")
    monkeypatch.setattr("transduce.families.climate_data.load_climate", lambda name: fields)
    history = ClimateHistory(Period("of this test", "2001", "2001"), block=10)
    task = history.sample_task(200, 50, torch.Generator().manual_seed(0))
    queries, examples = (
        [int(np.flatnonzero((fields.v == v).all((1, 2)))[0]) for v in e.v.numpy()]
        for e in (task.queries, task.examples)
    )
    assert not set(queries) & set(examples) and len(set(examples)) == 200
    assert all(np.diff(queries[i : i + 10]).tolist() == [1] * 9 for i in range(0, 50, 10))
    with pytest.raises(
        TransduceError, match="400 examples and 50 queries in blocks of 10 were asked of 364 steps"
    ):
        history.sample_task(400, 50, torch.Generator())
    later = ClimateHistory(
        Period("of this test", "2001-01", "2001-06"),
        Period("of this test", "2001-07", "2001-12"),
        10,
    )
    task = later.sample_task(100, 20, torch.Generator().manual_seed(0))
    assert (
        max(np.flatnonzero((fields.v == v).all((1, 2)))[0] for v in task.examples.v.numpy()) < 181
    )
    assert (
        min(np.flatnonzero((fields.v == v).all((1, 2)))[0] for v in task.queries.v.numpy()) >= 181
    )


def test_climate_fields_that_are_not_there(monkeypatch, tmp_path):
    monkeypatch.setenv("TRANSDUCE_DATA", str(tmp_path))
    monkeypatch.setattr("transduce.files.source_checkout", lambda: tmp_path / "checkout")
    load_climate.cache_clear()
    with pytest.raises(
        TransduceError,
        match=r"eraint_europe_daily_t850.nc and .* are not in .*climate or .* set TRANSDUCE_DATA",
    ):
        load_climate("europe")
    with pytest.raises(TransduceError, match="no climate fields are called 'mars'; known: europe"):
        load_climate("mars")
