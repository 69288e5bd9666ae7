"""Regress operators from examples: pairs (v_i, O(v_i)) in, the operator out, in one forward pass.

`CONTENTS` is the table of contents. A name is imported when it is first used, so `import transduce`
does not wait for torch."""

from typing import TYPE_CHECKING

from . import lazy

__version__ = "0.1.0"

CONTENTS = {  # module: its public names
    "conditioned": ["ConditionedOperator"],
    "evaluation": ["evaluate"],
    "layer": ["Feedforward", "Layer"],
    "metatraining": ["Training", "metatrain"],
    "spaces": ["BranchTrunk", "Euclidean", "FourierModes", "SineModes"],
    "regression": ["RegressedOperator", "load", "pairs", "regress"],
    "storage": ["StoredFamily", "read_examples"],
    "transducer": ["Transducer"],
    "types": ["ExampleSet", "Operator", "OperatorFamily", "Regressor", "Task", "TransduceError"],
    "weights": ["names"],
}

if TYPE_CHECKING:  # the same table, for type checkers and editors
    from . import families as families
    from . import models as models
    from .conditioned import ConditionedOperator as ConditionedOperator
    from .evaluation import evaluate as evaluate
    from .layer import Feedforward as Feedforward
    from .layer import Layer as Layer
    from .metatraining import Training as Training
    from .metatraining import metatrain as metatrain
    from .regression import RegressedOperator as RegressedOperator
    from .regression import load as load
    from .regression import pairs as pairs
    from .regression import regress as regress
    from .spaces import BranchTrunk as BranchTrunk
    from .spaces import Euclidean as Euclidean
    from .spaces import FourierModes as FourierModes
    from .spaces import SineModes as SineModes
    from .storage import StoredFamily as StoredFamily
    from .storage import read_examples as read_examples
    from .transducer import Transducer as Transducer
    from .types import ExampleSet as ExampleSet
    from .types import Operator as Operator
    from .types import OperatorFamily as OperatorFamily
    from .types import Regressor as Regressor
    from .types import Task as Task
    from .types import TransduceError as TransduceError
    from .weights import names as names
else:
    __getattr__, __dir__, __all__ = lazy.names(__name__, CONTENTS, modules=["families", "models"])
