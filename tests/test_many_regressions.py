"""Many regressions at once are the regressions one by one."""

from contextlib import nullcontext

import pytest
import torch

from transduce import ExampleSet, TransduceError
from transduce.spaces import FourierModes, SineModes
from transduce.transducer import Transducer
from transduce.uncertainty import half_splits, many_regressions
from transduce.uncertainty import many as module

PLANE = {"V": FourierModes((3, 3), channels=2), "U": FourierModes((3, 3), channels=2)}
PRIOR = {"channels": 5, "layers": 2, "modes": 3, "grid": 8}


def model(name):
    torch.manual_seed(0)
    line = {"V": SineModes(12), "U": SineModes(12)}
    small = {"depth": 2, "heads": 2, "width": 6, "hidden": 16}
    options = {
        "exp_dot": {**line, **small},
        "rbf": {**line, **small, "kappa": "rbf"},
        "l2": {**line, **small, "kappa": "l2"},
        "tied": {**line, **small, "tied": True},
        "memory": {**line, **small, "memory": 12, "init": "descent", "heads": 4},
        "plane": {**PLANE, **small},
        "representer": {**line, **small, "kappa": "representer"},
        "features": {**line, **small, "kappa": "representer", "universal": False},
        "prior": {**PLANE, "depth": 0, "prior": PRIOR},
        "line prior": {**line, "depth": 0, "prior": {**PRIOR, "grid": 20}},
        "mean": {**PLANE, "depth": 0, "prior": {**PRIOR, "readout": False}},
        "both": {**PLANE, **small, "kappa": "representer", "prior": PRIOR},
    }[name]
    T = Transducer(options.pop("V"), options.pop("U"), **options).eval()
    if T.prior is not None:
        torch.nn.init.normal_(T.prior.kappa.W_0, std=0.3)
    return T


MODELS = [
    "exp_dot",
    "rbf",
    "l2",
    "tied",
    "memory",
    "plane",
    "representer",
    "features",
    "prior",
    "line prior",
    "mean",
    "both",
]


def examples_for(T, n=9, points=None):
    generator = torch.Generator().manual_seed(1)
    shape = (n, points or 20) if T.V.dims == 1 else (n, 2, points or 9, points or 9)
    v = torch.randn(shape, generator=generator)
    return ExampleSet(v, v.roll(1, 0) ** 2 + v)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("points", [None, 7])
def test_they_are_the_regressions_one_by_one(name, points, monkeypatch):
    """Whatever the kernel, for masks of unequal size, in several blocks; also on a grid that does
    not carry all modes."""
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
    told = []
    answers = torch.cat(
        list(many_regressions(T, examples[:8], masks, examples.v[8:], told.append))
    )[:, 8:]
    expected = torch.stack(
        [T.regress(examples[:8][mask.numpy()])(examples.v[8:]) for mask in masks]
    ).detach()
    torch.testing.assert_close(answers, expected, rtol=1e-4, atol=1e-4)
    assert told[-1] == 3


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


def test_a_summary_cannot_be_shared():
    T = Transducer(**PLANE, depth=0, prior={**PRIOR, "summary": 4})
    examples = examples_for(T)
    with pytest.raises(TransduceError, match="summary=0"):
        many_regressions(T, examples, half_splits(9, 2, torch.Generator()))
