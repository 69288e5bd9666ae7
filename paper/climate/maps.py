"""Figure 6: maps of the globe. Pressure is predicted from temperature for single months. The
examples are the months around the same month a year before.

The pressure of this reanalysis is a reconstruction of rank 20, and errors are measured against
it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch

from transduce.families import load_climate, previous_year

from .. import figures
from ..lab import Lab, Part, Row
from ..names import describe
from .places import GLOBE, REMEMBERING, identities, remembering
from .setting import PASCALS, days, square_errors

INSET = {"lat": [30.0, 70.0], "lon": [-30.0, 50.0]}
FREEZING = 273.15
OURS = f"{REMEMBERING}, elsewhere"


def predicted(lab: Lab, month: str) -> Row:
    """The maps of one month: inputs, truth, prediction and error."""
    whole = load_climate(GLOBE.name)
    at = int(np.flatnonzero(whole.time.astype("datetime64[M]") == np.datetime64(month, "M"))[0])
    examples = days(previous_year(whole, whole.time[at], GLOBE.n), whole)
    T = remembering(lab, GLOBE)
    with torch.no_grad():
        u_hat = T.regress(examples)(torch.from_numpy(whole.v[at : at + 1])).numpy()[0]
    grid = {"lat": whole.lat.tolist(), "lon": whole.lon.tolist()}
    shown = {
        "temperature": (whole.v[at] - FREEZING, "°C"),
        "pressure": (whole.u[at] / PASCALS, "hPa"),
        "told in context": (u_hat / PASCALS, "hPa"),
        "error": ((u_hat - whole.u[at]) / PASCALS, "hPa"),
    }
    panels = [
        {"name": name, "unit": unit, **grid, "values": np.round(f, 1).tolist()}
        for name, (f, unit) in shown.items()
    ]
    error = float(square_errors(u_hat[None], whole.u[at : at + 1], whole.lat)[0])
    return {"title": month, "panels": panels, "inset": INSET, "error": round(error, 3)}


def measure(lab: Lab) -> list[Row]:
    key = {
        "place": describe(GLOBE),
        "steps": lab.scale.region_steps,
        "identity": identities()[OURS],
    }
    return [
        lab.once(partial(predicted, lab, month), month=month, **key) for month in lab.scale.maps
    ]


def table(rows: Sequence[Row]) -> list[Row]:
    return [{"month": row["title"], "error in hPa^2": row["error"]} for row in rows]


def draw(rows: Sequence[Row], folder: Path) -> None:
    figures.maps(rows, folder / "maps")


PART = Part(
    "maps", "maps of the globe, pressure of rank 20", measure, table, draw, regressors=(OURS,)
)
