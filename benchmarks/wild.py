"""Errors on third-party sets of function pairs, compared with tuned baselines:  python -m
benchmarks.wild

    error = sum |u_hat - u|^2 / sum |u - mean of the examples' u|^2

over up to 200 held-out pairs. The geometric mean over random splits is compared with the best of
five baselines in hindsight: mean, identity, linear ridge, RBF kernel ridge, and one ridge on a
window of v that all points share, each chosen by exact leave-one-out with the mean inside the fit.
Others are measured too: Gaussian process, partial least squares, piecewise direct standardisation,
and at n = 50 FNO and DeepONet on sets of one variable with 100 rows or more and up to 200 points.

The folder of sets is `wild` in the data folder (TRANSDUCE_DATA), or any folder of .npz files with
arrays v and u. Every measurement is kept in runs/wild as soon as it is known: a run that was killed
resumes. Writes accuracy.json, accuracy.md, summary.md and the figure to results/wild."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.wild_measuring import FIVE, Plan, check_names, measure_all
from benchmarks.wild_sets import load_sets
from benchmarks.wild_tables import draw, summary, tables, with_ratios
from transduce.files import provenance, replacing
from transduce.report import markdown_table, write_rows
from transduce.types import TransduceError

OTHERS = (
    "gaussian-process",
    "partial-least-squares",
    "piecewise-direct-standardisation",
    "fno",
    "deeponet",
)
RESULTS, WORK = Path("results/wild"), Path("runs/wild")
QUICK_SETS, QUICK_SIZES, QUICK_SPLITS = 4, (5, 20), 1


def main(
    folder: Annotated[
        Path | None, typer.Argument(help="The folder of .npz files; `wild` of the data folder.")
    ] = None,
    n: Annotated[str, typer.Option("--n", help="Numbers of examples.")] = "5,10,20,50",
    splits: Annotated[int, typer.Option(min=1, help="Of each set; ten of small ones.")] = 3,
    only: Annotated[str, typer.Option(help="Sets whose name starts with any of these.")] = "",
    model: Annotated[str, typer.Option(help="A model, or a baseline by name.")] = "general",
    variants: Annotated[str, typer.Option(help="Further models, compared with it.")] = "",
    baselines: Annotated[str, typer.Option(help="Beyond the five; `none`.")] = ",".join(OTHERS),
    quick: Annotated[bool, typer.Option("--quick", help="A smoke test: few and small.")] = False,
    out: Annotated[Path, typer.Option(help="The folder for the results.")] = RESULTS,
    work: Annotated[Path, typer.Option(help="The folder of kept measurements.")] = WORK,
) -> None:
    """Measure, print the summary, and write rows, tables and the figure."""
    try:
        others = () if baselines == "none" else tuple(names_in(baselines))
        plan = Plan(_sizes(n), splits, (model, *names_in(variants)), others)
        if quick:
            plan = replace(plan, quick=True, splits=QUICK_SPLITS, sizes=QUICK_SIZES)
            out = quick_folder(out)
        _run(folder, names_in(only), plan, out, work)
    except TransduceError as error:
        print(f"error: {error}", file=sys.stderr)
        raise typer.Exit(1) from None


def _run(folder: Path | None, only: list[str], plan: Plan, out: Path, work: Path) -> None:
    origin = provenance()  # of the code that measures, whatever is committed meanwhile
    check_names(plan.models, plan.baselines)
    sets = load_sets(folder, only)
    rows = with_ratios(measure_all(sets[:QUICK_SETS] if plan.quick else sets, plan, work))
    ours = plan.models[0]
    for row in rows:
        if row["regressor"] in plan.models and row["failure"]:
            where = f"{row['set']} n={row['n']} {row['regressor']}"
            print(f"{where} failed: {row['failure']}", file=sys.stderr)
    about = {
        "command": " ".join(["python -m benchmarks.wild", *sys.argv[1:]]),
        "seed": 0,
        "model": ours,
        "best of": list(FIVE),
    }
    write_rows(out / "accuracy.json", rows, **about, **origin)
    others = [name for name in plan.baselines if name not in plan.models]
    with replacing(out / "accuracy.md") as partial:
        partial.write_text(tables(rows, plan.models, others))
    with replacing(out / "summary.md") as partial:
        partial.write_text(markdown_table(summary(rows, plan.models[0])))
    draw(rows, ours, out / "accuracy")
    print(markdown_table(summary(rows, ours)))


def names_in(text: str) -> list[str]:
    """The names in a list with commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def quick_folder(out: Path) -> Path:
    """Where a smoke test writes: never over the committed results."""
    return out.with_name(f"{out.name}-quick") if out == RESULTS else out


def _sizes(text: str) -> tuple[int, ...]:
    try:
        sizes = tuple(sorted({int(size) for size in names_in(text)}))
    except ValueError:
        sizes = ()
    if not sizes or sizes[0] < 1:
        raise TransduceError(f"--n is {text!r}; expected positive numbers such as 5,10,20.")
    return sizes


if __name__ == "__main__":
    typer.run(main)
