"""The rivals: every one is a Regressor."""

from .classical import KernelRidge as KernelRidge
from .classical import MeanOfExamples as MeanOfExamples
from .fno import Fno as Fno
