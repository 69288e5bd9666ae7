"""An operator as an ONNX graph, for use where there is no torch: any number m of functions in,
their images out.

    v (m, *grid)  ->  u (m, *grid)

ONNX has no Cholesky factorisation, nor any other that kernels solve their systems with, so examples
are conditioned on in Python. What a query needs of them is folded into the graph as constants.
Before a file is put in place, ONNX Runtime's answers are compared with torch's."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from .files import PathLike, brief, pip_install, replacing
from .types import TransduceError

NEEDED = ("onnx", "onnxscript", "onnxruntime")
TOLERANCE = 1e-4  # how far from torch an answer may be, relative to the largest value
# Bytes of constants: protobuf, of which files are made, has no more than 2 GB.
LARGEST = 2**31 - 2**20
OPSET = 20  # the first with Gelu; ONNX Runtime reads it from 1.17 on


Step = Callable[[Tensor], Tensor]


class Exported(NamedTuple):
    """What was written.

    Args:
        path: of the file.
        v: shape of one function.
        u: shape of its image.
        size: of the file, in bytes.
        difference: the largest from the operator, in units of its largest value.
        parameters: how many numbers come with each function.
    """

    path: Path
    v: tuple[int, ...]
    u: tuple[int, ...]
    size: int
    difference: float
    parameters: int = 0


class Graph(nn.Module):
    """The steps of an answer, one after the other.

    Args:
        model: whose weights they use.
        first: takes functions, and parameters if there are any.
        steps: what follows.
    """

    def __init__(self, model: nn.Module, first: Callable[..., Tensor], *steps: Step):
        super().__init__()
        self.model, self.first, self.steps = model, first, steps

    def forward(self, v: Tensor, parameters: Tensor | None = None) -> Tensor:
        f = self.first(v) if parameters is None else self.first(v, parameters)
        for step in self.steps:
            f = step(f)
        return f


def matrix_of(linear: Callable[[Tensor], Tensor], f: Float[Tensor, ...]) -> Float[Tensor, "k ..."]:
    """The images of all arrays of the shape of f that are 1 at one place and else 0."""
    return linear(torch.eye(f.numel(), dtype=f.dtype, device=f.device).unflatten(1, f.shape))


def multiply(matrix: Float[Tensor, "k ..."], f: Float[Tensor, "m ..."]) -> Float[Tensor, "m ..."]:
    """The images of f under the linear map with this matrix."""
    return (f.flatten(1) @ matrix.flatten(1)).unflatten(1, matrix.shape[1:])


def between(v: Float[Tensor, "n ..."], m: int = 7) -> Float[Tensor, "m ..."]:
    """Functions to try an operator on, each a mixture of two of these."""
    generator = torch.Generator().manual_seed(0)
    one, other = torch.randint(len(v), (2, m), generator=generator)
    share = torch.rand(m, *[1] * (v.ndim - 1), generator=generator).to(v)
    return share * v[one] + (1 - share) * v[other]


def described(at: tuple[int, ...] | Tensor) -> dict[str, list[Any]]:
    """Where functions are given or asked for, as the metadata of a graph say it: a uniform grid, or
    positions."""
    return {"positions": at.tolist()} if isinstance(at, Tensor) else {"grid": [*at]}


def write_onnx(
    path: PathLike,
    module: nn.Module,
    v: Float[Tensor, "m ..."],
    u: Float[Tensor, "m ..."],
    unit: float,
    about: Mapping[str, Any],
    parameters: Float[Tensor, "m p"] | None = None,
) -> Exported:
    """Write `module` as one self-contained ONNX file, if ONNX Runtime gives the answers of torch.

    The graph's inputs are `v` and, if there are any, `parameters`; its output is `u`, for any
    number m of functions.

    Args:
        path: of the file.
        module: what is exported.
        v: functions to compare the answers at.
        u: the answers of torch.
        unit: what differences are relative to, about the size of u.
        about: for the graph's metadata; values that are not texts are written as JSON.
        parameters: that come with these functions; None if the module takes none.
    """
    inputs = {"v": v} if parameters is None else {"v": v, "parameters": parameters}
    _check_installed()
    import onnx_ir

    with replacing(path) as temporary:
        model = _graph(module, inputs)
        _annotate(model, about)
        onnx_ir.save(model, temporary)
        size, difference = temporary.stat().st_size, _difference(temporary, inputs, u) / unit
        if not difference <= TOLERANCE:
            raise TransduceError(
                f"the exported operator is {difference:.1e} from torch's, relative to the largest "
                f"value; expected at most {TOLERANCE:g}. "
                "Nothing was written: single precision may be too coarse for this operator. Give "
                "more examples, or use a model that solves."
            )
    shapes = tuple(v.shape[1:]), tuple(u.shape[1:])
    width = 0 if parameters is None else parameters.shape[1]
    return Exported(Path(path), *shapes, size, difference, width)


def _annotate(model: Any, about: Mapping[str, Any]) -> None:
    """Add metadata to an ONNX model. Raise if it is too large for one file."""
    folded = sum(value.const_value.nbytes for value in model.graph.initializers.values())
    if folded > LARGEST:
        raise TransduceError(
            f"the graph holds {folded:,} bytes; expected at most {LARGEST:,} in one file. "
            "Give fewer examples."
        )
    model.metadata_props.update(
        {
            name: value if isinstance(value, str) else json.dumps(value)
            for name, value in about.items()
        }
    )


def _check_installed() -> None:
    """Raise if what exporting needs is not there."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise TransduceError(
            f"exporting needs {', '.join(NEEDED)}, and {', '.join(missing)} cannot be imported. "
            f"Install it: {pip_install('export')}"
        )


def _graph(module: nn.Module, inputs: Mapping[str, Tensor]) -> Any:
    """The ONNX model of a module, for any number of functions like these, without the paths and
    names that exporting leaves in it."""
    from onnx_ir.passes.common import ClearMetadataAndDocStringPass

    count, given = torch.export.Dim("m"), tuple(inputs.values())
    shapes = {name: {0: count} for name in inputs}
    try:
        with torch.no_grad(), _quiet():
            traced = torch.export.export(module, given, dynamic_shapes=shapes, strict=False)
            program = torch.onnx.export(
                traced,
                given,
                input_names=list(inputs),
                output_names=["u"],
                dynamic_shapes=shapes,
                opset_version=OPSET,
                verbose=False,
            )
            assert program is not None
            return ClearMetadataAndDocStringPass()(program.model).model
    except Exception as error:  # of many kinds, none of which says that it is one of these
        cause = error
        while isinstance(cause.__cause__, Exception):
            cause = cause.__cause__
        raise TransduceError(
            "this operator could not be written as an ONNX graph for any number of functions: "
            f"{brief(cause)}. Keep it in Python, or use a "
            "model without the part that this names."
        ) from error


def _difference(path: Path, inputs: Mapping[str, Tensor], u: Tensor) -> float:
    """The largest difference between u and what ONNX Runtime answers, to one function or to all
    at once."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors alone
    try:
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        answers = [
            session.run(["u"], {name: f[:m].numpy(force=True) for name, f in inputs.items()})[0]
            for m in (1, len(u))
        ]
    except Exception as error:  # onnxruntime has its own, one for each of its codes
        raise TransduceError(
            f"ONNX Runtime could not run the exported operator: {brief(error)}. Nothing was "
            "written."
        ) from error
    return float(
        np.max([np.abs(found - u[: len(found)].numpy(force=True)).max() for found in answers])
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the remarks of the exporter, which says in its errors what matters."""
    logger = logging.getLogger("torch")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
