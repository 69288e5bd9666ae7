"""Parameter studies: the general model compared with a Gaussian process on principal components:
python -m benchmarks.studies

    error = sum |u_hat - u|^2 / sum |u - mean of the examples' u|^2      over 200 held-out runs

Eight published test functions with 2 to 10 inputs and curves as outputs are in
benchmarks/study_functions.py, with their sources. The Gaussian process is scikit-learn's: one for
each principal component of u with more than 1e-7 of the variation, a length scale for each
parameter, an amplitude and a noise; Gaussian or Matern 5/2 covariance, whichever has the larger
likelihood, from two starts each. Errors are geometric means over splits. Required: the geometric
mean of the ratio over functions and n is at most 0.9, and the ratio of each function, its geometric
mean over n, is at most 1.15.

Every measurement is kept in runs/studies as soon as it is known: a run that was killed resumes.
Writes accuracy.json, accuracy.md and the figure to results/studies."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from matplotlib.ticker import FuncFormatter, NullFormatter

import transduce
from benchmarks.study_functions import Curves, Study, Table
from benchmarks.study_measuring import RESULTS, chosen, folder, kept, say, write
from benchmarks.wild_measuring import code_checksum, file_checksum
from benchmarks.wild_sets import geometric_mean, relative_error
from paper.lab import Ledger
from transduce.figures import COLOURS, drawing
from transduce.files import provenance
from transduce.report import Row

SPLITS = {20: 10, 50: 10, 200: 3}  # by n: small studies differ more from each other
HELD_OUT, SEED = 200, 2026
OURS, PROCESS = "general", "Gaussian process"
LEAST_SHARE = 1e-7  # of the variation, in a component that has a Gaussian process
REQUIRED_MEAN, REQUIRED_WORST = 0.9, 1.15
WORK = Path("runs/studies")


def general(p: Table, u: Curves, q: Table) -> Curves:
    """The general model as users call it."""
    return np.asarray(transduce.regress(None, u, parameters=p)(q))


def gaussian_process(p: Table, u: Curves, q: Table) -> Curves:
    """Gaussian processes on principal components, with a length scale for each parameter."""
    mean, spread = p.mean(0), p.std(0)
    flat = u.reshape(len(u), -1)
    scores, sizes, components = np.linalg.svd(flat - flat.mean(0), full_matrices=False)
    count = max(1, int((sizes**2 > LEAST_SHARE * (sizes**2).sum()).sum()))
    scaled = (p - mean) / spread, (q - mean) / spread
    found = [_likeliest(*scaled, scores[:, k] * sizes[k]) for k in range(count)]
    answers = np.stack(found, 1) @ components[:count] + flat.mean(0)
    return answers.reshape(len(q), *u.shape[1:])


def _likeliest(p: Table, q: Table, score: np.ndarray) -> np.ndarray:
    """One component at the queries, by the likelier of two covariances."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

    ones, bounds = np.ones(p.shape[1]), (1e-2, 1e3)
    fits = []
    for shape in (RBF(ones, bounds), Matern(ones, bounds, nu=2.5)):
        kernel = ConstantKernel(1.0, (1e-4, 1e6)) * shape + WhiteKernel(1e-4, (1e-12, 1.0))
        process = GaussianProcessRegressor(
            kernel, normalize_y=True, n_restarts_optimizer=1, random_state=0
        )
        fits.append(process.fit(p, score))
    return max(fits, key=lambda fit: fit.log_marginal_likelihood_value_).predict(q)


REGRESSORS: dict[str, Callable[[Table, Curves, Table], Curves]] = {
    OURS: general,
    PROCESS: gaussian_process,
}


def measure(name: str, study: Study, n: int, splits: int) -> Row:
    """The error of a regressor on a study."""
    errors, seconds = [], 0.0
    for number in range(splits):
        p, u = study.sample(n + HELD_OUT, np.random.default_rng([SEED, number]))
        begun = time.process_time()
        with warnings.catch_warnings(action="ignore"):
            answers = REGRESSORS[name](p[:n], u[:n], p[n:])
        seconds += (time.process_time() - begun) / splits
        errors.append(relative_error(answers, u[n:], u[:n]))
    return {"error": geometric_mean(errors), "splits": splits, "seconds": seconds}


def measure_all(studies: Sequence[Study], splits: Mapping[int, int], work: Path) -> list[Row]:
    """A row for each study, n and regressor. splits: by n."""
    ledger, rows = Ledger(work / "measured.jsonl"), []
    for study in studies:
        for n in splits:
            for name in REGRESSORS:
                key: Row = {"study": study.name, "n": n, "splits": splits[n], "regressor": name}
                code = code_checksum("") if name == OURS else file_checksum(__file__)
                own = partial(measure, name, study, n, splits[n])
                value = kept(ledger, key | {"code": code}, own)
                said = f"{study.name} n={n} {name}: {value['error']:.2e}"
                say(f"{said}  {value['seconds']:.2f} s")
                rows.append(key | {"inputs": len(study.ranges)} | value)
    return rows


def ratios(rows: Sequence[Row]) -> dict[tuple[str, int], float]:
    """Our error divided by that of the Gaussian process, by study and n."""
    errors = {(row["study"], row["n"], row["regressor"]): row["error"] for row in rows}
    return {
        (study, n): error / errors[study, n, PROCESS]
        for (study, n, name), error in errors.items()
        if name == OURS
    }


def table(rows: Sequence[Row]) -> list[Row]:
    """One row for each study, and one of geometric means."""
    found = ratios(rows)
    sizes = sorted({n for _, n in found})
    inputs = {row["study"]: row["inputs"] for row in rows}
    lines: list[Row] = []
    for study in dict.fromkeys(name for name, _ in found):
        own = {f"n = {n}": found[study, n] for n in sizes}
        mean = geometric_mean(list(own.values()))
        lines.append({"study": study, "inputs": inputs[study]} | own | {"all n": mean})
    whole = {
        key: geometric_mean([line[key] for line in lines])
        for key in (*(f"n = {n}" for n in sizes), "all n")
    }
    return [*lines, {"study": "geometric mean", "inputs": ""} | whole]


def draw(rows: Sequence[Row], path: Path) -> None:
    """One dot for each study and n."""
    found = ratios(rows)
    names = list(dict.fromkeys(name for name, _ in found))
    with drawing(path, (7.2, 3.6)) as figure:
        axes = figure.add_subplot()
        axes.axvline(1, color="0.35", linewidth=0.8)
        for n, colour in zip(sorted({n for _, n in found}), COLOURS, strict=False):
            values = [found[name, n] for name in names]
            axes.plot(values, np.arange(len(names)), "o", color=colour, label=f"n = {n}")
        axes.set(xscale="log", xlabel="our error / that of the Gaussian process")
        axes.set_yticks(np.arange(len(names)), names)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.invert_yaxis()
        axes.legend(loc="lower left")


def main(
    only: Annotated[str, typer.Option(help="Names of studies, with commas.")] = "",
    quick: Annotated[bool, typer.Option("--quick", help="A smoke test: few and small.")] = False,
    out: Annotated[Path, typer.Option(help="The folder for the results.")] = RESULTS,
    work: Annotated[Path, typer.Option(help="The folder of kept measurements.")] = WORK,
) -> None:
    """Measure, print the table, and write rows, table and figure."""
    origin = provenance()  # of the code that measures, whatever is committed meanwhile
    studies, splits = chosen(only), SPLITS
    if quick:
        studies, splits = studies[:2], {12: 1}
    rows = measure_all(studies, splits, work)
    write(
        "accuracy",
        folder(out, quick),
        rows,
        table(rows),
        draw,
        command=" ".join(["python -m benchmarks.studies", *sys.argv[1:]]),
        seed=SEED,
        required={"geometric mean": REQUIRED_MEAN, "each study": REQUIRED_WORST},
        **origin,
    )


if __name__ == "__main__":
    typer.run(main)
