"""Table 2: the error at n = 100 of two target times and two amplitudes, over unseen operators; and beside networks that are fitted.

A network fitted to the examples of each operator takes minutes for what a regression does at once. One that is fitted to the whole family
and sees no examples shows what the examples buy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product

from ..lab import Lab, Part, Row
from ..measuring import Remembered, errors
from .setting import AMPLITUDES, FAMILY_WIDE, FITTED, INSTANT, MODELS, TIMES, family_of, family_wide, identity, regressor

Measured = Callable[[str, int], list[Row]]


def conditions(lab: Lab) -> Iterator[tuple[Row, Measured]]:
    """Amplitudes and target times, and what measures a regressor of some name on so many operators of it."""
    for amplitude, t in product(AMPLITUDES, TIMES):
        condition = {"amplitude": amplitude, "t": t}
        yield condition, partial(_measured, lab, condition, Remembered(family_of(amplitude, t), lab.scale.table_n))


def _measured(lab: Lab, condition: Row, family: Remembered, name: str, operators: int) -> list[Row]:
    R = family_wide(lab, **condition) if name == FAMILY_WIDE else regressor(lab, name)
    return [condition | row for row in errors(lab, name, R, identity(name), family, (lab.scale.table_n,), operators, **condition)]


def measure(lab: Lab) -> list[Row]:
    return [row for _, measured in conditions(lab) for name in (*MODELS, *INSTANT) for row in measured(name, lab.scale.operators)]


def measure_networks(lab: Lab) -> list[Row]:
    names = (FITTED, FAMILY_WIDE, *MODELS)
    return [row for _, measured in conditions(lab) for name in names for row in measured(name, lab.scale.fitted)]


def table(rows: Sequence[Row]) -> list[Row]:
    lines: dict[str, Row] = {}
    for row in rows:
        line = lines.setdefault(row["regressor"], {"regressor": row["regressor"], "operators": row["operators"]})
        line[f"amplitude {row['amplitude']:g}, t = {row['t']:g}"] = row["mean"]
    seconds = {row["regressor"]: row["seconds"] for row in rows}
    return [{**line, "seconds": seconds[name]} for name, line in lines.items()]


PART = Part("accuracy", "error at n = 100 (table 2)", measure, table)
NETWORKS_PART = Part("networks", "beside networks that are fitted", measure_networks, table)
