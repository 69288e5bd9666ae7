"""A regression as an ONNX graph in double precision, in the user's shapes and order of points.

v (m, *shape), parameters (m, p) if there are any  ->  u (m, *shape)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ..exporting import TOLERANCE, Exported, Graph, between, write_onnx
from ..files import PathLike, versions
from ..inputs import Functions, read_query
from ..inputs.messages import caution
from ..spaces import Space
from ..storage import check_writable
from ..types import TransduceError
from .engines import GeneralEngine
from .shapes import as_tensor

if TYPE_CHECKING:
    from .operator import RegressedOperator

NOTABLE, TINY = 1.01, 1e-300  # ratio of leave-one-out errors; the least of them


def export(O: RegressedOperator, path: PathLike, force: bool) -> Exported:
    """Write the operator, if ONNX Runtime gives the answers of torch.

    Args:
        O: of the general model.
        path: of the .onnx file.
        force: whether to replace a file.
    """
    check_writable(path, force, (".onnx",))
    engine, pairs = O.engine, O.pairs
    if not isinstance(engine, GeneralEngine):
        raise TransduceError(
            f"exporting the model {O.model!r} through regress; expected the general model. "
            "Use Transducer.from_pretrained(...).regress(ExampleSet(v, u)).export."
        )
    v, parameters = between(_as_given(pairs.v)), None
    if pairs.parameters is not None:
        parameters = between(as_tensor(pairs.parameters))
    complete, engine = engine, engine.exportable()
    T, fits = engine.O.T, engine.O.fits
    with torch.no_grad():
        u = _answered(engine, v, parameters)
        graph = Graph(
            T,
            lambda f, p=None: _arranged(f, p, pairs.v, T.V),
            lambda f: T.query(fits, T.V.encode(f)[None])[-1][0],
            lambda c: _restored(c, pairs.u),
        )
        own = _as_given(pairs.u)
        sizes = (own - own.mean(0)).abs().max(), 1e-6 * own.abs().max()
        unit = max(1e-30, *map(float, sizes))
        lost = float((_answered(complete, v, parameters) - u).abs().max()) / unit
    _warn_of_lost(complete, engine, lost)
    about = {"model": O.model, "examples": len(O), **versions()}
    for name, f in (("v", pairs.v), ("u", pairs.u)):
        about[f"{name}_at"] = [] if f.grid is None else [str(x) for x in f.grid.x]
    if pairs.parameter_names:
        about["parameters"] = list(pairs.parameter_names)
    written = write_onnx(path, graph, v, u, unit, about, parameters)
    return written._replace(difference=max(written.difference, lost))


def _warn_of_lost(complete: GeneralEngine, written: GeneralEngine, difference: float) -> None:
    """Warn if the graph lacks answers that ONNX cannot compute, and answers otherwise.

    Args:
        complete: with all answers.
        written: as in the graph.
        difference: largest of their answers between the examples, in units of the largest u.
    """
    lost = [name for name in complete.answers if name not in written.answers]
    share = sum(complete.answers[name].weight for name in lost)
    before, after = (float(e.residuals.square().sum().sqrt()) for e in (complete, written))
    if difference > TOLERANCE or after > NOTABLE * before:
        caution(
            f"the graph leaves out {', '.join(lost)} ({share:.0%} of the answer here), which solve "
            f"equations for each query. Between the examples it differs by up to {difference:.1%} "
            "of the largest u, and its leave-one-out errors are "
            f"{after / max(before, TINY):.2g} times those of this operator. To keep these answers, "
            "use O.save and transduce.load."
        )


def _answered(engine: GeneralEngine, v: Tensor, parameters: Tensor | None) -> Tensor:
    """What an engine answers to functions in the user's shape and order, in double precision."""
    given = None if parameters is None else parameters.numpy()
    query = read_query(engine.pairs, v.numpy(), parameters=given)
    return _restored(engine.answer(query, None).detach(), engine.pairs.u)


def _as_given(f: Functions) -> Tensor:
    """Functions in the user's shape and order, in double precision."""
    return _restored(as_tensor(f.array), f)


def _arranged(f: Tensor, parameters: Tensor | None, like: Functions, V: Space) -> Tensor:
    """Functions by ascending x, with parameters, in the shape that the space takes."""
    layout = like.layout
    f = f.reshape(f.shape[0], layout.channels, layout.points)
    if layout.grid is not None and layout.grid.flipped:
        f = f.flip(-1)
    vectors = f.flatten(1)
    return V.unflattened(vectors if parameters is None else torch.cat([vectors, parameters], 1))


def _restored(c: Tensor, like: Functions) -> Tensor:
    """Values by ascending x as functions in the user's shape and order."""
    layout = like.layout
    f = c.reshape(c.shape[0], layout.channels, layout.points)
    if layout.grid is not None and layout.grid.flipped:
        f = f.flip(-1)
    return f.reshape(c.shape[0], *layout.shape)
