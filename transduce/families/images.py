"""Classifying images in context (section 5.4): operators from [0, 1]^784 to ten classes.

    O(v) = e_{pi(label of v)},
    v = an image whose blocks of b x b pixels have changed places,
    e_1, ..., e_10 one-hot

A task has an order of blocks and a permutation pi of the classes of its own, so that nothing about
its labels can be known but from its examples. Of real images, meta-training sees the training half
of MNIST alone, never as it is; the sets that it is tested on are left as they are.

IDX files (LeCun et al., 1998): two zero bytes, the type (8: unsigned bytes), the number of axes,
their lengths as big-endian 32-bit numbers, and the values. They are looked for in the folder that
TRANSDUCE_DATA names, in a source checkout in `../shared/data`, and in a cache that is filled from
where they were published."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor
from torch.nn.functional import interpolate, one_hot

from ..files import PathLike, brief, data_folders, not_found_in, pip_install
from ..types import ExampleSet, Task, TransduceError, to_tensor

CLASSES = 10
SIDE = 28
UNSIGNED_BYTES = 8
ROUNDING = 1e-6  # by which pixels may lie outside [0, 1]
PUBLISHED = {
    "mnist": "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "fashionmnist": "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    "kmnist": "http://codh.rois.ac.jp/kmnist/dataset/kmnist/",
}
FILES = {
    "train": ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"),
    "test": ("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"),
}
SHA256 = {
    "fashionmnist/t10k-images-idx3-ubyte.gz": (
        "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"
    ),
    "fashionmnist/t10k-labels-idx1-ubyte.gz": (
        "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"
    ),
    "fashionmnist/train-images-idx3-ubyte.gz": (
        "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"
    ),
    "fashionmnist/train-labels-idx1-ubyte.gz": (
        "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"
    ),
    "kmnist/t10k-images-idx3-ubyte.gz": (
        "edd7a857845ad6bb1d0ba43fe7e794d164fe2dce499a1694695a792adfac43c5"
    ),
    "kmnist/t10k-labels-idx1-ubyte.gz": (
        "20bb9a0ef54c7db3efc55a92eef5582c109615df22683c380526788f98e42a1c"
    ),
    "mnist/t10k-images-idx3-ubyte.gz": (
        "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"
    ),
    "mnist/t10k-labels-idx1-ubyte.gz": (
        "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"
    ),
    "mnist/train-images-idx3-ubyte.gz": (
        "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"
    ),
    "mnist/train-labels-idx1-ubyte.gz": (
        "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"
    ),
}


def read_idx(path: PathLike) -> UInt8[np.ndarray, ...]:
    """The array in an IDX file of unsigned bytes, gzipped or not."""
    path = Path(path)
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except FileNotFoundError:
        raise TransduceError(
            f"there is no file {path}; expected an IDX file. Check the path."
        ) from None
    except (OSError, EOFError, zlib.error) as error:
        raise TransduceError(
            f"{path} cannot be read ({error}): it is damaged or truncated. Fetch it again."
        ) from None
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] != UNSIGNED_BYTES:
        raise TransduceError(
            f"{path} is not an IDX file of unsigned bytes; expected one that starts with 00 00 "
            "08, as MNIST's do."
        )
    axes = content[3]
    start = 4 + 4 * axes
    shape = struct.unpack(f">{axes}I", content[4:start]) if len(content) >= start else ()
    if not shape or len(content) != start + math.prod(shape):
        raise TransduceError(
            f"{path} holds {max(len(content) - start, 0)} values, where its head says "
            f"{' x '.join(map(str, shape)) or 'less than a head'}: "
            "it is truncated, or something was added. Fetch it again."
        )
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


@dataclass(frozen=True, eq=False)
class LabelledImages:
    """Square images as rows of bytes, and their classes from 0 to 9."""

    images: UInt8[Tensor, "n p"]
    labels: Int[Tensor, " n"]
    name: str = "images"

    def __post_init__(self) -> None:
        if len(self.images) != len(self.labels) or not len(self.labels):
            raise TransduceError(
                f"{self.name}: {len(self.images)} images and {len(self.labels)} labels; expected "
                "as many, at least one."
            )
        if math.isqrt(self.images.shape[1]) ** 2 != self.images.shape[1]:
            raise TransduceError(
                f"{self.name}: images of {self.images.shape[1]} pixels; expected square ones, "
                "like 784."
            )
        if self.labels.min() < 0 or self.labels.max() >= CLASSES:
            raise TransduceError(
                f"{self.name}: labels from {int(self.labels.min())} to {int(self.labels.max())}; "
                f"expected 0 to {CLASSES - 1}."
            )

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return f"LabelledImages({self.name}, {len(self)} of {self.images.shape[1]} pixels)"

    @classmethod
    def from_idx(cls, images: PathLike, labels: PathLike, name: str = "images") -> LabelledImages:
        """From two IDX files."""
        pixels, classes = read_idx(images), read_idx(labels)
        if pixels.ndim != 3 or classes.ndim != 1 or pixels.shape[1] != pixels.shape[2]:
            raise TransduceError(
                f"{images} has shape {pixels.shape} and {labels} {classes.shape}; expected square "
                "images (n, side, side) and labels (n). "
                "Give the images first."
            )
        return cls(
            torch.from_numpy(pixels.reshape(len(pixels), -1).copy()),
            torch.from_numpy(classes.astype(np.int64)),
            name,
        )


def resized(images: Any, side: int = SIDE) -> Float[np.ndarray, "n p"]:
    """Square images of any size, as rows of pixels or as planes, as rows of side x side pixels.

    >>> resized(load_digits().data / 16)      # (1797, 64) -> (1797, 784)
    """
    pixels = to_tensor(images, "images")
    old = math.isqrt(math.prod(pixels.shape[1:]))
    if not old or tuple(pixels.shape[1:]) not in ((old**2,), (old, old)):
        raise TransduceError(
            f"images have shape {tuple(pixels.shape)}; expected square ones, like (n, 64) or (n, "
            "8, 8). Crop them or pad them, and give a "
            "single one as image[None]."
        )
    at = interpolate(
        pixels.reshape(-1, 1, old, old),
        size=side,
        mode="bilinear",
        align_corners=False,
        antialias=side < old,
    )
    return at.flatten(1).numpy()


def check_pixels(images: Any, name: str, otherwise: str = "") -> None:
    """Raise if pixels are not from 0 to 1. otherwise: what else would help than to divide them."""
    pixels = to_tensor(images, name)
    if pixels.numel() and (pixels.min() < -ROUNDING or pixels.max() > 1 + ROUNDING):
        raise TransduceError(
            f"{name} has values from {pixels.min():g} to {pixels.max():g}; expected pixels from 0 "
            "to 1. Divide them by the greatest, like "
            f"255{otherwise}."
        )


def load_images(name: str, split: str) -> LabelledImages:
    """ "mnist", "fashionmnist" or "kmnist", its "train" or "test" half."""
    if name not in PUBLISHED or split not in FILES:
        raise TransduceError(
            f"no images are called {name!r}, {split!r}; known: {', '.join(PUBLISHED)}, each "
            "'train' or 'test'."
        )
    images, labels = (_found(name, file) for file in FILES[split])
    return LabelledImages.from_idx(images, labels, f"{name} {split}")


def _found(name: str, file: str) -> Path:
    """Where a file is; fetched if it is nowhere."""
    for folder in data_folders():
        if (folder / name / file).exists():
            return folder / name / file
    return _fetched(name, file, data_folders())


def _fetched(name: str, file: str, looked: Sequence[Path]) -> Path:
    """The file in the cache, fetched if it is not there, its bytes those that were published."""
    known = SHA256.get(f"{name}/{file}")
    missing = not_found_in([folder / name for folder in looked])
    try:
        import pooch

        if known is not None:
            return Path(
                pooch.retrieve(
                    PUBLISHED[name] + file,
                    f"sha256:{known}",
                    path=pooch.os_cache("transduce") / name,
                    fname=file,
                )
            )
        problem = "its checksum is not known, so it is not fetched"
    except ImportError:
        problem = f"pooch, which would fetch it, is not installed ({pip_install('images')})"
    except Exception as error:
        problem = (
            f"fetching it from {PUBLISHED[name]} failed ({type(error).__name__}: {brief(error)})"
        )
    raise TransduceError(
        f"{file} is {missing}, and {problem}. Download it, and set TRANSDUCE_DATA to a folder that "
        f"has {name}/{file}."
    )


@dataclass(frozen=True)
class PermutedImages:
    """Tasks of permuted images: an order of blocks and a permutation of the classes for each.

    data: images, or the name of a set whose training half is then read when it is needed. blocks:
    the sides of blocks, of which a task takes one; none for images and classes as they are. v has
    shape (n, pixels) with values in [0, 1], u (n, 10) is one-hot.

    >>> task = PermutedImages("mnist").sample_task(100, 100, generator)
    """

    data: LabelledImages | str
    blocks: tuple[int, ...] = (1, 2, 4, 7)

    def __post_init__(self) -> None:
        side = SIDE if isinstance(self.data, str) else math.isqrt(self.data.images.shape[1])
        if any(block < 1 or side % block or block == side for block in self.blocks):
            raise TransduceError(
                f"blocks={self.blocks}; expected sides of blocks that divide {side}, and are "
                "smaller."
            )

    def sample_task(self, n: int, m: int, generator: torch.Generator) -> Task:
        data = training_half(self.data) if isinstance(self.data, str) else self.data
        if n + m > len(data):
            raise TransduceError(
                f"{n} examples and {m} queries were asked of {len(data)} images; expected no more "
                "than there are."
            )
        chosen = torch.from_numpy(_distinct(len(data), n + m, generator))
        images, labels = data.images[chosen], data.labels[chosen]
        if self.blocks:
            block = self.blocks[int(torch.randint(len(self.blocks), (), generator=generator))]
            images = images[:, block_order(math.isqrt(images.shape[1]), block, generator)]
            labels = torch.randperm(CLASSES, generator=generator)[labels]
        v, u = images.float() / 255, one_hot(labels, CLASSES).float()
        return Task(ExampleSet(v[:n], u[:n]), ExampleSet(v[n:], u[n:]))


@cache
def training_half(name: str) -> LabelledImages:
    """Read once."""
    return load_images(name, "train")


def block_order(side: int, block: int, generator: torch.Generator) -> Int[Tensor, " p"]:
    """Where each pixel of an image with its blocks in a new order, never the old one, comes
    from."""
    across = side // block
    order = torch.arange(across**2)
    while (order == torch.arange(across**2)).all():
        order = torch.randperm(across**2, generator=generator)
    pixels = (
        torch.arange(side**2)
        .reshape(across, block, across, block)
        .movedim(1, 2)
        .reshape(across**2, block, block)
    )
    return pixels[order].reshape(across, across, block, block).movedim(2, 1).reshape(-1)


def _distinct(size: int, count: int, generator: torch.Generator) -> Int[np.ndarray, " k"]:
    """Distinct numbers below `size`, without shuffling all of them."""
    seed = int(torch.randint(2**62, (), generator=generator))
    return np.random.default_rng(seed).choice(size, count, replace=False)
