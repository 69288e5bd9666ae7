"""Bands: their coverage and width, on functions whose errors are known."""

import pytest
import torch
from conftest import composed, small_transducer

from transduce import ExampleSet, FourierModes, SineModes, TransduceError, models
from transduce.bands import half_widths_of, interval_score, quantile
from transduce.kernels import MaternGram, NoiseUnits, Ridge


def draw(n, generator, power=0.0):
    """Answers of many sizes, deviations, and errors that are theirs times noise."""
    answers = torch.randn(n, 1, generator=generator, dtype=torch.float64).exp() * torch.ones(30)
    deviations = torch.rand(n, generator=generator, dtype=torch.float64) + 0.1
    errors = (
        torch.randn(n, 30, generator=generator, dtype=torch.float64)
        * deviations[:, None]
        * answers**power
    )
    return errors, answers, deviations


@pytest.mark.parametrize("power", [0.0, 1.0])
@pytest.mark.parametrize("level", [0.5, 0.9])
def test_coverage_is_the_level_whatever_the_errors_depend_on(power, level):
    generator = torch.Generator().manual_seed(0)
    inside = []
    for _ in range(60):
        errors, *rest = draw(40, generator, power)
        residuals, unseen = errors[:20], errors[20:]
        given = [part[:20] for part in rest] + [part[20:] for part in rest]
        half = half_widths_of(residuals, *given, level)
        inside.append((unseen.abs() <= half).double().mean())
    assert torch.stack(inside).mean() == pytest.approx(level, abs=0.04)


def test_the_width_follows_what_errors_depend_on():
    """Better by far than one width for all, by the interval score."""
    errors, answers, deviations = draw(400, torch.Generator().manual_seed(1), power=1.0)
    half = half_widths_of(
        errors[:200], answers[:200], deviations[:200], answers[200:], deviations[200:], 0.9
    )
    unseen = errors[200:]
    share = float((unseen.abs() <= half).double().mean())
    ours, constant = (
        interval_score(unseen, width, 0.9).mean() for width in (half, quantile(unseen.abs(), share))
    )
    assert ours < 0.7 * constant


def test_interval_score_is_least_at_the_quantiles():
    errors = torch.randn(20000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    scores = {
        width: float(interval_score(errors, torch.tensor(width), 0.9).mean())
        for width in (1.2, 1.645, 2.2)
    }
    assert min(scores, key=scores.get) == 1.645
    assert interval_score(torch.tensor(3.0), torch.tensor(1.0), 0.9) == pytest.approx(2 + 20 * 2)


def test_quantile():
    values = torch.arange(1.0, 11.0)
    assert [float(quantile(values, share)) for share in (0.1, 0.5, 0.9, 1.0)] == [1, 5, 9, 10]
    assert quantile(values[:1], 0.9) == 1
    assert quantile(values, 0.94) == 10


def test_bands_hold_on_an_operator(pairs):
    """A smooth nonlinear operator, a model that was never trained: leave-one-out residuals are
    enough."""
    T = small_transducer("representer", depth=1)
    coefficients = torch.randn(
        240, 12, generator=torch.Generator().manual_seed(3), dtype=torch.float64
    ) / torch.arange(1, 13)
    v = SineModes(12).decode(coefficients, 33)
    u = v.flip(-1) + 0.3 * v**2
    O = T.regress(ExampleSet(v[:40], u[:40]))
    mean, low, high = O.predict(v[40:], band=0.9)
    torch.testing.assert_close(mean, O(v[40:]))
    inside = ((u[40:] >= low) & (u[40:] <= high))[:, 1:-1].double().mean()
    assert inside == pytest.approx(0.9, abs=0.06)
    wide, narrow = (O.predict(v[40:], band=level) for level in (0.99, 0.5))
    assert ((wide[2] - wide[1]) > (narrow[2] - narrow[1]))[:, 1:-1].all()
    finer = O.predict(v[40:42], at=65)
    assert finer[0].shape == finer[1].shape == (2, 65)


def test_one_example_has_a_band(pairs):
    mean, low, high = (
        small_transducer("representer")
        .regress(ExampleSet(pairs[0][:1], pairs[1][:1]))
        .predict(pairs[2])
    )
    assert (high - low).max() < 100 * pairs[1].abs().max()
    assert (low <= mean).all()


def test_each_channel_has_its_own_width(pairs):
    torch.manual_seed(0)
    T = (
        models.representer(SineModes(12), FourierModes(3, channels=2), heads=1, width=4, hidden=8)
        .double()
        .eval()
    )
    u = torch.randn(9, 2, 16, dtype=torch.float64) * torch.tensor([1.0, 100.0])[:, None]
    _, low, high = T.regress(ExampleSet(pairs[0], u)).predict(pairs[2])
    width = (high - low).mean((0, 2))
    assert 20 < width[1] / width[0] < 500


def test_bad_bands(pairs):
    O = small_transducer("representer").regress(ExampleSet(*pairs[:2]))
    for band in (0.0, 1.0, 90.0, -0.1):
        with pytest.raises(TransduceError, match="expected a share of the values between 0 and 1"):
            O.predict(pairs[2], band=band)
    transformed = composed(lambda: Ridge(NoiseUnits(MaternGram())), G=True)
    with pytest.raises(
        TransduceError,
        match="expected kernels that solve for their coefficients, in layers without G",
    ):
        transformed.regress(ExampleSet(*pairs[:2])).predict(pairs[2])
    with pytest.raises(
        TransduceError, match=r"this model of ExpDot has no leave-one-out residuals"
    ):
        small_transducer().regress(ExampleSet(*pairs[:2])).predict(pairs[2])
