"""Tables and the figure of benchmarks/wild.py, from its rows alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from benchmarks.wild_measuring import FIVE
from benchmarks.wild_sets import FAILED, MEAN_FLOOR, SHARE_FLOOR, geometric_mean, ratio
from transduce.figures import COLOURS, drawing
from transduce.report import Row, markdown_table, number

WITHIN = 1.1
KINDS = {"solver": COLOURS[1], "measured": COLOURS[0]}


def with_ratios(rows: Sequence[Row]) -> list[Row]:
    """Rows with the best of the five baselines of their set and n, and the ratios to it: `ratio`
    treats errors below 1e-10 as equal, `floored` errors below 1e-6."""
    best: dict[tuple[str, int], Row] = {}
    for row in rows:
        place = row["set"], row["n"]
        if row["regressor"] in FIVE and row["error"] is not None:
            best[place] = min(best.get(place, row), row, key=lambda found: found["error"])
    return [row | _ratios(row, best[row["set"], row["n"]]) for row in rows]


def _ratios(row: Row, best: Row) -> Row:
    error, least = row["error"], best["error"]
    return {
        "best": best["regressor"],
        "best_error": least,
        "ratio": ratio(error, least, MEAN_FLOOR),
        "floored": ratio(error, least, SHARE_FLOOR),
    }


def summary(rows: Sequence[Row], model: str) -> list[Row]:
    """One row for each n: geometric means of the ratios on sets of solvers and on measured sets,
    the share of sets within 1.1, and the worst set."""
    lines = []
    for n, own in by_size(rows, model).items():
        worst = max(own, key=lambda row: row["floored"])
        lines.append(
            {
                "n": n,
                "sets": len(own),
                "solvers": mean_ratio(own, "solver"),
                "measured": mean_ratio(own, "measured"),
                f"within {WITHIN}": f"{np.mean([row['floored'] <= WITHIN for row in own]):.0%}",
                "worst": worst["floored"],
                "worst set": worst["set"],
            }
        )
    return lines


def per_set(rows: Sequence[Row], model: str, n: int) -> list[Row]:
    """One row for each set at one n: our error, the best baseline's, and their ratio."""
    own = by_size(rows, model).get(n, [])
    return [
        {
            "set": row["set"],
            "kind": row["kind"],
            "ours": row["error"],
            "best baseline": row["best_error"],
            "which": row["best"],
            "ratio": row["ratio"],
        }
        for row in sorted(own, key=lambda row: (row["kind"] == "measured", row["set"]))
    ]


def compared(rows: Sequence[Row], names: Sequence[str]) -> list[Row]:
    """One row for each regressor and n: geometric means of its ratios to the best of the five."""
    return [
        {
            "regressor": name,
            "n": n,
            "sets": len(own),
            "failed": sum(row["error"] is None for row in own),
            "solvers": mean_ratio(own, "solver"),
            "measured": mean_ratio(own, "measured"),
        }
        for name in names
        for n, own in by_size(rows, name).items()
    ]


def by_size(rows: Sequence[Row], name: str) -> dict[int, list[Row]]:
    """The rows of one regressor, by n."""
    found: dict[int, list[Row]] = {}
    for row in rows:
        if row["regressor"] == name:
            found.setdefault(row["n"], []).append(row)
    return dict(sorted(found.items()))


def mean_ratio(rows: Sequence[Row], kind: str) -> float | None:
    """None if there is no set of this kind."""
    ratios = [row["ratio"] for row in rows if row["kind"] == kind]
    return geometric_mean(ratios) if ratios else None


def tables(rows: Sequence[Row], models: Sequence[str], others: Sequence[str]) -> str:
    """All tables as Markdown.

    Args:
        rows: with ratios.
        models: ours, then its variants.
        others: further baselines.
    """
    ours, *variants = models
    sizes = sorted({row["n"] for row in rows})
    shown = 20 if 20 in sizes else sizes[-1]
    parts = [
        f"`{ours}`: error divided by that of the best of {', '.join(FIVE)} in hindsight, geometric "
        "means over sets.",
        markdown_table(summary(rows, ours)),
        f"Each set at n = {shown}:",
        markdown_table(per_set(rows, ours, shown)),
    ]
    for title, names in (("Variants", [ours, *variants] if variants else []), ("Others", others)):
        lines = compared(rows, names)
        if lines:
            parts += [f"{title}, in the same units:", markdown_table(lines)]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def draw(rows: Sequence[Row], model: str, path: Path) -> None:
    """One panel for each n, one dot for each set: our error divided by the best baseline's."""
    panels = by_size(rows, model)
    with drawing(path, (3.1 * len(panels) + 0.6, 3.9)) as figure:
        every = np.ravel(figure.subplots(1, len(panels), sharey=True, squeeze=False))
        ratios = [row["floored"] for own in panels.values() for row in own]
        every[0].set_yscale("log")
        low, high = min(0.7, 0.8 * min(ratios)), max(1.5, *ratios)
        every[0].set_ylim(low, high * (high / low) ** 0.2)  # room for the names of the colours
        for axes, (n, own) in zip(every, panels.items(), strict=True):
            _panel(axes, n, sorted(own, key=lambda row: row["floored"]))
        _legend(every[0], {row["kind"] for own in panels.values() for row in own})
        every[0].set_ylabel("our error / best baseline's")
        for axes, own in zip(every, panels.values(), strict=True):
            _name_worst(axes, sorted(own, key=lambda row: row["floored"]))


def _panel(axes: Axes, n: int, own: Sequence[Row]) -> None:
    axes.axhspan(axes.get_ylim()[0], WITHIN, color="0.93", zorder=-1, linewidth=0)
    axes.axhline(1, color="0.35", linewidth=0.8)
    for kind, colour in KINDS.items():
        places = [place for place, row in enumerate(own) if row["kind"] == kind]
        axes.plot(places, [own[place]["floored"] for place in places], "o", color=colour, ms=4.5)
    within = np.mean([row["floored"] <= WITHIN for row in own])
    axes.set_title(f"n = {n}: {within:.0%} within {WITHIN}")
    axes.set(xlabel=f"{len(own)} sets, sorted", xlim=(-1.5, len(own) + 0.5))
    axes.set_xticks([])
    low, high = axes.get_ylim()
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 300 * low else (1,)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _legend(axes: Axes, kinds: set[str]) -> None:
    words = {"solver": "from solvers", "measured": "measured"}
    for line, kind in enumerate(kind for kind in KINDS if kind in kinds):
        axes.annotate(
            words[kind], (0.96, 0.05), (0, 15 * line), "axes fraction", "offset points",
            color=KINDS[kind], ha="right", va="bottom",
        )  # fmt: skip


def _name_worst(axes: Axes, own: Sequence[Row]) -> None:
    worst = own[-1]
    failed = " (failed)" if worst["floored"] == FAILED else f", {number(worst['floored'])}"
    label = f"{worst['set']}{failed}"
    axes.annotate(
        label, (len(own) - 1, worst["floored"]), (4, 7), "data", "offset points",
        color=KINDS[worst["kind"]], ha="right", va="bottom",
    )  # fmt: skip
