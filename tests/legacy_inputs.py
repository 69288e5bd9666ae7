"""What the frozen values of old model cards are computed from, and how.

Inputs come from explicit formulas, so that they are the same on every machine. See
legacy/README.md.
"""

import math

import torch

from transduce import ExampleSet


def waves(n, shape, phase):
    """n functions of about unit size; p numbers the values of a function.

    f_i(p) = sin(1.7 i sqrt(p) + 0.9 i + phase) + cos(0.37 p) / 2
    """
    i = torch.arange(1, n + 1, dtype=torch.float64)[:, None]
    p = torch.arange(1, math.prod(shape) + 1, dtype=torch.float64)
    f = torch.sin(1.7 * i * p.sqrt() + 0.9 * i + phase) + torch.cos(0.37 * p) / 2
    return f.reshape(n, *shape)


def task(v_shape, u_shape, offset=0.0, n=7, m=3):
    """n examples and the inputs of m queries, with values about `offset`."""
    v, u = waves(n + m, v_shape, 0.0), waves(n + m, u_shape, 0.4)
    return ExampleSet(offset + v[:n], offset + u[:n] + 0.3 * u[:n] ** 2), offset + v[n:]


def summary(T, v_shape, u_shape, offset):
    """Predictions in double precision, every third point of each axis of fields; for models with
    bands, their largest half-width for each query and the mean square of each left-out answer."""
    T = T.double().eval()
    examples, queries = task(v_shape, u_shape, offset)
    O = T.regress(examples)
    if not T.leaves_out:
        return {"mean": _thinned(O(queries)).tolist()}
    mean, low, high = O.predict(queries, band=0.8)
    return {
        "mean": _thinned(mean).tolist(),
        "half": (high - low).flatten(1).amax(1).div(2).tolist(),
        "left_out": O.left_out.flatten(1).square().mean(1).tolist(),
    }


def _thinned(u):
    return u.detach() if u.ndim < 4 else u.detach()[..., ::3, ::3]
