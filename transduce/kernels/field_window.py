"""What a window knows of a field around each of its points.

    products of the nearest values, (1, x, y, x^2, x y, y^2), values by distance,
    values of the field carried along itself

Values beyond the edges repeat those at the edges or, of periodic fields, are those at the opposite
edges. A window of reach h is the disc of radius h. A field of two channels is read as a vector
along both axes, which carries itself:

    w <- w(x - d / s w(x)),      s times, from w = v

d is the root mean square displacement in units of the side. Advection alone does this to a field,
and a window after it adds diffusion and what depends on nearby values.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..spaces import SampledFields
from .window_features import WindowFeatures

REACHES = (1, 2, 4)
NEAREST = 5  # values of each channel whose products take part: a point and its neighbours
PLACES = 6
DISPLACEMENTS = (0.02, 0.05, 0.1)
STEPS, REACH = 3, 3  # of a displacement, and of the window of carried values


class FieldWindow(WindowFeatures):
    """A window of fields.

    Args:
        U: space of the positions.
        channels: number of channels of the fields.
        carried: whether fields carried along themselves take part; each further window then has
            one displacement more.
        periodic: whether fields are periodic.
    """

    place: Tensor

    def __init__(
        self, U: SampledFields, channels: int, carried: bool = False, periodic: bool = False
    ):
        super().__init__()
        self.U, self.channels, self.carried, self.periodic = U, channels, carried, periodic
        x, y = torch.meshgrid(*(2 * torch.tensor(axis).double() - 1 for axis in U.axes),
                              indexing="ij")  # fmt: skip
        place = torch.stack([torch.ones_like(x), x, y, x * x, x * y, y * y]).flatten(1)
        self.register_buffer("place", place, persistent=False)
        widest = max(REACHES[0], min(U.grid) // 2)
        self.discs = [h for h in REACHES if h <= widest]
        self.reaches: Sequence[int] = range(1, len(DISPLACEMENTS) + 1) if carried else self.discs

    def forward(
        self, f: Float[Tensor, "n c p"], reach: int, products: bool
    ) -> Float[Tensor, "n p d"]:
        fields = f.unflatten(2, self.U.grid)
        around = self._around(fields, self.discs[-1] if self.carried else reach)
        parts = [self.place.to(f).expand(f.shape[0], -1, -1), around.flatten(1, 2)]
        if products:
            near = around[:, :NEAREST].flatten(1, 2)
            i, j = torch.triu_indices(near.shape[1], near.shape[1])
            parts.insert(0, near[:, i] * near[:, j])
        if self.carried:
            moved = (carried_along(fields, d, self.U, self.periodic) for d in DISPLACEMENTS[:reach])
            parts += [self._around(w, min(REACH, self.discs[-1])).flatten(1, 2) for w in moved]
        return torch.cat(parts, 1).mT

    def columns(self, reach: int, products: bool) -> slice:
        near = NEAREST * self.channels
        count = near * (near + 1) // 2
        last = count + PLACES
        if self.carried:
            extra = reach * len(disc(min(REACH, self.discs[-1])))
            last += self.channels * (len(disc(self.discs[-1])) + extra)
        else:
            last += self.channels * len(disc(reach))
        return slice(0 if products else count, last)

    def _around(self, f: Float[Tensor, "n c x y"], reach: int) -> Float[Tensor, "n k c p"]:
        """The values around each point, by distance."""
        p, q = f.shape[-2:]
        mode = "circular" if self.periodic else "replicate"
        wide = nn.functional.pad(f, (reach,) * 4, mode=mode)
        parts = [wide[..., reach + i : reach + i + p, reach + j : reach + j + q]
                 for i, j in disc(reach)]  # fmt: skip
        return torch.stack(parts, 1).flatten(3)


def disc(reach: int) -> list[tuple[int, int]]:
    """Offsets of the points within a distance, by distance."""
    steps = range(-reach, reach + 1)
    inside = [(i, j) for i in steps for j in steps if i * i + j * j <= reach * reach]
    return sorted(inside, key=lambda k: k[0] ** 2 + k[1] ** 2)


def carried_along(
    v: Float[Tensor, "n two x y"], displacement: float, U: SampledFields, periodic: bool = False
) -> Float[Tensor, "n two x y"]:
    """Fields carried along themselves.

    Args:
        v: fields, in units of the root mean square of their values.
        displacement: of a value of 1, in units of the side.
        U: their grid; its points count as evenly spaced.
        periodic: whether fields are periodic.
    """
    around = [points // 4 if periodic else 0 for points in U.grid]  # points beyond each end
    sides = [(p - 1 + 2 * more) / 2 for p, more in zip(U.grid, around, strict=True)]
    axes = (torch.linspace(1 - p, p - 1, p).to(v) / 2 for p in U.grid)
    start = torch.stack(torch.meshgrid(*axes, indexing="ij")[::-1], -1)  # (y, x) as sampled
    half = start.new_tensor(sides[::-1])  # of the field with what is around it, in points
    own = start.new_tensor([p - 1 + periodic for p in U.grid[::-1]])  # the side
    beyond = [around[1], around[1], around[0], around[0]]
    w = v
    for _ in range(STEPS):
        back = displacement / STEPS * own * w.flip(1).movedim(1, -1)
        wide = nn.functional.pad(w, beyond, mode="circular") if periodic else w
        w = nn.functional.grid_sample(
            wide, (start - back) / half, mode="bicubic", padding_mode="border", align_corners=True
        )
    return w
