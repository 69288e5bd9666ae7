"""Shapes in signatures are checked while the tests run."""

from jaxtyping import install_import_hook

install_import_hook("transduce", "beartype.beartype")

import pytest  # noqa: E402
import torch  # noqa: E402

from transduce.spaces import SineModes  # noqa: E402
from transduce.transducer import Transducer  # noqa: E402


def small_transducer(**options):
    """A Transducer that is quick to run and far from its start, so that every part acts."""
    torch.manual_seed(0)
    settings = {"depth": 3, "heads": 2, "width": 8, "hidden": 16} | options
    T = Transducer(SineModes(12), SineModes(12), **settings)
    T.spread.data.copy_(torch.linspace(1.5, 0.5, 12))
    return T.double().eval()


@pytest.fixture
def pairs():
    """Nine smooth pairs on 33 points and four queries, in double precision."""
    generator = torch.Generator().manual_seed(1)
    coefficients = torch.randn(2, 13, 12, generator=generator, dtype=torch.float64) / torch.arange(1, 13)
    v, u = SineModes(12).decode(coefficients, 33)
    return v[:9], u[:9], v[9:]
