"""Labelled images in IDX files (LeCun et al., 1998).

An IDX file has two zero bytes, the type (8: unsigned bytes), the number of axes, their lengths as
big-endian 32-bit numbers, and the values. `load_images` looks for the files of a set in the folder
that TRANSDUCE_DATA names, in a source checkout in `../shared/data`, and in a cache, into which it
downloads them from where they were published."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor
from torch.nn.functional import interpolate

from ..files import PathLike, brief, data_folders, not_found_in, pip_install
from ..types import Array, TransduceError, to_tensor

CLASSES = 10
SIDE = 28
UNSIGNED_BYTES = 8
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
    """The array in an IDX file of unsigned bytes, which may be gzipped."""
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


def resized(images: Array, side: int = SIDE) -> Float[np.ndarray, "n p"]:
    """Square images as rows of side x side pixels, by bilinear interpolation.

    Args:
        images: square images of any size, shape (n, pixels) or (n, rows, columns).
        side: pixels along each side of the result.

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


def load_images(name: str, split: str) -> LabelledImages:
    """A published set of labelled images.

    Args:
        name: "mnist", "fashionmnist" or "kmnist".
        split: "train" or "test".
    """
    if name not in PUBLISHED or split not in FILES:
        raise TransduceError(
            f"no images are called {name!r}, {split!r}; known: {', '.join(PUBLISHED)}, each "
            "'train' or 'test'."
        )
    images, labels = (_found(name, file) for file in FILES[split])
    return LabelledImages.from_idx(images, labels, f"{name} {split}")


def _found(name: str, file: str) -> Path:
    """The path of a file, which is downloaded if no data folder has it."""
    for folder in data_folders():
        if (folder / name / file).exists():
            return folder / name / file
    return _fetched(name, file, data_folders())


def _fetched(name: str, file: str, looked: Sequence[Path]) -> Path:
    """The path of a file in the cache, downloaded once and compared with its checksum."""
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


@cache
def training_half(name: str) -> LabelledImages:
    """The training half of a set, read once."""
    return load_images(name, "train")
