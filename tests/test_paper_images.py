"""The image experiment: what training may see and what it may not, that every part measures and
shows, and committed results."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from paper_samples import forget, write_images

from paper.images import setting
from paper.images.calibration import in_bins
from paper.images.parts import Misled
from transduce.families import ComposedImages, LabelledImages, PermutedImages
from transduce.families import image_files as images
from transduce.families.composed_images import placements
from transduce.families.synthetic_images import Draw
from transduce.random_fields import generator_for
from transduce.recipes import IMAGES, recipe
from transduce.types import ExampleSet
from validation.images_rivals import CHOICES

RESULTS = Path(__file__).parent.parent / "results" / "images"


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    write_images(folder)
    return folder


@pytest.fixture(autouse=True)
def small_sets(small, monkeypatch):
    monkeypatch.setenv("TRANSDUCE_DATA", str(small))
    forget()
    yield small
    forget()


@pytest.mark.parametrize("name", ["images", "images-softmax"])
def test_training_reads_the_training_half_of_mnist_and_nothing_else(name, monkeypatch):
    read, kept = [], images.read_idx

    def noted(path):
        read.append("/".join(Path(path).parts[-2:]))
        return kept(path)

    monkeypatch.setattr(images, "read_idx", noted)
    for seed in range(12):
        recipe(name).family.sample_task(20, 10, generator_for("train", seed))
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


@pytest.mark.results
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
