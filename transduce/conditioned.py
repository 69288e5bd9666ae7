"""The operator that a regression returns, to be called on new functions.

    O = T(D),      O(v) = u

The fit of each layer to the examples is computed once. A query then runs through the layers. This
module and `transducer` import each other as modules: models make operators, which keep their model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from . import exporting, transducer
from .bands import at_least, half_widths_by_channel
from .files import PathLike, versions
from .kernels.kappa import Fit, no_residuals
from .spaces.base import grid_or_positions
from .storage import check_writable
from .types import Array, DataArray, ExampleSet, Index, TransduceError, like, to_tensor


def sensors_of(v: Any, x: Tensor | None) -> Tensor | None:
    """The examples' scattered sensors x if functions v have as many values; None if v are on a
    uniform grid."""
    return x if x is not None and np.shape(v)[-1:] == (len(x),) else None


def check_patches(coefficients: Mapping[str, Float[Tensor, "n *grid d"]]) -> None:
    """Raise if some functions have another number of patches than the others."""
    patches = {name: " x ".join(map(str, c.shape[1:-1])) for name, c in coefficients.items()}
    if len(set(patches.values())) > 1:
        found = " and ".join(f"{name} has {count} patches" for name, count in patches.items())
        raise TransduceError(f"{found}; expected as many, on one grid. Interpolate one of them.")


class ConditionedOperator:
    """The operator of the examples. `Transducer.regress` makes it.

    Calls are differentiable in the query and in the examples when these require gradients.

    Args:
        T: the model.
        examples: pairs of one operator.
        known: fits to other examples, and which of their rows are the first ones here.
    """

    def __init__(
        self,
        T: transducer.Transducer,
        examples: ExampleSet,
        known: tuple[Sequence[Fit], Sequence[int]] | None = None,
    ):
        self.T, self.examples = T, examples
        self.x = None if examples.x is None else to_tensor(examples.x, "examples.x")
        with self._gradients(examples.v, examples.u):
            v, _ = T.encode(T.V, examples.v, self.x, "examples.v")
            self._u, self._grid = T.encode(T.U, examples.u, self.x, "examples.u")
            check_patches({"examples.v": v, "examples.u": self._u})
            if known is None:
                self.fits = T.condition(v[None], self._u[None])
            else:
                self.fits = T.update(*known, v[None], self._u[None])

    def __repr__(self) -> str:
        v, u = (
            ", ".join(map(str, ("m", *f.shape[1:]))) for f in (self.examples.v, self.examples.u)
        )
        return f"ConditionedOperator(n = {len(self.examples)} examples, ({v}) -> ({u}))"

    def __call__(self, v: object, at: object = None, x: object = None) -> Any:
        """The images of v.

        Args:
            v: functions of shape (m, *grid).
            at: number of points (a grid shape in 2-D) or scattered positions; default: the
                examples' grid of u.
            x: positions of v's sensors, if scattered; default: the examples' own if they fit, else
                a uniform grid.
        """
        with self._gradients(v):
            return self._answer(self._last(self._coefficients(v, x)), v, at)

    def predict(
        self,
        v: object,
        band: float = 0.9,
        at: object = None,
        x: object = None,
        calibration: tuple[Tensor, Tensor] | None = None,
    ) -> tuple[Any, Any, Any]:
        """The images of v with a prediction band: mean, low, high (see `bands`).

        Args:
            v: functions of shape (m, *grid).
            band: share of the values that the band is meant to hold.
            at: where to answer, as in a call.
            x: positions of v's sensors, as in a call.
            calibration: residuals of the examples and deviations of their answers, in
                coefficients, such as those without whole groups; default: leave-one-out.

        >>> mean, low, high = O.predict(v, band=0.9)
        """
        if not 0 < band < 1:
            raise TransduceError(
                f"band={band}; expected a share of the values between 0 and 1, like 0.9."
            )
        with torch.no_grad():
            residual, own_deviation = calibration or self._residuals()
            coefficients = self._coefficients(v, x)
            parts = self._chunks(coefficients)
            deviations = torch.cat([self.T.deviations(self.fits, part) for part in parts], 1)[0]
            decoded = (residual, self._u - residual, self._last(coefficients)[0])
            residuals, answers, mean = (self._decode(c, at) for c in decoded)
            # Decoding may add a mean field, which is no part of a residual.
            residuals = residuals - self._decode(torch.zeros_like(residual[:1]), at)
            if deviations.ndim > 1:  # at each point
                pair = (own_deviation, deviations)
                own_deviation, deviations = (self._decode(d, at) for d in pair)
            given = (residuals, answers, own_deviation, mean, deviations)
            half = half_widths_by_channel(*given, band, self.T.U.channels).to(mean)
            if (least := self.T.least_deviations(self.fits, coefficients)) is not None:
                half = at_least(half, self._decode(least[0], at).to(mean), band)
            mean, low, high = (self._like(f, v, at) for f in (mean, mean - half, mean + half))
            return mean, low, high

    def _residuals(self) -> tuple[Float[Tensor, "n ..."], Float[Tensor, "n ..."]]:
        """Leave-one-out residuals and deviations of the examples, in coefficients."""
        fit = self.fits[-1]
        if not self.T.leaves_out or fit.residual is None or fit.deviation is None:
            kernels = dict.fromkeys(type(layer.kappa).__name__ for layer in self.T.steps)
            raise no_residuals(f"this model of {' and '.join(kernels)}")
        return fit.residual[0], fit.deviation[0]

    @property
    def left_out(self) -> Float[Tensor, "n *grid d_u"]:
        """The answer at each example of the regression without it, in coefficients, for models
        with leave-one-out residuals (`T.leaves_out`)."""
        return self._u - self._residuals()[0]

    def add(self, v: Array, u: Array) -> ConditionedOperator:
        """The operator of the examples and these pairs. A few pairs cost less than a regression
        from all, if the kernel solves for its coefficients.

        >>> O = O.add(v_new, u_new)      # of shape (k, *grid)
        """
        more = ExampleSet(v, u, self.examples.x)
        for name in ("v", "u"):
            ours, theirs = getattr(self.examples, name), getattr(more, name)
            if tuple(ours.shape[1:]) != tuple(theirs.shape[1:]):
                raise TransduceError(
                    f"{name} has shape {tuple(theirs.shape)}; the examples' {name} have "
                    f"{tuple(ours.shape)}. Give new ones on their grid."
                )
        joined = {
            name: torch.cat([to_tensor(getattr(e, name), name) for e in (self.examples, more)])
            for name in ("v", "u")
        }
        known = self.fits, range(len(self.examples))
        return ConditionedOperator(self.T, ExampleSet(**joined, x=self.examples.x), known)

    def drop(self, which: Index) -> ConditionedOperator:
        """The operator without one or more examples.
        which: their numbers, or a mask."""
        n = len(self.examples)
        try:
            rows = np.delete(np.arange(n), which).tolist()
        except (IndexError, ValueError):
            raise TransduceError(
                f"there is no example {which} among {n}; expected numbers from 0 to {n - 1}."
            ) from None
        if not rows:
            raise TransduceError(
                f"dropping {which} leaves none of {n} examples; expected at least one to stay."
            )
        return ConditionedOperator(self.T, self.examples[rows], (self.fits, rows))

    def export(
        self, path: PathLike, at: object = None, v_at: object = None, force: bool = False
    ) -> exporting.Exported:
        """Write the operator as an ONNX graph that contains the examples: see docs/export.md.
        The file is put in place once ONNX Runtime gives the answers of torch.

        Args:
            path: of the .onnx file.
            at: where it answers, as in a call.
            v_at: where functions will be given, in the same form; default: the examples' v.
            force: whether to replace a file.
        """
        check_writable(path, force, (".onnx",))
        T = self.T
        if T.spread.dtype not in (torch.float32, T.V.precision):
            raise TransduceError(
                f"a model in {T.spread.dtype} was to be exported; expected single precision. "
                "Regress with T.float()."
            )
        with torch.no_grad():
            v, x = self._trials(v_at)
            at = grid_or_positions(self._places(at), T.U.dims)
            u = self(v, at, x)  # this also caches the matrices of these grids before tracing
            graph = self._graph(v, x, at)
            largest = (to_tensor(self.examples.u, "examples.u").detach(), u)
            unit = max(1e-30, *(float(f.abs().max()) for f in largest))
        about = {
            "model": T.card.get("recipe", {}).get("name", "Transducer"),
            "examples": len(self.examples),
            **versions(),
            "v_at": exporting.described(tuple(v.shape[-T.V.dims :]) if x is None else x),
            "u_at": exporting.described(at),
        }
        return exporting.write_onnx(path, graph, v, u, unit, about)

    def _trials(self, v_at: object) -> tuple[Tensor, Tensor | None]:
        """Functions between the examples, in single precision, and their sensors if scattered."""
        V, v = self.T.V, to_tensor(self.examples.v, "examples.v").to(self.T.spread)
        x = sensors_of(v, self.x)
        if v_at is not None:
            places = grid_or_positions(v_at, V.dims)
            v, x = V.decode(V.encode(v, x), places), places if isinstance(places, Tensor) else None
            if x is None and sensors_of(v, self.x) is not None:
                raise TransduceError(
                    f"v_at={v_at} is also how many sensors the examples have; expected positions, "
                    "which say where. Give these."
                )
        return exporting.between(v), x

    def _graph(self, v: Tensor, x: Tensor | None, at: tuple[int, ...] | Tensor) -> exporting.Graph:
        """Encode, query and decode functions like v. Maps that cannot be traced become matrices."""
        V, U = self.T.V, self.T.U
        encode, decode = partial(V.encode, x=x), partial(U.decode, at=at)
        if x is not None or not V.traceable:
            encode = partial(exporting.multiply, exporting.matrix_of(encode, v[0]))
        if isinstance(at, Tensor):
            decode = partial(exporting.multiply, exporting.matrix_of(decode, v.new_zeros(U.size)))
        return exporting.Graph(
            self.T, encode, lambda c: self.T.query(self.fits, c[None])[-1][0], decode
        )

    def _places(self, at: object) -> object:
        """Where to answer: as asked, or where the examples' u were."""
        if at is not None:
            return at
        return self._grid if self.x is None else self.x

    def layer_estimates(self, v: object, at: object = None, x: object = None) -> Any:
        """The stream after each layer, decoded, of shape (layers, *shape of a call)."""
        with self._gradients(v):
            estimates = [self._answer(u, v, at) for u in self._streams(self._coefficients(v, x))]
        if isinstance(v, DataArray):
            import xarray as xr

            return xr.concat(estimates, "layer")
        return torch.stack(estimates) if isinstance(v, Tensor) else np.stack(estimates)

    def _coefficients(self, v: object, x: object) -> Float[Tensor, "1 m *grid d_v"]:
        sensors = sensors_of(v, self.x) if x is None else to_tensor(x, "x")
        coefficients = self.T.encode(self.T.V, v, sensors, "v")[0]
        check_patches({"v": coefficients, "examples.u": self._u})
        return coefficients[None]

    def _streams(
        self, coefficients: Float[Tensor, "1 m *grid d_v"]
    ) -> list[Float[Tensor, "1 m *grid d_u"]]:
        parts = [self.T.query(self.fits, part) for part in self._chunks(coefficients)]
        return [torch.cat(layer, 1) for layer in zip(*parts, strict=True)]

    def _last(self, coefficients: Float[Tensor, "1 m *grid d_v"]) -> Float[Tensor, "1 m *grid d_u"]:
        parts = self._chunks(coefficients)
        return torch.cat([self.T.query(self.fits, part)[-1] for part in parts], 1)

    def _chunks(self, coefficients: Float[Tensor, "1 m *grid d_v"]) -> Sequence[Tensor]:
        """Queries in parts, so that memory stays in the cache."""
        patches = math.prod(coefficients.shape[2:-1])
        return coefficients.split(max(1, self.T.chunk // patches), 1)

    def _answer(self, u: Tensor, v: object, at: object) -> Any:
        """The queries' stream as functions, in the kind of array that v is."""
        return self._like(self._decode(u[0], at), v, at)

    def _decode(self, u: Tensor, at: object) -> Tensor:
        """Coefficients as functions on the grid or at the positions `at`."""
        return self.T.U.decode(u, self._places(at))

    def _like(self, u: Tensor, v: object, at: object) -> Any:
        return like(u, v, at is None and self.x is None, of=self.examples.u)

    def _gradients(self, *inputs: object) -> torch.set_grad_enabled:
        """Record gradients only if inputs or examples require them, or the model is in training."""
        wanted = self.T.training or any(
            isinstance(f, Tensor) and f.requires_grad
            for f in (*inputs, self.examples.v, self.examples.u)
        )
        return torch.set_grad_enabled(torch.is_grad_enabled() and wanted)
