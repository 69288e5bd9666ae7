"""Is the initial state behind a noisy final one found, and do 90 % bands hold 90 % of it?

    python -m validation.inversion                      about 8 minutes on one core
    python -m validation.inversion --burgers burgers
    about 15; a bundled model of Burgers' equation or a .safetensors file

ADR: over unseen operators, regressed from n examples, with noise of a share of u's root mean
square, four functions of each operator. *told*: what `invert` is told of errors, the noise alone or
with `errors_of(O)`. *covered*: the share of v's values inside, without both ends, which are zero.
Writes results/validation/inversion.json and docs/figures/inversion.png, and
inversion_samplers.json: what the sampler is worth beside the usual steps about the prior, in
effective samples after burn-in."""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes

from paper import figures
from transduce.families import AdvectionDiffusionReaction, Burgers2d
from transduce.families.adr import boundary_mask
from transduce.figures.style import DASHED
from transduce.files import provenance
from transduce.metrics import relative_l2
from transduce.random_fields import generator_for
from transduce.report import Row, markdown_table, write_rows
from transduce.transducer import Transducer
from transduce.types import ExampleSet
from transduce.uncertainty.chains import effective_sizes
from transduce.uncertainty.inversion import (
    ACCEPTANCE,
    PACE,
    GaussianPrior,
    Inversion,
    Posterior,
    errors_of,
    invert,
    most_probable,
    noise_of,
)

SEED = 11
SIZES, NOISES = (20, 100), (0.01, 0.05)
FUNCTIONS, SAMPLES, LEVEL = 4, 640, 0.9
TOLD = ("noise", "noise and O's errors")
Z = NormalDist().inv_cdf((1 + LEVEL) / 2)


def observed(
    u: torch.Tensor, share: float, generator: torch.Generator
) -> tuple[torch.Tensor, float]:
    """u with noise of a share of its root mean square, and the standard deviation of that."""
    noise = share * float(u.square().mean().sqrt())
    return u.double() + noise * torch.randn(
        u.shape, dtype=torch.float64, generator=generator
    ), noise


def measured(
    found: Inversion, laplace: Inversion, v: torch.Tensor, prior: GaussianPrior, inner: Any
) -> Row:
    """Of the functions of one operator."""
    widest = 2 * Z * prior.root.square().sum(0).sqrt()
    covered, by_laplace = (
        (((f.low <= v) & (v <= f.high))[inner]).double().mean() for f in (found, laplace)
    )
    return {
        "error of v": float(relative_l2(found.v, v)),
        "covered": float(covered),
        "covered, Laplace": float(by_laplace),
        "width / prior's": float(
            ((found.high - found.low)[inner] / widest.expand_as(v)[inner]).mean()
        ),
        "acceptance": float(found.acceptance[:, 0].mean()),
        "effective": float(found.effective.min()),
    }


def adr(T: Transducer, operators: int) -> Iterator[tuple[Row, dict[str, Any]]]:
    """A row for each operator and condition, and what a figure shows of it."""
    family = AdvectionDiffusionReaction()
    prior = GaussianPrior.interval(len(family.x), family.v_length_scale, boundary_mask(family.x))
    inner = (slice(None), slice(1, -1))
    for number in range(operators):
        task = family.sample_task(max(SIZES), FUNCTIONS, generator_for("test", SEED, number))
        v = task.queries.v.double()
        for n in SIZES:
            O = T.regress(task.examples[:n])
            for share in NOISES:
                generator = generator_for("test", SEED, number, n, round(1000 * share))
                u, noise = observed(task.queries.u, share, generator)
                for told in TOLD:
                    started = time.perf_counter()
                    errors = None if told == TOLD[0] else errors_of(O)
                    found = invert(
                        O,
                        u,
                        prior,
                        noise=noise,
                        errors=errors,
                        samples=SAMPLES,
                        level=LEVEL,
                        generator=generator,
                    )
                    seconds = time.perf_counter() - started
                    row = measured(
                        found,
                        invert(O, u, prior, noise=noise, errors=errors, level=LEVEL),
                        v,
                        prior,
                        inner,
                    )
                    yield (
                        {"n": n, "noise": share, "told": told, **row, "seconds": seconds},
                        {"u": u, "O(v)": O(found.v), "v": v, "found": found},
                    )


def averaged(rows: list[Row]) -> list[Row]:
    """The mean over operators for each condition; of effective sizes the smallest."""
    conditions: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        conditions.setdefault((row["n"], row["noise"], row["told"]), []).append(row)
    return [
        dict(zip(("n", "noise", "told"), condition, strict=True))
        | {
            key: float((np.min if key == "effective" else np.mean)([row[key] for row in own]))
            for key in list(own[0])[3:]
        }
        for condition, own in conditions.items()
    ]


@torch.no_grad()
def samplers(T: Transducer, operators: int = 3, steps: int = 1500) -> list[Row]:
    """Effective samples for each thousand queries: ours, and pCN about the prior, both from the
    most probable v."""
    family, rows = AdvectionDiffusionReaction(), []
    prior = GaussianPrior.interval(len(family.x), family.v_length_scale, boundary_mask(family.x))
    for share in NOISES:
        sizes: dict[str, list[float]] = {"ours": [], "pCN about the prior": []}
        for number in range(operators):
            generator = generator_for("test", SEED, number)
            task = family.sample_task(100, 1, generator)
            O = T.regress(task.examples)
            u, noise = observed(task.queries.u, share, generator)
            found = invert(O, u, prior, noise=noise, samples=SAMPLES, generator=generator)
            sizes["ours"].append(float(found.effective.min()) / (2 * SAMPLES))
            posterior = Posterior(O, u, prior, noise_of(noise, u, None))
            sizes["pCN about the prior"].append(
                float(effective_sizes(plain(posterior, steps, generator)).min()) / (16 * steps)
            )
        rows += [
            {
                "noise": share,
                "sampler": name,
                "effective of 1,000 queries": 1000 * float(np.mean(own)),
            }
            for name, own in sizes.items()
        ]
    return rows


def plain(posterior: Posterior, steps: int, generator: torch.Generator) -> torch.Tensor:
    """The states of 16 chains of pCN for one function, after a burn-in of half as many steps."""
    xi = most_probable(posterior)[0][:, None].repeat(1, 16, 1)
    E, odds, states = posterior.energy(xi) - xi.square().sum(-1) / 2, 0.0, []
    for number in range(steps + steps // 2):
        beta = 1 / (1 + math.exp(-odds))
        proposed = math.sqrt(1 - beta**2) * xi + beta * torch.randn(
            xi.shape, dtype=xi.dtype, generator=generator
        )
        E_proposed = posterior.energy(proposed) - proposed.square().sum(-1) / 2
        accepted = torch.rand(E.shape, dtype=E.dtype, generator=generator).log() < E - E_proposed
        xi, E = torch.where(accepted[..., None], proposed, xi), torch.where(accepted, E_proposed, E)
        if number < steps // 2:
            odds += (float(accepted.double().mean()) - ACCEPTANCE) * PACE / math.sqrt(1 + number)
        else:
            states.append(xi[0])
    return torch.stack(states)


def draw(cases: list[dict[str, Any]], path: Path) -> None:
    """Observed functions above, and below them what is found behind them."""
    x = np.linspace(0, 1, cases[0]["v"].shape[-1])
    with figures.drawing(path, (1.9 * len(cases) + 0.9, 4.6)) as figure:
        panels = figure.subplots(2, len(cases), sharex=True, sharey="row", squeeze=False)
        for place, (case, (above, below)) in enumerate(zip(cases, panels.T, strict=True)):
            above.plot(x, case["u"][0], ".", color="0.4", markersize=2.5, label="observed u")
            above.plot(
                x,
                case["O(v)"][0],
                color=figures.COLOURS[1],
                linewidth=1.4,
                label="O of the most probable v",
            )
            draw_found(below, x, case)
            above.set_title(f"operator {place + 1}")
            below.set(xlim=(0, 1), xlabel="x")
            below.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
        panels[0, 0].set_ylabel("u")
        panels[1, 0].set_ylabel("v")
        handles = [axes.get_legend_handles_labels() for axes in panels[:, 0]]
        named = [[part for parts in each for part in parts] for each in zip(*handles, strict=True)]
        figure.legend(*named, loc="outside lower center", ncols=3)


def draw_found(axes: Axes, x: np.ndarray, case: dict[str, Any]) -> None:
    found, colour = case["found"], figures.COLOURS[0]
    axes.plot(x, case["v"][0], color="black", linewidth=3.4, alpha=0.4, label="true v")
    axes.plot(x, found.v[0], color=colour, linewidth=1.6, linestyle=DASHED, label="most probable v")
    axes.fill_between(
        x,
        found.low[0],
        found.high[0],
        color=colour,
        alpha=0.25,
        linewidth=0,
        label=f"{100 * LEVEL:.0f} % band",
    )


def burgers(
    T: Transducer, cases: int, n: int = 20, share: float = 0.05, samples: int = 320
) -> Iterator[tuple[Row, dict[str, Any]]]:
    """A row for each of some operators, and the fields that a figure shows of it."""
    family = Burgers2d()
    prior = GaussianPrior.periodic(
        family.points, family.length_scale, amplitude=float(family.amplitude), channels=2
    )
    for number in range(cases):
        generator = generator_for("test", SEED, 1, number)
        operator = family.sample_operator(generator)
        pairs = family.sample_pairs(operator, n + 1, generator)
        O = T.regress(ExampleSet(pairs.v[:n], pairs.u[:n]))
        v, (u, noise) = pairs.v[n:].double(), observed(pairs.u[n:], share, generator)
        started = time.perf_counter()
        errors = errors_of(O)
        found = invert(
            O,
            u,
            prior,
            noise=noise,
            errors=errors,
            samples=samples,
            level=LEVEL,
            generator=generator,
        )
        seconds = time.perf_counter() - started
        row = measured(
            found,
            invert(O, u, prior, noise=noise, errors=errors, level=LEVEL),
            v,
            prior,
            slice(None),
        )
        yield (
            {"nu": operator.nu, "n": n, "noise": share, **row, "seconds": seconds},
            {"u": u, "v": v, "found": found},
        )


def draw_fields(case: dict[str, Any], path: Path) -> None:
    """The first component: observed, true and found; and, in colours of their own, the error and
    the half-width of the band."""
    found = case["found"]
    fields = {"observed u": case["u"], "true v": case["v"], "most probable v": found.v}
    small = {"|error|": (found.v - case["v"]).abs(), "half the band": (found.high - found.low) / 2}
    with figures.drawing(path, (13, 2.7)) as figure:
        panels = figure.subplots(1, 5, sharey=True)
        largest = float(case["v"].abs().max())
        for place, parts, colours, low, high in (
            (slice(3), fields, "RdBu_r", -largest, largest),
            (slice(3, 5), small, "viridis", 0.0, float(small["|error|"][:, 0].max())),
        ):
            for axes, (title, field) in zip(panels[place], parts.items(), strict=True):
                image = axes.imshow(
                    field[0, 0].T,
                    origin="lower",
                    extent=(0, 1, 0, 1),
                    cmap=colours,
                    vmin=low,
                    vmax=high,
                )
                axes.set(title=title, xlabel="x", xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
            figure.colorbar(image, ax=panels[place], aspect=16, pad=0.02)
        panels[0].set_ylabel("y")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="adr")
    parser.add_argument("--operators", type=int, default=20)
    parser.add_argument("--burgers", help="measure this model of Burgers' equation instead")
    parser.add_argument("--cases", type=int, default=4, help="operators of Burgers' equation")
    parser.add_argument("--out", type=Path, default=Path("results/validation"))
    parser.add_argument("--figures", type=Path, default=Path("docs/figures"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    about = {
        "command": " ".join(["python -m validation.inversion", *sys.argv[1:]]),
        "seed": SEED,
        "level": LEVEL,
        **provenance(),
    }
    if arguments.burgers:
        rows, cases = map(
            list,
            zip(
                *burgers(Transducer.from_pretrained(arguments.burgers), arguments.cases),
                strict=True,
            ),
        )
        write_rows(arguments.out / "inversion_burgers.json", rows, **about)
        draw_fields(cases[0], arguments.figures / "inversion_burgers")
        print(markdown_table(rows))
        return
    T = Transducer.from_pretrained(arguments.model)
    every, cases = [], []
    for row, case in adr(T, arguments.operators):
        every.append(row)
        if (row["n"], row["noise"], row["told"]) == (max(SIZES), max(NOISES), TOLD[1]) and len(
            cases
        ) < 4:
            cases.append(case)
    rows, compared = averaged(every), samplers(T)
    print(markdown_table(rows), markdown_table(compared), sep="\n")
    about |= {"operators": arguments.operators, "functions": FUNCTIONS, "samples": SAMPLES}
    write_rows(arguments.out / "inversion.json", rows, **about)
    write_rows(arguments.out / "inversion_samplers.json", compared, **about)
    draw(cases, arguments.figures / "inversion")


if __name__ == "__main__":
    main()
