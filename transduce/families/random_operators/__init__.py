"""Random operators: the prior of the general model, one mechanism per file.

An operator is a distribution of inputs, a mechanism and what measuring adds. See `family`.
"""

from .family import HELD_OUT as HELD_OUT
from .family import MECHANISMS as MECHANISMS
from .family import RandomOperators as RandomOperators
from .varied import Varied as Varied
