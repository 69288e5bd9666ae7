"""Second moments of the terms and of the increments, by wavenumber, and without noise.

    M = sum_i z_i z_i*,   z = (terms, increments) of pair i, transformed in x

Least squares need no more. Noise in v and u adds to M; how much is found by adding as much again
(simulation extrapolation), and is subtracted. Wavenumbers where noise dominates count less:

    weight = 1 / (noise of the residual + FLOOR * mean power of the increments)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

FLOOR = 1e-2


@dataclass(frozen=True)
class Moments:
    """Moments of each block of pairs at each wavenumber.

    Attributes:
        joint: of terms, then increments of each channel, without noise.
        noise: what noise adds to their sum over blocks.
        mean: squared mean of the increments, summed over pairs: (modes, c).
        terms: their number.
        states: the numbers of the terms that are channels of u.
    """

    joint: Float[np.ndarray, "blocks modes s s"]
    noise: Float[np.ndarray, "modes s s"]
    mean: Float[np.ndarray, "modes c"]
    terms: int
    states: list[int]

    def weighted(
        self, channel: int, coefficients: Float[np.ndarray, " terms"] | None = None
    ) -> tuple[Float[np.ndarray, "blocks t t"], float]:
        """Moments summed over wavenumbers, with the increments of one channel last, and the
        variation of these about their mean.

        Args:
            channel: of the increments.
            coefficients: an equation, whose residual's noise weighs wavenumbers; None for 0.
        """
        kept = [*range(self.terms), self.terms + channel]
        weights = self._weights(kept, coefficients)
        joint = self.joint[:, :, kept][..., kept]
        power = joint[..., -1, -1].sum(0) - self.mean[:, channel]
        return np.einsum("m,bmij->bij", weights, joint), float(weights @ power)

    def _weights(
        self, kept: Sequence[int], coefficients: Float[np.ndarray, " terms"] | None
    ) -> Float[np.ndarray, " modes"]:
        power = self.joint[:, :, kept[-1], kept[-1]].sum(0)
        if coefficients is None:
            coefficients = np.zeros(self.terms)
        residual = np.append(-coefficients, 1.0)
        noise = self.noise[:, kept][..., kept] @ residual @ residual
        floor = FLOOR * power.mean()
        known = self._known()
        return known * floor / (floor + np.maximum(noise, 0)) if floor > 0 else known

    def _known(self) -> Float[np.ndarray, " modes"]:
        """Near 1 where the states rise above their noise, and near 0 where they do not."""
        whole = self.joint.sum(0)
        signal, noise = (each[:, self.states, self.states].sum(1) for each in (whole, self.noise))
        noise = np.maximum(noise, 0)
        share = signal / np.maximum(signal + noise, 1e-300)
        return np.square(np.where(noise > 0, np.clip(share, 0, 1), 1))


def moments_of(
    columns: Float[np.ndarray, "n q terms"],
    increments: Float[np.ndarray, "n c q"],
    window: Float[np.ndarray, " q"],
    blocks: Sequence[np.ndarray],
) -> Float[np.ndarray, "blocks modes s s"]:
    """The moments of terms and increments, noise included.

    Args:
        columns: values of the terms.
        increments: per step of time.
        window: weights of the points.
        blocks: the pairs of each block.
    """
    z = transformed(np.concatenate([columns, np.moveaxis(increments, 1, 2)], -1), window)
    parts = (np.moveaxis(z[block], 0, 1) for block in blocks)
    return np.stack([(np.conj(np.swapaxes(part, 1, 2)) @ part).real for part in parts])


def transformed(z: Float[np.ndarray, "n q s"], window: Float[np.ndarray, " q"]) -> np.ndarray:
    """Fourier coefficients whose squares sum to those of the values: (n, modes, s)."""
    found = np.fft.rfft(z * window[:, None], axis=1) / np.sqrt(len(window))
    found[:, 1 : (len(window) + 1) // 2] *= np.sqrt(2)
    return found
