"""The general model over HTTP: any grids and units, parameters, bands, and sizes that stay
bounded."""

import numpy as np
import pandas as pd
import pytest
import torch
from fastapi.testclient import TestClient
from regression_samples import examples, small_general
from test_serving import as_json, as_npz, said, transducer

import transduce
from transduce.inputs import read_pairs
from transduce.regression import RegressedOperator
from transduce.serving.app import make_app
from transduce.serving.bodies import read_npz
from transduce.serving.operators import Operators, held_bytes
from transduce.serving.regressing import Sizes, condition, predict
from transduce.serving.warned import telling_warnings
from transduce.types import TransduceError

pytestmark = pytest.mark.filterwarnings("ignore:Using `httpx`")
T = small_general()
X = np.linspace(700.0, 400.0, 24)  # descending
V, U, QUERIES = examples(x=np.linspace(0, 1, 24))
P = np.random.default_rng(0).uniform(size=(len(V), 2))


def regressed(v=V, u=U, **options):
    return RegressedOperator(read_pairs(v, u, **options), "general", T)


@pytest.fixture
def server():
    app = make_app({"general": T, "sines": transducer()})
    with TestClient(app, "http://localhost", raise_server_exceptions=False) as client:
        yield client


def post(server, path, send=as_json, **fields):
    answer = server.post(path, **send(**fields))
    assert answer.status_code in (200, 201), answer.text
    return answer.json()


@pytest.mark.parametrize("send", [as_json, as_npz])
def test_the_default_takes_any_grids_and_units(server, send):
    x_u = np.geomspace(1.0, 24.0, 24)
    O = regressed(x_v=X, x_u=x_u)
    made = post(server, "/operators", send, v=V, u=U, x_v=X, x_u=x_u)
    assert (made["model"], made["n"], made["v"], made["u"]) == ("general", 14, [14, 24], [14, 24])
    report = O.report()
    assert made["expected_error"] == pytest.approx(report.error, rel=1e-6)
    assert made["baselines"] == pytest.approx(report.baselines, rel=1e-6)
    assert server.get(f"/operators/{made['id']}").json() == made
    for fields in ({}, {"at": 9}, {"at": np.array([2.0, 5.0, 7.5])}, {"x": X[::-1].copy()}):
        answer = post(server, f"/operators/{made['id']}/predict", send, v=QUERIES, **fields)
        np.testing.assert_allclose(answer["u"], O(QUERIES, **fields), rtol=1e-8)
    sent = send(v=QUERIES, band=0.8)
    sent["headers"] = sent.get("headers", {}) | {"accept": "application/x-npz"}
    answer = server.post(f"/operators/{made['id']}/predict", **sent)
    arrays = read_npz(answer.content, 2**20)
    for name, end in zip(("u", "low", "high"), O.predict(QUERIES, band=0.8), strict=True):
        np.testing.assert_allclose(arrays[name], end, rtol=1e-8)


def as_csv(**arrays):
    """Columns named by variable and position."""
    tables = [pd.DataFrame(a, columns=[f"{name}_{x}" for x in X]) for name, a in arrays.items()]
    text = pd.concat(tables, axis=1).to_csv(index=False)
    return {"content": text.encode(), "headers": {"content-type": "text/csv"}}


def test_tables(server):
    made = post(server, "/operators", as_csv, v=V, u=U)
    answer = post(server, f"/operators/{made['id']}/predict", as_csv, v=QUERIES)
    np.testing.assert_allclose(answer["u"], regressed(x=X)(QUERIES), rtol=1e-8)
    bad = {"content": b"v_0,v_1,u_0\n1,2\n", "headers": {"content-type": "text/csv"}}
    answer = server.post("/operators", **bad)
    assert answer.status_code == 422 and "line 2 of the table has 2 cells" in answer.text


def test_parameters_channels_and_numbers(server):
    made = post(server, "/operators", v=V, u=U, x=X, parameters=P)
    answer = post(server, f"/operators/{made['id']}/predict", v=V[:2], parameters=P[:2])
    expected = regressed(x=X, parameters=P)(V[:2], parameters=P[:2])
    np.testing.assert_allclose(answer["u"], expected, rtol=1e-8)
    both = np.stack([V, U], 1)
    made = post(server, "/operators", v=both, u=both[:, ::-1].copy())
    assert np.shape(post(server, f"/operators/{made['id']}/predict", v=both[:3])["u"]) == (3, 2, 24)
    made = post(server, "/operators", v=P, u=P[:, 0] * P[:, 1])
    answer = post(server, f"/operators/{made['id']}/predict", v=P[:3], band=0.9)
    assert np.shape(answer["u"]) == np.shape(answer["low"]) == (3,)


def test_fields_are_answered_by_the_weights_of_fields():
    fields = np.random.default_rng(0).normal(size=(12, 10, 9))
    images = fields + np.roll(fields, 1, 1) ** 2
    own = transduce.regress(fields[:10], images[:10])
    app = make_app({"general": T})
    with TestClient(app, "http://localhost") as server:
        made = post(server, "/operators", as_npz, v=fields[:10], u=images[:10])
        answer = post(server, f"/operators/{made['id']}/predict", as_npz, v=fields[10:], band=0.9)
    np.testing.assert_allclose(answer["u"], own(fields[10:]), rtol=1e-8)
    assert np.shape(answer["low"]) == (2, 10, 9)


def test_models_say_whether_they_adapt(server):
    assert {m["name"]: m["adapts"] for m in server.get("/models").json()} == {
        "general": True, "sines": False
    }  # fmt: skip
    fields = server.get("/openapi.json").json()["paths"]["/operators"]["post"]["requestBody"]
    assert {"x_v", "x_u", "parameters"} <= set(
        fields["content"]["application/json"]["schema"]["properties"]
    )


def wide(n, points):
    return np.zeros((n, points), np.float32)


@pytest.mark.parametrize(
    ("fields", "status", "words"),
    [
        ({"v": wide(1001, 9), "u": wide(1001, 9)}, 413, "examples: 1001"),
        ({"v": wide(2, 2049), "u": wide(2, 9)}, 413, "points of each v along an axis: 2049"),
        ({"v": wide(2, 9), "u": wide(2, 2049)}, 413, "points of each u along an axis: 2049"),
        ({"v": wide(600, 500), "u": wide(600, 9)}, 413, "numbers of all examples v: 300000"),
        ({"x": np.arange(4097.0)}, 413, "positions in x: 4097"),
        ({"x": X[:-1]}, 422, "x holds 23 positions"),
        ({"x": X, "x_v": X}, 422, "x and x_v are both given"),
        ({"x": np.ones(24)}, 422, "x repeats 1.0"),
        ({"u": U[:-1]}, 422, "v holds 14 functions and u 13"),
        ({"parameters": P[:-1]}, 422, "parameters have shape (13, 2)"),
        ({"parameters": wide(14, 2049)}, 413, "parameters of each function: 2049"),
        ({"parameters": np.zeros((1, 1, 1))}, 422, "parameters are no list of numbers"),
        ({"v": 1e200 * V}, 422, "v is up to 3e+200; expected at most 1e+140"),
        ({"v": np.array(1.0)}, 422, "expected at least one function"),
    ],
)
def test_examples_that_do_not_fit(server, fields, status, words):
    sent = as_npz(**{"v": V, "u": U, **fields})
    assert words in said(server.post("/operators", **sent), status)


@pytest.mark.parametrize("field", ["x_v", "x_u", "parameters"])
def test_models_of_families_refuse_what_they_cannot_take(server, field):
    sent = as_json(v=V, u=U, model="sines", **{field: X})
    assert f"{field} with the model 'sines'" in said(server.post("/operators", **sent), 422)


@pytest.mark.parametrize(
    ("fields", "status", "words"),
    [
        ({"at": 2049}, 413, "points to answer at: 2049"),
        ({"at": 1}, 422, "at least 2 points"),
        ({"v": wide(1, 2049)}, 413, "points of each v along an axis: 2049"),
        ({"v": wide(10_001, 24)}, 413, "queries: 10001"),
        ({"v": wide(1, 1)}, 422, "v of the queries has shape (1, 1)"),
        ({"parameters": P[:4]}, 422, "none, since the examples have none"),
        ({"band": 2.0}, 422, "band=2.0"),
        ({"u": U}, 422, "expected v, and, if wanted, x, at, band, parameters"),
    ],
)
def test_queries_that_do_not_fit(server, fields, status, words):
    id = post(server, "/operators", v=V, u=U)["id"]
    sent = as_npz(**{"v": QUERIES, **fields})
    assert words in said(server.post(f"/operators/{id}/predict", **sent), status)


def test_what_is_made_for_the_grids_counts_as_memory():
    """The matrices of integrals and slopes are the operator's own; the model is shared."""
    with torch.inference_mode():
        small, large = (
            condition({"general": T}, {"v": v, "u": v}, "general", Sizes()).operator
            for v in (V, np.repeat(V, 8, axis=1))
        )
    matrices = 3 * 8 * (8 * 24) ** 2
    assert held_bytes(large) > held_bytes(small) + matrices
    with pytest.raises(TransduceError, match="Send fewer examples"):
        Operators(most_bytes=1000).add(condition({"g": T}, {"v": V, "u": U}, "g", Sizes()))


def test_warnings_are_answered():
    with telling_warnings():
        made = condition({"g": T}, {"v": V, "u": U}, "g", Sizes())
        answer = predict(made.operator, {"v": QUERIES[:, ::2]}, Sizes())
    assert any("Equal steps over the same interval" in text for text in answer["warnings"])


def test_matrices_of_the_server_may_be_differentiated_through_later(monkeypatch):
    with torch.inference_mode():
        regressed(x=X)(QUERIES, at=17)
    v = torch.from_numpy(QUERIES).requires_grad_()
    regressed(x=X)(v, at=17).sum().backward()
    assert torch.isfinite(v.grad).all()


def test_the_bundled_model_is_served_by_default():
    from inspect import signature

    from transduce.cli.serving import serve

    assert signature(serve).parameters["model"].default.split(",")[0] == "general"
    assert "general" in transduce.weights.names()
