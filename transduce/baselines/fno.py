"""The Fourier neural operator, fitted to one operator's examples (Li et al. 2021), in neuraloperator's implementation.

v -> P o sigma(W_L + K_L) o ... o sigma(W_1 + K_1) o Q v,      K_l w = inverse FFT of R_l(k) FFT(w)(k), for the first frequencies k
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from ..types import ExampleSet, TransduceError
from .fitting import Fitting, NetworkOperator

TUNED = Fitting(epochs=300, steps=1500, lr=3e-3, batch=20, falling=True)


@dataclass(frozen=True)
class Fno:
    """An FNO fitted anew to each operator's examples.

    modes: the frequencies kept, 0 among them, as its authors count them. padding: the share of the domain added, as zeros, for
    functions that are not periodic. Functions have one variable, v and u the same grid; queries may come on any.

    >>> O = Fno().regress(ExampleSet(v, u))      # v, u of shape (50, 101)
    """

    modes: int = 16
    width: int = 64
    layers: int = 1
    padding: float = 0.1
    fitting: Fitting = TUNED

    def regress(self, examples: ExampleSet) -> NetworkOperator:
        return self.fitting.fit(self._network, examples)

    def _network(self, v: Tensor, u: Tensor) -> Any:
        if v.shape[-1] != u.shape[-1]:
            raise TransduceError(
                f"examples.v has {v.shape[-1]} points and examples.u {u.shape[-1]}; an FNO answers on the grid it reads. "
                "Interpolate one of them to the other's."
            )
        return _fno()(
            n_modes=(2 * self.modes - 2,),  # neuraloperator counts both signs, and then keeps 0 besides
            in_channels=v.shape[1],
            out_channels=u.shape[1],
            hidden_channels=self.width,
            n_layers=self.layers,
            domain_padding=self.padding or None,
        )


def paper_fno() -> Fno:
    """The paper's: 4 layers, 16 modes, width 64, and the fit that the FNO's authors set, 500 epochs of Adam in batches of 20."""
    return Fno(modes=16, width=64, layers=4, padding=0.0, fitting=Fitting(epochs=500, lr=1e-3, batch=20))


def stopped_fno() -> Fno:
    """The tuned one, a tenth of the examples held out, and stopped when their error has not fallen for 50 epochs."""
    return Fno(fitting=replace(TUNED, held_out=0.1, patience=50))


def _fno() -> Any:
    try:
        from neuralop.models import FNO
    except ImportError:
        raise TransduceError(
            "the FNO is neuraloperator's, which is not installed. Install it: pip install 'transduce[baselines]'"
        ) from None
    return FNO
