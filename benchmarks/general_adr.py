"""The general model on advection-diffusion-reaction operators:  python -m benchmarks.general_adr

Mean relative MSE of 50 functions of each of 60 unseen operators, the first of those in the README's
table: same seed, same queries, and the first n of the same 500 examples. The general model is
called through `transduce.regress`; it was not trained on this family. Compared with kernel ridge,
whose width and ridge are chosen for each operator by leave-one-out error, and with `adr`, which was
trained on this family. Required: general <= kernel ridge at every n, and at n = 50 within 30 times
of adr.

Every measurement is kept in runs/wild as soon as it is known: a run that was killed resumes. Writes
adr.json and adr.md to results/wild."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, cast

import torch
import typer

import transduce
from benchmarks.wild import RESULTS, WORK, quick_folder
from benchmarks.wild_measuring import code_checksum
from benchmarks.wild_self_knowledge import model_checksum
from paper.lab import Ledger
from transduce.baselines import KernelRidge
from transduce.evaluation import draw_tasks, summarise
from transduce.families import AdvectionDiffusionReaction
from transduce.files import provenance, replacing
from transduce.random_fields import generator_for
from transduce.report import Row, markdown_table, write_rows
from transduce.types import ExampleSet, Operator, Regressor, Task, TransduceError

SEED, QUERIES = 0, 50
SIZES, OPERATORS = (5, 10, 20, 50, 100, 200, 500), 60
QUICK_SIZES, QUICK_OPERATORS = (5, 20, 50), 20
OURS, RIDGE, TRAINED = "general", "kernel-ridge", "adr"
COMPARED_N, MOST_TIMES_ADR = 50, 30.0


@dataclass(frozen=True)
class ThroughRegress:
    """A model as users call it. model: by name, or the path of a .safetensors file."""

    model: str

    def regress(self, examples: ExampleSet) -> Operator:
        return cast(Operator, transduce.regress(examples.v, examples.u, model=self.model))


class NestedTasks:
    """Tasks that are drawn once with the largest number of examples, for any smaller number.

    Args:
        largest: number of examples that are drawn.
        count: number of operators.
    """

    def __init__(self, largest: int, count: int):
        self.family, self.largest, self.count = AdvectionDiffusionReaction(), largest, count
        self._drawn: list[tuple[int, int, Task]] = []

    def tasks(
        self, n: int, m: int, count: int, generator: torch.Generator
    ) -> Iterator[tuple[int, int, Task]]:
        """The first n examples of each of the operators."""
        if not self._drawn:
            self._drawn += draw_tasks(self.family, self.largest, m, self.count, generator)
        for operator, seed, task in self._drawn[:count]:
            yield operator, seed, Task(task.examples[:n], task.queries)


def main(
    only: Annotated[str, typer.Option(help="Some of the n, such as 5,50.")] = "",
    operators: Annotated[int, typer.Option(min=1, help="How many operators.")] = OPERATORS,
    model: Annotated[str, typer.Option(help="A model, or a .safetensors file.")] = "general",
    quick: Annotated[bool, typer.Option("--quick", help="A smoke test: few and small.")] = False,
    out: Annotated[Path, typer.Option(help="The folder for the results.")] = RESULTS,
    work: Annotated[Path, typer.Option(help="The folder of kept measurements.")] = WORK,
) -> None:
    """Measure, print the table, and write rows and table."""
    try:
        if quick:
            operators = min(operators, QUICK_OPERATORS)
            out = quick_folder(out)
        largest = max(QUICK_SIZES if quick else SIZES)
        sizes = _sizes(only, QUICK_SIZES if quick else SIZES)
        _run(sizes, largest, operators, model, out, work)
    except TransduceError as error:
        print(f"error: {error}", file=sys.stderr)
        raise typer.Exit(1) from None


def _sizes(only: str, known: Sequence[int]) -> list[int]:
    wanted = [name.strip() for name in only.split(",") if name.strip()]
    unknown = [name for name in wanted if name not in map(str, known)]
    if unknown:
        raise TransduceError(
            f"--only names {', '.join(unknown)}; expected some of {', '.join(map(str, known))}."
        )
    return [n for n in known if not wanted or str(n) in wanted]


def _run(
    sizes: Sequence[int], largest: int, operators: int, model: str, out: Path, work: Path
) -> None:
    origin = provenance()  # of the code that measures, whatever is committed meanwhile
    rows = measure_all(sizes, NestedTasks(largest, operators), model, work)
    lines = table(rows)
    about = {
        "command": " ".join(["python -m benchmarks.general_adr", *sys.argv[1:]]),
        "seed": SEED,
        "model": model,
        "family": repr(AdvectionDiffusionReaction()),
        "required": verdicts(lines),
    }
    write_rows(out / "adr.json", rows, **about, **origin)
    with replacing(out / "adr.md") as partial:
        partial.write_text(markdown_table(lines))
    print(markdown_table(lines))
    for required, met in verdicts(lines).items():
        print(f"{required}: {'yes' if met else 'no'}")


def measure_all(sizes: Sequence[int], family: NestedTasks, model: str, work: Path) -> list[Row]:
    """A row for each regressor and n: what `summarise` returns.

    Args:
        sizes: numbers of examples.
        family: the tasks.
        model: of `transduce.regress`.
        work: folder of the measurements that are kept.
    """
    regressors: dict[str, tuple[Regressor, str]] = {
        OURS: (ThroughRegress(model), model_checksum(model)),
        RIDGE: (KernelRidge(), ""),
        TRAINED: (transduce.Transducer.from_pretrained(TRAINED), model_checksum(TRAINED)),
    }
    ledger, rows, drawn = Ledger(work / "general_adr.jsonl"), [], repr(family.family)
    for name, (regressor, checksum) in regressors.items():
        for n in sizes:
            key: Row = {"regressor": name, "weights": checksum[:16], "code": code_checksum("")}
            key |= {"n": n, "of": family.largest, "operators": family.count, "family": drawn}
            key |= {"queries": QUERIES, "seed": SEED}
            if key not in ledger:
                begun = time.perf_counter()
                value = measure(regressor, family, n)
                ledger.add(key, value, time.perf_counter() - begun)
                said = f"{value['mean']:.2e}  {ledger[key]['seconds']:.1f} s"
                print(f"{name} n={n}: {said}", file=sys.stderr, flush=True)
            rows.append({"regressor": name} | ledger[key]["value"])
    return rows


def measure(regressor: Regressor, family: NestedTasks, n: int) -> Row:
    """The errors of a regressor at one n, over all operators and queries."""
    with warnings.catch_warnings(action="ignore"):
        rows = transduce.evaluate(
            regressor, family, n, family.count, generator_for("test", SEED), QUERIES
        )
    return summarise(rows)[0]


def table(rows: Sequence[Row]) -> list[Row]:
    """One row for each n: mean relative MSE of each regressor, and ratios."""
    mean = {(row["regressor"], row["n"]): row["mean"] for row in rows}
    return [
        {
            "n": n,
            "general": mean[OURS, n],
            "kernel ridge": mean[RIDGE, n],
            "adr": mean[TRAINED, n],
            "general / kernel ridge": mean[OURS, n] / mean[RIDGE, n],
            "general / adr": mean[OURS, n] / mean[TRAINED, n],
        }
        for n in sorted({row["n"] for row in rows})
    ]


def verdicts(lines: Sequence[Row]) -> dict[str, bool]:
    """Whether each requirement that was measured is met."""
    found = {
        "general <= kernel ridge at every n": all(
            line["general / kernel ridge"] <= 1 for line in lines
        )
    }
    for line in lines:
        if line["n"] == COMPARED_N:
            name = f"general within {MOST_TIMES_ADR:g} times of adr at n = {COMPARED_N}"
            found[name] = line["general / adr"] <= MOST_TIMES_ADR
    return found


if __name__ == "__main__":
    typer.run(main)
