"""What the general model says of its own errors, on third-party sets of function pairs:  python -m
benchmarks.wild_self_knowledge

    coverage        = share of the held-out values inside O.predict(v, band=0.9)
    score           = mean of  high - low + 20 max(low - u, 0) + 20 max(u - high, 0)
    score ratio     = score / score of a band of constant width
    reported / true = O.report().error / measured error

The score is the interval score of Gneiting and Raftery at level 0.9: less is better. The band of
constant width has the same mean and, in each split, one half-width at all points and queries: the
quantile of |u - mean| that gives it the coverage of ours on the same held-out values. Scores are in
units of the root mean square of u - mean of the examples. Errors are relative to that mean, and
those below 1e-10 count as 1e-10.

Sets, splits and the folder of kept measurements are those of benchmarks.wild: a run that was killed
resumes. Writes self_knowledge.json and self_knowledge.md to results/wild."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

import transduce
from benchmarks.wild import QUICK_SETS, QUICK_SPLITS, RESULTS, WORK, names_in, quick_folder
from benchmarks.wild_measuring import code_checksum, regressed
from benchmarks.wild_sets import (
    FAILED,
    PairSet,
    enough_rows,
    geometric_mean,
    load_sets,
    number_of_splits,
    ratio,
    relative_error,
    split,
)
from paper.lab import Ledger
from transduce import weights
from transduce.files import brief, provenance, replacing
from transduce.report import Row, markdown_table, write_rows
from transduce.types import TransduceError

LEVEL = 0.9  # of the band
SIZES, QUICK_SIZES, SPLITS = (20, 50), (20,), 3
FLOOR = 1e-10  # errors below are equal
GOOD_COVERAGE = 0.8  # of one set
COVERAGE, COVERED = "pooled coverage", f"sets of coverage >= {GOOD_COVERAGE}"
SHARPER, HONEST = "sets of score ratio < 1", "reported / true"
REQUIRED = {COVERAGE: (0.87, 0.93), COVERED: (0.9, 1.0), SHARPER: (0.8, 1.0), HONEST: (0.8, 1.25)}


def main(
    folder: Annotated[
        Path | None, typer.Argument(help="The folder of .npz files; `wild` of the data folder.")
    ] = None,
    only: Annotated[str, typer.Option(help="Sets whose name starts with any of these.")] = "",
    model: Annotated[str, typer.Option(help="A model, or a .safetensors file.")] = "general",
    quick: Annotated[bool, typer.Option("--quick", help="A smoke test: few and small.")] = False,
    out: Annotated[Path, typer.Option(help="The folder for the results.")] = RESULTS,
    work: Annotated[Path, typer.Option(help="The folder of kept measurements.")] = WORK,
) -> None:
    """Measure, print the summary, and write rows and tables."""
    try:
        sets = load_sets(folder, names_in(only))
        if quick:
            sets = sets[:QUICK_SETS]
            out = quick_folder(out)
        _run(sets, model, quick, out, work)
    except TransduceError as error:
        print(f"error: {error}", file=sys.stderr)
        raise typer.Exit(1) from None


def _run(sets: Sequence[PairSet], model: str, quick: bool, out: Path, work: Path) -> None:
    origin = provenance()  # of the code that measures, whatever is committed meanwhile
    sizes, splits = (QUICK_SIZES, QUICK_SPLITS) if quick else (SIZES, SPLITS)
    lines = summary(rows := measure_all(sets, model, sizes, splits, work))
    about = {
        "command": " ".join(["python -m benchmarks.wild_self_knowledge", *sys.argv[1:]]),
        "seed": 0,
        "model": model,
        "level": LEVEL,
        "required": REQUIRED,
        "summary": lines,
    }
    write_rows(out / "self_knowledge.json", rows, **about, **origin)
    with replacing(out / "self_knowledge.md") as partial:
        partial.write_text(tables(rows, lines, model))
    print(markdown_table(with_required(lines)))


def model_checksum(name: str) -> str:
    """The SHA-256 of a model's weights. Raises if they are not those of a model of this version.
    name: of a bundled model, or the path of a .safetensors file."""
    transduce.Transducer.from_pretrained(name)
    return weights.checksums().get(f"{name}.safetensors") or weights.sha256(Path(name))


def measure_all(
    sets: Sequence[PairSet], model: str, sizes: Sequence[int], splits: int, work: Path
) -> list[Row]:
    """A row for each set and n, in this order.

    Args:
        sets: to measure on.
        model: by name, or the path of a .safetensors file.
        sizes: numbers of examples.
        splits: of each set; sets with few rows get more.
        work: folder of the measurements that are kept.
    """
    jobs = [(pairs, n) for pairs in sets for n in sizes if enough_rows(len(pairs.v), n)]
    if not jobs:
        raise TransduceError(
            f"no set has {min(sizes)} examples and 10 held-out pairs. Give sets with more rows."
        )
    code = {"model": model, "weights": model_checksum(model)[:16], "code": code_checksum("")}
    ledger, rows = Ledger(work / "self_knowledge.jsonl"), []
    for place, (pairs, n) in enumerate(jobs, 1):
        count = number_of_splits(len(pairs.v), splits)
        key = {"set": pairs.name, "data": pairs.checksum[:16], "n": n, "splits": count} | code
        if key not in ledger:
            begun = time.perf_counter()
            value = measure(model, pairs, n, count)
            ledger.add(key, value, time.perf_counter() - begun)
            said = value["failure"] or f"coverage {value['coverage']:.3f}"
            said = f"{said}  {ledger[key]['seconds']:.1f} s"
            print(f"[{place}/{len(jobs)}] {pairs.name} n={n}: {said}", file=sys.stderr, flush=True)
        rows.append({"set": pairs.name, "kind": pairs.kind, "n": n} | ledger[key]["value"])
    return rows


def measure(model: str, pairs: PairSet, n: int, splits: int) -> Row:
    """Coverage, scores and errors over the splits; only a message if the model failed in one."""
    parts = []
    for number in range(splits):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                part = measure_split(model, pairs, *split(len(pairs.v), n, number))
            if not np.isfinite(list(part.values())).all():
                raise ValueError("values that are not finite")
        except Exception as error:  # of any kind: it counts as a failure, and is recorded
            said = f"{type(error).__name__}: {brief(error)[:200]}"
            return {"splits": splits, "failure": said}
        parts.append(part)
    return combined(parts) | {"splits": splits, "failure": None}


def measure_split(model: str, pairs: PairSet, examples: np.ndarray, held: np.ndarray) -> Row:
    """Of one split: how many values are inside the band, scores, and reported and true error."""
    O = regressed(model, pairs, examples, quick=False)
    assert isinstance(O, transduce.RegressedOperator)
    u, mean_u = pairs.u[held], pairs.u[examples].mean(0)
    found = O.predict(pairs.v[held], band=LEVEL)
    mean, low, high = (np.asarray(part, dtype=float).reshape(u.shape) for part in found)
    inside = int(((low <= u) & (u <= high)).sum())
    half = half_width(np.abs(u - mean), inside)
    unit = float(np.sqrt(np.square(u - mean_u).mean())) + 1e-300
    return {
        "inside": inside,
        "values": u.size,
        "score": interval_score(u, low, high) / unit,
        "constant": interval_score(u, mean - half, mean + half) / unit,
        "reported": O.report().error,
        "true": relative_error(mean, u, pairs.u[examples]),
    }


def interval_score(u: np.ndarray, low: np.ndarray, high: np.ndarray, level: float = LEVEL) -> float:
    """Mean over all values of the width of a band, plus 2 / (1 - level) times the distance of those
    outside."""
    beyond = np.maximum(low - u, 0) + np.maximum(u - high, 0)
    return float((high - low + 2 / (1 - level) * beyond).mean())


def half_width(distances: np.ndarray, inside: int) -> float:
    """The least half-width of a band of constant width that holds so many values.
    distances: of the values from the middle of the band."""
    return float(np.partition(distances.ravel(), inside - 1)[inside - 1]) if inside else 0.0


def combined(parts: Sequence[Row]) -> Row:
    """The measurement of a set from those of its splits."""
    inside, values = (sum(part[name] for part in parts) for name in ("inside", "values"))
    score, constant = (float(np.mean([part[k] for part in parts])) for k in ("score", "constant"))
    return {
        "coverage": inside / values,
        "inside": inside,
        "values": values,
        "score": score,
        "constant_score": constant,
        "score_ratio": score / max(constant, 1e-300),
        "reported": geometric_mean([part["reported"] for part in parts]),
        "true": geometric_mean([part["true"] for part in parts]),
        "error_ratio": geometric_mean([ratio(p["reported"], p["true"], FLOOR) for p in parts]),
    }


def summary(rows: Sequence[Row]) -> list[Row]:
    """One row for each n. A set on which the model failed counts as one without coverage."""
    lines = []
    for n in sorted({row["n"] for row in rows}):
        own = [row for row in rows if row["n"] == n]
        known = [row for row in own if row["failure"] is None]
        inside, values = (sum(row[name] for row in known) for name in ("inside", "values"))
        line: Row = {
            "n": n,
            "sets": len(own),
            "failed": len(own) - len(known),
            COVERAGE: inside / max(values, 1),
            COVERED: sum(row["coverage"] >= GOOD_COVERAGE for row in known) / len(own),
            SHARPER: sum(row["score_ratio"] < 1 for row in known) / len(own),
            HONEST: geometric_mean([row["error_ratio"] for row in known]) if known else FAILED,
        }
        missed = [k for k, (low, high) in REQUIRED.items() if not low <= line[k] <= high]
        lines.append(line | {"missed": ", ".join(missed) or "none"})
    return lines


def with_required(lines: Sequence[Row]) -> list[Row]:
    """The summary, and a last row that says what is required."""
    wanted = {name: f"{low:g} to {high:g}" for name, (low, high) in REQUIRED.items()}
    return [*lines, dict.fromkeys(lines[0], "") | {"n": "required"} | wanted]


def tables(rows: Sequence[Row], lines: Sequence[Row], model: str) -> str:
    """The summary and a line for each set and n, as Markdown."""
    shown = ("set", "kind", "n", "coverage", "score_ratio", "error_ratio")
    names = dict(zip(shown, (*shown[:4], "score ratio", HONEST), strict=True))
    each = [{names[key]: row.get(key) for key in shown} for row in rows]
    parts = [
        f"`{model}`: its {LEVEL:.0%} bands and expected errors, compared with held-out pairs.",
        markdown_table(with_required(lines)),
        "Each set:",
        markdown_table(each),
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


if __name__ == "__main__":
    typer.run(main)
