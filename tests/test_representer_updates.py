"""Ridge regression that changes by a few examples, and examples that are hard to solve for."""

import pytest
import torch
from ridge_samples import GENTLE, everything, feature_ridge, gentle

from transduce.kernels import candidate_kinds, solving

with_and_without_universal = pytest.mark.parametrize(
    "universal", [True, False], ids=["universal", "features alone"]
)


@pytest.fixture
def make(monkeypatch):
    monkeypatch.setattr(candidate_kinds, "PLAIN", GENTLE)
    monkeypatch.setattr(solving, "FEW", 2.0)  # update, however many examples change
    return gentle


def agree(kappa, one, other, v_query):
    found = (everything(kappa, fit, v_query) for fit in (one, other))
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-8)


@torch.no_grad()
@with_and_without_universal
def test_an_update_is_a_fit_and_solves_no_system(universal, monkeypatch, make):
    kappa, v, u, v_query = make(n=16, universal=universal)
    before = kappa.condition(v[:, :12], u[:, :12])
    rows = [0, 1, 3, 4, 5, 7, 8, 10]
    now = [*rows, 12, 13, 14, 15]
    expected = kappa.condition(v[:, now], u[:, now])
    assert torch.equal(before.scale, expected.scale)
    monkeypatch.setattr(solving, "Solve", None)  # nothing is solved again
    agree(kappa, kappa.update(before, rows, v[:, now], u[:, now]), expected, v_query)


@torch.no_grad()
def test_after_training_an_update_fits_again(make):
    kappa, v, u, v_query = make()
    before = kappa.condition(v, u)
    kappa.candidates.gram.features.linear.weight.add_(0.3)
    updated = kappa.update(before, list(range(1, 12)), v[:, 1:], u[:, 1:])
    agree(kappa, updated, kappa.condition(v[:, 1:], u[:, 1:]), v_query)


@torch.no_grad()
def test_many_changes_are_fitted_again(monkeypatch, make):
    kappa, v, u, _ = make(n=34)
    monkeypatch.setattr(solving, "FEW", 1 / 16)
    before = kappa.condition(v[:, :32], u[:, :32])
    monkeypatch.setattr(solving, "extended", None)  # no update
    kappa.update(before, list(range(2, 32)), v[:, 2:], u[:, 2:])
    with pytest.raises(TypeError):
        kappa.update(before, list(range(1, 32)), v[:, 1:33], u[:, 1:33])


@torch.no_grad()
def test_a_hundred_updates_do_not_drift(monkeypatch, make):
    """A window that slides over examples, one gone and one new each time."""
    kappa, v, u, v_query = make(n=120)
    updated, expected = (
        kappa.condition(v[:, rows], u[:, rows]) for rows in (slice(20), slice(100, 120))
    )
    monkeypatch.setattr(solving, "Solve", None)  # nothing is solved again
    for i in range(1, 101):
        updated = kappa.update(updated, list(range(1, 20)), v[:, i : i + 20], u[:, i : i + 20])
    agree(kappa, updated, expected, v_query)


@torch.no_grad()
@pytest.mark.parametrize("exact", [1024, 13], ids=["other scale", "other system"])
def test_updates_across_a_change_of_scale_or_system_fit_again(exact, make):
    """The new examples change the scale, or are too many for the n x n systems."""
    kappa, v, u, v_query = make(n=16)
    v[:, 12:] *= 20 if exact == 1024 else 1
    before = kappa.condition(v[:, :12], u[:, :12])
    kappa.exact = exact
    whole = kappa.condition(v, u)
    assert (whole.landmarks is None) == bool(torch.any(before.scale != whole.scale))
    updated = kappa.update(before, list(range(12)), v, u)
    back = kappa.update(whole, list(range(12)), v[:, :12], u[:, :12])
    torch.testing.assert_close(kappa(updated, v_query), kappa(whole, v_query), rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(kappa(back, v_query), kappa(before, v_query), rtol=1e-8, atol=1e-8)


@torch.no_grad()
@pytest.mark.parametrize(
    "rows", [[2, 0, 1, *range(3, 12)], [0, 1, 2, 3]], ids=["other order", "fewer"]
)
def test_an_update_keeps_the_rows_in_the_order_given(rows, make):
    kappa, v, u, v_query = make()
    updated = kappa.update(kappa.condition(v, u), rows, v[:, rows], u[:, rows])
    agree(kappa, updated, kappa.condition(v[:, rows], u[:, rows]), v_query)


@torch.no_grad()
def test_an_update_of_a_masked_fit_forgets_the_mask(make):
    kappa, v, u, v_query = make()
    masked = kappa.condition(v, u, torch.arange(12)[None] < 9)
    agree(kappa, kappa.update(masked, list(range(12)), v, u), kappa.condition(v, u), v_query)


def test_gradients_are_never_lost_to_an_update(make):
    kappa, v, u, v_query = make()
    with torch.no_grad():
        before = kappa.condition(v[:, :10], u[:, :10])
    gradients = []
    for fit in (
        lambda: kappa.condition(v, u),
        lambda: kappa.update(before, list(range(10)), v, u),
    ):
        kappa.zero_grad()
        kappa(fit(), v_query).sum().backward()
        gradients.append(
            [parameter.grad.clone() for parameter in kappa.parameters() if parameter.requires_grad]
        )
    torch.testing.assert_close(*gradients)


def twins(v, u):
    return torch.cat([v, v], 1), torch.cat([u, u], 1)


# Examples that are hard to solve for, as functions of ten ordinary ones.
DEGENERATE = {
    "one": lambda v, u: (v[:, :1], u[:, :1]),
    "two": lambda v, u: (v[:, :2], u[:, :2]),
    "copies": twins,
    "copies that disagree": lambda v, u: (twins(v, u)[0], torch.cat([u, -u], 1)),
    "nearly copies": lambda v, u: (torch.cat([v, v + 1e-9], 1), twins(v, u)[1]),
    "nearly copies that disagree": lambda v, u: (
        torch.cat([v, v + 1e-9], 1),
        torch.cat([u, -u], 1),
    ),
    "all the same": lambda v, u: (v[:, :1].expand(-1, 10, -1), u[:, :1].expand(-1, 10, -1)),
    "all the same v": lambda v, u: (v[:, :1].expand(-1, 10, -1), u),
    "v = 0": lambda v, u: (0 * v, u),
    "v and u = 0": lambda v, u: (0 * v, 0 * u),
    "u = 0": lambda v, u: (v, 0 * u),
    "u constant": lambda v, u: (v, u[:, :1].expand(-1, 10, -1)),
    "u of one coefficient": lambda v, u: (v, u * torch.tensor([0.0, 1.0, 0.0])),
    "huge": lambda v, u: (1e6 * v, 1e6 * u),
    "tiny": lambda v, u: (1e-6 * v, 1e-6 * u),
}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@with_and_without_universal
@pytest.mark.parametrize("case", DEGENERATE)
def test_degenerate_examples_have_finite_answers_and_gradients(case, universal, dtype):
    """With the ridges that a model starts with. No answer at an example is far beyond the examples'
    own."""
    torch.manual_seed(0)
    kappa = feature_ridge(universal=universal).to(dtype)
    v, u = DEGENERATE[case](torch.randn(1, 10, 4, dtype=dtype), torch.randn(1, 10, 3, dtype=dtype))
    parts = everything(kappa, kappa.condition(v, u.to(dtype)), v)
    assert all(torch.isfinite(part).all() for part in parts)
    assert parts[0].dtype == parts[1].dtype == dtype
    assert parts[0].abs().max() <= 2 * u.abs().max()
    parts[0].square().sum().backward()
    assert all(
        torch.isfinite(parameter.grad).all()
        for parameter in kappa.parameters()
        if parameter.grad is not None
    )


def test_no_signal_gives_zero(make):
    kappa, v, u, v_query = make()
    fit = kappa.condition(v, 0 * u)
    assert (kappa(fit, v_query) == 0).all()
    assert (fit.residual == 0).all()


def test_a_copy_changes_little():
    torch.manual_seed(0)
    kappa = feature_ridge().double()
    v, v_query = (torch.randn(1, n, 4, dtype=torch.float64) for n in (20, 50))
    u = v[..., :3].tanh() + v[..., 1:]
    answer = kappa(kappa.condition(v, u), v_query)
    for nearly in (0, 1e-9):
        copied = torch.cat([v, v[:, :1] + nearly], 1), torch.cat([u, u[:, :1]], 1)
        again = kappa(kappa.condition(*copied), v_query)
        assert (again - answer).norm() < 0.05 * answer.norm()


def test_single_precision_is_near_double(make):
    kappa, v, u, v_query = make()
    double = kappa(kappa.condition(v, u), v_query)
    kappa = kappa.float()
    single = kappa(kappa.condition(v.float(), u.float()), v_query.float())
    torch.testing.assert_close(single.double(), double, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("spoil", [1e-12, 1e6], ids=str)
def test_badly_conditioned_features(spoil):
    """Features whose sizes differ by factors of 1e-12 or 1e6: answers are finite and accurate."""
    torch.manual_seed(0)
    kappa = feature_ridge(layers=0)
    weight = kappa.candidates.gram.features.linear.weight.data
    weight[1::2] *= spoil
    weight[2] = weight[0]
    v = torch.randn(1, 60, 4)
    u = v[..., :3]
    fit = kappa.condition(v[:, :50], u[:, :50])
    error = kappa(fit, v[:, 50:]) - u[:, 50:]
    parts = everything(kappa, fit, v)
    assert torch.isfinite(torch.cat([part.flatten() for part in parts])).all()
    assert error.square().mean() < 0.01 * u.square().mean()
