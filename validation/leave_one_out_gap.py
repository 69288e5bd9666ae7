"""How far are reported leave-one-out residuals from those of true refits?

    python -m validation.leave_one_out_gap        under two minutes on one core

A model computes the residual of each example together with its fit, and holds fixed what it chose
from all examples: mixture weights, scales, and residuals of earlier layers. A true refit regresses
from the other n - 1 examples and chooses again. The gap is the root mean square of the difference
between both residuals, relative to that of the true ones, over all examples of an operator. Rows
hold the median and the largest gap over operators, and the ratio of the root mean squares, reported
to true: below 1, residuals are too small. All data is synthetic.
Writes results/validation/leave_one_out_gap.json."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from transduce.families import AdvectionDiffusionReaction, Burgers2d, SyntheticImages
from transduce.files import provenance
from transduce.random_fields import generator_for
from transduce.report import markdown_table, write_rows
from transduce.transducer import Transducer
from transduce.types import ExampleSet, OperatorFamily, Task

SEED, OPERATORS, SIZES = 7, 5, (10, 30)


class Weather:
    """Synthetic fields in the units of climate-europe: pressure is a smooth function of temperature
    that differs between operators, plus noise."""

    def __init__(self, T: Transducer):
        self.T = T

    def sample_task(self, n: int, m: int, generator: torch.Generator) -> Task:
        V, U = self.T.V, self.T.U
        y, x = (torch.linspace(0, 1, size) for size in V.grid)
        k = torch.arange(4.0)
        waves = (
            torch.cos(torch.pi * k[:, None] * y)[:, None, :, None]
            * torch.cos(torch.pi * k[:, None] * x)[None, :, None]
        )
        waves = waves / (1 + k[:, None] ** 2 + k**2)[:, :, None, None]
        c = torch.randn(n + m, 16, generator=generator)
        mixing = torch.randn(16, 16, generator=generator) / 4
        noise = 0.3 * torch.randn(n + m, 16, generator=generator)
        v, u = (
            space.mean + space.unit * (of @ waves.flatten(0, 1).flatten(1)).unflatten(1, V.grid)
            for space, of in ((V, c), (U, torch.tanh(c @ mixing) + noise))
        )
        return Task(ExampleSet(v[:n], u[:n]), ExampleSet(v[n:], u[n:]))


def residuals(T: Transducer, examples: ExampleSet) -> tuple[Tensor, Tensor]:
    """In coefficients: as reported with the fit, and of true refits."""
    v, u = (T.encode(T.V, examples.v, None, "v")[0], T.encode(T.U, examples.u, None, "u")[0])
    reported, found = u - T.regress(examples).left_out, []
    for i in range(len(u)):
        others = torch.arange(len(u)) != i
        with torch.no_grad():
            found.append(u[i] - T(v[None, others], u[None, others], v[None, [i]])[0, 0])
    return reported, torch.stack(found)


def gaps(T: Transducer, family: OperatorFamily, n: int) -> tuple[list[float], list[float]]:
    """The gap of each operator, and the ratio of reported residuals to true ones."""
    found, ratios = [], []
    for operator in range(OPERATORS):
        task = family.sample_task(n, 1, generator_for("validation", SEED, operator))
        examples = ExampleSet(task.examples.v.double(), task.examples.u.double())
        reported, true = residuals(T, examples)
        found.append(float((reported - true).norm() / true.norm()))
        ratios.append(float(reported.norm() / true.norm()))
    return found, ratios


def main() -> None:
    torch.set_num_threads(1)
    rows = []
    for name in ("adr", "burgers", "images", "climate-europe"):
        T = Transducer.from_pretrained(name).double()
        families = {
            "adr": AdvectionDiffusionReaction(),
            "burgers": Burgers2d(amplitude=0.3),
            "images": SyntheticImages(),
        }
        for n in SIZES:
            found, ratios = gaps(T, families.get(name) or Weather(T), n)
            about = {"model": name, "n": n, "gap": float(np.median(found))}
            about |= {"largest": max(found), "ratio": float(np.median(ratios))}
            rows.append({**about, "operators": OPERATORS})
    print(markdown_table(rows))
    about = {"command": " ".join(["python -m validation.leave_one_out_gap", *sys.argv[1:]])}
    path = Path("results/validation/leave_one_out_gap.json")
    write_rows(path, rows, **about, seed=SEED, **provenance())


if __name__ == "__main__":
    main()
