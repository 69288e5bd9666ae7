"""Spaces of operators: one file for each, with its solver."""

from .adr import AdvectionDiffusionReaction as AdvectionDiffusionReaction
from .burgers import Burgers2d as Burgers2d
from .climate import ClimateHistory as ClimateHistory
from .climate import ClimateWindows as ClimateWindows
from .climate import latitude_weighted_mse as latitude_weighted_mse
from .climate import latitude_weights as latitude_weights
from .climate import previous_week as previous_week
from .climate import previous_year as previous_year
from .climate_data import Period as Period
from .climate_data import load_climate as load_climate
from .climate_fields import ClimateFields as ClimateFields
from .climate_files import open_climate as open_climate
from .climate_files import open_inputs as open_inputs
from .climate_grids import regridded as regridded
from .composed_images import ComposedImages as ComposedImages
from .era5 import download_era5 as download_era5
from .era5 import era5_online as era5_online
from .image_files import LabelledImages as LabelledImages
from .image_files import load_images as load_images
from .image_files import resized as resized
from .images import PermutedImages as PermutedImages
from .mixture import Mixture as Mixture
from .random_field_operators import RandomFieldOperators as RandomFieldOperators
from .random_operators import RandomOperators as RandomOperators
from .symmetries import Moved as Moved
from .synthetic_images import SyntheticImages as SyntheticImages
