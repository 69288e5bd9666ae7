"""Recipes: one frozen value for each trained model, saying what it is, what it learns from, and
how. `train` makes the weights.

Those of models that only readers of the paper need are in the package `paper`."""

from .base import Recipe as Recipe
from .base import Run as Run
from .known import ALL_MODES as ALL_MODES
from .known import IMAGES as IMAGES
from .known import IMAGES_TO_CLASSES as IMAGES_TO_CLASSES
from .known import RECIPES as RECIPES
from .known import recipe as recipe
from .training import fitted as fitted
from .training import train as train
