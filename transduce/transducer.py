"""The Transducer: from examples to an operator in one pass (equations 5 and 6).

    v_i <- F(v_i)
    u_i <- G(u_i) + sum_j kappa(v_j, v_i)(G(u_j)),      L times, each with its own F, G, kappa

A query v runs through the same recurrence beside the examples, from u = 0 and never as a source, so
that examples can be conditioned on once and queried later. Equations 5 and 6 of the paper index v
and u differently; the recurrence (6) is what runs, and the output is the query's residual stream
after the last layer, as in the authors' code. Under the representer kernel the examples carry what
is left of u to explain, and the queries what has been explained."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from . import weights
from .conditioned import ConditionedOperator
from .kernels import (
    Attention,
    Kappa,
    Known,
    Local,
    Metric,
    Patchwise,
    Remembered,
    kernel,
    looking,
    prior_of,
    start_with_descent,
)
from .spaces import Patches, Space, space_from_config
from .transforms import Feedforward, Neighbours
from .types import ExampleSet, TransduceError, to_tensor

# the variance, at first, by which operators differ from what is remembered, in units of what
# examples leave
DIFFERENCE = 0.03


class Layer(nn.Module):
    """One step of the recurrence (6)."""

    kappa: Kappa

    def __init__(self, F: nn.Module, G: nn.Module, kappa: Kappa):
        super().__init__()
        self.F, self.G, self.kappa = F, G, kappa

    def condition(
        self,
        v: Float[Tensor, "b n *grid d_v"],
        u: Float[Tensor, "b n *grid d_u"],
        mask: Bool[Tensor, "b n"] | None,
        known: Known | None,
        last: bool,
    ) -> tuple[Float[Tensor, "b n *grid d_v"], Float[Tensor, "b n *grid d_u"], Any]:
        """The examples' streams after this step, of which u is not needed after the last, and what
        the kernel keeps of them."""
        v, u = self.F(v), self.G(u)
        kept = self.kappa.condition(v, u, mask, known)
        return v, u if last else self.kappa.carry(kept, v, u), kept

    def query(
        self, kept: Any, v: Float[Tensor, "b m *grid d_v"], u: Float[Tensor, "b m *grid d_u"]
    ) -> tuple[Float[Tensor, "b m *grid d_v"], Float[Tensor, "b m *grid d_u"]]:
        """The queries' streams after this step."""
        v, u = self.F(v), self.G(u)
        return v, u + self.kappa(kept, v)


@torch.no_grad()
def start_mirrored(layers: Sequence[Layer]) -> None:
    """Kernels that begin as smoothers: query and key are alike, so that examples like the query
    count for more, and what is written undoes how values were read, each layer giving its share of
    the answer. F begins near the identity."""
    for layer in layers:
        kappa = layer.kappa
        assert isinstance(kappa, Attention)
        kappa.query.load_state_dict(kappa.key.state_dict())
        read = kappa.value.weight
        kappa.out.weight.copy_(read.T * read.shape[1] / (len(layers) * read.square().sum()))
        for part in (layer.F, layer.G):
            if isinstance(part, Feedforward):
                part.down.weight.mul_(0.1)


class Transducer(nn.Module):
    """T: examples -> operator.

    V, U: the spaces of inputs and outputs. depth: L. heads, width: J heads of this many features.
    kappa: "exp_dot", "rbf", "l2", "representer", "convolutional" or "metric". hidden: of F and G,
    or of the representer's features. tied: one layer used L times. Of the paper's kernels: tau,
    their temperature, learned unless learn_tau is False; bias: in query and key; gain: of the
    initial weights (Xavier); init: "mirrored" starts as a smoother (`start_mirrored`); "descent"
    adds a solver of least squares (kernels/descent.py); memory: features of both streams beside
    their coefficients, which start at zero and are not part of the answer. Of the representer:
    feature_layers, ridges, universal (see kernels/representer.py). Of the convolutional one:
    convolutions (see kernels/convolutional.py). Of the metric one: signal (see kernels/metric.py).
    F, G: whether inputs and outputs are transformed, by default only beside the paper's kernels;
    shared: by the same network. Between `Patches`, kernels act at every patch by itself;
    neighbours: how many patches away G looks, 0 for not at all. prior: the options of a `Prior`, on
    whose answers the layers, if any, build: see kernels/prior.py; `remember` makes another kind.

    >>> T = Transducer(SineModes(64), SineModes(64), depth=2, heads=4, width=16, hidden=64)
    >>> O = T.regress(ExampleSet(v, u))      # v, u of shape (50, 101)
    >>> O(v_query).shape                     # v_query of shape (7, 101)
    (7, 101)
    """

    # whether layers in training keep only what goes in, and compute the rest anew for gradients
    checkpointing = False

    def __init__(
        self,
        V: Space,
        U: Space,
        *,
        depth: int = 8,
        heads: int = 8,
        width: int = 32,
        hidden: int = 256,
        kappa: str = "exp_dot",
        tau: float = 1.0,
        learn_tau: bool = True,
        bias: bool = False,
        feature_layers: int = 5,
        ridges: int = 2,
        universal: bool = True,
        convolutions: tuple[int, ...] = (32, 64, 96),
        signal: float = 60.0,
        F: bool | None = None,
        G: bool | None = None,
        shared: bool = False,
        tied: bool = False,
        gain: float = 1.0,
        init: str = "xavier",
        memory: int = 0,
        neighbours: int = 0,
        prior: dict[str, Any] | None = None,
    ):
        super().__init__()
        transforms = kernel(kappa).transforms and depth > 0
        F, G = transforms if F is None else F, transforms if G is None else G
        apart = ("self", "V", "U", "prior", "transforms", "apart", "__class__")
        options = {name: value for name, value in locals().items() if name not in apart}
        self.config = {"V": V.config(), "U": U.config(), **options}
        if shared and (V.size != U.size or not F):
            raise TransduceError(
                f"shared=True needs F, and V and U of one size; received F={F}, sizes {V.size} "
                f"and {U.size}. Leave it out."
            )
        if tau <= 0 or depth < (prior is None):
            raise TransduceError(
                f"tau={tau} and depth={depth}; expected a positive temperature and at least one "
                "layer, or a prior."
            )
        averages, follows = (
            prior is None and kind for kind in (kernel(kappa).transforms, kernel(kappa).follows)
        )
        if (
            init not in ("xavier", "mirrored", "descent")
            or memory < 0
            or (memory and not averages)
            or (init != "xavier" and not follows)
        ):
            raise TransduceError(
                f"init={init!r} and memory={memory} with "
                f"kappa={kappa!r}{'' if prior is None else ' and a prior'}; expected 'xavier', or "
                "'mirrored' or 'descent' with exp_dot or rbf, and a number from 0, which is 0 "
                "with kernels that solve or a prior."
            )
        patches = isinstance(V, Patches)
        plain = prior is None and init == "xavier"
        if (
            patches != isinstance(U, Patches)
            or (patches and not plain)
            or neighbours < 0
            or (neighbours and not (patches and G))
        ):
            raise TransduceError(
                f"V={type(V).__name__}, U={type(U).__name__}, neighbours={neighbours}, G={G}, "
                f"init={init!r}, a prior: {prior is not None}; "
                "expected patches on both sides or on neither, with init='xavier' and no prior, "
                "neighbours only among patches and with G."
            )
        if V is U:
            V = space_from_config(U.config())
        self.V, self.U, self.depth, self.memory = V.only_encoding(), U, depth, memory
        self.card: dict[str, Any] = {"model": self.config}

        def layer() -> Layer:
            d_v, d_u = V.size + memory, U.size + memory
            f = Feedforward(d_v, hidden) if F else nn.Identity()
            g: nn.Module = f if shared else Feedforward(d_u, hidden) if G else nn.Identity()
            if neighbours:
                g = Neighbours(d_u, heads, width, hidden, neighbours)
            own = kernel(kappa)(
                d_v, d_u, heads, width, **{name: options[name] for name in kernel(kappa).options}
            )
            return Layer(f, g, Patchwise(own) if patches else looking(own, V, U))

        self.spread = nn.Parameter(torch.ones(V.size), requires_grad=False)
        self.prior: Layer | None = None
        if prior is not None:
            if F or G:
                raise TransduceError(
                    f"kappa={kappa!r} with F={F} and G={G} after a prior, which leaves no "
                    "functions to transform but residuals; expected "
                    "neither. Use kappa='representer', or depth=0 for the prior alone."
                )
            self.prior = Layer(nn.Identity(), nn.Identity(), prior_of(V, U, prior))
            self.config["prior"] = self.prior.kappa.config
        self.layers = nn.ModuleList(layer() for _ in range(min(depth, 1) if tied else depth))
        for part in self.layers.modules():
            if isinstance(part, Feedforward | Attention):
                for parameter in part.parameters():
                    if parameter.ndim == 2:
                        nn.init.xavier_uniform_(parameter, gain)
        if init == "mirrored":
            layers: list[Any] = list(self.layers)
            start_mirrored(layers)
        if init == "descent":
            for part in self.layers.modules():
                if isinstance(part, Feedforward):
                    nn.init.xavier_uniform_(part.up.weight)
                    nn.init.zeros_(part.down.bias)
            start_with_descent(
                [part for part in self.layers.modules() if isinstance(part, Attention)],
                V,
                U,
                memory,
            )

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Transducer:
        """The untrained model that `config` describes; lists, as JSON has them, are tuples."""
        options: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in config.items() if k not in "VU"
        }
        return cls(space_from_config(config["V"]), space_from_config(config["U"]), **options)

    @classmethod
    def from_pretrained(cls, name: str) -> Transducer:
        """A bundled model by name ("adr"), or the one in a .safetensors file that `transduce train`
        wrote."""
        tensors, card = weights.load(name)
        try:
            T = cls.from_config(card["model"])
        except (KeyError, TypeError, TransduceError) as error:
            raise TransduceError(
                f"the card in {name} describes no model of this version ({error!r}). Give weights "
                "that transduce wrote."
            ) from None
        T.card = card
        parameters = dict(T.named_parameters())
        if {key: value.shape for key, value in parameters.items()} != {
            key: value.shape for key, value in tensors.items()
        }:
            raise TransduceError(
                f"the tensors in {name} are not those of the model on its card. Give weights that "
                "transduce wrote."
            )
        with torch.no_grad():
            for key, value in parameters.items():
                value.copy_(tensors[key])
        return T.eval()

    def save_pretrained(self, path: Any, **card: Any) -> None:
        """Write weights and config, with whatever else `card` says of them, to a .safetensors file.

        Parameters that several layers or F and G share are written once.
        """
        weights.save(path, dict(self.named_parameters()), {"model": self.config, **card})

    @torch.no_grad()
    def standardise(self, v: Float[Tensor, "... d_v"], floor: float = 0.1) -> None:
        """Measure inputs from now on in units of the spread of these; directions of little spread
        are not blown up further."""
        spread = v.flatten(0, -2).std(0, correction=0)
        largest = spread.max()
        self.spread.copy_(
            spread.clamp(min=floor * largest) if largest > 0 else torch.ones_like(spread)
        )
        for layer in self._steps():
            layer.kappa.standardised(self.spread, v.square().sum(-1).mean().sqrt().clamp(min=1e-30))

    def _steps(self) -> list[Layer]:
        kernels: list[Any] = [self.layers[i % len(self.layers)] for i in range(self.depth)]
        return kernels if self.prior is None else [self.prior, *kernels]

    def _widened(self, x: Float[Tensor, "b n *grid d"]) -> Float[Tensor, "b n *grid _"]:
        """Streams with their memory, empty."""
        return nn.functional.pad(x, (0, self.memory)) if self.memory else x

    def encode(
        self, space: Space, f: Any, x: Tensor | None, name: str
    ) -> tuple[Tensor, tuple[int, ...]]:
        """Functions as coefficients of V or U in the model's precision, and the shape of their
        grid; `name` is for error messages."""
        if x is None:
            space.check_coordinates(f, name)
        f = to_tensor(f, name)
        grid = space.check(f, x, name)
        cast = f.to(self.spread)
        return space.encode(f if cast is f else to_tensor(cast, name), x), grid

    def forward(
        self,
        v: Float[Tensor, "b n *grid d_v"],
        u: Float[Tensor, "b n *grid d_u"],
        v_query: Float[Tensor, "b m *grid d_v"],
        mask: Bool[Tensor, "b n"] | None = None,
    ) -> Float[Tensor, "b m *grid d_u"]:
        """Examples and queries in one pass, in coefficients, for a batch of tasks; examples where
        mask is False do not count."""
        return self.query(self.condition(v, u, mask), v_query)[-1]

    def condition(
        self,
        v: Float[Tensor, "b n *grid d_v"],
        u: Float[Tensor, "b n *grid d_u"],
        mask: Bool[Tensor, "b n"] | None = None,
        known: list[Known] | None = None,
    ) -> list[Any]:
        """What each layer keeps of the examples: all that a query needs. known: what each layer
        kept of some of them before."""
        v, u, kept = self._widened(v / self.spread), self._widened(u), []
        for i, layer in enumerate(self._steps()):
            last = i + 1 == len(self._steps())
            v, u, sources = self._run(
                layer.condition, v, u, mask, None if known is None else known[i], last
            )
            kept.append(sources)
        return kept

    def query(
        self, kept: list[Any], v: Float[Tensor, "b m *grid d_v"]
    ) -> list[Float[Tensor, "b m *grid d_u"]]:
        """The queries' stream after each layer; the last is the answer."""
        v, u, stream = (
            self._widened(v / self.spread),
            self._widened(v.new_zeros(*v.shape[:-1], self.U.size)),
            [],
        )
        for layer, sources in zip(self._steps(), kept, strict=True):
            v, u = self._run(layer.query, sources, v, u)
            stream.append(u[..., : self.U.size])
        return stream

    def _run(self, step: Callable[..., Any], *inputs: Any) -> Any:
        return (
            checkpoint(step, *inputs, use_reentrant=False)
            if self.checkpointing and self.training
            else step(*inputs)
        )

    def read(
        self, v: Float[Tensor, "1 n *grid d_v"], u: Float[Tensor, "1 n *grid d_u"]
    ) -> list[Any]:
        """What each layer needs of n functions and their images whichever of them are examples."""
        v, u, reads = self._widened(v / self.spread), self._widened(u), []
        for layer in self._steps():
            v = layer.F(v)
            reads.append(layer.kappa.read(v, u))
        return reads

    def split(
        self, reads: list[Any], u: Float[Tensor, "1 n d_u"], mask: Bool[Tensor, "b n"]
    ) -> Float[Tensor, "b n d_u"]:
        """The answers at the functions that were read, from those where mask is True as examples,
        for b masks: at the examples themselves they mean nothing."""
        streams = self._widened(u * mask[..., None])
        for i, (layer, read) in enumerate(zip(self._steps(), reads, strict=True)):
            streams = layer.kappa.split(read, layer.G(streams), mask, carry=i + 1 < len(reads))
        return streams[..., : self.U.size]

    def split_errors(
        self, reads: list[Any], mask: Bool[Tensor, "b n"]
    ) -> Float[Tensor, "b n"] | None:
        """|u - answer|^2 in coefficients, at the functions that were read, where that takes less
        than the answers; else None."""
        return self._steps()[0].kappa.squared_errors(reads[0], mask) if len(reads) == 1 else None

    @property
    def leaves_out(self) -> bool:
        """Whether conditioning says, of each example, what is left of it when it is left out."""
        return self._steps()[-1].kappa.leaves_out and not self.config["G"]

    def deviations(self, kept: list[Any], v: Float[Tensor, "b m d_v"]) -> Float[Tensor, "b m"]:
        """How unsure the last layer is of each query, in the units of its examples' own
        deviations."""
        return self._steps()[-1].kappa.deviations(kept[-1], self.transformed(v)[-1])

    def transformed(self, v: Float[Tensor, "b n *grid d_v"]) -> list[Float[Tensor, "b n *grid _"]]:
        """The inputs' stream after each layer's F."""
        v, stream = self._widened(v / self.spread), []
        for layer in self._steps():
            v = layer.F(v)
            stream.append(v)
        return stream

    @torch.no_grad()
    def remember(self, examples: ExampleSet) -> Transducer:
        """A Transducer that knows what these examples tell before it is given any: they are kept in
        its weights (kernels/remembered.py). Its own layer, which is not trained yet, regresses how
        the operator of new examples differs. Spaces that measure fields and have not yet, here and
        there, measure these.

        >>> T.remember(every_day).regress(last_fortnight)
        """
        if self.prior is not None or self.depth != 1 or self.config["kappa"] != "metric":
            raise TransduceError(
                f"remember was asked of a model of {self.depth} layers with "
                f"kappa={self.config['kappa']!r}, a prior: "
                f"{self.prior is not None}; expected one layer with kappa='metric' and no prior."
            )
        for space, f in ((self.V, examples.v), (self.U, examples.u)):
            space.measure(to_tensor(f, "the examples").to(self.spread))
        remembering = {"signal": DIFFERENCE, "prior": {"pairs": len(examples)}}
        T = Transducer.from_config({**self.config, **remembering}).to(self.spread)
        for mine, its in ((self.V, T.V), (self.U, T.U)):
            its.load_state_dict(mine.state_dict())
        T.spread.copy_(self.spread)
        (v, _), (u, _) = (
            self.encode(space, f, None, name)
            for space, f, name in ((self.V, examples.v, "v"), (self.U, examples.u, "u"))
        )
        kernel, prior = self.layers[0].kappa, T._steps()[0].kappa
        assert isinstance(kernel, Metric | Local) and isinstance(prior, Remembered)
        prior.remember(kernel, v / self.spread, u)
        return T.eval()

    def regress(self, examples: Any, *others: Any) -> ConditionedOperator:
        """One pass over the examples, an ExampleSet and nothing else; the result is called on new
        functions."""
        if others or not isinstance(examples, ExampleSet):
            received = " and ".join(type(given).__name__ for given in (examples, *others))
            raise TransduceError(
                f"regress expects an ExampleSet, received {received}. Give ExampleSet(v, u)."
            )
        return ConditionedOperator(self, examples)
