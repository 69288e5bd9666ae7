"""Spaces of operators: one file for each, with its solver."""

from .adr import AdvectionDiffusionReaction as AdvectionDiffusionReaction
from .burgers import Burgers2d as Burgers2d
from .composed_images import ComposedImages as ComposedImages
from .images import LabelledImages as LabelledImages
from .images import PermutedImages as PermutedImages
from .images import load_images as load_images
from .images import resized as resized
from .mixture import Mixture as Mixture
from .symmetries import Moved as Moved
from .synthetic_images import SyntheticImages as SyntheticImages
