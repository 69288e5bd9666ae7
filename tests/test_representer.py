"""Ridge regression over learned features: its formulas, and what follows from them."""

import math

import numpy as np
import pytest
import torch
from conftest import small_transducer
from ridge_samples import (
    GENTLE,
    by_hand,
    choose,
    everything,
    feature_ridge,
    fit_by_hand,
    gentle,
    relative_error,
)

from transduce import TransduceError
from transduce.kernels import (
    FeatureCandidates,
    FeatureGram,
    MaternGram,
    Mixer,
    NoiseUnits,
    Ridge,
    candidate_kinds,
)
from transduce.kernels.systems import LOG_UNIT

# Two heads of three ridges each, and the plain candidates.
CANDIDATES = [(True, j) for j in range(8)] + [(False, j) for j in range(6)]
every_candidate = pytest.mark.parametrize(("universal", "j"), CANDIDATES)
with_and_without_universal = pytest.mark.parametrize(
    "universal", [True, False], ids=["universal", "features alone"]
)


@pytest.fixture
def make(monkeypatch):
    monkeypatch.setattr(candidate_kinds, "PLAIN", GENTLE)
    return gentle


@every_candidate
def test_a_candidate_alone_is_kernel_ridge_regression(j, universal, make):
    kappa, v, u, v_query = make(universal=universal)
    choose(kappa, j)
    fit = kappa.condition(v, u)
    answers, deviations = fit_by_hand(*by_hand(kappa, j, v[0]), v[0], u[0], v_query[0])
    np.testing.assert_allclose(kappa(fit, v_query)[0].detach(), answers, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(kappa.deviations(fit, v_query)[0].detach(), deviations, rtol=1e-8)
    weights = kappa.weights(v, u, v_query)[0]
    np.testing.assert_allclose((weights @ u[0]).detach(), answers, rtol=1e-8, atol=1e-8)


@every_candidate
def test_residuals_are_those_of_fits_without_the_example(j, universal, make):
    kappa, v, u, _ = make(universal=universal)
    choose(kappa, j)
    fit = kappa.condition(v, u)
    k, ridge = by_hand(kappa, j, v[0])
    for i in range(12):
        others = [other for other in range(12) if other != i]
        answer, deviation = fit_by_hand(k, ridge, v[0, others], u[0, others], v[0, i : i + 1])
        np.testing.assert_allclose(
            fit.residual[0, i].detach(), u[0, i].numpy() - answer[0], rtol=1e-7, atol=1e-8
        )
        np.testing.assert_allclose(fit.deviation[0, i].detach(), deviation[0], rtol=1e-7)


def test_candidates_are_mixed_by_leave_one_out_error(make):
    """w_j = softmax_j(a_j - b log <r_j^2> - b' log <|r_j|^2>), b ~ n^e, for each coefficient; zero
    is one more candidate."""
    kappa, v, u, v_query = make()
    mixer = kappa.mixer
    torch.nn.init.normal_(mixer.preference)
    mixer.log_trust.data.copy_(torch.tensor([-0.3, 0.2]))
    fit, learned = kappa.condition(v, u), mixer.preference.data.clone()
    alone = []
    for j in range(8):
        choose(kappa, j)
        alone.append(kappa.condition(v, u))
    residuals = torch.stack([candidate.residual for candidate in alone] + [u], 1)
    zero = torch.zeros(1, 5, 3)
    answers = torch.stack([kappa(candidate, v_query) for candidate in alone] + [zero], 1)
    errors = residuals.square().mean(2)
    b = mixer.log_trust.exp() * (12 / 50) ** mixer.growth
    w = (learned - b[0] * errors.log() - b[1] * errors.sum(-1, keepdim=True).log()).softmax(1)
    torch.testing.assert_close(fit.mix, w[:, :-1])
    torch.testing.assert_close(fit.residual, (w[:, :, None] * residuals).sum(1))
    torch.testing.assert_close(kappa(fit, v_query), (w[:, :, None] * answers).sum(1))


@pytest.mark.parametrize("factor", [-1.0, 1e-8, 3e9])
def test_the_answer_scales_with_u(factor, make):
    kappa, v, u, v_query = make()
    torch.testing.assert_close(
        kappa(kappa.condition(v, factor * u), v_query),
        factor * kappa(kappa.condition(v, u), v_query),
    )


@pytest.mark.parametrize("exact", [3, 2], ids=["n x n", "p x p"])
def test_gradients_of_answers_and_residuals(exact, make):
    kappa, *given = make(n=3, queries=1, heads=1, ridges=2, exact=exact)
    kappa.landmarks = 2

    def answers_and_residuals(v, u, v_query):
        fit = kappa.condition(v, u)
        return kappa(fit, v_query), fit.residual

    assert torch.autograd.gradcheck(answers_and_residuals, tuple(f.requires_grad_() for f in given))


@pytest.mark.parametrize("layers", [0, 2], ids=["linear features", "learned features"])
@with_and_without_universal
def test_both_systems_agree(universal, layers, make):
    """K = Psi Psi^T if every example is a landmark; without Gaussian parts, for any landmarks."""
    kappa, v, u, v_query = make(n=30, universal=universal, layers=layers)
    kappa.candidates.log_ridge.data.clamp_(min=math.log(1e-2) / LOG_UNIT)
    by_examples = kappa.condition(v, u)
    kappa.exact, kappa.landmarks = 29, 30 if universal else 4
    by_features = kappa.condition(v, u)
    assert by_examples.landmarks is None and by_features.landmarks is not None
    # Gaussian parts at the landmarks are whitened with a ridge of 1e-10.
    tolerance = 1e-6 if universal else 1e-10
    found = (everything(kappa, fit, v_query) for fit in (by_examples, by_features))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)


def test_more_examples_than_landmarks_still_help(make):
    """The span of the landmarks is fitted to all examples."""
    kappa, *_ = make()
    A, B = torch.randn(2, 4, 3, dtype=torch.float64)

    def operator(v):
        return v @ A + (0.5 * v @ B).sin()

    kappa.exact = kappa.landmarks = 40
    few, many = (relative_error(kappa, operator, n, 4) for n in (40, 400))
    assert many < 0.5 * few


def test_beyond_1024_examples_landmarks_are_used():
    T = small_transducer("representer", depth=1)
    v = torch.randn(1, 1030, 12, dtype=torch.float64)
    u = v.flip(-1)
    exact, spanned = T.condition(v[:, :1024], u[:, :1024])[0], T.condition(v, u)[0]
    assert exact.landmarks is None and exact.factor.shape[-1] == 1024
    assert spanned.landmarks.centres.shape[2] == 512
    answers = (T.query([fit], v[:, :50])[-1] for fit in (exact, spanned))
    torch.testing.assert_close(*answers, rtol=0, atol=0.01)


def test_inputs_that_are_not_finite_are_refused(make):
    kappa, v, u, _ = make()
    v[0, 3, 1] = torch.nan
    with pytest.raises(TransduceError, match="expected finite features"):
        kappa.condition(v, u)


@every_candidate
def test_copies_are_one_example_with_their_mean_and_a_share_of_the_ridge(universal, j, make):
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


def test_one_example_counts_by_its_similarity(make):
    """u_hat(v) = k(v_1, v) u_1 / (k(v_1, v_1) + lambda)."""
    kappa, v, u, v_query = make(n=1)
    choose(kappa, 5)
    k, ridge = by_hand(kappa, 5, v[0])
    expected = k(v_query[0], v[0]) / (k(v[0], v[0]) + ridge) * u[0].numpy()
    np.testing.assert_allclose(kappa(kappa.condition(v, u), v_query)[0].detach(), expected)
    torch.testing.assert_close(kappa.condition(v, u).residual, u)


def test_exact_on_linear_operators():
    """Linear features and Gaussian parts: the error vanishes with more examples than modes."""
    torch.manual_seed(0)
    kappa = feature_ridge(8, 8, width=16, layers=0).double()
    A = torch.randn(8, 8, dtype=torch.float64)
    errors = {n: relative_error(kappa, lambda v: v @ A, n, 8) for n in (4, 16, 100)}
    assert errors[4] > 0.1
    assert errors[16] < 1e-3
    assert errors[100] < 1e-6


def test_error_falls_with_n_beyond_what_features_can_express():
    """A mildly quadratic operator and linear features: these alone stop improving, Gaussian parts
    do not."""
    torch.manual_seed(0)
    A, B = torch.randn(8, 8, dtype=torch.float64), 0.1 * torch.randn(8, 8, 8, dtype=torch.float64)

    def operator(v):
        return v @ A + torch.einsum("bni,bnj,ijk->bnk", v, v, B)

    counts = (50, 100, 200, 400)
    errors = {}
    for universal in (True, False):
        torch.manual_seed(0)
        kappa = feature_ridge(8, 8, width=16, layers=0, universal=universal).double()
        errors[universal] = [relative_error(kappa, operator, n, 8) for n in counts]
    assert all(
        later < earlier for earlier, later in zip(errors[True], errors[True][1:], strict=False)
    )
    assert errors[True][-1] < 0.1 * errors[True][0]
    assert errors[False][-1] > 0.5 * errors[False][0]


def test_each_layer_regresses_the_residuals_of_the_one_before(pairs):
    T = small_transducer("representer", depth=2)
    v, u, v_query = (T.V.encode(f)[None] for f in pairs)
    first, second = T.condition(v, u)
    one, two = (layer.kappa for layer in T.steps)
    torch.testing.assert_close(first.residual, one.condition(v / T.spread, u).residual)
    torch.testing.assert_close(
        second.residual, two.condition(v / T.spread, first.residual).residual
    )
    stream = T.query([first, second], v_query)
    torch.testing.assert_close(stream[0], one(first, v_query / T.spread))
    torch.testing.assert_close(
        stream[1] - stream[0], two(two.condition(v / T.spread, first.residual), v_query / T.spread)
    )


def test_masked_examples_do_not_narrow_the_deviations(make):
    kappa, v, u, v_query = make()
    masked = kappa.condition(v, u, torch.arange(12)[None] < 8)
    dropped = kappa.condition(v[:, :8], u[:, :8])
    torch.testing.assert_close(masked.deviation[:, :8], dropped.deviation)
    torch.testing.assert_close(
        kappa.deviations(masked, v_query), kappa.deviations(dropped, v_query)
    )


def test_a_mask_and_landmarks_exclude_each_other(make):
    kappa, v, u, v_query = make(exact=11)
    kappa.landmarks = 6
    with pytest.raises(TransduceError, match="more than 11 examples and a mask"):
        kappa.condition(v, u, torch.ones(1, 12, dtype=torch.bool))
    with pytest.raises(TransduceError, match="regressions on 12 functions; expected at most 11"):
        kappa.read(v, u)
    choose(kappa, 2)
    weights = kappa.weights(v, u, v_query)
    torch.testing.assert_close(weights @ u, kappa(kappa.condition(v, u), v_query))


def test_without_landmarks_more_examples_are_refused():
    kappa = Ridge(NoiseUnits(MaternGram()), exact=5)
    with pytest.raises(TransduceError, match=r"6 examples; this kernel expects at most 5"):
        kappa.condition(torch.zeros(1, 6, 2), torch.zeros(1, 6, 2))


def test_candidates_and_mixer_are_as_many():
    candidates = FeatureCandidates(FeatureGram(4, 2, 3, 8, 1), 2)
    with pytest.raises(TransduceError, match="4 candidates and a mixer of 3; expected the same"):
        Ridge(candidates, Mixer(3))
    with pytest.raises(TransduceError, match="4 candidates and a mixer of 1"):
        Ridge(candidates)
    few = FeatureGram(4, 2, 3, 8, 1, learned=1, fixed=(0.1,))
    with pytest.raises(TransduceError, match=r"whose groups have \(2, 2\); expected no more"):
        FeatureCandidates(few, 2)
