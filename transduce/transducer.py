"""The Transducer: from examples to an operator in one pass (equations 5 and 6).

    v_i <- F(v_i)
    u_i <- G(u_i) + sum_j kappa(v_j, v_i)(G(u_j)),      L times, each with its own F, G, kappa

A query v takes the same steps from u = 0 and is never a source, so that examples are conditioned on
once and queried later. Equations 5 and 6 of the paper index v and u differently. The recurrence (6)
is what runs; the answer is the query's u after the last layer, as in the authors' code. After a
kernel that solves for its coefficients, the examples carry its leave-one-out residuals.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from . import conditioned, legacy, weights
from .configs import Config, build, describe, load_tensors
from .files import PathLike
from .kernels import Fit, Kappa, Reading
from .layer import Layer
from .spaces import Space
from .types import Array, ExampleSet, TransduceError, to_tensor

Result = TypeVar("Result")


class Transducer(nn.Module):
    """T: examples -> operator. `transduce.models` builds the usual ones.

    Args:
        V: the space of inputs.
        U: the space of outputs.
        layers: L layers; the same layer twice has tied weights.

    >>> V = U = SineModes(64)
    >>> T = Transducer(V, U, [Layer(ExpDot(64, 64, heads=4, width=16), F=Feedforward(64, 64))])
    >>> O = T.regress(ExampleSet(v, u))      # v, u of shape (50, 101)
    >>> O(v_query).shape                     # v_query of shape (7, 101)
    (7, 101)
    """

    checkpointing = False  # gradient checkpointing: recompute layers in the backward pass
    measured = False  # whether `spread` was measured, by `standardise` or from a weight file

    def __init__(self, V: Space, U: Space, layers: Sequence[Layer]):
        super().__init__()
        if not layers:
            raise TransduceError("a Transducer without layers; expected at least one. Give some.")
        wrong = [type(layer).__name__ for layer in layers if not isinstance(layer, Layer)]
        if wrong:
            raise TransduceError(
                f"layers hold {', '.join(wrong)}; expected Layers. Give [Layer(kappa), ...]."
            )
        V = copy.deepcopy(U) if V is U else V
        self.V, self.U = V.only_encoding(), U
        self.layers = nn.ModuleList(layers)
        self.spread = nn.Parameter(torch.ones(V.size, dtype=V.precision), requires_grad=False)
        self.card: dict[str, Any] = {}

    @property
    def steps(self) -> tuple[Layer, ...]:
        """The layers in order."""
        return tuple(cast(Layer, layer) for layer in self.layers)

    @property
    def config(self) -> Config:
        """What `from_config` needs to build this model again, with new weights."""
        return {"V": describe(self.V), "U": describe(self.U), "layers": describe(self.steps)}

    @classmethod
    def from_config(cls, config: Config) -> Transducer:
        """The untrained model that `config` describes."""
        config = legacy.config(config)
        V, U, layers = (build(config[name]) for name in ("V", "U", "layers"))
        if not (isinstance(V, Space) and isinstance(U, Space) and isinstance(layers, tuple)):
            raise TransduceError(
                "expected a config of spaces V and U and of layers. Give T.config."
            )
        return cls(V, U, layers)

    @classmethod
    def from_pretrained(cls, name: PathLike) -> Transducer:
        """A bundled model by name ("adr"), or the one in a .safetensors file."""
        tensors, card = weights.load(name)
        try:
            T = cls.from_config(card["model"])
        except TransduceError as error:
            raise TransduceError(f"the model on the card of {name} is not one: {error}") from None
        except (KeyError, TypeError) as error:
            raise TransduceError(
                f"the card in {name} describes no model of this version ({error!r}). Give weights "
                "that transduce wrote."
            ) from None
        load_tensors(T, legacy.tensors(card["model"], tensors), str(name))
        T.card, T.measured, T.V.measured, T.U.measured = card, True, True, True
        return T.eval()

    def save_pretrained(self, path: PathLike, **card: Any) -> None:
        """Write weights, config, domain and whatever else `card` holds to a .safetensors file.

        Parameters that several layers share are written once.
        """
        domain = {"domain": self.card["domain"]} if "domain" in self.card else {}
        weights.save(path, dict(self.named_parameters()), {"model": self.config, **domain, **card})

    @torch.no_grad()
    def standardise(self, v: Float[Tensor, "... d_v"], floor: float = 0.1) -> None:
        """Divide inputs by the standard deviation of these from now on, coefficient by coefficient.
        floor: the smallest divisor, relative to the largest."""
        spread = v.flatten(0, -2).std(0, correction=0)
        largest = spread.max()
        positive = spread.clamp(min=floor * largest) if largest > 0 else torch.ones_like(spread)
        self.spread.copy_(positive)
        self.measured = True
        size = v.square().sum(-1).mean().sqrt().clamp(min=1e-30)
        for layer in self.steps:
            layer.kappa.standardised(self.spread, size)

    def encode(
        self, space: Space, f: object, x: Tensor | None, name: str
    ) -> tuple[Tensor, tuple[int, ...]]:
        """Functions as coefficients of V or U in the model's precision, and their grid's shape.
        name: what error messages call f."""
        if x is None:
            space.check_coordinates(f, name)
        values = to_tensor(f, name)
        grid = space.check(values, x, name)
        cast = values.to(self.spread)
        return space.encode(values if cast is values else to_tensor(cast, name), x), grid

    def forward(
        self,
        v: Float[Tensor, "b n *grid d_v"],
        u: Float[Tensor, "b n *grid d_u"],
        v_query: Float[Tensor, "b m *grid d_v"],
        mask: Bool[Tensor, "b n"] | None = None,
    ) -> Float[Tensor, "b m *grid d_u"]:
        """The answers at the queries of b tasks, in coefficients.
        Examples where mask is False do not count."""
        return self.query(self.condition(v, u, mask), v_query)[-1]

    def condition(
        self,
        v: Float[Tensor, "b n *grid d_v"],
        u: Float[Tensor, "b n *grid d_u"],
        mask: Bool[Tensor, "b n"] | None = None,
    ) -> list[Fit]:
        """The fit of each layer: all that a query needs of the examples."""
        v, fits = v / self.spread, []
        for i, layer in enumerate(self.steps):
            v, u, fit = self._run(layer.condition, v, u, mask)
            fits.append(fit)
            if i + 1 < len(self.steps):
                u = self._run(layer.kappa.carry, fit, v, u)
        return fits

    def update(
        self,
        fits: Sequence[Fit],
        rows: Sequence[int],
        v: Float[Tensor, "1 n *grid d_v"],
        u: Float[Tensor, "1 n *grid d_u"],
    ) -> list[Fit]:
        """The fits to v, u, the first of which are these rows of the examples of `fits`."""
        v, updated = v / self.spread, []
        for i, (layer, fit) in enumerate(zip(self.steps, fits, strict=True)):
            v, u = layer.inputs(v), layer.outputs(u)
            updated.append(layer.kappa.update(fit, rows, v, u))
            if i + 1 < len(self.steps):
                u = layer.kappa.carry(updated[-1], v, u)
        return updated

    def query(
        self, fits: Sequence[Fit], v: Float[Tensor, "b m *grid d_v"]
    ) -> list[Float[Tensor, "b m *grid d_u"]]:
        """The queries' stream after each layer; the last is the answer."""
        u, stream = v.new_zeros(*v.shape[:-1], self.U.size), []
        v = v / self.spread
        for layer, fit in zip(self.steps, fits, strict=True):
            v, u = self._run(layer.query, fit, v, u)
            stream.append(u)
        return stream

    def _run(self, step: Callable[..., Result], *inputs: object) -> Result:
        """One step, with gradient checkpointing if that is on."""
        if self.checkpointing and self.training:
            return checkpoint(step, *inputs, use_reentrant=False)
        return step(*inputs)

    def read(
        self, v: Float[Tensor, "1 n *grid d_v"], u: Float[Tensor, "1 n *grid d_u"]
    ) -> list[Reading]:
        """What each layer needs of n functions and their images, whichever are examples. Only a
        first layer without G has the same outputs in all tasks."""
        known = [u if self.steps[0].G is None else None] + [None] * (len(self.steps) - 1)
        each = zip(self.steps, self.transformed(v), known, strict=True)
        return [layer.kappa.read(inputs, outputs) for layer, inputs, outputs in each]

    def split(
        self,
        readings: Sequence[Reading],
        u: Float[Tensor, "1 n *grid d_u"],
        mask: Bool[Tensor, "b n"],
    ) -> Float[Tensor, "b n *grid d_u"]:
        """The answers of b tasks at the functions that were read. In each task those where mask is
        True are the examples; answers at these are meaningless."""
        streams = u * mask.reshape(*mask.shape, *[1] * (u.ndim - 2))
        for i, (layer, reading) in enumerate(zip(self.steps, readings, strict=True)):
            more = i + 1 < len(self.steps)
            streams = layer.kappa.split(reading, layer.outputs(streams), mask, carry=more)
        return streams

    def split_errors(
        self, readings: Sequence[Reading], mask: Bool[Tensor, "b n"]
    ) -> Float[Tensor, "b n"] | None:
        """|u - answer|^2 in coefficients, if that is faster to compute than the answers."""
        if len(self.steps) > 1:
            return None
        return self.steps[0].kappa.squared_errors(readings[0], mask)

    @property
    def leaves_out(self) -> bool:
        """Whether the last fit has the leave-one-out residuals of u."""
        return all(layer.kappa.leaves_out and layer.G is None for layer in self.steps)

    @property
    def systems(self) -> int:
        """The largest number of regressions that a layer's fit consists of."""
        return max(layer.kappa.systems for layer in self.steps)

    @property
    def chunk(self) -> int:
        """The number of queries that are answered at once."""
        return min(layer.kappa.chunk for layer in self.steps)

    def deviations(
        self, fits: Sequence[Fit], v: Float[Tensor, "b m *grid d_v"]
    ) -> Float[Tensor, "b m *_"]:
        """The standard deviation of the last layer's answers, in the units of its fit's."""
        return self.steps[-1].kappa.deviations(fits[-1], self.transformed(v)[-1])

    def least_deviations(
        self, fits: Sequence[Fit], v: Float[Tensor, "b m *grid d_v"]
    ) -> Float[Tensor, "b m *_"] | None:
        """The standard deviation that answers have at least, in the units of u; None for 0."""
        return self.steps[-1].kappa.least_deviations(fits[-1], self.transformed(v)[-1])

    def transformed(
        self, v: Float[Tensor, "b n *grid d_v"]
    ) -> list[Float[Tensor, "b n *grid d_v"]]:
        """The inputs after each layer's F."""
        v, stream = v / self.spread, []
        for layer in self.steps:
            v = layer.inputs(v)
            stream.append(v)
        return stream

    def regress(
        self, examples: ExampleSet | object, *others: object
    ) -> conditioned.ConditionedOperator:
        """The operator of the examples, in one pass; call it on new functions."""
        if others or not isinstance(examples, ExampleSet):
            received = " and ".join(type(given).__name__ for given in (examples, *others))
            raise TransduceError(
                f"regress expects an ExampleSet, received {received}. Give ExampleSet(v, u)."
            )
        x = None if examples.x is None else to_tensor(examples.x, "examples.x")
        return conditioned.ConditionedOperator(self.fitted_to(examples.v, examples.u, x), examples)

    def fitted_to(self, v: Array, u: Array, x: Tensor | None) -> Transducer:
        """The model for functions like v and u: itself, unless its spaces adapt to grids."""
        V, U = self.V.fitted_to(v, x), self.U.fitted_to(u, x)
        return self if V is self.V and U is self.U else self.between(V, U)

    def between(self, V: Space, U: Space) -> Transducer:
        """The same model between other spaces, if its kernels can be moved there."""
        return self._with(V, U, [layer.kappa.between(V, U) for layer in self.steps])

    def differentiable(self) -> Transducer:
        """The same model with exact derivatives with respect to the examples."""
        return self._with(self.V, self.U, [layer.kappa.differentiable() for layer in self.steps])

    def exportable(self) -> Transducer:
        """The same model without parts that ONNX cannot compute."""
        return self._with(self.V, self.U, [layer.kappa.exportable() for layer in self.steps])

    def _with(self, V: Space, U: Space, kernels: Sequence[Kappa]) -> Transducer:
        """The model with other spaces and kernels."""
        each = zip(kernels, self.steps, strict=True)
        T = Transducer(V, U, [Layer(kappa, layer.F, layer.G) for kappa, layer in each])
        T.card, T.measured = self.card, self.measured
        return T.train(self.training)
