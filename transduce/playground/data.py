"""The tab of one's own data: pairs and queries in files, the regression's answers back. Nothing is
stored.

Files of every format that `transduce regress` reads are taken. They hold `v` and `u`, and `v_query`
next to them or `v` in a file of its own. They may hold positions `x`, or `x_v` and `x_u`, and
`parameters` (with `parameters_query` next to `v_query`). In a table, columns say what they are, as
v_0, v_1, ..., or the first cell of each row does: v, u or v_query."""

from __future__ import annotations

import base64
import binascii
import io
import time
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import BaseModel, Field

from .. import weights
from ..families import AdvectionDiffusionReaction
from ..random_fields import generator_for
from ..regression.named import FIELDS
from ..serving.bodies import read_npz, write_npz
from ..serving.files import read_file
from ..serving.warned import collecting_warnings
from ..types import TransduceError
from .answering import Answer, Data, answer, check
from .models import model
from .packing import packed

BYTES = 32 * 2**20  # of the arrays of a file, unpacked
MOST = 1000  # pairs, and queries
OPTIONAL = ("x", "x_v", "x_u", "parameters")
FIRST = ("general", "adr", "burgers", "images")  # the order in which models are tried
DRAWN = 12  # answers that the page draws


class Upload(BaseModel):
    """A file: its name and its bytes, in base64."""

    name: Annotated[str, Field(max_length=255)]
    content: str


class Files(BaseModel):
    """What was dropped; model: default, the first that takes the data."""

    files: Annotated[list[Upload], Field(min_length=1, max_length=3)]
    model: str | None = None


def arrays_of(upload: Upload) -> dict[str, np.ndarray]:
    """The named arrays in a file."""
    try:
        body = base64.b64decode(upload.content, validate=True)
    except (binascii.Error, ValueError):
        raise TransduceError(
            f"the content of {upload.name} is not base64. Send its bytes in that."
        ) from None
    suffix = upload.name.lower().rpartition(".")[2]
    try:
        if suffix == "npz":
            return _without_groups(read_npz(body, BYTES))
        return read_file(upload.name, body, BYTES)
    except TransduceError as error:
        about = str(error)
        name = Path(upload.name).name
        raise TransduceError(about if name in about else f"{name}: {about}") from None


def _without_groups(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    if "groups" in arrays:
        raise TransduceError(
            "the file has groups; expected v, u and parameters here. Leave them out, or use "
            "`transduce regress`, which reads groups."
        )
    return arrays


def read(uploads: list[Upload]) -> Data:
    """Pairs and queries."""
    tables = [arrays_of(upload) for upload in uploads]
    paired = [table for table in tables if "u" in table]
    rest = [table for table in tables if "u" not in table]
    names = sorted({name for table in tables for name in table})
    if len(paired) != 1 or "v" not in paired[0]:
        raise TransduceError(
            f"found {', '.join(names) or 'nothing'}; expected one file with the pairs, v and u. "
            "Name them so, in a table as v_0, v_1, ..., u_0, u_1, ..."
        )
    asked = [table for table in (paired[0], *rest) if "v_query" in table] or [
        {"v_query": table["v"]} | table for table in rest if "v" in table
    ]
    if len(asked) != 1:
        raise TransduceError(
            f"found {', '.join(names)} and {len(asked) or 'no'} queries; expected functions to "
            "answer for, as v_query beside v and u, or "
            "as v in one file more."
        )
    pairs, queries = paired[0], asked[0]
    if len(pairs["v"]) > MOST or len(queries["v_query"]) > MOST:
        raise TransduceError(
            f"{len(pairs['v'])} pairs and {len(queries['v_query'])} queries; this page takes up to "
            f"{MOST} of each. For more, use `transduce regress`."
        )
    own = {"v_query": queries["v_query"]}
    held = {"parameters_query": "parameters", "x_query": "x_v" if "x_v" in queries else "x"}
    if queries is pairs:
        held = {"parameters_query": "parameters_query"}
    own |= {name: queries[of] for name, of in held.items() if of in queries}
    return Data(**own, **{name: pairs[name] for name in ("v", "u", *OPTIONAL) if name in pairs})


def fitting(data: Data) -> dict[str, TransduceError | None]:
    """Whether each bundled model takes such data, or what it says against it."""
    said: dict[str, TransduceError | None] = {}
    order = {name: i for i, name in enumerate(FIRST)}
    names = [name for name in weights.names() if name != FIELDS]  # part of the general model
    for name in sorted(names, key=lambda name: order.get(name, len(order))):
        try:
            with collecting_warnings():  # what the chosen one warns of is told once it regresses
                check(model(name), data)
            said[name] = None
        except TransduceError as error:
            said[name] = error
    return said


def regress(files: Files) -> dict[str, object]:
    """The answers, for the page to draw and to offer as files."""
    data = read(files.files)
    said = fitting(data)
    fits = [name for name, error in said.items() if error is None]
    name = files.model or next(iter(fits), FIRST[0])
    if name not in said:
        raise TransduceError(f"no model is called {name!r}; known: {', '.join(said)}.")
    if (error := said[name]) is not None:
        raise TransduceError(
            f"{name}: {error}" + (f" These take it: {', '.join(fits)}." if fits else "")
        )
    with collecting_warnings() as warned:
        start = time.perf_counter()
        found = answer(name, model(name), data)
        milliseconds = 1000 * (time.perf_counter() - start)
    about = {
        "model": name,
        "fits": fits,
        "n": len(data.v),
        "shape": list(found.u.shape),
        "milliseconds": milliseconds,
        "warnings": warned,
        "report": found.report,
    }
    drawn = {"v": data.v_query, "u": found.u, "low": found.low, "high": found.high}
    shown = {key: None if array is None else packed(array[:DRAWN]) for key, array in drawn.items()}
    return {
        **about,
        **shown,
        "npz": base64.b64encode(write_npz(_ends(found))).decode(),
        "examples": packed(data.u.reshape(len(data.u), *found.u.shape[1:])[:100]),
        "x": None if found.x is None else packed(found.x),
        "csv": _table(found.u) if found.u.ndim == 2 else None,
    }


def _ends(found: Answer) -> dict[str, np.ndarray]:
    """Predictions with their band, as `transduce regress` writes them."""
    ends = {"u": found.u, "u_low": found.low, "u_high": found.high}
    return {name: array for name, array in ends.items() if array is not None}


def sample(kind: str) -> bytes:
    """A file such as the page takes: 20 pairs and 3 queries of an operator."""
    task = AdvectionDiffusionReaction().sample_task(20, 3, generator_for("test", 0))
    arrays = {
        "v": task.examples.v.numpy(),
        "u": task.examples.u.numpy(),
        "v_query": task.queries.v.numpy(),
    }
    if kind == "npz":
        return write_npz(arrays)
    return "".join(
        f"{name},{line}\n"
        for name, functions in arrays.items()
        for line in _table(functions).splitlines()
    ).encode()


def _table(functions: np.ndarray) -> str:
    """Functions of one variable as text, a row for each."""
    text = io.StringIO()
    np.savetxt(text, functions, fmt="%.9g", delimiter=",")
    return text.getvalue()
