"""The server's OpenAPI description held against it by schemathesis: every status, type and schema,
and no request that breaks it."""

import numpy as np
import schemathesis
import torch
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from transduce import models
from transduce.serving.app import make_app
from transduce.serving.bodies import write_npz
from transduce.serving.limits import Limits
from transduce.serving.operators import Operators, Regressed
from transduce.spaces import Sampled, SineModes
from transduce.types import ExampleSet

TOKEN = "0123456789abcdef"
AUTHORISED = {"Authorization": f"Bearer {TOKEN}"}
# A description cannot say that u has as many functions as v (422), how large an answer is (413), or
# what bytes are an archive (400); what it forbids may also be refused for its size.
CONFIG = {
    "checks": {
        "positive_data_acceptance": {"expected-statuses": ["2XX", "400", "404", "413", "422"]},
        "negative_data_rejection": {
            "expected-statuses": ["400", "401", "404", "405", "413", "415", "422"]
        },
    },
    "generation": {
        "with-security-parameters": False
    },  # the token comes with every case; that it is asked for is a check of its own
}


numbers = st.floats(width=32, allow_nan=True)
functions = arrays(np.float32, st.tuples(st.integers(1, 3), st.just(9)), elements=numbers)
archives = st.dictionaries(
    st.sampled_from(["v", "u", "x", "x_v", "x_u", "parameters", "at", "band"]),
    functions | arrays(np.float64, st.just(()), elements=numbers),
)
schemathesis.openapi.media_type(
    "application/x-npz", st.binary(max_size=50) | archives.map(write_npz)
)
tables = st.integers(1, 9).flatmap(
    lambda n: st.lists(st.lists(numbers, min_size=n, max_size=n), min_size=1, max_size=4)
)
schemathesis.openapi.media_type(
    "text/csv",
    st.binary(max_size=50)
    | tables.map(lambda rows: "\n".join(",".join(map(str, row)) for row in rows).encode()),
)


def described():
    """The description of an app, and the id of its one operator."""
    torch.manual_seed(0)
    T = models.representer(SineModes(4), SineModes(4), heads=1, width=4, hidden=8).eval()
    v = np.random.default_rng(0).normal(size=(5, 9)).astype(np.float32)
    operators = Operators()
    stored = operators.add(Regressed("tiny", T.regress(ExampleSet(v, v)), 1.0, []))
    V = Sampled(9)
    general = models.general(V, V, channels=4, layers=1, modes=2, summary=4, width=4).eval()
    app = make_app(
        {"tiny": T, "general": general}, Limits(token=TOKEN, loopback=False, rate=1e6), operators
    )
    config = schemathesis.Config.from_dict(CONFIG)
    return schemathesis.openapi.from_asgi(
        "/openapi.json", app, config=config, headers=AUTHORISED
    ), stored.id


schema, operator = described()


@schema.parametrize()
@settings(max_examples=20, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
def test_description(case):
    """Queries are of an operator that is there, which stays."""
    if case.method != "DELETE" and case.path_parameters:
        case.path_parameters["id"] = operator
    case.call_and_validate(headers=AUTHORISED)
