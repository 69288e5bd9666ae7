"""The rivals of climate that see no context: one contract for all, and the truths of each."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from climate_samples import daily, on
from sklearn.gaussian_process.kernels import RBF, Matern

from paper.baselines import INDUCTIVE, Inductive, inductive_baseline
from paper.baselines.inductive import (
    CHOSEN,
    Anomaly,
    Climatology,
    KernelRidgeDays,
    NearestDay,
    RidgeDays,
)
from paper.baselines.vit import Fno2d, ViT
from transduce.baselines import MeanOfExamples, nearest_example
from transduce.families import ClimateFields, latitude_weighted_mse
from transduce.types import ExampleSet, TransduceError
from validation.climate_rivals import ASKED, CHOICES, FITTED

RESULTS = Path(__file__).parent.parent / "results" / "validation"
SMALL = {"steps": 3, "batch": 4}
SMALL_VIT = {"patch": 2, "width": 8, "depth": 1, "heads": 2, **SMALL}
HERE = {
    "climatology": Climatology,
    "nearest-day": lambda: NearestDay(3),
    "ridge": lambda: RidgeDays(1e-3),
    "kernel-ridge": KernelRidgeDays,
    "vit": lambda **options: ViT(**({"positions": True} | SMALL_VIT | options)),
    "vit-without-positions": lambda **options: ViT(**({"positions": False} | SMALL_VIT | options)),
    "vit-positions-removed": lambda **options: ViT(**({"positions": False} | SMALL_VIT | options)),
    "fno": lambda **options: Fno2d(**({"modes": 2, "width": 4, "layers": 1} | SMALL | options)),
}
NETWORKS = "vit", "vit-without-positions", "fno"
every_rival = pytest.mark.parametrize("name", HERE)


def weather(days=60, lat=5, lon=7, seed=0, told=lambda v: 3 * v[:, ::-1]):
    """Smooth fields from 1 January 2001, in kelvin, and what is told from their anomalies, in
    pascal."""
    rng = np.random.default_rng(seed)
    y, x = np.linspace(0, 1, lat), np.linspace(0, 1, lon)
    waves = np.stack([np.cos(np.pi * (i * y[:, None] + j * x)) for i in range(3) for j in range(3)])
    v = np.einsum("nk,kyx->nyx", rng.normal(size=(days, 9)), waves)
    time = np.arange(days).astype("timedelta64[D]") + np.datetime64("2001-01-01T12", "s")
    v, u = ((f + level).astype(np.float32) for f, level in ((v, 280), (100 * told(v), 101_000)))
    return ClimateFields(v, u, time, np.linspace(70, 30, lat), 2.5 * np.arange(lon))


def error(rival, fields):
    """The share of the variance of u that is not told."""
    u = fields.u
    mse = latitude_weighted_mse(rival.answers(fields), u, fields.lat)
    return mse / latitude_weighted_mse(np.broadcast_to(u.mean(0), u.shape), u, fields.lat)


def test_every_inductive_baseline_is_here():
    assert HERE.keys() == INDUCTIVE.keys() == CHOSEN.keys() == CHOICES.keys()
    assert all(type(inductive_baseline(name)) is type(HERE[name]()) for name in HERE)
    with pytest.raises(
        TransduceError, match="no inductive baseline 'lstm'; expected one of climatology"
    ):
        inductive_baseline("lstm")


@every_rival
def test_answers_are_fields_of_the_days_that_were_asked(name):
    fields, asked = weather(), weather(days=9, seed=1)
    rival = HERE[name]()
    assert isinstance(rival, Inductive) and rival.fit(fields) is rival
    u_hat = rival.answers(asked)
    assert u_hat.shape == (9, 5, 7) and u_hat.dtype == np.float32 and np.isfinite(u_hat).all()
    assert np.allclose(rival.answers(asked[4:5]), u_hat[4:5], rtol=1e-6)
    assert np.allclose(u_hat.mean(), 101_000, rtol=0.02)


@every_rival
def test_answers_do_not_look_at_u_of_the_days_that_were_asked(name):
    fields, asked = weather(), weather(days=9, seed=1)
    rival = HERE[name]().fit(fields)
    assert np.array_equal(rival.answers(asked), rival.answers(replace(asked, u=0 * asked.u)))


@every_rival
def test_a_fit_is_repeatable_and_leaves_what_it_came_from_alone(name):
    fields, copy = weather(), weather()
    random = torch.get_rng_state()
    first, second = (HERE[name]().fit(fields).answers(fields) for _ in range(2))
    assert np.array_equal(first, second) and torch.equal(random, torch.get_rng_state())
    assert np.array_equal(fields.v, copy.v) and np.array_equal(fields.u, copy.u)


@every_rival
def test_a_fit_takes_the_place_of_the_one_before(name):
    rival, one, other = HERE[name](), weather(), weather(seed=3)
    assert np.array_equal(
        rival.fit(one).fit(other).answers(one), HERE[name]().fit(other).answers(one)
    )


@every_rival
def test_asked_too_early_or_on_another_grid_a_rival_says_what_to_do(name):
    with pytest.raises(
        TransduceError, match=r"before it was fitted; expected \.fit\(fields\) first"
    ):
        HERE[name]().answers(weather())
    with pytest.raises(TransduceError, match=r"v has shape \(60, 4, 7\).*\(n, 5, 7\)"):
        HERE[name]().fit(weather()).answers(weather(lat=4))


@pytest.mark.parametrize("name", ["ridge", "kernel-ridge"])
def test_ridges_learn_what_is_linear(name):
    assert error(HERE[name]().fit(weather(200)), weather(seed=1)) < 0.01


def test_kernel_ridge_learns_what_is_not_linear():
    fields, asked = (
        weather(days, seed=seed, told=lambda v: np.tanh(v) * v[:, 2:3, 3:4])
        for days, seed in ((800, 0), (60, 1))
    )
    kernel = KernelRidgeDays("matern", width=3.0, alpha=1e-3, linear=0.0, level=1.0)
    assert error(kernel.fit(fields), asked) < 0.6 * error(RidgeDays(0.1).fit(fields), asked)


@pytest.mark.parametrize("name", ["matern", "rbf"])
def test_kernel_ridge_solves_what_it_says(name):
    """u_hat at the days of training is K c, with (K + alpha I) c = u - mean."""
    fields = weather(30)
    rival = KernelRidgeDays(name, width=0.7, alpha=0.1, linear=0.5, level=0.3, per_point=True)
    v, u = (f.reshape(30, -1).astype(float) for f in (fields.v, fields.u))
    a = (v - v.mean(0)) / v.std(0)
    a = (a - a.mean(1, keepdims=True) + 0.3 * a.mean(1, keepdims=True)) / np.sqrt(35)
    K = (Matern(0.7, nu=2.5) if name == "matern" else RBF(0.7))(a) + 0.5 * a @ a.T
    u_hat = u.mean(0) + K @ np.linalg.solve(K + 0.1 * np.eye(30), u - u.mean(0))
    assert np.allclose(rival.fit(fields).answers(fields).reshape(30, -1), u_hat, rtol=1e-6)


def test_a_level_of_zero_forgets_the_mean_of_the_domain():
    fields = weather()
    warmer = replace(fields, v=fields.v + np.float32(5))
    forgetful, mindful = (KernelRidgeDays(level=level).fit(fields) for level in (0.0, 1.0))
    assert np.allclose(forgetful.answers(warmer), forgetful.answers(fields), rtol=1e-6)
    assert not np.allclose(mindful.answers(warmer), mindful.answers(fields), rtol=1e-4)


def test_anomalies_are_in_units_of_their_deviation():
    v = weather(50).v
    for per_point in (True, False):
        assert np.isclose(np.square(Anomaly.of(v, per_point)(v)).sum(1).mean(), 1)


def test_slopes_are_differences_of_neighbours_in_a_unit_of_their_own():
    v = weather(50).v
    with_slopes, without = (
        Anomaly.of(v, per_point=False, slopes=0.5),
        Anomaly.of(v, per_point=False),
    )
    values, slopes = np.split(with_slopes(v), [v[0].size], 1)
    assert np.array_equal(values, without(v)) and np.isclose(np.square(slopes).sum(1).mean(), 0.25)
    assert np.allclose(with_slopes(v + 3)[:, v[0].size :], slopes, atol=1e-6)


def test_the_nearest_day_is_the_one_that_is_asked():
    fields = weather()
    assert np.array_equal(NearestDay(1).fit(fields).answers(fields[7:20]), fields.u[7:20])
    assert np.allclose(NearestDay(60).fit(fields).answers(fields[:3]), fields.u.mean(0), rtol=1e-6)


def test_climatology_is_the_mean_of_the_season():
    """29 February counts as the 28th, and the year is round."""
    fields = daily("2003-01-01", "2006-01-01")  # u is minus the number of the day
    rival = Climatology(window=1).fit(fields)

    def told(*dates):
        return -rival.answers(on(np.array(dates, "datetime64[s]")))[:, 0, 0]

    def mean(*dates):
        return np.mean(
            [(np.datetime64(date) - np.datetime64("2003-01-01")).astype(int) for date in dates]
        )

    june = mean(*(f"{year}-06-{day}" for year in (2003, 2004, 2005) for day in ("14", "15", "16")))
    february = mean(
        *(f"{year}-{day}" for year in (2003, 2004, 2005) for day in ("02-27", "02-28", "03-01")),
        "2004-02-29",
    )
    new_year = mean(
        *(f"{year}-{day}" for year in (2003, 2004, 2005) for day in ("12-31", "01-01", "01-02"))
    )
    assert np.allclose(told("2010-06-15"), june) and np.allclose(
        told("2008-02-29", "2009-02-28"), february
    )
    assert np.allclose(told("2011-01-01T18"), new_year)


def test_climatology_goes_by_the_step_of_its_training():
    months = on(np.arange("1990-01", "1993-01", dtype="datetime64[M]"))
    far_apart = on(np.array(["2001-02-10", "2011-12-20"], "datetime64[s]"))
    assert Climatology(0).fit(months).answers(far_apart)[:, 0, 0].tolist() == [-13, -23]
    assert (
        Climatology(1).fit(months).answers(far_apart)[1, 0, 0]
        == -(22 + 23 + 34 + 0 + 10 + 11 + 12 + 24 + 35) / 9
    )
    years = on(np.arange("1990", "1995", dtype="datetime64[Y]"))
    assert Climatology(0).fit(years).answers(far_apart)[:, 0, 0].tolist() == [-2, -2]


def test_climatology_does_not_tell_of_seasons_that_it_has_not_seen():
    with pytest.raises(
        TransduceError,
        match=r"no time of training is within window=5 of 2001-07-01 in its year.*Widen",
    ):
        Climatology(5).fit(daily("2001-01-01", "2001-03-01")).answers(
            daily("2001-07-01", "2001-07-03")
        )


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_learn(name):
    fields = weather(200, told=lambda v: 3 * np.tanh(v))
    rival = HERE[name](steps=150, batch=32, lr=1e-2)
    assert error(rival.fit(fields), weather(seed=1, told=lambda v: 3 * np.tanh(v))) < 0.3


def test_only_places_tell_patches_apart():
    """Without them, patches that change places change those of the answer."""
    fields = weather(lat=4, lon=4)
    # So that means tell no place.
    level = replace(fields, v=fields.v - fields.v.mean(0), u=fields.u - fields.u.mean(0))
    swapped = replace(level, v=np.roll(level.v, 2, axis=2))
    for name, alike in (("vit", False), ("vit-without-positions", True)):
        rival = HERE[name](steps=20).fit(level)
        assert (
            np.allclose(rival.answers(swapped), np.roll(rival.answers(level), 2, axis=2), atol=0.5)
            == alike
        )


def test_the_error_of_a_network_counts_by_area():
    """Patches that it cannot tell apart have one answer, which leans to the row of the greater
    area."""
    sign = np.where(np.arange(60) % 2, 1, -1).astype(np.float32)[:, None, None]
    v, u = (
        sign * np.ones((2, 2), np.float32),
        sign * np.array([[1], [-1]], np.float32) * np.ones((2, 2), np.float32),
    )
    fields = replace(daily("2001-01-01", "2001-03-02"), v=v, u=u, lat=np.array([80.0, 0.0]))
    north, equator = np.cos(np.deg2rad(fields.lat))
    rival = HERE["vit-without-positions"](patch=1, dropout=0.0, steps=150, lr=1e-2)
    assert np.allclose(
        rival.fit(fields).answers(fields), sign * (north - equator) / (north + equator), atol=0.05
    )


@pytest.mark.parametrize("name", NETWORKS)
def test_parameters_are_counted(name):
    rival = HERE[name]()
    with pytest.raises(TransduceError, match=r"before it was fitted"):
        _ = rival.parameters
    assert rival.fit(weather()).parameters == sum(
        p.numel() * (1 + p.is_complex()) for p in rival._network.parameters()
    )


@pytest.mark.parametrize("asked", [1, 5_000, 150_000])
def test_a_vit_comes_in_the_size_of_another_model(asked):
    """No other width is nearer."""
    rival, fields = ViT(positions=True, heads=2, **SMALL).of_size(asked, (5, 7)), weather()
    widths = [width for width in (rival.width - 2, rival.width, rival.width + 2) if width > 0]
    sizes = {width: replace(rival, width=width).fit(fields).parameters for width in widths}
    assert min(sizes, key=lambda width: abs(sizes[width] - asked)) == rival.width


def test_context_alone():
    """The mean of the examples, and the one whose v is nearest."""
    fields = weather()
    examples, v = ExampleSet(fields.v[:15], fields.u[:15]), fields.v[15:]
    nearest = np.linalg.norm((v[:, None] - fields.v[:15]).reshape(45, 15, -1), axis=-1).argmin(1)
    assert np.allclose(nearest_example().regress(examples)(v), fields.u[nearest])
    assert np.allclose(MeanOfExamples().regress(examples)(v), fields.u[:15].mean(0))


@pytest.mark.results
def test_rivals_have_the_settings_that_did_best():
    """On years that no test is of."""
    assert FITTED.stop < ASKED.start and ASKED.stop == "2006"
    rows = json.loads((RESULTS / "climate_rivals.json").read_text())["rows"]
    for name, choices in CHOICES.items():
        errors = [row["error"] for row in rows if row["rival"] == name]
        assert len(errors) == len(choices) and CHOSEN[name] == choices[int(np.argmin(errors))]
