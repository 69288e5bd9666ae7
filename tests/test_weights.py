"""Bundled weights: each predicts what it predicted when it was bundled, and a damaged file says so.

`python tests/test_weights.py` freezes the predictions of each bundled file again.
"""

import json
import shutil
from pathlib import Path

import pytest
import torch

from transduce import ExampleSet, TransduceError, Transducer, weights
from transduce.families import AdvectionDiffusionReaction, Burgers2d, SyntheticImages
from transduce.metrics import relative_mse
from transduce.random_fields import generator_for
from transduce.spaces import Region
from transduce.types import Task

FROZEN = Path(__file__).parent / "frozen"
BUNDLED = weights.names()
MISLED = {
    "burgers-softmax": 0.3,
    "images": 0.3,
    "images-softmax": 0.4,
    "climate-europe": 0.7,
}  # at most so much of a misled one's error


class Weather:
    """Days about the mean of climate-europe, on which pressure is its mean and a field of the
    task's own: no data is needed."""

    def sample_task(self, n, m, generator):
        T = Transducer.from_pretrained("climate-europe")
        v = T.V.mean + T.V.unit * torch.randn(n + m, 1, 1, generator=generator) * torch.linspace(
            0.5, 1, 13
        )
        u = (T.U.mean + 3000 * torch.randn(11, 1, generator=generator)).expand(n + m, -1, -1)
        return Task(ExampleSet(v[:n], u[:n]), ExampleSet(v[n:], u[n:]))


def family_of(name):
    known = {
        "burgers": Burgers2d(amplitude=0.3),
        "burgers-softmax": Burgers2d(amplitude=0.1),
        "climate-europe": Weather(),
    }
    return (
        SyntheticImages()
        if name.startswith("images")
        else known.get(name, AdvectionDiffusionReaction())
    )


def predictions(name):
    """On one task, every tenth point along each axis, in double precision; of classes, all."""
    T, given = (
        Transducer.from_pretrained(name).double(),
        family_of(name).sample_task(30, 3, generator_for("validation", 99)),
    )
    u = T.regress(ExampleSet(given.examples.v.double(), given.examples.u.double()))(
        given.queries.v.double()
    )
    return u if u.shape[1] == 10 else u[:, ::10] if u.ndim == 2 else u[..., ::10, ::10]


@pytest.mark.parametrize("name", BUNDLED)
def test_predictions_are_the_frozen_ones(name):
    frozen = torch.tensor(json.loads((FROZEN / f"{name}.json").read_text()), dtype=torch.float64)
    torch.testing.assert_close(predictions(name), frozen, rtol=1e-9, atol=1e-6)


@pytest.mark.parametrize("name", BUNDLED)
def test_the_card_says_how_it_was_made(name):
    _, card = weights.load(name)
    assert {"model", "recipe", "validation_error", "versions", "commit", "machine"} <= card.keys()
    assert card["recipe"]["name"] == name
    assert "seed" in card["recipe"]["training"]
    assert (weights.PRETRAINED / f"{name}.safetensors").stat().st_size < 40e6


@pytest.mark.parametrize("name", BUNDLED)
def test_a_wrong_context_is_worse(name):
    """The model uses its examples: those of another operator mislead it."""
    T = Transducer.from_pretrained(name)
    right, wrong = (
        family_of(name).sample_task(50, 20, generator_for("validation", 98, i)) for i in (0, 1)
    )
    unit = right.queries.u - T.U.mean if isinstance(T.U, Region) else right.queries.u
    answers = (T.regress(given.examples)(right.queries.v) for given in (right, wrong))
    error, misled = (relative_mse(u_hat - right.queries.u + unit, unit) for u_hat in answers)
    assert error < MISLED.get(name, 0.1) * misled


@pytest.fixture
def copied(tmp_path, monkeypatch):
    shutil.copytree(weights.PRETRAINED, tmp_path / "pretrained")
    monkeypatch.setattr(weights, "PRETRAINED", tmp_path / "pretrained")
    return tmp_path / "pretrained"


def test_a_damaged_file_fails_its_checksum(copied):
    file = copied / "adr-softmax.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(TransduceError, match="do not match their checksum"):
        weights.load("adr-softmax")
    file.unlink()
    with pytest.raises(TransduceError, match="do not match their checksum"):
        weights.load("adr-softmax")


def test_a_bundled_file_may_be_of_half_precision(copied, tmp_path):
    T = Transducer.from_pretrained("adr-softmax")
    T.save_pretrained(tmp_path / "halved.safetensors")
    weights.bundle(tmp_path / "halved.safetensors", half=True)
    assert (copied / "halved.safetensors").stat().st_size < 0.51 * (
        tmp_path / "halved.safetensors"
    ).stat().st_size
    halved = Transducer.from_pretrained("halved")
    assert halved.spread.dtype == torch.float32 and "halved" in weights.names()
    for name, parameter in T.named_parameters():
        torch.testing.assert_close(
            halved.get_parameter(name), parameter.detach(), rtol=1e-3, atol=1e-6
        )


def test_bad_files_and_names(tmp_path):
    with pytest.raises(
        TransduceError, match="no model is called 'adrr'; known: adr, adr-softmax, burgers"
    ):
        weights.load("adrr")
    with pytest.raises(TransduceError, match="there is no file"):
        weights.load(tmp_path / "none.safetensors")
    path = tmp_path / "bad.safetensors"
    for content in (
        b"",
        b"hello",
        (weights.PRETRAINED / "adr-softmax.safetensors").read_bytes()[:5000],
    ):
        path.write_bytes(content)
        with pytest.raises(TransduceError, match="not a safetensors file, or is truncated"):
            weights.load(path)
    from safetensors.torch import save_file

    save_file({"a": torch.zeros(1)}, path)
    with pytest.raises(TransduceError, match="no transduce model card"):
        weights.load(path)


def test_tensors_that_do_not_fit_the_card(tmp_path):
    tensors, card = weights.load("adr")
    weights.save(tmp_path / "odd.safetensors", {**tensors, "extra": torch.zeros(1)}, card)
    with pytest.raises(TransduceError, match="not those of the model on its card"):
        Transducer.from_pretrained(str(tmp_path / "odd.safetensors"))


def test_an_unwritable_folder(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(TransduceError, match="could not be written"):
        weights.save(tmp_path / "file" / "w.safetensors", {}, {"model": {}})


if __name__ == "__main__":
    FROZEN.mkdir(exist_ok=True)
    for name in BUNDLED:
        (FROZEN / f"{name}.json").write_text(
            json.dumps(predictions(name).tolist(), indent=1) + "\n"
        )
