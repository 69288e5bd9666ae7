"""The Burgers solver beside PhiFlow, with which the paper's data was made, and its own convergence:
python -m validation.burgers_phiflow    (needs transduce[burgers])

    PhiFlow as its Burgers demo has it, steps of 1 s on 64 x 64 cells:
    s <- diffuse.explicit(s),
    s <- advect.semi_lagrangian(s)

    phiflow dt              shorter steps, cells of size 1
    phiflow dx              smaller cells, and steps shorter in proportion
    phiflow extrapolated    2 s(dx / 2) - s(dx), which takes away an error of first order
    ours dx, ours dt        our solver on finer grids, and in shorter steps on 64 points

All start from the same fields, nu = 0.1, and end at t = 10. Errors are relative L2 distances from
our solution on 384 points, in steps of 1/6 (ours dt: from steps of 1/32 on 64 points).

Semi-Lagrangian advection interpolates linearly at every step, which diffuses by |s| dx / 2 however
short the step: half of nu, where |s| = 0.1. So PhiFlow does not come nearer with dt alone. With dx
it does, at first order, and its extrapolated solutions at second at amplitude 0.1, at order 1.5 at
0.3, whose fronts are thin: the two solvers agree on the equation, and data made as in the demo is 2
% (amplitude 0.1) to 7 or 8 % (0.3) away from its solutions. Rows go to
results/validation/burgers_phiflow.json; the figure is drawn from them and from the first field."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import SubFigure
from matplotlib.lines import Line2D
from phi.flow import PERIODIC, Box, CenteredGrid, advect, batch, channel, diffuse, spatial, tensor

from paper import figures
from transduce import report
from transduce.families.burgers import DT, SIDE, evolve
from transduce.figures.labels import End, label_ends
from transduce.figures.style import log_errors, sized_ticks
from transduce.files import provenance
from transduce.metrics import relative_l2
from transduce.random_fields import generator_for, periodic_field

NU, T = 0.1, 10.0
FIELDS, PHIFLOW_FIELDS = 8, 2
AMPLITUDES = (0.1, 0.3)
FINEST, FINE = 384, 1 / 6
POINTS = (64, 96, 128, 192, 384)
PHIFLOW_STEPS = (10, 20, 40, 80)
OUR_STEPS = (10, 15, 20, 30, 40, 80)


def initial(amplitude: float, points: int) -> torch.Tensor:
    """The same functions on every grid."""
    drawn = periodic_field(2 * FIELDS, points, 0.125, generator_for("validation", 0))
    return amplitude * drawn.reshape(FIELDS, 2, points, points)


@cache
def phiflow(amplitude: float, points: int, steps: int) -> torch.Tensor:
    """PhiFlow's states at time T. Its cells are centred half a cell away from our points, all of
    them alike."""
    v = initial(amplitude, points)[:PHIFLOW_FIELDS].permute(0, 2, 3, 1).numpy()
    s = CenteredGrid(
        tensor(v, batch("field"), spatial("x,y"), channel(vector="x,y")),
        PERIODIC,
        bounds=Box(x=SIDE, y=SIDE),
    )
    dt = T / steps
    substeps = math.ceil(NU * dt / (SIDE / points) ** 2 / 0.2)  # one on 64 points
    for _ in range(steps):
        s = diffuse.explicit(s, NU, dt, substeps=substeps)
        s = advect.semi_lagrangian(s, s, dt)
    return torch.from_numpy(s.values.numpy("field,vector,x,y")).double()


@cache
def converged(amplitude: float) -> torch.Tensor:
    return evolve(initial(amplitude, FINEST), NU, T, dt=FINE)


def distances(s: torch.Tensor, reference: torch.Tensor, **about: Any) -> Iterator[report.Row]:
    """A row for each field, at the points that both grids have."""
    stride = reference.shape[-1] // s.shape[-1]
    for number in range(len(s)):
        one = slice(number, number + 1)
        error = relative_l2(s[one], reference[one, :, ::stride, ::stride]).item()
        yield {**about, "dx": SIDE / s.shape[-1], "field": number, "error": error}


def studies(amplitude: float) -> Iterator[report.Row]:
    reference = converged(amplitude)
    for steps in PHIFLOW_STEPS:
        yield from distances(
            phiflow(amplitude, 64, steps),
            reference,
            study="phiflow dt",
            amplitude=amplitude,
            dt=T / steps,
        )
    for points in POINTS:
        dt = SIDE / points
        s = phiflow(amplitude, points, round(T / dt))
        yield from distances(s, reference, study="phiflow dx", amplitude=amplitude, dt=dt)
        if 2 * points in POINTS:
            finer = phiflow(amplitude, 2 * points, round(2 * T / dt))[..., ::2, ::2]
            yield from distances(
                2 * finer - s, reference, study="phiflow extrapolated", amplitude=amplitude, dt=dt
            )
        if points < FINEST:
            s = evolve(initial(amplitude, points), NU, T, dt=FINE)
            yield from distances(s, reference, study="ours dx", amplitude=amplitude, dt=FINE)
    v = initial(amplitude, 64)
    fine = evolve(v, NU, T, dt=1 / 32)
    for steps in OUR_STEPS:
        yield from distances(
            evolve(v, NU, T, dt=T / steps), fine, study="ours dt", amplitude=amplitude, dt=T / steps
        )


def curve(
    rows: list[report.Row], study: str, amplitude: float, size: str
) -> tuple[np.ndarray, np.ndarray]:
    """The sizes, largest first, and the root mean square error over the fields at each."""
    chosen = [row for row in rows if (row["study"], row["amplitude"]) == (study, amplitude)]
    sizes = sorted({row[size] for row in chosen}, reverse=True)
    return np.array(sizes), np.array(
        [
            math.sqrt(np.mean([row["error"] ** 2 for row in chosen if row[size] == each]))
            for each in sizes
        ]
    )


def order(sizes: np.ndarray, errors: np.ndarray) -> float:
    return float(np.polyfit(np.log(sizes), np.log(errors), 1)[0])


OURS, PHIFLOW, EXTRAPOLATED = figures.COLOURS[0], figures.COLOURS[1], figures.COLOURS[5]
# title, what shrinks, the limits of y, and of each study the words at its coarse end and its colour
PANELS = (
    ("PhiFlow: shorter steps", "dt", (1e-3, 0.5), {"phiflow dt": ("{error:.0%}", PHIFLOW)}),
    (
        "smaller cells (PhiFlow: dt = dx)",
        "dx",
        (1e-8, 0.5),
        {
            "phiflow dx": ("PhiFlow, order {order:.1f}", PHIFLOW),
            "phiflow extrapolated": ("extrapolated, order {order:.1f}", EXTRAPOLATED),
            "ours dx": ("ours", OURS),
        },
    ),
    ("ours: shorter steps", "dt", (1e-11, 6e-4), {"ours dt": ("order {order:.1f}", OURS)}),
)


def draw(rows: list[report.Row], path: Path) -> None:
    """Fields above, distances below."""
    with figures.drawing(path, (12.6, 6.9)) as figure:
        above, below = figure.subfigures(2, 1, height_ratios=(0.9, 1), hspace=0.04)
        draw_fields(above, max(AMPLITUDES))
        axes = below.subplots(1, 3, width_ratios=(1, 1.35, 1))
        axes[2].axvline(DT, color="0.5", linewidth=0.8, linestyle=":")
        axes[2].annotate(
            "default", (DT, 0), (4, 4), ("data", "axes fraction"), "offset points", color="0.4"
        )
        kinds = [Line2D([], [], color="0.3", **look(place)) for place in range(len(AMPLITUDES))]
        below.legend(
            kinds,
            [f"amplitude {amplitude:g}" for amplitude in AMPLITUDES],
            loc="outside lower center",
            ncols=2,
        )
        ends = [draw_curves(panel, rows, *what) for panel, what in zip(axes, PANELS, strict=True)]
        for panel, named in zip(axes, ends, strict=True):
            label_ends(panel, named)


def draw_fields(figure: SubFigure, amplitude: float) -> None:
    """The first component of the first field: its start, both ends, and how they differ."""
    v = initial(amplitude, 64)[0, 0]
    u, theirs = converged(amplitude)[0, 0, ::6, ::6], phiflow(amplitude, 64, 10)[0, 0]
    panels = figure.subplots(1, 4, sharex=True, sharey=True)
    titles = (
        f"amplitude {amplitude:g}: $s_1$ at t = 0",
        "ours, converged, t = 10",
        "PhiFlow, dt = 1, t = 10",
        "PhiFlow $-$ ours",
    )
    for axes, title, field in zip(panels, titles, (v, u, theirs, theirs - u), strict=True):
        limit = float((field if axes is panels[-1] else v).abs().max())
        image = axes.imshow(
            field.T, origin="lower", extent=(0, 1, 0, 1), cmap="RdBu_r", vmin=-limit, vmax=limit
        )
        axes.set(title=title, xlabel="$x_1$")
        axes.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
        axes.set_yticks([0, 0.5, 1], ["0", "0.5", "1"])
        if axes in panels[2:]:
            figure.colorbar(image, cax=axes.inset_axes((1.04, 0, 0.05, 1)))
    panels[0].set_ylabel("$x_2$")


def look(place: int) -> dict[str, Any]:
    """The line of an amplitude: the smaller solid, the larger broken and hollow."""
    hollow = {"markerfacecolor": "white", "linestyle": (0, (4, 1.6))} if place else {}
    return {"marker": "o", "markersize": 5, "linewidth": 1.8, **hollow}


def draw_curves(
    axes: Axes,
    rows: list[report.Row],
    title: str,
    size: str,
    ylim: tuple[float, float],
    studies: dict[str, tuple[str, str]],
) -> list[End]:
    """Lines of errors against dt or dx, and the names for their coarse ends."""
    ends: list[End] = []
    for study, (words, colour) in studies.items():
        for place, amplitude in enumerate(AMPLITUDES):
            sizes, errors = curve(rows, study, amplitude, size)
            axes.plot(sizes, errors, color=colour, **look(place))
            ends.append(
                (
                    sizes[0],
                    errors[0],
                    words.format(error=errors[0], order=order(sizes, errors)),
                    colour,
                )
            )
    log_errors(axes, "relative L2 distance")
    sized_ticks(axes, curve(rows, next(iter(studies)), AMPLITUDES[0], size)[0].round(3).tolist())
    axes.set(title=title, xlabel={"dt": "step dt, s", "dx": "cell dx"}[size], ylim=ylim)
    return ends


def main() -> None:
    rows = [row for amplitude in AMPLITUDES for row in studies(amplitude)]
    names = dict.fromkeys((row["study"], row["amplitude"]) for row in rows)
    summary = []
    for study, amplitude in names:
        sizes, errors = curve(rows, study, amplitude, "dt" if study.endswith("dt") else "dx")
        ends = {"coarsest": errors[0], "finest": errors[-1], "order": order(sizes, errors)}
        summary.append(
            {
                "study": study,
                "amplitude": amplitude,
                **{name: float(value) for name, value in ends.items()},
            }
        )
    about = {
        "command": "python -m validation.burgers_phiflow",
        "seed": 0,
        "summary": summary,
        **provenance(),
    }
    about["versions"]["phiflow"] = metadata.version("phiflow")
    report.write_rows("results/validation/burgers_phiflow.json", rows, **about)
    draw(rows, Path("validation/burgers_phiflow.png"))
    print(report.markdown_table(summary))


if __name__ == "__main__":
    main()
