"""The image experiment: what training may see and what it may not, that every part measures and
shows, and committed results."""

import gzip
import json
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from transduce.experiments import reproduce
from transduce.experiments.images import FULL, PARTS, QUICK, identities, setting
from transduce.experiments.images.calibration import in_bins
from transduce.experiments.images.parts import Misled
from transduce.families import ComposedImages, LabelledImages, PermutedImages
from transduce.families import image_files as images
from transduce.families.composed_images import placements
from transduce.families.synthetic_images import Draw
from transduce.random_fields import generator_for
from transduce.recipes import IMAGES, RECIPES
from transduce.report import markdown_table
from transduce.types import ExampleSet
from validation.images_rivals import CHOICES

RESULTS = Path(__file__).parent.parent / "results" / "images"
TINY = replace(
    QUICK, n=12, queries=6, sizes=(12,), tasks=2, rival_tasks=2, curve_tasks=2, few_tasks=2, steps=1
)


def write_idx(path, array):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(
        gzip.compress(
            struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
            + array.astype(np.uint8).tobytes()
        )
    )


@pytest.fixture(autouse=True)
def small_sets(tmp_path_factory, monkeypatch):
    """Every set, as few images as tasks need: digits of scikit-learn, enlarged."""
    from sklearn.datasets import load_digits

    folder, digits = tmp_path_factory.mktemp("data"), load_digits()
    pixels = images.resized(digits.data / 16).clip(0, 1).reshape(-1, 28, 28) * 255
    for name, split in [*((name, "test") for name in setting.SETS), ("mnist", "train")]:
        half = slice(0, 1200) if split == "test" else slice(1200, None)
        for file, array in zip(images.FILES[split], (pixels, digits.target), strict=True):
            write_idx(folder / name / file, array[half])
    monkeypatch.setenv("TRANSDUCE_DATA", str(folder))
    images.training_half.cache_clear()
    setting.images_of.cache_clear()
    yield folder
    images.training_half.cache_clear()
    setting.images_of.cache_clear()


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    return tmp_path_factory.mktemp("work")


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_every_part_measures_and_shows(part, work, tmp_path):
    reproduce("images", [part], TINY, tmp_path, work, identities())
    assert json.loads((tmp_path / f"{part.name}.json").read_text())["rows"]
    assert part.table is None or (tmp_path / f"{part.name}.md").exists()
    assert part.draw is None or (list(tmp_path.glob("*.png")) and list(tmp_path.glob("*.svg")))


@pytest.mark.parametrize("name", ["images", "images-softmax"])
def test_training_reads_the_training_half_of_mnist_and_nothing_else(name, monkeypatch):
    read, kept = [], images.read_idx

    def noted(path):
        read.append("/".join(Path(path).parts[-2:]))
        return kept(path)

    monkeypatch.setattr(images, "read_idx", noted)
    for seed in range(12):
        RECIPES[name].family.sample_task(20, 10, generator_for("train", seed))
    assert set(read) == {f"mnist/{file}" for file in images.FILES["train"]}


def test_no_piece_stands_upright():
    """Every placement turns the second axis, which no mirror changes, by an eighth or more."""
    x, y = placements((200, 3), Draw(generator_for("train", 0)))[..., 1].unbind(-1)
    angle = (torch.atan2(y, x) - torch.pi / 2).remainder(2 * torch.pi)
    assert angle.min() > torch.pi / 4 - 1e-5 and angle.max() < 7 * torch.pi / 4 + 1e-5


def test_no_permuted_image_is_seen_as_it_is():
    """Images of no symmetry at all, so that none can come back by a turn."""
    pixels = torch.randint(256, (60, 784), dtype=torch.uint8, generator=generator_for("train", 0))
    data = LabelledImages(pixels, torch.arange(60) % 10)
    known = data.images.float() / 255
    for seed in range(20):
        v = PermutedImages(data).sample_task(20, 10, generator_for("train", seed)).examples.v
        assert torch.cdist(v, known).min() > 3


def test_the_mixture_holds_every_family():
    assert {type(part).__name__ for part in IMAGES.families} == {
        "PermutedImages",
        "SyntheticImages",
        "ComposedImages",
    }


def test_tests_are_of_the_other_half_as_it_is(small_sets):
    task = setting.task_of("mnist", 10, 5, 0, 3)
    test = images.load_images("mnist", "test")
    for v, u in ((task.examples.v, task.examples.u), (task.queries.v, task.queries.u)):
        match = (v[:, None] * 255).round() == test.images[None]
        found = match.all(2)
        assert found.any(1).all() and all(
            int(test.labels[f].unique()) == int(c) for f, c in zip(found, u.argmax(1), strict=True)
        )


def test_composed_classes_are_alike_and_classes_permuted():
    """Images of a class are nearer to one another than to those of others."""
    task = ComposedImages("mnist").sample_task(200, 1, generator_for("train", 3))
    y, d = task.examples.u.argmax(1), torch.cdist(task.examples.v, task.examples.v)
    same = (y[:, None] == y) & ~torch.eye(200, dtype=torch.bool)
    assert d[same].mean() < 0.95 * d[y[:, None] != y].mean()
    assert task.examples.v.min() >= 0 and task.examples.v.max() <= 1 and len(y.unique()) == 10


def test_wrong_classes_are_told():
    class Kept:
        def regress(self, examples):
            return examples

    u = torch.eye(10)[[0, 9, 4]]
    assert Misled(Kept()).regress(ExampleSet(torch.rand(3, 784), u)).u.argmax(1).tolist() == [
        1,
        0,
        5,
    ]


def test_bins_hold_all_answers():
    sure, right = np.array([0.1, 0.95, 1.0, 0.97]), np.array([0, 1, 1, 0])
    bins = in_bins(sure, right)
    assert bins[0] == [0.1, 0.0, 0.25] and bins[-1][1:] == [round(2 / 3, 5), 0.75]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_committed_results_are_full_and_agree(part):
    """The full settings, and the table that the rows give."""
    result = json.loads((RESULTS / f"{part.name}.json").read_text())
    assert part.differences(result["settings"], FULL, identities()) == []
    if part.table is not None:
        assert (RESULTS / f"{part.name}.md").read_text() == markdown_table(
            part.table(result["rows"])
        )


def test_rivals_have_the_choices_that_did_best():
    rows = json.loads((RESULTS.parent / "validation" / "images_rivals.json").read_text())["rows"]
    for name, choices in CHOICES.items():
        errors = [row["error"] for row in rows if row["rival"] == name]
        best = choices[int(np.argmin(errors))]
        told = setting.META[name]["training"] | setting.META[name]["model"]["options"]
        assert (
            len(errors) == len(choices)
            and {key: value for key, value in told.items() if key != "steps"} == best
        )
