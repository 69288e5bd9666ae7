"""What exported operators cost beside torch:  python -m benchmarks.export

    n = 50 examples folded in, m queries at once, on one thread

Every bundled model is conditioned and exported, to a folder that goes away again. MB: the size of
its file; difference: the largest from torch's answers, relative to the largest value. Then torch
and ONNX Runtime answer the same queries in turns: seconds are medians of processor time, the ratio
is torch's over ONNX Runtime's. Writes results/benchmarks/export.json."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import onnxruntime
import torch
import typer

from paper.timing import medians
from transduce import weights
from transduce.families import AdvectionDiffusionReaction, Burgers2d, SyntheticImages
from transduce.files import provenance
from transduce.random_fields import generator_for
from transduce.report import Row, markdown_table, write_rows
from transduce.spaces import Region
from transduce.transducer import Transducer
from transduce.types import ExampleSet, OperatorFamily, Task

EXAMPLES, QUERIES = 50, (1, 100)


class Days:
    """Fields about the mean of a model's region, and pressure that moves with them: no data is
    needed."""

    def __init__(self, V: Region, U: Region):
        self.V, self.U = V, U

    def sample_task(self, n: int, m: int, generator: torch.Generator) -> Task:
        away = torch.randn(n + m, 1, 1, generator=generator) * torch.linspace(
            0.5, 1, self.V.grid[1]
        )
        v, u = (space.mean + space.unit * away for space in (self.V, self.U))
        return Task(ExampleSet(v[:n], u[:n]), ExampleSet(v[n:], u[n:]))


def family_of(name: str, T: Transducer) -> OperatorFamily:
    """What a bundled model is for."""
    if isinstance(T.V, Region) and isinstance(T.U, Region):
        return Days(T.V, T.U)
    families = {"burgers": Burgers2d(amplitude=0.3), "burgers-softmax": Burgers2d(amplitude=0.1)}
    return (
        SyntheticImages()
        if name.startswith("images")
        else families.get(name, AdvectionDiffusionReaction())
    )


def measured(name: str, queries: tuple[int, ...], repeats: int) -> Iterator[Row]:
    """A row for each number of queries."""
    T = Transducer.from_pretrained(name)
    task = family_of(name, T).sample_task(EXAMPLES, max(queries), generator_for("test", 0))
    O, v = T.regress(task.examples), task.queries.v.to(T.spread.dtype)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    with TemporaryDirectory() as folder:
        written = O.export(Path(folder) / "operator.onnx")
        session = onnxruntime.InferenceSession(
            written.path, options, providers=["CPUExecutionProvider"]
        )
    for m in queries:
        asked: dict[str, Any] = {"v": v[:m].numpy()}
        ours, theirs = medians(
            lambda m=m: O(v[:m]), lambda asked=asked: session.run(["u"], asked), repeats=repeats
        )
        shapes = {
            "v": f"(m, {', '.join(map(str, written.v))})",
            "u": f"(m, {', '.join(map(str, written.u))})",
        }
        about = {
            "model": name,
            "n": EXAMPLES,
            **shapes,
            "MB": written.size / 1e6,
            "difference": written.difference,
        }
        yield about | {"m": m, "torch": ours, "onnxruntime": theirs, "ratio": ours / theirs}


def main(
    quick: Annotated[
        bool, typer.Option("--quick", help="A smoke test: one model, few queries.")
    ] = False,
    out: Annotated[Path, typer.Option(help="The folder for export.json.")] = Path(
        "results/benchmarks"
    ),
) -> None:
    """Measure everything, print the table, write the rows."""
    torch.set_num_threads(1)
    names, queries, repeats = (["adr"], (1, 3), 2) if quick else (weights.names(), QUERIES, 21)
    rows = [row for name in names for row in measured(name, queries, repeats)]
    print(markdown_table(rows))
    command = " ".join(["python -m benchmarks.export", *sys.argv[1:]])
    write_rows(
        out / "export.json",
        rows,
        command=command,
        seed=0,
        **provenance(),
        onnxruntime=onnxruntime.__version__,
    )


if __name__ == "__main__":
    typer.run(main)
