"""The general model between fields: spaces, windows, the read-out, and `transduce.regress`."""

import numpy as np
import pytest
import torch

import transduce
from transduce import TransduceError, models
from transduce.inputs import read_pairs
from transduce.kernels import FieldNetwork, FieldReadout, field_readout, left_out
from transduce.kernels.field_window import FieldWindow, carried_along, disc
from transduce.kernels.metrics import Metric
from transduce.kernels.window import WindowRidge
from transduce.regression.named import FIELDS, weights_for
from transduce.spaces import Sampled, SampledFields

X, Y = 12, 14


def smooth(n: int, channels: int = 1, seed: int = 0, grid: tuple[int, int] = (X, Y)) -> np.ndarray:
    """Random fields of a few waves, (n, x, y) or (n, channels, x, y)."""
    g = np.random.default_rng(seed)
    x, y = (np.linspace(0, 1, points) for points in grid)
    waves = [np.cos(np.pi * (j * x[:, None] + k * y)) for j in range(3) for k in range(3)]
    f = np.einsum("nck,kxy->ncxy", g.standard_normal((n, channels, 9)), np.stack(waves))
    return f[:, 0] if channels == 1 else f


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """An untrained model in a file, whose simple answers are those of the bundled one."""
    torch.manual_seed(0)
    own = SampledFields(32, 32, 2)
    T = models.fields(own, own, channels=4, layers=1, modes=2, summary=4, width=8)
    path = tmp_path_factory.mktemp("fields") / "model.safetensors"
    T.save_pretrained(path)
    return str(path)


def relative(answer, truth, examples):
    return np.square(answer - truth).sum() / np.square(truth - examples.mean(0)).sum()


def test_values_of_polynomials_are_exact_on_any_grid():
    """Cubic splines hold them, along each axis."""
    x, y = (torch.linspace(0, 1, k).double() for k in (9, 11))
    f = (x[:, None] ** 3 - x[:, None] * y**2 + y)[None]
    space = SampledFields(9, 11)
    c = space.encode(f)
    assert torch.equal(space.decode(c, (9, 11)), f)
    s, t = (torch.linspace(0, 1, k).double() for k in (17, 8))
    fine = (s[:, None] ** 3 - s[:, None] * t**2 + t)[None]
    torch.testing.assert_close(space.decode(c, (17, 8)), fine)
    torch.testing.assert_close(space.onto(SampledFields(17, 8))(f), fine)
    places = torch.tensor([[0.3, 0.7], [0.9, 0.1]]).double()
    expected = places[:, 0] ** 3 - places[:, 0] * places[:, 1] ** 2 + places[:, 1]
    torch.testing.assert_close(space.decode(c, places)[0], expected)


def test_a_space_fits_itself_to_fields():
    space = SampledFields(8, 9)
    assert space.fitted_to(torch.zeros(3, 8, 9), None) is space
    assert (
        space.fitted_to(torch.zeros(3, 2, 7, 9), None).config() == SampledFields(7, 9, 2).config()
    )
    with pytest.raises(TransduceError, match="scattered"):
        space.encode(torch.zeros(1, 72), torch.zeros(72, 2))


def test_slopes_of_half_a_wave_count_as_much_as_its_values():
    """The metric "with slopes" of cos(pi x) is the same as that of its values and of sin(pi x)."""
    x = torch.linspace(0, 1, 201).double()
    f = torch.cos(torch.pi * x)[None, :, None].expand(2, -1, 9).flatten(1)
    metric = Metric(SampledFields(201, 9), "with slopes")
    values, along_x, along_y = metric((torch.zeros(()),), f)[0].split([201 * 9, 200 * 9, 201 * 8])
    mean = [part.square().mean() for part in (values, along_x, along_y)]
    torch.testing.assert_close(mean[0], mean[1], rtol=0.01, atol=0)
    assert mean[2] < 1e-20


def test_windows_are_consecutive_columns_of_the_largest():
    for channels, carried in ((1, False), (2, False), (2, True)):
        W = FieldWindow(SampledFields(9, 10), channels, carried)
        f = torch.randn(2, channels, 90).double()
        whole = W(f, W.reaches[-1], True)
        for reach in W.reaches:
            for products in (False, True):
                own = W(f, reach, products)
                assert torch.equal(whole[..., W.columns(reach, products)], own)


def test_periodic_windows_move_with_fields():
    """Of shifted fields they are the shifted ones, also at the edges."""
    own = SampledFields(X, Y)
    v = torch.from_numpy(smooth(3, 2)).double()
    moved = v.roll((2, 5), (2, 3))
    carried = carried_along(v, 0.05, own, periodic=True)
    torch.testing.assert_close(
        carried_along(moved, 0.05, own, periodic=True), carried.roll((2, 5), (2, 3))
    )
    W = FieldWindow(own, 2, periodic=True)
    values = [W._around(f, 2).unflatten(3, (X, Y)) for f in (v, moved)]
    torch.testing.assert_close(values[1], values[0].roll((2, 5), (3, 4)))


def test_constant_fields_carry_others_along_by_their_displacement():
    """A small wave in a field of ones moves by two points of a torus."""
    own, displacement = SampledFields(40, 40), 2 / 40
    wave = torch.sin(2 * torch.pi * torch.arange(40).double() / 40)[:, None].expand(-1, 40)
    v = torch.stack([torch.ones(40, 40).double(), 1e-6 * wave])[None]
    found = carried_along(v, displacement, own, periodic=True)[0]
    torch.testing.assert_close(found[0], v[0, 0])
    torch.testing.assert_close(found[1] / 1e-6, wave.roll(2, 0), rtol=0, atol=0.03)


def test_a_disc_is_ordered_by_distance():
    lengths = [i * i + j * j for i, j in disc(4)]
    assert lengths == sorted(lengths) and lengths[-1] <= 16 and len(lengths) == 49


def test_a_constant_field_carries_by_a_shift():
    """Bicubic interpolation is exact for quadratic functions."""
    U = SampledFields(21, 21)
    x = torch.linspace(0, 1, 21).double()
    v = torch.zeros(1, 2, 21, 21).double()
    v[:, 0] = 1.0
    v[:, 1] = (x[:, None] ** 2 + x)[None]  # carried along the first axis, and a little along y
    w = carried_along(v, 0.05, U)
    torch.testing.assert_close(w[:, 0], v[:, 0])
    inner = slice(6, 15)
    shifted = (x[:, None] - 0.05) ** 2 + x
    moved = w[0, 1][inner, inner]
    assert (moved - shifted[inner, inner]).abs().max() < (moved - v[0, 1][inner, inner]).abs().max()


def test_advection_by_itself_is_a_carried_window():
    U = SampledFields(24, 24, 2)
    v = torch.from_numpy(smooth(9, 2, grid=(24, 24)))
    v = v - v.mean()
    u = carried_along(v / v.std(), 0.05, U)
    kernel = WindowRidge(U, U, FieldWindow(U, 2, carried=True))
    fit = kernel.fit_task(v[:6].flatten(1), u[:6].flatten(1))
    answer = kernel.answer_task(fit, v[6:].flatten(1)).numpy()
    assert relative(answer, u[6:].flatten(1).numpy(), u[:6].flatten(1).numpy()) < 1e-3


def test_residuals_of_the_readout_are_those_of_refits(monkeypatch):
    """With the same equations of each example, and one ridge."""
    torch.manual_seed(0)
    V, U = SampledFields(8, 9, 1), SampledFields(7, 8, 2)
    R = FieldReadout(V, U, FieldNetwork(4, 1, 2, 12, 4), 1).eval()
    v, u = torch.randn(1, 6, V.size).double(), torch.randn(1, 6, U.size).double()
    same = (torch.arange(24) * 3)[None]
    monkeypatch.setattr(field_readout, "staggered", lambda n, points, most: same.expand(n, -1))
    monkeypatch.setattr(left_out, "FACTORS", (1.0,))
    with torch.no_grad():
        fit = R.condition(v, u)
        for i in range(6):
            kept = [k for k in range(6) if k != i]
            other = R.refit(fit, v[:, kept], u[:, kept])
            left = u[:, i] - R(other, v[:, [i]])[:, 0]
            torch.testing.assert_close(fit.residual[:, i], left, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("channels", [(1, 1), (2, 1), (1, 2), (2, 2), (3, 1)])
def test_fields_of_any_channels_and_grids(model, channels):
    v = smooth(12, channels[0])
    u = smooth(12, channels[1], grid=(9, 10))
    O = transduce.regress(v[:10], u[:10], model=model)
    mean, low, high = O.predict(v[10:])
    assert mean.shape == low.shape == u[10:].shape and (low <= high).all()
    assert np.array_equal(O(v[10:]), mean)


def test_a_local_law_is_exact(model):
    v = smooth(12)
    u = v + 0.1 * (np.roll(v, 1, 1) + np.roll(v, -1, 1) + v**2)
    v, u = v, u[:, 1:-1, 1:-1]
    v = v[:, 1:-1, 1:-1]
    O = transduce.regress(v[:8], u[:8], model=model)
    assert relative(O(v[8:]), u[8:], u[:8]) < 0.02
    assert O.report().error < 0.05


@pytest.mark.parametrize("factor", [1e-3, 1e5])
def test_units_of_fields_do_not_matter(model, factor):
    v, u = smooth(10, 2), smooth(10, 1, seed=1)
    answer = transduce.regress(v[:8], u[:8], model=model)(v[8:])
    scaled = transduce.regress(factor * v[:8], factor * u[:8] + 7, model=model)(factor * v[8:])
    np.testing.assert_allclose((scaled - 7) / factor, answer, atol=1e-5 * u.std())


def test_a_regression_of_fields_is_saved_and_loaded(model, tmp_path):
    v, u = smooth(10, 2), smooth(10, 1, seed=1)
    O = transduce.regress(v[:8], u[:8], model=model)
    O.save(tmp_path / "fields.safetensors")
    assert np.array_equal(transduce.load(tmp_path / "fields.safetensors")(v[8:]), O(v[8:]))


@pytest.mark.filterwarnings("ignore:the graph leaves out")
def test_fields_are_exported(model, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    v = smooth(14, 2)
    u = v[:, 0] * v[:, 1]
    O = transduce.regress(v[:12], u[:12], model=model)
    O.export(tmp_path / "fields.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "fields.onnx")
    (found,) = session.run(["u"], {"v": v[12:]})
    assert relative(found, u[12:], u[:12]) < 1.5 * relative(O(v[12:]), u[12:], u[:12]) + 1e-6


def test_the_general_model_of_fields_is_that_for_two_fields():
    field, curve = smooth(6), smooth(6)[:, 0]
    names = transduce.names()
    for v, u, fields in ((field, field, True), (curve, field, False), (field, curve, False)):
        name = weights_for("general", read_pairs(v, u))
        assert name == (FIELDS if fields and FIELDS in names else "general")
    assert weights_for("adr", read_pairs(field, field)) == "adr"


def test_curves_to_fields_and_fields_to_curves():
    v, u = smooth(14)[:, 0], smooth(14)
    assert relative(transduce.regress(v[:10], u[:10])(v[10:]), u[10:], u[:10]) < 2
    assert transduce.regress(u[:10], v[:10])(u[10:]).shape == v[10:].shape


def test_spaces_of_readouts_are_refused_where_they_do_not_fit():
    network = FieldNetwork(4, 1, 2, 8, 4)
    with pytest.raises(TransduceError, match="at most 2"):
        FieldReadout(SampledFields(5, 5, 3), SampledFields(5, 5), network)
    with pytest.raises(TransduceError, match="fields on grids"):
        FieldReadout(SampledFields(5, 5), SampledFields(5, 5), network).between(
            Sampled(9), Sampled(9)
        )
