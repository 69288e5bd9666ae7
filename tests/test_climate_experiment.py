"""The climate experiment: which years it learns from, that every part measures and shows, and
committed results."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import xarray as xr

from transduce import Transducer
from transduce.experiments import reproduce
from transduce.experiments.climate import FULL, PARTS, QUICK, identities, places, setting
from transduce.experiments.climate.contexts import contexts, remembered
from transduce.experiments.climate.places import GLOBE, NORTH_PACIFIC, WINTERS
from transduce.experiments.lab import Lab
from transduce.families import climate_data, latitude_weighted_mse, load_climate, previous_week
from transduce.recipes import CHOSEN_ON, KNOWN, LEARNED_FROM, recipe
from transduce.report import markdown_table
from validation import climate_kernel

RESULTS = Path(__file__).parent.parent / "results" / "climate"
TINY = replace(QUICK, every=200, curve_every=700, lags=(7,))


def write(folder, file, time, lat, lon, names):
    """Fields with a season, weather of a few modes, and pressure that follows from temperature."""
    generator = np.random.default_rng(0)
    modes = generator.normal(size=(4, len(lat), len(lon)))
    season = 8 * np.sin(2 * np.pi * np.arange(len(time)) / 365.25)[:, None, None]
    t = 280 + season + np.einsum("tk,kyx->tyx", generator.normal(size=(len(time), 4)), modes)
    p = 101_000 + 50 * (t - 280) + 300 * np.roll(t - 280, 1, 2)
    step = "year" if np.issubdtype(np.asarray(time).dtype, np.integer) else "time"
    every = {
        "t": ((step, "lat", "lon"), t, {"units": "K"}),
        "msl": ((step, "lat", "lon"), p, {"units": "Pa"}),
    }
    every |= {"slp": every["msl"], "slp_eof20": every["msl"]}
    data = xr.Dataset({name: every[name] for name in names}, {step: time, "lat": lat, "lon": lon})
    data.astype(np.float32).to_netcdf(folder / "climate" / file)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Files of every reanalysis under their own names and over their own years, on small grids but
    that of Europe."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "climate").mkdir()
    days = np.arange("2000-01-01", "2011-01-01", dtype="datetime64[D]").astype("datetime64[ns]")
    europe = 55 - 2.5 * np.arange(11), -15 + 2.5 * np.arange(13)
    for file, name in zip(climate_data.FILES["europe"], ("t", "msl"), strict=True):
        write(folder, file, days, *europe, [name])
    grid = 80 - 20.0 * np.arange(9), 30.0 * np.arange(12)
    for name, first, last, pressure in (
        ("north-pacific", "1948-01", "2025-07", "slp"),
        ("globe", "1948-01", "2013-04", "slp_eof20"),
    ):
        months = np.arange(first, last, dtype="datetime64[M]").astype("datetime64[ns]")
        write(folder, climate_data.FILES[name][0], months, *grid, ["t", pressure])
    write(folder, climate_data.FILES["winters"][0], np.arange(1949, 2011), *grid, ["t", "slp"])
    return folder


def forget():
    for cached in (load_climate, climate_data._period, setting.rival, places.tuned):
        cached.cache_clear()


@pytest.fixture(autouse=True)
def small_data(small, monkeypatch):
    monkeypatch.setenv("TRANSDUCE_DATA", str(small))
    forget()
    yield
    forget()


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    return tmp_path_factory.mktemp("work")


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_every_part_measures_and_shows(part, work, tmp_path):
    reproduce("climate", [part], TINY, tmp_path, work, identities())
    assert json.loads((tmp_path / f"{part.name}.json").read_text())["rows"]
    assert part.table is None or (tmp_path / f"{part.name}.md").exists()
    assert part.draw is None or (list(tmp_path.glob("*.png")) and list(tmp_path.glob("*.svg")))


def test_years_of_test_come_after_all_that_is_learned_from():
    how = recipe("climate-europe")
    assert how.family.fields == CHOSEN_ON and how.remembering.known == LEARNED_FROM
    used = [
        LEARNED_FROM,
        CHOSEN_ON,
        KNOWN,
        how.remembering.known,
        how.remembering.kept,
        setting.WINDOWS.fields,
    ]
    assert max(period.fields.time[-1] for period in used) < setting.TEST.fields.time[0]
    for place in (NORTH_PACIFIC, WINTERS, GLOBE):
        learned, chosen, test = (
            place.period(years).fields.time for years in (place.learned, place.chosen, place.test)
        )
        assert (
            learned[-1] < chosen[0]
            and chosen[-1] < test[0]
            and place.kept.fields.time[-1] == chosen[-1]
        )


def test_a_context_ends_before_the_day_that_is_asked_about(tmp_path):
    lab, whole = Lab(TINY, tmp_path), load_climate("europe")
    day = int(setting.asked(lab)[0])
    for name, context in contexts(lab).items():
        examples = context(day)
        assert len(examples) == TINY.n
        if name != "mean only":
            when = [int(np.flatnonzero((whole.v == v).all((1, 2)))[0]) for v in examples.v.numpy()]
            assert max(when) <= day - 7
            own = all(
                np.array_equal(u, whole.u[i]) for u, i in zip(examples.u.numpy(), when, strict=True)
            )
            assert own == (name != "pairs mixed up")


def test_errors_are_latitude_weighted_and_in_hectopascal():
    whole = load_climate("europe")[:5]
    errors = setting.square_errors(
        whole.u + 200 * np.random.default_rng(0).normal(size=whole.u.shape), whole.u, whole.lat
    )
    u_hat = whole.u + 200 * np.random.default_rng(0).normal(size=whole.u.shape)
    assert np.isclose(errors.mean(), latitude_weighted_mse(u_hat, whole.u, whole.lat) / 1e4)


def test_the_memory_alone_is_what_a_context_is_added_to():
    T, whole, at = (
        Transducer.from_pretrained(setting.BEST),
        load_climate("europe"),
        np.array([3000]),
    )
    with torch.no_grad():
        for parameter in T.layers[0].kappa.parameters():
            parameter.fill_(-5.0)
    context = setting.days(previous_week(whole, whole.time[3000]))
    assert np.allclose(setting.in_context(T, lambda day: context, at), remembered(T, at), rtol=1e-3)


def test_no_other_choice_of_the_kernel_is_worth_much():
    """As committed, on the years that it was chosen on: whole fields, or no slopes, are far worse,
    and nothing is far better."""
    result = json.loads((RESULTS.parent / "validation" / "climate_kernel.json").read_text())
    errors = {row["what"]: row["error"] for row in result["rows"]}
    assert result["chosen"] == climate_kernel.CHOSEN and len(errors) == len(climate_kernel.CHOICES)
    ours = errors["as it is"]
    assert (
        min(errors.values()) > ours - 0.2
        and errors["reach = 0"] > ours + 0.5
        and errors["slopes = 0"] > ours + 2
    )


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_committed_results_are_full_and_agree(part):
    """The full settings, and the table that the rows give."""
    result = json.loads((RESULTS / f"{part.name}.json").read_text())
    assert part.differences(result["settings"], FULL, identities()) == []
    if part.table is not None:
        assert (RESULTS / f"{part.name}.md").read_text() == markdown_table(
            part.table(result["rows"])
        )
