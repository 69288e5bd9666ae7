"""What a regression gives: the operator of the examples, to be called on new functions.

    O = T(D),      O(v) = u

What each layer keeps of the examples was computed once; a query runs through the layers beside it.
Imports point down only, so the Transducer, which makes these operators, is not known here by its
type."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from . import exporting
from .bands import half_widths_of
from .files import PathLike, versions
from .kernels import Known
from .spaces import BranchTrunk
from .spaces.base import grid_or_positions
from .storage import check_writable
from .types import DataArray, ExampleSet, TransduceError, like, to_tensor

# queries, or their patches, that are answered at once, or as many fewer as a prior's grid is larger
CHUNK = 1024


def sensors_of(v: Any, x: Tensor | None) -> Tensor | None:
    """The examples' scattered sensors, where functions v have as many values; else v are on a
    uniform grid."""
    return x if x is not None and np.shape(v)[-1:] == (len(x),) else None


def check_patches(coefficients: Mapping[str, Float[Tensor, "n *grid d"]]) -> None:
    """Raise if those of some functions are of other patches than those of others."""
    patches = {name: " x ".join(map(str, c.shape[1:-1])) for name, c in coefficients.items()}
    if len(set(patches.values())) > 1:
        found = " and ".join(f"{name} has {count} patches" for name, count in patches.items())
        raise TransduceError(f"{found}; expected as many, on one grid. Interpolate one of them.")


class ConditionedOperator:
    """What `regress` returns: what each layer keeps of the examples, and the operator that makes.

    Calls are differentiable in the query and in the examples when these require gradients.
    """

    def __init__(self, T: Any, examples: ExampleSet, known: list[Known] | None = None):
        self.T, self.examples = T, examples
        self.x = None if examples.x is None else to_tensor(examples.x, "examples.x")
        with self._gradients(examples.v, examples.u):
            v, _ = T.encode(T.V, examples.v, self.x, "examples.v")
            self._u, self._grid = T.encode(T.U, examples.u, self.x, "examples.u")
            check_patches({"examples.v": v, "examples.u": self._u})
            self._kept = T.condition(v[None], self._u[None], known=known)

    def __repr__(self) -> str:
        shapes = (
            ", ".join(map(str, ("m", *f.shape[1:]))) for f in (self.examples.v, self.examples.u)
        )
        return "ConditionedOperator(n = {} examples, ({}) -> ({}))".format(
            len(self.examples), *shapes
        )

    def __call__(self, v: Any, at: Any = None, x: Any = None) -> Any:
        """The images of v.

        at: where to answer, a number of points (a grid shape in 2-D) or scattered positions;
        default: where the examples' u were. x: the positions of v's sensors, if scattered; default:
        the examples' own, where they fit, else a uniform grid."""
        with self._gradients(v):
            return self._answer(self._last(self._coefficients(v, x)), v, at)

    def predict(
        self, v: Any, band: float = 0.9, at: Any = None, x: Any = None
    ) -> tuple[Any, Any, Any]:
        """The images of v, and the lower and the upper end of a band meant to hold this share of
        their values: see `bands`.

        >>> mean, low, high = O.predict(v, band=0.9)
        """
        if not 0 < band < 1:
            raise TransduceError(
                f"band={band}; expected a share of the values between 0 and 1, like 0.9."
            )
        with torch.no_grad():
            coefficients = self._coefficients(v, x)
            parts = self._chunks(coefficients)
            deviations = torch.cat([self.T.deviations(self._kept, part) for part in parts], 1)[0]
            if self.T.config["G"]:  # residuals would be of G(u)
                raise TransduceError(
                    "a model whose G transforms outputs has no bands; expected one with G=False: "
                    "'adr' or 'burgers'."
                )
            sources, channels = self._kept[-1], self.T.U.channels
            left = sources.residual[0]
            residuals, answers, mean = (
                self._decode(c, at) for c in (left, self.left_out, self._last(coefficients)[0])
            )
            by_channel = zip(
                *(f.reshape(len(f), channels, -1).unbind(1) for f in (residuals, answers, mean)),
                strict=True,
            )
            halves = [
                half_widths_of(r, a, sources.deviation[0], m, deviations, band).to(mean)
                for r, a, m in by_channel
            ]
            lead = 1 + (channels > 1)
            half = torch.stack(halves, 1).reshape(*mean.shape[:lead], *[1] * (mean.ndim - lead))
            return (
                self._like(mean, v, at),
                self._like(mean - half, v, at),
                self._like(mean + half, v, at),
            )

    @property
    def left_out(self) -> Float[Tensor, "n d_u"]:
        """The answer at each example of the regression without it, in coefficients; of models that
        say so at no cost (`T.leaves_out`)."""
        if not self.T.leaves_out:
            raise TransduceError(
                "this model cannot leave out an example without regressing anew. Use "
                "uncertainty.many_regressions."
            )
        return self._u - self._kept[-1].residual[0]

    def add(self, v: Any, u: Any) -> ConditionedOperator:
        """The operator regressed from these pairs too. Under the representer kernel a few pairs
        cost less than to regress anew.

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
            name: torch.cat(
                [to_tensor(getattr(part, name), name) for part in (self.examples, more)]
            )
            for name in ("v", "u")
        }
        return ConditionedOperator(
            self.T, ExampleSet(**joined, x=self.examples.x), self._known(range(len(self.examples)))
        )

    def drop(self, which: Any) -> ConditionedOperator:
        """The operator regressed without an example, or without several: numbers or a mask. As with
        `add`, a few are cheap."""
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
        return ConditionedOperator(self.T, self.examples[rows], self._known(rows))

    def export(
        self, path: PathLike, at: Any = None, v_at: Any = None, force: bool = False
    ) -> exporting.Exported:
        """Write the operator as an ONNX graph, the examples folded in, for any number of functions:
        see docs/export.md.

        at: where it answers, as in a call. v_at: where functions will be given, said likewise;
        default: where the examples' v are. The file is put in place once ONNX Runtime gives the
        answers of torch, on functions between the examples.

        >>> O.export("operator.onnx")
        """
        check_writable(path, force, (".onnx",))
        T = self.T
        if T.spread.dtype != torch.float32:
            raise TransduceError(
                f"a model in {T.spread.dtype} was to be exported; expected single precision. "
                "Regress with T.float()."
            )
        with torch.no_grad():
            v, x = self._trials(v_at)
            at = grid_or_positions(self._places(at), T.U.dims)
            u = self(
                v, at, x
            )  # which also makes the matrices of these grids: tracing must find them made
            graph = self._graph(v, x, at)
            unit = max(
                1e-30,
                *(
                    float(f.abs().max())
                    for f in (to_tensor(self.examples.u, "examples.u").detach(), u)
                ),
            )
        about = {
            "model": T.card.get("recipe", {}).get("name", "Transducer"),
            "examples": len(self.examples),
            **versions(),
        }
        about |= {
            "v_at": exporting.described(tuple(v.shape[-T.V.dims :]) if x is None else x),
            "u_at": exporting.described(at),
        }
        return exporting.write_onnx(path, graph, v, u, unit, about)

    def _trials(self, v_at: Any) -> tuple[Tensor, Tensor | None]:
        """Functions between the examples, in single precision, and the positions of their sensors,
        if scattered."""
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
        """Encode, query, decode, for functions like v. Matrices that are made anew for every call
        are made here."""
        V, U = self.T.V, self.T.U
        encode, decode = partial(V.encode, x=x), partial(U.decode, at=at)
        if x is not None or isinstance(V, BranchTrunk):
            encode = partial(exporting.multiply, exporting.matrix_of(encode, v[0]))
        if isinstance(at, Tensor):
            decode = partial(exporting.multiply, exporting.matrix_of(decode, v.new_zeros(U.size)))
        return exporting.Graph(
            self.T, encode, lambda c: self.T.query(self._kept, c[None])[-1][0], decode
        )

    def _places(self, at: Any) -> Any:
        """Where to answer: as asked, or where the examples' u were."""
        if at is not None:
            return at
        return self._grid if self.x is None else self.x

    def _known(self, rows: Sequence[int]) -> list[Known]:
        return [Known(sources, list(rows)) for sources in self._kept]

    def layer_estimates(self, v: Any, at: Any = None, x: Any = None) -> Any:
        """The stream after each layer, decoded: shape (depth, *shape of a call); of a prior first,
        where there is one."""
        with self._gradients(v):
            estimates = [self._answer(u, v, at) for u in self._streams(self._coefficients(v, x))]
        if isinstance(v, DataArray):
            import xarray as xr

            return xr.concat(estimates, "layer")
        return torch.stack(estimates) if isinstance(v, Tensor) else np.stack(estimates)

    def _coefficients(self, v: Any, x: Any) -> Float[Tensor, "1 m *grid d_v"]:
        coefficients = self.T.encode(
            self.T.V, v, sensors_of(v, self.x) if x is None else to_tensor(x, "x"), "v"
        )[0]
        check_patches({"v": coefficients, "examples.u": self._u})
        return coefficients[None]

    def _streams(
        self, coefficients: Float[Tensor, "1 m *grid d_v"]
    ) -> list[Float[Tensor, "1 m *grid d_u"]]:
        parts = [self.T.query(self._kept, part) for part in self._chunks(coefficients)]
        return [torch.cat(layer, 1) for layer in zip(*parts, strict=True)]

    def _last(self, coefficients: Float[Tensor, "1 m *grid d_v"]) -> Float[Tensor, "1 m *grid d_u"]:
        return torch.cat(
            [self.T.query(self._kept, part)[-1] for part in self._chunks(coefficients)], 1
        )

    def _chunks(self, coefficients: Float[Tensor, "1 m *grid d_v"]) -> Sequence[Tensor]:
        """Queries in parts, so that memory stays in the cache."""
        patches = math.prod(coefficients.shape[2:-1])
        return coefficients.split(max(1, CHUNK // (patches if self.T.prior is None else 16)), 1)

    def _answer(self, u: Tensor, v: Any, at: Any) -> Any:
        """The stream of the queries v as functions, of the kind that v is."""
        return self._like(self._decode(u[0], at), v, at)

    def _decode(self, u: Tensor, at: Any) -> Tensor:
        """Coefficients as functions where they are asked for."""
        return self.T.U.decode(u, self._places(at))

    def _like(self, u: Tensor, v: Any, at: Any) -> Any:
        return like(u, v, at is None and self.x is None, of=self.examples.u)

    def _gradients(self, *inputs: Any) -> Any:
        """Record gradients only where someone can ask for them: to the inputs, or to a model in
        training."""
        wanted = self.T.training or any(
            isinstance(f, Tensor) and f.requires_grad
            for f in (*inputs, self.examples.v, self.examples.u)
        )
        return torch.set_grad_enabled(torch.is_grad_enabled() and wanted)
