"""Where experiments are run: each measurement is made once, kept as soon as it is made, and found
again by its key.

A `Part` is one table or figure. It measures rows through a `Lab`, and shows them as a table and as
figures; what it shows comes from the rows alone. A run that was killed resumes at the first missing
measurement."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from transduce import report
from transduce.files import provenance, replacing
from transduce.settings import Json
from transduce.types import TransduceError

Row = dict[str, Any]
QUICK_RUN = "*A quick run: its numbers mean little. Measure in full without --quick.*\n\n"


class Ledger:
    """Values by key in a file of JSON lines, one more line for each value; a line that was cut
    short is as if it were not there."""

    def __init__(self, path: Path):
        self.path = path
        self._known: dict[str, Row] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        text = path.read_text() if path.exists() else ""
        self._torn = not text.endswith("\n") if text else False
        for line in text.splitlines():
            with suppress(ValueError):
                entry = json.loads(line)
                self._known[_name(entry["key"])] = entry

    def __contains__(self, key: Row) -> bool:
        return _name(key) in self._known

    def __getitem__(self, key: Row) -> Row:
        """{key, seconds, value}"""
        return self._known[_name(key)]

    def add(self, key: Row, value: Any, seconds: float) -> None:
        """Keep a value, and the seconds that it took, on the disk before this returns."""
        entry = {"key": key, "seconds": seconds, "value": value}
        with self.path.open("ab", buffering=0) as file:
            file.write(b"\n" * self._torn + json.dumps(entry).encode() + b"\n")
            os.fsync(file.fileno())
        self._torn = False
        self._known[_name(key)] = json.loads(json.dumps(entry))


def _name(key: Row) -> str:
    return json.dumps(key, sort_keys=True)


@dataclass
class Lab:
    """What a part measures with.

    Attributes:
        scale: how much to measure.
        work: folder of trainings and of values that were measured.
        part: name of the part.
        seconds: time that all measurements took, in this run and in earlier ones.
    """

    scale: Any
    work: Path
    part: str = ""
    seconds: float = 0.0
    _ledgers: dict[str, Ledger] = field(default_factory=dict)

    def of(self, part: str) -> Lab:
        """The lab of another part, for what it measures too."""
        return self if part == self.part else Lab(self.scale, self.work, part)

    def once(self, compute: Callable[[], Any], **key: Any) -> Any:
        """What `compute` returns, as JSON holds it, or what it returned for the same key before."""
        if self.part not in self._ledgers:
            self._ledgers[self.part] = Ledger(self.work / f"{self.part}.jsonl")
        ledger = self._ledgers[self.part]
        if key not in ledger:
            start = time.perf_counter()
            value = compute()
            ledger.add(key, value, time.perf_counter() - start)
            what = ", ".join(f"{name} {value}" for name, value in key.items() if name != "identity")
            print(f"  {what}: {ledger[key]['seconds']:.1f} s", file=sys.stderr, flush=True)
        self.seconds += ledger[key]["seconds"]
        return ledger[key]["value"]


@dataclass(frozen=True)
class Part:
    """One table or figure of an experiment.

    Attributes:
        name: of its files.
        title: printed while it is measured.
        measure: returns the rows.
        table: turns the rows into those of the Markdown table; None for no table.
        draw: draws the figures of the rows into a folder; None for no figures.
        regressors: names of those that its rows hold for; None for all of the experiment.
    """

    name: str
    title: str
    measure: Callable[[Lab], list[Row]]
    table: Callable[[Sequence[Row]], list[Row]] | None = None
    draw: Callable[[Sequence[Row], Path], None] | None = None
    regressors: tuple[str, ...] | None = None

    def settings(self, scale: Any, identities: Mapping[str, Json]) -> Row:
        """What the rows hold for: how much was measured, and of which regressors, each with what
        identifies it."""
        names = identities if self.regressors is None else self.regressors
        return json.loads(
            json.dumps({**asdict(scale), "regressors": {name: identities[name] for name in names}})
        )

    def differences(self, known: Row, scale: Any, identities: Mapping[str, Json]) -> list[str]:
        """Which settings of a result differ from the present ones. A result that does not have a
        field of the scale was measured with its default."""
        present, unset = self.settings(scale, identities), _defaults(scale)
        return [
            name
            for name in present | known
            if known.get(name, unset.get(name)) != present.get(name)
        ]

    def show(self, result: Row, folder: Path, quick: bool) -> None:
        """Write the table and the figures of a result; the table of a quick run says so first."""
        if self.table is not None:
            with replacing(folder / f"{self.name}.md") as partial:
                partial.write_text(
                    QUICK_RUN * quick + report.markdown_table(self.table(result["rows"]))
                )
        if self.draw is not None:
            self.draw(result["rows"], folder)


def _defaults(scale: Any) -> Row:
    """The defaults of a scale's fields, as JSON holds them."""
    defaults = {f.name: f.default for f in fields(scale) if f.default is not MISSING}
    return json.loads(json.dumps(defaults))


def reproduce(
    experiment: str,
    parts: Sequence[Part],
    scale: Any,
    out: Path,
    work: Path,
    regressors: Mapping[str, Json],
    force: bool = False,
) -> None:
    """Measure every part, and write its rows, table and figures to `out`. For a part that was
    measured there with the same settings, only table and figures are written again.

    Args:
        experiment: its name.
        parts: what to measure.
        scale: how much to measure.
        out: folder of results.
        work: folder of trainings and of values that were measured.
        regressors: what identifies each of them, such as a checksum of its weights. Measurements
            hold for these alone.
        force: whether to measure parts again that were measured with other settings.
    """
    origin = provenance()  # of the code that measures, whatever is committed meanwhile
    known = {
        part.name: _known(out / f"{part.name}.json", part, scale, regressors, force)
        for part in parts
    }
    for place, part in enumerate(parts, 1):
        print(f"[{place}/{len(parts)}] {part.title}", file=sys.stderr, flush=True)
        result = known[part.name]
        if result is None:
            lab = Lab(scale, work, part.name)
            rows = part.measure(lab)
            command = (
                f"transduce reproduce {experiment}{' --quick' if scale.quick else ''} "
                f"--only {part.name}"
            )
            about = {
                "command": command,
                "seed": scale.seed,
                "seconds": round(lab.seconds, 1),
                **origin,
            }
            report.write_rows(
                out / f"{part.name}.json", rows, settings=part.settings(scale, regressors), **about
            )
            result = {"rows": json.loads(json.dumps(rows))}
        part.show(result, out, scale.quick)


def _known(
    path: Path, part: Part, scale: Any, regressors: Mapping[str, Json], force: bool
) -> Row | None:
    """The result at `path`, if there is one to keep."""
    if force or not path.exists():
        return None
    result = json.loads(path.read_text())
    other = part.differences(result.get("settings") or {}, scale, regressors)
    if other:
        raise TransduceError(
            f"{path} was measured with other settings ({', '.join(other)}); expected the present "
            "ones. Give --force to measure again what changed, or --out for another folder."
        )
    return result
