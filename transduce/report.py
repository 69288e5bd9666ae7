"""Rows -> tables. Nothing here touches a model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from .files import replacing

Row = dict[str, Any]


def number(value: Any) -> str:
    """A number as a table shows it: 4.6e-3, 0.52, 12.3, 50; nothing for None.

    >>> number(0.00456)
    '4.6e-3'
    """
    if not isinstance(value, float):
        return "" if value is None else str(value)
    if value == 0 or 0.1 <= abs(value) < 999.5:
        return f"{value:.3g}"
    mantissa, _, exponent = f"{value:.1e}".partition("e")
    return f"{mantissa}e{int(exponent)}" if exponent else mantissa


def markdown_table(rows: Sequence[Row]) -> str:
    """The rows as a Markdown table, a column for each key of the first."""
    columns = list(rows[0])
    lines = [
        columns,
        ["---"] * len(columns),
        *([number(row[column]) for column in columns] for row in rows),
    ]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines) + "\n"


def rich_table(rows: Sequence[Row], title: str | None = None) -> Table:
    """The rows as a table for the terminal, a column for each key of the first."""
    table = Table(title=title)
    for column, value in rows[0].items():
        table.add_column(str(column), justify="left" if isinstance(value, str) else "right")
    for row in rows:
        table.add_row(*(number(row[column]) for column in rows[0]))
    return table


def by_regressor(rows: Sequence[Row], value: str = "mean") -> list[Row]:
    """One row for each regressor (and condition, if they have one) with a column for each n, from
    `summarise`d rows."""
    lines: dict[tuple[str, ...], Row] = {}
    for row in rows:
        labels: Row = {key: row[key] for key in ("condition", "regressor") if key in row}
        lines.setdefault(tuple(labels.values()), labels)[f"n = {row['n']}"] = row[value]
    return list(lines.values())


def write_rows(path: Any, rows: Sequence[Row], **about: Any) -> None:
    """Write rows as JSON, one a line, with what `about` says of them: the command, the seed,
    versions, the machine."""
    head = "".join(f" {json.dumps(name)}: {json.dumps(value)},\n" for name, value in about.items())
    lines = ",\n".join(f"  {json.dumps(row)}" for row in rows)
    with replacing(path) as partial:
        partial.write_text(f'{{\n{head} "rows": [\n{lines}\n ]\n}}\n')


def results_table(result: Mapping[str, Any]) -> str:
    """The Markdown table of a results file: mean / median, regressors by n, where it holds
    evaluations, else its rows as they are."""
    rows = result["rows"]
    if "regressor" not in rows[0]:
        return markdown_table(
            [
                {key: value for key, value in row.items() if not isinstance(value, list)}
                for row in rows
            ]
        )
    return markdown_table(
        by_regressor(
            [row | {"both": f"{number(row['mean'])} / {number(row['median'])}"} for row in rows],
            "both",
        )
    )
