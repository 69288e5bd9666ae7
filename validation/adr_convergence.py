"""The ADR solver's convergence over operators drawn from the family, and the stability of the
paper's explicit scheme beside it: python -m validation.adr_convergence

    space   16 steps on 51 to 801 points, against 1601; and again with 0.005 added to delta
    time    2 to 64 steps on 401 points, against 512
    paper   forward Euler on 101 points, time step 1e-2:
            the fraction of operators for which some solution leaves [-8, 8]

The scheme is of second order, and shows it where delta stays away from zero. The family's own delta
vanishes at both ends, where the solution is held at zero all the same: it falls to zero in a layer
as thin as the grid allows, and finer grids agree but slowly. This is why the family is defined on
one grid. Rows go to results/validation/adr_convergence.json, and the figure is drawn from them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from matplotlib.axes import Axes
from torch import Tensor

from paper import figures
from transduce import report
from transduce.families.adr import (
    BLOW_UP,
    AdvectionDiffusionReaction,
    AdvectionDiffusionReactionOperator,
)
from transduce.files import provenance
from transduce.metrics import relative_squared_errors
from transduce.random_fields import generator_for

OPERATORS, INPUTS = 20, 10
FINEST = 1601
POINTS = (51, 101, 201, 401, 801)
STEPS = (2, 4, 8, 16, 32, 64)
EULER_OPERATORS = 500
EULER_STEPS = (100, 200, 500, 1000, 2000)


def on_grid(
    operator: AdvectionDiffusionReactionOperator, points: int, steps: int, floor: float = 0.0
) -> AdvectionDiffusionReactionOperator:
    """The same operator on a coarser grid, with `floor` added to delta."""
    stride = (FINEST - 1) // (points - 1)
    return AdvectionDiffusionReactionOperator(
        operator.delta[::stride] + floor, operator.nu[::stride], operator.k, operator.t, steps
    )


def error(u_hat: Tensor, u: Tensor) -> float:
    """The relative L2 error, root mean square over the functions."""
    return relative_squared_errors(u_hat, u).mean().sqrt().item()


def convergence() -> Iterator[report.Row]:
    """Errors of each operator at each resolution."""
    family = AdvectionDiffusionReaction(points=FINEST)
    for number in range(OPERATORS):
        generator = generator_for("validation", number)
        operator = family.sample_operator(generator)
        v = family.sample_inputs(2 * INPUTS, generator)
        v = v[tame(operator, v)][:INPUTS]
        for study, floor in (("space", 0.0), ("space, delta + 0.005", 0.005)):
            finest, _ = on_grid(operator, FINEST, 16, floor).solve(v)
            for points in POINTS:
                stride = (FINEST - 1) // (points - 1)
                u, _ = on_grid(operator, points, 16, floor).solve(v[:, ::stride])
                yield {
                    "study": study,
                    "operator": number,
                    "size": points,
                    "error": error(u, finest[:, ::stride]),
                }
        finest, _ = on_grid(operator, 401, 512).solve(v[:, ::4])
        for steps in STEPS:
            u, _ = on_grid(operator, 401, steps).solve(v[:, ::4])
            yield {"study": "time", "operator": number, "size": steps, "error": error(u, finest)}


def tame(operator: AdvectionDiffusionReactionOperator, v: Tensor) -> Tensor:
    """Which of the inputs do not blow up, on the family's own grid."""
    return on_grid(operator, 401, 16).solve(v[:, ::4])[1] <= BLOW_UP


def stability() -> Iterator[report.Row]:
    """The fraction of operators with an unstable solution, for each time step of the explicit
    scheme."""
    family = AdvectionDiffusionReaction(points=101)
    operators, states = [], []
    for number in range(EULER_OPERATORS):
        generator = generator_for("validation", 1, number)
        operators.append(family.sample_operator(generator))
        v = family.sample_inputs(2, generator)
        # Zero where the true solution blows up.
        states.append(v * (operators[-1].solve(v)[1] <= BLOW_UP)[:, None])
    for steps in EULER_STEPS:
        s = explicit_euler(operators, torch.stack(states), steps)
        unstable = ~(s.abs().amax((1, 2)) <= BLOW_UP)
        yield {
            "study": "explicit Euler",
            "dt": 1 / steps,
            "unstable": unstable.double().mean().item(),
            "operators": EULER_OPERATORS,
        }


def explicit_euler(
    operators: list[AdvectionDiffusionReactionOperator], s: Tensor, steps: int
) -> Tensor:
    """s (operator, n, x) at time 1 by s <- s + h (d_x(delta d_x s) + nu d_x s + k s^2), central
    differences."""
    dx, h = 1 / (s.shape[-1] - 1), 1 / steps
    delta, nu = (
        torch.stack([getattr(operator, name) for operator in operators])[:, None]
        for name in ("delta", "nu")
    )
    k = torch.tensor([operator.k for operator in operators], dtype=s.dtype)[:, None, None]
    half = (delta[..., 1:] + delta[..., :-1]) / 2
    for _ in range(steps):
        diffusion = (half * s.diff(dim=-1)).diff(dim=-1) / dx**2
        advection = nu[..., 1:-1] * (s[..., 2:] - s[..., :-2]) / (2 * dx)
        inner = s[..., 1:-1] + h * (diffusion + advection + k * s[..., 1:-1] ** 2)
        s = torch.nn.functional.pad(inner.clamp(-1e6, 1e6), (1, 1))
    return s


def table_of(rows: list[report.Row], study: str) -> tuple[np.ndarray, np.ndarray]:
    """The sizes, and the errors of each operator at each."""
    chosen = [row for row in rows if row["study"] == study]
    sizes = sorted({row["size"] for row in chosen})
    return np.array(sizes), np.array([row["error"] for row in chosen]).reshape(-1, len(sizes))


def order(sizes: np.ndarray, errors: np.ndarray) -> float:
    """The median over operators of the order, fitted without the finest, which the reference is
    near to."""
    return float(
        np.median([-np.polyfit(np.log(sizes[:-1]), np.log(row[:-1]), 1)[0] for row in errors])
    )


def draw(rows: list[report.Row], path: Path) -> None:
    """The three studies side by side."""
    with figures.drawing(path, (12, 3.8)) as figure:
        space, time, paper = figure.subplots(1, 3)
        draw_errors(space, rows, "space", figures.COLOURS[1], "the family's operators")
        draw_errors(space, rows, "space, delta + 0.005", figures.COLOURS[2], "delta + 0.005")
        draw_errors(time, rows, "time", figures.COLOURS[1], "the family's operators")
        for axes, used, size in ((space, 401, "points"), (time, 16, "steps")):
            axes.axvline(
                used,
                color=figures.COLOURS[0],
                linewidth=0.8,
                linestyle=":",
                label=f"as the family is defined: {used}",
            )
            axes.set(
                xlabel=size,
                ylabel="relative error, L2",
                title=f"in {'space' if axes is space else 'time'}",
            )
            axes.set_ylim(bottom=axes.get_ylim()[0] / 100)  # room for the legend
            axes.legend(fontsize=10, loc="lower left")
        draw_stability(paper, [row for row in rows if row["study"] == "explicit Euler"])


def draw_errors(axes: Axes, rows: list[report.Row], study: str, colour: str, label: str) -> None:
    """Thin lines for the operators, a thick one for their median."""
    sizes, errors = table_of(rows, study)
    axes.loglog(sizes, errors.T, color=colour, linewidth=0.4, alpha=0.4)
    label = f"{label}: order {order(sizes, errors):.2f}"
    axes.loglog(sizes, np.median(errors, 0), color=colour, marker="o", markersize=4, label=label)
    axes.set_xticks(sizes, [str(n) for n in sizes])
    axes.minorticks_off()


def draw_stability(axes: Axes, rows: list[report.Row]) -> None:
    """A bar for each time step, the paper's in colour."""
    heights = [100 * row["unstable"] for row in rows]
    bars = axes.bar(
        [f"{row['dt']:g}" for row in rows],
        heights,
        color=[figures.COLOURS[0]] + ["0.7"] * (len(rows) - 1),
    )
    axes.bar_label(bars, fmt="%.0f %%", fontsize=11)
    axes.set(
        xlabel="time step (the paper's: 0.01)",
        ylabel="unstable operators, %",
        ylim=(0, 105),
        title="explicit Euler, 101 points",
    )


def main() -> None:
    rows = [*convergence(), *stability()]
    orders = {
        study: order(*table_of(rows, study)) for study in ("space", "space, delta + 0.005", "time")
    }
    about = {
        "command": "python -m validation.adr_convergence",
        "seed": 0,
        "order": orders,
        **provenance(),
    }
    report.write_rows("results/validation/adr_convergence.json", rows, **about)
    draw(rows, Path("validation/adr_convergence.png"))
    print(
        report.markdown_table([{"study": study, "order": value} for study, value in orders.items()])
    )


if __name__ == "__main__":
    main()
