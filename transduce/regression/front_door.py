"""`regress`: read the examples, choose the model, condition it."""

from __future__ import annotations

from ..inputs import read_pairs
from ..types import TransduceError
from .operator import RegressedOperator

GENERAL = "general"
UNITS = ("given", "examples")


def regress(
    v: object,
    u: object,
    *,
    x: object = None,
    x_v: object = None,
    x_u: object = None,
    channels: object = None,
    parameters: object = None,
    groups: object = None,
    missing: str = "raise",
    model: str = GENERAL,
    units: str = "given",
) -> RegressedOperator:
    """The operator that maps v to u, regressed from examples in any units and on any grids.

    Args:
        v: inputs, one row for each function: array, list, tensor, DataFrame or DataArray of shape
            (n, points), or (n, channels, points) with fewer than 8 channels. Rows of fewer than 8
            numbers without a grid are plain numbers. None if the parameters are the inputs.
        u: outputs, u[i] being the image of v[i].
        x: positions of the points of v and u, in your units, ascending or descending.
        x_v: positions of the points of v, in place of x.
        x_u: positions of the points of u, in place of x.
        channels: True, False or the number of channels, if shapes alone would be misread.
        parameters: numbers or categories that come with each pair, shape (n,) or (n, p).
        groups: a label for each pair. Errors are measured by leaving out whole groups.
        missing: "raise", or "drop" to leave out pairs with missing values.
        model: "general", a bundled model of a family ("adr"), a .safetensors file, or a baseline.
        units: "given"; "examples" divides v and u by their root mean squares, for family models.

    >>> O = regress(v, u, x=wavelengths)      # v, u of shape (20, 700)
    >>> O(v_query).shape                      # v_query of shape (5, 700)
    (5, 700)
    """
    _check_units(units, model)
    pairs = read_pairs(
        v,
        u,
        x=x,
        x_v=x_v,
        x_u=x_u,
        channels=channels,
        parameters=parameters,
        groups=groups,
        missing=missing,
    )
    return RegressedOperator(pairs.in_own_units() if units == "examples" else pairs, model)


def _check_units(units: str, model: str) -> None:
    if units not in UNITS:
        raise TransduceError(
            f"units={units!r}; expected {' or '.join(map(repr, UNITS))}. Name one of these."
        )
    if units == "examples" and model == GENERAL:
        raise TransduceError(
            "units='examples' with the general model; expected a model of a family, such as "
            "model='adr'. The general model does not depend on units: leave out units."
        )
