"""The general models: closed-form read-outs, and these with simple answers, weighed by a trust."""

from __future__ import annotations

from collections.abc import Sequence

from ..kernels import (
    CurveNetwork,
    CurveReadout,
    FieldNetwork,
    FieldReadout,
    FieldStack,
    GeneralStack,
    Trust,
)
from ..kernels.general import CURVES
from ..kernels.general_fields import FIELDS
from ..layer import Layer
from ..spaces import Sampled, SampledFields, Space
from ..transducer import Transducer
from .labelled import of_domain

CURVE_POINTS = 80  # of the grid of curve networks
FIELD_POINTS = 24  # at most, along each axis of the grid of field networks


def curves(
    V: Sampled,
    U: Sampled,
    channels: int = 48,
    layers: int = 4,
    modes: int = 20,
    window: int = 5,
    summary: int = 48,
    polynomials: int = 5,
) -> Transducer:
    """A curve network whose read-out the examples determine, in units of the examples.

    Args:
        channels: number of learned channels.
        layers: number of layers.
        modes: number of frequencies that a layer mixes.
        window: number of neighbouring points that a layer mixes; odd.
        summary: size of the summary of the examples that modulates the network.
        polynomials: number of polynomials of x that multiply each channel.
    """
    network = CurveNetwork(channels, layers, modes, window, summary=summary)
    return Transducer(V, U, [Layer(CurveReadout(V, U, network, polynomials))])


def general(
    V: Space,
    U: Space,
    channels: int = 48,
    layers: int = 4,
    modes: int = 20,
    summary: int = 48,
    width: int = 48,
    without: Sequence[str] = (),
) -> Transducer:
    """The general model: many simple answers and a learned one, weighed by leave-one-out error.

    Args:
        channels: number of learned channels of the read-out.
        layers: number of layers of its network.
        modes: number of frequencies that a layer mixes.
        summary: size of the summary of the examples that modulates the network.
        width: of the network that weighs the answers.
        without: names of answers to leave out; `kernels.general.CURVES` lists them.
    """
    own = Sampled(CURVE_POINTS)
    network = CurveNetwork(channels, layers, modes, points=CURVE_POINTS, summary=summary)
    trust = Trust(len(CURVES.known), width)
    stack = GeneralStack(V, U, CurveReadout(own, own, network), trust, without)
    return of_domain("curves", V, U, Layer(stack))


def fields(
    V: SampledFields,
    U: SampledFields,
    channels: int = 32,
    layers: int = 4,
    modes: int = 8,
    summary: int = 48,
    width: int = 48,
    without: Sequence[str] = (),
) -> Transducer:
    """The general model of fields: many simple answers and a learned one, as for curves.

    Args:
        channels: number of learned channels of the read-out.
        layers: number of layers of its network.
        modes: number of frequencies that a layer mixes along each axis.
        summary: size of the summary of the examples that modulates the network.
        width: of the network that weighs the answers.
        without: names of answers to leave out; `kernels.general_fields.FIELDS` lists them.
    """
    own = SampledFields(FIELD_POINTS, FIELD_POINTS)
    network = FieldNetwork(channels, layers, modes, points=FIELD_POINTS, summary=summary)
    trust = Trust(len(FIELDS.known), width)
    stack = FieldStack(V, U, FieldReadout(own, own, network), trust, without)
    return of_domain("curves", V, U, Layer(stack))
