"""The page's server: its numbers are the library's, its errors say what to do, and it serves this
machine alone."""

import base64
import io
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import torch
from conftest import run
from fastapi.testclient import TestClient
from format_samples import WRITERS
from sklearn.datasets import load_digits

import transduce
from transduce.families import AdvectionDiffusionReaction, Burgers2d
from transduce.metrics import relative_l2, relative_mse
from transduce.playground import data
from transduce.playground.app import STATIC, make_app
from transduce.playground.packing import Packed, packed
from transduce.random_fields import generator_for
from transduce.serving.warned import telling_warnings
from transduce.sklearn import TransducerClassifier
from transduce.uncertainty import influence, outlier_scores

HIDDEN = {"seed": 3, "length_scale": 0.2, "k": 0.1, "t": 0.8}
V = (np.sin(np.pi * np.linspace(0, 1, 101)) ** 2).tolist()


@pytest.fixture(scope="module")
def client():
    with TestClient(
        make_app(), base_url="http://127.0.0.1:8642", raise_server_exceptions=False
    ) as client:
        yield client


@pytest.fixture
def ask(client):
    def ask(path, **body):
        response = client.post(f"/api/{path}", json=body)
        assert response.status_code == 200, response.text
        return response.json()

    return ask


@pytest.fixture
def refused(client):
    def refused(path, **body):
        response = client.post(f"/api/{path}", json=body)
        assert response.status_code in (400, 422)
        return response.json()["detail"]

    return refused


def array(found):
    return Packed(**found).unpacked("answer")


@pytest.fixture(scope="module")
def adr():
    """The operator of HIDDEN, its pool of examples, and the images of these under another: as the
    page's rules say, by the library."""
    family = AdvectionDiffusionReaction(length_scale=0.2, k_max=0.1, t=0.8)
    operator, other = (
        replace(family.sample_operator(generator_for("test", which, 3)), k=k)
        for which, k in ((0, 0.1), (2, 0.0))
    )
    pairs = family.sample_pairs(operator, 100, generator_for("test", 1, 3))
    return transduce.Transducer.from_pretrained("adr"), operator, pairs, other(pairs.v)


@pytest.mark.parametrize("n", [1, 20])
def test_predictions_are_those_of_the_library(ask, adr, n):
    T, operator, pairs, _ = adr
    found = ask("adr/predict", hidden=HIDDEN, examples=list(range(n)), v=V)
    v = torch.tensor(V)[None]
    for name, expected in zip(
        ("u_hat", "low", "high"), T.regress(pairs[:n]).predict(v, band=0.9), strict=True
    ):
        assert np.array_equal(array(found[name]), expected[0].numpy())
    u_hat, truth = torch.from_numpy(array(found["u_hat"]))[None], operator(v)
    assert np.array_equal(array(found["truth"]), truth[0].numpy())
    assert found["error"] == float(relative_l2(u_hat, truth)) and found["squared"] == float(
        relative_mse(u_hat, truth)
    )
    assert found["milliseconds"] > 0 and found["regression"] > 0


def test_examples_may_be_left_out_and_come_from_elsewhere(ask, adr):
    T, _, pairs, foreign = adr
    rows = [0, 2, 5, 7, 9]
    u = pairs.u[rows].clone()
    u[3] = foreign[7]
    O = T.regress(transduce.ExampleSet(pairs.v[rows], u))
    v = torch.tensor(V)[None]
    asked = {"hidden": HIDDEN, "examples": rows, "strangers": [7], "v": V}
    assert np.array_equal(array(ask("adr/predict", **asked)["u_hat"]), O(v)[0].numpy())
    found = ask("adr/influence", **asked, chosen=5)
    assert found["influence"] == influence(O, v).tolist()
    assert np.array_equal(array(found["without"]), O.drop(2)(v)[0].numpy())
    assert ask("adr/influence", **asked)["without"] is None


def test_outliers_are_found(ask, adr):
    T, _, pairs, foreign = adr
    u = pairs.u[:50].clone()
    u[17] = foreign[17]
    found = ask("adr/outliers", hidden=HIDDEN, examples=list(range(50)), strangers=[17])
    expected = outlier_scores(T, transduce.ExampleSet(pairs.v[:50], u), n_regressions=200)
    assert found["flagged"] == [17] == torch.nonzero(expected.flagged).flatten().tolist()
    assert found["scores"] == expected.scores.tolist() and found["threshold"] == expected.threshold


def test_a_solution_that_blows_up_has_no_truth(ask):
    found = ask(
        "adr/predict",
        hidden={**HIDDEN, "k": 0.4, "t": 1.25},
        examples=list(range(20)),
        v=[3 * value for value in V],
    )
    assert found["truth"] is None and "error" not in found
    assert np.isfinite(array(found["u_hat"])).all()


def test_what_is_shown_is_what_is_regressed(ask, adr):
    found = ask("adr/examples", **HIDDEN)
    for name, expected in (("v", adr[2].v), ("u", adr[2].u), ("foreign", adr[3])):
        assert np.array_equal(array(found[name]), expected.numpy())


def test_fields_are_those_of_the_library(ask, refused):
    fluid = {"seed": 3, "amplitude": 0.1, "t": 1.0}
    family = Burgers2d(amplitude=0.1, increment=1.0)
    operator = family.sample_operator(generator_for("test", 0, 3))
    pairs = family.sample_pairs(operator, 3, generator_for("test", 1, 3))
    v = family.sample_starts(operator, 1, generator_for("test", 2, 3, 5))
    found = ask("burgers/predict", fluid=fluid, n=3, query=5)
    u_hat = transduce.Transducer.from_pretrained("burgers").regress(pairs)(v)
    for name, expected in (("v", v), ("u_hat", u_hat), ("truth", operator(v))):
        assert np.array_equal(array(found[name]), expected[0].numpy())
    assert found["error"] == float(relative_l2(u_hat, operator(v))) < 0.05
    assert found["viscosity"] == operator.nu
    stirred = ask("burgers/predict", fluid=fluid, n=3, v=packed(v[0]))
    assert stirred["u_hat"] == found["u_hat"] and stirred["v"] is None
    assert np.array_equal(
        array(ask("burgers/examples", fluid=fluid, n=3)["u"]), pairs.u[..., ::2, ::2].numpy()
    )
    assert "expected (2, 64, 64)" in refused(
        "burgers/predict", fluid=fluid, v=packed(np.zeros((2, 8, 8)))
    )


def test_classes_are_those_of_the_library(ask, refused):
    digits = ask("images/digits")
    assert array(digits["images"]).shape == (50, 64) and digits["names"][::5] == list("0123456789")
    images = transduce.families.resized(load_digits().data[:21] / 16).astype(np.float32)
    names = [str(digit) for digit in load_digits().target[:20]]
    found = ask(
        "images/classify", names=names, images=packed(images[:20]), query=packed(images[20:])
    )
    classifier = TransducerClassifier().fit(images[:20], np.array(names))
    assert found["classes"] == classifier.classes_.tolist()
    assert found["p"] == classifier.predict_proba(images[20:])[0].tolist()
    alone = {"names": ["star"] * 20, "images": packed(images[:20]), "query": packed(images[20:])}
    assert "y has 1 class" in refused("images/classify", **alone)


def upload(name, content):
    return {"name": name, "content": base64.b64encode(content).decode()}


def npz(**arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


@pytest.mark.parametrize("kind", ["npz", "csv"])
def test_a_sample_is_answered(client, ask, kind):
    content = client.get(f"/sample.{kind}").content
    found = ask("data/regress", files=[upload(f"sample.{kind}", content)])
    task = AdvectionDiffusionReaction().sample_task(20, 3, generator_for("test", 0))
    O = transduce.regress(task.examples.v.numpy(), task.examples.u.numpy())
    mean, low, high = map(torch.as_tensor, O.predict(task.queries.v.numpy()))
    assert (found["model"], found["n"], found["shape"]) == ("general", 20, [3, 101])
    assert found["fits"][:2] == ["general", "adr"] and "burgers" not in found["fits"]
    assert found["report"][0].startswith("Expected error ") and "linear " in found["report"][0]
    answered = np.load(io.BytesIO(base64.b64decode(found["npz"])))["u"]
    np.testing.assert_allclose(answered, mean.numpy(), atol=1e-3)
    np.testing.assert_allclose(
        np.loadtxt(io.StringIO(found["csv"]), delimiter=","), answered, atol=1e-7
    )
    for name, expected in (("u", mean), ("low", low), ("high", high)):
        np.testing.assert_allclose(array(found[name]), expected.numpy(), atol=1e-3)


def test_pairs_and_queries_may_come_in_two_files_as_the_command_line_takes_them(ask):
    task = AdvectionDiffusionReaction().sample_task(10, 2, generator_for("test", 0))
    files = [
        upload("v.npz", npz(v=task.queries.v)),
        upload("pairs.npz", npz(v=task.examples.v, u=task.examples.u)),
    ]
    found = ask("data/regress", files=files, model="adr-softmax")
    expected = transduce.Transducer.from_pretrained("adr-softmax").regress(task.examples)(
        task.queries.v
    )
    np.testing.assert_allclose(array(found["u"]), expected.numpy(), atol=1e-6)
    assert found["model"] == "adr-softmax" and found["low"] is None


@pytest.mark.parametrize("name", [name for name in WRITERS if name.startswith("pairs")])
def test_files_of_other_programs(ask, name, tmp_path):
    WRITERS[name](tmp_path / name)
    queries = b"signal_400,signal_402,signal_405,signal_409,signal_414,signal_420,signal_427,"
    queries += b"signal_435\n1,2,3,4,3,2,1,0\n0,1,0,1,0,1,0,1\n"
    files = [upload(name, (tmp_path / name).read_bytes()), upload("new.csv", queries)]
    found = ask("data/regress", files=files)
    assert (found["model"], found["n"], found["shape"]) == ("general", 6, [2, 8])
    assert array(found["x"])[1] == pytest.approx(2 / 35, abs=1e-6)


V9 = np.random.default_rng(0).normal(size=(5, 9))


def test_data_on_its_own_grids_and_in_its_own_units(ask):
    """Grids of v and u, descending; parameters; queries in a file of their own."""
    x_v, x_u = 1e4 / np.linspace(4, 9, 9), np.linspace(700, 400, 12)
    u, p = 300 + V9 @ np.random.default_rng(1).normal(size=(9, 12)), V9[:, :2]
    pairs = npz(v=V9, u=u, x_v=x_v, x_u=x_u, parameters=p)
    asked = npz(v=V9[:2, 1:], x_v=x_v[1:], parameters=p[:2])
    found = ask("data/regress", files=[upload("a.npz", pairs), upload("v.npz", asked)])
    O = transduce.regress(V9, u, x_v=x_v, x_u=x_u, parameters=p)
    ends = O.predict(V9[:2, 1:], x=x_v[1:], parameters=p[:2])
    stored = np.load(io.BytesIO(base64.b64decode(found["npz"])))
    for name, expected in zip(("u", "u_low", "u_high"), ends, strict=True):
        np.testing.assert_allclose(stored[name], expected, rtol=1e-6)
    np.testing.assert_allclose(array(found["x"]), np.linspace(1, 0, 12), atol=1e-6)
    assert "adr" not in found["fits"]


def test_tables_of_numbers_are_answered(ask):
    content = npz(v=V9[:, :3], u=V9[:, 0] ** 2, v_query=V9[:2, :3])
    found = ask("data/regress", files=[upload("a.npz", content)])
    assert (found["model"], found["shape"]) == ("general", [2, 1])
    assert found["csv"].count("\n") == 2 and found["x"] is None


def test_fields_are_answered_by_the_general_model_of_fields(ask):
    fields = np.random.default_rng(0).normal(size=(12, 10, 9))
    images = fields + np.roll(fields, 1, 1) ** 2
    content = npz(v=fields[:10], u=images[:10], v_query=fields[10:])
    found = ask("data/regress", files=[upload("a.npz", content)])
    O = transduce.regress(fields[:10], images[:10])
    assert found["model"] == "general" and "general-fields" not in found["fits"]
    np.testing.assert_allclose(array(found["u"]), O(fields[10:]), rtol=1e-4, atol=1e-4)


def test_flows_may_be_answered_by_their_own_model(ask):
    fields = 0.1 * np.random.default_rng(0).normal(size=(2, 2, 64, 64)).astype(np.float32)
    content = npz(v=fields, u=fields, v_query=fields[:1])
    assert "burgers" in ask("data/regress", files=[upload("a.npz", content)])["fits"]


BAD_FILES = [
    ([("notes.docx", b"hello")], "notes.docx is of an unknown format; expected one of .npz, .nc"),
    ([("notes.txt", b"hello")], "notes.txt holds text where numbers are expected"),
    ([("a.mat", b"MATLAB 5.0 MAT-file")], "a.mat cannot be read"),
    ([("pairs.npz", b"PK not a zip")], "pairs.npz: the body of 12 bytes cannot be read as npz"),
    (
        [("pairs.npz", npz(v=np.zeros((2, 101)), w=np.zeros((2, 101))))],
        "found v, w; expected one file with the pairs, v and u",
    ),
    (
        [("pairs.npz", npz(v=np.zeros((2, 101)), u=np.zeros((2, 101))))],
        "and no queries; expected functions to answer for",
    ),
    (
        [
            (
                "pairs.npz",
                npz(v=np.zeros((2, 101)), u=np.zeros((3, 101)), v_query=np.zeros((1, 101))),
            )
        ],
        "u 3; expected the same number",
    ),
    (
        [("pairs.npz", npz(v=V9, u=V9, v_query=V9[:1], x=np.zeros(9)))],
        "general: x repeats 0.0",
    ),
    (
        [("pairs.npz", npz(v=np.array([{}]), u=np.zeros((1, 9))))],
        "which is a pickle and is not read",
    ),
    ([("a.csv", b"0,0.5,1\n0,1,0\n")], "found v; expected one file with the pairs, v and u"),
    ([("a.csv", b"v_0,v_1,u_0,u_1\n1,2,3,\n")], "a.csv: 1 of 2 values of u are not finite"),
    ([("a.csv", b"v\r" * 4000)], "a.csv holds text where numbers are expected"),
    ([("a.csv", b"v,0,1,0\nu,0,x,0\nv_query,0,1,0\n")], "line 2 of a.csv has 'x' in column 3"),
    ([("a.csv", b"v,0,1,0\nv,0,1\nu,0,1\n")], "a.csv has 3 cells, and most lines have 4"),
    ([("a.csv", b"v,0,nan,0\nu,0,1,0\nv_query,0,1,0\n")], "not finite"),
]


@pytest.mark.parametrize(("files", "says"), BAD_FILES, ids=[says[:20] for _, says in BAD_FILES])
def test_a_bad_file_is_told_why(refused, files, says):
    assert says in refused("data/regress", files=[upload(*file) for file in files])


def test_visitors_are_told_of_their_own_warnings_at_once(monkeypatch):
    both, answer = threading.Barrier(2, timeout=20), data.answer

    def warning(name, T, given):
        both.wait()
        warnings.warn(f"{len(given.v)} pairs", stacklevel=1)
        both.wait()
        return answer(name, T, given)

    monkeypatch.setattr(data, "answer", warning)
    monkeypatch.setattr(data, "fitting", lambda given: {"adr": None})

    def told(n):
        functions = np.pad(np.random.default_rng(n).normal(size=(n, 99)), ((0, 0), (1, 1)))
        files = [
            data.Upload(**upload("a.npz", npz(v=functions, u=functions, v_query=functions[:1])))
        ]
        return data.regress(data.Files(files=files))["warnings"]

    with telling_warnings(), ThreadPoolExecutor(2) as visitors:
        assert list(visitors.map(told, (3, 4))) == [["3 pairs"], ["4 pairs"]]


def test_more_than_the_page_takes_is_refused(refused, monkeypatch):
    functions = np.zeros((1001, 27))
    big = upload("a.npz", npz(v=functions, u=functions, v_query=functions[:1]))
    assert "takes up to 1000 of each" in refused("data/regress", files=[big])
    monkeypatch.setattr(data, "BYTES", 1000)
    assert "expected at most 1000" in refused("data/regress", files=[big])


def test_a_model_that_does_not_fit_says_which_do(client, refused):
    sample = upload("sample.npz", client.get("/sample.npz").content)
    detail = refused("data/regress", files=[sample], model="burgers")
    assert detail.startswith("burgers: ") and "These take it: general, adr" in detail
    assert "no model is called 'x'" in refused("data/regress", files=[sample], model="x")


@pytest.mark.parametrize(
    ("path", "body", "says"),
    [
        (
            "adr/predict",
            {"hidden": HIDDEN, "examples": [0], "v": [0.0] * 100},
            "v: Tuple should have at least 101 items",
        ),
        (
            "adr/predict",
            {"hidden": HIDDEN, "examples": [0, 0], "v": V},
            "2 examples, 1 of them distinct",
        ),
        ("adr/predict", {"hidden": HIDDEN, "examples": [], "v": V}, "expected one or more"),
        (
            "adr/predict",
            {"hidden": HIDDEN, "examples": [100], "v": V},
            "examples.0: Input should be less than 100",
        ),
        ("adr/examples", {"seed": 1, "k": 9}, "k: Input should be less than or equal to 0.4"),
        ("adr/outliers", {"hidden": HIDDEN, "examples": [0, 1]}, "expected at least 10"),
        (
            "burgers/predict",
            {"fluid": {"seed": 1}, "v": {"shape": [2], "data": "no"}},
            "v is not base64",
        ),
        (
            "burgers/predict",
            {"fluid": {"seed": 1}, "v": {"shape": [9], "data": ""}},
            "v holds 0 bytes",
        ),
    ],
)
def test_a_bad_request_is_told_why(refused, path, body, says):
    assert says in refused(path, **body)


def test_numbers_that_are_none_are_refused(client):
    body = '{"hidden": {"seed": 1}, "examples": [0], "v": [' + ",".join(["NaN"] * 101) + "]}"
    response = client.post(
        "/api/adr/predict", content=body, headers={"content-type": "application/json"}
    )
    assert response.status_code == 400 and "expected finite numbers" in response.json()["detail"]


def test_the_page_loads_nothing_from_elsewhere(client):
    response = client.get("/")
    assert (
        response.status_code == 200
        and "default-src 'self'" in response.headers["content-security-policy"]
    )
    for file in STATIC.iterdir():
        assert client.get(f"/{file.name}").content == file.read_bytes()
        text = file.read_text().replace("http://www.w3.org/2000/svg", "")
        assert "//" not in text.replace("// ", "") or file.suffix == ".js"
        assert "http:" not in text and "https:" not in text and "style=" not in text
    assert client.get("/../app.py").status_code == 404


def test_only_this_machine_is_served(client):
    assert client.get("/", headers={"host": "elsewhere.example"}).status_code == 421


def test_the_command_says_where_the_page_is(monkeypatch):
    seen = {}
    for name in ("warm_up", "warm_the_rest"):
        monkeypatch.setattr(f"transduce.playground.app.{name}", lambda: None)
    monkeypatch.setattr("webbrowser.open", lambda url: seen.setdefault("opened", url))

    def start(app, host, port, ready):
        seen.update(host=host, port=port)
        ready(f"http://{host}:{port}")

    monkeypatch.setattr("transduce.playground.start", start)
    result = run("play", "--port", "8000", "--no-browser")
    assert (
        result.exit_code == 0 and "http://127.0.0.1:8000" in result.stdout and "opened" not in seen
    )
    run("play")
    assert seen == {"host": "127.0.0.1", "port": 8642, "opened": "http://127.0.0.1:8642"}
