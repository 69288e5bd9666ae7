"""The contract of a kernel kappa between functions (equation 4, Proposition 1).

    u_hat(v) = sum_i kappa(v_i, v)(u_i)

A kernel is computed in two halves. `condition` fits it to the examples, once. `forward` answers any
number of queries from that fit. These two methods make a kernel; all others have defaults that are
correct for every kernel, and that a kernel overrides where it knows a faster way.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Generic, NamedTuple, TypeVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ..configs import Part
from ..spaces import Space
from ..types import TransduceError
from .posterior import Posterior


@dataclass(frozen=True, kw_only=True)
class Fit:
    """What a kernel keeps of its examples: all that a query needs.

    Attributes:
        residual: u_i minus the answer at v_i without example i; None if the kernel has none.
        deviation: standard deviation of that answer, up to a factor common to all functions: of
            each function, shape (b, n), or of each coefficient, shape of the residual.
        in_sample: u_i minus the answer at v_i of all examples, of kernels with few parameters.
        error: expected squared error in units of that of the mean of the examples, shape (b,).
        honesty: factor of bands, shape (b,); None for 1.
    """

    residual: Tensor | None = None
    deviation: Tensor | None = None
    in_sample: Tensor | None = None
    error: Tensor | None = None
    honesty: Tensor | None = None

    @property
    def nbytes(self) -> int:
        """The memory that the fit holds. Tensors that share memory count once."""
        held = (tensor.untyped_storage() for tensor in _tensors(self))
        return sum({storage.data_ptr(): storage.nbytes() for storage in held}.values())


def _tensors(value: object) -> Iterator[Tensor]:
    """All tensors in a fit, its parts, and tuples and lists of these."""
    if isinstance(value, Tensor):
        yield value
    elif is_dataclass(value):
        yield from _tensors([getattr(value, field.name) for field in fields(value)])
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _tensors(item)


@dataclass(frozen=True)
class Reading:
    """What `Kappa.read` computes of functions, before it is known which of them are examples."""

    v: Tensor


class Answer(NamedTuple):
    """One of several answers: its weight, and its leave-one-out residuals."""

    weight: float
    residual: Float[Tensor, "n d_u"]


F = TypeVar("F", bound=Fit)
R = TypeVar("R", bound=Reading)


class Kappa(Part, Generic[F, R]):
    """A kernel between functions. Subclasses implement `condition` and `forward`.

    Attributes:
        leaves_out: whether `condition` returns leave-one-out residuals and deviations.
        rigid: whether it has so few parameters that one example less hardly moves its answers.
        chunk: number of queries answered at once, so that memory stays in the cache.
        systems: number of regressions that one fit consists of, such as one for each place.
        is_shared: whether it is one law for all points of a function.
        exports: whether ONNX can compute its answers.
        has_exact_gradients: whether its answers have derivatives with respect to the examples.
    """

    leaves_out: bool = False
    rigid: bool = False
    chunk: int = 1024
    is_shared: bool = False
    exports: bool = True
    has_exact_gradients: bool = True

    @property
    def systems(self) -> int:
        return 1

    def condition(
        self,
        v: Float[Tensor, "b n *grid d_v"],
        u: Float[Tensor, "b n *grid d_u"],
        mask: Bool[Tensor, "b n"] | None = None,
    ) -> F:
        """Fit the kernel to the examples of b tasks; those where `mask` is False do not count."""
        raise NotImplementedError

    def forward(self, fit: F, v: Float[Tensor, "b m *grid d_v"]) -> Float[Tensor, "b m *grid d_u"]:
        """sum_i kappa(v_i, v)(u_i) at each query v."""
        raise NotImplementedError

    def refit(
        self,
        fit: F,
        v: Float[Tensor, "b n *grid d_v"],
        u: Float[Tensor, "b n *grid d_u"],
        mask: Bool[Tensor, "b n"] | None = None,
    ) -> F:
        """Fit other examples with the choices of `fit`: scales, mixture weights, summaries.
        A kernel that chooses nothing from its examples need not override this."""
        return self.condition(v, u, mask)

    def update(
        self,
        fit: F,
        rows: Sequence[int],
        v: Float[Tensor, "b n *grid d_v"],
        u: Float[Tensor, "b n *grid d_u"],
    ) -> F:
        """Fit the examples v, u, the first of which are these rows of the examples of `fit`."""
        return self.condition(v, u)

    def carry(
        self, fit: F, v: Float[Tensor, "b n *grid d_v"], u: Float[Tensor, "b n *grid d_u"]
    ) -> Float[Tensor, "b n *grid d_u"]:
        """The examples' outputs for the next layer: residuals if there are any, else u + kappa."""
        return u + self(fit, v) if fit.residual is None else fit.residual

    def weights(
        self,
        v: Float[Tensor, "b n *grid d_v"],
        u: Float[Tensor, "b n *grid d_u"],
        query: Float[Tensor, "b m *grid d_v"],
        mask: Bool[Tensor, "b n"] | None = None,
    ) -> Float[Tensor, "b m n"]:
        """How much each example counts for each query: the trace of d u_hat(v) / d u_i, divided by
        the size of U, with the choices of the fit held fixed."""
        with torch.enable_grad():
            u = u.detach().requires_grad_()
            fit = self.condition(v, u.detach(), mask)
            answers = self(self.refit(fit, v, u, mask), query).flatten(2)
            columns = [_diagonal(answers[:, m], u) for m in range(query.shape[1])]
        return torch.stack(columns, 1) / answers.shape[2]

    def deviations(self, fit: F, v: Float[Tensor, "b m *grid d_v"]) -> Float[Tensor, "b m *_"]:
        """The standard deviation of each query's answer, in the units of `fit.deviation`."""
        raise no_residuals(type(self).__name__)

    def least_deviations(
        self, fit: F, v: Float[Tensor, "b m *grid d_v"]
    ) -> Float[Tensor, "b m *_"] | None:
        """The standard deviation that each query's answer has at least, in the units of u,
        whatever the errors at the examples. None for 0."""
        return None

    def read(
        self, v: Float[Tensor, "1 n *grid d_v"], u: Float[Tensor, "1 n *grid d_u"] | None
    ) -> R:
        """What `split` needs of n functions, before it is known which of them are examples.

        Args:
            v: the functions.
            u: the outputs that `split` will be given; None if these differ between tasks.
        """
        return Reading(v)  # type: ignore[return-value]

    def split(
        self,
        reading: R,
        u: Float[Tensor, "b n *grid d_u"],
        mask: Bool[Tensor, "b n"],
        carry: bool = True,
    ) -> Float[Tensor, "b n *grid d_u"]:
        """The streams of b tasks after the layer.

        Args:
            reading: from `read`.
            u: the streams before the layer.
            mask: in each task, True for examples and False for queries.
            carry: whether the examples' streams are needed; if not, they may be anything.
        """
        v = reading.v.expand(len(mask), *reading.v.shape[1:])
        fit = self.condition(v, u, mask)
        answers = u + self(fit, v)
        return (
            torch.where(per_function(mask, u), self.carry(fit, v, u), answers) if carry else answers
        )

    def squared_errors(self, reading: R, mask: Bool[Tensor, "b n"]) -> Float[Tensor, "b n"] | None:
        """|u - answer|^2, summed over coefficients, for each task and function that was read;
        None if there is no faster way than to compute the answers."""
        return None

    def between(self, V: Space, U: Space) -> Kappa:
        """The same kernel between functions of other spaces."""
        raise TransduceError(
            f"{type(self).__name__} is made for one pair of spaces and cannot be moved to "
            f"{V.config()} and {U.config()}. Interpolate functions to the model's own."
        )

    def differentiable(self) -> Kappa:
        """The same kernel without parts that have no exact derivatives with respect to the
        examples."""
        return self

    def exportable(self) -> Kappa:
        """The same kernel without parts that ONNX cannot compute."""
        return self

    @property
    def shared(self) -> list[str]:
        """The answers that are one law for all points; none of most kernels."""
        return []

    def named_answers(self, fit: F) -> dict[str, Answer]:
        """The answers that a kernel weighs for the first task; none for most kernels."""
        return {}

    def answers_by_name(
        self, fit: F, v: Float[Tensor, "b m *grid d_v"], names: Collection[str] | None = None
    ) -> dict[str, Float[Tensor, "b m *grid d_u"]]:
        """The answers that a kernel weighs, at queries; none for most kernels.
        names: of some of them; None for all."""
        return {}

    def posteriors(self, fit: F) -> list[tuple[float, Posterior]]:
        """Weights and covariances of what the examples of the first task leave unknown; none for
        kernels that are no Gaussian process."""
        return []

    def standardised(self, spread: Float[Tensor, " d_v"], size: Float[Tensor, ""]) -> None:
        """Hook called once before training with the scale of the inputs.
        Inputs come divided by `spread`; `size` is the root mean square norm before that."""


def no_residuals(what: str) -> TransduceError:
    """The error of kernels and models without leave-one-out residuals."""
    return TransduceError(
        f"{what} has no leave-one-out residuals and therefore no bands; expected kernels that "
        "solve for their coefficients, in layers without G, such as those of 'adr' and 'burgers'. "
        "Use such a model, or uncertainty.conformal."
    )


def per_function(
    mask: Bool[Tensor, "b n"], u: Float[Tensor, "_ n *rest"]
) -> Bool[Tensor, "b n *_"]:
    """The mask with one axis for each further axis of u, to broadcast against it."""
    return mask.reshape(*mask.shape, *[1] * (u.ndim - 2))


def _diagonal(
    answers: Float[Tensor, "b q"], u: Float[Tensor, "b n *grid d_u"]
) -> Float[Tensor, "b n"]:
    """sum_k d answers_k / d u_ik for each example i."""
    total = u.new_zeros(u.shape[:2])
    if not answers.requires_grad:
        return total
    for k in range(answers.shape[1]):
        (gradient,) = torch.autograd.grad(
            answers[:, k].sum(), u, retain_graph=True, allow_unused=True
        )
        if gradient is not None:
            total = total + gradient.flatten(2)[..., k]
    return total
