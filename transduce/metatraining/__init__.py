"""Meta-training: `metatrain(T, family, Training(...))`.

options.py has the options, losses.py the losses, tasks.py draws the tasks of a step, run.py takes
steps, loop.py is the loop around them, checkpoints.py makes runs resumable."""

from .learner import Learner as Learner
from .loop import metatrain as metatrain
from .loop import prepare as prepare
from .losses import LOSSES as LOSSES
from .losses import Episode as Episode
from .losses import LogL2 as LogL2
from .losses import Loss as Loss
from .losses import RelativeL2 as RelativeL2
from .losses import RelativeLoss as RelativeLoss
from .losses import RelativeMse as RelativeMse
from .losses import Squared as Squared
from .options import Training as Training
from .run import Run as Run
from .run import make_fabric as make_fabric
from .tasks import draw as draw
from .tasks import stack as stack
from .tasks import with_noise as with_noise
from .validation import described as described
from .validation import validate as validate
from .validation import validation_tasks as validation_tasks
