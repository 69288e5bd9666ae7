"""Further pairs after those of the examples."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from ..inputs import Functions, Pairs
from .engines import as_tensor


def _appended(f: Functions, g: Functions) -> Functions:
    """The functions of both, in the kind of the first."""
    values = torch.cat([as_tensor(f.values), as_tensor(g.values)])
    kept = values if isinstance(f.values, Tensor) else values.detach().numpy()
    return replace(f, values=kept, template=f.template.numbered(len(values)))


def joined(pairs: Pairs, more: Pairs) -> Pairs:
    """The pairs and further ones."""
    v, u = _appended(pairs.v, more.v), _appended(pairs.u, more.u)
    groups = pairs.groups
    if groups is not None and more.groups is not None:
        groups = groups.joined(more.groups)
    parameters = pairs.parameters
    if parameters is not None and more.parameters is not None:
        parameters = np.concatenate([parameters, more.parameters])
    rows = np.arange(len(pairs) + len(more))
    return replace(pairs, v=v, u=u, parameters=parameters, groups=groups, rows=rows)
