"""Bundled weights: each predicts what it predicted when it was bundled, and damage is noticed.

`python tests/test_weights.py` freezes the predictions of each bundled file again.
"""

import json
import shutil
from pathlib import Path

import pytest
import torch

from transduce import ExampleSet, TransduceError, Transducer, weights
from transduce.families import (
    AdvectionDiffusionReaction,
    Burgers2d,
    RandomFieldOperators,
    SyntheticImages,
)
from transduce.families.random_field_operators import HELD_OUT
from transduce.metrics import relative_mse
from transduce.random_fields import generator_for
from transduce.spaces import Region
from transduce.types import Task

FROZEN = Path(__file__).parent / "frozen"
BUNDLED = weights.names()
TOLERANCE = {
    "general": 1e-6,
    "general-fields": 1e-6,
}  # small ridges: the order of summation moves answers by 1e-7
# Committed results name their weights by these.
SHA256 = {
    "adr-softmax": "47e42e415620a31c60421f9f09bd28b1c6f49e21c134d91a5d47ddaeeeeef29b",
    "adr": "4ff3fffa7f442efb450e2f71e41fb112d71fea1c33d11de5c5cf4fc52a1e2cc6",
    "burgers-softmax": "81481f1c1a731eb0fd82da08ba606428a0f5331a2a1a105e4d5575ff2d45020c",
    "burgers": "a9bb75fd2fd2ae92a77bab583571d04bb0dc0853d786ca5d1e1d9802d31716b5",
    "climate-europe": "83eaf4a50462c323006049f0806965e87fb9ad6689f05a48f207d28dc307f0da",
    "general": "d06a7a2d3831adef52cf06ae38b45be536792ab8ecbc1f4c2b479a2de82606a9",
    "general-fields": "c75014ee4ee16242b659efdd0604f62cf456b316290a14b486f3cc845d10c330",
    "images-softmax": "fc42e06a4a63b22b26e38e5541b6ea5b09c6d26e5009519574e4076914496b64",
    "images": "4be13b6d7c5296170e38a93fba76b9709c0b93d285b3fc711cbbe97f2f0b6685",
}
# At most so much of a misled one's error.
MISLED = {
    "burgers-softmax": 0.3,
    "images": 0.3,
    "images-softmax": 0.4,
    "climate-europe": 0.7,
    "general-fields": 0.3,
}


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
        "general-fields": RandomFieldOperators(HELD_OUT),
    }
    return (
        SyntheticImages()
        if name.startswith("images")
        else known.get(name, AdvectionDiffusionReaction())
    )


def waves(n, points=64, highest=4):
    """n smooth periodic vector fields: sums of waves with random amplitudes."""
    x = torch.arange(points, dtype=torch.float64) * (2 * torch.pi / points)
    k = torch.arange(-highest, highest + 1, dtype=torch.float64)
    shape = (n, 2, 2, len(k), len(k))
    generator = generator_for("validation", 99)
    amplitudes = torch.randn(shape, generator=generator, dtype=torch.float64)
    amplitudes = amplitudes * torch.exp(-(k[:, None] ** 2 + k**2) / 4)
    angles = k[:, None, None, None] * x[:, None] + k[:, None, None] * x  # (k, l, x, y)
    basis = torch.stack([angles.cos(), angles.sin()])
    return 0.05 * torch.einsum("ncskl,sklxy->ncxy", amplitudes, basis)


def vector_task(n, m):
    """v are sums of waves, and u is an explicit function of v. A solver would round differently on
    other machines."""
    v = waves(n + m)
    u = 0.9 * v.roll(1, 2) - 0.5 * v * v.roll(5, 3)
    return Task(ExampleSet(v[:n], u[:n]), ExampleSet(v[n:], u[n:]))


def predictions(name):
    """On one task, every tenth point along each axis, in double precision; of classes, all."""
    generator = generator_for("validation", 99)
    vectors = name.startswith("burgers") or name == "general-fields"
    given = vector_task(30, 3) if vectors else family_of(name).sample_task(30, 3, generator)
    T = Transducer.from_pretrained(name).double()
    O = T.regress(ExampleSet(given.examples.v.double(), given.examples.u.double()))
    u = O(given.queries.v.double())
    return u if u.shape[1] == 10 else u[:, ::10] if u.ndim == 2 else u[..., ::10, ::10]


@pytest.mark.parametrize("name", BUNDLED)
def test_predictions_are_the_frozen_ones(name):
    frozen = torch.tensor(json.loads((FROZEN / f"{name}.json").read_text()), dtype=torch.float64)
    difference = (predictions(name) - frozen).abs().max()
    assert difference <= TOLERANCE.get(name, 1e-9) * frozen.abs().max()


@pytest.mark.parametrize("name", SHA256)
def test_files_stay_byte_identical(name):
    weights.load(name)  # raises if the file does not have the listed checksum
    assert weights.checksums()[f"{name}.safetensors"] == SHA256[name]


@pytest.mark.parametrize("name", BUNDLED)
def test_the_card_says_how_it_was_made(name):
    tensors, card = weights.load(name)
    assert sum(tensor.nbytes for tensor in tensors.values()) < 40e6
    assert {"model", "recipe", "validation_error", "versions", "commit", "machine"} <= card.keys()
    assert card["recipe"]["name"] == name
    assert "seed" in card["recipe"]["training"]


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
    file = copied / "adr.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(TransduceError, match="do not match their checksum"):
        weights.load("adr")
    file.unlink()
    with pytest.raises(TransduceError, match="do not match their checksum"):
        weights.load("adr")


def test_a_bundled_file_may_be_of_half_precision(copied, tmp_path):
    T = Transducer.from_pretrained("adr")
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
        (weights.PRETRAINED / "adr.safetensors").read_bytes()[:5000],
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
