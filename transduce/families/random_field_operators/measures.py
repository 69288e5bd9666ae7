"""Distributions of the input fields v. Each operator has its own.

    v = F^-1 sqrt(S(k)) F white noise,      S(k) = exp(-k.Lk / 2) or (2 s + k.Lk)^-(s + 1)

L = R diag(l_1^2, l_2^2) R^T holds the length scales. Others are thresholded fields of several
levels, waves, bumps, and maps with a large common mean and few directions. A measure returns fields
of unit size, of 1 or 2 channels.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

from ..laws import Dice, Measure, Sampler
from .grid import Grid, frequencies

SMOOTHNESS = (0.5, 1.0, 1.5, 2.5, math.inf)
SMOOTHNESS_SHARES = (0.7, 1.0, 1.0, 1.0, 4.0)


class Gaussian:
    """Stationary Gaussian fields of variance 1, periodic or cut out of a larger torus.

    Args:
        grid: the points.
        lengths: along two orthogonal directions.
        smoothness: of Matern, or infinite.
        angle: of the first direction.
    """

    def __init__(
        self,
        grid: Grid,
        lengths: tuple[float, float],
        smoothness: float = math.inf,
        angle: float = 0.0,
    ):
        self.points, self.torus = grid.points, grid.points
        if not grid.periodic:
            self.torus = 64 * math.ceil(grid.points / 32)
        k_1, k_2 = frequencies(self.torus, grid.h)
        c, s = math.cos(angle), math.sin(angle)
        q = (lengths[0] * (c * k_1 + s * k_2)) ** 2 + (lengths[1] * (c * k_2 - s * k_1)) ** 2
        if smoothness == math.inf:
            amplitude = torch.exp(-q / 4)
        else:
            amplitude = (2 * smoothness + q) ** (-(smoothness + 1) / 2)
        twice = torch.full_like(k_2, 2.0)
        twice[0] = twice[-1] = 1.0
        self.amplitude = amplitude * self.torus / (amplitude**2 * twice).sum().sqrt()

    def __call__(self, n: int, dice: Dice) -> Float[Tensor, "n p p"]:
        white = torch.fft.rfft2(dice.normal(n, self.torus, self.torus))
        fields = torch.fft.irfft2(self.amplitude * white, s=(self.torus, self.torus))
        return fields[:, : self.points, : self.points].contiguous()


def fields(
    n: int, dice: Dice, grid: Grid, low: float = 0.08, high: float = 0.5
) -> Float[Tensor, "n p p"]:
    """n smooth random fields with one length scale drawn from [low, high]."""
    length = dice.log_uniform(low, high)
    return Gaussian(grid, (length, length))(n, dice)


def field(dice: Dice, grid: Grid, low: float = 0.08, high: float = 0.5) -> Float[Tensor, "p p"]:
    """One smooth random field."""
    return fields(1, dice, grid, low, high)[0]


def draw_gaussian(dice: Dice, grid: Grid, low: float = 0.03, high: float = 0.5) -> Gaussian:
    """Length scales of [low, high], smoothness 1/2 to infinite, now and then anisotropic."""
    length = dice.log_uniform(low, high)
    stretch = dice.log_uniform(1, 4) if dice.chance(0.25) else 1.0
    lengths = (min(length * stretch**0.5, 0.6), length / stretch**0.5)
    smoothness = dice.pick(SMOOTHNESS, SMOOTHNESS_SHARES)
    return Gaussian(grid, lengths, smoothness, dice.uniform(0, math.pi))


def draw_measure(dice: Dice, grid: Grid, channels: int = 1, pinned: bool = False) -> Measure:
    """A measure of fields of this many channels, scaled to root mean square 1.

    pinned: whether they vanish at the sides of the square.
    """
    kind = dice.pick((gaussian, few_directions, levels, waves, bumps), (5.0, 1.5, 1.5, 1.0, 1.0))
    return scaled(kind(dice, grid, channels), dice, grid, pinned)


def draw_smooth(
    dice: Dice, grid: Grid, channels: int = 1, pinned: bool = False, length: float | None = None
) -> Measure:
    """A measure of smooth fields, for starts of flows: Gaussian ones of length 0.05 to 0.4 if no
    other is given, or waves now and then."""
    if dice.chance(0.12):
        return scaled(waves(dice, grid, channels), dice, grid, pinned)
    length = length or dice.log_uniform(0.05, 0.4)
    draw = Gaussian(grid, (length, length))
    mean = dice.uniform(0, 1.5) if dice.chance(0.25) else 0.0
    common = torch.stack([field(dice, grid) for _ in range(channels)])
    return scaled(
        lambda n, dice: _channels(draw, n, channels, dice) + mean * common, dice, grid, pinned
    )


def scaled(raw: Sampler, dice: Dice, grid: Grid, pinned: bool) -> Measure:
    """The fields in units of their size; `pinned` ones vanish at the sides."""
    if pinned:
        window = 1 - (2 * grid.x - 1).abs() ** dice.pick((2, 4, 10))
        free, around = raw, window[:, None] * window
        raw = lambda n, dice: free(n, dice) * around  # noqa: E731
    size = raw(8, dice).square().mean().sqrt().item()
    return Measure(raw, max(size, 1e-9))


def _channels(draw: Sampler, n: int, channels: int, dice: Dice) -> Float[Tensor, "n c p p"]:
    """Independent fields in each channel."""
    return draw(n * channels, dice).unflatten(0, (n, channels))


def gaussian(dice: Dice, grid: Grid, channels: int) -> Sampler:
    """Random fields, now and then with an offset, a common mean, sizes of their own or as functions
    of their values; channels are mixed or not."""
    draw = draw_gaussian(dice, grid)
    shift = dice.uniform(-1.5, 1.5) if dice.chance(0.25) else 0.0
    mean = field(dice, grid) * dice.uniform(0, 2) if dice.chance(0.15) else 0.0
    varied = dice.uniform(0.2, 0.8) if dice.chance(0.15) else 0.0
    mix = dice.normal(channels, channels) if dice.chance(0.3) else torch.eye(channels).double()
    shape = dice.pick(("plain", "positive", "saturated", "square"), (6, 1, 1, 0.5))

    def sample(n: int, dice: Dice) -> Tensor:
        f = torch.einsum("ij,njxy->nixy", mix, _channels(draw, n, channels, dice))
        f = f * torch.exp(varied * dice.normal(n, 1, 1, 1)) + shift + mean
        if shape == "positive":
            return torch.exp(0.7 * f.clamp(-5, 5))
        return {"plain": f, "saturated": torch.tanh(2 * f), "square": f.square()}[shape]

    return sample


def few_directions(dice: Dice, grid: Grid, channels: int) -> Sampler:
    """Maps: a common mean, often far larger than the variation, which has few directions."""
    k = dice.pick((2, 3, 5, 8, 15, 30))
    decay = torch.exp(-dice.uniform(0.02, 0.8) * torch.arange(k, dtype=torch.float64))
    directions = fields(k * channels, dice, grid, 0.06, 0.5).unflatten(0, (k, channels))
    directions = directions * decay[:, None, None, None] / decay.square().sum().sqrt()
    level = dice.uniform(-1, 1) * dice.log_uniform(1, 30) if dice.chance(0.6) else 0.0
    mean = fields(channels, dice, grid, 0.05, 0.5) * dice.log_uniform(0.1, 20) + level
    noise = dice.log_uniform(0.001, 0.2) if dice.chance(0.5) else 0.0
    fine = draw_gaussian(dice, grid, 0.03, 0.1)

    def sample(n: int, dice: Dice) -> Tensor:
        varying = torch.einsum("nk,kcxy->ncxy", dice.normal(n, k), directions)
        return mean + varying + noise * _channels(fine, n, channels, dice)

    return sample


def levels(dice: Dice, grid: Grid, channels: int) -> Sampler:
    """Fields of 2 to 5 values: thresholded Gaussian fields."""
    draw, count = draw_gaussian(dice, grid, 0.06, 0.5), dice.pick((2, 2, 2, 3, 5))
    at = dice.uniform(-0.5, 0.5) if count == 2 else 0.0
    values = torch.sort(dice.normal(count)).values if count > 2 else torch.tensor([0.0, 1.0])
    centred = dice.chance(0.5)

    def sample(n: int, dice: Dice) -> Tensor:
        f = _channels(draw, n, channels, dice) - at
        quantiles = torch.distributions.Normal(0, 1).cdf(f) if count > 2 else (f > 0) * 0.999
        found = values.double()[(quantiles * count).long().clamp(0, count - 1)]
        return found - values.mean() if centred else found

    return sample


def waves(dice: Dice, grid: Grid, channels: int) -> Sampler:
    """Sums of 1 to 4 plane waves, whole ones where fields are periodic."""
    count, highest = dice.pick((1, 2, 3, 4)), dice.pick((1, 2, 4, 7))
    x = 2 * math.pi * grid.x

    def sample(n: int, dice: Dice) -> Tensor:
        k = dice.integers(-highest, highest, 2, n, channels, count, 1)
        if not grid.periodic:
            k = k + dice.uniforms(2, n, channels, count, 1) - 0.5
        phase = 2 * math.pi * dice.uniforms(n, channels, count, 1)
        first, second = torch.polar(torch.ones_like(k * x), k * x + torch.stack([phase, 0 * phase]))
        size = dice.normal(n, channels, count, 1) / (1 + k.square().sum(0)) ** 0.25
        return torch.einsum("ncjx,ncjy->ncxy", size * first, second).real

    return sample


def bumps(dice: Dice, grid: Grid, channels: int) -> Sampler:
    """Sums of 1 to 6 bumps or discs at random places."""
    count, width, discs = dice.pick((1, 2, 3, 6)), dice.log_uniform(0.04, 0.25), dice.chance(0.3)

    def sample(n: int, dice: Dice) -> Tensor:
        d = grid.x - dice.uniforms(2, n, channels, count, 1)
        d = torch.sin(math.pi * d) / math.pi if grid.periodic else d
        size = dice.normal(n, channels, count, 1)
        first, second = torch.exp(-0.5 * (d / width) ** 2)
        if not discs:
            return torch.einsum("ncjx,ncjy->ncxy", size * first, second)
        inside = torch.sigmoid(20 * (first[..., None] * second[..., None, :] - 0.6))
        return (size[..., None] * inside).sum(2)

    return sample
