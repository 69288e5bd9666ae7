"""Equations of third-party trajectories, compared with PySINDy: python -m benchmarks.equations

    missed, spurious = terms of the equation that were not found, and found terms that it lacks
    error = max over found terms of the equation of |c_hat - c| / |c|

`O.terms` sees pairs of states a stride apart (dt in README.md of the sets). PySINDy sees the same
pairs' states as one trajectory: every frame, so that its step of time is a fifth of ours or so
("all frames"), and each stride-th frame ("stride"). Both have the same terms (powers up to 3,
derivatives up to 4, their products), and white noise of 0, 1 and 5 % of the states' standard
deviation, the same numbers for all. Of PySINDy's thresholds and optimisers (STLSQ, SR3), each
measured one, the results show the one with the fewest wrong terms, then the least error: the truth
chooses for PySINDy, and not for `O.terms`, which has no settings.

Every measurement is kept in runs/equations as soon as it is known. Needs PySINDy (extra dev).
Writes accuracy.json, accuracy.md and the figure to results/equations."""

from __future__ import annotations

import re
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

import transduce
from benchmarks.wild_measuring import code_checksum, file_checksum
from benchmarks.wild_sets import load_sets
from paper.lab import Ledger
from transduce.figures import COLOURS, drawing
from transduce.files import provenance, replacing
from transduce.report import Row, markdown_table, write_rows

NOISES, SEED = (0.0, 0.01, 0.05), 2026
OURS, PDE, WEAK = "O.terms", "PySINDy PDE", "PySINDy weak"
THRESHOLDS = (1e-5, 1e-4, 1e-3, 1e-2, 0.03, 0.1, 0.3, 1.0, 3.0)
DOMAINS = 300  # of PySINDy's weak form
MOST_ROWS = 20_000  # points of space and time in a fit by PySINDy
RESULTS, WORK = Path("results/equations"), Path("runs/equations")
Sum = dict[str, float]
"""Coefficients by term."""


@dataclass(frozen=True)
class Truth:
    """The equation of a set.

    Attributes:
        equations: of each channel.
        dt: from v to u.
        stride: the number of frames in dt.
    """

    equations: tuple[Sum, ...]
    dt: float
    stride: int


TRUTHS = {
    "st_burgers_pdefind": Truth(({"u u_x": -1, "u_xx": 0.1},), 0.5, 5),
    "st_kdv_cos": Truth(({"u u_x": -1, "u_xxx": -1},), 1.0, 5),  # coefficient 1: DeepHPMs
    "st_ks_pdefind": Truth(({"u u_x": -1, "u_xx": -1, "u_xxxx": -1},), 0.8, 2),
    "st_burgers_sine": Truth(({"u u_x": -1, "u_xx": 0.1},), 0.25, 5),
    "st_allen_cahn": Truth(({"u": 5, "u^3": -5, "u_xx": 1e-4},), 0.025, 5),
    # 251 frames of t from 0 to 0.5 in SGA-PDE; (u u_x)_x = u u_xx + u_x^2
    "st_pde_compound": Truth(({"u u_xx": 1, "(u_x)^2": 1},), 0.02, 10),
    "st_nls_pdefind": Truth(
        (
            {"u0^2 u1": -1, "u1^3": -1, "u1_xx": -0.5},
            {"u0^3": 1, "u0 u1^2": 1, "u0_xx": 0.5},
        ),
        np.pi / 50,
        10,
    ),
}


@dataclass(frozen=True)
class Data:
    """A trajectory of states with noise.

    Attributes:
        frames: shape (t, c, p).
        x: positions.
        truth: its equation.
    """

    frames: np.ndarray
    x: np.ndarray
    truth: Truth


def data_of(name: str, noise: float) -> Data:
    """The trajectory of a set. noise: in units of the standard deviation of its states."""
    found = next(each for each in load_sets(None, [name]) if each.name == name)
    truth = TRUTHS[name]
    frames = np.concatenate([found.v, found.u[-truth.stride :]])
    frames = frames[:, None] if frames.ndim == 2 else frames
    assert np.array_equal(frames[truth.stride :].reshape(found.u.shape), found.u)
    assert found.x_v is not None
    generator = np.random.default_rng(SEED)
    added = noise * frames.std() * generator.standard_normal(frames.shape)
    return Data(frames + added, found.x_v, truth)


def ours(data: Data) -> list[Sum]:
    """The equations by `O.terms`; empty where it says that none is short."""
    stride, frames = data.truth.stride, data.frames
    O = transduce.regress(frames[:-stride], frames[stride:], x=data.x, channels=True)
    return [
        dict(zip(each.terms, each.coefficients.tolist(), strict=True)) if each.short else {}
        for each in O.terms(dt=data.truth.dt).equations
    ]


def pysindy(data: Data, weak: bool, every: int) -> Iterator[list[Sum]]:
    """The equations by PySINDy, with each differentiation, optimiser and threshold.

    Args:
        data: the trajectory.
        weak: whether its library has the weak form.
        every: each such frame is used.
    """
    import pysindy as ps

    frames = data.frames[::every]
    t = np.arange(len(frames)) * data.truth.dt / data.truth.stride * every
    states = np.moveaxis(frames, (0, 1, 2), (1, 2, 0))  # x, t, channel
    states = ps.AxesArray(states, {"ax_spatial": [0], "ax_time": 1, "ax_coord": 2})
    powers = ps.PolynomialLibrary(degree=3, include_bias=False)
    shared = {"function_library": powers, "derivative_order": 4, "include_bias": True}
    ways = (ps.FiniteDifference(order=4, axis=1), ps.SmoothedFiniteDifference(order=4, axis=1))
    for way in ways[: 1 if weak else 2]:
        if weak:
            grid = np.stack(np.meshgrid(data.x, t, indexing="ij"), -1)
            np.random.seed(SEED)  # PySINDy draws domains from numpy's global generator
            library = ps.WeakPDELibrary(**shared, spatiotemporal_grid=grid, K=DOMAINS)
        else:
            method = {"differentiation_method": type(way), "diff_kwargs": {"order": 4}}
            library = ps.PDELibrary(**shared, spatial_grid=data.x, **method)
        columns = np.asarray(library.fit_transform(states))
        rates = library.convert_u_dot_integral(states) if weak else way(states, t)
        names = ["u"] if frames.shape[1] == 1 else ["u0", "u1"]
        terms = [plain(name) for name in library.get_feature_names(names)]
        yield from _optimised(columns.reshape(-1, len(terms)), np.asarray(rates), terms)


def _optimised(columns: np.ndarray, rates: np.ndarray, terms: list[str]) -> Iterator[list[Sum]]:
    """The equations by each optimiser and threshold, of at most so many evenly chosen rows."""
    import pysindy as ps

    rates = rates.reshape(len(columns), -1)
    kept = np.linspace(0, len(columns) - 1, min(MOST_ROWS, len(columns))).round().astype(int)
    size = np.sqrt(np.square(columns[kept]).mean(0)) + 1e-300
    for threshold in THRESHOLDS:
        for optimiser, unit in (
            (ps.STLSQ(threshold=threshold, alpha=1e-10), np.ones(len(terms))),
            (ps.STLSQ(threshold=threshold, alpha=1e-10), size),
            (ps.SR3(reg_weight_lam=threshold, max_iter=1000), size),
        ):
            optimiser.fit(columns[kept] / unit, rates[kept])
            rows = optimiser.coef_ / unit
            yield [{k: float(c) for k, c in zip(terms, row, strict=True) if c} for row in rows]


def plain(name: str) -> str:
    """PySINDy's name of a term as ours: "u^2u_11" is "u^2 u_xx"."""
    spaced = re.sub(r"(?<=[\du])(?=u\d?_1)", " ", name)
    return re.sub(r"_(1+)$", lambda found: "_" + "x" * len(found[1]), spaced)


def score(found: Sequence[Sum], truth: Sequence[Sum]) -> Row:
    """Terms missed and spurious, and the largest relative error of the others."""
    missed = spurious = 0
    errors = []
    for own, true in zip(map(expanded, found), truth, strict=True):
        missed += len(true.keys() - own.keys())
        spurious += len(own.keys() - true.keys())
        errors += [abs(own[k] / c - 1) for k, c in true.items() if k in own]
    return {"missed": missed, "spurious": spurious, "error": max(errors, default=None)}


def best(scores: Iterator[Row]) -> Row:
    """The score with the fewest wrong terms, then the least error."""
    return min(scores, key=lambda s: (s["missed"] + s["spurious"], s["error"] or np.inf))


def expanded(found: Sum) -> Sum:
    """An equation with (u u_x)_x written as u u_xx + (u_x)^2."""
    whole = dict(found)
    flux = whole.pop("(u u_x)_x", None)
    for name in ("u u_xx", "(u_x)^2") if flux is not None else ():
        whole[name] = whole.get(name, 0.0) + flux
    return whole


def measure(method: str, data: Data) -> Row:
    """The score of a method."""
    truth = data.truth.equations
    with warnings.catch_warnings(action="ignore"):
        if method == OURS:
            found = ours(data)
            return score(found, truth) | {"found": [str(each) for each in found]}
        every = data.truth.stride if method.endswith("stride") else 1
        return best(score(found, truth) for found in pysindy(data, WEAK in method, every))


METHODS = (OURS, *(f"{name}, {how}" for name in (PDE, WEAK) for how in ("all frames", "stride")))


def measure_all(names: Sequence[str], noises: Sequence[float], work: Path) -> list[Row]:
    """A row for each set, noise and method."""
    ledger, rows = Ledger(work / "measured.jsonl"), []
    for name in names:
        for noise in noises:
            for method in METHODS:
                key: Row = {"set": name, "noise": noise, "method": method}
                code = code_checksum("regression") if method == OURS else file_checksum(__file__)
                if key | {"code": code} not in ledger:
                    data, begun = data_of(name, noise), time.perf_counter()
                    value = measure(method, data)
                    seconds = time.perf_counter() - begun
                    value |= {"seconds": seconds}
                    ledger.add(key | {"code": code}, value, seconds)
                    print(key, value, file=sys.stderr, flush=True)
                rows.append(key | ledger[key | {"code": code}]["value"])
    return rows


def table(rows: Sequence[Row]) -> list[Row]:
    """One row for each set and noise: missed and spurious terms, and the error, by method."""
    lines: dict[tuple[str, float], Row] = {}
    for row in rows:
        line = lines.setdefault(
            (row["set"], row["noise"]), {"set": row["set"], "noise": f"{row['noise']:.0%}"}
        )
        line[row["method"]] = shown(row)
    return list(lines.values())


def shown(row: Row) -> str:
    """As in "0.03%", or "1 missed, 2 spurious, 4%"."""
    wrong = [f"{row[kind]} {kind}" for kind in ("missed", "spurious") if row[kind]]
    error = [] if row["error"] is None else [f"{100 * row['error']:.2g}%"]
    return ", ".join([*wrong, *error])


def draw(rows: Sequence[Row], path: Path) -> None:
    """Errors of coefficients: filled where all terms are right, hollow where some are wrong."""
    names = list(dict.fromkeys(row["set"] for row in rows))
    noises = sorted({row["noise"] for row in rows})
    with drawing(path, (3.2 * len(noises) + 2, 3.8)) as figure:
        panels = figure.subplots(1, len(noises), sharey=True, squeeze=False)[0]
        for panel, noise in zip(panels, noises, strict=True):
            for method, colour in zip(METHODS, COLOURS, strict=False):
                for row in rows:
                    if (row["noise"], row["method"]) == (noise, method) and row[
                        "error"
                    ] is not None:
                        right = not row["missed"] + row["spurious"]
                        panel.plot(
                            max(row["error"], 1e-7),
                            names.index(row["set"]) + 0.12 * (METHODS.index(method) - 2),
                            "o",
                            color=colour,
                            markerfacecolor=colour if right else "none",
                        )
            panel.set(xscale="log", xlabel="largest relative error", title=f"noise {noise:.0%}")
        panels[0].set_yticks(np.arange(len(names)), names)
        panels[0].invert_yaxis()
        for method, colour in zip(METHODS, COLOURS, strict=False):
            panels[-1].plot([], [], "o", color=colour, label=method)
        figure.legend(loc="outside right center")


def main(
    only: Annotated[str, typer.Option(help="Names of sets, with commas.")] = "",
    quick: Annotated[
        bool, typer.Option("--quick", help="A smoke test: one set, no noise.")
    ] = False,
    out: Annotated[Path, typer.Option(help="The folder for the results.")] = RESULTS,
    work: Annotated[Path, typer.Option(help="The folder of kept measurements.")] = WORK,
) -> None:
    """Measure, print the table, and write rows, table and figure."""
    origin = provenance()  # of the code that measures, whatever is committed meanwhile
    names = [name for name in TRUTHS if not only or name in only.split(",")]
    noises = NOISES
    if quick:
        names, noises = names[:1], NOISES[:1]
        out = out.with_name(f"{out.name}-quick") if out == RESULTS else out
    rows = measure_all(names, noises, work)
    command = " ".join(["python -m benchmarks.equations", *sys.argv[1:]])
    write_rows(out / "accuracy.json", rows, command=command, seed=SEED, **origin)
    with replacing(out / "accuracy.md") as partial:
        partial.write_text(markdown_table(table(rows)))
    draw(rows, out / "accuracy")
    print(markdown_table(table(rows)))


if __name__ == "__main__":
    typer.run(main)
