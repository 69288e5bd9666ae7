"""What the names of columns say: which columns are one function, at which positions, in which unit.

v_0, v_1, ..., u_0, u_1, ...        functions v and u, columns counted
temp_1100, temp_1102.5, ...         a function "temp" at positions 1100, 1102.5
1100, 1102.5, ...                   one function at these positions
temp_1 (degC), load (MW)            units
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..types import TransduceError
from .numerals import DATE, positions

UNIT = re.compile(r"^(?P<rest>.*\S)\s*[(\[](?P<unit>[^()\[\]]*[^()\[\]\d.\s+-][^()\[\]]*)[)\]]$")
NUMBER = r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
NUMBERED = re.compile(
    rf"^(?P<name>.*?[^\d.\s_:=@\[(+-])?(?P<between>[\s_.:=@\[(-]*?)"
    rf"(?P<place>(?:(?<![A-Za-z])[+-])?{NUMBER})[\])]?$"
)
DATED = re.compile(r"^(?P<name>.*?)[\s_.:=@\[(]*(?P<place>\d{4}-\d{2}[-\d:T .]*)[\])]?$")
MEASURED = re.compile(rf"^(?P<place>[+-]?{NUMBER})\s*(?P<unit>[A-Za-zµ°%/^]+\d?)$")
LONGEST = 100  # characters of a name that is taken apart
WHOLE = "values"  # the variable of columns whose names have no text


@dataclass(frozen=True)
class Label:
    """The name of one column, in parts.

    Args:
        name: the text without position and unit.
        place: the position as text, or None.
        unit: the unit, or "".
    """

    name: str
    place: str | None = None
    unit: str = ""


@dataclass(frozen=True)
class Variable:
    """Columns that are one variable.

    Args:
        name: of the variable.
        columns: their numbers, in the order of positions.
        x: positions of shape (points,), or None for a single column or names without numbers.
        unit: of the values, or of the positions if columns are called by these alone.
    """

    name: str
    columns: tuple[int, ...]
    x: np.ndarray | None = None
    unit: str = ""

    @property
    def is_function(self) -> bool:
        return len(self.columns) > 1


def label_of(text: str) -> Label:
    """The parts of a column's name.

    >>> label_of("temp_12 (degC)")
    Label(name='temp', place='12', unit='degC')
    """
    text = text.strip()
    if len(text) > LONGEST:  # no name; patterns take long on it
        return Label(text)
    found = UNIT.match(text)
    rest, unit = (found["rest"], found["unit"]) if found else (text, "")
    if measured := MEASURED.match(rest):
        return Label("", measured["place"], unit or measured["unit"])
    dated = DATED.match(rest)
    if dated and DATE.match(dated["place"].strip()):
        return Label(dated["name"].strip(), dated["place"].strip(), unit)
    if numbered := NUMBERED.match(rest):
        return Label((numbered["name"] or "").strip(), numbered["place"], unit)
    return Label(rest, None, unit)


def without_unit(text: str) -> str:
    """A column's name as users write it, but for the unit.

    >>> without_unit("k1 (N/m)")
    'k1'
    """
    found = UNIT.match(text.strip()) if len(text) <= LONGEST else None
    return found["rest"] if found else text.strip()


def variables_of(names: Sequence[str], columns: Sequence[int], path: object) -> list[Variable]:
    """The variables of a table, in the order of their first columns.

    Args:
        names: of all columns.
        columns: the numbers of those to read.
        path: what messages call the table.
    """
    groups: dict[str, list[int]] = {}
    labels = {j: label_of(names[j]) for j in columns}
    for j, label in labels.items():
        groups.setdefault(names[j] if label.place is None else label.name, []).append(j)
    return [
        _variable(name, members, [labels[j] for j in members], names, path)
        for name, members in groups.items()
    ]


def _variable(
    name: str, members: list[int], labels: list[Label], names: Sequence[str], path: object
) -> Variable:
    unit = labels[0].unit
    if len(members) == 1:
        own = labels[0].name if labels[0].place is None else names[members[0]]
        return Variable(own or WHOLE, tuple(members), unit=unit)
    x = positions([label.place or "" for label in labels])
    if x is None:
        raise TransduceError(
            f"{path} has several columns called {name!r}; expected names with a number for each "
            f"point, like {name}_0, {name}_1. Rename them."
        )
    order = np.argsort(x, kind="stable") if _shuffled(x) else np.arange(len(x))
    if len(np.unique(x)) < len(x):
        ordered = np.sort(x)
        first = ordered[:-1][ordered[1:] == ordered[:-1]][0]
        raise TransduceError(
            f"{path} has two columns of {name or 'values'!r} at {first}; expected one for each "
            "position. Rename or remove one."
        )
    return Variable(name or WHOLE, tuple(members[i] for i in order), x[order], unit)


def _shuffled(x: np.ndarray) -> bool:
    """Whether positions neither ascend nor descend."""
    steps = np.diff(x) > np.zeros(1, np.diff(x).dtype)
    return bool(steps.any() and not steps.all())
