"""Bootstrap and conformal bands, and influences: what leaving examples out says."""

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from transduce import ExampleSet, FourierModes, SineModes, TransduceError, Transducer, models
from transduce.families import AdvectionDiffusionReaction
from transduce.random_fields import generator_for
from transduce.uncertainty import bootstrap, conformal, influence
from transduce.uncertainty.conformal import place_of, smallest


@pytest.fixture(scope="module")
def adr():
    return Transducer.from_pretrained("adr"), AdvectionDiffusionReaction().sample_task(
        30, 60, generator_for("validation", 3)
    )


@pytest.mark.parametrize("bands", [bootstrap, conformal])
def test_bands_hold_about_their_share(bands, adr):
    T, task = adr
    mean, low, high = bands(T, task.examples, task.queries.v, level=0.8)
    assert isinstance(mean, type(task.queries.v))
    inside = ((low <= task.queries.u) & (task.queries.u <= high))[:, 1:-1]
    assert 0.7 < inside.double().mean() < 0.9
    assert (low <= mean).double().mean() > 0.95
    np.testing.assert_allclose(mean, T.regress(task.examples)(task.queries.v), rtol=1e-5)


def test_the_conformal_band_is_that_of_its_formula(adr):
    T, task = adr
    examples, v, n = task.examples[:12], task.queries.v[:2], 12
    _, low, high = conformal(T, examples, v, level=1 - 2 / 13)
    ends = []
    for i in range(n):
        O = T.regress(examples[[j for j in range(n) if j != i]])
        own, other = O(examples.v[i : i + 1])[0], O(v)
        R = (
            (own - examples.u[i]).abs()
            / own.square().mean().sqrt()
            * other.square().mean(1, keepdim=True).sqrt()
        )
        ends.append((other - R, other + R))
    lows, highs = (torch.stack(part).sort(0).values for part in zip(*ends, strict=True))
    torch.testing.assert_close(low, lows[1], rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(high, highs[-2], rtol=1e-3, atol=1e-4)


def test_ends_of_a_low_level_are_in_order(adr):
    T, task = adr
    _, low, high = conformal(T, task.examples, task.queries.v[:5], level=0.05)
    assert (low <= high).all() and (low < high).any()


def test_a_place_for_each_level():
    assert [place_of(level, n) for level, n in ((0.9, 9), (0.9, 20), (0.5, 3))] == pytest.approx(
        [1, 2.1, 2]
    )
    with pytest.raises(TransduceError, match="at least 9 examples; 8"):
        place_of(0.9, 8)
    ends = torch.tensor([[3.0], [1.0], [2.0]])
    assert [float(smallest(ends, place)) for place in (1.0, 1.25, 3.0)] == [1.0, 1.25, 3.0]


def test_a_wider_level_is_a_wider_band(adr):
    T, task = adr
    widths = []
    for level in (0.5, 0.9):
        _, low, high = bootstrap(T, task.examples, task.queries.v[:5], level)
        widths.append((high - low).mean())
    assert widths[0] < widths[1]


@pytest.mark.parametrize("bands", [bootstrap, conformal])
def test_bad_input_is_answered(bands, adr):
    T, task = adr
    for level in (0.0, 1.0, -1.0):
        with pytest.raises(TransduceError, match="between 0 and 1"):
            bands(T, task.examples, task.queries.v, level)
    with pytest.raises(TransduceError, match="shape"):
        bands(T, task.examples, task.queries.v[0])
    with pytest.raises(TransduceError):
        bands(T, task.examples[:1], task.queries.v)


def readout_model():
    torch.manual_seed(0)
    space = {"modes": (3, 3), "channels": 2}
    options = {"channels": 5, "layers": 2, "modes": 3, "grid": 8}
    T = models.spectral(FourierModes(**space), FourierModes(**space), **options).eval()
    v = torch.randn(10, 2, 9, 9, generator=torch.Generator().manual_seed(1))
    return T, ExampleSet(v[:8], (v + 0.3 * v.roll(1, -1) ** 2)[:8]), v[8:]


def left_out(T, examples, v, J):
    n = len(examples)
    full = J(T.regress(examples)(v))
    return torch.stack(
        [full - J(T.regress(examples[[j for j in range(n) if j != i]])(v)) for i in range(n)]
    )


def test_influence_is_leaving_out_where_regression_is_linear():
    """But for what of h the modes of U do not hold."""
    T, examples, v = readout_model()
    with torch.no_grad():
        exact = left_out(T, examples, v, lambda u: u[:, 0].sum())
    torch.testing.assert_close(
        influence(T.regress(examples), v, lambda u: u[:, 0].sum()), exact, rtol=0.1, atol=0.02
    )


def test_influence_ranks_as_leaving_out_does(adr):
    T, task = adr
    v = task.queries.v[:4]
    ranks = []
    for j in range(len(v)):
        query = v[j : j + 1]
        exact = left_out(T, task.examples, query, lambda u: u.square().sum() / 2)
        ranks.append(spearmanr(influence(T.regress(task.examples), query), exact).statistic)
    assert np.mean(ranks) > 0.8


def test_influence_answers_bad_input(adr):
    T, task = adr
    O = T.regress(task.examples)
    with pytest.raises(TransduceError, match="expected one number"):
        influence(O, task.queries.v[:2], lambda u: u)
    softmax = models.softmax(SineModes(8), SineModes(8), depth=1, heads=1, width=4, hidden=8)
    with pytest.raises(TransduceError, match="has no leave-one-out residuals"):
        influence(softmax.regress(task.examples), task.queries.v[:1])
