"""The front door: from the pairs a person has to an operator.

O = regress(v, u)
u_hat = O(v_query)
mean, low, high = O.predict(v_query, band=0.9)
print(O.report())
"""

from .equations import Equation as Equation
from .equations import Terms as Terms
from .front_door import regress as regress
from .operator import RegressedOperator as RegressedOperator
from .report import Report as Report
from .saving import load as load
from .stepping import Rollout as Rollout
from .trajectories import pairs as pairs
