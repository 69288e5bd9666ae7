"""The experiments by name. `transduce reproduce NAME` runs one, `make paper` all of them."""

from . import adr, burgers, climate, images
from .lab import Part as Part
from .lab import reproduce as reproduce

EXPERIMENTS = {"adr": adr, "burgers": burgers, "climate": climate, "images": images}
