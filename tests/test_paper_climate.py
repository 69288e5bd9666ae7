"""The climate experiment: which years it learns from, that every part measures and shows, and
committed results."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from paper_samples import TINY as SCALES
from paper_samples import forget, write_climate

from paper.climate import setting
from paper.climate.contexts import contexts, remembered
from paper.climate.places import GLOBE, NORTH_PACIFIC, WINTERS
from paper.lab import Lab
from paper.recipes import CHOSEN_ON, KNOWN, LEARNED_FROM, recipe
from transduce import Transducer
from transduce.families import latitude_weighted_mse, load_climate, previous_week
from validation import climate_kernel

RESULTS = Path(__file__).parent.parent / "results" / "climate"
TINY = SCALES["climate"]


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    write_climate(folder)
    return folder


@pytest.fixture(autouse=True)
def small_data(small, monkeypatch):
    monkeypatch.setenv("TRANSDUCE_DATA", str(small))
    forget()
    yield
    forget()


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


def test_the_memory_alone_is_what_a_context_is_added_to(tmp_path):
    T, whole, at = (
        Transducer.from_pretrained(setting.BEST),
        load_climate("europe"),
        np.array([3000]),
    )
    with torch.no_grad():
        for parameter in T.layers[1].kappa.parameters():
            parameter.fill_(-5.0)
    context = setting.days(previous_week(whole, whole.time[3000]))
    found = setting.day_errors(Lab(TINY, tmp_path, "part"), lambda: T, lambda day: context, at)
    assert np.allclose(found, remembered(T, at), rtol=1e-3)


@pytest.mark.results
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
