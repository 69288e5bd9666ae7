"""Distributions of the inputs v. Each operator has its own.

A measure returns n functions of about unit size. Measured curves (spectra, loads, temperatures)
share a large mean and vary in few directions; inputs of solvers are random fields; others are
waves, bumps, steps and rough signals.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from ..laws import Dice, Measure, Sampler
from .grid import N, field_root, x

SMOOTHNESS, SMOOTHNESS_SHARES = (0.5, 1.5, 2.5, math.inf), (1.0, 1.0, 1.0, 4.0)


def fields(
    n: int, dice: Dice, low: float = 0.05, high: float = 0.5, periodic: bool = False
) -> Tensor:
    """n smooth random fields with one length scale drawn from [low, high]."""
    root = field_root(math.inf, dice.log_uniform(low, high), periodic)
    return dice.normal(n, root.shape[1]) @ root.T


def field(dice: Dice, low: float = 0.05, high: float = 0.5, periodic: bool = False) -> Tensor:
    """One smooth random field."""
    return fields(1, dice, low, high, periodic)[0]


def draw_measure(dice: Dice, boundary: str = "free") -> Measure:
    """A measure of functions with these boundary values, scaled to root mean square 1."""
    kind = dice.pick((gaussian, few_directions, waves, bumps), (5.0, 3.0, 1.0, 1.0))
    raw = kind(dice, boundary)
    if dice.chance(0.2):
        raw = _shaped(raw, dice)
    if boundary == "zero":
        raw = _pinned(raw, dice.pick((2, 4, 10)))
    size = raw(32, dice).square().mean().sqrt().item()
    return Measure(raw, max(size, 1e-9))


def gaussian(dice: Dice, boundary: str) -> Sampler:
    """Random fields of length 0.01 to 0.7, with a common mean or offset now and then."""
    periodic = boundary == "periodic"
    smoothness = dice.pick(SMOOTHNESS, SMOOTHNESS_SHARES)
    length = dice.log_uniform(0.015, 0.7) if dice.chance(0.7) else dice.log_uniform(0.05, 0.4)
    root = field_root(smoothness, length, periodic)
    shift = dice.uniform(-1.5, 1.5) if dice.chance(0.25) else 0.0
    mean = field(dice, periodic=periodic) * dice.uniform(0, 2) if dice.chance(0.2) else 0.0
    varied = dice.uniform(0.2, 0.8) if dice.chance(0.2) else 0.0

    def sample(n: int, dice: Dice) -> Tensor:
        size = torch.exp(varied * dice.normal(n, 1))
        return dice.normal(n, root.shape[1]) @ root.T * size + shift + mean

    return sample


def few_directions(dice: Dice, boundary: str) -> Sampler:
    """A common mean, often far larger than the variation, which has few directions."""
    periodic = boundary == "periodic"
    k = dice.pick((2, 3, 5, 8, 15, 30))
    decay = torch.exp(-dice.uniform(0.02, 0.8) * torch.arange(k, dtype=torch.float64))
    directions = fields(k, dice, 0.03, 0.4, periodic) * decay[:, None]
    level = dice.uniform(-1, 1) * dice.log_uniform(1, 30) if dice.chance(0.7) else 0.0
    mean = field(dice, periodic=periodic) * dice.log_uniform(0.1, 30) + level
    noise = dice.log_uniform(0.001, 0.2) if dice.chance(0.5) else 0.0
    gain = dice.uniform(0, 0.5) if dice.chance(0.3) else 0.0
    shifted = dice.log_uniform(0.1, 3) if dice.chance(0.3) else 0.0
    heavy = dice.chance(0.3)

    def sample(n: int, dice: Dice) -> Tensor:
        z = dice.normal(n, k)
        if heavy:
            z = z * (1 + 0.5 * dice.normal(n, 1).abs())
        varying = z @ directions / decay.square().sum().sqrt()
        varying = varying + shifted * dice.normal(n, 1) + noise * dice.normal(n, N)
        return mean * (1 + gain * dice.normal(n, 1) / (1 + abs(level))) + varying

    return sample


def waves(dice: Dice, boundary: str) -> Sampler:
    """Sums of 1 to 4 sine waves."""
    count, highest = dice.pick((1, 2, 3, 4)), dice.pick((2, 4, 8, 14))
    whole = boundary == "periodic" or dice.chance(0.4)

    def sample(n: int, dice: Dice) -> Tensor:
        k = (
            dice.integers(1, highest, n, count, 1)
            if whole
            else highest * dice.uniforms(n, count, 1)
        )
        phase = 2 * math.pi * dice.uniforms(n, count, 1)
        amplitude = dice.normal(n, count, 1) / k.clamp(min=1) ** 0.5
        return (amplitude * torch.sin(2 * math.pi * k * x() + phase)).sum(1)

    return sample


def bumps(dice: Dice, boundary: str) -> Sampler:
    """Sums of bumps, smooth steps or kinks at random places; with many bumps, unaligned pulses."""
    kind = dice.pick(("bump", "step", "kink", "pulses"))
    count, width = dice.pick((1, 2, 3, 5)), dice.log_uniform(0.01, 0.2)
    periodic = boundary == "periodic"
    spacing = dice.uniform(0.15, 0.6)

    def sample(n: int, dice: Dice) -> Tensor:
        if kind == "pulses":  # the same pulse, repeated with a random phase
            phase = ((x() - spacing * dice.uniforms(n, 1)) % spacing)[:, None] - spacing / 2
            return torch.exp(-0.5 * (phase / width / 2) ** 2).sum(1) * (1 + 0.1 * dice.normal(n, 1))
        d = x() - dice.uniforms(n, count, 1)
        d = torch.sin(math.pi * d) / math.pi if periodic else d
        amplitude = dice.normal(n, count, 1)
        shape = {
            "bump": lambda: torch.exp(-0.5 * (d / width) ** 2),
            "step": lambda: torch.tanh(d / width / 2),
            "kink": lambda: d.abs(),
        }["bump" if periodic and kind == "step" else kind]()
        return (amplitude * shape).sum(1)

    return sample


def _shaped(raw: Sampler, dice: Dice) -> Sampler:
    """Functions of the values: positive ones, saturated ones, or signs."""
    size = raw(32, dice).std().item() + 1e-9
    shape: Callable[[Tensor], Tensor] = dice.pick(
        (
            lambda f: torch.exp(0.7 * f.clamp(-5, 5)),
            lambda f: torch.tanh(1.5 * f),
            lambda f: torch.tanh(8 * f),
            lambda f: f.clamp(min=0),
            lambda f: f.square(),
        )
    )
    return lambda n, dice: shape(raw(n, dice) / size)


def _pinned(raw: Sampler, power: int) -> Sampler:
    """Functions that vanish at both ends."""
    window = 1 - (2 * x() - 1).abs() ** power
    return lambda n, dice: raw(n, dice) * window
