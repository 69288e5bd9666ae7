"""Is an operator's parameter found from a few of its pairs, by Monte Carlo over sets of simulated
ones?

    python -m validation.datasets                      about 10 minutes on one core
    python -m validation.datasets --burgers burgers
    about 10; a bundled model of Burgers' equation or a .safetensors file

ADR with delta = 0.01 m(x), k = 0.1 and nu = 0.05 s m(x): the speed s, from -2 to 2, is to be found.
The bank has one pair of each of 160 operators; the targets are others. *noise*: that of T, the
median relative error at a pair of the bank from its k neighbours. *nearest set*: the error of a
simpler reading, the parameter of the pair whose k nearest explain best what was observed. Errors
and widths are in units of s (of nu). Writes results/validation/datasets.json and
docs/figures/datasets.png; of Burgers' equation, where nu from 0.1 to 0.5 is to be found,
datasets_burgers.json and datasets_burgers.png."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from paper import figures
from transduce.families import AdvectionDiffusionReaction, Burgers2d
from transduce.families.adr import AdvectionDiffusionReactionOperator, boundary_mask
from transduce.families.burgers import Burgers2dOperator
from transduce.files import provenance
from transduce.random_fields import generator_for, uniform
from transduce.report import Row, markdown_table, write_rows
from transduce.transducer import Transducer
from transduce.types import ExampleSet
from transduce.uncertainty.datasets import Explained, dataset_posterior

SEED = 12
BANK, K = 160, 6
OBSERVED = (1, 4)
SAMPLES, LEVEL = 8000, 0.9
Pairs = Callable[[float, int, torch.Generator], ExampleSet]


def adr_pairs(speed: float, n: int, generator: torch.Generator) -> ExampleSet:
    """n pairs of the ADR operator of this speed."""
    family = AdvectionDiffusionReaction()
    mask = boundary_mask(torch.linspace(0, 1, family.points, dtype=torch.float64))
    return family.sample_pairs(
        AdvectionDiffusionReactionOperator(0.01 * mask, 0.05 * speed * mask, 0.1), n, generator
    )


def burgers_pairs(nu: float, n: int, generator: torch.Generator) -> ExampleSet:
    """n pairs of the Burgers operator of this nu."""
    return Burgers2d().sample_pairs(Burgers2dOperator(nu), n, generator)


def bank_of(pairs: Pairs, low: float, high: float) -> tuple[ExampleSet, torch.Tensor]:
    """One pair of each of many operators, and their parameters."""
    generator = generator_for("train", SEED)
    theta = torch.tensor([uniform(low, high, generator) for _ in range(BANK)])
    drawn = [pairs(float(each), 1, generator) for each in theta]
    return ExampleSet(
        torch.cat([each.v for each in drawn]), torch.cat([each.u for each in drawn])
    ), theta


def nearest(theta: torch.Tensor, k: int) -> torch.Tensor:
    """For each pair of the bank, the k others whose parameters are nearest."""
    distances = (theta[:, None] - theta).abs().fill_diagonal_(torch.inf)
    return torch.zeros_like(distances, dtype=torch.bool).scatter(
        1, distances.argsort(1)[:, :k], True
    )


@torch.no_grad()
def errors_of(
    T: Transducer, bank: ExampleSet, sets: torch.Tensor, observed: ExampleSet
) -> torch.Tensor:
    """The root mean square of the relative errors of what was observed, for each of the sets."""
    explained = Explained(T, bank, observed, noise=1.0)
    return torch.cat(
        [(2 * explained.energy(part) / len(observed)).sqrt() for part in sets.split(16)]
    )


def typical_error(T: Transducer, bank: ExampleSet, theta: torch.Tensor) -> float:
    """The median over the bank of the relative error at a pair, from its neighbours."""
    sets = nearest(theta, K)
    return float(
        np.median(
            [
                float(errors_of(T, bank, sets[i : i + 1], bank[[i]])[0])
                for i in range(0, len(bank), 4)
            ]
        )
    )


def cases(T: Transducer, pairs: Pairs, low: float, high: float, targets: int) -> Iterator[Row]:
    """A row for each target and number of observed pairs."""
    bank, theta = bank_of(pairs, low, high)
    noise, sets = typical_error(T, bank, theta), nearest(theta, K)
    for number in range(targets):
        generator = generator_for("test", SEED, number)
        truth = uniform(low + 0.05 * (high - low), high - 0.05 * (high - low), generator)
        pool = pairs(truth, max(OBSERVED), generator)
        for count in OBSERVED:
            observed = pool[:count]
            best = float(theta[errors_of(T, bank, sets, observed).argmin()])
            started = time.perf_counter()
            found = dataset_posterior(
                T,
                bank,
                theta,
                observed,
                noise=noise,
                k=K,
                samples=SAMPLES,
                level=LEVEL,
                generator=generator,
            )
            yield {
                "observed pairs": count,
                "truth": truth,
                "mean": float(found.mean),
                "low": float(found.low),
                "high": float(found.high),
                "nearest set": best,
                "noise": noise,
                "explained to": float(found.errors.mean()),
                "acceptance": found.acceptance,
                "effective": found.effective,
                "seconds": time.perf_counter() - started,
            }
            print(
                f"{count} pairs: {truth:.3f} found as {found.mean:.3f}, {found.low:.3f} to "
                f"{found.high:.3f}",
                flush=True,
            )


def summary(rows: list[Row]) -> list[Row]:
    """The mean over targets for each number of observed pairs."""
    table = []
    for count in OBSERVED:
        own = [row for row in rows if row["observed pairs"] == count]
        column = {key: np.array([row[key] for row in own]) for key in own[0]}
        truth, width = column["truth"], column["high"] - column["low"]
        table.append(
            {
                "observed pairs": count,
                "error": float(np.sqrt(np.mean((column["mean"] - truth) ** 2))),
                "error, nearest set": float(np.sqrt(np.mean((column["nearest set"] - truth) ** 2))),
                "covered": float(((column["low"] <= truth) & (truth <= column["high"])).mean()),
                "width": float(width.mean()),
                "noise": float(column["noise"].mean()),
                "explained to": float(column["explained to"].mean()),
                "acceptance": float(column["acceptance"].mean()),
                "effective": float(column["effective"].min()),
                "seconds": float(column["seconds"].mean()),
            }
        )
    return table


def draw(rows: list[Row], parameter: str, path: Path) -> None:
    """What is found over the truth, with its bands, for each number of observed pairs."""
    with figures.drawing(path, (7.4, 4.7)) as figure:
        panels = figure.subplots(1, len(OBSERVED), sharex=True, sharey=True)
        for axes, count in zip(panels, OBSERVED, strict=True):
            own = [row for row in rows if row["observed pairs"] == count]
            truth, mean, low, high, best = (
                np.array([row[key] for row in own])
                for key in ("truth", "mean", "low", "high", "nearest set")
            )
            axes.axline((truth.mean(), truth.mean()), slope=1, color="0.7", linewidth=0.8)
            axes.errorbar(
                truth,
                mean,
                [mean - low, high - mean],
                fmt="o",
                color=figures.COLOURS[0],
                markersize=4.5,
                linewidth=1.2,
                label=f"mean and {100 * LEVEL:.0f} % band",
            )
            axes.plot(truth, best, "x", color=figures.COLOURS[1], markersize=5, label="nearest set")
            axes.set(
                title=f"{count} observed pair{'s' if count > 1 else ''}",
                xlabel=f"true {parameter}",
                box_aspect=1,
            )
        panels[0].set_ylabel(f"{parameter} found")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="adr")
    parser.add_argument("--targets", type=int, default=20)
    parser.add_argument("--burgers", help="measure this model of Burgers' equation instead")
    parser.add_argument("--out", type=Path, default=Path("results/validation"))
    parser.add_argument("--figures", type=Path, default=Path("docs/figures"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    name, model, parameter, pairs, ends = (
        ("datasets_burgers", arguments.burgers, "nu", burgers_pairs, (0.1, 0.5))
        if arguments.burgers
        else ("datasets", arguments.model, "speed s", adr_pairs, (-2.0, 2.0))
    )
    about: dict[str, Any] = {
        "command": " ".join(["python -m validation.datasets", *sys.argv[1:]]),
        "seed": SEED,
        **provenance(),
    }
    every = list(cases(Transducer.from_pretrained(model), pairs, *ends, arguments.targets))
    rows = summary(every)
    print(markdown_table(rows))
    about |= {"bank": BANK, "k": K, "samples": SAMPLES, "level": LEVEL, "targets": every}
    write_rows(arguments.out / f"{name}.json", rows, **about)
    draw(every, parameter, arguments.figures / name)


if __name__ == "__main__":
    main()
