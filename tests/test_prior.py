"""What the prior promises: the closed form of its read-out, and all that the kernels promise
besides."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch

from transduce import ExampleSet, Transducer
from transduce.kernels import prior_of
from transduce.kernels.spectral import SpectralLayer
from transduce.spaces import Euclidean, FourierModes, SineModes
from transduce.types import TransduceError

SMALL = {"channels": 6, "layers": 2, "modes": 3, "grid": 12}
SPACES = {"1-D": lambda: SineModes(8), "2-D": lambda: FourierModes((3, 3), channels=2)}


def model(dims="2-D", depth=0, **prior):
    torch.manual_seed(0)
    options = (
        {"kappa": "representer", "heads": 2, "width": 6, "hidden": 12, "universal": False}
        if depth
        else {}
    )
    space = SPACES[dims]
    T = Transducer(space(), space(), depth=depth, prior=SMALL | prior, **options).double()
    with torch.no_grad():
        for parameter in T.parameters():
            if parameter.requires_grad and not parameter.any():
                parameter.normal_(std=0.1)
    T.standardise(coefficients(T, 1, 50)[0])
    return T.eval()


def coefficients(T, seed, n, batch=1):
    generator = torch.Generator().manual_seed(seed)
    v, u = torch.randn(2, batch, n, T.V.size, dtype=torch.float64, generator=generator)
    return v, u


@pytest.fixture(params=[(d, s, depth) for d in SPACES for s in (0, 4) for depth in (0, 1)], ids=str)
def T(request):
    dims, summary, depth = request.param
    return model(dims, depth, summary=summary)


def test_no_example_has_a_place_and_one_that_is_masked_is_not_there(T):
    (v, u), (q, _) = coefficients(T, 2, 6), coefficients(T, 3, 4)
    answer, shuffled = T(v, u, q), torch.randperm(6)
    assert torch.allclose(T(v[:, shuffled], u[:, shuffled], q), answer, atol=1e-9)
    mask = torch.tensor([[True, True, False, True, False, True]])
    assert torch.allclose(T(v, u, q, mask), T(v[:, mask[0]], u[:, mask[0]], q), atol=1e-9)


def test_tasks_and_queries_do_not_see_each_other(T):
    (v, u), (q, _) = coefficients(T, 2, 6, batch=2), coefficients(T, 3, 4, batch=2)
    together = T(v, u, q)
    for i in range(2):
        alone = torch.cat(
            [T(v[i : i + 1], u[i : i + 1], q[i : i + 1, j : j + 1]) for j in range(4)], 1
        )
        assert torch.allclose(together[i : i + 1], alone, atol=1e-9)


def test_one_example_is_enough_to_answer_and_every_parameter_learns(T):
    v, u = coefficients(T, 2, 3)
    assert torch.isfinite(T(v[:, :1], u[:, :1], v)).all()
    T.train()(v, u, v).square().sum().backward()
    assert all(
        p.grad is not None and p.grad.abs().max() > 0 for p in T.parameters() if p.requires_grad
    )


@pytest.mark.parametrize("dims", SPACES)
def test_what_is_left_of_an_example_is_what_the_others_leave(dims):
    T = model(dims)
    v, u = coefficients(T, 2, 5)
    residual = T.condition(v, u)[0].residual
    for i in range(5):
        others = [j for j in range(5) if j != i]
        alone = u[:, i : i + 1] - T(v[:, others], u[:, others], v[:, i : i + 1])
        assert torch.allclose(residual[:, i : i + 1], alone, atol=1e-8)


@pytest.mark.parametrize("dims", SPACES)
def test_answers_without_a_summary_are_affine_in_u(dims):
    T = model(dims)
    (v, u), (q, w) = coefficients(T, 2, 5), coefficients(T, 3, 5)
    zero, one, other = T(v, 0 * u, q), T(v, u, q), T(v, w, q)
    assert torch.allclose(
        T(v, 2 * u - 3 * w, q) - zero, 2 * (one - zero) - 3 * (other - zero), atol=1e-8
    )


def test_the_read_out_minimises_the_squared_error_and_its_distance_from_the_prior():
    T = model()
    prior, (v, u) = T.prior.kappa, coefficients(T, 2, 4)
    W = T.condition(v, u)[0].W.detach().requires_grad_()
    h = prior._channels(prior._inputs(v / T.spread), None).detach()
    target = (T.U.decode(u, (12, 12)) / prior.unit).flatten(3)
    loss = (target - W @ h).square().mean(-1).sum() + (prior.ridge * (W - prior.W_0).square()).sum()
    (slope,) = torch.autograd.grad(loss, W)
    assert slope.abs().max() < 1e-9 * loss


def test_with_a_heavy_ridge_the_answer_is_the_prior():
    T = model()
    v, u = coefficients(T, 2, 4)
    with torch.no_grad():
        T.prior.kappa.log_ridge.fill_(5.0)
    prior = T.prior.kappa
    B = (
        T.U.encode(
            (prior.W_0 @ prior._channels(prior._inputs(v / T.spread), None)).unflatten(3, (12, 12))
        )
        * prior.unit
    )
    assert torch.allclose(T(v, u, v), B, atol=1e-6)
    assert torch.allclose(model(readout=False)(v, u, v), B)


def test_one_large_example_spoils_neither_single_precision_nor_what_is_left_of_it():
    T, single = model(), model().float()
    v, u = coefficients(T, 2, 6)
    v[:, 0], u[:, 0] = 1e4 * v[:, 0], 1e4 * u[:, 0]
    exact, rounded = T(v, u, v[:, 1:]), single(v.float(), u.float(), v[:, 1:].float())
    assert (rounded - exact).norm() < 1e-3 * exact.norm()
    large_v, large_u = 1e4 * v[:, :1], 1e4 * u[:, :1]
    residual = T.condition(torch.cat([large_v, v[:, 1:]], 1), torch.cat([large_u, u[:, 1:]], 1))[
        0
    ].residual[:, :1]
    assert torch.allclose(residual, large_u - T(v[:, 1:], u[:, 1:], large_v), rtol=1e-6, atol=0)


@pytest.mark.parametrize(("dims", "modes"), [("1-D", 1), ("1-D", 3), ("2-D", 1), ("2-D", 3)])
def test_layers_mix_the_lowest_frequencies_alone(dims, modes):
    layer = SpectralLayer(SPACES[dims]().dims, 2, modes, 0).double()
    x = torch.arange(12, dtype=torch.float64) / 12
    for frequency in range(7):
        wave = torch.cos(2 * torch.pi * frequency * x) * torch.ones(
            1, 2, *[12] * (layer.dims - 1), 1, dtype=torch.float64
        )
        for turned in (wave, wave.transpose(-1, -2)) if layer.dims == 2 else (wave,):
            size = layer._convolved(turned).abs().max()
            assert size > 1e-3 if frequency < modes else size < 1e-12


@pytest.mark.parametrize("dims", [1, 2])
def test_layers_multiply_fourier_transforms(dims):
    """The matrices are those of the FFT."""
    layer, h = (
        SpectralLayer(dims, 2, 3, 0).double(),
        torch.randn(4, 2, *[10, 12][-dims:], dtype=torch.float64),
    )
    R = torch.view_as_complex(layer.spectral).unflatten(0, (-1, 3) if dims == 2 else (3,))
    spectrum = torch.fft.rfftn(h, dim=list(range(2, 2 + dims)))
    mixed = torch.zeros(4, 4, *spectrum.shape[2:], dtype=spectrum.dtype)
    for k in np.ndindex(R.shape[:dims]):
        frequency = k if dims == 1 else (layer.rows[k[0]], k[1])
        mixed[(..., *frequency)] = spectrum[(..., *frequency)] @ R[k]
    torch.testing.assert_close(
        layer._convolved(h), torch.fft.irfftn(mixed, s=h.shape[2:], dim=list(range(2, 2 + dims)))
    )


def test_shifted_functions_have_shifted_answers():
    """A periodic network knows no place."""
    T = model(summary=4)
    v, u, q = torch.randn(3, 5, 2, 12, 12, dtype=torch.float64)
    answer = T.regress(ExampleSet(v, u))(q)
    moved = T.regress(ExampleSet(v.roll(1, 2), u.roll(1, 2)))(q.roll(1, 2))
    assert torch.allclose(moved, answer.roll(1, 2), atol=1e-8)


@pytest.mark.parametrize("depth", [0, 1])
def test_bands_and_any_resolution(depth):
    T = model(depth=depth)
    v, u, q = torch.randn(3, 8, 2, 12, 12)
    O = T.regress(ExampleSet(v, u))
    mean, low, high = O.predict(q, at=(20, 20))
    assert mean.shape == (8, 2, 20, 20) and (low < mean).all() and (mean < high).all()
    assert torch.allclose(O.drop([0]).add(v[:1], u[:1])(q), O(q), atol=1e-4)


def test_weights_are_saved_with_their_prior(tmp_path):
    T = model(depth=1, summary=4)
    T.save_pretrained(tmp_path / "a.safetensors")
    v, u = coefficients(T, 2, 3)
    again = Transducer.from_pretrained(str(tmp_path / "a.safetensors")).double()
    assert torch.allclose(again(v, u, v), T(v, u, v), rtol=1e-4, atol=1e-4)


def test_far_from_what_it_was_trained_on_answers_stay_finite():
    T = model()
    v, u = coefficients(T, 2, 4)
    assert torch.isfinite(T(1e4 * v, u, 1e4 * v)).all()


@dataclass
class Wrong:
    V: object
    options: dict
    said: str


@pytest.mark.parametrize(
    "wrong",
    [
        Wrong(Euclidean(8), {}, "SineModes or FourierModes"),
        Wrong(SineModes(8), {"modes": 7}, "at least 14 points"),
        Wrong(SineModes(64), {}, "at least 66 points"),
        Wrong(SineModes(8), {"layers": 0}, "at least one"),
        Wrong(SineModes(8), {"chanels": 4}, "no option chanels; expected of channels"),
    ],
    ids=lambda wrong: wrong.said,
)
def test_bad_options_are_told(wrong):
    with pytest.raises(TransduceError, match=wrong.said):
        prior_of(wrong.V, wrong.V, SMALL | wrong.options)


def test_a_prior_is_between_functions_on_one_kind_of_grid():
    with pytest.raises(TransduceError, match="the same kind of grid"):
        prior_of(SineModes(4), FourierModes(4), SMALL)


def test_kernels_that_transform_do_not_follow_a_prior():
    with pytest.raises(TransduceError, match="kappa='representer'"):
        Transducer(SineModes(8), SineModes(8), prior=SMALL)


def test_a_card_holds_all_options_of_a_prior():
    given = dict(SMALL)
    T = Transducer(SineModes(8), SineModes(8), depth=0, prior=given)
    given["channels"] = 99
    assert T.config["prior"] == SMALL | {"readout": True, "summary": 0}
