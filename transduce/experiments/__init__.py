"""The paper's experiments, and what goes beyond them: every table and figure out of one command,
`transduce reproduce`."""

from . import adr, burgers, climate, images
from .lab import Part as Part
from .lab import reproduce as reproduce

EXPERIMENTS = {"adr": adr, "burgers": burgers, "climate": climate, "images": images}
