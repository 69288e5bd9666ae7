"""Random operators between fields of two variables, one mechanism per file.

An operator is a distribution of inputs, a mechanism and what measuring adds. See `family`.
"""

from .family import HELD_OUT as HELD_OUT
from .family import MECHANISMS as MECHANISMS
from .family import RandomFieldOperators as RandomFieldOperators
from .varied import VariedFields as VariedFields
