"""Spaces of operators: one file for each, with its solver."""

from .adr import AdvectionDiffusionReaction as AdvectionDiffusionReaction
from .burgers import Burgers2d as Burgers2d
