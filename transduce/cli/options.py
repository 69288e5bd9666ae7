"""Options that several commands share, their parsers, and the family that they describe."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import typer

Force = Annotated[bool, typer.Option("--force", help="Replace the output if it exists.")]
Seed = Annotated[int, typer.Option(min=0, help="Of the draws.")]


def numbers(text: str) -> list[int]:
    """The numbers in "5,10,20"."""
    try:
        numbers = sorted({int(part) for part in text.split(",")})
    except ValueError:
        numbers = [0]
    if numbers[0] < 1:
        raise typer.BadParameter(
            f"{text!r}; expected numbers from 1 with commas between, like 5,10,20."
        )
    return numbers


def _range(text: str) -> float | tuple[float, float]:
    """The number in "0.3", or both ends of the range "0.1,0.5"."""
    try:
        low, high = map(float, text.split(",")) if "," in text else (float(text), None)
    except ValueError:
        raise typer.BadParameter(
            f"{text!r}; expected a number, or two with a comma between, like 0.1,0.5."
        ) from None
    return low if high is None else (low, high)


def _draws(what: str) -> Any:
    """An option that takes a number, or a range that each operator draws its own number from."""
    return typer.Option(parser=_range, metavar="X|LOW,HIGH", help=f"burgers: {what}.")


KMax = Annotated[
    float | None, typer.Option(min=0, help="adr: k is drawn from [0, this]; default: 0.3.")
]
LengthScale = Annotated[
    float | None,
    typer.Option(min=0.01, help="adr: of the coefficients delta and nu; default: 0.2."),
]
Time = Annotated[float | None, typer.Option(min=0, help="adr: the target time; default: 1.")]
Amplitude = Annotated[
    Any, _draws("the standard deviation of each component at time 0; default: 0.1")
]
Viscosity = Annotated[Any, _draws("the viscosity; default: 0.1,0.5")]
Start = Annotated[Any, _draws("the time of v; default: 0")]
Increment = Annotated[Any, _draws("the time from v to u; default: 10")]
Resolution = Annotated[
    int | None,
    typer.Option(
        min=1,
        help=(
            "burgers: points a side to solve on, at least; 128 for amplitudes like "
            "0.3; default: 64."
        ),
    ),
]


def as_flags(options: Iterable[str]) -> str:
    """The names of options as the command line spells them."""
    return ", ".join(f"--{name.replace('_', '-')}" for name in options)


def built(family: str, options: dict[str, dict[str, Any]]) -> Any:
    """The family of this name, with the options that were given.

    Args:
        family: "adr", "burgers", "random" or "random_fields".
        options: for each family, its options; None means not given.
    """
    from ..families import (
        AdvectionDiffusionReaction,
        Burgers2d,
        RandomFieldOperators,
        RandomOperators,
    )
    from ..types import TransduceError

    known = {
        "adr": AdvectionDiffusionReaction,
        "burgers": Burgers2d,
        "random": RandomOperators,
        "random_fields": RandomFieldOperators,
    }
    if family not in known:
        raise TransduceError(
            f"no family is called {family!r}; known: {', '.join(known)}. Name one of these."
        )
    for other in options:
        if other != family and (given := only_given(options[other])):
            flags, own = as_flags(given), as_flags(options.get(family, {})) or "none"
            raise TransduceError(
                f"{flags} of the family {other} was given for {family}; expected options of its "
                f"own, {own}. Leave it out."
            )
    return known[family](**only_given(options.get(family, {})))


def only_given(options: dict[str, Any]) -> dict[str, Any]:
    """The options that were given."""
    return {name: value for name, value in options.items() if value is not None}
