"""Ridge regression with the candidates of `models.representer`, and the same by hand in numpy."""

import math

import numpy as np
import torch

from transduce.kernels import FeatureCandidates, FeatureGram, Mixer, Ridge, candidate_kinds
from transduce.kernels.systems import LOG_UNIT

GENTLE = ((0.3, 1e-2, 0.0), (1.0, 1e-4, 0.1))  # in the place of candidate_kinds.PLAIN


def feature_ridge(
    d_v=4, d_u=3, heads=2, width=6, hidden=8, layers=2, ridges=2, universal=True, exact=1024
):
    """The kernel of `models.representer`."""
    widths = tuple(width for width, _, _ in candidate_kinds.PLAIN) if universal else ()
    gram = FeatureGram(d_v, heads, width, hidden, layers, ridges * universal, widths)
    candidates = FeatureCandidates(gram, ridges)
    return Ridge(candidates, Mixer(candidates.count, d_u), exact=exact, landmarks=512)


def gentle(n=12, queries=5, **options):
    """A kernel from 4 to 3 coefficients whose ridges are no smaller than 1e-4, so that formulas
    hold to many digits; n examples and some queries."""
    torch.manual_seed(5)
    kappa = feature_ridge(**{"ridges": 3} | options).double()
    gram, candidates = kappa.candidates.gram, kappa.candidates
    candidates.log_ridge.data.copy_(
        torch.linspace(math.log(1e-1), math.log(1e-4), candidates.ridges) / LOG_UNIT
    )
    v, u, v_query = (
        torch.randn(1, *shape, dtype=torch.float64) for shape in ((n, 4), (n, 3), (queries, 4))
    )
    with torch.no_grad():  # a mean square of 4: a few examples do not change the scale
        features = gram.features(v).unflatten(-1, (gram.heads, -1))
        size = features.square().sum(-1).mean((0, 1)).sqrt()
        for name, last in gram.features.named_parameters():
            if not name.startswith("layers"):
                last.unflatten(0, (gram.heads, -1)).mul_(2 / size.view(-1, *[1] * last.ndim))
    return kappa, v, u, v_query


def choose(kappa, j):
    """Let candidate j alone answer."""
    kappa.mixer.preference.data.fill_(-1e4)
    kappa.mixer.preference.data[j] = 1e4


def by_hand(kappa, j, examples):
    """k_j as a function of two sets of functions, and lambda_j, with the examples' scale."""
    gram, candidates = kappa.candidates.gram, kappa.candidates
    learned = j < gram.heads * candidates.ridges
    h, m = divmod(j, candidates.ridges) if learned else (0, None)

    def phi(a):
        return gram.features(a[None])[0, :, h * gram.width : (h + 1) * gram.width].detach().numpy()

    if not learned:
        g, ridge, share = GENTLE[j - gram.heads * candidates.ridges]
        c, metric = 1 - share, gram.plain
    else:
        ridge = math.exp(LOG_UNIT * candidates.log_ridge[h, m].item())
        c, g, metric = 0, 0, 0
        if gram.metric is not None:
            c = 1 / (1 + math.exp(-LOG_UNIT * candidates.log_odds[h, m].item()))
            g, metric = math.exp(LOG_UNIT * gram.log_width[m].item()), gram.metric
    scale = 4 ** np.round(np.log(np.mean(np.sum(phi(examples) ** 2, 1))) / np.log(4))

    def k(a, b):
        squared = np.sum(((a[:, None] - b[None]) * metric).detach().numpy() ** 2, -1)
        return (1 - c) * phi(a) @ phi(b).T / scale + c * np.exp(-g * squared)

    return k, ridge


def fit_by_hand(k, ridge, v, u, v_query):
    """Kernel ridge regression, and its Gaussian process's standard deviations."""
    K, across = k(v, v) + ridge * np.eye(len(v)), k(v_query, v)
    known = np.diag(across @ np.linalg.solve(K, across.T))
    variances = np.diag(k(v_query, v_query)) + ridge - known
    return across @ np.linalg.solve(K, u.numpy()), np.sqrt(variances)


def everything(kappa, fit, v_query):
    """Answers, residuals, and deviations of examples and queries."""
    return kappa(fit, v_query), fit.residual, fit.deviation, kappa.deviations(fit, v_query)


def relative_error(kappa, operator, n, d):
    """Of the answers to 50 queries after n examples of d coefficients."""
    generator = torch.Generator().manual_seed(3)
    v_query, v = (
        torch.randn(1, size, d, generator=generator, dtype=torch.float64) for size in (50, n)
    )
    with torch.no_grad():
        error = kappa(kappa.condition(v, operator(v)), v_query) - operator(v_query)
    return float(error.square().sum() / operator(v_query).square().sum())
