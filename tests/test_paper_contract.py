"""What every part of every experiment promises, and every committed result. A new part joins by
being in its experiment's PARTS."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from paper_samples import TINY, forget, write_climate, write_images

from paper.experiments import EXPERIMENTS, reproduce
from paper.lab import Lab
from transduce import repository
from transduce.report import markdown_table
from transduce.types import TransduceError

RESULTS = Path(__file__).parent.parent / "results"
PARTS = [(name, part) for name, module in EXPERIMENTS.items() for part in module.PARTS]
each_part = pytest.mark.parametrize(
    ("name", "part"), PARTS, ids=[f"{name}-{part.name}" for name, part in PARTS]
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder for the work of all parts, with small data in the place of the real."""
    data = tmp_path_factory.mktemp("data")
    write_climate(data)
    write_images(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRANSDUCE_DATA", str(data))
        forget()
        yield tmp_path_factory.mktemp("work")
    forget()


def run(name, part, scale, out, folder):
    identities = EXPERIMENTS[name].identities()
    reproduce(name, [part], scale, out, folder / name, identities)
    return json.loads((out / f"{part.name}.json").read_text())


@each_part
def test_a_part_measures_shows_resumes_and_refuses(name, part, folder, tmp_path, monkeypatch):
    result = run(name, part, TINY[name], tmp_path / "first", folder)
    assert result["rows"] and json.loads(json.dumps(result["rows"])) == result["rows"]
    assert result["command"].endswith(f"--only {part.name}")
    assert part.table is None or (tmp_path / "first" / f"{part.name}.md").exists()
    figures = [list((tmp_path / "first").glob(f"*.{kind}")) for kind in ("png", "svg")]
    assert part.draw is None or all(figures)

    kept = Lab.once

    def not_again(lab, compute, **key):
        def measured_again():
            raise AssertionError(f"measured again: {key}")

        return kept(lab, measured_again, **key)

    with monkeypatch.context() as patch:
        patch.setattr(Lab, "once", not_again)
        again = run(name, part, TINY[name], tmp_path / "again", folder)
    assert again["rows"] == result["rows"] and again["settings"] == result["settings"]

    other = replace(TINY[name], seed=1)
    with pytest.raises(TransduceError, match=r"other settings \(seed\)"):
        run(name, part, other, tmp_path / "first", folder)


@pytest.mark.results
@each_part
def test_committed_results_are_full_and_agree(name, part):
    """They hold for the present settings, and their tables are those that the rows give."""
    result = json.loads((RESULTS / name / f"{part.name}.json").read_text())
    experiment = EXPERIMENTS[name]
    assert part.differences(result["settings"], experiment.FULL, experiment.identities()) == []
    if part.table is not None:
        table = markdown_table(part.table(result["rows"]))
        assert (RESULTS / name / f"{part.name}.md").read_text() == table


@pytest.mark.results
@pytest.mark.parametrize("name", ["burgers", "climate", "images"])
def test_every_committed_result_belongs_to_a_part(name):
    known = {part.name for part in EXPERIMENTS[name].PARTS}
    assert {path.stem for path in (RESULTS / name).glob("*.json")} == known


def test_a_field_that_is_new_to_a_scale_was_measured_with_its_default():
    name, part = PARTS[0]
    experiment = EXPERIMENTS[name]
    settings = part.settings(experiment.FULL, experiment.identities())
    older = {key: value for key, value in settings.items() if key != "repeats"}
    now = experiment.identities()
    assert part.differences(older, experiment.FULL, now) == []
    assert part.differences(older, replace(experiment.FULL, repeats=3), now) == ["repeats"]


def test_the_library_knows_the_names_of_the_experiments():
    assert tuple(EXPERIMENTS) == repository.EXPERIMENTS
