"""Positive kernels between functions, by which `Ridge` compares its examples."""

from .base import Gram as Gram
from .base import Points as Points
from .base import ProductGram as ProductGram
from .convolutions import ConvolutionGram as ConvolutionGram
from .features import FeatureGram as FeatureGram
from .matern import MaternGram as MaternGram
