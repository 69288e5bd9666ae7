"""Repeated steps in time, compared with baselines: python -m benchmarks.rollouts

    error = sum |u_hat - u|^2 / sum |u - mean of the examples' u|^2      over 20 steps of all starts

The trajectories of four published equations (the sets st_* of the data folder `wild`, see its
README) are put together again from their pairs. Examples are pairs of states in the first half in
time, `stride` rows apart: one row, and as many as in the set. Rollouts start at every state of the
second half after which 20 steps are known; strides with no such state are left out. Baselines are
applied repeatedly: the state itself, dynamic mode decomposition (PyDMD; rank and number of delays
of least error in rollouts over the last part of the first half), and the windowed ridge regression
`window`. States that grow beyond a thousand times the spread of the examples are held there, and
states after a rollout of ours has stopped count as the mean of the examples. `without law` and
`repeated answer` are ours with parts left out.

Writes accuracy.json, accuracy.md and the figure to results/rollouts."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any
from unittest.mock import patch

import numpy as np
import typer

import transduce
from benchmarks.rollout_figure import Shown, draw
from benchmarks.wild_sets import PairSet, load_sets
from transduce.files import provenance, replacing
from transduce.regression import steps as choices
from transduce.regression.ensembles import SEED
from transduce.report import Row, markdown_table, write_rows

SETS = ("st_kdv_cos", "st_ks_pdefind", "st_burgers_sine", "st_burgers_pdefind")
STEPS, BAND, LARGEST = 20, 0.9, 1e3
OURS, MEAN_ERROR = "ours", 1.0
RANKS, DELAYS, HELD_OUT = (2, 3, 5, 8, 12, 20, 30), (1, 2, 4), 0.7
RESULTS = Path("results/rollouts")
States = np.ndarray
Forecast = Callable[[States, int], States]
"""From states up to each start, (starts, history, points), to (starts, steps, points)."""


@dataclass(frozen=True, eq=False)
class Case:
    """Examples and rollouts of one trajectory at one stride.

    Attributes:
        name: of the set.
        states: in order of time, (times, points).
        x: positions.
        stride: rows in one step.
        steps: of each rollout.
    """

    name: str
    states: States
    x: np.ndarray
    stride: int
    steps: int = STEPS

    @property
    def half(self) -> int:
        """The number of states that are known."""
        return len(self.states) // 2

    @property
    def known(self) -> States:
        """The first half."""
        return self.states[: self.half]

    @property
    def starts(self) -> np.ndarray:
        """Rows from which rollouts start."""
        return np.arange(self.half, len(self.states) - self.steps * self.stride)

    @property
    def truth(self) -> States:
        """The states after each start."""
        return ahead(self.states, self.starts, self.stride, self.steps)


def ahead(states: States, starts: np.ndarray, stride: int, steps: int) -> States:
    """The states of each step after each start."""
    return np.stack([states[starts + k * stride] for k in range(1, steps + 1)], 1)


def cases_of(pairs: PairSet, steps: int) -> Iterator[Case]:
    """The trajectory of a set of pairs, at one row and at as many as in the set."""
    lag = next(k for k in range(1, 50) if np.array_equal(pairs.u[:-k], pairs.v[k:]))
    states = np.concatenate([pairs.v, pairs.u[-lag:]])
    x = np.arange(states.shape[1]) if pairs.x_v is None else pairs.x_v
    for stride in sorted({1, lag}):
        case = Case(pairs.name, states, x, stride, steps)
        if len(case.starts):
            yield case


def ours(case: Case) -> tuple[States, Row, Any]:
    """The rollout with its band, as users call it, and what it says of itself."""
    p = transduce.pairs(case.known, case.stride)
    R = transduce.regress(p.v, p.u, x=case.x).rollout(
        case.states[case.starts], case.steps, band=BAND
    )
    truth = case.truth
    inside = (R.low <= truth) & (truth <= R.high)
    stopped = sum(step is not None for step in R.stopped)
    return R.states, {"answer": R.answer, "coverage": inside.mean(), "stopped": stopped}, R


def without_law(case: Case) -> States:
    """Ours, among the answers of the general model alone."""
    p = transduce.pairs(case.known, case.stride)
    with patch.object(choices, "law_of", lambda *_: None):
        O = transduce.regress(p.v, p.u, x=case.x)
        return O.rollout(case.states[case.starts], case.steps).states


def repeated(case: Case, model: str = "general") -> States:
    """A regressor applied repeatedly."""
    p = transduce.pairs(case.known, case.stride)
    O = transduce.regress(p.v, p.u, x=case.x, model=model)
    low, high = _bounds(case)
    found, state = [], case.states[case.starts]
    for _ in range(case.steps):
        state = np.clip(np.nan_to_num(np.asarray(O(state)), nan=high.max()), low, high)
        found.append(state)
    return np.stack(found, 1)


def identity(case: Case) -> States:
    """The state at the start."""
    return np.repeat(case.states[case.starts][:, None], case.steps, 1)


def dmd(case: Case) -> States:
    """Dynamic mode decomposition, with the rank and delays of least error in the first half."""
    cut = int(HELD_OUT * case.half)
    starts = np.arange(cut, case.half - case.stride)
    steps = max(1, min(case.steps, (case.half - 1 - cut) // case.stride // 2))
    starts = np.arange(cut, case.half - steps * case.stride)
    truth = ahead(case.states, starts, case.stride, steps)
    errors = {}
    for rank in RANKS:
        for delays in DELAYS:
            if delays * case.stride <= cut // 2:
                made = _dmd(case, case.states[:cut], starts, steps, rank, delays)
                errors[rank, delays] = float(np.square(made - truth).sum())
    best = min(errors, key=lambda key: errors[key])
    return _dmd(case, case.known, case.starts, case.steps, *best)


def _dmd(
    case: Case, known: States, starts: np.ndarray, steps: int, rank: int, delays: int
) -> States:
    """Rollouts by the modes of the pairs in `known`, of states with earlier ones."""
    from pydmd import DMD

    stride, past = case.stride, np.arange(delays) * case.stride
    first = past[-1]
    rows = np.arange(first, len(known) - stride)
    stacked = np.concatenate([case.states[rows - p] for p in past], 1).T
    after = np.concatenate([case.states[rows + stride - p] for p in past], 1).T
    model = DMD(svd_rank=min(rank, *stacked.shape), exact=False, opt=False)
    model.fit(stacked, after)
    modes, values = model.modes, model.eigs
    state = np.concatenate([case.states[starts - p] for p in past], 1).T
    amplitudes = np.linalg.lstsq(modes, state.astype(complex), rcond=None)[0]
    low, high = _bounds(case)
    points, found = case.states.shape[1], []
    for k in range(1, steps + 1):
        made = (modes @ (values[:, None] ** k * amplitudes)).real[:points].T
        found.append(np.clip(np.nan_to_num(made, nan=high.max()), low, high))
    return np.stack(found, 1)


def _bounds(case: Case) -> tuple[States, States]:
    mean, spread = case.known.mean(0), case.known.std()
    return mean - LARGEST * spread, mean + LARGEST * spread


BASELINES: dict[str, Callable[[Case], States]] = {
    "identity": identity,
    "dynamic modes": dmd,
    "window": lambda case: repeated(case, "window"),
}
ABLATIONS: dict[str, Callable[[Case], States]] = {
    "without law": without_law,
    "repeated answer": repeated,
}


def errors_of(made: States, case: Case) -> Row:
    """The error over all steps and at each; states that are missing count as the mean."""
    truth, mean = case.truth, case.states[case.stride : case.half].mean(0)
    missing = ~np.isfinite(made).all(2, keepdims=True)
    squares = np.square(np.where(missing, mean, made) - truth)
    unit = np.square(truth - mean)
    by_step = squares.sum((0, 2)) / unit.sum((0, 2))
    return {"error": float(squares.sum() / unit.sum()), "by step": by_step.tolist()}


def measure(case: Case) -> tuple[list[Row], Shown]:
    """A row for each regressor, and what the figure shows."""
    about = {"set": case.name, "stride": case.stride, "examples": case.half - case.stride}
    about |= {"starts": len(case.starts), "steps": case.steps}
    with warnings.catch_warnings(action="ignore"):
        begun = time.process_time()
        made, said, R = ours(case)
        said |= {"seconds": time.process_time() - begun}
        rows = [about | {"regressor": OURS} | errors_of(made, case) | said]
        for name, forecast in (BASELINES | ABLATIONS).items():
            begun = time.process_time()
            found = errors_of(forecast(case), case)
            rows.append(about | {"regressor": name} | found)
            rows[-1]["seconds"] = time.process_time() - begun
    for row in rows:
        print(f"{case.name} stride {case.stride} {row['regressor']}: {row['error']:.2e}",
              file=sys.stderr, flush=True)  # fmt: skip
    last = len(case.starts) // 2
    shown = Shown(case.name, case.x, case.truth[last], made[last], R.low[last], R.high[last])
    return rows, shown


def table(rows: Sequence[Row]) -> list[Row]:
    """One line for each set and stride."""
    lines: dict[tuple[str, int], Row] = {}
    for row in rows:
        key = row["set"], row["stride"]
        line = lines.setdefault(
            key, {"set": key[0], "rows a step": key[1], "starts": row["starts"]}
        )
        line[row["regressor"]] = row["error"]
        if row["regressor"] == OURS:
            line["held by 90 % bands"] = f"{row['coverage']:.1%}"
    return list(lines.values())


def main(
    only: Annotated[str, typer.Option(help="Names of sets, with commas.")] = "",
    quick: Annotated[bool, typer.Option("--quick", help="A smoke test: few and short.")] = False,
    folder: Annotated[Path | None, typer.Option(help="Of the sets; default: `wild`.")] = None,
    out: Annotated[Path, typer.Option(help="The folder for the results.")] = RESULTS,
) -> None:
    """Measure, print the table, and write rows, table and figure."""
    origin = provenance()  # of the code that measures, whatever is committed meanwhile
    names = [name for name in SETS if not only or name in only.split(",")]
    sets = {pairs.name: pairs for pairs in load_sets(folder, names)}
    cases = [c for name in names for c in cases_of(sets[name], 3 if quick else STEPS)]
    if quick:
        cases = cases[:1]
        out = out.with_name(f"{out.name}-quick") if out == RESULTS else out
    rows: list[Row] = []
    shown: dict[str, Shown] = {}
    for case in cases:
        found, example = measure(case)
        rows += found
        shown[case.name] = example  # of the longest step
    command = " ".join(["python -m benchmarks.rollouts", *sys.argv[1:]])
    data = {name: pairs.checksum for name, pairs in sets.items()}
    write_rows(out / "accuracy.json", rows, command=command, seed=SEED, data=data, **origin)
    with replacing(out / "accuracy.md") as partial:
        partial.write_text(markdown_table(table(rows)))
    draw(rows, list(shown.values())[:2], out / "accuracy")
    print(markdown_table(table(rows)))


if __name__ == "__main__":
    typer.run(main)
