"""A network's channels with a closed-form read-out: what the read-out minimises, symmetries of the
network, and limits."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch

from transduce import (
    Euclidean,
    ExampleSet,
    FourierModes,
    SineModes,
    TransduceError,
    Transducer,
    models,
)
from transduce.kernels.network import check_spaces
from transduce.kernels.spectral import SpectralLayer

SMALL = {"channels": 6, "layers": 2, "modes": 3, "grid": 12}
SPACES = {"1-D": lambda: SineModes(8), "2-D": lambda: FourierModes((3, 3), channels=2)}


def model(dims="2-D", further=False, **options):
    """A read-out; and, if `further`, ridge regression on its residuals."""
    torch.manual_seed(0)
    spaces = SPACES[dims](), SPACES[dims]()
    T = models.spectral(*spaces, **SMALL | options)
    if further:
        features = {"heads": 2, "width": 6, "hidden": 12, "universal": False}
        T = Transducer(*spaces, [*T.steps, *models.representer(*spaces, **features).steps])
    T = T.double()
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


@pytest.fixture(params=[(d, s, more) for d in SPACES for s in (0, 4) for more in (False, True)])
def T(request):
    dims, summary, further = request.param
    return model(dims, further, summary=summary)


def test_tasks_and_queries_do_not_see_each_other(T):
    (v, u), (q, _) = coefficients(T, 2, 6, batch=2), coefficients(T, 3, 4, batch=2)
    together = T(v, u, q)
    for i in range(2):
        alone = torch.cat(
            [T(v[i : i + 1], u[i : i + 1], q[i : i + 1, j : j + 1]) for j in range(4)], 1
        )
        assert torch.allclose(together[i : i + 1], alone, atol=1e-9)


def test_one_example_is_enough_and_every_parameter_gets_a_gradient(T):
    v, u = coefficients(T, 2, 3)
    assert torch.isfinite(T(v[:, :1], u[:, :1], v)).all()
    T.train()(v, u, v).square().sum().backward()
    assert all(
        p.grad is not None and p.grad.abs().max() > 0 for p in T.parameters() if p.requires_grad
    )


def channels(T, v):
    """h(v) on the network's grid."""
    network = T.steps[0].kappa.network
    return network(network.inputs(v / T.spread), None)


def test_the_read_out_minimises_the_squared_error_and_its_distance_from_W_0():
    T = model()
    kappa, (v, u) = T.steps[0].kappa, coefficients(T, 2, 4)
    W = T.condition(v, u)[0].W.detach().requires_grad_()
    target = (T.U.decode(u, (12, 12)) / kappa.network.unit).flatten(3)
    misfit = (target - W @ channels(T, v).detach()).square().mean(-1).sum()
    loss = misfit + (kappa.ridge * (W - kappa.W_0).square()).sum()
    (slope,) = torch.autograd.grad(loss, W)
    assert slope.abs().max() < 1e-9 * loss


def test_with_a_heavy_ridge_the_answer_is_W_0():
    T = model()
    v, u = coefficients(T, 2, 4)
    kappa = T.steps[0].kappa
    with torch.no_grad():
        kappa.log_ridge.fill_(5.0)
    B = T.U.encode((kappa.W_0 @ channels(T, v)).unflatten(3, (12, 12))) * kappa.network.unit
    assert torch.allclose(T(v, u, v), B, atol=1e-6)
    assert torch.allclose(model(readout=False)(v, u, v), B)


def test_one_large_example_spoils_neither_single_precision_nor_its_residual():
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
    """A periodic network is equivariant to shifts."""
    T = model(summary=4)
    v, u, q = torch.randn(3, 5, 2, 12, 12, dtype=torch.float64)
    answer = T.regress(ExampleSet(v, u))(q)
    moved = T.regress(ExampleSet(v.roll(1, 2), u.roll(1, 2)))(q.roll(1, 2))
    assert torch.allclose(moved, answer.roll(1, 2), atol=1e-8)


@pytest.mark.parametrize("further", [False, True])
def test_bands_and_any_resolution(further):
    T = model(further=further)
    v, u, q = torch.randn(3, 8, 2, 12, 12)
    O = T.regress(ExampleSet(v, u))
    mean, low, high = O.predict(q, at=(20, 20))
    assert mean.shape == (8, 2, 20, 20) and (low < mean).all() and (mean < high).all()
    assert torch.allclose(O.drop([0]).add(v[:1], u[:1])(q), O(q), atol=1e-4)


def test_a_summary_stays_the_same_when_fitting_again_with_the_same_choices():
    T = model(summary=4)
    kappa, (v, u) = T.steps[0].kappa, coefficients(T, 2, 6)
    fit = kappa.condition(v, u)
    again = kappa.refit(fit, v[:, 1:], u[:, 1:])
    assert again.z is fit.z
    torch.testing.assert_close(fit.residual[:, :1], u[:, :1] - kappa(again, v[:, :1]))
    assert not torch.allclose(kappa.condition(v[:, 1:], u[:, 1:]).z, fit.z)


def test_far_from_what_it_was_trained_on_answers_stay_finite():
    T = model()
    v, u = coefficients(T, 2, 4)
    assert torch.isfinite(T(1e4 * v, u, 1e4 * v)).all()


@dataclass
class Wrong:
    V: object
    options: dict
    message: str


@pytest.mark.parametrize(
    "wrong",
    [
        Wrong(SineModes(8), {"modes": 7}, "at least 14 points"),
        Wrong(SineModes(64), {}, "at least 66 points"),
        Wrong(SineModes(8), {"layers": 0}, "at least one"),
        Wrong(SineModes(8), {"summary": -1}, "summary=-1"),
    ],
    ids=lambda wrong: wrong.message,
)
def test_bad_options(wrong):
    with pytest.raises(TransduceError, match=wrong.message):
        models.spectral(wrong.V, wrong.V, **SMALL | wrong.options)


def test_both_spaces_are_of_modes_on_one_kind_of_grid():
    with pytest.raises(TransduceError, match="the same kind of grid"):
        models.spectral(SineModes(4), FourierModes(4), **SMALL)
    with pytest.raises(TransduceError, match="SineModes or FourierModes"):
        check_spaces(Euclidean(8), Euclidean(8))


def test_the_config_holds_all_options():
    T = models.spectral(SineModes(8), SineModes(8), **SMALL, summary=2)
    (layer,) = T.config["layers"]
    network = layer["kappa"]["network"]
    assert layer["kappa"]["part"] == "Readout" and layer["kappa"]["readout"] is True
    assert {name: network[name] for name in ("channels", "layers", "modes", "summary")} == {
        **{name: SMALL[name] for name in ("channels", "layers", "modes")},
        "summary": 2,
    }
    assert network["points"] == SMALL["grid"]
