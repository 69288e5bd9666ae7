"""What a window knows of v around each point: the values there, their products, and far means.

    products of the innermost values, (1, x, x^2), means over distant blocks, values by distance

Values beyond the ends repeat the last one. All windows are consecutive columns of the largest one.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..configs import Part
from ..spaces.sampled import Sampled

REACHES = (2, 7, 20)
INNER = 2  # reach of the values whose products take part


class WindowFeatures(Part):
    """What a window knows of functions around each of their points. All windows are consecutive
    columns of the largest one.

    Attributes:
        reaches: of the windows, from the smallest to the largest.
    """

    reaches: Sequence[int]

    def forward(
        self, f: Float[Tensor, "n c p"], reach: int, products: bool
    ) -> Float[Tensor, "n p d"]:
        """The features at each point.

        Args:
            f: functions, the points of all axes in one.
            reach: of the window.
            products: whether products of the innermost values take part.
        """
        raise NotImplementedError

    def columns(self, reach: int, products: bool) -> slice:
        """The columns of the largest window's features that belong to another window."""
        raise NotImplementedError


class CurveWindow(WindowFeatures):
    """A window of curves.

    Args:
        U: space of the positions.
        channels: number of channels of the curves.
        far: whether means over distant blocks take part.
    """

    place: Tensor

    def __init__(self, U: Sampled, channels: int, far: bool = False):
        super().__init__()
        self.U, self.channels, self.far = U, channels, far
        x = 2 * torch.tensor(U.x, dtype=torch.float64) - 1
        place = torch.stack([torch.ones_like(x), x, x * x], -1)
        self.register_buffer("place", place, persistent=False)
        reaches = REACHES[:1] if far else REACHES
        self.reaches = [h for h in reaches if h <= max(REACHES[0], U.points // 2)]

    def forward(
        self, f: Float[Tensor, "n c p"], reach: int, products: bool
    ) -> Float[Tensor, "n p d"]:
        """Products; 1, x, x^2; distant blocks; then the window, from the inside out."""
        inner = min(reach, INNER)
        around = nn.functional.pad(f, (reach, reach), mode="replicate").unfold(2, 2 * reach + 1, 1)
        around = around.movedim(3, 1)  # (n, offsets, c, p)
        parts = []
        if products:
            near = around[:, reach - inner : reach + inner + 1].transpose(1, 2)
            near = near.flatten(1, 2) if f.shape[1] == 1 else near[:, :, 1:-1].flatten(1, 2)
            i, j = torch.triu_indices(near.shape[1], near.shape[1])
            parts.append(near[:, i] * near[:, j])
        parts.append(self.place.to(f).T.expand(f.shape[0], -1, -1))
        if self.far:
            parts.append(_blocks(f).flatten(1, 2))
        offsets = sorted(range(-reach, reach + 1), key=abs)
        parts.append(around[:, [reach + k for k in offsets]].flatten(1, 2))
        return torch.cat(parts, 1).mT

    def columns(self, reach: int, products: bool) -> slice:
        channels = self.channels
        near = 2 * INNER + 1 if channels == 1 else channels * (2 * INNER - 1)
        count = near * (near + 1) // 2
        blocks = channels * len(_sizes(self.U.points)) * 2 if self.far else 0
        last = count + 3 + blocks + channels * (2 * reach + 1)
        return slice(0 if products else count, last)


def _sizes(points: int) -> list[int]:
    """Sizes of the blocks on either side."""
    return [2**k for k in range(1, points.bit_length()) if 2**k < points]


def _blocks(f: Float[Tensor, "n c p"]) -> Float[Tensor, "n c b p"]:
    """Means over blocks on either side of each point."""
    points, sizes = f.shape[-1], _sizes(f.shape[-1])
    pad = 2 * (sizes[-1] if sizes else 1)
    total = nn.functional.pad(f, (pad, pad), mode="replicate").cumsum(-1)
    total = nn.functional.pad(total, (1, 0))  # total[k] is the sum of the first k values
    at = torch.arange(points, device=f.device) + pad
    found = []
    for size in sizes:
        right = total[..., at + 2 * size] - total[..., at + size]
        left = total[..., at - size + 1] - total[..., at - 2 * size + 1]
        found += [left / size, right / size]
    return torch.stack(found, 2) if found else f[:, :, None][:, :, :0]
