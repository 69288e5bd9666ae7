"""transduce regress | export: regress the operator of example pairs, then apply it or write it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from .. import domains
from .options import Force
from .printing import say

Examples = Annotated[
    Path, typer.Option(help=f"Example pairs, by the model's domain. {domains.reads()}")
]
Model = Annotated[
    str, typer.Option(help="A bundled model, a baseline such as rbf, or a .safetensors file.")
]
At = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Answer on a uniform grid of this many points; default: that of the examples' u.",
    ),
]
Inputs = Annotated[
    str | None,
    typer.Option("--v", help="The variable of inputs; default: v, or the domain's usual names."),
]
Outputs = Annotated[
    str | None,
    typer.Option(
        "--u",
        help="The variable of outputs, or single columns like y1,y2; default: u, or the domain's "
        "usual names.",
    ),
]
Positions = Annotated[
    str | None,
    typer.Option("--x", help="The variable of positions; default: x, or x_v and x_u."),
]
Band = Annotated[
    float | None,
    typer.Option(help="Write u_low and u_high too, which hold this share of the values, like 0.9."),
]
Missing = Annotated[
    str | None,
    typer.Option(help="'drop' leaves out pairs with missing values; default: they are refused."),
]
OutputsFile = Annotated[
    Path | None,
    typer.Option("--outputs", help="The file of the outputs u, if examples are inputs v alone."),
]
InColumns = Annotated[
    bool,
    typer.Option("--columns", help="Functions are the columns of the arrays, not the rows."),
]
Parameters = Annotated[
    str | None,
    typer.Option(
        help="The single columns of a table that are parameters: names with commas between, or "
        "'all'; default: all of them if there is no v."
    ),
]
WithReport = Annotated[
    bool,
    typer.Option("--report", help="Print expected errors, those of baselines, and warnings."),
]


def regress(
    examples: Examples,
    queries: Annotated[
        Path | None,
        typer.Option(help="Functions v to predict for, (m, *grid), in files like those."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Where the answers u go, in the format of its suffix."),
    ] = None,
    model: Model = "general",
    outputs: OutputsFile = None,
    band: Band = None,
    report: WithReport = False,
    at: At = None,
    v: Inputs = None,
    u: Outputs = None,
    x: Positions = None,
    missing: Missing = None,
    columns: InColumns = False,
    parameters: Parameters = None,
    force: Force = False,
) -> None:
    """Regress the operator that example pairs come from, and apply it to new functions. With
    --report alone, say how good it is."""
    from ..types import TransduceError

    request = domains.Request(v, u, x, at, band, missing, outputs, columns, parameters)
    if queries is not None and out is not None:
        _answer(examples, queries, out, model, report, force, request)
    elif report and queries is None and out is None:
        T, domain = domains.opened(model)
        pairs, name = domain.read_examples(T, examples, request), Path(model).stem
        say(domain.report(domain.regress(T, pairs, name), name))
    else:
        raise TransduceError(
            "--queries and --out must be given together; expected both, or neither with --report. "
            "Add them, or --report."
        )


def _answer(
    examples: Path,
    queries: Path,
    out: Path,
    model: str,
    report: bool,
    force: bool,
    request: domains.Request,
) -> None:
    """Write the answers to queries, and print a line on them, and a report if it is wanted."""
    from ..storage import check_writable

    check_writable(out, force)
    (T, domain), name = domains.opened(model), Path(model).stem
    pairs = domain.read_examples(T, examples, request)
    asked = domain.read_queries(T, queries, pairs, request)
    start = time.perf_counter()
    O = domain.regress(T, pairs, name)
    answers = domain.answer(O, asked, request)
    milliseconds = 1000 * (time.perf_counter() - start)
    reported = domain.report(O, name) if report else None
    domain.write(out, answers, force, {"model": name, "examples": len(pairs)})
    known = "" if report else domain.summary(O)
    said = [
        f"n = {len(pairs)} examples",
        f"{len(asked)} queries",
        f"{milliseconds:.1f} ms",
        known,
    ]
    say(f"{model}: {', '.join(filter(None, said))}, written to {out}")
    if reported is not None:
        say(reported)


def export(
    examples: Examples,
    out: Annotated[Path, typer.Option(help="The .onnx file to write.")],
    model: Model = "general",
    outputs: OutputsFile = None,
    at: At = None,
    v: Inputs = None,
    u: Outputs = None,
    x: Positions = None,
    columns: InColumns = False,
    parameters: Parameters = None,
    force: Force = False,
) -> None:
    """Write the operator that example pairs come from as an ONNX graph, to be run without torch."""
    from ..storage import check_writable

    check_writable(out, force, (".onnx",))
    T, domain = domains.opened(model)
    request = domains.Request(v, u, x, at, outputs=outputs, columns=columns, parameters=parameters)
    pairs = domain.read_examples(T, examples, request)
    where = {} if at is None else {"at": at}
    written = domain.regress(T, pairs, Path(model).stem).export(out, **where, force=force)
    extra = f", parameters (m, {written.parameters})" if written.parameters else ""
    given, found = (", ".join(map(str, ("m", *shape))) for shape in (written.v, written.u))
    shapes = f"v ({given}){extra} -> u ({found})"
    size, difference = f"{written.size / 1e6:.1f} MB", f"{written.difference:.1e} from torch"
    say(f"{model}: n = {len(pairs)} examples, {shapes}, {size}, {difference}, written to {out}")
