"""Noise, functions rougher than any in training, and the examples of another operator.

    python -m validation.robustness        about 8 minutes on one core

`adr`, `adr-softmax` and kernel ridge tuned on the same examples, over unseen operators. Writes
results/adr/robustness.json."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from transduce.baselines import KernelRidge
from transduce.evaluation import evaluate, summarise
from transduce.families import AdvectionDiffusionReaction
from transduce.files import provenance
from transduce.metatraining import with_noise
from transduce.random_fields import generator_for
from transduce.report import number, write_rows
from transduce.transducer import Transducer
from transduce.types import ExampleSet, OperatorFamily, Task

SIZES = (10, 20, 50, 100, 200)


@dataclass(frozen=True)
class Noisy:
    """A family whose example outputs carry white noise of `level` times their root mean square;
    queries are clean."""

    family: OperatorFamily
    level: float

    def sample_task(self, n: int, m: int, generator: torch.Generator) -> Task:
        task = self.family.sample_task(n, m, generator)
        return Task(
            ExampleSet(task.examples.v, with_noise(task.examples.u, self.level, generator)),
            task.queries,
        )


@dataclass(frozen=True)
class Mistaken:
    """A family whose examples come from another operator than the queries: a model that uses its
    context must fail."""

    family: OperatorFamily

    def sample_task(self, n: int, m: int, generator: torch.Generator) -> Task:
        return Task(
            self.family.sample_task(n, 1, generator).examples,
            self.family.sample_task(1, m, generator).queries,
        )


def conditions() -> dict[str, Any]:
    adr = AdvectionDiffusionReaction
    return {
        "as trained": adr(),
        "noise 1 %": Noisy(adr(), 0.01),
        "noise 5 %": Noisy(adr(), 0.05),
        "noise-like v": adr(v_length_scale=0.02),
        "another operator's examples": Mistaken(adr()),
    }


def measured(
    regressors: Mapping[str, Any], operators: int, sizes: tuple[int, ...]
) -> list[dict[str, Any]]:
    """One row for each condition, n and regressor."""
    rows = []
    for condition, family in conditions().items():
        for name, regressor in regressors.items():
            for row in summarise(
                evaluate(regressor, family, sizes, operators, generator_for("test", 1))
            ):
                rows.append(
                    {
                        "condition": condition,
                        "regressor": name,
                        **{key: row[key] for key in ("n", "mean", "median", "pooled")},
                    }
                )
        print(
            f"{condition}:",
            "   ".join(f"n = {n}: {shown(rows, condition, n)}" for n in sizes),
            flush=True,
        )
    return rows


def shown(rows: list[dict[str, Any]], condition: str, n: int) -> str:
    return " | ".join(
        number(row["mean"]) for row in rows if (row["condition"], row["n"]) == (condition, n)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", default=["adr", "adr-softmax"])
    parser.add_argument("--operators", type=int, default=100)
    parser.add_argument("--out", type=Path, default=Path("results/adr/robustness.json"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    regressors = {model: Transducer.from_pretrained(model) for model in arguments.models} | {
        "kernel-ridge": KernelRidge()
    }
    rows = measured(regressors, arguments.operators, SIZES)
    about = {
        "command": " ".join(["python -m validation.robustness", *sys.argv[1:]]),
        "seed": 1,
        "operators": arguments.operators,
    }
    write_rows(arguments.out, rows, **about, **provenance())


if __name__ == "__main__":
    main()
