"""Synthetic tasks of classifying images: ten classes that nobody has named, and images that belong
to them.

    v = c (P o (id + w))^gamma,      u = e_k,      k: the class of the prototype P

Prototypes are characters of one to four pen strokes, each a Bezier curve, in a few ways of writing;
or objects, sets where a Gaussian random field is large, with another field as their shade. w is an
affine map and a smooth displacement, c and gamma are brightness and contrast: all are drawn for
each image, and how much they vary for each task. So what can be learned is how images of a class
differ from one another, and from those of other classes; no collection of images is needed."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample, interpolate, one_hot

from ..types import ExampleSet, Task, TransduceError
from .image_files import CLASSES

STROKES, POINTS, WAYS = 4, 24, 4  # at most, to a character; along each; of writing it


@dataclass(frozen=True)
class SyntheticImages:
    """Tasks of so many synthetic images of side x side pixels. characters: the share of tasks that
    are of these rather than of objects.

    v has shape (n, side^2) with values in [0, 1], u (n, 10) is one-hot.

    >>> task = SyntheticImages().sample_task(100, 100, generator)
    """

    side: int = 28
    characters: float = 0.7

    def __post_init__(self) -> None:
        if self.side < 8 or not 0 <= self.characters <= 1:
            raise TransduceError(
                f"side={self.side}, characters={self.characters}; expected at least 8 pixels, and "
                "a share from 0 to 1."
            )

    def sample_task(self, n: int, m: int, generator: torch.Generator) -> Task:
        draw = Draw(generator)
        labels = torch.randint(CLASSES, (n + m,), generator=generator)
        kind = characters if draw.uniform(0.0, 1.0) < self.characters else objects
        v = shaded(warped(kind(labels, self.side, draw), draw), draw).flatten(1)
        u = one_hot(labels, CLASSES).float()
        return Task(ExampleSet(v[:n], u[:n]), ExampleSet(v[n:], u[n:]))


@dataclass(frozen=True)
class Draw:
    """Numbers of one generator."""

    generator: torch.Generator

    def uniform(self, low: float, high: float) -> float:
        return low + (high - low) * float(torch.rand((), generator=self.generator))

    def normal(self, *shape: int) -> Tensor:
        return torch.randn(shape, generator=self.generator)

    def field(
        self, count: int, channels: int, cells: int, side: int
    ) -> Float[Tensor, "count channels side side"]:
        """Smooth random fields of about unit variance, with so many cells across."""
        coarse = self.normal(count, channels, cells + 2, cells + 2)
        margin = side // cells
        fine = interpolate(coarse, size=side + 2 * margin, mode="bicubic", align_corners=False)
        return 1.4 * fine[..., margin : margin + side, margin : margin + side]


def characters(labels: Int[Tensor, " k"], side: int, draw: Draw) -> Float[Tensor, "k 1 side side"]:
    """Each class has a few strokes; ways of writing it differ in where their control points are."""
    strokes = 1 + int(torch.randint(STROKES, (), generator=draw.generator))
    start = 0.55 * draw.normal(CLASSES, 1, strokes, 1, 2)
    steps = draw.uniform(0.3, 0.8) * draw.normal(CLASSES, 1, strokes, 3, 2)
    curve = torch.cat([start, start + steps.cumsum(-2)], -2)
    curve = curve + draw.uniform(0.0, 0.25) * draw.normal(CLASSES, WAYS, strokes, 4, 2)
    curve = 0.85 * torch.tanh(curve)
    t = torch.linspace(0, 1, POINTS)[:, None]
    basis = torch.cat([(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3], 1)
    ink = (basis @ curve).flatten(2, 3).flatten(0, 1)  # (classes x ways, points, 2)
    line = torch.linspace(-1, 1, side)
    pixels = torch.cartesian_prod(line, line).expand(len(ink), -1, -1)
    distance = torch.cdist(pixels, ink).amin(-1)
    drawn = torch.sigmoid((draw.uniform(0.03, 0.14) - distance) / draw.uniform(0.02, 0.06)).reshape(
        -1, 1, side, side
    )
    ways = 1 + int(torch.randint(WAYS, (), generator=draw.generator))
    return drawn[WAYS * labels + torch.randint(ways, labels.shape, generator=draw.generator)]


def objects(labels: Int[Tensor, " k"], side: int, draw: Draw) -> Float[Tensor, "k 1 side side"]:
    """Each class has a field, large where the object is, and one of its shade; each image has a
    little of its own in both."""
    count, cells, grain = (
        len(labels),
        2 + int(draw.uniform(0.0, 4.0)),
        2 + int(draw.uniform(0.0, 8.0)),
    )
    shape, shade = draw.field(CLASSES, 1, cells, side), draw.field(CLASSES, 1, grain, side)
    if draw.uniform(0.0, 1.0) < 0.5:
        shape, shade = (shape + shape.flip(-1)) / 1.4, (shade + shade.flip(-1)) / 1.4
    line = torch.linspace(-1, 1, side)
    middle = 1.5 - 2.5 * (line[:, None] ** 2 + line**2)
    shape = (shape + draw.uniform(0.5, 1.5) * middle)[labels] + draw.uniform(0.0, 0.5) * draw.field(
        count, 1, cells, side
    )
    shade = draw.uniform(0.0, 1.5) * shade[labels] + draw.uniform(0.0, 0.8) * draw.field(
        count, 1, grain, side
    )
    return torch.sigmoid(draw.uniform(3.0, 15.0) * shape) * torch.sigmoid(
        1 + shade + draw.uniform(0.0, 1.0) * draw.normal(count, 1, 1, 1)
    )


def warped(
    images: Float[Tensor, "k 1 p p"], draw: Draw, strength: float = 1.0
) -> Float[Tensor, "k 1 p p"]:
    """Each image through a map of its own that is nearly the identity."""
    count, side = len(images), images.shape[-1]
    affine = torch.eye(2, 3) + strength * draw.uniform(0.02, 0.2) * draw.normal(count, 2, 3)
    grid = affine_grid(affine, [count, 1, side, side], align_corners=False)
    bend = (
        strength
        * draw.uniform(0.0, 0.15)
        * draw.field(count, 2, 2 + int(draw.uniform(0.0, 4.0)), side)
    )
    return grid_sample(images, grid + bend.movedim(1, -1), align_corners=False)


def shaded(images: Float[Tensor, "k 1 p p"], draw: Draw) -> Float[Tensor, "k 1 p p"]:
    """Each image with its own brightness and contrast."""
    contrast = (draw.uniform(0.0, 0.4) * draw.normal(len(images), 1, 1, 1)).exp()
    brightness = 1 - draw.uniform(0.0, 0.5) * torch.rand(
        len(images), 1, 1, 1, generator=draw.generator
    )
    return brightness * images.clamp(0, 1) ** contrast
