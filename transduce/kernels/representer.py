"""A kernel that solves for its coefficients: what Theorem 2 says the minimiser is, in closed form
(docs/representer.md).

    u_hat(v) = sum_j w_j sum_i k_j(v_i, v) alpha_ij,        alpha_j = (K_j + lambda_j I)^-1 u
    k_j(v, v') = (1 - c_j) <phi_h(v), phi_h(v')> / s_h + c_j exp(-g_j |M v - M v'|^2)

Each head h has learned features phi_h and several candidates j: a ridge lambda, and the share c and
width g of a universal kernel, so that error falls with n beyond what features can say. s_h is the
mean of |phi_h|^2 over the examples (to the nearest power of four: one example more or less seldom
changes it), so ridges are relative to the kernel's trace. The candidates of PLAIN learn nothing: v
as it is, fixed width and ridge, c = 1 or nearly. They are kernel ridge regression. The residual of
example i, left out,

    r_ij = u_i - u_hat_j^{-i}(v_i) = alpha_ij / [(K_j + lambda_j I)^-1]_ii

comes with the factor. It mixes the candidates (see mixing.py). The examples carry the mixed r_i to
the next layer, which thus regresses what this one leaves."""

from __future__ import annotations

from functools import lru_cache
from typing import ClassVar, NamedTuple

import torch
from einops import rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ..types import TransduceError
from .kappa import Known
from .mixing import Mixing
from .systems import (
    PACE,
    SMALLEST_RIDGE,
    Solve,
    apply_inverse,
    extended,
    identity_like,
    inverse_factor,
    without,
)

# examples; with more, the universal kernels are spanned by LANDMARKS of them, and cost is linear in
# n
EXACT = 1024
LANDMARKS = 512
# of candidates that learn nothing: width g in units of the inputs' mean square norm, ridge, and
# share of the first head's features
PLAIN = (
    *((g, 1e-12, 0.0) for g in (0.001, 0.003, 0.008, 0.02, 0.05)),
    (0.02, 1e-6, 0.0),
    (0.004, 1e-12, 1e-4),
    (0.015, 1e-12, 1e-4),
)
FEW = (
    1 / 16
)  # of the examples may change for an update, n^2 each, to be cheaper than a new factor, n^3


@lru_cache(maxsize=8)
def _rows(table: tuple[tuple[float, ...], ...], device: torch.device) -> Float[Tensor, "k p"]:
    """PLAIN as a tensor, a row for each quantity; in double precision whatever the model's."""
    with torch.inference_mode(False):  # a tensor that is kept must serve gradients later
        return torch.tensor(table, dtype=torch.float64, device=device).T


def _power_of_four(f: Float[Tensor, "*s"]) -> Float[Tensor, "*s"]:
    """The one nearest to f."""
    return 4 ** f.clamp(min=1e-30).log2().div(2).round()


def _rows_of(u: Float[Tensor, "b n q"], rows: Int[Tensor, "b k"]) -> Float[Tensor, "b k q"]:
    return u.gather(1, rows[..., None].expand(-1, -1, u.shape[-1]))


class Features(nn.Module):
    """phi(v) = A v + B h_L,  h_1 = gelu(C_1 v),  h_l = h_{l-1} + gelu(C_l h_{l-1}); without hidden
    layers, phi(v) = A v."""

    def __init__(self, d: int, hidden: int, layers: int, out: int):
        super().__init__()
        self.linear = nn.Linear(d, out)
        self.layers = nn.ModuleList(nn.Linear(hidden if i else d, hidden) for i in range(layers))
        self.out = nn.Linear(hidden, out, bias=False) if layers else None

    def forward(self, v: Float[Tensor, "b n d"]) -> Float[Tensor, "b n e"]:
        phi, h = self.linear(v), v
        for i, layer in enumerate(self.layers):
            step = nn.functional.gelu(layer(h))
            h = h + step if i else step
        return phi if self.out is None else phi + self.out(h)


class Solution(NamedTuple):
    """What a query needs, sum_h phi_h(v) linear_h + sum_g R_g(v, points) radial_g, and what bands
    and updates need."""

    linear: Float[Tensor, "b h p q"]
    radial: Float[Tensor, "b g l q"] | None
    points: Float[Tensor, "b 2 l d"]
    phi: Float[Tensor, "b h n p"]
    scale: Float[Tensor, "b h 1 1"]
    W: Float[Tensor, "b j r r"]
    root: Float[Tensor, "b g l l"] | None
    mix: Float[Tensor, "b j q"]
    residual: Float[Tensor, "b n q"]
    deviation: Float[Tensor, "b n"]
    mask: Bool[Tensor, "b n"] | None
    exact: bool  # whether the n x n systems were solved, not those of the features
    versions: list[int]  # of the parameters, which must not have changed for an update


class Read(NamedTuple):
    """What all tasks on the same functions share: |phi_h|^2 of each, and of all pairs what the
    kernels are made of."""

    sizes: Float[Tensor, "1 h n"]
    parts: Float[Tensor, "s n n"]


class Solved(NamedTuple):
    """One of the two systems, solved for every candidate before they are mixed."""

    residuals: Float[Tensor, "b j n q"]
    variances: Float[Tensor, "b j n"]
    coefficients: Float[Tensor, "b j r q"]
    W: Float[Tensor, "b j r r"]


class Representer(Mixing):
    """`heads` of `width` features, each with `ridges` candidates. hidden, feature_layers: of the
    network phi. universal: whether the kernels have their second part, and there is a plain head;
    without it there are the learned features alone."""

    options: ClassVar[tuple[str, ...]] = ("hidden", "feature_layers", "ridges", "universal")

    def __init__(
        self,
        d_v: int,
        d_u: int,
        heads: int,
        width: int,
        hidden: int = 256,
        feature_layers: int = 5,
        ridges: int = 2,
        universal: bool = True,
    ):
        super().__init__()
        if min(heads, width, ridges) < 1 or feature_layers < 0:
            raise TransduceError(
                f"heads={heads}, width={width}, ridges={ridges}, feature_layers={feature_layers}; "
                "expected at least one of the first three."
            )
        self.heads, self.ridges, self.universal = heads, ridges, universal
        self.head: Tensor  # of each candidate
        self.kind: Tensor  # the universal kernel of each
        self.of_head: Tensor  # the same as matrices of zeros and ones
        self.of_kind: Tensor
        self.features = Features(d_v, hidden, feature_layers, heads * width)
        place = (
            torch.linspace(0, 1, ridges) if ridges > 1 else torch.tensor([0.5])
        )  # from noisy examples to exact ones
        self.log_ridge = nn.Parameter((-4.0 - 12.0 * place).div(PACE).repeat(heads, 1))
        if universal:
            self.log_odds = nn.Parameter(torch.full((heads, ridges), -4.0 / PACE))
            self.log_width = nn.Parameter((-4.0 + 2.0 * place) / PACE)
            self.metric = nn.Parameter(torch.full((d_v,), d_v**-0.5))
            self.plain = nn.Parameter(torch.full((d_v,), d_v**-0.5), requires_grad=False)
        plain = len(PLAIN) if universal else 0
        head = torch.tensor([h for h in range(heads) for _ in range(ridges)] + [0] * plain)
        kind = torch.tensor([*range(ridges)] * heads + [*range(ridges, ridges + plain)])
        constants = {"head": head, "kind": kind}
        constants |= {
            "of_head": nn.functional.one_hot(head).double(),
            "of_kind": nn.functional.one_hot(kind).double(),
        }
        for name, value in constants.items():
            self.register_buffer(name, value, persistent=False)
        self.start_mixing(heads * ridges + plain, d_u)

    def standardised(self, spread: Float[Tensor, " d_v"], size: Float[Tensor, ""]) -> None:
        """Universal kernels start from, and the plain ones stay with, distances between functions
        as they are."""
        if self.universal:
            self.metric.copy_(spread / size)
            self.plain.copy_(spread / size)

    def condition(
        self,
        v: Float[Tensor, "b n d_v"],
        u: Float[Tensor, "b n d_u"],
        mask: Bool[Tensor, "b n"] | None = None,
        known: Known | None = None,
    ) -> Solution:
        there = torch.ones_like(u[..., 0], dtype=torch.float64) if mask is None else mask.double()
        target, phi, points = u.double(), self._features(v), self._points(v)
        if mask is not None:
            target, phi = target * there[..., None], phi * there[:, None, :, None]
        count = there.sum(-1)
        scale = self._scale(phi, count)
        phi, exact, root = phi / scale.sqrt(), v.shape[1] <= EXACT, None
        if exact:
            solved = self._solve(
                phi, points, target, there, self._reusable(known, scale, mask, v.shape[1])
            )
        else:
            if mask is not None:
                raise TransduceError(
                    f"more than {EXACT} examples and a mask; expected one or the other. Condition "
                    "on one task at a time."
                )
            centres = points[
                :, :, torch.linspace(0, v.shape[1] - 1, LANDMARKS, device=v.device).long()
            ]
            root = self._root(centres) if self.universal else None
            solved = self._solve_by_features(phi, points, centres, root, target)
            points = centres
        mix, residual = self.mixed(solved.residuals, target, count)
        linear, radial = self._summed(mix[:, :, None] * solved.coefficients, phi, root, exact)
        deviation = (self.blame(mix, residual)[..., None] * solved.variances).sum(1).sqrt()
        return Solution(
            linear,
            radial,
            points,
            phi,
            scale,
            solved.W,
            root,
            mix,
            residual.to(u.dtype),
            deviation,
            mask,
            exact,
            self._versions(),
        )

    def forward(self, sources: Solution, v: Float[Tensor, "b m d_v"]) -> Float[Tensor, "b m d_u"]:
        u = (self._features(v) / sources.scale.sqrt() @ sources.linear).sum(1)
        if sources.radial is not None:
            u = u + (self._radial(self._points(v), sources.points) @ sources.radial).sum(1)
        return u.to(v.dtype)

    def carry(
        self, sources: Solution, v: Float[Tensor, "b n d_v"], u: Float[Tensor, "b n d_u"]
    ) -> Float[Tensor, "b n d_u"]:
        """What is left of each example when it is left out: the next layer's task."""
        return sources.residual

    def read(self, v: Float[Tensor, "1 n d_v"], u: Float[Tensor, "1 n d_u"]) -> Read:
        if v.shape[1] > EXACT:
            raise TransduceError(
                f"many regressions on {v.shape[1]} functions; expected at most {EXACT}. Give fewer."
            )
        phi, points = self._features(v), self._points(v)
        return Read(phi.square().sum(-1), self._parts(phi, points, phi, points)[0])

    def split(
        self, read: Read, u: Float[Tensor, "b n d_u"], mask: Bool[Tensor, "b n"], carry: bool = True
    ) -> Float[Tensor, "b n d_u"]:
        """Each task solves the systems of its own examples; rows of fewer are filled up with the
        identity's."""
        count, order = mask.sum(1), mask.int().argsort(dim=1, descending=True, stable=True)
        examples, queries = order[:, : int(count.max())], order[:, int(count.min()) :]
        there = mask.gather(1, examples)
        scale = _power_of_four((read.sizes * mask[:, None]).sum(-1) / count[:, None])
        K = (
            self._combined(self._between(read, scale, examples, examples))
            * (there[:, None, :] & there[:, :, None])[:, None]
        )
        K.diagonal(dim1=-2, dim2=-1).add_(self._ridge + ~there[:, None])
        target = _rows_of(u, examples).double() * there[..., None]
        alpha, diagonal, _ = Solve.apply(K, target)
        mix, residual = self.mixed(alpha / diagonal[..., None], target, count.double())
        coefficients = self._combined(mix[:, :, None] * alpha, back=True)
        answers = rearrange(
            self._between(read, scale, queries, examples), "b s m k -> b m (s k)"
        ) @ coefficients.flatten(1, 2)
        streams = u.scatter_add(1, queries[..., None].expand_as(answers), answers.to(u))
        left = torch.zeros_like(u).scatter_add(
            1, examples[..., None].expand_as(residual), residual.to(u)
        )
        return torch.where(mask[..., None], left, streams)

    def weights(self, sources: Solution, v: Float[Tensor, "b m d_v"]) -> Float[Tensor, "b j m n"]:
        """The factor of u_i in each candidate's answer: k_j(v) (K_j + lambda_j I)^-1. Of either
        sign, and their sum is free."""
        if not sources.exact:
            raise TransduceError(
                f"weights of {sources.residual.shape[1]} examples; expected at most {EXACT}. Give "
                "fewer."
            )
        return (
            self._across(sources, self._features(v) / sources.scale.sqrt(), self._points(v))
            @ sources.W.mT
            @ sources.W
        )

    def deviations(self, sources: Solution, v: Float[Tensor, "b m d_v"]) -> Float[Tensor, "b m"]:
        """The standard deviation of each query under the Gaussian processes that the kernels and
        their ridges are."""
        phi, points = self._features(v) / sources.scale.sqrt(), self._points(v)
        if sources.exact:
            variances = (
                self._prior(phi)
                + self._ridge
                - (self._across(sources, phi, points) @ sources.W.mT).square().sum(-1)
            )
        else:
            psi = self._design(phi, points, sources.points, sources.root)
            variances = self._unspanned(phi, psi) + self._ridge * (
                1 + (psi @ sources.W.mT).square().sum(-1)
            )
        return (
            (
                self.blame(sources.mix, sources.residual)[..., None]
                * variances.clamp(min=SMALLEST_RIDGE)
            )
            .sum(1)
            .sqrt()
        )

    def _solve(
        self, phi: Tensor, points: Tensor, u: Tensor, there: Tensor, known: Known | None
    ) -> Solved:
        """The n x n systems; examples that are not there get a row and a column of the identity."""
        if known is None:
            K = self._kernels(phi, points, phi, points)
            if not there.all():
                K = K * (there[:, None, :] * there[:, :, None])[:, None]
            K.diagonal(dim1=-2, dim2=-1).add_(self._ridge + (1 - there)[:, None])
            alpha, diagonal, W = Solve.apply(K, u)
        else:
            W = self._updated(known, phi, points)
            alpha, diagonal = apply_inverse(W, u), W.square().sum(-2)
        return Solved(alpha / diagonal[..., None], 1 / diagonal, alpha, W)

    def _updated(self, known: Known, phi: Tensor, points: Tensor) -> Tensor:
        """The factor after some examples are gone and others have come, each at a cost of n^2."""
        W, kept, n = known.sources.W, len(known.rows), phi.shape[2]
        for i in sorted(set(range(W.shape[-1])) - set(known.rows), reverse=True):
            W = without(W, i)
        if known.rows != sorted(known.rows):
            W = W[..., torch.tensor(known.rows).argsort().argsort()]
        rows = self._kernels(phi[:, :, kept:], points[:, :, kept:], phi, points)
        return extended(
            W,
            rows
            + self._ridge[..., None] * torch.eye(n, dtype=rows.dtype, device=rows.device)[kept:],
        )

    def _solve_by_features(
        self, phi: Tensor, points: Tensor, centres: Tensor, root: Tensor | None, u: Tensor
    ) -> Solved:
        """The p x p systems of the features, those of the universal kernels being their values at
        the landmarks, whitened."""
        psi, u, ridge = self._design(phi, points, centres, root), u[:, None], self._ridge
        gram = psi.mT @ psi
        W = inverse_factor(gram + ridge[..., None] * identity_like(gram))
        theta = W.mT @ (W @ (psi.mT @ u))
        left = (1 - (psi @ W.mT).square().sum(-1)).clamp(min=SMALLEST_RIDGE)
        return Solved(
            (u - psi @ theta) / left[..., None], self._unspanned(phi, psi) + ridge / left, theta, W
        )

    def _unspanned(self, phi: Tensor, psi: Tensor) -> Float[Tensor, "b j n"]:
        """What the landmarks leave of k_j(v, v)."""
        return (self._prior(phi) - psi.square().sum(-1)).clamp(min=0)

    def _prior(self, phi: Tensor) -> Float[Tensor, "b j n"]:
        """k_j(v, v)."""
        return (1 - self._share_of_radial) * phi.square().sum(-1)[
            :, self.head
        ] + self._share_of_radial

    def _summed(
        self, mixed: Tensor, phi: Tensor, root: Tensor | None, exact: bool
    ) -> tuple[Tensor, Tensor | None]:
        """The candidates' coefficients as one set for each head's features and one for each
        universal kernel."""
        if exact:
            parts = self._combined(mixed, back=True)
            linear, radial = parts.split([self.heads, parts.shape[1] - self.heads], 1)
            return phi.mT @ linear, radial if self.universal else None
        of_phi, of_radial = mixed.split([phi.shape[-1], mixed.shape[-2] - phi.shape[-1]], 2)
        root_of = self._combination(0.5).mT
        linear = (root_of[: self.heads] @ of_phi.flatten(2)).unflatten(2, of_phi.shape[2:])
        if root is None:
            return linear, None
        return linear, root.mT @ (root_of[self.heads :] @ of_radial.flatten(2)).unflatten(
            2, of_radial.shape[2:]
        )

    def _design(
        self, phi: Tensor, points: Tensor, centres: Tensor, root: Tensor | None
    ) -> Float[Tensor, "b j n r"]:
        """psi_j, of which k_j is the inner product."""
        c = self._share_of_radial[..., None].sqrt()
        psi = (1 - c.square()).sqrt() * phi[:, self.head]
        return (
            psi
            if root is None
            else torch.cat([psi, c * (self._radial(points, centres) @ root.mT)[:, self.kind]], -1)
        )

    def _root(self, centres: Tensor) -> Tensor:
        """What whitens the universal kernels' values at the landmarks."""
        R = self._radial(centres, centres)
        return inverse_factor(R + SMALLEST_RIDGE * identity_like(R))

    def _versions(self) -> list[int]:
        return [parameter._version for parameter in self.parameters()]

    def _reusable(
        self, known: Known | None, scale: Tensor, mask: Tensor | None, n: int
    ) -> Known | None:
        """Whether a factor helps: it was exact, of nearly the same examples and kernels, and nobody
        asks for gradients."""
        if (
            known is None
            or torch.is_grad_enabled()
            or not known.sources.exact
            or known.sources.versions != self._versions()
        ):
            return None
        if mask is not None or known.sources.mask is not None:
            return None
        old, kept = known.sources.residual.shape[1], len(known.rows)
        few = (old - kept) + (n - kept) <= max(1, FEW * old)
        return known if few and torch.equal(known.sources.scale, scale) else None

    def _features(self, v: Tensor) -> Float[Tensor, "b h n p"]:
        return rearrange(self.features(v), "b n (h p) -> b h n p", h=self.heads).double()

    def _points(self, v: Tensor) -> Float[Tensor, "b 2 n d"]:
        """v in the learned metric, and as it is."""
        if not self.universal:
            return v.double()[:, None].expand(-1, 2, -1, -1)
        return v.double()[:, None] * torch.stack([self.metric, self.plain])[:, None].double()

    def _kernels(
        self, phi: Tensor, points: Tensor, others: Tensor, other_points: Tensor
    ) -> Float[Tensor, "b j n l"]:
        """k_j between functions and others, the features of both being scaled."""
        return self._combined(self._parts(phi, points, others, other_points))

    def _parts(
        self, phi: Tensor, points: Tensor, others: Tensor, other_points: Tensor
    ) -> Float[Tensor, "b s n l"]:
        """What kernels are made of: <phi_h, phi_h> of each head, and each universal kernel."""
        linear = phi @ others.mT
        return (
            torch.cat([linear, self._radial(points, other_points)], 1) if self.universal else linear
        )

    def _combined(
        self, parts: Float[Tensor, "b s n l"], back: bool = False
    ) -> Float[Tensor, "b j n l"]:
        """The kernels made of these parts; or back, from what multiplies the kernels to what
        multiplies their parts."""
        combination = self._combination()
        return ((combination.mT if back else combination) @ parts.flatten(2)).unflatten(
            2, parts.shape[2:]
        )

    def _between(
        self, read: Read, scale: Float[Tensor, "b h"], a: Int[Tensor, "b m"], b: Int[Tensor, "b k"]
    ) -> Float[Tensor, "b s m k"]:
        """The parts between functions a and b of each task, the features scaled as it scales
        them."""
        parts = read.parts[:, a[:, :, None], b[:, None, :]].movedim(0, 1)
        linear, radial = parts.tensor_split([self.heads], 1)
        return torch.cat([linear / scale[..., None, None], radial], 1)

    def _across(self, sources: Solution, phi: Tensor, points: Tensor) -> Float[Tensor, "b j m n"]:
        """k_j between queries and examples, none where there is no example."""
        k = self._kernels(phi, points, sources.phi, sources.points)
        return k if sources.mask is None else k * sources.mask[:, None, None, :]

    def _radial(
        self, a: Float[Tensor, "b 2 n d"], b: Float[Tensor, "b 2 l d"]
    ) -> Float[Tensor, "b g n l"]:
        """exp(-g |a - b|^2) for each learned width, and for each plain one."""
        squared = (
            a.square().sum(-1)[..., :, None] + b.square().sum(-1)[..., None, :] - 2 * a @ b.mT
        ).clamp(min=0)
        widths = (
            (PACE * self.log_width.double()).exp()[:, None, None],
            _rows(PLAIN, squared.device)[0][:, None, None],
        )
        return torch.exp(-torch.cat([widths[0] * squared[:, :1], widths[1] * squared[:, 1:]], 1))

    @staticmethod
    @torch.no_grad()
    def _scale(phi: Tensor, count: Tensor) -> Float[Tensor, "b h 1 1"]:
        return _power_of_four(phi.square().sum((-2, -1)) / count[:, None])[..., None, None]

    @property
    def _ridge(self) -> Float[Tensor, "j 1"]:
        learned = (PACE * self.log_ridge.double()).exp().clamp(min=SMALLEST_RIDGE).flatten()
        return torch.cat(
            [learned, _rows(PLAIN, learned.device)[1]] if self.universal else [learned]
        )[:, None]

    @property
    def _share_of_radial(self) -> Float[Tensor, "j 1"]:
        """c: what part of a kernel is universal."""
        if not self.universal:
            return torch.zeros(len(self.head), 1, dtype=torch.float64, device=self.head.device)
        learned = (PACE * self.log_odds.double()).sigmoid().flatten()
        return torch.cat([learned, 1 - _rows(PLAIN, learned.device)[2]])[:, None]

    def _combination(self, power: float = 1.0) -> Float[Tensor, "j g"]:
        """What each candidate's kernel is made of: 1 - c of its head's features, and c of its
        universal kernel; or powers of these."""
        c = self._share_of_radial
        of_phi = (1 - c) ** power * self.of_head.double()
        return (
            torch.cat([of_phi, c**power * self.of_kind.double()], 1) if self.universal else of_phi
        )
