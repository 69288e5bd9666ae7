"""Model cards of earlier versions: their predictions, and how they are saved again.

legacy/README.md says how the files were made. `frozen.json` holds the predictions that the version
which wrote them gave; a card that lacks some options refers to the full one.
"""

import json
from pathlib import Path

import pytest
import torch
from legacy_inputs import summary

from transduce import TransduceError, Transducer, legacy, models, weights
from transduce.spaces import SineModes

FOLDER = Path(__file__).parent / "legacy"
FROZEN = json.loads((FOLDER / "frozen.json").read_text())
every_card = pytest.mark.parametrize("name", FROZEN)
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # about the ends of inputs


def load(name):
    return Transducer.from_pretrained(FOLDER / f"{name}.safetensors")


def frozen(name):
    found = FROZEN[name]
    return FROZEN[found] if isinstance(found, str) else found


def difference(found, expected):
    """The largest difference of each kind of frozen values, relative to the largest value."""
    kinds = expected.keys() - {"v", "u", "offset"}
    pairs = [
        [torch.tensor(of[key], dtype=torch.float64) for of in (found, expected)] for key in kinds
    ]
    return max(float((a - b).abs().max() / b.abs().max()) for a, b in pairs)


def summary_of(T, name):
    of = frozen(name)
    return summary(T, of["v"], of["u"], of["offset"])


@every_card
def test_predictions_are_those_of_the_version_that_wrote_the_card(name):
    assert difference(summary_of(load(name), name), frozen(name)) < 1e-9


@every_card
def test_saving_again_keeps_the_predictions_and_writes_layers(name, tmp_path):
    T = load(name)
    T.save_pretrained(tmp_path / "again.safetensors")
    _, card = weights.load(tmp_path / "again.safetensors")
    assert card["model"].keys() == {"V", "U", "layers"} and not legacy.is_old(card["model"])
    again = Transducer.from_pretrained(tmp_path / "again.safetensors")
    assert again.config == T.config
    assert summary_of(again, name) == summary_of(T, name)


def test_every_kind_of_old_card_is_there():
    cards = [weights.load(path)[1]["model"] for path in FOLDER.glob("*.safetensors")]
    assert len(cards) == len(FROZEN)
    options = {(key, json.dumps(value)) for card in cards for key, value in card.items()}
    kernels = ("exp_dot", "rbf", "l2", "representer", "convolutional", "metric")
    assert {("kappa", json.dumps(kappa)) for kappa in kernels} <= options
    assert {("init", json.dumps(init)) for init in ("xavier", "mirrored", "descent")} <= options
    spaces = {card[name]["space"] for card in cards for name in ("V", "U")}
    known = {"SineModes", "FourierModes", "Euclidean", "BranchTrunk", "Patches", "Region"}
    assert spaces == known
    assert {
        json.dumps(card["prior"].keys() == {"pairs"}) for card in cards if card.get("prior")
    } == {
        "true",
        "false",
    }


def test_files_are_small():
    sizes = [path.stat().st_size for path in FOLDER.iterdir()]
    assert max(sizes) < 40_000 and sum(sizes) < 600_000


@pytest.mark.parametrize("option", ["bias", "shared", "neighbours"])
def test_options_without_a_counterpart_are_refused(option, tmp_path):
    tensors, card = weights.load(FOLDER / "exp_dot.safetensors")
    card["model"][option] = 1 if option == "neighbours" else True
    path = tmp_path / "old.safetensors"
    weights.save(path, tensors, card)
    said = f"options {option}, which this version does not support. Use the version of transduce"
    with pytest.raises(TransduceError, match=said):
        Transducer.from_pretrained(path)


def test_unknown_options_and_kernels_are_refused():
    _, card = weights.load(FOLDER / "exp_dot.safetensors")
    with pytest.raises(TransduceError, match="options colour, which this version does not"):
        legacy.config({**card["model"], "colour": "red"})
    with pytest.raises(TransduceError, match="kappa='cosine', which no version of transduce had"):
        legacy.config({**card["model"], "kappa": "cosine"})


def test_tied_layers_stay_one_layer():
    T = load("tied")
    assert len(T.steps) == 3 and len(set(map(id, T.steps))) == 1
    after_readout = load("readout-tied")
    assert len(after_readout.steps) == 3
    assert after_readout.steps[1] is after_readout.steps[2] is not after_readout.steps[0]


def test_new_cards_are_left_alone():
    T = models.softmax(SineModes(4), SineModes(4), depth=2, heads=1, width=2, hidden=4)
    assert legacy.config(T.config) == T.config
    tensors = dict(T.named_parameters())
    kept = legacy.tensors(T.config, tensors)
    assert kept.keys() == tensors.keys()
    assert all(kept[key] is tensors[key] for key in tensors)
