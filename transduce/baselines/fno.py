"""The Fourier neural operator, fitted to one operator's examples (Li et al. 2021), in
neuraloperator's implementation.

v -> P o sigma(W_L + K_L) o ... o sigma(W_1 + K_1) o Q v,      K_l w = inverse FFT of R_l(k)
FFT(w)(k), for the first frequencies k"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from ..files import pip_install
from ..types import ExampleSet, TransduceError
from .fitting import Fitting, NetworkOperator

TUNED = Fitting(epochs=300, steps=1500, lr=3e-3, batch=20, falling=True)
PERIODIC = Fitting(epochs=40, steps=800, lr=5e-3, batch=5, falling=True)


@dataclass(frozen=True)
class Fno:
    """An FNO fitted to each operator's examples.

    modes: the frequencies kept along each axis, 0 among them, as its authors count them. padding:
    the share of the domain added, as zeros, for functions that are not periodic. Functions of one
    variable come with their position as a further channel; those of two, (n, channels, x, y), are
    periodic and without. v and u have the same grid; queries may come on any.

    >>> O = Fno().regress(ExampleSet(v, u))               # v, u of shape (50, 101)
    >>> O = periodic_fno().regress(ExampleSet(v, u))      # v, u of shape (100, 2, 64, 64)
    """

    modes: int = 16
    width: int = 64
    layers: int = 1
    padding: float = 0.1
    fitting: Fitting = TUNED

    def regress(self, examples: ExampleSet) -> NetworkOperator:
        return self.fitting.fit(self._network, examples)

    def _network(self, v: Tensor, u: Tensor) -> Any:
        points, asked = (" x ".join(map(str, f.shape[2:])) for f in (v, u))
        if points != asked:
            raise TransduceError(
                f"examples.v has {points} points and examples.u {asked}; an FNO answers on the "
                "grid it reads. "
                "Interpolate one of them to the other's."
            )
        channels = v.shape[1], u.shape[1]
        return fno_network(
            v.ndim - 2,
            channels,
            self.modes,
            self.width,
            self.layers,
            self.padding,
            positions=v.ndim == 3,
        )


def fno_network(
    dims: int,
    channels: tuple[int, int],
    modes: int,
    width: int,
    layers: int,
    padding: float,
    positions: bool,
    dropout: float = 0.0,
) -> Any:
    """neuraloperator's network, from (n, channels of v, *grid) to (n, channels of u, *grid).
    positions: are further channels."""
    both_signs = 2 * modes - 1
    return _fno()(
        n_modes=(
            *[both_signs] * (dims - 1),
            both_signs - 1,
        ),  # of the last axis neuraloperator keeps one more
        positional_embedding="grid" if positions else None,
        in_channels=channels[0],
        out_channels=channels[1],
        hidden_channels=width,
        n_layers=layers,
        domain_padding=padding or None,
        channel_mlp_dropout=dropout,
    )


def periodic_fno() -> Fno:
    """For periodic functions of two variables, tuned on Burgers' equation: a fit of two minutes on
    one core for 100 examples."""
    return Fno(modes=8, width=32, layers=3, padding=0.0, fitting=PERIODIC)


def paper_fno() -> Fno:
    """The paper's: 4 layers, 16 modes, width 64, and the fit that the FNO's authors set, 500 epochs
    of Adam in batches of 20."""
    return Fno(
        modes=16, width=64, layers=4, padding=0.0, fitting=Fitting(epochs=500, lr=1e-3, batch=20)
    )


def stopped_fno() -> Fno:
    """The tuned one, a tenth of the examples held out, and stopped when their error has not fallen
    for 50 epochs."""
    return Fno(fitting=replace(TUNED, held_out=0.1, patience=50))


def _fno() -> Any:
    try:
        from neuralop.models import FNO
    except ImportError:
        raise TransduceError(
            "the FNO is neuraloperator's, which is not installed. Install it: "
            f"{pip_install('baselines')}"
        ) from None
    return FNO
