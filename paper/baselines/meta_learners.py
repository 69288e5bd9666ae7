"""Baselines that are meta-trained, as the Transducer is, to classify images from examples.

    MAML
    theta_0 = theta,  theta_k = theta_(k-1) - eta * grad L(D, theta_(k-1)),
    p(v) = f(v; theta_K)
    GPICL   p(v) = transformer([(v_1, u_1), ..., (v_n, u_n)], (v, 0))

MAML (Finn et al., 2017) learns where to start, and here also how far each layer steps (Li et al.,
2017), so that K steps of descent on the examples do; gradients are taken through the steps. Its
network is convolutional, with a last layer that starts at zero, as renamed classes leave nothing to
start from. The transformer (Kirsch et al., 2022) reads examples and a query as tokens, and is given
no learning rule at all. Both are trained by cross-entropy with the true classes."""

from __future__ import annotations

import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import cross_entropy, gelu, unfold

from transduce.spaces import Euclidean
from transduce.types import ExampleSet, like, to_tensor


class MetaLearner(nn.Module):
    """A Regressor from vectors to the probabilities of classes, which `metatrain` trains as it does
    a Transducer.

    size: of the vectors. config: all that the model was made with.
    """

    leaves_out = False
    probabilities = True  # its answers are probabilities of classes

    def __init__(self, size: int, classes: int, **config: Any):
        super().__init__()
        self.V, self.U = Euclidean(size), Euclidean(classes)
        self.config = {"learner": type(self).__name__, "size": size, "classes": classes, **config}
        self.spread: Tensor
        self.register_buffer("spread", torch.ones(size), persistent=False)

    def condition(self, v: Float[Tensor, "b n d"], u: Float[Tensor, "b n k"]) -> list[Any]:
        """The examples: what is learned from them is worked out with the queries."""
        return [v, u]

    def query(self, kept: list[Any], v: Float[Tensor, "b m d"]) -> list[Float[Tensor, "b m k"]]:
        """The probabilities of each query's classes."""
        v_examples, u_examples = kept
        return [self.logits(v_examples, u_examples, v).softmax(-1)]

    def logits(
        self, v: Float[Tensor, "b n d"], u: Float[Tensor, "b n k"], v_query: Float[Tensor, "b m d"]
    ) -> Float[Tensor, "b m k"]:
        raise NotImplementedError

    def regress(self, examples: ExampleSet) -> MetaLearned:
        return MetaLearned(
            self, to_tensor(examples.v, "examples.v"), to_tensor(examples.u, "examples.u")
        )


class MetaLearned:
    """v -> the probabilities of its classes."""

    def __init__(self, learner: MetaLearner, v: Float[Tensor, "n d"], u: Float[Tensor, "n k"]):
        self.learner, self.kept = learner, learner.condition(v.float()[None], u.float()[None])

    def __call__(self, v: Any) -> Any:
        with torch.no_grad():
            return like(self.learner.query(self.kept, to_tensor(v, "v").float()[None])[0][0], v)


class Strided(nn.Module):
    """Images to vectors by convolutions, the first two of stride 2, as products with patches:
    gradients of gradients of these are fast."""

    def __init__(self, side: int, channels: tuple[int, ...], out: int):
        super().__init__()
        self.side, wide = side, (1, *channels)
        self.layers = nn.ModuleList(
            nn.Linear(a * (9 if i else 25), b)
            for i, (a, b) in enumerate(zip(wide, channels, strict=False))
        )
        self.norms = nn.ModuleList(nn.LayerNorm(c) for c in channels)
        self.out = nn.Linear(channels[-1] * (side // 4) ** 2, out)

    def forward(self, v: Float[Tensor, "n d"]) -> Float[Tensor, "n e"]:
        h = v.reshape(-1, 1, self.side, self.side)
        for i, (layer, norm) in enumerate(zip(self.layers, self.norms, strict=True)):
            patches = unfold(h, 3 if i else 5, padding=1 if i else 2, stride=2 if i < 2 else 1)
            side = math.isqrt(patches.shape[-1])
            h = gelu(norm(layer(patches.mT))).mT.unflatten(2, (side, side))
        return gelu(self.out(h.flatten(1)))


class Maml(MetaLearner):
    """convolutions, out: the channels of the network's layers, and what the last layer sees. steps:
    K. rate: eta at first."""

    def __init__(
        self,
        size: int = 784,
        classes: int = 10,
        convolutions: tuple[int, ...] = (16, 32, 32),
        out: int = 128,
        steps: int = 5,
        rate: float = 0.1,
    ):
        super().__init__(size, classes, convolutions=convolutions, out=out, steps=steps, rate=rate)
        self.features, self.steps = Strided(math.isqrt(size), convolutions, out), steps
        self._last = {"weight": (classes, out), "bias": (classes,)}
        names = [*(name for name, _ in self.features.named_parameters()), *self._last]
        self.log_rates = nn.ParameterDict(
            {name.replace(".", "_"): torch.full((steps,), math.log(rate)) for name in names}
        )

    def logits(
        self, v: Float[Tensor, "b n d"], u: Float[Tensor, "b n k"], v_query: Float[Tensor, "b m d"]
    ) -> Float[Tensor, "b m k"]:
        return torch.stack([self._adapted(*task) for task in zip(v, u, v_query, strict=True)])

    def _adapted(
        self, v: Float[Tensor, "n d"], u: Float[Tensor, "n k"], v_query: Float[Tensor, "m d"]
    ) -> Float[Tensor, "m k"]:
        through = torch.is_grad_enabled()
        theta: dict[str, Tensor] = dict(self.features.named_parameters())
        theta |= {
            name: v.new_zeros(shape, requires_grad=True) for name, shape in self._last.items()
        }
        with torch.enable_grad():
            for step in range(self.steps):
                gradients = torch.autograd.grad(
                    cross_entropy(self._logits(theta, v), u),
                    list(theta.values()),
                    create_graph=through,
                )
                moves = zip(theta.items(), gradients, strict=True)
                theta = {
                    name: value - self._rate(name, step) * gradient
                    for (name, value), gradient in moves
                }
                if not through:
                    theta = {name: value.detach().requires_grad_() for name, value in theta.items()}
        return self._logits(theta, v_query)

    def _logits(self, theta: dict[str, Tensor], v: Float[Tensor, "n d"]) -> Float[Tensor, "n k"]:
        of_features = {name: value for name, value in theta.items() if name not in self._last}
        return functional_call(self.features, of_features, (v,)) @ theta["weight"].T + theta["bias"]

    def _rate(self, name: str, step: int) -> Tensor:
        return self.log_rates[name.replace(".", "_")][step].exp()


class Gpicl(MetaLearner):
    """A transformer of so many layers and heads; every token sees the examples, and a query also
    itself."""

    def __init__(
        self, size: int = 784, classes: int = 10, width: int = 256, layers: int = 4, heads: int = 8
    ):
        super().__init__(size, classes, width=width, layers=layers, heads=heads)
        self.token = nn.Linear(size + classes, width)
        block = nn.TransformerEncoderLayer(
            width,
            heads,
            4 * width,
            dropout=0.0,
            activation="gelu",
            batch_first=True,
            norm_first=True,
        )
        self.blocks = nn.TransformerEncoder(
            block, layers, nn.LayerNorm(width), enable_nested_tensor=False
        )
        self.out = nn.Linear(width, classes)

    def logits(
        self, v: Float[Tensor, "b n d"], u: Float[Tensor, "b n k"], v_query: Float[Tensor, "b m d"]
    ) -> Float[Tensor, "b m k"]:
        n, m = v.shape[1], v_query.shape[1]
        unknown = u.new_zeros(len(u), m, u.shape[-1])
        tokens = self.token(torch.cat([torch.cat([v, v_query], 1), torch.cat([u, unknown], 1)], -1))
        hidden = torch.ones(n + m, n + m, dtype=torch.bool, device=v.device)
        hidden[:, :n] = False
        hidden.fill_diagonal_(False)
        return self.out(self.blocks(tokens, mask=hidden)[:, n:])
