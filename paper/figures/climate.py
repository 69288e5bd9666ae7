"""Errors of pressure over the years and against the days of a context, and maps of the globe
(figure 6)."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
from matplotlib.patches import Rectangle
from matplotlib.patheffects import withStroke
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from transduce.figures.labels import label_ends
from transduce.figures.style import Number, drawing, looks
from transduce.report import Row

from .curves import panels_beside
from .fields import DIVERGING

ROUND = 360.0  # degrees
SHADES = {"temperature": "cividis", "error": DIVERGING}  # viridis for all others
FRAME: dict[str, Any] = {"edgecolor": "0.1", "linewidth": 1.2}
WIDE = 3.1  # inches of a column of maps
Region = Mapping[str, Sequence[Number]]  # lat: south and north, lon: west and east


def drift(rows: Sequence[Row], path: Any, window: int, ours: tuple[str, ...]) -> None:
    """Draw the error of each regressor over the years, `ours` stronger than the others; where it is
    unknown, the line is broken.

    rows: {regressor, date, error}, the error a rolling mean over `window` days in hPa^2.
    """
    names = list(dict.fromkeys(row["regressor"] for row in rows))
    with drawing(path, (7.2, 3.9)) as figure:
        axes = figure.add_subplot()
        ends = []
        for name, look in looks(sorted(names, key=lambda name: name not in ours)).items():
            own = sorted(
                (row for row in rows if row["regressor"] == name), key=lambda row: row["date"]
            )
            dates = date2num([np.datetime64(row["date"]) for row in own])
            errors = np.array([row["error"] for row in own], dtype=float)
            axes.plot(
                dates,
                errors,
                **replace(look, width=2.8 if name in ours else 1.2).line | {"marker": ""},
            )
            known = np.flatnonzero(np.isfinite(errors))
            if known.size:
                ends.append(
                    (float(dates[known[-1]]), float(errors[known[-1]]), look.label, look.colour)
                )
        _square_errors(axes)
        axes.set_ylabel(f"mean squared error\nof {window} days, hPa²")
        years = AutoDateLocator(minticks=3, maxticks=8)
        axes.xaxis.set_major_locator(years)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(years))
        label_ends(axes, ends)


def error_against(rows: Sequence[Row], x: str, path: Any, label: str) -> None:
    """Draw the mean error of each regressor against the column x, which `label` explains, a panel
    for each context.

    rows: {regressor, context, mean, low, high} and x, in hPa^2.
    """
    contexts = {row["context"] for row in rows}
    with drawing(path, (max(3.3 * len(contexts), 4.6), 4.1)) as figure:
        for axes in panels_beside(figure, rows, "context", x):
            _square_errors(axes)
            axes.set_xlabel(textwrap.fill(label, 36))
        figure.axes[0].set_ylabel("mean squared error, hPa²")


def maps(rows: Sequence[Row], path: Any) -> None:
    """Draw fields on the globe, a line for each row and a column for each panel, and below each map
    a part of it, enlarged.

    rows: {title, panels: [{name, unit, lat, lon, values: (lat, lon)}], inset: {lat: [south, north],
    lon: [west, east]}}. A column has one scale of colours, and columns of one unit share it; errors
    have their own, with zero in its middle. Coastlines are drawn where cartopy has them."""
    first, coasts = rows[0]["panels"], _coastlines()
    regions = [region for row in rows for region in (_edges(row["panels"][0]), row["inset"])]
    heights = [min(np.ptp(region["lat"]) / np.ptp(region["lon"]), 0.7) for region in regions]
    with drawing(path, (WIDE * len(first) + 0.7, 0.96 * WIDE * sum(heights) + 1.3)) as figure:
        grid = figure.subplots(len(regions), len(first), squeeze=False, height_ratios=heights)
        for column, panel in enumerate(first):
            norm, levels = _scale(rows, panel)
            for row, axes, inset in zip(rows, grid[::2, column], grid[1::2, column], strict=True):
                shown = row["panels"][column]
                image = _map(axes, shown, _edges(shown), norm, levels, coasts)
                _degrees(axes)
                _map(inset, shown, row["inset"], norm, levels, coasts)
                _outline(axes, inset, row["inset"])
            grid[0, column].set_title(panel["name"])
            grid[0, column].tick_params(labeltop=True)
            below: dict[str, Any] = {
                "ax": list(grid[:, column]),
                "location": "bottom",
                "pad": 0.02,
                "panchor": False,
            }
            figure.colorbar(image, aspect=28, shrink=0.9, label=panel["unit"], **below)
        for row, axes in zip(rows, grid[::2, 0], strict=True):
            axes.set_ylabel(row["title"])
            axes.tick_params(labelleft=True)


def _square_errors(axes: Axes) -> None:
    """A logarithmic y with plain numbers, more of them where it is short. Call it after the lines
    are drawn."""
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    axes.yaxis.set_major_locator(
        LogLocator(subs=(1, 1.5, 2, 3, 5, 7) if high < 30 * low else (1, 2, 5))
    )
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_locator(NullLocator())
    axes.grid(True, axis="y")


def _scale(rows: Sequence[Row], like: Mapping[str, Any]) -> tuple[Normalize, np.ndarray]:
    """The range of all panels that are read like this one, and where lines are drawn in it."""
    kind = (like["unit"], like["name"] == "error")
    alike = [
        panel["values"]
        for row in rows
        for panel in row["panels"]
        if (panel["unit"], panel["name"] == "error") == kind
    ]
    low, high = min(np.min(values) for values in alike), max(np.max(values) for values in alike)
    if like["name"] == "error":
        high = max(-low, high)
        low = -high
    levels = np.asarray(MaxNLocator(7).tick_values(low, high))
    return Normalize(low, high), levels[levels != 0] if like["name"] == "error" else levels


def _edges(panel: Mapping[str, Any]) -> Region:
    """The region of a panel, to the edges of its outermost cells."""
    lat, lon = np.sort(panel["lat"]), np.asarray(panel["lon"])
    down, along = (lat[1] - lat[0]) / 2, (lon[1] - lon[0]) / 2
    return {
        "lat": [max(lat[0] - down, -90.0), min(lat[-1] + down, 90.0)],
        "lon": [lon[0] - along, lon[-1] + along],
    }


def _map(
    axes: Axes,
    panel: Mapping[str, Any],
    region: Region,
    norm: Normalize,
    levels: np.ndarray,
    coasts: Sequence[np.ndarray],
) -> Any:
    """The field in this region, across the seam where it goes all the way round."""
    lat, lon, values = (np.asarray(panel[name], dtype=float) for name in ("lat", "lon", "values"))
    step = lon[1] - lon[0]
    if lon[-1] + step - lon[0] > ROUND - step / 2:
        lon, values = np.concatenate([lon - ROUND, lon, lon + ROUND]), np.tile(values, 3)
    west, east = region["lon"]
    near = (lon > west - 2 * step) & (lon < east + 2 * step)
    lon, values = lon[near], values[:, near]
    shades = SHADES.get(panel["name"], "viridis")
    image = axes.pcolormesh(
        lon, lat, values, norm=norm, cmap=shades, shading="nearest", rasterized=True
    )
    within = levels[(levels > values.min()) & (levels < values.max())]
    if within.size:
        axes.contour(
            lon, lat, values, within, colors="0.1", linewidths=0.5, linestyles="-", alpha=0.6
        )
    for coast in coasts:
        for along in (0.0, ROUND):
            axes.plot(coast[:, 0] + along, coast[:, 1], color="0.6", linewidth=0.8)
    axes.set(xlim=region["lon"], ylim=region["lat"], aspect="equal", anchor="N")
    axes.spines[:].set_visible(True)
    return image


def _outline(axes: Axes, inset: Axes, region: Region) -> None:
    """Frame an inset, and its place on the map: in two parts if it is across the seam."""
    inset.set(xticks=[], yticks=[])
    inset.spines[:].set(edgecolor=FRAME["edgecolor"], linewidth=FRAME["linewidth"])
    (south, north), (west, east) = region["lat"], region["lon"]
    for along in (-ROUND, 0.0, ROUND):
        halo = [withStroke(linewidth=2.6, foreground="white")]
        axes.add_patch(
            Rectangle(
                (west + along, south),
                east - west,
                north - south,
                fill=False,
                zorder=4,
                path_effects=halo,
                **FRAME,
            )
        )


def _degrees(axes: Axes) -> None:
    """Ticks of longitude above and of latitude to the left, without their names."""
    for axis, name in ((axes.xaxis, _longitude), (axes.yaxis, _latitude)):
        axis.set_major_locator(MaxNLocator(5, steps=[1, 3, 6, 9, 10]))
        axis.set_major_formatter(name)
    axes.tick_params(
        top=True, bottom=False, labelbottom=False, labelleft=False, labelsize=10, length=3
    )


def _longitude(degrees: float, _: Any = None) -> str:
    degrees = (degrees + ROUND / 2) % ROUND - ROUND / 2
    return f"{abs(degrees):g}°{'' if degrees in (0, -ROUND / 2) else 'E' if degrees > 0 else 'W'}"


def _latitude(degrees: float, _: Any = None) -> str:
    return f"{abs(degrees):g}°{'' if degrees == 0 else 'N' if degrees > 0 else 'S'}"


def _coastlines() -> list[np.ndarray]:
    """Longitudes and latitudes of the coastlines that cartopy keeps on this machine; none are
    downloaded."""
    if find_spec("cartopy") is None:
        return []
    config = import_module("cartopy").config
    files = [
        Path(config[folder], "shapefiles", "natural_earth", "physical", "ne_110m_coastline.shp")
        for folder in ("pre_existing_data_dir", "data_dir")
    ]
    kept = next((file for file in files if file.is_file()), None)
    if kept is None:
        return []
    shapes = import_module("cartopy.io.shapereader").Reader(kept).geometries()
    return [
        np.asarray(line.coords)[:, :2]
        for shape in shapes
        for line in getattr(shape, "geoms", [shape])
    ]
