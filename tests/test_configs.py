"""Models as JSON and back: parts, builders, tied layers, and what was measured."""

import inspect
import json
import subprocess
import sys

import pytest
import torch
from torch import nn

from transduce import ExampleSet, TransduceError, configs, models
from transduce.configs import PARTS, Part, build, describe
from transduce.kernels import ExpDot, Kappa, MaternGram, NoiseUnits, Ridge
from transduce.layer import Feedforward, Layer
from transduce.spaces import BranchTrunk, Euclidean, Padded, Region, SineModes
from transduce.transducer import Transducer

LAT, LON = (55.0, 52.5, 50.0), (0.0, 2.5, 5.0, 7.5)
LINE = {"space": "SineModes", "modes": 6}
ATTENTION = {"model": "softmax", "V": LINE, "U": LINE, "heads": 1, "width": 3, "hidden": 5}
FIELDS = {"space": "Region", "lat": list(LAT), "lon": list(LON)}
NETWORK = {"model": "spectral", "V": LINE, "U": LINE, "channels": 2, "layers": 1, "modes": 2}
SOLVING = {"model": "representer", "V": LINE, "U": LINE, "heads": 2, "width": 3, "hidden": 4}
BUILT = {
    "softmax": {**ATTENTION, "depth": 2},
    "softmax rbf": {**ATTENTION, "depth": 1, "kappa": "rbf", "tau": 2.0, "gain": 0.5},
    "softmax l2, tied": {**ATTENTION, "depth": 3, "kappa": "l2", "tied": True},
    "representer": {**SOLVING, "depth": 2, "feature_layers": 1},
    "representer, not universal": {**SOLVING, "ridges": 1, "universal": False},
    "spectral": {**NETWORK, "grid": 16},
    "spectral, summary": {**NETWORK, "grid": 16, "summary": 2},
    "spectral, learned once": {**NETWORK, "grid": 16, "readout": False},
    "images": {
        "model": "images",
        "V": {"space": "Euclidean", "size": 16, "power": 0.5},
        "U": {"space": "Euclidean", "size": 3},
        "convolutions": [2, 2],
        "width": 3,
    },
    "region": {"model": "region", "V": FIELDS, "U": FIELDS, "signal": 10.0},
    "region, places": {"model": "region", "V": {**FIELDS, "reach": 10.0, "block": 2}, "U": FIELDS},
    "curves": {
        "model": "curves",
        "V": {"space": "Sampled", "x": 12},
        "U": {"space": "Sampled", "x": 9},
        "channels": 4,
        "layers": 1,
        "modes": 3,
        "summary": 4,
        "polynomials": 2,
    },
    "general": {
        "model": "general",
        "V": {"space": "Sampled", "x": 12},
        "U": {"space": "Sampled", "x": 9},
        "channels": 4,
        "layers": 1,
        "modes": 3,
        "summary": 4,
        "width": 8,
    },
    "fields": {
        "model": "fields",
        "V": {"space": "SampledFields", "x": 8, "y": 9},
        "U": {"space": "SampledFields", "x": 7, "y": 8},
        "channels": 4,
        "layers": 1,
        "modes": 2,
        "summary": 4,
        "width": 8,
    },
    "padded": {**ATTENTION, "V": {"space": "Padded", "of": LINE, "extra": 2}, "depth": 1},
}


def matern():
    return Ridge(NoiseUnits(MaternGram()))


def saved_and_loaded(T, tmp_path):
    T.save_pretrained(tmp_path / "model.safetensors")
    return Transducer.from_pretrained(tmp_path / "model.safetensors")


def coefficients(T):
    """Examples and queries of one task."""
    torch.manual_seed(1)
    sizes = ((5, T.V.size), (5, T.U.size), (3, T.V.size))
    return [torch.randn(1, n, size, dtype=T.V.precision) for n, size in sizes]


@pytest.mark.parametrize("name", BUILT)
def test_builders_describe_and_build(name, tmp_path):
    T = models.build(BUILT[name]).eval()
    T.requires_grad_(False)
    again = Transducer.from_config(json.loads(json.dumps(T.config)))
    assert again.config == T.config
    shapes = ({key: f.shape for key, f in of.named_parameters()} for of in (T, again))
    assert next(shapes) == next(shapes)
    loaded = saved_and_loaded(T, tmp_path)
    torch.testing.assert_close(loaded(*coefficients(T)), T(*coefficients(T)))


def test_every_builder_is_tested():
    """Those of the library; the paper adds its own."""
    own = {
        name
        for name, build in models.BUILDERS.items()
        if build.__module__.startswith(models.__name__)
    }
    assert {model["model"] for model in BUILT.values()} == own


@pytest.mark.parametrize("builder", models.BUILDERS.values(), ids=lambda builder: builder.__name__)
def test_options_of_builders_have_a_line_each(builder):
    options = list(inspect.signature(builder).parameters)[2:]
    documented = (builder.__doc__ or "").partition("Args:")[2]
    assert options and all(f"\n        {name}: " in documented for name in options)


def test_tied_layers_stay_tied(tmp_path):
    T = models.build(BUILT["softmax l2, tied"])
    loaded = saved_and_loaded(T, tmp_path)
    for model in (T, Transducer.from_config(T.config), loaded):
        first, *others = model.steps
        assert len(others) == 2 and all(layer is first for layer in others)
    assert len(dict(loaded.named_parameters())) == len(dict(T.named_parameters()))
    assert describe(T.steps)[1:] == [{"again": 0}, {"again": 0}]


def test_shared_parts_stay_shared(tmp_path):
    """Two layers with one F, and with kernels over one Gram."""
    V, U, F, gram = Euclidean(4), Euclidean(3), Feedforward(4, 5), MaternGram()
    T = Transducer(V, U, [Layer(Ridge(NoiseUnits(gram)), F), Layer(Ridge(NoiseUnits(gram)), F)])
    one, other = saved_and_loaded(T, tmp_path).steps
    assert one.F is other.F and one is not other
    assert one.kappa.candidates.gram is other.kappa.candidates.gram
    assert one.kappa.candidates is not other.kappa.candidates


def test_untied_layers_stay_untied(tmp_path):
    one, other = saved_and_loaded(models.build(BUILT["softmax"]), tmp_path).steps
    assert one is not other and one.F is not other.F


def test_parts_describe_themselves():
    assert describe(Feedforward(12, 64)) == {"part": "Feedforward", "d": 12, "hidden": 64}
    assert describe([Feedforward(2, 3), None, 1.5, "text", True, (SineModes(4),)]) == [
        {"part": "Feedforward", "d": 2, "hidden": 3},
        None,
        1.5,
        "text",
        True,
        [SineModes(4).config()],
    ]


def test_unknown_parts():
    with pytest.raises(TransduceError, match=r"a part 'Magic', .* expected one of .*Feedforward"):
        build({"part": "Magic"})
    with pytest.raises(TransduceError, match="a part None"):
        build({"d": 3})
    with pytest.raises(TransduceError, match="the space 'Magic' is not known"):
        build({"space": "Magic"})


@pytest.mark.parametrize("again", [1, -1, "0", None, 0])
def test_references_lead_to_parts_before_them(again):
    """0 is the layer itself, which is not complete yet."""
    with pytest.raises(TransduceError, match=f"refers to part {again}; expected one of 1 before"):
        build({"part": "Layer", "kappa": {"again": again}})


def test_wrong_options_of_parts():
    expected = r"the part Feedforward has other options: .*; expected d, hidden"
    for options in ({"d": 3}, {"d": 3, "hidden": 4, "depth": 5}):
        with pytest.raises(TransduceError, match=expected):
            build({"part": "Feedforward", **options})


def test_modules_that_are_no_parts():
    T = Transducer(Euclidean(4), Euclidean(4), [Layer(matern(), F=nn.Linear(4, 4))])
    with pytest.raises(TransduceError, match="holds a Linear, which cannot be described"):
        _ = T.config


def test_names_of_parts_are_unique():
    with pytest.raises(TransduceError, match=r"defines a part Layer, which transduce\.layer has"):
        type("Layer", (Part,), {})
    assert configs.PARTS["Layer"] is Layer


def test_subclasses_of_the_same_name_do_not_replace_a_part():
    """Exporting wraps each module in such a subclass."""
    type("Feedforward", (Feedforward,), {})
    assert PARTS["Feedforward"] is Feedforward


def test_a_model_needs_layers():
    with pytest.raises(TransduceError, match="without layers; expected at least one"):
        Transducer(Euclidean(4), Euclidean(4), [])


def test_a_config_needs_spaces_and_layers():
    for wrong in ({"V": None}, {"layers": {"part": "MaternGram"}}):
        config = {"V": LINE, "U": LINE, "layers": [describe(Layer(matern()))], **wrong}
        with pytest.raises(TransduceError, match="expected a config of spaces V and U"):
            Transducer.from_config(config)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"model": "magic"}, "no model is called 'magic'; expected one of softmax, representer"),
        ({"model": None}, "no model is called None"),
        ({"colour": 3}, "'softmax' has other options: .*colour.*expected V, U, depth"),
        ({"V": None}, "'softmax' needs spaces V and U"),
        ({"kappa": "cosine"}, "expected one of exp_dot, rbf, l2"),
        ({"tau": 0.0}, "expected a positive temperature"),
        ({"depth": 0}, "at least one layer"),
    ],
)
def test_wrong_options_of_builders(wrong, message):
    with pytest.raises(TransduceError, match=message):
        models.build({**ATTENTION, **wrong})


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        ("representer", {"heads": 0}, "expected at least one of the first four"),
        ("representer", {"feature_layers": -1}, "expected at least one of the first four"),
        ("spectral", {"channels": 0}, "expected at least one of the first three"),
        ("spectral", {"grid": 4}, "need at least"),
        ("spectral", {"V": {"space": "FourierModes", "modes": 3}}, "same kind of grid"),
        ("images", {"V": {"space": "Euclidean", "size": 15}}, "expected square images"),
        ("images", {"convolutions": [2]}, "two convolutions or more"),
        ("region", {"signal": 0.0}, "expected a number above 0"),
        ("region, places", {"U": {**FIELDS, "slopes": 1.0}}, "a Region of the same grid"),
    ],
)
def test_wrong_options_of_each_builder(name, wrong, message):
    with pytest.raises(TransduceError, match=message):
        models.build({**BUILT[name], **wrong})


def test_tensors_must_be_those_of_the_card():
    T = models.build(BUILT["region"])
    tensors = dict(T.named_parameters())
    with pytest.raises(TransduceError, match="tensors in mine are not those of the model"):
        configs.load_tensors(T, {**tensors, "more": torch.ones(1)}, "mine")
    with pytest.raises(TransduceError, match="tensors in mine are not those of the model"):
        configs.load_tensors(T, {**tensors, "spread": torch.ones(2)}, "mine")


def measured_region():
    space = Region(LAT, LON)
    torch.manual_seed(0)
    fields = 280 + 8 * torch.randn(20, 3, 4)
    assert space.measure(fields) and space.measured
    return space, fields


def test_one_measured_space_for_inputs_and_outputs():
    """Inputs and outputs keep the normalisation, in spaces of their own."""
    space, fields = measured_region()
    T = Transducer(space, space, [Layer(matern())])
    assert T.V is not T.U and T.U is space
    assert T.V.measured and T.U.measured
    assert float(T.V.unit) == float(T.U.unit) == pytest.approx(8, rel=0.1)
    torch.testing.assert_close(T.V.encode(fields), T.U.encode(fields), rtol=0, atol=0)


def test_one_space_for_inputs_and_outputs_learns_apart():
    """V has gradients for encoding alone; U is not touched by that."""
    space = BranchTrunk(5, 4, 1)
    T = Transducer(space, space, [Layer(ExpDot(5, 5, 1, 2))])
    assert all(not parameter.requires_grad for parameter in T.V.parameters())
    assert all(parameter.requires_grad for parameter in T.U.parameters())


def test_measured_spaces_are_saved(tmp_path):
    space, fields = measured_region()
    T = Transducer(space, space, [Layer(matern())]).eval()
    loaded = saved_and_loaded(T, tmp_path)
    assert loaded.V.measured and loaded.U.measured
    examples = ExampleSet(fields[:9], fields[:9].flip(0))
    torch.testing.assert_close(
        loaded.regress(examples)(fields[9:]), T.regress(examples)(fields[9:])
    )
    before = loaded.U.unit.clone()
    loaded.U.measure(1000 + fields)
    assert torch.equal(loaded.U.unit, before)


def test_models_say_whether_inputs_were_measured(tmp_path):
    """Also where every coefficient has a standard deviation of 1, and no other mark tells."""
    T = models.build(BUILT["region"])
    assert not T.measured
    T.standardise(torch.cat([torch.ones(1, 12), -torch.ones(1, 12)]))
    assert T.measured and (T.spread == 1).all()
    assert not models.build(BUILT["region"]).measured
    assert saved_and_loaded(T, tmp_path).measured


def test_padded_spaces_measure_what_they_hold():
    space = Padded(Region(LAT, LON), 2)
    fields = measured_region()[1]
    assert not space.measured and space.measure(fields) and space.measured
    assert float(space.of.unit) == pytest.approx(8, rel=0.1)
    c = space.encode(fields)
    assert c.shape == (20, 14) and (c[:, 12:] == 0).all()
    torch.testing.assert_close(space.decode(c + 0 * c, (3, 4)), fields)


def test_loading_marks_padded_spaces_as_measured(tmp_path):
    """So that training that resumes does not measure them again."""
    T = Transducer(*(Padded(measured_region()[0], 2) for _ in range(2)), [Layer(matern())])
    loaded = saved_and_loaded(T, tmp_path)
    before = loaded.U.of.unit.clone()
    loaded.U.measure(1000 + 3 * torch.randn(5, 3, 4))
    assert torch.equal(loaded.U.of.unit, before)


class Forgetful(Kappa):
    def __init__(self, power=2):
        super().__init__()
        self.exponent = power


class OwnModes(SineModes):
    """A space that does not describe itself."""


def test_parts_and_spaces_that_cannot_be_described_say_what_is_missing():
    T = Transducer(SineModes(4), SineModes(4), [Layer(Forgetful())])
    with pytest.raises(TransduceError, match="does not keep its arguments power; expected attr"):
        T.save_pretrained("never.safetensors")
    kernel = models.softmax(SineModes(4), SineModes(4), depth=1).steps
    with pytest.raises(TransduceError, match="a OwnModes describes itself as 'SineModes'"):
        _ = Transducer(OwnModes(4), SineModes(4), kernel).config


def test_layers_are_layers():
    """In a process of its own, without the run-time checks of annotations."""
    code = "from torch.nn import Linear; from transduce import SineModes, Transducer; "
    code += "Transducer(SineModes(4), SineModes(4), [Linear(4, 4)])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "layers hold Linear; expected Layers" in found.stderr
