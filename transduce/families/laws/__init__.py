"""What families of random operators share: dice, laws and their rejection, noise, the family."""

from .dice import Dice as Dice
from .family import LawFamily as LawFamily
from .family import RandomOperator as RandomOperator
from .law import Law as Law
from .law import Map as Map
from .law import Measure as Measure
from .law import Mechanism as Mechanism
from .law import Pairs as Pairs
from .law import RejectedError as RejectedError
from .law import Sampler as Sampler
from .law import of_map as of_map
from .law import require_bounded as require_bounded
from .noise import measured as measured
from .pointwise import draw_pointwise as draw_pointwise
