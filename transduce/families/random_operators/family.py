"""The family of random operators.

    O ~ a mechanism drawn by its share, its parameters, the measure of its inputs, and noise

Functions are on a uniform grid of 80 points. Laws whose solutions blow up, vanish or are constant
are drawn again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from ..laws import Dice, Law, LawFamily, Mechanism, measured
from ..laws.noise import Noise
from . import black_boxes, driven, elliptic, evolution, grid, linear, u_first

MECHANISMS: dict[str, tuple[Mechanism, float]] = {  # with their shares of all operators
    "linear": (linear.linear, 5.0),
    "forced": (elliptic.forced, 4.0),
    "coefficient": (elliptic.coefficient, 1.0),
    "state": (evolution.state, 4.0),
    "forced state": (evolution.forced_state, 1.0),
    "wave": (evolution.wave, 1.0),
    "advected": (evolution.advected, 0.7),
    "trajectory": (evolution.trajectory, 2.5),
    "driven": (driven.driven, 2.0),
    "u first": (u_first.u_first, 2.0),
    "sandwich": (black_boxes.sandwich, 2.0),
    "volterra": (black_boxes.volterra, 1.0),
    "neural": (black_boxes.neural, 1.0),
    "extremes": (black_boxes.extremes, 0.7),
    "curves": (black_boxes.curves, 3.0),
    "unrelated": (black_boxes.unrelated, 0.7),
}
HELD_OUT = ("wave", "forced state", "neural")  # for validation; never in training
TRAINED = tuple(name for name in MECHANISMS if name not in HELD_OUT)


@dataclass(frozen=True)
class RandomOperators(LawFamily):
    """Random operators between functions on 80 points of [0, 1].

    Args:
        mechanisms: names of the mechanisms to draw from; default: all but `HELD_OUT`.
        noisy: share of operators whose pairs carry noise.

    >>> task = RandomOperators().sample_task(20, 10, generator_for("train", 0))
    >>> task.examples
    ExampleSet(n=20, v=(20, 80), u=(20, 80))
    """

    mechanisms: tuple[str, ...] = TRAINED

    known = MECHANISMS

    @property
    def axes(self) -> Mapping[str, Tensor]:
        return {"x": grid.x()[::2]}

    def measured(self, law: Law, dice: Dice) -> Law:
        return measured(law, dice, self.noisy, smooth_noise)

    @staticmethod
    def kept(f: Tensor) -> Tensor:
        """Every second point."""
        return f[:, ::2]


def smooth_noise(dice: Dice) -> Noise:
    """Random fields of length 0.02 to 0.3."""
    root = grid.field_root(math.inf, dice.log_uniform(0.02, 0.3))
    return lambda f, dice: dice.normal(len(f), root.shape[1]) @ root.T
