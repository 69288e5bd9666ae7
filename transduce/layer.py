"""One step of the recurrence (equation 6), and the network that transforms functions on the way.

    v_i <- F(v_i)
    u_i <- G(u_i) + sum_j kappa(v_j, v_i)(G(u_j))

A kernel that averages its examples passes on u + kappa(u). A kernel that solves for its
coefficients passes on its leave-one-out residuals, so that the next layer regresses these.
"""

from __future__ import annotations

from jaxtyping import Bool, Float
from torch import Tensor, nn

from .configs import Part
from .kernels import Fit, Kappa


class Layer(Part):
    """One step of the recurrence. The same layer used twice has tied weights.

    Args:
        kappa: the kernel.
        F: transforms the inputs before the kernel; None for not at all.
        G: transforms the outputs before the kernel; None for not at all.
    """

    def __init__(self, kappa: Kappa, F: nn.Module | None = None, G: nn.Module | None = None):
        super().__init__()
        self.kappa, self.F, self.G = kappa, F, G

    def inputs(self, v: Float[Tensor, "*n d_v"]) -> Float[Tensor, "*n d_v"]:
        """F(v)."""
        return v if self.F is None else self.F(v)

    def outputs(self, u: Float[Tensor, "*n d_u"]) -> Float[Tensor, "*n d_u"]:
        """G(u)."""
        return u if self.G is None else self.G(u)

    def condition(
        self,
        v: Float[Tensor, "b n *grid d_v"],
        u: Float[Tensor, "b n *grid d_u"],
        mask: Bool[Tensor, "b n"] | None,
    ) -> tuple[Float[Tensor, "b n *grid d_v"], Float[Tensor, "b n *grid d_u"], Fit]:
        """The inputs after F, the outputs after G, and the kernel's fit to both."""
        v, u = self.inputs(v), self.outputs(u)
        return v, u, self.kappa.condition(v, u, mask)

    def query(
        self, fit: Fit, v: Float[Tensor, "b m *grid d_v"], u: Float[Tensor, "b m *grid d_u"]
    ) -> tuple[Float[Tensor, "b m *grid d_v"], Float[Tensor, "b m *grid d_u"]]:
        """The queries' streams after this step."""
        v, u = self.inputs(v), self.outputs(u)
        return v, u + self.kappa(fit, v)


class Feedforward(Part):
    """x + W_2 gelu(W_1 layer_norm(x)).

    Args:
        d: size of x.
        hidden: number of rows of W_1.
    """

    def __init__(self, d: int, hidden: int):
        super().__init__()
        self.d, self.hidden = d, hidden
        self.norm = nn.LayerNorm(d)
        self.up = nn.Linear(d, hidden)
        self.down = nn.Linear(hidden, d)

    def forward(self, x: Float[Tensor, "b n *grid d"]) -> Float[Tensor, "b n *grid d"]:
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


def start_xavier(part: nn.Module, gain: float = 1.0) -> None:
    """Draw the matrices of a part from Xavier's uniform distribution."""
    for parameter in part.parameters():
        if parameter.ndim == 2:
            nn.init.xavier_uniform_(parameter, gain)
