"""The general model on fields, compared with simple baselines:  python -m benchmarks.general_fields

    error = sum |u_hat - u|^2 / sum |u - mean of the examples' u|^2      over held-out pairs

| name | pairs |
|---|---|
| darcy | permeability to pressure, 16 x 16: neuralop_darcy16 of the third-party sets |
| burgers | two channels, 64 x 64, amplitude 0.3, t = 10: the family Burgers2d, never trained on |
| europe | temperature at 850 hPa to sea-level pressure, 11 x 13: 2000-2006, held out 2007-2010 |
| random | 24 random operators of the mechanisms that training leaves out, 16 to 32 points a side |

The baselines are the mean, the identity, linear ridge and RBF kernel ridge, each tuned by
leave-one-out. Errors are geometric means over splits, or random operators. Variants leave out some
answers of the model; "wrong context" is the complete model with u shuffled among the examples.
Writes accuracy.json, accuracy.md and the figure to results/fields. With `--only conditioning`, it
times the regression of 50 fields of 64 x 64 with two threads, and writes conditioning.json."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer

import transduce
from benchmarks.general_fields_figure import TITLES, Shown, draw
from benchmarks.wild_measuring import regressed
from benchmarks.wild_sets import PairSet, geometric_mean, load_sets, relative_error
from transduce import Transducer
from transduce.families import Burgers2d, RandomFieldOperators
from transduce.families.random_field_operators import HELD_OUT as UNSEEN
from transduce.files import data_folders, provenance, replacing
from transduce.inputs import read_pairs
from transduce.kernels import FieldStack
from transduce.kernels.general_fields import FIELDS as CATALOGUE
from transduce.layer import Layer
from transduce.random_fields import generator_for
from transduce.regression import RegressedOperator
from transduce.regression.named import FIELDS, pretrained
from transduce.report import Row, markdown_table, write_rows
from transduce.stacking import OnFieldGrids
from transduce.types import Operator, TransduceError, to_tensor

OURS, BASELINES = "general", ("mean", "identity", "linear", "rbf")
WRONG, CONDITIONING = "wrong context", "conditioning"
VARIANTS = {  # with the answers that they leave out
    "without implicit": ("implicit", "rich implicit"),
    "without read-out": ("readout",),
    "without slopes": tuple(name for name in CATALOGUE.answers if name.endswith("with slopes")),
}
SPLITS, OPERATORS, HELD_OUT, SEED = 3, 24, 200, 0
FIRST_HELD_OUT_YEAR = 2007
RESULTS = Path("results/fields")


@dataclass(frozen=True, eq=False)
class Split:
    """Pairs, and the numbers of the examples and of the held-out pairs among them."""

    pairs: PairSet
    examples: np.ndarray
    held: np.ndarray


def darcy(n: int, number: int) -> Split:
    """Random examples of the third-party set."""
    (pairs,) = load_sets(None, ["neuralop_darcy16"])
    order = np.random.default_rng(number).permutation(len(pairs.v))
    return Split(pairs, order[:n], order[n : n + HELD_OUT])


def burgers(n: int, number: int) -> Split:
    """The pairs of one operator."""
    family, generator = Burgers2d(amplitude=0.3), generator_for("test", SEED, number)
    task = family.sample_task(n, 24, generator)
    parts = (task.examples, task.queries)
    v, u = (
        torch.cat([to_tensor(getattr(part, name), name) for part in parts]).double().numpy()
        for name in ("v", "u")
    )
    return Split(_unplaced("burgers", v, u), np.arange(n), np.arange(n, n + 24))


def europe(n: int, number: int) -> Split:
    """Random days of the first years, and every fifth day of the last ones."""
    import xarray as xr

    fields = []
    for name in ("t850", "mslp"):
        path = _climate(f"eraint_europe_daily_{name}.nc")
        with xr.open_dataset(path) as data:
            fields.append(data[next(iter(data.data_vars))].load())
    years = fields[0]["time"].dt.year.values
    v, u = (field.values.astype(float) for field in fields)
    early = np.flatnonzero(years < FIRST_HELD_OUT_YEAR)
    examples = np.random.default_rng(number).permutation(early)[:n]
    held = np.flatnonzero(years >= FIRST_HELD_OUT_YEAR)[::5]
    return Split(_unplaced("europe", v, u), examples, held)


def _climate(name: str) -> Path:
    found = [path for folder in data_folders() if (path := folder / "climate" / name).exists()]
    if not found:
        raise TransduceError(
            f"there is no climate/{name} in the data folders; expected it in one of "
            f"{', '.join(map(str, data_folders()))}. Set TRANSDUCE_DATA."
        )
    return found[0]


def _unplaced(name: str, v: np.ndarray, u: np.ndarray) -> PairSet:
    return PairSet(name, v, u, None, None, measured=name == "europe", checksum="")


def random(n: int, number: int) -> Split:
    """The pairs of one random operator."""
    family = OnFieldGrids(RandomFieldOperators(UNSEEN, noisy=0.3), (16, 32))
    task = family.sample_task(n, 16, generator_for("test", SEED, number))
    v, u = (
        torch.cat([to_tensor(getattr(part, name), name) for part in (task.examples, task.queries)])
        for name in ("v", "u")
    )
    pairs = _unplaced("random", v.double().numpy(), u.double().numpy())
    return Split(pairs, np.arange(n), np.arange(n, n + 16))


SETS: dict[str, tuple[Callable[[int, int], Split], tuple[int, ...], int]] = {
    "darcy": (darcy, (20, 50), SPLITS),
    "burgers": (burgers, (20,), SPLITS),
    "europe": (europe, (50, 500), SPLITS),
    "random": (random, (20,), OPERATORS),
}


def measure_all(names: Sequence[str], quick: bool) -> Iterator[Row]:
    """A row for each set, n and regressor."""
    for name in names:
        draw_split, sizes, splits = SETS[name]
        for n in sizes:
            drawn = [draw_split(n, number) for number in range(1 if quick else splits)]
            for regressor in (OURS, *BASELINES, *VARIANTS, WRONG):
                if regressor == "identity" and any(
                    s.pairs.v.shape != s.pairs.u.shape for s in drawn
                ):
                    continue
                errors = [error(regressor, split) for split in drawn]
                yield {"set": name, "n": n, "regressor": regressor, "error": geometric_mean(errors)}


def error(regressor: str, split: Split) -> float:
    """The error at the held-out pairs."""
    pairs = split.pairs
    with warnings.catch_warnings(action="ignore"):
        answer = np.asarray(operator(regressor, split)(pairs.v[split.held]), dtype=float)
    return relative_error(answer, pairs.u[split.held], pairs.u[split.examples])


def operator(regressor: str, split: Split) -> Operator:
    """The operator that a model, a variant or a baseline regresses from the examples."""
    if regressor not in (WRONG, *VARIANTS):
        return regressed(regressor, split.pairs, split.examples, quick=False)
    v, u = split.pairs.v[split.examples], split.pairs.u[split.examples]
    if regressor == WRONG:
        return transduce.regress(v, np.random.default_rng(SEED).permutation(u))
    T = pretrained(FIELDS)
    stack = T.steps[0].kappa
    assert isinstance(stack, FieldStack)
    left = FieldStack(stack.V, stack.U, stack.readout, stack.trust, VARIANTS[regressor])
    return RegressedOperator(read_pairs(v, u), OURS, Transducer(T.V, T.U, [Layer(left)]).eval())


def shown(name: str) -> Shown:
    """The held-out pair of median error of the largest n."""
    draw_split, sizes, _ = SETS[name]
    split = draw_split(sizes[-1], 0)
    with warnings.catch_warnings(action="ignore"):
        O = operator(OURS, split)
        answers = np.asarray(O(split.pairs.v[split.held]), dtype=float)
    truth = split.pairs.u[split.held]
    wrong = np.square(answers - truth).reshape(len(truth), -1).sum(1)
    i = int(np.argsort(wrong)[len(wrong) // 2])
    v = split.pairs.v[split.held][i]
    return Shown(name, sizes[-1], *(f[0] if f.ndim > 2 else f for f in (v, truth[i], answers[i])))


def conditioning() -> Row:
    """Seconds to condition on 50 fields of 64 x 64, the least of three runs."""
    pairs = burgers(50, 99).pairs
    v, u = pairs.v[:50, 0], pairs.u[:50, 0]
    seconds = []
    with warnings.catch_warnings(action="ignore"):
        for _ in range(3):
            begun = time.perf_counter()
            transduce.regress(v, u)
            seconds.append(time.perf_counter() - begun)
    return {"set": "50 fields of 64 x 64", "n": 50, "regressor": OURS, "seconds": min(seconds)}


def table(rows: list[Row]) -> list[Row]:
    """One line for each set and n."""
    lines: dict[tuple[str, int], Row] = {}
    for row in rows:
        if "error" in row:
            line = lines.setdefault((row["set"], row["n"]), {"set": row["set"], "n": row["n"]})
            line[row["regressor"]] = row["error"]
    for line in lines.values():
        best = min(line[name] for name in BASELINES if name in line)
        line["ours / best baseline"] = line[OURS] / best
    kept = ("set", "n", OURS, *BASELINES, "ours / best baseline", *VARIANTS, WRONG)
    return [{key: line.get(key, "") for key in kept} for line in lines.values()]


def main(
    only: Annotated[str, typer.Option(help="Names of sets, with commas.")] = "",
    quick: Annotated[bool, typer.Option("--quick", help="A smoke test: one split.")] = False,
    out: Annotated[Path, typer.Option(help="The folder for the results.")] = RESULTS,
) -> None:
    """Measure, print the table, and write rows and table."""
    origin = provenance()
    torch.set_num_threads(2)
    command = " ".join(["python -m benchmarks.general_fields", *sys.argv[1:]])
    if only == CONDITIONING:
        write_rows(out / f"{only}.json", [conditioning()], command=command, seed=SEED, **origin)
        return
    names = only.split(",") if only else list(SETS)
    rows: list[Row] = []
    for row in measure_all(names, quick):
        print(row, file=sys.stderr, flush=True)
        rows.append(row)
    write_rows(out / "accuracy.json", rows, command=command, seed=SEED, **origin)
    draw([shown(name) for name in names if name in TITLES], out / "accuracy")
    text = markdown_table(table(rows))
    with replacing(out / "accuracy.md") as partial:
        partial.write_text(text)
    print(text)


if __name__ == "__main__":
    typer.run(main)
