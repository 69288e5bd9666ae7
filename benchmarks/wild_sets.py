"""Sets of function pairs in .npz files, their splits into examples and held-out pairs, and the
metric of benchmarks/wild.py.

    error = sum |u_hat - u|^2 / sum |u - mean of the examples' u|^2      over the held-out pairs
    ratio = max(our error, floor) / max(best baseline's error, floor)

Each file has v and u, shape (n, points), (n, channels, points) or (n, x, y), and optionally x (one
grid) or xv and xu (two). Names in measured.txt, next to the files, are sets that were measured; the
others come from solvers."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from transduce.files import brief, data_folders, not_found_in
from transduce.types import TransduceError

FOLDER = "wild"  # in a folder of data
HELD_OUT, FEWEST_HELD_OUT = 200, 10  # pairs
FEW_ROWS, FEW_ROWS_SPLITS = 100, 10  # sets with fewer rows get this many splits
LEAST_ERROR = 1e-14  # in a geometric mean over splits
MEAN_FLOOR, SHARE_FLOOR = 1e-10, 1e-6  # errors below are equal: in means, in shares and worst
FAILED = 99.0  # ratio of a model that failed or returned values that are not finite


@dataclass(frozen=True, eq=False)
class PairSet:
    """Pairs of one operator.

    Attributes:
        name: of its file.
        v, u: inputs and outputs, in double precision.
        x_v, x_u: positions of their points; None where unknown.
        measured: whether it was measured, not computed by a solver.
        checksum: of its file.
    """

    name: str
    v: np.ndarray
    u: np.ndarray
    x_v: np.ndarray | None
    x_u: np.ndarray | None
    measured: bool
    checksum: str

    @property
    def kind(self) -> str:
        return "measured" if self.measured else "solver"


def load_sets(folder: Path | None, prefixes: Sequence[str] = ()) -> list[PairSet]:
    """The sets of a folder, by name.

    Args:
        folder: of .npz files; None for `wild` in the data folders.
        prefixes: sets whose name starts with any of these; all if empty.
    """
    folder = _default_folder() if folder is None else folder
    listed = folder / "measured.txt"
    measured = set(listed.read_text().split()) if listed.exists() else set()
    paths = [path for path in sorted(folder.glob("*.npz"))
             if not prefixes or path.stem.startswith(tuple(prefixes))]  # fmt: skip
    if not paths:
        named = f" whose name starts with {' or '.join(prefixes)}" if prefixes else ""
        raise TransduceError(
            f"{folder} has no .npz file{named}; expected one for each set, with arrays v and u. "
            "Give another folder" + (", or other names." if prefixes else ".")
        )
    return [load_set(path, path.stem in measured) for path in paths]


def _default_folder() -> Path:
    found = [folder / FOLDER for folder in data_folders() if (folder / FOLDER).is_dir()]
    if not found:
        raise TransduceError(
            f"the folder {FOLDER} is {not_found_in(data_folders())}. Give a folder of .npz files, "
            "or set TRANSDUCE_DATA to a folder that has it."
        )
    return found[0]


def load_set(path: Path, measured: bool = False) -> PairSet:
    """The pairs of one .npz file, checked."""
    arrays = _arrays(path)
    v, u = (_functions(arrays, name, path) for name in ("v", "u"))
    if len(v) != len(u):
        raise TransduceError(
            f"{path.name} has {len(v)} rows of v and {len(u)} of u; expected the same number, "
            "u[i] being the image of v[i]. Drop those that have no partner."
        )
    checksum = hashlib.sha256(path.read_bytes()).hexdigest()
    x_v, x_u = (_points(arrays, name, f, path) for name, f in (("xv", v), ("xu", u)))
    return PairSet(path.stem, v, u, x_v, x_u, measured, checksum)


def _arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays that matter, of numbers only."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in ("v", "u", "x", "xv", "xu") if name in file.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, AttributeError) as error:
        raise TransduceError(
            f"{path.name} could not be read ({brief(error)}); expected a .npz file of numeric "
            "arrays. Write it with np.savez(path, v=v, u=u)."
        ) from None


def _functions(arrays: dict[str, np.ndarray], name: str, path: Path) -> np.ndarray:
    if name not in arrays:
        raise TransduceError(
            f"{path.name} has no array {name!r}; expected v and u. "
            "Write it with np.savez(path, v=v, u=u)."
        )
    f = arrays[name]
    if f.dtype.kind not in "fiub" or f.ndim < 2 or f.size == 0:
        raise TransduceError(
            f"{path.name}: {name} has shape {f.shape} and dtype {f.dtype}; expected real numbers "
            "of shape (n, points), (n, channels, points) or (n, x, y). Reshape or convert it."
        )
    f = f.astype(float)
    if not np.isfinite(f).all():
        rows = int((~np.isfinite(f.reshape(len(f), -1)).all(1)).sum())
        raise TransduceError(
            f"{path.name}: {name} has values that are not finite in {rows} of {len(f)} rows; "
            "expected finite numbers. Drop those rows."
        )
    return f


def _points(
    arrays: dict[str, np.ndarray], name: str, f: np.ndarray, path: Path
) -> np.ndarray | None:
    """Positions of the points of f: under its own name, or x where its length fits."""
    if name in arrays:
        x = arrays[name]
        if x.ndim == 0 or len(x) != f.shape[-1]:
            raise TransduceError(
                f"{path.name}: {name} has shape {x.shape} for {f.shape[-1]} points; expected one "
                "position for each. Correct or leave out the positions."
            )
        return x
    shared = arrays.get("x")
    fits = shared is not None and shared.ndim > 0 and len(shared) == f.shape[-1]
    return shared if fits else None


def number_of_splits(rows: int, splits: int) -> int:
    """More splits for small sets."""
    return splits if rows >= FEW_ROWS else max(splits, FEW_ROWS_SPLITS)


def enough_rows(rows: int, n: int) -> bool:
    """Whether a set can spare n examples."""
    return rows >= n + FEWEST_HELD_OUT


def split(rows: int, n: int, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Indices of n examples and of up to 200 held-out pairs."""
    order = np.random.default_rng(number).permutation(rows)
    return order[:n], order[n : n + HELD_OUT]


def relative_error(u_hat: np.ndarray, u: np.ndarray, u_examples: np.ndarray) -> float:
    """Squared error relative to that of the mean of the examples, 1 being no better than that."""
    unit = np.square(u - u_examples.mean(0)).sum() + 1e-300
    return float(np.square(u_hat.reshape(u.shape) - u).sum() / unit)


def geometric_mean(values: Sequence[float]) -> float:
    """NaN if any value is."""
    return float(np.exp(np.mean(np.log(np.maximum(values, LEAST_ERROR)))))


def ratio(error: float | None, best: float, floor: float) -> float:
    """An error divided by the best baseline's, errors below `floor` being equal.

    error: None for a model that failed.
    """
    if error is None or not np.isfinite(error):
        return FAILED
    return max(error, floor) / max(best, floor)
