"""The figures of docs/general.md: `python examples/general_figures.py [folder]`.

They are drawn from the package vega_datasets and from random operators, in about a minute.
"""

import sys
import warnings
from pathlib import Path

import numpy as np
import torch
from demo import N, draw_days
from PIL import Image
from temperatures import HOURS, split, temperatures

import transduce
from transduce.families.random_operators import HELD_OUT
from transduce.figures import COLOURS, drawing
from transduce.random_fields import generator_for

VERMILION = COLOURS[0]
X = np.linspace(0, 1, 101)
SHOWN = ("mean", "identity", "linear", "rbf", "window", "readout")
LEAST = 1e-9  # errors below are drawn here
COLD = (300, 110)  # days of the year between which the examples of `season` lie
SIZES = {5: COLOURS[4], 20: COLOURS[1], 50: "black"}
TASKS = 40


def days(path):
    """Held-out days of San Francisco from those of Seattle."""
    day, v, u = temperatures()
    rows, rest = split(day, N, seed=0)
    O = transduce.regress(v[rows], u[rows], x=HOURS)
    draw_days(O, day, v, u, rows, rest, path)


def operators(n):
    """Smooth random curves and their images under five operators."""
    rng = np.random.default_rng(0)
    K = np.exp(-np.square((X[:, None] - X) / 0.15) / 2) + 1e-8 * np.eye(len(X))
    v, w = rng.standard_normal((2, n, len(X))) @ np.linalg.cholesky(K).T
    return v, {
        "v(x)²": v**2,
        "v(x - 0.1)": np.stack([np.interp(X - 0.1, X, f) for f in v]),
        "∫ v dy from 0 to x": np.cumsum(v, 1) / len(X),
        "∫ k(x, y) sin v(y) dy": np.sin(v) @ np.exp(-np.abs(X[:, None] - X) / 0.1) / 10,
        "unrelated to v": w,
    }


def answers(path, n=10):
    """Leave-one-out errors of some answers, and of their weighted sum."""
    v, images = operators(n)
    with drawing(path, (11.5, 3.4)) as figure:
        panels = figure.subplots(1, len(images), sharex=True, sharey=True)
        for axes, (name, u) in zip(panels, images.items(), strict=True):
            O = transduce.regress(v, u, x=X)
            each = O.engine.answers
            unit = float(each["mean"].residual.square().sum())
            errors = [float(each[k].residual.square().sum()) / unit for k in SHOWN]
            both = float(O.engine.residuals.square().sum()) / unit
            axes.axvline(max(both, LEAST), color=VERMILION, linewidth=5, alpha=0.6)
            axes.plot(np.maximum(errors, LEAST), SHOWN, "o", color="0.2", markersize=7)
            axes.set(xscale="log", xlim=(LEAST / 5, 8), ylim=(len(SHOWN) - 0.5, -0.5))
            axes.set_xticks([1e-9, 1e-6, 1e-3, 1])
            axes.set_title(f"u = {name}" if name[0] != "u" else f"u {name}")
            axes.grid(axis="y")
        figure.supxlabel(
            f"leave-one-out error from {n} examples; line: weighted answer", fontsize=12
        )


def season(path):
    """Answers in seasons that the examples do not know: band and novelty."""
    day, v, u = temperatures()
    cold = np.flatnonzero((day > COLD[0]) | (day < COLD[1]))
    rows = np.random.default_rng(0).choice(cold, N, replace=False)
    O = transduce.regress(v[rows], u[rows], x=HOURS)
    mean, low, high = (part[:, 15] for part in O.predict(v, band=0.9))
    with drawing(path, (7.5, 4.8)) as figure:
        above, below = figure.subplots(2, sharex=True, height_ratios=(2, 1))
        above.plot(day, u[:, 15], color="black", linewidth=3.4, alpha=0.4, label="truth")
        above.fill_between(
            day, low, high, color=VERMILION, alpha=0.25, linewidth=0, label="90 % band"
        )
        above.plot(day, mean, color=VERMILION, linewidth=1.6, label="prediction")
        above.plot(day[rows], u[rows, 15], "o", color="0.2", markersize=4, label=f"{N} examples")
        above.set_ylabel("San Francisco\n15 h, °C")
        above.legend(ncols=2, fontsize=10)
        new = np.setdiff1d(np.arange(len(day)), rows)
        below.plot(day[new], O.novelty(v[new]), ".", color="0.2", markersize=3)
        below.axhline(5, color="0.5", linewidth=0.8, linestyle=(0, (4, 2)))
        below.annotate("warned of above 5", (3, 5), (0, 3), textcoords="offset points", color="0.4")
        below.set(yscale="log", ylabel="novelty", xlabel="day of the year")
        below.set(xlim=(1, 365), ylim=(0.2, 150))
        below.set_yticks([1, 10, 100], ["1", "10", "100"])
        figure.align_ylabels()


def expected(path):
    """The error that the report expects against that of new queries, on mechanisms that the
    read-out was not trained on."""
    family = transduce.families.RandomOperators(HELD_OUT)
    with drawing(path, (4.9, 4.6)) as figure:
        axes = figure.add_subplot()
        axes.plot([1e-6, 3], [1e-6, 3], color="0.8", linewidth=1.2, zorder=0)
        for n, colour in SIZES.items():
            points = []
            for k in range(TASKS):
                task = family.sample_task(n, 30, generator_for("test", 1000 + k))
                v, u, q, w = (
                    f.numpy()
                    for f in (task.examples.v, task.examples.u, task.queries.v, task.queries.u)
                )
                O = transduce.regress(v, u)
                error = np.square(O(q) - w).sum() / np.square(w - u.mean(0)).sum()
                points.append(np.clip((O.report().error, error), 1e-6, 3))
            axes.plot(
                *np.transpose(points),
                "o",
                color=colour,
                markersize=5,
                alpha=0.7,
                label=f"n = {n}",
                clip_on=False,
            )
        axes.set(xscale="log", yscale="log", xlabel="expected by the report")
        axes.set(ylabel="measured on 30 new queries")
        axes.set(xlim=(1e-6, 3), ylim=(1e-6, 3), aspect="equal")
        axes.legend()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/figures")
    for name, draw in {
        "temperatures": days,
        "general_answers": answers,
        "general_season": season,
        "general_expected": expected,
    }.items():
        path = folder / name
        draw(path)
        path.with_suffix(".svg").unlink()
        Image.open(path.with_suffix(".png")).convert("RGB").quantize(96).save(
            path.with_suffix(".png"), optimize=True
        )
