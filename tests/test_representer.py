"""The representer kernel: ridge regression by its formulas, and what follows from them."""

import math

import numpy as np
import pytest
import torch
from conftest import small_transducer

from transduce import TransduceError
from transduce.kernels import Known, Representer, representer

GENTLE = ((0.3, 1e-2, 0.0), (1.0, 1e-4, 0.1))
CANDIDATES = [(True, j) for j in range(8)] + [
    (False, j) for j in range(6)
]  # two heads of three ridges each, and the plain ones
every_candidate = pytest.mark.parametrize(("universal", "j"), CANDIDATES)
with_and_without_universal = pytest.mark.parametrize(
    "universal", [True, False], ids=["universal", "features alone"]
)


@pytest.fixture
def make(monkeypatch):
    """Kernels from 4 to 3 coefficients whose ridges are no smaller than 1e-4, so that formulas hold
    to many digits."""
    monkeypatch.setattr(representer, "PLAIN", GENTLE)
    monkeypatch.setattr(representer, "FEW", 2.0)  # update, however many examples change

    def build(n=12, queries=5, **options):
        torch.manual_seed(5)
        kappa = Representer(
            4,
            3,
            **{"heads": 2, "width": 6, "hidden": 8, "feature_layers": 2, "ridges": 3} | options,
        ).double()
        kappa.log_ridge.data.copy_(
            torch.linspace(math.log(1e-1), math.log(1e-4), kappa.ridges) / representer.PACE
        )
        v, u, v_query = (
            torch.randn(1, *shape, dtype=torch.float64) for shape in ((n, 4), (n, 3), (queries, 4))
        )
        with (
            torch.no_grad()
        ):  # a mean square of 4: a few examples more or less do not change the scale
            size = (
                kappa.features(v)
                .unflatten(-1, (kappa.heads, -1))
                .square()
                .sum(-1)
                .mean((0, 1))
                .sqrt()
            )
            for name, last in kappa.features.named_parameters():
                if not name.startswith("layers"):
                    last.unflatten(0, (kappa.heads, -1)).mul_(2 / size.view(-1, *[1] * last.ndim))
        return kappa, v, u, v_query

    return build


def choose(kappa, j):
    """Let candidate j alone answer."""
    kappa.preference.data.fill_(-1e4)
    kappa.preference.data[j] = 1e4


def by_hand(kappa, j, examples):
    """k_j as a function of two sets of functions, and lambda_j, with the scale that these examples
    set."""
    learned = j < kappa.heads * kappa.ridges
    h, m = divmod(j, kappa.ridges) if learned else (0, None)
    width = kappa.features.linear.out_features // kappa.heads

    def phi(a):
        return kappa.features(a[None])[0, :, h * width : (h + 1) * width].detach().numpy()

    if not learned:
        g, ridge, share = GENTLE[j - kappa.heads * kappa.ridges]
        c, metric = 1 - share, kappa.plain
    else:
        ridge = math.exp(representer.PACE * kappa.log_ridge[h, m].item())
        c = (
            1 / (1 + math.exp(-representer.PACE * kappa.log_odds[h, m].item()))
            if kappa.universal
            else 0
        )
        g, metric = (
            (math.exp(representer.PACE * kappa.log_width[m].item()), kappa.metric)
            if kappa.universal
            else (0, 0)
        )
    scale = 4 ** np.round(np.log(np.mean(np.sum(phi(examples) ** 2, 1))) / np.log(4))

    def k(a, b):
        squared = np.sum(((a[:, None] - b[None]) * metric).detach().numpy() ** 2, -1)
        return (1 - c) * phi(a) @ phi(b).T / scale + c * np.exp(-g * squared)

    return k, ridge


def fit(k, ridge, v, u, v_query):
    """Kernel ridge regression, and its Gaussian process's standard deviations."""
    K, across = k(v, v) + ridge * np.eye(len(v)), k(v_query, v)
    variances = (
        np.diag(k(v_query, v_query)) + ridge - np.diag(across @ np.linalg.solve(K, across.T))
    )
    return across @ np.linalg.solve(K, u.numpy()), np.sqrt(variances)


def relative_error(kappa, operator, n, d):
    """Of the answers to 50 queries after n examples of d coefficients."""
    generator = torch.Generator().manual_seed(3)
    v_query, v = (
        torch.randn(1, size, d, generator=generator, dtype=torch.float64) for size in (50, n)
    )
    with torch.no_grad():
        error = kappa(kappa.condition(v, operator(v)), v_query) - operator(v_query)
    return float(error.square().sum() / operator(v_query).square().sum())


def everything(kappa, sources, v_query):
    return (
        kappa(sources, v_query),
        sources.residual,
        sources.deviation,
        kappa.deviations(sources, v_query),
    )


@every_candidate
def test_a_candidate_alone_is_kernel_ridge_regression(j, universal, make):
    kappa, v, u, v_query = make(universal=universal)
    choose(kappa, j)
    sources = kappa.condition(v, u)
    answers, deviations = fit(*by_hand(kappa, j, v[0]), v[0], u[0], v_query[0])
    np.testing.assert_allclose(kappa(sources, v_query)[0].detach(), answers, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(
        kappa.deviations(sources, v_query)[0].detach(), deviations, rtol=1e-8
    )
    weights = kappa.weights(sources, v_query)[0, j]
    np.testing.assert_allclose((weights @ u[0]).detach(), answers, rtol=1e-8, atol=1e-8)


@every_candidate
def test_residuals_are_those_of_fits_without_the_example(j, universal, make):
    kappa, v, u, _ = make(universal=universal)
    choose(kappa, j)
    sources = kappa.condition(v, u)
    k, ridge = by_hand(kappa, j, v[0])
    for i in range(12):
        others = [other for other in range(12) if other != i]
        answer, deviation = fit(k, ridge, v[0, others], u[0, others], v[0, i : i + 1])
        np.testing.assert_allclose(
            sources.residual[0, i].detach(), u[0, i].numpy() - answer[0], rtol=1e-7, atol=1e-8
        )
        np.testing.assert_allclose(sources.deviation[0, i].detach(), deviation[0], rtol=1e-7)


def test_candidates_are_mixed_by_what_they_leave(make):
    """w_j = softmax_j(a_j - b log <r_j^2> - b' log <|r_j|^2>), b ~ n^e, for each coefficient, zero
    being one more candidate."""
    kappa, v, u, v_query = make()
    torch.nn.init.normal_(kappa.preference)
    kappa.log_trust.data.copy_(torch.tensor([-0.3, 0.2]))
    sources, learned = kappa.condition(v, u), kappa.preference.data.clone()
    alone = []
    for j in range(8):
        choose(kappa, j)
        alone.append(kappa.condition(v, u))
    residuals = torch.stack([candidate.residual for candidate in alone] + [u], 1)
    answers = torch.stack(
        [kappa(candidate, v_query) for candidate in alone] + [torch.zeros(1, 5, 3)], 1
    )
    errors = residuals.square().mean(2)
    b = kappa.log_trust.exp() * (12 / 50) ** kappa.growth
    w = (learned - b[0] * errors.log() - b[1] * errors.sum(-1, keepdim=True).log()).softmax(1)
    torch.testing.assert_close(sources.mix, w[:, :-1])
    torch.testing.assert_close(sources.residual, (w[:, :, None] * residuals).sum(1))
    torch.testing.assert_close(kappa(sources, v_query), (w[:, :, None] * answers).sum(1))


@pytest.mark.parametrize("factor", [-1.0, 1e-8, 3e9])
def test_the_answer_scales_with_u(factor, make):
    kappa, v, u, v_query = make()
    torch.testing.assert_close(
        kappa(kappa.condition(v, factor * u), v_query),
        factor * kappa(kappa.condition(v, u), v_query),
    )


@pytest.mark.parametrize("exact", [3, 2], ids=["n x n", "p x p"])
def test_gradients_of_answers_and_residuals(exact, monkeypatch, make):
    monkeypatch.setattr(representer, "EXACT", exact)
    monkeypatch.setattr(representer, "LANDMARKS", 2)
    kappa, *given = make(n=3, queries=1, heads=1, ridges=2)

    def answers_and_residuals(v, u, v_query):
        sources = kappa.condition(v, u)
        return kappa(sources, v_query), sources.residual

    assert torch.autograd.gradcheck(answers_and_residuals, tuple(f.requires_grad_() for f in given))


@pytest.mark.parametrize("layers", [0, 2], ids=["linear features", "learned features"])
@with_and_without_universal
def test_both_systems_agree(universal, layers, monkeypatch, make):
    """K = Psi Psi^T where every example is a landmark, and without the universal kernel whatever
    they are."""
    kappa, v, u, v_query = make(n=30, universal=universal, feature_layers=layers)
    kappa.log_ridge.data.clamp_(min=math.log(1e-2) / representer.PACE)
    by_examples = kappa.condition(v, u)
    monkeypatch.setattr(representer, "EXACT", 29)
    monkeypatch.setattr(representer, "LANDMARKS", 30 if universal else 4)
    by_features = kappa.condition(v, u)
    assert by_examples.exact and not by_features.exact
    tolerance = (
        1e-6 if universal else 1e-10
    )  # the universal kernel at the landmarks is whitened with a ridge of 1e-10
    for one, other in zip(
        everything(kappa, by_examples, v_query),
        everything(kappa, by_features, v_query),
        strict=True,
    ):
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)


def test_more_examples_than_landmarks_still_help(monkeypatch, make):
    """What the landmarks span is fitted to all examples."""
    kappa, *_ = make()
    A, B = torch.randn(2, 4, 3, dtype=torch.float64)

    def operator(v):
        return v @ A + (0.5 * v @ B).sin()

    monkeypatch.setattr(representer, "EXACT", 40)
    monkeypatch.setattr(representer, "LANDMARKS", 40)
    few, many = (relative_error(kappa, operator, n, 4) for n in (40, 400))
    assert many < 0.5 * few


def test_what_is_not_finite_is_refused(make):
    kappa, v, u, _ = make()
    v[0, 3, 1] = torch.nan
    with pytest.raises(TransduceError, match="expected finite features"):
        kappa.condition(v, u)


@torch.no_grad()
@with_and_without_universal
def test_an_update_is_conditioning_anew(universal, monkeypatch, make):
    kappa, v, u, v_query = make(n=16, universal=universal)
    before = kappa.condition(v[:, :12], u[:, :12])
    rows = [0, 1, 3, 4, 5, 7, 8, 10]
    now = [*rows, 12, 13, 14, 15]
    anew = kappa.condition(v[:, now], u[:, now])
    assert torch.equal(before.scale, anew.scale)
    monkeypatch.setattr(representer, "Solve", None)  # nothing is solved again
    updated = kappa.condition(v[:, now], u[:, now], known=Known(before, rows))
    for one, other in zip(
        everything(kappa, updated, v_query), everything(kappa, anew, v_query), strict=True
    ):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-8)


@torch.no_grad()
def test_an_update_after_training_went_on_is_made_anew(make):
    kappa, v, u, v_query = make()
    before = kappa.condition(v, u)
    kappa.features.linear.weight.add_(0.3)
    updated = kappa.condition(v[:, 1:], u[:, 1:], known=Known(before, list(range(1, 12))))
    torch.testing.assert_close(
        kappa(updated, v_query), kappa(kappa.condition(v[:, 1:], u[:, 1:]), v_query)
    )


@torch.no_grad()
def test_many_changes_are_factorised_anew(monkeypatch, make):
    kappa, v, u, _ = make(n=34)
    monkeypatch.setattr(representer, "FEW", 1 / 16)
    before = kappa.condition(v[:, :32], u[:, :32])
    monkeypatch.setattr(representer, "extended", None)  # no update
    kappa.condition(v[:, 2:], u[:, 2:], known=Known(before, list(range(2, 32))))
    with pytest.raises(TypeError):
        kappa.condition(v[:, 1:33], u[:, 1:33], known=Known(before, list(range(1, 32))))


@torch.no_grad()
def test_a_hundred_updates_do_not_drift(monkeypatch, make):
    """A window that slides over examples, one gone and one come each time."""
    kappa, v, u, v_query = make(n=120)
    updated, anew = (
        kappa.condition(v[:, rows], u[:, rows]) for rows in (slice(20), slice(100, 120))
    )
    monkeypatch.setattr(representer, "Solve", None)  # nothing is solved again
    for i in range(1, 101):
        updated = kappa.condition(
            v[:, i : i + 20], u[:, i : i + 20], known=Known(updated, list(range(1, 20)))
        )
    for one, other in zip(
        everything(kappa, updated, v_query), everything(kappa, anew, v_query), strict=True
    ):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-8)


@torch.no_grad()
@pytest.mark.parametrize("exact", [1024, 13], ids=["other scale", "other system"])
def test_an_update_that_does_not_hold_is_not_made(exact, monkeypatch, make):
    """Where the new examples change the scale, or are too many for the n x n systems."""
    kappa, v, u, v_query = make(n=16)
    v[:, 12:] *= 20 if exact == 1024 else 1
    before = kappa.condition(v[:, :12], u[:, :12])
    monkeypatch.setattr(representer, "EXACT", exact)
    anew = kappa.condition(v, u)
    assert anew.exact == torch.any(before.scale != anew.scale)
    updated = kappa.condition(v, u, known=Known(before, list(range(12))))
    back = kappa.condition(v[:, :12], u[:, :12], known=Known(anew, list(range(12))))
    torch.testing.assert_close(kappa(updated, v_query), kappa(anew, v_query), rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(kappa(back, v_query), kappa(before, v_query), rtol=1e-8, atol=1e-8)


@torch.no_grad()
@pytest.mark.parametrize(
    "rows", [[2, 0, 1, *range(3, 12)], [0, 1, 2, 3]], ids=["other order", "fewer"]
)
def test_an_update_keeps_the_rows_in_the_order_given(rows, make):
    kappa, v, u, v_query = make()
    updated = kappa.condition(v[:, rows], u[:, rows], known=Known(kappa.condition(v, u), rows))
    anew = kappa.condition(v[:, rows], u[:, rows])
    torch.testing.assert_close(kappa(updated, v_query), kappa(anew, v_query), rtol=1e-8, atol=1e-8)


@torch.no_grad()
@pytest.mark.parametrize(("before", "now"), [(9, None), (None, 9), (9, 7)], ids=str)
def test_an_update_knows_of_masks(before, now, make):
    kappa, v, u, v_query = make()
    masks = [None if count is None else torch.arange(12)[None] < count for count in (before, now)]
    updated = kappa.condition(
        v, u, masks[1], known=Known(kappa.condition(v, u, masks[0]), list(range(12)))
    )
    torch.testing.assert_close(
        kappa(updated, v_query),
        kappa(kappa.condition(v, u, masks[1]), v_query),
        rtol=1e-8,
        atol=1e-8,
    )


def test_gradients_are_never_lost_to_an_update(make):
    kappa, v, u, v_query = make()
    with torch.no_grad():
        before = kappa.condition(v[:, :10], u[:, :10])
    gradients = []
    for known in (None, Known(before, list(range(10)))):
        kappa.zero_grad()
        kappa(kappa.condition(v, u, known=known), v_query).sum().backward()
        gradients.append(
            [parameter.grad.clone() for parameter in kappa.parameters() if parameter.requires_grad]
        )
    torch.testing.assert_close(*gradients)


def degenerate():
    """Examples that a solver may stumble over, as functions of ten ordinary ones."""

    def twins(v, u):
        return torch.cat([v, v], 1), torch.cat([u, u], 1)

    return {
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
@pytest.mark.parametrize("case", degenerate())
def test_degenerate_examples_have_finite_answers_and_gradients(case, universal, dtype):
    """With the ridges that a model starts with. No answer at an example is far beyond the examples'
    own."""
    torch.manual_seed(0)
    kappa = Representer(4, 3, heads=2, width=6, hidden=8, feature_layers=2, universal=universal).to(
        dtype
    )
    v, u = degenerate()[case](
        torch.randn(1, 10, 4, dtype=dtype), torch.randn(1, 10, 3, dtype=dtype)
    )
    sources = kappa.condition(v, u.to(dtype))
    parts = everything(kappa, sources, v)
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
    sources = kappa.condition(v, 0 * u)
    assert (kappa(sources, v_query) == 0).all()
    assert (sources.residual == 0).all()


@every_candidate
def test_copies_are_one_example_of_their_mean_and_of_a_share_of_the_ridge(universal, j, make):
    """Whether or not they agree."""
    kappa, v, u, v_query = make(n=8, universal=universal)
    choose(kappa, j)
    v[:, 1:3] = v[:, :1]
    k, ridge = by_hand(kappa, j, v[0])
    kept, mean = [0, *range(3, 8)], torch.cat([u[0, :3].mean(0, keepdim=True), u[0, 3:]])
    K = k(v[0, kept], v[0, kept]) + ridge * np.diag([1 / 3, 1, 1, 1, 1, 1])
    expected = k(v_query[0], v[0, kept]) @ np.linalg.solve(K, mean.numpy())
    np.testing.assert_allclose(
        kappa(kappa.condition(v, u), v_query)[0].detach(), expected, rtol=1e-7, atol=1e-7
    )


def test_a_copy_changes_little():
    torch.manual_seed(0)
    kappa = Representer(4, 3, heads=2, width=6, hidden=8, feature_layers=2).double()
    v, v_query = (
        torch.randn(1, 20, 4, dtype=torch.float64),
        torch.randn(1, 50, 4, dtype=torch.float64),
    )
    u = v[..., :3].tanh() + v[..., 1:]
    answer = kappa(kappa.condition(v, u), v_query)
    for nearly in (0, 1e-9):
        again = kappa(
            kappa.condition(torch.cat([v, v[:, :1] + nearly], 1), torch.cat([u, u[:, :1]], 1)),
            v_query,
        )
        assert (again - answer).norm() < 0.05 * answer.norm()


def test_one_example_counts_by_its_likeness(make):
    """u_hat(v) = k(v_1, v) u_1 / (k(v_1, v_1) + lambda)."""
    kappa, v, u, v_query = make(n=1)
    choose(kappa, 5)
    k, ridge = by_hand(kappa, 5, v[0])
    expected = k(v_query[0], v[0]) / (k(v[0], v[0]) + ridge) * u[0].numpy()
    np.testing.assert_allclose(kappa(kappa.condition(v, u), v_query)[0].detach(), expected)
    torch.testing.assert_close(kappa.condition(v, u).residual, u)


def test_exact_on_linear_operators():
    """Linear features and the universal kernel: the error vanishes once there are more examples
    than modes."""
    torch.manual_seed(0)
    kappa = Representer(8, 8, heads=2, width=16, feature_layers=0).double()
    A = torch.randn(8, 8, dtype=torch.float64)
    errors = {n: relative_error(kappa, lambda v: v @ A, n, 8) for n in (4, 16, 100)}
    assert errors[4] > 0.1
    assert errors[16] < 1e-3
    assert errors[100] < 1e-6


def test_error_falls_with_n_beyond_what_features_can_say():
    """A mildly quadratic operator and linear features: they alone get stuck, the universal kernel
    does not."""
    torch.manual_seed(0)
    A, B = torch.randn(8, 8, dtype=torch.float64), 0.1 * torch.randn(8, 8, 8, dtype=torch.float64)

    def operator(v):
        return v @ A + torch.einsum("bni,bnj,ijk->bnk", v, v, B)

    counts = (50, 100, 200, 400)
    errors = {}
    for universal in (True, False):
        torch.manual_seed(0)
        kappa = Representer(8, 8, heads=2, width=16, feature_layers=0, universal=universal).double()
        errors[universal] = [relative_error(kappa, operator, n, 8) for n in counts]
    assert all(
        later < earlier for earlier, later in zip(errors[True], errors[True][1:], strict=False)
    )
    assert errors[True][-1] < 0.1 * errors[True][0]
    assert errors[False][-1] > 0.5 * errors[False][0]


def test_each_layer_regresses_what_the_one_before_leaves(pairs):
    T = small_transducer(kappa="representer", depth=2)
    v, u, v_query = (T.V.encode(f)[None] for f in pairs)
    first, second = T.condition(v, u)
    one, two = (layer.kappa for layer in T.layers)
    torch.testing.assert_close(first.residual, one.condition(v / T.spread, u).residual)
    torch.testing.assert_close(
        second.residual, two.condition(v / T.spread, first.residual).residual
    )
    stream = T.query([first, second], v_query)
    torch.testing.assert_close(stream[0], one(first, v_query / T.spread))
    torch.testing.assert_close(
        stream[1] - stream[0], two(two.condition(v / T.spread, first.residual), v_query / T.spread)
    )


def test_single_precision_is_near_double(make):
    kappa, v, u, v_query = make()
    double = kappa(kappa.condition(v, u), v_query)
    kappa = kappa.float()
    single = kappa(kappa.condition(v.float(), u.float()), v_query.float())
    torch.testing.assert_close(single.double(), double, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("spoil", [1e-12, 1e6], ids=str)
def test_badly_conditioned_features_are_survived(spoil):
    """Features that differ by a millionth, or by a million: the answer is finite and no worse than
    none."""
    torch.manual_seed(0)
    kappa = Representer(4, 3, heads=2, width=6, hidden=8, feature_layers=0)
    kappa.features.linear.weight.data[1::2] *= spoil
    kappa.features.linear.weight.data[2] = kappa.features.linear.weight.data[0]
    v = torch.randn(1, 60, 4)
    u = v[..., :3]
    sources = kappa.condition(v[:, :50], u[:, :50])
    error = kappa(sources, v[:, 50:]) - u[:, 50:]
    assert torch.isfinite(
        torch.cat([part.flatten() for part in everything(kappa, sources, v)])
    ).all()
    assert error.square().mean() < 0.01 * u.square().mean()


def test_masked_examples_do_not_narrow_the_deviations(make):
    kappa, v, u, v_query = make()
    masked = kappa.condition(v, u, torch.arange(12)[None] < 8)
    dropped = kappa.condition(v[:, :8], u[:, :8])
    torch.testing.assert_close(masked.deviation[:, :8], dropped.deviation)
    torch.testing.assert_close(
        kappa.deviations(masked, v_query), kappa.deviations(dropped, v_query)
    )


def test_too_many_examples_for_a_mask_or_for_weights(monkeypatch, make):
    monkeypatch.setattr(representer, "EXACT", 11)
    monkeypatch.setattr(representer, "LANDMARKS", 6)
    kappa, v, u, v_query = make()
    with pytest.raises(TransduceError, match="more than 11 examples and a mask"):
        kappa.condition(v, u, torch.ones(1, 12, dtype=torch.bool))
    with pytest.raises(TransduceError, match="weights of 12 examples; expected at most 11"):
        kappa.weights(kappa.condition(v, u), v_query)
