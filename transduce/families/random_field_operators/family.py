"""The family of random operators between fields on the unit square.

    O ~ a mechanism drawn by its share, its parameters, the measure of its inputs, and noise

v and u have shape (n, 2, 32, 32). A channel of zeros does not exist: scalar fields are in the first
channel. Laws whose solutions blow up, vanish or do not vary are drawn again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from ..laws import Dice, Law, LawFamily, Mechanism, measured
from ..laws.noise import Noise
from . import (
    black_boxes,
    darcy,
    flows,
    forced,
    grid,
    linear,
    neural,
    trajectory,
    transport,
    u_first,
    vorticity,
    waves,
)
from .measures import Gaussian

MECHANISMS: dict[str, tuple[Mechanism, float]] = {  # with their shares of all operators
    "darcy": (darcy.darcy, 4.0),
    "potential": (darcy.potential, 1.0),
    "forced": (forced.forced, 3.0),
    "u first": (u_first.u_first, 1.5),
    "transport": (transport.transport, 3.0),
    "flow": (flows.flow, 4.0),
    "vorticity": (vorticity.vorticity, 1.0),
    "waves": (waves.waves, 1.0),
    "linear": (linear.linear, 3.0),
    "sandwich": (black_boxes.sandwich, 2.0),
    "volterra": (black_boxes.volterra, 1.0),
    "local": (black_boxes.local, 1.0),
    "extremes": (black_boxes.extremes, 0.7),
    "maps": (black_boxes.maps, 2.5),
    "neural": (neural.neural, 1.0),
    "trajectory": (trajectory.trajectory, 1.5),
    "unrelated": (black_boxes.unrelated, 0.7),
}
HELD_OUT = ("vorticity", "waves", "neural")  # for validation; never in training
TRAINED = tuple(name for name in MECHANISMS if name not in HELD_OUT)


@dataclass(frozen=True)
class RandomFieldOperators(LawFamily):
    """Random operators between fields of 1 or 2 channels on 32 x 32 points of the unit square.

    Args:
        mechanisms: names of the mechanisms to draw from; default: all but `HELD_OUT`.
        noisy: share of operators whose pairs carry noise.

    >>> task = RandomFieldOperators().sample_task(20, 10, generator_for("train", 0))
    >>> task.examples
    ExampleSet(n=20, v=(20, 2, 32, 32), u=(20, 2, 32, 32))
    """

    mechanisms: tuple[str, ...] = TRAINED

    known = MECHANISMS

    @property
    def axes(self) -> Mapping[str, Tensor]:
        """Coordinates are those of fields that are not periodic; periodic ones have i / 32."""
        return {"component": torch.arange(2), "x": grid.COARSE.x, "y": grid.COARSE.x}

    def measured(self, law: Law, dice: Dice) -> Law:
        return measured(law, dice, self.noisy, smooth_noise)

    @staticmethod
    def kept(f: Tensor) -> Tensor:
        return grid.kept(f)

    @staticmethod
    def shown(f: Tensor) -> Tensor:
        """Fields of one channel get a second one of zeros."""
        return pad(f, (0, 0, 0, 0, 0, 2 - f.shape[1]))


def smooth_noise(dice: Dice) -> Noise:
    """Random fields of length 0.02 to 0.3, independent in each channel."""
    length = dice.log_uniform(0.02, 0.3)

    def noise(f: Tensor, dice: Dice) -> Tensor:
        fields = Gaussian(grid.Grid(f.shape[-1], False), (length, length))
        return fields(f.shape[0] * f.shape[1], dice).view(f.shape)

    return noise
