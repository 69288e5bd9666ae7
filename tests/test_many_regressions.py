"""Many regressions at once equal a loop over regressions."""

from contextlib import nullcontext

import pytest
import torch

from paper.models import descent_softmax
from transduce import ExampleSet, FourierModes, SineModes, TransduceError, Transducer, models
from transduce.uncertainty import half_splits, many_regressions
from transduce.uncertainty import many as module

NETWORK = {"channels": 5, "layers": 2, "modes": 3, "grid": 8}
SMALL = {"depth": 2, "heads": 2, "width": 6, "hidden": 16}


def line():
    return SineModes(12), SineModes(12)


def plane():
    return FourierModes((3, 3), channels=2), FourierModes((3, 3), channels=2)


def readout_then_representer():
    V, U = plane()
    first, second = models.spectral(V, U, **NETWORK), models.representer(V, U, **SMALL)
    return Transducer(V, U, [*first.steps, *second.steps])


MODELS = {
    "exp_dot": lambda: models.softmax(*line(), **SMALL),
    "rbf": lambda: models.softmax(*line(), **SMALL, kappa="rbf"),
    "l2": lambda: models.softmax(*line(), **SMALL, kappa="l2"),
    "tied": lambda: models.softmax(*line(), **SMALL, tied=True),
    "padded": lambda: descent_softmax(*line(), 12, **SMALL | {"heads": 4}, gain=1.0),
    "plane": lambda: models.softmax(*plane(), **SMALL),
    "representer": lambda: models.representer(*line(), **SMALL),
    "features": lambda: models.representer(*line(), **SMALL, universal=False),
    "readout": lambda: models.spectral(*plane(), **NETWORK),
    "readout on a line": lambda: models.spectral(*line(), **NETWORK | {"grid": 20}),
    "fixed readout": lambda: models.spectral(*plane(), **NETWORK, readout=False),
    "readout, then representer": readout_then_representer,
    "summary": lambda: models.spectral(*plane(), **NETWORK, summary=4),
}


def model(name):
    torch.manual_seed(0)
    T = MODELS[name]().eval()
    for parameter_name, parameter in T.named_parameters():
        if parameter_name.endswith("W_0"):
            torch.nn.init.normal_(parameter, std=0.3)
    return T


def examples_for(T, n=9, points=None):
    generator = torch.Generator().manual_seed(1)
    shape = (n, points or 20) if T.V.dims == 1 else (n, 2, points or 9, points or 9)
    v = torch.randn(shape, generator=generator)
    return ExampleSet(v, v.roll(1, 0) ** 2 + v)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("points", [None, 7])
def test_they_equal_a_loop(name, points, monkeypatch):
    """For every kernel and masks of unequal size, in several blocks; also on a grid that does not
    carry all modes."""
    T = model(name)
    if points is not None and T.V.dims == 2:
        points = 5
    examples = examples_for(T, points=points)
    masks = (
        torch.rand(7, 9, generator=torch.Generator().manual_seed(2))
        < torch.linspace(0.2, 0.8, 7)[:, None]
    )
    masks[:, 0] = True
    monkeypatch.setattr(module, "TOGETHER", 3 * 9 * max(T.U.size, 32 * 9))
    with pytest.warns(UserWarning, match="taken to be zero") if points else nullcontext():
        found = many_regressions(T, examples, masks)
        answers, errors = torch.cat(list(found)), found.errors()
    for mask, answer, error in zip(masks, answers, errors, strict=True):
        with (
            torch.no_grad(),
            pytest.warns(UserWarning, match="taken to be zero") if points else nullcontext(),
        ):
            expected = T.regress(examples[mask.numpy()])(examples.v[~mask])
        truth = examples.u[~mask]
        torch.testing.assert_close(answer[~mask], expected, rtol=1e-4, atol=1e-4)
        squares = (expected - truth).flatten(1).square().sum(1) / truth.flatten(1).square().sum(1)
        torch.testing.assert_close(error[~mask], squares, rtol=1e-3, atol=1e-5)
        assert answer[mask].isnan().all()
        assert error[mask].isnan().all()


@pytest.mark.parametrize("name", MODELS)
def test_they_answer_other_functions(name):
    T = model(name)
    examples = examples_for(T, 12)
    masks = half_splits(8, 3, torch.Generator().manual_seed(0))
    done = []
    answers = torch.cat(
        list(many_regressions(T, examples[:8], masks, examples.v[8:], done.append))
    )[:, 8:]
    expected = torch.stack(
        [T.regress(examples[:8][mask.numpy()])(examples.v[8:]) for mask in masks]
    ).detach()
    torch.testing.assert_close(answers, expected, rtol=1e-4, atol=1e-4)
    assert done[-1] == 3


def test_half_splits():
    masks = half_splits(10, 400, torch.Generator().manual_seed(0))
    assert masks.shape == (400, 10)
    assert (masks.sum(1) == 5).all()
    assert (masks.double().mean(0) - 0.5).abs().max() < 0.1
    with pytest.raises(TransduceError, match="at least two examples"):
        half_splits(1, 5, torch.Generator())


@pytest.mark.parametrize(
    ("masks", "problem"),
    [
        (torch.ones(2, 4, dtype=torch.bool), r"\(2, 4\).*\(regressions, 9\)"),
        (torch.ones(2, 9), "float32; expected booleans"),
        (torch.ones(9, dtype=torch.bool), r"expected booleans of shape"),
        (torch.ones(0, 9, dtype=torch.bool), r"\(0, 9\)"),
        (torch.tensor([[True] * 9, [False] * 9]), "mask 1 leaves no example"),
    ],
)
def test_bad_masks_are_answered(masks, problem):
    T = model("exp_dot")
    with pytest.raises(TransduceError, match=problem):
        many_regressions(T, examples_for(T), masks)
