"""The candidates of the bundled models."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..types import TransduceError
from .candidates import Candidates
from .grams import ConvolutionGram, FeatureGram, MaternGram
from .systems import LOG_UNIT, SMALLEST_RIDGE

# Candidates that learn nothing: width of the Gaussian kernel in units of the inputs' mean square
# norm, ridge, and share of the first head's features.
PLAIN = (
    *((width, 1e-12, 0.0) for width in (0.001, 0.003, 0.008, 0.02, 0.05)),
    (0.02, 1e-6, 0.0),
    (0.004, 1e-12, 1e-4),
    (0.015, 1e-12, 1e-4),
)
PLAIN_WIDTHS = tuple(width for width, _, _ in PLAIN)
LINEAR = 0.28  # strength of the linear kernel relative to Matern's, before training
RIDGES = (0.1, 0.01)  # of a layer's candidates before training, from the first to the last


class FeatureCandidates(Candidates):
    """`ridges` candidates for each head of features, and the plain ones.

        k_j = (1 - c_j) p_h + c_j p_g

    A Gram without Gaussian parts has the heads' candidates alone, with c = 0.

    Args:
        gram: with `ridges` learned Gaussian parts and those of PLAIN_WIDTHS, or with none.
        ridges: number of candidates for each head.
    """

    plain: Tensor

    def __init__(self, gram: FeatureGram, ridges: int = 2):
        super().__init__()
        self.ridges = ridges
        universal = len(gram.groups) > 1
        head = [h for h in range(gram.heads) for _ in range(ridges)]
        kind = [*range(ridges)] * gram.heads
        if universal:
            head += [0] * len(PLAIN)
            kind += range(ridges, ridges + len(PLAIN))
        self.choose(gram, *(head, kind)[: 1 + universal])
        # From noisy examples to exact ones.
        place = torch.linspace(0, 1, ridges) if ridges > 1 else torch.tensor([0.5])
        self.log_ridge = nn.Parameter((-4.0 - 12.0 * place).div(LOG_UNIT).repeat(gram.heads, 1))
        self.log_odds: nn.Parameter | None = None
        if universal:
            self.log_odds = nn.Parameter(torch.full((gram.heads, ridges), -4.0 / LOG_UNIT))
            table = torch.tensor(PLAIN, dtype=torch.float64).T
            self.register_buffer("plain", table, persistent=False)

    def ridge(self) -> Float[Tensor, "j 1"]:
        learned = (LOG_UNIT * self.log_ridge.double()).exp().clamp(min=SMALLEST_RIDGE).flatten()
        plain = [] if self.log_odds is None else [self.plain.double()[1]]
        return torch.cat([learned, *plain])[:, None]

    def shares(self) -> tuple[Float[Tensor, "j 1"], ...]:
        if self.log_odds is None:
            return (self.log_ridge.new_ones(self.count, 1, dtype=torch.float64),)
        learned = (LOG_UNIT * self.log_odds.double()).sigmoid().flatten()
        c = torch.cat([learned, 1 - self.plain.double()[2]])[:, None]
        return 1 - c, c


class LayerCandidates(Candidates):
    """One candidate for each Gaussian kernel of each layer of a network, plus a constant.

    Args:
        gram: the layers' kernels.
    """

    def __init__(self, gram: ConvolutionGram):
        super().__init__()
        count = gram.layers * gram.widths
        self.choose(gram, [0] * count, range(count))
        start = torch.linspace(*RIDGES, gram.widths).log().div(gram.log_unit)
        self.log_ridge = nn.Parameter(start.repeat(gram.layers, 1))
        self.log_unit = gram.log_unit

    def ridge(self) -> Float[Tensor, "j 1"]:
        ridge = (self.log_unit * self.log_ridge.double()).exp().clamp(min=SMALLEST_RIDGE)
        return ridge.flatten()[:, None]

    def shares(self) -> tuple[Float[Tensor, "j 1"], ...]:
        ones = self.log_ridge.new_ones(self.count, 1, dtype=torch.float64)
        return ones, ones


class NoiseUnits(Candidates):
    """One candidate in units of the noise, whose ridge is therefore 1.

        k = s p_1 + l p_2

    Args:
        gram: Matern's kernel and the linear one.
        signal: s before training, the variance of the operator in units of the noise.
    """

    def __init__(self, gram: MaternGram, signal: float = 60.0):
        super().__init__()
        if not signal > 0:
            raise TransduceError(
                f"signal={signal}; expected a number above 0, the variance of the operator in "
                "units of the noise."
            )
        self.signal = signal
        self.choose(gram, [0], [0])
        self.log_signal = nn.Parameter(torch.tensor(math.log(signal) / LOG_UNIT))
        self.log_lines = nn.Parameter(torch.tensor(math.log(LINEAR * signal) / LOG_UNIT))

    def ridge(self) -> Float[Tensor, "1 1"]:
        return self.log_signal.new_ones(1, 1, dtype=torch.float64)

    def shares(self) -> tuple[Float[Tensor, "1 1"], ...]:
        strengths = (LOG_UNIT * torch.stack([self.log_signal, self.log_lines]).double()).exp()
        return strengths[0].reshape(1, 1), strengths[1].reshape(1, 1)
