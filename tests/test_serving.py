"""The server's answers: the library's own numbers, as JSON and as npz, from operators that are kept
for a while, within limits."""

import asyncio
import importlib
import sys
import threading
import tracemalloc
import warnings

import numpy as np
import pytest
import torch
from conftest import fails
from fastapi.testclient import TestClient

import transduce.serving
from transduce import models
from transduce.serving.app import make_app
from transduce.serving.bodies import TooLargeError, read_json, read_npz, write_npz
from transduce.serving.files import read_text
from transduce.serving.limits import Guard, Limits, RefusedError, is_loopback
from transduce.serving.operators import Operators, Regressed, held_bytes
from transduce.serving.regressing import Sizes, condition, predict
from transduce.serving.start import bound
from transduce.serving.warned import telling_warnings
from transduce.serving.workers import Workers
from transduce.spaces import FourierModes, Region, SineModes
from transduce.types import ExampleSet, TransduceError

pytestmark = pytest.mark.filterwarnings("ignore:Using `httpx`")
NPZ = {"content-type": "application/x-npz"}
TOKEN = "a token of sixteen".replace(" ", "-")


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def transducer(space=SineModes, modes=8, hidden=8, **options):
    torch.manual_seed(0)
    spaces = space(modes, **options), space(modes, **options)
    return models.representer(*spaces, heads=1, width=4, hidden=hidden).eval()


def functions(*shape, seed=0):
    """White noise, zero at both ends."""
    f = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    f[..., [0, -1]] = 0
    return f


T = transducer()
v, u, v_query = functions(6, 17), functions(6, 17, seed=1), functions(3, 17, seed=2)
O = T.regress(ExampleSet(v, u))


def client(models=None, address="testclient", **options):
    return TestClient(
        make_app(models or {"sines": T}, **options),
        "http://localhost",
        client=(address, 1),
        raise_server_exceptions=False,
    )


def as_json(**fields):
    return {
        "json": {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in fields.items()
        }
    }


def as_npz(**fields):
    return {"content": write_npz(fields), "headers": NPZ}


def regressed(server, send=as_json, **fields):
    answer = server.post("/operators", **send(**{"v": v, "u": u, **fields}))
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


def said(answer, status):
    """What an answer of this status says."""
    assert answer.status_code == status, answer.text
    return answer.json()["detail"]


@pytest.mark.parametrize("send", [as_json, as_npz])
def test_numbers_are_the_librarys(send):
    x, at = np.sort(functions(17)) % 1, np.array([0.1, 0.25, 0.7])
    scattered = T.regress(ExampleSet(v, u, x))
    with client() as server:
        id, id_scattered = regressed(server, send), regressed(server, send, x=x)
        for O_here, path, fields in [
            (O, id, {}),
            (O, id, {"at": 33}),
            (O, id, {"at": at}),
            (scattered, id_scattered, {}),
            (scattered, id_scattered, {"x": x[::-1].copy()}),
        ]:
            answer = server.post(f"/operators/{path}/predict", **send(v=v_query, **fields))
            assert answer.headers["content-type"] == "application/json"
            np.testing.assert_array_equal(np.float32(answer.json()["u"]), O_here(v_query, **fields))
        sent = send(v=v_query, band=0.8)
        sent["headers"] = sent.get("headers", {}) | {"accept": "application/x-npz"}
        answer = read_npz(server.post(f"/operators/{id}/predict", **sent).content, 2**20)
    for name, expected in zip(("u", "low", "high"), O.predict(v_query, band=0.8), strict=True):
        np.testing.assert_array_equal(answer[name], expected)
    assert answer["u"].dtype == np.float32 and answer["milliseconds"] > 0


def test_two_dimensions_and_channels():
    T = transducer(FourierModes, (2, 2), channels=2)
    v = functions(4, 2, 8, 8)
    O = T.regress(ExampleSet(v, v[::-1].copy()))
    with client({"sines": transducer(), "waves": T}) as server:
        assert [model["name"] for model in server.get("/models").json()] == ["sines", "waves"]
        assert server.get("/models").json()[1] == {
            "name": "waves",
            "dimensions": 2,
            "channels": {"v": 2, "u": 2},
            "bands": True,
            "adapts": False,
        }
        sent = {"content": write_npz({"v": v, "u": v[::-1]}), "headers": NPZ}
        made = server.post("/operators?model=waves", **sent).json()
        assert (made["model"], made["n"], made["v"]) == ("waves", 4, [4, 2, 8, 8])
        for at in (16, [16, 12], [[0.1, 0.2], [0.5, 0.5], [0.0, 0.9]]):
            answer = server.post(
                f"/operators/{made['id']}/predict", json={"v": v[:2].tolist(), "at": at}
            ).json()
            asked = tuple(at) if at == [16, 12] else at
            np.testing.assert_array_equal(np.float32(answer["u"]), O(v[:2], at=asked))


def test_what_the_model_warns_of_is_answered():
    coarse = v[:, ::2]
    with telling_warnings(), client() as server:
        made = server.post("/operators", **as_json(v=coarse, u=u)).json()
        assert any(
            "9 points, enough for 7 modes; this model reads 8" in warning
            for warning in made["warnings"]
        )
        assert server.get(f"/operators/{made['id']}").json() == made
        fine, rough = (
            server.post(f"/operators/{made['id']}/predict", **as_json(v=f)).json()
            for f in (v_query, v_query[:, ::2])
        )
    assert fine["warnings"] == [] and len(rough["warnings"]) == 1


def test_what_is_warned_of_later_is_not_told_of_earlier_work():
    with telling_warnings():
        made = condition({"sines": T}, {"v": v[:, ::2], "u": u}, "sines", Sizes())
        told = len(made.warnings)
        warnings.warn("of other work in this thread", stacklevel=1)
        with pytest.raises(TransduceError):
            condition({"sines": T}, {"v": v[:, :3], "u": u}, "sines", Sizes())
        warnings.warn("after work that failed", stacklevel=1)
    assert len(made.warnings) == told == 1


def test_operators_expire_and_make_room():
    clock = Clock()
    each = held_bytes(O)
    operators = Operators(seconds=60.0, most=3, most_bytes=10 * each, clock=clock)
    with client(operators=operators, clock=clock) as server:
        first, second = regressed(server), regressed(server)
        clock.now = 50.0
        # Used: from now on another 60 s.
        assert server.get(f"/operators/{first}").status_code == 200
        clock.now = 70.0
        assert "Send its examples again" in said(
            server.post(f"/operators/{second}/predict", **as_json(v=v_query)), 404
        )
        third, fourth = regressed(server), regressed(server)
        assert server.get(f"/operators/{first}").status_code == 200
        fifth = regressed(server)  # in the place of the one that was used longest ago
        left = [
            id
            for id in (first, third, fourth, fifth)
            if server.get(f"/operators/{id}").status_code == 200
        ]
        assert left == [first, fourth, fifth]
        assert server.get("/health").json() == {"status": "ok", "operators": 3, "bytes": 3 * each}
        assert server.delete(f"/operators/{first}").status_code == 204
        assert server.delete(f"/operators/{first}").status_code == 404
        clock.now = 1000.0
    operators.sweep()
    assert len(operators) == 0


def test_operators_take_no_more_bytes_than_they_may():
    each = held_bytes(O)
    alone, shared = (held_bytes(T.regress(ExampleSet(v, u_here))) for u_here in (v.copy(), v))
    # Memory that is shared counts once.
    assert v.nbytes + u.nbytes < each == alone == shared + v.nbytes
    wide = transducer(hidden=512)
    # The model does not count.
    assert held_bytes(wide.regress(ExampleSet(v, u))) < sum(p.nbytes for p in wide.parameters())
    operators = Operators(most_bytes=2 * each)
    kept = [
        operators.add(Regressed("sines", T.regress(ExampleSet(v.copy(), u.copy())), 1.0, []))
        for _ in range(3)
    ]
    assert operators.bytes == 2 * each and operators.get(kept[0].id) is None
    with pytest.raises(TooLargeError, match="Send fewer examples"):
        Operators(most_bytes=each - 1).add(kept[0].regressed)


@pytest.mark.parametrize(
    ("fields", "status", "words"),
    [
        (
            {"v": functions(1001, 17), "u": functions(1001, 17)},
            413,
            "examples: 1001; this server takes at most 1000",
        ),
        ({"v": functions(1, 2**17 + 1)}, 413, "coarser grid"),
        ({"x": functions(4097)}, 413, "positions in x: 4097"),
        ({"u": functions(5, 17)}, 422, "examples.v holds 6 functions and examples.u 5"),
        ({"v": functions(6, 3)}, 422, "Give at least 10 points"),
        ({"v": functions(6, 2, 17)}, 422, "this model expects (n, points)"),
        ({"v": functions(17)}, 422, "For a single one"),
        ({"w": functions(6, 17)}, 422, "the fields u, v, w; expected v, u"),
        ({"v": np.full((6, 17), 1e39)}, 422, "examples.v[0, 0] is inf"),
    ],
)
def test_examples_that_do_not_fit(fields, status, words):
    with client() as server:
        assert words in said(
            server.post("/operators", **as_npz(**{"v": v, "u": u, **fields})), status
        )
        assert server.get("/health").json()["operators"] == 0


@pytest.mark.parametrize(
    ("fields", "status", "words"),
    [
        ({"at": 0}, 422, "at least 1"),
        ({"at": 1.5}, 422, "whole numbers of points"),
        ({"at": 2**17 + 1}, 413, "points to answer at"),
        (
            {"at": 2**17, "v": functions(100, 17)},
            413,
            "numbers of the answer: 13107200; this server takes at most 4194304",
        ),
        (
            {"at": 1, "v": functions(10_001, 17)},
            413,
            "queries: 10001; this server takes at most 10000",
        ),
        ({"at": [0.5, 2.0]}, 422, "expected within [0, 1]"),
        ({"band": 1.0}, 422, "band=1.0"),
        ({"band": "wide"}, 422, "band is wide; expected a share"),
        ({"v": functions(1, 17) * 1e37}, 422, "the answer is not finite"),
        ({"model": "sines"}, 422, "expected v, and, if wanted, x, at, band"),
    ],
)
def test_queries_that_do_not_fit(fields, status, words):
    with client() as server:
        id = regressed(server, u=1e37 * u) if "finite" in words else regressed(server)
        assert words in said(
            server.post(f"/operators/{id}/predict", **as_json(**{"v": v_query, **fields})), status
        )


def test_queries_take_no_more_coefficients_than_examples_may():
    assert predict(O, {"v": functions(12, 17), "at": 1}, Sizes(coefficients=100))["u"].shape == (
        12,
        1,
    )
    with pytest.raises(
        TooLargeError, match="coefficients of all queries: 104; this server takes at most 100"
    ):
        predict(O, {"v": functions(13, 17), "at": 1}, Sizes(coefficients=100))


def test_places_of_a_kernel_share_the_examples():
    lat, lon = (50.0, 47.5, 45.0, 42.5), (0.0, 2.5, 5.0)
    four_places = Region(lat, lon, reach=5.0, block=2)
    near = models.region(four_places, Region(lat, lon)).eval()
    fields = {name: functions(6, *near.V.grid, seed=seed) for seed, name in enumerate("vu")}
    assert len(condition({"near": near}, fields, "near", Sizes(examples=24)).operator.examples) == 6
    with pytest.raises(TooLargeError, match="examples: 6; this server takes at most 5"):
        condition({"near": near}, fields, "near", Sizes(examples=23))


def test_unknown_models_and_types():
    with client() as server:
        assert "this server has no model 'adr'; it has sines" in said(
            server.post("/operators", **as_json(v=v, u=u, model="adr")), 422
        )
        assert "expected the header Content-Type" in said(
            server.post("/operators", content=b"{}", headers={"content-type": "text/plain"}), 415
        )
        answer = server.put("/operators/some")
        assert said(answer, 405) and answer.headers["allow"] == "DELETE, GET"


def test_rate_of_each_address():
    clock = Clock()
    app = make_app({"sines": T}, Limits(rate=2.0), clock=clock)
    one, other = (
        TestClient(app, "http://localhost", client=(address, 1))
        for address in ("10.0.0.1", "10.0.0.2")
    )
    # Two seconds' worth at once.
    assert [one.get("/health").status_code for _ in range(5)] == [200] * 4 + [429]
    assert one.get("/health").headers["retry-after"] == "1"
    assert other.get("/health").status_code == 200
    clock.now = 0.5
    assert [one.get("/health").status_code for _ in range(2)] == [200, 429]


def test_addresses_are_forgotten(monkeypatch):
    monkeypatch.setattr("transduce.serving.limits.ADDRESSES", 10)
    guard = Guard(make_app({"sines": T}), Limits())
    for i in range(50):
        guard._check_rate({"client": (f"10.0.0.{i}", 1)})
    assert len(guard.buckets) == 10 and "10.0.0.49" in guard.buckets


def test_token():
    with client(limits=Limits(token=TOKEN, loopback=False)) as server:
        for headers, words in [
            ({}, "no token came"),
            ({"authorization": f"Basic {TOKEN}"}, "Authorization: Bearer"),
            ({"authorization": "Bearer 0"}, "not this server's"),
            ({"authorization": "Bearer \xff".encode("latin-1")}, "not this server's"),
        ]:
            answer = server.get("/models", headers=headers)
            assert words in said(answer, 401) and answer.headers["www-authenticate"] == "Bearer"
        assert server.get("/openapi.json").status_code == 401
        assert (
            server.get("/models", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
        )
        assert server.get("/health", headers={"host": "anywhere.example"}).status_code == 200


def test_other_hosts_are_refused_on_loopback():
    with client() as server:
        for host in (
            "localhost",
            "localhost:8000",
            "127.0.0.1",
            "127.8.0.1:80",
            "[::1]:8000",
            "[::1]",
        ):
            assert server.get("/health", headers={"host": host}).status_code == 200, host
        for host in (
            "evil.example",
            "evil.example:8000",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "10.0.0.1",
            "",
        ):
            assert "is for localhost" in said(server.get("/health", headers={"host": host}), 421), (
                host
            )
    assert not is_loopback("0.0.0.0") and not is_loopback("::") and is_loopback("::1")


def test_command_line_refuses(tmp_path):
    assert "Set TRANSDUCE_TOKEN, or leave out --host" in fails("serve", "--host", "0.0.0.0")
    assert "expected 16 or more" in fails("serve", "--host", "0.0.0.0", "--token", "short")
    assert "no model is called 'adx'" in fails("serve", "--model", "adx")
    assert "called adr, adr; expected each name once" in fails(
        "serve", "--model", f"adr,{tmp_path / 'adr.safetensors'}"
    )
    with bound("127.0.0.1", 0) as taken:
        assert "Give another --port" in fails(
            "serve", "--model", "adr", "--port", taken.getsockname()[1]
        )
    assert "Give another --port" in fails(
        "serve", "--model", "adr", "--host", "no.such.host.invalid", "--token", TOKEN
    )


def test_work_that_finds_no_room_is_refused():
    """One at work, one that waits, and the third is turned away; then there is room again."""

    async def crowd():
        workers, release = Workers(cores=1, queue=1), threading.Event()
        first, second = (asyncio.create_task(workers.run(release.wait)) for _ in range(2))
        await asyncio.sleep(0)
        with pytest.raises(RefusedError, match="wait already"):
            await workers.run(release.wait)
        release.set()
        assert await first and await second
        assert await workers.run(torch.is_inference_mode_enabled)

    asyncio.run(crowd())


def test_work_that_nobody_waits_for_still_takes_its_room():
    async def leave():
        workers, begun, release = Workers(cores=1, queue=0), threading.Event(), threading.Event()
        left = asyncio.create_task(workers.run(lambda: (begun.set(), release.wait(2))))
        await asyncio.sleep(0)
        assert begun.wait(10) and left.cancel()
        with pytest.raises(asyncio.CancelledError):
            await left
        with pytest.raises(RefusedError, match="wait already"):
            await workers.run(lambda: release.wait(2))
        release.set()
        workers.pool.submit(int).result(10)  # its turn comes when that work is done
        assert await workers.run(lambda: release.wait(2))

    asyncio.run(leave())


def test_bodies_and_answers_under_way_are_counted():
    guard = Guard(make_app({"sines": T}), Limits(body_bytes=100, bodies_bytes=150))
    assert guard._reserve({"content-length": "60"}) == 60
    with pytest.raises(RefusedError, match="too many large requests") as refused:
        guard._reserve({"transfer-encoding": "chunked"})  # as large as may be
    assert refused.value.status == 503
    sent = []

    async def send(message):
        sent.append(message)

    async def answer(size):
        counted = guard._counting(send)
        await counted({"type": "http.response.start", "status": 200, "headers": []})
        await counted({"type": "http.response.body", "body": b"0" * size})

    asyncio.run(answer(90))
    asyncio.run(answer(91))
    assert [message["status"] for message in sent if "status" in message] == [200, 503]
    assert guard.held == 60


def test_an_answer_that_is_read_slowly_is_given_up(monkeypatch):
    """Each part in time, and yet the whole too late."""
    monkeypatch.setattr("transduce.serving.limits.SLICE", 10)
    monkeypatch.setattr("transduce.serving.limits.READING", 0.3)
    sent = []

    async def answering(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"0" * 100})

    async def receive():
        return {"type": "http.request", "body": b""}

    async def read_slowly(message):
        await asyncio.sleep(0.05)
        sent.append(message)

    guard = Guard(answering, Limits())
    for pace, whole in ((10, True), (1000, False)):  # ten seconds by its size; 0.3 s
        monkeypatch.setattr("transduce.serving.limits.PACE", pace)
        sent.clear()
        asyncio.run(
            guard(
                {"type": "http", "path": "/", "headers": [(b"host", b"localhost")]},
                receive,
                read_slowly,
            )
        )
        assert guard.held == 0 and (len(sent) == 11) is whole and len(sent) > 1


@pytest.mark.parametrize(
    ("read", "body", "times"),
    [
        (read_npz, write_npz({"v": np.zeros(2**20 - 200, np.uint8)}), 4),
        (read_json, b'{"v": [' + b"[1.5]," * 4000 + b"[1.5]]}", 4),
        (read_json, b'{"v": [[' + b"1.5," * (2**16 - 1) + b"1.5]]}", 4),
        (read_text, b"1.25679\n" * (2**20 // 48 - 1), 9),
        (read_text, b"1.25," * (2**16 - 4) + b"1.5\n", 9),
    ],
    ids=["npz", "lists", "numbers", "rows of text", "columns of text"],
)
def test_bodies_take_no_more_memory_than_is_said(read, body, times):
    """At the very limits."""
    tracemalloc.start()
    try:
        read(body, 2**20)
        assert tracemalloc.get_traced_memory()[1] < times * 2**20
    finally:
        tracemalloc.stop()


def test_without_what_it_needs_it_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "fastapi", None)
    with pytest.raises(TransduceError, match=r"pip install 'transduce\[serve\]'"):
        importlib.reload(transduce.serving)
